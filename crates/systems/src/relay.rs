//! A relay between Narrows and a server, which shows in the trace what the equal-work check sends and gets. Exists only while a
//! trace is written.
//!
//! Knows sockets. Passes all bytes on and judges none.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::contact::Socket;
use crate::listening::Listening;
use crate::trace;

/// A relay that listens. Dropping it accepts no more connections; those that are open last until both ends close.
pub struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// How often the relay looks for connections, and how long it may take to reach the server.
const GLANCE: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(5);

impl Relay {
    /// A relay to this server.
    ///
    /// # Errors
    /// There is no port for it.
    pub fn to(server: &Listening) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let (server, ended) = (server.clone(), Arc::clone(&over));
        let accepting = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((client, _)) => {
                        if let Err(error) = join(client, &server) {
                            trace::say(|| format!("the trace's own relay: {error}"));
                        }
                    }
                    Err(_) => thread::sleep(GLANCE),
                }
            }
        });
        Ok(Self { address, over, accepting: Some(accepting) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// Joins a connection with a new one to the server.
fn join(client: TcpStream, server: &Listening) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_nodelay(true)?;
    let client = Socket::Tcp(client);
    let server = Socket::connect(server, PATIENCE)?;
    let (from_client, from_server) = (client.twin()?, server.twin()?);
    thread::spawn(move || pass(from_client, server, "sent"));
    thread::spawn(move || pass(from_server, client, "got"));
    Ok(())
}

/// Passes bytes on until one end closes, and traces the first.
#[expect(clippy::indexing_slicing, reason = "a read fills in no more than the buffer has")]
fn pass(mut from: Socket, mut to: Socket, verb: &str) {
    let mut buffer = vec![0; 1 << 16];
    let mut first = true;
    while let Ok(count @ 1..) = from.read_within(&mut buffer, None) {
        if std::mem::replace(&mut first, false) {
            trace::say(|| format!("{verb} {}", trace::beginning(&buffer[..count])));
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if first {
        trace::say(|| format!("{verb} nothing before the connection ended"));
    }
    let _ = to.shutdown(Shutdown::Write);
}
