//! Figures over the values of knobs: a sweep of one knob, a grid of two.

use std::collections::{BTreeMap, BTreeSet};

use lab::experiment::grid::Axis as Knob;
use lab::findings::{By, Claim, Estimate, Unit, is_sparse};
use systems::knob::Kind;
use systems::{Role, Value};

use super::super::figure::Figure;
use super::{INTERVAL, SERIES, View, number, numeric, outlines, rest};
use crate::svg::{Axis, Band, Cell, Drawing, Drawn, Heat, Lines, NOT_RANKED, Point, Scale, Series, Ticks};

/// The most sweeps that are drawn. The knobs that the claims name first are chosen.
const SWEEPS: usize = 3;

/// The fewest cells of a grid that is drawn.
const FEWEST: usize = 4;

/// The most grids that are drawn, unless there are more systems. Each system has at least one.
const GRIDS: usize = 6;

/// The most left-out grids that are named.
const NAMED: usize = 8;

/// One figure for each numeric knob, the one with the largest effect first.
pub(super) fn sweeps(view: &View) -> Vec<Figure> {
    let named = |knob: &Knob| {
        let is_about_knob =
            |claim: &Claim| !matches!(claim, Claim::DependsOn { .. }) && claim.knob() == Some(&knob.knob);
        view.e.claims.iter().position(is_about_knob).unwrap_or(usize::MAX)
    };
    let mut knobs: Vec<&Knob> = view.varied.iter().copied().filter(|knob| numeric(knob)).collect();
    let several = knobs.iter().any(|knob| knob.values.len() > 2);
    knobs.retain(|knob| !several || knob.values.len() > 2);
    knobs.sort_by_key(|knob| named(knob));
    knobs.truncate(SWEEPS);
    knobs.into_iter().filter_map(|knob| sweep(view, knob)).collect()
}

/// The label of a group, and its scenarios, which differ only in the knobs of the figure.
type Group<'a> = (String, Vec<&'a Estimate>);

fn sweep(view: &View, knob: &Knob) -> Option<Figure> {
    let (groups, all) = chosen(view, groups(view, knob));
    let walk = Walk::new(knob);
    let mut shapes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut series = Vec::new();
    for (label, rows) in &groups {
        let system = rows[0].scenario.system.as_str();
        let shape = shapes.entry(system).and_modify(|n| *n += 1).or_insert(0);
        let style = view.palette.style(system, *shape);
        let points = points(knob, &walk, rows);
        series.push(Series { label: label.clone(), style, drawn: Drawn::Joined, points });
    }
    series.retain(|s| !s.points.is_empty());
    if series.iter().map(|s| s.points.len()).max()? < 2 {
        return None;
    }
    let values: Vec<_> = series.iter().flat_map(|s| &s.points).map(|p| (p.y, p.interval)).collect();
    let shown = if groups.len() < all {
        format!(" {} of {all} series are drawn, the best of each system; the table has all.", groups.len())
    } else {
        String::new()
    };
    let (quantity, _) = view.quantity();
    let (hollow, swatches) = outlines(series.iter().flat_map(|s| &s.points).map(|p| p.hollow));
    let legend = series.iter().map(|s| (s.label.clone(), s.style)).chain(swatches.into_iter().last());
    Some(Figure {
        title: format!("`{}` against {quantity}", knob.knob),
        about: format!("{}{hollow}{shown}", view.how_to_read()),
        legend: legend.collect(),
        drawing: Drawing::Lines(Lines {
            bands: bands(view, knob, &walk),
            x: walk.axis,
            y: view.axis(&values),
            series,
            interval: INTERVAL.to_owned(),
            hollow: NOT_RANKED,
        }),
        main: false,
    })
}

/// The cliffs between neighbouring values.
fn bands(view: &View, knob: &Knob, walk: &Walk) -> Vec<Band> {
    let cliffs = view.e.comparisons.iter().filter(|c| c.is_cliff() && c.by == By::Step(knob.knob.clone()));
    let (mut bands, mut known): (Vec<Band>, BTreeSet<[u64; 2]>) = Default::default();
    for cliff in cliffs {
        let position = |index: usize| {
            let value = view.e.estimates.get(index)?.scenario.point.get(&knob.knob)?;
            Some(walk.position(number(value)?))
        };
        let (Some(from), Some(to)) = (position(cliff.against), position(cliff.scenario)) else { continue };
        if known.insert([from, to].map(f64::to_bits)) {
            bands.push(Band { from, to, label: "cliff".to_owned() });
        }
    }
    bands
}

/// A knob as an axis. Its values are the ticks.
struct Walk {
    axis: Axis,
    /// The values in order, if they are too close together for any scale.
    order: Option<Vec<f64>>,
}

/// Neighbours closer than this share of the axis cannot be told apart.
const CLOSE: f64 = 0.03;

impl Walk {
    fn new(knob: &Knob) -> Self {
        let mut values: Vec<f64> = knob.values.iter().filter_map(number).collect();
        values.sort_by(f64::total_cmp);
        let scale = Scale::of(values.iter().copied());
        let place = |v: f64| if scale == Scale::Log { v.ln() } else { v };
        let span = place(values[values.len() - 1]) - place(values[0]);
        let close = values.windows(2).any(|pair| place(pair[1]) - place(pair[0]) < CLOSE * span);
        let (unit, bytes) = if knob.kind == Kind::Size { (Unit::Size, "bytes") } else { (Unit::Count, "") };
        let how = match scale {
            _ if close => "in order, not to scale",
            Scale::Log => "logarithmic",
            Scale::Linear => "",
        };
        let notes: Vec<&str> = [bytes, how].into_iter().filter(|word| !word.is_empty()).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let mut walk = Self {
            axis: Axis {
                label: format!("{}{notes}", knob.knob),
                unit,
                scale: if close { Scale::Linear } else { scale },
                ticks: Ticks::Round,
            },
            order: close.then_some(values),
        };
        let mut ticks: Vec<(f64, String)> =
            knob.values.iter().filter_map(|v| Some((walk.position(number(v)?), knob.show(v)))).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        walk.axis.ticks = Ticks::At(ticks);
        walk
    }

    fn position(&self, value: f64) -> f64 {
        match &self.order {
            Some(order) => order.partition_point(|known| *known < value) as f64,
            None => value,
        }
    }
}

fn groups<'a>(view: &View<'a>, knob: &Knob) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = BTreeMap::new();
    for &row in &view.rows {
        let others = rest(&row.scenario.point, &knob.knob);
        let place = *places.entry((&row.scenario.system, others)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.1.push(row),
            None => groups.push((view.label(row, &[&knob.knob]), vec![row])),
        }
    }
    groups
}

/// All groups, or if there are too many, those with the best scenario of a system; and the number of all groups.
fn chosen<'a>(view: &View<'a>, groups: Vec<Group<'a>>) -> (Vec<Group<'a>>, usize) {
    let all = groups.len();
    if all <= SERIES {
        return (groups, all);
    }
    let best = view.best();
    let holds = |group: &Group| group.1.iter().any(|row| best.iter().any(|known| std::ptr::eq(*known, *row)));
    (groups.into_iter().filter(holds).collect(), all)
}

/// The points of a series. A system without the knob gets a level line.
fn points(knob: &Knob, walk: &Walk, rows: &[&Estimate]) -> Vec<Point> {
    let point = |row: &Estimate, x: f64| {
        let (interval, hollow) = (row.interval, !row.is_ranked());
        Some(Point { interval, hollow, ..Point::new(walk.position(x), row.figure?) })
    };
    if let [only] = rows
        && !only.scenario.point.contains_key(&knob.knob)
    {
        let values = || knob.values.iter().filter_map(number);
        let ends = [values().min_by(f64::total_cmp), values().max_by(f64::total_cmp)];
        let ends = ends.into_iter().flatten();
        return ends.filter_map(|x| Some(Point { interval: None, ..point(only, x)? })).collect();
    }
    let mut points: Vec<Point> =
        rows.iter().filter_map(|row| point(row, number(row.scenario.point.get(&knob.knob)?)?)).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// Grids over the two knobs with the most values, one for each system and point of the other knobs. For pools they are
/// over the number of callers and the size of the pool.
pub(super) fn heats(view: &View) -> Vec<Figure> {
    let Some((across, down)) = pair(view) else { return Vec::new() };
    let mut panels: Vec<Group> = Vec::new();
    let mut places = BTreeMap::new();
    for &row in view.rows.iter().filter(|row| !row.is_reference()) {
        let point = &row.scenario.point;
        if !point.contains_key(&across.knob) || !point.contains_key(&down.knob) {
            continue;
        }
        let label = view.label(row, &[&across.knob, &down.knob]);
        let place = *places.entry(label.clone()).or_insert(panels.len());
        match panels.get_mut(place) {
            Some(panel) => panel.1.push(row),
            None => panels.push((label, vec![row])),
        }
    }
    let values = panels.iter().flat_map(|panel| &panel.1).filter_map(|row| row.figure);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let [columns, rows] = [across, down].map(|knob| knob.values.len());
    panels.retain(|panel| panel.1.len() >= FEWEST && !is_sparse(rows, columns, panel.1.len()));
    let cut = cut(view, &mut panels);
    let figures =
        panels.into_iter().map(|(label, rows)| heat(view, (across, down), &label, &rows, (low, high)));
    let mut figures: Vec<Figure> = figures.collect();
    if let Some(last) = figures.last_mut() {
        last.about.push_str(&cut);
    }
    figures
}

/// Keeps the grids that are drawn: the best of each system, then the second of each, and so on. Returns a sentence about
/// the others.
fn cut(view: &View, panels: &mut Vec<Group>) -> String {
    let all = panels.len();
    panels.iter_mut().for_each(|panel| panel.1.sort_by(|a, b| view.order(b, a)));
    let mut best_first: Vec<usize> = (0..all).collect();
    best_first.sort_by(|a, b| view.order(panels[*b].1[0], panels[*a].1[0]));
    let mut drawn: BTreeMap<&str, usize> = BTreeMap::new();
    let turn = |index: usize| {
        let turn = drawn.entry(&panels[index].1[0].scenario.system).or_default();
        *turn += 1;
        (*turn, index)
    };
    let mut turns: Vec<(usize, usize)> = best_first.into_iter().map(turn).collect();
    turns.sort_unstable();
    let most = GRIDS.max(drawn.len());
    if all <= most {
        return String::new();
    }
    let mut left: Vec<Option<Group>> = std::mem::take(panels).into_iter().map(Some).collect();
    panels.extend(turns.iter().take(most).filter_map(|(_, index)| left[*index].take()));
    let left: Vec<String> = left.into_iter().flatten().map(|panel| panel.0).collect();
    let named = if left.len() <= NAMED { format!(", without {}", left.join("; ")) } else { String::new() };
    format!(" {most} of {all} grids are drawn, the best of each system first{named}; the table has all.")
}

fn pair<'a>(view: &View<'a>) -> Option<(&'a Knob, &'a Knob)> {
    let mut knobs = view.varied.clone();
    let preferred = ["concurrency", "pool_size", "pools"];
    let pools = view.e.workload.role() == Role::Client;
    let place = |knob: &Knob| preferred.iter().position(|name| pools && *name == knob.knob).unwrap_or(9);
    // The sort is stable, so knobs with equally many values keep the order of the experiment.
    knobs.sort_by_key(|knob| (place(knob), std::cmp::Reverse(knob.values.len())));
    let (across, down) = (*knobs.first()?, *knobs.get(1)?);
    (across.values.len() * down.values.len() >= 4).then_some((across, down))
}

fn heat(
    view: &View,
    (across, down): (&Knob, &Knob),
    label: &str,
    rows: &[&Estimate],
    range: (f64, f64),
) -> Figure {
    let (quantity, unit) = view.quantity();
    let place = |row: &Estimate| [down, across].map(|knob| row.scenario.point.get(&knob.knob).cloned());
    // Of several rows at one place, the first.
    let places: BTreeMap<_, _> = rows.iter().rev().map(|row| (place(row), *row)).collect();
    let cell = |d: &Value, a: &Value| {
        let row = places.get(&[Some(d.clone()), Some(a.clone())])?;
        Some(Cell { value: row.figure?, ranked: row.is_ranked() })
    };
    let cells = down.values.iter().map(|d| across.values.iter().map(|a| cell(d, a)).collect()).collect();
    let words = |knob: &Knob| (knob.knob.clone(), knob.values.iter().map(|v| knob.show(v)).collect());
    let frame = match rows.iter().filter(|row| row.is_ranked()).count() {
        0 => "no cell is framed, because none is ranked.",
        ranked if ranked < rows.len() => {
            "the best ranked cell is framed, and cells with a dotted edge are not ranked."
        }
        _ => "the best cell is framed.",
    };
    Figure {
        title: format!("{label}: {quantity} by `{}` and `{}`", across.knob, down.knob),
        about: format!("Brighter is better, on one scale for all grids of this experiment; {frame}"),
        legend: Vec::new(),
        drawing: Drawing::Heat(Heat {
            across: words(across),
            down: words(down),
            cells,
            unit,
            more_is_better: view.e.figure.more_is_better(),
            range,
            hollow: NOT_RANKED,
        }),
        main: false,
    }
}
