//! Requests: `GET /` over HTTP, on kept connections or on a new connection for each request.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::Behaviour;
use super::about::{About, KnobReader, MANY, REQUEST, flag, number, rate_knobs};
use super::http;
use super::rate::Rate;
use super::tls::{self, Tls};
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const WORKLOAD: Workload = Workload::Requests;

/// HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requests {
    /// The number of connections at once.
    pub connections: u64,
    /// Whether connections are kept. Otherwise each request has its own.
    pub keep_alive: bool,
    /// The number of requests in flight per connection.
    pub pipeline: u64,
    /// With HTTP/2, the number of streams that are open on a connection. `None` with HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
    /// With HTTP/2, the bytes that a server may send on a stream before it is allowed more. `None` for the usual window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// With HTTP/2, the size of the table of HPACK that a server may use. `None` for the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpack_table: Option<u64>,
    /// The arrivals of an open loop. `None` for a closed loop.
    pub rate: Option<Rate>,
    /// Whether gaps are exponential where a trial searches the rate itself.
    pub poisson: bool,
    /// How the server is spoken to in TLS. `None` for plain text.
    pub tls: Option<Tls>,
}

impl Requests {
    /// How many requests are in flight on a connection.
    pub fn depth(&self) -> u64 {
        self.streams.unwrap_or(self.pipeline)
    }

    pub(super) fn read(knobs: &KnobReader) -> Result<Self, String> {
        Ok(Self {
            connections: knobs.number("connections")?,
            keep_alive: knobs.flag("keep_alive")?,
            pipeline: knobs.number("pipeline")?,
            streams: http::streams(knobs)?,
            window: http::window(knobs)?,
            hpack_table: http::table(knobs)?,
            rate: Rate::read(knobs)?,
            poisson: Rate::poisson(knobs)?,
            tls: Tls::read(knobs)?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "requests",
    role: Role::Server,
    scheme: "http",
    unit: REQUEST,
    figures: &[
        Figure::RequestsPerS,
        Figure::MaxRate,
        Figure::P99Us,
        Figure::P50Us,
        Figure::FirstByteUs,
        Figure::FirstEventUs,
        Figure::FirstEventP99Us,
        Figure::GapUs,
        Figure::GapP99Us,
        Figure::LongestGapUs,
        Figure::WholeUs,
        Figure::EventsPerRead,
        Figure::EventsPerS,
        Figure::GoodPerS,
        Figure::CpuPerUnit,
        Figure::CallsPerUnit,
        Figure::InstructionsPerUnit,
        Figure::MemoryBytes,
        Figure::StartMs,
        Figure::FirstRequestUs,
        Figure::IdleMemoryBytes,
        Figure::IdleCpu,
    ],
    short_exchanges: true,
    knobs: LazyLock::new(|| {
        let number = |range, values, about| number(WORKLOAD, Kind::Integer, range, values, about);
        let mut knobs = vec![
            ("connections", Behaviour, number(1..=MANY, &[100, 1, 1000, 10_000], "connections at once")),
            ("keep_alive", Behaviour, flag(WORKLOAD, true, "false: one request per connection")),
            ("pipeline", Behaviour, number(1..=1024, &[1, 4, 16], "requests in flight per connection")),
        ];
        knobs.extend([http::version(WORKLOAD), http::of_streams(WORKLOAD)]);
        knobs.extend(http::of_allowance(WORKLOAD));
        knobs.extend(rate_knobs(WORKLOAD));
        knobs.extend(tls::knobs(WORKLOAD));
        knobs
    }),
    settings: &[],
    small: &[("connections", Value::Integer(16))],
    others: &[
        &[("pipeline", Value::Integer(16))],
        &[("connections", Value::Integer(64)), ("keep_alive", Value::Boolean(false))],
    ],
};
