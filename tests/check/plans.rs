//! What a run says before its first trial.

use crate::support::fake::{Lab, TRUTH};

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
