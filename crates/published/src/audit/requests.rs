//! Audits rows of wrk: void rows, latencies that were left out, hidden queues, and unsteady runs.

use super::super::{PublishedTable, RequestRow};
use super::{AuditParts, Flaw, FlawedRows, What, indices};
use lab::doubt::{Doubt, Evidence, HALVES, TrialKind, doubts};
use lab::findings;
use lab::observation::{Latency, Measurement};

pub(super) fn audit(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> AuditParts {
    let mut parts = AuditParts::default();
    parts.found.push(order(rows));
    parts.doubts.extend([
        errors(rows, labels),
        censored(table, rows, labels),
        trial_doubt(table, rows, Doubt::HiddenQueueing),
        unsteady(table, rows, labels),
    ]);
    parts
}

fn errors(rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let code = findings::Code::Errors;
    let mut message = "operations failed".to_owned();
    for (row, label) in rows.iter().zip(labels).filter(|(row, _)| row.measured.void()) {
        let m = &row.measured;
        message.push_str(&format!(
            "; the row of {label} is void: {} requests, {} read errors, {} MB read, nothing verified",
            m.requests, m.read_errors, m.read_mb
        ));
    }
    FlawedRows {
        code: Flaw::Lab(code),
        seen: What::Said(message),
        rows: indices(rows, |row| row.measured.errors > 0 || row.measured.void()),
    }
}

fn censored(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let found = indices(rows, |row| row.measured.timeouts > 0);
    let cap = table.setting.latency_cap_ms;
    let sentences = found.iter().map(|&row| {
        let m = &rows[row].measured;
        let beyond = cap.map_or(String::new(), |cap| {
            let kept = m.requests.saturating_sub(m.timeouts) as f64;
            let mean = (kept * m.latency_mean_ms + m.timeouts as f64 * cap) / m.requests as f64;
            format!(
                " they took {cap} ms or more, so the mean is at least {mean:.1} ms instead of {}, and the maximum of {} ms only tells the cap",
                m.latency_mean_ms, m.latency_max_ms
            )
        });
        format!("{}: {} answers were counted and left out of the latency:{beyond}", labels[row], m.timeouts)
    });
    let message = sentences.collect::<Vec<_>>().join("; ");
    FlawedRows { code: Flaw::CensoredLatency, seen: What::Said(message), rows: found }
}

/// Converts a row to a measurement. Answers that wrk counted as complete are successes, as in its rate.
fn measurement(table: &PublishedTable, row: &RequestRow) -> Measurement {
    let m = &row.measured;
    let latency = Latency {
        count: m.requests,
        min: 0.0,
        mean: m.latency_mean_ms * 1e3,
        max: m.latency_max_ms * 1e3,
        buckets: Vec::new(),
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
fn trial_doubt(table: &PublishedTable, rows: &[RequestRow], code: Doubt) -> FlawedRows {
    let kind = TrialKind { pool_cap: None, closed_loop: true, short_exchanges: true, ramp: false };
    let found = rows.iter().enumerate().filter_map(|(index, row)| {
        let seen = doubts(&measurement(table, row), &kind).into_iter().find(|seen| seen.doubt() == code)?;
        Some((index, seen))
    });
    let (rows, seen): (Vec<usize>, Vec<Evidence>) = found.unzip();
    FlawedRows { code: Flaw::Lab(findings::Code::Trial(code)), seen: What::Evidence(seen), rows }
}

/// Finds unsteady runs: the samples of a thread's rate scatter more than their mean, or all threads at that mean would
/// have done more than was done. The latter happens because wrk takes a sample only if there were answers, so that a
/// long gap counts no more than a short one.
fn unsteady(table: &PublishedTable, rows: &[RequestRow], labels: &[String]) -> FlawedRows {
    let threads = table.setting.threads.unwrap_or(0) as f64;
    let found = rows.iter().enumerate().filter_map(|(index, row)| {
        let m = &row.measured;
        let scatter = m.thread_rate_stdev / m.thread_rate_mean;
        let together = threads * m.thread_rate_mean;
        let mut why = Vec::new();
        if scatter > 1.0 {
            why.push(format!("a thread's rate scatters by {scatter:.1} times its mean"));
        }
        if together > (1.0 + HALVES) * m.requests_per_s {
            let shown = m.requests_per_s;
            why.push(format!(
                "{threads} threads at their mean make {together:.0}/s where {shown:.0}/s was done"
            ));
        }
        (!why.is_empty()).then(|| (index, format!("{}: {}", labels[index], why.join(", "))))
    });
    let (rows, messages): (Vec<usize>, Vec<String>) = found.unzip();
    let code = Flaw::Lab(findings::Code::Trial(Doubt::UnsteadyWindow));
    FlawedRows { code, seen: What::Said(messages.join("; ")), rows }
}

/// The published order, and the rows that do not belong in it.
fn order(rows: &[RequestRow]) -> String {
    let mut sorted: Vec<&RequestRow> = rows.iter().collect();
    sorted.sort_by(|a, b| b.measured.requests_per_s.total_cmp(&a.measured.requests_per_s));
    let name = |row: &&RequestRow| format!("{} {:.0}/s", row.system, row.measured.requests_per_s);
    let valid: Vec<String> = sorted.iter().filter(|row| !row.measured.void()).map(name).collect();
    let invalid: Vec<&str> =
        sorted.iter().filter(|row| row.measured.void()).map(|row| row.system.as_str()).collect();
    let without = if invalid.is_empty() {
        String::new()
    } else {
        format!("; without a figure: {}", invalid.join(", "))
    };
    format!("order by verified requests: {}{without}", valid.join(" > "))
}
