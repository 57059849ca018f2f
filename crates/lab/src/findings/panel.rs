//! The figures of an experiment by round, in the form in which `stats` compares rows: logarithms, and higher is better.

use std::collections::BTreeMap;

use stats::{Design, FEWEST_ROUNDS, LEVEL, Location, LogRatio, Middle, Panel, PanelRow, levels};

use super::{Estimate, FigureView, Ratio};
use crate::experiment::Figure;

/// The rows of an experiment and the design by which they are compared. Rows are referred to by their position in the
/// estimates.
pub struct Rows {
    panel: Panel,
    /// For a percentile: the pseudo-values of that of all answers together. A statement must hold by these and by the trials' own
    /// percentiles, because the error of the first is little known where few trials decide it.
    pooled: Option<Panel>,
    design: Design,
    figure: Figure,
}

impl Rows {
    /// Takes the figures of these estimates, and those of the reference's twin, which no comparison refers to.
    pub fn new(
        figure: Figure,
        design: Design,
        estimates: &[Estimate],
        twin: Option<&BTreeMap<u32, f64>>,
    ) -> Self {
        let sign = if figure.more_is_better() { 1.0 } else { -1.0 };
        let row = |by_round: &BTreeMap<u32, f64>, system: bool, bound: f64| {
            let logs = by_round.iter().map(|(round, figure)| (*round, sign * figure.ln()));
            PanelRow { by_round: logs.filter(|(_, log)| log.is_finite()).collect(), system, bound }
        };
        let own = estimates.iter().map(|e| row(&e.by_round, !e.is_reference(), e.bound()));
        let panel = Panel::new(own.chain(twin.map(|by_round| row(by_round, false, 0.0))).collect());
        let part = |e: &Estimate| PanelRow {
            by_round: e.pseudo_values.iter().map(|(round, log)| (*round, sign * log)).collect(),
            system: !e.is_reference(),
            bound: e.bound(),
        };
        let has_parts = estimates.iter().any(|e| !e.pseudo_values.is_empty());
        let pooled = has_parts.then(|| Panel::of_pseudo_values(estimates.iter().map(part).collect()));
        Self { panel, pooled, design, figure }
    }

    /// Takes the figures of an experiment's findings. They do not contain the twin's.
    pub fn of(found: &FigureView<'_>) -> Self {
        Self::new(found.figure, found.design, found.estimates, None)
    }

    /// Compares two rows, less what is expected. None if they share too few rounds.
    pub fn compare(&self, a: usize, b: usize, expected: f64) -> Option<LogRatio> {
        let own = self.design.compare(&self.panel, a, b, expected)?;
        let Some(pooled) = self.pooled(a, b) else { return Some(own) };
        Some(both(own, self.design.compare(pooled, a, b, expected)?))
    }

    /// How many times better row `a` is than row `b`, with an interval that holds together with those of `several` ratios.
    pub fn ratio_among(&self, a: usize, b: usize, several: usize) -> Option<Ratio> {
        let location = self.ratio(a, b)?;
        let (low, high) = location.interval(self.level(&location, several));
        Some(Ratio::of_logs(location.estimate, low, high))
    }

    /// The logarithm of how many times better row `a` is than row `b`. None if they share too few rounds.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Location> {
        let of = |panel: &Panel| {
            let rounds = panel.shared_rounds(a, b);
            panel.difference(a, b, &rounds).filter(|_| rounds.len() >= FEWEST_ROUNDS)
        };
        let own = of(&self.panel)?;
        let Some(pooled) = self.pooled(a, b) else { return Some(own) };
        Some(together(own, of(pooled)?))
    }

    /// The level of one of `several` intervals that hold together, from as many rounds as the location has.
    pub fn level(&self, location: &Location, several: usize) -> f64 {
        LEVEL * self.design.share_after(location.n as u32) / several.max(1) as f64
    }

    /// The figures of the rows whose ratios are those of these pairs, of which each says how many times better its first row is than
    /// the second, as a logarithm. See [`stats::levels`]. None where nothing is known of a row.
    pub fn figures(
        &self,
        rows: usize,
        pairs: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Vec<Option<f64>> {
        let own: Vec<Option<Middle>> = (0..rows).map(|row| self.shown().middle(row)).collect();
        levels(&own, pairs).into_iter().map(|level| Some(self.in_its_unit(level?, level?).0)).collect()
    }

    /// The logarithm of how many times better row `a` is than row `b` in the rounds that both have, however few. None if they share none.
    pub fn gap(&self, a: usize, b: usize) -> Option<f64> {
        self.pooled(a, b).unwrap_or(&self.panel).gap(a, b)
    }

    /// The pseudo-values, if both rows have the same rounds: those of a row tell of all its rounds together, and of no part of them.
    fn pooled(&self, a: usize, b: usize) -> Option<&Panel> {
        self.pooled.as_ref().filter(|pooled| pooled.shared_rounds(a, a) == pooled.shared_rounds(b, b))
    }

    /// The numbers whose means are shown.
    fn shown(&self) -> &Panel {
        self.pooled.as_ref().unwrap_or(&self.panel)
    }

    /// The 95 % interval of a row's figure: of what this machine gave in the rounds. None if it has too few rounds.
    pub fn interval(&self, row: usize) -> Option<(f64, f64)> {
        let of = |panel: &Panel| {
            let mean = panel.mean(row, &panel.shared_rounds(row, row));
            Some(mean.filter(|mean| mean.n >= FEWEST_ROUNDS)?.interval(LEVEL))
        };
        let (mut low, mut high) = of(&self.panel)?;
        if let Some(pooled) = &self.pooled {
            let pooled = of(pooled)?;
            (low, high) = (low.min(pooled.0), high.max(pooled.1));
        }
        Some(self.in_its_unit(low, high))
    }

    /// How many times better than `expected` a row's figure is, as logarithms of which higher is better. Holds at all looks
    /// together. None if the row has too few rounds.
    pub fn mean(&self, row: usize, expected: f64) -> Option<LogRatio> {
        let own = self.design.mean(&self.panel, row, expected)?;
        let Some(pooled) = &self.pooled else { return Some(own) };
        Some(both(own, self.design.mean(pooled, row, expected)?))
    }

    /// An interval of a row's figure, from logarithms of which higher is better.
    pub fn in_its_unit(&self, low: f64, high: f64) -> (f64, f64) {
        if self.figure.more_is_better() { (low.exp(), high.exp()) } else { ((-high).exp(), (-low).exp()) }
    }
}

/// The union of both intervals of a percentile around that of all answers, and the larger p-value. Pseudo-values of an early look would
/// contain what later rounds did, so that only those of the last are asked.
fn both(own: LogRatio, pooled: LogRatio) -> LogRatio {
    LogRatio {
        location: together(own.location, pooled.location),
        low: own.low.min(pooled.low),
        high: own.high.max(pooled.high),
        p: own.p.max((pooled.location.p() * LEVEL / pooled.level).min(1.0)),
        level: pooled.level,
    }
}

/// The percentile of all answers together, with an error so large that its interval contains those of both.
fn together(own: Location, pooled: Location) -> Location {
    let half = |location: &Location| location.interval(LEVEL).1 - location.estimate;
    let wider = if half(&own) > half(&pooled) { own } else { pooled };
    let apart = (own.estimate - pooled.estimate).abs();
    let needed = half(&pooled).max(apart + half(&own));
    let error = match wider.error > 0.0 {
        true => wider.error * (needed - wider.bound) / (half(&wider) - wider.bound),
        false => 0.0,
    };
    Location { estimate: pooled.estimate, error, ..wider }
}
