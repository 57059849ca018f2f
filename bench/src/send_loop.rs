//! The floor for streams: sends one block in a blocking loop, then waits for the receiver's answer.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::net;

/// What to send.
#[derive(clap::Args)]
pub struct Args {
    /// Port of the server for streams
    #[arg(long)]
    port: u16,
    /// Total bytes to send
    #[arg(long, conflicts_with = "seconds")]
    bytes: Option<u64>,
    /// Seconds to send for, unless --bytes is given
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Bytes per send
    #[arg(long, default_value_t = 256 * 1024)]
    block: usize,
}

/// Sends the stream, and prints the bytes and the seconds until the answer.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let block: Vec<u8> = (0..args.block).map(|index| (index * 31 % 251) as u8).collect();
    let start = Instant::now();
    let mut stream = net::connect(args.port)?;
    let end = start + Duration::from_secs_f64(args.seconds);
    let total = args.bytes.unwrap_or(u64::MAX);
    let mut sent = 0;
    while sent < total && (args.bytes.is_some() || Instant::now() < end) {
        let piece = &block[..block.len().min((total - sent) as usize)];
        stream.write_all(piece)?;
        sent += piece.len() as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    anyhow::ensure!(answer.len() == 20, "the receiver did not answer");
    println!("{sent} {}", start.elapsed().as_secs_f64());
    Ok(())
}
