//! Figures as inline SVG: pure functions from plain numbers to markup.
//!
//! Knows units and pixels; nothing of findings. Hand-made rather than by a plotting crate: each figure needs a title, a
//! description and tooltips for those who do not see it, colours that follow the page's light or dark scheme, and a
//! second drawing for a narrow screen; and the kinds of figure here are less code than wrapping one that has none
//! of this.

mod axis;
mod canvas;
mod heat;
mod lines;
mod panels;
mod rows;

pub(crate) use axis::{Axis, Scale, Ticks};
pub(crate) use heat::{Cell, Heat};
pub(crate) use lines::{Band, Lines, Point, Series};
pub(crate) use panels::Panels;
pub(crate) use rows::{Row, Rows};

use canvas::Canvas;

/// How one series looks: its colour says which system, its shape and dash which point of the knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Position in the palette; None: the reference, which is grey everywhere.
    pub(crate) hue: Option<usize>,
    /// Position among the shapes of marks and the dashes of lines.
    pub(crate) shape: usize,
    /// Whether marks are outlines only: what is shown and not ranked.
    pub(crate) hollow: bool,
}

/// What a hollow mark means.
pub(crate) const NOT_RANKED: &str = "not ranked";

/// Colours of the palette: Okabe and Ito's without black and yellow, which do not show on both schemes.
pub(crate) const HUES: usize = 6;

/// Shapes that can be told apart at this size.
pub(crate) const SHAPES: usize = 6;

impl Style {
    /// The page's style sheet gives these classes their colours.
    fn class(self) -> String {
        match self.hue {
            None => format!("reference d{}", self.shape % SHAPES),
            Some(hue) => format!("h{} d{}", hue % HUES, self.shape % SHAPES),
        }
    }

    /// A sample of it for a legend; says nothing to a screen reader, because the words stand beside it.
    pub(crate) fn swatch(self) -> String {
        let mut canvas = Canvas::default();
        canvas.open(&self.class());
        canvas.path("line", "M1 6H23");
        canvas.mark(self, 12.0, 6.0, "");
        canvas.close();
        format!("<svg class=\"swatch\" viewBox=\"0 0 24 12\" aria-hidden=\"true\">{}</svg>", canvas.body)
    }
}

/// A lowest and a highest value that belong to a value.
pub(crate) type Interval = (f64, f64);

/// What a figure shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    /// Values along an axis.
    Lines(Lines),
    /// Values of several units along one axis.
    Panels(Panels),
    /// Values by two knobs.
    Heat(Heat),
    /// Values one below the other.
    Rows(Rows),
}

/// How wide a drawing is, in its own units, which are a screen's pixels at its natural size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Across a page.
    Wide,
    /// Beside another one.
    Half,
    /// For phones: the same figure, laid out anew, so that its words stay readable.
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
            Self::Heat(heat) => heat.draw(&mut canvas, width),
            Self::Rows(rows) => rows.draw(&mut canvas, width),
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

    /// Everything that is drawn, and nothing else.
    pub(crate) fn data(&self) -> Data {
        match self {
            Self::Lines(lines) => lines.data(),
            Self::Panels(panels) => panels.data(),
            Self::Heat(heat) => heat.data(),
            Self::Rows(rows) => rows.data(),
        }
    }
}

/// Text between tags or in a quoted attribute: markup is harmless, control characters show as pictures, and what would
/// turn the direction of the text around it does not pass.
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
            // U+2400 and on: the pictures of the control characters.
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            // Not characters in XML or HTML.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
