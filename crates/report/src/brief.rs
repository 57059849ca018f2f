//! The answers for those in a hurry: a few lines for each experiment at the end of a run, and one screen for each in
//! `narrows report`. `text` has everything.

use std::fmt::Write;

use lab::findings::{Cell, Claim, Code, FigureView, Findings, Table, Warning, Withheld};
use measurement::doubt::Doubt;

use crate::cell;
use crate::number::several;
use crate::text::{BOLD, DIM, GREEN, Page, RED, YELLOW};
use crate::words::tuned::{self, Progress};
use crate::words::{
    Advice, Asked, Caption, Captioned, advice, answer, answer_and_reason, beside_in_a_line, duets,
    first_line, fixed, generators_in_a_line, headlines, left_out, noise, per_connection, second,
};

/// The most rows and columns of characters of a table on one screen.
const MOST_ROWS: usize = 24;
const MOST_WIDTH: usize = 100;

/// The most warnings of an experiment.
const MOST_WARNINGS: usize = 3;

/// The answer of each experiment: its first claim, or why there is none; and what comes second, if the experiment has a question, or
/// stands below that of a search. Warnings that hold for the whole run come first.
pub fn answers(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    warnings_of_the_run(&page, &mut out, findings);
    for experiment in &findings.experiments {
        for e in experiment.views() {
            if e.tuned.is_some() {
                searched(&page, &mut out, &e);
                continue;
            }
            page.paragraph(&mut out, BOLD, "", &e.name);
            page.paragraph(&mut out, style(&e), "  ", &answer(&e));
            second(&e).iter().for_each(|sentence| page.paragraph(&mut out, "", "  ", sentence));
        }
        // The figures share the trials.
        if let Some(e) = experiment.views().next_back().filter(|e| e.tuned.is_none()) {
            duets(&e).iter().for_each(|sentence| page.paragraph(&mut out, "", "  ", sentence));
            memory(&page, &mut out, &e);
        }
    }
    let decided = findings.views().any(|e| e.tuned.is_none() && style(&e) == GREEN);
    if decided {
        let how = "In brackets are 95 % intervals, for this machine and this hour. What is said to be faster or slower is so with 95 % \
                   certainty, for all comparisons of an experiment together.";
        page.paragraph(&mut out, DIM, "", how);
    }
    out
}

/// All experiments, each on one screen: the answer, one table, the reason, the warnings that matter for the answer, and
/// what the published figures say.
pub fn brief(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    warnings_of_the_run(&page, &mut out, findings);
    let several = has_several_figures(findings);
    for (index, each) in findings.experiments.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let mut figures = each.views();
        figures.next().iter().for_each(|first| experiment(&page, &mut out, first, !several));
        // Of a further figure of the same trials, the answer is enough.
        for e in figures.filter(|_| !several) {
            page.paragraph(&mut out, style(&e), "  ", &format!("{}: {}", e.figure.name(), answer(&e)));
        }
    }
    out
}

/// The answers of a comparison with several figures, the deciding one last, so that it stands above the prompt. Empty where
/// there is only one, which `brief` has.
pub fn verdicts(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    if !has_several_figures(findings) {
        return out;
    }
    for e in findings.views().rev().filter(|e| e.repeats.is_none()) {
        page.paragraph(&mut out, style(&e), "", &format!("{}: {}", e.figure.name(), answer(&e)));
    }
    out
}

/// Whether a comparison of commands has several figures.
fn has_several_figures(findings: &Findings) -> bool {
    let asked = findings.views().filter(|e| Asked::of(e) == Asked::Typed && e.tuned.is_none());
    asked.filter(|e| e.repeats.is_none()).count() > 1
}

/// Green if the first claim or the search is decided.
fn style(e: &FigureView<'_>) -> &'static str {
    if let Some(found) = &e.tuned {
        return match tuned::progress(e, found) {
            Progress::Decided => GREEN,
            Progress::Open => YELLOW,
            Progress::Failed => RED,
        };
    }
    match e.claims.first() {
        Some(Claim::Undecided { .. } | Claim::Unanswered { .. }) => YELLOW,
        Some(_) => GREEN,
        None => DIM,
    }
}

/// The answer of a search, what stands below it, and how to apply it.
fn searched(page: &Page, out: &mut String, e: &FigureView<'_>) {
    page.paragraph(out, BOLD, "", &format!("{}: {}", e.name, e.title));
    for (at, sentence) in headlines(e).iter().enumerate() {
        page.paragraph(out, if at == 0 { style(e) } else { "" }, "  ", sentence);
    }
    page.to_paste(out, e);
}

fn experiment(page: &Page, out: &mut String, e: &FigureView<'_>, answered: bool) {
    if e.tuned.is_some() {
        searched(page, out, e);
    } else {
        compared(page, out, e, answered);
    }
    if let Some(line) = generators_in_a_line(e) {
        page.paragraph(out, DIM, "  ", &line);
    }
    doubts(page, out, e);
}

/// The answer of an experiment that compares, unless it stands elsewhere; its first table and the reason.
fn compared(page: &Page, out: &mut String, e: &FigureView<'_>, answered: bool) {
    let (sentence, reason) = answer_and_reason(e);
    page.paragraph(out, BOLD, "", &format!("{}: {}", e.name, e.title));
    if answered {
        page.paragraph(out, style(e), "  ", &sentence);
        second(e).iter().for_each(|sentence| page.paragraph(out, "", "  ", sentence));
    }
    if let Some(table) = e.tables.first() {
        out.push_str(if answered { "\n" } else { "" });
        page.table(out, &on_one_screen(page, e, &table.table));
    }
    if let Some(reason) = reason.filter(|_| answered) {
        page.paragraph(out, "", "  ", &format!("why: {reason}"));
    }
    if let Some(sentence) = duets(e) {
        page.paragraph(out, "", "  ", &sentence);
    }
    memory(page, out, e);
    if let Some(noise) = noise(e) {
        page.paragraph(out, DIM, "  ", &noise);
    }
}

/// The memory for each connection, where it is known.
fn memory(page: &Page, out: &mut String, e: &FigureView<'_>) {
    if let Some(sentence) = per_connection(e) {
        page.paragraph(out, "", "  ", &sentence);
    }
}

/// What makes the answer doubtful, what the published figures say, and what did not run.
fn doubts(page: &Page, out: &mut String, e: &FigureView<'_>) {
    let warnings: Vec<&Warning> = e.warnings.iter().filter(|warning| matters(e, warning)).collect();
    for warning in warnings.iter().take(MOST_WARNINGS) {
        let Advice { message, remedy } = advice(warning, Asked::of(e));
        page.paragraph(out, YELLOW, "  ", &format!("warning: {message}. Remedy: {remedy}."));
    }
    for failure in e.failures.iter().take(MOST_WARNINGS) {
        let trials = several(failure.trials.into(), "trial");
        let line =
            format!("failed: {} ({trials}) at {}: {}", failure.scenario, failure.stage, first_line(failure));
        page.paragraph(out, RED, "  ", &line);
    }
    let beside = e.beside.iter().filter_map(beside_in_a_line);
    beside.for_each(|line| page.paragraph(out, DIM, "  ", &line));
    let (partly, wholly): (Vec<_>, Vec<_>) = e.excluded.iter().partition(|excluded| excluded.partly);
    for excluded in partly {
        page.paragraph(out, DIM, "  ", &format!("not run: {}", left_out(excluded)));
    }
    if !wholly.is_empty() {
        let names: Vec<&str> = wholly.iter().map(|excluded| excluded.system.as_str()).collect();
        page.paragraph(out, DIM, "  ", &format!("not run here: {}; see `narrows systems`", names.join(", ")));
    }
}

/// As many columns as fit, from the left, without empty ones; and as many rows.
fn on_one_screen(page: &Page, e: &FigureView<'_>, table: &Table) -> Captioned {
    let width = page.width.min(MOST_WIDTH);
    let wide = |index: usize| {
        let cells = table.rows.iter().map(|row| cell(&table.columns[index], &row.cells[index]));
        let name = table.columns[index].name.clone();
        cells.chain([name]).map(|cell| cell.chars().count()).max().unwrap_or(0) + 2
    };
    let has_cells = |index: &usize| table.rows.iter().any(|row| row.cells[*index] != Cell::Empty);
    let mut total = 0;
    let fits = |index: &usize| {
        total += wide(*index);
        *index < table.keys || total <= width + 2
    };
    let columns: Vec<usize> = (0..table.columns.len()).filter(has_cells).take_while(fits).collect();
    let row = |row: &lab::findings::Row| lab::findings::Row {
        cells: columns.iter().map(|index| row.cells[*index].clone()).collect(),
        block: row.block,
    };
    let left_out = table.rows.len().saturating_sub(MOST_ROWS);
    let notes = (left_out > 0).then(|| format!("{}: see --details", several(left_out as u64, "more row")));
    Captioned {
        caption: Caption { title: e.title.clone(), about: fixed(e), notes: notes.into_iter().collect() },
        table: Table {
            columns: columns.iter().map(|index| table.columns[*index].clone()).collect(),
            keys: columns.iter().filter(|index| **index < table.keys).count(),
            rows: table.rows.iter().take(MOST_ROWS).map(row).collect(),
        },
    }
}

/// Whether a warning is about the machine, and so about all experiments alike.
fn is_of_the_run(code: Code) -> bool {
    matches!(
        code,
        Code::Trial(Doubt::StolenTime | Doubt::CoresShared | Doubt::Throttled | Doubt::GeneratorPaused)
    )
}

/// Whether a warning may change what the reader concludes from the answer. Trials that vary show in the intervals.
fn matters(e: &FigureView<'_>, warning: &Warning) -> bool {
    // The answer of a search says how far it has come, and its settings run as often as the race wants.
    if e.tuned.is_some() && matches!(warning.code, Code::Incomplete | Code::TooFewTrials) {
        return false;
    }
    let shown_elsewhere = matches!(
        warning.code,
        Code::Unsteady
            | Code::PercentileUnsupported
            | Code::Trial(Doubt::TooShort | Doubt::UnsteadyWindow | Doubt::Bimodal | Doubt::WarmUpUnfinished)
    );
    if shown_elsewhere || is_of_the_run(warning.code) {
        return false;
    }
    // The answer says it itself.
    let withheld = matches!(e.claims.first(), Some(Claim::Undecided { comparison, .. }) if comparison.withheld == Some(Withheld::Drift));
    if warning.code == Code::SpeedChanges && withheld {
        return false;
    }
    // Its rows have no figure, so no answer is about them.
    if warning.code == Code::Trial(Doubt::NoContinue) {
        return true;
    }
    let about: Vec<String> = match e.claims.first() {
        Some(
            Claim::Knob { comparison, .. }
            | Claim::Cliff { comparison, .. }
            | Claim::Undecided { comparison, .. },
        ) => labels(e, &[comparison.scenario, comparison.against]),
        Some(Claim::Systems { comparison, equal, ties, .. }) => {
            labels(e, &[&[comparison.scenario, comparison.against][..], equal, ties].concat())
        }
        _ => return true,
    };
    warning.scenarios.is_empty() || warning.scenarios.iter().any(|scenario| about.contains(scenario))
}

fn labels(e: &FigureView<'_>, scenarios: &[usize]) -> Vec<String> {
    let known = scenarios.iter().filter_map(|index| e.estimates.get(*index));
    known.map(|estimate| e.label(&estimate.scenario)).collect()
}

/// Warnings about the machine, each once, from the experiment that it concerns most.
fn warnings_of_the_run(page: &Page, out: &mut String, findings: &Findings) {
    let mut seen: Vec<(Code, &Warning, usize)> = Vec::new();
    let asked = findings.experiments.first().map_or(Asked::File, |e| Asked::of(e));
    // The figures of an experiment share its trials.
    let each = findings.experiments.iter().filter_map(|e| e.views().next());
    for warning in each.flat_map(|e| e.warnings).filter(|w| is_of_the_run(w.code)) {
        match seen.iter_mut().find(|(code, ..)| *code == warning.code) {
            Some((_, most, count)) => {
                *count += 1;
                if warning.count > most.count {
                    *most = warning;
                }
            }
            None => seen.push((warning.code, warning, 1)),
        }
    }
    for (_, warning, count) in seen {
        let Advice { message, remedy } = advice(warning, asked);
        let all = findings.experiments.len();
        let places = if all > 1 { format!(", and in {count} of {all} experiments") } else { String::new() };
        page.paragraph(out, YELLOW, "", &format!("warning: {message}{places}. Remedy: {remedy}."));
    }
    if !out.is_empty() {
        let _ = writeln!(out);
    }
}
