//! Uploads then and today: what each knob moves, where it is best, and systems against each other.

use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::super::Table;
use super::{FLAT, Pair, Round, SAME_SIZE, Shape, judged, range, same_size, shown, systems_of};
use crate::experiment::grid::show_size;
use crate::findings::Estimate;

pub(super) fn steps(table: &Table, pairs: &[Pair], estimates: &[Estimate]) -> Vec<Shape> {
    let knobs = table.varied().filter(|column| column.name != "size");
    let mut all: Vec<Shape> =
        knobs.filter_map(|column| judged(estimates, |round| knob(&column.name, pairs, round))).collect();
    all.extend(systems(pairs, estimates));
    all.extend(runtimes(pairs, estimates));
    all
}

/// The values of one knob while all else stands still: the value, then, today, in milliseconds.
type Series<'a> = Vec<(&'a Value, f64, f64)>;

/// What a knob moves from its worst to its best value, and which value that is.
fn knob(name: &str, pairs: &[Pair], round: Round) -> Option<Shape> {
    let mut groups: BTreeMap<(&str, &str, Point), Series> = BTreeMap::new();
    for pair in pairs {
        let (Some((then, now)), Some(value)) = (pair.both(round), pair.point.get(name)) else { continue };
        let mut rest = pair.point.clone();
        rest.remove(name);
        groups.entry((pair.variant, pair.system, rest)).or_default().push((value, then, now));
    }
    let groups: Vec<Series> = groups.into_values().filter(|series| series.len() > 1).collect();
    let factor = |of: fn(&(&Value, f64, f64)) -> f64| {
        range(groups.iter().filter_map(|series| {
            let (low, high) = range(series.iter().map(of))?;
            Some(high / low)
        }))
    };
    let (then, now) = (factor(|row| row.1)?, factor(|row| row.2)?);
    let mut text =
        format!("`{name}` from its worst to its best value: {} then, {} today", shown(then), shown(now));
    let mut agrees = same_size(then, now);
    // Where nothing moves there is no best value.
    if then.1 >= FLAT && now.1 >= FLAT {
        let best = |of: fn(&(&Value, f64, f64)) -> f64| {
            let each = groups.iter().filter_map(|s| s.iter().min_by(|a, b| of(a).total_cmp(&of(b))));
            each.map(|(value, _, _)| *value).collect::<BTreeSet<&Value>>()
        };
        let words = |values: &BTreeSet<&Value>| {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
        };
        let (best_then, best_now) = (best(|row| row.1), best(|row| row.2));
        text.push_str(&format!("; the best is {} then, {} today", words(&best_then), words(&best_now)));
        // A value that is as good as today's best is no other optimum.
        let as_good = groups.iter().all(|series| {
            let least = series.iter().map(|row| row.2).fold(f64::INFINITY, f64::min);
            series.iter().any(|(value, _, now)| best_then.contains(value) && *now < FLAT * least)
        });
        if as_good && best_then != best_now {
            text.push_str(", from which it is less than 5 % away");
        }
        agrees &= as_good;
    }
    let own = pairs.iter().filter(|pair| pair.both(round).is_some());
    Some(Shape { agrees: Some(agrees), text }.unless_held_back(own))
}

/// The later system by the earlier at each size.
fn systems(pairs: &[Pair], estimates: &[Estimate]) -> Vec<Shape> {
    let [first, second] = systems_of(pairs)[..] else { return Vec::new() };
    let sizes: BTreeSet<i64> = pairs.iter().filter_map(|pair| pair.integer("size")).collect();
    let variants: BTreeSet<&str> = pairs.iter().map(|pair| pair.variant).collect();
    let at_size = |size: i64| {
        let find = |system: &str, variant: &str| {
            pairs
                .iter()
                .find(|p| p.system == system && p.variant == variant && p.integer("size") == Some(size))
        };
        let couples: Vec<(&Pair, &Pair)> =
            variants.iter().filter_map(|v| Some((find(first, v)?, find(second, v)?))).collect();
        let then = range(couples.iter().filter_map(|(a, b)| Some(b.then? / a.then?)))?;
        let what = format!("{second} by {first} at {}: {} the time then", show_size(size), shown(then));
        judged(estimates, |round| {
            let now = range(couples.iter().filter_map(|(a, b)| Some(b.today(round)? / a.today(round)?)));
            Some(match now {
                Some(now) => {
                    Shape { agrees: Some(within(now, then)), text: format!("{what}, {} today", shown(now)) }
                        .unless_held_back(couples.iter().flat_map(|(a, b)| [*a, *b]))
                }
                None => Shape { agrees: None, text: format!("{what}; one of them is missing today") },
            })
        })
    };
    sizes.into_iter().filter_map(at_size).collect()
}

/// Whether today's factors are of the size of those then.
fn within(now: (f64, f64), then: (f64, f64)) -> bool {
    now.0 >= then.0 / SAME_SIZE && now.1 <= then.1 * SAME_SIZE
}

/// A published row on the earlier runtime and the same on the later, by system and size.
type Couples<'a> = BTreeMap<(&'a str, Option<i64>), Vec<(&'a Pair<'a>, &'a Pair<'a>)>>;

/// The later runtime by the earlier, each system at each size; where two ran.
fn runtimes(pairs: &[Pair], estimates: &[Estimate]) -> Vec<Shape> {
    let variants: BTreeSet<&str> = pairs.iter().map(|pair| pair.variant).collect();
    let [first, second] = variants.into_iter().collect::<Vec<_>>()[..] else { return Vec::new() };
    let mut couples = Couples::new();
    for a in pairs.iter().filter(|pair| pair.variant == first) {
        let same = |b: &&Pair| b.variant == second && b.system == a.system && b.point == a.point;
        let Some(b) = pairs.iter().find(same) else { continue };
        // One system that ran for both says nothing of the two.
        let ran = a.now.zip(b.now).filter(|(a, b)| a.scenario.system != b.scenario.system);
        if ran.is_some() && a.then.is_some() && b.then.is_some() {
            couples.entry((a.system, a.integer("size"))).or_default().push((a, b));
        }
    }
    // Ahead, behind, or neither.
    let side = |(low, high): (f64, f64)| i8::from(low > FLAT) - i8::from(high < 1.0 / FLAT);
    let each = couples.iter().filter_map(|((system, size), couples)| {
        let then = range(couples.iter().filter_map(|(a, b)| Some(b.then? / a.then?)))?;
        let place = size.map_or(String::new(), |size| format!(" at {}", show_size(size)));
        judged(estimates, |round| {
            let now = range(couples.iter().filter_map(|(a, b)| Some(b.today(round)? / a.today(round)?)))?;
            let found = Shape {
                agrees: Some(within(now, then) && side(now) == side(then)),
                text: format!(
                    "{second} by {first}, {system}{place}: {} the time then, {} today",
                    shown(then),
                    shown(now)
                ),
            };
            Some(found.unless_held_back(couples.iter().flat_map(|(a, b)| [*a, *b])))
        })
    });
    each.collect()
}
