//! Proof of the verdicts by simulation: thousands of runs through the real plan, the real rule for rounds and the real
//! comparisons, with an executor that knows the truth; and what simpler ways make of the same noise.
//!
//! The tables of docs/statistics.md are written here: with `NARROWS_WRITE_TABLES=1` the test writes them, without it
//! compares them.
//!
//! What takes long is ignored, so that `cargo test` and `make check` do not wait for it; `make test` runs it in full.

mod document;
mod estimators;

use std::sync::OnceLock;

use stats::{Disturbances, Noise, Verdict};
use systems::knob::Kind;
use systems::{Point, Value, Workload};

use crate::compare::{Chosen, Selection, compare};
use crate::experiment::grid::Axis;
use crate::experiment::{Figure, Form, Subject};
use crate::findings::{Judged, findings, judged};
use crate::observation::{Observation, Scenario, Timing};
use crate::plan::{Plan, Planned, Setup};
use crate::rounds;
use crate::session::{Fake, Rule, observe};

/// A system with one knob of so many values, the first of them the default, and the reference.
pub(crate) fn plan(values: i64, rounds: u32, budget_s: Option<f64>, seed: u64) -> Plan {
    let workload = Workload::Requests;
    let scenario = |value: i64| {
        let point = Point::from([("knob".to_owned(), Value::Integer(value))]);
        Scenario::new("e", "s", workload, point).expect("the defaults are work")
    };
    let mut scenarios: Vec<Scenario> = (0..values).map(scenario).collect();
    scenarios.push(scenarios[0].reference());
    let axes = vec![Axis {
        knob: "knob".to_owned(),
        kind: Kind::Integer,
        workload: false,
        values: (0..values).map(Value::Integer).collect(),
        default: Some(Value::Integer(0)),
    }];
    let subject = Subject {
        name: "e".to_owned(),
        title: String::new(),
        about: String::new(),
        workload,
        figure: Figure::RequestsPerS,
        published: Vec::new(),
        threshold: 0.05,
    };
    let setup = Setup {
        subject,
        form: Form::Quick,
        rounds: 0,
        timing: Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 },
        axes,
        excluded: Vec::new(),
    };
    let planned = Planned {
        setup,
        scenarios: scenarios.clone(),
        apply: Default::default(),
        defaults: Default::default(),
    };
    let mut plan = Plan { seed, budget_s, experiments: vec![planned], trials: Vec::new() };
    plan.grow(0, &scenarios, rounds);
    plan
}

/// Value 1 is so many times better than the others, and the reference far better than all, so that it is no limit.
fn fake(noise: Noise, better: f64, seed: u64) -> Fake {
    let point = Point::from([("knob".to_owned(), Value::Integer(1))]);
    let rule = Rule { point, better: Some(better), ..Rule::default() };
    let reference = Workload::Requests.reference().to_owned();
    let ahead = Rule { system: Some(reference), better: Some(3.0), ..Rule::default() };
    Fake::new(1e6, vec![rule, ahead], noise, seed)
}

/// What one simulated run came to.
struct Ended {
    found: Judged,
    rounds: u32,
    /// Whether at every look every interval held the truth.
    held_always: bool,
}

/// The truth of comparison `at`: the first is of value 1, which is better, the others are equal.
fn truth(at: usize, better: f64) -> f64 {
    if at == 0 { better } else { 1.0 }
}

fn held(found: &Judged, better: f64) -> bool {
    let each = found.comparisons.iter().enumerate();
    each.filter_map(|(at, c)| Some((at, c.ratio?)))
        .all(|(at, ratio)| (ratio.low..=ratio.high).contains(&truth(at, better)))
}

/// Carries a plan out without a store.
fn run(mut plan: Plan, mut fake: Fake, better: f64) -> Ended {
    let mut seen: Vec<Observation> = Vec::new();
    let mut held_always = true;
    loop {
        for trial in &plan.trials[seen.len()..] {
            seen.push(observe(&mut fake, trial).unwrap());
        }
        let all: Vec<&Observation> = seen.iter().collect();
        let found = judged(&plan.experiments[0], plan.design(), &all);
        held_always &= held(&found, better);
        if !rounds::extend(&mut plan, &seen) {
            return Ended { found, rounds: plan.experiments[0].rounds, held_always };
        }
    }
}

/// How rounds are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rounds {
    Fixed(u32),
    Auto,
}

/// What many runs came to, as shares of them.
#[derive(Debug, Clone, Default)]
struct Tally {
    /// Some value was called faster or slower that is neither.
    false_claims: f64,
    /// Value 1 was called faster.
    faster: f64,
    /// Value 1 was called slower.
    slower: f64,
    /// Value 1 was said to make no difference.
    no_difference: f64,
    /// The interval of value 1 held the truth at the end.
    held: f64,
    /// All intervals held it at every look.
    held_always: f64,
    /// Of all runs, ascending.
    rounds: Vec<u32>,
}

impl Tally {
    fn mean_rounds(&self) -> f64 {
        f64::from(self.rounds.iter().sum::<u32>()) / self.rounds.len() as f64
    }

    /// As many as nine runs of ten need at most.
    fn most_rounds(&self) -> u32 {
        self.rounds[self.rounds.len() * 9 / 10 - 1]
    }
}

/// How many runs are simulated for each figure.
const RUNS: u64 = 2000;

/// Value 1 of a knob of `values` is so many times better.
fn many(rounds: Rounds, values: i64, better: f64) -> Tally {
    many_in(Noise::SHARED_MACHINE, rounds, values, better)
}

/// The same in other noise.
fn many_in(noise: Noise, rounds: Rounds, values: i64, better: f64) -> Tally {
    let mut tally = Tally::default();
    let share = 1.0 / RUNS as f64;
    for seed in 0..RUNS {
        let plan = match rounds {
            Rounds::Fixed(rounds) => plan(values, rounds, None, seed),
            Rounds::Auto => plan(values, 3, Some(f64::INFINITY), seed),
        };
        let ended = run(plan, fake(noise, better, seed + 1_000_000), better);
        let claims = ended.found.comparisons.iter().enumerate();
        let claims = claims.filter(|(_, c)| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
        let mut false_claim = false;
        for (at, _) in claims {
            false_claim |= truth(at, better) == 1.0;
        }
        let first = &ended.found.comparisons[0];
        let add = |to: &mut f64, when: bool| *to += if when { share } else { 0.0 };
        add(&mut tally.false_claims, false_claim);
        add(&mut tally.faster, first.verdict == Verdict::Faster);
        add(&mut tally.slower, first.verdict == Verdict::Slower);
        add(&mut tally.no_difference, first.verdict == Verdict::NoDifference);
        add(&mut tally.held, first.ratio.is_some_and(|r| (r.low..=r.high).contains(&better)));
        add(&mut tally.held_always, ended.held_always);
        tally.rounds.push(ended.rounds);
    }
    tally.rounds.sort_unstable();
    tally
}

/// What people do: run each, one after the other, so many times, and compare the means.
fn naive(trials: u32, better: f64) -> Tally {
    // Halfway between the two truths of the table.
    let claims = 1.025;
    let mut tally = Tally::default();
    for seed in 0..RUNS {
        let mut noise = Disturbances::new(Noise::SHARED_MACHINE, seed + 1_000_000);
        let mut mean = |time: f64| (0..trials).map(|_| time * noise.next_log().exp()).sum::<f64>();
        let ratio = mean(1.0) / mean(1.0 / better);
        let share = 1.0 / RUNS as f64;
        let (faster, slower) = (ratio >= claims, ratio <= 1.0 / claims);
        tally.faster += if faster { share } else { 0.0 };
        tally.slower += if slower { share } else { 0.0 };
        tally.false_claims += if better == 1.0 && (faster || slower) { share } else { 0.0 };
        tally.rounds.push(trials);
    }
    tally
}

/// A way of looking at equal and at 5 % different systems.
struct Way {
    name: &'static str,
    equal: Tally,
    different: Tally,
}

/// The rounds that coverage and errors are proven at.
const FIXED: [u32; 4] = [3, 5, 10, 20];

fn ways() -> &'static [Way] {
    static WAYS: OnceLock<Vec<Way>> = OnceLock::new();
    WAYS.get_or_init(|| {
        let of = |name, make: &dyn Fn(f64) -> Tally| Way { name, equal: make(1.0), different: make(1.05) };
        let mut all = vec![
            of("one run each", &|better| naive(1, better)),
            of("mean of ten in sequence", &|better| naive(10, better)),
        ];
        for (rounds, name) in
            FIXED.iter().zip(["`--rounds 3`", "`--rounds 5`", "`--rounds 10`", "`--rounds 20`"])
        {
            all.push(of(name, &|better| many(Rounds::Fixed(*rounds), 2, better)));
        }
        all.push(of("`--rounds auto`", &|better| many(Rounds::Auto, 2, better)));
        all.push(of("`--rounds auto`, three comparisons", &|better| many(Rounds::Auto, 4, better)));
        all.push(of("two runs of 10 rounds, `compare`", &two_runs));
        all
    })
}

fn narrows() -> &'static [Way] {
    &ways()[2..]
}

fn fixed() -> &'static [Way] {
    &narrows()[..FIXED.len()]
}

fn auto() -> &'static [Way] {
    &narrows()[FIXED.len()..FIXED.len() + 2]
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn equal_systems_are_rarely_called_different() {
    for way in narrows() {
        assert!(way.equal.false_claims <= 0.05, "{}: {:?}", way.name, way.equal.false_claims);
        // Nor is one called different because another is.
        assert!(way.different.false_claims <= 0.05, "{}: {:?}", way.name, way.different.false_claims);
    }
}

/// Where hardly anything can be shown, nothing is shown; also where noise is normal, which leaves the intervals no slack.
#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn equal_systems_are_rarely_called_different_in_other_noise() {
    let wild = Noise { spread: 0.08, slow_by: 2.0, ..Noise::SHARED_MACHINE };
    let normal = Noise { spread: 0.08, ..Noise::default() };
    for noise in [wild, normal] {
        let equal = many_in(noise, Rounds::Auto, 4, 1.0);
        assert!(equal.false_claims <= 0.05, "{noise:?}: {}", equal.false_claims);
        let alone = many_in(noise, Rounds::Auto, 2, 1.0);
        assert!(alone.held_always >= 0.945, "{noise:?}: {}", alone.held_always);
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn a_difference_of_five_percent_is_found() {
    for way in auto() {
        let Tally { faster, slower, no_difference, .. } = way.different;
        assert!(
            faster >= 0.9 && slower <= 0.025 && no_difference <= 0.05,
            "{}: {:?}",
            way.name,
            way.different
        );
        assert!(way.different.most_rounds() <= 29, "{}: {}", way.name, way.different.most_rounds());
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for way in fixed() {
        for tally in [&way.equal, &way.different] {
            assert!((0.93..=0.97).contains(&tally.held), "{}: {}", way.name, tally.held);
        }
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn looking_early_and_stopping_loses_nothing() {
    let [alone, ..] = auto() else { unreachable!() };
    for tally in [&alone.equal, &alone.different] {
        assert!(tally.held_always >= 0.95, "{}", tally.held_always);
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn simpler_ways_are_what_they_are_said_to_be() {
    let [one, ten, ..] = ways() else { unreachable!() };
    assert!(one.equal.false_claims > 0.3 && ten.equal.false_claims > 0.3);
}

/// Two runs of ten rounds of the same; the machine is 15 % slower throughout the second, and value 1 is `better` there.
fn two_runs(better: f64) -> Tally {
    let chosen = |figure: f64, better: f64, seed: u64| {
        let plan = plan(2, 10, None, seed);
        let mut fake = fake(Noise::SHARED_MACHINE, better, seed + 1_000_000).at(figure);
        let seen: Vec<Observation> = plan.trials.iter().map(|t| observe(&mut fake, t).unwrap()).collect();
        Chosen {
            name: seed.to_string(),
            findings: findings(&plan, &seen),
            environment: serde_json::Value::Null,
            selection: Selection::default(),
            identity: seed.to_string(),
        }
    };
    let mut tally = Tally::default();
    for seed in 0..RUNS {
        let share = 1.0 / RUNS as f64;
        let found = compare(&chosen(1e6, 1.0, 2 * seed), &chosen(0.85e6, better, 2 * seed + 1));
        let add = |to: &mut f64, when: bool| *to += if when { share } else { 0.0 };
        let claim = |at: usize| matches!(found.matched[at].verdict, Verdict::Faster | Verdict::Slower);
        // Value 0 is the same in both, value 1 where nothing is better.
        add(&mut tally.false_claims, claim(0) || (better == 1.0 && claim(1)));
        add(&mut tally.faster, found.matched[1].verdict == Verdict::Faster);
        add(&mut tally.slower, found.matched[1].verdict == Verdict::Slower);
        add(&mut tally.held, found.matched[1].ratio.is_some_and(|r| (r.low..=r.high).contains(&better)));
        tally.rounds.push(10);
    }
    tally
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn two_runs_of_the_same_are_rarely_called_different() {
    let Way { equal, different, .. } = &ways()[ways().len() - 1];
    for tally in [equal, different] {
        assert!(tally.false_claims <= 0.05, "{}", tally.false_claims);
        assert!((0.93..=0.975).contains(&tally.held), "{}", tally.held);
    }
    assert!(different.slower <= 0.01);
}
