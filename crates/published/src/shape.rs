//! Formats published tables in the shape of their documents, and names their rows.

use std::collections::{BTreeMap, BTreeSet};

use systems::knob::Kind;

use super::{FrameRow, PublishedColumn, PublishedRow, PublishedTable, Rows};
use lab::findings::{self, Cell, Unit};

/// How many rows of each system a shortened table shows.
pub const FIRST_ROWS: usize = 3;

impl PublishedTable {
    /// The system of each row, as the document calls it.
    pub(super) fn row_systems(&self) -> Vec<&str> {
        self.rows.keys().into_iter().map(|(system, _, _)| system).collect()
    }

    /// A short name for each row: the system, the runtime, and the knobs that differ between rows.
    pub(super) fn labels(&self) -> Vec<String> {
        let varied: Vec<&PublishedColumn> = self.varied().collect();
        let systems: BTreeSet<&str> = self.row_systems().into_iter().collect();
        let keys = self.rows.keys();
        let label = |(index, (system, variant, point)): (usize, (&str, &str, &systems::Point))| {
            if matches!(self.rows, Rows::Clients(_)) {
                let knob = |name: &str| point.get(name).map_or(String::new(), ToString::to_string);
                return format!("{system} {}x{}@{}", knob("pools"), knob("pool_size"), knob("concurrency"));
            }
            let mut words: Vec<String> = Vec::new();
            words.extend((systems.len() > 1).then(|| system.to_owned()));
            words.extend((!variant.is_empty()).then(|| variant.to_owned()));
            for column in &varied {
                let value = &self.printed[index][self.column(&column.name)];
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
    pub(super) fn varied(&self) -> impl Iterator<Item = &PublishedColumn> {
        self.columns.iter().filter(|column| column.knob.is_some() && self.varies(column))
    }

    /// Whether a column's fields differ, ignoring empty ones.
    pub(super) fn varies(&self, column: &PublishedColumn) -> bool {
        let index = self.column(&column.name);
        let mut fields = self.printed.iter().map(|row| &row[index]).filter(|field| !field.is_empty());
        fields.next().is_some_and(|first| fields.any(|field| field != first))
    }
}

impl Rows {
    /// The system, runtime and knobs of each row.
    pub(super) fn keys(&self) -> Vec<(&str, &str, &systems::Point)> {
        fn keys<M>(rows: &[PublishedRow<M>]) -> Vec<(&str, &str, &systems::Point)> {
            rows.iter().map(|row| (row.system.as_str(), row.variant.as_str(), &row.point)).collect()
        }
        match self {
            Self::Upload(rows) => keys(rows),
            Self::Frames(rows) => keys(rows),
            Self::Requests(rows) => keys(rows),
            Self::Clients(rows) => keys(rows),
        }
    }
}

/// A way to receive, as the document heads its columns.
pub(super) fn way_name(framing: &str, active: &str) -> String {
    format!("{{packet,{framing}}} {active}")
}

/// A table in the document's shape.
pub(super) fn table(table: &PublishedTable) -> findings::Table {
    match &table.rows {
        Rows::Frames(rows) => pivot(table, rows).unwrap_or_else(|| list(table)),
        _ => list(table),
    }
}

/// One line for each row, with figures as they were printed, and one block for each runtime.
fn list(table: &PublishedTable) -> findings::Table {
    let figure = |column: &PublishedColumn| match column.knob {
        Some(kind) => kind == Kind::Integer,
        None => column.name != "system" && column.name != "runtime",
    };
    let columns = table.columns.iter().map(|column| findings::Column {
        name: column.heading.clone(),
        unit: figure(column).then_some(Unit::AsPrinted),
    });
    let cell = |(column, text): (&PublishedColumn, &String)| match text.parse() {
        _ if text.is_empty() => Cell::Empty,
        Ok(number) if figure(column) => Cell::Number(number),
        _ => Cell::Text(text.clone()),
    };
    let keys = table.rows.keys();
    let rows = table.printed.iter().enumerate().map(|(index, printed)| findings::Row {
        cells: table.columns.iter().zip(printed).map(cell).collect(),
        block: index > 0 && keys[index].1 != keys[index - 1].1,
    });
    findings::Table {
        columns: columns.collect(),
        keys: table
            .columns
            .iter()
            .filter(|c| c.knob.is_some() || c.name == "system" || c.name == "runtime")
            .count(),
        rows: rows.collect(),
    }
}

/// One line for each message size, and one column for each way to receive. None if most cells would be empty.
fn pivot(table: &PublishedTable, rows: &[FrameRow]) -> Option<findings::Table> {
    let way = |row: &FrameRow| {
        let knob = |name: &str| row.point.get(name).map_or(String::new(), ToString::to_string);
        way_name(&knob("framing"), &knob("active"))
    };
    let (mut known_ways, mut known_sizes) = (BTreeSet::new(), BTreeSet::new());
    let ways: Vec<String> = rows.iter().map(way).filter(|way| known_ways.insert(way.clone())).collect();
    let sizes = rows.iter().map(|row| row.measured.frame_size);
    let sizes: Vec<f64> = sizes.filter(|size| known_sizes.insert(*size as u64)).collect();
    if findings::is_sparse(sizes.len(), ways.len(), rows.len()) {
        return None;
    }
    let messages = table.column("messages");
    let entry = |(index, row): (usize, &FrameRow)| ((row.measured.frame_size as u64, way(row)), index);
    let indices: BTreeMap<(u64, String), usize> = rows.iter().enumerate().map(entry).collect();
    let cell = |size: f64, way: &String| {
        let index = indices.get(&(size as u64, way.clone()));
        index.map_or(Cell::Empty, |index| Cell::Text(table.printed[*index][messages].clone()))
    };
    let name = |column: &str| table.columns[table.column(column)].heading.clone();
    let mut columns = vec![findings::column(name("frame_size"), Unit::AsPrinted)];
    columns.extend(ways.iter().map(|way| findings::column(way, Unit::AsPrinted)));
    let row = |size: &f64| findings::Row {
        cells: std::iter::once(Cell::Number(*size)).chain(ways.iter().map(|way| cell(*size, way))).collect(),
        block: false,
    };
    Some(findings::Table { columns, keys: 1, rows: sizes.iter().map(row).collect() })
}

impl super::Audit {
    /// The same audit with only the first rows of each system in each block.
    pub fn shortened(mut self) -> Self {
        let all = self.table.rows.len();
        let mut seen: BTreeMap<(usize, String), usize> = BTreeMap::new();
        let system = self.table.columns.iter().position(|c| c.unit.is_none()).unwrap_or(0);
        let mut block = 0;
        // A table with few rows is shown complete.
        if all > 10 * FIRST_ROWS {
            self.table.rows.retain(|row| {
                block += usize::from(row.block);
                let Cell::Text(system) = &row.cells[system] else { return true };
                let count = seen.entry((block, system.clone())).or_default();
                *count += 1;
                *count <= FIRST_ROWS
            });
        }
        self.left_out = all - self.table.rows.len();
        self
    }
}
