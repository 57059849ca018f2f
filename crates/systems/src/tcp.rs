//! Watches the kernel's own account of a server's TCP connections, at both ends (sock_diag(7), `TCP_INFO` of tcp(7)).
//!
//! The kernel lists every socket of the machine by its ports, so no descriptor of the server is needed. A listing takes
//! time with many connections, so nothing is watched in the timed window. A thread lists again and again, and keeps the
//! last account of each socket, so that a connection that closes meanwhile counts too. One that opens and closes between
//! two listings is missed. [`Watch::look`] lists at once, for example before connections close.

mod diag;
pub(crate) mod listeners;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use diag::{Listing, Socket};

/// What the sockets of one end of some connections did, together. Times are those of each socket, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEnd {
    /// The sockets.
    pub sockets: u64,
    /// Segments that they sent, including those without payload.
    pub segments: u64,
    /// Segments with payload that they sent.
    pub data_segments: u64,
    /// Bytes of payload that they sent, each of them once.
    pub bytes: u64,
    /// Segments that they sent again.
    pub retransmits: u64,
    /// Microseconds in which they had something to send. None if the kernel does not say (before 4.10), as below.
    pub busy_us: Option<u64>,
    /// Microseconds of these in which the receiver's window was full.
    pub window_limited_us: Option<u64>,
    /// Microseconds of these in which their own send buffer was full.
    pub buffer_limited_us: Option<u64>,
    /// The most bytes that the kernel keeps for one of them until they are read, as getsockopt(2) says of `SO_RCVBUF`: with what
    /// it needs itself. Of several sockets, the largest.
    #[serde(default)]
    pub receive_buffer: Option<u64>,
}

/// Both ends of a server's connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEnds {
    /// The server's sockets. None where it runs in a network of its own.
    pub server: Option<TcpEnd>,
    /// The sockets of its clients on this machine.
    pub clients: Option<TcpEnd>,
}

/// Watches from [`Watch::begin`] to [`Watch::finish`].
#[derive(Debug)]
pub struct Watch {
    /// Asks for a listing, and for a word when it is done. Dropping it ends the thread.
    asks: Sender<SyncSender<()>>,
    thread: JoinHandle<TcpEnds>,
}

/// The time between two listings.
const EVERY: Duration = Duration::from_millis(10);
/// Listing may use at most this fraction of the time: one part in 5.
const COST: u32 = 4;
/// The longest time that a listing which was asked for is waited for.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

impl Watch {
    /// Watches the connections to this port that open from now on. `None` if the kernel does not list them.
    pub fn begin(port: u16) -> Option<Self> {
        let mut listing = Listing::open(port).ok()?;
        // What is open already does not belong to what is counted.
        let mut known = HashMap::new();
        listing.read(&mut known).ok()?;
        let known: HashSet<u64> = known.into_keys().collect();
        let (asks, asked) = mpsc::channel::<SyncSender<()>>();
        let watch = move || {
            let mut sockets = HashMap::new();
            let mut took = Duration::ZERO;
            loop {
                let done = match asked.recv_timeout(EVERY.max(took.saturating_mul(COST))) {
                    Err(RecvTimeoutError::Timeout) => None,
                    Ok(done) => Some(done),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                let began = Instant::now();
                // A listing that fails leaves what was known before.
                let _ = listing.read(&mut sockets);
                took = began.elapsed();
                if let Some(done) = done {
                    let _ = done.send(()); // Who asked may have given up.
                }
            }
            let _ = listing.read(&mut sockets);
            sockets.retain(|cookie, _| !known.contains(cookie));
            total(sockets.values())
        };
        let thread = thread::Builder::new().name("tcp-info".to_owned()).spawn(watch).ok()?;
        Some(Self { asks, thread })
    }

    /// Lists the connections now, and returns when that is done, or after a second.
    pub fn look(&self) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.asks.send(done).is_ok() {
            let _ = is_done.recv_timeout(LONGEST_LOOK);
        }
    }

    /// Stops watching and returns what the connections did.
    pub fn finish(self) -> TcpEnds {
        drop(self.asks);
        self.thread.join().unwrap_or_default()
    }
}

fn total<'a>(sockets: impl Iterator<Item = &'a Socket>) -> TcpEnds {
    let mut ends = TcpEnds::default();
    for socket in sockets {
        let end = if socket.of_server { &mut ends.server } else { &mut ends.clients };
        *end = Some(end.map_or(socket.did, |end| end.plus(&socket.did)));
    }
    ends
}

impl TcpEnd {
    fn plus(&self, other: &Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            sockets: self.sockets.saturating_add(other.sockets),
            segments: self.segments.saturating_add(other.segments),
            data_segments: self.data_segments.saturating_add(other.data_segments),
            bytes: self.bytes.saturating_add(other.bytes),
            retransmits: self.retransmits.saturating_add(other.retransmits),
            busy_us: both(self.busy_us, other.busy_us),
            window_limited_us: both(self.window_limited_us, other.window_limited_us),
            buffer_limited_us: both(self.buffer_limited_us, other.buffer_limited_us),
            receive_buffer: self.receive_buffer.max(other.receive_buffer),
        }
    }

    /// Payload bytes of a segment that has any, on average.
    pub fn bytes_per_segment(&self) -> Option<f64> {
        (self.data_segments > 0).then(|| self.bytes as f64 / self.data_segments as f64)
    }

    /// The share of the time in which there was something to send that the receiver's window was full, 0 to 1.
    pub fn window_limited(&self) -> Option<f64> {
        self.share_of_busy(self.window_limited_us)
    }

    /// The same of the own send buffer.
    pub fn buffer_limited(&self) -> Option<f64> {
        self.share_of_busy(self.buffer_limited_us)
    }

    fn share_of_busy(&self, limited_us: Option<u64>) -> Option<f64> {
        let busy = self.busy_us.filter(|busy| *busy > 0)?;
        Some((limited_us? as f64 / busy as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_connections_are_counted_and_earlier_ones_are_not() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            // A socket of IPv6 also takes connections of IPv4.
            let to = if address.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
            let connect = || (TcpStream::connect((to, port)).unwrap(), listener.accept().unwrap().0);
            let mut early = connect();
            let Some(watch) = Watch::begin(port) else { return };
            early.0.write_all(&[7; 5000]).unwrap();
            let (mut client, mut server) = connect();
            client.write_all(&[1; 3000]).unwrap();
            server.read_exact(&mut [0; 3000]).unwrap();
            server.write_all(&[1; 100]).unwrap();
            client.read_exact(&mut [0; 100]).unwrap();
            let ends = watch.finish();
            let (client, server) = (ends.clients.unwrap(), ends.server.unwrap());
            assert_eq!((client.sockets, client.bytes, client.retransmits), (1, 3000, 0), "{address}");
            assert_eq!((server.sockets, server.bytes, server.retransmits), (1, 100, 0), "{address}");
            assert!(client.segments >= client.data_segments && client.data_segments >= 1, "{client:?}");
            assert_eq!(server.bytes_per_segment(), Some(100.0));
        }
    }

    #[test]
    fn a_connection_that_closes_between_two_listings_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mut client, mut server) =
            (TcpStream::connect(("127.0.0.1", port)).unwrap(), listener.accept().unwrap().0);
        client.write_all(&[1; 300]).unwrap();
        server.read_exact(&mut [0; 300]).unwrap();
        let (Ok(mut listing), mut sockets) = (Listing::open(port), HashMap::new()) else { return };
        listing.read(&mut sockets).unwrap();
        drop((client, server));
        listing.read(&mut sockets).unwrap();
        assert_eq!(total(sockets.values()).clients.map(|end| end.bytes), Some(300));
    }

    #[test]
    fn what_one_socket_does_not_say_is_not_known_of_all() {
        let full = TcpEnd {
            sockets: 1,
            bytes: 10,
            busy_us: Some(10),
            window_limited_us: Some(4),
            buffer_limited_us: Some(1),
            ..TcpEnd::default()
        };
        let twice = full.plus(&full);
        assert_eq!((twice.bytes, twice.window_limited(), twice.buffer_limited()), (20, Some(0.4), Some(0.1)));
        let half = full.plus(&TcpEnd { busy_us: None, ..full });
        assert_eq!((half.bytes, half.window_limited()), (20, None));
        assert_eq!(TcpEnd::default().bytes_per_segment(), None);
    }
}
