//! Figures of distributions and of time: the latency spectrum, the window's tenths, the rounds.

use lab::findings::{Estimate, Unit};
use systems::Workload;

use super::super::figure::Figure;
use super::View;
use crate::svg::{Axis, Drawing, Lines, Point, Scale, Series, Ticks};

/// Rounds from which a course of them shows more than its ends.
const ROUNDS: usize = 3;

/// Percentiles with a label on the axis of a spectrum.
const LABELLED: [(f64, &str); 6] =
    [(0.0, "0"), (50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];

/// Whether operations are many and short, so that latencies and tenths of a window say something.
fn short_exchanges(view: &View) -> bool {
    matches!(view.e.workload, Workload::Requests | Workload::Clients)
}

/// How far up a percentile stands: each nine as long as the last, as in HdrHistogram's plots.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Response times by percentile, each system at its best.
pub(super) fn spectrum(view: &View) -> Option<Figure> {
    if !short_exchanges(view) {
        return None;
    }
    let point = |&(p, us): &(f64, u64)| Point { x: nines(p), y: us as f64, interval: None };
    let series = series(view, |e| e.detail.percentiles_us.iter().map(point).collect());
    let values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.y).collect();
    let scale = Scale::of(values.iter().copied());
    let highest = series.iter().flat_map(|s| &s.points).map(|p| p.x).fold(0.0, f64::max);
    let labelled = LABELLED.iter().filter(|(p, _)| nines(*p) <= highest + 0.01);
    let ticks = labelled.map(|(p, word)| (nines(*p), (*word).to_owned())).collect();
    lines(
        "Latency spectrum",
        "Response times of all rounds together, each system at its best. A percentile is drawn only where ten samples lie \
         beyond it. Lower is better.",
        Axis {
            label: "percentile".to_owned(),
            unit: Unit::Count,
            scale: Scale::Linear,
            ticks: Ticks::At(ticks),
        },
        Axis {
            label: format!("response time{}", log(scale)),
            unit: Unit::Microseconds,
            scale,
            ticks: Ticks::Round,
        },
        series,
    )
}

/// Throughput in each tenth of the measured window.
pub(super) fn window(view: &View) -> Option<Figure> {
    if !short_exchanges(view) {
        return None;
    }
    let series = series(view, |e| {
        let tenths = &e.detail.tenths_per_s;
        let wide = e.detail.window_s.unwrap_or(1.0) / tenths.len().max(1) as f64;
        let point = |(i, y): (usize, &f64)| Point { x: wide * (i as f64 + 0.5), y: *y, interval: None };
        tenths.iter().enumerate().map(point).collect()
    });
    let values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.y).collect();
    let scale = Scale::of(values.iter().copied());
    lines(
        "Throughput over the window",
        "Verified answers a second in each tenth of the measured window, medians over rounds, each system at its best: a \
         level line is a steady window, a rising one an unfinished warm-up.",
        Axis {
            label: "seconds into the window".to_owned(),
            unit: Unit::Count,
            scale: Scale::Linear,
            ticks: Ticks::Round,
        },
        Axis {
            label: format!("requests a second{}", log(scale)),
            unit: Unit::PerSecond,
            scale,
            ticks: Ticks::Round,
        },
        series,
    )
}

/// The figure in each round: whether the machine drifted while the run went on.
pub(super) fn rounds(view: &View) -> Option<Figure> {
    let series = series(view, |e| {
        let each = e.by_round.iter().filter(|(_, y)| y.is_finite());
        each.map(|(round, y)| Point { x: f64::from(*round) + 1.0, y: *y, interval: None }).collect()
    });
    if series.iter().map(|s| s.points.len()).max()? < ROUNDS {
        return None;
    }
    let values: Vec<_> = series.iter().flat_map(|s| &s.points).map(|p| (p.y, None)).collect();
    let last = view.e.rounds;
    let every = last.div_ceil(20).max(1) as usize;
    let ticks = (1..=last).step_by(every).map(|round| (f64::from(round), round.to_string())).collect();
    lines(
        "Round by round",
        "The figure of each round, each system at its best. Lines that rise and fall together are the machine's doing: \
         comparisons are made inside a round.",
        Axis { label: "round".to_owned(), unit: Unit::Count, scale: Scale::Linear, ticks: Ticks::At(ticks) },
        view.axis(&values),
        series,
    )
}

fn log(scale: Scale) -> &'static str {
    if scale == Scale::Log { " (logarithmic)" } else { "" }
}

/// A series for each system at its best, where it has points.
fn series(view: &View, points: impl Fn(&Estimate) -> Vec<Point>) -> Vec<Series> {
    let each = view.best().into_iter().map(|e| Series {
        label: view.label(e, &[]),
        style: view.palette.style(&e.scenario.system, 0),
        points: points(e),
    });
    each.filter(|series| series.points.len() > 1).collect()
}

fn lines(title: &str, about: &str, x: Axis, y: Axis, series: Vec<Series>) -> Option<Figure> {
    (!series.is_empty()).then(|| Figure {
        title: title.to_owned(),
        about: about.to_owned(),
        legend: series.iter().map(|s| (s.label.clone(), s.style)).collect(),
        drawing: Drawing::Lines(Lines { x, y, series, bands: Vec::new(), interval: String::new() }),
        main: false,
    })
}
