//! How several generators on other machines worked together in a trial.

use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// How several generators worked together.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Together {
        /// How far apart the openings or the ends of their windows were at most, with the error of their clocks, in seconds.
        /// `None` if a window never opened.
        #[serde(default)]
        pub skew_s: Option<f64>,
        /// Whether one of them shared the cores of the system.
        #[serde(default)]
        pub shares_cores: bool,
        /// Each of them.
        pub generators: Vec<Generated>,
        /// The way between them and the system, as it was before the first trial. `None` if it was not measured.
        #[serde(default)]
        pub path: Option<Path>,
    }
}

table! {
    /// The network between the generators and the system.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Path {
        /// The shortest time to an answer of Narrows' own server, in microseconds.
        pub round_trip_us: f64,
        /// The bytes per second that it carries in each direction. `None` if the machines were the limit and not the network.
        pub bytes_per_s: Option<f64>,
        /// The shortest time of an exchange with [`BULKS`] bytes in each direction, over one connection to Narrows' own server, in
        /// microseconds. TCP may need several round trips for them. `None` if the round trip is so short that this hardly matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bulk_us: Option<[f64; 3]>,
    }
}

/// The sizes of the exchanges in [`Path::bulk_us`], in bytes.
pub const BULKS: [u64; 3] = [64 << 10, 256 << 10, 1 << 20];

/// What TCP sends without waiting for an acknowledgement, in bytes: ten segments (RFC 6928).
const FIRST_WINDOW: f64 = 14_480.0;

impl Path {
    /// How long so many bytes to the system and back take on the way alone, in microseconds, if nothing else is on it.
    pub fn way_us(&self, sent: f64, received: f64) -> f64 {
        // What is measured has the same bytes both ways.
        self.round_trip_us + (self.beyond_us(sent) + self.beyond_us(received)) / 2.0
    }

    /// What an exchange with so many bytes in each direction takes beyond the round trip: nothing if TCP sends them at once, and
    /// between the measured sizes, and beyond them, a time that grows linearly.
    fn beyond_us(&self, bytes: f64) -> f64 {
        let Some(bulk_us) = self.bulk_us else {
            return self.bytes_per_s.map_or(0.0, |bytes_per_s| 2e6 * bytes / bytes_per_s);
        };
        let measured = BULKS.map(|size| size as f64).into_iter().zip(bulk_us);
        let mut last = (FIRST_WINDOW.min(bytes), 0.0);
        let mut slope = 0.0;
        for (size, time_us) in measured {
            // A larger exchange is not quicker, whatever disturbed the others.
            let next = (size, (time_us - self.round_trip_us).max(last.1));
            slope = (next.1 - last.1) / (next.0 - last.0);
            if bytes <= size {
                break;
            }
            last = next;
        }
        last.1 + (bytes - last.0) * slope
    }
}

table! {
    /// What one of several generators did.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Generated {
        /// Its machine, as it was named.
        pub machine: String,
        /// Its verified operations.
        pub successes: u64,
        /// Its connections.
        pub connections: u64,
        /// How busy its busiest core was, from 0 to 1.
        pub busiest_core: f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_takes_longer_with_more_bytes() {
        let path = Path { round_trip_us: 10_000.0, bytes_per_s: Some(1e8), bulk_us: None };
        assert_eq!(path.way_us(0.0, 0.0), 10_000.0);
        assert_eq!(path.way_us(1e6, 0.0), 20_000.0);
        let far = Path { bulk_us: Some([20_000.0, 30_000.0, 60_000.0]), ..path };
        let kib = 1024.0;
        for (sent, received, way_us) in [
            (0.0, 0.0, 10_000.0),
            (64.0 * kib, 64.0 * kib, 20_000.0),
            (0.0, 64.0 * kib, 15_000.0),
            (14_000.0, 14_000.0, 10_000.0),
            // Half of the way from the first window to 64 KiB.
            (40_008.0, 40_008.0, 15_000.0),
            (256.0 * kib, 256.0 * kib, 30_000.0),
            (1024.0 * kib, 1024.0 * kib, 60_000.0),
            (1792.0 * kib, 1792.0 * kib, 90_000.0),
        ] {
            assert!((far.way_us(sent, received) - way_us).abs() < 1e-6, "{sent} {received}");
        }
        let disturbed = Path { bulk_us: Some([20_000.0, 15_000.0, 15_000.0]), ..path };
        assert_eq!(disturbed.way_us(1e7, 1e7), 20_000.0);
    }
}
