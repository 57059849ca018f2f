//! The reference endpoints: the server that shows what this machine can do, and against which clients are measured.
//!
//! HTTP: `/` answers `ok`; `/echo` answers the request's body; `/upload` answers the number of body bytes; `/wait/MS` answers `ok`
//! after that many milliseconds; `/bytes/N` answers N bytes; `/events/N`, `/chunks/N` and `/v1/chat/completions` send a stream, each piece at its time. Every
//! answer repeats the request's `x-request-id`. Frames: the server counts what arrives, and answers the half-close with the counts.
//! Knows `reactor`, `wire` and `tls`; knows nothing of `load`.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod counters;
mod http;
mod http2;
mod limits;
mod peer;
mod replaced;
mod route;
mod secure;
mod server;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use reactor::Backend;

pub use counters::{CounterSnapshot, Counters};
pub use http2::Http2;
pub use limits::Limits;

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1, or HTTP/2 by prior knowledge.
    Http,
    /// HTTP/1.1 or HTTP/2 in TLS. The configuration says how.
    Https,
    /// Frames with a four-byte big-endian length prefix.
    Frames,
    /// Decided by the first byte: HTTP begins with a letter, and frames of up to a gigabyte do not.
    Either,
}

/// How the server closes a connection that has carried its maximum number of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseStyle {
    /// The last answer says `Connection: close`.
    #[default]
    Announced,
    /// The last answer does not announce the close.
    Silent,
}

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The addresses and their protocols. Port 0 takes a free port.
    pub ports: Vec<(SocketAddr, Speaks)>,
    /// One thread per entry, pinned to the core if one is given.
    pub threads: Vec<Option<usize>>,
    /// The number of requests after which the server closes a connection; `None` means never.
    pub max_keepalive: Option<u64>,
    /// How it closes the connection then.
    pub farewell: CloseStyle,
    /// What one peer may take.
    pub limits: Limits,
    /// What connections of HTTP/2 do. They come to every port of HTTP, and begin with its preface.
    pub http2: Http2,
    /// What the TLS of [`Speaks::Https`] is made from.
    pub tls: Option<Arc<tls::Listener>>,
    /// The reactor's backend.
    pub backend: Backend,
}

/// A running server with its own threads. Dropping it stops them.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    counts: Arc<Counters>,
    stop: Arc<AtomicBool>,
    /// Copies of the threads' listeners, with which the threads are woken.
    listeners: Vec<TcpListener>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Starts a server.
///
/// # Errors
/// An address is in use or does not belong to this machine, or the kernel refused the I/O backend.
pub fn start(config: &Config) -> io::Result<Server> {
    let several = config.threads.len() > 1;
    let addresses = config
        .ports
        .iter()
        // Binding a shared address succeeds even if another process shares it, so check first.
        .map(|(address, _)| if several { reactor::unused(*address) } else { Ok(*address) })
        .collect::<io::Result<Vec<_>>>()?;
    let counts = Arc::new(Counters::default());
    let stop = Arc::new(AtomicBool::new(false));
    let mut server = Server { addresses, counts, stop, listeners: Vec::new(), threads: Vec::new() };
    for core in &config.threads {
        let listeners = server
            .addresses
            .iter()
            .zip(&config.ports)
            .map(|(address, (_, speaks))| Ok((reactor::listener(*address, several)?, *speaks)))
            .collect::<io::Result<Vec<(TcpListener, Speaks)>>>()?;
        server.addresses = listeners.iter().map(|(l, _)| l.local_addr()).collect::<io::Result<Vec<_>>>()?;
        for (listener, _) in &listeners {
            server.listeners.push(listener.try_clone()?);
        }
        let (config, core) = (config.clone(), *core);
        let (counts, stop) = (Arc::clone(&server.counts), Arc::clone(&server.stop));
        let work = move || server::serve(&config, listeners, core, &counts, &stop);
        server.threads.push(thread::Builder::new().name("serve".to_owned()).spawn(work)?);
    }
    Ok(server)
}

impl Server {
    /// The address of the first port.
    ///
    /// # Panics
    /// If the configuration has no port.
    #[expect(clippy::indexing_slicing, reason = "it says that it panics; callers give a port")]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address of each port, in the order of the configuration.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counters now.
    pub fn counts(&self) -> CounterSnapshot {
        self.counts.read()
    }

    /// Whether every thread is still running.
    pub fn alive(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops the server, and returns the final counters.
    ///
    /// # Errors
    /// The I/O loop of a thread failed.
    pub fn stop(mut self) -> io::Result<CounterSnapshot> {
        self.wake_to_stop();
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| io::Error::other("a serving thread ended abnormally"))??;
        }
        Ok(self.counts.read())
    }

    fn wake_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.listeners.iter().for_each(reactor::stop_listening);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.wake_to_stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
