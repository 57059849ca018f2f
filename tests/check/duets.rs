//! Duets, two trials at the same time: what follows from them with made-up figures. `tests/e2e/tries.rs` tests how two servers are
//! measured.

use lab::duet::{Duet, Refusal};

use crate::support::fake::{Lab, Try};

/// An experiment of two systems that are measured at the same time.
const PAIR: &str = r#"
name = "pair"
title = "Of a test"
workload = "requests"
systems = ["alpha", "beta"]
base = "alpha"
duet = true
figure = "requests_per_s"

[quick]
rounds = 4
warmup_s = 0.1
measure_s = 1.0

[[quick.grid]]
connections = 100

[full]
rounds = 4
warmup_s = 0.1
measure_s = 1.0

[[full.grid]]
connections = 100
"#;

/// Beside other work: trials vary by a third, of which two at the same time share nine tenths. Beta is 10 % faster than alpha.
const BUSY: &str = r#"
seed = 3
figure = 10000.0
noise = { spread = 0.3, tails = 30 }
duet = 0.05

[[rule]]
system = "beta"
better = 1.1
"#;

fn pair(truth: &str) -> Lab {
    let lab = Lab::new();
    lab.home.write("experiments/pair.toml", PAIR);
    lab.home.write("truth.toml", truth);
    let words = ["run", "pair", "--fake", "truth.toml", "--seed", "1", "--rounds", "4"];
    lab.narrows(&words).code(0);
    lab
}

#[test]
fn a_duet_decides_beside_other_work_what_single_trials_cannot() {
    let details = pair(BUSY).report("details");
    assert!(details.contains("beta leads: it is 1."), "{details}");
    assert!(details.contains("duets at the same time on the same cores"), "{details}");
    let alone = pair(&BUSY.replace("duet = 0.05\n", "")).report("details");
    assert!(!alone.contains("beta leads"), "{alone}");
    assert!(alone.contains("no trials were at the same time"), "{alone}");
}

#[test]
fn a_pair_that_is_refused_is_measured_one_after_the_other_and_says_why() {
    let lab = pair(&format!("{BUSY}refuse = {{ apart = {{ ratio = 2.0 }} }}\n"));
    let seen = lab.home.observations();
    let refused = Some(Duet::Refused(Refusal::Apart { ratio: 2.0 }));
    // Two of them, and then none is tried. The base and its twin are a pair, too.
    let of_pair = seen.iter().filter(|o| o.trial.duet == Some(1));
    let became: Vec<Option<Duet>> = of_pair.map(|o| o.duet.clone()).collect();
    assert_eq!(became, [refused.clone(), refused.clone(), refused.clone(), refused, None, None, None, None]);
    let details = lab.report("details");
    assert!(details.contains("no duets count, so each system was measured alone"), "{details}");
    assert!(details.contains("2.0x as fast as the other"), "{details}");
}

#[test]
fn an_experiment_says_what_a_duet_needs() {
    let lab = Lab::new();
    let refuses = |from: &str, to: &str, words: &[&str]| {
        lab.home.write("experiments/pair.toml", &PAIR.replace(from, to));
        lab.narrows(&["run", "pair", "--fake", "truth.toml"]).code(1).says(words);
    };
    refuses("base = \"alpha\"\n", "", &["duet = true", "name one of the systems as `base`"]);
    refuses("\"requests\"", "\"upload\"", &["two windows are not one"]);
}

/// Where the servers have one core.
#[test]
fn a_gate_on_a_ratio_measures_duets_without_being_asked() {
    let tried = Try::new("");
    let few = std::thread::available_parallelism().expect("it is known").get() <= 2;
    for (gate, is_duet) in [
        (&["--fail-if", "rate<0.01"][..], few),
        (&["--fail-if", "rate<0.01", "--no-duet"], false),
        (&["--fail-if", "rate<1/s"], false),
        (&["--fail-if", "p99>100", "--figure", "p99", "--rate", "1000"], false),
        (&["--fail-if", "rate<0.01", "--prepare", "true"], false),
        (&[], false),
    ] {
        tried.tries(&[&["./s {port}", "./s {port}", "--rounds", "1"], gate].concat());
        let seen = tried.home.observations();
        assert!(!seen.is_empty() && seen.iter().all(|o| o.trial.duet.is_some() == is_duet), "{gate:?}");
    }
}

#[test]
fn a_search_proves_its_winner_in_duets() {
    let tried = Try::new("duet = 0.05\n[[rule]]\npoint = { threads = 2 }\nbetter = 1.5\n");
    let command = ["tune", "./s {port} {threads}", "-k", "threads=1,2", "--duet", "--budget", "60s"];
    tried.home.run([&command[..], &["--fake", "truth.toml", "--seed", "1"]].concat()).code(0);
    let seen = tried.home.observations();
    let (raced, proven): (Vec<_>, Vec<_>) = seen.iter().partition(|o| o.trial.duet.is_none());
    assert!(!raced.is_empty() && !proven.is_empty());
    let last_race = raced.iter().map(|o| o.trial.index).max();
    assert!(proven.iter().all(|o| Some(o.trial.index) > last_race), "the proof comes last");
}
