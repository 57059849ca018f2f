//! Compares Narrows with its peers, and counts its instructions. Contains the server that all of them drive, and the floors.
//!
//! A floor is the minimal program that moves the same bytes: it sends fixed requests and counts answers by their length.
//! The cost of a generator above the floor is the cost of what it adds: parsing, checking, clocks and histograms.

// The floors make the system calls of a generator themselves.
#![allow(unsafe_code)]

mod bare_tls;
mod certificate;
mod compare;
mod count;
mod floor_epoll;
mod floor_tls;
mod floor_uring;
mod net;
mod send_loop;
mod send_tls;
mod server;

use std::time::Duration;

use clap::Parser;

/// Compares Narrows with its peers, and counts its instructions
#[derive(Parser)]
enum Verb {
    /// Run the server that every generator drives
    Server(server::Args),
    /// Drive the server with a minimal epoll loop
    FloorEpoll(Load),
    /// Drive the server with a minimal io_uring loop
    FloorUring(Load),
    /// Drive the server over TLS with a minimal epoll loop
    FloorTls(floor_tls::Args),
    /// Send a stream with a minimal loop that repeats one block
    SendLoop(send_loop::Args),
    /// Send bodies over TLS with a minimal loop that repeats one block
    SendTls(send_tls::Args),
    /// Run interleaved pairs, and write RESULTS.md and results.csv
    Compare(compare::options::Args),
    /// Count instructions in user space under callgrind, and write COUNTS.md
    Count(count::Args),
}

/// The load that a floor generates.
#[derive(clap::Args)]
pub struct Load {
    /// Port of the server on this machine
    #[arg(long)]
    port: u16,
    /// Concurrent connections
    #[arg(short, long, default_value_t = 100)]
    connections: usize,
    /// Duration in seconds
    #[arg(short, long, default_value_t = 3.0)]
    seconds: f64,
    /// Stop after this many answers, even if there is time left
    #[arg(short, long, default_value_t = u64::MAX)]
    number: u64,
    /// Send one request per connection
    #[arg(long)]
    close: bool,
    /// Path to request
    #[arg(long, default_value = "/")]
    path: String,
    /// io_uring: wait for this many completions per turn
    #[arg(long, default_value_t = 1)]
    batch: usize,
}

impl Load {
    fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn request(&self) -> Vec<u8> {
        let close = if self.close { "Connection: close\r\n" } else { "" };
        format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n{close}\r\n", self.path).into_bytes()
    }

    fn response(&self) -> usize {
        if self.close { server::CLOSE.len() } else { server::KEEP.len() }
    }
}

fn main() -> anyhow::Result<()> {
    net::raise_files();
    match Verb::parse() {
        Verb::Server(args) => server::run(&args),
        Verb::FloorEpoll(load) => floor_epoll::run(&load),
        Verb::FloorUring(load) => floor_uring::run(&load),
        Verb::FloorTls(args) => floor_tls::run(&args),
        Verb::SendLoop(args) => send_loop::run(&args),
        Verb::SendTls(args) => send_tls::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Count(args) => count::run(&args),
    }
}
