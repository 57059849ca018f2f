//! A figure on the page: its caption, its legend, its drawing for wide and narrow screens, and its data as a table.

use std::fmt::Write;

use super::sentence;
use crate::svg::{Drawing, Style, Width, escape};

/// A figure with its caption and legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// One line that says what it shows. It is also the text alternative.
    pub(crate) title: String,
    /// How to read it. It is also the description for those who do not see it.
    pub(crate) about: String,
    /// The series and their styles. Empty if the figure names its rows.
    pub(crate) legend: Vec<(String, Style)>,
    pub(crate) drawing: Drawing,
    /// Whether it takes the whole width of the page.
    pub(crate) main: bool,
}

impl Figure {
    /// `id` is unique on the page.
    pub(super) fn write(&self, out: &mut String, id: &str) {
        let class = if self.main { "chart main" } else { "chart" };
        let _ = writeln!(out, "<figure class=\"{class}\" id=\"{id}\">");
        let _ = writeln!(out, "<figcaption>{}</figcaption>", sentence(&self.title));
        if self.legend.len() > 1 {
            out.push_str("<ul class=\"legend\">");
            for (label, style) in &self.legend {
                let _ = write!(out, "<li>{}{}</li>", style.swatch(), escape(label));
            }
            out.push_str("</ul>\n");
        }
        let wide = if self.main { Width::Wide } else { Width::Half };
        for width in [wide, Width::Narrow] {
            let _ = writeln!(out, "{}", self.drawing.svg(width, id, &self.title, &self.about));
        }
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", sentence(&self.about));
        let data = self.drawing.data();
        out.push_str("<details class=\"data\"><summary>The data of this figure</summary>\n");
        out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Data of the figure\"><table class=\"plain\">\n<thead><tr>");
        for column in &data.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &data.rows {
            out.push_str("<tr>");
            row.iter().for_each(|cell| {
                let _ = write!(out, "<td>{}</td>", escape(cell));
            });
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div></details>\n</figure>\n");
    }
}
