//! The memory that a system takes for each connection, where there are so many that it can be told from what the system takes
//! anyway.

use measurement::doubt::error_share;
use measurement::{Measurement, RANKED_ERRORS};
use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, median};

use super::{Estimate, FigureView};
use crate::observation::projection;

/// Fewer connections say nothing: a megabyte that a system takes once would look like more than a kilobyte for each of them.
pub const MANY_CONNECTIONS: u64 = 1000;

/// The growth of a system's memory under load, for each connection. It contains what the work itself takes, so it is the most
/// that a connection takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerConnection {
    /// The connections, the fewest of any trial.
    pub connections: u64,
    /// The highest proportional set size less that at rest, for each connection, in bytes: the median over trials.
    pub bytes: f64,
    /// The 95 % interval.
    pub interval: (f64, f64),
}

impl PerConnection {
    /// None if there are too few trials or connections, if a trial's memory at rest is not known or its operations failed, and
    /// if the growth cannot be told from none.
    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a Measurement> + Clone) -> Option<Self> {
        let connections = trials.clone().map(|m| m.connections).min()?;
        if connections < MANY_CONNECTIONS {
            return None;
        }
        let each: Vec<f64> = trials.map(growth).collect::<Option<_>>()?;
        let (bytes, mean) = (median(each.iter().copied())?, Location::of(&each)?);
        let (low, high) = mean.interval(LEVEL);
        let told = mean.n >= FEWEST_ROUNDS && low > 0.0;
        told.then(|| Self { connections, bytes, interval: (low.min(bytes), high.max(bytes)) })
    }
}

/// By how much each of a trial's connections let the memory grow, in bytes.
fn growth(m: &Measurement) -> Option<f64> {
    let (peak, rest) = (m.system.peak_pss_bytes, m.system.rest_pss_bytes?);
    // With fewer files than connections, not all of them are open.
    let open = m.files == 0 || m.connections < m.files;
    let sound = open && peak > 0 && m.successes > 0 && error_share(m) <= RANKED_ERRORS;
    sound.then(|| (peak as f64 - rest as f64) / m.connections as f64)
}

impl<'a> FigureView<'a> {
    /// For each system, the scenario at which its memory for each connection is known, all with the same work: that with the most
    /// connections. The system that takes the least is first.
    pub fn most_connected(&self) -> Vec<(&'a Estimate, PerConnection)> {
        let known = || {
            let systems = self.estimates.iter().filter(|e| !e.is_reference());
            systems.filter_map(|e| Some((e, e.memory_per_connection?)))
        };
        let Some(most) = known().map(|(_, found)| found.connections).max() else { return Vec::new() };
        let work = |e: &Estimate| projection(self.workload, &e.scenario.point);
        let Some((first, _)) = known().find(|(_, found)| found.connections == most) else {
            return Vec::new();
        };
        let mut chosen: Vec<(&Estimate, PerConnection)> = Vec::new();
        for (e, found) in known().filter(|(e, _)| work(e) == work(first)) {
            if chosen.iter().all(|(other, _)| other.scenario.system != e.scenario.system) {
                chosen.push((e, found));
            }
        }
        chosen.sort_by(|(_, a), (_, b)| a.bytes.total_cmp(&b.bytes));
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measurement::SystemUse;

    fn trial(connections: u64, rest: Option<u64>, peak: u64) -> Measurement {
        let system = SystemUse { peak_pss_bytes: peak, rest_pss_bytes: rest, ..SystemUse::default() };
        Measurement { connections, successes: 1000, system, ..Measurement::default() }
    }

    fn trials(connections: u64, rest: Option<u64>, peaks: &[u64]) -> Vec<Measurement> {
        peaks.iter().map(|peak| trial(connections, rest, *peak)).collect()
    }

    #[test]
    fn what_many_connections_take_is_the_growth_for_each_with_its_interval() {
        let all = trials(10_000, Some(5_000_000), &[45_000_000, 46_000_000, 44_000_000]);
        let found = PerConnection::of(all.iter()).expect("three trials tell it");
        assert_eq!((found.connections, found.bytes), (10_000, 4000.0));
        let (low, high) = found.interval;
        assert!(low > 3500.0 && low < 4000.0 && high > 4000.0 && high < 4500.0, "{found:?}");
    }

    #[test]
    fn it_is_silent_where_it_cannot_tell() {
        let peaks = [45_000_000, 46_000_000, 44_000_000];
        let mut failing = trials(10_000, Some(5_000_000), &peaks);
        failing[1].errors.insert("reset".to_owned(), 100);
        let mut shut_out = trials(10_000, Some(5_000_000), &peaks);
        shut_out[2].files = 1024;
        for (why, all) in [
            ("too few connections", trials(999, Some(5_000_000), &peaks)),
            ("memory at rest unknown", trials(10_000, None, &peaks)),
            ("too few trials", trials(10_000, Some(5_000_000), &peaks[..2])),
            ("no trial", Vec::new()),
            ("no growth", trials(10_000, Some(45_000_000), &peaks)),
            ("failed operations", failing),
            ("fewer files than connections", shut_out),
        ] {
            assert_eq!(PerConnection::of(all.iter()), None, "{why}");
        }
    }
}
