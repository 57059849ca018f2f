//! The endpoints: what is answered, whatever the version of HTTP.

use std::time::Duration;

use crate::stream::Script;

/// The longest body that `/echo` accepts and `/bytes` sends, in bytes.
const ECHO_LIMIT: usize = 16 * 1024 * 1024;
/// The longest `/wait`, if the patience is not shorter.
const WAIT_LIMIT: Duration = Duration::from_secs(3600);

/// Why a request is refused with 400: the body of the answer.
mod why {
    pub(super) const WAIT: &str = "a wait is a number of milliseconds, at most 3600000\n";
    pub(super) const BYTES: &str = "a size is a number of bytes, at most 16777216\n";
    pub(super) const STREAM: &str = "a stream has a number of pieces, at most 10000000, and in its query first, gap and stall (such as 10ms, \
        at most 3600s), every (from 1) and size (at most 1048576)\n";
    pub(super) const CHAT: &str = "a chat is the JSON of an OpenAI request, and its model names nothing but events, reasoning, first, gap, \
        stall, every and size (such as narrows?events=20&gap=10ms)\n";
    pub(super) const SILENCE: &str =
        "this answer has a silence that is longer than the patience of the server (--patience)\n";
}

/// The endpoint that a request addresses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route {
    Hello,
    Echo(Vec<u8>),
    Upload,
    /// So many bytes of the pattern.
    Bytes(usize),
    Wait(Duration),
    Stream(Box<Script>),
    /// With the request's body so far.
    Chat(Vec<u8>),
    /// None: refused with this status and this body.
    Refused(u16, &'static str),
}

impl Route {
    /// The endpoint of a path, with its query.
    pub(crate) fn of(path: &[u8]) -> Self {
        if let Some(script) = Script::of(path) {
            return script.map_or(Self::Refused(400, why::STREAM), |script| Self::Stream(Box::new(script)));
        }
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        match path {
            b"/" => Self::Hello,
            b"/echo" => Self::Echo(Vec::new()),
            b"/upload" => Self::Upload,
            b"/v1/chat/completions" => Self::Chat(Vec::new()),
            _ => match (path.strip_prefix(b"/wait/"), path.strip_prefix(b"/bytes/")) {
                (Some(wait), _) => {
                    let wait = number(wait).map(Duration::from_millis).filter(|wait| *wait <= WAIT_LIMIT);
                    wait.map_or(Self::Refused(400, why::WAIT), Self::Wait)
                }
                (_, Some(count)) => {
                    let count = number(count).filter(|count| *count <= ECHO_LIMIT as u64);
                    count.map_or(Self::Refused(400, why::BYTES), |count| Self::Bytes(count as usize))
                }
                _ => Self::Refused(404, ""),
            },
        }
    }

    /// Takes bytes of the request's body, of which `room` may be kept.
    pub(crate) fn add(&mut self, data: &[u8], room: usize) {
        if let Self::Echo(held) | Self::Chat(held) = self {
            if held.len() + data.len() > ECHO_LIMIT {
                *self = Self::Refused(413, "");
            } else if data.len() > room {
                *self = Self::Refused(503, "");
            } else {
                held.extend_from_slice(data);
            }
        }
    }

    /// Refuses a request whose answer takes more than `room` bytes of memory, besides what it has sent.
    pub(crate) fn limit(&mut self, room: usize) {
        if matches!(self, Self::Bytes(count) if *count > room) {
            *self = Self::Refused(503, "");
        }
    }

    /// How many bytes of the request are kept.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Echo(held) | Self::Chat(held) => held.len(),
            _ => 0,
        }
    }

    /// Ends the request. A chat becomes its script. An answer in which the peer would wait for longer than `patience` is refused: it
    /// would hold its connection for as long as the peer likes. Returns how many bytes the answer may hold at once, if a script times it.
    pub(crate) fn complete(&mut self, patience: Duration) -> usize {
        if let Self::Chat(body) = self {
            *self = match Script::of_chat(body) {
                Err(()) => Self::Refused(400, why::CHAT),
                Ok(script) if script.weight() > ECHO_LIMIT as u64 => Self::Refused(413, ""),
                Ok(script) => Self::Stream(Box::new(script)),
            };
        }
        let silence = match self {
            Self::Wait(wait) => *wait,
            Self::Stream(script) => script.silence(),
            _ => Duration::ZERO,
        };
        if silence > patience {
            *self = Self::Refused(400, why::SILENCE);
        }
        match self {
            Self::Stream(script) => script.weight() as usize,
            _ => 0,
        }
    }

    /// The script of the answer to a complete request. None if none times it.
    pub(crate) fn script(&mut self) -> Option<Box<Script>> {
        match std::mem::replace(self, Self::Hello) {
            Self::Stream(script) => Some(script),
            other => {
                *self = other;
                None
            }
        }
    }

    /// How long the answer waits.
    pub(crate) fn wait(&self) -> Duration {
        if let Self::Wait(wait) = self { *wait } else { Duration::ZERO }
    }

    /// The status and the body of the answer to a request whose body had `received` bytes.
    pub(crate) fn answer(self, received: u64) -> (u16, Vec<u8>) {
        match self {
            Self::Hello | Self::Wait(_) => (200, b"ok".to_vec()),
            Self::Echo(held) => (200, held),
            Self::Upload => (200, received.to_string().into_bytes()),
            Self::Bytes(count) => (200, wire::pattern::block(count as u64, count)),
            Self::Refused(status, why) => (status, why.into()),
            // A script has answered these.
            Self::Stream(_) | Self::Chat(_) => (400, Vec::new()),
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    all_digits.then_some(number)
}
