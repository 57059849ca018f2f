//! What a run says before its first trial.

use std::io::{BufRead, BufReader, Read};

use crate::support::fake::{EXPERIMENT, Lab, TRUTH};
use crate::support::{Guarded, full_pipe, until};

#[test]
fn a_plan_says_what_the_noise_of_earlier_runs_lets_it_find() {
    let lab = Lab::new();
    let said = |noise: &str| {
        lab.home.write("truth.toml", &TRUTH.replace("spread = 0.01, tails = 3", noise));
        lab.run(&["--rounds", "10"]).code(0).stderr
    };
    let steady = "spread = 0.02";
    let first = said(steady);
    assert!(first.contains("if the trials of a system vary by 10 %"), "{first}");
    let second = said(steady);
    assert!(second.contains("earlier runs here had ") && second.contains(" % of noise between"), "{second}");
    assert!(second.contains("10 rounds find a difference of 1.05x"), "{second}");
    assert!(second.contains("in four of five runs") && !second.contains("vary by 10 %"), "{second}");
    // Two noisy runs make the median of four lie in between.
    said("spread = 0.2");
    said("spread = 0.2");
    let later = said(steady);
    assert!(later.contains("earlier runs here") && !later.contains("a difference of 1.0"), "{later}");
    // Another machine has another noise.
    lab.home.write("truth.toml", &TRUTH.replace("Fake 1", "Fake 2"));
    let elsewhere = lab.run(&["--rounds", "10"]).code(0).stderr;
    assert!(elsewhere.contains("vary by 10 %"), "{elsewhere}");
    // A store of its own knows nothing.
    let other = lab.run(&["--rounds", "10", "--store", "other.db"]).code(0).stderr;
    assert!(other.contains("vary by 10 %"), "{other}");
}

/// A lab whose plan of the system `alpha` has 99,960 trials in 20 rounds: 4,996 scenarios, the reference, and in some rounds its
/// twin. A further system has no manifest that can be read, which the program says just before it plans.
fn largest() -> Lab {
    let lab = Lab::new();
    let connections = (1..=1249).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let experiment = EXPERIMENT.replacen("connections = 100", &format!("connections = [{connections}]"), 1);
    lab.home.write("experiments/e.toml", &experiment);
    lab.home.write("systems/broken/system.toml", "none");
    lab
}

/// Interrupts a run of the largest plan at the line that it says just before it plans: `before` the line, which waits until somebody
/// reads it, or as soon as it was read. Returns what the run says from there on.
fn interrupted(lab: &Lab, before: bool) -> String {
    let words = ["run", "e", "--fake", "truth.toml", "--systems", "alpha", "--rounds", "20"];
    let (mut stderr, full, size) = full_pipe();
    let run = Guarded::spawn(lab.home.narrows(words).stderr(full));
    assert!(until(|| run.heeds(libc::SIGINT)));
    if before {
        run.signal(libc::SIGINT);
    }
    stderr.read_exact(&mut vec![0; size]).expect("what filled it");
    let (mut said, mut text) = (BufReader::new(stderr), String::new());
    while !text.contains("systems/broken is left out") {
        assert_ne!(said.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    if !before {
        run.signal(libc::SIGINT);
    }
    said.read_to_string(&mut text).expect("it ends");
    run.end().code(130);
    lab.home.assert_nothing_left();
    text
}

#[test]
fn an_interruption_while_the_largest_plan_is_made_ends_the_program() {
    let lab = largest();
    // How far it comes before the signal reaches it depends on the machine.
    interrupted(&lab, false);
    assert!(lab.home.observations().len() < 99_960);
    let lab = largest();
    let text = interrupted(&lab, true);
    assert!(text.contains("nothing was measured or saved") && !lab.home.has_run(), "{text}");
}

#[test]
fn one_limit_bounds_what_a_file_and_each_verb_may_plan() {
    let lab = Lab::new();
    let connections = |count: usize| {
        let list = (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        format!("connections={list}")
    };
    let scenarios = "and may have 5000";
    lab.run(&["--set", &connections(1251)]).code(1).says(&[
        scenarios,
        "`connections` has 1251 values",
        "fewer values, blocks or systems",
    ]);
    let tried = |knobs: &[&str]| {
        let knobs = knobs.iter().flat_map(|knob| ["-k", *knob]);
        lab.narrows(&["try", "./s {port} {w} {v}", "--dry-run"].into_iter().chain(knobs).collect::<Vec<_>>())
    };
    assert_eq!(tried(&["w=1..100", "v=1..50"]).code(0).stdout.lines().count(), 5000);
    tried(&["w=1..100", "v=1..51"]).code(1).says(&[
        "the grid has 5100 scenarios",
        scenarios,
        "`w` has 100 values",
        "fewer values, commands or URLs",
        "`narrows tune`",
    ]);
    tried(&["w=1..5001", "v=1"])
        .code(2)
        .says(&["5001 values, and a knob may have 5000", "give fewer, or a range with a larger step"]);
    // Long commands are few.
    let long = format!("./s {{port}} {{w}} {}", "x".repeat(54 << 10));
    lab.narrows(&["try", &long, "-k", "w=1..5000", "--dry-run", "--names", "s"])
        .code(2)
        .says(&["the commands of all 5000 points take 265 MiB, and may take 256: give fewer values"]);
    // A search weighs pairs of values, and says so.
    let tune = ["tune", "./s {port} {w}", "--fake", "truth.toml", "-k"];
    lab.narrows(&[&tune[..], &["w=1..257"]].concat()).code(2).says(&["at most 256", "weighs each pair"]);
    // It writes its plan after each round, so its trials are small.
    let values = ["a", "b"].map(|text| text.repeat(60 << 10)).join(",");
    lab.narrows(&[&tune[..], &[&format!("w={values}")]].concat())
        .code(2)
        .says(&["cannot be tuned: its trials take up to", "and may take 16: give shorter values"]);
    // A long argument is shown around what is wrong.
    let long = lab.run(&["--set", &connections(5001)]).code(1).says(&["`connections` has 5001 values"]);
    assert!(long.stderr.len() < 2000, "{}", long.stderr);
    lab.run(&["--rounds", "10001"]).code(2).says(&["a number from 1 to 10000"]);
    lab.run(&["--rounds", "10000", "--set", "connections=1,2"])
        .code(1)
        .says(&["trials, and a run may have 100000", "fewer rounds"]);
}

#[test]
fn an_interruption_before_the_first_trial_leaves_a_run_that_can_go_on() {
    let lab = Lab::new();
    let (mut stderr, full, size) = full_pipe();
    let words = ["run", "e", "--fake", "truth.toml", "--rounds", "3"];
    let run = Guarded::spawn(lab.home.narrows(words).stderr(full));
    // It waits with its first line, which says how many trials there are.
    assert!(until(|| lab.home.has_run()));
    run.signal(libc::SIGINT);
    stderr.read_exact(&mut vec![0; size]).expect("what filled it");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("it ends");
    run.end().code(130);
    assert!(said.contains("interrupted before the first trial: `narrows run --resume 1"), "{said}");
    assert!(lab.home.observations().is_empty());
    lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
    assert!(!lab.home.observations().is_empty());
}

#[test]
fn an_interruption_while_many_commands_are_shown_ends_the_program() {
    let lab = Lab::new();
    let (mut stdout, full, size) = full_pipe();
    let run = Guarded::spawn(
        lab.home.narrows(["try", "./s {port} {w}", "-k", "w=1..5000", "--dry-run"]).stdout(full),
    );
    assert!(until(|| run.heeds(libc::SIGINT)));
    run.signal(libc::SIGINT);
    stdout.read_exact(&mut vec![0; size]).expect("what filled it");
    let mut shown = String::new();
    stdout.read_to_string(&mut shown).expect("it ends");
    run.end().code(130);
    assert!(shown.lines().count() < 5000);
}
