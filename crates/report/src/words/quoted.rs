//! What is said of a claim outside Narrows: the lines of its block in a Markdown file, the words of a badge, and whether a later run
//! still says the same.

use lab::findings::{Estimate, FigureView, Ratio, Unit};
use lab::observation::Scenario;
use lab::quoted::{Quoted, Standing};
use printable::printable;
use stats::Verdict;

use super::answer::answer;
use super::claims::quantity;
use crate::date;
use crate::html::Run;
use crate::markdown::plain;
use crate::number::{interval, several, show};
use crate::text::Page;

/// The most rows of the table in a block.
const ROWS: usize = 6;

/// The width of the lines in a block, in characters.
const WIDTH: usize = 100;

/// The first claim of a figure, if it is decided.
///
/// # Errors
/// Why there is nothing to quote, in words that follow the name of the run.
pub(crate) fn decided(e: &FigureView<'_>) -> Result<Quoted, String> {
    if e.tuned.is_some() {
        return Err("it searched for the best setting, and only a comparison can be quoted".to_owned());
    }
    let claim = Quoted::of(e).filter(|claim| claim.verdict.is_decided() && claim.is_possible());
    claim.ok_or_else(|| format!("nothing is decided that could be quoted: {}", answer(e)))
}

/// The lines of a block without its claim: the sentence, a table, when and where it was measured, and the command.
pub(crate) fn lines(e: &FigureView<'_>, claim: &Quoted, run: &Run<'_>, of_commits: bool) -> String {
    let mut out = String::from("\n");
    let page = Page::new(WIDTH, false);
    page.paragraph(&mut out, "", "", &format!("**{}**", plain(&answer(e))));
    out.push('\n');
    out.push_str(&table(e, claim));
    out.push('\n');
    page.paragraph(&mut out, "", "", &plain(&conditions(e, claim, run, of_commits)));
    // A line that begins like this ends no fence.
    out.push_str(&format!("\n```sh\nnarrows {}\n```\n", printable(run.command)));
    out
}

fn table(e: &FigureView<'_>, claim: &Quoted) -> String {
    let good = if e.figure.is_cost() { "good" } else { "fast" };
    let cell = |text: String| plain(&text).replace('|', "\\|");
    let against = cell(e.label(&claim.against));
    let mut out = format!(
        "| system | {} | times as {good} as {against} |\n| --- | ---: | ---: |\n",
        quantity(e.figure)
    );
    for (estimate, ratio) in rows(e, claim) {
        let figure = estimate.figure.map_or("-".to_owned(), |figure| show(figure, Unit::of(e.figure)));
        let ratio = ratio.map_or("1".to_owned(), interval);
        out.push_str(&format!("| {} | {figure} | {ratio} |\n", cell(e.label(&estimate.scenario))));
    }
    out
}

/// The scenarios that were compared with the same one as the claim's, with their ratios; it has none itself. If there are too many,
/// those of the claim and the first others.
fn rows<'a>(e: &FigureView<'a>, claim: &Quoted) -> Vec<(&'a Estimate, Option<Ratio>)> {
    let is = |at: usize, scenario: &Scenario| e.estimates.get(at).is_some_and(|of| of.scenario == *scenario);
    let ratio = |estimate: &Estimate| {
        e.comparisons.iter().find_map(|c| {
            let forth = is(c.scenario, &estimate.scenario) && is(c.against, &claim.against);
            let back = is(c.against, &estimate.scenario) && is(c.scenario, &claim.against);
            let ratio = c.known().filter(|_| forth || back)?;
            Some(if forth { ratio } else { ratio.inverse() })
        })
    };
    let row = |(at, estimate): (usize, &'a Estimate)| {
        // The interval of the claim allows for the choice of its comparison.
        let seen = match estimate.scenario == claim.scenario {
            true => Some(claim.ratio),
            false => ratio(estimate),
        };
        let is_against = estimate.scenario == claim.against;
        let first = is_against || estimate.scenario == claim.scenario;
        (seen.is_some() || is_against).then_some((!first, at, (estimate, seen.filter(|_| !is_against))))
    };
    let mut rows: Vec<_> = e.estimates.iter().enumerate().filter_map(row).collect();
    rows.sort_by_key(|(later, at, _)| (*later, *at));
    rows.truncate(ROWS);
    rows.sort_by_key(|(_, at, _)| *at);
    rows.into_iter().map(|(_, _, row)| row).collect()
}

/// What the intervals are, the versions or commits, when it was measured, and where.
fn conditions(e: &FigureView<'_>, claim: &Quoted, run: &Run<'_>, of_commits: bool) -> String {
    let mut words = "In brackets are 95 % intervals.".to_owned();
    let mut both = vec![&claim.against.system, &claim.scenario.system];
    both.dedup();
    let version = |system: &String| Some(format!("{system} {}", e.versions.get(system)?));
    let versions: Vec<String> = both.into_iter().filter_map(version).collect();
    if !versions.is_empty() {
        let what = if of_commits { "Commits" } else { "Versions" };
        words += &format!(" {what}: {}.", versions.join(", "));
    }
    let text = |name: &str| run.environment.get(name).and_then(serde_json::Value::as_str);
    let cores = run.environment.get("cores").and_then(serde_json::Value::as_array);
    let place = [
        text("cpu").map(str::to_owned),
        cores.map(|cores| several(cores.len() as u64, "core")),
        text("kernel").map(|kernel| kernel_in_short(kernel).to_owned()),
    ];
    let place: Vec<String> = place.into_iter().flatten().collect();
    let place = if place.is_empty() { "a machine that is not known".to_owned() } else { place.join(", ") };
    let day = day(run.started_unix_s);
    format!("{words} Narrows measured it on {day} on {place}:")
}

/// The name and the release of a kernel without the text of its build.
fn kernel_in_short(kernel: &str) -> &str {
    let second = kernel.match_indices(' ').nth(1);
    second.and_then(|(at, _)| kernel.get(..at)).unwrap_or(kernel)
}

/// The day of a time, in UTC.
fn day(unix_s: f64) -> String {
    date::utc(unix_s).split(' ').next().unwrap_or_default().to_owned()
}

/// What a badge says of a claim: what it is about, the ratio, and a colour of shields.io.
pub(crate) fn badge(e: &FigureView<'_>, claim: &Quoted) -> [String; 3] {
    let label = match claim.by.knob() {
        None => format!("{} beside {}", claim.scenario.system, claim.against.system),
        Some(knob) => {
            let axis = e.axes.iter().find(|axis| axis.knob == knob);
            let value = |scenario: &Scenario| {
                let value = scenario.point.get(knob).zip(axis);
                value.map_or_else(String::new, |(value, axis)| axis.show(value))
            };
            format!("{knob} {} beside {}", value(&claim.scenario), value(&claim.against))
        }
    };
    let (open, colour) = match claim.verdict {
        Verdict::Faster => ("", "brightgreen"),
        Verdict::Slower => ("", "orange"),
        Verdict::NoDifference => ("", "blue"),
        Verdict::Undecided { .. } => (", undecided", "lightgrey"),
    };
    [printable(&label), format!("{}{open}", interval(claim.ratio)), colour.to_owned()]
}

/// Whether a quoted claim is still true beside a later run: its number, when it began, and what it says. None if there is none.
pub fn standing(claim: &Quoted, later: Option<(i64, f64, Standing)>) -> String {
    let Some((run, started_unix_s, standing)) = later else {
        return "up to date: no later run in the store asked the same".to_owned();
    };
    let run = format!("run {run} of {}", day(started_unix_s));
    let both =
        |ratio: Ratio| format!("{run} says {}, and the block {}", interval(ratio), interval(claim.ratio));
    match standing {
        Standing::Holds(ratio) => format!("still true, but not of the last run: {}", both(ratio)),
        Standing::Open(ratio) => format!("open: {}, and that run is undecided", both(ratio)),
        Standing::Fails(ratio) => {
            let apart = ratio.high < claim.ratio.low || ratio.low > claim.ratio.high;
            let other = if apart { "" } else { ", with another verdict" };
            format!("no longer true: {}{other}", both(ratio))
        }
        Standing::Unjudged => {
            let [one, other] = [&claim.scenario, &claim.against].map(|scenario| called(claim, scenario));
            format!("cannot be judged: {run} asked the same, but has no ratio of {one} and {other}")
        }
    }
}

/// What a claim calls a scenario: its system, or its value of the knob.
fn called(claim: &Quoted, scenario: &Scenario) -> String {
    let value = claim.by.knob().and_then(|knob| Some(format!("{knob} {}", scenario.point.get(knob)?)));
    printable(&value.unwrap_or_else(|| scenario.system.clone()))
}
