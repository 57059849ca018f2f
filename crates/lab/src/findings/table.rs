//! Tables in data terms: cells are numbers in the column's unit, words, or nothing; shaped as the published tables.

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use stats::Percentile;
use systems::knob::Kind;
use systems::{Role, Value, allotment};

use super::Rows;
use super::comparison::is_hardly_measured;
use super::rank::ranks;
use super::{Estimate, Opened};
use crate::experiment::Figure;
use crate::experiment::grid::Axis;
use crate::plan::{Planned, View};

/// What a column's numbers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number: a count, a knob.
    Count,
    /// A ratio: so many times.
    Times,
    /// A figure of a published table, in every digit that was printed; its heading says the unit.
    AsPrinted,
    /// Bytes as a knob, exact: 1460, 64K (powers of 1024).
    Size,
    /// Bytes as measured.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Bytes a second.
    BytesPerSecond,
    /// Frames or requests a second.
    PerSecond,
    /// A share of 1.
    Share,
    /// CPU seconds for one byte.
    SecondsPerByte,
    /// CPU seconds for one frame or request.
    SecondsPerOperation,
}

impl Unit {
    /// Of a figure.
    pub fn of(figure: Figure) -> Self {
        match figure {
            Figure::MsPerUpload | Figure::StartMs => Self::Milliseconds,
            Figure::BytesPerS => Self::BytesPerSecond,
            Figure::FramesPerS | Figure::RequestsPerS | Figure::MaxRate => Self::PerSecond,
            Figure::P50Us | Figure::P99Us => Self::Microseconds,
            Figure::FirstByteUs | Figure::FirstEventUs | Figure::FirstEventP99Us => Self::Microseconds,
            Figure::GapUs | Figure::GapP99Us | Figure::LongestGapUs | Figure::WholeUs => Self::Microseconds,
            Figure::FirstRequestUs => Self::Microseconds,
            Figure::IdleCpu => Self::Share,
            Figure::EventsPerS | Figure::GoodPerS => Self::PerSecond,
            Figure::EventsPerRead => Self::Count,
            Figure::CpuPerUnit => Self::SecondsPerOperation,
            Figure::CallsPerUnit | Figure::InstructionsPerUnit => Self::Count,
            Figure::MemoryBytes | Figure::IdleMemoryBytes => Self::Bytes,
        }
    }

    /// Of CPU time for each unit of work.
    pub fn cost_of(work: &systems::work::WorkUnit) -> Self {
        if work.bytes { Self::SecondsPerByte } else { Self::SecondsPerOperation }
    }
}

/// A column: what stands in it, and in which unit its numbers are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The unit of its numbers; None for words.
    pub unit: Option<Unit>,
}

impl Column {
    /// Of words.
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: None }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Cell {
    /// In the column's unit.
    Number(f64),
    /// A lower bound, in the column's unit.
    AtLeast {
        /// The lower bound.
        at_least: f64,
    },
    /// Whether two counts agree.
    Agree(bool),
    /// A word.
    Text(String),
    /// Nothing was measured, or the knob does not exist for this system.
    Empty,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// As many as there are columns.
    pub cells: Vec<Cell>,
    /// Whether it begins a new block of the table.
    pub block: bool,
}

/// A table. `report` has the words above and below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Table {
    /// What the rows' cells are.
    pub columns: Vec<Column>,
    /// How many leading columns say which row it is; a renderer that must fold a wide table repeats them.
    pub keys: usize,
    /// The lines.
    pub rows: Vec<Row>,
}

/// Whether a table of so many rows and columns would hardly have anything in it. If each value of one knob
/// goes with one value of another, the table grows with the square of their number.
pub fn is_sparse(rows: usize, columns: usize, filled: usize) -> bool {
    /// A table with so few cells can be read anyway.
    const FEW: usize = 100;
    /// At least one cell of so many is filled.
    const ONE_OF: usize = 8;
    rows.saturating_mul(columns) > FEW.max(ONE_OF.saturating_mul(filled))
}

/// A table of an experiment's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureTable {
    /// What it shows.
    pub kind: TableKind,
    /// The figures.
    #[serde(flatten)]
    pub table: Table,
    /// What is noted below it.
    pub notes: Vec<Note>,
}

impl Deref for FigureTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// What a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// A line for each scenario, in the plan's order.
    List,
    /// A line for each size of frames, and a column for everything else that varies.
    Pivot,
    /// A line for each scenario, ranked by the figure.
    Ranking,
    /// What the kernel counted of each scenario.
    Counts,
}

/// What is noted below a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// No trial failed, and no operation.
    NothingFailed,
    /// Operations that failed with one system, in all of its rows.
    Errors {
        /// The system.
        system: String,
        /// How many, by class.
        classes: BTreeMap<String, u64>,
    },
    /// Some rows may not be ranked.
    Unranked,
    /// Rows have a rank although many operations failed, because the server's announced closes explain the failures.
    Explained {
        /// The scenarios, as `system knob=value …`.
        scenarios: Vec<String>,
    },
    /// Rows share a rank: what separates them may be chance.
    Tied,
    /// The clients' counts agree with the server's in every trial.
    CountsAgree,
    /// Scenarios that may not be compared, because of errors or because the generator was at its limit.
    NotComparable {
        /// The scenarios, as `system knob=value …`.
        scenarios: Vec<String>,
    },
}

impl<T: Into<f64>> From<Option<T>> for Cell {
    fn from(number: Option<T>) -> Self {
        number.map_or(Self::Empty, |n| Self::Number(n.into()))
    }
}

fn micros(percentile: Option<Percentile>) -> Cell {
    match percentile {
        None => Cell::Empty,
        Some(Percentile::Exactly(us)) => Cell::Number(us as f64),
        Some(Percentile::AtLeast { at_least }) => Cell::AtLeast { at_least: at_least as f64 },
    }
}

fn count(number: Option<u64>) -> Cell {
    number.map_or(Cell::Empty, |n| Cell::Number(n as f64))
}

/// A column of numbers.
pub fn column(name: impl Into<String>, unit: Unit) -> Column {
    Column { name: name.into(), unit: Some(unit) }
}

/// The axes with more than one value.
pub(super) fn varied(planned: &Planned) -> impl Iterator<Item = &Axis> {
    planned.axes.iter().filter(|axis| axis.values.len() > 1)
}

/// A knob's value as a cell of its column.
pub(super) fn knob_cell(value: Option<&Value>) -> Cell {
    match value {
        None => Cell::Empty,
        Some(Value::Integer(number)) => Cell::Number(*number as f64),
        Some(word) => Cell::Text(word.to_string()),
    }
}

pub(super) fn knob_column(axis: &Axis, name: &str) -> Column {
    column(name, if axis.kind == Kind::Size { Unit::Size } else { Unit::Count })
}

/// The heading and unit of a figure.
pub(super) fn figure_column(planned: &View<'_>) -> Column {
    let unit = planned.workload.about().unit.short;
    let name = match planned.figure {
        Figure::MsPerUpload => "time".to_owned(),
        Figure::BytesPerS => "bytes/s".to_owned(),
        Figure::FramesPerS => "frames/s".to_owned(),
        Figure::RequestsPerS => "req/s".to_owned(),
        Figure::MaxRate => "max req/s".to_owned(),
        Figure::P50Us => "p50".to_owned(),
        Figure::P99Us => "p99".to_owned(),
        Figure::FirstByteUs => "first byte".to_owned(),
        Figure::FirstEventUs => "first event".to_owned(),
        Figure::FirstEventP99Us => "first p99".to_owned(),
        Figure::GapUs => "gap".to_owned(),
        Figure::GapP99Us => "gap p99".to_owned(),
        Figure::LongestGapUs => "longest gap".to_owned(),
        Figure::WholeUs => "whole".to_owned(),
        Figure::EventsPerRead => "events/read".to_owned(),
        Figure::EventsPerS => "events/s".to_owned(),
        Figure::GoodPerS => "good/s".to_owned(),
        Figure::CpuPerUnit => format!("CPU/{unit}"),
        Figure::CallsPerUnit => format!("calls/{unit}"),
        Figure::InstructionsPerUnit => format!("instr/{unit}"),
        Figure::MemoryBytes => "memory".to_owned(),
        Figure::StartMs => "start".to_owned(),
        Figure::FirstRequestUs => "first request".to_owned(),
        Figure::IdleMemoryBytes => "idle memory".to_owned(),
        Figure::IdleCpu => "idle CPU".to_owned(),
    };
    column(name, Unit::of(planned.figure))
}

/// Column by column: a heading and how a row fills it.
pub(super) type Part<'a> = (Column, Box<dyn Fn(&Estimate) -> Cell + 'a>);

pub(super) fn part<'a>(column: Column, cell: impl Fn(&Estimate) -> Cell + 'a) -> Part<'a> {
    (column, Box::new(cell))
}

fn keys<'a>(planned: &'a Planned) -> Vec<Part<'a>> {
    let mut parts = vec![part(Column::words("system"), |e| Cell::Text(e.scenario.system.clone()))];
    for axis in varied(planned) {
        parts.push(part(knob_column(axis, &axis.knob), |e| knob_cell(e.scenario.point.get(&axis.knob))));
    }
    parts
}

/// What every table says of a row's figure and its cost, behind the keys. Columns that would be zero throughout are
/// left out; the notes say so.
fn measures(planned: &View<'_>, rows: &[&Estimate], figure: Column, errors: bool) -> Vec<Part<'static>> {
    let own = figure.name.clone();
    let end = |name: &str, high: bool| {
        part(Column { name: name.to_owned(), ..figure.clone() }, move |e| {
            let known = e.interval.filter(|(low, high)| !is_hardly_measured(*low, *high));
            known.map(|interval| if high { interval.1 } else { interval.0 }).into()
        })
    };
    let (low, high) = (end("low", false), end("high", true));
    let asked = planned.figure;
    let mut parts = vec![part(figure, move |e| figure_cell(asked, e)), low, high];
    if errors {
        parts.push(part(column("Error %", Unit::Share), |e| {
            if e.trials == 0 { Cell::Empty } else { Cell::Number(e.error_share) }
        }));
    }
    let yardstick = if planned.base.is_some() { "of base" } else { "of ref" };
    // Of a cost, the share that it needs.
    let share = move |e: &Estimate| e.of_reference.map(|of| if asked.is_cost() { of.recip() } else { of });
    parts.push(part(column(yardstick, Unit::Share), move |e| share(e).into()));
    // What systems set up when they begin may depend on their share of the machine. Elsewhere other columns matter more.
    let shares = varied(planned).any(|axis| allotment::knob(&axis.knob).is_some());
    let (front, behind) = if shares { (started(rows), Vec::new()) } else { (Vec::new(), started(rows)) };
    parts.extend(front);
    // Else the words above the table say it: medians over so many rounds.
    if rows.iter().any(|e| e.trials != planned.rounds) {
        parts.push(part(column("n", Unit::Count), |e| Cell::Number(e.trials.into())));
    }
    if rows.iter().any(|e| e.failed > 0) {
        parts.push(part(column("failed", Unit::Count), |e| Cell::Number(e.failed.into())));
    }
    if !errors && rows.iter().any(|e| !e.errors.is_empty()) {
        parts.push(part(column("errors", Unit::Share), |e| {
            if e.trials == 0 { Cell::Empty } else { Cell::Number(e.error_share) }
        }));
    }
    if rows.iter().any(|e| e.no_continue > 0) {
        parts.push(part(column("no 100", Unit::Count), |e| {
            if e.trials == 0 { Cell::Empty } else { count(Some(e.no_continue)) }
        }));
    }
    if planned.workload.about().short_exchanges {
        parts.extend(latencies(rows));
    }
    parts.extend(handshakes(rows));
    let work = &planned.workload.about().unit;
    parts.push(part(column(format!("CPU/{}", work.short), Unit::cost_of(work)), |e| e.cpu_s_per_unit.into()));
    parts.push(part(column("CPU", Unit::Share), |e| e.cpu_share.into()));
    parts.push(part(column("memory", Unit::Bytes), |e| count(e.peak_memory_bytes)));
    if planned.workload.role() == Role::Server {
        parts.push(part(column("sock", Unit::Bytes), |e| {
            if e.trials == 0 { Cell::Empty } else { count(Some(e.socket_memory_bytes)) }
        }));
    }
    parts.extend(behind);
    // What is the figure stands in front already, trial by trial.
    let (front, rest): (Vec<Part>, Vec<Part>) = (parts.drain(..1).collect(), parts);
    front.into_iter().chain(rest.into_iter().filter(|(column, _)| column.name != own)).collect()
}

/// How systems began, and what they held without load. Not of those that their users started.
fn started(rows: &[&Estimate]) -> Vec<Part<'static>> {
    if rows.iter().all(|e| e.ready_s.is_none()) {
        return Vec::new();
    }
    let start_ms = |e: &Estimate| Some((e.ready_s? + e.first_request_s.unwrap_or(0.0)) * 1e3);
    vec![
        part(column("start", Unit::Milliseconds), move |e| start_ms(e).into()),
        part(column("idle memory", Unit::Bytes), |e| e.rest_memory_bytes.into()),
    ]
}

/// A row's figure. A percentile is a lower bound if that of all trials together is one.
pub(super) fn figure_cell(figure: Figure, e: &Estimate) -> Cell {
    let percentile = match figure {
        Figure::P50Us => e.p50_us,
        Figure::P99Us => e.p99_us,
        _ => None,
    };
    match e.figure {
        Some(at_least) if percentile.is_some_and(Percentile::is_lower_bound) => Cell::AtLeast { at_least },
        figure => figure.into(),
    }
}

/// Response times; where they differ from service times for a known reason (a schedule, a pool), those and what lies between.
fn latencies(rows: &[&Estimate]) -> Vec<Part<'static>> {
    let time = |name: &str, of: fn(&Estimate) -> Option<Percentile>| {
        part(column(name, Unit::Microseconds), move |e| micros(of(e)))
    };
    let share =
        |name: &str, of: fn(&Estimate) -> Option<f64>| part(column(name, Unit::Share), move |e| of(e).into());
    let mut parts = vec![time("p50", |e| e.p50_us), time("p99", |e| e.p99_us)];
    let waits = rows.iter().any(|e| e.pool_wait_p50_us.is_some());
    let open = rows.iter().any(|e| e.late_share.is_some());
    if waits {
        parts.push(time("wait p50", |e| e.pool_wait_p50_us));
        parts.push(time("wait p99", |e| e.pool_wait_p99_us));
    }
    if waits || open {
        parts.push(time("service p50", |e| e.service_p50_us));
        parts.push(time("service p99", |e| e.service_p99_us));
    }
    if open {
        parts.push(share("late", |e| e.late_share));
        parts.push(share("dropped", |e| e.dropped_share));
    }
    parts
}

/// Where connections were opened in TLS: how, and how long it took.
fn handshakes(rows: &[&Estimate]) -> Vec<Part<'static>> {
    let opened = |e: &Estimate| e.handshakes;
    if rows.iter().all(|e| e.handshakes.is_none()) {
        return Vec::new();
    }
    let number = |name: &str, of: fn(&Opened) -> u64| {
        part(column(name, Unit::Count), move |e| count(opened(e).as_ref().map(of)))
    };
    let time = |name: &str, of: fn(&Opened) -> Option<Percentile>| {
        part(column(name, Unit::Microseconds), move |e| micros(opened(e).as_ref().and_then(of)))
    };
    let mut parts = vec![number("full", |found| found.full)];
    if rows.iter().any(|e| opened(e).is_some_and(|found| found.offered > 0)) {
        parts.push(number("resumed", |found| found.resumed));
        parts.push(number("refused", |found| found.refused));
    }
    parts.push(time("open p50", |found| found.p50_us));
    parts.push(time("open p99", |found| found.p99_us));
    parts
}

fn rows<'a>(parts: &[Part], estimates: impl IntoIterator<Item = &'a Estimate>) -> Vec<Row> {
    let cells = |e: &Estimate| parts.iter().map(|(_, cell)| cell(e)).collect();
    estimates.into_iter().map(|e| Row { cells: cells(e), block: false }).collect()
}

/// One line for each configuration, in the plan's order; a block for each system if one has several lines.
pub(super) fn list(planned: &View<'_>, estimates: &[&Estimate]) -> FigureTable {
    let mut parts = keys(planned);
    let keys = parts.len();
    parts.extend(measures(planned, estimates, figure_column(planned), false));
    let mut rows = rows(&parts, estimates.iter().copied());
    let begins = |i: usize| i > 0 && estimates[i].scenario.system != estimates[i - 1].scenario.system;
    let several = (1..estimates.len()).any(|i| !begins(i));
    for (i, row) in rows.iter_mut().enumerate() {
        row.block = several && begins(i);
    }
    let columns = parts.into_iter().map(|(column, _)| column).collect();
    FigureTable { kind: TableKind::List, table: Table { columns, keys, rows }, notes: notes(estimates) }
}

/// A further table of the same lines with other columns.
pub(super) fn list_of(planned: &Planned, estimates: &[&Estimate], columns: Vec<Part>) -> Table {
    let mut parts = keys(planned);
    let keys = parts.len();
    parts.extend(columns);
    Table {
        rows: rows(&parts, estimates.iter().copied()),
        columns: parts.into_iter().map(|(column, _)| column).collect(),
        keys,
    }
}

/// The clients' table in the published columns, by requests a second among the rows that may be ranked.
pub(super) fn ranked(planned: &View<'_>, panel: &Rows, estimates: &[Estimate]) -> FigureTable {
    let ranked: Vec<usize> = (0..estimates.len()).filter(|index| estimates[*index].is_ranked()).collect();
    let mut place: Vec<Option<usize>> = vec![None; estimates.len()];
    ranked.iter().zip(ranks(panel, &ranked)).for_each(|(index, rank)| place[*index] = Some(rank));
    let mut order: Vec<(Option<usize>, &Estimate)> = place.into_iter().zip(estimates).collect();
    order.sort_by(|(rank_a, a), (rank_b, b)| {
        let by = b.figure.unwrap_or(-1.0).total_cmp(&a.figure.unwrap_or(-1.0));
        let last = |rank: &Option<usize>| rank.unwrap_or(usize::MAX);
        last(rank_a).cmp(&last(rank_b)).then(by)
    });
    let (places, order): (Vec<Option<usize>>, Vec<&Estimate>) = order.into_iter().unzip();
    let ranks = ranked.len();
    let published = [("pools", "Pool Count"), ("pool_size", "Pool Size"), ("concurrency", "Concurrency")];
    let mut parts = vec![part(Column::words("Client"), |e| Cell::Text(e.scenario.system.clone()))];
    for (knob, name) in published {
        let default = planned.workload.knob(knob).map(|k| k.default.clone());
        parts.push(part(column(name, Unit::Count), move |e| {
            knob_cell(e.scenario.point.get(knob).or(default.as_ref()))
        }));
    }
    for axis in varied(planned).filter(|axis| published.iter().all(|(knob, _)| axis.knob != *knob)) {
        parts.push(part(knob_column(axis, &axis.knob), |e| knob_cell(e.scenario.point.get(&axis.knob))));
    }
    let keys = parts.len() + 1;
    parts.extend(measures(planned, &order, column("Req/sec", Unit::PerSecond), true));
    parts.push(part(column("peak conns", Unit::Count), |e| count(e.peak_connections)));
    if order.iter().any(|e| e.server_closes.is_some_and(|closes| closes > 0)) {
        parts.push(part(column("closes", Unit::Count), |e| count(e.server_closes)));
    }
    let agree = order.iter().all(|e| e.counts_agree != Some(false));
    if !agree {
        parts.push(part(Column::words("counts"), |e| e.counts_agree.map_or(Cell::Empty, Cell::Agree)));
    }
    let mut rows = rows(&parts, order.iter().copied());
    for (i, row) in rows.iter_mut().enumerate() {
        row.cells.insert(0, places[i].map_or(Cell::Empty, |place| Cell::Number(place as f64)));
        row.block = i > 0 && i == ranks;
    }
    let mut columns = vec![column("#", Unit::Count)];
    columns.extend(parts.into_iter().map(|(column, _)| column));
    let mut notes = notes(&order);
    if places[..ranks].windows(2).any(|two| two[0] == two[1]) {
        notes.insert(0, Note::Tied);
    }
    let explained = order[..ranks].iter().filter(|e| e.is_explained());
    let explained: Vec<String> = explained.map(|e| planned.label(&e.scenario)).collect();
    if !explained.is_empty() {
        notes.insert(0, Note::Explained { scenarios: explained });
    }
    if ranks < order.len() {
        notes.insert(0, Note::Unranked);
    }
    if agree && order.iter().any(|e| e.counts_agree.is_some()) {
        notes.push(Note::CountsAgree);
    }
    FigureTable { kind: TableKind::Ranking, table: Table { columns, keys, rows }, notes }
}

fn notes(estimates: &[&Estimate]) -> Vec<Note> {
    let mut notes = Vec::new();
    let ran = estimates.iter().any(|e| e.trials > 0);
    if ran && estimates.iter().all(|e| e.failed == 0 && e.errors.is_empty()) {
        notes.push(Note::NothingFailed);
    }
    let mut systems: BTreeMap<&String, BTreeMap<String, u64>> = BTreeMap::new();
    for e in estimates.iter().filter(|e| !e.errors.is_empty()) {
        let classes = systems.entry(&e.scenario.system).or_default();
        for (class, count) in &e.errors {
            *classes.entry(class.clone()).or_default() += count;
        }
    }
    notes.extend(
        systems.into_iter().map(|(system, classes)| Note::Errors { system: system.clone(), classes }),
    );
    notes
}
