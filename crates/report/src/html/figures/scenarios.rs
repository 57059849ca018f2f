//! Figures with a row for each scenario: its figure, its share of the ceiling, its CPU time, its memory.

use lab::findings::{Estimate, Unit};

use super::super::figure::Figure;
use super::{INTERVAL, View, outlines};
use crate::number::show;
use crate::svg::{Axis, Drawing, Row, Rows, Scale, Ticks};

/// The most rows that are drawn.
const ROWS: usize = 30;

/// The figure of every scenario with its interval: ranked scenarios first, the best at the top.
pub(super) fn ranking(view: &View) -> Figure {
    let mut order = view.rows.clone();
    order.sort_by(|a, b| view.order(b, a));
    let value = |row: &Estimate| row.figure.unwrap_or(f64::NAN);
    let (quantity, unit) = view.quantity();
    let values: Vec<_> = order.iter().map(|row| (value(row), row.interval)).collect();
    let row = |e: &Estimate| Row {
        label: view.label(e, &[]),
        style: view.style(e),
        value: value(e),
        interval: e.interval,
        note: show(value(e), unit),
    };
    let (hollow, legend) = outlines(order.iter().map(|e| !e.is_ranked()));
    Figure {
        title: format!("Every scenario: {quantity}"),
        about: format!("{}{hollow}{}", view.how_to_read(), cut(order.len())),
        legend,
        drawing: Drawing::Rows(Rows {
            x: view.axis(&values),
            rule: None,
            noise: None,
            bars: false,
            rows: order.iter().take(ROWS).map(|e| row(e)).collect(),
            interval: INTERVAL.to_owned(),
        }),
        main: false,
    }
}

/// The share of the reference's speed, for the best scenario of each system.
pub(super) fn ceiling(view: &View) -> Option<Figure> {
    let rows = best_rows(view, |e| e.of_reference.filter(|_| !e.is_reference()), Unit::Share);
    let (title, about) = (
        "Share of the ceiling",
        "The speed of the best scenario of each system, as a share of the speed of Narrows' own endpoint in the same rounds, \
         which is the most that this machine can do.",
    );
    bars(title, about, "share of the reference's speed", Unit::Share, rows)
}

/// CPU time per unit of work.
pub(super) fn cpu(view: &View) -> Option<Figure> {
    let work = &view.e.workload.about().unit;
    let (unit, per) = (Unit::cost_of(work), work.long);
    let rows = all_rows(view, |e| e.cpu_s_per_unit, unit);
    let about = format!(
        "CPU time of the system's processes for each {per}. It varies less than elapsed time, and often explains it. Lower is \
         better."
    );
    bars("CPU time", &about, &format!("CPU time for each {per}"), unit, rows)
}

/// Peak memory.
pub(super) fn memory(view: &View) -> Option<Figure> {
    let mut rows = all_rows(view, |e| Some(e.peak_memory_bytes? as f64), Unit::Bytes);
    let socket =
        |e: &Estimate| (e.socket_memory_bytes > 0).then(|| show(e.socket_memory_bytes as f64, Unit::Bytes));
    for (row, e) in rows.iter_mut().zip(measured(view, |e| e.peak_memory_bytes.is_some())) {
        if let Some(socket) = socket(e) {
            row.note = format!("{} + {socket}", row.note);
        }
    }
    let about = "The highest proportional set size of the system's processes, and after the + the growth of the kernel's \
                 socket memory on the whole machine. Lower is better.";
    bars("Peak memory", about, "memory (proportional set size)", Unit::Bytes, rows)
}

fn measured<'a>(view: &View<'a>, has: impl Fn(&Estimate) -> bool) -> Vec<&'a Estimate> {
    let all: Vec<&Estimate> = view.rows.iter().copied().filter(|e| has(e)).collect();
    if all.len() <= ROWS { all } else { view.best().into_iter().filter(|e| has(e)).collect() }
}

/// A row for each scenario, or if there are too many, for the best scenario of each system.
fn all_rows(view: &View, value: impl Fn(&Estimate) -> Option<f64>, unit: Unit) -> Vec<Row> {
    rows(view, &measured(view, |e| value(e).is_some()), value, unit)
}

/// A row for the best scenario of each system.
fn best_rows(view: &View, value: impl Fn(&Estimate) -> Option<f64>, unit: Unit) -> Vec<Row> {
    rows(view, &view.best(), value, unit)
}

fn rows(
    view: &View,
    estimates: &[&Estimate],
    value: impl Fn(&Estimate) -> Option<f64>,
    unit: Unit,
) -> Vec<Row> {
    let rows = estimates.iter().filter_map(|e| {
        let value = value(e).filter(|v| v.is_finite())?;
        Some(Row {
            label: view.label(e, &[]),
            style: view.style(e),
            value,
            interval: None,
            note: show(value, unit),
        })
    });
    rows.collect()
}

fn bars(title: &str, about: &str, axis: &str, unit: Unit, rows: Vec<Row>) -> Option<Figure> {
    let (hollow, legend) = outlines(rows.iter().map(|row| row.style.hollow));
    (!rows.is_empty()).then(|| Figure {
        title: title.to_owned(),
        about: format!("{about}{hollow}"),
        legend,
        drawing: Drawing::Rows(Rows {
            x: Axis { label: axis.to_owned(), unit, scale: Scale::Linear, ticks: Ticks::Round },
            rule: None,
            noise: None,
            bars: true,
            rows,
            interval: String::new(),
        }),
        main: false,
    })
}

fn cut(rows: usize) -> String {
    if rows > ROWS { format!(" The first {ROWS} of {rows}; the table has all.") } else { String::new() }
}
