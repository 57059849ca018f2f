//! The store: all runs and observations in one SQLite file, which any SQLite can read.
//!
//! Knows the disk and the JSON form of plans and observations. Computes nothing.
//!
//! The journal is a WAL with `synchronous = NORMAL`. When [`Store::append`] returns, the trial is in the WAL file and
//! the kernel has it, so `kill -9` of Narrows cannot lose it. FULL would also survive a power cut, but it adds an fsync
//! for each trial, and that disk traffic disturbs the next trial. After a power cut the file is intact. At most the
//! last few trials are missing, and `--resume` repeats them. WAL also lets `narrows report` read during a run.

mod error;
mod rows;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

pub use error::StoreError;
use error::{damaged, decode};
use rows::RunRow;

use crate::observation::{Observation, Outcome};
use crate::plan::Plan;

/// The version of the schema that this program writes, `PRAGMA user_version`.
pub const SCHEMA: i64 = 3;

/// `PRAGMA application_id`, "Nrws". It distinguishes stores from other databases.
const APPLICATION: i64 = 0x4e72_7773;

/// How long to wait while another process writes.
const PATIENCE: Duration = Duration::from_secs(10);

const CREATE: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started_unix_s REAL NOT NULL,
        command TEXT NOT NULL,
        seed TEXT NOT NULL,
        plan TEXT NOT NULL,
        environment TEXT NOT NULL,
        finished INTEGER NOT NULL DEFAULT 0,
        sum TEXT NOT NULL DEFAULT '',
        question TEXT
    ) STRICT;
    CREATE TABLE observations (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        trial INTEGER NOT NULL,
        observation TEXT NOT NULL,
        sum TEXT NOT NULL,
        PRIMARY KEY (run, trial)
    ) STRICT, WITHOUT ROWID;";

/// Makes a store of schema 1 one of schema 2, the first with checksums.
const ADD_SUMS: &str = "ALTER TABLE runs ADD COLUMN sum TEXT; ALTER TABLE observations ADD COLUMN sum TEXT;";

/// Makes a store of schema 2 one of schema 3, the first that keeps questions.
const ADD_QUESTIONS: &str = "ALTER TABLE runs ADD COLUMN question TEXT;";

/// The number of a run in its store. Numbers start at 1.
pub type RunId = i64;

/// The facts of a run that are known before its first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// The command line that started it.
    pub command: String,
    /// What it asks, as JSON that whoever began it understands. None in runs of earlier versions.
    pub question: Option<serde_json::Value>,
    /// Everything that it will do, including the seed.
    pub plan: Plan,
    /// The machine as JSON: kernel, CPU, limits and versions.
    pub environment: serde_json::Value,
}

/// An entry in the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its number.
    pub id: RunId,
    /// Seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// The command line that started it.
    pub command: String,
    /// Whether all of its trials were done. False while it runs and after an interruption.
    pub finished: bool,
    /// The number of trials that have an observation.
    pub done: u32,
    /// The number of planned trials.
    pub planned: u32,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens a store for writing. Creates the file if it does not exist. A store of an older schema becomes one of [`SCHEMA`].
    ///
    /// # Errors
    /// The file is not a database, belongs to another program or a newer Narrows, or cannot be written.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        store.prepare().map_err(|e| e.with_path(path))?;
        Ok(store)
    }

    /// Opens a store for reading only. This works while another process writes to it, and on a read-only file system.
    ///
    /// # Errors
    /// The file does not exist or is empty. Otherwise see [`Store::open`].
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        // SQLite removes the files of the WAL when its last connection closes, but only if that one may write.
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mut version = store.version();
        if let Err(
            StoreError::ReadOnly { .. }
            | StoreError::CannotOpen { .. }
            | StoreError::Full { .. }
            | StoreError::Disk { .. },
        ) = version
        {
            store = Self::unchanging(path)?;
            version = store.version();
        }
        let version = version.map_err(|e| e.with_path(path))?;
        store
            .connection
            .pragma_update(None, "query_only", true)
            .map_err(|e| StoreError::from(e).with_path(path))?;
        match version {
            None => Err(StoreError::Missing { path: path.to_owned() }),
            Some(_) => Ok(store),
        }
    }

    /// Opens a store that no other process is writing. To read a WAL database, SQLite creates a file beside it that coordinates
    /// readers and writers. On a read-only or full file system it cannot, but there are no writers either. This way of
    /// opening skips the WAL, so the WAL must be empty.
    fn unchanging(path: &Path) -> Result<Self, StoreError> {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        if std::fs::metadata(wal).is_ok_and(|wal| wal.len() > 0) {
            return Err(StoreError::Unclosed { path: path.to_owned() });
        }
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
        let escaped = |byte: &u8| match plain(byte) {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        // The path must be absolute, because two slashes at the beginning would name a host.
        let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name: String = absolute.as_os_str().as_bytes().iter().map(escaped).collect();
        let uri = format!("file:{name}?immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Self::connect(Path::new(&uri), flags)
            .map(|store| Self { path: path.to_owned(), ..store })
            .map_err(|e| e.with_path(path))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        // What does not exist is made. The URI of an immutable file is no path, so it has no metadata.
        if let Ok(found) = path.metadata()
            && !found.is_file()
        {
            let path = path.to_owned();
            return Err(match found.is_dir() {
                true => StoreError::Folder { path },
                false => StoreError::NoRegularFile { path },
            });
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> Result<Self, rusqlite::Error> {
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(Self { connection, path: path.to_owned() })
        };
        open().map_err(|e| StoreError::from(e).with_path(path))
    }

    /// The version of the schema. None for an empty file.
    fn version(&self) -> Result<Option<i64>, StoreError> {
        let number =
            |pragma: &str| self.connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let tables = || {
            self.connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))
        };
        let (application, version, tables) =
            self.at_once(|| Ok((number("application_id")?, number("user_version")?, tables()?)))?;
        match (application, version) {
            (0, 0) if tables == 0 => Ok(None),
            (APPLICATION, 1..=SCHEMA) => Ok(Some(version)),
            (APPLICATION, newer) => Err(StoreError::Newer { path: self.path.clone(), found: newer }),
            _ => Err(StoreError::NotOurs { path: self.path.clone() }),
        }
    }

    /// Reads the same state of the file in all queries. Otherwise another process may make the store between two of them, and what
    /// they say together was never true.
    fn at_once<T>(&self, read: impl FnOnce() -> Result<T, rusqlite::Error>) -> Result<T, rusqlite::Error> {
        // Unlike a transaction, a savepoint may be within another one.
        self.connection.execute_batch("SAVEPOINT reading")?;
        let seen = read();
        let released = self.connection.execute_batch("RELEASE reading");
        seen.and_then(|seen| released.map(|()| seen))
    }

    /// Switches to a WAL. SQLite does not wait for others that switch at the same time, because two that wait for each other would
    /// wait for ever; it says at once that the file is busy.
    fn write_ahead(&self) -> Result<(), StoreError> {
        let began = std::time::Instant::now();
        loop {
            let switched = self.connection.pragma_update(None, "journal_mode", "WAL");
            let busy = switched.as_ref().err().and_then(rusqlite::Error::sqlite_error_code)
                == Some(rusqlite::ErrorCode::DatabaseBusy);
            if !busy || began.elapsed() >= PATIENCE {
                return Ok(switched?);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let current = self.version()? == Some(SCHEMA);
        self.write_ahead()?;
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        if !current {
            // Look again under the write lock, because two processes may have found the same old or empty file.
            let change = self.change()?;
            match self.version()? {
                None => change.execute_batch(CREATE)?,
                Some(1) => {
                    change.execute_batch(ADD_SUMS)?;
                    change.execute_batch(ADD_QUESTIONS)?;
                }
                Some(2) => change.execute_batch(ADD_QUESTIONS)?,
                Some(_) => {}
            }
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", SCHEMA)?;
            change.commit()?;
        }
        Ok(())
    }

    /// Begins a change that others see as a whole, and takes the write lock.
    fn change(&self) -> Result<Transaction<'_>, StoreError> {
        Ok(Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?)
    }

    /// How a query names the checksum of a row of this table. Where each row has one, a row without it is damaged.
    fn sum(&self, table: &str) -> Result<&'static str, StoreError> {
        let sql = "SELECT \"notnull\" FROM pragma_table_info(?) WHERE name = 'sum'";
        let required = self.connection.query_row(sql, [table], |row| row.get::<_, bool>(0)).optional()?;
        Ok(match required {
            Some(true) => "coalesce(sum, '')",
            // Stores of earlier versions may have rows that never had one.
            Some(false) => "sum",
            None => "NULL",
        })
    }

    /// How a query names the columns that [`RunRow::read`] takes.
    fn columns(&self) -> Result<String, StoreError> {
        Ok(RunRow::columns(self.sum("runs")?, column(self.version()?, "question", 3)))
    }

    /// Saves a new run and returns its number.
    ///
    /// # Errors
    /// The store cannot be written. The message names the file and what to do.
    pub fn begin(&self, header: &RunHeader) -> Result<RunId, StoreError> {
        self.with(|| {
            let change = self.change()?;
            let sql = "INSERT INTO runs (started_unix_s, command, seed, plan, environment, question) \
                       VALUES (?, ?, ?, ?, ?, ?)";
            let plan = serde_json::to_string(&header.plan)?;
            let seed = header.plan.seed.to_string();
            let environment = header.environment.to_string();
            let question = header.question.as_ref().map(ToString::to_string);
            let (started_unix_s, command) = (header.started_unix_s, header.command.clone());
            change.execute(sql, params![started_unix_s, command, seed, plan, environment, question])?;
            let id = change.last_insert_rowid();
            let row =
                RunRow { id, started_unix_s, command, seed, plan, environment, finished: false, question };
            change.execute("UPDATE runs SET sum = ? WHERE id = ?", params![row.sum()?, id])?;
            change.commit()?;
            Ok(id)
        })
    }

    /// Replaces the plan of a run by one that has grown. The new plan must begin with the trials of the old one.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn replan(&self, run: RunId, plan: &Plan) -> Result<(), StoreError> {
        self.with(|| {
            let plan = serde_json::to_string(plan)?;
            self.update(run, |row| RunRow { plan, finished: false, ..row })
        })
    }

    /// Changes the plan of a run, or whether it is finished.
    fn update(&self, run: RunId, edit: impl FnOnce(RunRow) -> RunRow) -> Result<(), StoreError> {
        let change = self.change()?;
        let row = edit(self.row(run)?);
        let sql = "UPDATE runs SET plan = ?, finished = ?, sum = ? WHERE id = ?";
        change.execute(sql, params![row.plan, row.finished, row.sum()?, run])?;
        Ok(change.commit()?)
    }

    /// Stores the observations of trials that happened together: all of them or none. When this returns, they survive a crash of
    /// this process.
    ///
    /// # Errors
    /// A trial already has an observation. Otherwise see [`Store::begin`].
    pub fn append(&self, run: RunId, observations: &[Observation]) -> Result<(), StoreError> {
        self.with(|| {
            let all = self.connection.unchecked_transaction()?;
            for observation in observations {
                let json = serde_json::to_string(observation)?;
                let trial = observation.trial.index;
                let sum = rows::sum_of_observation(run, trial, &json)?;
                let sql = "INSERT INTO observations (run, trial, observation, sum) VALUES (?, ?, ?, ?)";
                match self.connection.execute(sql, params![run, trial, json, sum]) {
                    Err(e) if error::is_constraint(&e) => return Err(StoreError::Conflict { run, trial }),
                    other => _ = other?,
                }
            }
            Ok(all.commit()?)
        })
    }

    /// Marks a run as finished.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn finish(&self, run: RunId) -> Result<(), StoreError> {
        self.with(|| self.update(run, |row| RunRow { finished: true, ..row }))
    }

    /// The header of a run, with its current plan.
    ///
    /// # Errors
    /// There is no such run, or it is damaged. Otherwise see [`Store::begin`].
    pub fn header(&self, run: RunId) -> Result<RunHeader, StoreError> {
        self.with(|| {
            let RunRow { started_unix_s, command, plan, environment, question, .. } = self.row(run)?;
            let plan = decode(&plan, || format!("the plan of run {run}"))?;
            let environment = decode(&environment, || format!("the environment of run {run}"))?;
            let question = question.map(|json| decode(&json, || format!("the question of run {run}")));
            Ok(RunHeader { started_unix_s, command, question: question.transpose()?, plan, environment })
        })
    }

    fn row(&self, run: RunId) -> Result<RunRow, StoreError> {
        let sql = format!("SELECT {} FROM runs WHERE id = ?", self.columns()?);
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([run])?;
        rows.next()?.map_or_else(|| Err(self.unknown(&run.to_string())), RunRow::read)
    }

    /// The observations of a run, in the order of its plan.
    ///
    /// # Errors
    /// There is no such run, one of its trials is damaged, or it is finished but a trial is not there. Otherwise see
    /// [`Store::begin`].
    pub fn observations(&self, run: RunId) -> Result<Vec<Observation>, StoreError> {
        self.with(|| self.trials(run)?.iter().map(|(trial, json)| observed(run, *trial, json)).collect())
    }

    /// The indices and the JSON of the trials of a run that have an observation.
    fn trials(&self, run: RunId) -> Result<Vec<(u32, String)>, StoreError> {
        // The run is read first. If it is finished by then, all of its trials are there, even while others write.
        let row = self.row(run)?;
        let sql = format!(
            "SELECT trial, observation, {} FROM observations WHERE run = ? ORDER BY trial",
            self.sum("observations")?
        );
        let mut statement = self.connection.prepare(&sql)?;
        let (mut rows, mut trials) = (statement.query([run])?, Vec::new());
        while let Some(row) = rows.next()? {
            trials.push(rows::observation(run, row)?);
        }
        row.planned(trials.len())?;
        Ok(trials)
    }

    /// Whether a trial of a run has an observation. The plan and the observations are not read.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn has_observations(&self, run: RunId) -> Result<bool, StoreError> {
        self.with(|| {
            let sql = "SELECT EXISTS (SELECT 1 FROM observations WHERE run = ?)";
            Ok(self.connection.query_row(sql, [run], |row| row.get(0))?)
        })
    }

    /// Whether all trials of a run were done. Its plan is not read.
    ///
    /// # Errors
    /// There is no such run. Otherwise see [`Store::begin`].
    pub fn is_finished(&self, run: RunId) -> Result<bool, StoreError> {
        self.with(|| {
            let sql = "SELECT finished FROM runs WHERE id = ?";
            let finished = self.connection.query_row(sql, [run], |row| row.get(0)).optional()?;
            finished.ok_or_else(|| self.unknown(&run.to_string()))
        })
    }

    /// All runs, oldest first. Those that are damaged are in their places, with their numbers as far as these can be read.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn runs(&self) -> Result<Vec<Result<RunSummary, StoreError>>, StoreError> {
        self.with(|| {
            let columns = self.columns()?;
            let sql = format!(
                "SELECT {columns}, (SELECT count(*) FROM observations WHERE run = id) FROM runs ORDER BY id"
            );
            let mut statement = self.connection.prepare(&sql)?;
            let (mut rows, mut runs) = (statement.query([])?, Vec::new());
            while let Some(row) = rows.next()? {
                let done = row.get::<_, u32>(9)?;
                let summary = RunRow::read(row).and_then(|row| {
                    let planned = row.planned(done as usize)? as u32;
                    let RunRow { id, started_unix_s, command, finished, .. } = row;
                    Ok(RunSummary { id, started_unix_s, command, finished, done, planned })
                });
                runs.push(summary.map_err(|e| e.with_path(&self.path)));
            }
            Ok(runs)
        })
    }

    /// When the newest run began, in seconds since the Unix epoch. None if there is no run.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn newest_unix_s(&self) -> Result<Option<f64>, StoreError> {
        self.with(|| {
            let sql = "SELECT max(started_unix_s) FROM runs";
            Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
        })
    }

    /// The runs that began before this one, or all if there is none, newest first.
    ///
    /// # Errors
    /// See [`Store::begin`].
    pub fn before(&self, run: Option<RunId>) -> Result<Vec<RunId>, StoreError> {
        self.with(|| {
            // Numbers are given in the order in which runs begin.
            let sql = "SELECT id FROM runs WHERE id < ? ORDER BY id DESC";
            let mut statement = self.connection.prepare(sql)?;
            let ids = statement.query_map([run.unwrap_or(RunId::MAX)], |row| row.get(0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    /// Those of these runs whose headers are wanted, one after the other. Their observations are read last, because that takes longest.
    /// A run that cannot be read is passed over.
    pub fn readable(
        &self,
        runs: impl IntoIterator<Item = RunId>,
        wanted: impl Fn(&RunHeader) -> bool,
    ) -> impl Iterator<Item = (RunId, RunHeader, Vec<Observation>)> {
        runs.into_iter().filter_map(move |run| {
            let header = self.header(run).ok().filter(|header| wanted(header))?;
            Some((run, header, self.observations(run).ok()?))
        })
    }

    /// The run that a word names: a number, `last`, or `previous` for the one before the last.
    ///
    /// # Errors
    /// There is no such run. The error says which runs there are.
    pub fn resolve(&self, word: &str) -> Result<RunId, StoreError> {
        self.with(|| {
            let mut statement = self.connection.prepare("SELECT id FROM runs ORDER BY id DESC")?;
            let ids: Vec<RunId> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let found = match word {
                "last" => ids.first().copied(),
                "previous" => ids.get(1).copied(),
                number => number.parse().ok().filter(|id| ids.contains(id)),
            };
            found.ok_or_else(|| self.unknown(word))
        })
    }

    fn unknown(&self, word: &str) -> StoreError {
        let sql = "SELECT count(*), min(id), max(id) FROM runs";
        let known = self.connection.query_row(sql, [], |row| {
            Ok(match (row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?) {
                (1, Some(only), _) => format!("the only run is {only}"),
                (count, Some(first), Some(last)) => format!("there are {count} runs, {first} to {last}"),
                _ => "it has no runs yet; `narrows run` creates one".to_owned(),
            })
        });
        let known = known.unwrap_or_else(|e| format!("its runs cannot be listed: {e}"));
        StoreError::NoRun { path: self.path.clone(), word: word.to_owned(), known }
    }

    /// Adds the store's path to errors.
    fn with<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        work().map_err(|e| e.with_path(&self.path))
    }
}

/// Parses an observation, and checks its counts.
fn observed(run: RunId, trial: u32, json: &str) -> Result<Observation, StoreError> {
    let what = || format!("trial {trial} of run {run}");
    let seen: Observation = decode(json, what)?;
    if let Outcome::Measured(measured) = &seen.outcome {
        measured.check_sizes().map_err(|why| damaged(what(), why))?;
    }
    Ok(seen)
}

/// How a query names a column. Stores of schemas that did not have it yet are read as they are.
fn column(version: Option<i64>, name: &'static str, since: i64) -> &'static str {
    if version.is_some_and(|version| version < since) { "NULL" } else { name }
}

#[cfg(test)]
mod tests;
