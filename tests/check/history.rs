//! `history`: the ratios of made-up runs of one question (`support/fake.rs`), and where they change.

use std::fs;

use crate::support::fake::{Lab, TRUTH};
use crate::support::schema::{assert_keeps, committed};

/// Runs the experiment with noise of its own, and alpha as many times as good.
fn occasion(lab: &Lab, seed: u32, better: f64, words: &[&str]) {
    let truth = TRUTH.replace("seed = 3", &format!("seed = {seed}"));
    lab.home.write("truth.toml", &format!("{truth}[[rule]]\nsystem = \"alpha\"\nbetter = {better}\n"));
    lab.run(&[&["--rounds", "4"], words].concat()).code(0);
}

/// Twelve runs of a question. From the seventh on alpha is slower.
fn changed() -> Lab {
    let lab = Lab::new();
    (1..=12).for_each(|seed| occasion(&lab, seed, if seed < 7 { 1.0 } else { 0.7 }, &[]));
    lab
}

#[test]
fn a_change_is_found_at_its_run_and_only_where_it_is() {
    let lab = changed();
    lab.run(&["--rounds", "4", "--set", "connections=7"]).code(0);
    let found = lab.narrows(&["history", "1", "--format", "json", "--html", "history.html"]).code(0).json();
    assert_keeps(&committed("history.schema.json"), &found);
    let series = found["series"].as_array().expect("series");
    assert_eq!(series.len(), 5, "four points of alpha and one of beta: {found:#}");
    for each in series {
        assert_eq!(each["points"].as_array().map(Vec::len), Some(12), "{each:#}");
        let changes = each["changes"].as_array().expect("changes");
        if each["scenario"].as_str().is_some_and(|name| name.starts_with("beta")) {
            assert!(changes.is_empty(), "{each:#}");
            continue;
        }
        assert_eq!((changes.len(), &changes[0]["at"]), (1, &6.into()), "{each:#}");
        let ratio = |end: &str| changes[0]["ratio"][end].as_f64().expect("a number");
        assert!(0.65 < ratio("low") && ratio("high") < 0.75, "{each:#}");
    }
    let text = lab.narrows(&["history", "e"]).code(0).stdout;
    assert!(!text.contains("1 change in"), "the last run with this name asked something else: {text}");
    let text = lab.narrows(&["history", "previous"]).code(0).stdout;
    assert!(text.contains("1 change in 12 runs; from run 7 on ("), "{text}");
    let page = fs::read_to_string(lab.home.path("history.html")).expect("a page");
    assert_eq!(page.matches("<figure ").count(), 5);
}

#[test]
fn a_damaged_run_is_named_and_left_out() {
    let lab = Lab::new();
    (1..=3).for_each(|seed| occasion(&lab, seed, 1.0, if seed == 2 { &["--budget", "77s"] } else { &[] }));
    let path = lab.home.path("narrows.db");
    let mut bytes = fs::read(&path).expect("a store");
    let at = bytes.windows(12).position(|part| part == b"--budget 77s").expect("the second run");
    bytes[at + 10] = b'8';
    fs::write(&path, bytes).expect("a store");
    let ended = lab.narrows(&["history", "--format", "otava"]).code(0).says(&["left out: ", "run 2"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        lines[0].starts_with("time,commit,run,e/alpha buffer=1460 mode=plain/requests_per_s,"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains(" +0000,2.0,1,") && lines[2].contains(" +0000,2.0,3,"), "{lines:?}");
}

#[test]
fn what_has_no_history_is_said() {
    let lab = Lab::new();
    lab.run(&["--rounds", "2"]).code(0);
    lab.narrows(&["history"]).code(1).says(&["a history needs runs of several commands"]);
    lab.narrows(&["history", "nosuch"]).code(1).says(&["has no run `nosuch`", "no run has an experiment"]);
    let csv = {
        lab.run(&["--rounds", "4"]).code(0);
        lab.narrows(&["history", "--format", "csv"]).code(0).stdout
    };
    assert_eq!(csv.lines().count(), 6, "{csv}");
    assert!(csv.starts_with("experiment,figure,scenario,anchor,run,time,"), "{csv}");
}
