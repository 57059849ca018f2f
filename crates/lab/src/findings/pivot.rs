//! The frames table as it was published: a row for each frame size, a column for each way to receive.

use std::collections::BTreeMap;

use systems::{Point, Value};

use super::Estimate;
use super::table::{
    Cell, Column, FigureTable, Note, Row, Table, TableKind, figure_column, is_sparse, knob_cell, knob_column,
    varied,
};
use crate::experiment::grid::Axis;
use crate::plan::{Planned, View};

/// The knob that the rows are.
const ROWS: &str = "frame_size";

/// Figures, rows by frame size, columns by everything else; the reference stands last. None if most cells would be empty.
pub(super) fn pivot(planned: &View<'_>, estimates: &[Estimate]) -> Option<FigureTable> {
    let others: Vec<&Axis> = varied(planned).filter(|axis| axis.knob != ROWS).collect();
    let systems = planned.scenarios.iter().map(|s| &s.system);
    let several = systems.clone().zip(systems.skip(1)).any(|(a, b)| a != b && !systems::is_reference(b));
    let mut columns: Vec<(String, Point)> = Vec::new();
    let mut places: BTreeMap<(String, Point), usize> = BTreeMap::new();
    let mut rows: BTreeMap<Option<&Value>, Vec<(usize, Cell)>> = BTreeMap::new();
    for e in estimates {
        let mut point = e.scenario.point.clone();
        let row = e.scenario.point.get(ROWS);
        point.remove(ROWS);
        let key = (e.scenario.system.clone(), point);
        let at = *places.entry(key.clone()).or_insert(columns.len());
        if at == columns.len() {
            columns.push(key);
        }
        rows.entry(row).or_default().push((at, e.figure.into()));
    }
    let width = columns.len();
    if is_sparse(rows.len(), width, estimates.len()) {
        return None;
    }
    let size = planned.axes.iter().find(|axis| axis.knob == ROWS);
    let first = size.map_or(Column::words(ROWS), |axis| knob_column(axis, ROWS));
    let unit = figure_column(planned).unit;
    let names =
        columns.iter().map(|(system, point)| Column { name: name(system, point, &others, several), unit });
    let rows = rows.into_iter().map(|(size, filled)| {
        let mut cells = vec![Cell::Empty; 1 + width];
        cells[0] = knob_cell(size);
        filled.into_iter().for_each(|(at, cell)| cells[1 + at] = cell);
        Row { cells, block: false }
    });
    let table =
        Table { rows: rows.collect(), columns: std::iter::once(first).chain(names).collect(), keys: 1 };
    Some(FigureTable { kind: TableKind::Pivot, table, notes: doubts(planned, estimates) })
}

fn name(system: &str, point: &Point, others: &[&Axis], several: bool) -> String {
    let values: Vec<String> =
        others.iter().filter_map(|axis| Some(axis.show(point.get(&axis.knob)?))).collect();
    match (several || systems::is_reference(system) || values.is_empty(), values.is_empty()) {
        (true, true) => system.to_owned(),
        (true, false) => format!("{system} {}", values.join("/")),
        (false, _) => values.join("/"),
    }
}

/// A pivot has no room for doubts inside its cells: they stand below it.
fn doubts(planned: &Planned, estimates: &[Estimate]) -> Vec<Note> {
    let scenarios: Vec<String> = estimates
        .iter()
        .filter(|e| !e.is_reference() && e.figure.is_some() && !e.ranks())
        .map(|e| planned.label(&e.scenario))
        .collect();
    if scenarios.is_empty() { Vec::new() } else { vec![Note::NotComparable { scenarios }] }
}
