//! Audits mean times of uploads: how far apart rows of one configuration are, which steps of a knob are larger than
//! that, and where more work took less time.

use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::super::{Found, LessTime, PublishedTable, Rows, Seen, Step, UploadRow};
use super::{AuditParts, Flaw, FlawedRows};

pub(super) fn audit(table: &PublishedTable, rows: &[UploadRow], all: &[PublishedTable]) -> AuditParts {
    let repeatability = Repeatability::of(table, all);
    let steps = steps(table, rows, &repeatability);
    let (clear, unclear): (Vec<StepRows>, Vec<StepRows>) = steps.into_iter().partition(|step| step.clear);
    let found = repeatability.found().chain(systems(rows));
    AuditParts {
        found: found.chain(clear.into_iter().map(|step| Found::Step(step.step))).collect(),
        ranking: None,
        doubts: vec![mean_without_spread(table, rows), less_time_for_more(rows), within_noise(unclear)],
    }
}

/// How far apart repeated rows of one configuration are, by runtime. Only larger differences mean something.
struct Repeatability {
    /// For each runtime, the configuration whose rows are furthest apart.
    by_variant: BTreeMap<String, Repeated>,
}

/// Rows of one configuration.
struct Repeated {
    /// The ratio of the largest time to the smallest, minus 1.
    apart: f64,
    times: Vec<f64>,
    /// The knobs of the configuration.
    point: Point,
}

impl Repeatability {
    /// Looks for repeated rows in this table and in the other tables of the same document.
    fn of(table: &PublishedTable, all: &[PublishedTable]) -> Self {
        let document = |table: &PublishedTable| table.source.split(',').next().unwrap_or_default().to_owned();
        let this_document = document(table);
        let mut same: Vec<&PublishedTable> =
            all.iter().filter(|other| document(other) == this_document && other.name != table.name).collect();
        same.push(table);
        let mut times: BTreeMap<(String, Vec<String>, Point), Vec<f64>> = BTreeMap::new();
        for table in same {
            let Rows::Upload(rows) = &table.rows else { continue };
            for row in rows {
                let Some(system) = table.systems.get(&row.system) else { continue };
                times
                    .entry((row.variant.clone(), system.clone(), row.point.clone()))
                    .or_default()
                    .push(row.measured.mean_ms);
            }
        }
        let mut by_variant: BTreeMap<String, Repeated> = BTreeMap::new();
        for ((variant, _, point), mut times) in times.into_iter().filter(|(_, times)| times.len() > 1) {
            times.sort_by(f64::total_cmp);
            let (Some(shortest), Some(longest)) = (times.first(), times.last()) else { continue };
            let apart = longest / shortest - 1.0;
            if by_variant.get(&variant).is_none_or(|known| apart > known.apart) {
                by_variant.insert(variant, Repeated { apart, times, point });
            }
        }
        Self { by_variant }
    }

    fn share(&self, variant: &str) -> f64 {
        self.by_variant.get(variant).map_or(0.0, |repeated| repeated.apart)
    }

    fn found(&self) -> impl Iterator<Item = Found> {
        self.by_variant.iter().map(|(variant, repeated)| Found::Repeated {
            runtime: variant.clone(),
            knobs: repeated.point.clone(),
            times_ms: repeated.times.clone(),
        })
    }
}

/// A step of a knob, with the rows of both values.
struct StepRows {
    step: Step,
    rows: Vec<usize>,
    /// Whether all comparisons point the same way and exceed the repeatability.
    clear: bool,
}

/// All steps between neighbouring values of a knob. Leaves out the size, because more work takes longer.
fn steps(table: &PublishedTable, rows: &[UploadRow], repeatability: &Repeatability) -> Vec<StepRows> {
    let knobs = table.columns.iter().filter(|c| c.knob.is_some() && c.name != "size");
    let mut steps = Vec::new();
    for knob in knobs.map(|column| &column.name) {
        let values: BTreeSet<&Value> = rows.iter().filter_map(|row| row.point.get(knob)).collect();
        let values: Vec<&Value> = values.into_iter().collect();
        for (&from, &to) in values.iter().zip(values.iter().skip(1)) {
            let (mut ratios, mut pairs, mut beyond) = (Vec::new(), Vec::new(), true);
            for (i, a) in rows.iter().enumerate().filter(|(_, row)| row.point.get(knob) == Some(from)) {
                let mut there = a.point.clone();
                there.insert(knob.clone(), to.clone());
                let other = rows
                    .iter()
                    .enumerate()
                    .find(|(_, b)| b.variant == a.variant && b.system == a.system && b.point == there);
                let Some((j, b)) = other else { continue };
                let ratio = b.measured.mean_ms / a.measured.mean_ms;
                beyond &= ratio.max(1.0 / ratio) > 1.0 + repeatability.share(&a.variant);
                ratios.push(ratio);
                pairs.extend([i, j]);
            }
            if !ratios.is_empty() {
                let one_way = ratios.iter().all(|r| *r > 1.0) || ratios.iter().all(|r| *r < 1.0);
                let step = Step { knob: knob.clone(), from: from.clone(), to: to.clone(), ratios };
                steps.push(StepRows { step, rows: pairs, clear: beyond && one_way });
            }
        }
    }
    steps
}

fn within_noise(unclear: Vec<StepRows>) -> FlawedRows {
    let rows: BTreeSet<usize> = unclear.iter().flat_map(|step| step.rows.iter().copied()).collect();
    let seen = Seen::Noise(unclear.into_iter().map(|step| step.step).collect());
    FlawedRows { code: Flaw::WithinNoise, seen, rows: rows.into_iter().collect() }
}

fn mean_without_spread(table: &PublishedTable, rows: &[UploadRow]) -> FlawedRows {
    let seen = Seen::Mean { operations: table.setting.operations };
    FlawedRows { code: Flaw::MeanWithoutSpread, seen, rows: (0..rows.len()).collect() }
}

fn size_of(row: &UploadRow) -> Option<i64> {
    match row.point.get("size") {
        Some(Value::Integer(bytes)) => Some(*bytes),
        _ => None,
    }
}

/// For each runtime, system and setting of the other knobs, the sizes with the indices of their rows and those rows.
type Sizes<'a> = BTreeMap<(&'a str, &'a str, Point), Vec<(i64, usize, &'a UploadRow)>>;

/// Finds uploads that took less time than the next smaller size with the same other knobs.
fn less_time_for_more(rows: &[UploadRow]) -> FlawedRows {
    let mut alike = Sizes::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(size) = size_of(row) else { continue };
        let mut rest = row.point.clone();
        rest.remove("size");
        alike.entry((&row.variant, &row.system, rest)).or_default().push((size, index, row));
    }
    let (mut seen, mut found) = (Vec::new(), BTreeSet::new());
    for ((variant, system, _), mut sizes) in alike {
        sizes.sort_unstable_by_key(|(size, index, _)| (*size, *index));
        for (&(small, first, smaller), &(large, second, larger)) in sizes.iter().zip(sizes.iter().skip(1)) {
            let [small_ms, large_ms] = [smaller, larger].map(|row| row.measured.mean_ms);
            if large > small && large_ms < small_ms {
                let (system, runtime) = (system.to_owned(), variant.to_owned());
                seen.push(LessTime { system, runtime, small, small_ms, large, large_ms });
                found.extend([first, second]);
            }
        }
    }
    let rows = found.into_iter().collect();
    FlawedRows { code: Flaw::Contradiction, seen: Seen::LessTime(seen), rows }
}

/// Compares two systems at each size, with the ratio under each runtime.
fn systems(rows: &[UploadRow]) -> Vec<Found> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.system.as_str()) {
            names.push(&row.system);
        }
    }
    let [first, second] = names[..] else { return Vec::new() };
    let sizes: BTreeSet<i64> = rows.iter().filter_map(size_of).collect();
    let variants: BTreeSet<&str> = rows.iter().map(|row| row.variant.as_str()).collect();
    let time = |system: &str, variant: &str, size: i64| {
        let found =
            rows.iter().find(|r| r.system == system && r.variant == variant && size_of(r) == Some(size));
        found.map(|row| row.measured.mean_ms)
    };
    let at_size = |size: i64| {
        let ratios = variants.iter().filter_map(|variant| {
            Some(((*variant).to_owned(), time(second, variant, size)? / time(first, variant, size)?))
        });
        Found::Systems { of: second.to_owned(), against: first.to_owned(), size, ratios: ratios.collect() }
    };
    sizes.into_iter().map(at_size).collect()
}
