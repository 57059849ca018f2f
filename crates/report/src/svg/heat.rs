//! A grid of values by two knobs. Cells go from dark (bad) to bright (good), and the best ranked cell is framed.

use lab::findings::Unit;

use super::canvas::{Anchor, Canvas, fitted, width_of};
use super::{Data, Width};
use crate::number::show;

/// Six colours of the map Cividis (Nuñez, Anderton and Renslow, PLoS ONE 13, 2018). Their brightness grows in even
/// steps, and they look alike to people who are colour-blind.
const STOPS: [[f64; 3]; 6] = [
    [0.0, 32.0, 77.0],
    [49.0, 68.0, 107.0],
    [102.0, 105.0, 112.0],
    [149.0, 143.0, 120.0],
    [203.0, 186.0, 105.0],
    [255.0, 233.0, 69.0],
];

/// Brightness follows ratios instead of differences if the ratio of the largest to the smallest value is at least this.
const WIDE: f64 = 8.0;

/// A value of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) value: f64,
    /// Whether it is ranked. Otherwise it has a dotted edge ([`Heat::hollow`]), and cannot be the best.
    pub(crate) ranked: bool,
}

/// A grid of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heat {
    /// The knob of the columns, and its values.
    pub(crate) across: (String, Vec<String>),
    /// The knob of the rows, and its values.
    pub(crate) down: (String, Vec<String>),
    /// The cells, row by row. None if there is no figure.
    pub(crate) cells: Vec<Vec<Option<Cell>>>,
    pub(crate) unit: Unit,
    pub(crate) more_is_better: bool,
    /// The smallest and the largest value of all grids that are compared.
    pub(crate) range: (f64, f64),
    /// The meaning of a dotted edge.
    pub(crate) hollow: &'static str,
}

impl Heat {
    /// 0 for the worst value, 1 for the best.
    fn goodness(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = if low > 0.0 && high / low >= WIDE {
            (value / low).ln() / (high / low).ln()
        } else {
            (value - low) / (high - low)
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 };
        if self.more_is_better { share } else { 1.0 - share }
    }

    fn best(&self) -> Option<f64> {
        let ranked = self.cells.iter().flatten().flatten().filter(|cell| cell.ranked);
        let values = ranked.map(|cell| cell.value).filter(|v| v.is_finite());
        if self.more_is_better { values.max_by(f64::total_cmp) } else { values.min_by(f64::total_cmp) }
    }

    /// Draws the grid and returns its height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let gutter = self.down.1.iter().map(|word| width_of(word)).fold(0.0, f64::max) + 10.0;
        let left = gutter.clamp(30.0, width.units() / 4.0);
        let columns = self.across.1.len().max(1) as f64;
        let wide = ((width.units() - left - 2.0) / columns).min(96.0);
        let high = if self.down.1.len() > 24 { 16.0 } else { 30.0 };
        let top = 40.0;
        canvas.open("axes");
        let names = format!("{} \u{2193}   {} \u{2192}", self.down.0, self.across.0);
        canvas.text("axis", Anchor::Start, (0.0, 13.0), &fitted(&names, width.units()));
        let mut free = 0.0;
        for (i, word) in self.across.1.iter().enumerate() {
            let middle = left + wide * (i as f64 + 0.5);
            let half = width_of(word) / 2.0;
            // Leave out labels that would overlap.
            if middle - half >= free {
                canvas.text("tick", Anchor::Middle, (middle, 33.0), word);
                free = middle + half + 5.0;
            }
        }
        for (i, word) in self.down.1.iter().enumerate() {
            let y = top + high * (i as f64 + 0.5) + 4.0;
            canvas.text("tick", Anchor::End, (left - 6.0, y), &fitted(word, left - 6.0));
        }
        canvas.close();
        for (r, row) in self.cells.iter().enumerate() {
            for (c, cell) in row.iter().enumerate() {
                let at = (left + wide * c as f64, top + high * r as f64);
                self.cell(canvas, (r, c), *cell, at, (wide, high));
            }
        }
        top + high * self.down.1.len() as f64 + 4.0
    }

    fn cell(
        &self,
        canvas: &mut Canvas,
        (r, c): (usize, usize),
        cell: Option<Cell>,
        at: (f64, f64),
        size: (f64, f64),
    ) {
        let place = format!("{} {}, {} {}", self.down.0, self.down.1[r], self.across.0, self.across.1[c]);
        let inner = ((at.0 + 1.0, at.1 + 1.0), (size.0 - 2.0, size.1 - 2.0));
        let Some(cell) = cell.filter(|cell| cell.value.is_finite()) else {
            canvas.rect("cell none", inner.0, inner.1, "", &format!("{place}: not measured"));
            return;
        };
        let colour = colour(self.goodness(cell.value));
        let shown = show(cell.value, self.unit);
        let class = match cell.ranked {
            false => "cell hollow",
            true if self.best() == Some(cell.value) => "cell best",
            true => "cell",
        };
        let fill = format!("fill:rgb({} {} {})", colour[0], colour[1], colour[2]);
        canvas.rect(class, inner.0, inner.1, &fill, &format!("{place}: {}", self.words(cell)));
        if width_of(&shown) < size.0 - 4.0 && size.1 >= 16.0 {
            let ink = if brightness(colour) > 0.4 { "on-bright" } else { "on-dark" };
            let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 4.0);
            canvas.text(ink, Anchor::Middle, middle, &shown);
        }
    }

    /// The value in words. They also say why its edge is dotted.
    fn words(&self, cell: Cell) -> String {
        let shown = show(cell.value, self.unit);
        if cell.ranked { shown } else { format!("{shown} ({})", self.hollow) }
    }

    pub(super) fn data(&self) -> Data {
        let mut columns = vec![format!("{} \\ {}", self.down.0, self.across.0)];
        columns.extend(self.across.1.iter().cloned());
        let rows = self.cells.iter().zip(&self.down.1).map(|(row, name)| {
            let cells = row.iter().map(|cell| cell.map_or_else(|| "-".to_owned(), |cell| self.words(cell)));
            std::iter::once(name.clone()).chain(cells).collect()
        });
        Data { columns, rows: rows.collect() }
    }
}

fn colour(share: f64) -> [u8; 3] {
    let place = share * (STOPS.len() - 1) as f64;
    let at = (place.floor() as usize).min(STOPS.len() - 2);
    let part = place - at as f64;
    [0, 1, 2].map(|i| (STOPS[at][i] * (1.0 - part) + STOPS[at + 1][i] * part).round() as u8)
}

/// The approximate relative luminance (WCAG 2), exact enough to choose between black and white text.
pub(super) fn brightness(colour: [u8; 3]) -> f64 {
    let linear = colour.map(|c| (f64::from(c) / 255.0).powf(2.2));
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}
