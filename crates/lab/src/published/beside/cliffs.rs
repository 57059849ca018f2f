//! Frames then and today: where the rate falls off, and which framing is ahead at which size.

use std::collections::BTreeMap;

use super::{FLAT, Pair, Round, Shape, judged, shown};
use crate::findings::{CLIFF, Estimate};

/// Sizes further apart than this say nothing of what lies between them.
const APART: f64 = 10.0;

/// One way to receive, by size.
type Ways<'a> = BTreeMap<(String, String), BTreeMap<i64, &'a Pair<'a>>>;

pub(super) fn cliffs(pairs: &[Pair], estimates: &[Estimate]) -> Vec<Shape> {
    let mut ways = Ways::new();
    for pair in pairs {
        let knob = |name: &str| pair.point.get(name).map_or(String::new(), ToString::to_string);
        let Some(size) = pair.integer("frame_size") else { continue };
        ways.entry((knob("framing"), knob("active"))).or_default().insert(size, pair);
    }
    let mut all: Vec<Shape> = ways.iter().flat_map(|way| falls(way, estimates)).collect();
    all.extend(judged(estimates, |round| framings(&ways, round)));
    all
}

/// Falls between neighbouring published sizes beyond what the larger messages explain.
fn falls(
    ((framing, active), sizes): (&(String, String), &BTreeMap<i64, &Pair>),
    estimates: &[Estimate],
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
        judged(estimates, |round| {
            Some(match (before.today(round), after.today(round)) {
                (Some(rate), Some(fallen)) => {
                    let now = rate / fallen;
                    Shape {
                        agrees: Some(now / grown >= CLIFF),
                        text: format!("{what}, {} today", shown((now, now))),
                    }
                    .unless_held_back([**before, **after])
                }
                _ => Shape { agrees: None, text: format!("{what}; not measured today") },
            })
        })
    };
    rows.windows(2).filter_map(fall).collect()
}

/// The runtime's framing by the program's, size by size: which is ahead.
fn framings(ways: &Ways, round: Round) -> Option<Shape> {
    let find = |framing: &str| ways.iter().find(|((f, active), _)| f == framing && active == "once");
    let ((_, by), (_, own)) = (find("0")?, find("4")?);
    let ratio = |size: &i64| {
        let (four, zero) = (own.get(size)?.both(round)?, by.get(size)?.both(round)?);
        Some((*size, four.0 / zero.0, four.1 / zero.1))
    };
    let ratios: Vec<(i64, f64, f64)> = own.keys().filter_map(ratio).collect();
    if ratios.is_empty() {
        return None;
    }
    // Ahead, behind, or neither.
    let side = |ratio: f64| i8::from(ratio > FLAT) - i8::from(ratio < 1.0 / FLAT);
    let against: Vec<String> = ratios
        .iter()
        .filter(|(_, then, now)| side(*then) != side(*now))
        .map(|row| row.0.to_string())
        .collect();
    let words: Vec<String> =
        ratios.iter().map(|(size, then, now)| format!("{then:.2} and {now:.2} at {size}")).collect();
    let which =
        if against.is_empty() { String::new() } else { format!("; not the same at {}", against.join(", ")) };
    let found = Shape {
        agrees: Some(against.is_empty()),
        text: format!("framing 4 by 0, active once, then and today: {}{which}", words.join(", ")),
    };
    let rows = ratios.iter().flat_map(|(size, ..)| [own[size], by[size]]);
    Some(found.unless_held_back(rows))
}
