//! `narrows tune`: what a search advises, and what it refuses.

use crate::support::fake::Lab;

fn tune<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["tune", "alpha", "--fake", "truth.toml", "--seed", "1", "--budget", "120s"], words].concat()
}

#[test]
fn the_best_setting_is_advised_and_a_finished_run_says_it_again() {
    let lab = Lab::new();
    let ended = lab.narrows(&tune(&[])).code(0);
    assert!(ended.stdout.contains("set buffer=8K: 1.5"), "{}", ended.stdout);
    assert!(ended.stdout.contains("4 of 4 settings") && !ended.stdout.contains("mode="), "{}", ended.stdout);
    let again = lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
    assert_eq!(again.stdout, ended.stdout);
}

#[test]
fn what_depends_on_each_other_is_found_and_each_contribution_is_told() {
    let lab = Lab::with("[[rule]]\npoint = { buffer = 8192, mode = \"fancy\" }\nbetter = 1.4\n");
    let ended = lab.narrows(&tune(&[])).code(0);
    for part in ["set buffer=8K mode=fancy: 2.1", "buffer=8K: 2.1", "mode=fancy: 1.4"] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
}

#[test]
fn without_a_better_setting_the_defaults_are_kept() {
    let ended = Lab::new().narrows(&tune(&["-k", "mode=all"])).code(0);
    assert!(ended.stdout.contains("keep the defaults"), "{}", ended.stdout);
    assert!(ended.stdout.contains("mode=fancy, is no difference worth"), "{}", ended.stdout);
}

#[test]
fn a_default_that_fails_ends_the_search() {
    let lab = Lab::with("[[rule]]\nfail = { stage = \"start\", reason = \"it ended\", output = \"\" }\n");
    let ended = lab.narrows(&tune(&[])).code(1);
    assert!(ended.stdout.contains("the search has no winner"), "{}", ended.stdout);
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let lab = Lab::new();
    for (words, message) in [
        (&["-k", "bufer=1460"][..], "alpha has no knob `bufer`; it has: buffer, mode"),
        (&["-k", "buffer=much"], "`much` is not a size"),
        (&["-k", "buffer=1460"], "no knob with two values"),
        (&["-k", "mode", "-k", "mode"], "given twice"),
        (&["--workload", "frames"], "alpha does not do `frames`"),
    ] {
        let ended = lab.narrows(&tune(words)).code(2);
        assert!(ended.stderr.contains(message), "{message} in {}", ended.stderr);
    }
    let short = lab.narrows(&["tune", "alpha", "--fake", "truth.toml", "--budget", "9s"]).code(2);
    assert!(short.stderr.contains("too short"), "{}", short.stderr);
}
