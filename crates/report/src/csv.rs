//! Findings as CSV (RFC 4180): each table with its heading and raw numbers, and an empty line between tables.

use lab::findings::{Cell, Column, FigureView, Findings, Table, Unit};

use crate::agreement;
use crate::words::{beside, tables};

/// All tables. The first column names the experiment, and headings include the unit.
pub fn csv(findings: &Findings) -> String {
    let of = |e: FigureView<'_>| {
        let tables = tables(&e).into_iter().chain(beside(&e));
        tables.map(|each| table("experiment", &e.name, &each.table)).collect::<Vec<_>>()
    };
    findings.views().flat_map(of).collect::<Vec<_>>().join("\r\n")
}

/// A table with an additional first column, which names what the table belongs to.
pub(crate) fn table(key: &str, name: &str, table: &Table) -> String {
    let mut lines = vec![line(std::iter::once(key.to_owned()).chain(table.columns.iter().map(heading)))];
    for row in &table.rows {
        lines.push(line(std::iter::once(name.to_owned()).chain(row.cells.iter().map(raw))));
    }
    lines.concat()
}

fn heading(column: &Column) -> String {
    let unit = match column.unit {
        None | Some(Unit::Count | Unit::AsPrinted | Unit::Times) => return column.name.clone(),
        Some(Unit::Size | Unit::Bytes) => "bytes",
        Some(Unit::Milliseconds) => "ms",
        Some(Unit::Microseconds) => "us",
        Some(Unit::BytesPerSecond) => "bytes/s",
        Some(Unit::PerSecond) => "1/s",
        Some(Unit::Share) => "share of 1",
        Some(Unit::SecondsPerByte) => "s/byte",
        Some(Unit::SecondsPerOperation) => "s",
    };
    // The brackets have the raw unit, `CPU (s/byte)`, even if the text table scales it.
    let name = if column.unit == Some(Unit::SecondsPerByte) { "CPU" } else { &column.name };
    format!("{name} ({unit})")
}

fn raw(cell: &Cell) -> String {
    match cell {
        Cell::Number(number) => number.to_string(),
        Cell::AtLeast { at_least } => format!(">{at_least}"),
        Cell::Agree(agree) => agreement(*agree).to_owned(),
        Cell::Text(word) => word.clone(),
        Cell::Empty => String::new(),
    }
}

/// The fields of a line, quoted where they must be.
pub(crate) fn line(fields: impl Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        if field.contains(['"', ',', '\r', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}
