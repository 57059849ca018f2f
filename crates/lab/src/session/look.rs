//! A first look at a system before anything is planned: it is started once and asked some times.
//!
//! Where no contract says what a right answer is, the answers that it gives here do. The exchanges use plain sockets, so
//! that an answer is known byte by byte.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use answers::{Encodings, Head};
use load::Message;
use load::fault::Seen;
use load::stream::{self, Form};
use load::target::Http;
use serde::{Deserialize, Serialize};
use systems::Work;
use systems::contact::{self, Access, Contact};
use systems::process::Running;
use systems::trace;
use wire::foreign;
use wire::http::{HttpEvent, Method, RequestLine, ResponseDecoder};
use wire::pattern;

use crate::ask::{Ask, Demand, Payload};
use crate::observation::{Scenario, Stage, Timing, Trial};
use crate::session::Bench;
use crate::session::drive::{Drive, listening};
use crate::session::driver::{Orders, in_common, listed};
use crate::session::first::begun;
use crate::session::place::Place;
use crate::session::settle::{Pace, Speed, settle};
use crate::session::trial_error::TrialError;

/// How many bytes of an answer are compared. Of a longer one only the length is.
pub const LONGEST_CONTENT: usize = 1 << 20;

/// How many exchanges a look makes at least, and at most while they have taken less than [`ENOUGH`]. Content that varies
/// rarely needs many to be seen.
const FEWEST: usize = 3;
const MOST: usize = 10;
const ENOUGH: Duration = Duration::from_millis(300);

/// How many different requests of a list are looked at.
pub const LOOKED_AT: usize = 16;

/// How long another program drives in a look, if it can be told. Seconds.
const METERED_S: f64 = 1.0;

/// How long the end of a program may take to be seen after its connections broke off.
const DEATH: Duration = Duration::from_millis(200);

/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a server that did not answer in HTTP may take to answer in another protocol.
const GREETED: Duration = Duration::from_millis(500);

/// The media type of a stream of events, which may never end.
const EVENT_STREAM: &str = "text/event-stream";

/// What a look at a scenario showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The answers. Empty for work with a contract of its own, which was checked instead.
    pub answers: Vec<Answer>,
    /// Some of the requests of a list, with their answers. `answers` is empty then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<Looked>,
    /// Its speed, if that was asked for.
    pub pace: Option<Pace>,
}

/// A request of a list, and its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// The request, and which of its answers are right.
    pub ask: Ask,
    /// The answers.
    pub answers: Vec<Answer>,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The length of its body in bytes, decoded if compressed answers are asked for.
    pub length: u64,
    /// Its head, as it was received.
    pub head: Vec<u8>,
    /// The first [`LONGEST_CONTENT`] bytes of its body, decoded if compressed answers are asked for.
    pub body: Vec<u8>,
}

impl Look {
    /// What a later answer must be: the same content, or the same length where bodies are too long to be kept. Nothing is
    /// demanded where they differ: their length may change at any time, as that of a counter does at 10.
    pub fn demand(&self) -> Demand {
        demand(&self.answers)
    }

    /// The status of all answers. None if they have several.
    pub fn status(&self) -> Option<u16> {
        let (first, rest) = self.answers.split_first()?;
        rest.iter().all(|answer| answer.status == first.status).then_some(first.status)
    }

    /// Both looks at a scenario as one.
    pub fn and(&mut self, later: Self) -> Self {
        let Self { mut answers, mut listed, pace } =
            std::mem::replace(self, Self { answers: Vec::new(), listed: Vec::new(), pace: None });
        answers.extend(later.answers);
        for (looked, again) in listed.iter_mut().zip(later.listed) {
            looked.answers.extend(again.answers);
        }
        Self { answers, listed, pace }
    }

    /// A look at the requests of a list: a look at each of them.
    pub fn of_each(&self) -> impl Iterator<Item = Self> {
        let alone =
            |looked: &Looked| Self { answers: looked.answers.clone(), listed: Vec::new(), pace: None };
        self.listed.iter().map(alone)
    }

    /// Whether answers that were the same may differ after another start or at another time: they may contain a port, the
    /// number of a process, or a time. Text without a digit contains none.
    pub fn may_vary(&self) -> bool {
        let is_plain =
            |body: &[u8]| !body.iter().any(u8::is_ascii_digit) && std::str::from_utf8(body).is_ok();
        let may = |answers: &[Answer]| {
            demand(answers) != Demand::Any && answers.first().is_some_and(|answer| !is_plain(&answer.body))
        };
        may(&self.answers) || self.listed.iter().any(|looked| may(&looked.answers))
    }
}

fn demand(answers: &[Answer]) -> Demand {
    let Some((first, rest)) = answers.split_first() else { return Demand::Any };
    if rest.iter().any(|answer| (answer.length, &answer.body) != (first.length, &first.body)) {
        let events = first.events();
        let same = events.filter(|_| rest.iter().all(|answer| answer.events() == events));
        return same.map_or(Demand::Any, Demand::Events);
    }
    match first.body.len() as u64 == first.length {
        true => Demand::Content(crate::ask::Bytes(first.body.clone())),
        false => Demand::Length(first.length),
    }
}

impl Answer {
    /// Whether the body is as demanded.
    pub fn meets(&self, demand: &Demand) -> bool {
        match demand {
            Demand::Any => true,
            Demand::Length(length) => self.length == *length,
            Demand::Events(events) => self.events() == Some(*events),
            Demand::Content(bytes) => self.length == bytes.0.len() as u64 && self.body == bytes.0,
        }
    }

    /// How many events it has, if it is a stream that is kept whole and ended rightly.
    pub fn events(&self) -> Option<u64> {
        let whole = self.length == self.body.len() as u64;
        whole.then(|| stream::judge_whole(None, self.head(), &self.body, &[]).ok().flatten())?
    }

    /// How its pieces are told apart, if it is a stream of several.
    pub fn form(&self) -> Option<Form> {
        Form::of(self.head()).filter(|_| self.events().is_some_and(|events| events > 1))
    }

    /// Its head, as checks see it.
    pub(super) fn head(&self) -> Head<'_> {
        Head::http1(self.status, &self.head)
    }

    /// The first check that an answer of the right status does not meet, and what it found. An answer that is not kept
    /// whole is checked when it is driven.
    fn misses(&self, ask: &Ask) -> Option<String> {
        if self.length != self.body.len() as u64 || !ask.statuses().contains(self.status) {
            return None;
        }
        let answer = answers::Answer { head: self.head(), body: &self.body, length: self.length };
        let mut broken = ask.expect.iter().filter_map(|check| Some((check, check.holds(&answer).err()?)));
        let said = broken.next().map(|(check, found)| format!("its answer does not meet `{check}`: {found}"));
        said.or_else(|| {
            let fault = stream::judge_whole(ask.stream, self.head(), &self.body, &ask.expect).err()?;
            let check = match fault.seen {
                Seen::Check { index, .. } => ask.expect.get(index as usize),
                _ => None,
            };
            let named = check.map_or(String::new(), |check| format!("does not meet `{check}`: "));
            Some(format!("its answer is a stream that is not as it must be: {named}{fault}"))
        })
    }
}

impl Bench {
    /// See [`Executor::look`](crate::session::Executor::look).
    pub(super) fn look_at(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        speed: Speed,
    ) -> Result<Look, TrialError> {
        trace::say(|| format!("--- a first look at {}", scenario.system));
        let ask = Some(Arc::new(ask.clone()));
        let trial = Trial { ask, ..Trial::alone(scenario.clone(), timing) };
        self.with_place(&trial, |place| place.between_hooks(|| look(place, speed)))
    }
}

fn look(place: &Place<'_>, speed: Speed) -> Result<Look, TrialError> {
    let running = place.start()?;
    let orders = place.orders(listening(&running)?);
    let orders = begun(place, orders).map_err(|error| error.with_output(&running.tail()))?;
    if place.metering.is_some() {
        return metered(place, running, orders, speed);
    }
    let ask = &orders.ask;
    let failed = |why: String| TrialError::failed(Stage::EqualWork, why).with_output(&running.tail());
    let (mut answers, mut looked) = (Vec::new(), Vec::new());
    // Of a list, many requests are looked at.
    let most = if orders.ask.list.is_some() { FEWEST } else { MOST };
    let several = |ask: &Ask, bytes: &[u8]| {
        let (mut answers, began) = (Vec::new(), Instant::now());
        while answers.len() < FEWEST || (answers.len() < most && began.elapsed() < ENOUGH) {
            let answer = exchange(place, &orders, ask, bytes);
            if place.cancelled() {
                return Err(TrialError::Interrupted);
            }
            if answer.is_err() {
                // A program that has died says more than a connection that was reset, which is seen a moment earlier.
                running.wait_exit(Instant::now() + DEATH, place.cancel);
            }
            running.check_alive()?;
            let named = |why: String| match &orders.ask.list {
                Some(_) => failed(format!("{} {}: {why}", ask.method, ask.path)),
                None => failed(why),
            };
            let answer = answer.map_err(|why| named(in_another_protocol(&orders.access, why)))?;
            answer.misses(ask).map_or(Ok(()), |why| Err(named(why)))?;
            answers.push(answer);
        }
        Ok(answers)
    };
    if let Some(script) = listed(&orders)? {
        let samples = script.samples(&in_common(&orders, true), LOOKED_AT).map_err(failed)?;
        for sample in samples {
            let ask = of_list(ask, &sample);
            let answers = several(&ask, &sample.bytes)?;
            looked.push(Looked { ask, answers });
        }
    } else if let Work::Requests(_) = place.work() {
        answers = several(ask, &head(&orders.access.host(), ask).map_err(failed)?)?;
    } else if let Some(wrong) = place.driver().equal_work(&orders, 100_003)? {
        running.check_alive()?;
        return Err(failed(wrong));
    }
    let driver = place.driver();
    let drive = Drive { place, running: &running, driver: &driver };
    // A server whose answers are wrong is refused for them, and not driven.
    let right = answers.iter().all(|answer| orders.ask.statuses().contains(answer.status));
    let asked = speed != Speed::Unasked && right;
    let pace = asked.then(|| settle(&drive, orders, speed)).transpose()?;
    running.check_alive()?;
    running.stop();
    if place.cancelled() { Err(TrialError::Interrupted) } else { Ok(Look { answers, listed: looked, pace }) }
}

/// Lets another program drive once, as in a trial: whether it does, and how long it takes. What it exchanges is not seen.
fn metered(place: &Place<'_>, running: Running, orders: Orders, speed: Speed) -> Result<Look, TrialError> {
    let (driver, began) = (place.driver(), Instant::now());
    let timing = Timing { warmup_s: 0.0, measure_s: METERED_S, ..orders.timing };
    let drive = Drive { place, running: &running, driver: &driver };
    let mut pace = None;
    if speed != Speed::Unasked {
        let (m, _) = drive.once(&Orders { timing, ..orders })?;
        let (per_s, took_s) = (m.done() / m.elapsed_s, began.elapsed().as_secs_f64());
        pace = Some(Pace { per_s, callers: 1.0, settled_s: Some(0.0), took_s });
    }
    running.check_alive()?;
    running.stop();
    if place.cancelled() {
        Err(TrialError::Interrupted)
    } else {
        Ok(Look { answers: Vec::new(), listed: Vec::new(), pace })
    }
}

/// A request of a list by itself. Its bytes are sent as they are, so nothing else of it matters.
fn of_list(ask: &Ask, sample: &Message) -> Ask {
    Ask {
        method: sample.method.clone(),
        path: sample.path.clone(),
        body: Payload::None,
        // What a request says of its status replaces what all say.
        status: ask.status.filter(|_| !sample.expect.checks.iter().any(|check| check.statuses().is_some())),
        expect: sample.expect.checks.clone(),
        list: None,
        ..ask.clone()
    }
}

/// Why a system does not answer. Most servers that speak TLS close a connection that begins with anything else. Redis closes one on
/// which a line begins with `Host:`, because that may be an attack, so it is greeted in its own protocol.
fn in_another_protocol(access: &Access, why: String) -> String {
    if access.tls.is_none() && contact::speaks_tls(access) {
        return format!("it speaks TLS ({why}): {SECURED}");
    }
    if access.http2 {
        return why;
    }
    match greeted(access) {
        Some(protocol) => format!("it speaks {protocol}, not HTTP/1.1 ({why})"),
        None => why,
    }
}

/// The protocol in which a server answers `PING`. None if it does not answer at once, or in no protocol that is known.
fn greeted(access: &Access) -> Option<&'static str> {
    let mut contact = Contact::open(access, GREETED).ok()?;
    contact.write_all(b"PING\r\n").ok()?;
    let mut buffer = [0; 64];
    let count = contact.read_within(&mut buffer, GREETED).ok()?;
    foreign::recognised(buffer.get(..count)?)
}

/// How an arm is spoken to in TLS.
pub const SECURED: &str = "name its address with https://, or write {cert} and {key} into its command";

/// Sends the request, which begins with these bytes, on a connection of its own, and reads the whole answer.
fn exchange(place: &Place<'_>, orders: &Orders, ask: &Ask, begin: &[u8]) -> Result<Answer, String> {
    let patience = Duration::from_secs_f64(orders.timing.timeout_s);
    answer_to(&orders.access, ask, begin, patience, &|| place.cancelled())
}

/// The same for a server that is reached like this, within `patience`.
pub(super) fn answer_to(
    access: &Access,
    ask: &Ask,
    begin: &[u8],
    patience: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Result<Answer, String> {
    let mut stream = Contact::open(access, patience).map_err(|e| format!("cannot connect: {e}"))?;
    // The server may answer before it has read a body. Its answer then says more than the failed write.
    let sent = send(&mut stream, begin, ask);
    let deadline = Instant::now() + patience;
    let over = || cancelled() || Instant::now() >= deadline;
    let answer = read(&mut stream, ask, &over).map_err(|why| match sent {
        Ok(()) => why,
        Err(sent) => format!("{why}; {sent}"),
    })?;
    if ask.compressed { decoded(answer) } else { Ok(answer) }
}

/// The answer with its body as it was before it was compressed.
fn decoded(answer: Answer) -> Result<Answer, String> {
    let limit = Http::MAX_KEPT;
    if answer.body.len() as u64 != answer.length {
        return Err(format!("its answer is longer than {} MiB", limit >> 20));
    }
    let codings = Encodings::of(answer.head()).map_err(|broken| broken.to_string())?;
    let mut body = match codings.is_empty() {
        true => answer.body,
        false => answers::decode(codings, &answer.body, limit).map_err(|broken| broken.to_string())?,
    };
    let length = body.len() as u64;
    body.truncate(LONGEST_CONTENT);
    Ok(Answer { length, body, ..answer })
}

/// The bytes of the request up to its body.
pub(super) fn head(host: &str, ask: &Ask) -> Result<Vec<u8>, String> {
    let body = match &ask.body {
        Payload::None => None,
        Payload::Bytes(bytes) => Some(bytes.0.len() as u64),
        Payload::Size(size) => Some(*size),
    };
    let mut head = Vec::new();
    let line = RequestLine {
        method: &ask.method,
        host,
        path: &ask.path,
        headers: &ask.sent_headers(),
        body,
        keep_alive: true,
        expect_continue: false,
    };
    line.encode(&mut head).map_err(|e| e.to_string())?;
    Ok(head)
}

fn send(stream: &mut Contact, head: &[u8], ask: &Ask) -> Result<(), String> {
    let wrong = |e: io::Error| format!("it does not read the request: {e}");
    stream.write_all(head).map_err(wrong)?;
    match &ask.body {
        Payload::None => {}
        Payload::Bytes(bytes) => stream.write_all(&bytes.0).map_err(wrong)?,
        Payload::Size(size) => {
            // Byte `i` of the generator's body equals byte `i % PERIOD`, so a block of any other length would differ from it.
            let block = pattern::block(*size, pattern::PERIOD);
            let mut left = *size;
            while left > 0 {
                let piece = left.min(block.len() as u64);
                stream.write_all(&block[..piece as usize]).map_err(wrong)?;
                left -= piece;
            }
        }
    }
    Ok(())
}

/// Why there is no complete answer.
fn late(heard: bool) -> &'static str {
    match heard {
        true => "no complete answer within the timeout",
        false => {
            "it was silent until the timeout: it may speak another protocol, in which the client says something else first, \
             or need more time than --timeout allows"
        }
    }
}

/// Why a stream of events is no answer.
fn endless(answer: &Answer) -> String {
    format!(
        "its answer is a stream that does not end within the timeout: {} with Content-Type: {EVENT_STREAM}, and {} bytes so \
         far. Allow it more time with --timeout, or choose another path with --path",
        answer.status, answer.length
    )
}

/// Whether this is the media type of a stream of events, with parameters or without.
fn is_event_stream(content_type: &[u8]) -> bool {
    let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(EVENT_STREAM.as_bytes())
}

fn read(stream: &mut Contact, ask: &Ask, over: &dyn Fn() -> bool) -> Result<Answer, String> {
    let mut decoder = ResponseDecoder::watching("content-type");
    decoder.answers_head(Method::from_name(ask.method.as_bytes()) == Method::Head);
    let mut answer = Answer { status: 0, length: 0, head: Vec::new(), body: Vec::new() };
    let kept = if ask.compressed { Http::MAX_KEPT as usize } else { LONGEST_CONTENT };
    let mut buffer = [0; 1 << 14];
    let mut heard = false;
    let mut of_events = false;
    loop {
        if over() {
            return Err(if of_events { endless(&answer) } else { late(heard).to_owned() });
        }
        let count = match stream.read_within(&mut buffer, GLANCE) {
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(e) => return Err(format!("its answer broke off: {e}")),
        };
        if count == 0 {
            return match decoder.finish() {
                Ok(true) => Ok(answer),
                _ if heard => Err("it closed the connection before a complete answer".to_owned()),
                _ => Err("it closed the connection without an answer".to_owned()),
            };
        }
        heard = true;
        let mut rest = &buffer[..count];
        loop {
            let unreadable = |_| {
                let first = rest[..rest.len().min(60)].escape_ascii();
                match foreign::recognised(rest) {
                    Some(protocol) => format!("it speaks {protocol}, not HTTP/1.1: \"{first}\""),
                    None => format!("not an answer of HTTP/1: \"{first}\""),
                }
            };
            let step = decoder.push(rest).map_err(unreadable)?;
            rest = &rest[step.consumed..];
            match step.event {
                HttpEvent::NeedMore => break,
                HttpEvent::Head(head) => {
                    (answer.status, answer.head) = (head.status, head.bytes.to_vec());
                    of_events = head.watched.is_some_and(is_event_stream);
                }
                HttpEvent::Body(data) => {
                    answer.length += data.len() as u64;
                    let room = kept.saturating_sub(answer.body.len());
                    answer.body.extend_from_slice(&data[..data.len().min(room)]);
                }
                // An interim answer is followed by the real one.
                HttpEvent::End if (100..200).contains(&answer.status) => {}
                HttpEvent::End => return Ok(answer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Bytes;

    fn answers(bodies: &[&str]) -> Look {
        let answer = |body: &&str| Answer {
            status: 200,
            length: body.len() as u64,
            head: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        Look { answers: bodies.iter().map(answer).collect(), listed: Vec::new(), pace: None }
    }

    #[test]
    fn the_strictest_demand_that_all_answers_meet_is_learnt() {
        for (bodies, demand) in [
            (vec!["ok", "ok", "ok"], Demand::Content(Bytes(b"ok".to_vec()))),
            (vec!["12", "13", "14"], Demand::Any),
            (vec!["9", "10", "11"], Demand::Any),
            (vec![""], Demand::Content(Bytes::default())),
            (vec![], Demand::Any),
        ] {
            let look = answers(&bodies);
            assert_eq!(look.demand(), demand, "{bodies:?}");
            assert!(look.answers.iter().all(|answer| answer.meets(&demand)), "{bodies:?}");
        }
        // Of an answer that is longer than what is kept, only the length is demanded.
        let body = vec![0; LONGEST_CONTENT];
        let long = Answer { status: 200, length: LONGEST_CONTENT as u64 + 1, head: Vec::new(), body };
        let look = Look { answers: vec![long; 3], listed: Vec::new(), pace: None };
        assert_eq!(look.demand(), Demand::Length(LONGEST_CONTENT as u64 + 1));
    }
}
