//! The counts as text.

use std::fmt::Write;
use std::process::Command;

use super::Cost;
use super::paths::Path;
use super::serve::MEMORY;
use crate::compare::machine;

/// The counts of one path.
pub struct Row {
    pub path: &'static Path,
    pub before: Option<Cost>,
    pub now: Cost,
}

impl Row {
    /// A line of progress.
    pub fn line(&self) -> String {
        let before =
            self.before.map_or_else(String::new, |cost| format!(", before {:.0}", cost.instructions));
        let unit = self.path.unit.name();
        format!("{}: {:.0} instructions per {unit}{before}", self.path.name, self.now.instructions)
    }

    fn cells(&self, compared: bool) -> Vec<String> {
        let Cost { instructions, clocks, bend } = self.now;
        let mut cells = vec![self.path.name.to_owned(), self.path.unit.name().to_owned()];
        if compared {
            let before = self.before.map(|cost| cost.instructions);
            cells.push(before.map_or_else(String::new, |before| format!("{before:.0}")));
            cells.push(format!("{instructions:.0}"));
            cells.push(before.map_or_else(String::new, |before| format!("{:.2}", instructions / before)));
            let before = self.before.map(|cost| format!("{:.2}", cost.clocks));
            cells.push(before.unwrap_or_default());
        } else {
            cells.push(format!("{instructions:.0}"));
        }
        cells.extend([format!("{clocks:.2}"), format!("{:.1} %", bend * 100.0)]);
        cells.push(format!("`{}`", self.path.options()));
        cells
    }
}

/// The contents of COUNTS.md. `compared` says whether there was an earlier program, and `memory` is that of many streams.
pub fn text(rows: &[Row], tool: &str, compared: bool, memory: Option<f64>) -> String {
    let mut out = String::from("# Instructions in user space\n\nWritten by `bench count`.\n\n");
    let _ = write!(
        out,
        "- Date: {}. Counted by callgrind ({tool}); compiled by {}.\n\
         - A cost is the difference of counts at three numbers of operations, so the start is no part of it. \"Bend\" is the\n  \
         difference between the second step and the first: small if the cost is linear.\n\
         - The kernel is not counted, and neither is its page in user space that reads the clock (vDSO). \"Clocks\" are the readings\n  \
         for each operation.\n\
         - Connections are kept, and loops are closed, unless the options say otherwise. With one connection each request pays for\n  \
         a whole turn of the loop. With 100 several share a turn, and how many depends a little on the machine.\n\
         - A floor is the minimal program that moves the same bytes. It parses and checks nothing.\n\
         - `http2-` is HTTP/2 in plain text against `narrows serve` on another core.\n\
         - `tls-` is TLS 1.3 with AES-256-GCM, and a P-256 certificate that is verified. Callgrind hides the wide AES instructions of\n  \
         newer processors (VAES), so that encryption costs fewer instructions than counted here: most of all in uploads.\n\n",
        machine::date(),
        compiler(),
    );
    let figures: &[&str] = if compared {
        &["before", "now", "ratio", "clocks before", "clocks now"]
    } else {
        &["instructions", "clocks"]
    };
    let heads: Vec<&str> =
        ["path", "per"].iter().chain(figures).chain(&["bend", "options"]).copied().collect();
    let _ = writeln!(out, "| {} |", heads.join(" | "));
    let right = vec!["---:"; figures.len() + 1].join(" | ");
    let _ = writeln!(out, "| --- | --- | {right} | --- |");
    for row in rows {
        let _ = writeln!(out, "| {} |", row.cells(compared).join(" | "));
    }
    if let Some(memory) = memory {
        let _ = writeln!(out, "\nThe most memory of `narrows load --http2 {MEMORY}`: {memory:.0} MiB.");
    }
    out
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "an unknown compiler".to_owned())
}
