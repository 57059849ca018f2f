//! The figures of a trial: single numbers, in their units, from what was measured.

use measurement::RANKED_ERRORS;
use measurement::doubt::{error_share, no_figure};
use measurement::{KernelCounts, Latency, Measurement};
use systems::work::WorkUnit;

use crate::experiment::Figure;
use crate::observation::{Observation, Outcome, Trial};
use crate::setup::Setup;

/// A trial's figure in its unit. A time is None if no operation succeeded. A percentile may be one of few operations: whether all
/// trials have enough is for the estimate to say.
///
/// `ms_per_upload` is the trial's *mean* service time, because a percentile of a handful of uploads would be inexact.
///
/// None if no operation ended in the window, because those under way may be about to end; of a percentile, if none was given up
/// either. None if the generator waited in vain for `100 Continue`, because that second is not the system's.
pub(crate) fn figure_of(figure: Figure, unit: &WorkUnit, m: &Measurement) -> Option<f64> {
    let given_up = figure.percentile().is_some() && !m.response_us.unanswered.is_empty();
    if no_figure(m).is_some() && !(given_up && m.no_continue == 0) {
        return None;
    }
    let rate = |units: f64| (m.elapsed_s > 0.0 && m.ended() > 0).then(|| units / m.elapsed_s);
    let percentile = || {
        let p = figure.percentile()?;
        match &m.metered {
            Some(metered) => metered.percentile(p),
            None => m.response_us.of_trial(p).map(|us| us as f64),
        }
    };
    let counted = |of: fn(&KernelCounts, &WorkUnit) -> Option<f64>| {
        of(m.counted.as_ref()?, unit).map(|each| each * unit.size)
    };
    let time = |times: &Option<Latency>, p: f64| times.as_ref()?.of_trial(p).map(|us| us as f64);
    match figure {
        Figure::FirstByteUs => time(&m.first_byte_us, 50.0),
        Figure::FirstEventUs => time(&m.first_event_us, 50.0),
        Figure::FirstEventP99Us => time(&m.first_event_us, 99.0),
        Figure::GapUs => time(&m.gap_us, 50.0),
        Figure::GapP99Us => time(&m.gap_us, 99.0),
        Figure::LongestGapUs => time(&m.longest_gap_us, 50.0),
        Figure::WholeUs => m.response_us.of_trial(50.0).map(|us| us as f64),
        Figure::EventsPerRead => m.events_per_read(),
        Figure::EventsPerS => (m.events > 0).then(|| rate(m.events as f64))?,
        Figure::GoodPerS => rate(m.good? as f64),
        Figure::MsPerUpload => (m.service_us.count > 0).then_some(m.service_us.mean / 1e3),
        Figure::BytesPerS => rate(m.payload_bytes as f64),
        Figure::FramesPerS => rate(m.units as f64),
        Figure::RequestsPerS => rate(m.done()),
        Figure::MaxRate => m.max_rate.map(|found| found.per_s),
        Figure::P50Us | Figure::P99Us => percentile(),
        Figure::CpuPerUnit => (m.worth(unit) > 0.0).then(|| m.system.cpu_s / m.worth(unit) * unit.size),
        Figure::CallsPerUnit => counted(|counts, unit| counts.calls()?.per_operation(unit)),
        Figure::InstructionsPerUnit => {
            counted(|counts, unit| counts.per_operation(counts.instructions?, unit))
        }
        // Runs of earlier versions have no first request.
        Figure::StartMs => m.system.ready_s.map(|s| (s + m.system.first_request_s.unwrap_or(0.0)) * 1e3),
        Figure::FirstRequestUs => m.system.first_request_s.map(|s| s * 1e6),
        Figure::IdleCpu => m.system.idle_cpu.map(|share| share.max(LEAST_IDLE)),
        Figure::IdleMemoryBytes => {
            m.system.rest_pss_bytes.map(|bytes| bytes as f64).filter(|bytes| *bytes > 0.0)
        }
        Figure::MemoryBytes => Some(m.system.peak_pss_bytes as f64).filter(|bytes| *bytes > 0.0),
    }
}

/// A system that sleeps takes no CPU time, and no ratio to nothing can be had. It counts as one that takes a microsecond in a second.
const LEAST_IDLE: f64 = 1e-6;

/// How exactly the edges of a closed loop's window let its figure be known, as a share of it. It is no noise: if all answers
/// take equally long, it is the same in every round. 0 for figures that do not depend on the edges.
///
/// A count of whole operations may be off by one for each caller. If the parts of operations at the edges are known, what is
/// left is how far operations differ from the mean, by which the parts were estimated. Callers that begin apart are off
/// independently of each other: by at most `spread / 2` of an operation at each edge, in standard deviations, of which two
/// are allowed.
pub(crate) fn resolution(figure: Figure, m: &Measurement) -> f64 {
    let (off, counted) = match figure {
        Figure::RequestsPerS if m.edges.is_some() => (callers_apart(m) * spread(m), m.done()),
        Figure::RequestsPerS | Figure::CpuPerUnit => (callers_apart(m), m.done()),
        // Nobody knows yet whether an answer at the edge will be good, so its part does not count.
        Figure::GoodPerS => (callers_apart(m), m.good.unwrap_or(0) as f64),
        Figure::EventsPerS => (callers_apart(m), m.events as f64),
        _ => return 0.0,
    };
    off / counted.max(1.0)
}

/// By how many whole operations a count of a closed loop may be off: one for each caller, or two standard deviations of as
/// many that began apart. In runs of earlier versions they began together.
fn callers_apart(m: &Measurement) -> f64 {
    let callers = m.concurrency as f64;
    if m.edges.is_some() { callers.min((2.0 * callers).sqrt()) } else { callers }
}

/// How far operations may differ from the mean one, as parts of one: the usual shortest and longest, and what had been under
/// way for longer when the window closed.
fn spread(m: &Measurement) -> f64 {
    /// Ages are looked at between two turns of the generator's loop.
    const INEXACT: f64 = 0.01;
    let Latency { mean, buckets, count, .. } = m.latency();
    let at = |share: f64| {
        let mut seen = 0;
        let rank = (share * *count as f64) as u64;
        let reached = |(_, count): &&(u64, u64)| {
            seen += count;
            seen > rank
        };
        buckets.iter().find(reached).map_or(*mean, |(micros, _)| *micros as f64)
    };
    let oldest = m.in_flight_us.last().map_or(0.0, |(micros, _)| *micros as f64);
    let (low, high) = (at(0.05), at(0.95).max(oldest));
    if *mean > 0.0 && high > 0.0 {
        ((1.0 - low / mean).max(0.0) + (1.0 - mean / high).max(0.0)).clamp(INEXACT, 1.0)
    } else {
        1.0
    }
}

/// The trials of an experiment, without twins, with what was measured in each. A trial that failed has nothing.
pub(crate) fn measured<'a>(
    setup: &'a Setup,
    observations: impl IntoIterator<Item = &'a Observation>,
) -> impl Iterator<Item = (&'a Trial, Option<&'a Measurement>)> {
    let own =
        observations.into_iter().filter(move |o| o.trial.scenario.experiment == setup.name && !o.trial.twin);
    own.map(|o| match &o.outcome {
        Outcome::Measured(m) => (&o.trial, Some(&**m)),
        Outcome::Failed(_) => (&o.trial, None),
    })
}

/// Whether so many operations failed that the trial is not ranked.
pub(crate) fn has_too_many_errors(m: &Measurement) -> bool {
    error_share(m) > RANKED_ERRORS
}

/// The logarithm of a trial's figure, higher if it is better. None if it has none, or too many errors to be ranked.
pub(crate) fn log_figure(figure: Figure, unit: &WorkUnit, m: &Measurement) -> Option<f64> {
    let sign = if figure.more_is_better() { 1.0 } else { -1.0 };
    Some(sign * figure_of(figure, unit, m)?.ln()).filter(|log| log.is_finite() && !has_too_many_errors(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_good_answers_may_be_off_by_one_for_each_caller() {
        let m = Measurement {
            concurrency: 2,
            good: Some(10),
            events: 200,
            elapsed_s: 0.2,
            ..Measurement::default()
        };
        assert_eq!([Figure::GoodPerS, Figure::EventsPerS].map(|figure| resolution(figure, &m)), [0.2, 0.01]);
        assert_eq!(resolution(Figure::GoodPerS, &Measurement { good: Some(0), ..m.clone() }), 2.0);
        assert_eq!(resolution(Figure::FirstEventUs, &m), 0.0);
    }
}
