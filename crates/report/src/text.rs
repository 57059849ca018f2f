//! Findings for a terminal: aligned tables, folded where they are wider than it.

use std::fmt::Write;

use lab::findings::{ExperimentFindings, Findings, Row, Table};

use crate::{cell, printable};

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";

/// All experiments, in lines of at most `width` columns as far as words and keys allow; `colour` adds ANSI colours.
pub fn text(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page { width: width.max(40), colour };
    let sections = findings.experiments.iter().map(|e| page.experiment(e));
    sections.collect::<Vec<_>>().join("\n")
}

struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn experiment(&self, e: &ExperimentFindings) -> String {
        let mut out = String::new();
        self.paragraph(&mut out, BOLD, "", &format!("{}: {}", e.name, e.title));
        if !e.about.is_empty() {
            self.paragraph(&mut out, DIM, "", &e.about);
        }
        if !e.headlines.is_empty() {
            out.push('\n');
        }
        for (i, sentence) in e.headlines.iter().enumerate() {
            self.paragraph(&mut out, if i == 0 { BOLD } else { "" }, "  ", sentence);
        }
        for table in &e.tables {
            out.push('\n');
            self.table(&mut out, table);
        }
        for warning in &e.warnings {
            let places = if warning.scenarios.is_empty() {
                String::new()
            } else {
                format!(": {}", warning.scenarios.join("; "))
            };
            let message = format!("{}{places}.", warning.message);
            self.paragraph(
                &mut out,
                YELLOW,
                "  ",
                &format!("warning: {message} Remedy: {}.", warning.remedy),
            );
        }
        for f in &e.failures {
            let what = format!("failed: {} ({} trials) at {}: {}", f.scenario, f.trials, f.stage, f.reason);
            self.paragraph(&mut out, RED, "  ", &what);
            for line in f.output.lines() {
                let _ = writeln!(out, "    | {}", printable(line));
            }
        }
        for excluded in &e.excluded {
            self.paragraph(&mut out, "", "  ", &format!("not run: {}: {}", excluded.system, excluded.reason));
        }
        out
    }

    /// Words wrapped at the width; further lines are indented by two more.
    fn paragraph(&self, out: &mut String, style: &str, indent: &str, text: &str) {
        let mut line = indent.to_owned();
        let mut lines = Vec::new();
        for word in printable(text).split_whitespace() {
            let empty = line.trim().is_empty();
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                lines.push(std::mem::replace(&mut line, format!("{indent}  ")));
            } else if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
        for line in lines {
            let line = if style.is_empty() { line } else { self.paint(style, &line) };
            let _ = writeln!(out, "{line}");
        }
    }

    fn table(&self, out: &mut String, table: &Table) {
        self.paragraph(out, DIM, "", &table.about);
        let rows: Vec<Vec<String>> = table.rows.iter().map(|row| shown(table, row)).collect();
        let heads: Vec<String> = table.columns.iter().map(|column| printable(&column.name)).collect();
        let width =
            |at: usize| rows.iter().map(|row| &row[at]).chain([&heads[at]]).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..heads.len()).map(|at| width(at).unwrap_or(0)).collect();
        for (i, columns) in self.fold(table.keys, &widths).into_iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            let line = |cells: &[String]| {
                let cells = columns.iter().map(|&at| {
                    let pad = " ".repeat(widths[at] - cells[at].chars().count());
                    // Numbers to the right, words to the left.
                    match table.columns[at].unit {
                        Some(_) => format!("{pad}{}", cells[at]),
                        None => format!("{}{pad}", cells[at]),
                    }
                });
                cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
            };
            let _ = writeln!(out, "{}", self.paint(BOLD, &line(&heads)));
            for (row, cells) in table.rows.iter().zip(&rows) {
                if row.block {
                    out.push('\n');
                }
                let _ = writeln!(out, "{}", line(cells));
            }
        }
        for note in &table.notes {
            self.paragraph(out, DIM, "  ", note);
        }
    }

    /// Which columns stand side by side: all, or as many as fit, the keys repeated before each part.
    fn fold(&self, keys: usize, widths: &[usize]) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = (0..keys.min(widths.len())).collect();
        let total = |columns: &[usize]| columns.iter().map(|&at| widths[at] + 2).sum::<usize>();
        let mut parts = vec![keys.clone()];
        for (at, wide) in widths.iter().enumerate().skip(keys.len()) {
            let part = parts
                .last_mut()
                .filter(|part| part.len() == keys.len() || total(part) + wide <= self.width);
            match part {
                Some(part) => part.push(at),
                None => parts.push(keys.iter().copied().chain([at]).collect()),
            }
        }
        parts
    }
}

fn shown(table: &Table, row: &Row) -> Vec<String> {
    table.columns.iter().zip(&row.cells).map(|(column, value)| cell(column, value)).collect()
}
