//! The tables of a search: every setting that ran, and what each knob does by itself.

use lab::experiment::Figure;
use lab::findings::{Cell, Column, FigureView, Row, Table, Tried, Tuned, Unit, column};

use super::super::caption::{Caption, Captioned};
use super::super::claims::quantity;
use super::{default_of, defaults, first, is_shown, never_works, setting};

/// The settings that ran, the best first; and the knobs, the strongest first.
pub(in super::super) fn tables(e: &FigureView<'_>, t: &Tuned) -> Vec<Captioned> {
    let both = [settings(e, t), knobs(e, t)];
    both.into_iter().filter(|each| !each.table.rows.is_empty()).collect()
}

fn settings(e: &FigureView<'_>, t: &Tuned) -> Captioned {
    let limited = t.tried.iter().any(|tried| !tried.keeps);
    let mut columns = vec![Column::words("setting")];
    let name = |figure: &Figure| match t.figures.len() {
        1 => "ratio".to_owned(),
        _ => format!("ratio in {}", quantity(*figure)),
    };
    columns.extend(t.figures.iter().map(|figure| column(name(figure), Unit::Times)));
    columns.extend(limited.then(|| Column::words("limits")));
    columns.extend(["trials", "fresh", "failed"].map(|name| column(name, Unit::Count)));
    let ratio = |tried: &Tried| tried.ratios.first().copied().flatten().unwrap_or(0.0);
    let mut order: Vec<&Tried> = t.tried.iter().collect();
    order.sort_by(|a, b| b.keeps.cmp(&a.keeps).then(ratio(b).total_cmp(&ratio(a))));
    let row = |tried: &Tried| {
        let mut cells = vec![Cell::Text(setting(e, &tried.point))];
        cells.extend(tried.ratios.iter().map(|ratio| Cell::from(*ratio)));
        let keeps = if tried.keeps { "kept" } else { "not kept" };
        cells.extend(limited.then(|| Cell::Text(keeps.to_owned())));
        cells.extend([tried.trials, tried.fresh, tried.failed].map(|count| Cell::Number(count.into())));
        Row { cells, block: false }
    };
    let caption = Caption {
        title: "Settings that ran".to_owned(),
        about: format!(
            "How many times better each setting is than {} in the same rounds: the median over the race and the fresh rounds, the \
             best first. The race chose what to try again, so only the answer is proven.",
            defaults(e)[0]
        ),
        notes: Vec::new(),
    };
    Captioned { caption, table: Table { columns, keys: 1, rows: order.into_iter().map(row).collect() } }
}

fn knobs(e: &FigureView<'_>, t: &Tuned) -> Captioned {
    let mut rows: Vec<Row> = Vec::new();
    for (at, effect) in t.knobs.iter().enumerate() {
        let Some(axis) = e.axes.iter().find(|axis| axis.knob == effect.knob) else { continue };
        let shown = effect.values.iter().filter(|(value, _)| is_shown(e, t, &effect.knob, value));
        for (place, (value, ratio)) in shown.enumerate() {
            let fails = never_works(t, &effect.knob, value);
            let note = match (default_of(e, &effect.knob) == Some(value), fails, effect.flat) {
                (true, ..) => first(e),
                (_, true, _) => "never works",
                (_, _, true) => "hardly matters",
                _ => "",
            };
            let note = if note.is_empty() { Cell::Empty } else { Cell::Text(note.to_owned()) };
            let ratio = if fails { Cell::Empty } else { Cell::Number(*ratio) };
            let cells = vec![Cell::Text(effect.knob.clone()), Cell::Text(axis.show(value)), ratio, note];
            rows.push(Row { cells, block: at > 0 && place == 0 });
        }
    }
    let caption = Caption {
        title: "What each knob does by itself".to_owned(),
        about: format!(
            "How many times better each value is than the knob's {}, as the race estimates it, averaged over what the other knobs do. What \
             few trials show is shrunk towards no difference. The strongest knob comes first.",
            first(e)
        ),
        notes: Vec::new(),
    };
    let columns = vec![
        Column::words("knob"),
        Column::words("value"),
        column("ratio", Unit::Times),
        Column::words("note"),
    ];
    Captioned { caption, table: Table { columns, keys: 2, rows } }
}
