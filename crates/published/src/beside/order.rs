//! Compares the order of systems then and today, at the published points or each at its best.

use std::collections::BTreeSet;

use super::super::{ClientRow, PublishedTable};
use super::today::{same_side, side};
use super::{FLAT, Pair, Today, all, figures, fixed, likeness, shown, stand_in, stands_for, within};
use lab::findings::{self, Cell, Column, Estimate, ExperimentFindings, RANKED_ERRORS, Shape, Unit, column};

/// A system with its figures then and today.
struct Entry<'a> {
    /// The system, as the document calls it.
    system: &'a str,
    then: Option<f64>,
    now: Option<&'a Estimate>,
}

impl Entry<'_> {
    fn today(&self) -> Option<f64> {
        self.now?.figure
    }
}

/// The order of servers at the published points.
pub(super) fn requests(
    table: &PublishedTable,
    today: &Today,
    pairs: &[Pair],
    estimates: &[Estimate],
) -> Vec<Shape> {
    let entries = pairs.iter().map(|pair| Entry { system: pair.system, then: pair.then, now: pair.now });
    let entries: Vec<Entry> = entries.collect();
    let mut shapes = vec![order(today, &entries)];
    let void = pairs.iter().filter(|pair| pair.then.is_none());
    shapes.extend(void.map(|pair| {
        let now = pair.today();
        let ran = estimates.iter().any(|e| stands_for(table, pair.system, "", e).is_some());
        let words = match now {
            Some(_) => "today it has one",
            None if ran => "nor has it today",
            None => "it was not run today",
        };
        Shape { agrees: None, text: format!("{} had no figure that counts then; {words}", pair.system) }
    }));
    shapes
}

/// The order of clients, each at its best row that may be ranked. The points may differ.
pub(super) fn clients(
    table: &PublishedTable,
    rows: &[ClientRow],
    planned: &ExperimentFindings,
    today: &Today,
) -> (findings::Table, Vec<Shape>) {
    let estimates = &planned.estimates;
    let (figures, labels) = (figures(table), table.labels());
    let fixed = fixed(table, &table.varied().map(|column| column.name.as_str()).collect());
    let systems: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
    let mut best: Vec<(Option<usize>, Entry)> = Vec::new();
    for system in systems {
        let ranked_rows = (0..rows.len()).filter(|&row| rows[row].system == system && figures[row].is_some());
        let row = ranked_rows
            .max_by(|a, b| figures[*a].partial_cmp(&figures[*b]).unwrap_or(std::cmp::Ordering::Equal));
        let ranked = || estimates.iter().filter(|e| e.ranks());
        let name = stand_in(table, system, "", ranked());
        let ranked: Vec<&Estimate> = ranked().filter(|e| Some(e.scenario.system.as_str()) == name).collect();
        let nearest = ranked.iter().map(|e| likeness(table, &fixed, e)).max();
        let near = ranked.into_iter().filter(|e| Some(likeness(table, &fixed, e)) == nearest);
        let now = near.max_by(|a, b| a.figure.unwrap_or(0.0).total_cmp(&b.figure.unwrap_or(0.0)));
        best.push((row, Entry { system, then: row.and_then(|index| figures[index]), now }));
    }
    best.sort_by(|a, b| b.1.then.unwrap_or(0.0).total_cmp(&a.1.then.unwrap_or(0.0)));
    let highest = |figure: fn(&Entry) -> Option<f64>| {
        best.iter().filter_map(|(_, entry)| figure(entry)).fold(0.0, f64::max)
    };
    let (top_then, top_now) = (highest(|e| e.then), highest(|e| e.today()));
    let line = |(row, entry): &(Option<usize>, Entry)| findings::Row {
        cells: vec![
            Cell::Text(entry.system.to_owned()),
            row.map_or(Cell::Empty, |index| Cell::Text(labels[index].clone())),
            entry.then.map(|figure| top_then / figure).into(),
            entry.now.map_or(Cell::Empty, |e| Cell::Text(planned.label(&e.scenario))),
            entry.today().map(|figure| top_now / figure).into(),
        ],
        block: false,
    };
    let mut beside = empty(table);
    beside.rows = best.iter().map(line).collect();
    let entries: Vec<Entry> = best.into_iter().map(|(_, entry)| entry).collect();
    (beside, vec![order(today, &entries)])
}

fn empty(table: &PublishedTable) -> findings::Table {
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

/// Compares both orders: whether every two systems that have both figures are in the same order.
fn order(today: &Today, entries: &[Entry]) -> Shape {
    let mut text = format!(
        "order then: {}; today: {}",
        chain(entries, |e| e.then, false),
        chain(entries, |e| e.today(), true)
    );
    let common: Vec<(&Entry, f64, &Estimate)> =
        entries.iter().filter(|e| e.today().is_some()).filter_map(|e| Some((e, e.then?, e.now?))).collect();
    let several = common.len() * common.len().saturating_sub(1) / 2;
    let (mut against, mut held, mut open, mut agreements) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, (a, a_then, a_now)) in common.iter().enumerate() {
        for (b, b_then, b_now) in &common[i + 1..] {
            let then = today.figure.advantage(*a_then, *b_then);
            let ratio = today.ratio(a_now, b_now, several);
            let names = format!("{} and {}", a.system, b.system);
            // A system that the generator limited may be faster than the one before it.
            let slower = if ratio.is_some_and(|r| r.estimate > 1.0) { b_now } else { a_now };
            if slower.is_lower_bound() {
                held.push(names);
                agreements.push(None);
                continue;
            }
            let same = same_side(then, ratio);
            agreements.push(same);
            match same {
                Some(true) => {}
                None => open.push(names),
                Some(false) if side(then) == 0 || within(ratio, (1.0 / FLAT, FLAT)) == Some(true) => {
                    against.push(format!("{names} are level in one of the two"));
                }
                Some(false) => against.push(format!("{names} are the other way round today")),
            }
        }
    }
    if !held.is_empty() {
        text.push_str(&format!("; the generator was at its limit: no order of {}", held.join(", ")));
    }
    if !open.is_empty() {
        text.push_str(&format!("; these rounds do not decide the order of {}", open.join(", ")));
    }
    if !against.is_empty() {
        text.push_str(&format!("; {}", against.join(", ")));
    }
    if common.len() < 2 {
        text.push_str("; fewer than two of them are in both");
    }
    Shape { agrees: all(agreements).filter(|_| common.len() > 1), text }
}

/// Formats systems by their figures, the best first: `A > B (2.0x less)`.
fn chain(entries: &[Entry], figure: fn(&Entry) -> Option<f64>, bounds: bool) -> String {
    let mut sorted: Vec<(&Entry, f64)> = entries.iter().filter_map(|e| Some((e, figure(e)?))).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts = sorted.iter().map(|(entry, figure)| {
        let behind = sorted[0].1 / figure;
        let least = if bounds && entry.now.is_some_and(Estimate::is_lower_bound) { " at least" } else { "" };
        let by = if behind > 1.0 { format!(" ({} less)", shown((behind, behind))) } else { String::new() };
        format!("{}{least}{by}", entry.system)
    });
    if sorted.is_empty() { "nothing".to_owned() } else { parts.collect::<Vec<_>>().join(" > ") }
}
