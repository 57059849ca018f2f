//! Asks a server once whether it serves: it accepts a connection, or answers a GET with 200.
//!
//! The GET is written by hand, because readiness must not depend on the codec that the measurement uses.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tls::Dialing;

use crate::contact::{Access, Contact};
use crate::listening::Listening;

/// How often a wait checks whether it is over.
const GLANCE: Duration = Duration::from_millis(50);

/// How a server is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// How it is spoken to in TLS.
    pub tls: Option<&'a Dialing>,
    /// Whether it is spoken to in HTTP/2.
    pub http2: bool,
    /// The path of the GET. None if it need only accept a connection.
    pub path: Option<&'a str>,
}

/// Makes one attempt at the first of these addresses that accepts a connection, and returns it. The error says what happened
/// instead. Ends soon after `over` returns true.
pub(crate) fn ask(
    addresses: &[SocketAddr],
    Asking { tls, http2, path }: Asking<'_>,
    deadline: Instant,
    over: &dyn Fn() -> bool,
) -> Result<SocketAddr, String> {
    let mut refused = None;
    for address in addresses {
        // Whether it accepts a connection shows without TLS.
        let plain = Access::plain(&Listening::Address(*address));
        match Contact::open(&plain, patience(deadline)) {
            Err(why) => _ = refused.get_or_insert(why.to_string()),
            Ok(contact) => {
                let Some(path) = path else { return Ok(*address) };
                let access = Access { tls: tls.cloned(), http2, ..plain };
                let contact = match access.tls.is_some() || http2 {
                    false => contact,
                    true => Contact::open(&access, patience(deadline)).map_err(|e| e.to_string())?,
                };
                return answers(contact, &access, path, deadline, over).map(|()| *address);
            }
        }
    }
    Err(refused.unwrap_or_default())
}

/// How long one attempt may take.
pub(crate) fn patience(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .clamp(Duration::from_millis(1), GLANCE.saturating_mul(10))
}

fn answers(
    mut contact: Contact,
    access: &Access,
    path: &str,
    deadline: Instant,
    over: &dyn Fn() -> bool,
) -> Result<(), String> {
    let host = access.host();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    contact.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    let head = read_head(&mut contact, deadline, over)?;
    match head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)) {
        Some("200") => Ok(()),
        Some(status) => Err(format!("answered with status {}", status.chars().take(20).collect::<String>())),
        None => Err("answered with something other than HTTP".to_owned()),
    }
}

/// Reads the status line of the answer, without the line end.
#[expect(
    clippy::indexing_slicing,
    reason = "a read fills in no more than the buffer has, and the end of the line is found in the head"
)]
fn read_head(contact: &mut Contact, deadline: Instant, over: &dyn Fn() -> bool) -> Result<String, String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() < 8192 {
        match contact.read_within(&mut buffer, GLANCE) {
            Ok(0) => return Err("closed the connection without an answer".to_owned()),
            Ok(n) => head.extend_from_slice(&buffer[..n]),
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e.to_string()),
        }
        if let Some(end) = head.iter().position(|byte| *byte == b'\n') {
            return Ok(String::from_utf8_lossy(&head[..end]).trim_end().to_owned());
        }
        if over() || Instant::now() >= deadline {
            return Err("accepted the connection, but did not answer".to_owned());
        }
    }
    Err("answered with something other than HTTP".to_owned())
}
