//! The audit of a published table: which weaknesses its own figures show.
//!
//! The kinds of doubt and their limits are those of Narrows' own trials ([`measurement::doubt`], [`lab::findings`]) wherever the columns
//! allow. [`Flaw`] adds only what cannot happen to a trial of Narrows. `report` has the words and the
//! remedies.

mod clients;
mod frames;
mod requests;
mod uploads;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use systems::Workload;

use super::{Found, PublishedColumn, PublishedSetting, PublishedTable, Rows, Seen, shape};
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
    /// What was seen, with the figures of an example or of each row.
    pub seen: Seen,
    /// How many rows it concerns ...
    pub count: usize,
    /// ... of so many.
    pub of: usize,
    /// Which rows; empty where it concerns all.
    pub rows: Vec<String>,
    /// How many rows of each system; empty if the table has only one.
    pub systems: BTreeMap<String, usize>,
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
    /// The kind of work that was measured.
    pub workload: Workload,
    /// The ready-made experiment that measures the same today.
    pub experiment: Option<String>,
    /// What is known of how it was measured.
    pub setting: PublishedSetting,
    /// The columns.
    pub columns: Vec<PublishedColumn>,
    /// The rows in the document's order and shape.
    pub table: findings::Table,
    /// The number of published rows. Those of frames are cells of the table.
    pub rows: usize,
    /// How many rows of the table were left out, so that it is short.
    pub left_out: usize,
    /// What the figures show beyond the document's words, such as laws, steps and order.
    pub found: Vec<Found>,
    /// The published ranking beside the ranking of the rows with few errors. None if rows are not ranked.
    pub ranking: Option<Ranking>,
    /// What makes figures untrustworthy.
    pub warnings: Vec<AuditWarning>,
}

/// Each client's best row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The published ranking beside the ranking of the rows with few errors.
    pub table: findings::Table,
    /// The clients without a row of few errors.
    pub unranked: Vec<String>,
    /// The ranked rows above what the connections of the pool can carry one request at a time.
    pub above_ceiling: Vec<String>,
}

/// The findings of the audit of one workload.
#[derive(Default)]
struct AuditParts {
    found: Vec<Found>,
    ranking: Option<Ranking>,
    doubts: Vec<FlawedRows>,
}

/// A doubt, with the indices of the rows that it concerns.
struct FlawedRows {
    code: Flaw,
    seen: Seen,
    rows: Vec<usize>,
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
    let one_system = systems.iter().all(|system| Some(system) == systems.first());
    let warnings = parts.doubts.into_iter().filter(|d| !d.rows.is_empty()).map(|doubt| {
        let (count, of) = (doubt.rows.len(), labels.len());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for system in doubt.rows.iter().filter(|_| !one_system).filter_map(|&row| systems.get(row)) {
            let count = counts.entry((*system).to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let rows = doubt.rows.iter().filter(|_| count < of).filter_map(|&row| labels.get(row).cloned());
        AuditWarning { code: doubt.code, seen: doubt.seen, count, of, rows: rows.collect(), systems: counts }
    });
    Audit {
        name: table.name.clone(),
        title: table.title.clone(),
        source: table.source.clone(),
        about: table.about.clone(),
        workload: table.workload,
        experiment: table.experiment.clone(),
        setting: table.setting.clone(),
        columns: table.columns.clone(),
        table: shape::table(table),
        rows: table.printed.len(),
        left_out: 0,
        warnings: warnings.collect(),
        found: parts.found,
        ranking: parts.ranking,
    }
}

fn few_trials(table: &PublishedTable) -> Option<FlawedRows> {
    (table.runs < findings::FEWEST_TRIALS).then(|| FlawedRows {
        code: Flaw::Lab(findings::Code::TooFewTrials),
        seen: Seen::FewTrials { each: table.runs },
        rows: (0..table.printed.len()).collect(),
    })
}

/// The indices of the rows to which a predicate applies.
fn indices<T>(rows: &[T], applies: impl Fn(&T) -> bool) -> Vec<usize> {
    rows.iter().enumerate().filter(|(_, row)| applies(row)).map(|(index, _)| index).collect()
}
