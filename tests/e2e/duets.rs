//! Duets: two trials at the same time. Whether a machine lets them be one depends on what else it does, so tests of real servers
//! assert how they were measured, and tests with a fake what follows.

use lab::duet::{Duet, Refusal};

use crate::support::NARROWS;
use crate::support::fake::Lab;
use crate::support::home::Home;

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

#[test]
fn two_servers_run_at_the_same_time() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}}");
    let arms = [format!("{server} -t 1"), server];
    let hooks = ["--shell", "--prepare", "echo prepare >> log", "--conclude", "echo conclude >> log"];
    let short = ["--save", "both", "--duet", "--rounds", "1", "-d", "400ms", "--warmup", "50ms"];
    let words = ["try", &arms[0], &arms[1]].into_iter().chain(hooks).chain(short);
    home.run(words).code(0);
    let saved = std::fs::read_to_string(home.path("narrows/experiments/both.toml")).expect("it is saved");
    assert!(saved.contains("duet = true\n"), "{saved}");
    let log = std::fs::read_to_string(home.path("log")).expect("they have run");
    // After the first look at each arm, both are prepared before one of them is stopped.
    let looks = "prepare\nconclude\n".repeat(2);
    assert!(log.starts_with(&format!("{looks}prepare\nprepare\nconclude\nconclude\n")), "{log}");
    let seen = home.observations();
    assert_eq!(seen.len(), 4, "a duet of the two, and one of the base and its twin");
    assert!(seen.iter().all(|o| o.duet.is_some()), "{seen:#?}");
    assert!(seen.chunks(2).all(|two| two[0].trial.is_with(&two[1].trial) && two[0].duet == two[1].duet));
}

/// Where the servers have one core.
#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_gate_on_a_ratio_measures_duets_without_being_asked() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}}");
    let few = std::thread::available_parallelism().expect("it is known").get() <= 2;
    let short = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms"];
    for (gate, is_duet) in [
        (&["--fail-if", "rate<0.01"][..], few),
        (&["--fail-if", "rate<0.01", "--no-duet"], false),
        (&["--fail-if", "rate<1/s"], false),
        (&["--fail-if", "p99>100", "--figure", "p99", "--rate", "1000"], false),
        (&["--fail-if", "rate<0.01", "--prepare", "true"], false),
        (&[], false),
    ] {
        home.run([&["try", &server, &server], gate, &short].concat());
        let seen = home.observations();
        assert!(!seen.is_empty() && seen.iter().all(|o| o.trial.duet.is_some() == is_duet), "{gate:?}");
    }
}

#[test]
fn a_search_proves_its_winner_in_duets() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}} -t {{threads}}");
    let short = ["--duet", "-d", "100ms", "--warmup", "20ms", "--budget", "30s", "--seed", "1"];
    home.run([&["tune", &server, "-k", "threads=1,2"][..], &short].concat()).code(0);
    let seen = home.observations();
    let (raced, proven): (Vec<_>, Vec<_>) = seen.iter().partition(|o| o.trial.duet.is_none());
    assert!(!raced.is_empty() && !proven.is_empty());
    let last_race = raced.iter().map(|o| o.trial.index).max();
    assert!(proven.iter().all(|o| Some(o.trial.index) > last_race), "the proof comes last");
}

#[test]
fn what_no_duet_can_be_is_refused_before_anything_starts() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}}");
    let refused = |words: &[&str], why: &str| {
        home.run([&["try", "--duet"], words].concat()).code(2).says(&[why]);
    };
    refused(&["http://127.0.0.1:1", "http://127.0.0.1:2"], "give commands instead of URLs");
    refused(&[&server, &server, "--fail-if", "p99>5ms", "--figure", "p99"], "limit a ratio");
    refused(&[&server, &server, "--slo", "p99<5ms"], "--slo");
    refused(&[&server, &server, "--unequal"], "--unequal");
    refused(&[&server, &server, "--frames"], "--duet needs requests");
    let search = ["tune", &server, "-k", "n=1,2", "--duet", "--slo", "p99<5ms"];
    home.run(search).code(2).says(&["--slo"]);
    assert!(!home.has_run());
}
