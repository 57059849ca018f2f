//! Audits receivers of frames: rates that are limited by the sender, a size with an inverted order, malformed cells,
//! and cliffs.

use std::collections::BTreeMap;

use super::super::{FrameFigures, FrameRow, PublishedTable};
use super::{AuditParts, Flaw, FlawedRows, What, indices, times};
use lab::doubt::{Doubt, FEWEST, HALVES};
use lab::findings::{self, CLIFF};

/// A receiver that does work for each byte does not receive sizes this many times apart at the same rate.
const APART: f64 = 10.0;

/// For each way to receive, given by framing and active, the rows by size with their indices in the table.
type Ways<'a> = BTreeMap<(String, String), Vec<(usize, &'a FrameFigures)>>;

/// For each framing and size, the rows of all ways to receive, with their indices.
type Sizes<'a> = BTreeMap<(String, u64), Vec<(usize, &'a FrameRow)>>;

pub(super) fn audit(table: &PublishedTable, rows: &[FrameRow], labels: &[String]) -> AuditParts {
    let ways = ways(rows);
    AuditParts {
        found: cliffs(&ways).into_iter().chain(framings(&ways)).collect(),
        ranking: None,
        doubts: vec![generator_bound(&ways), inverted(rows), malformed(rows), few(table, rows, labels)],
    }
}

fn knob(row: &FrameRow, name: &str) -> String {
    row.point.get(name).map_or(String::new(), ToString::to_string)
}

fn ways(rows: &[FrameRow]) -> Ways<'_> {
    let mut ways = Ways::new();
    for (index, row) in rows.iter().enumerate() {
        ways.entry((knob(row, "framing"), knob(row, "active"))).or_default().push((index, &row.measured));
    }
    ways.values_mut().for_each(|rows| rows.sort_by(|a, b| a.1.frame_size.total_cmp(&b.1.frame_size)));
    ways
}

fn way_name((framing, active): &(String, String)) -> String {
    format!("{{packet,{framing}}} {active}")
}

/// Finds rows whose rate is the sender's: from the smallest size up, the rate hardly falls although the size grows many
/// times.
fn generator_bound(ways: &Ways) -> FlawedRows {
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
        bound.extend(alike.iter().map(|(index, _)| *index));
        words.push(format!(
            "{}: messages of {} and of {} bytes come at rates {:.0} % apart, though {grown:.0} times the bytes",
            way_name(way),
            smallest.frame_size,
            largest.frame_size,
            (1.0 - largest.mean() / smallest.mean()) * 100.0
        ));
    }
    // If another way to receive gets more from the same sender, the sender's rate is not a fixed ceiling.
    let first = |rows: &Vec<(usize, &FrameFigures)>| rows.first().map(|(index, m)| (*index, m.mean()));
    let ceiling = ways.values().filter_map(first).filter(|(index, _)| bound.contains(index));
    let ceiling = ceiling.map(|(_, mean)| mean).fold(0.0, f64::max);
    for (way, rows) in ways {
        let better =
            first(rows).filter(|(index, mean)| ceiling > 0.0 && !bound.contains(index) && *mean > ceiling);
        if let Some((_, mean)) = better {
            words.push(format!(
                "the same sender reaches {} of that with {}",
                times(mean / ceiling),
                way_name(way)
            ));
        }
    }
    bound.sort_unstable();
    let code = Flaw::Lab(findings::Code::Trial(Doubt::GeneratorBound));
    FlawedRows { code, seen: What::Said(words.join("; ")), rows: bound }
}

/// Finds a size at which the fastest way is the slowest at every other size.
fn inverted(rows: &[FrameRow]) -> FlawedRows {
    let mut sizes = Sizes::new();
    for (index, row) in rows.iter().enumerate() {
        let key = (knob(row, "framing"), row.measured.frame_size as u64);
        sizes.entry(key).or_default().push((index, row));
    }
    sizes.retain(|_, ways| ways.len() >= 3);
    let mut found =
        FlawedRows { code: Flaw::Contradiction, seen: What::Said(String::new()), rows: Vec::new() };
    for ((framing, size), ways) in &sizes {
        let mut sorted = ways.clone();
        sorted.sort_by(|a, b| b.1.measured.mean().total_cmp(&a.1.measured.mean()));
        let clear = sorted.windows(2).all(|pair| pair[0].1.measured.above(&pair[1].1.measured));
        let fastest = knob(sorted[0].1, "active");
        let others: Vec<_> = sizes.iter().filter(|(key, _)| key.0 == *framing && key.1 != *size).collect();
        let slowest = |ways: &Vec<(usize, &FrameRow)>| {
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

fn malformed(rows: &[FrameRow]) -> FlawedRows {
    let flaws: Vec<&str> = rows.iter().filter_map(|row| row.measured.flaw.as_deref()).collect();
    FlawedRows {
        code: Flaw::MalformedCell,
        seen: What::Said(flaws.join("; ")),
        rows: indices(rows, |row| row.measured.flaw.is_some()),
    }
}

/// Finds rows with so few messages that the last, incomplete one is a visible share.
fn few(table: &PublishedTable, rows: &[FrameRow], labels: &[String]) -> FlawedRows {
    let found = indices(rows, |row| row.measured.runs.iter().any(|n| *n < FEWEST as f64));
    let window = table.setting.window_s.map_or(String::new(), |s| format!(" in {s} s"));
    let words = found.iter().map(|&index| {
        format!(
            "{}: only {} operations ended{window}",
            labels[index],
            rows[index].measured.runs[0].min(rows[index].measured.runs[1])
        )
    });
    FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::TooShort)),
        seen: What::Said(words.collect::<Vec<_>>().join("; ")),
        rows: found,
    }
}

/// Falls between neighbouring sizes that larger messages do not explain, the deepest first.
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
                    way_name(way),
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

/// Compares two framings with the same `active`, size by size.
fn framings(ways: &Ways) -> Vec<String> {
    let mut sentences = Vec::new();
    for ((framing, active), rows) in ways {
        let others = ways.iter().filter(|((f, a), _)| f > framing && a == active);
        for (way, others) in others {
            let ratio = |size: f64, mean: f64| {
                let (_, same_size) = rows.iter().find(|(_, m)| m.frame_size == size)?;
                Some(format!("{:.2} at {size}", mean / same_size.mean()))
            };
            let ratios: Vec<String> =
                others.iter().filter_map(|(_, m)| ratio(m.frame_size, m.mean())).collect();
            sentences.push(format!(
                "{} by {}, messages: {}",
                way_name(way),
                way_name(&(framing.clone(), active.clone())),
                ratios.join(", ")
            ));
        }
    }
    sentences
}
