//! Line charts below each other with one x axis, for quantities of different units over the same time.

use super::canvas::Canvas;
use super::lines::{Area, Lines};
use super::{Data, Width};

/// Two or more charts with the same x axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panels(pub(crate) Vec<Lines>);

/// The height of a panel. It is lower than a single chart, so that two fit on a screen.
const HEIGHT: f64 = 210.0;

impl Panels {
    /// Draws the charts and returns their height.
    pub(super) fn draw(&self, canvas: &mut Canvas, width: Width) -> f64 {
        let Some(last) = self.0.last() else { return HEIGHT };
        let x = last.x.range(self.0.iter().flat_map(Lines::xs));
        for (i, lines) in self.0.iter().enumerate() {
            let edge = HEIGHT * i as f64;
            let area = Area { width: width.units(), edge, height: HEIGHT, roomy: width == Width::Wide };
            lines.draw_at(canvas, area, x, lines.y.range(lines.ys()));
        }
        HEIGHT * self.0.len() as f64
    }

    /// A column for each panel's quantity.
    pub(super) fn data(&self) -> Data {
        let mut columns = vec!["series".to_owned()];
        columns.extend(self.0.last().map(|lines| lines.x.label.clone()));
        columns.extend(self.0.iter().map(|lines| lines.y.label.clone()));
        let rows = self.0.iter().enumerate().flat_map(|(at, lines)| {
            lines.data().rows.into_iter().map(move |row| {
                let mut cells = row[..2].to_vec();
                cells
                    .extend((0..self.0.len()).map(|i| if i == at { row[2].clone() } else { "-".to_owned() }));
                cells
            })
        });
        Data { columns, rows: rows.collect() }
    }
}
