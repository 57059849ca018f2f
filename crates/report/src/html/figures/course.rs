//! Figures of distributions and of time: the latency spectrum, throughput and memory over the window, the rounds.

use lab::findings::{Estimate, Unit};

use super::super::figure::Figure;
use super::View;
use crate::svg::{Axis, Drawing, Lines, Panels, Point, Scale, Series, Style, Ticks};

/// Rounds from which a course of them shows more than its ends.
const ROUNDS: usize = 3;

/// Percentiles with a label on the axis of a spectrum.
const LABELLED: [(f64, &str); 6] =
    [(0.0, "0"), (50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];

/// Whether operations are many and short, so that latencies and tenths of a window say something.
fn short_exchanges(view: &View) -> bool {
    view.e.workload.about().short_exchanges
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
    let point = |&(p, us): &(f64, u64)| Point::new(nines(p), us as f64);
    let series = series(view, |e| e.detail.percentiles_us.iter().map(point).collect());
    let values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.y).collect();
    let scale = Scale::of(values.iter().copied());
    let highest = series.iter().flat_map(|s| &s.points).map(|p| p.x).fold(0.0, f64::max);
    let labelled = LABELLED.iter().filter(|(p, _)| nines(*p) <= highest + 0.01);
    let ticks = labelled.map(|(p, word)| (nines(*p), (*word).to_owned())).collect();
    let panel = lines(
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
    );
    figure(
        "Latency spectrum",
        "Response times of all rounds together, each system at its best. A percentile is drawn only where ten samples lie \
         beyond it. Lower is better.",
        panel.into_iter().collect(),
    )
}

/// What a heap profiler's curve is read for, beside what was done meanwhile.
pub(super) fn window(view: &View) -> Option<Figure> {
    let panels = [throughput(view), memory(view)];
    let (title, what) = match panels {
        [Some(_), Some(_)] => {
            ("Throughput and memory over the window", format!("{ANSWERS} Below it {MEMORY}"))
        }
        [Some(_), None] => ("Throughput over the window", ANSWERS.to_owned()),
        [None, _] => ("Memory over the window", format!("Shown is {MEMORY}")),
    };
    let about = format!("{what} Medians over rounds, each system at its best.");
    figure(title, &about, panels.into_iter().flatten().collect())
}

const ANSWERS: &str = "Verified answers a second in each tenth of the measured window: a level line is a steady window, a \
                       rising one an unfinished warm-up.";
const MEMORY: &str =
    "the memory of the system's processes (proportional set size): what goes on rising is not given back.";

/// Verified answers in each tenth of the window.
fn throughput(view: &View) -> Option<Lines> {
    if !short_exchanges(view) {
        return None;
    }
    let series = series(view, |e| {
        let tenths = &e.detail.tenths_per_s;
        let wide = e.detail.window_s.unwrap_or(1.0) / tenths.len().max(1) as f64;
        let point = |(i, y): (usize, &f64)| Point::new(wide * (i as f64 + 0.5), *y);
        tenths.iter().enumerate().map(point).collect()
    });
    over_time("requests a second", Unit::PerSecond, series)
}

/// Memory wherever the sampler looked.
fn memory(view: &View) -> Option<Lines> {
    let point = |&(x, y): &(f64, f64)| Point::new(x, y);
    let series = series(view, |e| e.detail.memory_bytes.iter().map(point).collect());
    over_time("memory", Unit::Bytes, series)
}

fn over_time(quantity: &str, unit: Unit, series: Vec<Series>) -> Option<Lines> {
    let scale = Scale::of(series.iter().flat_map(|s| &s.points).map(|p| p.y));
    let label = format!("{quantity}{}", log(scale));
    let x = Axis {
        label: "seconds into the window".to_owned(),
        unit: Unit::Count,
        scale: Scale::Linear,
        ticks: Ticks::Round,
    };
    lines(x, Axis { label, unit, scale, ticks: Ticks::Round }, series)
}

/// The figure in each round: whether the machine drifted while the run went on.
pub(super) fn rounds(view: &View) -> Option<Figure> {
    let series = series(view, |e| {
        let each = e.by_round.iter().filter(|(_, y)| y.is_finite());
        each.map(|(round, y)| Point::new(f64::from(*round) + 1.0, *y)).collect()
    });
    if series.iter().map(|s| s.points.len()).max()? < ROUNDS {
        return None;
    }
    let values: Vec<_> = series.iter().flat_map(|s| &s.points).map(|p| (p.y, None)).collect();
    let last = view.e.rounds;
    let every = last.div_ceil(20).max(1) as usize;
    let ticks = (1..=last).step_by(every).map(|round| (f64::from(round), round.to_string())).collect();
    let x =
        Axis { label: "round".to_owned(), unit: Unit::Count, scale: Scale::Linear, ticks: Ticks::At(ticks) };
    figure(
        "Round by round",
        "The figure of each round, each system at its best. Lines that rise and fall together are the machine's doing: \
         comparisons are made inside a round.",
        lines(x, view.axis(&values), series).into_iter().collect(),
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
    each.filter(|series| !series.points.is_empty()).collect()
}

/// A chart, if there is a course: points that stand alone are shown beside others' only.
fn lines(x: Axis, y: Axis, series: Vec<Series>) -> Option<Lines> {
    series.iter().any(|s| s.points.len() > 1).then(|| Lines {
        x,
        y,
        series,
        bands: Vec::new(),
        interval: String::new(),
    })
}

/// None without a panel.
fn figure(title: &str, about: &str, mut panels: Vec<Lines>) -> Option<Figure> {
    let mut legend: Vec<(String, Style)> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if legend.iter().all(|(label, _)| *label != series.label) {
            legend.push((series.label.clone(), series.style));
        }
    }
    let drawing = match panels.len() {
        0 => return None,
        1 => Drawing::Lines(panels.remove(0)),
        _ => Drawing::Panels(Panels(panels)),
    };
    Some(Figure { title: title.to_owned(), about: about.to_owned(), legend, drawing, main: false })
}
