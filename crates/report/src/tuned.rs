//! What a search advises, in words.

use lab::plan::Planned;
use lab::search::{Advice, Contribution};
use stats::Verdict;
use systems::manifest::applied;
use systems::{Point, Value};

use crate::number::{interval_in_hundredths, several};
use crate::printable;
use crate::text::{BOLD, DIM, GREEN, Page, YELLOW};

/// The answer of an experiment's search: one sentence, what each knob contributes, what hardly matters, and how to set it.
pub fn tuned(planned: &Planned, advice: &Advice, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let system = planned.base.as_ref().map_or("", |base| base.scenario.system.as_str());
    let mut out = String::new();
    page.paragraph(&mut out, BOLD, "", system);
    let style = if advice.changes() { GREEN } else { YELLOW };
    page.paragraph(&mut out, style, "  ", &answer(planned, advice));
    let several_knobs = advice.contributions.len() > 1;
    for one in advice.contributions.iter().filter(|_| several_knobs) {
        page.paragraph(&mut out, "", "  ", &contribution(planned, one));
    }
    if !advice.flat.is_empty() {
        let knobs = advice.flat.join(", ");
        page.paragraph(&mut out, "", "  ", &format!("hardly mattered, as the race estimates: {knobs}"));
    }
    let basis = format!(
        "{} raced over {} of {} settings; {} of their own decided.",
        several(advice.raced.into(), "trial"),
        advice.settings - advice.untried,
        advice.settings,
        several(advice.rounds.into(), "fresh round")
    );
    page.paragraph(&mut out, DIM, "  ", &basis);
    let apply = planned.apply.get(system);
    for (knob, value) in changed(planned, advice) {
        if let Some(apply) = apply.and_then(|apply| apply.get(knob)) {
            out.push_str(&format!("    {}\n", printable(&applied(apply, value))));
        } else if apply.is_some() {
            page.paragraph(&mut out, "", "  ", &format!("{knob}: the manifest does not say how to apply it"));
        }
    }
    out
}

/// The advised values that are not the defaults.
fn changed<'a>(planned: &'a Planned, advice: &'a Advice) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let base = planned.base.as_ref().map(|base| &base.scenario.point);
    advice.point.iter().filter(move |(knob, value)| base.and_then(|base| base.get(*knob)) != Some(value))
}

fn answer(planned: &Planned, advice: &Advice) -> String {
    let winner = setting(planned, &advice.winner);
    let figure = planned.figure.name();
    let gain = advice.gain.map(interval_in_hundredths).unwrap_or_else(|| "not compared".to_owned());
    let least = if advice.at_least { "at least " } else { "" };
    match advice.verdict {
        Verdict::Faster => format!("set {winner}: {least}{gain} times as good as the defaults in {figure}"),
        verdict => {
            let why = match verdict {
                Verdict::NoDifference => "no difference worth having",
                Verdict::Slower => "worse",
                _ => "undecided",
            };
            format!(
                "keep the defaults: the best other setting that was found, {winner}, is {why}: {gain} in {figure}"
            )
        }
    }
}

fn contribution(planned: &Planned, one: &Contribution) -> String {
    let point = Point::from([(one.knob.clone(), one.value.clone())]);
    let ratio = one.ratio.map(interval_in_hundredths).unwrap_or_else(|| "not compared".to_owned());
    let verdict = match one.verdict {
        Verdict::Faster => "better than at its default",
        Verdict::Slower => "worse than at its default",
        Verdict::NoDifference => "no difference worth having",
        Verdict::Undecided { .. } => "undecided",
    };
    format!("{}: {ratio}, {verdict}", setting(planned, &point))
}

/// The knobs of a point that are not at their default.
fn setting(planned: &Planned, point: &Point) -> String {
    let mut words = Vec::new();
    for axis in &planned.axes {
        let base = planned.base.as_ref().and_then(|base| base.scenario.point.get(&axis.knob));
        if let Some(value) = point.get(&axis.knob).filter(|value| base != Some(value)) {
            words.push(format!("{}={}", axis.knob, axis.show(value)));
        }
    }
    words.join(" ")
}
