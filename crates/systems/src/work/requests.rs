//! Requests: `GET /` over HTTP, on connections that are kept or with one for each.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::Setting;
use super::about::{About, MANY, REQUEST, Words, flag, number, rate};
use super::rate::Rate;
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const OWN: Workload = Workload::Requests;

/// HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requests {
    /// Connections at once.
    pub connections: u64,
    /// Otherwise one request per connection.
    pub keep_alive: bool,
    /// Requests in flight per connection.
    pub pipeline: u64,
    /// Of an open loop.
    pub rate: Option<Rate>,
}

impl Requests {
    pub(super) fn read(words: &Words) -> Result<Self, String> {
        Ok(Self {
            connections: words.number("connections")?,
            keep_alive: words.flag("keep_alive")?,
            pipeline: words.number("pipeline")?,
            rate: Rate::read(words)?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "requests",
    role: Role::Server,
    scheme: "http",
    unit: REQUEST,
    figures: &[Figure::RequestsPerS, Figure::P99Us],
    short_exchanges: true,
    knobs: LazyLock::new(|| {
        let number = |range, values, about| number(OWN, Kind::Integer, range, values, about);
        let mut knobs = vec![
            ("connections", Setting, number((1, MANY), &[100, 1, 1000, 10_000], "connections at once")),
            ("keep_alive", Setting, flag(OWN, true, "false: one request per connection")),
            ("pipeline", Setting, number((1, 1024), &[1, 4, 16], "requests in flight per connection")),
        ];
        knobs.extend(rate(OWN));
        knobs
    }),
    small: &[("connections", Value::Integer(16))],
    others: &[
        &[("pipeline", Value::Integer(16))],
        &[("connections", Value::Integer(64)), ("keep_alive", Value::Boolean(false))],
    ],
};
