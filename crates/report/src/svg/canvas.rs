//! Appends SVG elements to a string, with numbers to a tenth of a pixel and escaped text.

use std::fmt::Write;

use super::{SHAPES, Style, escape};

/// The approximate width of a character at 12 pixels. Fonts differ, so this is an upper estimate.
const CHARACTER: f64 = 7.4;

/// The position of a text's anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Default)]
pub(super) struct Canvas {
    pub(super) body: String,
}

impl Canvas {
    pub(super) fn open(&mut self, class: &str) {
        let _ = write!(self.body, "<g class=\"{class}\">");
    }

    /// Opens a group whose origin is moved.
    pub(super) fn open_at(&mut self, x: f64, y: f64) {
        let _ = write!(self.body, "<g transform=\"translate({} {})\">", n(x), n(y));
    }

    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &format!("M{} {}L{} {}", n(from.0), n(from.1), n(to.0), n(to.1)));
    }

    /// Draws a rectangle. `style` may set its colour, and `tip` is its tooltip.
    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), style: &str, tip: &str) {
        let style = if style.is_empty() { String::new() } else { format!(" style=\"{style}\"") };
        let (x, y, w, h) = (n(at.0), n(at.1), n(size.0.max(0.0)), n(size.1.max(0.0)));
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"{style}>{}</rect>",
            tooltip(tip)
        );
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (n(at.0), n(at.1));
        let _ =
            write!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}</text>", escape(text));
    }

    /// Draws the mark of a style, centred.
    pub(super) fn mark(&mut self, style: Style, x: f64, y: f64, tip: &str) {
        let d = match style.shape % SHAPES {
            0 => format!("M{} {}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", n(x - 4.0), n(y)),
            1 => format!("M{} {}h7v7h-7z", n(x - 3.5), n(y - 3.5)),
            2 => format!("M{} {}l4.5 8h-9z", n(x), n(y - 5.0)),
            3 => format!("M{} {}l5 5l-5 5l-5-5z", n(x), n(y - 5.0)),
            4 => format!("M{} {}h9l-4.5 8z", n(x - 4.5), n(y - 3.0)),
            _ => format!("M{} {}h3v-3h3v3h3v3h-3v3h-3v-3h-3z", n(x - 4.5), n(y - 1.5)),
        };
        let class = if style.hollow { "mark hollow" } else { "mark" };
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\">{}</path>", tooltip(tip));
    }
}

fn tooltip(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

/// Formats a coordinate.
pub(super) fn n(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// The approximate width of a text.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Cuts a text that does not fit, with an ellipsis.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let room = (width / CHARACTER) as usize;
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}
