//! Line charts: sweeps of a knob, percentiles, the course of a window.

use super::axis::{Axis, Range, Span, apart};
use super::canvas::{Anchor, Canvas, n, width_of};
use super::{Data, Interval, Style, Width};

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<Interval>,
    /// Whether it is drawn as an outline ([`Lines::hollow`]).
    pub(crate) hollow: bool,
}

impl Point {
    /// A ranked point without an interval.
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, hollow: false }
    }
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// As marks on a line.
    Joined,
    /// As marks.
    Apart,
    /// As marks with this letter beside each.
    Lettered(char),
    /// As a line without marks.
    Line,
}

/// Points, ascending in x.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) style: Style,
    pub(crate) drawn: Drawn,
    pub(crate) points: Vec<Point>,
}

/// A marked part of the x axis, with a label above it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) label: String,
}

/// A line chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) bands: Vec<Band>,
    /// The name of the intervals, for the table of the data. Empty if no point has one.
    pub(crate) interval: String,
    /// The meaning of a hollow mark.
    pub(crate) hollow: &'static str,
}

/// The part of the canvas that a chart takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) width: f64,
    pub(super) edge: f64,
    pub(super) height: f64,
    /// Whether there is room for many ticks.
    pub(super) roomy: bool,
}

/// The area of the plot: its x range from left to right, and its y range from bottom to top.
struct Plot {
    /// The upper edge of the chart, including labels.
    edge: f64,
    x: Span,
    y: Span,
}

impl Lines {
    fn points(&self) -> impl Iterator<Item = &Point> + Clone {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// All x values that must be on the axis.
    pub(super) fn xs(&self) -> impl Iterator<Item = f64> + Clone {
        let banded = self.bands.iter().flat_map(|band| [band.from, band.to]);
        self.points().map(|p| p.x).chain(banded)
    }

    /// All y values that must be on the axis.
    pub(super) fn ys(&self) -> impl Iterator<Item = f64> + Clone {
        self.points().flat_map(|p| [p.y, p.interval.map_or(p.y, |i| i.0), p.interval.map_or(p.y, |i| i.1)])
    }

    /// Draws the chart and returns its height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let height = if width == Width::Wide { 340.0 } else { 270.0 };
        let area = Area { width: width.units(), edge: 0.0, height, roomy: width == Width::Wide };
        self.draw_at(canvas, area, self.x.range(self.xs()), self.y.range(self.ys()));
        height
    }

    /// Draws the chart in this area and over these values.
    pub(super) fn draw_at(&self, canvas: &mut Canvas, area: Area, x: Range, y: Range) {
        let inset = if area.roomy { 18.0 } else { 10.0 };
        let marks = if self.bands.is_empty() { 0.0 } else { 16.0 };
        let below = if self.x.label.is_empty() { 26.0 } else { 44.0 };
        let plot = Plot {
            edge: area.edge,
            x: Span { range: x, from: 58.0 + inset, to: area.width - 10.0 - inset },
            y: Span { range: y, from: area.edge + area.height - below, to: area.edge + 28.0 + marks },
        };
        self.frame(canvas, &plot, inset, area);
        self.bands(canvas, &plot);
        let mut taken = Vec::new();
        let has_whiskers = |series: &&Series| series.points.iter().any(|p| p.interval.is_some());
        let count = self.series.iter().filter(has_whiskers).count();
        let mut at = 0.0;
        for series in &self.series {
            // Shift the whiskers of different series at the same x, so that they do not overlap.
            let shift = (at - (count as f64 - 1.0) / 2.0).clamp(-3.0, 3.0) * 1.5;
            self.draw_series(canvas, &plot, series, shift);
            at += f64::from(u8::from(has_whiskers(&series)));
        }
        for series in &self.series {
            let Drawn::Lettered(letter) = series.drawn else { continue };
            let place = |p: &Point| (plot.x.at(p.x), plot.y.at(p.y));
            series.points.iter().for_each(|p| write_beside(canvas, letter, place(p), &mut taken));
        }
    }

    fn frame(&self, canvas: &mut Canvas, plot: &Plot, inset: f64, area: Area) {
        let (left, right, bottom) = (plot.x.from - inset, plot.x.to + inset, plot.y.from);
        canvas.open("axes");
        let levels = ((plot.y.from - plot.y.to) / 30.0) as usize;
        for (value, label) in self.y.ticks(&plot.y.range, levels.clamp(2, 6)) {
            let y = plot.y.at(value);
            canvas.line("grid", (left, y), (right, y));
            canvas.text("tick", Anchor::End, (left - 6.0, y + 4.0), &label);
        }
        let about = if area.roomy { 9 } else { 5 };
        let ticks = self.x.ticks(&plot.x.range, about);
        for (value, _) in &ticks {
            let x = plot.x.at(*value);
            canvas.line("notch", (x, bottom), (x, bottom + 4.0));
        }
        for (value, label) in apart(ticks, |value| plot.x.at(value)) {
            let most = area.width - width_of(&label) / 2.0;
            canvas.text("tick", Anchor::Middle, (plot.x.at(value).min(most), bottom + 17.0), &label);
        }
        canvas.line("rule", (left, bottom), (right, bottom));
        canvas.text("axis", Anchor::Start, (0.0, plot.edge + 13.0), &self.y.label);
        canvas.text("axis", Anchor::End, (right, bottom + 36.0), &self.x.label);
        canvas.close();
    }

    fn bands(&self, canvas: &mut Canvas, plot: &Plot) {
        for band in &self.bands {
            let (from, to) = (plot.x.at(band.from.min(band.to)), plot.x.at(band.from.max(band.to)));
            let wide = (to - from).max(3.0);
            let left = (from + to - wide) / 2.0;
            let (bottom, top) = (plot.y.from, plot.y.to);
            canvas.rect("cliff", (left, top), (wide, bottom - top), "", &band.label);
            let half = width_of(&band.label) / 2.0;
            let middle =
                ((from + to) / 2.0).clamp(plot.x.from + half, (plot.x.to - half).max(plot.x.from + half));
            canvas.text("cliff", Anchor::Middle, (middle, top - 6.0), &band.label);
        }
    }

    fn draw_series(&self, canvas: &mut Canvas, plot: &Plot, series: &Series, shift: f64) {
        canvas.open(&series.style.class());
        let at = |p: &Point| (plot.x.at(p.x), plot.y.at(p.y));
        let path: Vec<String> = series
            .points
            .iter()
            .enumerate()
            .map(|(i, p)| format!("{}{} {}", if i == 0 { 'M' } else { 'L' }, n(at(p).0), n(at(p).1)))
            .collect();
        if matches!(series.drawn, Drawn::Joined | Drawn::Line) {
            canvas.path("line", &path.concat());
        }
        for p in series.points.iter().filter(|_| series.drawn != Drawn::Line) {
            if let Some((low, high)) = p.interval {
                let (x, low, high) = (at(p).0 + shift, plot.y.at(low), plot.y.at(high));
                let d = format!("M{} {}h6m-3 0V{}m-3 0h6", n(x - 3.0), n(low), n(high));
                canvas.path("whisker", &d);
            }
            let mut tip = format!("{}, {}: {}", series.label, self.x.word(p.x), self.value(p));
            if let Some((low, high)) = p.interval {
                tip += &format!(" [{}, {}]", self.y.word(low), self.y.word(high));
            }
            let style = Style { hollow: p.hollow, ..series.style };
            canvas.mark(style, at(p).0, at(p).1, &tip);
        }
        canvas.close();
    }

    /// The value in words. They also say why the point is hollow.
    fn value(&self, p: &Point) -> String {
        let word = self.y.word(p.y);
        if p.hollow { format!("{word} ({})", self.hollow) } else { word }
    }

    pub(super) fn data(&self) -> Data {
        let mut columns = vec!["series".to_owned(), self.x.label.clone(), self.y.label.clone()];
        let intervals = self.points().any(|p| p.interval.is_some());
        if intervals {
            columns.push(self.interval.clone());
        }
        let rows = self.series.iter().flat_map(|series| {
            series.points.iter().map(move |p| {
                let mut row = vec![series.label.clone(), self.x.word(p.x), self.value(p)];
                if intervals {
                    row.push(p.interval.map_or_else(
                        || "-".to_owned(),
                        |(low, high)| format!("{} to {}", self.y.word(low), self.y.word(high)),
                    ));
                }
                row
            })
        });
        Data { columns, rows: rows.collect() }
    }
}

/// Writes a letter beside its mark, on a side where it is over no other letter, or on the last side.
fn write_beside(canvas: &mut Canvas, letter: char, (x, y): (f64, f64), taken: &mut Vec<(f64, f64)>) {
    let sides = [(x, y - 8.0), (x + 11.0, y + 4.0), (x - 11.0, y + 4.0), (x, y + 17.0)];
    let is_free =
        |(x, y): &&(f64, f64)| taken.iter().all(|at| (at.0 - x).abs() > 10.0 || (at.1 - y).abs() > 12.0);
    let at = *sides.iter().find(is_free).unwrap_or(&sides[3]);
    canvas.text("label", Anchor::Middle, at, &letter.to_string());
    taken.push(at);
}
