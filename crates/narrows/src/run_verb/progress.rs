//! The progress line: what runs now, trials done, time left. Silent when there is no terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::observation::{Observation, Outcome, Trial};
use lab::plan::{Plan, estimate_s};
use lab::session::Progress;

/// One line at the foot of the terminal.
pub struct Line {
    bar: ProgressBar,
    /// Expected seconds of the trials that are not done.
    left: f64,
    /// Expected and true seconds of those that are: how far the expectation is off.
    expected: f64,
    began: Instant,
    failed: u32,
}

impl Line {
    /// For the pending trials of a plan.
    pub fn new(plan: &Plan, pending: &[u32]) -> Self {
        let trials = pending.iter().filter_map(|index| plan.trials.get(*index as usize));
        let left = trials.map(estimate_s).sum();
        let bar = ProgressBar::with_draw_target(Some(pending.len() as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, left, expected: 0.0, began: Instant::now(), failed: 0 }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn time_left(&self) -> Duration {
        let factor =
            if self.expected > 0.0 { self.began.elapsed().as_secs_f64() / self.expected } else { 1.0 };
        Duration::from_secs_f64((self.left * factor).max(0.0))
    }
}

impl Progress for Line {
    fn begins(&mut self, trial: &Trial) {
        let scenario = &trial.scenario;
        let knobs: Vec<String> =
            scenario.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let left = self.time_left().as_secs();
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        self.bar.set_message(format!(
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
        self.bar.inc_length(trials.len() as u64);
        self.bar.println(format!("{} more trials: there are undecided comparisons", trials.len()));
    }

    fn ended(&mut self, observation: &Observation) {
        let seconds = estimate_s(&observation.trial);
        self.left -= seconds;
        self.expected += seconds;
        self.bar.inc(1);
        if let Outcome::Failed(failure) = &observation.outcome {
            self.failed += 1;
            let scenario = &observation.trial.scenario;
            // On a terminal it stands above the line; elsewhere the report tells of it.
            self.bar.println(format!("{}: {}: {}", scenario.system, failure.stage, failure.reason));
        }
    }
}
