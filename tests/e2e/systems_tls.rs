//! The systems of the checkout that speak TLS: every answer is right, whichever the version, the key and the kind of
//! connection, and sessions are resumed where the system says so.

use std::fs;

use lab::observation::Outcome;
use measurement::Measurement;
use systems::Value;

use crate::run_systems::runs;
use crate::support::home::{Home, all_took_part};
use crate::support::{has, run};

/// Servers that speak TLS themselves.
const SERVERS: [&str; 6] = ["cowboy2", "go-http", "hyper", "netty", "nginx", "node"];
/// Programs that speak TLS in front of nginx.
const TERMINATORS: [&str; 3] = ["caddy", "haproxy", "hitch"];

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_answer_requests_in_tls() {
    let home = Home::with(&SERVERS);
    let grid = "[[grid]]\nconnections = 8\nkeep_alive = [true, false]\ntls = [\"1.3\", \"1.2\"]\n\
                [[grid]]\nconnections = 3\npipeline = 4\ntls = \"1.3\"\ncertificate = \"rsa2048\"\n\
                keepalive_requests = 1000000\nmax_keepalive = 1000000\n";
    home.timed_experiment("requests", &format!("{SERVERS:?}"), 1, 0.3, grid);
    for system in runs(&home, "reference") {
        let measured = home.measured(&system);
        // Before each trial the system has answered one request of this kind. A cold JVM on a busy machine may answer
        // no second one in a window.
        assert!(measured.iter().any(|m| m.successes > 0), "{system}: {measured:#?}");
        // Kept connections may all have been opened before the window.
        let made: Vec<_> = measured.iter().filter_map(|m| m.handshakes.as_ref()).collect();
        assert!(made.iter().any(|made| made.full > 0), "{system}: {measured:#?}");
        assert!(made.iter().all(|made| made.offered == 0), "{system}: {measured:#?}");
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_accept_uploads_of_every_size_in_tls() {
    let systems = ["cowboy2", "go-http", "hyper", "netty", "node"];
    let home = Home::with(&systems);
    // At its default flow size, Cowboy 2.8 can stop reading a kept connection.
    let grid = "[[grid]]\nsize = [0, 1, \"1M\"]\nreuse = false\ntls = [\"1.3\", \"1.2\"]\n\
                [[grid]]\nsize = \"100K\"\nexpect = true\ntls = \"1.3\"\ninitial_stream_flow_size = \"1G\"\n";
    home.timed_experiment("upload", &format!("{systems:?}"), 1, 0.3, grid);
    runs(&home, "reference");
}

#[test]
fn servers_resume_sessions_with_tickets() {
    let systems = ["cowboy2", "go-http", "hyper", "nginx", "node"];
    let home = Home::with(&systems);
    let grid = "[[grid]]\nconnections = 2\nkeep_alive = false\ntls = \"1.3\"\nsessions = \"always\"\ntickets = [true, false]\n";
    home.timed_experiment("requests", &format!("{systems:?}"), 1, 0.5, grid);
    let resumed = |m: &Measurement| m.handshakes.as_ref().expect("handshakes").resumed;
    for system in runs(&home, "reference") {
        for seen in home.observations().into_iter().filter(|seen| seen.trial.scenario.system == system) {
            let tickets = seen.trial.scenario.point.get("tickets") == Some(&Value::Boolean(true));
            // rustls remembers sessions itself if it gives no tickets.
            let expected = tickets || system == "hyper";
            let Outcome::Measured(m) = &seen.outcome else { panic!("{seen:#?}") };
            assert_eq!(resumed(m) > 0, expected, "{system}, tickets {tickets}: {m:#?}");
        }
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn terminators_pass_requests_on_and_leave_nothing_behind() {
    let home = Home::with(&TERMINATORS);
    let grid = "[[grid]]\nconnections = 8\nkeep_alive = [true, false]\ntls = \"1.3\"\nupstream = [\"loopback\", \"unix\"]\n\
                [[grid]]\nconnections = 3\npipeline = 4\ntls = \"1.2\"\ncertificate = \"rsa2048\"\n\
                [[grid]]\nsystems = [\"caddy\", \"haproxy\"]\nconnections = 8\ntls = \"off\"\n";
    home.timed_experiment("requests", &format!("{TERMINATORS:?}"), 1, 0.3, grid);
    let files = home.path("temporary");
    fs::create_dir(&files).expect("a folder");
    let words = ["run", "e", "--rounds", "file"];
    let ended = run(home.narrows(words).env("TMPDIR", &files));
    home.assert_nothing_left();
    if !all_took_part(&ended) && ended.stderr.contains("nothing to run") {
        return;
    }
    let ended = ended.code(0);
    for seen in home.observations() {
        let Outcome::Measured(m) = &seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{seen:#?}");
    }
    let left: Vec<_> = fs::read_dir(&files).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?} {ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn texts_have_the_size_that_is_asked_for_in_plain_text_and_in_tls() {
    if !has("nginx") {
        return;
    }
    let home = Home::with(&["go-http", "nginx"]);
    let form = |name: &str| {
        format!(
            "[{name}]\nrounds = 1\nwarmup_s = 0.05\nmeasure_s = 0.3\n[[{name}.grid]]\nconnections = 2\n\
             tls = [\"off\", \"1.3\"]\nanswer_size = 20000\ngzip = [\"off\", \"on\"]\n"
        )
    };
    // Who does not accept gzip gets the text as it is.
    let text = format!(
        "name = \"e\"\ntitle = \"Of a test\"\nworkload = \"requests\"\nsystems = [\"go-http\", \"nginx\"]\n\
         base = \"nginx\"\nfigure = \"requests_per_s\"\n[request]\nmethod = \"GET\"\npath = \"/bytes\"\nstatus = 200\n\
         answer = {{ length = 20000 }}\n{}{}",
        form("quick"),
        form("full")
    );
    home.write("experiments/e.toml", &text);
    for system in runs(&home, "nginx") {
        assert!(home.measured(&system).iter().all(|m| m.successes > 0), "{system}");
    }
}
