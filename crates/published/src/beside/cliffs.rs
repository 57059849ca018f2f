//! Compares frames then and today: where the rate falls off a cliff, and which framing is ahead at which size.

use std::collections::BTreeMap;

use super::today::same_side;
use super::{Pair, Today, all, shape, within};
use lab::findings::{CLIFF, Shape, ShapeFigures, SizeRatio};

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
        let now = before.today().zip(after.today()).map(|(rate, fallen)| rate / fallen);
        let ratio = before.now.zip(after.now).and_then(|(a, b)| today.ratio(a, b, 1));
        let agrees = within(ratio.filter(|_| now.is_some()), (CLIFF * grown, f64::INFINITY));
        let figures = ShapeFigures::Cliff {
            framing: framing.clone(),
            active: active.clone(),
            from: **small,
            to: **large,
            then,
            today: now,
        };
        Some(shape(agrees, figures, [**before, **after]))
    };
    rows.windows(2).filter_map(fall).collect()
}

/// Compares the runtime's framing with the program's, size by size.
fn framings(ways: &Ways, today: &Today) -> Option<Shape> {
    let find = |framing: &str| ways.get(&(framing.to_owned(), "once".to_owned()));
    let (program, runtime) = (find("0")?, find("4")?);
    let in_both = |size: &&i64| {
        runtime[*size].both().is_some() && program.get(*size).is_some_and(|b| b.both().is_some())
    };
    let sizes: Vec<&i64> = runtime.keys().filter(in_both).collect();
    let ratio = |size: &i64| {
        let (four, zero) = (runtime[size], program[size]);
        let (then, now) = (four.then? / zero.then?, four.today()? / zero.today()?);
        let ratio = four.now.zip(zero.now).and_then(|(a, b)| today.ratio(a, b, sizes.len()));
        Some(SizeRatio { size: *size, then, today: now, same: same_side(then, ratio) })
    };
    let ratios: Vec<SizeRatio> = sizes.iter().filter_map(|size| ratio(size)).collect();
    if ratios.is_empty() {
        return None;
    }
    let agrees = all(ratios.iter().map(|ratio| ratio.same));
    let rows = ratios.iter().flat_map(|ratio| [runtime[&ratio.size], program[&ratio.size]]);
    let rows: Vec<&Pair> = rows.collect();
    let [of, against, active] = ["4", "0", "once"].map(str::to_owned);
    Some(shape(agrees, ShapeFigures::Framings { of, against, active, sizes: ratios }, rows))
}
