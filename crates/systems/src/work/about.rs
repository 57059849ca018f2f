//! What is known of a workload before its knobs are set, and how its knobs are defined and read. Pure.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::figure::Figure;
use crate::knob::{Kind, Knob, Point, Value};
use crate::workload::{Role, Workload};

/// What is known of a workload.
pub struct About {
    /// The name in manifests, experiments and reports.
    pub name: &'static str,
    /// The side of the wire that a system of this workload is on.
    pub role: Role,
    /// The scheme of a server's URL, which names the protocol.
    pub scheme: &'static str,
    /// The unit of work that costs refer to.
    pub unit: WorkUnit,
    /// The figures that its table can show. The first is the one that is usually published.
    pub figures: &'static [Figure],
    /// Whether operations are many and short, so that latencies and tenths of a window are meaningful.
    pub short_exchanges: bool,
    /// Its own knobs, in the order of the documentation.
    pub(crate) knobs: LazyLock<Vec<WorkloadKnob>>,
    /// Those of its knobs that set the system up and do not say what work is done, so that a search may choose their values.
    pub settings: &'static [&'static str],
    /// Small work in which a system's knobs have something to do, as changes from the defaults.
    pub small: &'static [KnobValue],
    /// Other small work, for knobs that have no effect in `small`, as changes from `small`.
    pub others: &'static [&'static [KnobValue]],
}

impl About {
    /// One of its own knobs.
    pub(crate) fn knob(&self, name: &str) -> Option<&WorkloadKnob> {
        self.knobs.iter().find(|(known, ..)| *known == name)
    }
}

/// A knob of a workload: its name, its purpose and its definition.
pub(crate) type WorkloadKnob = (&'static str, Purpose, Knob);

/// A knob's name and value.
pub type KnobValue = (&'static str, Value);

/// What a knob of a workload sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// How much work one operation is, or how long it must wait. It is no finding that more takes longer.
    Amount,
    /// How many operations share the machine. Their rate is a finding, but the time of one of them is not.
    Sharing,
    /// How long to wait for an operation.
    Patience,
    /// The arrivals of an open loop.
    Rate,
    /// Whether and how TLS is spoken. Some systems can do it only in one way.
    Tls,
    /// How the work is done. Every knob of a system is of this kind.
    Behaviour,
}

/// The unit in which work is counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkUnit {
    /// Whether payload bytes are counted. Otherwise operations are.
    pub bytes: bool,
    /// How many bytes or operations make one unit.
    pub size: f64,
    /// The unit in a sentence: `MB`, `frame`.
    pub name: &'static str,
    /// The unit in the description of a figure: `MB of body`.
    pub long: &'static str,
    /// The unit in a heading: `MB`, `op`.
    pub short: &'static str,
}

/// The unit of HTTP requests other than uploads.
pub(crate) const REQUEST: WorkUnit =
    WorkUnit { bytes: false, size: 1.0, name: "request", long: "request", short: "req" };

/// Reads the knobs of a workload from a point. Knobs that the point does not set have their defaults.
pub(crate) struct KnobReader<'a> {
    pub(crate) about: &'a About,
    pub(crate) point: &'a Point,
}

impl KnobReader<'_> {
    fn value(&self, name: &str) -> Result<Value, String> {
        let (_, _, knob) = self.about.knob(name).ok_or_else(|| format!("there is no knob {name}"))?;
        let set = self.point.get(name).unwrap_or(&knob.default);
        knob.check(set).map_err(|why| format!("knob {name}: {why}"))
    }

    /// Reads a numeric knob. No workload has a knob that may be negative.
    pub(crate) fn number(&self, name: &str) -> Result<u64, String> {
        match self.value(name)? {
            Value::Integer(number) if number >= 0 => Ok(number.unsigned_abs()),
            other => Err(format!("knob {name}: `{other}` is not a number")),
        }
    }

    /// Reads a knob as a word.
    pub(crate) fn word(&self, name: &str) -> Result<String, String> {
        Ok(self.value(name)?.to_string())
    }

    /// Whether a knob has this value.
    pub(crate) fn is(&self, name: &str, word: &str) -> Result<bool, String> {
        Ok(self.word(name)? == word)
    }

    /// Reads a knob that is true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        self.is(name, "true")
    }
}

pub(crate) const K: i64 = 1 << 10;
pub(crate) const M: i64 = 1 << 20;
/// More connections or callers than the ports and files of one machine allow.
pub(crate) const MANY: i64 = 1_000_000;
/// Ten minutes. No trial should wait longer for one operation.
pub(crate) const PATIENCE_MS: i64 = 600_000;
/// More arrivals a second than one machine can send.
const RATE: i64 = 100_000_000;

/// Defines the knobs of an open loop.
pub(crate) fn rate_knobs(workload: Workload) -> [WorkloadKnob; 2] {
    let about = "arrivals a second, whatever the answers do (open loop); 0: a closed loop";
    let rate = number(workload, Kind::Integer, 0..=RATE, &[0, 1000, 10_000], about);
    let about = "of an open loop, the gaps between arrivals: all alike, or exponential as independent users make them";
    let gaps = choice(workload, &["constant", "poisson"], about);
    [("rate", Purpose::Rate, rate), ("gaps", Purpose::Behaviour, gaps)]
}

/// Defines a numeric knob. The first of `values` is its default.
pub(crate) fn number(
    workload: Workload,
    kind: Kind,
    range: RangeInclusive<i64>,
    values: &[i64],
    about: &str,
) -> Knob {
    let values = values.iter().copied().map(Value::Integer).collect();
    Knob { min: Some(*range.start()), max: Some(*range.end()), ..knob(workload, kind, values, about) }
}

/// Defines a choice of words. The first is the default.
pub(crate) fn choice(workload: Workload, words: &[&str], about: &str) -> Knob {
    let values = words.iter().map(|word| Value::Text((*word).to_owned())).collect();
    knob(workload, Kind::Choice, values, about)
}

/// Defines a knob that is true or false.
pub(crate) fn flag(workload: Workload, default: bool, about: &str) -> Knob {
    knob(workload, Kind::Boolean, vec![Value::Boolean(default), Value::Boolean(!default)], about)
}

#[expect(
    clippy::indexing_slicing,
    reason = "the functions above give values, which are constants of this program"
)]
fn knob(workload: Workload, kind: Kind, values: Vec<Value>, about: &str) -> Knob {
    Knob { about: about.to_owned(), workloads: vec![workload], ..Knob::new(kind, values[0].clone(), values) }
}
