//! What is known of a workload before a knob is set, how its knobs are defined, and how they are read. Pure.

use std::sync::LazyLock;

use crate::figure::Figure;
use crate::knob::{Kind, Knob, Point, Value};
use crate::workload::{Role, Workload};

/// What is known of a workload.
pub struct About {
    /// The word used in manifests, experiments and reports.
    pub name: &'static str,
    /// Which side of the wire a system of this workload is on.
    pub role: Role,
    /// The scheme of a server's URL: what travels.
    pub scheme: &'static str,
    /// What is counted when a cost is told for each unit of work.
    pub unit: Unit,
    /// What its table may show; the first is what is usually published.
    pub figures: &'static [Figure],
    /// Whether operations are many and short, so that latencies and tenths of a window say something.
    pub short_exchanges: bool,
    /// Its own knobs, in the order of the documents, each with what it sets.
    pub(crate) knobs: LazyLock<Vec<Own>>,
    /// Small work in which a knob of a system has something to do, but for the defaults.
    pub small: &'static [Setting],
    /// Other small work, for knobs of which the first shows nothing: what is different from it.
    pub others: &'static [&'static [Setting]],
}

impl About {
    /// The definition of one of its own knobs, and what it sets.
    pub(crate) fn knob(&self, name: &str) -> Option<&Own> {
        self.knobs.iter().find(|(known, ..)| *known == name)
    }
}

/// A knob of a workload: its name, what it sets, its definition.
pub(crate) type Own = (&'static str, Purpose, Knob);

/// A knob's name and its value.
pub type Setting = (&'static str, Value);

/// What a knob of a workload sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// How much work one operation is, or how long it must wait: that more takes longer is no finding.
    Amount,
    /// How many operations share the machine: their rate is a finding, the time of one of them is not.
    Sharing,
    /// How long an operation is waited for.
    Patience,
    /// The arrivals of an open loop.
    Rate,
    /// How the work is done; every knob of a system is one.
    Setting,
}

/// What the work of a workload is counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Whether payload bytes are counted; otherwise operations.
    pub bytes: bool,
    /// So many of them are one unit, as people read it.
    pub size: f64,
    /// The unit in a sentence: `MB`, `frame`.
    pub name: &'static str,
    /// The same where a figure is described: `MB of body`.
    pub long: &'static str,
    /// The same in a heading: `MB`, `op`.
    pub short: &'static str,
}

/// The unit of HTTP exchanges that are no uploads.
pub(crate) const REQUEST: Unit =
    Unit { bytes: false, size: 1.0, name: "request", long: "request", short: "req" };

/// The knobs of a workload as a point sets them, or at their defaults.
pub(crate) struct Words<'a> {
    pub(crate) about: &'a About,
    pub(crate) point: &'a Point,
}

impl Words<'_> {
    fn value(&self, name: &str) -> Result<Value, String> {
        let (_, _, knob) = self.about.knob(name).ok_or_else(|| format!("there is no knob {name}"))?;
        let set = self.point.get(name).unwrap_or(&knob.default);
        knob.check(set).map_err(|why| format!("knob {name}: {why}"))
    }

    /// A knob that is a number; none of the workloads' may be negative.
    pub(crate) fn number(&self, name: &str) -> Result<u64, String> {
        match self.value(name)? {
            Value::Integer(number) if number >= 0 => Ok(number.unsigned_abs()),
            other => Err(format!("knob {name}: `{other}` is not a number")),
        }
    }

    /// Whether a knob says this word.
    pub(crate) fn says(&self, name: &str, word: &str) -> Result<bool, String> {
        Ok(self.value(name)?.to_string() == word)
    }

    /// A knob that is true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        self.says(name, "true")
    }
}

pub(crate) const K: i64 = 1 << 10;
pub(crate) const M: i64 = 1 << 20;
/// More connections or callers than one machine has ports and files for.
pub(crate) const MANY: i64 = 1_000_000;
/// Ten minutes: no trial is meant to wait longer for one operation.
pub(crate) const PATIENCE_MS: i64 = 600_000;
/// More arrivals a second than one machine can send.
const RATE: i64 = 100_000_000;

/// The arrivals of an open loop.
pub(crate) fn rate(workload: Workload) -> [Own; 2] {
    let about = "arrivals a second, whatever the answers do (open loop); 0: a closed loop";
    let rate = number(workload, Kind::Integer, (0, RATE), &[0, 1000, 10_000], about);
    let about = "of an open loop, the gaps between arrivals: all alike, or exponential as independent users make them";
    let gaps = choice(workload, &["constant", "poisson"], about);
    [("rate", Purpose::Rate, rate), ("gaps", Purpose::Setting, gaps)]
}

/// A numeric knob; the first of `values` is its default.
pub(crate) fn number(workload: Workload, kind: Kind, range: (i64, i64), values: &[i64], about: &str) -> Knob {
    let values = values.iter().copied().map(Value::Integer).collect();
    Knob { min: Some(range.0), max: Some(range.1), ..knob(workload, kind, values, about) }
}

/// One of some words; the first is the default.
pub(crate) fn choice(workload: Workload, words: &[&str], about: &str) -> Knob {
    let values = words.iter().map(|word| Value::Text((*word).to_owned())).collect();
    knob(workload, Kind::Choice, values, about)
}

pub(crate) fn flag(workload: Workload, default: bool, about: &str) -> Knob {
    knob(workload, Kind::Boolean, vec![Value::Boolean(default), Value::Boolean(!default)], about)
}

fn knob(workload: Workload, kind: Kind, values: Vec<Value>, about: &str) -> Knob {
    Knob {
        kind,
        default: values[0].clone(),
        values,
        min: None,
        max: None,
        about: about.to_owned(),
        workloads: vec![workload],
        effect: None,
    }
}
