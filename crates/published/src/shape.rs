//! Published tables as they were printed, and their rows' names.

use std::collections::{BTreeMap, BTreeSet};

use systems::knob::Kind;

use super::{Column, Row, Rows, Table};
use lab::findings::{self, Cell, Unit};

/// Rows of each system that a shortened table shows.
const SHOWN: usize = 3;

impl Table {
    /// The system of each row, as the document calls it.
    pub(super) fn row_systems(&self) -> Vec<&str> {
        self.rows.keys().into_iter().map(|(system, _, _)| system).collect()
    }

    /// Each row in a few words: the system, the runtime, and the knobs that differ between rows.
    pub(super) fn labels(&self) -> Vec<String> {
        let varied: Vec<&Column> = self.varied().collect();
        let systems: BTreeSet<&str> = self.row_systems().into_iter().collect();
        let keys = self.rows.keys();
        let label = |(at, (system, variant, point)): (usize, (&str, &str, &systems::Point))| {
            if matches!(self.rows, Rows::Clients(_)) {
                let knob = |name: &str| point.get(name).map_or(String::new(), ToString::to_string);
                return format!("{system} {}x{}@{}", knob("pools"), knob("pool_size"), knob("concurrency"));
            }
            let mut words: Vec<String> = Vec::new();
            words.extend((systems.len() > 1).then(|| system.to_owned()));
            words.extend((!variant.is_empty()).then(|| variant.to_owned()));
            for column in &varied {
                let value = &self.printed[at][self.column(&column.name)];
                words.extend((!value.is_empty()).then(|| format!("{}={value}", column.name)));
            }
            words.join(" ")
        };
        keys.into_iter().enumerate().map(label).collect()
    }

    fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name).unwrap_or(0)
    }

    /// The knobs that differ between rows.
    pub(super) fn varied(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.knob.is_some() && self.varies(column))
    }

    /// Whether its fields differ between rows that have one.
    pub(super) fn varies(&self, column: &Column) -> bool {
        let at = self.column(&column.name);
        let mut fields = self.printed.iter().map(|row| &row[at]).filter(|field| !field.is_empty());
        fields.next().is_some_and(|first| fields.any(|field| field != first))
    }
}

impl Rows {
    /// System, runtime and knobs of each row.
    pub(super) fn keys(&self) -> Vec<(&str, &str, &systems::Point)> {
        fn of<M>(rows: &[Row<M>]) -> Vec<(&str, &str, &systems::Point)> {
            rows.iter().map(|row| (row.system.as_str(), row.variant.as_str(), &row.point)).collect()
        }
        match self {
            Self::Upload(rows) => of(rows),
            Self::Frames(rows) => of(rows),
            Self::Requests(rows) => of(rows),
            Self::Clients(rows) => of(rows),
        }
    }
}

/// A table in the document's shape.
pub(super) fn table(table: &Table) -> findings::Table {
    match &table.rows {
        Rows::Frames(rows) => pivot(table, rows),
        _ => list(table),
    }
}

/// A line for each row, figures as they were printed; a block for each runtime.
fn list(table: &Table) -> findings::Table {
    let figure = |column: &Column| match column.knob {
        Some(kind) => kind == Kind::Integer,
        None => column.name != "system" && column.name != "runtime",
    };
    let columns = table.columns.iter().map(|column| findings::Column {
        name: column.heading.clone(),
        unit: figure(column).then_some(Unit::AsPrinted),
    });
    let cell = |(column, text): (&Column, &String)| match text.parse() {
        _ if text.is_empty() => Cell::Empty,
        Ok(number) if figure(column) => Cell::Number(number),
        _ => Cell::Text(text.clone()),
    };
    let keys = table.rows.keys();
    let rows = table.printed.iter().enumerate().map(|(at, printed)| findings::Row {
        cells: table.columns.iter().zip(printed).map(cell).collect(),
        block: at > 0 && keys[at].1 != keys[at - 1].1,
    });
    findings::Table {
        title: table.title.clone(),
        about: format!("As published, {} rows.", table.printed.len()),
        columns: columns.collect(),
        keys: table
            .columns
            .iter()
            .filter(|c| c.knob.is_some() || c.name == "system" || c.name == "runtime")
            .count(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// A line for each size of message, a column for each way to receive.
fn pivot(table: &Table, rows: &[Row<super::Frames>]) -> findings::Table {
    let way = |row: &Row<super::Frames>| {
        let knob = |name: &str| row.point.get(name).map_or(String::new(), ToString::to_string);
        format!("{{packet,{}}} {}", knob("framing"), knob("active"))
    };
    let (mut ways, mut sizes): (Vec<String>, Vec<f64>) = (Vec::new(), Vec::new());
    for row in rows {
        if !ways.contains(&way(row)) {
            ways.push(way(row));
        }
        if !sizes.contains(&row.measured.frame_size) {
            sizes.push(row.measured.frame_size);
        }
    }
    let messages = table.column("messages");
    let place = |(at, row): (usize, &Row<super::Frames>)| ((row.measured.frame_size as u64, way(row)), at);
    let places: BTreeMap<(u64, String), usize> = rows.iter().enumerate().map(place).collect();
    let cell = |size: f64, way: &String| {
        let at = places.get(&(size as u64, way.clone()));
        at.map_or(Cell::Empty, |at| Cell::Text(table.printed[*at][messages].clone()))
    };
    let name = |column: &str| table.columns[table.column(column)].heading.clone();
    let mut columns = vec![findings::column(name("frame_size"), Unit::AsPrinted)];
    columns.extend(ways.iter().map(|way| findings::column(way, Unit::AsPrinted)));
    let row = |size: &f64| findings::Row {
        cells: std::iter::once(Cell::Number(*size)).chain(ways.iter().map(|way| cell(*size, way))).collect(),
        block: false,
    };
    findings::Table {
        title: table.title.clone(),
        about: format!(
            "As published, {} cells: {}, of one run and of the other.",
            rows.len(),
            name("messages")
        ),
        columns,
        keys: 1,
        rows: sizes.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

impl super::Audit {
    /// The same with a table that has only the first rows of each system in each block; a note says how many are
    /// left out.
    pub fn shortened(mut self) -> Self {
        let all = self.table.rows.len();
        let mut seen: Vec<(usize, Cell, usize)> = Vec::new();
        let system = self.table.columns.iter().position(|c| c.unit.is_none()).unwrap_or(0);
        let mut block = 0;
        // A table of few rows is shown as it is.
        if all > 10 * SHOWN {
            self.table.rows.retain(|row| {
                block += usize::from(row.block);
                let cell = &row.cells[system];
                match seen.iter_mut().find(|(b, known, _)| *b == block && known == cell) {
                    Some((_, _, count)) => {
                        *count += 1;
                        *count <= SHOWN
                    }
                    None => {
                        seen.push((block, cell.clone(), 1));
                        true
                    }
                }
            });
        }
        let left_out = all - self.table.rows.len();
        if left_out > 0 {
            self.table.notes.push(format!("the first {SHOWN} rows of each; {left_out} more with --all"));
        }
        self
    }
}
