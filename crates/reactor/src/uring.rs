//! The io_uring backend: multishot receive into a ring of shared buffers, multishot accept, and one system
//! call per turn for everything else.
//!
//! Needs what Linux 6.1 has: provided-buffer rings, multishot receive, deferred task running.

mod buffers;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::slots::{Conn, Slots};
use crate::socket::{self, RawAddress};
use crate::{Delivery, Done};
use buffers::Buffers;

/// Buffers for connections that carry bulk: few enough of them that they stay in the cache, whose order of use is a ring.
const BULK: (u32, u16) = (64 * 1024, 16);
const SUBMISSIONS: u32 = 4096;
/// Room for a completion of each of 10,000 connections and more in one turn; past it the kernel keeps them aside.
const COMPLETIONS: u32 = 32 * 1024;

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Op {
    Accept,
    Connect,
    Receive,
    Send,
    /// Close and cancel: only counted.
    Quiet,
}

fn user_data(op: Op, conn: Conn) -> u64 {
    (op as u64) << 56 | conn.to_bits()
}

fn op_of(user_data: u64) -> Op {
    match user_data >> 56 {
        0 => Op::Accept,
        1 => Op::Connect,
        2 => Op::Receive,
        3 => Op::Send,
        _ => Op::Quiet,
    }
}

pub(crate) struct Uring {
    // Declared first, dropped first: the kernel must let go of the buffers before they are unmapped.
    ring: IoUring,
    messages: Buffers,
    bulk: Buffers,
    /// The completions of this turn, and how far they are handed out.
    batch: VecDeque<cqueue::Entry>,
    /// Listeners whose accept stopped (out of files); taken up again each turn.
    stalled: Vec<Conn>,
}

impl Uring {
    pub(crate) fn new(buffer_size: u32, buffers: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let messages = Buffers::register(&ring, 0, buffer_size, buffers)?;
        let bulk = Buffers::register(&ring, 1, BULK.0, BULK.1)?;
        Ok(Self { ring, messages, bulk, batch: VecDeque::with_capacity(1024), stalled: Vec::new() })
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: every pointer in an entry lives until its completion: addresses are boxed for the
            // reactor's life, payloads stay in their slot, receive buffers belong to `self`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full: hand it over without waiting. EBUSY and EINTR pass by themselves.
            let _ = self.ring.submit();
        }
    }

    fn operate(&mut self, slots: &mut Slots, conn: Conn, op: Op, entry: squeue::Entry) {
        if let Some(slot) = slots.any(conn) {
            slot.pending += 1;
            self.push(&entry.user_data(user_data(op, conn)));
        }
    }

    pub(crate) fn connect(&mut self, slots: &mut Slots, conn: Conn, address: &RawAddress) {
        let Some(slot) = slots.get(conn) else { return };
        slot.connecting = true;
        let entry = opcode::Connect::new(Fd(slot.fd()), address.pointer(), address.len()).build();
        self.operate(slots, conn, Op::Connect, entry);
    }

    pub(crate) fn listen(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        slot.listening = true;
        let entry =
            opcode::AcceptMulti::new(Fd(slot.fd())).flags(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK).build();
        self.operate(slots, conn, Op::Accept, entry);
    }

    fn receive(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        slot.reading = true;
        slot.reading_bulk = slot.bulk;
        let group = if slot.bulk { self.bulk.group() } else { self.messages.group() };
        let entry = opcode::RecvMulti::new(Fd(slot.fd()), group).build();
        self.operate(slots, conn, Op::Receive, entry);
    }

    /// Ends the standing receive; it goes on with the other buffers when the kernel has let go of the first.
    pub(crate) fn rebuffer(&mut self, slots: &mut Slots, conn: Conn) {
        if slots.get(conn).is_some_and(|slot| slot.reading) {
            let entry = opcode::AsyncCancel::new(user_data(Op::Receive, conn)).build();
            self.operate(slots, conn, Op::Quiet, entry);
        }
    }

    pub(crate) fn send(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        let Some((payload, done)) = &slot.payload else { return };
        let rest = &payload.bytes()[*done..];
        let len = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(slot.fd()), rest.as_ptr(), len)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        self.operate(slots, conn, Op::Send, entry);
    }

    pub(crate) fn close(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        slot.closing = true;
        let standing = [
            (slot.reading, Op::Receive),
            (slot.listening, Op::Accept),
            (slot.connecting, Op::Connect),
            (slot.payload.is_some(), Op::Send),
        ];
        let fd = slot.take_fd();
        for (_, op) in standing.into_iter().filter(|(stands, _)| *stands) {
            // By user data, which the kernel looks up in a hash table; by descriptor it would walk all of them.
            let entry = opcode::AsyncCancel::new(user_data(op, conn)).build();
            self.operate(slots, conn, Op::Quiet, entry);
        }
        if let Some(fd) = fd {
            self.operate(slots, conn, Op::Quiet, opcode::Close::new(Fd(fd.into_raw_fd())).build());
        }
    }

    pub(crate) fn wait(&mut self, slots: &mut Slots, timeout: Duration) -> io::Result<()> {
        for conn in std::mem::take(&mut self.stalled) {
            self.listen(slots, conn);
        }
        let timespec = Timespec::from(timeout);
        let args = SubmitArgs::new().timespec(&timespec);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(error) => match error.raw_os_error() {
                // Nothing came in time; a signal; completions must be taken first: all are taken below.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {}
                _ => return Err(error),
            },
        }
        self.batch.extend(self.ring.completion());
        Ok(())
    }

    pub(crate) fn next(&mut self, slots: &mut Slots) -> Option<(Conn, Done)> {
        loop {
            let entry = self.batch.pop_front()?;
            if let Some(done) = self.complete(slots, &entry) {
                return Some(done);
            }
        }
    }

    fn buffers(&mut self, bulk: bool) -> &mut Buffers {
        if bulk { &mut self.bulk } else { &mut self.messages }
    }

    pub(crate) fn recycle(&mut self, delivery: Delivery) {
        self.buffers(delivery.bulk).recycle(delivery.buffer);
    }

    fn complete(&mut self, slots: &mut Slots, entry: &cqueue::Entry) -> Option<(Conn, Done)> {
        let conn = Conn::from_bits(entry.user_data());
        let op = op_of(entry.user_data());
        let slot = slots.any(conn)?;
        let more = cqueue::more(entry.flags());
        if !more {
            slot.pending -= 1;
            slot.reading &= op != Op::Receive;
            slot.listening &= op != Op::Accept;
        }
        if slot.closing {
            if let (Op::Accept, Ok(fd)) = (op, u32::try_from(entry.result())) {
                drop(owned(fd));
            }
            if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
                let bulk = slot.reading_bulk;
                self.buffers(bulk).recycle(buffer);
            }
            slots.release(conn);
            return None;
        }
        match op {
            Op::Quiet => None,
            Op::Connect => {
                slot.connecting = false;
                if entry.result() < 0 {
                    return Some((conn, Done::Failed(-entry.result())));
                }
                self.receive(slots, conn);
                Some((conn, Done::Connected))
            }
            Op::Accept => self.accepted(slots, conn, entry.result(), more),
            Op::Receive => self.received(slots, conn, entry, more),
            Op::Send => self.sent(slots, conn, entry.result()),
        }
    }

    fn accepted(
        &mut self,
        slots: &mut Slots,
        listener: Conn,
        result: i32,
        more: bool,
    ) -> Option<(Conn, Done)> {
        if !more {
            self.stalled.push(listener);
        }
        let fd = owned(u32::try_from(result).ok()?);
        socket::no_delay(fd.as_raw_fd());
        let conn = slots.insert(fd);
        self.receive(slots, conn);
        Some((conn, Done::Accepted(listener)))
    }

    fn received(
        &mut self,
        slots: &mut Slots,
        conn: Conn,
        entry: &cqueue::Entry,
        more: bool,
    ) -> Option<(Conn, Done)> {
        let result = entry.result();
        let bulk = slots.get(conn)?.reading_bulk;
        // A multishot receive may end for reasons of its own (no buffer free just then), or because we ended it to
        // change buffers; it goes on.
        let interrupted = [-libc::ENOBUFS, -libc::ECANCELED].contains(&result);
        if !more && (result > 0 || interrupted) {
            self.receive(slots, conn);
        }
        match result {
            0 => Some((conn, Done::Eof)),
            count if count > 0 => {
                let buffer = cqueue::buffer_select(entry.flags())?;
                let delivery =
                    Delivery { start: self.buffers(bulk).start(buffer), len: count as usize, buffer, bulk };
                Some((conn, Done::Received(delivery)))
            }
            _ if interrupted => None,
            error => Some((conn, Done::Failed(-error))),
        }
    }

    fn sent(&mut self, slots: &mut Slots, conn: Conn, result: i32) -> Option<(Conn, Done)> {
        let slot = slots.get(conn)?;
        let (payload, done) = slot.payload.take()?;
        if result < 0 {
            return Some((conn, Done::Failed(-result)));
        }
        let done = done + result as usize;
        if done < payload.bytes().len() {
            slot.payload = Some((payload, done));
            self.send(slots, conn);
            return None;
        }
        Some((conn, Done::Sent(payload)))
    }
}

fn owned(fd: u32) -> OwnedFd {
    // SAFETY: the number is an accept's result: a descriptor just made for us, owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}
