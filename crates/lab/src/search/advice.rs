//! What a search advises: the setting, how much better it is than the default, and what each knob contributes.

use serde::Serialize;
use stats::Verdict;
use systems::{Point, Value};

use super::race::{Stage, untried};
use super::standing::Standing;
use super::{Space, Step, figures};
use crate::findings::{By, Judged, Ratio, judge};
use crate::observation::{Observation, Scenario};
use crate::plan::Planned;

/// The answer of a search that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The knobs of the advised setting: the winner's if it is certainly better than the default, otherwise the default's.
    pub point: Point,
    /// The knobs of the setting that won the race. It is never the default.
    pub winner: Point,
    /// How many times better the winner is than the default, in the fresh rounds. None if they show nothing.
    pub gain: Option<Ratio>,
    /// Whether the gain is a lower bound, because the generator held the winner back.
    pub at_least: bool,
    /// The verdict on the winner beside the default.
    pub verdict: Verdict,
    /// What each knob contributes in which the winner differs from the default. Empty if there was no time for it.
    pub contributions: Vec<Contribution>,
    /// Knobs that the winner has at the default, and whose values hardly differed in the race. That is estimated, not proven.
    pub flat: Vec<String>,
    /// The number of settings in the space.
    pub settings: usize,
    /// How many of them never ran.
    pub untried: usize,
    /// The trials of the race.
    pub raced: u32,
    /// The fresh rounds.
    pub rounds: u32,
}

/// What one knob of the winner contributes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// The knob.
    pub knob: String,
    /// The winner's value.
    pub value: Value,
    /// How many times better the winner is than the winner with this knob at its default. None if the rounds show nothing.
    pub ratio: Option<Ratio>,
    /// The verdict on it.
    pub verdict: Verdict,
}

impl Advice {
    /// Whether the winner is advised.
    pub fn changes(&self) -> bool {
        self.verdict == Verdict::Faster
    }
}

/// The answer of an experiment's search. None if it has not ended, or ended without a winner.
pub fn advice(planned: &Planned, observations: &[Observation]) -> Option<Advice> {
    let (search, space) = (planned.search.as_ref()?, Space::of(&planned.setup)?);
    let from = search.steps.iter().position(|step| step.stage == Stage::Proof)?;
    let proof = &search.steps[from];
    let fresh =
        |o: &&Observation| o.trial.scenario.experiment == planned.name && o.trial.round as usize >= from;
    let seen: Vec<&Observation> = observations.iter().filter(fresh).collect();
    let scenarios: Vec<Scenario> = proof.cells.iter().filter_map(|cell| space.scenario(cell)).collect();
    // The proof has a fixed design, so a part of it proves nothing.
    let planned_trials: usize = search.steps[from..].iter().map(|step| step.cells.len()).sum();
    if seen.len() < planned_trials || scenarios.len() < proof.cells.len() || scenarios.len() < 2 {
        return None;
    }
    let winner = proof.cells.get(1)?;
    let changed = space.lattice.changed(winner);
    let view = Planned { scenarios, ..planned.clone() };
    let won = judge(&view, &seen, &[(1, 0, By::System)]).pop()?;
    let contributions = contributions(&space, proof, &changed, &won, |asked| judge(&view, &seen, asked));
    let standing = Standing::of(&space.lattice, &figures(planned, &space, search, observations)[..from]);
    let is_flat = |at: &usize| !changed.contains(at) && standing.strength(*at) < search.terms.threshold;
    let flat = (0..space.knobs.len()).filter(is_flat).map(|at| space.knobs[at].0.clone()).collect();
    let advised = if won.verdict == Verdict::Faster { winner } else { &space.lattice.default };
    let raced =
        observations.iter().filter(|o| o.trial.scenario.experiment == planned.name && !fresh(o)).count();
    Some(Advice {
        point: space.point(advised),
        winner: space.point(winner),
        gain: won.ratio,
        at_least: won.at_least,
        verdict: won.verdict,
        contributions,
        flat,
        settings: space.lattice.size(),
        untried: untried(&space.lattice, &search.steps),
        raced: raced as u32,
        rounds: (search.steps.len() - from) as u32,
    })
}

/// What each changed knob contributes. If there is only one, it contributes everything.
fn contributions(
    space: &Space,
    proof: &Step,
    changed: &[usize],
    won: &Judged,
    judge: impl Fn(&[(usize, usize, By)]) -> Vec<Judged>,
) -> Vec<Contribution> {
    let winner = &proof.cells[1];
    let one = |at: usize, judged: Judged| Contribution {
        knob: space.knobs[at].0.clone(),
        value: space.knobs[at].1[winner[at]].clone(),
        ratio: judged.ratio,
        verdict: judged.verdict,
    };
    if let [only] = changed {
        return vec![one(*only, won.clone())];
    }
    let without = |at: &usize| {
        let back = space.lattice.set_back(winner, *at);
        let place = proof.cells.iter().skip(2).position(|cell| *cell == back)?;
        Some((*at, (1, place + 2, By::Knob(space.knobs[*at].0.clone()))))
    };
    let (knobs, asked): (Vec<usize>, Vec<_>) = changed.iter().filter_map(without).unzip();
    knobs.into_iter().zip(judge(&asked)).map(|(at, judged)| one(at, judged)).collect()
}
