//! The figures of rows, so that the ratio of two figures is the ratio that the sentence about them says.
//!
//! A comparison is of the differences within rounds. Those of trimmed means, or of rows that miss rounds, do not add up, so means of
//! rows would contradict them. The figures follow the comparisons instead: those of the claims first, in their order, then those with
//! the yardstick, then all others. What comparisons leave open, which is how fast everything was, is taken from the rows' own means.

use std::collections::BTreeMap;

use stats::Percentile;
use systems::work::WorkUnit;

use super::{Claim, Compared, Comparison, Estimate, Ratio, Rows, Tuned};
use crate::experiment::Figure;
use crate::observation::Scenario;
use crate::plan::{Planned, Setup, View};

/// Two rows, and the logarithm of how many times better the first is than the second.
type Pair = (usize, usize, f64);

/// Sets the figures of rows, their intervals and their shares of the yardstick's. The ratios of the `first` pairs come before those
/// with the yardsticks, and those of the `last` behind them.
pub(super) fn set(
    planned: &View<'_>,
    rows: &Rows,
    estimates: &mut [Estimate],
    first: &[Pair],
    last: &[Pair],
) {
    let yardsticks = yardsticks(planned);
    let shares: Vec<Pair> = yardsticks
        .iter()
        .enumerate()
        .filter_map(|(row, yardstick)| Some((row, (*yardstick)?, rows.gap(row, (*yardstick)?)?)))
        .collect();
    let figures = rows.figures(estimates.len(), first.iter().chain(&shares).chain(last).copied());
    for (row, e) in estimates.iter_mut().enumerate() {
        // Where most trials have none above zero, the others are not the figure.
        if e.figure.is_some_and(|figure| figure > 0.0) {
            e.figure = figures[row].map(rounded).or(e.figure);
        }
        e.interval = around(e.figure, rows.interval(row));
        e.of_reference = None;
    }
    for (row, yardstick, _) in shares {
        let both = estimates[row].figure.zip(estimates[yardstick].figure);
        let share = both.map(|(own, of)| planned.figure.advantage(own, of));
        estimates[row].of_reference = share.filter(|share| share.is_finite());
    }
}

/// The position of each scenario's yardstick. None without one.
fn yardsticks(planned: &Planned) -> Vec<Option<usize>> {
    let positions: BTreeMap<&Scenario, usize> =
        planned.scenarios.iter().enumerate().map(|(at, scenario)| (scenario, at)).collect();
    let of = |scenario| positions.get(&planned.yardstick(scenario)).copied();
    planned.scenarios.iter().map(|scenario| of(scenario).filter(|_| planned.is_compared())).collect()
}

/// A figure without what logarithms change behind its twelfth digit.
fn rounded(figure: f64) -> f64 {
    format!("{figure:.11e}").parse().unwrap_or(figure)
}

/// The interval of a row's own mean, widened to contain its figure, which follows the comparisons.
fn around(figure: Option<f64>, interval: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let ((low, high), figure) = (interval?, figure?);
    Some((low.min(figure), high.max(figure)))
}

/// The pairs whose ratios are told: those of the claims in their order, of a search the advised setting beside the default.
pub(super) fn said(
    setup: &Setup,
    estimates: &[Estimate],
    claims: &[Claim],
    tuned: Option<&Tuned>,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut tell = |scenario: usize, against: usize, ratio: Option<Ratio>| {
        pairs.extend(ratio.map(|ratio| (scenario, against, ratio.estimate.ln())));
    };
    for claim in claims {
        match claim {
            Claim::Knob { comparison: c, .. }
            | Claim::Cliff { comparison: c, .. }
            | Claim::Undecided { comparison: c, .. } => tell(c.scenario, c.against, c.ratio),
            Claim::Systems { comparison: c, rest, .. } => {
                tell(c.scenario, c.against, c.ratio);
                rest.iter().for_each(|behind| tell(c.scenario, behind.scenario, behind.ratio));
            }
            Claim::NoDifference { .. } | Claim::DependsOn { .. } | Claim::Unanswered { .. } => {}
        }
    }
    let advice = tuned.and_then(|found| found.advice.as_ref());
    if let Some((advice, base)) = advice.zip(setup.base.as_ref()) {
        let judged = if advice.changes() { &advice.point } else { &advice.winner };
        let is_judged = |e: &Estimate| judged.iter().all(|(knob, v)| e.scenario.point.get(knob) == Some(v));
        let at = |is: &dyn Fn(&Estimate) -> bool| estimates.iter().position(is);
        if let Some((setting, default)) = at(&is_judged).zip(at(&|e| e.scenario == base.scenario)) {
            tell(setting, default, advice.gain);
        }
    }
    pairs
}

/// The pairs that were compared.
pub(super) fn seen(comparisons: &[Comparison]) -> Vec<Pair> {
    let seen = comparisons.iter().filter_map(|c| Some((c.scenario, c.against, c.ratio?.estimate.ln())));
    seen.collect()
}

/// Lets the tables of an experiment's other figures show what its own sentence says of a figure.
pub(super) fn share(figures: &mut [Compared<'_>]) {
    for at in 0..figures.len() {
        let Compared { planned, estimates, .. } = &figures[at];
        let (figure, unit) = (planned.figure, &planned.workload.about().unit);
        let own: Vec<Option<f64>> = estimates.iter().map(|e| e.figure).collect();
        for other in figures.iter_mut() {
            let both = other.estimates.iter_mut().zip(&own);
            both.filter_map(|(e, own)| Some((e, (*own)?))).for_each(|(e, own)| e.tell(figure, unit, own));
        }
    }
}

impl Estimate {
    /// Shows another figure, in its unit, as its own sentence has it.
    fn tell(&mut self, figure: Figure, unit: &WorkUnit, value: f64) {
        match figure {
            Figure::CpuPerUnit => self.cpu_s_per_unit = Some(value / unit.size),
            Figure::CallsPerUnit => self.work.calls_per_unit = Some(value / unit.size),
            Figure::InstructionsPerUnit => self.work.instructions_per_unit = Some(value / unit.size),
            Figure::MemoryBytes => self.peak_memory_bytes = Some(value.round() as u64),
            Figure::P50Us => self.p50_us = told(self.p50_us, value),
            Figure::P99Us => self.p99_us = told(self.p99_us, value),
            // No other table shows these.
            _ => {}
        }
    }
}

/// A percentile of another table, as its own sentence has it. A lower bound stays one.
fn told(known: Option<Percentile>, us: f64) -> Option<Percentile> {
    let us = us.round() as u64;
    Some(match known? {
        Percentile::Exactly(_) => Percentile::Exactly(us),
        Percentile::AtLeast { .. } => Percentile::AtLeast { at_least: us },
    })
}
