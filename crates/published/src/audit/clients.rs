//! Audits clients with pools. If the number of attempts is known, the figures show how long each row lasted, how
//! quickly its requests failed, and whether failures follow a law. They also show more answers than a pool can carry,
//! and the ranking of rows with few errors.

use std::collections::BTreeSet;

use super::super::{ClientFigures, ClientRow, PublishedTable};
use super::{AuditParts, Flaw, FlawedRows, What, indices};
use lab::doubt::{Doubt, QUICKER};
use lab::findings::{self, Cell, Column, RANKED_ERRORS, Unit, column};

/// Most of a shorter row is its start: connections are made, and the timeout of one second passes hardly once.
const SHORTEST_S: f64 = 2.0;
/// A law of errors holds if no row is further from it than this, in percentage points, ...
const DEVIATION: f64 = 0.5;
/// ... if its predictions span at least this many percentage points ...
const SPAN: f64 = 5.0;
/// ... and if there are at least this many rows.
const FEWEST_ROWS: usize = 10;

/// What follows from a row's figures if the number of attempts is known.
struct Derived {
    /// The attempts that were made. Each caller made the same number.
    attempts: f64,
    successes: f64,
    failures: f64,
    /// The duration of the row.
    duration_s: f64,
    /// The mean time of an attempt: callers divided by attempts per second.
    cycle_s: f64,
}

fn derive(attempts: u64, m: &ClientFigures) -> Option<Derived> {
    let attempts = (attempts / m.concurrency * m.concurrency) as f64;
    let successes = attempts * (1.0 - m.error_percent / 100.0);
    let duration_s = successes / m.requests_per_s;
    let cycle_s = m.concurrency as f64 * duration_s / attempts;
    // Without a success there is no rate from which to derive the duration.
    (successes > 0.0).then_some(Derived {
        attempts,
        successes,
        failures: attempts - successes,
        duration_s,
        cycle_s,
    })
}

pub(super) fn audit(table: &PublishedTable, rows: &[ClientRow], labels: &[String]) -> AuditParts {
    let attempts = table.setting.attempts;
    let derived: Vec<Option<Derived>> =
        rows.iter().map(|row| attempts.and_then(|n| derive(n, &row.measured))).collect();
    let above = above_ceiling(table, rows, labels);
    let (found, schedule) = schedules(rows, &derived);
    AuditParts {
        found,
        ranking: Some(ranking(rows, labels, &above.rows)),
        doubts: vec![
            fail_fast(table, rows, &derived, labels),
            schedule,
            errors(rows),
            too_short(rows, &derived, labels),
            above,
            unbound(table, rows, &derived, labels),
        ],
    }
}

fn errors(rows: &[ClientRow]) -> FlawedRows {
    let code = findings::Code::Errors;
    let message = format!("more than {} % of the operations failed", RANKED_ERRORS * 100.0);
    FlawedRows {
        code: Flaw::Lab(code),
        seen: What::Said(message),
        rows: indices(rows, |row| !row.measured.few_errors()),
    }
}

/// The longest possible mean time of a failure, as if all callers' time had gone into failures.
fn failure_ms(row: &ClientRow, derived: &Derived) -> f64 {
    row.measured.concurrency as f64 * derived.duration_s * 1e3 / derived.failures
}

/// Finds failures that are far quicker than the timeout, because requests were refused without a wait. With a fixed
/// number of attempts, they shorten the measured time.
fn fail_fast(
    table: &PublishedTable,
    rows: &[ClientRow],
    derived: &[Option<Derived>],
    labels: &[String],
) -> FlawedRows {
    let fast = |index: usize| {
        let (timeout, derived) = (table.setting.timeout_ms?, derived[index].as_ref()?);
        let mean = failure_ms(&rows[index], derived);
        (!rows[index].measured.few_errors() && mean < QUICKER * timeout).then_some((timeout, mean))
    };
    let found: Vec<usize> = (0..rows.len()).filter(|&index| fast(index).is_some()).collect();
    let message = found.first().and_then(|&index| fast(index).map(|times| (index, times))).map(|(index, (timeout, mean))| {
        format!(
            "{}: {} % failed, in {mean:.1} ms on average at most, where the timeout is {timeout} ms: refused, and the clock \
             stopped the sooner",
            labels[index], rows[index].measured.error_percent
        )
    });
    FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::FailFast)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// Clients of which every connection carries the same number of requests: their failures are
/// `1 - requests x connections / attempts`.
fn schedules(rows: &[ClientRow], derived: &[Option<Derived>]) -> (Vec<String>, FlawedRows) {
    let mut found = FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::ErrorsOnSchedule)),
        seen: What::Said(String::new()),
        rows: Vec::new(),
    };
    let mut laws = Vec::new();
    let clients: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
    for client in clients {
        let client_rows = rows.iter().zip(derived).enumerate().filter(|(_, (row, _))| row.system == client);
        let client_rows: Vec<(usize, &ClientFigures, &Derived)> = client_rows
            .filter_map(|(index, (row, derived))| {
                derived.as_ref().map(|derived| (index, &row.measured, derived))
            })
            .collect();
        let sum = |figure: fn(&(usize, &ClientFigures, &Derived)) -> f64| {
            client_rows.iter().map(figure).sum::<f64>()
        };
        let carried = sum(|(_, _, d)| d.successes) / sum(|(_, m, _)| m.connections);
        let limit = round_limit(carried);
        let predicted =
            |m: &ClientFigures, d: &Derived| (1.0 - limit * m.connections / d.attempts).max(0.0) * 100.0;
        let off = |(_, m, d): &(usize, &ClientFigures, &Derived)| (predicted(m, d) - m.error_percent).abs();
        let worst = client_rows.iter().map(off).fold(0.0, f64::max);
        let all: Vec<f64> = client_rows.iter().map(|(_, m, d)| predicted(m, d)).collect();
        let span = all.iter().copied().fold(0.0, f64::max) - all.iter().copied().fold(100.0, f64::min);
        if client_rows.len() < FEWEST_ROWS || worst > DEVIATION || span < SPAN {
            continue;
        }
        laws.push(format!(
            "{client}: Error % is 100 x (1 - {limit} x connections / attempts) in all {} rows, within {worst:.2} points: \
             {carried:.1} successes on each connection, which fits a server that closes it after {limit} requests and a pool \
             that then fails at once",
            client_rows.len()
        ));
        found.seen = What::Said(format!(
            "{client}: each connection carried {limit} requests ({carried:.1}), and no more"
        ));
        found.rows.extend(client_rows.iter().map(|(index, _, _)| *index));
    }
    (laws, found)
}

/// The likely limit behind a mean. People choose round limits, so this is the round number (1, 2 or 5 and zeros) within
/// 5 % of the mean, or else the nearest whole number.
fn round_limit(mean: f64) -> f64 {
    let decades = (0..7).map(|power| 10_f64.powi(power));
    let round = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
    let near = round.into_iter().find(|limit| (mean / limit - 1.0).abs() < 0.05);
    near.unwrap_or_else(|| mean.round().max(1.0))
}

fn too_short(rows: &[ClientRow], derived: &[Option<Derived>], labels: &[String]) -> FlawedRows {
    let length = |index: usize| derived[index].as_ref().map_or(f64::INFINITY, |d| d.duration_s);
    let found: Vec<usize> = (0..rows.len()).filter(|&index| length(index) < SHORTEST_S).collect();
    let shortest = found.iter().copied().min_by(|a, b| length(*a).total_cmp(&length(*b)));
    let longest = derived.iter().flatten().map(|d| d.duration_s).fold(0.0, f64::max);
    let message = shortest.map(|index| {
        format!(
            "{}: all attempts were over after {:.2} s, while the longest row lasted {longest:.0} s; shorter than {SHORTEST_S} s",
            labels[index],
            length(index)
        )
    });
    FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::TooShort)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// Finds rates above the ceiling of the pool. The ceiling is one request at a time on each connection, each of at least
/// the server's delay.
fn above_ceiling(table: &PublishedTable, rows: &[ClientRow], labels: &[String]) -> FlawedRows {
    let ceiling =
        |row: &ClientRow| table.setting.delay_ms.map(|delay| row.measured.connections * 1e3 / delay);
    let pooled = |row: &ClientRow| !table.setting.unpooled.contains(&row.system);
    let found =
        indices(rows, |row| pooled(row) && ceiling(row).is_some_and(|c| row.measured.requests_per_s > c));
    let message = found.first().and_then(|&index| {
        let ceiling = ceiling(&rows[index])?;
        Some(format!(
            "{}: {}/s where {} connections carry {ceiling:.0}/s one request at a time: pipelining, more connections, or \
             answers to other requests",
            labels[index], rows[index].measured.requests_per_s, rows[index].measured.connections
        ))
    });
    FlawedRows { code: Flaw::AboveCeiling, seen: What::Said(message.unwrap_or_default()), rows: found }
}

/// Finds attempts that took longer than the timeout and did not fail. The timeout then does not limit how long a caller
/// waits.
fn unbound(
    table: &PublishedTable,
    rows: &[ClientRow],
    derived: &[Option<Derived>],
    labels: &[String],
) -> FlawedRows {
    let timeout = table.setting.timeout_ms.map_or(f64::INFINITY, |ms| ms / 1e3);
    let cycle = |index: usize| derived[index].as_ref().map_or(0.0, |d| d.cycle_s);
    let few = |index: &usize| rows[*index].measured.few_errors();
    let found: Vec<usize> = (0..rows.len()).filter(|&index| cycle(index) > timeout).filter(few).collect();
    let worst = found.iter().copied().max_by(|a, b| cycle(*a).total_cmp(&cycle(*b)));
    let message = worst.map(|index| {
        format!(
            "{}: {} under way at {}/s take {:.1} s each, though the nominal timeout is {timeout} s and {} % failed; no latency is shown",
            labels[index],
            rows[index].measured.concurrency,
            rows[index].measured.requests_per_s,
            cycle(index),
            rows[index].measured.error_percent
        )
    });
    FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::HiddenQueueing)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// The published ranking of each client's best row, beside the ranking of its best row with few errors.
fn ranking(rows: &[ClientRow], labels: &[String], above: &[usize]) -> findings::Table {
    let best = |client: &str, ranked: bool| {
        let indices = (0..rows.len()).filter(|&row| rows[row].system == client);
        let indices = indices.filter(|&row| !ranked || rows[row].measured.few_errors());
        indices.max_by(|a, b| rows[*a].measured.requests_per_s.total_cmp(&rows[*b].measured.requests_per_s))
    };
    let order = |ranked: bool| {
        let clients: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
        let mut order: Vec<usize> = clients.iter().filter_map(|client| best(client, ranked)).collect();
        order.sort_by(|a, b| rows[*b].measured.requests_per_s.total_cmp(&rows[*a].measured.requests_per_s));
        order
    };
    let (published, ranked) = (order(false), order(true));
    let figures = |index: usize| {
        let m = &rows[index].measured;
        [Cell::Text(labels[index].clone()), Cell::Number(m.requests_per_s), Cell::Number(m.error_percent)]
    };
    let line = |place: usize| {
        let mut cells = vec![Cell::Number((place + 1) as f64)];
        for order in [&published, &ranked] {
            let empty = [const { Cell::Empty }; 3];
            cells.extend(order.get(place).map_or(empty, |&index| figures(index)));
        }
        findings::Row { cells, block: false }
    };
    let figure = |name| column(name, Unit::AsPrinted);
    let percent = RANKED_ERRORS * 100.0;
    let missing: Vec<&str> = published
        .iter()
        .map(|&index| rows[index].system.as_str())
        .filter(|client| ranked.iter().all(|&index| rows[index].system != *client))
        .collect();
    let beyond: Vec<&str> =
        ranked.iter().filter(|index| above.contains(index)).map(|&index| labels[index].as_str()).collect();
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!("no row with {percent} % errors or fewer: {}", missing.join(", ")));
    }
    if !beyond.is_empty() {
        notes.push(format!("above what the pool can carry one request at a time: {}", beyond.join(", ")));
    }
    findings::Table {
        title: "Ranking".to_owned(),
        about: format!(
            "Each client's best row: as published, and among the rows with {percent} % errors or fewer."
        ),
        columns: vec![
            figure("#"),
            Column::words("as published"),
            figure("Req/sec"),
            figure("Error %"),
            Column::words(format!("at {percent} % errors or fewer")),
            figure("Req/sec"),
            figure("Error %"),
        ],
        keys: 1,
        rows: (0..published.len()).map(line).collect(),
        notes,
    }
}
