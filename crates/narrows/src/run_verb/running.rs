//! What a run has found so far: for each experiment its first sentence, whose interval narrows as rounds come in, and the
//! warning that came last.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lab::findings::{Code, Warning, findings};
use lab::observation::{Observation, Trial};
use lab::plan::Plan;

/// Looking costs at most one part in so many of the run's time.
const COST: u32 = 50;

/// The plan and what was observed of it, judged anew from time to time.
pub struct Running {
    plan: Plan,
    seen: Vec<Observation>,
    warned: BTreeSet<String>,
    /// Not to be judged again before this.
    rest: Option<Instant>,
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
    /// Of a plan of which so much has been done before.
    pub fn new(plan: &Plan, seen: Vec<Observation>) -> Self {
        Self { plan: plan.clone(), seen, warned: BTreeSet::new(), rest: None }
    }

    /// These trials were added to the plan.
    pub fn added(&mut self, trials: &[Trial]) {
        for trial in trials {
            let own = self.plan.experiments.iter_mut().find(|e| e.name == trial.scenario.experiment);
            if let Some(planned) = own {
                planned.rounds = planned.rounds.max(trial.round + 1);
            }
        }
        self.plan.trials.extend_from_slice(trials);
    }

    /// How the experiment of this observation stands now, if it is time to look: when the last of its trials has ended in any
    /// case, else when looking is cheap.
    pub fn ended(&mut self, observation: &Observation) -> Option<Standing> {
        self.seen.push(observation.clone());
        let name = &observation.trial.scenario.experiment;
        let experiment = self.plan.experiments.iter().position(|planned| planned.name == *name)?;
        let last = self.is_complete(name);
        if !last && self.rest.is_some_and(|rest| Instant::now() < rest) {
            return None;
        }
        let began = Instant::now();
        let standing = self.look(experiment, name);
        self.rest = Some(Instant::now() + (began.elapsed() * COST).max(Duration::from_millis(100)));
        standing
    }

    /// Whether every trial that is planned for an experiment has been observed.
    pub fn is_complete(&self, name: &str) -> bool {
        let planned = self.plan.trials.iter().filter(|trial| trial.scenario.experiment == *name).count();
        let done = self.seen.iter().filter(|seen| seen.trial.scenario.experiment == *name).count();
        done >= planned
    }

    fn look(&mut self, experiment: usize, name: &str) -> Option<Standing> {
        let own: Vec<Observation> =
            self.seen.iter().filter(|seen| seen.trial.scenario.experiment == *name).cloned().collect();
        let mut plan = self.plan.clone();
        plan.experiments = vec![plan.experiments.swap_remove(experiment)];
        let found = findings(&plan, &own).experiments.pop()?;
        let rounds = own.iter().map(|seen| seen.trial.round + 1).max().unwrap_or(0);
        let sentence = found.headlines.first().map_or("nothing to compare yet", String::as_str);
        let line = format!("{name} ({rounds} of {} rounds): {sentence}", found.rounds);
        // That there are few trials yet is no news while more are on their way.
        let early = |warning: &&Warning| !matches!(warning.code, Code::Incomplete | Code::TooFewTrials);
        let mut fresh = found.warnings.iter().filter(early);
        let fresh = fresh.rfind(|warning| !self.warned.contains(&warning.message));
        let warning = fresh.map(|warning| format!("{name}: warning: {}", warning.message));
        self.warned.extend(found.warnings.iter().map(|warning| warning.message.clone()));
        Some(Standing { experiment, line, warning })
    }
}
