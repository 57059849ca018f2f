//! How often a gate fails, is excluded or stays inconclusive. Runs as those of `try --budget 5m --fail-if 'rate<0.95'`: a base, its
//! twin, and what is set beside it.

use std::sync::OnceLock;

use stats::Noise;

use super::sample::{add, at_least, at_most, runs, share};
use super::{Rounds, observed, plan, value_rule};
use crate::condition::{Bound, Condition, Limited};
use crate::findings::{ConditionOutcome, compare_scenarios, findings};
use crate::observation::{Observation, Timing};
use crate::plan::{Base, Plan};
use crate::session::{Fake, observe};

/// The bound of the condition.
const BOUND: f64 = 0.95;

/// The budget in seconds.
const BUDGET_S: f64 = 300.0;

/// The shares of runs in which any scenario fails, in which all are excluded, and in which none fails and some is inconclusive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ended {
    pub fails: f64,
    pub excluded: f64,
    pub inconclusive: f64,
    /// The mean number of rounds.
    pub rounds: f64,
}

/// A plan as `try` makes it, with so many scenarios beside the base.
fn gated(scenarios: i64, seed: u64) -> Plan {
    let mut plan = plan(scenarios + 1, Rounds::Fixed(0), seed);
    let planned = &mut plan.experiments[0];
    planned.scenarios.retain(|scenario| !scenario.is_reference());
    let scenario = planned.scenarios[0].clone();
    planned.setup.base = Some(Base { scenario, command: String::new() });
    planned.setup.timing = Timing { warmup_s: 0.5, measure_s: 1.0, timeout_s: 1.0 };
    plan.conditions = vec![Condition {
        text: format!("rate<{BOUND}"),
        of: Limited::Rate,
        below: true,
        bound: Bound::Ratio(BOUND),
    }];
    plan.together = true;
    plan.grow(&[(0, 3)]);
    plan.grow_within(BUDGET_S, false);
    plan
}

fn carried_out(plan: Plan, mut fake: Fake) -> (Plan, Vec<Observation>) {
    super::carried_out(plan, |trial| observe(&mut fake, trial).unwrap(), |_, _| {})
}

/// Simulates runs in which each trial has normal noise with this standard deviation, and each scenario is `truth` times as good as
/// the base.
fn simulate(whole: u64, noise: f64, scenarios: i64, truth: f64) -> Ended {
    let noise = Noise { spread: noise, ..Noise::default() };
    let mut ended = Ended::default();
    for seed in 0..runs(whole) {
        let rules = (1..=scenarios).map(|value| value_rule(value, truth)).collect();
        let fake = Fake::new(1e6, rules, noise, seed + 1_000_000);
        let (plan, seen) = carried_out(gated(scenarios, seed), fake);
        let found = findings(&plan, &seen);
        let answers: Vec<ConditionOutcome> =
            found.gates[0].scenarios.iter().map(|gated| gated.tested.answer).collect();
        assert_eq!(answers.len(), usize::try_from(scenarios).unwrap());
        let fails = answers.contains(&ConditionOutcome::Met);
        let excluded = answers.iter().all(|answer| *answer == ConditionOutcome::Excluded);
        add(whole, &mut ended.fails, fails);
        add(whole, &mut ended.excluded, excluded);
        add(whole, &mut ended.inconclusive, !fails && answers.contains(&ConditionOutcome::Inconclusive));
        add(whole, &mut ended.rounds, plan.experiments[0].rounds);
    }
    ended
}

/// What is simulated: the number of runs, the noise, the number of scenarios and the truth. At the bound there are more runs, because
/// it takes more to show that a failure is rare.
pub(super) const CASES: [(u64, f64, i64, f64); 8] = [
    (400, 0.03, 1, 0.90),
    (400, 0.03, 1, 0.92),
    (400, 0.03, 1, 1.00),
    (400, 0.05, 1, 0.90),
    (400, 0.05, 1, 0.92),
    (400, 0.05, 1, 1.00),
    (2000, 0.05, 1, 0.95),
    (400, 0.05, 20, 0.95),
];

pub(super) fn ended() -> &'static [Ended] {
    static ENDED: OnceLock<Vec<Ended>> = OnceLock::new();
    ENDED.get_or_init(|| {
        let simulated =
            CASES.iter().map(|(runs, noise, scenarios, truth)| simulate(*runs, *noise, *scenarios, *truth));
        simulated.collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn a_gate_fails_when_it_should_and_hardly_otherwise() {
    for ((whole, noise, scenarios, truth), ended) in CASES.iter().zip(ended()) {
        let what = format!("{noise} {scenarios} {truth}: {ended:?}");
        let most = |limit: f64| at_most(ended.fails, limit, *whole);
        let right = match (*scenarios, *truth, *noise) {
            (1, 0.90, _) | (1, 0.92, 0.03) => at_least(ended.fails, 0.8, *whole),
            (1, 0.95, _) => most(0.025),
            (1, 1.00, _) => at_least(ended.excluded, 0.8, *whole) && most(0.005),
            (20, ..) => most(0.05),
            _ => true,
        };
        assert!(right, "{what}");
    }
}

/// What a gate answers if trials take so many times as long as its plan expects.
fn out_of_time(truth: f64, slower: f64, seed: u64) -> ConditionOutcome {
    let mut plan = gated(1, seed);
    plan.grow_within(BUDGET_S / 2.0, false);
    plan.budget_s = Some(BUDGET_S / 2.0 / slower);
    let noise = Noise { spread: 0.02, ..Noise::default() };
    let (plan, seen) = carried_out(plan, Fake::new(1e6, vec![value_rule(1, truth)], noise, seed + 1_000_000));
    findings(&plan, &seen).gates[0].scenarios[0].tested.answer
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn a_gate_that_runs_out_of_time_keeps_its_promise_and_uses_what_it_has() {
    const RUNS: u64 = 1000;
    for (slower, power) in [(1.0, 0.95), (1.3, 0.9), (2.0, 0.7), (4.0, 0.25)] {
        let answers = |truth: f64| -> Vec<ConditionOutcome> {
            (0..RUNS).map(|seed| out_of_time(truth, slower, seed)).collect()
        };
        let share = |answers: &[ConditionOutcome], answer| share(answers, |found| *found == answer);
        let at_bound = answers(BOUND);
        let (met, excluded) =
            (share(&at_bound, ConditionOutcome::Met), share(&at_bound, ConditionOutcome::Excluded));
        assert!(met <= 0.025 && excluded <= 0.025, "{slower}: {met} {excluded}");
        let found = share(&answers(BOUND * 0.97), ConditionOutcome::Met);
        assert!(found >= power, "{slower}: {found}");
    }
}

#[test]
fn rounds_go_on_until_the_condition_is_decided_and_not_longer() {
    let ended = |conditions: &[f64], truth: f64| {
        let mut plan = gated(1, 7);
        let condition = plan.conditions.remove(0);
        let with = |bound: &f64| Condition { bound: Bound::Ratio(*bound), ..condition.clone() };
        plan.conditions = conditions.iter().map(with).collect();
        let noise = Noise { spread: 0.03, ..Noise::default() };
        let (plan, seen) = carried_out(plan, Fake::new(1e6, vec![value_rule(1, truth)], noise, 7));
        let answers =
            findings(&plan, &seen).gates.iter().map(|gate| gate.scenarios[0].tested.answer).collect();
        (plan.experiments[0].rounds, answers)
    };
    let (verdict, none): (u32, Vec<ConditionOutcome>) = ended(&[], 0.8);
    assert!(none.is_empty());
    // That 0.8 is below 1 is seen before it is below 0.87, and far from 0.5 before either.
    let (near, met) = ended(&[0.87], 0.8);
    assert!(near > verdict && met == [ConditionOutcome::Met], "{near} {verdict} {met:?}");
    let (far, excluded) = ended(&[0.5], 0.97);
    assert_eq!((far, excluded), (3, vec![ConditionOutcome::Excluded]));
    let (both, answers) = ended(&[0.5, 0.87], 0.8);
    assert!(
        both >= near && answers == [ConditionOutcome::Excluded, ConditionOutcome::Met],
        "{both} {answers:?}"
    );
}

#[test]
fn what_a_run_asks_together_is_one_family() {
    let mut plan = gated(1, 7);
    let mut other = plan.experiments[0].clone();
    other.setup.rounds = 0;
    other.setup.subject.name = "other".to_owned();
    other.scenarios.iter_mut().for_each(|scenario| scenario.experiment = "other".to_owned());
    plan.experiments.push(other);
    plan.grow(&[(1, 3)]);
    let noise = Noise { spread: 0.03, ..Noise::default() };
    let fake = Fake::new(1e6, vec![value_rule(1, 0.8)], noise, 7);
    let seen = observed(&plan, fake);
    let p = |plan: &Plan| {
        compare_scenarios(plan, &seen).concat().iter().map(|c| c.p.unwrap()).collect::<Vec<_>>()
    };
    let together = p(&plan);
    plan.together = false;
    let alone = p(&plan);
    assert!(alone.iter().all(|p| *p < 0.5), "{alone:?}");
    let holm = stats::holm(&alone);
    assert_eq!(together, holm);
    assert_ne!(together, alone);
}
