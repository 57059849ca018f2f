//! What the packet table's figures show: rates that are the sender's, a row out of order, cells that are printed
//! wrongly, and the fall that it is known for.

use std::collections::BTreeMap;

use super::super::{Frames, Row, Table};
use super::{Doubtful, Flaw, Parts, What, indices, times};
use lab::doubt::{Doubt, FEWEST, HALVES};
use lab::findings::{self, CLIFF};

/// Sizes this far apart are not received at one rate by a receiver that has work with each byte.
const APART: f64 = 10.0;

/// The rows of one way to receive, by size: framing and active, and each row's place in the table.
type Ways<'a> = BTreeMap<(String, String), Vec<(usize, &'a Frames)>>;

/// The ways to receive messages of one size under one framing.
type Sizes<'a> = BTreeMap<(String, u64), Vec<(usize, &'a Row<Frames>)>>;

pub(super) fn audit(table: &Table, rows: &[Row<Frames>], labels: &[String]) -> Parts {
    let ways = ways(rows);
    Parts {
        found: cliffs(&ways).into_iter().chain(framings(&ways)).collect(),
        ranking: None,
        doubts: vec![generator_bound(&ways), inverted(rows), malformed(rows), few(table, rows, labels)],
    }
}

fn knob(row: &Row<Frames>, name: &str) -> String {
    row.point.get(name).map_or(String::new(), ToString::to_string)
}

fn ways(rows: &[Row<Frames>]) -> Ways<'_> {
    let mut ways = Ways::new();
    for (at, row) in rows.iter().enumerate() {
        ways.entry((knob(row, "framing"), knob(row, "active"))).or_default().push((at, &row.measured));
    }
    ways.values_mut().for_each(|rows| rows.sort_by(|a, b| a.1.frame_size.total_cmp(&b.1.frame_size)));
    ways
}

fn named((framing, active): &(String, String)) -> String {
    format!("{{packet,{framing}}} {active}")
}

/// From the smallest size up, as long as the rate hardly falls while the bytes grow many times: the sender's rate.
fn generator_bound(ways: &Ways) -> Doubtful {
    let (mut bound, mut words) = (Vec::new(), Vec::new());
    for (way, rows) in ways {
        let Some((_, smallest)) = rows.first() else { continue };
        let alike = rows.iter().take_while(|(_, m)| m.mean() > (1.0 - HALVES) * smallest.mean());
        let alike: Vec<_> = alike.collect();
        let Some((_, largest)) = alike.last() else { continue };
        let grown = largest.frame_size / smallest.frame_size;
        if grown < APART {
            continue;
        }
        bound.extend(alike.iter().map(|(at, _)| *at));
        words.push(format!(
            "{}: messages of {} and of {} bytes come at rates {:.0} % apart, though {grown:.0} times the bytes",
            named(way),
            smallest.frame_size,
            largest.frame_size,
            (1.0 - largest.mean() / smallest.mean()) * 100.0
        ));
    }
    // The ceiling is not even one: other ways to receive get more out of the same sender.
    let first = |rows: &Vec<(usize, &Frames)>| rows.first().map(|(at, m)| (*at, m.mean()));
    let ceiling = ways.values().filter_map(first).filter(|(at, _)| bound.contains(at));
    let ceiling = ceiling.map(|(_, mean)| mean).fold(0.0, f64::max);
    for (way, rows) in ways {
        let better = first(rows).filter(|(at, mean)| ceiling > 0.0 && !bound.contains(at) && *mean > ceiling);
        if let Some((_, mean)) = better {
            words.push(format!(
                "the same sender reaches {} of that with {}",
                times(mean / ceiling),
                named(way)
            ));
        }
    }
    bound.sort_unstable();
    let code = Flaw::Own(findings::Code::Trial(Doubt::GeneratorBound));
    Doubtful { code, seen: What::Said(words.join("; ")), rows: bound }
}

/// A size at which the way that is slowest at every other size is the fastest.
fn inverted(rows: &[Row<Frames>]) -> Doubtful {
    let mut sizes = Sizes::new();
    for (at, row) in rows.iter().enumerate() {
        let key = (knob(row, "framing"), row.measured.frame_size as u64);
        sizes.entry(key).or_default().push((at, row));
    }
    sizes.retain(|_, ways| ways.len() >= 3);
    let mut found = Doubtful { code: Flaw::Contradiction, seen: What::Said(String::new()), rows: Vec::new() };
    for ((framing, size), ways) in &sizes {
        let mut sorted = ways.clone();
        sorted.sort_by(|a, b| b.1.measured.mean().total_cmp(&a.1.measured.mean()));
        let clear = sorted.windows(2).all(|pair| pair[0].1.measured.above(&pair[1].1.measured));
        let fastest = knob(sorted[0].1, "active");
        let others: Vec<_> = sizes.iter().filter(|(key, _)| key.0 == *framing && key.1 != *size).collect();
        let slowest = |ways: &Vec<(usize, &Row<Frames>)>| {
            let slow = ways.iter().min_by(|a, b| a.1.measured.mean().total_cmp(&b.1.measured.mean()));
            slow.is_some_and(|(_, row)| knob(row, "active") == fastest)
        };
        if clear && others.len() >= 2 && others.iter().all(|(_, ways)| slowest(ways)) {
            let order: Vec<String> = sorted.iter().map(|(_, row)| knob(row, "active")).collect();
            found.seen = What::Said(format!(
                "at {size} bytes {{packet,{framing}}} has the order {}, and at {} other sizes {fastest} is the slowest",
                order.join(" > "),
                others.len()
            ));
            found.rows.extend(ways.iter().map(|(at, _)| *at));
        }
    }
    found
}

fn malformed(rows: &[Row<Frames>]) -> Doubtful {
    let flaws: Vec<&str> = rows.iter().filter_map(|row| row.measured.flaw.as_deref()).collect();
    Doubtful {
        code: Flaw::MalformedCell,
        seen: What::Said(flaws.join("; ")),
        rows: indices(rows, |row| row.measured.flaw.is_some()),
    }
}

/// So few messages that the one that was cut short is a visible share.
fn few(table: &Table, rows: &[Row<Frames>], labels: &[String]) -> Doubtful {
    let found = indices(rows, |row| row.measured.runs.iter().any(|n| *n < FEWEST as f64));
    let window = table.setting.window_s.map_or(String::new(), |s| format!(" in {s} s"));
    let words = found.iter().map(|&at| {
        format!(
            "{}: only {} operations ended{window}",
            labels[at],
            rows[at].measured.runs[0].min(rows[at].measured.runs[1])
        )
    });
    Doubtful {
        code: Flaw::Own(findings::Code::Trial(Doubt::TooShort)),
        seen: What::Said(words.collect::<Vec<_>>().join("; ")),
        rows: found,
    }
}

/// Falls between neighbouring sizes beyond what the larger messages explain, the deepest first.
fn cliffs(ways: &Ways) -> Vec<String> {
    let mut cliffs: Vec<(f64, String)> = Vec::new();
    for (way, rows) in ways {
        for pair in rows.windows(2) {
            let (small, large) = (pair[0].1, pair[1].1);
            let fall = small.mean() / large.mean();
            let grown = large.frame_size / small.frame_size;
            if grown < APART && fall / grown >= CLIFF {
                let sentence = format!(
                    "{}: a cliff, {} fewer messages of {} than of {} bytes",
                    named(way),
                    times(fall),
                    large.frame_size,
                    small.frame_size
                );
                cliffs.push((fall / grown, sentence));
            }
        }
    }
    cliffs.sort_by(|a, b| b.0.total_cmp(&a.0));
    cliffs.into_iter().map(|(_, sentence)| sentence).collect()
}

/// Two framings under the same `active`, size by size.
fn framings(ways: &Ways) -> Vec<String> {
    let mut sentences = Vec::new();
    for ((framing, active), rows) in ways {
        let others = ways.iter().filter(|((f, a), _)| f > framing && a == active);
        for (way, others) in others {
            let ratio = |size: f64, mean: f64| {
                let (_, own) = rows.iter().find(|(_, m)| m.frame_size == size)?;
                Some(format!("{:.2} at {size}", mean / own.mean()))
            };
            let ratios: Vec<String> =
                others.iter().filter_map(|(_, m)| ratio(m.frame_size, m.mean())).collect();
            sentences.push(format!(
                "{} by {}, messages: {}",
                named(way),
                named(&(framing.clone(), active.clone())),
                ratios.join(", ")
            ));
        }
    }
    sentences
}
