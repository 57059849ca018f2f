//! Tests of what is said of a candidate.

use stats::Noise;

use super::*;
use crate::findings::{Findings, findings};
use crate::observation::{Failure, Stage};
use crate::plan::Base;
use crate::session::{Fake, Rule};
use crate::simulation::{arm_rule, arms, observed};

/// A run of two arms with little noise, whose second arm is so many times as good. `base` is the position of
/// the base.
fn found(better: f64, base: usize) -> Findings {
    let mut plan = arms(2, 8, 3);
    let scenario = plan.experiments[0].scenarios[base].clone();
    plan.experiments[0].setup.base = Some(Base { scenario, command: String::new() });
    let noise = Noise { spread: 0.01, ..Noise::NONE };
    findings(&plan, &observed(&plan, Fake::new(1e6, vec![arm_rule(1, better)], noise, 5)))
}

#[test]
fn the_same_is_said_whichever_of_the_two_is_the_base() {
    for (better, base, choice, is_small) in [
        (1.5, 0, Choice::Accept, true),
        (0.6, 1, Choice::Accept, true),
        (0.6, 0, Choice::Reject, false),
        (1.5, 1, Choice::Reject, false),
        (1.0, 0, Choice::Reject, false),
        (1.0, 1, Choice::Reject, false),
    ] {
        let all = found(better, base);
        let e = all.views().next().unwrap();
        let candidate = e.candidate().unwrap();
        assert_eq!((candidate.base, candidate.candidate), (base, 1 - base));
        assert_eq!(candidate.choice(e.threshold), choice, "{better} beside {base}: {candidate:?}");
        assert_eq!(candidate.p < 0.001, is_small, "{better} beside {base}: {candidate:?}");
        let truth = if base == 0 { better } else { 1.0 / better };
        assert!((candidate.ratio.unwrap().estimate / truth).ln().abs() < 0.03, "{candidate:?}");
    }
}

#[test]
fn a_decision_of_a_ledger_accepts_and_nothing_else_does() {
    let all = found(1.5, 0);
    let e = all.views().next().unwrap();
    let candidate = e.candidate().unwrap();
    for (decision, choice) in [
        (Decision::Accept, Choice::Accept),
        (Decision::Unconfirmed, Choice::Inconclusive),
        (Decision::Reject, Choice::Inconclusive),
    ] {
        assert_eq!(candidate.after(decision, e.threshold), choice);
    }
    let equal = found(1.0, 0);
    let e = equal.views().next().unwrap();
    assert_eq!(e.candidate().unwrap().after(Decision::Unconfirmed, e.threshold), Choice::Reject);
}

#[test]
fn a_smaller_level_needs_more_rounds() {
    let mut plan = arms(2, 4, 3);
    let noise = Noise { spread: 0.05, ..Noise::NONE };
    let fake = Fake::new(1e6, vec![arm_rule(1, 1.15)], noise, 5);
    plan.experiments[0].setup.subject.threshold = 0.01;
    let all = findings(&plan, &observed(&plan, fake));
    let e = all.views().next().unwrap();
    let candidate = e.candidate().unwrap();
    let rounds = |level| e.rounds_to_decide(&candidate, Some(level)).unwrap();
    assert!(rounds(1e-4) > rounds(0.02), "{candidate:?}");
}

#[test]
fn what_was_not_measured_has_no_small_p_value() {
    let plan = arms(2, 5, 3);
    let failure = Failure { stage: Stage::Start, reason: "it exited".to_owned(), output: String::new() };
    let broken = Rule { fail: Some(failure), ..arm_rule(1, 1.0) };
    let all = findings(&plan, &observed(&plan, Fake::new(1e6, vec![broken], Noise::NONE, 5)));
    let e = all.views().next().unwrap();
    let candidate = e.candidate().unwrap();
    assert_eq!((candidate.p, candidate.ratio), (1.0, None));
    assert_eq!(candidate.choice(e.threshold), Choice::Inconclusive);
    assert_eq!(e.rounds_to_decide(&candidate, Some(0.02)), None);
}

#[test]
fn several_arms_have_no_single_candidate() {
    let plan = arms(3, 3, 3);
    let all = findings(&plan, &observed(&plan, Fake::new(1e6, Vec::new(), Noise::NONE, 5)));
    assert!(all.views().next().unwrap().candidate().is_none());
}
