//! The floor with io_uring.
//!
//! Kept connections use registered files, multishot receive into a ring of provided buffers, and sends that report only
//! failures. With one request per connection, socket, connect, send, receive and close are one linked chain over a slot of
//! the registered files, and only the close completes.

mod buffers;

use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, bail};
use io_uring::squeue::Flags;
use io_uring::types::{DestinationSlot, Fixed, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::{Load, net};
use buffers::Buffers;

const BUFFER: u32 = 256;
const BUFFERS: u16 = 16 * 1024;
const SUBMISSIONS: u32 = 4096;
const COMPLETIONS: u32 = 32 * 1024;
/// User data of a failed send. A successful send has no completion.
const SEND: u64 = 1 << 32;
/// User data of the timeout that ends the run.
const END: u64 = 1 << 33;

/// Drives the server until the time is over, and prints the number of answers.
pub fn run(load: &Load) -> anyhow::Result<()> {
    let done = if load.close { one_each(load)? } else { keep(load)? };
    println!("{done}");
    Ok(())
}

/// Whether this kernel supports such a ring.
pub fn available() -> bool {
    ring().and_then(|ring| Buffers::register(&ring, BUFFER, 16)).is_ok()
}

fn ring() -> std::io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
}

/// A ring and the memory that its operations point to, which is freed after the ring.
struct Loop {
    ring: IoUring,
    request: Vec<u8>,
    time: Box<Timespec>,
}

impl Loop {
    fn new(load: &Load) -> anyhow::Result<Self> {
        let ring = ring().context("io_uring")?;
        Ok(Self { ring, request: load.request(), time: Box::new(Timespec::from(load.length())) })
    }

    fn push(&mut self, entries: &[squeue::Entry]) -> anyhow::Result<()> {
        loop {
            // SAFETY: everything that entries point to is in `self` or declared before it, and is dropped after the ring.
            if unsafe { self.ring.submission().push_multiple(entries) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Submits the timeout that ends the run. It is an ordinary completion, so waiting needs no separate timer.
    fn end_later(&mut self) -> anyhow::Result<()> {
        let entry = opcode::Timeout::new(&*self.time).build().user_data(END);
        self.push(&[entry])
    }

    fn send(&mut self, index: u32) -> squeue::Entry {
        let len = self.request.len() as u32;
        opcode::Send::new(Fixed(index), self.request.as_ptr(), len).flags(libc::MSG_NOSIGNAL).build()
    }
}

fn keep(load: &Load) -> anyhow::Result<u64> {
    let response = load.response();
    let to = net::address(load.port);
    let mut sockets = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let socket = net::begin_connect(&to).context("connect")?;
        // io_uring waits only on blocking sockets.
        net::blocking(socket.as_raw_fd())?;
        sockets.push(socket);
    }
    let files: Vec<i32> = sockets.iter().map(OwnedFd::as_raw_fd).collect();
    let mut turn = Loop::new(load)?;
    let count = (4 * load.connections).next_power_of_two().clamp(64, usize::from(BUFFERS)) as u16;
    let mut buffers = Buffers::register(&turn.ring, BUFFER, count)?;
    turn.ring.submitter().register_files(&files)?;
    turn.end_later()?;
    for index in 0..files.len() as u32 {
        let send = silent(turn.send(index), index);
        turn.push(&[receive(index), send])?;
    }
    let mut got = vec![0usize; files.len()];
    let mut done = 0;
    let mut batch: Vec<cqueue::Entry> = Vec::with_capacity(COMPLETIONS as usize);
    while done < load.number {
        turn.ring.submit_and_wait(load.batch)?;
        batch.extend(turn.ring.completion());
        for entry in batch.drain(..) {
            if entry.user_data() == END {
                return Ok(done);
            }
            let index = entry.user_data() as u32;
            let ended = !cqueue::more(entry.flags());
            match entry.result() {
                count if count > 0 && entry.user_data() < SEND => got[index as usize] += count as usize,
                result if result == -libc::ENOBUFS => {}
                result => bail!("connection {index}: {result}"),
            }
            if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
                buffers.recycle(buffer);
            }
            if ended {
                turn.push(&[receive(index)])?;
            }
            if got[index as usize] >= response {
                got[index as usize] -= response;
                done += 1;
                let send = silent(turn.send(index), index);
                turn.push(&[send])?;
            }
        }
    }
    Ok(done)
}

fn receive(index: u32) -> squeue::Entry {
    opcode::RecvMulti::new(Fixed(index), 0).build().user_data(u64::from(index))
}

fn silent(entry: squeue::Entry, index: u32) -> squeue::Entry {
    entry.flags(Flags::SKIP_SUCCESS).user_data(SEND | u64::from(index))
}

/// Room for one answer in bytes. Answers are only counted.
const ANSWER: usize = 128;

fn one_each(load: &Load) -> anyhow::Result<u64> {
    let address = Box::new(net::address(load.port));
    let mut answers = vec![[0u8; ANSWER]; load.connections];
    let mut turn = Loop::new(load)?;
    turn.ring.submitter().register_files_sparse(load.connections as u32)?;
    turn.end_later()?;
    for (index, answer) in answers.iter_mut().enumerate() {
        let chain = chain(&mut turn, index as u32, &address, answer.as_mut_ptr(), load.response())?;
        turn.push(&chain)?;
    }
    let mut done = 0;
    let mut batch: Vec<cqueue::Entry> = Vec::with_capacity(COMPLETIONS as usize);
    while done < load.number {
        turn.ring.submit_and_wait(load.batch)?;
        batch.extend(turn.ring.completion());
        for entry in batch.drain(..) {
            if entry.user_data() == END {
                return Ok(done);
            }
            if entry.result() < 0 {
                bail!("connection {}: {}", entry.user_data(), entry.result());
            }
            done += 1;
            let index = entry.user_data() as usize;
            let answer = answers[index].as_mut_ptr();
            let chain = chain(&mut turn, index as u32, &address, answer, load.response())?;
            turn.push(&chain)?;
        }
    }
    Ok(done)
}

/// The chain of operations of one connection, from its socket to its close.
fn chain(
    turn: &mut Loop,
    index: u32,
    address: &libc::sockaddr_in,
    answer: *mut u8,
    response: usize,
) -> anyhow::Result<[squeue::Entry; 5]> {
    let Ok(slot) = DestinationSlot::try_from_slot_target(index) else { bail!("too many connections") };
    let file = Fixed(index);
    let length = size_of::<libc::sockaddr_in>() as u32;
    let to = std::ptr::from_ref(address).cast();
    let linked = Flags::IO_LINK | Flags::SKIP_SUCCESS;
    let steps = [
        opcode::Socket::new(libc::AF_INET, libc::SOCK_STREAM, 0).file_index(Some(slot)).build().flags(linked),
        opcode::Connect::new(file, to, length).build().flags(linked),
        turn.send(index).flags(linked),
        opcode::Recv::new(file, answer, response as u32).flags(libc::MSG_WAITALL).build().flags(linked),
        opcode::Close::new(file).build(),
    ];
    Ok(steps.map(|entry| entry.user_data(u64::from(index))))
}
