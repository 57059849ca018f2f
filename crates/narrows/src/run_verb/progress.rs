//! How a run goes, while it goes: what runs now, trials done, time left, the verdicts so far and the last warning. In place at the
//! foot of a terminal; elsewhere a plain line when an experiment has come to an end of its trials.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use lab::observation::{Observation, Outcome, Trial};
use lab::plan::{Plan, estimate_s};
use lab::session::Progress;

use super::running::Running;
use crate::common;

/// Some lines at the foot of the terminal, or plain ones.
pub struct Live {
    /// None where lines are plain.
    foot: Option<Foot>,
    running: Running,
    /// Expected seconds of the trials that are not done.
    left: f64,
    /// Expected and true seconds of those that are: how far the expectation is off.
    expected: f64,
    began: Instant,
    failed: u32,
}

/// The lines in place: one for the trials, one for each experiment that has begun, one for the last warning.
struct Foot {
    all: MultiProgress,
    trials: ProgressBar,
    experiments: Vec<ProgressBar>,
    warning: ProgressBar,
}

impl Foot {
    fn new(pending: usize, experiments: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let trials = all.add(common::status_line("{pos}/{len} {wide_msg}", Some(pending as u64)));
        let line = || common::status_line("  {wide_msg}", Some(1));
        // Lines that are cut at the terminal's edge: what wraps would flicker.
        let experiments = (0..experiments).map(|_| line()).collect();
        Self { all, trials, experiments, warning: line() }
    }

    /// An experiment's line appears when there is something to say.
    fn show(&self, bar: &ProgressBar, text: String) {
        if bar.is_hidden() || bar.message().is_empty() {
            self.all.add(bar.clone());
        }
        bar.set_message(text);
    }
}

impl Live {
    /// For the pending trials of a plan, of which so much is known; in place on a terminal, unless lines are to be plain.
    pub fn new(plan: &Plan, pending: &[u32], seen: Vec<Observation>, plain: bool) -> Self {
        let trials = pending.iter().filter_map(|index| plan.trials.get(*index as usize));
        let left = trials.map(estimate_s).sum();
        let in_place = !plain && std::io::stderr().is_terminal();
        let foot = in_place.then(|| Foot::new(pending.len(), plan.experiments.len()));
        let running = Running::new(plan, seen, in_place);
        Self { foot, running, left, expected: 0.0, began: Instant::now(), failed: 0 }
    }

    /// Takes the lines away.
    pub fn clear(&self) {
        if let Some(foot) = &self.foot {
            let _ = foot.all.clear();
        }
    }

    /// Above the lines that change, or as one of the plain ones.
    fn say(&self, text: String) {
        match &self.foot {
            Some(foot) => foot.trials.println(text),
            None => common::say(text),
        }
    }

    fn time_left(&self) -> Duration {
        let factor =
            if self.expected > 0.0 { self.began.elapsed().as_secs_f64() / self.expected } else { 1.0 };
        Duration::from_secs_f64((self.left * factor).max(0.0))
    }
}

impl Progress for Live {
    fn begins(&mut self, trial: &Trial) {
        let Some(foot) = &self.foot else { return };
        let scenario = &trial.scenario;
        let knobs: Vec<String> =
            scenario.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let left = self.time_left().as_secs();
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        foot.trials.set_message(format!(
            "{}:{:02} left{failed} · {} · {} {}",
            left / 60,
            left % 60,
            scenario.experiment,
            scenario.system,
            knobs.join(" ")
        ));
    }

    fn added(&mut self, trials: &[Trial]) {
        self.left += trials.iter().map(estimate_s).sum::<f64>();
        self.running.added(trials);
        if let Some(foot) = &self.foot {
            foot.trials.inc_length(trials.len() as u64);
        }
        self.say(format!("{} more trials: there are undecided comparisons", trials.len()));
    }

    fn ended(&mut self, observation: &Observation) {
        let seconds = estimate_s(&observation.trial);
        self.left -= seconds;
        self.expected += seconds;
        let scenario = &observation.trial.scenario;
        if let Outcome::Failed(failure) = &observation.outcome {
            self.failed += 1;
            // On a terminal it stands above the lines; elsewhere the report tells of it.
            if self.foot.is_some() {
                self.say(format!("{}: {}: {}", scenario.system, failure.stage, failure.reason));
            }
        }
        if let Some(foot) = &self.foot {
            foot.trials.inc(1);
        }
        let Some(standing) = self.running.ended(observation) else { return };
        let Some(foot) = &self.foot else { return common::say(standing.line) };
        foot.show(&foot.experiments[standing.experiment], standing.line);
        if let Some(warning) = standing.warning {
            foot.show(&foot.warning, warning);
        }
    }
}
