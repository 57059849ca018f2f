//! Frames: the generator streams length-prefixed frames, and the receiver answers with its count.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::about::Purpose::{Amount, Behaviour};
use super::about::{About, KnobReader, MANY, WorkUnit, number};
use crate::figure::Figure;
use crate::knob::{Kind, Value};
use crate::workload::{Role, Workload};

const WORKLOAD: Workload = Workload::Frames;

/// Streams of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Frames {
    /// Payload bytes of one frame.
    pub frame_size: u64,
    /// The number of streams at once.
    pub connections: u64,
}

impl Frames {
    pub(super) fn read(knobs: &KnobReader) -> Result<Self, String> {
        Ok(Self { frame_size: knobs.number("frame_size")?, connections: knobs.number("connections")? })
    }
}

pub(super) static ABOUT: About = About {
    name: "frames",
    role: Role::Server,
    scheme: "frames",
    unit: WorkUnit { bytes: false, size: 1.0, name: "frame", long: "frame", short: "op" },
    figures: &[
        Figure::FramesPerS,
        Figure::BytesPerS,
        Figure::CpuPerUnit,
        Figure::CallsPerUnit,
        Figure::InstructionsPerUnit,
        Figure::MemoryBytes,
    ],
    short_exchanges: false,
    knobs: LazyLock::new(|| {
        let number = |kind, range, values, about| number(WORKLOAD, kind, range, values, about);
        let (range, sizes) = (0..=(1 << 32) - 1, [1000, 10, 100, 10_000, 100_000]);
        vec![
            ("frame_size", Amount, number(Kind::Size, range, &sizes, "payload bytes of one frame")),
            ("connections", Behaviour, number(Kind::Integer, 1..=MANY, &[1, 2, 8, 32], "streams at once")),
        ]
    }),
    settings: &[],
    small: &[("frame_size", Value::Integer(10_000))],
    others: &[&[("frame_size", Value::Integer(100))]],
};
