//! An executor that executes nothing: figures, noise and failures come out of a file, so that the whole path from the plan to
//! the report can be driven with a known truth, the same each time.
//!
//! ```toml
//! seed = 7                               # of the noise
//! figure = 1000.0                        # every system's, in the experiment's unit
//! noise = { spread = 0.02, tails = 3 }   # see stats::Noise
//!
//! [environment]                          # saved as the machine's
//! kernel = "6.1"
//!
//! [[rule]]                               # all that match a trial apply, in this order
//! system = "cowboy2"                     # optional, as all of them
//! point = { buffer = 1460 }              # these values of knobs
//! rounds = [0, 1]                        # only in these rounds
//! better = 0.5                           # so many times as good a figure
//! versions = "2.8.0"                     # what it says of itself
//! errors = { reset = 20 }                # failed operations by class
//! fail = { stage = "start", reason = "it ended", output = "" }
//! measured = { stolen_s = 0.2, generator = { busiest_core = 0.99 } }   # in place of a sound trial's, by the store's names
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use stats::{Disturbances, Noise};
use systems::{InputError, Point, Source, input};

use crate::experiment::Figure;
use crate::observation::{
    Failure, GeneratorUse, Latency, Measurement, Outcome, Scenario, ServerCounts, SystemUse, Trial,
};
use crate::plan::{Plan, estimate_s};
use crate::session::{Executor, Interrupted};

mod instead;

pub use instead::Instead;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    seed: u64,
    figure: Option<f64>,
    noise: Noise,
    environment: toml::Table,
    rule: Vec<Rule>,
}

/// What holds for some trials.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Of this system.
    pub system: Option<String>,
    /// At these values.
    pub point: Point,
    /// In these rounds, from 0.
    pub rounds: Option<Vec<u32>>,
    /// So many times as good a figure.
    pub better: Option<f64>,
    /// What it says of itself.
    pub versions: Option<String>,
    /// Failed operations by class.
    pub errors: BTreeMap<String, u64>,
    /// The trial fails.
    pub fail: Option<Failure>,
    /// Raw figures in place of a sound trial's.
    pub measured: Instead,
}

impl Rule {
    fn applies(&self, trial: &Trial) -> bool {
        let Scenario { system, point, .. } = &trial.scenario;
        self.system.as_ref().is_none_or(|name| name == system)
            && self.point.iter().all(|(knob, value)| point.get(knob) == Some(value))
            && self.rounds.as_ref().is_none_or(|rounds| rounds.contains(&trial.round))
    }
}

/// Pretends to execute trials.
#[derive(Debug, Clone)]
pub struct Fake {
    figures: BTreeMap<String, Figure>,
    figure: f64,
    rules: Vec<Rule>,
    environment: serde_json::Value,
    disturbances: Disturbances,
    /// Trials that noise was drawn for.
    drawn: u32,
    now_unix_s: f64,
}

impl Fake {
    /// Every system at `figure`, but for the rules and the noise.
    pub fn new(figure: f64, rules: Vec<Rule>, noise: Noise, seed: u64) -> Self {
        Self {
            figures: BTreeMap::new(),
            figure,
            rules,
            environment: serde_json::json!({}),
            disturbances: Disturbances::new(noise, seed),
            drawn: 0,
            now_unix_s: 1_700_000_000.0,
        }
    }

    /// As the file says.
    ///
    /// # Errors
    /// The first mistake of form, with its place.
    pub fn parse(source: &Source) -> Result<Self, InputError> {
        let file: File = input::parse(source)?;
        let mut fake = Self::new(file.figure.unwrap_or(1000.0), file.rule, file.noise, file.seed);
        fake.environment = serde_json::json!(file.environment);
        Ok(fake)
    }

    /// The same where every figure without rules and noise is this one.
    pub fn at(mut self, figure: f64) -> Self {
        self.figure = figure;
        self
    }
}

impl Executor for Fake {
    fn environment(&self) -> serde_json::Value {
        self.environment.clone()
    }

    /// A trial does not say what its experiment's figure is.
    fn prepare(&mut self, plan: &Plan, _pending: &[u32], _say: &mut dyn FnMut(&str)) {
        self.figures.extend(plan.experiments.iter().map(|e| (e.name.clone(), e.figure)));
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        self.now_unix_s += estimate_s(trial);
        // A trial's noise depends on its place in the plan alone: not on what failed, nor on where a run was resumed.
        let mut slower = 0.0;
        while self.drawn <= trial.index {
            slower = self.disturbances.next_log();
            self.drawn += 1;
        }
        let slower = slower.exp();
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.applies(trial)).collect();
        if let Some(failure) = rules.iter().find_map(|rule| rule.fail.as_ref()) {
            return Ok(Outcome::Failed(failure.clone()));
        }
        let better: f64 = rules.iter().filter_map(|rule| rule.better).product();
        let kind = self.figures.get(&trial.scenario.experiment).copied().unwrap_or(Figure::RequestsPerS);
        let figure =
            if kind.more_is_better() { self.figure * better / slower } else { self.figure / better * slower };
        let mut m = measurement(trial, kind, figure);
        for rule in rules {
            apply(rule, &mut m);
        }
        Ok(Outcome::Measured(Box::new(m)))
    }

    fn now_unix_s(&self) -> f64 {
        self.now_unix_s
    }
}

/// Operations that support a p99.
const ENOUGH: f64 = 2000.0;

/// A sound measurement with this figure.
fn measurement(trial: &Trial, kind: Figure, figure: f64) -> Measurement {
    let (window, work) = (trial.timing.measure_s, trial.scenario.work());
    // A whole number of operations in a window whose length makes the rate exact.
    let (count, elapsed_s, us) = match kind {
        Figure::MsPerUpload => ((window * 1e3 / figure).round().max(1.0), window, figure * 1e3),
        Figure::P99Us => (ENOUGH, window, figure),
        _ => {
            let count = (figure * window).round().max(1.0);
            (count, count / figure, 1e6 / figure)
        }
    };
    let n = count as u64;
    let latency =
        Latency { count: n, min: us, mean: us, max: us, buckets: vec![(us.round().max(1.0) as u64, n)] };
    Measurement {
        elapsed_s,
        attempts: n + 1,
        successes: n,
        in_flight: 1,
        units: n,
        payload_bytes: n.saturating_mul(work.payload_bytes()),
        service_us: latency.clone(),
        response_us: latency,
        system: SystemUse {
            cpu_s: elapsed_s / 2.0,
            peak_pss_bytes: 38_000_000,
            pss_course: course(38_000_000, elapsed_s),
            socket_memory_bytes: 4_000_000,
            cores: vec![1],
            ..SystemUse::default()
        },
        generator: GeneratorUse { busiest_core: 0.5, cores: vec![0], ..GeneratorUse::default() },
        server: work.pool_cap().map(|pool| ServerCounts {
            requests: n + 1,
            responses: n,
            connections: pool,
            peak_connections: pool,
            closes: 0,
            client_attempts: n + 1,
            client_successes: n,
            client_errors: BTreeMap::new(),
        }),
        ..Measurement::default()
    }
}

/// Memory that grows by a tenth to its peak, seen in the middle of each quarter of the window.
fn course(peak: u64, elapsed_s: f64) -> Vec<(u64, u64)> {
    let quarter = |at: u64| ((elapsed_s * 250.0 * (at as f64 + 0.5)) as u64, peak / 30 * (27 + at));
    (0..4).map(quarter).collect()
}

fn apply(rule: &Rule, m: &mut Measurement) {
    if let Some(version) = &rule.versions {
        m.system.version.clone_from(version);
    }
    for (class, count) in &rule.errors {
        m.errors.insert(class.clone(), *count);
        m.attempts += count;
        m.first_errors.insert(class.clone(), "as the file says".to_owned());
        m.mean_error_us = m.service_us.mean;
    }
    rule.measured.replace(m);
}
