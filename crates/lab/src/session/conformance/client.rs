//! What a client driver promises: that it speaks the contract, that its account adds up and agrees with the server's, that it
//! takes only right answers for successes, and that it ends.
//!
//! The wrong answers come from a small server of this file's own: Narrows' has none to give.

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

use super::{Checks, Verdict};
use crate::session::account::{Account, SLACK, Total};
use crate::session::clients::{self, Said};
use crate::session::driver::seconds;
use crate::session::place::Place;
use crate::session::stopped::Stopped;

/// What the driver is told here: more callers than connections, so that its pool has something to do.
const ORDERS: [(&str, i64); 5] =
    [("pools", 2), ("pool_size", 4), ("concurrency", 16), ("delay_ms", 5), ("timeout_ms", 5000)];
/// A timeout that no answer can keep.
const TOO_SHORT: [(&str, i64); 2] = [("delay_ms", 3000), ("timeout_ms", 200)];
/// How long a driver may take to end after its last line.
const END: Duration = Duration::from_secs(5);

pub(super) fn check(place: &Place<'_>, checks: &mut Checks) -> Result<(), Stopped> {
    honest(place, checks)?;
    late(place, checks)?;
    wrong(place, checks)
}

/// What came of one conversation.
struct Talk {
    ready: Duration,
    done: Result<Box<Account>, String>,
    exit: Option<Exit>,
    strays: Vec<String>,
}

fn talk(place: &Place<'_>, orders: &[(&str, i64)], address: SocketAddr) -> Result<Talk, Stopped> {
    let mut point = place.trial.scenario.point.clone();
    point.extend(orders.iter().map(|(knob, value)| ((*knob).to_owned(), Value::Integer(*value))));
    let trial = super::trial(place.manifest, Workload::Clients, point)?;
    let place = &Place { trial: &trial, version: String::new(), ..*place };
    let work = clients::work(place)?;
    let began = Instant::now();
    let mut running = place.start()?;
    running.write_line(&clients::orders(&trial, work, address).to_string())?;
    match clients::listen(place, &running, place.manifest.ready.timeout)? {
        Said::Ready {} => {}
        other => return Err(clients::unexpected(&running, "ready", &other)),
    }
    let ready = began.elapsed();
    running.write_line(&json!({"go": true}).to_string())?;
    let timeout = Duration::from_millis(work.timeout_ms);
    let patience = seconds(trial.timing.warmup_s + trial.timing.measure_s) + timeout * 2 + SLACK;
    let done = match clients::listen(place, &running, patience) {
        Ok(Said::Done(done)) => done.check(seconds(trial.timing.measure_s)).map(|()| done),
        Ok(other) => Err(format!("it said {other:?} where \"done\" was expected")),
        Err(Stopped::Failed(failure)) => Err(super::with_output(&failure.reason, &failure.output)),
        Err(interrupted) => return Err(interrupted),
    };
    running.close_stdin();
    let exit = running.wait_exit(Instant::now() + END, place.cancel);
    Ok(Talk { ready, done, exit, strays: running.stop().strays })
}

/// Against Narrows' own server: the account, the counts, the end.
fn honest(place: &Place<'_>, checks: &mut Checks) -> Result<(), Stopped> {
    let server = clients::start_server(clients::work(place)?, &place.placement.generator)?;
    let talk = talk(place, &ORDERS, server.addresses()[0])?;
    let counts = server.stop().map_err(|error| Stopped::failed("drive", error.to_string()))?;
    let ready = format!("after {:.0} ms", talk.ready.as_secs_f64() * 1000.0);
    checks.add("clients: is ready in time", Verdict::Kept, ready, "");
    let account = talk.done.as_ref().map(|done| format!("{} attempts in all", done.total.attempts));
    let remedy = "attempts = successes + errors (+ in_flight in the window), a latency for each success";
    checks.judge("clients: its account adds up", account.map_err(Clone::clone), remedy);
    if let Ok(done) = &talk.done {
        let total = &done.total;
        succeeds(total, checks);
        let seen = format!(
            "{} successes, {} answered, {} read, {} attempts",
            total.successes, counts.responses, counts.requests, total.attempts
        );
        let remedy = "count an attempt before it is sent, a success when its answer was checked; no retries behind the caller's back";
        checks.judge(
            "clients: its counts agree with the server's",
            if done.server_counts(counts).agree() { Ok(seen) } else { Err(seen) },
            remedy,
        );
        let cap = 8;
        let seen = format!("{} connections at once where {cap} were asked for", counts.peak_connections);
        if counts.peak_connections <= cap {
            checks.add("clients: keeps to its pools", Verdict::Kept, seen, "");
        } else {
            checks.excuse(
                "clients: keeps to its pools",
                format!("{seen}: its rows will say so, and have no rank"),
            );
        }
    }
    let ended = match (talk.exit, &talk.strays[..]) {
        (Some(Exit::Code(0)), []) => Ok("it exited with code 0; nothing is left".to_owned()),
        (Some(Exit::Code(0)), strays) => Err(format!("it left {} behind", strays.join(", "))),
        (Some(exit), _) => Err(format!("it {exit}")),
        (None, _) => Err(format!("it still ran {} s after its last line", END.as_secs())),
    };
    checks.judge("clients: ends clean", ended, "print the last line, exit with 0, and leave nothing behind");
    Ok(())
}

/// Every answer is right and in time; a pool that refuses who finds no connection free says so by a class of its own.
fn succeeds(total: &Total, checks: &mut Checks) {
    let name = "clients: succeeds against an honest server";
    let seen = format!("{} successes, errors: {:?}", total.successes, total.errors);
    let refuses = total.errors.keys().all(|class| class == "busy");
    if total.successes > 0 && total.errors.is_empty() {
        checks.add(name, Verdict::Kept, seen, "");
    } else if total.successes > 0 && refuses {
        checks.excuse(name, format!("{seen}: its pool refuses at once who finds no connection free"));
    } else {
        let remedy = "look at what it printed; every answer of Narrows' server was right and in time";
        checks.add(name, Verdict::Broken, seen, remedy);
    }
}

/// Every answer comes after the timeout.
fn late(place: &Place<'_>, checks: &mut Checks) -> Result<(), Stopped> {
    let server = clients::start_server(clients::work(place)?, &place.placement.generator)?;
    let orders: Vec<_> = ORDERS.into_iter().chain(TOO_SHORT).collect();
    let talk = talk(place, &orders, server.addresses()[0])?;
    let _ = server.stop();
    let waits = ["request_timeout", "pool_wait", "busy", "connect_timeout"];
    let found = talk.done.and_then(|done| {
        let total = done.total;
        let seen = format!("{} successes, errors: {:?}", total.successes, total.errors);
        let right = total.successes == 0 && total.errors.keys().all(|class| waits.contains(&class.as_str()));
        if right && !total.errors.is_empty() { Ok(seen) } else { Err(seen) }
    });
    let remedy = "timeout_ms covers everything from the caller's wish to the checked answer; then the class is request_timeout, pool_wait or busy";
    checks.judge("clients: gives up in time", found, remedy);
    Ok(())
}

/// Four of five answers are wrong, each in its way.
fn wrong(place: &Place<'_>, checks: &mut Checks) -> Result<(), Stopped> {
    let liar = Liar::start()
        .map_err(|error| Stopped::failed("drive", format!("the check's own server: {error}")))?;
    let talk = talk(place, &ORDERS, liar.address)?;
    let gave = liar.stop();
    let total = match talk.done {
        Ok(done) => done.total,
        Err(why) => {
            checks.add(
                "clients: takes only right answers",
                Verdict::Broken,
                why,
                "go on after a wrong answer",
            );
            return Ok(());
        }
    };
    let right = gave.count("right");
    let seen = format!(
        "{} successes, {right} right answers of {}",
        total.successes,
        gave.answers.values().sum::<u64>()
    );
    let found = if (1..=right).contains(&total.successes) { Ok(seen) } else { Err(seen) };
    let remedy = "a success has status 200, the body ok, and the x-request-id that was sent";
    checks.judge("clients: takes only right answers", found, remedy);
    for (class, what) in CLASSES {
        let named = total.errors.get(class).copied().unwrap_or(0);
        let given = gave.count(class);
        let seen = format!("{named} errors, {given} such answers");
        let found = if (1..=given).contains(&named) { Ok(seen) } else { Err(seen) };
        checks.judge(
            &format!("clients: calls {what} {class}"),
            found,
            "docs/contracts.md has the table of classes",
        );
    }
    let ids = match (gave.without_id, gave.twice) {
        (0, 0) => Ok(format!("{} ids, each once", gave.ids.len())),
        (0, twice) => Err(format!("{twice} requests had an id that another had, too")),
        (without, _) => Err(format!("{without} requests had no x-request-id")),
    };
    checks.judge(
        "clients: gives each request an id of its own",
        ids,
        "send x-request-id with a number that grows",
    );
    Ok(())
}

const CLASSES: [(&str, &str); 4] = [
    ("wrong_id", "the answer to another request"),
    ("wrong_content", "an answer with other bytes"),
    ("status", "a status of 503"),
    ("length", "a longer answer"),
];

/// What a liar gave.
#[derive(Default)]
struct Gave {
    answers: BTreeMap<&'static str, u64>,
    ids: HashSet<String>,
    twice: u64,
    without_id: u64,
}

impl Gave {
    fn count(&self, what: &str) -> u64 {
        self.answers.get(what).copied().unwrap_or(0)
    }
}

/// A server of which only each fifth answer is right.
struct Liar {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    gave: Arc<Mutex<Gave>>,
}

impl Liar {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let liar = Self { address: listener.local_addr()?, stop: Arc::default(), gave: Arc::default() };
        let (stop, gave) = (Arc::clone(&liar.stop), Arc::clone(&liar.gave));
        thread::Builder::new().name("liar".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let gave = Arc::clone(&gave);
                // Ends with its connection; the client closes all of them when it ends.
                let _ = thread::Builder::new().spawn(move || lie(stream, &gave));
            }
        })?;
        Ok(liar)
    }

    fn stop(self) -> Gave {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        std::mem::take(&mut *self.gave.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers the requests of one connection until it closes.
fn lie(stream: TcpStream, gave: &Mutex<Gave>) {
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
            let answer = note(&std::mem::take(&mut id), gave);
            if out.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Chooses the next answer, and notes it before it is sent.
fn note(id: &str, gave: &Mutex<Gave>) -> String {
    let mut gave = gave.lock().unwrap_or_else(PoisonError::into_inner);
    if id.is_empty() {
        gave.without_id += 1;
    } else if !gave.ids.insert(id.to_owned()) {
        gave.twice += 1;
    }
    let turn = gave.answers.values().sum::<u64>() as usize % (CLASSES.len() + 1);
    let what = CLASSES.get(turn).map_or("right", |(class, _)| *class);
    *gave.answers.entry(what).or_insert(0) += 1;
    let (status, body) = match what {
        "wrong_content" => ("200 OK", "no"),
        "status" => ("503 Service Unavailable", "ok"),
        "length" => ("200 OK", "okay"),
        _ => ("200 OK", "ok"),
    };
    let id = if what == "wrong_id" { other(id) } else { id.to_owned() };
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nx-request-id: {id}\r\n\r\n{body}", body.len())
}

/// An id of the same form that is another.
fn other(id: &str) -> String {
    let mut bytes = id.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = if *last == b'1' { b'2' } else { b'1' };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
