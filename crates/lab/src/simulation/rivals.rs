//! Other ways to search, at equal trials, for the table of docs/statistics.md. They are what is usual, in their simplest form:
//! settings at random, a race in blocks (López-Ibáñez and others, "The irace package", 2016), and a forest of regression trees
//! that chooses what may be better (Hutter, Hoos and Leyton-Brown, "Sequential model-based optimization", LION 2011). They answer
//! with what looks best. They see the noise without the machine's drift, which favours them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use stats::{Disturbances, Noise, SplitMix64};

use super::search::{FIRST_SEED, NOISES, SIZES, Shape, TRIALS};
use super::surface::Surface;
use crate::search::Cell;

/// A way to search: which setting it takes for the best.
type Rival = fn(&mut Lab<'_>) -> Cell;

/// The ways, by their names.
const WAYS: [(&str, Rival); 3] = [
    ("random settings, then halving", random),
    ("racing in blocks, as irace", racing),
    ("a regression forest, as SMAC", forest),
];

/// How many surfaces each way searches.
const OF_EACH: u64 = 50;

/// How often each way comes within 5 % of the best, by shape, with 3.3 times the noise.
pub(super) fn found() -> &'static [(&'static str, Vec<f64>)] {
    static FOUND: OnceLock<Vec<(&str, Vec<f64>)>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let of_way =
            |(name, way): &(&'static str, Rival)| (*name, shapes().map(|s| share(*way, s)).collect());
        WAYS.iter().map(of_way).collect()
    })
}

/// The shapes of the table.
pub(super) fn shapes() -> impl Iterator<Item = Shape> {
    std::iter::once(Shape::Sum).chain(Shape::STRANGE)
}

fn share(way: Rival, shape: Shape) -> f64 {
    let close = |seed: &u64| {
        let surface = Surface::shaped(shape, &SIZES, *seed);
        let found = way(&mut Lab::new(&surface, NOISES[1].1, *seed));
        1.0 - (surface.worth(&found) - surface.best()).exp() <= 0.05
    };
    (FIRST_SEED..FIRST_SEED + OF_EACH).filter(close).count() as f64 / OF_EACH as f64
}

/// What a way may measure.
struct Lab<'a> {
    surface: &'a Surface,
    cells: Vec<Cell>,
    noise: Disturbances,
    rng: SplitMix64,
    /// The logarithms of what each setting has shown. A setting that fails shows very little.
    seen: BTreeMap<Cell, Vec<f64>>,
    left: usize,
}

/// What a failed trial counts as.
const FAILED: f64 = -3.0;

impl<'a> Lab<'a> {
    fn new(surface: &'a Surface, noise: Noise, seed: u64) -> Self {
        let noise = Disturbances::new(Noise { drift: 0.0, correlation: 0.0, ..noise }, seed + 1_000_000);
        let rng = SplitMix64::new(seed + 2_000_000);
        Self { surface, cells: surface.cells(), noise, rng, seen: BTreeMap::new(), left: TRIALS }
    }

    fn measure(&mut self, cell: &Cell) {
        if self.left > 0 {
            self.left -= 1;
            let figure = (self.surface.worth(cell) - self.noise.next_log()).max(FAILED);
            self.seen.entry(cell.clone()).or_default().push(figure);
        }
    }

    fn any(&mut self) -> Cell {
        self.cells[self.rng.below(self.cells.len() as u64) as usize].clone()
    }

    fn mean(&self, cell: &Cell) -> f64 {
        let seen = &self.seen[cell];
        seen.iter().sum::<f64>() / seen.len() as f64
    }

    /// Sorts settings, the best first.
    fn rank(&self, cells: &mut [Cell]) {
        cells.sort_by(|a, b| self.mean(b).total_cmp(&self.mean(a)));
    }

    fn best_of(&self, mut cells: Vec<Cell>) -> Cell {
        self.rank(&mut cells);
        cells.remove(0)
    }
}

/// A third of the trials for as many settings, then the better half again and again.
fn random(lab: &mut Lab<'_>) -> Cell {
    let mut alive: Vec<Cell> = (0..TRIALS / 3).map(|_| lab.any()).collect();
    alive.sort();
    alive.dedup();
    alive.iter().for_each(|cell| lab.measure(cell));
    while alive.len() > 1 {
        lab.rank(&mut alive);
        alive.truncate(alive.len().div_ceil(2));
        let rounds = (lab.left / alive.len() / 3).max(1);
        (0..rounds).for_each(|_| alive.iter().for_each(|cell| lab.measure(cell)));
    }
    alive.remove(0)
}

/// Four races. In each, settings drawn around the best of the last one run in blocks, and those that are certainly behind leave.
fn racing(lab: &mut Lab<'_>) -> Cell {
    const RACES: usize = 4;
    let mut elite: Vec<Cell> = Vec::new();
    for race in 0..RACES {
        let until = TRIALS * (RACES - 1 - race) / RACES;
        let mut alive = elite.clone();
        while alive.len() < 14 {
            let cell = if elite.is_empty() { lab.any() } else { near(lab, &elite, race) };
            alive.push(cell);
        }
        alive.sort();
        alive.dedup();
        let mut blocks = 0;
        while lab.left >= until + alive.len() && (alive.len() > 3 || blocks < 3) {
            alive.iter().for_each(|cell| lab.measure(cell));
            blocks += 1;
            if blocks >= 3 {
                lab.rank(&mut alive);
                let (best, error) = (lab.mean(&alive[0]), 0.08 / f64::from(blocks).sqrt());
                alive.retain(|cell| best - lab.mean(cell) <= 1.65 * 2.0_f64.sqrt() * error);
            }
        }
        lab.rank(&mut alive);
        alive.truncate(3);
        elite = alive;
    }
    lab.best_of(elite)
}

/// A setting near one of the best, nearer in later races.
fn near(lab: &mut Lab<'_>, elite: &[Cell], race: usize) -> Cell {
    let knobs = lab.surface.knobs();
    let mut cell = elite[lab.rng.below(elite.len() as u64) as usize].clone();
    for (at, (values, ordered)) in cell.iter_mut().zip(knobs) {
        let width = values as f64 / (2.0 * (race + 1) as f64);
        if ordered {
            let moved = *at as f64 + width * lab.rng.normal();
            *at = moved.round().clamp(0.0, values as f64 - 1.0) as usize;
        } else if lab.rng.unit() < 1.0 / (race + 1) as f64 {
            *at = lab.rng.below(values as u64) as usize;
        }
    }
    cell
}

/// A tree: where it splits, or what it expects.
enum Tree {
    Leaf(f64),
    Split(usize, usize, Box<(Tree, Tree)>),
}

impl Tree {
    /// Splits a knob at random, where that leaves the least variance of some draws.
    fn grown(data: &[(&Cell, f64)], sizes: &[usize], rng: &mut SplitMix64) -> Self {
        let mean = |part: &[(&Cell, f64)]| part.iter().map(|one| one.1).sum::<f64>() / part.len() as f64;
        let squares =
            |part: &[(&Cell, f64)]| part.iter().map(|one| (one.1 - mean(part)).powi(2)).sum::<f64>();
        let mut best: Option<(f64, usize, usize)> = None;
        for _ in 0..if data.len() >= 6 { 8 } else { 0 } {
            let knob = rng.below(sizes.len() as u64) as usize;
            let at = 1 + rng.below(sizes[knob] as u64 - 1) as usize;
            let (below, above): (Vec<_>, Vec<_>) = data.iter().partition(|one| one.0[knob] < at);
            if below.len() >= 2 && above.len() >= 2 {
                let left = squares(&below) + squares(&above);
                if best.is_none_or(|(least, ..)| left < least) {
                    best = Some((left, knob, at));
                }
            }
        }
        let Some((_, knob, at)) = best else { return Self::Leaf(mean(data)) };
        let (below, above): (Vec<_>, Vec<_>) = data.iter().partition(|one| one.0[knob] < at);
        Self::Split(knob, at, Box::new((Self::grown(&below, sizes, rng), Self::grown(&above, sizes, rng))))
    }

    fn expects(&self, cell: &Cell) -> f64 {
        match self {
            Self::Leaf(mean) => *mean,
            Self::Split(knob, at, both) => {
                if cell[*knob] < *at {
                    both.0.expects(cell)
                } else {
                    both.1.expects(cell)
                }
            }
        }
    }
}

/// Measures four settings at a time: the best so far, two that the forest hopes most of, and one at random.
fn forest(lab: &mut Lab<'_>) -> Cell {
    const TREES: usize = 10;
    for _ in 0..24 {
        let cell = lab.any();
        lab.measure(&cell);
    }
    let sizes: Vec<usize> = lab.surface.knobs().into_iter().map(|(values, _)| values).collect();
    let mut hopes: Vec<(f64, f64, Cell)> = Vec::new();
    while lab.left > 0 {
        let data: Vec<(&Cell, f64)> =
            lab.seen.iter().flat_map(|(cell, seen)| seen.iter().map(move |figure| (cell, *figure))).collect();
        let mut rng = SplitMix64::new(lab.left as u64);
        let mut trees = Vec::new();
        for _ in 0..TREES {
            let drawn: Vec<_> = data.iter().map(|_| data[rng.below(data.len() as u64) as usize]).collect();
            trees.push(Tree::grown(&drawn, &sizes, &mut rng));
        }
        let hope = |cell: &Cell| {
            let expected: Vec<f64> = trees.iter().map(|tree| tree.expects(cell)).collect();
            let mean = expected.iter().sum::<f64>() / TREES as f64;
            let spread = expected.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / TREES as f64;
            (mean + spread.sqrt(), mean, cell.clone())
        };
        hopes = lab.cells.iter().map(hope).collect();
        hopes.sort_by(|a, b| b.0.total_cmp(&a.0));
        let tried: Vec<Cell> = lab.seen.keys().cloned().collect();
        let next = [lab.best_of(tried), hopes[0].2.clone(), hopes[1].2.clone(), lab.any()];
        next.iter().for_each(|cell| lab.measure(cell));
    }
    // Of the settings that ran, the one that the forest expects most of.
    hopes.retain(|(.., cell)| lab.seen.contains_key(cell));
    hopes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a setting ran").2
}
