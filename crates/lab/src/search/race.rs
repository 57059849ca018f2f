//! The race: which settings run in the next round, and when the winner is proven.
//!
//! The stages are those of [`Stage`]. All but the proof consist of *heats*. Each round of a heat drops the settings that are
//! certainly behind (Kim and Nelson, "A fully sequential procedure for indifference-zone selection in simulation", ACM
//! TOMACS 11, 2001), and at least half of them (Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed
//! bandits", ICML 2013). The default runs in every round, so that rounds can be compared.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::lattice::{Cell, Lattice};
use super::standing::{Figures, Standing};

/// Up to so many settings are all raced.
pub const WHOLE: usize = 24;

/// The settings beside the default with which the race of a larger space begins.
const DOZEN: usize = 12;

/// The most rounds of a heat.
const HEAT: usize = 2;

/// The most new settings of a heat that climbs.
const BESIDE: usize = 10;

/// The most new settings of a heat of pairs.
const PAIRED: usize = 16;

/// The most rivals of a heat.
const RIVALS: usize = 5;

/// How many heats climb before pairs are tried.
const CLIMBS: usize = 3;

/// How many standard errors are certainly behind.
const BEHIND: f64 = 2.0;

/// How many standard errors above its expectation a rival must be better than the best.
const HOPE: f64 = 1.5;

/// What each changed knob must bring, as a share of the threshold. Of settings that are equal, this prefers the one that
/// changes less.
const PER_KNOB: f64 = 0.1;

/// Rivals are looked for in the whole space if it has at most so many settings, and beside the best otherwise.
const SEEN: usize = 5000;

/// The fewest rounds of the proof.
pub const FEWEST_PROOFS: usize = 6;

/// The most rounds of the proof.
pub const MOST_PROOFS: usize = 36;

/// How many standard errors of the proof the expected gain must have before each contribution is shown, too.
const SURE: f64 = 5.0;

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To see all of a small space, or settings that fill a large one.
    Spread,
    /// To see what is beside the best.
    Climb,
    /// To see the values of the two strongest knobs together.
    Pairs,
    /// To see settings, tried or not, that may be better than the best.
    Rivals,
    /// To compare the winner, and the winner without each of its changes, with the default.
    Proof,
}

/// A round: what it is for, and the settings that run in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is for.
    pub stage: Stage,
    /// The number of its heat.
    pub heat: u32,
    /// The settings. The default is the first. In the proof the winner is the second.
    pub cells: Vec<Cell>,
}

/// What a race may spend, and what it takes for equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The number of trials.
    pub trials: usize,
    /// The logarithm of the smallest ratio that matters.
    pub threshold: f64,
    /// The seed of the settings that fill the space.
    pub seed: u64,
}

impl Terms {
    /// What is kept for the proof: a third, and enough for its fewest rounds of two settings.
    fn reserved(&self) -> usize {
        (self.trials / 3).max(2 * FEWEST_PROOFS)
    }
}

/// The rounds that come after these: one, or all rounds of the proof. None after the proof, and none if the default or
/// everything else has no figure. `figures` has one entry for each of the steps.
pub fn next(lattice: &Lattice, terms: &Terms, steps: &[Step], figures: &[Figures]) -> Vec<Step> {
    Race { lattice, terms, steps, standing: Standing::of(lattice, figures) }.next()
}

struct Race<'a> {
    lattice: &'a Lattice,
    terms: &'a Terms,
    steps: &'a [Step],
    standing: Standing,
}

impl Race<'_> {
    fn next(&self) -> Vec<Step> {
        let Some(last) = self.steps.last() else { return vec![self.first()] };
        if last.stage == Stage::Proof || self.standing.trials(&self.lattice.default) == 0 {
            return Vec::new();
        }
        let step = self.same_heat(last).or_else(|| self.next_heat(last.heat + 1));
        match step.filter(|step| step.cells.len() + self.terms.reserved() <= self.left()) {
            Some(step) => vec![step],
            None => self.proof(last.heat + 1),
        }
    }

    /// The number of trials that are not spent.
    fn left(&self) -> usize {
        let spent: usize = self.steps.iter().map(|step| step.cells.len()).sum();
        self.terms.trials.saturating_sub(spent)
    }

    fn first(&self) -> Step {
        let fitting = self.left().saturating_sub(self.terms.reserved()).max(2);
        let all = self.lattice.size();
        let cells = if all <= WHOLE && all <= fitting {
            self.lattice.all()
        } else {
            self.lattice.spread(DOZEN.min(fitting - 1), self.terms.seed)
        };
        Step { stage: Stage::Spread, heat: 0, cells }
    }

    /// How good a setting is taken to be.
    fn worth(&self, cell: &Cell) -> f64 {
        let changed = self.lattice.changed(cell).len() as f64;
        self.standing.expected(cell) - PER_KNOB * self.terms.threshold * changed
    }

    /// Sorts settings, the best first.
    fn rank(&self, cells: &mut [Cell], worth: impl Fn(&Cell) -> f64) {
        // Ties are decided by the settings themselves, so that the order of trials does not matter.
        cells.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then_with(|| a.cmp(b)));
    }

    /// The best setting that has a figure.
    fn best(&self) -> Cell {
        let mut tried = self.standing.tried();
        self.rank(&mut tried, |cell| self.worth(cell));
        tried.into_iter().next().unwrap_or_else(|| self.lattice.default.clone())
    }

    /// Another round of the heat, if more than one setting is left in it.
    fn same_heat(&self, last: &Step) -> Option<Step> {
        let mut cells = last.cells.clone();
        cells.retain(|cell| self.standing.trials(cell) > 0 && *cell != self.lattice.default);
        self.rank(&mut cells, |cell| self.worth(cell));
        let top = cells.first()?.clone();
        cells.truncate(cells.len().div_ceil(2));
        // After the very first round nothing is certainly behind, because no setting has shown its noise.
        cells.retain(|cell| {
            let error = self.standing.error(&top).hypot(self.standing.error(cell));
            self.worth(&top) - self.worth(cell) <= BEHIND * error || self.steps.len() < 2
        });
        let rounds = self.steps.iter().filter(|step| step.heat == last.heat).count();
        let open = rounds < HEAT && cells.len() > 1;
        open.then(|| self.step(last.stage, last.heat, cells))
    }

    /// The next heat: it climbs, tries the pairs once, climbs again, and at last tries rivals.
    fn next_heat(&self, heat: u32) -> Option<Step> {
        let best = self.best();
        let (climbs, paired) = (self.heats(Stage::Climb), self.heats(Stage::Pairs) > 0);
        if paired || climbs < CLIMBS {
            let beside = self.untried(self.lattice.neighbours(&best), BESIDE);
            if !beside.is_empty() {
                return Some(self.heat(Stage::Climb, heat, best, beside));
            }
        }
        if !paired {
            let pairs = self.untried(self.pairs(&best), PAIRED);
            if !pairs.is_empty() {
                return Some(self.heat(Stage::Pairs, heat, best, pairs));
            }
        }
        let rivals = self.rivals(&best);
        (!rivals.is_empty()).then(|| self.heat(Stage::Rivals, heat, best, rivals))
    }

    fn heats(&self, stage: Stage) -> usize {
        let mut heats: Vec<u32> =
            self.steps.iter().filter(|step| step.stage == stage).map(|step| step.heat).collect();
        heats.dedup();
        heats.len()
    }

    /// The settings that differ from the best in the two strongest knobs only.
    fn pairs(&self, best: &Cell) -> Vec<Cell> {
        let mut knobs: Vec<usize> = (0..self.lattice.knobs.len()).collect();
        knobs.sort_by(|a, b| self.standing.strength(*b).total_cmp(&self.standing.strength(*a)));
        match knobs[..] {
            [first, second, ..] => self.lattice.pairs(best, first, second),
            _ => Vec::new(),
        }
    }

    /// The most promising of the settings that never ran.
    fn untried(&self, mut cells: Vec<Cell>, most: usize) -> Vec<Cell> {
        cells.retain(|cell| !self.steps.iter().any(|step| step.cells.contains(cell)));
        self.rank(&mut cells, |cell| self.worth(cell));
        cells.truncate(most);
        cells
    }

    /// The settings that may well be better than the best. One that failed is not tried again.
    fn rivals(&self, best: &Cell) -> Vec<Cell> {
        let whole = self.lattice.size() <= SEEN;
        let mut cells = if whole { self.lattice.all() } else { self.lattice.neighbours(best) };
        if !whole {
            cells.extend(self.standing.tried());
            cells.sort();
            cells.dedup();
        }
        let bar = self.worth(best);
        let hope = |cell: &Cell| self.worth(cell) + HOPE * self.standing.error(cell);
        cells.retain(|cell| cell != best && *cell != self.lattice.default && hope(cell) > bar);
        let failed = |cell: &Cell| {
            self.standing.trials(cell) == 0 && self.steps.iter().any(|step| step.cells.contains(cell))
        };
        cells.retain(|cell| !failed(cell));
        self.rank(&mut cells, hope);
        cells.truncate(RIVALS);
        cells
    }

    /// A heat of the default, the best, and others.
    fn heat(&self, stage: Stage, heat: u32, best: Cell, others: Vec<Cell>) -> Step {
        let best = Some(best).filter(|best| *best != self.lattice.default);
        self.step(stage, heat, best.into_iter().chain(others))
    }

    /// A round of the default and others.
    fn step(&self, stage: Stage, heat: u32, others: impl IntoIterator<Item = Cell>) -> Step {
        let default = self.lattice.default.clone();
        Step { stage, heat, cells: std::iter::once(default).chain(others).collect() }
    }

    /// All rounds of the proof. Their number follows from the race alone, and each is a fresh round. If the default seems to
    /// be the best, the best of the others is compared with it.
    fn proof(&self, heat: u32) -> Vec<Step> {
        let mut others = self.standing.tried();
        others.retain(|cell| *cell != self.lattice.default);
        self.rank(&mut others, |cell| self.worth(cell));
        let Some(winner) = others.into_iter().next() else { return Vec::new() };
        let mut cells = vec![winner.clone()];
        let changed = self.lattice.changed(&winner);
        if changed.len() > 1 && self.is_sure(&winner, self.left() / (changed.len() + 2)) {
            cells.extend(changed.into_iter().map(|knob| self.lattice.set_back(&winner, knob)));
        }
        let rounds = (self.left() / (cells.len() + 1)).clamp(FEWEST_PROOFS, MOST_PROOFS);
        vec![self.step(Stage::Proof, heat, cells); rounds]
    }

    /// Whether so many rounds are enough for the verdict on the winner, so that there is time to show what each of its knobs
    /// contributes.
    fn is_sure(&self, winner: &Cell, rounds: usize) -> bool {
        let expected = |cell: &Cell| self.standing.expected(cell);
        let gain = (expected(winner) - expected(&self.lattice.default)).abs();
        let error = self.standing.noise * (2.0 / rounds.clamp(1, MOST_PROOFS) as f64).sqrt();
        rounds >= FEWEST_PROOFS && gain > SURE * error
    }
}

/// The number of settings of a space that never ran.
pub fn untried(lattice: &Lattice, steps: &[Step]) -> usize {
    let tried: BTreeSet<&Cell> = steps.iter().flat_map(|step| &step.cells).collect();
    lattice.size() - tried.len().min(lattice.size())
}
