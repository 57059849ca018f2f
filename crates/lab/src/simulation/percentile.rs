//! How often a p99 is called different, and how often its interval holds: of answers whose times vary from trial to trial and from
//! round to round, of servers that stand still now and then.

use std::sync::OnceLock;

use measurement::Latency;
use stats::{SplitMix64, Verdict, any_percentile, merge_buckets};
use systems::Value;

use super::sample::{add, at_least, at_most, runs};
use super::{Rounds, arms, carried_out};
use crate::experiment::Figure;
use crate::findings::findings;
use crate::observation::{Outcome, Scenario, Timing, Trial};
use crate::plan::Plan;
use crate::session::{Fake, observe, tail};

/// The number of simulated runs for each line of the table. Runs with looks are long.
const RUNS: u64 = 1000;
const RUNS_WITH_LOOKS: u64 = 400;

/// Requests that are due in a second.
const RATE: f64 = 2000.0;

/// The p99 of a trial without stalls and noise, in microseconds.
const P99_US: f64 = 1600.0;

/// The standard deviations of what a round does to all trials, and of what a trial does.
const NOISE: [f64; 2] = [0.1, 0.1];

/// A server stands still for so many seconds, once in so many.
type Stalls = Option<(f64, f64)>;

/// What is simulated: a base, and an arm beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub truth: &'static str,
    /// The length of a window in seconds.
    pub window_s: f64,
    pub rounds: Rounds,
    /// How many times shorter the times of the arm are.
    better: f64,
    /// Of the base, and of the arm.
    stalls: [Stalls; 2],
}

const fn case(truth: &'static str, window_s: f64, rounds: u32, better: f64, stalls: [Stalls; 2]) -> Case {
    Case { truth, window_s, rounds: Rounds::Fixed(rounds), better, stalls }
}

/// Rounds that go on until the comparison is decided, in five minutes at most.
const fn with_looks(truth: &'static str, better: f64, stalls: [Stalls; 2]) -> Case {
    Case { rounds: Rounds::Auto, ..case(truth, 1.0, 0, better, stalls) }
}

/// The budget of runs with looks, seconds.
const BUDGET_S: f64 = 300.0;

/// The stalls of a collection or a checkpoint.
const SELDOM: Stalls = Some((0.3, 20.0));

pub(super) const CASES: [Case; 15] = [
    case("equal", 1.0, 3, 1.0, [None, None]),
    case("equal", 1.0, 5, 1.0, [None, None]),
    case("equal", 1.0, 10, 1.0, [None, None]),
    case("equal", 1.0, 20, 1.0, [None, None]),
    case("1.3x", 1.0, 3, 1.3, [None, None]),
    case("1.3x", 1.0, 5, 1.3, [None, None]),
    case("1.3x", 1.0, 10, 1.3, [None, None]),
    case("1.3x", 1.0, 20, 1.3, [None, None]),
    with_looks("equal", 1.0, [None, None]),
    with_looks("1.3x", 1.3, [None, None]),
    case("both stand still for 0.3 s in every 20", 1.0, 10, 1.0, [SELDOM, SELDOM]),
    case("both stand still for 0.3 s in every 20", 1.0, 20, 1.0, [SELDOM, SELDOM]),
    with_looks("both stand still for 0.3 s in every 20", 1.0, [SELDOM, SELDOM]),
    case("one does", 1.0, 10, 1.0, [None, SELDOM]),
    case("one does", 20.0, 6, 1.0, [None, SELDOM]),
];

/// The shares of runs in which the arm is called different and not different, and in which the interval holds the truth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub different: f64,
    pub no_difference: f64,
    pub held: f64,
}

/// The response times of a trial whose p99 would be `us` without stalls, which come at random moments.
fn times(us: f64, window_s: f64, stalls: Stalls, rng: &mut SplitMix64) -> Vec<(u64, u64)> {
    const PARTS: u32 = 30;
    let usual = tail(99.0, us);
    let Some((stall_s, every_s)) = stalls else {
        return usual.iter().map(|(us, count)| (*us, *count * window_s as u64)).collect();
    };
    // A request that is due at a moment of the stall waits for its end.
    let first = -rng.unit() * every_s;
    let mut waits = Vec::new();
    for stall in 0..=(window_s / every_s) as u32 + 1 {
        let begins = first + f64::from(stall) * every_s;
        let part_s = stall_s / f64::from(PARTS);
        let dues = (0..PARTS).map(|part| begins + (f64::from(part) + 0.5) * part_s);
        let seen = dues.filter(|due| (0.0..window_s).contains(due));
        waits.extend(seen.map(|due| (((begins + stall_s - due) * 1e6) as u64, (RATE * part_s) as u64)));
    }
    let waiting: u64 = waits.iter().map(|(_, count)| count).sum();
    let share = 1.0 - waiting as f64 / (RATE * window_s);
    let rest = usual.iter().map(|(us, count)| (*us, (*count as f64 * window_s * share).round() as u64));
    waits.extend(rest);
    merge_buckets([waits.as_slice()])
}

impl Case {
    /// The p99 of an arm over hours.
    fn long_run(&self, arm: usize) -> f64 {
        let mut rng = SplitMix64::new(99);
        let trials = (0..4000).map(|_| {
            let noise = NOISE[0] * rng.normal() + NOISE[1] * rng.normal();
            times(P99_US * noise.exp(), self.window_s, self.stalls[arm], &mut rng)
        });
        let trials: Vec<Vec<(u64, u64)>> = trials.collect();
        any_percentile(&merge_buckets(trials.iter().map(Vec::as_slice)), 99.0).unwrap() as f64
    }

    fn runs(&self) -> u64 {
        if self.rounds == Rounds::Auto { RUNS_WITH_LOOKS } else { RUNS }
    }

    fn simulate(&self) -> Found {
        let same = self.stalls[0] == self.stalls[1];
        let truth = self.better * if same { 1.0 } else { self.long_run(0) / self.long_run(1) };
        let mut found = Found::default();
        let whole = self.runs();
        for seed in 0..runs(whole) {
            let c = self.run(seed);
            add(whole, &mut found.different, matches!(c.verdict, Verdict::Faster | Verdict::Slower));
            add(whole, &mut found.no_difference, c.verdict == Verdict::NoDifference);
            add(whole, &mut found.held, c.ratio.is_some_and(|r| (r.low..=r.high).contains(&truth)));
        }
        found
    }

    /// The plan of a `try` whose requests arrive at a rate.
    fn plan(&self, seed: u64) -> Plan {
        let mut plan = arms(2, 0, seed);
        let planned = &mut plan.experiments[0];
        planned.setup.subject.figures.first = Figure::P99Us;
        planned.setup.timing = Timing { warmup_s: 0.5, measure_s: self.window_s, timeout_s: 1.0 };
        let rate = Value::Integer(RATE as i64);
        let at_rate = |scenario: &Scenario| scenario.with("rate", &rate).unwrap();
        planned.scenarios = planned.scenarios.iter().map(at_rate).collect();
        planned.setup.base.as_mut().unwrap().scenario = planned.scenarios[0].clone();
        match self.rounds {
            Rounds::Fixed(rounds) => plan.grow(&[(0, rounds)]),
            Rounds::Auto => {
                plan.grow(&[(0, 3)]);
                plan.grow_within(BUDGET_S, false);
            }
        }
        plan
    }

    fn run(&self, seed: u64) -> crate::findings::Comparison {
        let plan = self.plan(seed);
        let base = plan.experiments[0].scenarios[0].clone();
        let mut rng = SplitMix64::new(seed + 3_000_000);
        let mut of_rounds: Vec<f64> = Vec::new();
        let mut fake = Fake::new(P99_US, Vec::new(), stats::Noise::NONE, seed);
        let execute = |trial: &Trial| {
            let mut observation = observe(&mut fake, trial).unwrap();
            let arm = usize::from(trial.scenario != base);
            while of_rounds.len() <= trial.round as usize {
                of_rounds.push(NOISE[0] * rng.normal());
            }
            let noise = of_rounds[trial.round as usize] + NOISE[1] * rng.normal();
            let us = P99_US * noise.exp() / if arm == 1 { self.better } else { 1.0 };
            let Outcome::Measured(m) = &mut observation.outcome else { unreachable!() };
            m.response_us = Latency::from_buckets(times(us, self.window_s, self.stalls[arm], &mut rng));
            observation
        };
        let (plan, seen) = carried_out(plan, execute, |_, _| {});
        findings(&plan, &seen).experiments.remove(0).figures.remove(0).comparisons.remove(0)
    }
}

pub(super) fn found() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| CASES.iter().map(Case::simulate).collect())
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn a_p99_is_rarely_called_different_by_chance_and_its_interval_holds() {
    for (case, found) in CASES.iter().zip(found()) {
        let what = format!("{case:?}: {found:?}");
        if case.stalls[0] == case.stalls[1] {
            assert!(at_least(found.held, 0.93, case.runs()), "{what}");
            assert!(case.better != 1.0 || at_most(found.different, 0.05, case.runs()), "{what}");
        }
    }
    let [.., seen] = found() else { unreachable!() };
    assert!(at_least(seen.different, 0.95, RUNS), "a window that is long enough shows the stalls: {seen:?}");
}

/// A run whose windows saw a stall says how little is known of it.
#[test]
fn a_stall_in_one_window_of_many_makes_the_interval_wide() {
    let case = case("one does", 1.0, 10, 1.0, [None, SELDOM]);
    let runs: Vec<_> = (0..40).filter_map(|seed| case.run(seed).ratio).collect();
    let (saw, did_not): (Vec<_>, Vec<_>) = runs.into_iter().partition(|ratio| ratio.estimate < 0.5);
    assert!(saw.len() > 5 && did_not.len() > 5, "{} {}", saw.len(), did_not.len());
    assert!(saw.iter().all(|ratio| ratio.high > 5.0 * ratio.estimate), "{saw:?}");
}
