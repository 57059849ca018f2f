//! The rows of published tables: one type for each workload, in the columns that its documents have.

use lab::findings::RANKED_ERRORS;
use systems::knob::{Kind, parse_size};
use systems::{InputError, Point, Value, Workload};

use super::record::Record;

/// One row: what was measured, where.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<M> {
    /// The runtime that the row belongs to; empty where there is only one.
    pub variant: String,
    /// The system, as the document calls it.
    pub system: String,
    /// The knobs that columns have.
    pub point: Point,
    /// The figures.
    pub measured: M,
}

/// An upload's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Upload {
    /// Mean, milliseconds.
    pub mean_ms: f64,
}

/// Messages that were received.
#[derive(Debug, Clone, PartialEq)]
pub struct Frames {
    /// Payload bytes of each.
    pub frame_size: f64,
    /// How many, in each of two runs, as they were printed.
    pub runs: [f64; 2],
    /// What is wrong in how they were printed.
    pub flaw: Option<String>,
}

impl Frames {
    /// The mean of the two runs.
    pub fn mean(&self) -> f64 {
        f64::midpoint(self.runs[0], self.runs[1])
    }

    /// Whether each run has more than each of another's.
    pub fn above(&self, other: &Self) -> bool {
        self.runs[0].min(self.runs[1]) > other.runs[0].max(other.runs[1])
    }
}

/// What wrk printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Answers that it took for complete.
    pub requests: u64,
    /// The run's length, seconds.
    pub elapsed_s: f64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Mean latency, milliseconds.
    pub latency_mean_ms: f64,
    /// The longest latency that was kept, milliseconds.
    pub latency_max_ms: f64,
    /// Mean requests a second of one thread, over samples.
    pub thread_rate_mean: f64,
    /// Standard deviation of those samples.
    pub thread_rate_stdev: f64,
    /// Megabytes of answers.
    pub read_mb: f64,
    /// Failed connects, reads and writes.
    pub errors: u64,
    /// Of these, reads.
    pub read_errors: u64,
    /// Answers above the cap of latency.
    pub timeouts: u64,
}

impl Request {
    /// Whether nothing was verified: each request failed, or no byte was read.
    pub fn void(&self) -> bool {
        self.errors >= self.requests || self.read_mb == 0.0
    }
}

/// What a pooled client did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Client {
    /// Connections: pools by their size.
    pub connections: f64,
    /// Callers.
    pub concurrency: u64,
    /// Successes a second.
    pub requests_per_s: f64,
    /// Failures by attempts, percent.
    pub error_percent: f64,
}

impl Client {
    /// Whether so few operations failed that the row may be ranked.
    pub fn few_errors(&self) -> bool {
        self.error_percent <= RANKED_ERRORS * 100.0
    }
}

/// All rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// Times of uploads.
    Upload(Vec<Row<Upload>>),
    /// Counts of messages.
    Frames(Vec<Row<Frames>>),
    /// What wrk printed.
    Requests(Vec<Row<Request>>),
    /// Rates and errors of clients.
    Clients(Vec<Row<Client>>),
}

impl Rows {
    /// The columns that a workload's table must have.
    pub(super) fn required(workload: Workload) -> &'static [&'static str] {
        match workload {
            Workload::Upload => &["system", "mean_ms"],
            Workload::Frames => &["system", "frame_size", "framing", "active", "messages"],
            Workload::Requests => &[
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
            Workload::Upload => Self::Upload(each(records, upload)?),
            Workload::Frames => Self::Frames(each(records, frames)?),
            Workload::Requests => Self::Requests(each(records, request)?),
            Workload::Clients => Self::Clients(each(records, client)?),
        })
    }
}

impl<M> Row<M> {
    /// What stands in every row, and what was measured in this one.
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

/// A knob's value as it was printed.
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

fn each<M>(
    records: &[Record],
    measured: fn(&Record) -> Result<M, InputError>,
) -> Result<Vec<Row<M>>, InputError> {
    records.iter().map(|record| Row::of(record, measured(record)?)).collect()
}

fn upload(record: &Record) -> Result<Upload, InputError> {
    Ok(Upload { mean_ms: record.positive("mean_ms")? })
}

fn frames(record: &Record) -> Result<Frames, InputError> {
    let (runs, flaw) = record.range("messages")?;
    Ok(Frames { frame_size: record.count("frame_size")? as f64, runs, flaw })
}

fn request(record: &Record) -> Result<Request, InputError> {
    // Counts of failures may be zero.
    let count = |name| record.number(name).map(|n| n as u64);
    let read_errors = count("read_errors")?;
    Ok(Request {
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

fn client(record: &Record) -> Result<Client, InputError> {
    Ok(Client {
        connections: record.count("pools")? as f64 * record.count("pool_size")? as f64,
        concurrency: record.count("concurrency")?,
        requests_per_s: record.positive("requests_per_s")?,
        error_percent: record.percent("error_percent")?,
    })
}
