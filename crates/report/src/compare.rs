//! Comparisons of runs, for a terminal and as Markdown.

use lab::compare::RunComparison;

use crate::markdown::{self, plain};
use crate::text::{BOLD, DIM, Page, YELLOW};
use crate::words::{between_runs, compared, difference, machine, without_counterpart};

/// A comparison for a terminal. See [`crate::text`].
pub fn comparison_text(found: &RunComparison, width: usize, colour: bool) -> String {
    let page = Page { width: width.max(40), colour };
    let mut out = String::new();
    page.paragraph(&mut out, BOLD, "", &format!("{} against {}", found.b, found.a));
    for each in &found.differences {
        page.paragraph(&mut out, YELLOW, "  ", &format!("differs: {}", difference(each)));
    }
    out.push('\n');
    page.table(&mut out, &compared(found));
    for line in between_runs(found).into_iter().chain(found.machine.iter().map(machine)) {
        page.paragraph(&mut out, DIM, "  ", &line);
    }
    for label in without_counterpart(found) {
        page.paragraph(&mut out, "", "  ", &format!("without a counterpart: {label}"));
    }
    out
}

/// A comparison as Markdown, for a pull request.
pub fn comparison_markdown(found: &RunComparison) -> String {
    let mut out = format!("## {} against {}\n\n", plain(&found.b), plain(&found.a));
    markdown::table(&mut out, &compared(found));
    markdown::list(&mut out, "What else differs", found.differences.iter().map(difference));
    markdown::list(
        &mut out,
        "Notes",
        between_runs(found).into_iter().chain(found.machine.iter().map(machine)),
    );
    markdown::list(&mut out, "Without a counterpart", without_counterpart(found).into_iter());
    out
}
