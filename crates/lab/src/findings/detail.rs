//! What figures show of a scenario beside its estimate: the latency distribution, the course of the window, and what the
//! kernel was asked to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{median, median_ratio, percentile_of_buckets};

use crate::observation::Measurement;

/// The percentiles of a spectrum: where the field reads them, with some between for the curve.
const PERCENTILES: [f64; 13] =
    [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999];

/// More than an estimate, for figures.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Detail {
    /// Percentiles (0..100) of the response times of all trials together, microseconds; those that the number of
    /// samples supports.
    pub percentiles_us: Vec<(f64, u64)>,
    /// Successes a second in each tenth of the window: medians over trials. Empty where nobody looked.
    pub tenths_per_s: Vec<f64>,
    /// Seconds of the measured window: the median over trials.
    pub window_s: Option<f64>,
    /// Context switches of the system for each request, payload byte (`upload`) or frame: the median over trials.
    pub switches_per_unit: Option<f64>,
}

impl Detail {
    /// Of a scenario's trials: `buckets` are their latencies together, `units` what one of them is divided by.
    pub(super) fn of<'a>(
        trials: impl Iterator<Item = &'a Measurement> + Clone,
        buckets: &[(u64, u64)],
        units: impl Fn(&Measurement) -> u64,
    ) -> Self {
        let supported = |p: f64| Some((p, percentile_of_buckets(buckets, p)?));
        let tenth = |at: usize| {
            let rates = trials
                .clone()
                .filter(|m| m.elapsed_s > 0.0)
                .filter_map(move |m| Some(*m.tenths.get(at)? as f64 / (m.elapsed_s / m.tenths.len() as f64)));
            median(rates)
        };
        let tenths = trials.clone().map(|m| m.tenths.len()).max().unwrap_or(0);
        let switches = trials.clone().map(|m| (m.system.context_switches as f64, units(m) as f64));
        Self {
            percentiles_us: PERCENTILES.into_iter().filter_map(supported).collect(),
            tenths_per_s: (0..tenths).map_while(tenth).collect(),
            window_s: median(trials.clone().map(|m| m.elapsed_s)),
            switches_per_unit: median_ratio(switches),
        }
    }
}
