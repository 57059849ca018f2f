//! `narrows try`, in tests whose verdict stands on speeds.

use crate::support::home::Home;
use crate::support::{has, until};

/// Two servers whose timers set their speeds, one a tenth of the other's. What V8 compiles meanwhile does not change them.
fn fast_and_slow(home: &Home) -> [String; 2] {
    [home.node("fast.js", "'ok'", 10), home.node("slow.js", "'ok'", 100)]
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_slower_of_two_commands_is_found() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let [fast, slow] = fast_and_slow(&home);
    let long = ["--rounds", "5", "-d", "1s", "--warmup", "200ms", "--seed", "1"];
    let ended = home.run(["try", &slow, &fast].iter().copied().chain(long)).code(0);
    assert!(ended.stdout.contains("fast.js leads"), "{ended:#?}");
    assert!(ended.stdout.contains("than slow.js"), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_interrupted_comparison_goes_on_with_its_gate() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let [fast, slow] = fast_and_slow(&home);
    let gate = ["try", &fast, &slow, "--fail-if", "rate<0.9", "--no-duet"];
    let words = [&gate[..], &["--rounds", "5", "-d", "1s", "--warmup", "200ms"]].concat();
    let mut begun = home.spawn(&words);
    assert!(until(|| home.observations().len() > 1 || !begun.running()) && begun.running());
    begun.signal(libc::SIGINT);
    begun.end().code(130).says(&["interrupted", "narrows run --resume 1"]);
    let before = home.observations();
    let ended = home.run(["run", "--resume", "1"]).code(3).says(&["run 1 goes on", "failed: slow.js"]);
    assert!(ended.stdout.contains("fast.js leads"), "{ended:#?}");
    assert_eq!(home.observations()[..before.len()], before);
    assert_eq!(home.observations().len(), 13);
}
