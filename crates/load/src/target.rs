//! What is driven: an address plus what is sent to it. Pure, but for the name look-up in [`resolve`].

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use crate::error::LoadError;

/// An address plus what is sent to it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where.
    pub address: SocketAddr,
    /// What.
    pub traffic: Traffic,
}

/// What is sent.
#[derive(Debug, Clone)]
pub enum Traffic {
    /// HTTP/1.1 requests.
    Http(Http),
    /// A stream of length-prefixed frames per connection.
    Frames(Frames),
}

/// HTTP requests, all alike.
#[derive(Debug, Clone)]
pub struct Http {
    /// The method.
    pub method: String,
    /// The value of `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Headers beside the usual ones, which they replace.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// False: one request per connection, with `Connection: close`.
    pub keep_alive: bool,
    /// Wait for `100 Continue` before the body (at most a second).
    pub expect_continue: bool,
    /// Give each request an `x-request-id` and demand it back.
    pub ids: bool,
    /// Which answers are successes.
    pub expect: Expect,
}

impl Http {
    /// A plain GET on connections that are kept; every 2xx is a success.
    pub fn get(host: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            host: host.into(),
            path: path.into(),
            headers: Vec::new(),
            body: Body::None,
            keep_alive: true,
            expect_continue: false,
            ids: false,
            expect: Expect::default(),
        }
    }
}

/// A request's body.
#[derive(Debug, Clone)]
pub enum Body {
    /// None, and no Content-Length.
    None,
    /// These bytes.
    Bytes(Arc<Vec<u8>>),
    /// This many bytes of the seeded pattern; never held as a whole.
    Pattern(u64),
}

impl Body {
    /// Its length in bytes; `None` without a body.
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

/// Which answers are successes.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// Exactly this status; `None`: any 2xx.
    pub status: Option<u16>,
    /// Exactly this body; `None`: any.
    pub body: Option<Vec<u8>>,
}

impl Expect {
    /// 200 with this body, byte by byte.
    pub fn exactly(body: impl Into<Vec<u8>>) -> Self {
        Self { status: Some(200), body: Some(body.into()) }
    }
}

/// A stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Payload bytes of each.
    pub size: u64,
    /// Bytes of the length before each: 1, 2 or 4.
    pub prefix: wire::frames::Prefix,
    /// Frames in all, spread over the connections; `None`: until the time is over.
    pub count: Option<u64>,
}

/// The parts of a target as it is written: `http://host:port/path` or `frames://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `http` or `frames`.
    pub scheme: String,
    /// Name or address.
    pub host: String,
    /// Port; 80 for http when it is not written.
    pub port: u16,
    /// Path and query, `/` at least.
    pub path: String,
}

impl Url {
    /// Takes a target apart.
    ///
    /// # Errors
    /// [`LoadError::Target`] says which part is missing or wrong.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let wrong = |why: &str| LoadError::Target { target: text.to_owned(), why: why.to_owned() };
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("it begins with http:// or frames://"))?;
        if !["http", "frames"].contains(&scheme) {
            return Err(wrong(&format!("the scheme is http or frames, not {scheme:?}")));
        }
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if scheme == "frames" && path != "/" {
            return Err(wrong("frames:// takes host:port only"));
        }
        if authority.contains('@') {
            return Err(wrong("the host is a name or an address, without user or password"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or_else(|| wrong("the port is a number from 1 to 65535"))?)
            }
            _ if scheme == "http" => (authority, 80),
            _ => return Err(wrong("frames:// needs a port: frames://127.0.0.1:4000")),
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        Ok(Self { scheme: scheme.to_owned(), host: host.to_owned(), port, path })
    }

    /// What `Host` says: the port is left out when it is 80.
    pub fn authority(&self) -> String {
        if self.port == 80 { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

/// The address of a host, which must be this machine unless `remote` is allowed.
///
/// # Errors
/// The name has no address, or it is not a loopback address and `remote` is false.
pub fn resolve(host: &str, port: u16, remote: bool) -> Result<SocketAddr, LoadError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut found: Vec<SocketAddr> = (bare, port)
        .to_socket_addrs()
        .map_err(|error| LoadError::Resolve { host: host.to_owned(), why: error.to_string() })?
        .collect();
    // Servers that listen on 127.0.0.1 alone are the rule where `localhost` names both.
    found.sort_by_key(|address| !address.is_ipv4());
    let address = *found
        .first()
        .ok_or_else(|| LoadError::Resolve { host: host.to_owned(), why: "it has no address".to_owned() })?;
    let loopback = match address.ip() {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_loopback(),
    };
    if !loopback && !remote {
        return Err(LoadError::Remote { address });
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_apart() {
        let table = [
            ("http://127.0.0.1:8080/a?b=c", ("http", "127.0.0.1", 8080, "/a?b=c")),
            ("http://localhost", ("http", "localhost", 80, "/")),
            ("http://h?q", ("http", "h", 80, "/?q")),
            ("http://[::1]:9/", ("http", "[::1]", 9, "/")),
            ("http://[::1]/x#y", ("http", "[::1]", 80, "/x")),
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
            ("127.0.0.1:80", "begins with http://"),
            ("https://x", "not \"https\""),
            ("http://x:0/", "1 to 65535"),
            ("http://x:99999/", "1 to 65535"),
            ("http://:80/", "host is missing"),
            ("http://u:p@x/", "without user"),
            ("frames://x", "needs a port"),
            ("frames://x:1/path", "host:port only"),
        ];
        for (text, why) in table {
            let error = Url::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_this_machine_unless_allowed() {
        assert!(resolve("127.0.0.1", 80, false).is_ok());
        assert!(resolve("[::1]", 80, false).is_ok());
        assert!(matches!(resolve("192.0.2.1", 80, false), Err(LoadError::Remote { .. })));
        assert!(resolve("192.0.2.1", 80, true).is_ok());
    }
}
