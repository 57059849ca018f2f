//! Systems in order, then and today: of what each did at the published points, or each at its best.

use std::collections::BTreeSet;

use super::super::{Client, Row, Table};
use super::today::{same_side, side};
use super::{FLAT, Pair, Today, all, figures, likeness, shown, stand_in, stands_for, still, within};
use lab::findings::{self, Cell, Column, Estimate, ExperimentFindings, RANKED_ERRORS, Shape, Unit, column};

/// A system, with its figure then and today.
struct Entry<'a> {
    /// As the document calls it.
    system: &'a str,
    then: Option<f64>,
    now: Option<&'a Estimate>,
}

impl Entry<'_> {
    fn today(&self) -> Option<f64> {
        self.now?.figure
    }
}

/// The order of servers at the published point.
pub(super) fn requests(table: &Table, today: &Today, pairs: &[Pair], estimates: &[Estimate]) -> Vec<Shape> {
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

/// Clients, each at its best row that may be ranked; the points need not be the same.
pub(super) fn clients(
    table: &Table,
    rows: &[Row<Client>],
    planned: &ExperimentFindings,
    today: &Today,
) -> (findings::Table, Vec<Shape>) {
    let estimates = &planned.estimates;
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
    let (top_then, top_now) = (highest(|e| e.then), highest(|e| e.today()));
    let line = |(row, entry): &(Option<usize>, Entry)| findings::Row {
        cells: vec![
            Cell::Text(entry.system.to_owned()),
            row.map_or(Cell::Empty, |at| Cell::Text(labels[at].clone())),
            entry.then.map(|figure| top_then / figure).into(),
            entry.now.map_or(Cell::Empty, |e| Cell::Text(planned.label(&e.scenario))),
            entry.today().map(|figure| top_now / figure).into(),
        ],
        block: false,
    };
    let mut side = empty(table);
    side.rows = best.iter().map(line).collect();
    let entries: Vec<Entry> = best.into_iter().map(|(_, entry)| entry).collect();
    (side, vec![order(today, &entries)])
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
fn order(today: &Today, entries: &[Entry]) -> Shape {
    let mut text = format!(
        "order then: {}; today: {}",
        chain(entries, |e| e.then, false),
        chain(entries, |e| e.today(), true)
    );
    let common: Vec<(&Entry, f64, &Estimate)> =
        entries.iter().filter(|e| e.today().is_some()).filter_map(|e| Some((e, e.then?, e.now?))).collect();
    let several = common.len() * common.len().saturating_sub(1) / 2;
    let (mut against, mut held, mut open, mut each) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, (a, a_then, a_now)) in common.iter().enumerate() {
        for (b, b_then, b_now) in &common[i + 1..] {
            let then = today.figure.advantage(*a_then, *b_then);
            let ratio = today.ratio(a_now, b_now, several);
            let names = format!("{} and {}", a.system, b.system);
            // What the generator held back may be faster than the one before it.
            let slower = if ratio.is_some_and(|r| r.estimate > 1.0) { b_now } else { a_now };
            if slower.is_lower_bound() {
                held.push(names);
                each.push(None);
                continue;
            }
            let same = same_side(then, ratio);
            each.push(same);
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
    Shape { agrees: all(each).filter(|_| common.len() > 1), text }
}

/// Systems by their figures, the best first, as `A > B (2.0x less)`.
fn chain(entries: &[Entry], of: fn(&Entry) -> Option<f64>, bounds: bool) -> String {
    let mut sorted: Vec<(&Entry, f64)> = entries.iter().filter_map(|e| Some((e, of(e)?))).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let each = sorted.iter().map(|(entry, own)| {
        let behind = sorted[0].1 / own;
        let least = if bounds && entry.now.is_some_and(Estimate::is_lower_bound) { " at least" } else { "" };
        let by = if behind > 1.0 { format!(" ({} less)", shown((behind, behind))) } else { String::new() };
        format!("{}{least}{by}", entry.system)
    });
    if sorted.is_empty() { "nothing".to_owned() } else { each.collect::<Vec<_>>().join(" > ") }
}
