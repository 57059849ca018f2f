//! Uploads: bodies of a size are posted; the server answers with the number of bytes it read.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::{Amount, Setting, Sharing};
use super::about::{About, K, M, MANY, Unit, Words, flag, number};
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const OWN: Workload = Workload::Upload;

/// Uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Upload {
    /// Bytes of one body.
    pub size: u64,
    /// Uploads at once, each on its own connection.
    pub concurrency: u64,
    /// Whether the connection is kept for the next upload.
    pub reuse: bool,
    /// Whether `Expect: 100-continue` is sent, and 100 waited for.
    pub expect: bool,
}

impl Upload {
    pub(super) fn read(words: &Words) -> Result<Self, String> {
        Ok(Self {
            size: words.number("size")?,
            concurrency: words.number("concurrency")?,
            reuse: words.flag("reuse")?,
            expect: words.flag("expect")?,
        })
    }
}

pub(super) static ABOUT: About = About {
    name: "upload",
    role: Role::Server,
    scheme: "http",
    unit: Unit { bytes: true, size: 1e6, name: "MB", long: "MB of body", short: "MB" },
    figures: &[Figure::MsPerUpload, Figure::BytesPerS, Figure::RequestsPerS],
    short_exchanges: false,
    knobs: LazyLock::new(|| {
        let count = |range, values, about| number(OWN, Kind::Integer, range, values, about);
        let size = |range, values, about| number(OWN, Kind::Size, range, values, about);
        vec![
            ("size", Amount, size((0, 1 << 40), &[M, K, 64 * K, 16 * M, 64 * M], "bytes of one body")),
            (
                "concurrency",
                Sharing,
                count((1, MANY), &[1, 2, 8, 32], "uploads at once, each on its own connection"),
            ),
            ("reuse", Setting, flag(OWN, true, "keep the connection for the next upload")),
            (
                "expect",
                Setting,
                flag(OWN, false, "send `Expect: 100-continue` and wait for 100 (at most 1 s)"),
            ),
        ]
    }),
    // What uploads on a kept connection do to one another is looked at elsewhere.
    small: &[("size", Value::Integer(4 << 20)), ("reuse", Value::Boolean(false))],
    others: &[&[("size", Value::Integer(64 << 20))]],
};
