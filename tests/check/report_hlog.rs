//! The latencies of a run as an HdrHistogram log, read with an independent reader: one series per trial, or per
//! scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::home::Home;
use crate::support::made_up::{MadeUp, failed};
use base64::prelude::{BASE64_STANDARD, Engine};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use lab::observation::Outcome;

/// One line of the log.
struct Line {
    tag: String,
    began: Duration,
    length: Duration,
    histogram: Histogram<u64>,
}

fn read(home: &Home, format: &str) -> Vec<Line> {
    let log = home.run(["report", "last", "--format", format]).code(0).stdout;
    let entries = IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.expect("a line of the format"));
    let lines = entries.filter_map(|entry| match entry {
        LogEntry::Interval(line) => {
            let bytes = BASE64_STANDARD.decode(line.encoded_histogram()).expect("base64");
            Some(Line {
                tag: line.tag().expect("a tag").as_str().to_owned(),
                began: line.start_timestamp(),
                length: line.duration(),
                histogram: Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram"),
            })
        }
        _ => None,
    });
    lines.collect()
}

#[test]
fn each_trial_has_a_series_and_each_scenario_a_merged_series() {
    let home = Home::new();
    let made_up = MadeUp { systems: &["alpha", "beta"], threads: 2, buffers: 2, rounds: 3, latencies: 20 };
    made_up.store(&home, |plan| plan, |trial| (trial.index == 4).then(|| failed("it broke", "")));
    let seen = home.observations();
    let trials = read(&home, "hlog");
    assert_eq!(trials.len(), seen.len() - 1, "all but the one that failed");
    let tags: BTreeSet<&str> = trials.iter().map(|line| &*line.tag).collect();
    assert_eq!(tags.len(), trials.len(), "each has a name of its own");
    for name in ["e;alpha;buffer=2048;connections=64;threads=1;round=2", "e;reference;connections=64;round=3"]
    {
        assert!(tags.contains(name), "{name}: {tags:#?}");
    }
    // Each series is what was observed, to the histogram's three digits.
    let mut expected: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
    let measured = seen.iter().filter_map(|o| match &o.outcome {
        Outcome::Measured(m) => Some((o, m)),
        Outcome::Failed(_) => None,
    });
    for ((observation, m), line) in measured.zip(&trials) {
        let scenario = &observation.trial.scenario;
        assert!(line.tag.starts_with(&format!("e;{};", scenario.system)), "{}", line.tag);
        assert_eq!(line.histogram.len(), m.successes);
        assert_eq!(line.began, Duration::from_secs_f64(observation.began_unix_s));
        let (max, shown) = (m.response_us.max * 1e3, line.histogram.max() as f64);
        assert!((shown / max - 1.0).abs() < 2e-3, "{}: {shown} of {max}", line.tag);
        if !observation.trial.twin {
            let series = line.tag.rsplit_once(";round=").expect("a round").0.to_owned();
            let sum = expected.entry(series).or_default();
            *sum = (sum.0 + m.successes, sum.1 + line.length);
        }
    }
    let scenarios = read(&home, "hlog-merged");
    let merged: BTreeMap<String, (u64, Duration)> =
        scenarios.iter().map(|line| (line.tag.clone(), (line.histogram.len(), line.length))).collect();
    assert_eq!(merged, expected);
    // The report's percentiles are those of the merged series.
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let estimates =
        report["experiments"][0]["figures"][0]["estimates"].as_array().expect("estimates").clone();
    assert_eq!(estimates.len(), scenarios.len());
    for estimate in estimates {
        let begins = format!("e;{};", estimate["scenario"]["system"].as_str().expect("a system"));
        let knobs = estimate["scenario"]["point"].as_object().expect("a point");
        let is_it = |line: &&Line| {
            line.tag.starts_with(&begins)
                && knobs.iter().all(|(knob, value)| line.tag.contains(&format!(";{knob}={value}")))
        };
        let line = scenarios.iter().find(is_it).expect("its series");
        let (shown, p99) = (
            estimate["p99_us"].as_f64().expect("p99"),
            line.histogram.value_at_percentile(99.0) as f64 / 1e3,
        );
        assert!((p99 / shown - 1.0).abs() < 5e-3, "{}: {p99} of {shown}", line.tag);
    }
}
