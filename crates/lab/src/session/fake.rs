//! An executor that starts no systems. Figures, noise and failures come from a file, so that everything from the plan to the
//! report can be tested with a known truth, with the same result each time.
//!
//! ```toml
//! seed = 7                               # of the noise
//! figure = 1000.0                        # of every system, in the experiment's unit
//! noise = { spread = 0.02, tails = 3 }   # see stats::Noise
//! duet = 0.1                             # the share of a trial's noise that its partner in a duet has not; without it, there are none
//!
//! [environment]                          # saved as the machine's description
//! kernel = "6.1"
//!
//! [[rule]]                               # every rule that matches a trial applies, in this order
//! system = "cowboy2"                     # optional, like all fields
//! point = { buffer = 1460 }              # values of knobs
//! rounds = [0, 1]                        # only in these rounds
//! better = 0.5                           # how many times better the figure is
//! noisier = 3.0                          # how many times the noise
//! versions = "2.8.0"                     # the version that the system reports
//! answer = { status = 404, body = "no" }  # what a first look sees; without it, all systems answer 200 and `ok`
//! refuse = { idle = { share = 0.5 } }    # a duet with it is refused
//! errors = { reset = 20 }                # failed operations by class
//! fail = { stage = "start", reason = "it ended", output = "" }   # without `rounds`, also in a first look
//! measured = { stolen_s = 0.2, generator = { busiest_core = 0.99 } }   # replaces raw figures, by their names in the store
//! ```

use std::collections::BTreeMap;

use measurement::{GeneratorUse, Latency, MaxRate, Measurement, ServerCounts, SystemUse};
use serde::Deserialize;
use stats::{Disturbances, Noise};
use systems::{InputError, Point, Source, Work, input};

use crate::ask::Ask;
use crate::duet::{Duet, Refusal};
use crate::experiment::Figure;
use crate::observation::{Failure, Outcome, Scenario, Timing, Trial};
use crate::plan::{Plan, estimate_s};
use crate::session::{Answer, Executor, Interrupted, Look, Pace, Speed, TrialError};

mod patch;

pub use patch::MeasurementPatch;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FakeFile {
    seed: u64,
    figure: Option<f64>,
    noise: Noise,
    duet: Option<f64>,
    environment: toml::Table,
    rule: Vec<Rule>,
}

/// Overrides the figures of the trials that it matches.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The system. None matches all.
    pub system: Option<String>,
    /// Values of knobs. Other knobs may have any value.
    pub point: Point,
    /// The rounds, from 0. None matches all.
    pub rounds: Option<Vec<u32>>,
    /// How many times better the figure is.
    pub better: Option<f64>,
    /// How many times noisier the figure is.
    pub noisier: Option<f64>,
    /// The version that the system reports.
    pub versions: Option<String>,
    /// What it answers to a first look.
    pub answer: Option<Answered>,
    /// Why a duet of the trial is refused.
    pub refuse: Option<Refusal>,
    /// Failed operations by class.
    pub errors: BTreeMap<String, u64>,
    /// Why the trial fails.
    pub fail: Option<Failure>,
    /// Raw figures that replace those of a sound trial.
    pub measured: MeasurementPatch,
}

/// What a system answers to a first look.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answered {
    status: u16,
    body: String,
}

impl Default for Answered {
    fn default() -> Self {
        Self { status: 200, body: "ok".to_owned() }
    }
}

impl Rule {
    fn applies(&self, trial: &Trial) -> bool {
        let Scenario { system, point, .. } = &trial.scenario;
        self.system.as_ref().is_none_or(|name| name == system)
            && self.point.iter().all(|(knob, value)| point.get(knob) == Some(value))
            && self.rounds.as_ref().is_none_or(|rounds| rounds.contains(&trial.round))
    }
}

/// An executor that makes up its measurements.
#[derive(Debug, Clone)]
pub struct Fake {
    figures: BTreeMap<String, Figure>,
    figure: f64,
    rules: Vec<Rule>,
    environment: serde_json::Value,
    disturbances: Disturbances,
    /// The share of a trial's noise that its partner in a duet has not. None if trials are always alone.
    duet: Option<f64>,
    /// The number of trials for which noise was drawn.
    drawn: u32,
    now_unix_s: f64,
}

impl Fake {
    /// Gives every system the same figure, except for the rules and the noise.
    pub fn new(figure: f64, rules: Vec<Rule>, noise: Noise, seed: u64) -> Self {
        Self {
            figures: BTreeMap::new(),
            figure,
            rules,
            environment: serde_json::json!({}),
            disturbances: Disturbances::new(noise, seed),
            duet: None,
            drawn: 0,
            now_unix_s: 1_700_000_000.0,
        }
    }

    /// Reads a file of the form above.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn parse(source: &Source) -> Result<Self, InputError> {
        let file: FakeFile = input::parse(source)?;
        let mut fake = Self::new(file.figure.unwrap_or(1000.0), file.rule, file.noise, file.seed);
        fake.environment = serde_json::json!(file.environment);
        fake.duet = file.duet;
        Ok(fake)
    }

    /// Lets trials happen at the same time. Each then has a noise of its own, which is so much less than what both share.
    pub fn with_duets(self, own: f64) -> Self {
        Self { duet: Some(own), ..self }
    }

    /// The logarithm of how much slower the trial's noise makes it. It depends only on its index in the plan, not on failed trials or
    /// on where a run was resumed.
    fn noise_of(&mut self, trial: &Trial) -> f64 {
        let mut slower = 0.0;
        while self.drawn <= trial.index {
            slower = self.disturbances.next_log();
            self.drawn += 1;
        }
        slower
    }

    fn rules_of(&self, trial: &Trial) -> Vec<&Rule> {
        self.rules.iter().filter(|rule| rule.applies(trial)).collect()
    }

    /// The outcome of a trial with this noise.
    fn pretend(&self, trial: &Trial, slower: f64) -> Outcome {
        let rules = self.rules_of(trial);
        let slower = (slower * rules.iter().filter_map(|rule| rule.noisier).product::<f64>()).exp();
        if let Some(failure) = rules.iter().find_map(|rule| rule.fail.as_ref()) {
            return Outcome::Failed(failure.clone());
        }
        let better: f64 = rules.iter().filter_map(|rule| rule.better).product();
        let kind = self.figures.get(&trial.scenario.experiment).copied().unwrap_or(Figure::RequestsPerS);
        let figure =
            if kind.more_is_better() { self.figure * better / slower } else { self.figure / better * slower };
        let mut m = measurement(trial, kind, figure);
        for rule in rules {
            apply(rule, &mut m);
        }
        Outcome::Measured(Box::new(m))
    }

    /// Replaces all rules by one.
    #[cfg(test)]
    pub(crate) fn rule(&mut self, rule: Rule) {
        self.rules = vec![rule];
    }

    /// Replaces the figure that systems have without rules and noise.
    pub fn with_figure(mut self, figure: f64) -> Self {
        self.figure = figure;
        self
    }
}

impl Executor for Fake {
    fn environment(&self) -> serde_json::Value {
        self.environment.clone()
    }

    /// The base figure is also the speed that the look finds, whatever is measured later.
    fn look(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        speed: Speed,
    ) -> Result<Option<Look>, TrialError> {
        let trial = Trial::alone(scenario.clone(), timing);
        let rules: Vec<&Rule> =
            self.rules_of(&trial).into_iter().filter(|rule| rule.rounds.is_none()).collect();
        if let Some(failure) = rules.iter().find_map(|rule| rule.fail.clone()) {
            return Err(TrialError::Failed(failure));
        }
        let Answered { status, body } =
            rules.iter().rev().find_map(|rule| rule.answer.clone()).unwrap_or_default();
        let answer = Answer { status, length: body.len() as u64, head: Vec::new(), body: body.into_bytes() };
        let work = scenario.work();
        let is_seen = matches!(work, Work::Requests(_)) && ask.list.is_none();
        let per_s = self.figure * rules.iter().filter_map(|rule| rule.better).product::<f64>();
        let callers = work.connections() as f64;
        let pace = Pace { per_s, callers, settled_s: Some(0.0), took_s: 0.0 };
        Ok(Some(Look {
            answers: if is_seen { vec![answer] } else { Vec::new() },
            listed: Vec::new(),
            pace: (speed != Speed::Unasked).then_some(pace),
        }))
    }

    /// Remembers the figures of the experiments, because trials do not name them.
    fn prepare(&mut self, plan: &Plan, _pending: &[u32], _say: &mut dyn FnMut(&str)) {
        self.figures.extend(plan.experiments.iter().map(|e| (e.name.clone(), e.figures.first)));
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        self.now_unix_s += estimate_s(trial);
        let slower = self.noise_of(trial);
        Ok(self.pretend(trial, slower))
    }

    fn execute_together(&mut self, trials: &[&Trial]) -> Result<(Vec<Outcome>, Option<Duet>), Interrupted> {
        let refused = trials.iter().flat_map(|trial| self.rules_of(trial)).find_map(|rule| rule.refuse);
        let Some(own) = self.duet.filter(|_| refused.is_none()) else {
            let outcomes = trials.iter().map(|trial| self.execute(trial)).collect::<Result<_, _>>()?;
            return Ok((outcomes, refused.map(Duet::Refused)));
        };
        let mut shared = None;
        let outcome = |trial: &&Trial| {
            self.now_unix_s += estimate_s(trial);
            let noise = self.noise_of(trial);
            let shared = *shared.get_or_insert(noise);
            self.pretend(trial, shared + own * (noise - shared))
        };
        Ok((trials.iter().map(outcome).collect(), Some(Duet::Held)))
    }

    fn now_unix_s(&self) -> f64 {
        self.now_unix_s
    }
}

/// A number of operations that supports a p99.
const ENOUGH: f64 = 2000.0;

/// Makes up a sound measurement with this figure.
fn measurement(trial: &Trial, kind: Figure, figure: f64) -> Measurement {
    let (window, work) = (trial.timing.measure_s, trial.scenario.work());
    // The number of operations is whole, and the length of the window makes the rate exact.
    let (count, elapsed_s, us) = match kind {
        Figure::MsPerUpload => ((window * 1e3 / figure).round().max(1.0), window, figure * 1e3),
        kind if kind.needs_rate() || kind.is_time_of_answer() => (ENOUGH, window, figure),
        _ => {
            let count = (figure * window).round().max(1.0);
            (count, count / figure, 1e6 / figure)
        }
    };
    let n = count as u64;
    let buckets = vec![(us.round().max(1.0) as u64, n)];
    let latency = match kind.percentile() {
        Some(p) => Latency::from_buckets(tail(p, figure)),
        None => Latency { count: n, min: us, mean: us, max: us, buckets, ..Latency::default() },
    };
    let streamed = matches!(work, Work::Streams(_)).then(|| latency.clone());
    let events = if streamed.is_some() { n } else { 0 };
    Measurement {
        elapsed_s,
        first_byte_us: streamed.clone(),
        first_event_us: streamed.clone(),
        gap_us: streamed.clone(),
        longest_gap_us: streamed,
        events,
        event_reads: events,
        attempts: n.saturating_add(1),
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
        max_rate: trial.objective.as_ref().map(|_| {
            let per_s = count / elapsed_s;
            MaxRate { per_s, fails_at: Some(per_s * 1.02), busiest_core: 0.5, tries: 8 }
        }),
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

/// [`ENOUGH`] times with an exponential distribution, of which this percentile is so many microseconds.
pub(crate) fn tail(p: f64, us: f64) -> Vec<(u64, u64)> {
    const EACH: f64 = 10.0;
    let last = ENOUGH / EACH;
    let time = |bucket: f64| -(1.0 - (bucket - 0.5) / last).ln();
    let of_percentile = time((p / 100.0 * last).ceil());
    let buckets = (1..=last as u32).map(|bucket| us * time(f64::from(bucket)) / of_percentile);
    let buckets: Vec<(u64, u64)> = buckets.map(|us| (us.round().max(1.0) as u64, EACH as u64)).collect();
    stats::merge_buckets([buckets.as_slice()])
}

/// Memory that grows by a tenth to its peak, sampled in the middle of each quarter of the window.
fn course(peak: u64, elapsed_s: f64) -> Vec<(u64, u64)> {
    let sample = |quarter: u64| {
        let middle_ms = elapsed_s * 250.0 * (quarter as f64 + 0.5);
        (middle_ms as u64, peak / 30 * (27 + quarter))
    };
    (0..4).map(sample).collect()
}

fn apply(rule: &Rule, m: &mut Measurement) {
    if let Some(version) = &rule.versions {
        m.system.version = printable::printable(version);
    }
    for (class, count) in &rule.errors {
        m.errors.insert(class.clone(), *count);
        m.attempts += count;
        m.first_errors.insert(class.clone(), "as the file says".to_owned());
        m.mean_error_us = m.service_us.mean;
    }
    rule.measured.apply(m);
}
