//! Tests a suspected cause: what the faster of two systems does when it is given this cause alone. Pure.
//!
//! The share of the difference that the cause makes is log(faster / injected) / log(faster / slower), the mediated share. Its interval
//! is that of a ratio of means (Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16, 1954): all shares for which the
//! mean over rounds of log(faster / injected) - share * log(faster / slower) may be zero.

mod plan;

use std::collections::BTreeMap;

use serde::Serialize;
use stats::{FEWEST_ROUNDS, LEVEL, Location};

use crate::experiment::Figure;
use crate::figures::figure_of;
use crate::findings::log_ratios;
use crate::observation::{Observation, Outcome, Scenario};

pub use plan::Test;

/// A cause is proven if it makes more than this share of the difference, and excluded if it makes less than that one.
const PROVEN: f64 = 2.0 / 3.0;
const EXCLUDED: f64 = 1.0 / 3.0;

/// Shares are looked for between the negative of this one and itself.
const FARTHEST: f64 = 100.0;

/// What a test of a cause says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tested {
    /// It certainly makes more than two thirds of the difference.
    Proven,
    /// It certainly makes less than a third.
    Excluded,
    /// It may be the cause of a part. More rounds may tell.
    GoesWith,
}

/// The share of a difference that a cause makes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mediated {
    /// The estimate: 1 is all of it.
    pub share: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What that says.
    pub tested: Tested,
    /// The rounds with all three.
    pub rounds: usize,
}

/// A figure of a scenario's trials, by block.
pub type ByBlock = BTreeMap<u32, f64>;

/// The CPU time for a unit of work of a scenario's trials, in seconds.
pub fn cpu_s(observations: &[Observation], scenario: &Scenario) -> ByBlock {
    let of = |observation: &Observation| {
        let trial = &observation.trial;
        let Outcome::Measured(m) = &observation.outcome else { return None };
        let unit = &trial.scenario.workload().about().unit;
        let cpu_s = figure_of(Figure::CpuPerUnit, unit, m)?;
        (trial.scenario == *scenario && !trial.twin).then_some((trial.block(), cpu_s))
    };
    observations.iter().filter_map(of).collect()
}

/// The faster and the slower one of a test, by the figure at which the test looks.
#[derive(Debug)]
pub struct Ends {
    figure: Figure,
    faster: ByBlock,
    slower: ByBlock,
}

impl Ends {
    /// The test looks at CPU time, and not at the figure, if CPU time makes most of the difference between the two and is known better,
    /// as it is where speeds vary. What is injected does not matter for that, so the choice favours no verdict. Each pair has the faster
    /// one first.
    pub fn new(figure: Figure, [faster, slower]: [ByBlock; 2], [less, more]: [ByBlock; 2]) -> Self {
        let by_figure = Self { figure, faster, slower };
        let by_cpu = Self { figure: Figure::CpuPerUnit, faster: less, slower: more };
        let is_better = || {
            let Some(cpu) = by_cpu.whole() else { return false };
            let Some(all) = by_figure.whole() else { return true };
            cpu.estimate > PROVEN * all.estimate && cpu.estimate * all.error > all.estimate * cpu.error
        };
        let is_by_cpu = if figure.is_cost() { figure == Figure::CpuPerUnit } else { is_better() };
        if is_by_cpu { by_cpu } else { by_figure }
    }

    /// Whether the test looks at CPU time.
    pub fn is_by_cpu(&self) -> bool {
        self.figure == Figure::CpuPerUnit
    }

    /// The whole difference. None without rounds that have both.
    fn whole(&self) -> Option<Location> {
        let logs = log_ratios(self.figure, &self.faster, &self.slower);
        Location::of(&logs.into_iter().map(|(_, log)| log).collect::<Vec<f64>>())
    }

    /// The share of the difference that the injected one has, too. `injected` has the figure of [`Self::is_by_cpu`]. None with fewer than
    /// three rounds, or if the two ends do not certainly differ in them.
    pub fn mediated(&self, injected: &ByBlock) -> Option<Mediated> {
        let whole: ByBlock = log_ratios(self.figure, &self.faster, &self.slower).into_iter().collect();
        let injected = log_ratios(self.figure, &self.faster, injected).into_iter();
        let rounds: Vec<(f64, f64)> =
            injected.filter_map(|(block, injected)| Some((injected, *whole.get(&block)?))).collect();
        share(&rounds)
    }
}

/// The share, from the logarithms of faster / injected and of faster / slower of each round.
fn share(rounds: &[(f64, f64)]) -> Option<Mediated> {
    let of = |share: f64| {
        let rest: Vec<f64> = rounds.iter().map(|(injected, slower)| injected - share * slower).collect();
        Some(Location::of(&rest)?.interval(LEVEL))
    };
    let [injected, whole] = [|(injected, _): &(f64, f64)| *injected, |(_, slower): &(f64, f64)| *slower]
        .map(|part| Location::of(&rounds.iter().map(part).collect::<Vec<_>>()));
    let (injected, whole) = (injected?, whole?);
    if rounds.len() < FEWEST_ROUNDS || whole.interval(LEVEL).0 <= 0.0 {
        return None;
    }
    // What is left falls as the share grows, because the slower one is certainly slower.
    let edge = |is_beyond: fn((f64, f64)) -> bool| {
        let (mut below, mut above) = (-FARTHEST, FARTHEST);
        for _ in 0..60 {
            let middle = (below + above) / 2.0;
            let side = if of(middle).is_some_and(is_beyond) { &mut below } else { &mut above };
            *side = middle;
        }
        below
    };
    let (low, high) = (edge(|(low, _)| low > 0.0), edge(|(_, high)| high > 0.0));
    let tested = match (low > PROVEN, high < EXCLUDED) {
        (true, _) => Tested::Proven,
        (_, true) => Tested::Excluded,
        _ => Tested::GoesWith,
    };
    Some(Mediated { share: injected.estimate / whole.estimate, low, high, tested, rounds: rounds.len() })
}

/// What each event costs, seconds of CPU time, with its 95 % interval: by how much the CPU time for a unit of work grows with the dose.
/// `events` is by how many events for a unit of work the second has more. None with fewer than three rounds, or without events.
pub fn cost_of_event(none: &ByBlock, most: &ByBlock, events: f64) -> Option<[f64; 3]> {
    let more = none.iter().filter_map(|(block, cpu_s)| Some((most.get(block)? - cpu_s) / events));
    let more: Vec<f64> = more.collect();
    let location = Location::of(&more).filter(|_| more.len() >= FEWEST_ROUNDS && events > 0.0)?;
    let (low, high) = location.interval(LEVEL);
    Some([location.estimate, low, high])
}

#[cfg(test)]
mod tests {
    use stats::SplitMix64;

    use super::*;

    /// Six rounds of a server, of the server with a cause that makes it slower by `injected`, and of one that is slower by `slower`, in
    /// logarithms. Trials vary by 3 %.
    fn tested(injected: f64, slower: f64, seed: u64) -> Option<Mediated> {
        let mut rng = SplitMix64::new(seed);
        let mut arm = |log: f64| (0..6).map(|round| (round, (log + 0.03 * rng.normal()).exp())).collect();
        let (fast, with, slow) = (arm(0.0), arm(-injected), arm(-slower));
        by_speed([fast, slow], Default::default()).mediated(&with)
    }

    fn by_speed(speeds: [ByBlock; 2], cpu_s: [ByBlock; 2]) -> Ends {
        Ends::new(Figure::RequestsPerS, speeds, cpu_s)
    }

    #[test]
    fn cpu_time_is_looked_at_where_it_makes_the_difference_and_is_known_better() {
        let mut rng = SplitMix64::new(1);
        let mut arm =
            |log: f64, noise: f64| (0..6).map(|round| (round, (log + noise * rng.normal()).exp())).collect();
        let speeds = [arm(0.0, 0.2), arm(-0.4, 0.2)];
        let mut is_by_cpu = |less: f64, more: f64, noise: f64| {
            by_speed(speeds.clone(), [arm(less, noise), arm(more, noise)]).is_by_cpu()
        };
        assert!(is_by_cpu(0.0, 0.4, 0.02));
        assert!(!is_by_cpu(0.0, 0.4, 0.5), "it is known worse");
        assert!(!is_by_cpu(0.0, 0.1, 0.001), "it makes a quarter");
        assert!(!is_by_cpu(0.4, 0.0, 0.02), "the faster one needs more");
    }

    #[test]
    fn a_cause_is_told_from_what_goes_with_it() {
        // Forty made-up servers: half with a true cause, half with a companion that costs nothing.
        let (mut proven, mut excluded, mut wrong) = (0, 0, 0);
        for seed in 0..20 {
            let truth = tested(0.4, 0.4, seed).unwrap();
            let companion = tested(0.0, 0.4, 1000 + seed).unwrap();
            proven += usize::from(truth.tested == Tested::Proven);
            excluded += usize::from(companion.tested == Tested::Excluded);
            wrong += usize::from(companion.tested == Tested::Proven || truth.tested == Tested::Excluded);
        }
        assert!(proven >= 18 && excluded >= 18 && wrong == 0, "{proven} {excluded} {wrong}");
    }

    #[test]
    fn its_interval_holds_the_truth_nineteen_times_of_twenty() {
        let missed = (0..1000).filter(|seed| {
            let found = tested(0.2, 0.4, *seed).unwrap();
            !(found.low..=found.high).contains(&0.5)
        });
        let missed = missed.count();
        assert!((25..=75).contains(&missed), "{missed} of 1000");
    }

    #[test]
    fn nothing_is_said_where_nothing_differs() {
        assert_eq!(tested(0.0, 0.0, 1), None);
        assert_eq!(by_speed(Default::default(), Default::default()).mediated(&ByBlock::new()), None);
    }

    #[test]
    fn an_event_costs_what_the_dose_adds() {
        let arm = |cpu_s: f64| (0..4).map(|round| (round, cpu_s)).collect();
        let [cost, low, high] = cost_of_event(&arm(20e-6), &arm(26e-6), 3.0).unwrap();
        assert!((cost - 2e-6).abs() < 1e-12 && low <= cost && cost <= high);
    }
}
