//! Makes figures from findings. Chooses what is drawn, and computes no new values.

mod comparisons;
mod course;
mod flame;
mod knobs;
mod scenarios;
mod search;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use lab::experiment::grid::Axis as Knob;
use lab::findings::{Estimate, FigureView, Findings, Unit};
use systems::{Point, Value, is_reference};

pub use flame::flame_graph;

use super::figure::Figure;
use crate::svg::{Axis, HUES, Interval, NOT_RANKED, Scale, Style, Ticks};
use crate::words::quantity;

/// The name of the intervals that `lab::findings` computes.
const INTERVAL: &str = "95 % interval";

/// The name that leaves out the system where names of knobs leave out knobs. No knob may have it.
const SYSTEM: &str = "systems";

/// More series than these cannot be told apart in one figure.
const SERIES: usize = 8;

/// A colour for each system, the same in every figure and table of a report.
pub(super) struct Palette {
    hues: BTreeMap<String, usize>,
}

impl Palette {
    /// The systems, in the order in which they appear.
    pub(super) fn of(findings: &Findings) -> Self {
        let mut hues = BTreeMap::new();
        let scenarios = findings.views().flat_map(|e| e.estimates).map(|e| &e.scenario);
        for scenario in scenarios.filter(|s| !is_reference(&s.system)) {
            let next = hues.len();
            hues.entry(scenario.system.clone()).or_insert(next);
        }
        Self { hues }
    }

    /// Whether this word is the name of a system with a colour.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.hues.contains_key(word) || is_reference(word)
    }

    /// The style of a system. If there are more systems than colours, colours repeat with other shapes.
    pub(super) fn style(&self, system: &str, shape: usize) -> Style {
        let hue = self.hues.get(system).copied();
        Style { hue: hue.map(|at| at % HUES), shape: shape + hue.unwrap_or(0) / HUES, hollow: false }
    }
}

/// The figures that show the answer: its knobs and its scenarios, or the course of a search.
pub(super) fn answers(e: &FigureView<'_>, palette: &Palette) -> Vec<Figure> {
    let view = View::new(e, palette);
    if view.rows.is_empty() {
        return Vec::new();
    }
    let mut figures = match &e.tuned {
        Some(found) => search::figures(&view, found),
        None => compared(&view),
    };
    if let Some(first) = figures.first_mut() {
        first.main = true;
    }
    figures
}

fn compared(view: &View) -> Vec<Figure> {
    let mut figures = knobs::sweeps(view);
    figures.extend(knobs::heats(view));
    if figures.is_empty() || view.choices() {
        figures.insert(0, scenarios::ranking(view));
    }
    figures.extend(comparisons::forest(view));
    figures
}

/// The figures that explain the answer, and those of the data behind it. A search has none, because they would be of settings
/// that were lucky in a few trials.
pub(super) fn more(e: &FigureView<'_>, palette: &Palette) -> Vec<Figure> {
    if e.tuned.is_some() {
        return Vec::new();
    }
    let view = View::new(e, palette);
    let all = [
        scenarios::cpu(&view),
        scenarios::memory(&view),
        scenarios::ceiling(&view),
        course::spectrum(&view),
        course::window(&view),
        course::connections(&view),
        course::rounds(&view),
    ];
    all.into_iter().flatten().collect()
}

/// The parts of an experiment that figures use.
struct View<'a> {
    e: &'a FigureView<'a>,
    palette: &'a Palette,
    /// The knobs with more than one value.
    varied: Vec<&'a Knob>,
    /// The scenarios with a figure.
    rows: Vec<&'a Estimate>,
}

impl<'a> View<'a> {
    fn new(e: &'a FigureView<'a>, palette: &'a Palette) -> Self {
        let varied = e.axes.iter().filter(|axis| axis.values.len() > 1).collect();
        let rows = e.estimates.iter().filter(|row| row.figure.is_some_and(f64::is_finite)).collect();
        Self { e, palette, varied, rows }
    }

    /// The measured quantity in words, and its unit.
    fn quantity(&self) -> (&'static str, Unit) {
        (quantity(self.e.figure), Unit::of(self.e.figure))
    }

    fn better(&self) -> &'static str {
        if self.e.figure.more_is_better() { "higher is better" } else { "lower is better" }
    }

    /// The axis of the quantity, over these values and their intervals.
    fn axis(&self, values: &[(f64, Option<Interval>)]) -> Axis {
        let (name, unit) = self.quantity();
        let all = values.iter().flat_map(|(v, i)| [*v, i.map_or(*v, |i| i.0), i.map_or(*v, |i| i.1)]);
        let scale = Scale::of(all);
        let log = if scale == Scale::Log { ", logarithmic" } else { "" };
        Axis { label: format!("{name} ({}{log})", self.better()), unit, scale, ticks: Ticks::Round }
    }

    /// Whether the experiment varies no knob with numeric values.
    fn choices(&self) -> bool {
        self.varied.iter().all(|knob| !numeric(knob))
    }

    /// The style of a scenario: an outline if it is not ranked.
    fn style(&self, row: &Estimate) -> Style {
        Style { hollow: !row.is_ranked(), ..self.palette.style(&row.scenario.system, 0) }
    }

    /// The value of a knob in a scenario, formatted.
    fn value(&self, row: &Estimate, knob: &str) -> Option<String> {
        let axis = self.e.axes.iter().find(|axis| axis.knob == knob)?;
        Some(axis.show(row.scenario.point.get(knob)?))
    }

    /// The system and the knobs that are equal in a comparison, in brackets. Empty if nothing else varies.
    fn context(&self, row: &Estimate, without: &[&str]) -> String {
        let mut words = self.words(row, without);
        let several = self.rows.iter().any(|e| !e.is_reference() && e.scenario.system != row.scenario.system);
        if several && !without.contains(&SYSTEM) {
            words.insert(0, row.scenario.system.clone());
        }
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }

    /// A scenario in one line, without these knobs.
    fn label(&self, row: &Estimate, without: &[&str]) -> String {
        let words = self.words(row, without);
        let system = &row.scenario.system;
        if words.is_empty() { system.clone() } else { format!("{system}: {}", words.join(", ")) }
    }

    fn words(&self, row: &Estimate, without: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        for knob in self.varied.iter().filter(|knob| !without.contains(&knob.knob.as_str())) {
            if let Some(value) = row.scenario.point.get(&knob.knob) {
                words.push(format!("{} {}", knob.knob, knob.show(value)));
            }
        }
        words
    }

    /// Orders two scenarios: the better one is greater. Ranked scenarios are greater than others, and those that may be
    /// ranked are greater than those that may not.
    fn order(&self, a: &Estimate, b: &Estimate) -> Ordering {
        let rank = |e: &Estimate| (e.is_ranked(), e.ranks());
        let value = |e: &Estimate| {
            let figure = e.figure.unwrap_or(f64::NAN);
            if self.e.figure.more_is_better() { figure } else { -figure }
        };
        rank(a).cmp(&rank(b)).then_with(|| value(a).total_cmp(&value(b)))
    }

    /// The best scenario of each system, and the reference of the best of all.
    fn best(&self) -> Vec<&'a Estimate> {
        let mut best: BTreeMap<&str, &'a Estimate> = BTreeMap::new();
        for &row in self.rows.iter().filter(|row| !row.is_reference()) {
            let known = best.entry(&row.scenario.system).or_insert(row);
            if self.order(row, known).is_gt() {
                *known = row;
            }
        }
        let mut chosen: Vec<&Estimate> = best.into_values().collect();
        chosen.sort_by(|a, b| self.order(b, a));
        chosen.truncate(SERIES - 1);
        let first = chosen.first().copied();
        let reference = self.rows.iter().filter(|row| row.is_reference());
        let agrees = |row: &&&Estimate| {
            first.is_none_or(|first| {
                row.scenario.point.iter().all(|(k, v)| first.scenario.point.get(k) == Some(v))
            })
        };
        chosen.extend(reference.clone().find(agrees).or_else(|| reference.clone().next()));
        chosen
    }

    /// The meaning of marks and whiskers, for a caption.
    fn how_to_read(&self) -> String {
        let (rounds, percent) = (self.e.rounds, INTERVAL);
        if self.rows.iter().all(|row| row.interval.is_none()) {
            return match rounds {
                1 => "Marks are figures of one round, which is too few for intervals.".to_owned(),
                _ => format!("Marks are means over {rounds} rounds, which are too few for intervals."),
            };
        }
        format!(
            "Marks are means over up to {rounds} rounds, whiskers are {percent}s of this machine and hour. Comparisons within rounds are more exact."
        )
    }
}

/// The meaning of outlines, for a caption and for a legend. Empty if there are none.
fn outlines(mut drawn: impl Iterator<Item = bool>) -> (&'static str, Vec<(String, Style)>) {
    if !drawn.any(|hollow| hollow) {
        return ("", Vec::new());
    }
    let swatch = |word: &str, hollow| (word.to_owned(), Style { hue: None, shape: 0, hollow });
    let words = " Hollow marks are not ranked, because of warnings or too few rounds for an interval.";
    (words, vec![swatch("ranked", false), swatch(NOT_RANKED, true)])
}

/// Whether all values of a knob are numbers.
fn numeric(knob: &Knob) -> bool {
    knob.values.iter().all(|value| matches!(value, Value::Integer(_)))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

/// A point without one knob.
fn rest(point: &Point, without: &str) -> Point {
    point.iter().filter(|(knob, _)| *knob != without).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests;
