//! What a search advises: the setting, how much better it is than the default, and what each knob contributes. Only the fresh
//! rounds of the proof count, and they are judged as every other comparison is.

use measurement::Measurement;
use serde::{Deserialize, Serialize};
use stats::{LEVEL, Location, Verdict};
use systems::{Point, Value};

use super::Hunt;
use crate::figures::{has_too_many_errors, measured};
use crate::findings::{By, Judged, Missing, Ratio, Withheld, judge};
use crate::observation::{Observation, Scenario};
use crate::plan::{Planned, View};
use crate::search::{Bounded, Cell, Limit, Round};

/// The answer of a search that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The knobs of the advised setting.
    pub point: Point,
    /// Why it is advised.
    pub because: Because,
    /// The knobs of the setting that won the race. It is never the default.
    pub winner: Point,
    /// The knobs of the winner that the advised setting leaves at their default.
    pub taken_back: Vec<String>,
    /// How many times better the winner is than the default, if a part of it is advised. None otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner_gain: Option<Ratio>,
    /// How many times better the advised setting is than the default, in the fresh rounds. If the default is advised, the
    /// winner instead. None if the rounds show nothing.
    pub gain: Option<Ratio>,
    /// Whether the gain is a lower bound, because the generator held the setting back.
    pub at_least: bool,
    /// Why the verdict is open although more rounds would not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// Why there is no gain, if one of the two settings has no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<Unmeasured>,
    /// The verdict on that setting beside the default.
    pub verdict: Verdict,
    /// What each knob contributes in which the winner differs from the default. Empty if there was no time for it.
    pub contributions: Vec<Contribution>,
    /// Each limit, and whether that setting and the default keep it.
    pub keeps: Vec<Keeps>,
    /// How many of the fresh trials of that setting failed or had too many errors.
    pub failed: u32,
}

/// Why a setting is advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// It is certainly better than the default, and keeps the limits.
    Better,
    /// It keeps the limits, which the default certainly breaks.
    KeepsLimits,
    /// It is the default, and the winner is not certainly better.
    NotBetter,
    /// It is the default, and the winner does not certainly keep the limits.
    BreaksLimits,
    /// It is the default, and fresh trials of the winner failed or had too many errors.
    Fails,
}

/// What one knob of the winner contributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Why a setting of the proof has no figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmeasured {
    /// Whether it is the default. Otherwise it is the setting that `gain` would be about.
    pub default: bool,
    /// Why it has no figure.
    pub why: Missing,
}

/// A limit, and whether two settings keep it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keeps {
    /// The limit.
    pub limit: Limit,
    /// The setting that `gain` is about.
    pub setting: Kept,
    /// The default.
    pub default: Kept,
}

/// Whether a setting keeps a limit, in the fresh rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// The median of the rounds; of errors, the mean, because most rounds have none. None if no round can tell.
    pub value: Option<f64>,
    /// True if the whole interval is below the limit, false if it is above; of errors, if every round keeps it, or none does.
    /// None if neither is certain.
    pub certainly: Option<bool>,
}

impl Advice {
    /// Whether another setting than the default is advised.
    pub fn changes(&self) -> bool {
        matches!(self.because, Because::Better | Because::KeepsLimits)
    }

    /// Whether the fresh rounds decide it. If they do not, more of them may show that another setting is better.
    pub fn is_decided(&self) -> bool {
        let (breaks, default_breaks) = (
            self.keeps.iter().any(|keeps| keeps.setting.certainly == Some(false)),
            self.keeps.iter().any(|keeps| keeps.default.certainly == Some(false)),
        );
        match self.because {
            Because::Better | Because::KeepsLimits | Because::Fails => true,
            Because::NotBetter => self.verdict.is_decided(),
            Because::BreaksLimits => breaks && !default_breaks,
        }
    }
}

/// The answer of a search whose proof begins with this step. None if its rounds are not complete: it has a fixed design, so a
/// part of it proves nothing.
pub(super) fn advice(hunt: &Hunt, from: usize) -> Option<Advice> {
    let (planned, steps) = (hunt.planned, &hunt.search.steps);
    let step = steps.get(from)?;
    if (hunt.complete(from) as usize) < steps.len() - from || step.cells.len() < 2 {
        return None;
    }
    let fresh = |o: &&Observation| o.trial.round as usize >= from;
    let seen: Vec<&Observation> = hunt.observations.iter().copied().filter(fresh).collect();
    let scenarios: Vec<Scenario> = step.cells.iter().filter_map(|cell| hunt.space.scenario(cell)).collect();
    if scenarios.len() < step.cells.len() {
        return None;
    }
    let view = Planned { scenarios, ..planned.clone() };
    Some(Proof { hunt, step, view, seen }.advice())
}

/// The fresh rounds. The default is the first scenario of the view, and the winner the second.
struct Proof<'a> {
    hunt: &'a Hunt<'a>,
    step: &'a Round,
    view: Planned,
    seen: Vec<&'a Observation>,
}

const DEFAULT: usize = 0;
const WINNER: usize = 1;

impl Proof<'_> {
    fn advice(&self) -> Advice {
        let space = self.hunt.space;
        let winner = &self.step.cells[WINNER];
        let won = self.judge(&[(WINNER, DEFAULT, By::System)]).remove(0);
        let (contributions, simpler) = self.contributions(winner, &won);
        // The winner is judged first, and alone. So another setting can be advised only where the winner could be.
        let simpler = simpler.filter(|_| won.verdict == Verdict::Faster);
        let (taken_back, winner_gain) = match &simpler {
            Some((place, _)) => (self.taken_back(*place), won.ratio),
            None => (Vec::new(), None),
        };
        let (place, judged) = simpler.unwrap_or((WINNER, won));
        let (keeps, failed) = (self.keeps(place), self.failed(place));
        let breaks = keeps.iter().any(|keeps| keeps.default.certainly == Some(false));
        let because = match (self.is_kept(place), judged.verdict == Verdict::Faster) {
            _ if failed > 0 && !matches!(judged.verdict, Verdict::Slower | Verdict::NoDifference) => {
                Because::Fails
            }
            (true, _) if breaks => Because::KeepsLimits,
            (true, true) => Because::Better,
            (false, true) => Because::BreaksLimits,
            (false, false) if breaks => Because::BreaksLimits,
            _ => Because::NotBetter,
        };
        let advised = match because {
            Because::Better | Because::KeepsLimits => place,
            Because::NotBetter | Because::BreaksLimits | Because::Fails => DEFAULT,
        };
        Advice {
            point: space.point(&self.step.cells[advised]),
            because,
            winner: space.point(winner),
            taken_back,
            winner_gain,
            gain: judged.ratio,
            at_least: judged.at_least,
            withheld: judged.withheld,
            unmeasured: unmeasured(judged.missing),
            verdict: judged.verdict,
            contributions,
            keeps,
            failed,
        }
    }

    fn judge(&self, asked: &[(usize, usize, By)]) -> Vec<Judged> {
        let figure = self.view.figures.first;
        judge(&View { planned: &self.view, figure }, &self.seen, asked)
    }

    /// The knobs of the winner that the setting at this place leaves at their default.
    fn taken_back(&self, place: usize) -> Vec<String> {
        let (space, winner) = (self.hunt.space, &self.step.cells[WINNER]);
        let left = |at: &usize| self.step.cells[place][*at] != winner[*at];
        let changed = space.lattice.changed(winner).into_iter().filter(left);
        changed.map(|at| space.knobs[at].0.clone()).collect()
    }

    /// What each changed knob contributes; if there is only one, it contributes everything. And, if what some contribute is not
    /// shown, the place of the setting that is advised instead of the winner, and how it compares with the default.
    fn contributions(&self, winner: &Cell, won: &Judged) -> (Vec<Contribution>, Option<(usize, Judged)>) {
        let space = self.hunt.space;
        let one = |at: usize, judged: &Judged| Contribution {
            knob: space.knobs[at].0.clone(),
            value: space.knobs[at].1[winner[at]].clone(),
            ratio: judged.ratio,
            verdict: judged.verdict,
        };
        let changed = space.lattice.changed(winner);
        if let [only] = changed[..] {
            return (vec![one(only, won)], None);
        }
        let simpler: Vec<usize> = (WINNER + 1..self.step.cells.len()).collect();
        let without = |at: &usize| {
            let back = space.lattice.set_back(winner, *at);
            Some((*at, simpler.iter().copied().find(|place| self.step.cells[*place] == back)?))
        };
        let places: Vec<(usize, usize)> = changed.iter().filter_map(without).collect();
        let by = |at: usize| By::Knob(space.knobs[at].0.clone());
        let asked = places.iter().map(|(at, place)| (WINNER, *place, by(*at)));
        let beside = simpler.iter().map(|place| (*place, DEFAULT, By::System));
        let judged = self.judge(&asked.chain(beside).collect::<Vec<_>>());
        let (own, beside) = judged.split_at(places.len());
        let contributions = places.iter().zip(own).map(|((at, _), judged)| one(*at, judged)).collect();
        let not_shown = places.iter().zip(own).filter(|(_, judged)| judged.verdict != Verdict::Faster);
        let not_shown: Vec<usize> = not_shown.map(|((at, _), _)| *at).collect();
        let candidates = simpler.iter().copied().zip(beside.iter().cloned());
        (contributions, self.simplest(&not_shown, candidates))
    }

    /// The setting with the fewest changes that are not shown; of several, the one with the most changes. No trial of it failed, and it
    /// is faster than the default. A single change counts as shown, because that comparison shows it. None if no setting has fewer
    /// changes that are not shown than the winner.
    fn simplest(
        &self,
        not_shown: &[usize],
        candidates: impl Iterator<Item = (usize, Judged)>,
    ) -> Option<(usize, Judged)> {
        let lattice = &self.hunt.space.lattice;
        let doubtful = |place: usize| {
            let changed = lattice.changed(&self.step.cells[place]);
            let few = changed.iter().filter(|at| not_shown.contains(at)).count();
            if changed.len() == 1 { 0 } else { few }
        };
        let shown = candidates
            .filter(|(_, judged)| judged.verdict == Verdict::Faster)
            .filter(|(place, _)| self.failed(*place) == 0 && self.is_kept(*place))
            .filter(|(place, _)| doubtful(*place) < not_shown.len());
        shown.min_by(|(a, one), (b, other)| {
            let changes = |place: usize| lattice.changed(&self.step.cells[place]).len();
            doubtful(*a)
                .cmp(&doubtful(*b))
                .then_with(|| changes(*b).cmp(&changes(*a)))
                .then_with(|| worth(other).total_cmp(&worth(one)))
        })
    }

    /// Whether the setting at this place certainly keeps all limits.
    fn is_kept(&self, place: usize) -> bool {
        self.hunt.search.limits.iter().all(|limit| self.kept(limit, place).certainly == Some(true))
    }

    /// The fresh trials of the setting at this place.
    fn trials(&self, place: usize) -> Vec<Option<&Measurement>> {
        let scenario = &self.view.scenarios[place];
        let of_rounds = measured(self.hunt.planned, self.seen.iter().copied());
        of_rounds.filter(|(trial, _)| trial.scenario == *scenario).map(|(_, m)| m).collect()
    }

    fn failed(&self, place: usize) -> u32 {
        self.trials(place).into_iter().filter(|m| m.is_none_or(has_too_many_errors)).count() as u32
    }

    fn keeps(&self, place: usize) -> Vec<Keeps> {
        let keeps = |limit: &Limit| Keeps {
            limit: *limit,
            setting: self.kept(limit, place),
            default: self.kept(limit, DEFAULT),
        };
        self.hunt.search.limits.iter().map(keeps).collect()
    }

    fn kept(&self, limit: &Limit, place: usize) -> Kept {
        let trials = self.trials(place);
        let values = trials.iter().filter_map(|m| limit.value((*m)?));
        let value = match limit.of {
            Bounded::Errors => mean(values),
            _ => stats::median(values),
        };
        let rooms: Vec<f64> = trials.iter().filter_map(|m| limit.room((*m)?)).collect();
        // A trial that cannot tell has failed, or has too few answers.
        let certainly = match limit.of {
            _ if rooms.len() < trials.len() => None,
            Bounded::Errors if rooms.iter().all(|room| *room > 0.0) => Some(true),
            Bounded::Errors => rooms.iter().all(|room| *room < 0.0).then_some(false),
            _ => Location::of(&rooms)
                .map(|location| location.interval(LEVEL))
                .and_then(|(low, high)| if low > 0.0 { Some(true) } else { (high < 0.0).then_some(false) }),
        };
        Kept { value, certainly }
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

/// Why a setting has no figure, or else why the default has none.
fn unmeasured([setting, default]: [Option<Missing>; 2]) -> Option<Unmeasured> {
    let setting = setting.map(|why| Unmeasured { default: false, why });
    setting.or_else(|| default.map(|why| Unmeasured { default: true, why }))
}

/// How much better a setting is, as a logarithm.
fn worth(judged: &Judged) -> f64 {
    judged.ratio.map_or(f64::NEG_INFINITY, |ratio| ratio.estimate.ln())
}
