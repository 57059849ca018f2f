//! Bencher Metric Format, which services that follow figures over time read: <https://bencher.dev/docs/reference/bencher-metric-format/>.

use std::collections::BTreeMap;

use lab::experiment::Figure;
use lab::findings::{Estimate, FigureView, Findings, Tuned, is_hardly_measured};
use serde::Serialize;
use systems::Point;

/// The value of a measure, with the interval if it is known.
#[derive(Debug, Clone, Copy, Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Measures by name.
type Measures = BTreeMap<&'static str, Metric>;

/// An object with the measures of each scenario, named `EXPERIMENT/SYSTEM KNOB=VALUE`. Rows that cannot be compared, and
/// Narrows' own endpoints, are left out.
pub fn bencher(found: &Findings) -> String {
    let mut benchmarks: BTreeMap<String, Measures> = BTreeMap::new();
    for e in found.views() {
        for estimate in e.estimates.iter().filter(|each| is_followed(&e, each)) {
            let name = format!("{}/{}", e.name, crate::printable(&e.label(&estimate.scenario)));
            let measures = benchmarks.entry(name).or_default();
            measures.extend(figure(&e, estimate));
            // A figure has an interval. The percentiles of a run with another figure do not replace it.
            for (measure, metric) in percentiles(estimate) {
                measures.entry(measure).or_insert(metric);
            }
        }
    }
    // Only a map with keys that are not strings could fail, and there is none.
    format!("{}\n", serde_json::to_string_pretty(&benchmarks).unwrap_or_default())
}

/// Whether a row's figures are worth following. Of a search, those of the defaults and of the advised setting are: the others
/// differ from search to search.
fn is_followed(e: &FigureView<'_>, row: &Estimate) -> bool {
    let chosen = |found: &Tuned| {
        let advised = found.advice.as_ref().is_some_and(|advice| is_at(row, &advice.point));
        advised || e.base.as_ref().is_some_and(|base| base.scenario == row.scenario)
    };
    row.compares() && !row.is_reference() && e.tuned.as_ref().is_none_or(chosen)
}

fn is_at(row: &Estimate, point: &Point) -> bool {
    point.iter().all(|(knob, value)| row.scenario.point.get(knob) == Some(value))
}

/// The experiment's figure, in the units of Bencher's own measures: operations a second and nanoseconds.
fn figure(e: &FigureView<'_>, estimate: &Estimate) -> Option<(&'static str, Metric)> {
    let (measure, scale) = match e.figure {
        Figure::RequestsPerS | Figure::FramesPerS => ("throughput", 1.0),
        Figure::MaxRate => ("max-rate", 1.0),
        Figure::BytesPerS => ("bytes-per-second", 1.0),
        Figure::MsPerUpload => ("latency", 1e6),
        Figure::P50Us => ("latency", 1e3),
        Figure::P99Us => ("latency-p99", 1e3),
        Figure::FirstByteUs => ("first-byte", 1e3),
        Figure::FirstEventUs => ("first-event", 1e3),
        Figure::FirstEventP99Us => ("first-event-p99", 1e3),
        Figure::GapUs => ("gap", 1e3),
        Figure::GapP99Us => ("gap-p99", 1e3),
        Figure::LongestGapUs => ("longest-gap", 1e3),
        Figure::WholeUs => ("whole", 1e3),
        Figure::EventsPerRead => ("events-per-read", 1.0),
        Figure::EventsPerS => ("events", 1.0),
        Figure::GoodPerS => ("goodput", 1.0),
        Figure::CpuPerUnit => ("cpu-time", 1e9),
        Figure::CallsPerUnit => ("system-calls", 1.0),
        Figure::InstructionsPerUnit => ("instructions", 1.0),
        Figure::MemoryBytes => ("memory", 1.0),
        Figure::StartMs => ("start", 1e6),
        Figure::FirstRequestUs => ("first-request", 1e3),
        Figure::IdleMemoryBytes => ("idle-memory", 1.0),
        Figure::IdleCpu => ("idle-cpu", 1.0),
    };
    // The ends of what is hardly measured say nothing: the tables do not show them either.
    let interval = estimate.interval.filter(|(low, high)| !is_hardly_measured(*low, *high));
    let (lower_value, upper_value) = interval.unzip();
    let [lower_value, upper_value] = [lower_value, upper_value].map(|end| end.map(|end| end * scale));
    Some((measure, Metric { value: estimate.figure? * scale, lower_value, upper_value }))
}

/// The percentiles of response times that are known exactly.
fn percentiles(estimate: &Estimate) -> impl Iterator<Item = (&'static str, Metric)> {
    let both = [("latency", estimate.p50_us), ("latency-p99", estimate.p99_us)];
    both.into_iter().filter_map(|(measure, percentile)| {
        let us = percentile.filter(|p| !p.is_lower_bound())?.value();
        Some((measure, Metric { value: us as f64 * 1e3, lower_value: None, upper_value: None }))
    })
}
