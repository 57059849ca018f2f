//! Asks a server once whether it serves: it accepts a connection, or answers a GET with 200.
//!
//! The GET is written by hand, because readiness must not depend on the codec that the measurement uses.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How often a wait checks whether it is over.
const GLANCE: Duration = Duration::from_millis(50);

/// Makes one attempt at the first of these addresses that accepts a connection, and returns it. The error says what happened
/// instead. Ends soon after `over` returns true.
pub(crate) fn ask(
    addresses: &[SocketAddr],
    http: Option<&str>,
    deadline: Instant,
    over: &dyn Fn() -> bool,
) -> Result<SocketAddr, String> {
    let mut refused = None;
    for address in addresses {
        match connect(*address, deadline) {
            Ok(stream) => return answers(stream, *address, http, deadline, over).map(|()| *address),
            Err(why) => _ = refused.get_or_insert(why),
        }
    }
    Err(refused.unwrap_or_default())
}

fn connect(address: SocketAddr, deadline: Instant) -> Result<TcpStream, String> {
    let patience =
        deadline.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), 10 * GLANCE);
    let stream = TcpStream::connect_timeout(&address, patience).map_err(|e| e.to_string())?;
    // The kernel may choose this very port as the local one. TCP then connects to itself.
    match stream.local_addr().is_ok_and(|local| local == address) {
        true => Err("nothing listened".to_owned()),
        false => Ok(stream),
    }
}

fn answers(
    mut stream: TcpStream,
    address: SocketAddr,
    http: Option<&str>,
    deadline: Instant,
    over: &dyn Fn() -> bool,
) -> Result<(), String> {
    let Some(path) = http else { return Ok(()) };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let timeouts =
        stream.set_read_timeout(Some(GLANCE)).and_then(|()| stream.set_write_timeout(Some(GLANCE)));
    timeouts.and_then(|()| stream.write_all(request.as_bytes())).map_err(|e| e.to_string())?;
    let head = read_head(&mut stream, deadline, over)?;
    match head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)) {
        Some("200") => Ok(()),
        Some(status) => Err(format!("answered with status {}", status.chars().take(20).collect::<String>())),
        None => Err("answered with something other than HTTP".to_owned()),
    }
}

/// Reads the status line of the answer, without the line end.
fn read_head(stream: &mut TcpStream, deadline: Instant, over: &dyn Fn() -> bool) -> Result<String, String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() < 8192 {
        match stream.read(&mut buffer) {
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
