//! The endpoints: what is answered, whatever the version of HTTP.

use std::time::Duration;

use crate::stream::Script;

/// The longest body that `/echo` accepts and `/bytes` sends, in bytes.
const ECHO_LIMIT: usize = 16 * 1024 * 1024;
/// The longest `/wait`, if the patience is not shorter.
const WAIT_LIMIT: Duration = Duration::from_secs(3600);

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
    /// None: refused with this status.
    Refused(u16),
}

impl Route {
    /// The endpoint of a path, with its query, for a peer that may be let wait for `patience`.
    pub(crate) fn of(path: &[u8], patience: Duration) -> Self {
        if let Some(script) = Script::of(path) {
            return script.map_or(Self::Refused(400), |script| Self::Stream(Box::new(script)));
        }
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        match path {
            b"/" => Self::Hello,
            b"/echo" => Self::Echo(Vec::new()),
            b"/upload" => Self::Upload,
            b"/v1/chat/completions" => Self::Chat(Vec::new()),
            _ => match (path.strip_prefix(b"/wait/"), path.strip_prefix(b"/bytes/")) {
                (Some(wait), _) => {
                    let longest = WAIT_LIMIT.min(patience);
                    let wait = number(wait).map(Duration::from_millis).filter(|wait| *wait <= longest);
                    wait.map_or(Self::Refused(400), Self::Wait)
                }
                (_, Some(count)) => {
                    let count = number(count).filter(|count| *count <= ECHO_LIMIT as u64);
                    count.map_or(Self::Refused(400), |count| Self::Bytes(count as usize))
                }
                _ => Self::Refused(404),
            },
        }
    }

    /// Takes bytes of the request's body, of which `room` may be kept.
    pub(crate) fn add(&mut self, data: &[u8], room: usize) {
        if let Self::Echo(held) | Self::Chat(held) = self {
            if held.len() + data.len() > ECHO_LIMIT {
                *self = Self::Refused(413);
            } else if data.len() > room {
                *self = Self::Refused(503);
            } else {
                held.extend_from_slice(data);
            }
        }
    }

    /// Refuses a request whose answer takes more than `room` bytes of memory, besides what it has sent.
    pub(crate) fn limit(&mut self, room: usize) {
        if matches!(self, Self::Bytes(count) if *count > room) {
            *self = Self::Refused(503);
        }
    }

    /// How many bytes of the request are kept.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Echo(held) | Self::Chat(held) => held.len(),
            _ => 0,
        }
    }

    /// The script of the answer. None if none times it. A chat that cannot be read is refused.
    pub(crate) fn script(&mut self) -> Option<Box<Script>> {
        match std::mem::replace(self, Self::Refused(400)) {
            Self::Stream(script) => Some(script),
            Self::Chat(body) => {
                let script = Script::of_chat(&body).ok()?;
                if script.weight() > ECHO_LIMIT as u64 {
                    *self = Self::Refused(413);
                    return None;
                }
                Some(Box::new(script))
            }
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
            Self::Refused(status) => (status, Vec::new()),
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
