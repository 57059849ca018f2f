//! One scenario's trials as one line of numbers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{
    FEWEST_ROUNDS, LEVEL, Location, Sample, Spread, median, median_ratio, merge_buckets,
    percentile_of_buckets,
};
use systems::is_reference;

use super::Detail;
use super::ceiling;
use super::effort::Effort;
use crate::doubt::{Doubt, Evidence, Setting, doubts};
use crate::experiment::Figure;
use crate::observation::{Latency, Measurement, Observation, Outcome, Scenario, ServerCounts};
use crate::plan::Planned;

/// The share of failed operations above which a row ranks nothing (a published table of pooled clients ranked one with 79.6 % errors first).
pub const RANKED_ERRORS: f64 = 0.01;

/// What a scenario's trials amount to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Estimate {
    /// What was executed.
    pub scenario: Scenario,
    /// Trials that were measured.
    pub trials: u32,
    /// Trials that failed; the reasons are among the experiment's failures.
    pub failed: u32,
    /// The median over trials of the experiment's figure, in its unit; None where no trial has one.
    pub figure: Option<f64>,
    /// What the figure lies between with 95 % confidence; None of fewer than three trials.
    pub interval: Option<(f64, f64)>,
    /// How far the trials' figures lie apart.
    pub spread: Option<Spread>,
    /// The figure of each round's trial.
    pub by_round: BTreeMap<u32, f64>,
    /// The share of the reference's speed, 1 is as fast: the median over rounds of the ratio inside the round.
    pub of_reference: Option<f64>,
    /// CPU seconds of the system for each request, payload byte (`upload`) or frame: the median over trials.
    pub cpu_s_per_unit: Option<f64>,
    /// CPU seconds a second; above 1 on several cores: the median over trials.
    pub cpu_share: Option<f64>,
    /// What the kernel did for it: the reason beside its speed.
    pub work: Effort,
    /// The highest proportional set size of any trial, bytes; None where it could not be read.
    pub peak_memory_bytes: Option<u64>,
    /// The kernel's socket memory at its highest in any trial, bytes.
    pub socket_memory_bytes: u64,
    /// Operations under way in the windows of all trials: `successes` + all `errors` + `in_flight`.
    pub attempts: u64,
    /// Verified operations of all trials.
    pub successes: u64,
    /// Operations still under way as a window closed, all trials.
    pub in_flight: u64,
    /// Failed operations of all trials by class.
    pub errors: BTreeMap<String, u64>,
    /// Failed operations as a share of those that ended, 0..=1.
    pub error_share: f64,
    /// Response times of all trials together (from the intended send), microseconds; None where there are too
    /// few to support the percentile.
    pub p50_us: Option<u64>,
    /// See `p50_us`.
    pub p99_us: Option<u64>,
    /// Service times (from the actual send), as `p50_us`; None as well where a client's driver cannot tell them.
    pub service_p50_us: Option<u64>,
    /// See `service_p50_us`.
    pub service_p99_us: Option<u64>,
    /// `clients`: waits for a connection of the pool, as `service_p50_us`.
    pub pool_wait_p50_us: Option<u64>,
    /// See `pool_wait_p50_us`.
    pub pool_wait_p99_us: Option<u64>,
    /// Open loop: arrivals that were sent late, as a share of all; None in a closed loop.
    pub late_share: Option<f64>,
    /// Open loop: arrivals that were given up, as a share of all; None in a closed loop.
    pub dropped_share: Option<f64>,
    /// `clients`: most connections that Narrows' server had open at once, in any trial.
    pub peak_connections: Option<u64>,
    /// `clients`: connections that Narrows' server was the first to close, all trials.
    pub server_closes: Option<u64>,
    /// `clients`: the most connections that it was told to open.
    pub pool_cap: Option<u64>,
    /// `clients`: whether the driver's and the server's counts agreed in every trial.
    pub counts_agree: Option<bool>,
    /// Whether the system says that its work is not that of the others.
    pub unequal: bool,
    /// What makes at least half of its trials doubtful, with the figures of the first of them.
    pub doubts: BTreeMap<Doubt, Evidence>,
    /// What figures show beside all this.
    pub detail: Detail,
}

impl Estimate {
    /// Whether the figure may be ranked: it may be compared, and the generator was not the bottleneck.
    pub fn ranks(&self) -> bool {
        self.compares() && !self.doubts.keys().any(|doubt| doubt.disqualifies())
    }

    /// Whether it has a place in a ranking: nothing is ranked without an interval.
    pub fn is_ranked(&self) -> bool {
        self.ranks() && self.interval.is_some()
    }

    /// Whether there is a figure above zero that the server's counts do not contradict, few operations failed, and nothing
    /// disqualifies it but that the generator was at its limit.
    pub fn compares(&self) -> bool {
        let fair = |doubt: &Doubt| *doubt == Doubt::GeneratorBound || !doubt.disqualifies();
        self.figure.is_some_and(|f| f > 0.0)
            && self.error_share <= RANKED_ERRORS
            && self.counts_agree != Some(false)
            && self.doubts.keys().all(fair)
    }

    /// Whether the generator may have been the bottleneck: the system is at least as fast as the figure says.
    pub fn is_lower_bound(&self) -> bool {
        self.doubts.contains_key(&Doubt::GeneratorBound)
    }

    /// Whether this is Narrows' own endpoint.
    pub fn is_reference(&self) -> bool {
        is_reference(&self.scenario.system)
    }
}

/// A trial's figure, in its unit; None where no operation was under way or, for times, none succeeded (for a percentile: too few).
///
/// `ms_per_upload` is the trial's *mean* service time: its total is what a sequence of uploads costs, it is exact where
/// a percentile of a handful of uploads would not be. Across trials it is the median that counts, so that one
/// disturbed trial does not move it.
///
/// A window in which nothing ended, well or badly, has no rate: what was under way may be a moment from its end.
pub fn figure_of(figure: Figure, m: &Measurement) -> Option<f64> {
    let rate = |units: u64| (m.elapsed_s > 0.0 && m.ended() > 0).then(|| units as f64 / m.elapsed_s);
    match figure {
        Figure::MsPerUpload => (m.service_us.count > 0).then_some(m.service_us.mean / 1e3),
        Figure::BytesPerS => rate(m.payload_bytes),
        Figure::FramesPerS => rate(m.units),
        Figure::RequestsPerS => rate(m.successes),
        Figure::P99Us => percentile_of_buckets(&m.response_us.buckets, 99.0).map(|us| us as f64),
    }
}

type ByRound<'a> = BTreeMap<u32, &'a Measurement>;

/// One estimate for each scenario of the plan, in its order.
pub(super) fn estimates(planned: &Planned, observations: &[&Observation]) -> Vec<Estimate> {
    let mut measured: BTreeMap<&Scenario, ByRound> = BTreeMap::new();
    let mut failed: BTreeMap<&Scenario, u32> = BTreeMap::new();
    for observation in observations.iter().filter(|observation| !observation.trial.twin) {
        let trial = &observation.trial;
        match &observation.outcome {
            Outcome::Measured(m) => {
                measured.entry(&trial.scenario).or_default().insert(trial.round, m);
            }
            Outcome::Failed(_) => *failed.entry(&trial.scenario).or_default() += 1,
        }
    }
    let none = ByRound::new();
    let of = |scenario: &Scenario| measured.get(scenario).unwrap_or(&none);
    let each = planned.scenarios.iter().map(|scenario| {
        let failed = failed.get(scenario).copied().unwrap_or(0);
        estimate(planned.figure, scenario, of(scenario), of(&scenario.reference()), failed)
    });
    let mut estimates: Vec<Estimate> = each.collect();
    ceiling::mark(planned.figure, &mut estimates);
    estimates
}

/// The figures of the reference's second trial in each round.
pub(super) fn twin(planned: &Planned, observations: &[&Observation]) -> BTreeMap<u32, f64> {
    let twins = observations.iter().filter(|observation| observation.trial.twin);
    let figures = twins.filter_map(|observation| match &observation.outcome {
        Outcome::Measured(m) => Some((observation.trial.round, figure_of(planned.figure, m)?)),
        Outcome::Failed(_) => None,
    });
    figures.collect()
}

/// What the figure lies between with 95 % confidence, as if the machine stood still: comparisons inside rounds know
/// more. None of fewer than three figures.
fn interval(figures: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let (low, high) = Location::of(&logs).filter(|_| logs.len() >= FEWEST_ROUNDS)?.interval(LEVEL);
    Some((low.exp(), high.exp()))
}

fn estimate(
    figure: Figure,
    scenario: &Scenario,
    trials: &ByRound,
    reference: &ByRound,
    failed: u32,
) -> Estimate {
    let all = || trials.values().copied();
    let unit = &scenario.workload().about().unit;
    let figures: Vec<f64> = all().filter_map(|m| figure_of(figure, m)).collect();
    let interval = interval(&figures);
    let sample = Sample::new(figures).ok();
    let pairs = trials.iter().filter_map(|(round, m)| {
        let (own, ceiling) = (figure_of(figure, m)?, figure_of(figure, reference.get(round)?)?);
        Some(if figure.more_is_better() { (own, ceiling) } else { (ceiling, own) })
    });
    let mut errors = BTreeMap::new();
    for (class, count) in all().flat_map(|m| &m.errors).filter(|(_, count)| **count > 0) {
        *errors.entry(class.clone()).or_insert(0) += count;
    }
    let (successes, wrong) = (all().map(|m| m.successes).sum::<u64>(), errors.values().sum::<u64>());
    let buckets = |of: fn(&Measurement) -> &Latency| merge_buckets(all().map(|m| of(m).buckets.as_slice()));
    let response = buckets(Measurement::latency);
    let (service, waits) = (buckets(|m| &m.service_us), buckets(|m| &m.pool_wait_us));
    let attempts = all().map(|m| m.attempts).sum::<u64>();
    let arrivals = attempts + all().map(|m| m.dropped).sum::<u64>();
    let of_arrivals =
        |count: u64| (scenario.work().is_open_loop() && arrivals > 0).then(|| count as f64 / arrivals as f64);
    let servers: Vec<&ServerCounts> = all().filter_map(|m| m.server.as_ref()).collect();
    Estimate {
        scenario: scenario.clone(),
        trials: trials.len() as u32,
        failed,
        figure: sample.as_ref().map(Sample::median),
        interval,
        spread: sample.as_ref().and_then(Sample::spread),
        by_round: trials.iter().filter_map(|(round, m)| Some((*round, figure_of(figure, m)?))).collect(),
        of_reference: median_ratio(pairs),
        cpu_s_per_unit: median_ratio(all().map(|m| (m.system.cpu_s, m.worth(unit)))),
        cpu_share: median(all().filter(|m| m.elapsed_s > 0.0).map(|m| m.system.cpu_s / m.elapsed_s)),
        work: Effort::of(unit, all()),
        peak_memory_bytes: all().map(|m| m.system.peak_pss_bytes).max().filter(|bytes| *bytes > 0),
        socket_memory_bytes: all().map(|m| m.system.socket_memory_bytes).max().unwrap_or(0),
        attempts,
        successes,
        in_flight: all().map(|m| m.in_flight).sum(),
        errors,
        error_share: if wrong == 0 { 0.0 } else { wrong as f64 / (wrong + successes) as f64 },
        p50_us: percentile_of_buckets(&response, 50.0),
        p99_us: percentile_of_buckets(&response, 99.0),
        service_p50_us: percentile_of_buckets(&service, 50.0),
        service_p99_us: percentile_of_buckets(&service, 99.0),
        pool_wait_p50_us: percentile_of_buckets(&waits, 50.0),
        pool_wait_p99_us: percentile_of_buckets(&waits, 99.0),
        late_share: of_arrivals(all().map(|m| m.late).sum()),
        dropped_share: of_arrivals(all().map(|m| m.dropped).sum()),
        peak_connections: servers.iter().map(|s| s.peak_connections).max(),
        server_closes: (!servers.is_empty()).then(|| servers.iter().map(|s| s.closes).sum()),
        pool_cap: scenario.work().pool_cap(),
        counts_agree: (!servers.is_empty()).then(|| servers.iter().all(|s| s.agree())),
        unequal: all().any(|m| !m.system.unequal.is_empty()),
        doubts: shared_doubts(scenario, trials),
        detail: Detail::of(all(), &response),
    }
}

/// The doubts about one trial of a scenario.
pub(super) fn doubts_of(scenario: &Scenario, m: &Measurement) -> Vec<Evidence> {
    let setting = Setting {
        pool_cap: scenario.work().pool_cap(),
        closed_loop: !scenario.work().is_open_loop(),
        short_exchanges: scenario.workload().about().short_exchanges,
        ramp: false,
    };
    doubts(m, &setting)
}

/// The doubts of at least half of the trials: one disturbed trial among several does not speak for all.
fn shared_doubts(scenario: &Scenario, trials: &ByRound) -> BTreeMap<Doubt, Evidence> {
    let mut found: BTreeMap<Doubt, (usize, Evidence)> = BTreeMap::new();
    for m in trials.values() {
        for seen in doubts_of(scenario, m) {
            found.entry(seen.doubt()).or_insert((0, seen)).0 += 1;
        }
    }
    // The reference is there to show how far the generator goes.
    found.retain(|doubt, (count, _)| {
        *count * 2 >= trials.len() && !(*doubt == Doubt::GeneratorBound && is_reference(&scenario.system))
    });
    found.into_iter().map(|(doubt, (_, seen))| (doubt, seen)).collect()
}
