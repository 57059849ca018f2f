//! Audits receivers of frames: rates that are limited by the sender, a size with an inverted order, malformed cells,
//! and cliffs.

use std::collections::BTreeMap;

use super::super::shape::way_name;
use super::super::{Found, FrameFigures, FrameRow, Inverted, PublishedTable, Seen, SendersRate};
use super::{AuditParts, Flaw, FlawedRows, indices};
use lab::findings::{self, CLIFF};
use measurement::doubt::{Doubt, FEWEST, HALVES};

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

fn name((framing, active): &(String, String)) -> String {
    way_name(framing, active)
}

/// Finds rows whose rate is the sender's: from the smallest size up, the rate hardly falls although the size grows many
/// times.
fn generator_bound(ways: &Ways) -> FlawedRows {
    let (mut bound, mut slow, mut faster) = (Vec::new(), Vec::new(), Vec::new());
    for (way, rows) in ways {
        let Some((_, smallest)) = rows.first() else { continue };
        let alike = rows.iter().take_while(|(_, m)| m.mean() > (1.0 - HALVES) * smallest.mean());
        let alike: Vec<_> = alike.collect();
        let Some((_, largest)) = alike.last() else { continue };
        if largest.frame_size / smallest.frame_size < APART {
            continue;
        }
        bound.extend(alike.iter().map(|(index, _)| *index));
        slow.push(SendersRate {
            way: name(way),
            from: smallest.frame_size,
            to: largest.frame_size,
            apart: 1.0 - largest.mean() / smallest.mean(),
        });
    }
    // If another way to receive gets more from the same sender, the sender's rate is not a fixed ceiling.
    let first = |rows: &Vec<(usize, &FrameFigures)>| rows.first().map(|(index, m)| (*index, m.mean()));
    let ceiling = ways.values().filter_map(first).filter(|(index, _)| bound.contains(index));
    let ceiling = ceiling.map(|(_, mean)| mean).fold(0.0, f64::max);
    for (way, rows) in ways {
        let better =
            first(rows).filter(|(index, mean)| ceiling > 0.0 && !bound.contains(index) && *mean > ceiling);
        faster.extend(better.map(|(_, mean)| (name(way), mean / ceiling)));
    }
    bound.sort_unstable();
    let code = Flaw::Lab(findings::Code::Trial(Doubt::GeneratorBound));
    FlawedRows { code, seen: Seen::SendersRate { ways: slow, faster }, rows: bound }
}

/// Finds a size at which the fastest way is the slowest at every other size.
fn inverted(rows: &[FrameRow]) -> FlawedRows {
    let mut sizes = Sizes::new();
    for (index, row) in rows.iter().enumerate() {
        let key = (knob(row, "framing"), row.measured.frame_size as u64);
        sizes.entry(key).or_default().push((index, row));
    }
    sizes.retain(|_, ways| ways.len() >= 3);
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    for ((framing, size), ways) in &sizes {
        let mut sorted = ways.clone();
        sorted.sort_by(|a, b| b.1.measured.mean().total_cmp(&a.1.measured.mean()));
        let mut neighbours = sorted.iter().zip(sorted.iter().skip(1));
        let clear = neighbours.all(|((_, better), (_, worse))| better.measured.above(&worse.measured));
        let Some(fastest) = sorted.first().map(|(_, row)| knob(row, "active")) else { continue };
        let others: Vec<_> = sizes.iter().filter(|(key, _)| key.0 == *framing && key.1 != *size).collect();
        let slowest = |ways: &Vec<(usize, &FrameRow)>| {
            let slow = ways.iter().min_by(|a, b| a.1.measured.mean().total_cmp(&b.1.measured.mean()));
            slow.is_some_and(|(_, row)| knob(row, "active") == fastest)
        };
        if clear && others.len() >= 2 && others.iter().all(|(_, ways)| slowest(ways)) {
            let order = sorted.iter().map(|(_, row)| knob(row, "active")).collect();
            seen.push(Inverted { size: *size, framing: framing.clone(), order, others: others.len() });
            found.extend(ways.iter().map(|(at, _)| *at));
        }
    }
    FlawedRows { code: Flaw::Contradiction, seen: Seen::Inverted(seen), rows: found }
}

fn malformed(rows: &[FrameRow]) -> FlawedRows {
    let misprints = rows.iter().filter_map(|row| row.measured.misprint.clone());
    FlawedRows {
        code: Flaw::MalformedCell,
        seen: Seen::Misprints(misprints.collect()),
        rows: indices(rows, |row| row.measured.misprint.is_some()),
    }
}

/// Finds rows with so few messages that the last, incomplete one is a visible share.
fn few(table: &PublishedTable, rows: &[FrameRow], labels: &[String]) -> FlawedRows {
    let found = indices(rows, |row| row.measured.runs.iter().any(|n| *n < FEWEST as f64));
    let ended = |&index: &usize| {
        let [first, second] = rows.get(index)?.measured.runs;
        Some((labels.get(index)?.clone(), first.min(second)))
    };
    let ended = found.iter().filter_map(ended).collect();
    let seen = Seen::FewOperations { rows: ended, window_s: table.setting.window_s };
    FlawedRows { code: Flaw::Lab(findings::Code::Trial(Doubt::TooShort)), seen, rows: found }
}

/// Falls between neighbouring sizes that larger messages do not explain, the deepest first.
fn cliffs(ways: &Ways) -> Vec<Found> {
    let mut cliffs: Vec<(f64, Found)> = Vec::new();
    for (way, rows) in ways {
        for ((_, small), (_, large)) in rows.iter().zip(rows.iter().skip(1)) {
            let fall = small.mean() / large.mean();
            let grown = large.frame_size / small.frame_size;
            if grown < APART && fall / grown >= CLIFF {
                let (from, to) = (small.frame_size, large.frame_size);
                cliffs.push((fall / grown, Found::Cliff { way: name(way), from, to, fewer: fall }));
            }
        }
    }
    cliffs.sort_by(|a, b| b.0.total_cmp(&a.0));
    cliffs.into_iter().map(|(_, cliff)| cliff).collect()
}

/// Compares each two framings with the same `active`, size by size.
fn framings(ways: &Ways) -> Vec<Found> {
    let mut alike: BTreeMap<&String, Vec<_>> = BTreeMap::new();
    for way in ways {
        alike.entry(&way.0.1).or_default().push(way);
    }
    let mut found = Vec::new();
    for (against, rows) in ways {
        let with_same_active = alike.get(&against.1).into_iter().flatten();
        for (of, others) in with_same_active.filter(|(way, _)| way.0 > against.0) {
            let ratio = |(_, m): &(usize, &FrameFigures)| {
                let at = rows.partition_point(|(_, other)| other.frame_size < m.frame_size);
                let (_, same_size) = rows.get(at).filter(|(_, other)| other.frame_size == m.frame_size)?;
                Some((m.frame_size, m.mean() / same_size.mean()))
            };
            let sizes = others.iter().filter_map(ratio).collect();
            found.push(Found::Ways { of: name(of), against: name(against), sizes });
        }
    }
    found
}
