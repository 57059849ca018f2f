//! What an audit finds in a published table, as values. `report` has the words.

use std::collections::BTreeMap;

use measurement::doubt::Evidence;
use serde::{Deserialize, Serialize};
use systems::{Point, Value};

use super::Misprint;

/// What the figures show beyond the document's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The order of servers by verified requests.
    Order {
        /// The servers with their requests a second, the fastest first.
        verified: Vec<(String, f64)>,
        /// The servers of which nothing was verified.
        void: Vec<String>,
    },
    /// A client's failures are `1 - limit x connections / attempts` in all its rows.
    Law {
        /// The client.
        client: String,
        /// Requests that each connection carried, as a round number.
        limit: f64,
        /// Requests that each connection carried on average.
        carried: f64,
        /// The number of rows.
        rows: usize,
        /// The largest distance of a row from the law, in percentage points.
        within: f64,
    },
    /// A fall of the rate between two sizes that the larger messages do not explain.
    Cliff {
        /// The way to receive.
        way: String,
        /// Bytes of the smaller messages.
        from: f64,
        /// Bytes of the larger messages.
        to: f64,
        /// How many times fewer of the larger messages there were.
        fewer: f64,
    },
    /// How many messages one way to receive had, as ratios to another way.
    Ways {
        /// The way to receive ...
        of: String,
        /// ... in relation to this one.
        against: String,
        /// Bytes of a message, and the ratio.
        sizes: Vec<(f64, f64)>,
    },
    /// A configuration that stands in several rows of the document's tables.
    Repeated {
        /// The runtime.
        runtime: String,
        /// The knobs of the configuration.
        knobs: Point,
        /// The mean times in ascending order, milliseconds.
        times_ms: Vec<f64>,
    },
    /// How long one system took in relation to another.
    Systems {
        /// The system ...
        of: String,
        /// ... in relation to this one.
        against: String,
        /// Bytes of an upload.
        size: i64,
        /// The ratio of their times, by runtime.
        ratios: BTreeMap<String, f64>,
    },
    /// A step of a knob that is larger than the differences between rows of one configuration.
    Step(Step),
}

/// A step from one value of a knob to the next while everything else is equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The knob.
    pub knob: String,
    /// The smaller value.
    pub from: Value,
    /// The larger value.
    pub to: Value,
    /// How many times longer uploads took with the larger value, in each pair of rows.
    pub ratios: Vec<f64>,
}

/// What was seen of a doubt about published rows, with its figures. Rows are named by their labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// What a trial of Narrows with these figures would be doubted for, row by row.
    Evidence(Vec<(String, Evidence)>),
    /// Few trials.
    FewTrials {
        /// The number of trials behind each row.
        each: u32,
    },
    /// Failed operations in rows of wrk.
    Errors {
        /// The rows in which nothing was verified.
        void: Vec<VoidRow>,
    },
    /// Too many failed operations for a rank.
    ManyErrors {
        /// The largest share of errors that may be ranked.
        above: f64,
    },
    /// Answers that were left out of the latency.
    Censored(Vec<Censored>),
    /// Samples of a thread's rate that scatter, row by row.
    Unsteady(Vec<UnsteadyRow>),
    /// Failures that were far quicker than the timeout.
    FailFast {
        /// The first such row.
        row: String,
        /// The share of failures.
        failed: f64,
        /// The longest possible mean time of a failure, milliseconds.
        mean_ms: f64,
        /// The timeout, milliseconds.
        timeout_ms: f64,
    },
    /// Connections that all carried the same number of requests.
    OnSchedule(Vec<Carried>),
    /// Rows that were over too soon.
    TooShort {
        /// The shortest row.
        row: String,
        /// How long it lasted, seconds.
        lasted_s: f64,
        /// How long the longest row lasted, seconds.
        longest_s: f64,
        /// Shorter rows are doubted, seconds.
        limit_s: f64,
    },
    /// Rows with few operations.
    FewOperations {
        /// The rows with their operations.
        rows: Vec<(String, f64)>,
        /// The length of the runs, seconds.
        window_s: Option<f64>,
    },
    /// More answers than the connections of the pool can carry one at a time.
    AboveCeiling {
        /// The first such row.
        row: String,
        /// Answers a second.
        per_s: f64,
        /// The number of connections.
        connections: f64,
        /// Answers a second that they can carry.
        ceiling_per_s: f64,
    },
    /// Attempts that took longer than the timeout and did not fail.
    Unbound {
        /// The row in which they took longest.
        row: String,
        /// The number of callers.
        under_way: u64,
        /// Answers a second.
        per_s: f64,
        /// The mean time of an attempt, seconds.
        each_s: f64,
        /// The timeout, seconds.
        timeout_s: f64,
        /// The share of failures.
        failed: f64,
    },
    /// Rates that are the sender's.
    SendersRate {
        /// The ways to receive that show it.
        ways: Vec<SendersRate>,
        /// Ways that receive more from the same sender: how many times as much.
        faster: Vec<(String, f64)>,
    },
    /// Sizes at which the order of the ways to receive is inverted.
    Inverted(Vec<Inverted>),
    /// Cells that were printed otherwise than their neighbours.
    Misprints(Vec<Misprint>),
    /// Larger uploads that took less time.
    LessTime(Vec<LessTime>),
    /// Steps of knobs that are no larger than the noise, or that point both ways.
    Noise(Vec<Step>),
    /// Means without spread or median.
    Mean {
        /// The number of operations in each mean.
        operations: Option<u64>,
    },
}

/// A row of wrk in which nothing was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoidRow {
    /// The row.
    pub row: String,
    /// Answers that wrk counted.
    pub requests: u64,
    /// Failed reads.
    pub read_errors: u64,
    /// Bytes of answers.
    pub read_bytes: f64,
}

/// A row of wrk without its longest latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Censored {
    /// The row.
    pub row: String,
    /// Answers that were counted, and whose latency was left out.
    pub answers: u64,
    /// What follows from the cap, if it is known.
    pub cap: Option<Cap>,
}

/// A cap of latencies, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cap {
    /// The cap.
    pub cap_ms: f64,
    /// The least that the mean of all answers can be.
    pub least_mean_ms: f64,
    /// The mean that was printed.
    pub mean_ms: f64,
    /// The maximum that was printed.
    pub max_ms: f64,
}

/// A row of wrk whose threads were unsteady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnsteadyRow {
    /// The row.
    pub row: String,
    /// The standard deviation of a thread's rate as a multiple of its mean, if it is more than that.
    pub scatter: Option<f64>,
    /// More requests a second than were done, if all threads had their mean rate.
    pub threads: Option<ThreadRates>,
}

/// The rates of all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreadRates {
    /// The number of threads.
    pub threads: u64,
    /// Requests a second at their mean.
    pub together_per_s: f64,
    /// Requests a second that were done.
    pub done_per_s: f64,
}

/// The requests that each connection of a client carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The client.
    pub client: String,
    /// As a round number.
    pub limit: f64,
    /// On average.
    pub carried: f64,
}

/// A way to receive whose rate hardly falls although its messages grow many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendersRate {
    /// The way to receive.
    pub way: String,
    /// Bytes of the smallest messages.
    pub from: f64,
    /// Bytes of the largest messages that come at this rate.
    pub to: f64,
    /// How far apart the two rates are, as a share.
    pub apart: f64,
}

/// A size at which the fastest way to receive is the one that is slowest at all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inverted {
    /// Bytes of a message.
    pub size: u64,
    /// The framing.
    pub framing: String,
    /// The values of `active`, the fastest first.
    pub order: Vec<String>,
    /// The number of other sizes.
    pub others: usize,
}

/// An upload that took less time than a smaller one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LessTime {
    /// The system.
    pub system: String,
    /// The runtime.
    pub runtime: String,
    /// The smaller size, bytes.
    pub small: i64,
    /// Its mean time, milliseconds.
    pub small_ms: f64,
    /// The larger size, bytes.
    pub large: i64,
    /// Its mean time, milliseconds.
    pub large_ms: f64,
}
