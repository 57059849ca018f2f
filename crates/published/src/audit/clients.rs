//! Audits clients with pools. If the number of attempts is known, the figures show how long each row lasted, how
//! quickly its requests failed, and whether failures follow a law. They also show more answers than a pool can carry,
//! and the ranking of rows with few errors.

#![expect(
    clippy::indexing_slicing,
    reason = "each index is that of a row, and the lists are as long as the rows"
)]

use std::collections::BTreeSet;

use super::super::{Carried, ClientFigures, ClientRow, Found, PublishedTable, Seen};
use super::{AuditParts, Flaw, FlawedRows, Ranking, indices};
use lab::findings::{self, Cell, Column, RANKED_ERRORS, Unit, column};
use measurement::doubt::{Doubt, QUICKER};

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
    let attempts = attempts.saturating_sub(attempts.checked_rem(m.concurrency)?) as f64;
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
        ranking: Some(ranking(rows, labels, above.as_ref().map_or(&[], |above| &above.rows))),
        doubts: [
            fail_fast(table, rows, &derived, labels),
            Some(schedule),
            Some(errors(rows)),
            too_short(rows, &derived, labels),
            above,
            unbound(table, rows, &derived, labels),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn errors(rows: &[ClientRow]) -> FlawedRows {
    FlawedRows {
        code: Flaw::Lab(findings::Code::Errors),
        seen: Seen::ManyErrors { above: RANKED_ERRORS },
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
) -> Option<FlawedRows> {
    let fast = |index: usize| {
        let (timeout, derived) = (table.setting.timeout_ms?, derived[index].as_ref()?);
        let mean = failure_ms(&rows[index], derived);
        (!rows[index].measured.few_errors() && mean < QUICKER * timeout).then_some((timeout, mean))
    };
    let found: Vec<usize> = (0..rows.len()).filter(|&index| fast(index).is_some()).collect();
    let first = *found.first()?;
    let (timeout_ms, mean_ms) = fast(first)?;
    let (row, failed) = (labels[first].clone(), rows[first].measured.error_percent / 100.0);
    Some(FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::FailFast)),
        seen: Seen::FailFast { row, failed, mean_ms, timeout_ms },
        rows: found,
    })
}

/// Clients of which every connection carries the same number of requests: their failures are
/// `1 - requests x connections / attempts`.
fn schedules(rows: &[ClientRow], derived: &[Option<Derived>]) -> (Vec<Found>, FlawedRows) {
    let (mut laws, mut carries, mut found) = (Vec::new(), Vec::new(), Vec::new());
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
        let (client, rows) = (client.to_owned(), client_rows.len());
        laws.push(Found::Law { client: client.clone(), limit, carried, rows, within: worst });
        carries.push(Carried { client, limit, carried });
        found.extend(client_rows.iter().map(|(index, _, _)| *index));
    }
    let code = Flaw::Lab(findings::Code::Trial(Doubt::ErrorsOnSchedule));
    (laws, FlawedRows { code, seen: Seen::OnSchedule(carries), rows: found })
}

/// The likely limit behind a mean. People choose round limits, so this is the round number (1, 2 or 5 and zeros) within
/// 5 % of the mean, or else the nearest whole number.
fn round_limit(mean: f64) -> f64 {
    let decades = (0..7).map(|power| 10_f64.powi(power));
    let round = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
    let near = round.into_iter().find(|limit| (mean / limit - 1.0).abs() < 0.05);
    near.unwrap_or_else(|| mean.round().max(1.0))
}

fn too_short(rows: &[ClientRow], derived: &[Option<Derived>], labels: &[String]) -> Option<FlawedRows> {
    let length = |index: usize| derived[index].as_ref().map_or(f64::INFINITY, |d| d.duration_s);
    let found: Vec<usize> = (0..rows.len()).filter(|&index| length(index) < SHORTEST_S).collect();
    let shortest = found.iter().copied().min_by(|a, b| length(*a).total_cmp(&length(*b)))?;
    let longest_s = derived.iter().flatten().map(|d| d.duration_s).fold(0.0, f64::max);
    let (row, lasted_s) = (labels[shortest].clone(), length(shortest));
    Some(FlawedRows {
        code: Flaw::Lab(findings::Code::Trial(Doubt::TooShort)),
        seen: Seen::TooShort { row, lasted_s, longest_s, limit_s: SHORTEST_S },
        rows: found,
    })
}

/// Finds rates above the ceiling of the pool. The ceiling is one request at a time on each connection, each of at least
/// the server's delay.
fn above_ceiling(table: &PublishedTable, rows: &[ClientRow], labels: &[String]) -> Option<FlawedRows> {
    let ceiling =
        |row: &ClientRow| table.setting.delay_ms.map(|delay| row.measured.connections * 1e3 / delay);
    let pooled = |row: &ClientRow| !table.setting.unpooled.contains(&row.system);
    let found =
        indices(rows, |row| pooled(row) && ceiling(row).is_some_and(|c| row.measured.requests_per_s > c));
    let first = *found.first()?;
    let ClientFigures { requests_per_s: per_s, connections, .. } = rows[first].measured;
    let (row, ceiling_per_s) = (labels[first].clone(), ceiling(&rows[first])?);
    let seen = Seen::AboveCeiling { row, per_s, connections, ceiling_per_s };
    Some(FlawedRows { code: Flaw::AboveCeiling, seen, rows: found })
}

/// Finds attempts that took longer than the timeout and did not fail. The timeout then does not limit how long a caller
/// waits.
fn unbound(
    table: &PublishedTable,
    rows: &[ClientRow],
    derived: &[Option<Derived>],
    labels: &[String],
) -> Option<FlawedRows> {
    let timeout_s = table.setting.timeout_ms? / 1e3;
    let cycle = |index: usize| derived[index].as_ref().map_or(0.0, |d| d.cycle_s);
    let few = |index: &usize| rows[*index].measured.few_errors();
    let found: Vec<usize> = (0..rows.len()).filter(|&index| cycle(index) > timeout_s).filter(few).collect();
    let worst = found.iter().copied().max_by(|a, b| cycle(*a).total_cmp(&cycle(*b)))?;
    let m = &rows[worst].measured;
    let seen = Seen::Unbound {
        row: labels[worst].clone(),
        under_way: m.concurrency,
        per_s: m.requests_per_s,
        each_s: cycle(worst),
        timeout_s,
        failed: m.error_percent / 100.0,
    };
    let code = Flaw::Lab(findings::Code::Trial(Doubt::HiddenQueueing));
    Some(FlawedRows { code, seen, rows: found })
}

/// The published ranking of each client's best row, beside the ranking of its best row with few errors.
fn ranking(rows: &[ClientRow], labels: &[String], above: &[usize]) -> Ranking {
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
        let mut cells = vec![Cell::Number(place.saturating_add(1) as f64)];
        for order in [&published, &ranked] {
            let empty = [const { Cell::Empty }; 3];
            cells.extend(order.get(place).map_or(empty, |&index| figures(index)));
        }
        findings::Row { cells, block: false }
    };
    let figure = |name| column(name, Unit::AsPrinted);
    let clients = published.iter().map(|&index| &rows[index].system);
    let unranked = clients.filter(|client| ranked.iter().all(|&index| rows[index].system != **client));
    let above = ranked.iter().filter(|index| above.contains(index));
    let table = findings::Table {
        columns: vec![
            figure("#"),
            Column::words("as published"),
            figure("Req/sec"),
            figure("Error %"),
            Column::words("with few errors"),
            figure("Req/sec"),
            figure("Error %"),
        ],
        keys: 1,
        rows: (0..published.len()).map(line).collect(),
    };
    Ranking {
        table,
        unranked: unranked.cloned().collect(),
        above_ceiling: above.map(|&index| labels[index].clone()).collect(),
    }
}
