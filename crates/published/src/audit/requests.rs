//! Audits rows of wrk: void rows, latencies that were left out, hidden queues, and unsteady runs.

use super::super::{
    Cap, Censored, Found, PublishedRow, PublishedTable, RequestRow, Seen, ThreadRates, UnsteadyRow, VoidRow,
};
use super::{AuditParts, Flaw, FlawedRows, indices};
use lab::findings;
use measurement::doubt::{Doubt, Evidence, HALVES, TrialKind, doubts};
use measurement::{Latency, Measurement};

pub(super) fn audit(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> AuditParts {
    let mut parts = AuditParts::default();
    parts.found.push(order(rows));
    parts.doubts.extend([
        errors(rows, labels),
        censored(table, rows, labels),
        trial_doubt(table, rows, Doubt::HiddenQueueing, labels),
        unsteady(table, rows, labels),
    ]);
    parts
}

fn errors(rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let void = rows.iter().zip(labels).filter(|(row, _)| row.measured.void());
    let void = void.map(|(PublishedRow { measured: m, .. }, label)| VoidRow {
        row: label.clone(),
        requests: m.requests,
        read_errors: m.read_errors,
        read_bytes: m.read_mb * 1024.0 * 1024.0,
    });
    FlawedRows {
        code: Flaw::Lab(findings::Code::Errors),
        seen: Seen::Errors { void: void.collect() },
        rows: indices(rows, |row| row.measured.errors > 0 || row.measured.void()),
    }
}

fn censored(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let found = indices(rows, |row| row.measured.timeouts > 0);
    let cap = table.setting.latency_cap_ms;
    let censored =
        rows.iter().zip(labels).filter(|(row, _)| row.measured.timeouts > 0).map(|(row, label)| {
            let m = &row.measured;
            let cap = cap.map(|cap_ms| {
                let kept = m.requests.saturating_sub(m.timeouts) as f64;
                let least_mean_ms =
                    (kept * m.latency_mean_ms + m.timeouts as f64 * cap_ms) / m.requests as f64;
                Cap { cap_ms, least_mean_ms, mean_ms: m.latency_mean_ms, max_ms: m.latency_max_ms }
            });
            Censored { row: label.clone(), answers: m.timeouts, cap }
        });
    FlawedRows { code: Flaw::CensoredLatency, seen: Seen::Censored(censored.collect()), rows: found }
}

/// Converts a row to a measurement. Answers that wrk counted as complete are successes, as in its rate.
fn measurement(table: &PublishedTable, row: &RequestRow) -> Measurement {
    let m = &row.measured;
    let latency = Latency {
        count: m.requests,
        min: 0.0,
        mean: m.latency_mean_ms * 1e3,
        max: m.latency_max_ms * 1e3,
        ..Latency::default()
    };
    Measurement {
        elapsed_s: m.elapsed_s,
        attempts: m.requests,
        successes: m.requests,
        units: m.requests,
        concurrency: table.setting.connections.unwrap_or(0),
        service_us: latency,
        ..Measurement::default()
    }
}

/// A doubt that Narrows has about its own trials, over the same figures.
fn trial_doubt(table: &PublishedTable, rows: &[RequestRow], code: Doubt, labels: &[String]) -> FlawedRows {
    let kind = TrialKind { closed_loop: true, short_exchanges: true, ..TrialKind::default() };
    let found = rows.iter().zip(labels).enumerate().filter_map(|(index, (row, label))| {
        let seen = doubts(&measurement(table, row), &kind).into_iter().find(|seen| seen.doubt() == code)?;
        Some((index, (label.clone(), seen)))
    });
    let (rows, seen): (Vec<usize>, Vec<(String, Evidence)>) = found.unzip();
    FlawedRows { code: Flaw::Lab(findings::Code::Trial(code)), seen: Seen::Evidence(seen), rows }
}

/// Finds unsteady runs: the samples of a thread's rate scatter more than their mean, or all threads at that mean would
/// have done more than was done. The latter happens because wrk takes a sample only if there were answers, so that a
/// long gap counts no more than a short one.
fn unsteady(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let threads = table.setting.threads.unwrap_or(0);
    let found = rows.iter().zip(labels).enumerate().filter_map(|(index, (row, label))| {
        let m = &row.measured;
        let scatter = m.thread_rate_stdev / m.thread_rate_mean;
        let rates = ThreadRates {
            threads,
            together_per_s: threads as f64 * m.thread_rate_mean,
            done_per_s: m.requests_per_s,
        };
        let seen = UnsteadyRow {
            row: label.clone(),
            scatter: Some(scatter).filter(|scatter| *scatter > 1.0),
            threads: Some(rates).filter(|rates| rates.together_per_s > (1.0 + HALVES) * rates.done_per_s),
        };
        (seen.scatter.is_some() || seen.threads.is_some()).then_some((index, seen))
    });
    let (rows, seen): (Vec<usize>, Vec<UnsteadyRow>) = found.unzip();
    let code = Flaw::Lab(findings::Code::Trial(Doubt::UnsteadyWindow));
    FlawedRows { code, seen: Seen::Unsteady(seen), rows }
}

/// The published order, and the rows that do not belong in it.
fn order(rows: &[RequestRow]) -> Found {
    let mut sorted: Vec<&RequestRow> = rows.iter().collect();
    sorted.sort_by(|a, b| b.measured.requests_per_s.total_cmp(&a.measured.requests_per_s));
    let (void, verified): (Vec<&RequestRow>, Vec<&RequestRow>) =
        sorted.into_iter().partition(|row| row.measured.void());
    Found::Order {
        verified: verified.iter().map(|row| (row.system.clone(), row.measured.requests_per_s)).collect(),
        void: void.iter().map(|row| row.system.clone()).collect(),
    }
}
