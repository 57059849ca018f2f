//! The section of one experiment: its figures, tables and sentences.

use std::fmt::Write;

use lab::findings::{FailedTrials, FigureView};

use super::figure::Figure;
use super::figures::{self, Palette};
use super::{sentence, table};
use crate::parts::{ORDER, Part};
use crate::svg::escape;
use crate::words;

/// The most scenarios that are shown unfolded.
const NAMED: usize = 4;

/// Writes the section; `index` makes its ids unique.
pub(super) fn experiment(out: &mut String, index: usize, e: &FigureView<'_>, palette: &Palette) {
    let _ = writeln!(
        out,
        "<section class=\"experiment\" id=\"e{index}\" aria-labelledby=\"e{index}-h\">\n\
         <p class=\"name\">{}</p>\n<h2 id=\"e{index}-h\">{}</h2>",
        escape(&e.name),
        escape(&e.title)
    );
    ORDER.into_iter().for_each(|which| part(out, which, index, e, palette));
    out.push_str("</section>\n");
}

fn part(out: &mut String, which: Part, index: usize, e: &FigureView<'_>, palette: &Palette) {
    match which {
        Part::ConditionOutcome => answer(out, e),
        Part::Figures => charts(out, &format!("e{index}-f"), &figures::answers(e, palette)),
        Part::Tables => {
            for (i, each) in words::tables(e).iter().enumerate() {
                if each.caption.title != e.title {
                    heading(out, &each.caption.title);
                }
                table::write(out, &format!("e{index}-t{i}"), each, palette);
            }
        }
        Part::Warnings => warnings(out, e),
        Part::Failures => failures(out, &e.failures),
        Part::Outliers => {
            list(out, "Trials far from the others of their scenario", e.outliers.iter().map(words::outlier));
        }
        Part::Beside => {
            for (i, each) in words::beside(e).iter().enumerate() {
                heading(out, &each.caption.title);
                table::write(out, &format!("e{index}-b{i}"), each, palette);
            }
        }
        Part::Explanations => {
            let more = figures::more(e, palette);
            if !more.is_empty() {
                heading(out, "More figures");
                charts(out, &format!("e{index}-m"), &more);
            }
        }
        Part::Excluded => {
            list(out, "Not run here", e.excluded.iter().map(words::left_out));
        }
        Part::Notes => list(out, "Notes", words::notes(e).into_iter()),
        Part::Generators => list(out, "Generators", words::generators(e).into_iter()),
        // The environment shows them.
        Part::Versions => {}
    }
}

fn heading(out: &mut String, words: &str) {
    let _ = writeln!(out, "<h3>{}</h3>", escape(words));
}

fn charts(out: &mut String, id: &str, figures: &[Figure]) {
    out.push_str("<div class=\"charts\">\n");
    figures.iter().enumerate().for_each(|(i, figure)| figure.write(out, &format!("{id}{i}")));
    out.push_str("</div>\n");
}

fn answer(out: &mut String, e: &FigureView<'_>) {
    let _ = writeln!(out, "<p class=\"answer\">{}</p>", sentence(&words::answer(e)));
    let headlines = words::headlines(e);
    if headlines.len() > 1 {
        out.push_str("<ul class=\"answer-more\">\n");
        headlines.iter().skip(1).for_each(|s| {
            let _ = writeln!(out, "<li>{}</li>", sentence(s));
        });
        out.push_str("</ul>\n");
    }
    // The plan of a search grows, and its answer says how far it is.
    if e.trials_done < e.trials_planned && e.tuned.is_none() {
        let _ = writeln!(
            out,
            "<p class=\"unfinished\">{} of {} trials are done.</p>",
            e.trials_done, e.trials_planned
        );
    }
    if !e.about.is_empty() {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", sentence(&e.about));
    }
}

fn warnings(out: &mut String, e: &FigureView<'_>) {
    if e.warnings.is_empty() {
        return;
    }
    heading(out, "Warnings");
    out.push_str("<ul class=\"warnings\">\n");
    for warning in e.warnings {
        let advice = words::advice(warning, words::Asked::of(e));
        let _ = write!(
            out,
            "<li><p>{}</p><p class=\"remedy\"><b>What to do:</b> {}</p>",
            sentence(&advice.message),
            sentence(advice.remedy)
        );
        names(out, &warning.scenarios);
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
}

fn names(out: &mut String, scenarios: &[String]) {
    if scenarios.is_empty() {
        return;
    }
    let all: Vec<String> = scenarios.iter().map(|s| format!("<li>{}</li>", escape(s))).collect();
    let list = format!("<ul class=\"scenarios\">{}</ul>", all.concat());
    let _ = if scenarios.len() <= NAMED {
        out.write_str(&list)
    } else {
        write!(out, "<details><summary>{} scenarios</summary>{list}</details>", scenarios.len())
    };
}

fn failures(out: &mut String, failures: &[FailedTrials]) {
    if failures.is_empty() {
        return;
    }
    heading(out, "Failed trials");
    out.push_str("<ul class=\"failures\">\n");
    for f in failures {
        let _ = write!(
            out,
            "<li><p><b>{}</b>: {} of its trials, at {}: {}</p>",
            escape(&f.scenario),
            f.trials,
            escape(&f.stage),
            escape(&f.reason)
        );
        if !f.output.trim().is_empty() {
            let _ = write!(out, "<pre class=\"output\" tabindex=\"0\">{}</pre>", escape(f.output.trim_end()));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
}

fn list(out: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("<li>{}</li>\n", escape(&item))).collect();
    if !items.is_empty() {
        self::heading(out, heading);
        let _ = writeln!(out, "<ul class=\"plain\">\n{}</ul>", items.concat());
    }
}
