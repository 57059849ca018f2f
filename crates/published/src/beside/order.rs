//! Compares the order of systems then and today. Today's rows are all at one point of the workload.

use std::collections::BTreeMap;

use systems::Point;

use super::super::{ClientRow, PublishedTable};
use super::pairs::Matching;
use super::today::{same_side, side};
use super::{FLAT, Pair, Today, all, stands_for, within};
use lab::findings::{
    self, Cell, ChangedOrder, Column, Estimate, FigureView, OrderOfTwo, Placed, Presence, RANKED_ERRORS,
    Shape, ShapeFigures, Unit, column,
};

/// A share of errors decides something if it is so many times the largest that may be ranked, or as far below it.
const CLEARLY: f64 = 2.0;

/// The order of servers.
pub(super) fn requests(
    table: &PublishedTable,
    today: &Today,
    pairs: &[Pair],
    estimates: &[Estimate],
) -> Vec<Shape> {
    let mut shapes = vec![order(today, pairs, Point::new(), false)];
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

/// The order of clients at each point that both have. If there is none, then each at its best row, today all at one point.
pub(super) fn clients<'a>(
    table: &PublishedTable,
    planned: &FigureView<'_>,
    today: &Today,
    pairs: &[Pair<'a>],
    matching: &Matching<'a>,
    rows: &[ClientRow],
) -> (findings::Table, Vec<Shape>) {
    let same_point = matching.is_at_same_points();
    let mut groups: BTreeMap<Point, Vec<Pair<'a>>> = BTreeMap::new();
    for pair in pairs {
        groups.entry(matching.work(pair)).or_default().push(*pair);
    }
    let (mut lines, mut shapes) = (Vec::new(), Vec::new());
    for (point, group) in &mut groups {
        group.sort_by(|a, b| b.then.unwrap_or(0.0).total_cmp(&a.then.unwrap_or(0.0)));
        let mut of_group = lines_of(table, planned, group);
        if let Some(first) = of_group.first_mut().filter(|_| !lines.is_empty()) {
            first.block = true;
        }
        lines.extend(of_group);
        let at = if same_point { point.clone() } else { matching.order_at(group) };
        shapes.push(order(today, group, at, same_point));
        shapes.extend(
            group.iter().filter(|_| same_point).filter_map(|pair| failing(matching, pair, point, rows)),
        );
    }
    let beside = findings::Table {
        columns: vec![
            Column::words("client"),
            Column::words("published at"),
            column("published", Unit::Times),
            Column::words("today at"),
            column("today", Unit::Times),
        ],
        keys: 1,
        rows: lines,
    };
    (beside, shapes)
}

/// The lines of clients that are compared with each other, as ratios to the best of them.
fn lines_of(table: &PublishedTable, planned: &FigureView<'_>, group: &[Pair]) -> Vec<findings::Row> {
    let labels = table.labels();
    let highest =
        |figure: fn(&Pair) -> Option<f64>| group.iter().filter_map(|pair| figure(pair)).fold(0.0, f64::max);
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
    group.iter().map(line).collect()
}

/// Whether a client that failed too often for a rank then does so today, at the same point.
fn failing<'a>(matching: &Matching<'a>, pair: &Pair<'a>, point: &Point, rows: &[ClientRow]) -> Option<Shape> {
    let then = rows.get(pair.row)?.measured.error_percent / 100.0;
    let today = matching.ran(pair).filter(|_| pair.then.is_none())?.error_share;
    let agrees = match today / RANKED_ERRORS {
        clearly if clearly > CLEARLY => Some(true),
        hardly if hardly < CLEARLY.recip() => Some(false),
        _ => None,
    };
    let (system, at) = (pair.system.to_owned(), point.clone());
    Some(Shape { agrees, at_limit: false, figures: ShapeFigures::Failing { system, at, then, today } })
}

/// Compares both orders: whether every two systems that have both figures are in the same order.
fn order(today: &Today, entries: &[Pair], at: Point, same_point: bool) -> Shape {
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
        same_point,
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
