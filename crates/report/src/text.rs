//! Findings for a terminal: aligned tables, which are folded if they are wider than the terminal.

use std::fmt::Write;

use lab::findings::{FailedTrials, FigureView, Findings, Row, Table, Warning};

use crate::number::several;
use crate::parts::{ORDER, Part};
use crate::words::tuned::lines_to_paste;
use crate::words::{
    Advice, Asked, Captioned, ComparedFunctions, advice, beside, functions, generators, headlines, left_out,
    notes, outlier, tables,
};
use crate::{cell, printable};

pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
pub(crate) const RED: &str = "31";
pub(crate) const GREEN: &str = "32";
pub(crate) const YELLOW: &str = "33";

/// So many functions of a comparison have a row. The formats for other tools have all.
const MOST_FUNCTIONS: usize = 20;

/// What is said of an experiment without functions.
const NO_FUNCTIONS: &str = "no functions: no comparison is decided, or the scenarios have no profiles, which `try` and `run --full` make of servers \
                            where the kernel allows it";

/// All experiments, in lines of at most `width` columns as far as words and keys allow. `colour` adds ANSI colours.
pub fn text(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let sections = findings.views().map(|e| page.experiment(&e));
    sections.collect::<Vec<_>>().join("\n")
}

/// The functions in which two arms differ.
#[cfg(test)]
pub(crate) fn functions_table(compared: &ComparedFunctions<'_>, width: usize, colour: bool) -> String {
    let mut out = String::new();
    Page::new(width, colour).table(&mut out, &functions(compared));
    out
}

/// The functions in which the CPU time of scenarios differs, a table for each comparison. See [`text`].
pub fn functions_text(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    for experiment in &findings.experiments {
        let Some(e) = experiment.views().next() else { continue };
        page.paragraph(&mut out, BOLD, "", &format!("{}: {}", e.name, e.title));
        let unit = e.workload.about().unit.name;
        let name = |at: usize| e.estimates.get(at).map_or_else(String::new, |of| e.label(&of.scenario));
        let mut any = false;
        for cpu in &e.cpu {
            let (first, second) = (name(cpu.less), name(cpu.more));
            let Some(found) = &cpu.functions else { continue };
            let arms = [first.as_str(), second.as_str()];
            let compared = ComparedFunctions {
                functions: found,
                arms,
                unit,
                first_cpu_s: cpu.less_s,
                certain: cpu.is_certain(),
                rows: MOST_FUNCTIONS,
            };
            out.push('\n');
            page.table(&mut out, &functions(&compared));
            any = true;
        }
        if !any {
            page.paragraph(&mut out, "", "  ", NO_FUNCTIONS);
        }
    }
    out
}

/// The width, and whether to use colours.
pub(crate) struct Page {
    pub width: usize,
    pub colour: bool,
}

impl Page {
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.max(40), colour }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn experiment(&self, e: &FigureView<'_>) -> String {
        let mut out = String::new();
        self.paragraph(&mut out, BOLD, "", &format!("{}: {}", e.name, e.title));
        if !e.about.is_empty() {
            self.paragraph(&mut out, DIM, "", &e.about);
        }
        ORDER.into_iter().for_each(|which| self.part(&mut out, which, e));
        out
    }

    fn part(&self, out: &mut String, which: Part, e: &FigureView<'_>) {
        match which {
            Part::ConditionOutcome => {
                for (i, sentence) in headlines(e).iter().enumerate() {
                    if i == 0 {
                        out.push('\n');
                    }
                    self.paragraph(out, if i == 0 { BOLD } else { "" }, "  ", sentence);
                }
                self.to_paste(out, e);
            }
            Part::Tables => tables(e).iter().for_each(|table| self.below(out, table)),
            Part::Warnings => e.warnings.iter().for_each(|warning| self.warning(out, warning, Asked::of(e))),
            Part::Failures => e.failures.iter().for_each(|f| self.failure(out, f)),
            Part::Outliers => {
                e.outliers
                    .iter()
                    .for_each(|o| self.paragraph(out, DIM, "  ", &format!("outlier: {}", outlier(o))));
            }
            Part::Beside => beside(e).iter().for_each(|each| self.below(out, each)),
            Part::Excluded => {
                for excluded in &e.excluded {
                    let line = format!("not run: {}", left_out(excluded));
                    self.paragraph(out, "", "  ", &line);
                }
            }
            Part::Notes => {
                notes(e).iter().for_each(|note| self.paragraph(out, DIM, "  ", &format!("note: {note}")));
            }
            Part::Generators => {
                let line = |line: &String| format!("generators: {line}");
                generators(e).iter().for_each(|each| self.paragraph(out, DIM, "  ", &line(each)));
            }
            Part::Versions if !e.versions.is_empty() => {
                let versions: Vec<String> = e.versions.iter().map(|(s, v)| format!("{s} {v}")).collect();
                self.paragraph(out, DIM, "  ", &format!("versions: {}", versions.join("; ")));
            }
            // A terminal shows no figures.
            Part::Versions | Part::Figures | Part::Explanations => {}
        }
    }

    /// The lines that set what a search advises, as they are.
    pub(crate) fn to_paste(&self, out: &mut String, e: &FigureView<'_>) {
        lines_to_paste(e).for_each(|line| out.push_str(&format!("    {}\n", printable(line))));
    }

    fn below(&self, out: &mut String, table: &Captioned) {
        out.push('\n');
        self.table(out, table);
    }

    fn warning(&self, out: &mut String, warning: &Warning, asked: Asked) {
        let (Warning { scenarios, .. }, Advice { message, remedy }) = (warning, advice(warning, asked));
        let places = if scenarios.is_empty() { String::new() } else { format!(": {}", scenarios.join("; ")) };
        self.paragraph(out, YELLOW, "  ", &format!("warning: {message}{places}. Remedy: {remedy}."));
    }

    fn failure(&self, out: &mut String, f: &FailedTrials) {
        let trials = several(f.trials.into(), "trial");
        let line = format!("failed: {} ({trials}) at {}: {}", f.scenario, f.stage, f.reason);
        self.paragraph(out, RED, "  ", &line);
        for line in f.output.lines() {
            let _ = writeln!(out, "    | {}", printable(line));
        }
    }

    /// Wraps text at the width. If there is an indent, further lines have two more columns.
    pub(crate) fn paragraph(&self, out: &mut String, style: &str, indent: &str, text: &str) {
        let further = if indent.is_empty() { "" } else { "    " };
        let mut line = indent.to_owned();
        let mut lines = Vec::new();
        for word in printable(text).split_whitespace() {
            let empty = line.trim().is_empty();
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                lines.push(std::mem::replace(&mut line, further.to_owned()));
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

    pub(crate) fn table(&self, out: &mut String, Captioned { caption, table }: &Captioned) {
        if !caption.about.is_empty() {
            self.paragraph(out, DIM, "", &caption.about);
        }
        let rows: Vec<Vec<String>> = table.rows.iter().map(|row| shown(table, row)).collect();
        let plain: Vec<Vec<String>> = table.columns.iter().map(|c| vec![printable(&c.name)]).collect();
        let (mut heads, mut widths) = (plain.clone(), widths(&plain, &rows));
        if widths.iter().map(|w| w + 2).sum::<usize>() > self.width + 2 {
            heads = table.columns.iter().map(|c| stacked(&printable(&c.name))).collect();
            widths = self::widths(&heads, &rows);
        }
        let height = heads.iter().map(Vec::len).max().unwrap_or(1);
        for (i, columns) in self.fold(table.keys, &widths).into_iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            for level in 0..height {
                // Headings are aligned at the bottom.
                let word =
                    |at: usize| (level + heads[at].len()).checked_sub(height).map(|l| heads[at][l].as_str());
                let head = line(table, &columns, &widths, |at| word(at).unwrap_or(""));
                let _ = writeln!(out, "{}", self.paint(BOLD, &head));
            }
            for (row, cells) in table.rows.iter().zip(&rows) {
                if row.block {
                    out.push('\n');
                }
                let _ = writeln!(out, "{}", line(table, &columns, &widths, |at| &cells[at]));
            }
        }
        for note in &caption.notes {
            self.paragraph(out, DIM, "  ", note);
        }
    }

    /// Divides the columns into parts that fit. Each part begins with the keys.
    fn fold(&self, keys: usize, widths: &[usize]) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = (0..keys.min(widths.len())).collect();
        let total = |columns: &[usize]| columns.iter().map(|&at| widths[at] + 2).sum::<usize>();
        let mut parts = vec![keys.clone()];
        for (at, wide) in widths.iter().enumerate().skip(keys.len()) {
            let part =
                parts.last_mut().filter(|part| part.len() == keys.len() || total(part) + wide <= self.width);
            match part {
                Some(part) => part.push(at),
                None => parts.push(keys.iter().copied().chain([at]).collect()),
            }
        }
        parts
    }
}

/// The width of each column.
fn widths(heads: &[Vec<String>], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |index: usize, head: &[String]| {
        let cells = rows.iter().map(|row| &row[index]).chain(head);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    heads.iter().enumerate().map(|(index, head)| width(index, head)).collect()
}

/// A heading with one word per line, for tables that are too wide.
fn stacked(name: &str) -> Vec<String> {
    name.replace('_', "_ ").split_whitespace().map(str::to_owned).collect()
}

/// A line of some columns. Numbers are aligned right, words left.
fn line<'a>(table: &Table, columns: &[usize], widths: &[usize], cell: impl Fn(usize) -> &'a str) -> String {
    let cells = columns.iter().map(|&at| {
        let pad = " ".repeat(widths[at] - cell(at).chars().count());
        match table.columns[at].unit {
            Some(_) => format!("{pad}{}", cell(at)),
            None => format!("{}{pad}", cell(at)),
        }
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

fn shown(table: &Table, row: &Row) -> Vec<String> {
    table.columns.iter().zip(&row.cells).map(|(column, value)| cell(column, value)).collect()
}
