//! The figures that raise a doubt, and which doubt they raise.

use serde::{Deserialize, Serialize};

use super::{Doubt, schedule};
use systems::Figure;

/// The figures that raise a doubt. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// The generator's busiest core was almost fully busy.
    GeneratorBusy {
        /// The share of the window in which it worked.
        share: f64,
    },
    /// The busiest cores of generators on other machines were almost fully busy.
    GeneratorsBusy {
        /// How many generators had such a core.
        busy: u64,
        /// How many generators there were.
        of: u64,
        /// The share of the window in which the busiest core worked.
        share: f64,
        /// How many more generators would do.
        more: u64,
    },
    /// The objective did not hold at a higher rate, at which the generator's busiest core was almost fully busy.
    FailedBusy {
        /// That rate, per second.
        per_s: f64,
        /// The share of the window in which it worked.
        share: f64,
        /// How many more generators would do for this rate. None if the generator was on the machine of the system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<u64>,
    },
    /// The objective held at the highest rate that is tried.
    NoRateFailed {
        /// That rate, per second.
        per_s: f64,
    },
    /// The rounds cannot tell the scenario from the reference.
    AsTheReference {
        /// The speed as a share of the reference's.
        share: f64,
        /// The lower end of its interval.
        low: f64,
        /// The upper end of its interval.
        high: f64,
        /// The number of rounds.
        rounds: u32,
    },
    /// The network carried almost as much as it can.
    LinkFull {
        /// The share of that.
        share: f64,
        /// What it can carry in each direction, in bytes per second.
        bytes_per_s: f64,
    },
    /// The network lost packets, and TCP waited for them.
    Lossy {
        /// The segments that the system's machine sent again, as a share of those that the answers fill.
        share: f64,
        /// Their number.
        segments: u64,
    },
    /// Most of the time to an answer was spent on the way.
    RoundTrips {
        /// The share of the mean time.
        share: f64,
        /// What the way takes for the bytes of an exchange, microseconds.
        way_us: f64,
        /// The shortest time to an answer of Narrows' own server, microseconds.
        round_trip_us: f64,
    },
    /// The windows of several generators were apart.
    Skewed {
        /// By this share of their length.
        share: f64,
    },
    /// A generator did less than its part.
    Unequal {
        /// Its machine.
        machine: String,
        /// The operations of each of its connections, as a share of the mean.
        share: f64,
    },
    /// The peer allowed fewer requests at once on a connection.
    FewerStreams {
        /// How many were asked for.
        asked: u64,
        /// How many it allowed.
        allowed: u64,
    },
    /// Every stream came in one read.
    OneRead {
        /// The events of all streams.
        events: u64,
        /// The reads that brought them.
        reads: u64,
        /// The streams.
        streams: u64,
        /// The mean time to the first event, microseconds.
        first_us: f64,
        /// The mean time of a whole answer, microseconds.
        whole_us: f64,
    },
    /// Streams came in fewer reads than those of the base.
    Bundled {
        /// Events for each read that brought any.
        per_read: f64,
        /// The same of the base.
        base_per_read: f64,
        /// The mean time to the first event, microseconds.
        first_us: f64,
        /// The same of the base.
        base_first_us: f64,
    },
    /// Arrivals of an open loop were not sent when they were due.
    Behind {
        /// All arrivals.
        arrivals: u64,
        /// Arrivals that were sent late.
        late: u64,
        /// Arrivals that were dropped.
        dropped: u64,
    },
    /// Callers that had waited longer than any answer took when the window closed.
    Starved {
        /// How many.
        count: u64,
        /// All callers that waited then.
        of: u64,
        /// The age of the oldest, microseconds.
        oldest_us: f64,
        /// The longest time to an answer, microseconds.
        longest_us: f64,
    },
    /// More operations are under way than the latency explains.
    Queueing {
        /// Operations under way at once.
        under_way: u64,
        /// Operations that end per second.
        per_s: f64,
        /// The true time of an operation, microseconds.
        cycle_us: f64,
        /// The measured latency, microseconds.
        shown_us: f64,
    },
    /// Failures are quicker than successes.
    QuickFailures {
        /// The share of operations that failed.
        share: f64,
        /// The mean duration of a failure, microseconds.
        failing_us: f64,
        /// The mean duration of a success, microseconds.
        succeeding_us: f64,
        /// Attempts per success.
        attempts: f64,
    },
    /// Failures occur at multiples of one number of requests on a connection.
    FailuresEvery {
        /// That number of requests.
        requests: u64,
        /// Failures at its multiples.
        count: u64,
        /// All failures on open connections.
        of: u64,
    },
    /// `100 Continue` did not come.
    NoContinue {
        /// Uploads whose body was sent without it.
        count: u64,
        /// All uploads.
        of: u64,
        /// How long each of them waited, in seconds.
        waited_s: f64,
    },
    /// Sessions that were offered and not accepted.
    SessionsRefused {
        /// How many.
        refused: u64,
        /// All sessions that were offered.
        of: u64,
    },
    /// Connections that had no session to offer.
    NoSessions {
        /// How many.
        without: u64,
        /// All connections.
        of: u64,
    },
    /// No operation ended.
    NothingEnded {
        /// Operations that were under way.
        attempts: u64,
        /// The length of the window in seconds.
        window_s: f64,
    },
    /// Few operations ended.
    FewEnded {
        /// Operations that succeeded.
        successes: u64,
        /// The length of the window in seconds.
        window_s: f64,
    },
    /// The window is only a few latencies long.
    FewLatencies {
        /// The length of the window in seconds.
        window_s: f64,
        /// The length of the window in mean latencies.
        latencies: f64,
    },
    /// The tenths of the window vary widely.
    Scatter {
        /// Their standard deviation, divided by their mean.
        times: f64,
    },
    /// The second half of the window differs from the first.
    Halves {
        /// The change, as a share of the first half's operations. It is negative if there were fewer.
        change: f64,
    },
    /// The first tenth of the window was slow.
    SlowBeginning {
        /// Its operations as a share of a usual tenth's.
        share: f64,
    },
    /// Latencies have two peaks.
    TwoPeaks {
        /// The quicker peak: its share of operations, and its latency in microseconds.
        quick: (f64, f64),
        /// The slower peak, in the same form.
        slow: (f64, f64),
    },
    /// The system and the generator ran on the same cores.
    CoresShared,
    /// There were more connections than the pool may have.
    Connections {
        /// The most that the server saw at once.
        seen: u64,
        /// The most that the pool may have.
        cap: u64,
    },
    /// Ports were nearly used up.
    Ports {
        /// Connections to one address.
        connections: u64,
        /// All ports.
        of: u64,
    },
    /// Open files were nearly used up.
    Files {
        /// Connections.
        connections: u64,
        /// The limit of open files.
        of: u64,
    },
    /// The hypervisor gave processor time to other machines.
    Stolen {
        /// That time, as a share of one core.
        share: f64,
    },
    /// The processor throttled itself.
    Throttled {
        /// How many times.
        times: u64,
    },
    /// A limit of CPU time stopped the system or the generator.
    Held {
        /// For how long, as a share of one core.
        share: f64,
    },
    /// The generator's loop stood still.
    Paused {
        /// The longest time in seconds.
        pause_s: f64,
        /// As a share of the window.
        share: f64,
    },
}

impl Evidence {
    /// The doubt that it raises.
    pub fn doubt(&self) -> Doubt {
        match self {
            Self::GeneratorBusy { .. }
            | Self::GeneratorsBusy { .. }
            | Self::FailedBusy { .. }
            | Self::NoRateFailed { .. }
            | Self::AsTheReference { .. } => Doubt::GeneratorBound,
            Self::LinkFull { .. } | Self::Lossy { .. } | Self::RoundTrips { .. } => Doubt::PathBound,
            Self::Skewed { .. } => Doubt::WindowsApart,
            Self::Unequal { .. } => Doubt::GeneratorsUnequal,
            Self::Behind { .. } => Doubt::BehindSchedule,
            Self::Starved { .. } => Doubt::Starved,
            Self::Queueing { .. } => Doubt::HiddenQueueing,
            Self::QuickFailures { .. } => Doubt::FailFast,
            Self::FailuresEvery { .. } => Doubt::ErrorsOnSchedule,
            Self::NoContinue { .. } => Doubt::NoContinue,
            Self::SessionsRefused { .. } | Self::NoSessions { .. } => Doubt::NotResumed,
            Self::FewerStreams { .. } => Doubt::FewerStreams,
            Self::OneRead { .. } | Self::Bundled { .. } => Doubt::Buffered,
            Self::NothingEnded { .. } | Self::FewEnded { .. } | Self::FewLatencies { .. } => Doubt::TooShort,
            Self::Scatter { .. } | Self::Halves { .. } => Doubt::UnsteadyWindow,
            Self::SlowBeginning { .. } => Doubt::WarmUpUnfinished,
            Self::TwoPeaks { .. } => Doubt::Bimodal,
            Self::CoresShared => Doubt::CoresShared,
            Self::Connections { .. } => Doubt::PoolCapExceeded,
            Self::Ports { .. } | Self::Files { .. } => Doubt::LimitNear,
            Self::Stolen { .. } => Doubt::StolenTime,
            Self::Throttled { .. } => Doubt::Throttled,
            Self::Held { .. } => Doubt::Held,
            Self::Paused { .. } => Doubt::GeneratorPaused,
        }
    }

    /// Whether it is about this figure. What an operation costs a system does not depend on whether the generator could
    /// have sent more, or sent in time; but where arrivals were dropped, the system had more to do than it could.
    pub fn concerns(&self, figure: Figure) -> bool {
        match self {
            Self::FailedBusy { .. } | Self::NoRateFailed { .. } => figure == Figure::MaxRate,
            Self::Behind { arrivals, dropped, .. } if figure.is_cost() => {
                *dropped as f64 / (*arrivals).max(1) as f64 > schedule::LATE
            }
            other => !matches!(other.doubt(), Doubt::GeneratorBound | Doubt::PathBound) || !figure.is_cost(),
        }
    }
}
