//! Sentences that the snapshots of the program have no run for.

use lab::doubt::Evidence;
use lab::findings::{By, Claim, Comparison, Counted, ExperimentFindings, Ratio, Reason, Silence};
use stats::Verdict;

use super::{Advice, advice_on_trial, answer, headlines};
use crate::made_up::{found, rule};

/// Two systems with pools of 8 and 16.
fn run() -> ExperimentFindings {
    found(&["fast", "slow"], &[("pool_size", &[8, 16])], &[rule("fast", &[], 2.0)])
}

fn comparison(by: By, verdict: Verdict) -> Comparison {
    let ratio = Some(Ratio { estimate: 2.0, low: 1.25, high: 1e6 });
    Comparison {
        scenario: 1,
        against: 0,
        by,
        rounds: 4,
        ratio,
        excess: None,
        p: Some(0.01),
        at_least: true,
        verdict,
    }
}

fn said(claim: Claim) -> String {
    let mut e = run();
    e.claims = vec![claim];
    answer(&e)
}

#[test]
fn ties_lower_bounds_and_counts_are_said() {
    let by = By::Knob("pool_size".to_owned());
    let counts = |counted, faster, slower| Reason { counted, faster, slower };
    let claim = Claim::Knob {
        comparison: comparison(by, Verdict::Faster),
        narrow: false,
        default: true,
        ties: vec![0, 1],
        reasons: vec![
            counts(Counted::SystemCalls, 2.0, 8.0),
            counts(Counted::Instructions, 1000.0, 25_000.0),
        ],
    };
    assert_eq!(
        said(claim),
        "`pool_size`: 16 is at least 2.0x [1.2, >9999] faster than 8, the default (fast; 4 rounds; 8, 16 cannot be told from it): \
         2.0 system calls a request against 8.0; 1,000 instructions a request against 25,000"
    );
}

#[test]
fn systems_of_unequal_work_are_said_to_be() {
    let mut comparison = comparison(By::System, Verdict::Slower);
    (comparison.scenario, comparison.against) = (2, 0);
    comparison.ratio = comparison.ratio.map(|ratio| ratio.inverse());
    let claim = Claim::Systems { comparison, unequal: true, reasons: Vec::new() };
    assert_eq!(
        said(claim),
        "fast is at least 2.0x [1.2, >9999] faster than slow, whose work is not the same (pool_size 8; 4 rounds)"
    );
}

#[test]
fn what_is_open_and_what_is_equal_is_said_of_knobs_and_of_systems() {
    let open = |by, equal, more_rounds| {
        let comparison = Comparison { at_least: false, ..comparison(by, Verdict::Undecided { more_rounds }) };
        said(Claim::Undecided { comparison, default: false, equal, of: 3 })
    };
    let knob = || By::Knob("pool_size".to_owned());
    let end = "16 is 2.00x [1.25, >9999] as fast as 8 (fast; 4 rounds";
    assert_eq!(open(knob(), 0, Some(7)), format!("`pool_size` is undecided: {end}; 7 more may decide it)"));
    assert_eq!(
        open(knob(), 2, None),
        format!(
            "`pool_size` makes no difference in 2 of 3 comparisons, and the others are undecided: {end})"
        )
    );
    assert!(open(By::System, 0, Some(101)).ends_with("4 rounds; over 100 more may decide it)"));
    let equal = |by| said(Claim::NoDifference { by, threshold: 0.05, against: 0, default: false });
    assert_eq!(equal(knob()), "`pool_size` makes no difference worth having: all values are within 5 % of 8");
    assert_eq!(
        equal(By::System),
        "the systems make no difference worth having: they are within 5 % of each other"
    );
}

#[test]
fn a_claim_about_what_is_not_there_is_no_panic() {
    let mut e = run();
    let far = Comparison { scenario: 99, against: 98, ..comparison(By::System, Verdict::Faster) };
    e.claims = vec![Claim::Systems { comparison: far, unequal: false, reasons: Vec::new() }];
    assert_eq!(headlines(&e).len(), 1);
}

#[test]
fn where_nothing_is_claimed_the_answer_says_why() {
    let mut e = run();
    e.claims = Vec::new();
    e.trials_done -= 1;
    assert_eq!((e.silence(), answer(&e).as_str()), (Some(Silence::NotYet), "nothing to compare yet"));
    assert!(headlines(&e).is_empty());
}

#[test]
fn what_no_made_up_trial_shows_has_its_sentence_and_a_remedy() {
    let (window_s, connections) = (1.5, 900);
    for (seen, sentence) in [
        (
            Evidence::AsTheReference { share: 0.98, low: 0.955, high: 1.01, rounds: 3 },
            "the speed was 98 % [96, 101] of the reference's in 3 rounds",
        ),
        (Evidence::NothingEnded { attempts: 10, window_s }, "none of 10 operations ended in 1.50 s"),
        (Evidence::FewEnded { successes: 1, window_s }, "only 1 operation ended in 1.50 s"),
        (
            Evidence::FewLatencies { window_s, latencies: 2.5 },
            "the window of 1.50 s is 2.5 mean latencies long",
        ),
        (Evidence::Scatter { times: 1.25 }, "tenths of the window scatter by 1.2 times their mean"),
        (Evidence::Halves { change: 0.25 }, "the second half had 25 % more operations than the first"),
        (Evidence::Ports { connections, of: 1000 }, "900 connections to one address of 1000 ports"),
        (Evidence::Throttled { times: 1 }, "the processor slowed itself down for heat 1 time"),
    ] {
        let Advice { message, remedy } = advice_on_trial(&seen);
        assert_eq!(message, sentence);
        assert!(!remedy.is_empty());
    }
}
