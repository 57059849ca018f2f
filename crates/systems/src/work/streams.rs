//! Streams: answers that a server sends piece by piece, each at its time. Two workloads ask for them: `streams` for server-sent
//! events, and `chats` for answers in OpenAI's interface, as gateways pass them on.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::Amount;
use super::about::{About, K, KnobReader, KnobValue, MANY, PATIENCE_MS, WorkUnit, WorkloadKnob, number};
use super::http;
use super::tls::{self, Tls};
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

/// Streamed answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Streams {
    /// How they are asked for, and what they look like.
    pub interface: Interface,
    /// The number of streams at once, each on its own connection.
    pub connections: u64,
    /// The events of a stream.
    pub events: u64,
    /// The milliseconds from one event to the next.
    pub gap_ms: u64,
    /// Bytes of the text in one event.
    pub event_size: u64,
    /// Whether HTTP/2 is spoken, and not HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// How the server is spoken to in TLS. `None` for plain text.
    pub tls: Option<Tls>,
}

/// How a stream is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// A GET whose path says how many events there are, and when.
    Events,
    /// A POST of a chat, whose model says so.
    Chats,
}

impl Interface {
    /// The workload that asks so.
    pub(super) fn workload(self) -> Workload {
        match self {
            Self::Events => Workload::Streams,
            Self::Chats => Workload::Chats,
        }
    }
}

impl Streams {
    /// Streams of the same kind that soon end, for a check before the trial.
    pub fn short(self) -> Self {
        Self { events: self.events.min(3), gap_ms: self.gap_ms.min(10), ..self }
    }

    pub(super) fn read(knobs: &KnobReader, interface: Interface) -> Result<Self, String> {
        Ok(Self {
            interface,
            connections: knobs.number("connections")?,
            events: knobs.number("events")?,
            gap_ms: knobs.number("gap_ms")?,
            event_size: knobs.number("event_size")?,
            http2: http::is_http2(knobs)?,
            tls: Tls::read(knobs)?,
        })
    }
}

/// The unit of both workloads.
const STREAM: WorkUnit =
    WorkUnit { bytes: false, size: 1.0, name: "stream", long: "stream", short: "stream" };

const FIGURES: &[Figure] = &[
    Figure::FirstEventUs,
    Figure::FirstEventP99Us,
    Figure::FirstByteUs,
    Figure::GapUs,
    Figure::GapP99Us,
    Figure::LongestGapUs,
    Figure::WholeUs,
    Figure::EventsPerRead,
    Figure::EventsPerS,
    Figure::RequestsPerS,
    Figure::CpuPerUnit,
    Figure::CallsPerUnit,
    Figure::InstructionsPerUnit,
    Figure::MemoryBytes,
    Figure::StartMs,
    Figure::FirstRequestUs,
    Figure::IdleMemoryBytes,
    Figure::IdleCpu,
];

fn knobs(workload: Workload) -> Vec<WorkloadKnob> {
    let count = |range, values, about| number(workload, Kind::Integer, range, values, about);
    let sizes = [100, 10, K, 16 * K];
    let mut knobs = vec![
        // How many clients there are is no setting of a server, and what they cost is no fault of it.
        ("connections", Amount, count(1..=MANY, &[100, 1, 32, 256, 1000], "streams at once")),
        ("events", Amount, count(1..=MANY, &[20, 1, 100, 1000], "events of a stream")),
        ("gap_ms", Amount, count(0..=PATIENCE_MS, &[10, 0, 100, 1000], "milliseconds between two events")),
        (
            "event_size",
            Amount,
            number(workload, Kind::Size, 1..=64 * K, &sizes, "bytes of the text in one event"),
        ),
    ];
    knobs.push(http::version(workload));
    knobs.extend(tls::knobs(workload));
    knobs
}

const SMALL: &[KnobValue] = &[("connections", Value::Integer(16))];
/// Knobs that matter to a busy server show no effect in streams that mostly wait.
const OTHERS: &[&[KnobValue]] = &[&[("gap_ms", Value::Integer(0)), ("events", Value::Integer(100))]];

pub(super) static STREAMS: About = about("streams", LazyLock::new(|| knobs(Workload::Streams)));

pub(super) static CHATS: About = about("chats", LazyLock::new(|| knobs(Workload::Chats)));

/// What both workloads are, except for their requests. A stream is long beside a window, so windows end with streams.
const fn about(name: &'static str, knobs: LazyLock<Vec<WorkloadKnob>>) -> About {
    About {
        name,
        role: Role::Server,
        scheme: "http",
        unit: STREAM,
        figures: FIGURES,
        short_exchanges: false,
        knobs,
        settings: &[],
        small: SMALL,
        others: OTHERS,
    }
}
