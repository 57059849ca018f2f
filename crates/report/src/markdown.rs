//! Findings as Markdown, to paste into a README or a pull request.

use std::fmt::Write;

use lab::findings::{ExperimentFindings, Findings, Table};

use crate::{cell, printable};

/// All experiments, each under a heading.
pub fn markdown(findings: &Findings) -> String {
    let sections = findings.experiments.iter().map(experiment);
    sections.collect::<Vec<_>>().join("\n")
}

fn experiment(e: &ExperimentFindings) -> String {
    let mut out = format!("## {}: {}\n\n", e.name, plain(&e.title));
    if !e.about.is_empty() {
        let _ = writeln!(out, "{}\n", plain(&e.about));
    }
    for (i, sentence) in e.headlines.iter().enumerate() {
        let _ = if i == 0 { writeln!(out, "- **{sentence}**") } else { writeln!(out, "- {sentence}") };
    }
    for table in &e.tables {
        out.push('\n');
        self::table(&mut out, table);
    }
    list(
        &mut out,
        "Warnings",
        e.warnings.iter().map(|w| {
            let places =
                if w.scenarios.is_empty() { String::new() } else { format!(" ({})", w.scenarios.join("; ")) };
            format!("{}: {}{places}", w.message, w.remedy)
        }),
    );
    list(&mut out, "Outlying trials, kept", e.outliers.iter().map(crate::outlier));
    list(
        &mut out,
        "Failed trials",
        e.failures.iter().map(|f| {
            let output =
                if f.output.is_empty() { String::new() } else { format!("; output: {}", f.output.trim()) };
            format!("{}: {} of its trials, at {}: {}{output}", f.scenario, f.trials, f.stage, f.reason)
        }),
    );
    list(&mut out, "Not run here", e.excluded.iter().map(|x| format!("{}: {}", x.system, x.reason)));
    list(&mut out, "Notes", e.notes.iter().cloned());
    list(&mut out, "Versions", e.versions.iter().map(|(system, version)| format!("{system}: {version}")));
    out
}

pub(crate) fn list(out: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    for (i, item) in items.enumerate() {
        if i == 0 {
            let _ = writeln!(out, "\n{heading}:\n");
        }
        let _ = writeln!(out, "- {}", plain(&item));
    }
}

pub(crate) fn table(out: &mut String, table: &Table) {
    let names = table.columns.iter().map(|c| c.name.replace('|', "\\|"));
    let rules = table.columns.iter().map(|c| if c.unit.is_some() { "---:" } else { "---" }.to_owned());
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let _ = writeln!(out, "{}\n", plain(&table.about));
    out.push_str(&line(names.collect()));
    out.push_str(&line(rules.collect()));
    for row in &table.rows {
        let cells = table.columns.iter().zip(&row.cells).map(|(c, v)| cell(c, v).replace('|', "\\|"));
        out.push_str(&line(cells.collect()));
    }
    if !table.notes.is_empty() {
        let _ = writeln!(out, "\n{}", plain(&table.notes.join("; ")));
    }
}

/// One line without control characters or HTML.
pub(crate) fn plain(text: &str) -> String {
    printable(text).replace('<', "&lt;")
}
