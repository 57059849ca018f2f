//! The detail of a scenario that is drawn as figures: its latency distribution, and its course over the window.

use measurement::{Latency, Measurement};
use serde::{Deserialize, Serialize};
use stats::{Percentile, median};

/// The percentiles of a latency spectrum: the usual ones, and some between them for the curve.
const PERCENTILES: [f64; 13] =
    [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999];

/// Detail for figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Detail {
    /// Percentiles (0..100) of the response times of all trials together, in microseconds. Percentiles that need more
    /// samples, and those of which only a lower bound is known, are left out.
    pub percentiles_us: Vec<(f64, u64)>,
    /// Successes per second in each tenth of the window, the median over trials. Empty if tenths were not counted.
    pub tenths_per_s: Vec<f64>,
    /// The system's memory over the window. For each stretch of the window that has samples: its middle in seconds, and
    /// the highest proportional set size in bytes, the median over trials.
    pub memory_bytes: Vec<(f64, f64)>,
    /// The length of the window in seconds, the median over trials.
    pub window_s: Option<f64>,
}

impl Detail {
    /// Computes the detail of a scenario's trials. `response` has their response times together.
    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a Measurement> + Clone, response: &Latency) -> Self {
        let supported = |p: f64| match response.percentile(p)? {
            Percentile::Exactly(us) => Some((p, us)),
            Percentile::AtLeast { .. } => None,
        };
        let tenth = |index: usize| {
            let rates = trials.clone().filter(|m| m.elapsed_s > 0.0).filter_map(move |m| {
                Some(*m.tenths.get(index)? as f64 / (m.elapsed_s / m.tenths.len() as f64))
            });
            median(rates)
        };
        let tenths = trials.clone().map(|m| m.tenths.len()).max().unwrap_or(0);
        let window_s = median(trials.clone().map(|m| m.elapsed_s));
        Self {
            percentiles_us: PERCENTILES.into_iter().filter_map(supported).collect(),
            tenths_per_s: (0..tenths).map_while(tenth).collect(),
            memory_bytes: memory(window_s.unwrap_or(0.0), trials),
            window_s,
        }
    }
}

/// Computes the memory over a window of this length. The sampling times of trials differ, so the window is divided into
/// as many stretches as the median trial has samples.
fn memory<'a>(window_s: f64, trials: impl Iterator<Item = &'a Measurement> + Clone) -> Vec<(f64, f64)> {
    let course = |m: &'a Measurement| m.system.pss_course.as_slice();
    let has_samples =
        |m: &&'a Measurement| m.elapsed_s > 0.0 && m.system.peak_pss_bytes > 0 && !course(m).is_empty();
    let trials = trials.filter(has_samples);
    let stretches = median(trials.clone().map(|m| course(m).len() as f64)).unwrap_or(0.0) as usize;
    let highest = |m: &'a Measurement, index: usize| {
        let share = |ms: u64| ms as f64 / 1e3 / m.elapsed_s;
        let stretch = |ms: u64| ((share(ms) * stretches as f64) as usize).min(stretches - 1);
        let inside = course(m).iter().filter(|(ms, _)| stretch(*ms) == index);
        inside.map(|(_, bytes)| *bytes as f64).reduce(f64::max)
    };
    let point = |index: usize| {
        let bytes = median(trials.clone().filter_map(|m| highest(m, index)))?;
        Some((window_s * (index as f64 + 0.5) / stretches as f64, bytes))
    };
    (0..stretches).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measurement::SystemUse;

    fn trial(elapsed_s: f64, course: &[(u64, u64)]) -> Measurement {
        let peak_pss_bytes = course.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let system = SystemUse { pss_course: course.to_vec(), peak_pss_bytes, ..SystemUse::default() };
        Measurement { elapsed_s, system, ..Measurement::default() }
    }

    #[test]
    fn memory_over_the_window_is_the_median_over_trials() {
        let trials = [
            trial(1.0, &[(10, 100), (260, 200), (510, 300), (760, 400)]),
            trial(1.0, &[(0, 110), (249, 190), (500, 310), (750, 410), (999, 450)]),
            trial(2.0, &[(0, 120), (500, 220), (1000, 320), (1900, 420)]),
            trial(1.0, &[]),
            trial(1.0, &[(0, 0), (500, 0)]),
        ];
        let uneven = trial(1.0, &[(0, 10), (240, 20), (700, 30), (900, 40)]);
        assert_eq!(
            memory(1.0, trials.iter()),
            [(0.125, 120.0), (0.375, 210.0), (0.625, 310.0), (0.875, 420.0)]
        );
        // There is no sample in the second quarter.
        assert_eq!(memory(1.0, [&uneven].into_iter()), [(0.125, 20.0), (0.625, 30.0), (0.875, 40.0)]);
        assert!(memory(1.0, trials[3..].iter()).is_empty());
    }
}
