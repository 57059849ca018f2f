//! The rows of the two tables, with their checksums.
//!
//! The checksum of a row is the SHA-256 of its other columns as a JSON array, in the order of the table. The numbers of the run
//! and of the trial are among them, so that a row under another key is noticed, too. A row that schema 1 wrote has none. It is
//! not checked, and gets no checksum later, which would vouch for content that nobody has checked.

use rusqlite::Row;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::error::{damaged, decode, unreadable};
use super::{RunId, StoreError};

/// A row of the table `runs`, with the plan and the environment as JSON.
#[derive(Debug)]
pub(super) struct RunRow {
    pub id: RunId,
    /// Seconds since the Unix epoch.
    pub started_unix_s: f64,
    pub command: String,
    pub seed: String,
    pub plan: String,
    pub environment: String,
    pub finished: bool,
    /// As JSON, too. None in runs of earlier versions.
    pub question: Option<String>,
}

impl RunRow {
    /// The columns that [`RunRow::read`] takes. Older schemas have other names for the last two.
    pub fn columns(sum: &str, question: &str) -> String {
        format!("id, started_unix_s, command, seed, plan, environment, finished, {sum}, {question}")
    }

    /// Reads a row and compares it with its checksum.
    ///
    /// # Errors
    /// It differs, or a column has another type.
    pub fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let id = row.get(0).map_err(|e| unreadable("the number of a run".to_owned(), e))?;
        let columns = || {
            let read = Self {
                id,
                started_unix_s: row.get(1)?,
                command: row.get(2)?,
                seed: row.get(3)?,
                plan: row.get(4)?,
                environment: row.get(5)?,
                finished: row.get(6)?,
                question: row.get(8)?,
            };
            Ok((read, row.get(7)?))
        };
        let (read, sum): (Self, Option<String>) =
            columns().map_err(|e| unreadable(format!("run {id}"), e))?;
        check(sum, &read.sum()?, || format!("run {id}"))?;
        Ok(read)
    }

    /// Its checksum.
    pub fn sum(&self) -> Result<String, StoreError> {
        let Self { id, started_unix_s, command, seed, plan, environment, finished, question } = self;
        match question {
            // Schema 2 had no such column, and its rows keep their checksums.
            None => sum(&(id, started_unix_s, command, seed, plan, environment, finished)),
            Some(question) => {
                sum(&(id, started_unix_s, command, seed, plan, environment, finished, question))
            }
        }
    }

    /// The number of planned trials. `done` is the number of those that have an observation.
    ///
    /// # Errors
    /// The run is finished, but a trial is not there. A damaged key can hide it. Or the plan is no plan.
    pub fn planned(&self, done: usize) -> Result<usize, StoreError> {
        #[derive(Deserialize)]
        struct Trials {
            trials: Vec<IgnoredAny>,
        }
        let plan: Trials = decode(&self.plan, || format!("the plan of run {}", self.id))?;
        let planned = plan.trials.len();
        if self.finished && done != planned {
            let reason = format!("it is finished, but has {done} of {planned} trials");
            return Err(damaged(format!("run {}", self.id), reason));
        }
        Ok(planned)
    }
}

/// The checksum of an observation, which is JSON.
pub(super) fn sum_of_observation(run: RunId, trial: u32, observation: &str) -> Result<String, StoreError> {
    sum(&(run, trial, observation))
}

/// Reads the trial, the observation and the checksum of a row of the table `observations`, in this order.
///
/// # Errors
/// The row does not match its checksum, or a column has another type.
pub(super) fn observation(run: RunId, row: &Row<'_>) -> Result<(u32, String), StoreError> {
    let trial = row.get(0).map_err(|e| unreadable(format!("the number of a trial of run {run}"), e))?;
    let what = || format!("trial {trial} of run {run}");
    let columns = || Ok((row.get(1)?, row.get(2)?));
    let (json, sum): (String, Option<String>) = columns().map_err(|e| unreadable(what(), e))?;
    check(sum, &sum_of_observation(run, trial, &json)?, what)?;
    Ok((trial, json))
}

fn check(stored: Option<String>, sum: &str, what: impl Fn() -> String) -> Result<(), StoreError> {
    match stored {
        Some(stored) if stored != sum => Err(damaged(what(), "it does not match its checksum".to_owned())),
        _ => Ok(()),
    }
}

fn sum(columns: &impl Serialize) -> Result<String, StoreError> {
    Ok(systems::parcel::sha256(&serde_json::to_vec(columns)?))
}
