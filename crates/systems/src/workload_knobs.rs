//! The workloads' own knobs (docs/contracts.md, "Workload knobs"). Pure.

use std::sync::LazyLock;

use crate::knob::{Kind, Knob, Value};
use crate::workload::Workload;

impl Workload {
    /// Its own knobs, in the order of the documents.
    pub fn knobs(self) -> &'static [(&'static str, Knob)] {
        match self {
            Self::Upload => &UPLOAD,
            Self::Frames => &FRAMES,
            Self::Requests => &REQUESTS,
            Self::Clients => &CLIENTS,
        }
    }

    /// The definition of one of its own knobs.
    pub fn knob(self, name: &str) -> Option<&'static Knob> {
        self.knobs().iter().find(|(known, _)| *known == name).map(|(_, knob)| knob)
    }
}

type Table = LazyLock<Vec<(&'static str, Knob)>>;

const K: i64 = 1 << 10;
const M: i64 = 1 << 20;
/// More connections or callers than one machine has ports and files for.
const MANY: i64 = 1_000_000;
/// Ten minutes: no trial is meant to wait longer for one operation.
const PATIENCE_MS: i64 = 600_000;

static UPLOAD: Table = LazyLock::new(|| {
    let number = |range, values, about| number(Workload::Upload, Kind::Integer, range, values, about);
    let size = |range, values, about| self::number(Workload::Upload, Kind::Size, range, values, about);
    let flag = |default, about| flag(Workload::Upload, default, about);
    vec![
        ("size", size((0, 1 << 40), &[M, K, 64 * K, 16 * M, 64 * M], "bytes of one body")),
        ("concurrency", number((1, MANY), &[1, 2, 8, 32], "uploads at once, each on its own connection")),
        ("reuse", flag(true, "keep the connection for the next upload")),
        ("expect", flag(false, "send `Expect: 100-continue` and wait for 100 (at most 1 s)")),
    ]
});

static FRAMES: Table = LazyLock::new(|| {
    let number = |kind, range, values, about| number(Workload::Frames, kind, range, values, about);
    let frame = (0, (1 << 32) - 1);
    vec![
        (
            "frame_size",
            number(Kind::Size, frame, &[1000, 10, 100, 10_000, 100_000], "payload bytes of one frame"),
        ),
        ("connections", number(Kind::Integer, (1, MANY), &[1, 2, 8, 32], "streams at once")),
    ]
});

static REQUESTS: Table = LazyLock::new(|| {
    let number = |range, values, about| number(Workload::Requests, Kind::Integer, range, values, about);
    vec![
        ("connections", number((1, MANY), &[100, 1, 1000, 10_000], "connections at once")),
        ("keep_alive", flag(Workload::Requests, true, "false: one request per connection")),
        ("pipeline", number((1, 1024), &[1, 4, 16], "requests in flight per connection")),
    ]
});

static CLIENTS: Table = LazyLock::new(|| {
    let number = |range, values, about| number(Workload::Clients, Kind::Integer, range, values, about);
    let close = Knob {
        kind: Kind::Choice,
        default: Value::Text("announced".to_owned()),
        values: ["announced", "silent"].map(|word| Value::Text(word.to_owned())).to_vec(),
        min: None,
        max: None,
        about: "`announced`: the last answer says `Connection: close`; `silent`: it does not".to_owned(),
        workloads: vec![Workload::Clients],
    };
    let wait = "how long Narrows' server waits before it answers";
    let last = "requests after which Narrows' server closes a connection; 0: never";
    vec![
        ("pools", number((1, 10_000), &[1, 4], "pools the client makes")),
        ("pool_size", number((1, MANY), &[32, 8, 128, 512], "connections per pool")),
        ("concurrency", number((1, MANY), &[256, 64, 1024], "callers")),
        ("delay_ms", number((0, PATIENCE_MS), &[10, 0, 100], wait)),
        ("max_keepalive", number((0, 1_000_000_000), &[0, 1, 100], last)),
        ("close", close),
        ("timeout_ms", number((1, PATIENCE_MS), &[1000, 5000], "end to end, per request")),
    ]
});

/// A numeric knob; the first of `values` is its default.
fn number(workload: Workload, kind: Kind, range: (i64, i64), values: &[i64], about: &str) -> Knob {
    Knob {
        kind,
        default: Value::Integer(values[0]),
        values: values.iter().copied().map(Value::Integer).collect(),
        min: Some(range.0),
        max: Some(range.1),
        about: about.to_owned(),
        workloads: vec![workload],
    }
}

fn flag(workload: Workload, default: bool, about: &str) -> Knob {
    Knob {
        kind: Kind::Boolean,
        default: Value::Boolean(default),
        values: vec![Value::Boolean(default), Value::Boolean(!default)],
        min: None,
        max: None,
        about: about.to_owned(),
        workloads: vec![workload],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_keeps_its_own_constraints() {
        for workload in Workload::ALL {
            for (name, knob) in workload.knobs() {
                for value in knob.values.iter().chain([&knob.default]) {
                    assert_eq!(knob.check(value).as_ref(), Ok(value), "{workload} {name}");
                    assert_eq!(knob.parse(&knob.show(value)).as_ref(), Ok(value), "{workload} {name}");
                }
                assert_eq!(knob.workloads, [workload]);
                assert_eq!(workload.knob(name), Some(knob));
            }
        }
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let default = |w: Workload, name| w.knob(name).map(|k| k.show(&k.default)).unwrap();
        assert_eq!(default(Workload::Upload, "size"), "1M");
        assert_eq!(default(Workload::Frames, "frame_size"), "1000");
        assert_eq!(default(Workload::Requests, "connections"), "100");
        assert_eq!(default(Workload::Clients, "close"), "announced");
        assert_eq!(default(Workload::Clients, "timeout_ms"), "1000");
    }
}
