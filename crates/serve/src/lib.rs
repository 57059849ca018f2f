//! The reference endpoints: the server that shows what this machine can do, and the one that clients are driven against.
//!
//! HTTP: `/` answers `ok`; `/echo` the request's body; `/upload` the number of its bytes; `/wait/MS` answers `ok` after
//! that many milliseconds. Every answer carries the request's `x-request-id`. Frames: counts what arrives, and
//! answers the half-close with the count. Knows `reactor` and `wire`; nothing of `load`.

mod counts;
mod http;
mod peer;
mod replaced;
mod server;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use reactor::Backend;

pub use counts::{Counts, Snapshot};

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http,
    /// Length-prefixed frames, four bytes big-endian.
    Frames,
    /// Whichever the first byte says: letters begin HTTP, and frames of a gigabyte or less do not begin with letters.
    Either,
}

/// How a connection ends when it has carried its number of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Farewell {
    /// The last answer says `Connection: close`.
    #[default]
    Announced,
    /// It does not.
    Silent,
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses and what they speak; port 0 takes a free one.
    pub ports: Vec<(SocketAddr, Speaks)>,
    /// One thread for each entry, pinned to that core if there is one.
    pub threads: Vec<Option<usize>>,
    /// Requests after which a connection is closed; `None`: never.
    pub max_keepalive: Option<u64>,
    /// How it is closed then.
    pub farewell: Farewell,
    /// Which kernel interface.
    pub backend: Backend,
}

/// A server at work on its own threads. Dropping it stops them.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Starts to serve.
///
/// # Errors
/// An address is in use or not of this machine, or the kernel refused the I/O interface.
pub fn start(config: &Config) -> io::Result<Server> {
    let several = config.threads.len() > 1;
    let addresses = config
        .ports
        .iter()
        // A shared address would not notice that somebody else has it.
        .map(|(address, _)| if several { reactor::unused(*address) } else { Ok(*address) })
        .collect::<io::Result<Vec<_>>>()?;
    let counts = Arc::new(Counts::default());
    let stop = Arc::new(AtomicBool::new(false));
    let mut server = Server { addresses, counts, stop, threads: Vec::new() };
    for core in &config.threads {
        let listeners = server
            .addresses
            .iter()
            .zip(&config.ports)
            .map(|(address, (_, speaks))| Ok((reactor::listener(*address, several)?, *speaks)))
            .collect::<io::Result<Vec<(TcpListener, Speaks)>>>()?;
        server.addresses = listeners.iter().map(|(l, _)| l.local_addr()).collect::<io::Result<Vec<_>>>()?;
        let (config, core) = (config.clone(), *core);
        let (counts, stop) = (Arc::clone(&server.counts), Arc::clone(&server.stop));
        let work = move || server::serve(&config, listeners, core, &counts, &stop);
        server.threads.push(thread::Builder::new().name("serve".to_owned()).spawn(work)?);
    }
    Ok(server)
}

impl Server {
    /// The address of each port, in the order asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Snapshot {
        self.counts.read()
    }

    /// Whether every thread is still at work.
    pub fn alive(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops, and says what went wrong if something did.
    ///
    /// # Errors
    /// A thread's I/O loop had failed.
    pub fn stop(mut self) -> io::Result<Snapshot> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| io::Error::other("a serving thread ended abnormally"))??;
        }
        Ok(self.counts.read())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
