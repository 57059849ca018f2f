//! What is driven: an address and the traffic to send. Pure, except for the name lookup in [`resolve`].

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use answers::{Check, Statuses, Subject};
use reactor::Address;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::fault::{Fault, Seen};
use crate::goal::Goal;
use crate::list::List;
use crate::stream::Form;

/// An address and the traffic to send to it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address.
    pub address: Address,
    /// The traffic.
    pub traffic: Traffic,
}

impl Target {
    /// The text of the check that failed.
    pub(crate) fn check(&self, fault: &Fault) -> Option<Arc<str>> {
        let (Seen::Check { index, .. }, Traffic::Http(http)) = (&fault.seen, &self.traffic) else {
            return None;
        };
        // The checks of single requests have the numbers after those of all.
        let listed = http.list.iter().flat_map(|list| list.expects()).flat_map(|expect| &expect.checks);
        http.expect.checks.iter().chain(listed).nth(*index as usize).map(|check| Arc::clone(check.text()))
    }
}

/// The traffic to send.
#[derive(Debug, Clone)]
pub enum Traffic {
    /// Requests of HTTP/1.1 or HTTP/2.
    Http(Http),
    /// A stream of length-prefixed frames per connection.
    Frames(FrameStream),
}

/// HTTP requests. They are identical, unless there is a list.
#[derive(Debug, Clone)]
pub struct Http {
    /// The method.
    pub method: String,
    /// The value of `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Additional headers. They replace default headers of the same name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// Whether to speak HTTP/2: without TLS by prior knowledge, with TLS by its name in ALPN.
    pub http2: bool,
    /// What is allowed to a peer of HTTP/2.
    pub allowance: Allowance,
    /// Whether connections are kept. If false, each request has its own connection and says `Connection: close`.
    pub keep_alive: bool,
    /// Whether to wait for `100 Continue` before the body, for at most a second.
    pub expect_continue: bool,
    /// Whether each request carries an `x-request-id` that the answer must repeat.
    pub ids: bool,
    /// Which answers are successes.
    pub expect: Expect,
    /// The requests to send instead of the one that this describes.
    pub list: Option<Arc<List>>,
    /// How to speak TLS; `None` for plain text.
    pub tls: Option<Arc<tls::Dialing>>,
    /// Whether compressed answers are decoded before they are checked.
    pub decode: bool,
    /// How the pieces of every answer are told apart; `None` if its type says whether it is a stream.
    pub stream: Option<Form>,
    /// The limits of the times of good answers, if they are counted.
    pub goal: Option<Arc<Goal>>,
    /// The most bytes of an answer's body, as it is sent and decoded. A longer one is a failure, so that an endless one ends.
    pub max_answer: u64,
}

/// What the generator allows a peer of HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// The window of each stream: the bytes that the peer may send on it before it is allowed more.
    pub window: u32,
    /// The size of the table of HPACK that the peer may use for the heads of its answers, in bytes.
    pub table: u32,
}

impl Allowance {
    /// The largest window of HTTP/2.
    pub const LARGEST_WINDOW: u32 = wire::h2::LARGEST_WINDOW;
    /// The largest table. Each connection may keep so much.
    pub const LARGEST_TABLE: u32 = 64 * 1024;
    /// As large as that of h2load, so that no peer waits for the generator.
    pub const WINDOW: u32 = (1 << 30) - 1;
    /// The size of RFC 7541.
    pub const TABLE: u32 = wire::h2::TABLE as u32;

    /// Whether both values are possible.
    pub(crate) fn is_possible(self) -> bool {
        (1..=Self::LARGEST_WINDOW).contains(&self.window) && self.table <= Self::LARGEST_TABLE
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self { window: Self::WINDOW, table: Self::TABLE }
    }
}

impl Http {
    /// The usual limit of an answer's body: 1 GB.
    pub const MAX_ANSWER: u64 = 1_000_000_000;
    /// The usual limit if whole bodies are kept: 64 MiB.
    pub const MAX_KEPT: u64 = 64 << 20;

    /// A plain GET on kept connections; every 2xx answer is a success.
    pub fn get(host: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            host: host.into(),
            path: path.into(),
            headers: Vec::new(),
            body: Body::None,
            http2: false,
            allowance: Allowance::default(),
            keep_alive: true,
            expect_continue: false,
            ids: false,
            expect: Expect::default(),
            list: None,
            tls: None,
            decode: false,
            stream: None,
            goal: None,
            max_answer: Self::MAX_ANSWER,
        }
    }

    /// Whether answers are known to be streams before one has come.
    pub(crate) fn is_streamed(&self) -> bool {
        let mut checks = self.expect.checks.iter();
        self.stream.is_some() || self.goal.is_some() || checks.any(|check| check.subject() == Subject::Stream)
    }

    /// The usual limit of an answer's body.
    pub fn usual_limit(&self) -> u64 {
        let mut listed = self.list.iter().flat_map(|list| list.expects());
        let reads = self.expect.reads_bodies() || listed.any(Expect::reads_bodies);
        if self.decode || reads { Self::MAX_KEPT } else { Self::MAX_ANSWER }
    }
}

/// A request's body.
#[derive(Debug, Clone)]
pub enum Body {
    /// No body and no Content-Length.
    None,
    /// These bytes.
    Bytes(Arc<Vec<u8>>),
    /// This many bytes of the seeded pattern, which is never in memory as a whole.
    Pattern(u64),
}

impl Body {
    /// The length in bytes; `None` without a body.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Pattern(len) => Some(*len),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len().unwrap_or(0) == 0
    }
}

/// Which answers are successes. What is required of the body and its length is required of the bytes that are sent; checks
/// see the decoded body.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// The accepted statuses.
    pub status: Statuses,
    /// The required body; `None` accepts any.
    pub body: Option<Vec<u8>>,
    /// The required length of the body; `None` accepts any.
    pub length: Option<u64>,
    /// Further checks. The status is checked by `status` alone.
    pub checks: Vec<Check>,
}

impl Expect {
    /// Status 200 and exactly this body.
    pub fn exactly(body: impl Into<Vec<u8>>) -> Self {
        Self { status: Statuses::exactly(200), body: Some(body.into()), ..Self::default() }
    }

    /// Why no answer can be right.
    pub fn contradiction(&self) -> Option<&'static str> {
        self.status.is_empty().then_some("the checks of the status leave no status that is accepted")
    }

    /// Answers with this status that meet all these checks. Without a status and a check of it, any 2xx is accepted.
    pub fn meeting(status: Option<u16>, checks: Vec<Check>) -> Self {
        let statuses = checks.iter().filter_map(Check::statuses);
        let statuses = statuses.chain(status.map(Statuses::exactly));
        Self { status: statuses.reduce(Statuses::and).unwrap_or_default(), checks, ..Self::default() }
    }

    /// What the answers to a request must be that has these checks of its own: what they say of the status, or else what this
    /// says, and all checks together.
    ///
    /// # Errors
    /// A text is no check, or no answer can be right.
    pub fn besides(&self, texts: &[String]) -> Result<Self, String> {
        let own = texts.iter().map(|text| Check::parse(text).map_err(|error| format!("{text:?}: {error}")));
        let own = Self::meeting(None, own.collect::<Result<_, _>>()?);
        if let Some(why) = own.contradiction() {
            return Err(why.to_owned());
        }
        let says_status = own.checks.iter().any(|check| check.statuses().is_some());
        let status = if says_status { own.status } else { self.status };
        let checks = self.checks.iter().cloned().chain(own.checks).collect();
        Ok(Self { status, checks, ..self.clone() })
    }

    /// The bytes of the body of every right answer, if they are given.
    pub fn body_length(&self) -> Option<u64> {
        self.body.as_ref().map(|body| body.len() as u64).or(self.length)
    }

    /// Whether a check looks at whole bodies.
    pub fn reads_bodies(&self) -> bool {
        self.checks.iter().any(|check| check.subject() == Subject::Body)
    }
}

/// A stream of identical frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameStream {
    /// Payload bytes per frame.
    pub size: u64,
    /// The size of the length prefix.
    pub prefix: wire::frames::Prefix,
    /// Total number of frames, spread over the connections; `None` sends until the time is over.
    pub count: Option<u64>,
}

/// The parts of a target's URL: `http://host:port/path`, `https://host:port/path` or `frames://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The scheme: `http`, `https` or `frames`.
    pub scheme: String,
    /// The host's name or address.
    pub host: String,
    /// The port; by default 80 for http and 443 for https.
    pub port: u16,
    /// Path and query; at least `/`.
    pub path: String,
}

impl Url {
    /// Parses a target.
    ///
    /// # Errors
    /// [`LoadError::Target`] says which part is missing or wrong.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        // A password is not shown.
        let shown = text.rsplit_once('@').map_or(text, |(_, after)| after);
        let wrong = |why: &str| LoadError::Target { target: shown.to_owned(), why: why.to_owned() };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("it must begin with http://, https:// or frames://"))?;
        if !["http", "https", "frames"].contains(&scheme) {
            return Err(wrong(&format!("the scheme must be http, https or frames, not {scheme:?}")));
        }
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if scheme == "frames" && path != "/" {
            return Err(wrong("frames:// takes host:port only"));
        }
        if authority.contains('@') {
            return Err(wrong("the host must be a name or an address, without user or password"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?)
            }
            _ => match usual_port(scheme) {
                Some(port) => (authority, port),
                None => return Err(wrong("frames:// needs a port: frames://127.0.0.1:4000")),
            },
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        if let Some(why) = bracketed_wrongly(host) {
            return Err(wrong(why));
        }
        Ok(Self { scheme: scheme.to_owned(), host: host.to_owned(), port, path })
    }

    /// The value of `Host`: without the port if it is the scheme's usual one.
    pub fn authority(&self) -> String {
        if usual_port(&self.scheme) == Some(self.port) {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// What is wrong with the brackets of a host. Only an address of IPv6 has them, because it contains colons.
fn bracketed_wrongly(host: &str) -> Option<&'static str> {
    let inner = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']'));
    let is_v6 = inner.is_some_and(|inner| inner.contains(':'));
    match (host.starts_with('['), is_v6) {
        (true, true) => None,
        (false, false) if !host.contains([']', '[']) => None,
        _ => Some("an address of IPv6 is written in brackets: [::1]"),
    }
}

fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// The addresses of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The one to drive.
    pub address: SocketAddr,
    /// The others.
    pub others: Vec<IpAddr>,
}

/// A host as it is in a URL, without the brackets of an address of IPv6.
pub fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Resolves a host, which must be this machine unless `remote` is true.
///
/// # Errors
/// The name has no address, or the address is not loopback and `remote` is false.
pub fn resolve(host: &str, port: u16, remote: bool) -> Result<Resolved, LoadError> {
    let mut found: Vec<SocketAddr> = (bare(host), port)
        .to_socket_addrs()
        .map_err(|error| LoadError::Resolve { host: host.to_owned(), why: error.to_string() })?
        .collect();
    // Prefer IPv4: `localhost` may name both, and most servers listen on 127.0.0.1 alone.
    found.sort_by_key(|address| !address.is_ipv4());
    let address = *found
        .first()
        .ok_or_else(|| LoadError::Resolve { host: host.to_owned(), why: "it has no address".to_owned() })?;
    if !address.ip().is_loopback() && !remote {
        return Err(LoadError::Remote { address });
    }
    let mut others: Vec<IpAddr> = Vec::new();
    for ip in found.iter().map(SocketAddr::ip).filter(|ip| *ip != address.ip()) {
        if !others.contains(&ip) {
            others.push(ip);
        }
    }
    Ok(Resolved { address, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        let table = [
            ("http://127.0.0.1:8080/a?b=c", ("http", "127.0.0.1", 8080, "/a?b=c")),
            ("http://localhost", ("http", "localhost", 80, "/")),
            ("http://h?q", ("http", "h", 80, "/?q")),
            ("http://[::1]:9/", ("http", "[::1]", 9, "/")),
            ("http://[::1]/x#y", ("http", "[::1]", 80, "/x")),
            ("https://localhost/a", ("https", "localhost", 443, "/a")),
            ("frames://127.0.0.1:4000", ("frames", "127.0.0.1", 4000, "/")),
        ];
        for (text, (scheme, host, port, path)) in table {
            let url = Url::parse(text).expect(text);
            assert_eq!(
                (&*url.scheme, &*url.host, url.port, &*url.path),
                (scheme, host, port, path),
                "{text}"
            );
        }
    }

    #[test]
    fn broken_targets_say_what_is_wrong() {
        let table = [
            ("127.0.0.1:80", "begin with http://"),
            ("ftp://x", "not \"ftp\""),
            ("http://x:0/", "1 to 65535"),
            ("http://x:99999/", "1 to 65535"),
            ("http://:80/", "host is missing"),
            ("http://u:secret@x/", "without user"),
            ("frames://x", "needs a port"),
            ("frames://x:1/path", "host:port only"),
            ("http://::1:80/", "in brackets"),
            ("http://::1/", "in brackets"),
            ("http://[::1/", "in brackets"),
            ("http://[localhost]:80/", "in brackets"),
            ("http://::1]:80/", "in brackets"),
            ("http://[]:80/", "in brackets"),
        ];
        for (text, why) in table {
            let error = Url::parse(text).expect_err(text).to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn only_this_machine_unless_allowed() {
        assert!(resolve("127.0.0.1", 80, false).is_ok());
        assert!(resolve("[::1]", 80, false).is_ok());
        assert!(matches!(resolve("192.0.2.1", 80, false), Err(LoadError::Remote { .. })));
        assert!(resolve("192.0.2.1", 80, true).is_ok());
        let localhost = resolve("localhost", 80, false).expect("an address");
        assert_eq!(localhost.address.port(), 80);
        assert!(localhost.others.iter().all(|other| *other != localhost.address.ip()));
    }
}
