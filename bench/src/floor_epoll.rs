//! The floor with epoll: edge-triggered, one receive and one send per request, no parsing.
//!
//! Edge triggering is cheaper here: each receive returns a whole answer, so nothing is left to report, and the kernel does
//! not have to poll each socket again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::Load;
use crate::net::{self, Epoll};

pub const INTEREST: i32 = libc::EPOLLIN | libc::EPOLLET;
const BUFFER: usize = 4096;

/// Drives the server until the time is over, and prints the number of answers.
pub fn run(load: &Load) -> anyhow::Result<()> {
    let done = if load.close { one_each(load)? } else { keep(load)? };
    println!("{done}");
    Ok(())
}

fn keep(load: &Load) -> anyhow::Result<u64> {
    let (request, response, to) = (load.request(), load.response(), net::address(load.port));
    let epoll = Epoll::new()?;
    let end = Instant::now() + load.length();
    let mut slots = Vec::with_capacity(load.connections);
    for index in 0..load.connections {
        slots.push(open(&epoll, &to, &request, index).context("connect")?);
    }
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 1024];
    let mut done = 0;
    while Instant::now() < end && done < load.number {
        for event in epoll.wait(&mut events, 20)? {
            let slot = &mut slots[event.u64 as usize];
            let fd = slot.fd.as_raw_fd();
            if !slot.sent {
                slot.sent = net::send(fd, &request, 0).is_ok();
                continue;
            }
            slot.got += take(fd, &mut [0; BUFFER])?;
            if slot.got >= response {
                slot.got -= response;
                done += 1;
                net::send(fd, &request, 0)?;
            }
        }
    }
    Ok(done)
}

/// A slot of the closed loop: its connection, and how many bytes of the answer have arrived.
struct Slot {
    fd: OwnedFd,
    sent: bool,
    got: usize,
}

/// Opens a connection and sends its first request. Over loopback the connection is usually open when `connect` returns.
/// Then the request is sent at once, and epoll waits only for the answer. Otherwise epoll waits for both.
fn open(epoll: &Epoll, to: &libc::sockaddr_in, request: &[u8], index: usize) -> io::Result<Slot> {
    let fd = net::begin_connect(to)?;
    let sent = net::send(fd.as_raw_fd(), request, 0).is_ok();
    let interest = if sent { INTEREST } else { INTEREST | libc::EPOLLOUT };
    epoll.add(fd.as_raw_fd(), interest, index as u64)?;
    Ok(Slot { fd, sent, got: 0 })
}

fn one_each(load: &Load) -> anyhow::Result<u64> {
    let (request, response, to) = (load.request(), load.response(), net::address(load.port));
    let epoll = Epoll::new()?;
    let end = Instant::now() + load.length();
    let mut slots = Vec::with_capacity(load.connections);
    for index in 0..load.connections {
        slots.push(open(&epoll, &to, &request, index).context("connect")?);
    }
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 1024];
    let mut done = 0;
    while Instant::now() < end && done < load.number {
        for event in epoll.wait(&mut events, 20)? {
            let slot = &mut slots[event.u64 as usize];
            let fd = slot.fd.as_raw_fd();
            if !slot.sent {
                slot.sent = net::send(fd, &request, 0).is_ok();
                continue;
            }
            slot.got += take(fd, &mut [0; BUFFER])?;
            if slot.got >= response {
                done += 1;
                *slot = open(&epoll, &to, &request, event.u64 as usize).context("connect")?;
            }
        }
    }
    Ok(done)
}

/// Receives what has arrived, which may be nothing.
pub fn take(fd: RawFd, buffer: &mut [u8]) -> anyhow::Result<usize> {
    match net::receive(fd, buffer) {
        Ok(0) => bail!("the server closed a connection too early"),
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error.into()),
    }
}
