//! The figures of a trial: single numbers, in their units, from what was measured.

use systems::work::WorkUnit;

use crate::doubt::{error_share, no_figure};
use crate::experiment::Figure;
use crate::observation::{KernelCounts, Measurement, Observation, Outcome, Trial};
use crate::plan::Planned;

/// The share of failed operations above which a scenario is not ranked. A published table of pooled clients ranked one
/// with 79.6 % errors first.
pub const RANKED_ERRORS: f64 = 0.01;

/// A trial's figure in its unit. A time is None if no operation succeeded, and a percentile if too few did.
///
/// `ms_per_upload` is the trial's *mean* service time, because a percentile of a handful of uploads would be inexact.
/// The estimate is the median over trials, so that one disturbed trial does not move it.
///
/// None if no operation ended in the window, because those under way may be about to end; and if the generator waited in
/// vain for `100 Continue`, because that second is not the system's.
pub(crate) fn figure_of(figure: Figure, unit: &WorkUnit, m: &Measurement) -> Option<f64> {
    if no_figure(m).is_some() {
        return None;
    }
    let rate = |units: u64| (m.elapsed_s > 0.0 && m.ended() > 0).then(|| units as f64 / m.elapsed_s);
    let percentile = |p: f64| m.response_us.percentile(p).map(|us| us.value() as f64);
    let counted = |of: fn(&KernelCounts, &WorkUnit) -> Option<f64>| {
        of(m.counted.as_ref()?, unit).map(|each| each * unit.size)
    };
    match figure {
        Figure::MsPerUpload => (m.service_us.count > 0).then_some(m.service_us.mean / 1e3),
        Figure::BytesPerS => rate(m.payload_bytes),
        Figure::FramesPerS => rate(m.units),
        Figure::RequestsPerS => rate(m.successes),
        Figure::MaxRate => m.max_rate.map(|found| found.per_s),
        Figure::P50Us => percentile(50.0),
        Figure::P99Us => percentile(99.0),
        Figure::CpuPerUnit => (m.worth(unit) > 0.0).then(|| m.system.cpu_s / m.worth(unit) * unit.size),
        Figure::CallsPerUnit => counted(|counts, unit| counts.calls()?.per_operation(unit)),
        Figure::InstructionsPerUnit => {
            counted(|counts, unit| counts.per_operation(counts.instructions?, unit))
        }
        Figure::MemoryBytes => Some(m.system.peak_pss_bytes as f64).filter(|bytes| *bytes > 0.0),
    }
}

/// The trials of an experiment, without twins, with what was measured in each. A trial that failed has nothing.
pub(crate) fn measured<'a>(
    planned: &'a Planned,
    observations: impl IntoIterator<Item = &'a Observation>,
) -> impl Iterator<Item = (&'a Trial, Option<&'a Measurement>)> {
    let own =
        observations.into_iter().filter(|o| o.trial.scenario.experiment == planned.name && !o.trial.twin);
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
