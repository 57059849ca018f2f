//! Estimates: the numbers that summarise one scenario's trials.

use std::collections::BTreeMap;

use measurement::doubt::{Doubt, Evidence, TrialKind, doubts, explained};
use measurement::{Handshakes, Latency, Measurement, Multiplexed, RANKED_ERRORS, ServerCounts};
use serde::{Deserialize, Serialize};
use stats::{Design, Percentile, Sample, Spread, median, median_ratio};
use systems::is_reference;

use super::Detail;
use super::Rows;
use super::Warmth;
use super::bundled;
use super::ceiling;
use super::effort::Effort;
use super::level;
use super::per_connection::PerConnection;
use crate::duet;
use crate::experiment::Figure;
use crate::figures::{figure_of, resolution};
use crate::observation::{Observation, Outcome, Scenario};
use crate::plan::{Planned, View};

/// The estimate of one scenario, from all of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The scenario.
    pub scenario: Scenario,
    /// The number of trials that were measured.
    pub trials: u32,
    /// The number of trials that failed. The experiment's `failures` has the reasons.
    pub failed: u32,
    /// Whether it was warm.
    #[serde(flatten)]
    pub warmth: Warmth,
    /// The experiment's figure in its unit: the geometric mean over trials, without those at the ends from seven on; moved so that the
    /// ratios of figures are those of the claims and of `of_reference`. A percentile is one of all trials' answers together, moved
    /// likewise. None if no trial has one, or if there are too few answers for a percentile.
    pub figure: Option<f64>,
    /// The 95 % confidence interval of the figure itself: of what this machine gave while the run lasted. What a round did to all
    /// scenarios is part of it, so it is wider than that of a comparison. None if there are fewer than three trials.
    pub interval: Option<(f64, f64)>,
    /// The spread of the trials' figures.
    pub spread: Option<Spread>,
    /// By which share of it the figure may be off in all trials alike, because a window holds whole operations.
    #[serde(default)]
    pub resolution: f64,
    /// The figure of each round's trial.
    pub by_round: BTreeMap<u32, f64>,
    /// For a percentile: the jackknife's pseudo-value of each round's trial, a logarithm (`stats::pseudo_values`). Their mean is the
    /// logarithm of the percentile of all answers, and their standard error is its error. Empty for other figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pseudo_values: BTreeMap<u32, f64>,
    /// The speed as a share of the yardstick's ([`Setup::yardstick`]): the ratio of the two figures. 1 is as fast. None if they share
    /// no round.
    pub of_reference: Option<f64>,
    /// CPU seconds of the system per request, payload byte (`upload`) or frame, the median over trials.
    pub cpu_s_per_unit: Option<f64>,
    /// CPU seconds per second, the median over trials. It can exceed 1 on several cores.
    pub cpu_share: Option<f64>,
    /// The kernel's work for the system, which may explain its speed.
    pub work: Effort,
    /// The highest proportional set size of any trial, in bytes. None if it could not be read.
    pub peak_memory_bytes: Option<u64>,
    /// Seconds from the system's start until it was ready, the median over trials. None if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_s: Option<f64>,
    /// Seconds from the send of the first request to its right answer, the median over trials. None if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_request_s: Option<f64>,
    /// The proportional set size when the system was ready, in bytes, the median over trials. None if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_memory_bytes: Option<f64>,
    /// Events of streams for each read that brought any, the median over trials. None if there were no streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_read: Option<f64>,
    /// The mean time to the first event of a stream in microseconds, the median over trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_us: Option<f64>,
    /// The memory for each of many connections. None if the trials cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_per_connection: Option<PerConnection>,
    /// The highest socket memory in the kernel of any trial, in bytes.
    pub socket_memory_bytes: u64,
    /// Operations under way in the windows of all trials: `successes` + all `errors` + `in_flight`.
    pub attempts: u64,
    /// Verified operations of all trials.
    pub successes: u64,
    /// Operations of all trials that were still under way when the window closed.
    pub in_flight: u64,
    /// Failed operations of all trials, by class.
    pub errors: BTreeMap<String, u64>,
    /// Failed operations as a share of those that ended, 0..=1.
    pub error_share: f64,
    /// Uploads of all trials whose body was sent although `100 Continue` had not come. A trial with one has no figure.
    pub no_continue: u64,
    /// `clients`: those of the failed operations that the server's announced closes explain: requests that were lost with
    /// their connection, at most one for each close.
    pub explained_errors: u64,
    /// Response time (from the intended send) of all trials together, in microseconds. None if there are too few
    /// operations for the percentile. A lower bound if unanswered operations of an open loop may lie below it.
    pub p50_us: Option<Percentile>,
    /// See `p50_us`.
    pub p99_us: Option<Percentile>,
    /// Service time (from the actual send), like `p50_us`. Also None if a client's driver does not measure it.
    pub service_p50_us: Option<Percentile>,
    /// See `service_p50_us`.
    pub service_p99_us: Option<Percentile>,
    /// `clients`: the wait for a connection of the pool, like `service_p50_us`.
    pub pool_wait_p50_us: Option<Percentile>,
    /// See `pool_wait_p50_us`.
    pub pool_wait_p99_us: Option<Percentile>,
    /// Open loop: late sends as a share of all arrivals. None in a closed loop.
    pub late_share: Option<f64>,
    /// Open loop: dropped arrivals as a share of all arrivals. None in a closed loop.
    pub dropped_share: Option<f64>,
    /// `clients`: the most connections that Narrows' server had open at once in any trial.
    pub peak_connections: Option<u64>,
    /// `clients`: connections of all trials that Narrows' server closed first.
    pub server_closes: Option<u64>,
    /// `clients`: the most connections that the client was told to open.
    pub pool_cap: Option<u64>,
    /// `clients`: whether the driver's and the server's counts agreed in every trial.
    pub counts_agree: Option<bool>,
    /// The handshakes of TLS in the windows of all trials. None if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Opened>,
    /// What connections of HTTP/2 carried at once in the windows of all trials. None if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplexed: Option<Multiplexed>,
    /// Whether the system's manifest says that its work differs from that of the others.
    pub unequal: bool,
    /// The doubts about at least half of the trials, each with the evidence of the first such trial.
    pub doubts: BTreeMap<Doubt, Evidence>,
    /// Detail for figures.
    pub detail: Detail,
}

impl Estimate {
    /// Whether the figure may be ranked: it may be compared, and no doubt disqualifies it.
    pub fn ranks(&self) -> bool {
        self.compares() && !self.doubts.keys().any(|doubt| doubt.disqualifies())
    }

    /// Whether the scenario has a place in a ranking. It needs an interval.
    pub fn is_ranked(&self) -> bool {
        self.ranks() && self.interval.is_some()
    }

    /// Whether the figure may be compared: it is above zero, few operations failed, the server's counts do not contradict
    /// it, and no doubt disqualifies it, except that the generator may have been the bottleneck.
    pub fn compares(&self) -> bool {
        self.figure.is_some_and(|f| f > 0.0)
            && self.unexplained_share() <= RANKED_ERRORS
            && self.counts_agree != Some(false)
            && !self.doubts.keys().any(|doubt| self.is_barred_by(*doubt))
    }

    /// Whether a doubt forbids to compare the figure.
    pub(super) fn is_barred_by(&self, doubt: Doubt) -> bool {
        doubt.disqualifies() && doubt != Doubt::GeneratorBound
    }

    /// Whether the figure may be compared only because the server's closes explain the errors.
    pub fn is_explained(&self) -> bool {
        self.error_share > RANKED_ERRORS && self.compares()
    }

    /// The share of failed operations without those that the server's closes explain.
    pub(super) fn unexplained_share(&self) -> f64 {
        let failed: u64 = self.errors.values().sum();
        share(failed.saturating_sub(self.explained_errors), failed + self.successes)
    }

    /// Whether the generator may have been the bottleneck. Then the system is at least as fast as the figure says.
    pub fn is_lower_bound(&self) -> bool {
        self.doubts.contains_key(&Doubt::GeneratorBound)
    }

    /// By how much the logarithm of the figure may be off, because of its [`resolution`](Self::resolution) and of a drift.
    pub(crate) fn bound(&self) -> f64 {
        self.warmth.to_go - (-self.resolution.clamp(0.0, 0.99)).ln_1p()
    }

    /// Whether this is Narrows' own endpoint.
    pub fn is_reference(&self) -> bool {
        is_reference(&self.scenario.system)
    }
}

/// Handshakes of TLS, and how long connections took to open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Opened {
    /// Full handshakes, including those in which the server asked for a key of another group.
    pub full: u64,
    /// Handshakes in which the server accepted a session.
    pub resumed: u64,
    /// Sessions that were offered.
    pub offered: u64,
    /// Sessions that were offered and not accepted.
    pub refused: u64,
    /// From the request for a connection to its readiness, in microseconds. None if there are too few connections.
    pub p50_us: Option<Percentile>,
    /// See `p50_us`.
    pub p99_us: Option<Percentile>,
}

impl Opened {
    fn of<'a>(trials: impl Iterator<Item = &'a Measurement> + Clone) -> Option<Self> {
        let found = trials.filter_map(|m| m.handshakes.as_ref());
        let opening = Latency::together(found.clone().map(|found| &found.opening_us));
        let sum = |of: fn(&Handshakes) -> u64| found.clone().map(of).sum::<u64>();
        (sum(Handshakes::all) > 0).then(|| Self {
            full: sum(|found| found.signed()),
            resumed: sum(|found| found.resumed),
            offered: sum(|found| found.offered),
            refused: sum(Handshakes::refused),
            p50_us: opening.percentile(50.0),
            p99_us: opening.percentile(99.0),
        })
    }
}

type ByRound<'a> = BTreeMap<u32, &'a Measurement>;

type LatencyOf = fn(&Measurement) -> &Latency;

/// One estimate for each scenario of the plan, in its order; and their figures as rows that can be compared.
pub(super) fn estimates(
    planned: &View<'_>,
    design: Design,
    observations: &[&Observation],
) -> (Vec<Estimate>, Rows) {
    let counted = duet::counted(observations);
    let observations = &counted;
    let mut measured: BTreeMap<&Scenario, ByRound> = BTreeMap::new();
    let mut failed: BTreeMap<&Scenario, u32> = BTreeMap::new();
    for observation in observations.iter().filter(|observation| !observation.trial.twin) {
        let trial = &observation.trial;
        match &observation.outcome {
            Outcome::Measured(m) => {
                measured.entry(&trial.scenario).or_default().insert(trial.block(), m);
            }
            Outcome::Failed(_) => *failed.entry(&trial.scenario).or_default() += 1,
        }
    }
    let none = ByRound::new();
    let trials = |scenario: &Scenario| measured.get(scenario).unwrap_or(&none);
    let estimates = planned.scenarios.iter().map(|scenario| {
        let failed = failed.get(scenario).copied().unwrap_or(0);
        let own = trials(scenario);
        let warmth = warmth(planned, scenario, own);
        Estimate { warmth, ..estimate(planned.figure, scenario, own, failed) }
    });
    let mut estimates: Vec<Estimate> = estimates.collect();
    let twin = twin(planned, observations);
    let rows = Rows::new(planned.figure, design, &estimates, Some(&twin).filter(|twin| !twin.is_empty()));
    level::set(planned, &rows, &mut estimates, &[], &[]);
    if !planned.figure.is_cost() {
        ceiling::mark(&rows, &mut estimates);
    }
    bundled::mark(planned, &mut estimates);
    (estimates, rows)
}

/// The figure of the twin in each round.
pub(super) fn twin(planned: &View<'_>, observations: &[&Observation]) -> BTreeMap<u32, f64> {
    let twins = duet::counted(observations).into_iter().filter(|observation| observation.trial.twin);
    let unit = &planned.workload.about().unit;
    let figures = twins.filter_map(|observation| match &observation.outcome {
        Outcome::Measured(m) => Some((observation.trial.block(), figure_of(planned.figure, unit, m)?)),
        Outcome::Failed(_) => None,
    });
    figures.collect()
}

fn estimate(figure: Figure, scenario: &Scenario, trials: &ByRound, failed: u32) -> Estimate {
    let (all, unit) = (|| trials.values().copied(), &scenario.workload().about().unit);
    let figure_of = |m: &Measurement| figure_of(figure, unit, m);
    let sample = Sample::new(all().filter_map(figure_of).collect()).ok();
    let pooled = figure.percentile().and_then(|p| pooled(trials, &figure_of, p));
    let errors = errors(all());
    let (successes, wrong) = (all().map(|m| m.successes).sum::<u64>(), errors.values().sum::<u64>());
    let kinds: [LatencyOf; 3] = [Measurement::latency, |m| &m.service_us, |m| &m.pool_wait_us];
    let [response, service, waits] = kinds.map(|latency| Latency::together(all().map(latency)));
    let (attempts, arrivals) = (all().map(|m| m.attempts).sum(), all().map(Measurement::due).sum::<u64>());
    let open = all().any(|m| is_open_loop(scenario, m));
    let share_of_arrivals = |count: u64| (open && arrivals > 0).then(|| count as f64 / arrivals as f64);
    let servers: Vec<&ServerCounts> = all().filter_map(|m| m.server.as_ref()).collect();
    Estimate {
        scenario: scenario.clone(),
        trials: trials.len() as u32,
        failed,
        warmth: Warmth::default(),
        // `level` sets the figure of those that are above zero, its interval and the share.
        figure: pooled.as_ref().map_or_else(|| sample.as_ref().map(Sample::median), |pooled| pooled.0),
        interval: None,
        spread: sample.as_ref().and_then(Sample::spread),
        resolution: resolution_of(figure, scenario, trials),
        by_round: trials.iter().filter_map(|(round, m)| Some((*round, figure_of(m)?))).collect(),
        pseudo_values: pooled.map(|pooled| pooled.1).unwrap_or_default(),
        of_reference: None,
        cpu_s_per_unit: median_ratio(all().map(|m| (m.system.cpu_s, m.worth(unit)))),
        cpu_share: median(all().filter(|m| m.elapsed_s > 0.0).map(|m| m.system.cpu_s / m.elapsed_s)),
        work: Effort::of(unit, all()),
        peak_memory_bytes: all().map(|m| m.system.peak_pss_bytes).max().filter(|bytes| *bytes > 0),
        ready_s: median(all().filter_map(|m| m.system.ready_s)),
        first_request_s: median(all().filter_map(|m| m.system.first_request_s)),
        rest_memory_bytes: median(all().filter_map(|m| Some(m.system.rest_pss_bytes? as f64))),
        events_per_read: median(all().filter_map(Measurement::events_per_read)),
        first_event_us: median(all().filter_map(|m| Some(m.first_event_us.as_ref()?.mean))),
        memory_per_connection: PerConnection::of(all()),
        socket_memory_bytes: all().map(|m| m.system.socket_memory_bytes).max().unwrap_or(0),
        attempts,
        successes,
        in_flight: all().map(|m| m.in_flight).sum(),
        errors,
        // In an open loop the errors are those of all arrivals, whenever they ended.
        error_share: share(wrong, if open { attempts } else { wrong + successes }),
        explained_errors: all().map(|m| explained(m, &kind_of(scenario, m))).sum(),
        no_continue: all().map(|m| m.no_continue).sum(),
        p50_us: response.percentile(50.0).or_else(|| metered(all(), 50.0)),
        p99_us: response.percentile(99.0).or_else(|| metered(all(), 99.0)),
        service_p50_us: service.percentile(50.0),
        service_p99_us: service.percentile(99.0),
        pool_wait_p50_us: waits.percentile(50.0),
        pool_wait_p99_us: waits.percentile(99.0),
        late_share: share_of_arrivals(all().map(|m| m.late).sum()),
        dropped_share: share_of_arrivals(all().map(|m| m.dropped).sum()),
        peak_connections: servers.iter().map(|s| s.peak_connections).max(),
        server_closes: (!servers.is_empty()).then(|| servers.iter().map(|s| s.closes).sum()),
        pool_cap: scenario.work().pool_cap(),
        counts_agree: (!servers.is_empty()).then(|| servers.iter().all(|s| s.agree())),
        handshakes: Opened::of(all()),
        multiplexed: Multiplexed::together(all().filter_map(|m| m.multiplexed.as_ref())),
        unequal: all().any(|m| !m.system.unequal.is_empty()),
        doubts: shared_doubts(figure, scenario, trials),
        detail: Detail::of(all(), &response),
    }
}

/// The median of percentile `p` of all trials, where another program measured: it says a percentile of each, and not its answers.
fn metered<'m>(all: impl Iterator<Item = &'m Measurement>, p: f64) -> Option<Percentile> {
    let us = median(all.filter_map(|m| m.metered.as_ref()?.percentile(p)))?;
    Some(Percentile::Exactly(us.round() as u64))
}

/// Percentile `p` of the answers of all trials that have a figure of their own, in microseconds, and [`Estimate::pseudo_values`]. The
/// percentile is None if there are too few answers, and all is if another program measured, which says none of them.
fn pooled(
    trials: &ByRound,
    figure_of: &impl Fn(&Measurement) -> Option<f64>,
    p: f64,
) -> Option<(Option<f64>, BTreeMap<u32, f64>)> {
    if trials.values().any(|m| m.metered.is_some()) {
        return None;
    }
    let with_figure = || trials.iter().filter(|(_, m)| figure_of(m).is_some());
    let together = Latency::together(with_figure().map(|(_, m)| &m.response_us));
    let samples = with_figure().map(|(round, m)| (*round, m.response_us.samples()));
    let (rounds, samples): (Vec<u32>, Vec<_>) = samples.filter(|(_, samples)| !samples.is_empty()).unzip();
    let pseudo_values = stats::pseudo_values(&samples, p).unwrap_or_default();
    let percentile = together.percentile(p).map(|us| us.value() as f64);
    Some((percentile, rounds.into_iter().zip(pseudo_values).collect()))
}

/// Failed operations of all trials, by class.
fn errors<'a>(trials: impl Iterator<Item = &'a Measurement>) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for (class, count) in trials.flat_map(|m| &m.errors).filter(|(_, count)| **count > 0) {
        *errors.entry(class.clone()).or_insert(0) += count;
    }
    errors
}

/// The median over trials of a closed loop of short exchanges. Longer ones have windows that end with them.
fn resolution_of(figure: Figure, scenario: &Scenario, trials: &ByRound) -> f64 {
    let short = scenario.workload().about().short_exchanges;
    let counted = trials.values().filter(|m| short && m.successes > 0 && !is_open_loop(scenario, m));
    median(counted.map(|m| resolution(figure, m))).unwrap_or(0.0)
}

/// Whether a scenario was warm. Without a warm-up, the beginning is what is measured.
fn warmth(planned: &Planned, scenario: &Scenario, trials: &ByRound) -> Warmth {
    if planned.timing.warmup_s <= 0.0 {
        return Warmth::default();
    }
    let short = scenario.workload().about().short_exchanges;
    let all = || trials.values().copied();
    let paced_by_callers = all().filter(|m| short && m.successes > 0 && !is_open_loop(scenario, m));
    Warmth::of(all(), paced_by_callers, planned.threshold.ln_1p())
}

fn share(part: u64, of: u64) -> f64 {
    if part == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// Whether arrivals followed a schedule: that of the work, or one that the trial searched itself.
fn is_open_loop(scenario: &Scenario, m: &Measurement) -> bool {
    scenario.work().is_open_loop() || m.max_rate.is_some()
}

/// The kind of a scenario's trial.
fn kind_of(scenario: &Scenario, m: &Measurement) -> TrialKind {
    TrialKind {
        pool_cap: scenario.work().pool_cap(),
        announced_closes: scenario.work().announces_closes(),
        closed_loop: !is_open_loop(scenario, m),
        short_exchanges: scenario.workload().about().short_exchanges,
        sessions: scenario.work().tls().is_some_and(|tls| tls.sessions),
        ramp: false,
    }
}

/// The doubts about this figure in one trial of a scenario.
pub(super) fn doubts_of(figure: Figure, scenario: &Scenario, m: &Measurement) -> Vec<Evidence> {
    let found = doubts(m, &kind_of(scenario, m)).into_iter();
    found.filter(|seen| seen.concerns(figure)).collect()
}

/// The doubts about at least half of the trials. One disturbed trial among several does not discredit the others.
fn shared_doubts(figure: Figure, scenario: &Scenario, trials: &ByRound) -> BTreeMap<Doubt, Evidence> {
    let mut found: BTreeMap<Doubt, (usize, Evidence)> = BTreeMap::new();
    for m in trials.values() {
        for seen in doubts_of(figure, scenario, m) {
            found.entry(seen.doubt()).or_insert((0, seen)).0 += 1;
        }
    }
    // The reference is meant to reach the generator's limit.
    found.retain(|doubt, (count, _)| {
        *count * 2 >= trials.len() && !(*doubt == Doubt::GeneratorBound && is_reference(&scenario.system))
    });
    found.into_iter().map(|(doubt, (_, seen))| (doubt, seen)).collect()
}
