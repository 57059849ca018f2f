//! Compares the order of systems then and today, at the published points or each at its best.

use std::collections::BTreeSet;

use super::super::{ClientRow, PublishedTable};
use super::today::{same_side, side};
use super::{FLAT, Pair, Today, all, figures, fixed, likeness, stand_in, stands_for, within};
use lab::findings::{
    self, Cell, ChangedOrder, Column, Estimate, ExperimentFindings, OrderOfTwo, Placed, Presence, Shape,
    ShapeFigures, Unit, column,
};

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
        let ran = estimates.iter().any(|e| stands_for(table, pair.system, "", e).is_some());
        let today = match pair.today() {
            Some(_) => Presence::Measured,
            None if ran => Presence::NoFigure,
            None => Presence::NotRun,
        };
        let figures = ShapeFigures::Void { system: pair.system.to_owned(), today };
        Shape { agrees: None, at_limit: false, figures }
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
    let beside = findings::Table {
        columns: vec![
            Column::words("client"),
            Column::words("published at"),
            column("published", Unit::Times),
            Column::words("today at"),
            column("today", Unit::Times),
        ],
        keys: 1,
        rows: best.iter().map(line).collect(),
    };
    let entries: Vec<Entry> = best.into_iter().map(|(_, entry)| entry).collect();
    (beside, vec![order(today, &entries)])
}

/// Compares both orders: whether every two systems that have both figures are in the same order.
fn order(today: &Today, entries: &[Entry]) -> Shape {
    let common: Vec<(&Entry, f64, &Estimate)> =
        entries.iter().filter(|e| e.today().is_some()).filter_map(|e| Some((e, e.then?, e.now?))).collect();
    let several = common.len() * common.len().saturating_sub(1) / 2;
    let (mut pairs, mut agreements) = (Vec::new(), Vec::new());
    for (i, (a, a_then, a_now)) in common.iter().enumerate() {
        for (b, b_then, b_now) in &common[i + 1..] {
            let then = today.figure.advantage(*a_then, *b_then);
            let ratio = today.ratio(a_now, b_now, several);
            // A system that the generator limited may be faster than the one before it.
            let slower = if ratio.is_some_and(|r| r.estimate > 1.0) { b_now } else { a_now };
            let same = same_side(then, ratio).filter(|_| !slower.is_lower_bound());
            agreements.push(same);
            let level = side(then) == 0 || within(ratio, (1.0 / FLAT, FLAT)) == Some(true);
            let order = match same {
                Some(true) => continue,
                Some(false) if level => ChangedOrder::Level,
                Some(false) => ChangedOrder::Turned,
                None if slower.is_lower_bound() => ChangedOrder::AtLimit,
                None => ChangedOrder::Undecided,
            };
            pairs.push(OrderOfTwo { first: a.system.to_owned(), second: b.system.to_owned(), order });
        }
    }
    let figures = ShapeFigures::Order {
        then: chain(entries, |e| e.then, false),
        today: chain(entries, |e| e.today(), true),
        in_both: common.len(),
        pairs,
    };
    Shape { agrees: all(agreements).filter(|_| common.len() > 1), at_limit: false, figures }
}

/// The systems by their figures, the best first.
fn chain(entries: &[Entry], figure: fn(&Entry) -> Option<f64>, bounds: bool) -> Vec<Placed> {
    let mut sorted: Vec<(&Entry, f64)> = entries.iter().filter_map(|e| Some((e, figure(e)?))).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let place = |(entry, figure): &(&Entry, f64)| Placed {
        system: entry.system.to_owned(),
        behind: sorted[0].1 / figure,
        at_least: bounds && entry.now.is_some_and(Estimate::is_lower_bound),
    };
    sorted.iter().map(place).collect()
}
