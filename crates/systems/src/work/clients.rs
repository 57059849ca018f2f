//! Clients: the system is a client with a pool of connections, and Narrows is the server that it asks.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::{Amount, Patience, Setting};
use super::about::{About, MANY, PATIENCE_MS, REQUEST, Words, choice, number, rate};
use super::rate::Rate;
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const OWN: Workload = Workload::Clients;

/// What a client is told to do, and how Narrows' server answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Clients {
    /// Pools that the client makes.
    pub pools: u64,
    /// Connections per pool.
    pub pool_size: u64,
    /// Callers.
    pub concurrency: u64,
    /// How long Narrows' server waits before it answers, milliseconds.
    pub delay_ms: u64,
    /// Requests after which Narrows' server closes a connection; 0: never.
    pub max_keepalive: u64,
    /// Whether it closes without having said so.
    pub silent: bool,
    /// End to end, per request, milliseconds.
    pub timeout_ms: u64,
    /// Of an open loop.
    pub rate: Option<Rate>,
}

impl Clients {
    pub(super) fn read(words: &Words) -> Result<Self, String> {
        Ok(Self {
            pools: words.number("pools")?,
            pool_size: words.number("pool_size")?,
            concurrency: words.number("concurrency")?,
            delay_ms: words.number("delay_ms")?,
            max_keepalive: words.number("max_keepalive")?,
            silent: words.says("close", "silent")?,
            timeout_ms: words.number("timeout_ms")?,
            rate: Rate::read(words)?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "clients",
    role: Role::Client,
    scheme: "http",
    unit: REQUEST,
    figures: &[Figure::RequestsPerS],
    short_exchanges: true,
    knobs: LazyLock::new(|| {
        let number = |range, values, about| number(OWN, Kind::Integer, range, values, about);
        let farewell = "`announced`: the last answer says `Connection: close`; `silent`: it does not";
        let wait = "how long Narrows' server waits before it answers";
        let last = "requests after which Narrows' server closes a connection; 0: never";
        let mut knobs = vec![
            ("pools", Setting, number((1, 10_000), &[1, 4], "pools the client makes")),
            ("pool_size", Setting, number((1, MANY), &[32, 8, 128, 512], "connections per pool")),
            ("concurrency", Setting, number((1, MANY), &[256, 64, 1024], "callers")),
            ("delay_ms", Amount, number((0, PATIENCE_MS), &[10, 0, 100], wait)),
            ("max_keepalive", Setting, number((0, 1_000_000_000), &[0, 1, 100], last)),
            ("close", Setting, choice(OWN, &["announced", "silent"], farewell)),
            ("timeout_ms", Patience, number((1, PATIENCE_MS), &[1000, 5000], "end to end, per request")),
        ];
        knobs.extend(rate(OWN));
        knobs
    }),
    small: &[
        ("pool_size", Value::Integer(8)),
        ("concurrency", Value::Integer(32)),
        ("delay_ms", Value::Integer(2)),
    ],
    // Idle connections, and connections that are lost.
    others: &[&[("concurrency", Value::Integer(2))], &[("max_keepalive", Value::Integer(10))]],
};
