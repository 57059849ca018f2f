//! Line charts: sweeps of a knob, percentiles, the course of a window.

use super::axis::{Axis, Range, Span, apart};
use super::canvas::{Anchor, Canvas, n, width_of};
use super::{Data, Interval, NOT_RANKED, Style, Width};

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<Interval>,
    /// Whether it is drawn as an outline, because it is not ranked.
    pub(crate) hollow: bool,
}

impl Point {
    /// A ranked point without an interval.
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, hollow: false }
    }
}

/// Connected points, ascending in x.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) style: Style,
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

    /// Draws the chart and returns its height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let height = if width == Width::Wide { 340.0 } else { 270.0 };
        self.draw_at(canvas, width, (0.0, height), self.x.range(self.xs()));
        height
    }

    /// Draws the chart below this edge, with this height and over these values of x.
    pub(super) fn draw_at(&self, canvas: &mut Canvas, width: Width, (edge, height): (f64, f64), x: Range) {
        let inset = if width == Width::Wide { 18.0 } else { 10.0 };
        let marks = if self.bands.is_empty() { 0.0 } else { 16.0 };
        let ends = |p: &Point| [p.y, p.interval.map_or(p.y, |i| i.0), p.interval.map_or(p.y, |i| i.1)];
        let y = self.y.range(self.points().flat_map(ends));
        let plot = Plot {
            edge,
            x: Span { range: x, from: 58.0 + inset, to: width.units() - 10.0 - inset },
            y: Span { range: y, from: edge + height - 44.0, to: edge + 28.0 + marks },
        };
        self.frame(canvas, &plot, inset, width);
        self.bands(canvas, &plot);
        for (i, series) in self.series.iter().enumerate() {
            // Shift the whiskers of different series at the same x, so that they do not overlap.
            let shift = (i as f64 - (self.series.len() - 1) as f64 / 2.0).clamp(-3.0, 3.0) * 1.5;
            self.draw_series(canvas, &plot, series, shift);
        }
    }

    fn frame(&self, canvas: &mut Canvas, plot: &Plot, inset: f64, width: Width) {
        let (left, right, bottom) = (plot.x.from - inset, plot.x.to + inset, plot.y.from);
        canvas.open("axes");
        for (value, label) in self.y.ticks(&plot.y.range, 6) {
            let y = plot.y.at(value);
            canvas.line("grid", (left, y), (right, y));
            canvas.text("tick", Anchor::End, (left - 6.0, y + 4.0), &label);
        }
        let about = if width == Width::Wide { 9 } else { 5 };
        let ticks = self.x.ticks(&plot.x.range, about);
        for (value, _) in &ticks {
            let x = plot.x.at(*value);
            canvas.line("notch", (x, bottom), (x, bottom + 4.0));
        }
        for (value, label) in apart(ticks, |value| plot.x.at(value)) {
            let most = width.units() - width_of(&label) / 2.0;
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
        canvas.path("line", &path.concat());
        for p in &series.points {
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

    /// The value in words. They also say whether the point is not ranked.
    fn value(&self, p: &Point) -> String {
        let word = self.y.word(p.y);
        if p.hollow { format!("{word} ({NOT_RANKED})") } else { word }
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
