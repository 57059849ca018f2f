//! Variants of one system in `narrows run`: each has its own row, and is available or missing independently.

use crate::support;
use crate::support::home::Home;

/// Variants whose runtimes are in different folders.
const MANIFEST: &str = r#"
[[needs]]
name = "the runtime"
probe = ["runtime"]
get = "put runtime on the path"
[build]
command = ["true"]
version = ["echo", "library 1"]
[variants.new]
path = "{dir}/new"
[variants.old]
path = "{$NARROWS_TEST_OLD}"
get = "set NARROWS_TEST_OLD"
[variants.none]
path = "{$NARROWS_TEST_NONE}"
get = "set NARROWS_TEST_NONE"
"#;

/// The home with both runtimes. One of them is found only through the user's environment.
fn home() -> Home {
    let home = Home::new();
    home.server("twin", r#"["runtime", "{narrows}", "{port}", "{variant}"]"#, MANIFEST);
    for version in ["new", "old"] {
        let name = format!("systems/twin/{version}/runtime");
        let script = format!(
            "#!/bin/sh\n[ $# -gt 0 ] || {{ echo {version}; exit; }}\n[ \"$3\" = {version} ] || exit 7\nexec \"$1\" serve --any \"$2\"\n"
        );
        home.write(&name, &script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(home.path(&name), mode).expect("an executable");
    }
    // Long enough for an answer in each trial, even on a busy machine.
    let systems = "[\"twin@new\", \"twin@old\", \"twin@none\", \"twin\"]";
    home.timed_experiment("requests", systems, 1, 1.0, "[[grid]]\nconnections = 2\n");
    home
}

fn narrows(home: &Home, words: &[&str]) -> support::Ended {
    support::run(home.narrows(words).env("NARROWS_TEST_OLD", home.path("systems/twin/old")))
}

#[test]
fn each_variant_has_its_own_row() {
    let home = home();
    narrows(&home, &["run", "e", "--rounds", "file"]).code(0).says(&[
        "twin@none takes no part: the environment variable NARROWS_TEST_NONE is missing (set NARROWS_TEST_NONE)",
        "twin takes no part: the runtime is missing (put runtime on the path)",
    ]);
    let ended = home.run(["report", "last"]).code(0);
    assert!(ended.stdout.contains("twin@new") && ended.stdout.contains("twin@old"), "{ended:#?}");
    for (system, version) in
        [("twin@new", "library 1, the runtime new"), ("twin@old", "library 1, the runtime old")]
    {
        let measured = home.measured(system);
        assert_eq!(measured.len(), 1);
        assert!(measured.iter().all(|m| m.successes > 0 && m.system.version == version), "{measured:#?}");
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let excluded = report["experiments"][0]["excluded"].as_array().expect("a list");
    let names: Vec<&str> = excluded.iter().filter_map(|entry| entry["system"].as_str()).collect();
    assert_eq!(names, ["twin@none", "twin"], "{report}");
    assert_eq!(report["experiments"][0]["versions"]["twin@old"], "library 1, the runtime old", "{report}");
    home.assert_nothing_left();
}

#[test]
fn variants_are_named_like_systems() {
    let home = home();
    let listed = narrows(&home, &["systems", "--json"]).code(0).json();
    let available = |name: &str| {
        let all = listed.as_array().expect("a list");
        all.iter().find(|system| system["name"] == name).expect(name)["available"].clone()
    };
    for (name, there) in [("twin", false), ("twin@new", true), ("twin@old", true), ("twin@none", false)] {
        assert_eq!(available(name), there, "{name}: {listed}");
    }
    narrows(&home, &["run", "e", "--rounds", "file", "--systems", "twin@nwe"])
        .code(1)
        .says(&["did you mean `twin@new`?"]);
    home.write("truth.toml", "figure = 1000.0");
    let fake = ["--rounds", "file", "--fake", "truth.toml"];
    narrows(&home, &[&["run", "e", "--systems", "twin@new"], &fake[..]].concat()).code(0);
    assert!(home.observations().iter().all(|seen| seen.trial.scenario.system != "twin@old"));
    // A block that names the system also includes its variants.
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = 2\nsystems = [\"twin\"]\n");
    narrows(&home, &[&["run", "e", "--systems", "twin@new"], &fake[..]].concat()).code(0);
    assert_eq!(home.measured("twin@new").len(), 1);
    narrows(&home, &["systems", "--check", "twin@new"]).code(0);
    home.assert_nothing_left();
}
