//! The audit of a published table: which weaknesses its own figures show.
//!
//! The kinds of doubt and their limits are those of Narrows' own trials ([`lab::doubt`], [`lab::findings`]) wherever the columns
//! allow. [`Flaw`] adds only what cannot happen to a trial of Narrows. `report` has the remedies.

mod clients;
mod frames;
mod requests;
mod uploads;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PublishedColumn, PublishedSetting, PublishedTable, Rows, shape};
use lab::doubt::Evidence;
use lab::findings;

/// A kind of doubt about published rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// Latencies above a cap were left out, but their requests were counted. Narrows keeps every sample.
    CensoredLatency,
    /// A mean of a few operations, without spread or median. Narrows shows medians of trials and their spread.
    MeanWithoutSpread,
    /// A difference no larger than that between repeated rows of one configuration. Narrows compares in every round.
    WithinNoise,
    /// More answers than the pool's connections can carry one at a time. Narrows' server counts connections
    /// (`pool_cap_exceeded`), but a published table has only the rate.
    AboveCeiling,
    /// Figures that other rows or columns of the table contradict.
    Contradiction,
    /// A cell that is not printed like its neighbours.
    MalformedCell,
    /// A kind of doubt that the lab has about its own trials.
    #[serde(untagged)]
    Lab(findings::Code),
}

/// A doubt, and the rows that it concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditWarning {
    /// What kind.
    pub code: Flaw,
    /// What was seen, with the figures of an example; empty where `evidence` has them.
    pub message: String,
    /// What a trial of Narrows with these figures would be doubted for: the row, and what was seen.
    pub evidence: Vec<(String, Evidence)>,
    /// In how many rows, and of which systems.
    pub places: String,
    /// Which rows; empty where it concerns all.
    pub rows: Vec<String>,
}

/// A table in the document's shape, and the findings of its audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// The table's name.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The document.
    pub source: String,
    /// How it was measured.
    pub about: String,
    /// The ready-made experiment that measures the same today.
    pub experiment: Option<String>,
    /// What is known of how it was measured.
    pub setting: PublishedSetting,
    /// The columns.
    pub columns: Vec<PublishedColumn>,
    /// The rows in the document's order and shape.
    pub table: findings::Table,
    /// What the figures show beyond the document's words, such as laws, steps and order.
    pub found: Vec<String>,
    /// The published ranking beside the ranking of the rows with few errors. None if rows are not ranked.
    pub ranking: Option<findings::Table>,
    /// What makes figures untrustworthy.
    pub warnings: Vec<AuditWarning>,
}

/// The findings of the audit of one workload.
#[derive(Default)]
struct AuditParts {
    found: Vec<String>,
    ranking: Option<findings::Table>,
    doubts: Vec<FlawedRows>,
}

/// A doubt, with the indices of the rows that it concerns.
struct FlawedRows {
    code: Flaw,
    seen: What,
    rows: Vec<usize>,
}

/// What was seen, with its figures.
enum What {
    Said(String),
    /// Row by row.
    Evidence(Vec<Evidence>),
}

/// Looks for the weaknesses of a table in its figures. `all` are the tables in which rows of the same
/// configuration are looked for.
pub fn audit(table: &PublishedTable, all: &[PublishedTable]) -> Audit {
    let labels = table.labels();
    let mut parts = match &table.rows {
        Rows::Upload(rows) => uploads::audit(table, rows, all),
        Rows::Frames(rows) => frames::audit(table, rows, &labels),
        Rows::Requests(rows) => requests::audit(table, rows, &labels),
        Rows::Clients(rows) => clients::audit(table, rows, &labels),
    };
    parts.doubts.extend(few_trials(table));
    let systems = table.row_systems();
    let warnings = parts.doubts.into_iter().filter(|d| !d.rows.is_empty()).map(|doubt| {
        let all = doubt.rows.len() == labels.len();
        let own = doubt.rows.iter().map(|&row| labels[row].clone());
        let (message, evidence) = match doubt.seen {
            What::Said(message) => (message, Vec::new()),
            What::Evidence(seen) => (String::new(), own.zip(seen).collect()),
        };
        let named = |name: &str| !evidence.is_empty() || message.contains(name);
        AuditWarning {
            code: doubt.code,
            places: places(&doubt.rows, named, &labels, &systems),
            message,
            evidence,
            rows: doubt.rows.iter().filter(|_| !all).map(|&row| labels[row].clone()).collect(),
        }
    });
    Audit {
        name: table.name.clone(),
        title: table.title.clone(),
        source: table.source.clone(),
        about: table.about.clone(),
        experiment: table.experiment.clone(),
        setting: table.setting.clone(),
        columns: table.columns.clone(),
        table: shape::table(table),
        warnings: warnings.collect(),
        found: parts.found,
        ranking: parts.ranking,
    }
}

fn few_trials(table: &PublishedTable) -> Option<FlawedRows> {
    let code = findings::Code::TooFewTrials;
    let each = if table.runs == 1 { "one".to_owned() } else { table.runs.to_string() };
    (table.runs < findings::FEWEST_TRIALS).then(|| FlawedRows {
        code: Flaw::Lab(code),
        seen: What::Said(format!("fewer than {} measured trials, {each} each", findings::FEWEST_TRIALS)),
        rows: (0..table.printed.len()).collect(),
    })
}

/// In how many rows, and of which systems; or which rows, if they are few and not named yet.
fn places(rows: &[usize], named: impl Fn(&str) -> bool, labels: &[String], systems: &[&str]) -> String {
    let all = labels.len();
    if rows.len() == all {
        return format!("in all {all} rows");
    }
    let count = format!("in {} of {all} rows", rows.len());
    if rows.len() <= 4 {
        let names: Vec<&str> = rows.iter().map(|&row| labels[row].as_str()).collect();
        let named = names.iter().all(|name| named(name));
        return if named { count } else { format!("{count}: {}", names.join(", ")) };
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for &row in rows {
        *counts.entry(systems[row]).or_default() += 1;
    }
    if counts.len() == 1 && systems.iter().all(|system| *system == systems[0]) {
        return count;
    }
    let counts: Vec<String> = counts.iter().map(|(system, n)| format!("{system} {n}")).collect();
    format!("{count}: {}", counts.join(", "))
}

/// The indices of the rows to which a predicate applies.
fn indices<T>(rows: &[T], applies: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..rows.len()).filter(|&row| applies(&rows[row])).collect()
}

/// Formats a ratio: `1.02x`, `6.9x`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        r if r < 1.995 => format!("{r:.2}x"),
        r => format!("{r:.1}x"),
    }
}
