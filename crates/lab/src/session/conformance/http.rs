//! Checks an HTTP server: the exact answer, connections that are kept and closed as requested, many connections at
//! once, and the counts of uploads.

use systems::Work;
use systems::contact::Access;
use systems::work::Upload;

use super::Checks;
use super::connection::{RawConnection, shown};
use crate::session::driver::Orders;
use crate::session::place::Place;
use crate::session::trial_error::TrialError;

const KEPT: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const CLOSED: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
/// How many connections a server must hold at once. Trials use thousands.
const MANY: usize = 64;

/// Sizes of uploads: nothing, one byte, and more than one read returns.
const SIZES: [u64; 3] = [0, 1, 100_003];

pub(super) fn check(place: &Place<'_>, access: &Access, checks: &mut Checks) -> Result<(), TrialError> {
    let answer = place.manifest.answer.as_ref();
    if let Some(fault) = answer.and_then(|answer| answer.fault.as_ref()) {
        return check_fault(place, access, fault, checks);
    }
    let expected = place.manifest.answer_body().as_bytes();
    let workload = place.workload();
    let named = |what: &str| format!("{workload}: {what}");
    let remedy = if answer.is_some() { ANSWER } else { EXACT };
    checks.judge(&named("GET / is answered byte by byte"), exact(access, expected), remedy);
    let closes = answer.is_some_and(|answer| answer.closes);
    if closes {
        let found = closes_after(access, KEPT, expected);
        checks.judge(
            &named("closes as it declares"),
            found,
            "remove closes from [answer], or close after each answer",
        );
        checks.excuse(&named("keeps connections"), "its manifest says that it closes them");
    } else {
        for (what, check, remedy) in KEEPING {
            checks.judge(&named(what), check(access, expected), remedy);
        }
    }
    match place.work() {
        Work::Requests(_) if !closes => {
            let (what, check, remedy) = TOGETHER;
            checks.judge(&named(what), check(access, expected), remedy);
        }
        Work::Upload(work) => {
            uploads(place, access, work, checks)?;
            checks.judge(&named("answers Expect: 100-continue"), continues(access), CONTINUE);
        }
        // Frames are not HTTP, and streams and clients are checked elsewhere.
        Work::Requests(_) | Work::Frames(_) | Work::Streams(_) | Work::Clients(_) => {}
    }
    Ok(())
}

/// Checks a system that declares a fault: its answers must be errors.
fn check_fault(
    place: &Place<'_>,
    access: &Access,
    fault: &str,
    checks: &mut Checks,
) -> Result<(), TrialError> {
    let workload = place.workload();
    let found = match place.driver().equal_work(&place.orders(&access.server), 0)? {
        Some(wrong) => Ok(format!("declared: {fault}; seen: {wrong}")),
        None => Err(format!("declared: {fault}; but its answers were right")),
    };
    checks.judge(&format!("{workload}: has the fault that it declares"), found, "remove fault from [answer]");
    let why = "its fault makes every answer an error; it is shown but never ranked";
    checks.excuse(&format!("{workload}: equal work"), why);
    Ok(())
}

/// Returns what was seen, or what was wrong.
type CheckFn = fn(&Access, &[u8]) -> Result<String, String>;

/// What only `requests` asks: pipelining.
const TOGETHER: (&str, CheckFn, &str) = (
    "answers requests that arrive together",
    pipelined,
    "look for further requests in what was received with the last",
);

/// The promises of a server that keeps connections: the name, the check and the remedy.
const KEEPING: &[(&str, CheckFn, &str)] = &[
    ("keeps connections", kept, "keep HTTP/1.1 connections unless the request says close"),
    (
        "closes as told",
        closes_told,
        "close the connection after the answer to a request with Connection: close",
    ),
    (
        "reads each request in full",
        in_full,
        "answer when the blank line after the head has arrived, even if it arrives in pieces",
    ),
    ("holds 64 connections at once", many, "accept while other connections are open; raise the backlog"),
];

/// Checks the answers of a server that is spoken to in TLS.
pub(super) fn secured(place: &Place<'_>, orders: &Orders) -> Result<Result<String, String>, TrialError> {
    let (answer, access) = (place.manifest.answer.as_ref(), &orders.access);
    let expected = place.manifest.answer_body().as_bytes();
    // The drive checks streams itself.
    let of_root = !matches!(place.work(), Work::Streams(_));
    let mut promises: Vec<CheckFn> = if of_root { vec![exact] } else { Vec::new() };
    if of_root && !answer.is_some_and(|answer| answer.closes) {
        promises.extend([kept as CheckFn, closes_told]);
    }
    let seen: Result<Vec<String>, String> =
        promises.iter().map(|promise| promise(access, expected)).collect();
    let wrong = place.driver().equal_work(orders, 100_003)?;
    let joined = |seen: Vec<String>| if of_root { seen.join("; ") } else { "3 streams".to_owned() };
    Ok(seen.and_then(|seen| wrong.map_or_else(|| Ok(joined(seen)), Err)))
}

const EXACT: &str = "answer GET / with 200, Content-Length: 2 and the body ok";
const ANSWER: &str = "let [answer] say what it answers";

fn right(connection: &mut RawConnection, expected: &[u8]) -> Result<(), String> {
    let answer = connection.answer()?;
    if answer.status != "200" {
        return Err(format!("status {}", answer.status));
    }
    if answer.body != expected {
        return Err(format!("the body is {} instead of {}", shown(&answer.body), shown(expected)));
    }
    Ok(())
}

fn exact(access: &Access, expected: &[u8]) -> Result<String, String> {
    let mut connection = RawConnection::open(access)?;
    connection.send(CLOSED)?;
    right(&mut connection, expected)?;
    Ok(format!("200, {}", shown(expected)))
}

fn kept(access: &Access, expected: &[u8]) -> Result<String, String> {
    let mut connection = RawConnection::open(access)?;
    for n in 1..=3 {
        let asked = connection.send(KEPT).and_then(|()| right(&mut connection, expected));
        asked.map_err(|why| format!("request {n} of a connection: {why}"))?;
        connection.stays_silent().map_err(|why| format!("after request {n} of a connection: {why}"))?;
    }
    Ok("3 requests on one connection".to_owned())
}

fn closes_told(access: &Access, expected: &[u8]) -> Result<String, String> {
    closes_after(access, CLOSED, expected)
}

fn closes_after(access: &Access, request: &[u8], expected: &[u8]) -> Result<String, String> {
    let mut connection = RawConnection::open(access)?;
    connection.send(request)?;
    right(&mut connection, expected)?;
    connection.closes()?;
    Ok("it closed after the answer".to_owned())
}

fn in_full(access: &Access, expected: &[u8]) -> Result<String, String> {
    let mut connection = RawConnection::open(access)?;
    let (begin, end) = KEPT.split_at(KEPT.len() - 2);
    connection.send(begin)?;
    connection.stays_silent().map_err(|why| format!("before the request's last two bytes: {why}"))?;
    connection.send(end)?;
    right(&mut connection, expected)?;
    Ok("it waited for the last two bytes".to_owned())
}

fn pipelined(access: &Access, expected: &[u8]) -> Result<String, String> {
    let mut connection = RawConnection::open(access)?;
    connection.send(&KEPT.repeat(3))?;
    for n in 1..=3 {
        right(&mut connection, expected).map_err(|why| format!("answer {n} of 3: {why}"))?;
    }
    connection.stays_silent()?;
    Ok("3 answers to 3 requests in one piece".to_owned())
}

fn many(access: &Access, expected: &[u8]) -> Result<String, String> {
    let mut connections = (0..MANY).map(|_| RawConnection::open(access)).collect::<Result<Vec<_>, _>>()?;
    // Use the last connection first. A server that handles one connection after another does not answer it.
    for (n, connection) in connections.iter_mut().enumerate().rev() {
        let asked = connection.send(KEPT).and_then(|()| right(connection, expected));
        asked.map_err(|why| format!("connection {} of {MANY}: {why}", n + 1))?;
    }
    Ok("the last connection was answered first".to_owned())
}

/// Checks the counts of uploads of each size, on kept and new connections.
fn uploads(place: &Place<'_>, access: &Access, work: &Upload, checks: &mut Checks) -> Result<(), TrialError> {
    for (name, reuse) in
        [("counts uploads on one connection", true), ("counts uploads on new connections", false)]
    {
        let orders = Orders { work: Work::Upload(Upload { reuse, ..*work }), ..place.orders(&access.server) };
        let mut wrong = None;
        for size in SIZES {
            wrong =
                wrong.or(place.driver().equal_work(&orders, size)?.map(|why| format!("{size} bytes: {why}")));
        }
        let found = wrong.map_or_else(|| Ok(format!("{SIZES:?} bytes, 3 of each")), Err);
        let remedy = "read the whole body, then answer with its number of bytes in decimal";
        checks.judge(&format!("upload: {name}"), found, remedy);
    }
    Ok(())
}

const CONTINUE: &str = "send HTTP/1.1 100 Continue as soon as the head has come, then read the body and answer with its number of \
                        bytes; without it a client waits for a second, and such trials have no figure";

/// Uploads bodies of each size that wait for `100 Continue`, on one connection and on new ones.
fn continues(access: &Access) -> Result<String, String> {
    let mut kept = RawConnection::open(access)?;
    for size in SIZES {
        let asked = after_continue(&mut kept, size, "")
            .and_then(|()| after_continue(&mut RawConnection::open(access)?, size, "Connection: close\r\n"));
        asked.map_err(|why| format!("{size} bytes: {why}"))?;
    }
    Ok(format!("100 Continue before each body; {SIZES:?} bytes, 2 of each"))
}

/// Uploads a body once `100 Continue` has come.
fn after_continue(connection: &mut RawConnection, size: u64, header: &str) -> Result<(), String> {
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\nExpect: 100-continue\r\n{header}\r\n"
    );
    let (body, count) = (vec![b'u'; size as usize], size.to_string());
    connection.send(head.as_bytes())?;
    match connection.continues() {
        Ok(None) => {}
        // There is no body to wait for.
        Ok(Some(_)) if size == 0 => {}
        Ok(Some(status)) => return Err(format!("status {status} before the body was sent, instead of 100")),
        Err(why) => {
            let unasked = connection.send(&body).and_then(|()| right(connection, count.as_bytes()));
            let then = unasked.map_or_else(|_| String::new(), |()| "; it waited for the body".to_owned());
            return Err(format!("no 100 Continue: {why}{then}"));
        }
    }
    connection.send(&body)?;
    right(connection, count.as_bytes())
}
