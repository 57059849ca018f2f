//! What the pooled clients' figures show, with the number of attempts known: how long each row lasted, how quickly its
//! failures came, a law behind them, more answers than the pool can carry, and the ranking without all that.

use std::collections::BTreeSet;

use super::super::{Client, Row, Table};
use super::{Doubtful, Flaw, Parts, What, indices};
use lab::doubt::{Doubt, QUICKER};
use lab::findings::{self, Cell, Column, RANKED_ERRORS, Unit, column};

/// A row shorter than this is mostly its beginning: connections are made and the timeout of a second has hardly
/// passed once.
const SHORTEST_S: f64 = 2.0;
/// A law of errors holds if no row lies further from it than this, in points of a percent ...
const DEVIATION: f64 = 0.5;
/// ... over rows that it predicts at least so far apart ...
const SPAN: f64 = 5.0;
/// ... and that are at least so many.
const FEWEST_ROWS: usize = 10;

/// What follows from a row's figures when the attempts are known.
struct Derived {
    /// Attempts that were made: the same number by each caller.
    attempts: f64,
    successes: f64,
    failures: f64,
    /// How long the row lasted.
    duration_s: f64,
    /// Mean time of an attempt: callers by attempts a second.
    cycle_s: f64,
}

fn derive(attempts: u64, m: &Client) -> Option<Derived> {
    let attempts = (attempts / m.concurrency * m.concurrency) as f64;
    let successes = attempts * (1.0 - m.error_percent / 100.0);
    let duration_s = successes / m.requests_per_s;
    let cycle_s = m.concurrency as f64 * duration_s / attempts;
    // Without a success there is no rate to derive a length from.
    (successes > 0.0).then_some(Derived {
        attempts,
        successes,
        failures: attempts - successes,
        duration_s,
        cycle_s,
    })
}

pub(super) fn audit(table: &Table, rows: &[Row<Client>], labels: &[String]) -> Parts {
    let attempts = table.setting.attempts;
    let derived: Vec<Option<Derived>> =
        rows.iter().map(|row| attempts.and_then(|n| derive(n, &row.measured))).collect();
    let above = above_ceiling(table, rows, labels);
    let (found, schedule) = schedules(rows, &derived);
    Parts {
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

fn errors(rows: &[Row<Client>]) -> Doubtful {
    let code = findings::Code::Errors;
    let message = format!("more than {} % of the operations failed", RANKED_ERRORS * 100.0);
    Doubtful {
        code: Flaw::Own(code),
        seen: What::Said(message),
        rows: indices(rows, |row| !row.measured.few_errors()),
    }
}

/// The longest that a failure can have taken on average: all callers' time went into failures.
fn failure_ms(row: &Row<Client>, derived: &Derived) -> f64 {
    row.measured.concurrency as f64 * derived.duration_s * 1e3 / derived.failures
}

/// Failures far quicker than the timeout: refused, not waited for. With a fixed number of attempts they shorten the
/// clock.
fn fail_fast(
    table: &Table,
    rows: &[Row<Client>],
    derived: &[Option<Derived>],
    labels: &[String],
) -> Doubtful {
    let fast = |at: usize| {
        let (timeout, derived) = (table.setting.timeout_ms?, derived[at].as_ref()?);
        let mean = failure_ms(&rows[at], derived);
        (!rows[at].measured.few_errors() && mean < QUICKER * timeout).then_some((timeout, mean))
    };
    let found: Vec<usize> = (0..rows.len()).filter(|&at| fast(at).is_some()).collect();
    let message = found.first().and_then(|&at| fast(at).map(|times| (at, times))).map(|(at, (timeout, mean))| {
        format!(
            "{}: {} % failed, in {mean:.1} ms on average at most, where the timeout is {timeout} ms: refused, and the clock \
             stopped the sooner",
            labels[at], rows[at].measured.error_percent
        )
    });
    Doubtful {
        code: Flaw::Own(findings::Code::Trial(Doubt::FailFast)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// Clients of which every connection carries the same number of requests: their failures are
/// `1 - requests x connections / attempts`.
fn schedules(rows: &[Row<Client>], derived: &[Option<Derived>]) -> (Vec<String>, Doubtful) {
    let mut found = Doubtful {
        code: Flaw::Own(findings::Code::Trial(Doubt::ErrorsOnSchedule)),
        seen: What::Said(String::new()),
        rows: Vec::new(),
    };
    let mut laws = Vec::new();
    let clients: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
    for client in clients {
        let own = rows.iter().zip(derived).enumerate().filter(|(_, (row, _))| row.system == client);
        let own: Vec<(usize, &Client, &Derived)> = own
            .filter_map(|(at, (row, derived))| derived.as_ref().map(|derived| (at, &row.measured, derived)))
            .collect();
        let sum = |of: fn(&(usize, &Client, &Derived)) -> f64| own.iter().map(of).sum::<f64>();
        let carried = sum(|(_, _, d)| d.successes) / sum(|(_, m, _)| m.connections);
        let limit = round_limit(carried);
        let predicted = |m: &Client, d: &Derived| (1.0 - limit * m.connections / d.attempts).max(0.0) * 100.0;
        let off = |(_, m, d): &(usize, &Client, &Derived)| (predicted(m, d) - m.error_percent).abs();
        let worst = own.iter().map(off).fold(0.0, f64::max);
        let all: Vec<f64> = own.iter().map(|(_, m, d)| predicted(m, d)).collect();
        let span = all.iter().copied().fold(0.0, f64::max) - all.iter().copied().fold(100.0, f64::min);
        if own.len() < FEWEST_ROWS || worst > DEVIATION || span < SPAN {
            continue;
        }
        laws.push(format!(
            "{client}: Error % is 100 x (1 - {limit} x connections / attempts) in all {} rows, within {worst:.2} points: \
             {carried:.1} successes on each connection, which fits a server that closes it after {limit} requests and a pool \
             that then fails at once",
            own.len()
        ));
        found.seen = What::Said(format!(
            "{client}: each connection carried {limit} requests ({carried:.1}), and no more"
        ));
        found.rows.extend(own.iter().map(|(at, _, _)| *at));
    }
    (laws, found)
}

/// Limits are set by people: the round number (1, 2 or 5 and zeros) that a mean lies within 5 % of, else the nearest
/// whole one.
fn round_limit(mean: f64) -> f64 {
    let decades = (0..7).map(|power| 10_f64.powi(power));
    let round = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
    let near = round.into_iter().find(|limit| (mean / limit - 1.0).abs() < 0.05);
    near.unwrap_or_else(|| mean.round().max(1.0))
}

fn too_short(rows: &[Row<Client>], derived: &[Option<Derived>], labels: &[String]) -> Doubtful {
    let length = |at: usize| derived[at].as_ref().map_or(f64::INFINITY, |d| d.duration_s);
    let found: Vec<usize> = (0..rows.len()).filter(|&at| length(at) < SHORTEST_S).collect();
    let shortest = found.iter().copied().min_by(|a, b| length(*a).total_cmp(&length(*b)));
    let longest = derived.iter().flatten().map(|d| d.duration_s).fold(0.0, f64::max);
    let message = shortest.map(|at| {
        format!(
            "{}: all attempts were over after {:.2} s, while the longest row lasted {longest:.0} s; shorter than {SHORTEST_S} s",
            labels[at],
            length(at)
        )
    });
    Doubtful {
        code: Flaw::Own(findings::Code::Trial(Doubt::TooShort)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// One request at a time on each connection, each of at least the server's delay: no more than so many a second.
fn above_ceiling(table: &Table, rows: &[Row<Client>], labels: &[String]) -> Doubtful {
    let ceiling =
        |row: &Row<Client>| table.setting.delay_ms.map(|delay| row.measured.connections * 1e3 / delay);
    let pooled = |row: &Row<Client>| !table.setting.unpooled.contains(&row.system);
    let found =
        indices(rows, |row| pooled(row) && ceiling(row).is_some_and(|c| row.measured.requests_per_s > c));
    let message = found.first().and_then(|&at| {
        let ceiling = ceiling(&rows[at])?;
        Some(format!(
            "{}: {}/s where {} connections carry {ceiling:.0}/s one request at a time: pipelining, more connections, or \
             answers to other requests",
            labels[at], rows[at].measured.requests_per_s, rows[at].measured.connections
        ))
    });
    Doubtful { code: Flaw::AboveCeiling, seen: What::Said(message.unwrap_or_default()), rows: found }
}

/// Attempts that took longer than the timeout and did not fail: it does not bound what a caller waits for.
fn unbound(table: &Table, rows: &[Row<Client>], derived: &[Option<Derived>], labels: &[String]) -> Doubtful {
    let timeout = table.setting.timeout_ms.map_or(f64::INFINITY, |ms| ms / 1e3);
    let cycle = |at: usize| derived[at].as_ref().map_or(0.0, |d| d.cycle_s);
    let few = |at: &usize| rows[*at].measured.few_errors();
    let found: Vec<usize> = (0..rows.len()).filter(|&at| cycle(at) > timeout).filter(few).collect();
    let worst = found.iter().copied().max_by(|a, b| cycle(*a).total_cmp(&cycle(*b)));
    let message = worst.map(|at| {
        format!(
            "{}: {} under way at {}/s take {:.1} s each, though the nominal timeout is {timeout} s and {} % failed; no latency is shown",
            labels[at],
            rows[at].measured.concurrency,
            rows[at].measured.requests_per_s,
            cycle(at),
            rows[at].measured.error_percent
        )
    });
    Doubtful {
        code: Flaw::Own(findings::Code::Trial(Doubt::HiddenQueueing)),
        seen: What::Said(message.unwrap_or_default()),
        rows: found,
    }
}

/// Each client's best row as published beside its best row that may be ranked.
fn ranking(rows: &[Row<Client>], labels: &[String], above: &[usize]) -> findings::Table {
    let best = |client: &str, ranked: bool| {
        let own = (0..rows.len()).filter(|&at| rows[at].system == client);
        let own = own.filter(|&at| !ranked || rows[at].measured.few_errors());
        own.max_by(|a, b| rows[*a].measured.requests_per_s.total_cmp(&rows[*b].measured.requests_per_s))
    };
    let order = |ranked: bool| {
        let clients: BTreeSet<&str> = rows.iter().map(|row| row.system.as_str()).collect();
        let mut order: Vec<usize> = clients.iter().filter_map(|client| best(client, ranked)).collect();
        order.sort_by(|a, b| rows[*b].measured.requests_per_s.total_cmp(&rows[*a].measured.requests_per_s));
        order
    };
    let (published, ranked) = (order(false), order(true));
    let figures = |at: usize| {
        let m = &rows[at].measured;
        [Cell::Text(labels[at].clone()), Cell::Number(m.requests_per_s), Cell::Number(m.error_percent)]
    };
    let line = |place: usize| {
        let mut cells = vec![Cell::Number((place + 1) as f64)];
        for order in [&published, &ranked] {
            let empty = [const { Cell::Empty }; 3];
            cells.extend(order.get(place).map_or(empty, |&at| figures(at)));
        }
        findings::Row { cells, block: false }
    };
    let figure = |name| column(name, Unit::AsPrinted);
    let percent = RANKED_ERRORS * 100.0;
    let missing: Vec<&str> = published
        .iter()
        .map(|&at| rows[at].system.as_str())
        .filter(|client| ranked.iter().all(|&at| rows[at].system != *client))
        .collect();
    let beyond: Vec<&str> =
        ranked.iter().filter(|at| above.contains(at)).map(|&at| labels[at].as_str()).collect();
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
