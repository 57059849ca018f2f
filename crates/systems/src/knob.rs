//! Knobs: the parameters of systems and workloads, their values, and the points that they span.
//!
//! A knob is defined once, in a manifest or in [`crate::work`]. Validation, `--set`, its help, sweep axes and report
//! columns all use that definition. Pure: no files, no processes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::workload::Workload;

/// The most values of a knob. Every loop over so many ends soon.
pub const MOST_VALUES: usize = 5_000;

/// One value of a knob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "not a knob's value: write an integer, true, false or a word in quotes")]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// An integer; sizes are in bytes.
    Integer(i64),
    /// One of the words of a choice.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(b) => b.fmt(f),
            Self::Integer(i) => i.fmt(f),
            Self::Text(t) => t.fmt(f),
        }
    }
}

/// One assignment of knobs, by name.
pub type Point = BTreeMap<String, Value>;

/// The type of a knob's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An integer.
    Integer,
    /// A number of bytes, also accepted as text such as `64K`, `1M` or `1G` (powers of 1024).
    Size,
    /// `true` or `false`.
    Boolean,
    /// One of the words in `values`.
    Choice,
    /// One of the words in `values`, or any integer within `min` and `max`.
    Any,
}

/// The definition of a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// The type of its values.
    pub kind: Kind,
    /// The value if no other is given.
    pub default: Value,
    /// The values of `all`; for a choice, every value that it accepts.
    pub values: Vec<Value>,
    /// The smallest integer or size that it accepts.
    pub min: Option<i64>,
    /// The largest integer or size that it accepts.
    pub max: Option<i64>,
    /// What of this machine sets `max`, and how it allows more. None if the definition sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_here: Option<String>,
    /// A description in one line.
    pub about: String,
    /// The workloads to which it applies; never empty.
    pub workloads: Vec<Workload>,
    /// Where its effect shows, or why a short check cannot see one.
    pub effect: Option<String>,
    /// Whether it sets how much work one operation is. That more work takes longer is no finding.
    pub amount: bool,
    /// The value at which the system works as those do that have no such knob. Other values are named where systems are compared.
    pub alike: Option<Value>,
}

impl Knob {
    /// A knob with these values, without bounds, and of no workload yet.
    pub fn new(kind: Kind, default: Value, values: Vec<Value>) -> Self {
        Self {
            kind,
            default,
            values,
            min: None,
            max: None,
            max_here: None,
            about: String::new(),
            workloads: Vec::new(),
            effect: None,
            amount: false,
            alike: None,
        }
    }

    /// Parses a value as a person types it (`--set NAME=VALUE`). The error says what is allowed.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match self.kind {
            Kind::Boolean => match text {
                "true" => Ok(Value::Boolean(true)),
                "false" => Ok(Value::Boolean(false)),
                _ => Err(self.refusal(text)),
            },
            Kind::Integer => self.within(text.parse().map_err(|_| self.refusal(text))?),
            Kind::Size => self.within(parse_size(text).map_err(|why| format!("{why}; {}", self.allowed()))?),
            Kind::Choice => self.word(text),
            Kind::Any => match text.parse() {
                Ok(number) => self.within(number),
                Err(_) => self.word(text),
            },
        }
    }

    /// Checks a value from a file and normalises it: `"64K"` becomes 65536. The error says what is allowed.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        match (self.kind, value) {
            (Kind::Boolean, Value::Boolean(_)) => Ok(value.clone()),
            (Kind::Integer | Kind::Size | Kind::Any, Value::Integer(number)) => self.within(*number),
            (Kind::Size, Value::Text(text)) => self.parse(text),
            (Kind::Choice | Kind::Any, Value::Text(text)) => self.word(text),
            (Kind::Choice, other) if self.values.contains(&Value::Text(other.to_string())) => {
                Err(format!("`{other}` must be text: write it in quotes, \"{other}\""))
            }
            (Kind::Boolean | Kind::Integer, Value::Text(text)) if self.parse(text).is_ok() => {
                Err(format!("write {text} without the quotes"))
            }
            (_, other) => Err(self.refusal(&other.to_string())),
        }
    }

    /// Why this machine does not allow a value that another may allow, and what mends it: "more than…". None for other values.
    pub fn beyond(&self, value: &Value) -> Option<String> {
        let (Value::Integer(number), Some(max), Some(why)) = (value, self.max, &self.max_here) else {
            return None;
        };
        let most = || self.show(&Value::Integer(max));
        (*number > max).then(|| format!("more than this machine allows, {} ({why})", most()))
    }

    /// The value as reports show it: a size as `64K`, others unchanged. [`Knob::parse`] reads it back.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Size, Value::Integer(bytes)) => show_size(*bytes),
            _ => value.to_string(),
        }
    }

    /// The accepted values as a phrase: "an integer from 1 to 64", "one of `a`, `b`".
    pub fn allowed(&self) -> String {
        let range = |noun: &str| {
            let show = |bound: i64| self.show(&Value::Integer(bound));
            match (self.min, self.max) {
                (Some(min), Some(max)) => format!("{noun} from {} to {}", show(min), show(max)),
                (Some(min), None) => format!("{noun} of at least {}", show(min)),
                (None, Some(max)) => format!("{noun} of at most {}", show(max)),
                (None, None) => noun.to_owned(),
            }
        };
        match self.kind {
            Kind::Boolean => "true or false".to_owned(),
            Kind::Integer => range("an integer"),
            Kind::Size => range("a size such as 1460, 64K, 1M or 1G"),
            Kind::Choice => format!("one of {}", self.words()),
            Kind::Any if self.words().is_empty() => range("an integer"),
            Kind::Any => format!("one of {} or {}", self.words(), range("an integer")),
        }
    }

    fn words(&self) -> String {
        let words = self.values.iter().filter_map(|v| match v {
            Value::Text(word) => Some(format!("`{word}`")),
            _ => None,
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn word(&self, text: &str) -> Result<Value, String> {
        let value = Value::Text(text.to_owned());
        if self.values.contains(&value) {
            return Ok(value);
        }
        let words = self.values.iter().filter_map(|v| match v {
            Value::Text(word) => Some(word.as_str()),
            _ => None,
        });
        match crate::input::nearest(text, words) {
            Some(near) => Err(format!("{}; did you mean `{near}`?", self.refusal(text))),
            None => Err(self.refusal(text)),
        }
    }

    fn within(&self, number: i64) -> Result<Value, String> {
        if let Some(why) = self.beyond(&Value::Integer(number)) {
            return Err(format!("{} is {why}", self.show(&Value::Integer(number))));
        }
        let negative_size = self.kind == Kind::Size && number < 0;
        let low = self.min.is_some_and(|min| number < min);
        let high = self.max.is_some_and(|max| number > max);
        if negative_size || low || high {
            return Err(self.refusal(&self.show(&Value::Integer(number))));
        }
        Ok(Value::Integer(number))
    }

    fn refusal(&self, text: &str) -> String {
        format!("`{text}` is not allowed: use {}", self.allowed())
    }
}

const UNITS: [(char, i64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Parses a size in bytes: `1460`, `64K`, `1M`, `1G`, `1T` (powers of 1024, in either case).
pub fn parse_size(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is not a size: write bytes as 1460, 64K, 1M or 1G (powers of 1024)");
    let unit = |(letter, factor): &(char, i64)| {
        Some((text.strip_suffix([*letter, letter.to_ascii_lowercase()])?, *factor))
    };
    let (digits, factor) = UNITS.iter().find_map(unit).unwrap_or((text, 1));
    // `parse` alone would accept "+5" and "-5".
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number = digits.parse::<i64>().ok().and_then(|n| n.checked_mul(factor));
    number.ok_or_else(|| format!("`{text}` is too large: the largest size is {}", i64::MAX))
}

/// A size in the largest unit that divides it: `64K`, `1M`, `1460`.
#[expect(clippy::arithmetic_side_effects, reason = "every unit is more than one")]
pub fn show_size(bytes: i64) -> String {
    let unit = UNITS.iter().find(|(_, factor)| bytes != 0 && bytes % factor == 0);
    match unit {
        Some((letter, factor)) => format!("{}{letter}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests;
