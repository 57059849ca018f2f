//! Compares uploads then and today: how much each knob changes, its best value, and systems and runtimes against each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::super::PublishedTable;
use super::today::same_size;
use super::{FLAT, Pair, SAME_SIZE, Today, all, range, shape, systems_of, within};
use lab::findings::{BestValues, Range, Shape, ShapeFigures};

pub(super) fn steps(table: &PublishedTable, pairs: &[Pair], today: &Today) -> Vec<Shape> {
    let knobs = table.varied().filter(|column| column.name != "size");
    let mut all: Vec<Shape> = knobs.filter_map(|column| knob(&column.name, pairs, today)).collect();
    all.extend(systems(pairs, today));
    all.extend(runtimes(pairs, today));
    all
}

/// A row that has both figures, with its value of a knob.
struct ValuePair<'a> {
    value: &'a Value,
    pair: &'a Pair<'a>,
    then: f64,
    now: f64,
}

/// The values of one knob while everything else is equal.
type Series<'a> = Vec<ValuePair<'a>>;

fn quickest<'a>(series: &'a Series<'a>, time: fn(&ValuePair) -> f64) -> Option<&'a ValuePair<'a>> {
    series.iter().min_by(|a, b| time(a).total_cmp(&time(b)))
}

fn slowest<'a>(series: &'a Series<'a>, time: fn(&ValuePair) -> f64) -> Option<&'a ValuePair<'a>> {
    series.iter().max_by(|a, b| time(a).total_cmp(&time(b)))
}

/// The factor between a knob's worst and best value, and which value is best.
fn knob(name: &str, pairs: &[Pair], today: &Today) -> Option<Shape> {
    let mut groups: BTreeMap<(&str, &str, Point), Series> = BTreeMap::new();
    for pair in pairs {
        let (Some((then, now)), Some(value)) = (pair.both(), pair.point.get(name)) else { continue };
        let mut rest = pair.point.clone();
        rest.remove(name);
        groups.entry((pair.variant, pair.system, rest)).or_default().push(ValuePair {
            value,
            pair,
            then,
            now,
        });
    }
    let groups: Vec<Series> = groups.into_values().filter(|series| series.len() > 1).collect();
    let factor = |time: fn(&ValuePair) -> f64| {
        range(groups.iter().filter_map(|s| Some(time(slowest(s, time)?) / time(quickest(s, time)?))))
    };
    let (then, now) = (factor(|step| step.then)?, factor(|step| step.now)?);
    // The best and the worst are chosen by the result, which counts as comparing all values with each other.
    let several: usize = groups.iter().map(|s| s.len() * (s.len() - 1) / 2).sum();
    let ratio = |a: &ValuePair, b: &ValuePair| today.ratio(a.pair.now?, b.pair.now?, several);
    let mut agrees = all(groups.iter().map(|series| {
        let ends = quickest(series, |step| step.now).zip(slowest(series, |step| step.now));
        same_size(then, ends.and_then(|(best, worst)| ratio(best, worst)))
    }));
    let mut best = None;
    // A knob that changes nothing has no best value.
    if then.high >= FLAT && now.high >= FLAT {
        let values = |time: fn(&ValuePair) -> f64| {
            groups.iter().filter_map(|s| Some(quickest(s, time)?.value)).collect::<BTreeSet<&Value>>()
        };
        let (best_then, best_now) = (values(|step| step.then), values(|step| step.now));
        // If no other value is better today than the best value then, the optimum has not moved.
        let as_good = all(groups.iter().map(|series| {
            let published_best = series.iter().filter(|step| best_then.contains(step.value));
            let published_best = published_best.min_by(|a, b| a.now.total_cmp(&b.now))?;
            let others = series.iter().filter(|step| step.value != published_best.value);
            all(others.map(|other| within(ratio(other, published_best), (0.0, FLAT))))
        }));
        agrees = all([agrees, as_good]);
        let [then, today] =
            [best_then, best_now].map(|values| values.into_iter().cloned().collect::<Vec<Value>>());
        best = Some(BestValues { then, today, as_good });
    }
    let own = pairs.iter().filter(|pair| pair.both().is_some());
    Some(shape(agrees, ShapeFigures::Knob { knob: name.to_owned(), then, today: now, best }, own))
}

/// The ratio of the later system to the earlier at each size.
fn systems(pairs: &[Pair], today: &Today) -> Vec<Shape> {
    let [first, second] = systems_of(pairs.iter().map(|pair| pair.system))[..] else { return Vec::new() };
    let sizes: BTreeSet<i64> = pairs.iter().filter_map(|pair| pair.integer("size")).collect();
    let variants: BTreeSet<&str> = pairs.iter().map(|pair| pair.variant).collect();
    let several = sizes.len();
    let at_size = |size: i64| {
        let find = |system: &str, variant: &str| {
            pairs
                .iter()
                .find(|p| p.system == system && p.variant == variant && p.integer("size") == Some(size))
        };
        let couples: Vec<(&Pair, &Pair)> =
            variants.iter().filter_map(|v| Some((find(first, v)?, find(second, v)?))).collect();
        let then = range(couples.iter().filter_map(|(a, b)| Some(b.then? / a.then?)))?;
        let (now, agrees) = times(&couples, then, several, today).unzip();
        let absent = |of: fn(&(&Pair, &Pair)) -> bool| couples.iter().all(of);
        let missing = [(first, absent(|(a, _)| a.now.is_none())), (second, absent(|(_, b)| b.now.is_none()))];
        let missing = missing.into_iter().filter(|(_, absent)| *absent);
        let figures = ShapeFigures::Times {
            of: second.to_owned(),
            against: first.to_owned(),
            system: None,
            size: Some(size),
            then,
            today: now,
            missing: missing.map(|(system, _)| system.to_owned()).collect(),
        };
        Some(shape(agrees.flatten(), figures, couples.iter().flat_map(|(a, b)| [*a, *b])))
    };
    sizes.into_iter().filter_map(at_size).collect()
}

/// Today's range of ratios of the second time to the first, and whether all have the size of the published ones and are
/// on the same side of 1. None if no couple ran.
fn times(
    couples: &[(&Pair, &Pair)],
    then: Range,
    several: usize,
    today: &Today,
) -> Option<(Range, Option<bool>)> {
    let ran = || couples.iter().filter_map(|(a, b)| Some((b.today()? / a.today()?, a.now?, b.now?)));
    let now = range(ran().map(|(ratio, ..)| ratio))?;
    let allowed = match () {
        () if then.low > FLAT => ((then.low / SAME_SIZE).max(FLAT), then.high * SAME_SIZE),
        () if then.high < 1.0 / FLAT => (then.low / SAME_SIZE, (then.high * SAME_SIZE).min(1.0 / FLAT)),
        () => (then.low / SAME_SIZE, then.high * SAME_SIZE),
    };
    let agreements = ran().map(|(_, a, b)| within(today.ratio(a, b, several), allowed));
    Some((now, all(agreements)))
}

/// By system and size, pairs of the same row on the earlier and on the later runtime.
type Couples<'a> = BTreeMap<(&'a str, Option<i64>), Vec<(&'a Pair<'a>, &'a Pair<'a>)>>;

/// The ratio of the later runtime to the earlier, for each system at each size, if both ran.
fn runtimes(pairs: &[Pair], today: &Today) -> Vec<Shape> {
    let variants: BTreeSet<&str> = pairs.iter().map(|pair| pair.variant).collect();
    let [first, second] = variants.into_iter().collect::<Vec<_>>()[..] else { return Vec::new() };
    let mut couples = Couples::new();
    for a in pairs.iter().filter(|pair| pair.variant == first) {
        let same = |b: &&Pair| b.variant == second && b.system == a.system && b.point == a.point;
        let Some(b) = pairs.iter().find(same) else { continue };
        // A single system that stands for both runtimes says nothing about them.
        let ran = a.now.zip(b.now).filter(|(a, b)| a.scenario.system != b.scenario.system);
        if ran.is_some() && a.then.is_some() && b.then.is_some() {
            couples.entry((a.system, a.integer("size"))).or_default().push((a, b));
        }
    }
    let shapes = couples.iter().filter_map(|((system, size), rows)| {
        let then = range(rows.iter().filter_map(|(a, b)| Some(b.then? / a.then?)))?;
        let (now, agrees) = times(rows, then, couples.len(), today)?;
        let figures = ShapeFigures::Times {
            of: second.to_owned(),
            against: first.to_owned(),
            system: Some((*system).to_owned()),
            size: *size,
            then,
            today: Some(now),
            missing: Vec::new(),
        };
        Some(shape(agrees, figures, rows.iter().flat_map(|(a, b)| [*a, *b])))
    });
    shapes.collect()
}
