//! Tests of the rules for rounds: budgets are kept, rounds are whole, and an interruption changes nothing.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use stats::{Design, LOOKS, Noise};

use super::*;
use crate::observation::{Outcome, Scenario, Trial};
use crate::session::{Executor, Fake, Interrupted, Progress, Rule, carry_out, observe};
use crate::simulation::{Rounds, plan, value_rule};
use crate::store::{RunHeader, Store};

/// Value 1 of the knob is twice as fast as the others, and value 2 half a percent faster. There is noise.
fn fake(seed: u64) -> Fake {
    let noise = Noise { spread: 0.03, ..Noise::default() };
    Fake::new(1e6, vec![value_rule(1, 2.0), value_rule(2, 1.005)], noise, seed)
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

/// A plan with three values that may grow for so long.
fn growing(budget_s: f64, once: bool) -> Plan {
    let mut plan = plan(3, Rounds::Fixed(3), 1);
    plan.grow_within(budget_s, once);
    plan
}

#[test]
fn a_round_has_all_scenarios_whatever_is_decided() {
    let (plan, _) = grown(growing(f64::INFINITY, false), &mut fake(1));
    let rounds = plan.experiments[0].rounds;
    assert!(rounds > 4 && LOOKS.contains(&rounds), "{rounds}");
    let mut trials: BTreeMap<&Scenario, u32> = BTreeMap::new();
    plan.trials.iter().for_each(|trial| *trials.entry(&trial.scenario).or_default() += 1);
    assert_eq!(trials.into_values().collect::<Vec<u32>>(), [rounds; 4], "three values and the reference");
    assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index as u32));
}

#[test]
fn a_budget_is_kept_and_a_fixed_number_of_rounds_is_not_touched() {
    for (budget, once) in [0.0, 20.0, 50.0, 100.0].into_iter().flat_map(|s| [(s, true), (s, false)]) {
        let (plan, seen) = grown(growing(budget, once), &mut fake(1));
        let spent: f64 = seen.iter().map(|o| o.took_s).sum();
        let first = seen.iter().filter(|o| o.trial.round < 3).map(|o| o.took_s).sum::<f64>();
        assert!(spent <= first.max(budget) + 1e-3, "{spent} of {budget}");
        assert_eq!(budget < first / 3.0 * 4.0, plan.experiments[0].rounds == 3, "{budget} {once}");
    }
    let fixed = || plan(3, Rounds::Fixed(5), 1);
    assert_eq!(grown(fixed(), &mut fake(1)).0, fixed());
}

#[test]
fn a_design_has_the_looks_that_its_budget_can_reach_and_one_at_its_end() {
    let times = plan(3, Rounds::Fixed(3), 1).round_times();
    let budget_s = |rounds: f64| times.of_s(0..rounds as u32) + times.of_s(9..10) * rounds.fract();
    for (rounds, reached) in [(2.0, 3), (3.5, 4), (4.5, 6), (8.9, 9), (1000.0, 39)] {
        let design = growing(budget_s(rounds), false).design;
        let looks = std::iter::successors(design.next_look(0), |look| design.next_look(*look));
        assert_eq!(looks.last().unwrap_or(3), reached, "{rounds}");
    }
    assert!(growing(1e9, true).design.is_once());
}

#[test]
fn the_last_look_comes_when_time_runs_out() {
    // Equal values are undecided for long.
    let ended = |rounds: u32, slower: f64| {
        let mut plan = plan(3, Rounds::Fixed(3), 1);
        let budget_s = plan.round_times().of_s(0..rounds) + 0.1;
        plan.grow_within(budget_s * slower, false);
        plan.budget_s = Some(budget_s);
        let noise = Noise { spread: 0.3, ..Noise::default() };
        let (plan, _) = grown(plan, &mut Fake::new(1e6, Vec::new(), noise, 1));
        (plan.experiments[0].rounds, plan.design)
    };
    // As many rounds as there is time for, whether or not the estimate was right.
    for (rounds, looks) in [(3, 1), (4, 2), (5, 3), (8, 4), (9, 4), (17, 6)] {
        for slower in [1.0, 1.5, 3.0] {
            assert_eq!(ended(rounds, slower), (rounds, Design::with_looks(looks)), "{slower}");
        }
    }
    // What is decided keeps the design that its looks had.
    let clear = growing(100.0, false);
    let quiet = Noise { spread: 0.0001, ..Noise::default() };
    let (ended, _) = grown(clear.clone(), &mut Fake::new(1e6, Vec::new(), quiet, 1));
    assert_eq!((ended.experiments[0].rounds, ended.design), (3, clear.design));
}

#[test]
fn an_experiment_that_was_decided_keeps_the_looks_of_all() {
    // How long the other one could go on depends on what the first showed.
    let ended = |better: f64| {
        let mut plan = plan(2, Rounds::Fixed(3), 1);
        let mut other = plan.experiments[0].clone();
        other.setup.subject.name = "other".to_owned();
        for scenario in &mut other.scenarios {
            (scenario.experiment, scenario.system) = ("other".to_owned(), "t".to_owned());
        }
        other.setup.rounds = 0;
        plan.experiments.push(other);
        plan.grow(&[(1, 3)]);
        let budget_s = plan.round_times().of_s(0..14);
        plan.grow_within(3.0 * budget_s, false);
        plan.budget_s = Some(budget_s);
        let rule = Rule { system: Some("s".to_owned()), ..value_rule(1, better) };
        let noise = Noise { spread: 0.3, ..Noise::default() };
        let before = plan.design;
        let (plan, _) = grown(plan, &mut Fake::new(1e6, vec![rule], noise, 1));
        (plan.experiments[0].rounds, plan.design == before)
    };
    let (rounds, kept) = ended(1.0);
    assert!(rounds > 9 && !kept, "{rounds}");
    let (rounds, kept) = ended(1e6);
    assert!(rounds < 9 && kept, "{rounds}");
}

#[test]
fn what_is_examined_once_gets_rounds_whatever_the_figures_say() {
    let rounds = |fake: &mut Fake| grown(growing(1e9, true), fake).0.experiments[0].rounds;
    let noise = Noise { spread: 0.0001, ..Noise::default() };
    let clear = rounds(&mut Fake::new(1e6, Vec::new(), noise, 1));
    assert_eq!((clear, rounds(&mut fake(1))), (MOST_ROUNDS, MOST_ROUNDS));
}

#[test]
fn rounds_go_over_all_experiments_in_turn() {
    let mut plan = plan(2, Rounds::Fixed(2), 1);
    let mut other = plan.experiments[0].clone();
    other.setup.subject.name = "other".to_owned();
    let other_scenarios = other.scenarios.iter_mut();
    other_scenarios.for_each(|scenario| scenario.experiment = "other".to_owned());
    plan.experiments.push(other);
    plan.trials.clear();
    plan.experiments.iter_mut().for_each(|planned| planned.setup.rounds = 0);
    plan.grow(&[(0, 3), (1, 2)]);
    plan.grow(&[(0, 4), (1, 4)]);
    let mut order: Vec<(&str, u32)> =
        plan.trials.iter().map(|t| (t.scenario.experiment.as_str(), t.round)).collect();
    order.dedup();
    let expected =
        [("e", 0), ("other", 0), ("e", 1), ("other", 1), ("e", 2), ("other", 2), ("e", 3), ("other", 3)];
    assert_eq!(order, expected);
}

#[test]
fn a_system_that_never_runs_takes_no_rounds() {
    struct Broken;
    impl Executor for Broken {
        fn execute(&mut self, _: &Trial) -> Result<Outcome, Interrupted> {
            Ok(Outcome::Failed(crate::observation::Failure {
                stage: crate::observation::Stage::Start,
                reason: String::new(),
                output: String::new(),
            }))
        }
    }
    for once in [true, false] {
        let (plan, _) = grown(growing(1e6, once), &mut Broken);
        assert_eq!(plan.experiments[0].rounds, 3);
    }
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
fn an_interrupted_run_ends_as_if_it_had_not_been() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db")).unwrap();
    let header = RunHeader {
        started_unix_s: 0.0,
        command: String::new(),
        question: None,
        plan: growing(1e6, false),
        environment: serde_json::Value::Null,
    };
    let outcomes = |trials: usize| {
        let run = store.begin(&header).unwrap();
        let mut parts = 0;
        loop {
            let mut executor = InterruptedAfter { fake: fake(1), trials };
            let cancel = AtomicBool::new(false);
            parts += 1;
            let (plan, seen) = (store.header(run).unwrap().plan, store.observations(run).unwrap());
            if carry_out(&mut executor, &store, run, &plan, seen, &cancel, &mut Silent).unwrap() {
                break;
            }
            assert!(!store.runs().unwrap().last().unwrap().as_ref().unwrap().finished);
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
