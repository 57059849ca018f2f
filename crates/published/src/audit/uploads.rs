//! Audits mean times of uploads: how far apart rows of one configuration are, which steps of a knob are larger than
//! that, and where more work took less time.

use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::super::{PublishedTable, Rows, UploadRow};
use super::{AuditParts, Flaw, FlawedRows, What, times};
use lab::experiment::grid::show_size;

pub(super) fn audit(table: &PublishedTable, rows: &[UploadRow], all: &[PublishedTable]) -> AuditParts {
    let repeatability = Repeatability::of(table, all);
    let steps = steps(table, rows, &repeatability);
    let mut parts = AuditParts { found: repeatability.sentences(), ..AuditParts::default() };
    parts.found.extend(systems(rows));
    parts.found.extend(steps.iter().filter(|step| step.clear).map(Step::sentence));
    parts.doubts = vec![mean_without_spread(table, rows), less_time_for_more(rows), within_noise(&steps)];
    parts
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
                let system = table.systems[&row.system].clone();
                times
                    .entry((row.variant.clone(), system, row.point.clone()))
                    .or_default()
                    .push(row.measured.mean_ms);
            }
        }
        let mut by_variant: BTreeMap<String, Repeated> = BTreeMap::new();
        for ((variant, _, point), mut times) in times.into_iter().filter(|(_, times)| times.len() > 1) {
            times.sort_by(f64::total_cmp);
            let apart = times[times.len() - 1] / times[0] - 1.0;
            if by_variant.get(&variant).is_none_or(|known| apart > known.apart) {
                by_variant.insert(variant, Repeated { apart, times, point });
            }
        }
        Self { by_variant }
    }

    fn share(&self, variant: &str) -> f64 {
        self.by_variant.get(variant).map_or(0.0, |repeated| repeated.apart)
    }

    fn sentences(&self) -> Vec<String> {
        let sentence = |(variant, repeated): (&String, &Repeated)| {
            let times: Vec<String> = repeated.times.iter().map(|t| format!("{t:.0}")).collect();
            let knobs: Vec<String> =
                repeated.point.iter().map(|(knob, value)| format!("{knob} {}", shown(knob, value))).collect();
            format!(
                "{variant}: one configuration ({}) stands {} times in the document's tables: {} ms, {:.1} % apart",
                knobs.join(", "),
                times.len(),
                times.join(", "),
                repeated.apart * 100.0
            )
        };
        self.by_variant.iter().map(sentence).collect()
    }
}

/// A step from one value of a knob to the next while everything else is equal. The ratios tell how many times longer
/// uploads took.
struct Step {
    knob: String,
    from: Value,
    to: Value,
    ratios: Vec<f64>,
    /// The rows of both values.
    rows: Vec<usize>,
    /// Whether all comparisons point the same way and exceed the repeatability.
    clear: bool,
}

impl Step {
    fn range(&self) -> (f64, f64) {
        let low = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        (low, self.ratios.iter().copied().fold(0.0, f64::max))
    }

    fn sentence(&self) -> String {
        let (low, high) = self.range();
        let (how, least, most) =
            if high < 1.0 { ("less", 1.0 / high, 1.0 / low) } else { ("more", low, high) };
        let (least, most) = (times(least), times(most));
        let range = if least == most { least } else { format!("{least} to {most}") };
        let comparisons = match self.ratios.len() {
            1 => "the one comparison".to_owned(),
            2 => "both comparisons".to_owned(),
            n => format!("all {n} comparisons"),
        };
        format!("`{}` {} instead of {}: {range} {how} time in {comparisons}", self.knob, self.to, self.from)
    }
}

/// All steps between neighbouring values of a knob. Leaves out the size, because more work takes longer.
fn steps(table: &PublishedTable, rows: &[UploadRow], repeatability: &Repeatability) -> Vec<Step> {
    let knobs = table.columns.iter().filter(|c| c.knob.is_some() && c.name != "size");
    let mut steps = Vec::new();
    for knob in knobs.map(|column| &column.name) {
        let values: BTreeSet<&Value> = rows.iter().filter_map(|row| row.point.get(knob)).collect();
        let values: Vec<&Value> = values.into_iter().collect();
        for pair in values.windows(2) {
            let mut step = Step {
                knob: knob.clone(),
                from: pair[0].clone(),
                to: pair[1].clone(),
                ratios: Vec::new(),
                rows: Vec::new(),
                clear: false,
            };
            let mut beyond = true;
            for (i, a) in rows.iter().enumerate().filter(|(_, row)| row.point.get(knob) == Some(pair[0])) {
                let mut there = a.point.clone();
                there.insert(knob.clone(), pair[1].clone());
                let other = rows
                    .iter()
                    .enumerate()
                    .find(|(_, b)| b.variant == a.variant && b.system == a.system && b.point == there);
                let Some((j, b)) = other else { continue };
                let ratio = b.measured.mean_ms / a.measured.mean_ms;
                beyond &= ratio.max(1.0 / ratio) > 1.0 + repeatability.share(&a.variant);
                step.ratios.push(ratio);
                step.rows.extend([i, j]);
            }
            let (low, high) = step.range();
            step.clear = beyond && (low > 1.0 || high < 1.0);
            steps.extend((!step.ratios.is_empty()).then_some(step));
        }
    }
    steps
}

fn within_noise(steps: &[Step]) -> FlawedRows {
    let unclear: Vec<&Step> = steps.iter().filter(|step| !step.clear).collect();
    let words = unclear.iter().map(|step| {
        let (low, high) = step.range();
        format!("`{}` {} instead of {}: {low:.2} to {high:.2} times as long", step.knob, step.to, step.from)
    });
    let message = format!(
        "steps that point both ways, or are no larger than repetitions of one configuration: {}",
        words.collect::<Vec<_>>().join("; ")
    );
    let rows: BTreeSet<usize> = unclear.iter().flat_map(|step| step.rows.iter().copied()).collect();
    FlawedRows { code: Flaw::WithinNoise, seen: What::Said(message), rows: rows.into_iter().collect() }
}

fn mean_without_spread(table: &PublishedTable, rows: &[UploadRow]) -> FlawedRows {
    let of = table.setting.operations.map_or(String::new(), |n| format!(" of {n} uploads"));
    let message = format!("a mean{of}, and neither spread nor median");
    FlawedRows { code: Flaw::MeanWithoutSpread, seen: What::Said(message), rows: (0..rows.len()).collect() }
}

/// Formats a knob's value.
fn shown(knob: &str, value: &Value) -> String {
    match value {
        Value::Integer(bytes) if knob == "size" => show_size(*bytes),
        _ => value.to_string(),
    }
}

fn size_of(row: &UploadRow) -> Option<i64> {
    match row.point.get("size") {
        Some(Value::Integer(bytes)) => Some(*bytes),
        _ => None,
    }
}

/// For each runtime, system and setting of the other knobs, the sizes with the indices of their rows.
type Sizes<'a> = BTreeMap<(&'a str, &'a str, Point), Vec<(i64, usize)>>;

/// Finds uploads that took less time than the next smaller size with the same other knobs.
fn less_time_for_more(rows: &[UploadRow]) -> FlawedRows {
    let mut alike = Sizes::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(size) = size_of(row) else { continue };
        let mut rest = row.point.clone();
        rest.remove("size");
        alike.entry((&row.variant, &row.system, rest)).or_default().push((size, index));
    }
    let (mut words, mut found) = (Vec::new(), BTreeSet::new());
    for ((variant, system, _), mut sizes) in alike {
        sizes.sort_unstable();
        for pair in sizes.windows(2) {
            let [(less, small), (more, large)] = [pair[0], pair[1]];
            let [short, long] = [small, large].map(|index| rows[index].measured.mean_ms);
            if more > less && long < short {
                let (less, more) = (show_size(less), show_size(more));
                words.push(format!("{system} {variant}: {less} took {short} ms and {more} {long} ms"));
                found.extend([small, large]);
            }
        }
    }
    let message = format!("more work in less time: {}", words.join("; "));
    FlawedRows { code: Flaw::Contradiction, seen: What::Said(message), rows: found.into_iter().collect() }
}

/// Compares two systems at each size, with the ratio under each runtime.
fn systems(rows: &[UploadRow]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.system.as_str()) {
            names.push(&row.system);
        }
    }
    let [first, second] = names[..] else { return Vec::new() };
    let sizes: BTreeSet<i64> = rows.iter().filter_map(size_of).collect();
    let sentence = |size: i64| {
        let time = |system: &str, variant: &str| {
            let found =
                rows.iter().find(|r| r.system == system && r.variant == variant && size_of(r) == Some(size));
            found.map(|row| row.measured.mean_ms)
        };
        let variants: BTreeSet<&str> = rows.iter().map(|row| row.variant.as_str()).collect();
        let ratios: Vec<(f64, String)> = variants
            .into_iter()
            .filter_map(|variant| {
                let ratio = time(second, variant)? / time(first, variant)?;
                Some((ratio, format!("{ratio:.2} with {variant}")))
            })
            .collect();
        let flips = ratios.iter().any(|(r, _)| *r < 1.0) && ratios.iter().any(|(r, _)| *r > 1.0);
        let words: Vec<&str> = ratios.iter().map(|(_, words)| words.as_str()).collect();
        let what = if flips {
            ": which of them is faster depends on the runtime, or on a single upload"
        } else {
            ""
        };
        format!("{second} by {first} at {}: {}{what}", show_size(size), words.join(", "))
    };
    sizes.into_iter().map(sentence).collect()
}
