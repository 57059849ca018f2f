//! The course of a race: what ran, what each knob seems to do, and what is left open. All of it is estimated from trials that
//! the race chose, so none of it is a verdict.

use std::collections::BTreeMap;

use systems::{Point, Value};

use super::{Failing, Favourite, Heat, Hunt, KnobEffect, LeftOpen, PairEffect, Tried};
use crate::figures::{has_too_many_errors, log_figure, measured};
use crate::findings::Ratio;
use crate::observation::{Observation, Outcome};
use crate::search::{Cell, Race, Round, Shown, Stage};

/// How many standard errors an interval extends to each side.
const SURE: f64 = 1.96;

/// How many standard errors better than expected another setting may be. The model leaves out what three knobs do only together, so 1.96
/// is too few. On 200 surfaces of that kind four held in 94.5 % of searches and five in 96.5 %; docs/statistics.md uses other surfaces.
const NOT_EXCLUDED: f64 = 5.0;

/// The fewest trials of a race that says so. On 60 surfaces of that kind the bound held in 57 with some 75 trials, and in 53 with 36. In
/// a race of one trial for each setting, the noise is hardly known.
const ENOUGH: usize = 70;

/// A race and what it has shown.
pub(super) struct Course<'a> {
    pub hunt: &'a Hunt<'a>,
    pub race: &'a Race<'a>,
    /// What all steps have shown, those of the proof among them.
    pub shown: &'a Shown,
}

impl Course<'_> {
    pub fn favourite(&self) -> Option<Favourite> {
        let (winner, default) = (self.race.winner()?, self.default());
        let standing = Some(&self.race.standing).filter(|standing| standing.trials(default) > 0)?;
        let estimate = standing.expected(&winner) - standing.expected(default);
        let error = SURE * standing.error(&winner).hypot(standing.error(default));
        // Without a setting that ran twice, nothing shows how noisy the trials are.
        let again = standing.tried().into_iter().any(|cell| cell != *default && standing.trials(&cell) > 1);
        let ratio = Ratio::of_logs(estimate, estimate - error, estimate + error);
        let interval = again.then_some((ratio.low, ratio.high));
        Some(Favourite { point: self.hunt.space.point(&winner), ratio: ratio.estimate, interval })
    }

    fn default(&self) -> &Cell {
        &self.hunt.space.lattice.default
    }

    /// The settings that ran, in the order of their first steps.
    fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for cell in self.hunt.search.steps.iter().flat_map(|step| &step.cells) {
            if !cells.contains(cell) {
                cells.push(cell.clone());
            }
        }
        cells
    }

    pub fn tried(&self) -> Vec<Tried> {
        let Hunt { planned, search, space, observations } = self.hunt;
        // By setting, the trials, those that failed, and those of the proof.
        let mut trials: BTreeMap<Cell, (u32, u32, u32)> = BTreeMap::new();
        let unit = &planned.workload.about().unit;
        // By figure and setting, the logarithm of each round.
        let mut logs: Vec<BTreeMap<(Cell, u32), f64>> = vec![BTreeMap::new(); planned.figures.iter().count()];
        for (trial, m) in measured(planned, observations.iter().copied()) {
            let Some(cell) = space.cell(&trial.scenario) else { continue };
            let (all, failed, fresh) = trials.entry(cell.clone()).or_default();
            *all += 1;
            *failed += u32::from(m.is_none_or(has_too_many_errors));
            let step = search.steps.get(trial.round as usize);
            *fresh += u32::from(step.is_some_and(|step| step.stage == Stage::Proof));
            for (figure, logs) in planned.figures.iter().zip(&mut logs).filter(|_| m.is_some()) {
                let log = m.and_then(|m| log_figure(figure, unit, m));
                logs.extend(log.map(|log| ((cell.clone(), trial.round), log)));
            }
        }
        let ratio = |cell: &Cell, logs: &BTreeMap<(Cell, u32), f64>| {
            let of_both = logs.iter().filter(|((other, _), _)| other == cell);
            let beside = of_both
                .filter_map(|((_, round), log)| Some(log - logs.get(&(self.default().clone(), *round))?));
            stats::median(beside).map(f64::exp)
        };
        let describe = |cell: Cell| {
            let (all, failed, fresh) = trials.get(&cell).copied().unwrap_or_default();
            let ratios = logs.iter().map(|logs| ratio(&cell, logs)).collect();
            Tried { point: space.point(&cell), trials: all, failed, fresh, ratios, keeps: self.keeps(&cell) }
        };
        self.cells().into_iter().filter(|cell| trials.contains_key(cell)).map(describe).collect()
    }

    /// Whether a setting kept all limits in the median of its rounds.
    fn keeps(&self, cell: &Cell) -> bool {
        let rooms = |limit: &Vec<crate::search::Figures>| {
            stats::median(limit.iter().filter_map(|figures| figures.get(cell).copied()))
        };
        self.shown.limits.iter().all(|limit| rooms(limit).is_some_and(|room| room > 0.0))
    }

    pub fn heats(&self, raced: &[Round]) -> Vec<Heat> {
        let place: BTreeMap<Cell, usize> = self.cells().into_iter().zip(0..).collect();
        let mut heats: Vec<Heat> = Vec::new();
        for (first, step) in raced.iter().enumerate() {
            if first > 0 && raced[first - 1].heat == step.heat {
                continue;
            }
            let after = first + raced[first..].iter().take_while(|other| other.heat == step.heat).count();
            let settings = step.cells.iter().filter(|cell| *cell != self.default());
            let Hunt { search, space, .. } = self.hunt;
            let best =
                Race::new(&space.lattice, &search.terms, &raced[..after], &self.shown.until(after)).best();
            heats.push(Heat {
                stage: step.stage,
                rounds: (after - first) as u32,
                settings: settings.map(|cell| (place[cell], self.ratio_in(first..after, cell))).collect(),
                best: place.get(&best).copied().unwrap_or(0),
            });
        }
        heats
    }

    /// How many times better a setting is than the default in these steps.
    fn ratio_in(&self, steps: std::ops::Range<usize>, cell: &Cell) -> Option<f64> {
        let rounds = self.shown.figures[steps].iter();
        let beside = rounds.filter_map(|figures| Some(figures.get(cell)? - figures.get(self.default())?));
        stats::median(beside).map(f64::exp)
    }

    pub fn knobs(&self) -> Vec<KnobEffect> {
        let (Hunt { search, space, .. }, standing) = (self.hunt, &self.race.standing);
        let mut knobs: Vec<(f64, KnobEffect)> = Vec::new();
        for (at, (knob, values)) in space.knobs.iter().enumerate() {
            let of_default = standing.alone(at, self.default()[at]);
            let ratio = |(place, value): (usize, &Value)| {
                (value.clone(), (standing.alone(at, place) - of_default).exp())
            };
            let strength = standing.strength(at);
            knobs.push((
                strength,
                KnobEffect {
                    knob: knob.clone(),
                    values: values.iter().enumerate().map(ratio).collect(),
                    flat: strength < search.terms.threshold,
                },
            ));
        }
        knobs.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        knobs.into_iter().map(|(_, knob)| knob).collect()
    }

    pub fn together(&self) -> Option<PairEffect> {
        let (space, standing) = (self.hunt.space, &self.race.standing);
        let [first, second, ..] = standing.strongest()[..] else { return None };
        let of_default = standing.expected(self.default());
        // The race tries the pairs beside its best setting.
        let around = self.race.winner().unwrap_or_else(|| self.default().clone());
        let rows = space.lattice.pairs(&around, first, second);
        let rows: Vec<&[Cell]> = rows.chunks(space.knobs[second].1.len()).collect();
        let ratio = |cell: &Cell| (standing.expected(cell) - of_default).exp();
        let map = |row: &&[Cell]| row.iter().map(ratio).collect();
        let ran = |row: &&[Cell]| row.iter().map(|cell| standing.trials(cell) > 0).collect();
        Some(PairEffect {
            first: space.knobs[first].0.clone(),
            second: space.knobs[second].0.clone(),
            ratios: rows.iter().map(map).collect(),
            tried: rows.iter().map(ran).collect(),
        })
    }

    pub fn failing(&self) -> Vec<Failing> {
        let (Hunt { space, observations, .. }, cells) = (self.hunt, self.cells());
        let reason = |(knob, value): (usize, usize)| {
            let with =
                |o: &&&Observation| space.cell(&o.trial.scenario).is_some_and(|cell| cell[knob] == value);
            match &observations.iter().find(with)?.outcome {
                Outcome::Failed(failure) => Some(failure.reason.clone()),
                Outcome::Measured(_) => None,
            }
        };
        let with = |knob: usize, value: usize| cells.iter().filter(|cell| cell[knob] == value).count() as u32;
        let describe = |(knob, value): &(usize, usize)| Failing {
            knob: space.knobs[*knob].0.clone(),
            value: space.knobs[*knob].1[*value].clone(),
            settings: with(*knob, *value),
            reason: reason((*knob, *value)).unwrap_or_default(),
        };
        let mut values = self.race.hopeless.clone();
        // A race waits for a second setting that fails with the same value. With one knob there is none.
        if let [_] = space.knobs[..] {
            let fails = |cell: &&Cell| {
                self.race.standing.trials(cell) == 0
                    && self.shown.failed.contains(*cell)
                    && *cell != self.default()
            };
            values.extend(cells.iter().filter(fails).map(|cell| (0, cell[0])));
        }
        values.iter().map(describe).collect()
    }

    /// How much better than the advised setting another may be.
    pub fn left_open(&self, advised: &Point) -> Option<LeftOpen> {
        let standing = &self.race.standing;
        if standing.tried().iter().map(|cell| standing.trials(cell)).sum::<usize>() < ENOUGH {
            return None;
        }
        let advised = self.hunt.space.cell_of(advised)?;
        // What the race gave up because of a value that fails is among them: that value may fail only beside another.
        let others = self.race.others(&advised);
        let hopes: Vec<f64> =
            others.iter().map(|cell| self.race.hope(cell, &advised, NOT_EXCLUDED)).collect();
        let threshold = self.hunt.search.terms.threshold;
        Some(LeftOpen {
            examined: (!self.race.sees_all()).then_some(hopes.len()),
            settings: hopes.iter().filter(|hope| **hope > threshold).count(),
            up_to: hopes.iter().copied().reduce(f64::max)?.max(0.0).exp(),
        })
    }
}

/// The settings that no other beats in all figures, as positions. Empty if there is one figure only.
pub(super) fn front(tried: &[Tried]) -> Vec<usize> {
    let all = |one: &Tried| one.ratios.iter().copied().collect::<Option<Vec<f64>>>().filter(|_| one.keeps);
    let ratios: Vec<Option<Vec<f64>>> = tried.iter().map(all).collect();
    let beats = |a: &[f64], b: &[f64]| a != b && a.iter().zip(b).all(|(a, b)| a >= b);
    let beaten = |one: &Vec<f64>| ratios.iter().flatten().any(|other| beats(other, one));
    let on_front =
        |(_, one): &(usize, &Option<Vec<f64>>)| one.as_ref().is_some_and(|one| one.len() > 1 && !beaten(one));
    ratios.iter().enumerate().filter(on_front).map(|(at, _)| at).collect()
}
