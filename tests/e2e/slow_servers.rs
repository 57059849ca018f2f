//! Servers whose answers take long beside the window, and the times of trials that a first look chooses for them.

use serde_json::Value;

use crate::support::home::Home;
use crate::support::{has, squeezed};

/// A server of Node.js that answers after as many milliseconds as its second argument says.
const SLOW: &str = "require('http').createServer((request, answer) => setTimeout(() => answer.end('ok'), \
                    Number(process.argv[3]))).listen(Number(process.argv[2]), '127.0.0.1');\n";

fn home() -> Option<Home> {
    has("node").then(|| {
        let home = Home::new();
        home.write("slow.js", SLOW);
        home
    })
}

/// What the first figure of a report in JSON says.
fn experiment(report: &str) -> Value {
    let mut report: Value = serde_json::from_str(report).expect("JSON");
    report["experiments"][0]["figures"][0].take()
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_ratio_of_two_slow_servers_is_in_its_interval() {
    let Some(home) = home() else { return };
    let words = ["try", "node slow.js {port} 450", "node slow.js {port} 300", "--names", "slow,quick"];
    let times = ["--rounds", "3", "-d", "500ms", "--warmup", "500ms", "--seed", "1", "--format", "json"];
    let e = experiment(&home.run(words.into_iter().chain(times)).code(0).stdout);
    let [c] = &e["comparisons"].as_array().expect("comparisons")[..] else { panic!("{e:#}") };
    let system =
        |at: &Value| e["estimates"][at.as_u64().expect("a position") as usize]["scenario"]["system"].as_str();
    assert_eq!([system(&c["scenario"]), system(&c["against"])], [Some("quick"), Some("slow")], "{c:#}");
    let bound = |name: &str| c["ratio"][name].as_f64().expect("a number");
    let (low, high) = (bound("low"), bound("high"));
    assert!(low <= 1.5 && 1.5 <= high, "{c:#}");
    assert!(high > 1.01 * low, "no interval is that narrow with so few answers: {c:#}");
    // The verdict is a word, or an object if it is undecided.
    assert!(c["verdict"] == "faster" || c["verdict"]["undecided"].is_object(), "{c:#}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn each_value_of_a_knob_may_take_longer_than_the_usual_window() {
    let Some(home) = home() else { return };
    let words = ["try", "node slow.js {port} {ms}", "--knob", "ms=1200,1600", "-c", "2", "--rounds", "1"];
    home.run(words.into_iter().chain(["-d", "2s", "--quiet"])).code(0);
    let seen = home.measured("slow.js");
    // Each value, and the base's twin.
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|m| m.successes > 0 && m.errors.is_empty()), "{seen:#?}");
    // The look chose the warm-up of all trials: two answers of the slowest.
    assert!(home.observations().iter().all(|seen| seen.trial.timing.warmup_s >= 3.2));
}

#[test]
fn a_value_that_is_too_slow_for_the_timeout_is_refused_before_any_trial() {
    let Some(home) = home() else { return };
    let words = ["try", "node slow.js {port} {ms}", "--knob", "ms=5,3000", "--timeout", "1s", "--quiet"];
    let ended = home.run(words).code(1);
    ended.says(&["slow.js ms=3000", "--timeout"]);
    assert!(!home.has_run());
}

#[test]
fn a_cold_window_begins_with_the_first_requests() {
    let Some(home) = home() else { return };
    let words = ["try", "node slow.js {port} 0", "--cold", "--rounds", "2", "-d", "200ms", "-c", "2"];
    let ended = home.run(words).code(0);
    let said = squeezed(&ended.stdout);
    assert!(said.contains("Cold: each window begins with the first requests."), "{ended:#?}");
    assert!(home.observations().iter().all(|seen| seen.trial.timing.warmup_s == 0.0));
}

#[test]
fn a_budget_too_short_for_a_comparison_is_refused_before_any_trial() {
    let Some(home) = home() else { return };
    let arms = ["try", "node slow.js {port} 300", "node slow.js {port} 1200", "--quiet"];
    let said = ["--budget is too short for a comparison: that takes 3 rounds of", "use --budget"];
    // The time of the window alone tells it at first, and in the second case the first look.
    for more in [&["-d", "10s", "--budget", "20s"][..], &["--budget", "30s"]] {
        home.run(arms.iter().chain(more)).code(2).says(&said);
    }
    assert!(home.observations().is_empty());
}
