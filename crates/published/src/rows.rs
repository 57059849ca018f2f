//! The rows of published tables. Each workload has its own figures, as in the columns of its documents.

use lab::findings::RANKED_ERRORS;
use systems::knob::{Kind, parse_size};
use systems::{InputError, Point, Value, Workload};

use super::record::{Misprint, Record};

/// One row: the figures, and what they were measured of.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRow<M> {
    /// The runtime of the row. Empty if the table has only one.
    pub variant: String,
    /// The system, as the document calls it.
    pub system: String,
    /// The knobs that have columns.
    pub point: Point,
    /// The figures.
    pub measured: M,
}

/// The figures of uploads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UploadFigures {
    /// The mean time of an upload, milliseconds.
    pub mean_ms: f64,
}

/// The figures of a receiver of frames.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameFigures {
    /// Payload bytes of one message.
    pub frame_size: f64,
    /// The number of messages in each of two runs, in printed order.
    pub runs: [f64; 2],
    /// What is wrong with how they were printed.
    pub misprint: Option<Misprint>,
}

impl FrameFigures {
    /// The mean of the two runs.
    pub fn mean(&self) -> f64 {
        f64::midpoint(self.runs[0], self.runs[1])
    }

    /// Whether both runs have more messages than both runs of another row.
    pub fn above(&self, other: &Self) -> bool {
        self.runs[0].min(self.runs[1]) > other.runs[0].max(other.runs[1])
    }
}

/// The figures of wrk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestFigures {
    /// Answers that wrk counted as complete.
    pub requests: u64,
    /// The length of the run, seconds.
    pub elapsed_s: f64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Mean latency, milliseconds.
    pub latency_mean_ms: f64,
    /// The longest latency that was kept, milliseconds.
    pub latency_max_ms: f64,
    /// The mean of samples of one thread's rate, requests per second.
    pub thread_rate_mean: f64,
    /// The standard deviation of these samples.
    pub thread_rate_stdev: f64,
    /// Megabytes of answers.
    pub read_mb: f64,
    /// Failed connects, reads and writes.
    pub errors: u64,
    /// Failed reads, which are among `errors`.
    pub read_errors: u64,
    /// Answers whose latency was above the cap.
    pub timeouts: u64,
}

impl RequestFigures {
    /// Whether nothing was verified, because every request failed or no byte was read.
    pub fn void(&self) -> bool {
        self.errors >= self.requests || self.read_mb == 0.0
    }
}

/// The figures of a client with a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientFigures {
    /// The number of connections: pools times pool size.
    pub connections: f64,
    /// Callers.
    pub concurrency: u64,
    /// Successes a second.
    pub requests_per_s: f64,
    /// Failures per attempt, percent.
    pub error_percent: f64,
}

impl ClientFigures {
    /// Whether so few operations failed that the row may be ranked.
    pub fn few_errors(&self) -> bool {
        self.error_percent <= RANKED_ERRORS * 100.0
    }
}

/// A row of uploads.
pub type UploadRow = PublishedRow<UploadFigures>;
/// A row of a receiver of frames.
pub type FrameRow = PublishedRow<FrameFigures>;
/// A row of wrk.
pub type RequestRow = PublishedRow<RequestFigures>;
/// A row of a client.
pub type ClientRow = PublishedRow<ClientFigures>;

/// All rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// Rows of uploads.
    Upload(Vec<UploadRow>),
    /// Rows of receivers of frames.
    Frames(Vec<FrameRow>),
    /// Rows of wrk.
    Requests(Vec<RequestRow>),
    /// Rows of clients.
    Clients(Vec<ClientRow>),
}

impl Rows {
    /// The columns that a workload's table must have.
    pub(super) fn required(workload: Workload) -> &'static [&'static str] {
        match workload {
            Workload::Upload => &["system", "mean_ms"],
            Workload::Frames => &["system", "frame_size", "framing", "active", "messages"],
            Workload::Requests | Workload::Streams | Workload::Chats => &[
                "system",
                "requests",
                "elapsed_s",
                "requests_per_s",
                "latency_mean_ms",
                "latency_max_ms",
                "thread_rate_mean",
                "thread_rate_stdev",
                "read_mb",
                "connect_errors",
                "read_errors",
                "write_errors",
                "timeouts",
            ],
            Workload::Clients => {
                &["system", "pools", "pool_size", "concurrency", "requests_per_s", "error_percent"]
            }
        }
    }

    pub(super) fn read(workload: Workload, records: &[Record]) -> Result<Self, InputError> {
        Ok(match workload {
            Workload::Upload => Self::Upload(rows_of(records, upload)?),
            Workload::Frames => Self::Frames(rows_of(records, frames)?),
            Workload::Requests | Workload::Streams | Workload::Chats => {
                Self::Requests(rows_of(records, request)?)
            }
            Workload::Clients => Self::Clients(rows_of(records, client)?),
        })
    }
}

impl<M> PublishedRow<M> {
    /// Reads the fields that rows of all workloads have.
    fn of(record: &Record, measured: M) -> Result<Self, InputError> {
        let variant = record.columns.iter().any(|column| column.name == "runtime");
        let variant = if variant { record.field("runtime")?.text.clone() } else { String::new() };
        let mut point = Point::new();
        for column in record.columns {
            let (Some(kind), field) = (column.knob, record.field(&column.name)?) else { continue };
            if !field.text.is_empty() {
                let wrong = |why: String| record.wrong(field, &column.name, &why, "");
                point.insert(column.name.clone(), value(kind, &field.text).map_err(wrong)?);
            }
        }
        Ok(Self { variant, system: record.field("system")?.text.clone(), point, measured })
    }
}

/// Parses a knob's value as it was printed.
fn value(kind: Kind, text: &str) -> Result<Value, String> {
    let integer = || text.parse().map(Value::Integer).map_err(|_| "not a whole number".to_owned());
    let word = || Value::Text(text.to_owned());
    match kind {
        Kind::Integer => integer(),
        Kind::Size => parse_size(text).map(Value::Integer),
        Kind::Boolean => text.parse().map(Value::Boolean).map_err(|_| "neither true nor false".to_owned()),
        Kind::Choice => Ok(word()),
        Kind::Any => Ok(integer().unwrap_or_else(|_| word())),
    }
}

/// Reads all rows of one workload.
fn rows_of<M>(
    records: &[Record],
    measured: fn(&Record) -> Result<M, InputError>,
) -> Result<Vec<PublishedRow<M>>, InputError> {
    records.iter().map(|record| PublishedRow::of(record, measured(record)?)).collect()
}

fn upload(record: &Record) -> Result<UploadFigures, InputError> {
    Ok(UploadFigures { mean_ms: record.positive("mean_ms")? })
}

fn frames(record: &Record) -> Result<FrameFigures, InputError> {
    let (runs, misprint) = record.range("messages")?;
    Ok(FrameFigures { frame_size: record.count("frame_size")? as f64, runs, misprint })
}

fn request(record: &Record) -> Result<RequestFigures, InputError> {
    // Counts of failures may be zero.
    let count = |name| record.number(name).map(|n| n as u64);
    let read_errors = count("read_errors")?;
    Ok(RequestFigures {
        requests: record.count("requests")?,
        elapsed_s: record.positive("elapsed_s")?,
        requests_per_s: record.positive("requests_per_s")?,
        latency_mean_ms: record.positive("latency_mean_ms")?,
        latency_max_ms: record.positive("latency_max_ms")?,
        thread_rate_mean: record.positive("thread_rate_mean")?,
        thread_rate_stdev: record.number("thread_rate_stdev")?,
        read_mb: record.number("read_mb")?,
        errors: count("connect_errors")?.saturating_add(read_errors).saturating_add(count("write_errors")?),
        read_errors,
        timeouts: count("timeouts")?,
    })
}

fn client(record: &Record) -> Result<ClientFigures, InputError> {
    Ok(ClientFigures {
        connections: record.count("pools")? as f64 * record.count("pool_size")? as f64,
        concurrency: record.count("concurrency")?,
        requests_per_s: record.positive("requests_per_s")?,
        error_percent: record.percent("error_percent")?,
    })
}
