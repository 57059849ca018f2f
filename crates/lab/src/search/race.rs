//! The race: which settings run in the next round, and when the winner is proven.
//!
//! The stages are those of [`Stage`]. All but the proof consist of *heats*. Each round of a heat drops the settings that are
//! certainly behind (Kim and Nelson, "A fully sequential procedure for indifference-zone selection in simulation", ACM
//! TOMACS 11, 2001), and at least half of them (Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed
//! bandits", ICML 2013). The default runs in every round, so that rounds can be compared.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::lattice::{Cell, Lattice};
use super::standing::{Shown, Standing};

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

/// A setting so many standard errors behind the leader is dropped.
const BEHIND: f64 = 2.0;

/// A rival is a setting that would beat the best if it were so many standard errors better than expected.
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

/// What a setting loses that is expected to break a limit: more than any other setting can gain. The more it breaks, the
/// more it loses, so that a race among such settings leads to those that keep it.
const BROKEN: f64 = 10.0;

/// How many standard errors the winner's room below each limit must have, if any setting has them.
const SAFE: f64 = 1.0;

/// How many rounds may pass until the default and another setting have figures.
const STARTS: usize = 2;

/// How many settings with a value must have failed, and none succeeded, until the value is not tried again.
const HOPELESS: usize = 2;

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
pub struct Round {
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
/// everything else has no figure. `shown` has one entry for each of the steps.
pub fn next(lattice: &Lattice, terms: &Terms, steps: &[Round], shown: &Shown) -> Vec<Round> {
    Race::new(lattice, terms, steps, shown).next()
}

/// What a race has shown so far, and what it may still do.
pub struct Race<'a> {
    lattice: &'a Lattice,
    terms: &'a Terms,
    steps: &'a [Round],
    /// What is known of the deciding figure.
    pub standing: Standing,
    /// What is known of the room below each limit.
    limits: Vec<Standing>,
    /// Values with which every setting failed, as knobs and positions.
    pub hopeless: BTreeSet<(usize, usize)>,
}

impl<'a> Race<'a> {
    /// Weighs up these steps. `shown` has one entry for each.
    pub fn new(lattice: &'a Lattice, terms: &'a Terms, steps: &'a [Round], shown: &Shown) -> Self {
        let standing = Standing::of(lattice, &shown.figures);
        let limits = shown.limits.iter().map(|rooms| Standing::of(lattice, rooms)).collect();
        let hopeless = hopeless(lattice, steps, &standing, &shown.failed);
        Self { lattice, terms, steps, standing, limits, hopeless }
    }

    fn next(&self) -> Vec<Round> {
        let Some(last) = self.steps.last() else { return vec![self.first()] };
        if last.stage == Stage::Proof {
            return Vec::new();
        }
        let tried = self.standing.tried();
        if !tried.contains(&self.lattice.default) || tried.len() < 2 {
            // One bad start of the default, or of all others, may be chance.
            return if self.steps.len() < STARTS { vec![last.clone()] } else { Vec::new() };
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

    fn first(&self) -> Round {
        let fitting = self.left().saturating_sub(self.terms.reserved()).max(2);
        let all = self.lattice.size();
        let cells = if all <= WHOLE && all <= fitting {
            self.lattice.all()
        } else {
            self.lattice.spread(DOZEN.min(fitting - 1), self.terms.seed)
        };
        Round { stage: Stage::Spread, heat: 0, cells }
    }

    /// How good a setting is taken to be.
    pub fn worth(&self, cell: &Cell) -> f64 {
        self.worth_with(cell, 0.0)
    }

    /// How good a setting may be, if each of its figures is so many standard errors better than expected.
    pub fn worth_with(&self, cell: &Cell, errors: f64) -> f64 {
        let may =
            |of: &Standing| of.expected(cell) + if errors == 0.0 { 0.0 } else { errors * of.error(cell) };
        let changed = self.lattice.changed(cell).len() as f64;
        may(&self.standing) - PER_KNOB * self.terms.threshold * changed - self.lost(may)
    }

    /// What a setting loses because it breaks limits, if the room below each is this.
    fn lost(&self, room: impl Fn(&Standing) -> f64) -> f64 {
        let missing = self.limits.iter().map(|limit| (-room(limit)).max(0.0));
        missing.map(|missing| if missing > 0.0 { BROKEN * (1.0 + missing) } else { 0.0 }).sum()
    }

    /// How much better than `advised` another setting may be, as a logarithm: what the race expects, and so many standard errors
    /// of both. Neither what a knob does nor what a pair of knobs does is taken for known.
    pub fn hope(&self, cell: &Cell, advised: &Cell, errors: f64) -> f64 {
        let standing = &self.standing;
        let unsure = standing.whole_error(cell).hypot(standing.whole_error(advised));
        let lost = self.lost(|limit| limit.expected(cell) + errors * limit.error(cell));
        standing.expected(cell) - standing.expected(advised) + errors * unsure - lost
    }

    /// Whether a setting keeps the limits with some certainty.
    fn is_safe(&self, cell: &Cell) -> bool {
        self.limits.iter().all(|limit| limit.expected(cell) > SAFE * limit.error(cell))
    }

    /// Sorts settings, the best first.
    fn rank(&self, cells: &mut [Cell], worth: impl Fn(&Cell) -> f64) {
        // Ties are decided by the settings themselves, so that the order of trials does not matter.
        cells.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then_with(|| a.cmp(b)));
    }

    /// The best setting that has a figure.
    pub fn best(&self) -> Cell {
        let mut tried = self.standing.tried();
        self.rank(&mut tried, |cell| self.worth(cell));
        tried.into_iter().next().unwrap_or_else(|| self.lattice.default.clone())
    }

    /// Another round of the heat, if more than one setting is left in it.
    fn same_heat(&self, last: &Round) -> Option<Round> {
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
    fn next_heat(&self, heat: u32) -> Option<Round> {
        let best = self.best();
        let (climbs, paired) = (self.heats(Stage::Climb), self.heats(Stage::Pairs) > 0);
        if paired || climbs < CLIMBS {
            let beside = self.untried(self.lattice.neighbours(&best, &self.standing.tried()), BESIDE);
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
        match self.standing.strongest()[..] {
            [first, second, ..] => self.lattice.pairs(best, first, second),
            _ => Vec::new(),
        }
    }

    /// Whether a setting has a value that always failed.
    fn is_hopeless(&self, cell: &Cell) -> bool {
        self.hopeless.iter().any(|(knob, value)| cell[*knob] == *value)
    }

    /// The most promising of the settings that never ran.
    fn untried(&self, mut cells: Vec<Cell>, most: usize) -> Vec<Cell> {
        cells.retain(|cell| {
            !self.is_hopeless(cell) && !self.steps.iter().any(|step| step.cells.contains(cell))
        });
        self.rank(&mut cells, |cell| self.worth(cell));
        cells.truncate(most);
        cells
    }

    /// The settings that may well be better than the best.
    fn rivals(&self, best: &Cell) -> Vec<Cell> {
        let mut cells = self.better_by(best, HOPE);
        self.rank(&mut cells, |cell| self.worth_with(cell, HOPE));
        cells.truncate(RIVALS);
        cells
    }

    /// The settings that are better than the best, if they are so many standard errors better than expected. A setting that failed
    /// is not among them.
    fn better_by(&self, best: &Cell, errors: f64) -> Vec<Cell> {
        let bar = self.worth(best);
        let mut cells = self.others(best);
        cells.retain(|cell| *cell != self.lattice.default && !self.is_hopeless(cell));
        cells.retain(|cell| self.worth_with(cell, errors) > bar);
        cells
    }

    /// Whether the space is small enough to look at all its settings.
    pub fn sees_all(&self) -> bool {
        self.lattice.size() <= SEEN
    }

    /// The settings other than `best` that are judged: all that have not failed. In a space that is too large, those that ran or are
    /// beside `best`.
    pub fn others(&self, best: &Cell) -> Vec<Cell> {
        let tried = self.standing.tried();
        let mut cells =
            if self.sees_all() { self.lattice.all() } else { self.lattice.neighbours(best, &tried) };
        if !self.sees_all() {
            cells.extend(tried);
            cells.sort();
            cells.dedup();
        }
        let ran: BTreeSet<&Cell> = self.steps.iter().flat_map(|step| &step.cells).collect();
        let failed = |cell: &Cell| self.standing.trials(cell) == 0 && ran.contains(cell);
        cells.retain(|cell| cell != best && !failed(cell));
        cells
    }

    /// A heat of the default, the best, and others.
    fn heat(&self, stage: Stage, heat: u32, best: Cell, others: Vec<Cell>) -> Round {
        let best = Some(best).filter(|best| *best != self.lattice.default);
        self.step(stage, heat, best.into_iter().chain(others))
    }

    /// A round of the default and others.
    fn step(&self, stage: Stage, heat: u32, others: impl IntoIterator<Item = Cell>) -> Round {
        let default = self.lattice.default.clone();
        Round { stage, heat, cells: std::iter::once(default).chain(others).collect() }
    }

    /// All rounds of the proof. Their number follows from the race alone, and each is a fresh round. If the default seems to
    /// be the best, the best of the others is compared with it.
    fn proof(&self, heat: u32) -> Vec<Round> {
        let Some(winner) = self.winner() else { return Vec::new() };
        let mut cells = vec![winner.clone()];
        let changed = self.lattice.changed(&winner);
        let without = changed.iter().map(|knob| self.lattice.set_back(&winner, *knob));
        let without: Vec<Cell> = without.filter(|_| changed.len() > 1).collect();
        let more = [without.iter().cloned().chain(self.simpler(&winner)).collect(), without];
        if let Some(more) =
            more.into_iter().find(|more| self.is_sure(&winner, self.left() / (more.len() + 2)))
        {
            cells.extend(more);
        }
        let rounds = (self.left() / (cells.len() + 1)).clamp(FEWEST_PROOFS, MOST_PROOFS);
        vec![self.step(Stage::Proof, heat, cells); rounds]
    }

    /// The winner with more and more knobs set back to their defaults, down to the last: first the one that seems to contribute
    /// least. With one knob set back it is among the settings that show what each contributes.
    fn simpler(&self, winner: &Cell) -> Vec<Cell> {
        let mut chain = vec![winner.clone()];
        while let Some(last) = chain.last() {
            let changed = self.lattice.changed(last);
            let mut backs: Vec<Cell> =
                changed.iter().map(|knob| self.lattice.set_back(last, *knob)).collect();
            self.rank(&mut backs, |cell| self.standing.expected(cell));
            match backs.into_iter().next() {
                Some(back) if changed.len() > 1 => chain.push(back),
                _ => break,
            }
        }
        chain.into_iter().skip(2).collect()
    }

    /// The best of the settings other than the default, if possible one that keeps the limits with some certainty.
    pub fn winner(&self) -> Option<Cell> {
        let mut others = self.standing.tried();
        others.retain(|cell| *cell != self.lattice.default);
        self.rank(&mut others, |cell| self.worth(cell));
        let safe = others.iter().find(|cell| self.is_safe(cell)).cloned();
        safe.or_else(|| others.into_iter().next())
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

/// The values with which several settings ran, and every one of them failed. A setting that failed counts against one of its
/// values only: against the one with which most settings failed.
fn hopeless(
    lattice: &Lattice,
    steps: &[Round],
    standing: &Standing,
    failed: &BTreeSet<Cell>,
) -> BTreeSet<(usize, usize)> {
    let ran: BTreeSet<&Cell> = steps.iter().flat_map(|step| &step.cells).collect();
    let fails = |cell: &Cell| standing.trials(cell) == 0 && failed.contains(cell);
    let values =
        lattice.knobs.iter().enumerate().flat_map(|(at, knob)| (0..knob.values).map(move |v| (at, v)));
    let with = |(at, value): (usize, usize)| ran.iter().copied().filter(move |cell| cell[at] == value);
    let mut left: Vec<(usize, usize)> = values
        .filter(|(at, value)| *value != lattice.default[*at] && with((*at, *value)).all(fails))
        .collect();
    let mut found: BTreeSet<(usize, usize)> = BTreeSet::new();
    loop {
        let explained = |cell: &Cell| found.iter().any(|(at, value)| cell[*at] == *value);
        let open = |value: (usize, usize)| with(value).filter(|cell| !explained(cell)).count();
        let most = left.iter().copied().max_by_key(|value| open(*value));
        match most.filter(|value| open(*value) >= HOPELESS) {
            Some(value) => {
                left.retain(|other| *other != value);
                found.insert(value);
            }
            None => return found,
        }
    }
}

/// The number of settings of a space that never ran.
pub fn untried(lattice: &Lattice, steps: &[Round]) -> usize {
    let tried: BTreeSet<&Cell> = steps.iter().flat_map(|step| &step.cells).collect();
    lattice.size() - tried.len().min(lattice.size())
}
