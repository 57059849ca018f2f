//! Shows the progress of a run: the current trial, the number of trials done, the time left, the verdicts so far and
//! the last warning. On a terminal, the lines change in place. Elsewhere, a plain line appears when all trials of an
//! experiment have ended, unless more rounds follow whatever they show.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use lab::observation::{Observation, Outcome, Trial};
use lab::plan::Plan;
use lab::session::Progress;

use super::interim::InterimFindings;
use crate::common;

/// The progress of a run, as status lines in place or as plain lines.
pub struct RunProgress {
    /// None if lines are plain.
    status: Option<StatusLines>,
    interim: InterimFindings,
    /// A plan without trials, which says how long each takes.
    times: Plan,
    /// The expected duration of the trials that are not done, seconds.
    left: f64,
    /// The expected duration of the trials that are done, seconds. Compared with the time since `began`, it shows how
    /// far off the expectation is.
    expected: f64,
    began: Instant,
    failed: u32,
    /// Whether findings are shown after each round.
    news: bool,
}

/// The lines that change in place: one for the trials, one for each experiment with findings, and one for the last
/// warning.
struct StatusLines {
    all: MultiProgress,
    trials: ProgressBar,
    experiments: Vec<ProgressBar>,
    warning: ProgressBar,
}

impl StatusLines {
    fn new(pending: usize, experiments: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let trials = all.add(common::status_line("{pos}/{len} {wide_msg}", Some(pending as u64)));
        let line = || common::status_line("  {wide_msg}", Some(1));
        // Lines are cut at the edge of the terminal, because wrapped lines would flicker.
        let experiments = (0..experiments).map(|_| line()).collect();
        Self { all, trials, experiments, warning: line() }
    }

    /// Sets the text of a line. A line appears when it gets its first text.
    fn show(&self, bar: &ProgressBar, text: String) {
        if bar.is_hidden() || bar.message().is_empty() {
            self.all.add(bar.clone());
        }
        bar.set_message(text);
    }
}

impl RunProgress {
    /// The progress of a plan with these pending trials and earlier observations. Lines are in place on a terminal,
    /// unless `plain`. `news` says whether findings are shown after each round.
    pub fn new(plan: &Plan, pending: &[u32], seen: &[Observation], plain: bool, news: bool) -> Self {
        let trials = pending.iter().filter_map(|index| plan.trials.get(*index as usize));
        let left = trials.map(|trial| plan.trial_s(trial)).sum();
        let in_place = !plain && std::io::stderr().is_terminal();
        let status = in_place.then(|| StatusLines::new(pending.len(), plan.experiments.len()));
        let interim = InterimFindings::new(plan, seen, in_place);
        let times = Plan { starts: plan.starts.clone(), ..Plan::new(plan.seed, Vec::new()) };
        Self { status, interim, times, left, expected: 0.0, began: Instant::now(), failed: 0, news }
    }

    /// Removes the status lines.
    pub fn clear(&self) {
        if let Some(status) = &self.status {
            let _ = status.all.clear();
        }
    }

    /// Prints a line above the status lines, or a plain line.
    fn say(&self, text: String) {
        match &self.status {
            Some(status) => status.trials.println(text),
            None => common::say(text),
        }
    }

    fn time_left(&self) -> Duration {
        let factor =
            if self.expected > 0.0 { self.began.elapsed().as_secs_f64() / self.expected } else { 1.0 };
        Duration::from_secs_f64((self.left * factor).max(0.0))
    }
}

impl Progress for RunProgress {
    fn begins(&mut self, trial: &Trial) {
        let Some(status) = &self.status else { return };
        let scenario = &trial.scenario;
        let knobs: Vec<String> =
            scenario.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let left = self.time_left().as_secs();
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        status.trials.set_message(format!(
            "{}:{:02} left{failed} · {} · {} {}",
            left / 60,
            left % 60,
            scenario.experiment,
            scenario.system,
            knobs.join(" ")
        ));
    }

    fn added(&mut self, trials: &[Trial]) {
        self.left += trials.iter().map(|trial| self.times.trial_s(trial)).sum::<f64>();
        self.interim.added(trials);
        if let Some(status) = &self.status {
            status.trials.inc_length(trials.len() as u64);
        }
        if !self.news {
            return;
        }
        let rounds: BTreeSet<u32> = trials.iter().map(|trial| trial.round + 1).collect();
        let rounds: Vec<String> = rounds.iter().map(u32::to_string).collect();
        self.say(format!("{} more trials, for round {}", trials.len(), rounds.join(", ")));
    }

    fn ended(&mut self, observation: &Observation) {
        let seconds = self.times.trial_s(&observation.trial);
        self.left -= seconds;
        self.expected += seconds;
        let scenario = &observation.trial.scenario;
        if let Outcome::Failed(failure) = &observation.outcome {
            self.failed += 1;
            // On a terminal, the failure is shown above the status lines. Elsewhere, only the report shows it.
            if self.status.is_some() {
                self.say(format!("{}: {}: {}", scenario.system, failure.stage, failure.reason));
            }
        }
        if let Some(status) = &self.status {
            status.trials.inc(1);
        }
        // The plan of a search grows elsewhere, so its findings cannot be computed here.
        if !self.news {
            return;
        }
        let Some(standing) = self.interim.ended(observation) else { return };
        let Some(status) = &self.status else { return common::say(standing.line) };
        if let Some(bar) = status.experiments.get(standing.experiment) {
            status.show(bar, standing.line);
        }
        if let Some(warning) = standing.warning {
            status.show(&status.warning, warning);
        }
    }
}
