//! Programs and ports that are not there: reported with reason and remedy. The rest continues.

use std::net::TcpListener;

use crate::support;
use crate::support::home::Home;
use crate::support::{Served, narrows, run};

const GRID: &str = "[[grid]]\nconnections = 2\n";

/// A home with the system `good`, and an experiment `e` that names it and these.
fn home_with(others: &[&str]) -> Home {
    let home = Home::new();
    home.twin("good");
    let names: Vec<String> = [&["good"], others].concat().iter().map(|name| format!("\"{name}\"")).collect();
    home.experiment("requests", &format!("[{}]", names.join(", ")), 1, GRID);
    home
}

#[test]
fn a_missing_program_is_named_with_its_remedy_and_other_systems_are_measured() {
    let home = home_with(&["needy"]);
    let need = "[[needs]]\nname = \"Frobnicator 7\"\nprobe = [\"no-such-program\", \"--version\"]\n\
                get = \"apt-get install frobnicator\"";
    home.server("needy", r#"["no-such-program", "{port}"]"#, need);
    let said = ["needy takes no part", "Frobnicator 7 is missing", "apt-get install frobnicator"];
    home.run(["run", "e", "--rounds", "file"]).code(0).says(&said);
    let ended = home.run(["report", "last"]).code(0);
    home.measured("good");
    assert!(home.observations().iter().all(|seen| seen.trial.scenario.system != "needy"));
    assert!(support::squeezed(&ended.stdout).contains("not run here: needy"), "{ended:#?}");
    let listed = home.run(["systems"]).code(0);
    let listed = support::squeezed(&listed.stdout);
    for word in ["needy server missing", "Frobnicator 7", "`no-such-program` is not installed"] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let json = home.run(["systems", "--json"]).code(0).json();
    let needy =
        json.as_array().unwrap().iter().find(|system| system["name"] == "needy").expect("it is listed");
    assert_eq!((&needy["available"], &needy["missing"][0]["name"]), (&false.into(), &"Frobnicator 7".into()));
    // If it is the only system, the run fails and says so.
    home.run(["run", "e", "--rounds", "file", "--systems", "needy"])
        .code(1)
        .says(&said)
        .says(&["nothing to run"]);
}

#[test]
fn a_probe_that_fails_or_hangs_means_missing() {
    let home = home_with(&["failing", "hanging"]);
    let need = |script: &str| {
        format!("[[needs]]\nname = \"It\"\nprobe = [\"sh\", \"-c\", \"{script}\"]\nget = \"ask for it\"")
    };
    home.server("failing", r#"["true", "{port}"]"#, &need("echo too old; exit 1"));
    home.server("hanging", r#"["true", "{port}"]"#, &need("sleep 3600 & exec sleep 3600"));
    home.run(["run", "e", "--rounds", "file"])
        .code(0)
        .says(&["failing takes no part", "hanging takes no part"]);
    home.measured("good");
}

#[test]
fn a_port_in_use_is_named_and_not_shared() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let taken = format!("127.0.0.1:{port}");
    run(&mut narrows(["serve", "--port", &port])).code(1).says(&["cannot listen", &taken, "in use"]);
    run(&mut narrows(["serve", "--port", "0", "--frames", &port])).code(1).says(&[
        "cannot listen",
        &taken,
        "in use",
    ]);
    // The kernel would allow it, because the threads of a server share a port.
    for words in [&["--port", &port, "--frames", &port][..], &["--frames", "8080"]] {
        run(&mut narrows([&["serve"], words].concat())).code(2).says(&["cannot serve both HTTP and frames"]);
    }
    // The threads of a server share a port with each other, but not with another process, even another `narrows serve`.
    let server = Served::start(&["-t", "2"]);
    let port = server.http.rsplit(':').next().unwrap();
    run(&mut narrows(["serve", "--port", port, "-t", "2"])).code(1).says(&["cannot listen", port, "in use"]);
    server.counts();
}
