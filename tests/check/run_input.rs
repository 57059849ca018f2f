//! Mistakes in files and arguments, for runs with made-up figures: reported with place, reason and remedy. The rest continues.

use crate::support::home::Home;
use crate::support::{Ended, narrows, run};

const GRID: &str = "[[grid]]\nconnections = 2\n";

/// A home with the system `good`, and an experiment `e` that names it and these.
fn home_with(others: &[&str]) -> Home {
    let home = Home::new();
    home.twin("good");
    home.write("truth.toml", "figure = 1000.0");
    let names: Vec<String> = [&["good"], others].concat().iter().map(|name| format!("\"{name}\"")).collect();
    home.experiment("requests", &format!("[{}]", names.join(", ")), 1, GRID);
    home
}

/// Runs the experiment as its file says, with made-up figures.
fn run_as_filed(home: &Home, words: &[&str]) -> Ended {
    home.run([&["run"], words, &["--rounds", "file", "--fake", "truth.toml"]].concat())
}

#[test]
fn a_broken_manifest_is_shown_with_its_position_and_excludes_only_its_system() {
    let home = home_with(&["broken"]);
    for (mistake, line, reason) in [
        ("colour = \"red\"", 9, "colour"),
        ("[knobs.depth]\ntype = \"integr\"\ndefault = 1\nabout = \"a\"", 10, "integr"),
        ("[ready]\ntimeout_s = \"soon\"", 10, "soon"),
        ("[ready\n", 9, "]"),
    ] {
        home.server("broken", r#"["true", "{port}"]"#, &format!("\n{mistake}"));
        let place = format!("systems/broken/system.toml:{line}:");
        let ended = run_as_filed(&home, &["e"]).code(0).says(&[&place, reason, "systems/broken is left out"]);
        assert_eq!(home.measured("good").len(), 1, "{ended:#?}");
        assert!(home.observations().iter().all(|seen| seen.trial.scenario.system != "broken"));
        let listed = home.run(["systems"]).code(0);
        assert!(listed.stdout.contains("broken manifest") && listed.stdout.contains("good"), "{listed:#?}");
    }
}

#[test]
fn a_manifest_under_another_name_is_broken() {
    let home = home_with(&[]);
    home.server("other", r#"["true", "{port}"]"#, "");
    std::fs::rename(home.path("systems/other"), home.path("systems/another")).unwrap();
    run_as_filed(&home, &["e"]).code(0).says(&["systems/another/system.toml:1:", "other", "another"]);
    home.measured("good");
}

#[test]
fn a_broken_experiment_is_shown_with_its_line_and_reason() {
    let good = "name = \"x\"\ntitle = \"t\"\nworkload = \"requests\"\nsystems = [\"good\"]\nfigure = \"requests_per_s\"\n";
    let form = |name: &str| {
        format!("[{name}]\nrounds = 1\nwarmup_s = 0.0\nmeasure_s = 0.1\n[[{name}.grid]]\nconnections = 1\n")
    };
    let whole = format!("{good}{}{}", form("quick"), form("full"));
    let change = |from: &str, to: &str| whole.replacen(from, to, 1);
    let home = home_with(&[]);
    home.write("experiments/x.toml", &whole);
    run_as_filed(&home, &["x"]).code(0);
    for (text, place, words) in [
        (change("\"requests_per_s\"", "\"requests_per_minute\""), "x.toml:5:", &["requests_per_minute"][..]),
        (change("[\"good\"]", "[\"god\"]"), "x.toml:4:", &["no system `god`", "did you mean `good`?"]),
        (
            change("connections = 1", "conections = 1"),
            "x.toml:11:",
            &["`conections`", "did you mean `connections`?"],
        ),
        (change("connections = 1", "connections = -1"), "x.toml:11:", &["-1"]),
        (change("connections = 1", "connections = []"), "x.toml:11:", &["no values"]),
        (change("rounds = 1", "rounds = 0"), "x.toml:7:", &["no rounds"]),
        (change("rounds = 1", "round = 1"), "x.toml:7:", &["round"]),
        (change("measure_s = 0.1", "measure_s = -1.0"), "x.toml:9:", &["-1"]),
        (change("name = \"x\"", "name = \"y\""), "x.toml:1:", &["`y`", "`x`"]),
        (change("workload = \"requests\"", "workload = \"upload\""), "x.toml:", &[]),
        (change("title = \"t\"", "title = t"), "x.toml:2:", &[]),
        (change("[quick]", "[quick"), "x.toml:6:", &[]),
    ] {
        home.write("experiments/x.toml", &text);
        let ended = run_as_filed(&home, &["x"]).code(1).says(&[place]).says(words);
        assert_eq!(ended.stdout, "", "{place}");
    }
    // Without a name, all experiments that can be read are run.
    run_as_filed(&home, &[]).code(0).says(&["left out", "x.toml:6:"]);
    home.measured("good");
}

#[test]
fn unknown_names_on_the_command_line_are_errors_that_suggest_the_nearest() {
    let home = home_with(&[]);
    let knob = "[knobs.mode]\ntype = \"choice\"\ndefault = \"fast\"\nvalues = [\"fast\", \"thorough\"]\nabout = \"how\"\n\
                [start.env]\nMODE = \"{mode}\"";
    home.server("good", r#"["{narrows}", "serve", "--any", "{port}"]"#, knob);
    for (words, said) in [
        (&["run", "ee"][..], &["no experiment `ee`", "did you mean `e`?"][..]),
        (
            &["run", "e", "--rounds", "file", "--systems", "goood"],
            &["no system `goood`", "did you mean `good`?"],
        ),
        (
            &["run", "e", "--rounds", "file", "--set", "connectoins=1"],
            &["`connectoins`", "did you mean `connections`?"],
        ),
        (&["run", "e", "--rounds", "file", "--set", "mode=fsat"], &["fsat", "`fast`"]),
        (&["run", "e", "--rounds", "file", "--set", "connections=two"], &["two", "connections at once"]),
        (&["run", "e", "--rounds", "file", "--set", "connections=0"], &["0", "1"]),
        (&["run", "e", "--rounds", "file", "--set", "keep_alive=maybe"], &["maybe", "true"]),
        (&["run", "e", "--rounds", "file", "--set", "connections"], &["KNOB=VALUE"]),
        (&["run", "--resume", "12"], &["12"]),
    ] {
        let ended = home.run(words).says(said);
        assert!(
            matches!(ended.status.code(), Some(1 | 2)) && ended.stdout.is_empty(),
            "{words:?}: {ended:#?}"
        );
    }
    assert_eq!(home.observations(), [], "nothing may have run");
    home.run(["run", "e", "--rounds", "0"]).code(2);
    home.run(["run", "e", "--rounds", "file", "--frobnicate"]).code(2);
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    let home = home_with(&[]);
    home.run(["run", "e", "--rounds", "1", "--fake", "truth.toml"]).code(0);
    for option in [
        &["e"][..],
        &["--quick"],
        &["--full"],
        &["--systems", "good"],
        &["--set", "connections=1"],
        &["--rounds", "7"],
        &["--budget", "10s"],
        &["--seed", "1"],
    ] {
        home.run([&["run", "--resume", "1"], option].concat())
            .code(2)
            .says(&["--resume", "cannot be used with"]);
    }
    home.run(["run", "--resume", "1", "--fake", "truth.toml"]).code(0).says(&["run 1: 0 of 2 trials"]);
    // A knob may be given once. A repeated value counts once.
    let twice = ["run", "e", "--rounds", "1", "--set", "connections=1", "--set", "connections=3"];
    home.run(twice).code(1).says(&[
        "`connections` is set twice: `connections=1` and `connections=3`",
        "after one --set connections=",
    ]);
    home.run(["run", "e", "--rounds", "1", "--set", "connections=1,3,1", "--fake", "truth.toml"])
        .code(0)
        .says(&["run 2: 3 of 3 trials"]);
}

#[test]
fn names_are_not_broken_at_line_ends() {
    let home = home_with(&[]);
    let names: Vec<String> = (0..9).map(|n| format!("one-of-several-systems-{n}")).collect();
    names.iter().for_each(|name| home.twin(name));
    for words in [&["systems", "--check", "nosuch"][..], &["run", "e", "--systems", "nosuch"]] {
        let ended = home.run(words).code(1);
        assert!(names.iter().all(|name| ended.stderr.contains(name.as_str())), "{}", ended.stderr);
    }
}

#[test]
fn values_on_the_command_line_replace_those_of_the_file() {
    let home = home_with(&["good2"]);
    home.twin("good2");
    let words = [
        "run",
        "e",
        "--systems",
        "good2",
        "--set",
        "connections=1,3",
        "--set",
        "keep_alive=all",
        "--rounds",
        "2",
        "--fake",
        "truth.toml",
    ];
    home.run(words).code(0);
    let seen = home.observations();
    let count = |system: &str| seen.iter().filter(|o| o.trial.scenario.system == system).count();
    assert_eq!((count("good"), count("good2"), count("reference"), seen.len()), (0, 8, 2, 10));
}

#[test]
fn a_folder_that_is_not_a_home_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = narrows(["run", "e", "--rounds", "file"]);
    command.env("NARROWS_HOME", empty.path()).current_dir(empty.path());
    run(&mut command).code(1).says(&["NARROWS_HOME", "has neither systems/ nor experiments/"]);
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "it leaves nothing there");
}
