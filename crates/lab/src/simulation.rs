//! Verifies the verdicts by simulation. Thousands of runs go through the real plan, the real rule for rounds and the
//! real comparisons, with an executor that knows the truth. Simpler methods see the same noise.
//!
//! The simulated tables of docs/statistics.md come from here. With `NARROWS_WRITE_TABLES=1` a test writes them; without
//! it, the test compares them.
//!
//! Long simulations are ignored, so that `cargo test` and `make check` do not wait for them. `make simulate` runs them, and
//! `SAMPLE=1 make simulate` makes a fifth of their runs.

mod advice;
mod between;
mod document;
mod duet;
mod estimators;
mod few;
mod gate;
mod ledger;
mod percentile;
mod power;
mod rivals;
mod rows;
mod sample;
pub(crate) mod search;
mod select;
mod surface;

use std::sync::OnceLock;

use stats::{Design, Disturbances, LOOKS, Noise, USUAL_LOOKS, Verdict};
use systems::knob::Kind;
use systems::{Point, Value, Workload};

use crate::compare::{Chosen, Selection, compare};
use crate::experiment::grid::Axis;
use crate::experiment::{Figure, Figures, Form, Subject};
use crate::findings::{Comparison, compare_scenarios, findings};
use crate::observation::{Observation, Scenario, Timing, Trial};
use crate::plan::{Base, Plan, Planned, Setup};
use crate::rounds;
use crate::session::{Fake, Rule, observe, observe_part};
use sample::{add, at_least, at_most, runs, share};

/// A plan for the reference and a system with one knob. The knob takes `values` values, and the first is the default.
pub(crate) fn plan(values: i64, rounds: Rounds, seed: u64) -> Plan {
    let workload = Workload::Requests;
    let scenario = |value: i64| {
        let point = Point::from([("knob".to_owned(), Value::Integer(value))]);
        Scenario::new("e", "s", workload, point).expect("the defaults are work")
    };
    let mut scenarios: Vec<Scenario> = (0..values).map(scenario).collect();
    scenarios.push(scenarios[0].reference());
    let setup = setup(vec![axis("knob", (0..values).map(Value::Integer).collect())]);
    let planned = Planned { setup, scenarios, apply: Default::default(), search: None, is_test: false };
    let (design, budget_s) = match rounds {
        Rounds::Fixed(_) => (Design::ONCE, None),
        Rounds::Auto => (Design::with_looks(USUAL_LOOKS), Some(f64::INFINITY)),
    };
    let mut plan = Plan { design, budget_s, ..Plan::new(seed, vec![planned]) };
    plan.grow(&[(0, if let Rounds::Fixed(rounds) = rounds { rounds } else { LOOKS[0] })]);
    plan
}

/// A knob whose first value is the default.
pub(crate) fn axis(knob: &str, values: Vec<Value>) -> Axis {
    let (kind, default) = (Kind::Integer, values.first().cloned());
    Axis { knob: knob.to_owned(), kind, workload: false, values, default, amount: false }
}

/// How the simulated experiments are carried out.
pub(crate) fn setup(axes: Vec<Axis>) -> Setup {
    let subject = Subject {
        name: "e".to_owned(),
        title: String::new(),
        about: String::new(),
        workload: Workload::Requests,
        figures: Figures { first: Figure::RequestsPerS, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    };
    Setup {
        subject,
        form: Form::Quick,
        rounds: 0,
        timing: Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 },
        axes,
        excluded: Vec::new(),
        base: None,
        repeats: None,
        ask: None,
        defaults: Default::default(),
        alike: Default::default(),
        duet: false,
        from_file: false,
    }
}

/// An executor in which value 1 is `better` times as good as the others. The reference is far better than all, so that
/// it limits nothing.
fn fake(noise: Noise, better: f64, seed: u64) -> Fake {
    Fake::new(1e6, vec![value_rule(1, better), fast_reference()], noise, seed)
}

/// Makes a value of the knob `better` times as good.
pub(crate) fn value_rule(value: i64, better: f64) -> Rule {
    let point = Point::from([("knob".to_owned(), Value::Integer(value))]);
    Rule { point, better: Some(better), ..Rule::default() }
}

/// A plan of so many arms, as `try` makes it. The first is the base.
pub(crate) fn arms(count: usize, rounds: u32, seed: u64) -> Plan {
    let scenario = |at: usize| {
        Scenario::new("e", arm(at), Workload::Requests, Point::new()).expect("the defaults are work")
    };
    let scenarios: Vec<Scenario> = (0..count).map(scenario).collect();
    let mut setup = setup(Vec::new());
    setup.base = Some(Base { scenario: scenarios[0].clone(), command: String::new() });
    let planned = Planned { setup, scenarios, apply: Default::default(), search: None, is_test: false };
    let mut plan = Plan::new(seed, vec![planned]);
    plan.grow(&[(0, rounds)]);
    plan
}

/// The name of an arm.
pub(crate) fn arm(at: usize) -> String {
    format!("arm{at}")
}

/// Makes an arm so many times as good.
pub(crate) fn arm_rule(at: usize, better: f64) -> Rule {
    Rule { system: Some(arm(at)), better: Some(better), ..Rule::default() }
}

fn fast_reference() -> Rule {
    let system = Some(Workload::Requests.reference().to_owned());
    Rule { system, better: Some(3.0), ..Rule::default() }
}

/// Carries out the trials of a plan.
pub(crate) fn observed(plan: &Plan, mut fake: Fake) -> Vec<Observation> {
    let mut seen = Vec::new();
    for group in crate::duet::groups(&plan.trials) {
        for part in crate::duet::parts(&group, &seen) {
            seen.extend(observe_part(&mut fake, part).unwrap());
        }
    }
    seen
}

/// Carries out a plan, as a run that can be compared with others.
fn chosen(plan: &Plan, fake: Fake, name: u64) -> Chosen {
    Chosen {
        name: name.to_string(),
        findings: findings(plan, &observed(plan, fake)),
        environment: serde_json::Value::Null,
        selection: Selection::default(),
        identity: name.to_string(),
    }
}

/// The result of one simulated run.
struct SimulatedRun {
    found: Vec<Comparison>,
    rounds: u32,
    /// Whether every interval contained the truth at every look.
    held_always: bool,
}

/// The true ratio of a comparison. The first is of value 1, which is `better`; the others are of equal values.
fn truth(comparison: usize, better: f64) -> f64 {
    if comparison == 0 { better } else { 1.0 }
}

fn held(found: &[Comparison], better: f64) -> bool {
    let comparisons = found.iter().enumerate();
    comparisons
        .filter_map(|(index, c)| Some((index, c.ratio?)))
        .all(|(index, ratio)| (ratio.low..=ratio.high).contains(&truth(index, better)))
}

/// Carries out a plan, and the rounds that its looks add. `look` is told what there is at each look.
fn carried_out(
    mut plan: Plan,
    mut execute: impl FnMut(&Trial) -> Observation,
    mut look: impl FnMut(&Plan, &[Observation]),
) -> (Plan, Vec<Observation>) {
    let mut seen: Vec<Observation> = Vec::new();
    loop {
        for trial in &plan.trials[seen.len()..] {
            seen.push(execute(trial));
        }
        look(&plan, &seen);
        if !rounds::extend(&mut plan, &seen) {
            return (plan, seen);
        }
    }
}

/// Carries out a plan without a store.
fn run(plan: Plan, mut fake: Fake, better: f64) -> SimulatedRun {
    let (mut found, mut held_always) = (Vec::new(), true);
    let execute = |trial: &Trial| observe(&mut fake, trial).unwrap();
    let (plan, _) = carried_out(plan, execute, |plan, seen| {
        found = compare_scenarios(plan, seen).remove(0);
        held_always &= held(&found, better);
    });
    SimulatedRun { found, rounds: plan.experiments[0].rounds, held_always }
}

/// How the number of rounds is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rounds {
    /// So many, examined once.
    Fixed(u32),
    /// Rounds are added at all looks until everything is decided.
    Auto,
}

/// The results of many runs, as shares of them.
#[derive(Debug, Clone, Default)]
struct Shares {
    /// Some value was called faster or slower although it is neither.
    false_claims: f64,
    /// Value 1 was called faster.
    faster: f64,
    /// Value 1 was called slower.
    slower: f64,
    /// Value 1 was said to make no difference.
    no_difference: f64,
    /// The interval of value 1 contained the truth at the end.
    held: f64,
    /// All intervals contained the truth at every look.
    held_always: f64,
    /// The rounds of all runs, ascending.
    rounds: Vec<u32>,
}

impl Shares {
    fn mean_rounds(&self) -> f64 {
        f64::from(self.rounds.iter().sum::<u32>()) / self.rounds.len() as f64
    }

    /// The number of rounds that nine runs in ten do not exceed.
    fn most_rounds(&self) -> u32 {
        self.rounds[self.rounds.len() * 9 / 10 - 1]
    }
}

/// The number of simulated runs for each figure.
const RUNS: u64 = 2000;

/// Simulates runs in which value 1 of `values` is `better` times as good.
fn simulate(rounds: Rounds, values: i64, better: f64) -> Shares {
    simulate_with(Noise::SHARED_MACHINE, rounds, values, better)
}

/// Like [`simulate`], with other noise.
fn simulate_with(noise: Noise, rounds: Rounds, values: i64, better: f64) -> Shares {
    let mut shares = Shares::default();
    for seed in 0..runs(RUNS) {
        let ended = run(plan(values, rounds, seed), fake(noise, better, seed + 1_000_000), better);
        let claims = ended.found.iter().enumerate();
        let claims = claims.filter(|(_, c)| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
        let mut false_claim = false;
        for (index, _) in claims {
            false_claim |= truth(index, better) == 1.0;
        }
        let first = &ended.found[0];
        add(RUNS, &mut shares.false_claims, false_claim);
        add(RUNS, &mut shares.faster, first.verdict == Verdict::Faster);
        add(RUNS, &mut shares.slower, first.verdict == Verdict::Slower);
        add(RUNS, &mut shares.no_difference, first.verdict == Verdict::NoDifference);
        add(RUNS, &mut shares.held, first.ratio.is_some_and(|r| (r.low..=r.high).contains(&better)));
        add(RUNS, &mut shares.held_always, ended.held_always);
        shares.rounds.push(ended.rounds);
    }
    shares.rounds.sort_unstable();
    shares
}

/// The common method: run each system `trials` times, one system after the other, and compare the means.
fn naive(trials: u32, better: f64) -> Shares {
    // Halfway between the two true ratios of the table.
    let claims = 1.025;
    let mut shares = Shares::default();
    for seed in 0..runs(RUNS) {
        let mut noise = Disturbances::new(Noise::SHARED_MACHINE, seed + 1_000_000);
        let mut mean = |time: f64| (0..trials).map(|_| time * noise.next_log().exp()).sum::<f64>();
        let ratio = mean(1.0) / mean(1.0 / better);
        let (faster, slower) = (ratio >= claims, ratio <= 1.0 / claims);
        add(RUNS, &mut shares.faster, faster);
        add(RUNS, &mut shares.slower, slower);
        add(RUNS, &mut shares.false_claims, better == 1.0 && (faster || slower));
        shares.rounds.push(trials);
    }
    shares
}

/// A method, applied to equal systems and to systems that differ by 5 %.
struct Method {
    name: &'static str,
    equal: Shares,
    different: Shares,
}

/// The numbers of rounds for which coverage and errors are verified.
const FIXED: [u32; 4] = [3, 5, 10, 20];

fn ways() -> &'static [Method] {
    static WAYS: OnceLock<Vec<Method>> = OnceLock::new();
    WAYS.get_or_init(|| {
        let way =
            |name, make: &dyn Fn(f64) -> Shares| Method { name, equal: make(1.0), different: make(1.05) };
        let mut all = vec![
            way("one run each", &|better| naive(1, better)),
            way("mean of ten in sequence", &|better| naive(10, better)),
        ];
        for (rounds, name) in
            FIXED.iter().zip(["`--rounds 3`", "`--rounds 5`", "`--rounds 10`", "`--rounds 20`"])
        {
            all.push(way(name, &|better| simulate(Rounds::Fixed(*rounds), 2, better)));
        }
        all.push(way("`--rounds auto`", &|better| simulate(Rounds::Auto, 2, better)));
        all.push(way("`--rounds auto`, three comparisons", &|better| simulate(Rounds::Auto, 4, better)));
        all.push(way("two runs of 10 rounds, `compare --within-run`", &two_runs));
        all
    })
}

fn narrows() -> &'static [Method] {
    &ways()[2..]
}

fn fixed() -> &'static [Method] {
    &narrows()[..FIXED.len()]
}

fn auto() -> &'static [Method] {
    &narrows()[FIXED.len()..FIXED.len() + 2]
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn equal_systems_are_rarely_called_different() {
    for way in narrows() {
        // An equal value is not called different because another is.
        for shares in [&way.equal, &way.different] {
            assert!(at_most(shares.false_claims, 0.05, RUNS), "{}: {}", way.name, shares.false_claims);
        }
    }
}

/// This holds for noise in which hardly anything can be shown, and for normal noise, which leaves the intervals no
/// slack.
#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn equal_systems_are_rarely_called_different_in_other_noise() {
    let wild = Noise { spread: 0.08, slow_by: 2.0, ..Noise::SHARED_MACHINE };
    let normal = Noise { spread: 0.08, ..Noise::default() };
    for noise in [wild, normal] {
        let equal = simulate_with(noise, Rounds::Auto, 4, 1.0);
        assert!(at_most(equal.false_claims, 0.05, RUNS), "{noise:?}: {}", equal.false_claims);
        let alone = simulate_with(noise, Rounds::Auto, 2, 1.0);
        assert!(at_least(alone.held_always, 0.945, RUNS), "{noise:?}: {}", alone.held_always);
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn a_difference_of_five_percent_is_found() {
    for way in auto() {
        let Shares { faster, slower, no_difference, rounds, .. } = &way.different;
        assert!(at_least(*faster, 0.97, RUNS), "{}: {faster}", way.name);
        assert!(at_most(*slower, 0.025, RUNS), "{}: {slower}", way.name);
        assert!(at_most(*no_difference, 0.05, RUNS), "{}: {no_difference}", way.name);
        let short = share(rounds, |rounds| *rounds <= 29);
        assert!(at_least(short, 0.9, RUNS), "{}: {short}", way.name);
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for way in fixed() {
        for shares in [&way.equal, &way.different] {
            // What few rounds know of the others makes their intervals wider than they need be in this noise.
            assert!(at_least(shares.held, 0.93, RUNS), "{}: {}", way.name, shares.held);
        }
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn looking_early_and_stopping_loses_nothing() {
    let [alone, ..] = auto() else { unreachable!() };
    for shares in [&alone.equal, &alone.different] {
        assert!(at_least(shares.held_always, 0.95, RUNS), "{}", shares.held_always);
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn simpler_ways_are_what_they_are_said_to_be() {
    let [one, ten, ..] = ways() else { unreachable!() };
    assert!([one, ten].iter().all(|way| at_least(way.equal.false_claims, 0.3, RUNS)));
}

/// Compares two runs of ten rounds, as if runs did not differ. In the second, the machine is 15 % slower throughout, and
/// value 1 is `better` times as good.
fn two_runs(better: f64) -> Shares {
    let side = |figure: f64, better: f64, seed: u64| {
        let fake = fake(Noise::SHARED_MACHINE, better, seed + 1_000_000).with_figure(figure);
        chosen(&plan(2, Rounds::Fixed(10), seed), fake, seed)
    };
    let mut shares = Shares::default();
    for seed in 0..runs(RUNS) {
        let found = compare(&side(1e6, 1.0, 2 * seed), &side(0.85e6, better, 2 * seed + 1), None);
        let claim = |index: usize| matches!(found.matched[index].verdict, Verdict::Faster | Verdict::Slower);
        let changed = &found.matched[1];
        // Value 0 is equal in both runs. So is value 1, unless it is better.
        add(RUNS, &mut shares.false_claims, claim(0) || (better == 1.0 && claim(1)));
        add(RUNS, &mut shares.faster, changed.verdict == Verdict::Faster);
        add(RUNS, &mut shares.slower, changed.verdict == Verdict::Slower);
        add(RUNS, &mut shares.held, changed.ratio.is_some_and(|r| (r.low..=r.high).contains(&better)));
        shares.rounds.push(10);
    }
    shares
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn two_runs_of_the_same_are_rarely_called_different() {
    let Method { equal, different, .. } = &ways()[ways().len() - 1];
    for shares in [equal, different] {
        assert!(at_most(shares.false_claims, 0.05, RUNS), "{}", shares.false_claims);
        assert!(at_least(shares.held, 0.93, RUNS) && at_most(shares.held, 0.975, RUNS), "{}", shares.held);
    }
    assert!(at_most(different.slower, 0.01, RUNS));
}
