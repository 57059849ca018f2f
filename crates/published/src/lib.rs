//! Published tables: the figures of the benchmarks that Narrows grew out of, and what they hide.
//!
//! A table consists of two files. `published/NAME.toml` says where the table comes from, how it was measured and what
//! its columns are. `published/NAME.csv` has its rows, as they were printed. The documents' tables are built into the
//! program, so that a report needs no checkout. Other tables are read from their path. Apart from that, this crate is
//! pure. It knows the findings of a run, beside which it sets the published figures, but not how they were made.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]
mod audit;
mod beside;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]
mod csv;
mod found;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]
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

pub use audit::{Audit, AuditWarning, Flaw, Ranking, audit};
pub use beside::beside;
pub use found::{
    Cap, Carried, Censored, Found, Inverted, LessTime, Seen, SendersRate, Step, ThreadRates, UnsteadyRow,
    VoidRow,
};
pub use record::{Misprint, MisprintKind};
pub use rows::{
    ClientFigures, ClientRow, FrameFigures, FrameRow, PublishedRow, RequestFigures, RequestRow, Rows,
    UploadFigures, UploadRow,
};
pub use shape::FIRST_ROWS;

/// A table of `published/`: its name, its TOML file and its CSV file.
macro_rules! built_in {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../published/", $name, ".toml")),
            include_str!(concat!("../../../published/", $name, ".csv")),
        )
    };
}

/// The documents' tables, each with its TOML and CSV text.
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
pub struct PublishedTable {
    /// The name, which is also the name of its files.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The document.
    pub source: String,
    /// How it was measured.
    pub about: String,
    /// The kind of work that was measured. It decides which columns are required and which checks are made.
    pub workload: Workload,
    /// The ready-made experiment that measures the same today.
    pub experiment: Option<String>,
    /// The number of trials behind each row.
    pub runs: u32,
    /// What is known of how it was measured.
    pub setting: PublishedSetting,
    /// The columns, in the order of the rows' fields.
    pub columns: Vec<PublishedColumn>,
    /// For each system of the document, the systems of Narrows that stand for it, the nearest first: the same version,
    /// then another version, or what the system is based on.
    pub systems: BTreeMap<String, Vec<String>>,
    /// For each runtime of the document, the variants that stand for it, the nearest first: the same version, then a
    /// runtime that executes code in the same way.
    pub runtimes: BTreeMap<String, Vec<String>>,
    /// The versions that the document measured, of the systems of which it says so.
    pub versions: BTreeMap<String, String>,
    /// The knobs that have no column, as Narrows would set them.
    pub fixed: Point,
    /// The figures, in the document's order.
    pub rows: Rows,
    /// The fields of each row, as they were printed.
    pub printed: Vec<Vec<String>>,
}

/// A column of a published table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedColumn {
    /// The name in the CSV file. A knob has the name that Narrows gives it.
    pub name: String,
    /// The heading in the document.
    pub heading: String,
    /// The meaning of its figures, and their unit.
    pub about: String,
    /// The kind of values, if the column is a knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<Kind>,
}

/// What is known of how a table was measured. Checks that need unknown fields are skipped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedSetting {
    /// The number of uploads in each mean.
    pub operations: Option<u64>,
    /// The length of a run, seconds.
    pub window_s: Option<f64>,
    /// The number of connections at once.
    pub connections: Option<u64>,
    /// The number of threads of the load generator.
    pub threads: Option<u64>,
    /// The cap above which latencies were left out, milliseconds.
    pub latency_cap_ms: Option<f64>,
    /// The number of attempts in each row. The callers share them evenly; a remainder is dropped.
    pub attempts: Option<u64>,
    /// How long the server waited before it answered, milliseconds.
    pub delay_ms: Option<f64>,
    /// The timeout that clients were given, milliseconds.
    pub timeout_ms: Option<f64>,
    /// The clients that have no pool, although the columns name pools.
    pub unpooled: Vec<String>,
}

/// The names of the documents' tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _, _)| *name)
}

/// All tables of the documents.
///
/// # Errors
/// The first mistake in a file.
pub fn tables() -> Result<Vec<PublishedTable>, InputError> {
    names().map(load).collect()
}

/// Loads a table of the documents by name. A name that ends in `.toml` is the path of another table, whose rows are in
/// a file beside it with the same name and the extension `.csv`.
///
/// # Errors
/// There is no such table: the error names the nearest. Otherwise the first mistake in its files, with its position.
pub fn load(name: &str) -> Result<PublishedTable, InputError> {
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
