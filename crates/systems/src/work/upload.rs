//! Uploads: the generator posts bodies, and the server answers with the number of bytes that it read.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::{Amount, Behaviour, Sharing};
use super::about::{About, K, KnobReader, M, MANY, WorkUnit, flag, number};
use super::http;
use super::tls::{self, Tls};
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const WORKLOAD: Workload = Workload::Upload;

/// Uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Upload {
    /// Bytes of one body.
    pub size: u64,
    /// The number of uploads at once, each on its own connection.
    pub concurrency: u64,
    /// Whether a connection is kept for the next upload.
    pub reuse: bool,
    /// Whether to send `Expect: 100-continue` and wait for 100.
    pub expect: bool,
    /// Whether HTTP/2 is spoken, and not HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// How the server is spoken to in TLS. `None` for plain text.
    pub tls: Option<Tls>,
}

impl Upload {
    pub(super) fn read(knobs: &KnobReader) -> Result<Self, String> {
        Ok(Self {
            size: knobs.number("size")?,
            concurrency: knobs.number("concurrency")?,
            reuse: knobs.flag("reuse")?,
            expect: knobs.flag("expect")?,
            http2: http::is_http2(knobs)?,
            tls: Tls::read(knobs)?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "upload",
    role: Role::Server,
    scheme: "http",
    unit: WorkUnit { bytes: true, size: 1e6, name: "MB", long: "MB of body", short: "MB" },
    figures: &[
        Figure::MsPerUpload,
        Figure::BytesPerS,
        Figure::RequestsPerS,
        Figure::CpuPerUnit,
        Figure::CallsPerUnit,
        Figure::InstructionsPerUnit,
        Figure::MemoryBytes,
    ],
    short_exchanges: false,
    knobs: LazyLock::new(|| {
        let count = |range, values, about| number(WORKLOAD, Kind::Integer, range, values, about);
        let size = |range, values, about| number(WORKLOAD, Kind::Size, range, values, about);
        let mut knobs = vec![
            ("size", Amount, size(0..=1 << 40, &[M, K, 64 * K, 16 * M, 64 * M], "bytes of one body")),
            (
                "concurrency",
                Sharing,
                count(1..=MANY, &[1, 2, 8, 32], "uploads at once, each on its own connection"),
            ),
            ("reuse", Behaviour, flag(WORKLOAD, true, "keep the connection for the next upload")),
            (
                "expect",
                Behaviour,
                flag(WORKLOAD, false, "send `Expect: 100-continue` and wait for 100 (at most 1 s)"),
            ),
        ];
        knobs.push(http::version(WORKLOAD));
        knobs.extend(tls::knobs(WORKLOAD));
        knobs
    }),
    // Without reuse, uploads do not affect each other.
    settings: &[],
    small: &[("size", Value::Integer(4 << 20)), ("reuse", Value::Boolean(false))],
    others: &[&[("size", Value::Integer(64 << 20))]],
};
