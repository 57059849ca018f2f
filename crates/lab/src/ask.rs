//! What is sent to a system whose requests are not those of docs/contracts.md, and which of its answers are right.
//!
//! Values only. The session turns them into traffic, and the plan keeps them, so that a saved run says what it sent.

use std::sync::Arc;

use answers::{Capture, Check, Statuses};
use load::stream::Form;
use load::target::{Body, Expect};
use load::{Goal, Values};
use serde::{Deserialize, Serialize};
use systems::contact::Opening;
use systems::work::{Interface, Streams};
use wire::proxy::{self, Version};

use crate::meter::Meter;

/// What to do if right answers differ from those of the first look.
pub const VARIES: &str = "If its answers may vary, say what a right one is: --expect status=2xx accepts any content, \
                          --expect json.ok=true a part of it";

/// A request, and the answers that count as successes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Additional headers. They replace default headers of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    #[serde(default)]
    pub body: Payload,
    /// Whether to send `Expect: 100-continue` and wait for 100.
    #[serde(default)]
    pub expect_continue: bool,
    /// The required status. None accepts any 2xx.
    pub status: Option<u16>,
    /// Whether compressed answers are asked for. What is demanded of an answer is then demanded of its decoded body, so
    /// that answers in different codings are equal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compressed: bool,
    /// How the pieces of every answer are told apart: `events`, `lines` or `chunks`. None if its type says whether it is a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub stream: Option<Form>,
    /// The limits of the times of good answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub goal: Option<Goal>,
    /// What the body of an answer must be.
    #[serde(default)]
    pub answer: Demand,
    /// Further checks of each answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub expect: Vec<Check>,
    /// Whether the systems answer differently, and are measured without being compared.
    #[serde(default)]
    pub unequal: bool,
    /// The requests of a file, which are sent instead of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Listed>,
    /// A request that is made once before the others of a trial, and whose answer has values for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// The header with which each connection begins, as that of a proxy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Another program that drives in the place of Narrows' generator. It measured, and the answers are not verified: then what is said
    /// here of requests and answers means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<Meter>,
}

/// A version of the PROXY protocol's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ProxyProtocol {
    /// A line of text.
    #[serde(rename = "1")]
    One,
    /// Bytes of fixed places.
    #[serde(rename = "2")]
    Two,
}

impl ProxyProtocol {
    /// What writes the header on a connection for a single exchange.
    pub fn opening(self) -> Opening {
        match self {
            Self::One => |ends| proxy::header(Version::One, ends),
            Self::Two => |ends| proxy::header(Version::Two, ends),
        }
    }
}

impl From<ProxyProtocol> for Version {
    fn from(version: ProxyProtocol) -> Self {
        match version {
            ProxyProtocol::One => Self::One,
            ProxyProtocol::Two => Self::Two,
        }
    }
}

/// A request whose answer has values for later requests, which name them as `{{name}}` in paths, headers and bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct First {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: Payload,
    /// The values that are taken from its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub capture: Vec<Capture>,
    /// Whether later requests send the cookies that it sets.
    #[serde(default)]
    pub cookies: bool,
}

/// A file of requests. Their number may be large, so the file is read again when a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The file, as its user named it.
    pub file: String,
    /// How many requests it has.
    pub requests: u64,
    /// The SHA-256 of this file, its data and its bodies.
    pub sha256: String,
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// No body and no Content-Length.
    #[default]
    None,
    /// These bytes.
    Bytes(Bytes),
    /// This many bytes of the seeded pattern.
    Size(u64),
}

impl From<Payload> for Body {
    fn from(payload: Payload) -> Self {
        match payload {
            Payload::None => Self::None,
            Payload::Bytes(bytes) => Self::Bytes(Arc::new(bytes.0)),
            Payload::Size(size) => Self::Pattern(size),
        }
    }
}

/// What the body of a right answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Anything.
    #[default]
    Any,
    /// Anything of this length in bytes.
    Length(u64),
    /// Exactly these bytes.
    Content(Bytes),
    /// A stream with this many events.
    Events(u64),
}

impl Demand {
    /// The check that an answer meets if it is as demanded. None if anything is.
    fn as_check(&self) -> Option<Check> {
        match self {
            Self::Any => None,
            Self::Length(length) => Some(Check::of_length(*length)),
            Self::Content(bytes) => Some(Check::of_body(&bytes.0)),
            Self::Events(events) => Some(Check::of_events(*events)),
        }
    }
}

/// Bytes. In JSON they are a text with one character for each byte, so that ASCII stays readable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// The first of them, as ASCII.
    pub fn shown(&self) -> String {
        const SHOWN: usize = 60;
        let first = self.0.get(..SHOWN).unwrap_or(&self.0);
        let more = if first.len() < self.0.len() { "…" } else { "" };
        format!("{}{more}", first.escape_ascii())
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let byte = |c: char| u8::try_from(c).map_err(|_| format!("`{c}` does not stand for a byte"));
        text.chars().map(byte).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into_iter().map(char::from).collect()
    }
}

impl Ask {
    /// A GET of `path` that any 2xx answers.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Payload::None,
            expect_continue: false,
            status: None,
            compressed: false,
            stream: None,
            goal: None,
            answer: Demand::Any,
            expect: Vec::new(),
            unequal: false,
            list: None,
            first: None,
            proxy_protocol: None,
            meter: None,
        }
    }

    /// The request for a stream of the workloads `streams` and `chats`, and what the stream must be (docs/contracts.md).
    ///
    /// A gateway may add events and change ids, and says the text in JSON. So of a chat only its end is demanded, and that no
    /// event was left out; the generator demands the order of `[DONE]` itself.
    pub fn for_stream(work: &Streams) -> Self {
        let Streams { interface, events, gap_ms, event_size, .. } = work;
        let ask = |path: String, expect: &[String]| Self {
            status: Some(200),
            stream: Some(Form::Events),
            expect: expect.iter().filter_map(|check| Check::parse(check).ok()).collect(),
            ..Self::get(path)
        };
        let times = format!("gap={gap_ms}ms&size={event_size}");
        match interface {
            Interface::Events => {
                let content = format!("event={}", "x".repeat(usize::try_from(*event_size).unwrap_or(0)));
                let path = format!("/events/{events}?{times}");
                let answer = Demand::Events(*events);
                Self { answer, ..ask(path, &["event.id counts".to_owned(), content]) }
            }
            Interface::Chats => {
                let body = serde_json::json!({
                    "model": format!("narrows?events={events}&{times}"),
                    "messages": [{ "role": "user", "content": "hello" }],
                    "stream": true,
                });
                let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer narrows")];
                Self {
                    method: "POST".to_owned(),
                    headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
                    body: Payload::Bytes(Bytes(body.to_string().into_bytes())),
                    ..ask(
                        "/v1/chat/completions".to_owned(),
                        &[format!("events>{events}"), "last-event=[DONE]".to_owned()],
                    )
                }
            }
        }
    }

    /// The same request with values in place of their names.
    pub fn filled(&self, values: &Values) -> Self {
        let body = match &self.body {
            Payload::Bytes(bytes) => Payload::Bytes(Bytes(values.fill_body(&bytes.0))),
            other => other.clone(),
        };
        Self {
            path: values.fill_path(&self.path),
            headers: values.fill_headers(&self.headers),
            body,
            ..self.clone()
        }
    }

    /// The additional headers of the request.
    pub fn sent_headers(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        if self.compressed {
            answers::accept(&mut headers);
        }
        headers
    }

    /// Which answers are right.
    pub fn right(&self) -> Expect {
        if self.compressed || matches!(self.answer, Demand::Events(_)) {
            // What an expectation says itself is said of the bytes that are sent. Its checks see the decoded body, and the events.
            let demanded = self.answer.as_check();
            let checks = self.expect.iter().cloned().chain(demanded).collect();
            return Expect::meeting(self.status, checks);
        }
        let (body, length) = match &self.answer {
            Demand::Any | Demand::Events(_) => (None, None),
            Demand::Length(length) => (None, Some(*length)),
            Demand::Content(bytes) => (Some(bytes.0.clone()), None),
        };
        Expect { body, length, ..Expect::meeting(self.status, self.expect.clone()) }
    }

    /// Whether the user says what is right, so that nothing else is demanded of answers. Systems that are not compared need
    /// not answer alike.
    pub fn says_what_is_right(&self) -> bool {
        self.unequal || !self.expect.is_empty()
    }

    /// Why a system gave another answer than it should. `wrong` says what was wrong with it.
    pub fn missed(&self, wrong: &str) -> String {
        if let Some(list) = &self.list {
            return format!("its answer to a request of {} is not as expected: {wrong}", list.file);
        }
        if self.says_what_is_right() {
            return format!("its answer to {} {} is not as expected: {wrong}", self.method, self.path);
        }
        let first = match &self.answer {
            Demand::Any => String::new(),
            Demand::Length(length) => format!(" with {length} bytes"),
            Demand::Events(events) => format!(" with {events} events"),
            Demand::Content(bytes) => format!(" with {} bytes, \"{}\"", bytes.0.len(), bytes.shown()),
        };
        let status = self.status.map_or("2xx".to_owned(), |status| status.to_string());
        format!(
            "it answers {} {} otherwise than in the first look: {wrong}; at first it was {status}{first}. {VARIES}",
            self.method, self.path
        )
    }

    /// The accepted statuses.
    pub fn statuses(&self) -> Statuses {
        let checks = self.expect.iter().filter(|check| check.statuses().is_some());
        Expect::meeting(self.status, checks.cloned().collect()).status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_demanded_of_decoded_bodies_is_checked_after_decoding() {
        let plain = Ask { answer: Demand::Content(Bytes(b"ok".to_vec())), ..Ask::get("/") };
        assert_eq!((plain.right().body, plain.right().checks.len()), (Some(b"ok".to_vec()), 0));
        let ask = Ask { compressed: true, ..plain };
        let right = ask.right();
        assert_eq!((right.body, right.length), (None, None));
        let check = right.checks.first().expect("a check");
        assert_eq!(Check::parse(check.text()).expect("a check").text(), check.text());
        let holds = |body: &[u8]| {
            check.holds(&answers::Answer { head: answers::Head::default(), body, length: 2 }).is_ok()
        };
        assert!(holds(b"ok") && !holds(b"no"));
        let own = Ask { headers: vec![("accept-encoding".to_owned(), "br".to_owned())], ..ask.clone() };
        assert_eq!((ask.sent_headers().len(), own.sent_headers()), (1, own.headers.clone()));
    }

    #[test]
    fn a_stream_is_asked_for_with_its_times_and_what_it_must_be() {
        let read = |workload: systems::Workload| match workload.work(&systems::Point::new()).expect("work") {
            systems::Work::Streams(work) => Ask::for_stream(&work),
            other => panic!("{other:?}"),
        };
        let events = read(systems::Workload::Streams);
        assert_eq!((&*events.method, &*events.path), ("GET", "/events/20?gap=10ms&size=100"));
        assert_eq!((events.right().checks.len(), &events.answer), (3, &Demand::Events(20)));
        let chat = read(systems::Workload::Chats);
        let Payload::Bytes(body) = &chat.body else { panic!("{:?}", chat.body) };
        assert!(body.shown().starts_with("{"), "{}", body.shown());
        assert!(
            String::from_utf8_lossy(&body.0).contains(r#""model":"narrows?events=20&gap=10ms&size=100""#)
        );
        assert_eq!((&*chat.method, chat.right().checks.len()), ("POST", 2));
    }

    #[test]
    fn every_byte_survives_json() {
        let all = Bytes((0..=255).collect());
        let json = serde_json::to_string(&all).expect("it can be written");
        assert_eq!(serde_json::from_str::<Bytes>(&json).expect("it can be read"), all);
        assert!(serde_json::from_str::<Bytes>("\"€\"").is_err());
    }
}
