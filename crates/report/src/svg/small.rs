//! Small line charts beside each other with one y axis, to compare what different knobs do.

use super::canvas::Canvas;
use super::lines::{Area, Lines};
use super::{Data, Width};

/// Charts with the same y axis. The label of each one's y axis names what is special about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Small {
    /// What the x axes together are, for the table of the data.
    pub(crate) x: String,
    /// What the common y axis is.
    pub(crate) y: String,
    pub(crate) charts: Vec<Lines>,
}

const HEIGHT: f64 = 150.0;

impl Small {
    /// Draws the charts row by row and returns their height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let columns = if width == Width::Wide { 3 } else { 2 };
        let wide = width.units() / columns as f64;
        let area = Area { width: wide, edge: 0.0, height: HEIGHT - 10.0, roomy: false };
        for (i, chart) in self.charts.iter().enumerate() {
            let y = chart.y.range(self.charts.iter().flat_map(Lines::ys));
            canvas.open_at(wide * (i % columns) as f64, HEIGHT * (i / columns) as f64);
            chart.draw_at(canvas, area, chart.x.range(chart.xs()), y);
            canvas.close();
        }
        HEIGHT * self.charts.len().div_ceil(columns).max(1) as f64
    }

    /// All rows of all charts.
    pub(super) fn data(&self) -> Data {
        let columns = vec!["series".to_owned(), self.x.clone(), self.y.clone()];
        Data { columns, rows: self.charts.iter().flat_map(|chart| chart.data().rows).collect() }
    }
}
