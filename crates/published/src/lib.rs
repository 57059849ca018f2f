//! Published tables: the figures of the benchmarks that Narrows grew from, and what they hide.
//!
//! A table is two files: `published/NAME.toml` says where it comes from, how it was measured and what its columns are;
//! `published/NAME.csv` has its rows, as they were printed. The documents' tables are part of the program, so that a
//! report needs no checkout; a table of one's own is read from its path. Pure beyond that reading: knows
//! what was found in a run, beside which it puts the figures, and not how.

mod audit;
mod beside;
mod csv;
mod read;
mod record;
mod rows;
mod shape;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use systems::input::nearest;
use systems::knob::Kind;
use systems::{InputError, Point, Source, Workload};

pub use audit::{Audit, Flaw, Warning, audit};
pub use beside::beside;
pub use rows::{Client, Frames, Request, Row, Rows, Upload};

/// A table by its name: what `published/` holds of it.
macro_rules! built_in {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../published/", $name, ".toml")),
            include_str!(concat!("../../../published/", $name, ".csv")),
        )
    };
}

/// The documents' tables: the name, what is said of it, its rows.
const BUILT_IN: [(&str, &str, &str); 7] = [
    built_in!("cowboy-sizes"),
    built_in!("cowboy-modes"),
    built_in!("cowboy-buffers"),
    built_in!("erlang-packet"),
    built_in!("iodash"),
    built_in!("pools-2019"),
    built_in!("pools-original"),
];

/// A published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Equal to the files' name.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The document.
    pub source: String,
    /// How it was measured.
    pub about: String,
    /// What was done; decides which columns there must be, and which checks are made.
    pub workload: Workload,
    /// The ready-made experiment that measures it today.
    pub experiment: Option<String>,
    /// Trials behind each row.
    pub runs: u32,
    /// What is known of how it was measured.
    pub setting: Setting,
    /// In the order of the rows' fields.
    pub columns: Vec<Column>,
    /// Narrows' systems for each of the document's, the nearest first: the same version, then another, or what it is
    /// made of.
    pub systems: BTreeMap<String, Vec<String>>,
    /// The variants of systems for each of the document's runtimes, the nearest first: the same version, then one that
    /// executes code in the same way.
    pub runtimes: BTreeMap<String, Vec<String>>,
    /// The knobs that no column has, as Narrows would set them.
    pub fixed: Point,
    /// Where the systems' knobs stand when nobody sets them: what a run means that does not say.
    pub defaults: Point,
    /// The figures, in the document's order.
    pub rows: Rows,
    /// Each row's fields as they were printed.
    pub printed: Vec<Vec<String>>,
}

/// A column: its name in the CSV and in the document, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The name in the CSV; of a knob, Narrows' name.
    pub name: String,
    /// What the document calls it.
    pub heading: String,
    /// What its figures mean, and their unit.
    pub about: String,
    /// For a knob, what values it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<Kind>,
}

/// What is known of how a table was measured; a check that needs what is not known is not made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// Uploads that a mean is made of.
    pub operations: Option<u64>,
    /// Length of a run, seconds.
    pub window_s: Option<f64>,
    /// Connections at once.
    pub connections: Option<u64>,
    /// Threads of the load generator.
    pub threads: Option<u64>,
    /// Latencies above this were left out, milliseconds.
    pub latency_cap_ms: Option<f64>,
    /// Attempts in each row, shared out evenly among the callers, the remainder left out.
    pub attempts: Option<u64>,
    /// How long the server waited before it answered, milliseconds.
    pub delay_ms: Option<f64>,
    /// The timeout that clients were given, milliseconds.
    pub timeout_ms: Option<f64>,
    /// Clients that have no pool, whatever the columns say.
    pub unpooled: Vec<String>,
}

/// The names of the documents' tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _, _)| *name)
}

/// All of the documents' tables.
///
/// # Errors
/// The first mistake in a file.
pub fn tables() -> Result<Vec<Table>, InputError> {
    names().map(load).collect()
}

/// A table of the documents by name; a name that ends in `.toml` is the path of a table of one's own, whose rows
/// stand beside it in a file of the same name that ends in `.csv`.
///
/// # Errors
/// No such table: names the nearest. Otherwise the first mistake in its files, with its place.
pub fn load(name: &str) -> Result<Table, InputError> {
    if Path::new(name).extension().is_some_and(|e| e == "toml") {
        let path = Path::new(name);
        return read::table(&Source::read(path)?, &Source::read(&path.with_extension("csv"))?);
    }
    let Some((name, head, rows)) = BUILT_IN.iter().find(|(known, _, _)| *known == name) else {
        let known: Vec<&str> = names().collect();
        let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
        let help = format!("{}there are: {}", near.unwrap_or_default(), known.join(", "));
        return Err(Source::new("published", "").error(0..0, format!("there is no table `{name}`"), help));
    };
    let source = |end: &str, text: &str| Source::new(format!("published/{name}.{end}"), text);
    read::table(&source("toml", head), &source("csv", rows))
}

#[cfg(test)]
mod tests;
