//! Figures as inline SVG: pure functions from plain numbers to markup.
//!
//! This module knows units and pixels, but no findings. It does not use a plotting crate, because each figure needs a
//! title, a description and tooltips for those who do not see it, colours that follow the page's light or dark scheme,
//! and a second drawing for narrow screens. Adding these to a plotting crate would take more code.

mod axis;
mod canvas;
mod flame;
mod heat;
mod lines;
mod panels;
mod rows;
mod small;

pub(crate) use axis::{Axis, Scale, Ticks};
pub(crate) use flame::{Block, Flame};
pub(crate) use heat::{Cell, Heat};
pub(crate) use lines::{Band, Drawn, Lines, Point, Series};
pub(crate) use panels::Panels;
pub(crate) use rows::{Row, Rows};
pub(crate) use small::Small;

use canvas::Canvas;

/// The style of a series. The colour shows the system, the shape and the dash show the point of its knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// The position in the palette. None for the reference, which is grey.
    pub(crate) hue: Option<usize>,
    /// The position among the shapes of marks and the dashes of lines.
    pub(crate) shape: usize,
    /// Whether marks are outlines: mostly, because they are not ranked.
    pub(crate) hollow: bool,
}

/// The meaning of a hollow mark.
pub(crate) const NOT_RANKED: &str = "not ranked";

/// The number of colours: Okabe and Ito's palette without black and yellow, which are not visible in both schemes.
pub(crate) const HUES: usize = 6;

/// The number of shapes that can be distinguished at this size.
pub(crate) const SHAPES: usize = 6;

impl Style {
    /// The page's style sheet gives these classes their colours.
    fn class(self) -> String {
        match self.hue {
            None => format!("reference d{}", self.shape % SHAPES),
            Some(hue) => format!("h{} d{}", hue % HUES, self.shape % SHAPES),
        }
    }

    /// A sample for a legend. Screen readers ignore it, because the name follows.
    pub(crate) fn swatch(self) -> String {
        let mut canvas = Canvas::default();
        canvas.open(&self.class());
        canvas.path("line", "M1 6H23");
        canvas.mark(self, 12.0, 6.0, "");
        canvas.close();
        format!("<svg class=\"swatch\" viewBox=\"0 0 24 12\" aria-hidden=\"true\">{}</svg>", canvas.body)
    }
}

/// The lower and the upper end of a value's interval.
pub(crate) type Interval = (f64, f64);

/// The kinds of figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    /// Values along an axis.
    Lines(Lines),
    /// Values of several units along one axis.
    Panels(Panels),
    /// Small charts beside each other.
    Small(Small),
    /// Values by two knobs.
    Heat(Heat),
    /// Values one below the other.
    Rows(Rows),
    /// Boxes under their callers.
    Flame(Flame),
}

/// The width of a drawing, in its units. They are pixels at its natural size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// The whole width of a page.
    Wide,
    /// Half the width, with another drawing next to it.
    Half,
    /// The width of a phone. The figure is laid out again, so that its text stays readable.
    Narrow,
}

impl Width {
    fn units(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Half => 470.0,
            Self::Narrow => 328.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Half => "half",
            Self::Narrow => "narrow",
        }
    }
}

/// A figure's data, for those who prefer a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Drawing {
    /// The figure as an SVG element, named by `title` and described by `description`; `id` is unique on its page.
    pub(crate) fn svg(&self, width: Width, id: &str, title: &str, description: &str) -> String {
        let mut canvas = Canvas::default();
        let height = match self {
            Self::Lines(lines) => lines.draw(&mut canvas, width),
            Self::Panels(panels) => panels.draw(&mut canvas, width),
            Self::Small(small) => small.draw(&mut canvas, width),
            Self::Heat(heat) => heat.draw(&mut canvas, width),
            Self::Rows(rows) => rows.draw(&mut canvas, width),
            Self::Flame(flame) => flame.draw(&mut canvas, width),
        };
        let (class, wide) = (width.class(), width.units());
        let id = format!("{id}-{class}");
        format!(
            "<svg class=\"figure {class}\" viewBox=\"0 0 {wide} {height:.0}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(title),
            escape(description),
            canvas.body
        )
    }

    /// The data that is drawn, as a table.
    pub(crate) fn data(&self) -> Data {
        match self {
            Self::Lines(lines) => lines.data(),
            Self::Panels(panels) => panels.data(),
            Self::Small(small) => small.data(),
            Self::Heat(heat) => heat.data(),
            Self::Rows(rows) => rows.data(),
            Self::Flame(flame) => flame.data(),
        }
    }
}

/// Escapes text for use between tags or in a quoted attribute. Control characters are replaced by their pictures, and
/// others that are hidden by U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // The pictures of the control characters begin at U+2400.
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            c if printable::is_hidden(c) => out.push('\u{fffd}'),
            // These are not characters in XML or HTML.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
