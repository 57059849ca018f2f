//! Clients: the system is a client with a pool of connections, and Narrows is its server.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::{Amount, Behaviour, Patience};
use super::about::{About, KnobReader, MANY, PATIENCE_MS, REQUEST, choice, number, rate_knobs};
use super::rate::Rate;
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const WORKLOAD: Workload = Workload::Clients;

/// What a client is told to do, and how Narrows' server answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Clients {
    /// The number of pools that the client makes.
    pub pools: u64,
    /// Connections per pool.
    pub pool_size: u64,
    /// The number of callers.
    pub concurrency: u64,
    /// How long Narrows' server waits before it answers, milliseconds.
    pub delay_ms: u64,
    /// The number of requests after which Narrows' server closes a connection. 0 means never.
    pub max_keepalive: u64,
    /// Whether it closes without an announcement.
    pub silent: bool,
    /// The timeout of a request from end to end, milliseconds.
    pub timeout_ms: u64,
    /// The arrivals of an open loop. `None` for a closed loop.
    pub rate: Option<Rate>,
}

impl Clients {
    pub(super) fn read(knobs: &KnobReader) -> Result<Self, String> {
        Ok(Self {
            pools: knobs.number("pools")?,
            pool_size: knobs.number("pool_size")?,
            concurrency: knobs.number("concurrency")?,
            delay_ms: knobs.number("delay_ms")?,
            max_keepalive: knobs.number("max_keepalive")?,
            silent: knobs.is("close", "silent")?,
            timeout_ms: knobs.number("timeout_ms")?,
            rate: Rate::read(knobs)?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "clients",
    role: Role::Client,
    scheme: "http",
    unit: REQUEST,
    figures: &[Figure::RequestsPerS, Figure::CpuPerUnit, Figure::MemoryBytes],
    short_exchanges: true,
    knobs: LazyLock::new(|| {
        let number = |range, values, about| number(WORKLOAD, Kind::Integer, range, values, about);
        let farewell = "`announced`: the last answer says `Connection: close`; `silent`: it does not";
        let wait = "how long Narrows' server waits before it answers";
        let last = "requests after which Narrows' server closes a connection; 0: never";
        let mut knobs = vec![
            ("pools", Behaviour, number(1..=10_000, &[1, 4], "pools the client makes")),
            ("pool_size", Behaviour, number(1..=MANY, &[32, 8, 128, 512], "connections per pool")),
            ("concurrency", Behaviour, number(1..=MANY, &[256, 64, 1024], "callers")),
            ("delay_ms", Amount, number(0..=PATIENCE_MS, &[10, 0, 100], wait)),
            ("max_keepalive", Behaviour, number(0..=1_000_000_000, &[0, 1, 100], last)),
            ("close", Behaviour, choice(WORKLOAD, &["announced", "silent"], farewell)),
            ("timeout_ms", Patience, number(1..=PATIENCE_MS, &[1000, 5000], "end to end, per request")),
        ];
        knobs.extend(rate_knobs(WORKLOAD));
        knobs
    }),
    settings: &["pools", "pool_size"],
    small: &[
        ("pool_size", Value::Integer(8)),
        ("concurrency", Value::Integer(32)),
        ("delay_ms", Value::Integer(2)),
    ],
    // The first leaves connections idle. The second loses connections.
    others: &[&[("concurrency", Value::Integer(2))], &[("max_keepalive", Value::Integer(10))]],
};
