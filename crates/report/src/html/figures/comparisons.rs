//! The forest plot: the ratios of all comparisons with their intervals, and the noise floor.

use std::collections::{BTreeMap, BTreeSet};

use lab::findings::{By, Comparison, Unit};

use super::super::figure::Figure;
use super::{INTERVAL, SYSTEM, View};
use crate::number::{show, times};
use crate::svg::{Axis, Drawing, Row, Rows, Scale, Ticks};
use crate::words::verdict;

/// The most comparisons that are drawn.
const ROWS: usize = 24;

/// All comparisons, or the most important ones: decided before undecided, large before small.
pub(super) fn forest(view: &View) -> Option<Figure> {
    let mut all: Vec<&Comparison> = view.e.comparisons.iter().filter(|c| c.ratio.is_some()).collect();
    let far = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
    all.sort_by(|a, b| {
        let decided = b.verdict.is_decided().cmp(&a.verdict.is_decided());
        decided.then(far(b).total_cmp(&far(a)))
    });
    let count = all.len();
    if count > ROWS {
        few_of_each(&mut all);
    }
    let rows: Vec<Row> = all.into_iter().filter_map(|c| row(view, c)).collect();
    let floor = view.e.noise_floor.map(|floor| floor.smallest);
    let noise = floor.map_or_else(String::new, |floor| {
        format!(
            " The grey band is the noise floor, {}: the difference between the reference and its twin.",
            times(floor)
        )
    });
    let cut = if count > ROWS {
        format!(" The figure shows the {ROWS} most important of {count} comparisons; the table has all.")
    } else {
        String::new()
    };
    (!rows.is_empty()).then(|| Figure {
        title: "Comparisons: how many times faster".to_owned(),
        about: format!("Ratios inside rounds with {INTERVAL}s; right of 1 is faster.{noise}{cut}"),
        legend: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis {
                label: "times faster (logarithmic)".to_owned(),
                unit: Unit::Times,
                scale: Scale::Log,
                ticks: Ticks::Round,
            },
            rule: Some(1.0),
            noise: floor.map(|floor| (1.0 / floor, floor)),
            bars: false,
            rows,
            interval: INTERVAL.to_owned(),
        }),
        main: true,
    })
}

/// Keeps an equal number of comparisons of each knob and of the systems, so that all fit.
fn few_of_each(all: &mut Vec<&Comparison>) {
    let kinds: BTreeSet<&By> = all.iter().map(|c| &c.by).collect();
    let share = (ROWS / kinds.len().max(1)).max(1);
    let mut taken: BTreeMap<By, usize> = BTreeMap::new();
    all.retain(|c| {
        let count = taken.entry(c.by.clone()).or_default();
        *count += 1;
        *count <= share
    });
    all.truncate(ROWS);
}

fn row(view: &View, c: &Comparison) -> Option<Row> {
    let (a, b) = (view.e.estimates.get(c.scenario)?, view.e.estimates.get(c.against)?);
    let ratio = c.ratio?;
    let label = match &c.by {
        By::Knob(knob) | By::Step(knob) => {
            let value = |e| view.value(e, knob).unwrap_or_default();
            let context = view.context(a, &[knob]);
            format!("{knob} {} against {}{context}", value(a), value(b))
        }
        By::System => {
            let system_knobs = view.varied.iter().filter(|axis| !axis.workload);
            let mut without: Vec<&str> = system_knobs.map(|axis| axis.knob.as_str()).collect();
            without.push(SYSTEM);
            let context = view.context(a, &without);
            format!("{} against {}{context}", a.scenario.system, b.scenario.system)
        }
    };
    // The table says how many more rounds may decide it.
    let word = match c.verdict.is_decided() {
        true => verdict(view.e.figure, c),
        false if ratio.is_hardly_measured() => "hardly measured".to_owned(),
        false => "undecided".to_owned(),
    };
    Some(Row {
        label,
        style: view.palette.style(&a.scenario.system, 0),
        value: ratio.estimate,
        interval: Some((ratio.low, ratio.high)),
        note: format!("{} {word}", show(ratio.estimate, Unit::Times)),
    })
}
