//! The sentences that a reader takes away: by how much each knob moves the figure while the others stand still.
//!
//! They speak of medians as observed. Whether a difference is more than noise is a verdict, which needs an interval.

use std::collections::BTreeMap;

use systems::{Point, Value};

use super::{Estimate, reason};
use crate::experiment::Figure;
use crate::experiment::grid::Axis;
use crate::plan::{Planned, projection};

/// Below this ratio of medians a knob is said to make no difference: about what repeated runs of one configuration
/// differ by (1.4 % between accidental repetitions in the published Cowboy uploads, 1.6 % in IODash's), with room for shorter
/// windows.
pub(super) const FLAT: f64 = 1.05;

/// A fall between neighbouring values beyond what their ratio explains, from which it is called a cliff.
pub(crate) const CLIFF: f64 = 1.5;

/// Knobs that set how much work one operation is, or how long it must wait: that more work takes longer is no
/// finding. Only cliffs are.
const WORK: [&str; 5] = ["size", "frame_size", "delay_ms", "timeout_ms", "rate"];

/// One comparison of two scenarios that differ in one thing.
struct Effect {
    /// How many times better, in medians.
    ratio: f64,
    sentence: String,
}

/// One sentence for each knob that varies, and for the systems, the largest effect first; flat knobs last.
pub(super) fn headlines(planned: &Planned, estimates: &[Estimate]) -> Vec<String> {
    let rows: Vec<&Estimate> = estimates.iter().filter(|e| !e.is_reference() && e.compares()).collect();
    let mut effects: Vec<Effect> = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        effects.extend(if is_work(planned, axis) {
            cliff(planned, axis, &rows)
        } else {
            knob(planned, axis, &rows)
        });
    }
    effects.extend(systems(planned, &rows));
    effects.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    effects.into_iter().map(|effect| effect.sentence).collect()
}

fn is_work(planned: &Planned, axis: &Axis) -> bool {
    // The time of one upload among several that share a machine is work, too.
    let shared = planned.figure == Figure::MsPerUpload && axis.knob == "concurrency";
    axis.workload && (shared || WORK.contains(&axis.knob.as_str()))
}

/// Scenarios that differ in one knob only.
fn groups<'a>(rows: &[&'a Estimate], knob: &str) -> Vec<Vec<&'a Estimate>> {
    let mut groups: BTreeMap<(&str, Point), Vec<&Estimate>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.scenario.point.contains_key(knob)) {
        let mut rest = row.scenario.point.clone();
        rest.remove(knob);
        groups.entry((&row.scenario.system, rest)).or_default().push(row);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

fn advantage(figure: Figure, a: &Estimate, b: &Estimate) -> f64 {
    figure.advantage(a.figure.unwrap_or(f64::NAN), b.figure.unwrap_or(f64::NAN))
}

/// A pair of rows and how many times better the first is: at least so many, where the generator held it back.
#[derive(Clone, Copy)]
struct Pair<'a> {
    best: &'a Estimate,
    worst: &'a Estimate,
    ratio: f64,
}

impl Pair<'_> {
    /// Whether the difference is there in each round, not only between the medians.
    fn shows_in_every_round(&self, figure: Figure) -> bool {
        self.best.least_advantage(figure, self.worst).is_some_and(|least| least >= FLAT)
    }

    fn times(&self) -> String {
        let least = if self.best.is_lower_bound() { "at least " } else { "" };
        match self.ratio {
            r if r < 1.995 => format!("{least}{r:.2}x"),
            r if r < 99.5 => format!("{least}{r:.1}x"),
            r => format!("{least}{r:.0}x"),
        }
    }

    fn rounds(&self) -> String {
        match self.best.trials.min(self.worst.trials) {
            1 => "one round".to_owned(),
            n => format!("medians of {n} rounds"),
        }
    }
}

/// The best and the worst of a group. A row that the generator held back may be better than it looks: never the
/// worst.
fn extremes<'a>(figure: Figure, group: &[&'a Estimate]) -> Option<Pair<'a>> {
    let order = |a: &&'a Estimate, b: &&'a Estimate| advantage(figure, a, b).total_cmp(&1.0);
    let best = group.iter().copied().max_by(order)?;
    let others = group.iter().copied().filter(|e| !e.is_lower_bound() && !std::ptr::eq(*e, best));
    let worst = others.min_by(order)?;
    Some(Pair { best, worst, ratio: advantage(figure, best, worst) })
}

/// The first of the largest.
fn largest<'a>(pairs: impl Iterator<Item = Pair<'a>>) -> Option<Pair<'a>> {
    pairs.reduce(|known, pair| if pair.ratio > known.ratio { pair } else { known })
}

fn knob(planned: &Planned, axis: &Axis, rows: &[&Estimate]) -> Option<Effect> {
    let groups = groups(rows, &axis.knob);
    let pair = largest(groups.iter().filter_map(|group| extremes(planned.figure, group)))?;
    let (name, ratio) = (&axis.knob, pair.ratio);
    if ratio < FLAT {
        // Rows that the generator held back look alike without being so.
        let known = groups.iter().flatten().all(|e| !e.is_lower_bound());
        let sentence = format!("`{name}` makes no difference: within {ratio:.2}x ({})", pair.rounds());
        return known.then_some(Effect { ratio, sentence });
    }
    let value = |e: &Estimate| axis.show(&e.scenario.point[name]);
    if !pair.shows_in_every_round(planned.figure) {
        let sentence = format!(
            "`{name}`: no difference that every round shows ({}{})",
            context(planned, pair.best, Some(name)),
            pair.rounds()
        );
        return Some(Effect { ratio: 1.0, sentence });
    }
    let sentence = format!(
        "`{name}`: {} is {} faster than {} ({}{})",
        value(pair.best),
        pair.times(),
        value(pair.worst),
        context(planned, pair.best, Some(name)),
        pair.rounds()
    );
    Some(Effect { ratio, sentence: explained(planned, sentence, pair) })
}

/// The same work by different systems, each at its best.
fn systems(planned: &Planned, rows: &[&Estimate]) -> Option<Effect> {
    let mut groups: BTreeMap<Point, BTreeMap<&str, &Estimate>> = BTreeMap::new();
    for row in rows {
        let own = projection(planned.workload, &row.scenario.point);
        let best = groups.entry(own).or_default().entry(&row.scenario.system).or_insert(row);
        if advantage(planned.figure, row, best) > 1.0 {
            *best = row;
        }
    }
    let groups = groups.into_values().map(|systems| systems.into_values().collect::<Vec<_>>());
    let pair = largest(groups.filter_map(|group| extremes(planned.figure, &group)))?;
    let point = context(planned, pair.best, None);
    let alike = pair.ratio < FLAT || !pair.shows_in_every_round(planned.figure);
    let how = if alike { "about as fast as" } else { &format!("{} faster than", pair.times()) };
    let (a, b) = (&pair.best.scenario.system, &pair.worst.scenario.system);
    let work = if pair.best.unequal == pair.worst.unequal { "" } else { ", whose work is not the same" };
    let sentence = format!("{a} is {how} {b}{work} ({point}{})", pair.rounds());
    Some(Effect { ratio: pair.ratio, sentence })
}

/// The deepest fall between neighbouring values, if it is deeper than the step from one to the other explains.
fn cliff(planned: &Planned, axis: &Axis, rows: &[&Estimate]) -> Option<Effect> {
    let number = |e: &Estimate| match e.scenario.point.get(&axis.knob) {
        Some(Value::Integer(number)) if *number > 0 => Some(*number as f64),
        _ => None,
    };
    let mut deepest: Option<(f64, Pair)> = None;
    for mut group in groups(rows, &axis.knob) {
        group.sort_by_key(|e| e.scenario.point.get(&axis.knob));
        let falls = group.windows(2).filter(|pair| {
            let least = pair[0].least_advantage(planned.figure, pair[1]);
            !pair[1].is_lower_bound() && least.is_some_and(|least| least >= FLAT)
        });
        for pair in falls {
            let (Some(small), Some(large)) = (number(pair[0]), number(pair[1])) else { continue };
            let fall = advantage(planned.figure, pair[0], pair[1]);
            let beyond = fall / (large / small);
            if beyond >= CLIFF && deepest.is_none_or(|(known, _)| beyond > known) {
                deepest = Some((beyond, Pair { best: pair[0], worst: pair[1], ratio: fall }));
            }
        }
    }
    let (_, pair) = deepest?;
    let name = &axis.knob;
    let value = |e: &Estimate| axis.show(&e.scenario.point[name]);
    let sentence = format!(
        "`{name}`: a cliff, {} slower at {} than at {} ({}{})",
        pair.times(),
        value(pair.worst),
        value(pair.best),
        context(planned, pair.worst, Some(name)),
        pair.rounds()
    );
    Some(Effect { ratio: pair.ratio, sentence: explained(planned, sentence, pair) })
}

/// With the counts that explain it.
fn explained(planned: &Planned, sentence: String, pair: Pair) -> String {
    match reason::between(planned.workload, pair.best, pair.worst) {
        Some(reason) => format!("{sentence}: {reason}"),
        None => sentence,
    }
}

/// What stood still, as far as it differs between rows; ends in "; ".
fn context(planned: &Planned, of: &Estimate, but: Option<&str>) -> String {
    let mut words = Vec::new();
    if but.is_some() {
        words.push(of.scenario.system.clone());
    }
    for axis in planned.axes.iter().filter(|a| a.values.len() > 1 && Some(a.knob.as_str()) != but) {
        // Between systems only the workload's own knobs are equal.
        if let Some(value) = of.scenario.point.get(&axis.knob).filter(|_| but.is_some() || axis.workload) {
            words.push(format!("{} {}", axis.knob, axis.show(value)));
        }
    }
    if words.is_empty() { String::new() } else { format!("{}; ", words.join(", ")) }
}
