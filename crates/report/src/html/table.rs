//! A table as HTML. Every number has its raw value as an attribute, for sorting.

use std::fmt::Write;

use lab::findings::{Cell, Column};

use super::figures::Palette;
use super::sentence;
use crate::svg::{Style, escape};
use crate::words::Captioned;
use crate::{cell, show};

/// The fewest rows of a table that can be filtered.
const MANY: usize = 6;

/// `id` is unique on the page.
pub(super) fn write(out: &mut String, id: &str, Captioned { caption, table }: &Captioned, palette: &Palette) {
    let _ = writeln!(out, "<p class=\"about\" id=\"{id}-about\">{}</p>", sentence(&caption.about));
    let filter = if table.rows.len() >= MANY { " data-filter" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}-about\">\
         <table class=\"findings\" id=\"{id}\" data-sort{filter} aria-describedby=\"{id}-about\">\n<thead><tr>"
    );
    for column in &table.columns {
        let class = if column.unit.is_some() { " class=\"number\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str(if row.block { "<tr class=\"block\">" } else { "<tr>" });
        for (i, (column, value)) in table.columns.iter().zip(&row.cells).enumerate() {
            write_cell(out, (i, table.keys), column, value, palette);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    for note in &caption.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", sentence(note));
    }
}

fn write_cell(
    out: &mut String,
    (index, keys): (usize, usize),
    column: &Column,
    value: &Cell,
    palette: &Palette,
) {
    let (tag, scope) = if index == 0 && keys > 0 { ("th", " scope=\"row\"") } else { ("td", "") };
    let class = if column.unit.is_some() { " class=\"number\"" } else { "" };
    let _ = match value {
        Cell::Number(number) => {
            let shown = column.unit.map_or_else(|| number.to_string(), |unit| show(*number, unit));
            write!(out, "<{tag}{scope}{class} data-v=\"{number}\">{}</{tag}>", escape(&shown))
        }
        Cell::AtLeast { at_least } => {
            write!(out, "<{tag}{scope}{class} data-v=\"{at_least}\">{}</{tag}>", escape(&cell(column, value)))
        }
        Cell::Text(word) if index < keys && palette.knows(word) => {
            let dot = dot(palette.style(word, 0));
            write!(out, "<{tag}{scope}{class}>{dot}{}</{tag}>", escape(word))
        }
        other => write!(out, "<{tag}{scope}{class}>{}</{tag}>", escape(&cell(column, other))),
    };
}

/// Marks a system's name with its colour in the figures.
fn dot(style: Style) -> String {
    let class = style.hue.map_or_else(|| "reference".to_owned(), |hue| format!("h{hue}"));
    format!("<span class=\"dot {class}\" aria-hidden=\"true\"></span>")
}
