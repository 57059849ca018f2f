//! Charts with a row for each value: ratios with their intervals, rankings, memory.

use super::axis::{Axis, Span, apart};
use super::canvas::{Anchor, Canvas, fitted, n, width_of};
use super::{Data, Interval, NOT_RANKED, Style, Width};

/// One row of the chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) style: Style,
    pub(crate) value: f64,
    pub(crate) interval: Option<Interval>,
    /// The text at the right: the formatted value, or a verdict.
    pub(crate) note: String,
}

/// Rows with a common axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    pub(crate) x: Axis,
    /// The value of a line across all rows, which means no difference.
    pub(crate) rule: Option<f64>,
    /// The range of noise, drawn as a band across all rows.
    pub(crate) noise: Option<Interval>,
    /// Whether to draw bars from zero instead of marks.
    pub(crate) bars: bool,
    pub(crate) rows: Vec<Row>,
    /// The name of the intervals, for the table of the data.
    pub(crate) interval: String,
}

const TOP: f64 = 8.0;

impl Rows {
    /// Draws the chart and returns its height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let longest =
            |text: fn(&Row) -> &str| self.rows.iter().map(|r| width_of(text(r))).fold(0.0, f64::max);
        // Labels are left of their rows if there is room, otherwise above.
        let wide = width != Width::Narrow && longest(|r| &r.label) < width.units() * 0.5;
        let notes = (longest(|r| &r.note) + 10.0).min(width.units() * 0.4);
        let gutter = if wide { longest(|r| &r.label) + 12.0 } else { 12.0 };
        let high = if wide { 24.0 } else { 40.0 };
        let ends = self.rows.iter().flat_map(|r| {
            [r.value, r.interval.map_or(r.value, |i| i.0), r.interval.map_or(r.value, |i| i.1)]
        });
        let values = ends
            .chain(self.rule)
            .chain(self.noise.into_iter().flat_map(|n| [n.0, n.1]))
            .chain(self.bars.then_some(0.0));
        let range = self.x.range(values.collect::<Vec<_>>().into_iter());
        let x = Span { range, from: gutter + 6.0, to: width.units() - notes - 6.0 };
        let bottom = TOP + high * self.rows.len() as f64 + 4.0;
        self.frame(canvas, &x, bottom, wide);
        for (i, row) in self.rows.iter().enumerate() {
            let y = TOP + high * i as f64;
            let middle = if wide { y + high / 2.0 } else { y + 27.0 };
            let (anchor, at, room) = if wide {
                (Anchor::End, (gutter - 2.0, middle + 4.0), gutter - 4.0)
            } else {
                (Anchor::Start, (0.0, y + 13.0), width.units())
            };
            canvas.text("label", anchor, at, &fitted(&row.label, room));
            self.draw_row(canvas, &x, row, middle);
            let note = fitted(&row.note, notes - 4.0);
            canvas.text("value", Anchor::Start, (x.to + 12.0, middle + 4.0), &note);
        }
        bottom + 40.0
    }

    fn frame(&self, canvas: &mut Canvas, x: &Span, bottom: f64, wide: bool) {
        canvas.open("axes");
        let about = ((x.to - x.from) / 62.0) as usize;
        let ticks = apart(self.x.ticks(&x.range, about.clamp(2, 7)), |v| x.at(v));
        for (value, label) in ticks {
            let at = x.at(value);
            canvas.line("grid", (at, TOP), (at, bottom));
            canvas.text("tick", Anchor::Middle, (at, bottom + 15.0), &label);
        }
        if let Some((low, high)) = self.noise {
            let (low, high) = (x.at(low), x.at(high));
            canvas.rect("noise", (low, TOP), (high - low, bottom - TOP), "", "noise");
        }
        if let Some(value) = self.rule {
            let at = x.at(value);
            canvas.line("zero", (at, TOP), (at, bottom));
        }
        canvas.text("axis", Anchor::Start, (if wide { x.from } else { 0.0 }, bottom + 34.0), &self.x.label);
        canvas.close();
    }

    fn draw_row(&self, canvas: &mut Canvas, x: &Span, row: &Row, y: f64) {
        canvas.open(&row.style.class());
        let mut tip = format!("{}: {}", row.label, self.value(row));
        if self.bars {
            let left = x.at(0.0);
            let wide = x.at(row.value) - left;
            let class = if row.style.hollow { "bar hollow" } else { "bar" };
            canvas.rect(class, (left, y - 6.0), (wide.max(1.0), 12.0), "", &tip);
        } else {
            if let Some((low, high)) = row.interval {
                tip += &format!(" [{}, {}]", self.x.word(low), self.x.word(high));
                let (low, high) = (x.at(low), x.at(high));
                canvas.path("whisker", &format!("M{} {}v8m0-4H{}m0-4v8", n(low), n(y - 4.0), n(high)));
            }
            canvas.mark(row.style, x.at(row.value), y, &tip);
        }
        canvas.close();
    }

    /// The value in words. They also say whether the row is not ranked.
    fn value(&self, row: &Row) -> String {
        let word = self.x.word(row.value);
        if row.style.hollow { format!("{word} ({NOT_RANKED})") } else { word }
    }

    pub(super) fn data(&self) -> Data {
        let intervals = self.rows.iter().any(|row| row.interval.is_some());
        let mut columns = vec!["row".to_owned(), self.x.label.clone()];
        if intervals {
            columns.push(self.interval.clone());
        }
        let notes = self.rows.iter().any(|row| !row.note.is_empty() && row.note != self.x.word(row.value));
        if notes {
            columns.push("note".to_owned());
        }
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![row.label.clone(), self.value(row)];
            if intervals {
                cells.push(row.interval.map_or_else(
                    || "-".to_owned(),
                    |(low, high)| format!("{} to {}", self.x.word(low), self.x.word(high)),
                ));
            }
            if notes {
                cells.push(row.note.clone());
            }
            cells
        });
        Data { columns, rows: rows.collect() }
    }
}
