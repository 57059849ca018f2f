//! How an exchange can fail. Each failure is in exactly one class (docs/contracts.md, "Error classes"). Pure.

use std::fmt;
use std::slice::EscapeAscii;
use std::sync::Arc;
use std::time::Duration;

use answers::{Actual, Broken, Head};
use serde::{Deserialize, Serialize};
use wire::foreign;
use wire::h2::{Broken as Broken2, Code};

/// Makes the enum of classes from each one's doc comment, variant and name.
macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $name:literal,)*) => {
        /// The classes of failures. Reports, JSON and client drivers use their names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum ErrorClass {
            $($(#[$doc])* #[serde(rename = $name)] $class,)*
        }

        impl ErrorClass {
            /// The number of classes.
            pub const COUNT: usize = Self::ALL.len();
            /// All classes, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$class),*];

            /// The name of the class.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$class => $name,)*
                }
            }
        }
    };
}

classes! {
    /// The peer or the kernel refused the connection.
    ConnectRefused = "connect_refused",
    /// No connection within the timeout.
    ConnectTimeout = "connect_timeout",
    /// No connection of the pool came free within the timeout.
    PoolWait = "pool_wait",
    /// The client or its pool refused immediately, or the peer refused the request unprocessed.
    Busy = "busy",
    /// The request was sent, and no complete answer came within the timeout.
    RequestTimeout = "request_timeout",
    /// No complete answer came within the timeout, and the client library does not say whether the request was sent. Only
    /// drivers report it.
    Timeout = "timeout",
    /// Connection reset or broken pipe.
    Reset = "reset",
    /// The connection was closed before the answer was complete.
    ClosedEarly = "closed_early",
    /// The answer cannot be parsed, or there was no request for it.
    Protocol = "protocol",
    /// A status other than the one expected.
    Status = "status",
    /// The body is too short or too long, or a count does not match what was sent.
    Length = "length",
    /// The body has the right length but wrong bytes.
    WrongContent = "wrong_content",
    /// The answer to another request.
    WrongId = "wrong_id",
    /// TLS failed: the handshake, a certificate or a record.
    Tls = "tls",
    /// Anything else. The example says what.
    Other = "other",
}

impl ErrorClass {
    /// The class with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many bytes of an answer an example keeps.
const KEPT: usize = 48;
/// How many bytes of a text that the peer sends with a code.
const TOLD: usize = 40;

/// One failure: its class, and what was seen. Cheap to create, because a broken peer causes millions of them. Only the
/// first of each class is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The class of the failure.
    pub class: ErrorClass,
    /// What was seen.
    pub seen: Seen,
}

/// The evidence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Nothing beyond the class.
    Nothing,
    /// The kernel's `errno`.
    Errno(i32),
    /// The status of the answer.
    Status(u16),
    /// The status of the answer, and the beginning of the address that it leads to.
    Redirect(u16, [u8; KEPT], u8),
    /// A wrong number.
    Count {
        /// The expected number.
        expected: u64,
        /// The actual number.
        got: u64,
    },
    /// What was wrong with TLS.
    Tls(tls::Fault),
    /// The server speaks TLS where plain text was expected.
    SpeaksTls,
    /// The server speaks HTTP/1.1 where HTTP/2 was expected.
    SpeaksHttp1,
    /// What breaks a rule of HTTP/2.
    Http2(Broken2),
    /// What the peer said when it ended a stream or the connection of HTTP/2.
    Peer {
        /// In which frame.
        from: Frame,
        /// Its code.
        code: u32,
        /// The beginning of its text.
        text: [u8; TOLD],
        /// How many bytes there are.
        len: u8,
    },
    /// The connection was made, but no request can begin on it, for this reason.
    Unready(&'static str),
    /// A success before the request's body was sent.
    Early,
    /// More of something than is accepted.
    Limit {
        /// The most that is accepted.
        of: u64,
        /// Of what.
        what: &'static str,
    },
    /// The first offending bytes, and how many there are.
    Bytes([u8; KEPT], u8),
    /// A body with other content than the required one.
    Body {
        /// The place of the first byte that differs, from 0.
        at: u32,
        /// The bytes from there on.
        bytes: [u8; KEPT],
        /// How many there are.
        len: u8,
    },
    /// A check that does not hold.
    Check {
        /// Its place among the checks of the target.
        index: u32,
        /// What it found.
        found: Actual,
    },
    /// A body that cannot be decoded.
    Coding(Broken),
    /// The beginning of an event that says that something failed.
    ErrorEvent([u8; KEPT], u8),
    /// Something after the last event of a stream.
    AfterDone,
    /// A stream that ended without its last event.
    NotDone,
    /// A stream that ended in the middle of an event.
    AmidEvent,
    /// An answer that is no stream, where one was expected.
    NoStream,
    /// The answer must be a stream, and is compressed, so its pieces cannot be told apart.
    Compressed,
}

/// A frame of HTTP/2 that carries a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// RST_STREAM: one stream ends.
    ResetStream,
    /// GOAWAY: the connection ends.
    GoAway,
}

impl Frame {
    /// The name of the frame.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResetStream => "RST_STREAM",
            Self::GoAway => "GOAWAY",
        }
    }
}

impl Seen {
    /// What the peer said in a frame.
    pub(crate) fn peer(from: Frame, code: Code, said: &[u8]) -> Self {
        let mut text = [0; TOLD];
        text.iter_mut().zip(said).for_each(|(kept, byte)| *kept = *byte);
        Self::Peer { from, code: code.0, text, len: said.len().min(TOLD) as u8 }
    }

    /// Keeps the first bytes of `bytes`.
    pub fn bytes(bytes: &[u8]) -> Self {
        let (kept, len) = first(bytes);
        Self::Bytes(kept, len)
    }

    /// The status of a head, and where it leads if it has a Location.
    pub fn status(head: Head<'_>) -> Self {
        let location = || head.values("location").find(|value| !value.is_empty());
        match location().filter(|_| (300..400).contains(&head.status)) {
            Some(value) => {
                let (kept, len) = first(value);
                Self::Redirect(head.status, kept, len)
            }
            None => Self::Status(head.status),
        }
    }

    /// What a body has from its first difference to the required one on.
    pub fn body(body: &[u8], required: &[u8]) -> Self {
        let at = body.iter().zip(required).take_while(|(got, wanted)| got == wanted).count();
        let (bytes, len) = first(body.get(at..).unwrap_or_default());
        Self::Body { at: u32::try_from(at).unwrap_or(u32::MAX), bytes, len }
    }

    /// The beginning of the data of an event that says that something failed.
    pub(crate) fn error_event(data: &[u8]) -> Self {
        let (kept, len) = first(data);
        Self::ErrorEvent(kept, len)
    }

    /// Whether it shows what was received, so that no more of it is needed.
    pub(crate) fn shows_bytes(&self) -> bool {
        matches!(self, Self::Bytes(..) | Self::Body { .. } | Self::Check { .. } | Self::Coding(_))
            || matches!(
                self,
                Self::ErrorEvent(..)
                    | Self::AfterDone
                    | Self::NotDone
                    | Self::AmidEvent
                    | Self::NoStream
                    | Self::Compressed
            )
    }
}

/// The first bytes of `bytes`, and how many there are.
fn first(bytes: &[u8]) -> ([u8; KEPT], u8) {
    let mut kept = [0; KEPT];
    kept.iter_mut().zip(bytes).for_each(|(kept, byte)| *kept = *byte);
    (kept, bytes.len().min(KEPT) as u8)
}

/// So many of these bytes, as ASCII.
fn shown(kept: &[u8], len: u8) -> EscapeAscii<'_> {
    kept.get(..usize::from(len)).unwrap_or_default().escape_ascii()
}

impl Fault {
    /// A failure of this class with this evidence.
    pub fn new(class: ErrorClass, seen: Seen) -> Self {
        Self { class, seen }
    }

    /// The failure that an `errno` means for an open connection, or for one that is `connecting`.
    pub fn from_errno(errno: i32, connecting: bool) -> Self {
        let class = match errno {
            libc::ECONNREFUSED => ErrorClass::ConnectRefused,
            libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ECONNRESET | libc::EACCES if connecting => {
                ErrorClass::ConnectRefused
            }
            // The queue of a Unix socket is full.
            libc::EAGAIN if connecting => ErrorClass::ConnectRefused,
            libc::ETIMEDOUT if connecting => ErrorClass::ConnectTimeout,
            libc::ETIMEDOUT => ErrorClass::RequestTimeout,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => ErrorClass::Reset,
            _ => ErrorClass::Other,
        };
        Self::new(class, Seen::Errno(errno))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen {
            Seen::Nothing => f.write_str(self.class.name()),
            Seen::Errno(errno) => std::io::Error::from_raw_os_error(errno).fmt(f),
            Seen::Status(status) => write!(f, "status {status}"),
            Seen::Redirect(status, to, len) => {
                write!(f, "status {status} to \"{}\"", shown(&to, len))
            }
            Seen::Count { expected, got } => write!(f, "{got} where {expected} was expected"),
            Seen::Tls(fault) => fault.fmt(f),
            Seen::SpeaksTls => f.write_str("the server speaks TLS: use https://"),
            Seen::SpeaksHttp1 => f.write_str("the server speaks HTTP/1.1, and not HTTP/2: leave out --http2"),
            Seen::Http2(broken) => broken.fmt(f),
            Seen::Peer { from, code, text, len } => {
                write!(f, "{} {}", from.name(), Code(code))?;
                if len > 0 { write!(f, " \"{}\"", shown(&text, len)) } else { Ok(()) }
            }
            Seen::Unready(why) => write!(f, "the connection was made, but {why}"),
            Seen::Early => f.write_str("a success before the body of its request was sent"),
            Seen::Limit { of, what } => write!(f, "more than {of} {what}"),
            Seen::Bytes(bytes, len) => {
                write!(f, "\"{}\"", shown(&bytes, len))?;
                let first = bytes.get(..usize::from(len)).unwrap_or_default();
                match foreign::recognised(first).filter(|_| self.class == ErrorClass::Protocol) {
                    Some(protocol) => write!(f, ": the server speaks {protocol}"),
                    None => Ok(()),
                }
            }
            Seen::Body { at: 0, bytes, len } => write!(f, "the body is \"{}\"", shown(&bytes, len)),
            Seen::Body { at, bytes, len } => {
                write!(f, "the body has \"{}\" at byte {at}", shown(&bytes, len))
            }
            Seen::Check { found, .. } => found.fmt(f),
            Seen::Coding(broken) => broken.fmt(f),
            Seen::ErrorEvent(bytes, len) => write!(f, "an event of an error: \"{}\"", shown(&bytes, len)),
            Seen::AfterDone => f.write_str("an event after [DONE], which ends the stream"),
            Seen::NotDone => f.write_str("the stream ended without [DONE]"),
            Seen::AmidEvent => f.write_str("the stream ended in the middle of an event"),
            Seen::Compressed => f.write_str(
                "the answer is compressed, and events are read only in plain text: leave --compressed and Accept-Encoding out, \
                 or turn compression off in the server",
            ),
            Seen::NoStream => f.write_str("the answer is no stream: its content-type names none"),
        }
    }
}

/// The first failure of a class: what was seen, when, and on which connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What failed.
    pub fault: Fault,
    /// The text of the check that failed.
    pub check: Option<Arc<str>>,
    /// What a generator on another machine said instead of all that is shown here. The fault then has only its class.
    pub told: Option<Arc<str>>,
    /// The first bytes of what was received last, if the fault itself has none.
    pub heard: Seen,
    /// The time from the opening of the window to the failure.
    pub into_window: Duration,
    /// The number of the connection in the drive; `None` if the exchange never had one.
    pub connection: Option<usize>,
    /// The number of the exchange on that connection, from 1; `None` if the connection was not open.
    pub exchange: Option<u64>,
}

impl Example {
    /// What was seen, without when and where.
    pub fn what(&self) -> String {
        if let Some(told) = &self.told {
            return told.to_string();
        }
        let check = self.check.as_ref().map_or_else(String::new, |check| format!("{check}: "));
        let heard = match &self.heard {
            Seen::Bytes(bytes, len @ 1..) => format!(" in \"{}\"", shown(bytes, *len)),
            _ => String::new(),
        };
        format!("{check}{}{heard}", self.fault)
    }
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        if self.told.is_some() {
            return Ok(());
        }
        match (self.connection, self.exchange) {
            (Some(index), Some(exchange)) => write!(f, " (connection {index}, its exchange {exchange}")?,
            (Some(index), None) => write!(f, " (connection {index}, not open")?,
            (None, _) => write!(f, " (no connection")?,
        }
        write!(f, ", {:.3} s into the window)", self.into_window.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_name_and_its_place() {
        for (place, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
            assert_eq!(ErrorClass::from_name(class.name()), Some(class));
        }
    }

    #[test]
    fn local_errors_are_not_attributed_to_the_peer() {
        for errno in [libc::EBADF, libc::EMFILE, libc::EADDRNOTAVAIL] {
            assert_eq!(Fault::from_errno(errno, true).class, ErrorClass::Other);
        }
        assert_eq!(Fault::from_errno(libc::ECONNREFUSED, true).class, ErrorClass::ConnectRefused);
        assert_eq!(Fault::from_errno(libc::ETIMEDOUT, true).class, ErrorClass::ConnectTimeout);
        assert_eq!(Fault::from_errno(libc::ECONNRESET, false).class, ErrorClass::Reset);
    }

    #[test]
    fn offending_bytes_are_shown_without_control_characters() {
        let fault = Fault::new(ErrorClass::Protocol, Seen::bytes(b"\0\x1b[31mHTTP"));
        assert_eq!(fault.to_string(), "\"\\x00\\x1b[31mHTTP\"");
        let ssh = Fault::new(ErrorClass::Protocol, Seen::bytes(b"SSH-2.0-x\r\n"));
        assert_eq!(ssh.to_string(), "\"SSH-2.0-x\\r\\n\": the server speaks SSH");
    }

    #[test]
    fn an_example_has_its_bytes_its_time_and_its_connection() {
        let example = Example {
            fault: Fault::new(ErrorClass::Status, Seen::Status(500)),
            check: None,
            told: None,
            heard: Seen::bytes(b"HTTP/1.1 500 No\r\n"),
            into_window: Duration::from_millis(1234),
            connection: Some(7),
            exchange: Some(101),
        };
        assert_eq!(
            example.to_string(),
            "status 500 in \"HTTP/1.1 500 No\\r\\n\" (connection 7, its exchange 101, 1.234 s into the window)"
        );
        let nowhere = Example { heard: Seen::Nothing, connection: None, exchange: None, ..example };
        assert_eq!(nowhere.to_string(), "status 500 (no connection, 1.234 s into the window)");
        let seen = Seen::Check { index: 0, found: Actual::Missing };
        let fault = Fault::new(ErrorClass::WrongContent, seen);
        let checked = Example { fault, check: Some("json.a=1".into()), ..nowhere };
        assert_eq!(checked.to_string(), "json.a=1: it is missing (no connection, 1.234 s into the window)");
    }

    /// Every reply has room for a fault, so it must not grow.
    #[test]
    fn a_fault_is_small() {
        assert!(size_of::<Fault>() <= 64, "{}", size_of::<Fault>());
    }
}
