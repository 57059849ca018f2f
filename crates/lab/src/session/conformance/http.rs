//! What a server over HTTP promises: the exact answer, connections kept and closed as told, many at once, uploads counted.

use systems::Work;
use systems::work::Upload;

use super::Checks;
use super::line::{Line, shown};
use crate::session::driver::Orders;
use crate::session::place::Place;
use crate::session::stopped::Stopped;

const KEPT: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const CLOSED: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
/// Connections that a server must hold at once here; trials hold thousands.
const MANY: usize = 64;

/// Sizes of uploads: nothing, one byte, and more than a few reads.
const SIZES: [u64; 3] = [0, 1, 100_003];

pub(super) fn check(place: &Place<'_>, port: u16, checks: &mut Checks) -> Result<(), Stopped> {
    let answer = place.manifest.answer.as_ref();
    if let Some(fault) = answer.and_then(|answer| answer.fault.as_ref()) {
        return faulty(place, port, fault, checks);
    }
    let expected = place.manifest.answer_body().as_bytes();
    let workload = place.workload();
    let mut judge = |what: &str, found, remedy| checks.judge(&format!("{workload}: {what}"), found, remedy);
    let remedy = if answer.is_some() { ANSWER } else { EXACT };
    judge("GET / is answered byte by byte", exact(port, expected), remedy);
    if answer.is_some_and(|answer| answer.closes) {
        let found = closes_after(port, KEPT, expected);
        judge("closes as it declares", found, "remove closes from [answer], or close behind each answer");
        checks.excuse(&format!("{workload}: keeps connections"), "its manifest says that it closes them");
    } else {
        for (what, look, remedy) in KEEPING {
            if matches!(place.work(), Work::Requests(_)) || *what != TOGETHER {
                judge(what, look(port, expected), remedy);
            }
        }
    }
    if let Work::Upload(work) = place.work() {
        uploads(place, port, work, checks)?;
    }
    Ok(())
}

/// A system whose answers are errors, as it says: they must be.
fn faulty(place: &Place<'_>, port: u16, fault: &str, checks: &mut Checks) -> Result<(), Stopped> {
    let workload = place.workload();
    let found = match place.driver().equal_work(&place.orders(port), 0)? {
        Some(wrong) => Ok(format!("declared: {fault}; seen: {wrong}")),
        None => Err(format!("declared: {fault}; and its answers were right")),
    };
    checks.judge(&format!("{workload}: has the fault that it declares"), found, "remove fault from [answer]");
    let why = "its fault spoils every answer; it is shown and never ranked";
    checks.excuse(&format!("{workload}: equal work"), why);
    Ok(())
}

type Look = fn(u16, &[u8]) -> Result<String, String>;

const TOGETHER: &str = "answers requests that arrive together";

/// What a server promises that keeps connections: the promise, how it is looked at, what to do.
const KEEPING: &[(&str, Look, &str)] = &[
    ("keeps connections", kept, "keep HTTP/1.1's connections unless the request says close"),
    (
        "closes as told",
        closes_told,
        "close the connection behind the answer to a request with Connection: close",
    ),
    (
        "reads each request in full",
        in_full,
        "answer when the blank line behind the head has arrived, however it is cut",
    ),
    (TOGETHER, pipelined, "look for a further request in what was received with the last"),
    ("holds 64 connections at once", many, "accept while other connections are open; raise the backlog"),
];

const EXACT: &str = "answer GET / with 200, Content-Length: 2 and the body ok";
const ANSWER: &str = "let [answer] say what it answers";

fn right(line: &mut Line, expected: &[u8]) -> Result<(), String> {
    let answer = line.answer()?;
    if answer.status != "200" {
        return Err(format!("status {}", answer.status));
    }
    if answer.body != expected {
        return Err(format!("the body {} where {} was expected", shown(&answer.body), shown(expected)));
    }
    Ok(())
}

fn exact(port: u16, expected: &[u8]) -> Result<String, String> {
    let mut line = Line::open(port)?;
    line.send(CLOSED)?;
    right(&mut line, expected)?;
    Ok(format!("200, {}", shown(expected)))
}

fn kept(port: u16, expected: &[u8]) -> Result<String, String> {
    let mut line = Line::open(port)?;
    for n in 1..=3 {
        let asked = line.send(KEPT).and_then(|()| right(&mut line, expected));
        asked.map_err(|why| format!("request {n} of a connection: {why}"))?;
        line.silent().map_err(|why| format!("after request {n} of a connection: {why}"))?;
    }
    Ok("3 requests on one connection".to_owned())
}

fn closes_told(port: u16, expected: &[u8]) -> Result<String, String> {
    closes_after(port, CLOSED, expected)
}

fn closes_after(port: u16, request: &[u8], expected: &[u8]) -> Result<String, String> {
    let mut line = Line::open(port)?;
    line.send(request)?;
    right(&mut line, expected)?;
    line.closes()?;
    Ok("it closed behind the answer".to_owned())
}

fn in_full(port: u16, expected: &[u8]) -> Result<String, String> {
    let mut line = Line::open(port)?;
    let (begin, end) = KEPT.split_at(KEPT.len() - 2);
    line.send(begin)?;
    line.silent().map_err(|why| format!("before the request's last two bytes: {why}"))?;
    line.send(end)?;
    right(&mut line, expected)?;
    Ok("it waited for the last two bytes".to_owned())
}

fn pipelined(port: u16, expected: &[u8]) -> Result<String, String> {
    let mut line = Line::open(port)?;
    line.send(&KEPT.repeat(3))?;
    for n in 1..=3 {
        right(&mut line, expected).map_err(|why| format!("answer {n} of 3: {why}"))?;
    }
    line.silent()?;
    Ok("3 answers to 3 requests in one piece".to_owned())
}

fn many(port: u16, expected: &[u8]) -> Result<String, String> {
    let mut lines = (0..MANY).map(|_| Line::open(port)).collect::<Result<Vec<_>, _>>()?;
    // The last that came is asked first: a server that handles one after another never gets to it.
    for (n, line) in lines.iter_mut().enumerate().rev() {
        let asked = line.send(KEPT).and_then(|()| right(line, expected));
        asked.map_err(|why| format!("connection {} of {MANY}: {why}", n + 1))?;
    }
    Ok("the last that came was answered first".to_owned())
}

/// Uploads of each size, kept and not kept, with and without an expectation: their counts.
fn uploads(place: &Place<'_>, port: u16, work: &Upload, checks: &mut Checks) -> Result<(), Stopped> {
    for (name, reuse, expect) in [
        ("counts uploads on one connection", true, false),
        ("counts uploads on new connections", false, false),
        ("answers Expect: 100-continue", false, true),
    ] {
        let orders = Orders { work: Work::Upload(Upload { reuse, expect, ..*work }), ..place.orders(port) };
        let mut wrong = None;
        for size in SIZES {
            wrong =
                wrong.or(place.driver().equal_work(&orders, size)?.map(|why| format!("{size} bytes: {why}")));
        }
        let found = wrong.map_or_else(|| Ok(format!("{SIZES:?} bytes, 3 of each")), Err);
        let remedy = "answer with the number of bytes of the body, in decimal, when all of them are read";
        checks.judge(&format!("upload: {name}"), found, remedy);
    }
    Ok(())
}
