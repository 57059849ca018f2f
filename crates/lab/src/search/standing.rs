//! What the rounds so far say of each setting, whether it was tried or not.
//!
//! The logarithm of a figure is taken as the sum of what its round did, what the value of each knob does, what each pair of
//! values does together, what is special about the setting, and noise. All are estimated together, and each is shrunk by as
//! much of its variance as chance explains (Henderson, "Best linear unbiased estimation and prediction under a selection
//! model", Biometrics 31, 1975), so that a lucky trial does not win. A trial that is far off counts less (Huber, "Robust
//! estimation of a location parameter", Ann. Math. Statist. 35, 1964). This chooses what is tried next, and the winner. It
//! proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::lattice::{Cell, Lattice};

/// The logarithms of the figures of one round, by setting. Higher is better. A failed trial has none.
pub type Figures = BTreeMap<Cell, f64>;

/// What each round has shown.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The deciding figure.
    pub figures: Vec<Figures>,
    /// For each limit, the room below it ([`super::Limit::room`]).
    pub limits: Vec<Vec<Figures>>,
    /// The settings with a trial that failed or had too many errors.
    pub failed: BTreeSet<Cell>,
}

impl Shown {
    /// What the first so many rounds have shown. Which settings failed is kept from all.
    pub fn until(&self, rounds: usize) -> Self {
        Self {
            figures: self.figures[..rounds].to_vec(),
            limits: self.limits.iter().map(|rooms| rooms[..rounds].to_vec()).collect(),
            failed: self.failed.clone(),
        }
    }
}

/// How often the parts are estimated in turn.
const SWEEPS: usize = 25;

/// Beyond so many standard deviations a trial counts less.
const FAR: f64 = 1.0;

/// The smallest variance. It keeps figures without any noise finite.
const LEAST: f64 = 1e-12;

/// What is known.
#[derive(Debug, Clone)]
pub struct Standing {
    middle: f64,
    factors: Vec<Factor>,
    /// What the values of each factor do.
    effects: Vec<Part>,
    /// What is special about the cells that have figures.
    special: Part,
    /// Where those are in `special`, and how many figures they have.
    cells: BTreeMap<Cell, (usize, usize)>,
    /// The standard deviation of a trial that is not far off.
    pub noise: f64,
}

/// A knob, or a pair of knobs.
#[derive(Debug, Clone, Copy)]
struct Factor {
    first: usize,
    /// The other knob, and the number of its values.
    second: Option<(usize, usize)>,
}

/// One part of the sum: effects of which each figure has one.
#[derive(Debug, Clone)]
struct Part {
    effects: Vec<f64>,
    /// The variance of the effects; infinite if nothing is known of them beforehand.
    variance: f64,
    /// The variance that each effect may still have.
    unsure: Vec<f64>,
}

/// One figure: what is left of its logarithm, how much it counts, and which effect of each part it has.
struct Entry {
    rest: f64,
    weight: f64,
    levels: Vec<usize>,
}

impl Factor {
    /// All knobs, and then all pairs of them, each with the number of its values.
    fn all(lattice: &Lattice) -> Vec<(Self, usize)> {
        let values = |knob: usize| lattice.knobs[knob].values;
        let knobs = 0..lattice.knobs.len();
        let alone = knobs.clone().map(|first| (Self { first, second: None }, values(first)));
        let pairs = knobs.flat_map(|b| (0..b).map(move |a| (a, b)));
        let pair = |(a, b)| (Self { first: a, second: Some((b, values(b))) }, values(a) * values(b));
        alone.chain(pairs.map(pair)).collect()
    }

    fn level(&self, cell: &Cell) -> usize {
        match self.second {
            Some((other, values)) => cell[self.first] * values + cell[other],
            None => cell[self.first],
        }
    }
}

impl Part {
    fn new(levels: usize, variance: f64) -> Self {
        Self { effects: vec![0.0; levels], variance, unsure: vec![variance; levels] }
    }

    /// Estimates the effects anew, and their variance. `at` is the part's place among the levels of entries.
    fn estimate(&mut self, entries: &mut [Entry], at: usize, noise: f64) {
        let mut sums = vec![(0.0, 0.0); self.effects.len()];
        for entry in entries.iter() {
            let (weight, rest) = &mut sums[entry.levels[at]];
            *weight += entry.weight;
            *rest += entry.weight * entry.rest;
        }
        let (mut squares, mut seen) = (0.0, 0.0_f64);
        for (level, (weight, rest)) in sums.iter_mut().enumerate() {
            let precision = *weight / noise + 1.0 / self.variance;
            self.unsure[level] = 1.0 / precision;
            if *weight <= 0.0 {
                continue;
            }
            let effect = (*rest + *weight * self.effects[level]) / noise / precision;
            *rest = effect - self.effects[level];
            self.effects[level] = effect;
            squares += effect.powi(2) + self.unsure[level];
            seen += 1.0;
        }
        entries.iter_mut().for_each(|entry| entry.rest -= sums[entry.levels[at]].1);
        if self.variance.is_finite() && seen > 0.0 {
            self.variance = (squares / seen).max(LEAST);
        }
    }
}

impl Standing {
    /// Weighs up these rounds.
    pub fn of(lattice: &Lattice, rounds: &[Figures]) -> Self {
        let (factors, sizes): (Vec<Factor>, Vec<usize>) = Factor::all(lattice).into_iter().unzip();
        let mut cells: BTreeMap<Cell, (usize, usize)> = BTreeMap::new();
        let mut entries = Vec::new();
        let logs = rounds
            .iter()
            .enumerate()
            .flat_map(|(round, of)| of.iter().map(move |(cell, log)| (round, cell, *log)));
        for (round, cell, log) in logs.filter(|(.., log)| log.is_finite()) {
            let new = cells.len();
            let (place, trials) = cells.entry(cell.clone()).or_insert((new, 0));
            *trials += 1;
            let of_factors = factors.iter().map(|factor| factor.level(cell));
            let levels = of_factors.chain([*place, round]).collect();
            entries.push(Entry { rest: log, weight: 1.0, levels });
        }
        let middle = stats::median(entries.iter().map(|entry| entry.rest)).unwrap_or(0.0);
        entries.iter_mut().for_each(|entry| entry.rest -= middle);
        let squares: f64 = entries.iter().map(|entry| entry.rest.powi(2)).sum();
        let variance = (squares / entries.len().max(1) as f64).max(LEAST);
        let of_each = variance / lattice.knobs.len().max(1) as f64;
        let mut standing = Self {
            middle,
            effects: sizes.into_iter().map(|levels| Part::new(levels, of_each)).collect(),
            factors,
            special: Part::new(cells.len(), variance / 4.0),
            cells,
            noise: (variance / 4.0).sqrt(),
        };
        let mut of_rounds = Part::new(rounds.len(), f64::INFINITY);
        for _ in 0..SWEEPS {
            standing.sweep(&mut entries, &mut of_rounds);
        }
        let ordered = lattice.knobs.iter().enumerate().filter(|(_, knob)| knob.ordered);
        ordered.for_each(|(knob, _)| standing.interpolate(knob));
        standing
    }

    /// Takes a value of an ordered knob that never ran as the mean of its two nearest that did, weighted by how near they are.
    fn interpolate(&mut self, knob: usize) {
        let ran: BTreeSet<usize> = self.cells.keys().map(|cell| cell[knob]).collect();
        let effects = &mut self.effects[knob].effects;
        for value in (0..effects.len()).filter(|value| !ran.contains(value)) {
            let (below, above) = (ran.range(..value).next_back(), ran.range(value..).next());
            effects[value] = match (below, above) {
                (Some(low), Some(high)) => {
                    let share = (value - low) as f64 / (high - low) as f64;
                    effects[*low] * (1.0 - share) + effects[*high] * share
                }
                (Some(nearest), None) | (None, Some(nearest)) => effects[*nearest],
                (None, None) => 0.0,
            };
        }
    }

    /// Estimates each part in turn, then the noise, then how much each figure counts.
    fn sweep(&mut self, entries: &mut [Entry], rounds: &mut Part) {
        let total: f64 = entries.iter().map(|entry| entry.weight).sum();
        if total <= 0.0 {
            return;
        }
        let noise = self.noise.powi(2);
        let shift = entries.iter().map(|entry| entry.weight * entry.rest).sum::<f64>() / total;
        self.middle += shift;
        entries.iter_mut().for_each(|entry| entry.rest -= shift);
        let factors = self.factors.len();
        rounds.estimate(entries, factors + 1, noise);
        for (at, part) in self.effects.iter_mut().enumerate() {
            part.estimate(entries, at, noise);
        }
        self.special.estimate(entries, factors, noise);
        // The effects follow the figures as far as they are not shrunk.
        let followed = self.cells.len() as f64 * self.special.variance / (self.special.variance + noise);
        let free = (total - followed - rounds.effects.len() as f64).max(total / 4.0);
        let squares: f64 = entries.iter().map(|entry| entry.weight * entry.rest.powi(2)).sum();
        self.noise = (squares / free).max(LEAST).sqrt();
        let far = FAR * self.noise;
        for entry in entries {
            entry.weight = if entry.rest.abs() > far { far / entry.rest.abs() } else { 1.0 };
        }
    }

    /// The expected logarithm of a cell's figure.
    pub fn expected(&self, cell: &Cell) -> f64 {
        let parts = self.factors.iter().zip(&self.effects);
        let sum: f64 = parts.map(|(factor, part)| part.effects[factor.level(cell)]).sum();
        self.middle + sum + self.cells.get(cell).map_or(0.0, |(place, _)| self.special.effects[*place])
    }

    /// The cells that have a figure.
    pub fn tried(&self) -> Vec<Cell> {
        self.cells.keys().cloned().collect()
    }

    /// How many figures a cell has.
    pub fn trials(&self, cell: &Cell) -> usize {
        self.cells.get(cell).map_or(0, |(_, trials)| *trials)
    }

    /// About how far the expected logarithm of a cell is off. What its knobs do alone is known best, and not counted.
    pub fn error(&self, cell: &Cell) -> f64 {
        self.error_of(cell, |factor| factor.second.is_some())
    }

    /// How far the expected logarithm of a cell is off, if what its knobs do alone is not taken for known either.
    pub fn whole_error(&self, cell: &Cell) -> f64 {
        self.error_of(cell, |_| true)
    }

    /// The same, if only these of its factors are not taken for known.
    fn error_of(&self, cell: &Cell, counts: impl Fn(&Factor) -> bool) -> f64 {
        let parts = self.factors.iter().zip(&self.effects).filter(|(factor, _)| counts(factor));
        let variance: f64 = parts.map(|(factor, part)| part.unsure[factor.level(cell)]).sum();
        (1.0 / (self.trials(cell) as f64 / self.noise.powi(2) + 1.0 / (self.special.variance + variance)))
            .sqrt()
    }

    /// What a value of a knob does by itself, as a logarithm.
    pub fn alone(&self, knob: usize, value: usize) -> f64 {
        self.effects[knob].effects[value]
    }

    /// The knobs, the strongest first.
    pub fn strongest(&self) -> Vec<usize> {
        let knobs = self.factors.iter().filter(|factor| factor.second.is_none()).count();
        let mut knobs: Vec<usize> = (0..knobs).collect();
        knobs.sort_by(|a, b| self.strength(*b).total_cmp(&self.strength(*a)));
        knobs
    }

    /// How much the values of a knob differ, from the worst to the best.
    pub fn strength(&self, knob: usize) -> f64 {
        let effects = || self.effects[knob].effects.iter().copied();
        effects().fold(f64::NEG_INFINITY, f64::max) - effects().fold(f64::INFINITY, f64::min)
    }
}
