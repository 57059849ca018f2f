//! Compares frames then and today: where the rate falls off a cliff, and which framing is ahead at which size.

use std::collections::BTreeMap;

use super::today::same_side;
use super::{Pair, Today, all, decided, shown, unless_held_back, within};
use lab::findings::{CLIFF, Shape};

/// Sizes that are further apart say nothing about what is between them.
const APART: f64 = 10.0;

/// For each way to receive, given by framing and active, its rows by size.
type Ways<'a> = BTreeMap<(String, String), BTreeMap<i64, &'a Pair<'a>>>;

pub(super) fn cliffs(pairs: &[Pair], today: &Today) -> Vec<Shape> {
    let mut ways = Ways::new();
    for pair in pairs {
        let knob = |name: &str| pair.point.get(name).map_or(String::new(), ToString::to_string);
        let Some(size) = pair.integer("frame_size") else { continue };
        ways.entry((knob("framing"), knob("active"))).or_default().insert(size, pair);
    }
    let mut all: Vec<Shape> = ways.iter().flat_map(|way| falls(way, today)).collect();
    all.extend(framings(&ways, today));
    all
}

/// Falls between neighbouring published sizes that larger messages do not explain.
fn falls(
    ((framing, active), sizes): (&(String, String), &BTreeMap<i64, &Pair>),
    today: &Today,
) -> Vec<Shape> {
    let rows: Vec<(&i64, &&Pair)> = sizes.iter().collect();
    let fall = |pair: &[(&i64, &&Pair)]| {
        let [(small, before), (large, after)] = pair else { return None };
        let grown = **large as f64 / **small as f64;
        let then = before.then? / after.then?;
        if grown >= APART || then / grown < CLIFF {
            return None;
        }
        let what = format!("framing {framing}, active {active}, from {small} to {large} bytes");
        let what = format!("{what}: {} fewer frames then", shown((then, then)));
        let (Some(rate), Some(fallen)) = (before.today(), after.today()) else {
            return Some(Shape { agrees: None, text: format!("{what}; not measured today") });
        };
        let now = rate / fallen;
        let ratio = before.now.zip(after.now).and_then(|(a, b)| today.ratio(a, b, 1));
        let agrees = within(ratio, (CLIFF * grown, f64::INFINITY));
        let text = format!("{what}, {} today", shown((now, now)));
        Some(unless_held_back(decided(agrees, text), [**before, **after]))
    };
    rows.windows(2).filter_map(fall).collect()
}

/// Compares the runtime's framing with the program's, size by size.
fn framings(ways: &Ways, today: &Today) -> Option<Shape> {
    let find = |framing: &str| ways.iter().find(|((f, active), _)| f == framing && active == "once");
    let ((_, program), (_, runtime)) = (find("0")?, find("4")?);
    let in_both = |size: &&i64| {
        runtime[*size].both().is_some() && program.get(*size).is_some_and(|b| b.both().is_some())
    };
    let sizes: Vec<&i64> = runtime.keys().filter(in_both).collect();
    let ratio = |size: &i64| {
        let (four, zero) = (runtime[size], program[size]);
        let (then, now) = (four.then? / zero.then?, four.today()? / zero.today()?);
        let ratio = four.now.zip(zero.now).and_then(|(a, b)| today.ratio(a, b, sizes.len()));
        Some((*size, then, now, same_side(then, ratio)))
    };
    let ratios: Vec<(i64, f64, f64, Option<bool>)> = sizes.iter().filter_map(|size| ratio(size)).collect();
    if ratios.is_empty() {
        return None;
    }
    let words: Vec<String> =
        ratios.iter().map(|(size, then, now, _)| format!("{then:.2} and {now:.2} at {size}")).collect();
    let which = |wanted: Option<bool>, said: &str| {
        let found = ratios.iter().filter(|row| row.3 == wanted).map(|row| row.0.to_string());
        let found: Vec<String> = found.collect();
        if found.is_empty() { String::new() } else { format!("; {said} at {}", found.join(", ")) }
    };
    let (against, open) = (which(Some(false), "not the same"), which(None, "not decided by these rounds"));
    let found = Shape {
        agrees: all(ratios.iter().map(|row| row.3)),
        text: format!("framing 4 by 0, active once, then and today: {}{open}{against}", words.join(", ")),
    };
    let rows = ratios.iter().flat_map(|(size, ..)| [runtime[size], program[size]]);
    Some(unless_held_back(found, rows))
}
