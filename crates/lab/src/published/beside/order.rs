//! Systems in order, then and today: of what each did at the published points, or each at its best.

use std::collections::BTreeSet;

use super::super::{Rows, Table};
use super::{
    FLAT, Pair, Round, Shape, figure, figures, judged, likeness, shown, stand_in, stands_for, still,
};
use crate::experiment::Figure;
use crate::findings::{self, Cell, Column, Estimate, RANKED_ERRORS, Unit, column, label};
use crate::plan::Planned;

/// A system, with its figure then and today.
struct Entry<'a> {
    /// As the document calls it.
    system: &'a str,
    then: Option<f64>,
    now: Option<&'a Estimate>,
}

impl Entry<'_> {
    fn today(&self, round: Round) -> Option<f64> {
        figure(self.now?, round)
    }
}

/// The order of servers at the published point.
pub(super) fn requests(
    table: &Table,
    planned: &Planned,
    pairs: &[Pair],
    estimates: &[Estimate],
) -> Vec<Shape> {
    let entries = pairs.iter().map(|pair| Entry { system: pair.system, then: pair.then, now: pair.now });
    let entries: Vec<Entry> = entries.collect();
    let order = judged(estimates, |round| Some(order(planned.figure, &entries, round)));
    let mut shapes: Vec<Shape> = order.into_iter().collect();
    let void = pairs.iter().filter(|pair| pair.then.is_none());
    shapes.extend(void.map(|pair| {
        let today = pair.today(None);
        let ran = estimates.iter().any(|e| stands_for(table, pair.system, "", e).is_some());
        let words = match today {
            Some(_) => "today it has one",
            None if ran => "nor has it today",
            None => "it was not run today",
        };
        Shape { agrees: None, text: format!("{} had no figure that counts then; {words}", pair.system) }
    }));
    shapes
}

/// Clients, each at its best row that may be ranked; the points need not be the same.
pub(super) fn clients(
    table: &Table,
    planned: &Planned,
    estimates: &[Estimate],
) -> (findings::Table, Vec<Shape>) {
    let Rows::Clients(rows) = &table.rows else { return (empty(table), Vec::new()) };
    let (figures, labels) = (figures(table), table.labels());
    let still = still(table, &table.varied().map(|column| column.name.as_str()).collect());
    let systems: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
    let mut best: Vec<(Option<usize>, Entry)> = Vec::new();
    for system in systems {
        let own = (0..rows.len()).filter(|&at| rows[at].system == system && figures[at].is_some());
        let row =
            own.max_by(|a, b| figures[*a].partial_cmp(&figures[*b]).unwrap_or(std::cmp::Ordering::Equal));
        let ranked = || estimates.iter().filter(|e| e.ranks());
        let name = stand_in(table, system, "", ranked());
        let ranked: Vec<&Estimate> = ranked().filter(|e| Some(e.scenario.system.as_str()) == name).collect();
        let nearest = ranked.iter().map(|e| likeness(table, &still, e)).max();
        let near = ranked.into_iter().filter(|e| Some(likeness(table, &still, e)) == nearest);
        let now = near.max_by(|a, b| a.figure.unwrap_or(0.0).total_cmp(&b.figure.unwrap_or(0.0)));
        best.push((row, Entry { system, then: row.and_then(|at| figures[at]), now }));
    }
    best.sort_by(|a, b| b.1.then.unwrap_or(0.0).total_cmp(&a.1.then.unwrap_or(0.0)));
    let highest =
        |of: fn(&Entry) -> Option<f64>| best.iter().filter_map(|(_, entry)| of(entry)).fold(0.0, f64::max);
    let (top_then, top_now) = (highest(|e| e.then), highest(|e| e.today(None)));
    let line = |(row, entry): &(Option<usize>, Entry)| findings::Row {
        cells: vec![
            Cell::Text(entry.system.to_owned()),
            row.map_or(Cell::Empty, |at| Cell::Text(labels[at].clone())),
            entry.then.map(|figure| top_then / figure).into(),
            entry.now.map_or(Cell::Empty, |e| Cell::Text(label(planned, &e.scenario))),
            entry.today(None).map(|figure| top_now / figure).into(),
        ],
        block: false,
    };
    let mut side = empty(table);
    side.rows = best.iter().map(line).collect();
    let entries: Vec<Entry> = best.into_iter().map(|(_, entry)| entry).collect();
    let order = judged(estimates, |round| Some(order(planned.figure, &entries, round)));
    (side, order.into_iter().collect())
}

fn empty(table: &Table) -> findings::Table {
    findings::Table {
        title: format!("Beside {}", table.name),
        about: format!(
            "Beside the published table {} ({}): each client's best row with {} % errors or fewer, how many times less than the \
             best of all, then and today.",
            table.name,
            table.source,
            RANKED_ERRORS * 100.0
        ),
        columns: vec![
            Column::words("client"),
            Column::words("published at"),
            column("published", Unit::Times),
            Column::words("today at"),
            column("today", Unit::Times),
        ],
        keys: 1,
        rows: Vec::new(),
        notes: Vec::new(),
    }
}

/// Both orders, and whether every two systems that are in both stand the same way round.
fn order(figure: Figure, entries: &[Entry], round: Round) -> Shape {
    let words = |of: &dyn Fn(&Entry) -> Option<f64>| {
        let mut sorted: Vec<(&str, f64, bool)> = entries
            .iter()
            .filter_map(|e| Some((e.system, of(e)?, e.now.is_some_and(Estimate::is_lower_bound))))
            .collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        sorted
    };
    let (then, now) = (words(&|e| e.then), words(&|e| e.today(round)));
    let chain = |order: &[(&str, f64, bool)], bounds: bool| {
        let each = order.iter().map(|(system, own, bound)| {
            let behind = order[0].1 / own;
            let least = if bounds && *bound { " at least" } else { "" };
            let by =
                if behind > 1.0 { format!(" ({} less)", shown((behind, behind))) } else { String::new() };
            format!("{system}{least}{by}")
        });
        if order.is_empty() { "nothing".to_owned() } else { each.collect::<Vec<_>>().join(" > ") }
    };
    let mut text = format!("order then: {}; today: {}", chain(&then, false), chain(&now, true));
    let common: Vec<(&Entry, f64, f64)> =
        entries.iter().filter_map(|e| Some((e, e.then?, e.today(round)?))).collect();
    let (mut against, mut unknown) = (Vec::new(), Vec::new());
    for (i, a) in common.iter().enumerate() {
        for b in &common[i + 1..] {
            let (then, now) = (figure.advantage(a.1, b.1), figure.advantage(a.2, b.2));
            let names = format!("{} and {}", a.0.system, b.0.system);
            let turned = (then > FLAT && now < 1.0 / FLAT) || (then < 1.0 / FLAT && now > FLAT);
            let level = (now.max(1.0 / now) < FLAT) != (then.max(1.0 / then) < FLAT);
            // What the generator held back may be faster than the one before it.
            let slower = if now > 1.0 { b.0 } else { a.0 };
            match () {
                () if slower.now.is_some_and(Estimate::is_lower_bound) => unknown.push(names),
                () if turned => against.push(format!("{names} are the other way round today")),
                () if level => against.push(format!("{names} are level in one of the two")),
                () => {}
            }
        }
    }
    if !unknown.is_empty() {
        text.push_str(&format!("; the generator was at its limit: no order of {}", unknown.join(", ")));
    }
    if !against.is_empty() {
        text.push_str(&format!("; {}", against.join(", ")));
    }
    let agrees = (common.len() > 1 && unknown.is_empty()).then_some(against.is_empty());
    if common.len() < 2 {
        text.push_str("; fewer than two of them are in both");
    }
    Shape { agrees, text }
}
