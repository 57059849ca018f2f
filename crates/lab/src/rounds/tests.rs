//! Tests of the rule for rounds: decided comparisons get no more rounds, budgets are kept, and an interruption changes
//! nothing.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use stats::{LOOKS, Noise};

use super::*;
use crate::experiment::grid::Overrides;
use crate::experiment::tests::planned;
use crate::observation::Outcome;
use crate::observation::Trial;
use crate::plan::estimate_s;
use crate::session::{Executor, Fake, Interrupted, Progress, Rule, carry_out, observe};
use crate::simulation::plan;
use crate::store::{RunHeader, Store};
use systems::{Point, Value};

/// Value 1 of the knob is twice as fast as the others, and value 2 half a percent faster. There is noise.
fn fake(seed: u64) -> Fake {
    let rule = |value: i64, better: f64| Rule {
        point: Point::from([("knob".to_owned(), Value::Integer(value))]),
        better: Some(better),
        ..Rule::default()
    };
    let noise = Noise { spread: 0.03, ..Noise::default() };
    Fake::new(1e6, vec![rule(1, 2.0), rule(2, 1.005)], noise, seed)
}

/// Carries out a plan that grows, without a store.
fn grown(mut plan: Plan, fake: &mut dyn Executor) -> (Plan, Vec<Observation>) {
    let mut seen = Vec::new();
    loop {
        for trial in &plan.trials[seen.len()..] {
            seen.push(observe(fake, trial).unwrap());
        }
        if !extend(&mut plan, &seen) {
            return (plan, seen);
        }
    }
}

fn trials_of(plan: &Plan, value: i64) -> usize {
    let has_value =
        |t: &&Trial| t.scenario.system == "s" && t.scenario.point["knob"] == Value::Integer(value);
    plan.trials.iter().filter(has_value).count()
}

#[test]
fn decided_scenarios_get_no_more_trials_but_the_reference_does() {
    let (plan, _) = grown(plan(3, 3, Some(f64::INFINITY), 1), &mut fake(1));
    let rounds = plan.experiments[0].rounds;
    assert!(rounds > 4 && LOOKS.contains(&rounds), "{rounds}");
    assert!(trials_of(&plan, 1) <= 4, "{}", trials_of(&plan, 1));
    assert_eq!((trials_of(&plan, 0), trials_of(&plan, 2)), (rounds as usize, rounds as usize));
    let mut references: BTreeMap<(u32, bool), usize> = BTreeMap::new();
    for trial in plan.trials.iter().filter(|t| t.scenario.system == "reference") {
        *references.entry((trial.round, trial.twin)).or_default() += 1;
    }
    let expected = (0..rounds).flat_map(|round| [((round, false), 1), ((round, true), 1)]);
    assert_eq!(references, expected.collect());
    assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index as u32));
}

#[test]
fn the_noise_floor_has_both_trials_in_every_round() {
    let mut plan =
        planned("[[quick.grid]]\nsize = [1, 2]\nbuffer = [1460, 8192]\n", Overrides::default()).unwrap();
    plan.budget_s = Some(f64::INFINITY);
    // The comparisons at size 2 stay undecided. The twin's size is 1.
    let unsteady = Rule {
        system: Some("cowboy".to_owned()),
        point: Point::from([
            ("size".to_owned(), Value::Integer(2)),
            ("buffer".to_owned(), Value::Integer(8192)),
        ]),
        rounds: Some((1..40).step_by(2).collect()),
        better: Some(0.3),
        ..Rule::default()
    };
    let mut fake = Fake::new(100.0, vec![unsteady], Noise { spread: 0.001, ..Noise::default() }, 1);
    let (plan, _) = grown(plan, &mut fake);
    let scenario = plan.experiments[0].twin().unwrap();
    let rounds = plan.experiments[0].rounds;
    let has_trial = |round: u32, twin: bool| {
        plan.trials.iter().any(|t| t.round == round && t.twin == twin && t.scenario == *scenario)
    };
    assert!(
        rounds > 6 && (0..rounds).all(|round| has_trial(round, true) && has_trial(round, false)),
        "{rounds}"
    );
    let last: Vec<&Trial> = plan.trials.iter().filter(|t| t.round == rounds - 1).collect();
    assert!(last.len() < plan.experiments[0].scenarios.len(), "{last:?}");
}

#[test]
fn a_budget_is_kept_and_a_fixed_number_of_rounds_is_not_touched() {
    for budget in [0.0, 20.0, 50.0, 100.0] {
        let (plan, seen) = grown(plan(3, 3, Some(budget), 1), &mut fake(1));
        let spent: f64 = seen.iter().map(|o| o.took_s).sum();
        let first = seen.iter().filter(|o| o.trial.round < 3).map(|o| o.took_s).sum::<f64>();
        assert!(spent <= first.max(budget) + 1e-3, "{spent} of {budget}");
        assert_eq!(budget < 40.0, plan.experiments[0].rounds == 3, "{budget}");
    }
    let (fixed, _) = grown(plan(3, 5, None, 1), &mut fake(1));
    assert_eq!(fixed, plan(3, 5, None, 1));
}

#[test]
fn the_rest_of_a_budget_goes_to_comparisons_that_it_can_decide() {
    // Value 1 is too noisy to be decided. Value 2 needs a few more rounds.
    let wild = Rule {
        point: Point::from([("knob".to_owned(), Value::Integer(1))]),
        rounds: Some(vec![0, 2]),
        better: Some(0.1),
        ..Rule::default()
    };
    let noise = Noise { spread: 0.012, ..Noise::default() };
    // After the first rounds, the budget does not allow for a round of all scenarios, but for one without value 1.
    let first: f64 = plan(3, 3, None, 1).trials.iter().map(estimate_s).sum();
    let budget = first + first / 3.0 * 0.87;
    let (plan, _) = grown(plan(3, 3, Some(budget), 1), &mut Fake::new(1e6, vec![wild], noise, 3));
    assert!(plan.experiments[0].rounds > 3, "the budget allows for less than a round of all");
    assert_eq!(trials_of(&plan, 1), 3);
}

#[test]
fn a_system_that_never_runs_takes_no_rounds() {
    struct Broken;
    impl Executor for Broken {
        fn execute(&mut self, _: &Trial) -> Result<Outcome, Interrupted> {
            Ok(Outcome::Failed(crate::observation::Failure {
                stage: "start".to_owned(),
                reason: String::new(),
                output: String::new(),
            }))
        }
    }
    let (plan, _) = grown(plan(3, 3, Some(f64::INFINITY), 1), &mut Broken);
    assert_eq!(plan.experiments[0].rounds, 3);
}

/// A fake that is interrupted after a number of trials.
struct InterruptedAfter {
    fake: Fake,
    trials: usize,
}

impl Executor for InterruptedAfter {
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        self.trials = self.trials.checked_sub(1).ok_or(Interrupted)?;
        self.fake.execute(trial)
    }
    fn now_unix_s(&self) -> f64 {
        self.fake.now_unix_s()
    }
}

struct Silent;

impl Progress for Silent {
    fn begins(&mut self, _: &Trial) {}
    fn ended(&mut self, _: &Observation) {}
    fn added(&mut self, _: &[Trial]) {}
}

#[test]
fn a_resumed_run_ends_like_an_uninterrupted_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let header = RunHeader {
        started_unix_s: 0.0,
        command: String::new(),
        plan: plan(3, 3, Some(1e6), 1),
        environment: serde_json::Value::Null,
    };
    let outcomes = |trials: usize| {
        let run = store.begin(&header).unwrap();
        let mut parts = 0;
        loop {
            let mut executor = InterruptedAfter { fake: fake(1), trials };
            let cancel = AtomicBool::new(false);
            parts += 1;
            if carry_out(&mut executor, &store, run, &cancel, &mut Silent).unwrap() {
                break;
            }
            assert!(!store.runs().unwrap().last().unwrap().finished);
        }
        let seen = store.observations(run).unwrap();
        let outcomes: Vec<(Trial, Outcome)> = seen.into_iter().map(|o| (o.trial, o.outcome)).collect();
        (parts, outcomes, store.header(run).unwrap().plan)
    };
    let (whole, expected, plan) = outcomes(usize::MAX);
    let (parts, resumed, again) = outcomes(7);
    assert!(whole == 1 && parts > 3);
    assert_eq!((resumed, again), (expected, plan));
}
