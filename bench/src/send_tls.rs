//! The floor for uploads over TLS: encrypts and sends one block in a blocking loop, then waits for the answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Instant;

use crate::bare_tls::{self, Client};
use crate::{net, server};

/// What to send.
#[derive(clap::Args)]
pub struct Args {
    /// Port of the server for TLS
    #[arg(long)]
    port: u16,
    /// The root of the server's certificate (PEM)
    #[arg(long)]
    root: PathBuf,
    /// Bytes of one body
    #[arg(long)]
    size: u64,
    /// Bodies to send
    #[arg(short, long, default_value_t = 1)]
    number: u64,
    /// Bytes per send
    #[arg(long, default_value_t = 256 * 1024)]
    block: usize,
}

/// Sends the bodies one after the other on one connection, and prints the bytes and the seconds until the last answer.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let block: Vec<u8> = (0..args.block).map(|index| (index * 31 % 251) as u8).collect();
    let size = args.size;
    let head = format!("POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n");
    let answer = server::with_body(&size.to_string()).len();
    let config = bare_tls::config(&args.root)?;
    let start = Instant::now();
    let mut line = Line {
        stream: net::connect(args.port)?,
        client: Client::new(&config)?,
        arrived: vec![0; 16 * 1024],
        // Encryption adds to each record of 16 KiB.
        out: vec![0; args.block + args.block / 64 + 4096],
    };
    line.send(&[])?;
    for _ in 0..args.number {
        line.send(head.as_bytes())?;
        let mut left = size;
        while left > 0 {
            let piece = &block[..block.len().min(usize::try_from(left)?)];
            line.send(piece)?;
            left -= piece.len() as u64;
        }
        let mut got = 0;
        while got < answer {
            got += line.receive()?;
        }
    }
    println!("{} {}", size * args.number, start.elapsed().as_secs_f64());
    Ok(())
}

struct Line {
    stream: TcpStream,
    client: Client,
    arrived: Vec<u8>,
    out: Vec<u8>,
}

impl Line {
    /// Sends these bytes, after the handshake if that is not complete.
    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut ready = false;
        let say = |_| {
            ready = true;
            bytes
        };
        let written = self.client.turn(&mut [], &mut self.out, say)?;
        self.stream.write_all(&self.out[..written])?;
        while !ready {
            let count = self.read()?;
            let say = |_| {
                ready = true;
                bytes
            };
            let written = self.client.turn(&mut self.arrived[..count], &mut self.out, say)?;
            self.stream.write_all(&self.out[..written])?;
        }
        Ok(())
    }

    /// Waits for bytes, and returns how many there are without TLS.
    fn receive(&mut self) -> anyhow::Result<usize> {
        let count = self.read()?;
        let mut got = 0;
        self.client.turn(&mut self.arrived[..count], &mut self.out, |plain| {
            got = plain;
            &[]
        })?;
        Ok(got)
    }

    fn read(&mut self) -> anyhow::Result<usize> {
        let count = self.stream.read(&mut self.arrived)?;
        anyhow::ensure!(count > 0, "the server closed the connection too early");
        Ok(count)
    }
}
