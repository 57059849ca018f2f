//! Figures of distributions and of time: the latency spectrum, throughput and memory over the window, the rounds.

use lab::findings::{Estimate, Unit};

use super::super::figure::Figure;
use super::{SERIES, View};
use crate::svg::{Axis, Drawing, Drawn, Lines, NOT_RANKED, Panels, Point, Scale, Series, Style, Ticks};

/// The fewest rounds of which a course is drawn.
const ROUNDS: usize = 3;

/// The percentiles that are labelled on the axis of a spectrum.
const LABELLED: [(f64, &str); 6] =
    [(0.0, "0"), (50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];

/// Whether operations are so many and short that latencies and tenths of a window are meaningful.
fn short_exchanges(view: &View) -> bool {
    view.e.workload.about().short_exchanges
}

/// The position of a percentile on its axis: each further nine takes the same length, as in HdrHistogram's plots.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Response times by percentile, for the best scenario of each system.
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
        "Response times of all rounds together, for the best scenario of each system. A percentile is drawn only if ten \
         samples lie beyond it. Lower is better.",
        panel.into_iter().collect(),
    )
}

/// Memory over the window, as a heap profiler shows it, with the throughput.
pub(super) fn window(view: &View) -> Option<Figure> {
    let panels = [throughput(view), memory(view)];
    let (title, caption) = match panels {
        [Some(_), Some(_)] => ("Throughput and memory over the window", format!("{ANSWERS} {MEMORY}")),
        [Some(_), None] => ("Throughput over the window", ANSWERS.to_owned()),
        [None, _] => ("Memory over the window", MEMORY.to_owned()),
    };
    let about = format!("{caption} Medians over rounds, for the best scenario of each system.");
    figure(title, &about, panels.into_iter().flatten().collect())
}

const ANSWERS: &str = "Verified answers per second in each tenth of the measured window: a level line means a steady window, \
                       a rising one an unfinished warm-up.";
const MEMORY: &str = "Memory of the system's processes (proportional set size): a line that keeps rising means that memory is \
                      not given back.";

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

/// Memory in each stretch of the window with samples.
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

/// The memory of each system with the most connections at which it can be told what each of them takes: at rest, and over the
/// window.
pub(super) fn connections(view: &View) -> Option<Figure> {
    let about = crate::words::per_connection(view.e)?;
    let before_s = view.e.timing.warmup_s;
    let most = view.e.most_connected();
    let series = most.iter().take(SERIES).map(|(e, _)| {
        let rest = e.rest_memory_bytes.map(|bytes| Point::new(-before_s, bytes));
        let course = e.detail.memory_bytes.iter().map(|&(x, y)| Point::new(x, y));
        Series {
            label: e.scenario.system.clone(),
            style: view.palette.style(&e.scenario.system, 0),
            drawn: Drawn::Joined,
            points: rest.into_iter().chain(course).collect(),
        }
    });
    let title = format!("Memory with {} connections", most.first()?.1.connections);
    let about = format!(
        "The proportional set size of the system's processes, medians over rounds: at rest, drawn where the warm-up begins, and \
         over the window. In numbers: {about}."
    );
    figure(&title, &about, over_time("memory", Unit::Bytes, series.collect()).into_iter().collect())
}

/// The figure in each round, which shows whether the machine drifted during the run.
pub(super) fn rounds(view: &View) -> Option<Figure> {
    let series = series(view, |e| {
        let finite = e.by_round.iter().filter(|(_, y)| y.is_finite());
        finite.map(|(round, y)| Point::new(f64::from(*round) + 1.0, *y)).collect()
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
        "The figure of each round, for the best scenario of each system. If lines rise and fall together, the machine \
         caused it, and comparisons within rounds are not affected.",
        lines(x, view.axis(&values), series).into_iter().collect(),
    )
}

fn log(scale: Scale) -> &'static str {
    if scale == Scale::Log { " (logarithmic)" } else { "" }
}

/// A series for the best scenario of each system, if it has points.
fn series(view: &View, points: impl Fn(&Estimate) -> Vec<Point>) -> Vec<Series> {
    let all = view.best().into_iter().map(|e| Series {
        label: view.label(e, &[]),
        style: view.palette.style(&e.scenario.system, 0),
        drawn: Drawn::Joined,
        points: points(e),
    });
    all.filter(|series| !series.points.is_empty()).collect()
}

/// A chart, if at least one series has more than one point.
fn lines(x: Axis, y: Axis, series: Vec<Series>) -> Option<Lines> {
    series.iter().any(|s| s.points.len() > 1).then(|| Lines {
        x,
        y,
        series,
        bands: Vec::new(),
        interval: String::new(),
        hollow: NOT_RANKED,
    })
}

/// A figure of these panels. None if there are none.
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
