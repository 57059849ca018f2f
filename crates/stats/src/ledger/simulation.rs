//! Simulates sessions with the ledger and with the rules that it was chosen from. The tables in the module's
//! doc are from here.

use super::*;
use crate::student::two_sided;
use crate::{Location, SplitMix64};

/// A share of 5 % of so many sessions has a standard error of 0.2 %.
const SESSIONS_WITHOUT: u32 = 10_000;

/// A share of 80 % of so many sessions has a standard error of 0.9 %.
const SESSIONS_WITH: u32 = 2000;

/// With so many degrees of freedom Student's distribution is as good as the normal one.
const NORMAL: f64 = 1e6;

/// A rule that decides about one attempt after the other.
trait Tests {
    fn level(&self) -> f64;

    /// Whether the attempt is accepted.
    fn accepts(&mut self, p: f64, confirmation: Option<f64>) -> bool;
}

impl Tests for Ledger {
    fn level(&self) -> f64 {
        Self::level(self)
    }

    fn accepts(&mut self, p: f64, confirmation: Option<f64>) -> bool {
        self.record(p, confirmation) == Decision::Accept
    }
}

/// The levels of SAFFRON. Without candidates they are those of LORD++, and without rewards as well they are
/// spent.
#[derive(Clone)]
struct Rule {
    /// Parts of 1, for attempts counted from 1.
    series: fn(f64) -> f64,
    /// The sum of the levels while nothing is accepted: `W0`.
    start: f64,
    /// What each acceptance adds to that sum. The first one only fills `start` up to it.
    reward: f64,
    /// The level of confirmations.
    confirmed_at: f64,
    /// An attempt with a p-value up to this does not move the series on.
    candidates: f64,
    rewards: bool,
    /// Where the series is that began with the session, and those that began with each acceptance.
    at: Vec<f64>,
}

impl Rule {
    /// Levels with this sum.
    fn spending(series: fn(f64) -> f64, sum: f64, confirmed_at: f64) -> Self {
        Self { series, start: sum, reward: sum, confirmed_at, candidates: 0.0, rewards: false, at: vec![1.0] }
    }

    /// `start` is a share of the whole.
    fn lord(series: fn(f64) -> f64, start: f64) -> Self {
        Self { start: start * SUM, rewards: true, ..Self::spending(series, SUM, CONFIRMATION_LEVEL) }
    }

    fn saffron(series: fn(f64) -> f64, start: f64) -> Self {
        Self { candidates: 0.5, ..Self::lord(series, start) }
    }
}

impl Tests for Rule {
    fn level(&self) -> f64 {
        let weight = |series: usize| match series {
            0 => self.start,
            1 => self.reward - self.start,
            _ => self.reward,
        };
        let sum: f64 =
            self.at.iter().enumerate().map(|(series, at)| weight(series) * (self.series)(*at)).sum();
        ((1.0 - self.candidates) * sum).min(LEVEL)
    }

    fn accepts(&mut self, p: f64, confirmation: Option<f64>) -> bool {
        let accepted = p <= self.level() && confirmation.is_some_and(|fresh| fresh <= self.confirmed_at);
        if p > self.candidates {
            self.at.iter_mut().for_each(|at| *at += 1.0);
        }
        if accepted && self.rewards {
            self.at.push(1.0);
        }
        accepted
    }
}

/// Parts that fall with the square of the position.
fn squares(i: f64) -> f64 {
    6.0 / (std::f64::consts::PI * i).powi(2)
}

/// The parts that LORD was published with (Javanmard and Montanari, "Online rules for control of false
/// discovery rate and false discovery exceedance", Ann. Statist. 46, 2018). This factor makes their sum 1.
fn published_with_lord(i: f64) -> f64 {
    0.0791 * i.max(2.0).ln() / (i * i.ln().sqrt().exp())
}

/// The parts that SAFFRON was published with.
fn published_with_saffron(i: f64) -> f64 {
    i.powf(-1.6) / 2.2858
}

/// The parts of the ledger.
fn hyperbolic(i: f64) -> f64 {
    HALF_SPENT / ((i + HALF_SPENT - 1.0) * (i + HALF_SPENT))
}

/// The one-sided p-value of an estimate whose two-sided one is `p`.
fn one_sided(estimate: f64, p: f64) -> f64 {
    if estimate > 0.0 { p / 2.0 } else { 1.0 - p / 2.0 }
}

/// The p-value of an attempt that is better by so many standard errors, if the error is known.
fn known(effect: f64, rng: &mut SplitMix64) -> f64 {
    if effect == 0.0 {
        return rng.unit();
    }
    let z = rng.normal() + effect;
    one_sided(z, two_sided(z, NORMAL))
}

/// The p-value of an attempt that is better by so many standard errors, from `rounds` rounds whose
/// disturbances have the normal distribution, or Student's with 3 degrees of freedom, whose standard
/// deviation is the root of 3.
fn from_rounds(effect: f64, rounds: u32, heavy: bool, rng: &mut SplitMix64) -> f64 {
    let noise = |rng: &mut SplitMix64| if heavy { rng.student(3) / 3.0_f64.sqrt() } else { rng.normal() };
    let truth = effect / f64::from(rounds).sqrt();
    let numbers: Vec<f64> = (0..rounds).map(|_| truth + noise(rng)).collect();
    Location::of(&numbers).map_or(1.0, |location| one_sided(location.estimate, location.p()))
}

/// `attempts` attempts, of which those at multiples of `every` are better by `better` standard errors, and
/// the others by `others`.
fn effects(attempts: usize, every: usize, better: f64, others: f64) -> Vec<f64> {
    (1..=attempts).map(|at| if at % every == 0 { better } else { others }).collect()
}

/// The single better attempt in the middle.
fn one_of(attempts: usize, better: f64, others: f64) -> Vec<f64> {
    let mut all = vec![others; attempts];
    all[attempts / 2 - 1] = better;
    all
}

/// The share of better attempts that are found, and the share of sessions in which another one is accepted.
fn simulate<T: Tests>(
    sessions: u32,
    rule: impl Fn() -> T,
    effects: &[f64],
    p_of: impl Fn(f64, &mut SplitMix64) -> f64,
) -> (f64, f64) {
    let mut rng = SplitMix64::new(1);
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..sessions {
        let mut rule = rule();
        let mut errs = false;
        for effect in effects {
            let p = p_of(*effect, &mut rng);
            let confirmation = (p <= rule.level()).then(|| p_of(*effect, &mut rng));
            let accepted = rule.accepts(p, confirmation);
            found += u32::from(accepted && *effect > 0.0);
            errs |= accepted && *effect <= 0.0;
        }
        wrong += u32::from(errs);
    }
    let better = effects.iter().filter(|effect| **effect > 0.0).count().max(1);
    (f64::from(found) / f64::from(sessions) / better as f64, f64::from(wrong) / f64::from(sessions))
}

/// Fails if the doc of the module does not have these rows. They need all sessions, so a sample does not ask for them.
fn documented(rows: impl FnOnce() -> Vec<String>) {
    if std::env::var_os("NARROWS_SAMPLE").is_some_and(|value| !value.is_empty()) {
        return;
    }
    let rows: String = rows().iter().map(|row| format!("//! {row}\n")).collect();
    assert!(
        include_str!("../ledger.rs").contains(&rows),
        "the doc of ledger.rs should have these rows:\n{rows}"
    );
}

fn row<T: Tests>(name: &str, rule: impl Fn() -> T) -> String {
    let (_, wrong) = simulate(SESSIONS_WITHOUT, &rule, &[0.0; 200], known);
    let found = |effects: Vec<f64>| 100.0 * simulate(SESSIONS_WITH, &rule, &effects, known).0;
    let (in_40, in_200) = (found(one_of(40, 4.0, 0.0)), found(one_of(200, 4.0, 0.0)));
    let among_worse = found(one_of(200, 4.0, -1.0));
    let (of_20, beside) = simulate(SESSIONS_WITH, &rule, &effects(200, 10, 4.0, 0.0), known);
    format!(
        "| {name} | {:.1} % | {in_40:.0} % | {in_200:.0} % | {among_worse:.0} % | {:.0} % | {:.0} % |",
        100.0 * wrong,
        100.0 * of_20,
        100.0 * beside,
    )
}

#[test]
fn a_session_without_a_better_candidate_rarely_accepts_one() {
    for (sessions, least) in [(2000, 0.025), (20_000, 0.03)] {
        let (_, wrong) = simulate(sessions, Ledger::default, &[0.0; 200], known);
        assert!((least..=LEVEL).contains(&wrong), "{wrong} of {sessions} sessions");
    }
}

#[test]
fn a_candidate_that_is_better_by_four_standard_errors_is_found() {
    for attempts in [40, 200] {
        let (found, wrong) = simulate(SESSIONS_WITH, Ledger::default, &one_of(attempts, 4.0, 0.0), known);
        assert!(found >= 0.8 && wrong <= LEVEL, "{attempts} attempts: {found}, {wrong}");
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_rules_have_the_documented_shares() {
    documented(|| {
        vec![
            row("spent as squares, sum 0.05", || Rule::spending(squares, LEVEL, CONFIRMATION_LEVEL)),
            row("spent as squares", || Rule::spending(squares, SUM, CONFIRMATION_LEVEL)),
            row("spent as here, sum 1, `c` 0.05", || Rule::spending(hyperbolic, 1.0, LEVEL)),
            row("**spent as here**", Ledger::default),
            row("LORD++, its series, half at first", || Rule::lord(published_with_lord, 0.5)),
            row("LORD++, this series, all at first", || Rule::lord(hyperbolic, 1.0)),
            row("SAFFRON, its series, half at first", || Rule::saffron(published_with_saffron, 0.5)),
            row("SAFFRON, this series, all at first", || Rule::saffron(hyperbolic, 1.0)),
        ]
    });
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn p_values_from_rounds_have_the_documented_shares() {
    let row = |name: &str, p_of: &dyn Fn(f64, &mut SplitMix64) -> f64| {
        let (_, wrong) = simulate(SESSIONS_WITHOUT, Ledger::default, &[0.0; 200], p_of);
        let found = |attempts, effect| {
            // What the other attempts show makes no difference to this one.
            let of = |effect: f64, rng: &mut SplitMix64| if effect > 0.0 { p_of(effect, rng) } else { 1.0 };
            100.0 * simulate(SESSIONS_WITH, Ledger::default, &one_of(attempts, effect, 0.0), of).0
        };
        format!(
            "| {name} | {:.1} % | {:.0} % | {:.0} % | {:.0} % | {:.0} % |",
            100.0 * wrong,
            found(40, 4.0),
            found(200, 4.0),
            found(40, 5.0),
            found(200, 5.0)
        )
    };
    documented(|| {
        vec![
            row("a known error", &known),
            row("30 rounds, normal", &|effect, rng| from_rounds(effect, 30, false, rng)),
            row("30 rounds, heavy tails", &|effect, rng| from_rounds(effect, 30, true, rng)),
            row("10 rounds, normal", &|effect, rng| from_rounds(effect, 10, false, rng)),
            row("10 rounds, heavy tails", &|effect, rng| from_rounds(effect, 10, true, rng)),
        ]
    });
}
