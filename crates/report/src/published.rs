//! Published tables and what was found in them, in every form that findings have.
//!
//! Computes nothing, like the rest of this crate: what is shown was found by `published`.

use std::fmt::Write;

use published::{Audit, AuditWarning, PublishedTable};
use serde_json::{Value, json};

use crate::text::{BOLD, DIM, Page, YELLOW};
use crate::words::Advice;
use crate::words::published::{advice, findings, tables};
use crate::{csv as table_csv, markdown as page};

/// The version of the JSON's form.
const SCHEMA: u32 = 3;

/// An audit for a terminal, in lines of at most `width` columns as far as words and keys allow.
pub fn text(audit: &Audit, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    page.paragraph(&mut out, BOLD, "", &format!("{}: {}", audit.name, audit.title));
    page.paragraph(&mut out, DIM, "", &format!("{}. {}", audit.source, audit.about));
    for table in tables(audit) {
        out.push('\n');
        page.table(&mut out, &table);
    }
    out.push('\n');
    for sentence in findings(audit) {
        page.paragraph(&mut out, "", "  ", &format!("found: {sentence}"));
    }
    for warning in &audit.warnings {
        let Advice { message, remedy } = advice(warning);
        let words = format!("warning: {message}. Remedy: {remedy}.");
        page.paragraph(&mut out, YELLOW, "  ", &words);
    }
    if let Some(experiment) = &audit.experiment {
        page.paragraph(&mut out, DIM, "  ", &format!("measure it today: narrows run {experiment}"));
    }
    out
}

/// An audit as a section of Markdown.
pub fn markdown(audit: &Audit) -> String {
    let mut out = format!("## {}: {}\n\n", audit.name, page::plain(&audit.title));
    let _ = writeln!(out, "{}. {}\n", page::plain(&audit.source), page::plain(&audit.about));
    for (at, table) in tables(audit).iter().enumerate() {
        out.push_str(if at > 0 { "\n" } else { "" });
        page::table(&mut out, table);
    }
    page::list(&mut out, "Found", findings(audit).into_iter());
    let advice = audit.warnings.iter().map(advice);
    page::list(&mut out, "Warnings", advice.map(|advice| format!("{}: {}", advice.message, advice.remedy)));
    if let Some(experiment) = &audit.experiment {
        let _ = writeln!(out, "\nMeasure it today: `narrows run {experiment}`");
    }
    out
}

/// One object: `schema`, `table`. Values have their sentences beside them: `headlines` are those of `found`, `captions` those of the tables, and each
/// warning has its `message` and `remedy`.
pub fn json(audit: &Audit) -> String {
    let warning = |warning: &AuditWarning| {
        let mut value = json!(warning);
        let Advice { message, remedy } = advice(warning);
        value["message"] = message.into();
        value["remedy"] = remedy.into();
        value
    };
    let mut value = json!({ "schema": SCHEMA, "table": audit });
    value["table"]["headlines"] = json!(findings(audit));
    value["table"]["captions"] = tables(audit).into_iter().map(|each| json!(each.caption)).collect();
    value["table"]["warnings"] = audit.warnings.iter().map(warning).collect::<Vec<Value>>().into();
    format!("{value:#}\n")
}

/// The table as published, and the ranking where there is one; raw numbers.
pub fn csv(audit: &Audit) -> String {
    tables(audit)
        .iter()
        .map(|each| table_csv::table("table", &audit.name, &each.table))
        .collect::<Vec<_>>()
        .join("\r\n")
}

/// The tables that there are, each with its source.
pub fn list(tables: &[PublishedTable]) -> String {
    let mut out = String::from("table           rows  source\n");
    for table in tables {
        let _ = writeln!(out, "{:<15} {:>4}  {}", table.name, table.printed.len(), table.source);
        let _ = writeln!(out, "{:21} {}", "", table.title);
    }
    out
}

/// The tables that there are, as one object: `schema`, `tables`.
pub fn list_json(tables: &[PublishedTable]) -> String {
    let entry = |table: &PublishedTable| {
        json!({
            "name": table.name,
            "title": table.title,
            "source": table.source,
            "about": table.about,
            "workload": table.workload,
            "rows": table.printed.len(),
        })
    };
    let entries: Vec<_> = tables.iter().map(entry).collect();
    let value = json!({ "schema": SCHEMA, "tables": entries });
    format!("{value:#}\n")
}
