//! Narrows against its peers: the server they all drive, the floors below them, and the comparison.
//!
//! The floors do the least that moves the same bytes: they send fixed requests and count what comes back by its
//! length. What a generator costs above them is what it adds: parsing, checking, clocks and histograms.

mod compare;
mod floor_epoll;
mod floor_uring;
mod net;
mod send_loop;
mod server;

use std::time::Duration;

use clap::Parser;

/// Measures Narrows against its peers.
#[derive(Parser)]
enum Verb {
    /// The server that every generator drives
    Server(server::Args),
    /// The least that drives it with epoll
    FloorEpoll(Load),
    /// The least that drives it with io_uring
    FloorUring(Load),
    /// The least that sends a stream: one block, again and again
    SendLoop(send_loop::Args),
    /// Runs interleaved pairs, and writes RESULTS.md and results.csv
    Compare(compare::options::Args),
}

/// What a floor does.
#[derive(clap::Args)]
pub struct Load {
    /// The server's port on this machine
    #[arg(long)]
    port: u16,
    /// Connections at once
    #[arg(short, long, default_value_t = 100)]
    connections: usize,
    /// Seconds
    #[arg(short, long, default_value_t = 3.0)]
    seconds: f64,
    /// One request per connection
    #[arg(long)]
    close: bool,
    /// The path to ask for
    #[arg(long, default_value = "/")]
    path: String,
    /// io_uring: completions to wait for before a turn goes on
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
        Verb::SendLoop(args) => send_loop::run(&args),
        Verb::Compare(args) => compare::run(&args),
    }
}
