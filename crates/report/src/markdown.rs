//! Findings as Markdown, to paste into a README or a pull request.

use std::fmt::Write;

use lab::findings::{FailedTrials, FigureView, Findings, Warning};

use crate::parts::{ORDER, Part};
use crate::words::tuned::lines_to_paste;
use crate::words::{
    Advice, Asked, Captioned, advice, beside, generators, headlines, left_out, notes, outlier, tables,
};
use crate::{cell, printable};

/// All experiments, each under a heading.
pub fn markdown(findings: &Findings) -> String {
    let sections = findings.views().map(|e| experiment(&e));
    sections.collect::<Vec<_>>().join("\n")
}

fn experiment(e: &FigureView<'_>) -> String {
    let mut out = format!("## {}: {}\n\n", e.name, plain(&e.title));
    if !e.about.is_empty() {
        let _ = writeln!(out, "{}\n", plain(&e.about));
    }
    ORDER.into_iter().for_each(|which| part(&mut out, which, e));
    out
}

fn part(out: &mut String, which: Part, e: &FigureView<'_>) {
    match which {
        Part::ConditionOutcome => {
            for (i, sentence) in headlines(e).iter().map(|sentence| plain(sentence)).enumerate() {
                let _ =
                    if i == 0 { writeln!(out, "- **{sentence}**") } else { writeln!(out, "- {sentence}") };
            }
            to_paste(out, e);
        }
        Part::Tables => tables(e).iter().for_each(|table| below(out, table)),
        Part::Warnings => list(out, "Warnings", e.warnings.iter().map(|seen| warning(seen, Asked::of(e)))),
        Part::Failures => list(out, "Failed trials", e.failures.iter().map(failure)),
        Part::Outliers => list(out, "Outlying trials, kept", e.outliers.iter().map(outlier)),
        Part::Beside => beside(e).iter().for_each(|each| below(out, each)),
        Part::Excluded => {
            list(out, "Not run here", e.excluded.iter().map(left_out));
        }
        Part::Notes => list(out, "Notes", notes(e).into_iter()),
        Part::Generators => list(out, "Generators", generators(e).into_iter()),
        Part::Versions => {
            list(out, "Versions", e.versions.iter().map(|(system, version)| format!("{system}: {version}")));
        }
        // Pasted Markdown has no figures.
        Part::Figures | Part::Explanations => {}
    }
}

/// The lines that set what a search advises, as code.
fn to_paste(out: &mut String, e: &FigureView<'_>) {
    let lines: Vec<String> = lines_to_paste(e).map(printable).collect();
    if !lines.is_empty() {
        let _ = writeln!(out, "\n```\n{}\n```", lines.join("\n"));
    }
}

fn below(out: &mut String, table: &Captioned) {
    out.push('\n');
    self::table(out, table);
}

fn warning(warning: &Warning, asked: Asked) -> String {
    let (Warning { scenarios, .. }, Advice { message, remedy }) = (warning, advice(warning, asked));
    let places = if scenarios.is_empty() { String::new() } else { format!(" ({})", scenarios.join("; ")) };
    format!("{message}: {remedy}{places}")
}

fn failure(f: &FailedTrials) -> String {
    let output = if f.output.is_empty() { String::new() } else { format!("; output: {}", f.output.trim()) };
    format!("{}: {} of its trials, at {}: {}{output}", f.scenario, f.trials, f.stage, f.reason)
}

pub(crate) fn list(out: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    for (i, item) in items.enumerate() {
        if i == 0 {
            let _ = writeln!(out, "\n{heading}:\n");
        }
        let _ = writeln!(out, "- {}", plain(&item));
    }
}

pub(crate) fn table(out: &mut String, Captioned { caption, table }: &Captioned) {
    let names = table.columns.iter().map(|c| printable(&c.name).replace('|', "\\|"));
    let rules = table.columns.iter().map(|c| if c.unit.is_some() { "---:" } else { "---" }.to_owned());
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let _ = writeln!(out, "{}\n", plain(&caption.about));
    out.push_str(&line(names.collect()));
    out.push_str(&line(rules.collect()));
    for row in &table.rows {
        let cells = table.columns.iter().zip(&row.cells).map(|(c, v)| cell(c, v).replace('|', "\\|"));
        out.push_str(&line(cells.collect()));
    }
    if !caption.notes.is_empty() {
        let _ = writeln!(out, "\n{}", plain(&caption.notes.join("; ")));
    }
}

/// Converts text to one line without control characters or HTML.
pub(crate) fn plain(text: &str) -> String {
    printable(text).replace('<', "&lt;")
}
