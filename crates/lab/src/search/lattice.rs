//! The settings that a search may try, as positions: a cell has one position for each knob, in the order of its values.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stats::{SplitMix64, shuffle};

/// A setting: for each knob, the position of its value.
pub type Cell = Vec<usize>;

/// The most values of an ordered knob that are tried one beside the other.
const CLOSE: usize = 8;

/// How many designs are drawn, of which the one that fills the space best is taken.
const DRAWS: usize = 200;

/// The shape of the space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lattice {
    /// The number of values of each knob, and whether their order means something.
    pub knobs: Vec<Dimension>,
    /// The setting that others are compared with.
    pub default: Cell,
}

/// One knob of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// The number of values, at least one.
    pub values: usize,
    /// Whether values that stand side by side are alike.
    pub ordered: bool,
}

impl Lattice {
    /// The number of cells. The largest number if there are more than that.
    pub fn size(&self) -> usize {
        self.knobs.iter().fold(1, |size, knob| size.saturating_mul(knob.values))
    }

    /// All cells, the default first.
    pub fn all(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::new()];
        for knob in &self.knobs {
            let with = |cell: &Cell, value: usize| cell.iter().copied().chain([value]).collect::<Cell>();
            cells =
                cells.iter().flat_map(|cell| (0..knob.values).map(move |value| with(cell, value))).collect();
        }
        cells.sort_by_key(|cell| *cell != self.default);
        cells
    }

    /// The default and `others` cells that fill the space: each value of a knob is taken about equally often, and no two
    /// cells are close. Some may be equal in a small space, and are then left out.
    pub fn spread(&self, others: usize, seed: u64) -> Vec<Cell> {
        let mut rng = SplitMix64::new(seed);
        let mut best: (f64, Vec<Cell>) = (-1.0, Vec::new());
        for _ in 0..DRAWS {
            let columns: Vec<Cell> =
                self.knobs.iter().map(|knob| balanced(knob.values, others, &mut rng)).collect();
            let rows = (0..others).map(|row| columns.iter().map(|column| column[row]).collect::<Cell>());
            let cells: Vec<Cell> = std::iter::once(self.default.clone()).chain(rows).collect();
            let apart = self.least_distance(&cells);
            if apart > best.0 {
                best = (apart, cells);
            }
        }
        let mut seen = BTreeSet::new();
        best.1.into_iter().filter(|cell| seen.insert(cell.clone())).collect()
    }

    fn least_distance(&self, cells: &[Cell]) -> f64 {
        let pairs = cells.iter().enumerate().flat_map(|(i, a)| cells[..i].iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| self.distance(a, b)).fold(f64::INFINITY, f64::min)
    }

    /// How far two cells are from each other: the sum over the knobs of 0 to 1.
    fn distance(&self, a: &Cell, b: &Cell) -> f64 {
        let knobs = self.knobs.iter().zip(a.iter().zip(b));
        knobs
            .map(|(knob, (a, b))| match knob.ordered {
                _ if a == b => 0.0,
                true => a.abs_diff(*b) as f64 / (knob.values - 1).max(1) as f64,
                false => 1.0,
            })
            .sum()
    }

    /// The cells beside this one: for each ordered knob the next values on both sides, for the others all values, and each
    /// knob's default. The next value of an ordered knob with many values is the one in the middle between this and the
    /// nearest that ran.
    pub fn neighbours(&self, cell: &Cell, ran: &[Cell]) -> Vec<Cell> {
        let mut found = Vec::new();
        for (at, knob) in self.knobs.iter().enumerate() {
            let own = cell[at];
            let mut beside: BTreeSet<usize> = match knob {
                Dimension { ordered: false, values } => (0..*values).collect(),
                Dimension { values, .. } => {
                    let ran: Vec<usize> = if *values > CLOSE {
                        ran.iter().map(|cell| cell[at]).collect()
                    } else {
                        (0..*values).collect()
                    };
                    let below = ran.iter().copied().filter(|other| *other < own).max().unwrap_or(0);
                    let above = ran.iter().copied().filter(|other| *other > own).min().unwrap_or(values - 1);
                    BTreeSet::from([(below + own) / 2, (above + own).div_ceil(2)])
                }
            };
            beside.insert(self.default[at]);
            beside.remove(&own);
            found.extend(beside.into_iter().map(|value| with(cell, at, value)));
        }
        found
    }

    /// The cells that differ from this one in the values of two knobs only, itself included.
    pub fn pairs(&self, cell: &Cell, first: usize, second: usize) -> Vec<Cell> {
        let both =
            |a: usize| (0..self.knobs[second].values).map(move |b| with(&with(cell, first, a), second, b));
        (0..self.knobs[first].values).flat_map(both).collect()
    }

    /// The knobs that are not at their default.
    pub fn changed(&self, cell: &Cell) -> Vec<usize> {
        (0..cell.len()).filter(|at| cell[*at] != self.default[*at]).collect()
    }

    /// The cell with a knob set back to its default.
    pub fn set_back(&self, cell: &Cell, knob: usize) -> Cell {
        with(cell, knob, self.default[knob])
    }
}

fn with(cell: &Cell, at: usize, value: usize) -> Cell {
    let mut other = cell.clone();
    other[at] = value;
    other
}

/// So many values in shuffled order, each about equally often.
fn balanced(values: usize, count: usize, rng: &mut SplitMix64) -> Vec<usize> {
    let mut once: Vec<usize> = (0..values).collect();
    shuffle(&mut once, rng);
    let mut column: Vec<usize> = once.iter().copied().cycle().take(count).collect();
    shuffle(&mut column, rng);
    column
}
