//! What a run has found so far: for each experiment its first sentence, whose interval narrows as rounds come in, and the
//! warning that came last.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lab::findings::{Code, Warning, findings};
use lab::observation::{Observation, Trial};
use lab::plan::{Plan, Planned};

/// Looking costs at most one part in so many of the run's time.
const COST: u32 = 50;

/// The experiments and what was observed of them, judged anew from time to time.
pub struct Running {
    parts: Vec<Part>,
    /// Whether an experiment is looked at before its last trial, too.
    early: bool,
    warned: BTreeSet<String>,
    /// Not to be judged again before this.
    rest: Option<Instant>,
}

/// An experiment by itself: a plan of nothing else, and the observations of that.
struct Part {
    plan: Plan,
    seen: Vec<Observation>,
}

/// An experiment as it stands.
pub struct Standing {
    /// Which of the plan's it is.
    pub experiment: usize,
    /// Its name, the rounds that are whole, and what they say.
    pub line: String,
    /// A warning that was not there before.
    pub warning: Option<String>,
}

impl Running {
    /// Of a plan of which so much has been done before; `early`: also of what has not come to its end.
    pub fn new(plan: &Plan, seen: Vec<Observation>, early: bool) -> Self {
        let (seed, budget_s) = (plan.seed, plan.budget_s);
        let part = |planned: &Planned| {
            let experiments = vec![planned.clone()];
            Part { plan: Plan { seed, budget_s, experiments, trials: Vec::new() }, seen: Vec::new() }
        };
        let parts = plan.experiments.iter().map(part).collect();
        let mut running = Self { parts, early, warned: BTreeSet::new(), rest: None };
        running.added(&plan.trials);
        for observation in seen {
            if let Some(at) = running.find(&observation.trial) {
                running.parts[at].seen.push(observation);
            }
        }
        running
    }

    /// The experiment of this trial.
    fn find(&self, trial: &Trial) -> Option<usize> {
        self.parts.iter().position(|part| part.plan.experiments[0].name == trial.scenario.experiment)
    }

    /// These trials were added to the plan.
    pub fn added(&mut self, trials: &[Trial]) {
        for trial in trials {
            let Some(at) = self.find(trial) else { continue };
            let plan = &mut self.parts[at].plan;
            let setup = &mut plan.experiments[0].setup;
            setup.rounds = setup.rounds.max(trial.round + 1);
            plan.trials.push(trial.clone());
        }
    }

    /// How the experiment of this observation stands now, if it is time to look: when the last of its trials has ended in any
    /// case, else when looking is cheap.
    pub fn ended(&mut self, observation: &Observation) -> Option<Standing> {
        let at = self.find(&observation.trial)?;
        let part = &mut self.parts[at];
        part.seen.push(observation.clone());
        let last = part.seen.len() >= part.plan.trials.len();
        if !last && (!self.early || self.rest.is_some_and(|rest| Instant::now() < rest)) {
            return None;
        }
        let began = Instant::now();
        let standing = self.look(at);
        self.rest = Some(Instant::now() + (began.elapsed() * COST).max(Duration::from_millis(100)));
        standing
    }

    fn look(&mut self, experiment: usize) -> Option<Standing> {
        let Part { plan, seen } = &self.parts[experiment];
        let found = findings(plan, seen).experiments.pop()?;
        let (name, rounds) = (&found.name, whole_rounds(&plan.trials, seen.iter().map(|seen| &seen.trial)));
        let line = format!("{name} ({rounds} of {} rounds): {}", found.rounds, report::answer(&found));
        // That there are few trials yet is no news while more are on their way.
        let early = |warning: &&Warning| !matches!(warning.code, Code::Incomplete | Code::TooFewTrials);
        let message = |warning: &Warning| report::advice(warning).message;
        let mut fresh = found.warnings.iter().filter(early).map(message);
        let fresh = fresh.rfind(|message| !self.warned.contains(message));
        let warning = fresh.map(|message| format!("{name}: warning: {message}"));
        self.warned.extend(found.warnings.iter().map(message));
        Some(Standing { experiment, line, warning })
    }
}

/// Rounds of which every trial has been observed.
fn whole_rounds<'a>(planned: &[Trial], done: impl Iterator<Item = &'a Trial>) -> usize {
    let done: BTreeSet<u32> = done.map(|trial| trial.index).collect();
    let all: BTreeSet<u32> = planned.iter().map(|trial| trial.round).collect();
    let open = planned.iter().filter(|trial| !done.contains(&trial.index));
    all.len() - open.map(|trial| trial.round).collect::<BTreeSet<u32>>().len()
}

#[cfg(test)]
mod tests {
    use lab::observation::{Scenario, Timing};
    use systems::{Point, Workload};

    use super::*;

    #[test]
    fn a_round_counts_when_all_of_its_trials_have_ended() {
        let scenario = Scenario::new("e", "s", Workload::Requests, Point::new()).expect("the defaults");
        let timing = Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 };
        let trial =
            |index| Trial { index, round: index / 2, scenario: scenario.clone(), timing, twin: false };
        let planned: Vec<Trial> = (0..6).map(trial).collect();
        for (done, whole) in [
            (&[][..], 0),
            (&[0], 0),
            (&[1, 0], 1),
            (&[0, 1, 2, 4], 1),
            (&[3, 2, 5, 4], 2),
            (&[0, 1, 2, 3, 4, 5], 3),
        ] {
            let done = done.iter().map(|index| &planned[*index]);
            assert_eq!(whole_rounds(&planned, done.clone()), whole, "{:?}", done.collect::<Vec<_>>());
        }
    }
}
