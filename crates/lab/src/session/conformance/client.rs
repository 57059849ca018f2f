//! Checks that a client driver keeps the contract: that its account adds up and agrees with the server's counts, that
//! it accepts only right answers, and that it ends.
//!
//! Wrong answers come from a small server in this file, because Narrows' own server gives none.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use systems::process::Exit;
use systems::{Value, Workload};

use super::{CheckVerdict, Checks};
use crate::observation::Stage;
use crate::session::account::{Account, LifetimeCounts, SLACK};
use crate::session::clients::{self, DriverLine};
use crate::session::driver::seconds;
use crate::session::place::Place;
use crate::session::trial_error::TrialError;

/// The driver's orders: more callers than connections, so that its pool has something to do.
const ORDERS: [(&str, i64); 5] =
    [("pools", 2), ("pool_size", 4), ("concurrency", 16), ("delay_ms", 5), ("timeout_ms", 5000)];
/// A timeout that is shorter than the server's delay.
const TOO_SHORT: [(&str, i64); 2] = [("delay_ms", 3000), ("timeout_ms", 200)];
/// How long a driver may take to end after its last line.
const END: Duration = Duration::from_secs(5);

pub(super) fn check(place: &Place<'_>, checks: &mut Checks) -> Result<(), TrialError> {
    check_account(place, checks)?;
    check_timeout(place, checks)?;
    check_answers(place, checks)
}

/// What a driver did in one conversation.
struct Conversation {
    ready: Duration,
    done: Result<Box<Account>, String>,
    exit: Option<Exit>,
    strays: Vec<String>,
}

fn talk(place: &Place<'_>, orders: &[(&str, i64)], address: SocketAddr) -> Result<Conversation, TrialError> {
    let mut point = place.trial.scenario.point.clone();
    point.extend(orders.iter().map(|(knob, value)| ((*knob).to_owned(), Value::Integer(*value))));
    let trial = super::trial(place.manifest, Workload::Clients, point)?;
    let place = &Place { trial: &trial, version: String::new(), ..*place };
    let work = clients::work(place)?;
    let began = Instant::now();
    let mut running = place.start()?;
    running.write_line(&clients::orders(&trial, work, address).to_string())?;
    match clients::listen(place, &running, place.manifest.ready.timeout)? {
        DriverLine::Ready {} => {}
        other => return Err(clients::unexpected(&running, "ready", &other)),
    }
    let ready = began.elapsed();
    running.write_line(&json!({"go": true}).to_string())?;
    let timeout = Duration::from_millis(work.timeout_ms);
    let window = seconds(trial.timing.measure_s);
    let patience = seconds(trial.timing.warmup_s) + window + timeout * 2 + SLACK;
    let done = match clients::listen(place, &running, patience) {
        Ok(DriverLine::Done(done)) => done.check(window, work.rate.is_some()).map(|()| done),
        Ok(other) => Err(format!("it printed {other:?} where \"done\" was expected")),
        Err(TrialError::Failed(failure)) => Err(super::with_output(&failure.reason, &failure.output)),
        Err(interrupted) => return Err(interrupted),
    };
    running.close_stdin();
    let exit = running.wait_exit(Instant::now() + END, place.cancel);
    Ok(Conversation { ready, done, exit, strays: running.stop().strays })
}

/// Checks the account, the counts and the end against Narrows' own server.
fn check_account(place: &Place<'_>, checks: &mut Checks) -> Result<(), TrialError> {
    let server = place.generator.serve(clients::work(place)?)?;
    let talk = talk(place, &ORDERS, server.address())?;
    let counts = server.stop()?;
    let ready = format!("after {:.0} ms", talk.ready.as_secs_f64() * 1000.0);
    checks.add("clients: is ready in time", CheckVerdict::Kept, ready, "");
    let account = talk.done.as_ref().map(|done| format!("{} attempts in all", done.total.attempts));
    let remedy = "attempts = successes + errors (+ in_flight in the window), a latency for each success";
    checks.judge("clients: its account adds up", account.map_err(Clone::clone), remedy);
    if let Ok(done) = &talk.done {
        let total = &done.total;
        check_successes(total, checks);
        let seen = format!(
            "{} successes, {} answered, {} read, {} attempts",
            total.successes, counts.responses, counts.requests, total.attempts
        );
        let remedy = "count an attempt before it is sent and a success when its answer was checked; do not retry without counting it";
        checks.judge(
            "clients: its counts agree with the server's",
            if done.server_counts(counts).agree() { Ok(seen) } else { Err(seen) },
            remedy,
        );
        let cap = 8;
        let seen = format!("{} connections at once instead of {cap}", counts.peak_connections);
        if counts.peak_connections <= cap {
            checks.add("clients: keeps to its pools", CheckVerdict::Kept, seen, "");
        } else {
            checks
                .excuse("clients: keeps to its pools", format!("{seen}: its rows say so and are not ranked"));
        }
    }
    let ended = match (talk.exit, &talk.strays[..]) {
        (Some(Exit::Code(0)), []) => Ok("it exited with code 0; nothing is left".to_owned()),
        (Some(Exit::Code(0)), strays) => Err(format!("it left {} behind", strays.join(", "))),
        (Some(exit), _) => Err(format!("it {exit}")),
        (None, _) => Err(format!("it still ran {} s after its last line", END.as_secs())),
    };
    checks.judge("clients: ends clean", ended, "after the last line, exit with 0 and leave nothing behind");
    Ok(())
}

/// Checks that requests succeed, because every answer is right and in time. A pool may refuse callers that find no free
/// connection: these errors are `busy`.
fn check_successes(total: &LifetimeCounts, checks: &mut Checks) {
    let name = "clients: succeeds against an honest server";
    let seen = format!("{} successes, errors: {:?}", total.successes, total.errors);
    let refuses = total.errors.keys().all(|class| class == "busy");
    if total.successes > 0 && total.errors.is_empty() {
        checks.add(name, CheckVerdict::Kept, seen, "");
    } else if total.successes > 0 && refuses {
        checks.excuse(name, format!("{seen}: its pool refuses callers at once when no connection is free"));
    } else {
        let remedy = "read what it printed; every answer of Narrows' server was right and in time";
        checks.add(name, CheckVerdict::Broken, seen, remedy);
    }
}

/// Checks that a client gives up when every answer comes after its timeout.
fn check_timeout(place: &Place<'_>, checks: &mut Checks) -> Result<(), TrialError> {
    let server = place.generator.serve(clients::work(place)?)?;
    let orders: Vec<_> = ORDERS.into_iter().chain(TOO_SHORT).collect();
    let talk = talk(place, &orders, server.address())?;
    let _ = server.stop();
    let waits = ["request_timeout", "timeout", "pool_wait", "busy", "connect_timeout"];
    let found = talk.done.and_then(|done| {
        let total = done.total;
        let seen = format!("{} successes, errors: {:?}", total.successes, total.errors);
        let right = total.successes == 0 && total.errors.keys().all(|class| waits.contains(&class.as_str()));
        if right && !total.errors.is_empty() { Ok(seen) } else { Err(seen) }
    });
    let remedy = "timeout_ms covers everything from the call to the checked answer; after it, the class is request_timeout, timeout, pool_wait or busy";
    checks.judge("clients: gives up in time", found, remedy);
    Ok(())
}

/// Checks which answers a client accepts from a server of whose answers four in five are wrong.
fn check_answers(place: &Place<'_>, checks: &mut Checks) -> Result<(), TrialError> {
    let liar = Liar::start()
        .map_err(|error| TrialError::failed(Stage::Drive, format!("the check's own server: {error}")))?;
    let talk = talk(place, &ORDERS, liar.address)?;
    let log = liar.stop();
    let total = match talk.done {
        Ok(done) => done.total,
        Err(why) => {
            checks.add(
                "clients: takes only right answers",
                CheckVerdict::Broken,
                why,
                "go on after a wrong answer",
            );
            return Ok(());
        }
    };
    let right = log.count("right");
    let seen = format!(
        "{} successes, {right} right answers of {}",
        total.successes,
        log.answers.values().sum::<u64>()
    );
    let found = if (1..=right).contains(&total.successes) { Ok(seen) } else { Err(seen) };
    let remedy = "a success has status 200, the body ok, and the x-request-id that was sent";
    checks.judge("clients: takes only right answers", found, remedy);
    for (class, what) in CLASSES {
        let named = total.errors.get(class).copied().unwrap_or(0);
        let given = log.count(class);
        let seen = format!("{named} errors, {given} such answers");
        let found = if (1..=given).contains(&named) { Ok(seen) } else { Err(seen) };
        checks.judge(
            &format!("clients: calls {what} {class}"),
            found,
            "docs/contracts.md has the table of classes",
        );
    }
    let ids = match (log.without_id, log.twice) {
        (0, 0) => Ok(format!("{} ids, each once", log.ids.len())),
        (0, twice) => Err(format!("{twice} requests had the id of another request")),
        (without, _) => Err(format!("{without} requests had no x-request-id")),
    };
    checks.judge(
        "clients: gives each request an id of its own",
        ids,
        "send x-request-id with an increasing number",
    );
    Ok(())
}

const CLASSES: [(&str, &str); 4] = [
    ("wrong_id", "the answer to another request"),
    ("wrong_content", "an answer with other bytes"),
    ("status", "a status of 503"),
    ("length", "a longer answer"),
];

/// The requests that a liar received, and its answers.
#[derive(Default)]
struct LiarLog {
    answers: BTreeMap<&'static str, u64>,
    ids: HashSet<String>,
    twice: u64,
    without_id: u64,
}

impl LiarLog {
    fn count(&self, what: &str) -> u64 {
        self.answers.get(what).copied().unwrap_or(0)
    }
}

/// A server that gives a right answer to every fifth request and wrong ones to the others.
struct Liar {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<LiarLog>>,
}

impl Liar {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let liar = Self { address: listener.local_addr()?, stop: Arc::default(), log: Arc::default() };
        let (stop, log) = (Arc::clone(&liar.stop), Arc::clone(&liar.log));
        thread::Builder::new().name("liar".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let log = Arc::clone(&log);
                // The thread ends with its connection. The client closes all connections when it ends.
                let _ = thread::Builder::new().spawn(move || lie(stream, &log));
            }
        })?;
        Ok(liar)
    }

    fn stop(self) -> LiarLog {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers the requests on one connection until it closes.
fn lie(stream: TcpStream, log: &Mutex<LiarLog>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let Ok(mut out) = stream.try_clone() else { return };
    let mut lines = BufReader::new(stream).lines();
    let mut id = String::new();
    while let Some(Ok(line)) = lines.next() {
        if let Some((_, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("x-request-id"))
        {
            value.trim().clone_into(&mut id);
        }
        if line.is_empty() {
            thread::sleep(Duration::from_millis(2));
            let answer = next_answer(&std::mem::take(&mut id), log);
            if out.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Chooses the next answer, and logs it before it is sent.
fn next_answer(id: &str, log: &Mutex<LiarLog>) -> String {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if id.is_empty() {
        log.without_id += 1;
    } else if !log.ids.insert(id.to_owned()) {
        log.twice += 1;
    }
    let turn = log.answers.values().sum::<u64>() as usize % (CLASSES.len() + 1);
    let what = CLASSES.get(turn).map_or("right", |(class, _)| *class);
    *log.answers.entry(what).or_insert(0) += 1;
    let (status, body) = match what {
        "wrong_content" => ("200 OK", "no"),
        "status" => ("503 Service Unavailable", "ok"),
        "length" => ("200 OK", "okay"),
        _ => ("200 OK", "ok"),
    };
    let id = if what == "wrong_id" { different_id(id) } else { id.to_owned() };
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nx-request-id: {id}\r\n\r\n{body}", body.len())
}

/// A different id of the same form.
fn different_id(id: &str) -> String {
    let mut bytes = id.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = if *last == b'1' { b'2' } else { b'1' };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
