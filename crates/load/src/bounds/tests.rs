use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use answers::Check;
use wire::frames::{Prefix, Summary};

use super::*;
use crate::fault::{ErrorClass, Example, Fault, Seen};
use crate::pacer::{ArrivalSchedule, Stop};
use crate::target::{Body, Expect, FrameStream};
use crate::{Multiplexed, Slo, Target};

/// Answers a request by its path. Returns whether the connection goes on.
fn answer(stream: &mut TcpStream, path: &str, number: usize) -> std::io::Result<bool> {
    match path {
        "/events" => {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )?;
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(2));
                stream.write_all(b"9\r\ndata: x\n\n\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        "/until-close" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it")?;
            return Ok(false);
        }
        "/slow" => {
            thread::sleep(Duration::from_millis(30));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
        }
        "/third-fails" if number.is_multiple_of(3) => {
            stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")?;
        }
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?,
    }
    Ok(true)
}

/// Reads requests and answers them.
fn serve_http(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut bytes, mut number, mut buffer) = (Vec::new(), 0, vec![0; 65_536]);
    loop {
        while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0);
            while bytes.len() < whole {
                let read = stream.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                bytes.extend_from_slice(&buffer[..read]);
            }
            bytes.drain(..whole);
            number += 1;
            let path = head.split(' ').nth(1).unwrap_or_default();
            if !answer(&mut stream, path, number)? || head.contains("connection: close") {
                return Ok(());
            }
        }
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}

/// Reads frames of 100 bytes until the peer closes its side, and answers with their number.
fn serve_frames(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut all, mut buffer) = (0, vec![0; 65_536]);
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        all += read as u64;
    }
    let mut answer = 16_u32.to_be_bytes().to_vec();
    answer.extend(Summary { frames: all / 104, bytes: all / 104 * 100 }.encode());
    stream.write_all(&answer)
}

fn serve(connection: fn(TcpStream) -> std::io::Result<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).expect("a socket");
            // A client that goes away ends its connection.
            thread::spawn(move || connection(stream).ok());
        }
    });
    address
}

fn job_of(address: SocketAddr, traffic: Traffic, stop: Stop) -> Job {
    let mut job = Job::new(Target { address: address.into(), traffic }, 2, stop);
    job.threads = vec![None; 2];
    job
}

const WINDOW: Stop = Stop::After(Duration::from_millis(100));

fn requests(path: &str, change: impl FnOnce(&mut Http)) -> Job {
    let mut http = Http::get("h", path);
    change(&mut http);
    let mut job = job_of(serve(serve_http), Traffic::Http(http), WINDOW);
    job.warmup = Duration::from_millis(30);
    job
}

fn at_rate(rate: f64, job: Job) -> Job {
    let gaps = Gaps::Constant;
    Job { arrivals: Arrivals::Open(ArrivalSchedule { from: rate, to: rate, gaps }), ..job }
}

/// What a real drive counts, and how long it took.
fn driven(job: &Job) -> (Tally, Duration) {
    let began = Instant::now();
    let tally = crate::drive(job, &AtomicBool::new(false), &|_| {}).expect("it drives");
    (tally, began.elapsed())
}

fn upload(size: u64) -> Job {
    requests("/", |http| (http.method, http.body) = ("POST".to_owned(), Body::Pattern(size)))
}

fn frames(count: Option<u64>) -> Job {
    let stop = count.map_or(WINDOW, Stop::Count);
    let traffic = Traffic::Frames(FrameStream { size: 100, prefix: Prefix::Four, count });
    job_of(serve(serve_frames), traffic, stop)
}

/// A drive of each kind.
fn kinds() -> Vec<(&'static str, Job)> {
    let goal = || Slo::parse("whole<1s").expect("a goal").goal().cloned().map(Arc::new);
    let exact = |http: &mut Http| http.expect = Expect::exactly("ok");
    vec![
        ("requests", requests("/", |_| {})),
        ("requests with a required body", requests("/", exact)),
        ("pipelined", Job { pipeline: 4, ..requests("/", |_| {}) }),
        ("more callers than places", Job { callers: 7, pool: true, ..requests("/", |_| {}) }),
        ("a number", Job { ending: Ending::Finish, stop: Stop::Count(50), ..requests("/", |_| {}) }),
        ("a connection each", requests("/", |http| http.keep_alive = false)),
        ("bodies until the close", requests("/until-close", |http| http.keep_alive = false)),
        ("failures", requests("/third-fails", |_| {})),
        ("decoded", requests("/", |http| http.decode = true)),
        ("good ones", requests("/", |http| http.goal = goal())),
        ("uploads", upload(1 << 20)),
        ("uploads that end", Job { ending: Ending::Finish, ..upload(1 << 20) }),
        ("streams", requests("/events", |_| {})),
        ("streams of an open loop", at_rate(200.0, requests("/events", |http| http.goal = goal()))),
        ("an open loop", at_rate(1000.0, requests("/", |_| {}))),
        (
            "too much",
            Job { timeout: Duration::from_millis(50), ..at_rate(1000.0, requests("/slow", |_| {})) },
        ),
        (
            "an open loop of a number",
            Job { stop: Stop::Count(50), ending: Ending::Finish, ..at_rate(1000.0, requests("/", |_| {})) },
        ),
        ("frames", frames(None)),
        ("so many frames", frames(Some(1000))),
        ("fewer frames than connections", frames(Some(1))),
    ]
}

#[test]
fn honest_tallies_of_every_kind_are_accepted() {
    for (kind, job) in kinds() {
        let (tally, lasted) = driven(&job);
        assert!(tally.successes > 0, "{kind}: {tally:?}");
        let checked = tally.check(&Asked { job: &job, lasted, whole: true });
        assert_eq!(checked, Ok(()), "{kind}: {tally:?}");
        let sent = serde_json::to_value(&tally).expect("a value");
        let got: Tally = serde_json::from_value(sent).expect("a tally");
        assert_eq!(got.check(&Asked { job: &job, lasted, whole: true }), Ok(()), "{kind}, sent");
    }
}

#[test]
fn streams_that_are_wrong_when_the_window_closes_count_once() {
    let check = Check::parse("event.json.a>0").expect("a check");
    let job = requests("/events", |http| http.expect = Expect::meeting(None, vec![check]));
    let (tally, lasted) = driven(&job);
    assert_eq!(tally.check(&Asked { job: &job, lasted, whole: true }), Ok(()), "{tally:?}");
    let all: u64 = tally.total.errors.values().sum();
    assert!(tally.failures() > 0 && tally.total.attempts >= all, "{tally:?}");
}

#[test]
fn a_drive_that_is_interrupted_is_accepted() {
    for before in [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(60)] {
        let jobs = [
            requests("/", |_| {}),
            at_rate(1000.0, requests("/slow", |_| {})),
            requests("/events", |_| {}),
            at_rate(200.0, requests("/events", |_| {})),
        ];
        for job in jobs {
            let (cancel, began) = (AtomicBool::new(false), Instant::now());
            let tally = thread::scope(|scope| {
                let drive = scope.spawn(|| crate::drive(&job, &cancel, &|_| {}).expect("it drives"));
                thread::sleep(before);
                cancel.store(true, Ordering::Relaxed);
                drive.join().expect("no panic")
            });
            let asked = Asked { job: &job, lasted: began.elapsed(), whole: false };
            assert_eq!(tally.check(&asked), Ok(()), "{before:?} {tally:?}");
        }
    }
}

type Edit = fn(&mut Tally);

/// More than any machine can do in a short drive.
const HUGE: u64 = 1 << 53;
const LONG: Duration = Duration::from_secs(1_000_000_000);

fn times(number: u64, nanos: u64) -> Times {
    let mut times = crate::histogram();
    times.saturating_record_n(nanos, number);
    times.into()
}

/// Makes each change to an honest tally, and asserts that it is refused by the name of a row.
fn refuses(job: &Job, edits: &[(&str, Edit)]) {
    let (tally, lasted) = driven(job);
    let asked = Asked { job, lasted, whole: true };
    assert_eq!(tally.check(&asked), Ok(()), "{tally:?}");
    for (number, (row, edit)) in edits.iter().enumerate() {
        let mut spoilt = tally.clone();
        edit(&mut spoilt);
        let why = spoilt.check(&asked).expect_err(&format!("edit {number} of {row} is accepted: {spoilt:?}"));
        assert_eq!(why.row, *row, "edit {number}: {why}");
    }
}

fn example(class: ErrorClass, into_window: Duration) -> Example {
    let fault = Fault::new(class, Seen::Nothing);
    Example {
        fault,
        check: None,
        told: None,
        heard: Seen::Nothing,
        into_window,
        connection: None,
        exchange: None,
    }
}

/// A change to each row, and the row that is refused.
const CLOSED_LOOP: &[(&str, Edit)] = &[
    ("attempts", |t| t.attempts = 0),
    ("attempts", |t| t.attempts += 1),
    ("attempts", |t| t.successes = 0),
    ("attempts", |t| t.in_flight = HUGE),
    ("attempts", |t| t.errors[0] += HUGE / 2),
    ("attempts", |t| (t.attempts, t.successes) = (t.attempts + HUGE / 2, t.successes + HUGE / 2)),
    ("units", |t| t.units = 0),
    ("units", |t| t.units = HUGE),
    ("first_errors", |t| t.first_errors.clear()),
    ("first_errors", |t| _ = t.first_errors.insert(ErrorClass::Busy, example(ErrorClass::Busy, LONG))),
    ("first_errors", |t| t.first_errors.values_mut().for_each(|first| first.into_window = LONG)),
    ("ordinals", |t| _ = t.ordinals.insert(4, HUGE)),
    ("ordinals", |t| t.ordinals = [(HUGE, 1)].into()),
    ("ordinals", |t| t.ordinals = [(0, 1)].into()),
    ("ordinals", |t| t.ordinals = (1..100).map(|ordinal| (ordinal, 0)).collect()),
    ("in_flight", |t| (t.attempts, t.in_flight) = (t.attempts + 100, t.in_flight + 100)),
    ("open_ages", |t| t.open_ages = times(1_000_000_000, 1)),
    ("open_ages", |t| t.open_ages = times(1, LONG.as_nanos() as u64)),
    ("open_ages", |t| t.open_ages.give_up(1)),
    ("early_ages", |t| t.early_ages = times(1_000_000_000, 1)),
    ("early_ages", |t| t.early_ages = times(1, LONG.as_nanos() as u64)),
    ("arrivals", |t| t.arrivals = 1),
    ("late", |t| t.late = 1),
    ("dropped", |t| t.dropped = 1),
    ("backlog", |t| t.backlog = 1),
    ("no_continue", |t| t.no_continue = 1),
    ("elapsed", |t| t.elapsed = Duration::ZERO),
    ("elapsed", |t| t.elapsed = LONG),
    ("payload_bytes", |t| t.payload_bytes = HUGE),
    ("bytes_sent", |t| t.bytes_sent = 0),
    ("bytes_sent", |t| t.bytes_sent = HUGE),
    ("bytes_received", |t| (t.payload_bytes, t.bytes_received) = (0, 0)),
    ("bytes_received", |t| t.bytes_received = HUGE),
    ("first_byte", |t| t.first_byte = Some(times(HUGE, 1))),
    ("first_byte", |t| t.first_byte = Some(times(1, LONG.as_nanos() as u64))),
    ("first_byte_service", |t| t.first_byte_service = Some(times(1, 1))),
    ("first_event", |t| t.first_event = Some(times(HUGE, 1))),
    ("first_event_service", |t| t.first_event_service = Some(times(1, 1))),
    ("first_output", |t| t.first_output = Some(times(HUGE, 1))),
    ("gap", |t| t.gap = Some(times(1, 1))),
    ("longest_gap", |t| t.longest_gap = Some(times(1, 1))),
    ("per_token", |t| t.per_token = Some(times(1, 1))),
    ("streams", |t| t.streams = 1_000_000_000),
    ("cut_streams", |t| t.cut_streams = 3),
    ("events", |t| (t.events, t.event_reads) = (1 << 50, 1)),
    ("events", |t| t.events = 1),
    ("events", |t| t.event_reads = 1),
    ("good", |t| t.good = Some(0)),
    ("tokens", |t| t.tokens = 1),
    ("service", |t| t.service.record(5)),
    ("service", |t| t.service = Times::default()),
    ("service", |t| t.service.give_up(5)),
    ("service", |t| t.service = times(t.successes, LONG.as_nanos() as u64)),
    ("response", |t| t.response = times(t.successes, LONG.as_nanos() as u64)),
    ("response", |t| t.response = times(t.successes, 1)),
    ("response", |t| t.response.record(5)),
    ("behind", |t| t.behind.record(5)),
    ("pool_wait", |t| t.pool_wait = Some(times(1, 1))),
    ("tenths", |t| t.tenths = [0; 10]),
    ("tenths", |t| t.tenths[3] += 1),
    ("failing", |t| t.failing = LONG),
    ("handshakes", |t| t.handshakes.kinds[0] = 1),
    ("handshakes", |t| t.handshakes.offered = 1),
    ("handshakes", |t| t.handshakes.times = Some(times(1, 1))),
    ("multiplexed", |t| t.multiplexed = Some(Multiplexed { asked: 1, ..Multiplexed::default() })),
    ("cpu", |t| t.cpu = LONG),
    ("waited", |t| t.waited = LONG),
    ("pause", |t| t.pause = LONG),
    ("busiest", |t| (t.cpu, t.busiest) = (t.elapsed, 0.0)),
    ("busiest", |t| t.busiest = 90.0),
    ("by_name", |t| t.by_name.push(crate::Named::default())),
    ("decoded", |t| t.decoded.answers = HUGE),
    ("decoded", |t| t.decoded.compressed = 1),
    ("decoded", |t| t.decoded.sent_bytes = 1),
    ("decoded", |t| t.decoded.decoded_bytes = 1),
    ("total", |t| t.total.connections = 0),
    ("total", |t| t.total.connections = HUGE),
    ("total", |t| t.total.attempts = 0),
    ("total", |t| t.total.attempts = HUGE),
    ("total", |t| t.total.successes = 0),
    ("total", |t| t.total.successes = HUGE),
    ("total", |t| t.total.errors.clear()),
    ("total", |t| _ = t.total.errors.insert(ErrorClass::Busy, HUGE)),
];

#[test]
fn each_row_of_a_closed_loop_has_a_bound() {
    refuses(&requests("/third-fails", |_| {}), CLOSED_LOOP);
}

#[test]
fn the_rows_of_an_open_loop_have_bounds() {
    let job = Job { stop: Stop::After(Duration::from_millis(200)), ..at_rate(2000.0, requests("/", |_| {})) };
    refuses(
        &Job { backend: reactor::Backend::Epoll, ..job },
        &[
            ("arrivals", |t| t.arrivals = 0),
            ("arrivals", |t| t.arrivals = 1_000_000_000_000),
            ("backlog", |t| t.backlog = 1_000_000_000_000),
            ("late", |t| t.late = t.behind.len() + 1),
            ("dropped", |t| t.dropped = 1_000),
            ("in_flight", |t| (t.attempts, t.in_flight) = (t.attempts + 1_000, t.in_flight + 1_000)),
            ("open_ages", |t| t.open_ages = times(1, 1)),
            ("early_ages", |t| t.early_ages = times(1, 1)),
            ("cut_streams", |t| t.cut_streams = 1),
            ("service", |t| t.service = times(HUGE, 1)),
            ("response", |t| t.response.record(1)),
            ("behind", |t| t.behind.record(1)),
            ("behind", |t| (t.late, t.behind) = (t.behind.len(), times(t.behind.len(), 3_600_000_000_000))),
            ("backend", |t| t.backend = "io_uring".into()),
        ],
    );
}

#[test]
fn the_rows_of_streams_have_bounds() {
    let goal = Slo::parse("whole<1s").expect("a goal").goal().cloned().map(Arc::new);
    let pooled = Job { pool: true, ..requests("/events", |http| http.goal = goal) };
    refuses(
        &pooled,
        &[
            ("gap", |t| (t.events, t.event_reads) = (1 << 50, 1)),
            ("events", |t| t.events = 1 << 50),
            ("events", |t| t.events = 0),
            ("gap", |t| t.gap = Some(times(t.event_reads + 1, 1))),
            ("gap", |t| t.event_reads = 0),
            ("longest_gap", |t| t.longest_gap.get_or_insert_default().give_up(1 << 40)),
            ("longest_gap", |t| t.streams = 0),
            ("streams", |t| t.streams = t.successes + 1),
            ("per_token", |t| {
                // Streams whose first event came before the window could make this row of it too few.
                t.first_event = Some(times(t.attempts, 1));
                t.per_token = Some(times(t.streams + 1, 1));
            }),
            ("tokens", |t| t.tokens = HUGE),
            ("good", |t| t.good = None),
            ("good", |t| t.good = Some(1_000_000_000)),
            ("pool_wait", |t| t.pool_wait = None),
            ("pool_wait", |t| t.pool_wait = Some(Times::default())),
        ],
    );
}

#[test]
fn ended_streams_are_counted_and_have_first_events() {
    let ended = Job { ending: Ending::Finish, ..requests("/events", |_| {}) };
    refuses(
        &ended,
        &[
            ("streams", |t| (t.streams, t.longest_gap) = (0, None)),
            ("first_event", |t| t.first_event = None),
            ("first_event", |t| {
                let gaps = t.longest_gap.as_ref().map_or(0, Times::answers);
                t.first_event = Some(times(gaps.saturating_sub(1), 1));
            }),
        ],
    );
    let open = at_rate(200.0, requests("/events", |_| {}));
    refuses(&open, &[("first_event", |t| (t.first_event, t.first_event_service) = (None, None))]);
}

#[test]
fn events_may_be_of_streams_that_began_anew() {
    let mut job = requests("/events", |http| http.http2 = true);
    job.pipeline = 10;
    let counts = |renewed| Multiplexed { asked: 10, reached: 7, renewed, ..Multiplexed::default() };
    let mut tally = Tally { events: 3, event_reads: 3, elapsed: Duration::from_secs(1), ..Tally::default() };
    tally.total.connections = 3;
    let check = |renewed| {
        let asked = Asked { job: &job, lasted: Duration::from_secs(2), whole: false };
        let tally = Tally { multiplexed: Some(counts(renewed)), ..tally.clone() };
        tally.check(&asked).map_err(|why| why.row)
    };
    assert_eq!((check(1), check(0)), (Ok(()), Err("streams")));
}

#[test]
fn payload_is_known_exactly_where_bodies_are() {
    refuses(
        &upload(1000),
        &[
            ("payload_bytes", |t| t.payload_bytes += 1),
            ("payload_bytes", |t| t.payload_bytes = 0),
            ("bytes_sent", |t| t.bytes_sent = 0),
        ],
    );
    refuses(
        &frames(None),
        &[
            ("units", |t| t.units = 0),
            ("units", |t| t.units *= 2),
            ("payload_bytes", |t| t.payload_bytes = 0),
            ("payload_bytes", |t| t.units -= 1),
            ("total", |t| t.total.connections = 0),
        ],
    );
    refuses(
        &requests("/", |http| http.decode = true),
        &[
            ("decoded", |t| t.decoded = crate::Decoded::default()),
            ("decoded", |t| t.decoded.decoded_bytes = HUGE),
        ],
    );
}

#[test]
fn a_refusal_says_what_the_value_contradicts() {
    let why = Contradiction::new("units", exactly(7, 2, "`successes`, each of which is one").expect_err("7"));
    let says = "what it says of `units` makes no sense: 7 contradicts `successes`, each of which is one, by which it is 2";
    assert_eq!(why.to_string(), says);
}

#[test]
fn connections_that_carry_many_exchanges_keep_to_the_job() {
    let mut job = requests("/", |http| http.http2 = true);
    job.pipeline = 10;
    let right = Multiplexed { asked: 10, reached: 7, allowed: Some(8), renewed: 1, cancelled: 0 };
    let mut tally = Tally { elapsed: Duration::from_secs(1), multiplexed: Some(right), ..Tally::default() };
    tally.total.connections = 3;
    let check = |multiplexed| {
        let asked = Asked { job: &job, lasted: Duration::from_secs(2), whole: false };
        Tally { multiplexed: Some(multiplexed), ..tally.clone() }.check(&asked).map_err(|why| why.row)
    };
    assert_eq!(check(right), Ok(()));
    for wrong in [
        Multiplexed { asked: 11, ..right },
        Multiplexed { asked: 0, reached: 0, ..right },
        Multiplexed { reached: 1 << 50, ..right },
        Multiplexed { allowed: Some(0), ..right },
        Multiplexed { allowed: Some(10), ..right },
        Multiplexed { renewed: 4, ..right },
        Multiplexed { cancelled: 1, ..right },
    ] {
        assert_eq!(check(wrong), Err("multiplexed"), "{wrong:?}");
    }
}

/// The fuzzer begins with tallies that hold. Otherwise it would hardly find one.
#[test]
fn the_tallies_that_the_fuzzer_begins_with_are_possible() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/messages");
    for name in ["tally_open", "tally_events"] {
        let seed = std::fs::read(format!("{folder}/{name}")).expect("a seed");
        let mut rest = seed.as_slice();
        let mut said = || {
            let (length, more) = rest.split_first_chunk().expect("a length");
            let (text, more) = more.split_at(u32::from_be_bytes(*length) as usize);
            rest = more;
            serde_json::from_slice::<serde_json::Value>(text).expect("a message")["what"].take()
        };
        let job = serde_json::from_value::<crate::Assignment>(said()).expect("a job").job().expect("a job");
        let tally: Tally = serde_json::from_value(said()).expect("a tally");
        let lasted = Duration::from_secs(10);
        assert!(
            tally.successes > 0 && tally.check(&Asked { job: &job, lasted, whole: true }).is_ok(),
            "{name}"
        );
    }
}
