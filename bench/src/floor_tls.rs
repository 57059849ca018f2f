//! The floor with epoll and TLS: like the one without, with one record in each direction per request.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use rustls::ClientConfig;

use crate::Load;
use crate::bare_tls::{self, Client};
use crate::floor_epoll::{INTEREST, take};
use crate::net::{self, Epoll};

const BUFFER: usize = 16 * 1024;

/// The load, and how to verify the server.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    load: Load,
    /// The root of the server's certificate (PEM)
    #[arg(long)]
    root: PathBuf,
}

/// A slot of the closed loop.
struct Slot {
    fd: OwnedFd,
    client: Client,
    /// What the socket has not taken before it was connected.
    waiting: Vec<u8>,
    asked: bool,
    /// How many bytes of the answer have arrived.
    got: usize,
}

/// Opens the connections, and what they share.
struct Opener {
    epoll: Epoll,
    to: libc::sockaddr_in,
    config: Arc<ClientConfig>,
    /// Room for what is sent.
    out: Vec<u8>,
}

/// Drives the server until the time is over, and prints the number of answers.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let load = &args.load;
    let (request, response) = (load.request(), load.response());
    let config = bare_tls::config(&args.root)?;
    let mut opener =
        Opener { epoll: Epoll::new()?, to: net::address(load.port), config, out: vec![0; BUFFER] };
    let end = Instant::now() + load.length();
    let mut slots = Vec::with_capacity(load.connections);
    for index in 0..load.connections {
        slots.push(opener.open(index)?);
    }
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 1024];
    let mut buffer = vec![0; BUFFER];
    let mut done = 0;
    while Instant::now() < end && done < load.number {
        for event in opener.epoll.wait(&mut events, 20)? {
            let slot = &mut slots[event.u64 as usize];
            let fd = slot.fd.as_raw_fd();
            if !slot.waiting.is_empty() {
                if net::send(fd, &slot.waiting, 0).is_ok() {
                    slot.waiting.clear();
                }
                continue;
            }
            let count = take(fd, &mut buffer)?;
            let mut answered = false;
            let (asked, got) = (&mut slot.asked, &mut slot.got);
            let written = slot.client.turn(&mut buffer[..count], &mut opener.out, |plain| {
                *got += plain;
                answered = *got >= response;
                let ask = !*asked || answered && !load.close;
                (*asked, *got) = (true, if answered { *got - response } else { *got });
                if ask { &request } else { &[] }
            })?;
            done += u64::from(answered);
            if answered && load.close {
                *slot = opener.open(event.u64 as usize)?;
            } else if written > 0 {
                net::send(fd, &opener.out[..written], 0)?;
            }
        }
    }
    println!("{done}");
    Ok(())
}

impl Opener {
    /// Opens a connection and sends its first bytes at once if it is open already.
    fn open(&mut self, index: usize) -> anyhow::Result<Slot> {
        let fd = net::begin_connect(&self.to).context("connect")?;
        let mut client = Client::new(&self.config)?;
        let written = client.turn(&mut [], &mut self.out, |_| &[])?;
        let hello = &self.out[..written];
        let sent = net::send(fd.as_raw_fd(), hello, 0).is_ok();
        let waiting = if sent { Vec::new() } else { hello.to_vec() };
        let interest = if sent { INTEREST } else { INTEREST | libc::EPOLLOUT };
        self.epoll.add(fd.as_raw_fd(), interest, index as u64)?;
        Ok(Slot { fd, client, waiting, asked: false, got: 0 })
    }
}
