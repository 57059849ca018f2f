//! Compares the order of systems then and today. Today's rows are all at one point of the workload.

use systems::Point;

use super::super::PublishedTable;
use super::today::{same_side, side};
use super::{FLAT, Pair, Today, all, stands_for, within};
use lab::findings::{
    self, Cell, ChangedOrder, Column, Estimate, ExperimentFindings, OrderOfTwo, Placed, Presence, Shape,
    ShapeFigures, Unit, column,
};

/// The order of servers.
pub(super) fn requests(
    table: &PublishedTable,
    today: &Today,
    pairs: &[Pair],
    estimates: &[Estimate],
) -> Vec<Shape> {
    let mut shapes = vec![order(today, pairs, Point::new())];
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

/// The order of clients: then each at its best row, today all at the point `at`.
pub(super) fn clients(
    table: &PublishedTable,
    planned: &ExperimentFindings,
    today: &Today,
    pairs: &[Pair],
    at: Point,
) -> (findings::Table, Vec<Shape>) {
    let labels = table.labels();
    let mut pairs = pairs.to_vec();
    pairs.sort_by(|a, b| b.then.unwrap_or(0.0).total_cmp(&a.then.unwrap_or(0.0)));
    let highest =
        |figure: fn(&Pair) -> Option<f64>| pairs.iter().filter_map(|pair| figure(pair)).fold(0.0, f64::max);
    let (top_then, top_now) = (highest(|pair| pair.then), highest(|pair| pair.today()));
    let line = |pair: &Pair| findings::Row {
        cells: vec![
            Cell::Text(pair.system.to_owned()),
            pair.then.map_or(Cell::Empty, |_| Cell::Text(labels[pair.row].clone())),
            pair.then.map(|figure| top_then / figure).into(),
            pair.now.map_or(Cell::Empty, |e| Cell::Text(planned.label(&e.scenario))),
            pair.today().map(|figure| top_now / figure).into(),
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
        rows: pairs.iter().map(line).collect(),
    };
    let shape = order(today, &pairs, at);
    (beside, vec![shape])
}

/// Compares both orders: whether every two systems that have both figures are in the same order.
fn order(today: &Today, entries: &[Pair], at: Point) -> Shape {
    let common: Vec<(&Pair, f64, &Estimate)> =
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
        at,
        in_both: common.len(),
        pairs,
    };
    Shape { agrees: all(agreements).filter(|_| common.len() > 1), at_limit: false, figures }
}

/// The systems by their figures, the best first.
fn chain(entries: &[Pair], figure: fn(&Pair) -> Option<f64>, bounds: bool) -> Vec<Placed> {
    let mut sorted: Vec<(&Pair, f64)> = entries.iter().filter_map(|e| Some((e, figure(e)?))).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let place = |(entry, figure): &(&Pair, f64)| Placed {
        system: entry.system.to_owned(),
        behind: sorted[0].1 / figure,
        at_least: bounds && entry.now.is_some_and(Estimate::is_lower_bound),
    };
    sorted.iter().map(place).collect()
}
