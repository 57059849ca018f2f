//! The io_uring backend: multishot receive into a ring of shared buffers, multishot accept, and one system call per turn
//! for everything else.
//!
//! Needs Linux 6.1: provided-buffer rings, multishot receive and deferred task running.

mod buffers;
mod op;
mod posts;
mod stamps;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

use crate::slots::{Conn, Slot, Slots};
use crate::socket::{self, RawAddress};
use crate::{Carries, Delivery, Done, ReactorConfig, STALL};
use buffers::Buffers;
use op::{Op, op_of, user_data};
pub(crate) use posts::Piece;
use posts::Posts;
use stamps::Stamps;

/// How often a ring is asked for if the kernel has no memory for it, and the pause between two attempts.
const ATTEMPTS: u32 = 5;
const ROOM_COMES: Duration = Duration::from_millis(5);
/// Size and number of the buffers for bulk data. They are used in turn, and there are few enough to stay in the cache.
const BULK: (u32, u16) = (64 * 1024, 16);
const SUBMISSIONS: u32 = 4096;
/// Room for completions of more than 10,000 connections in one turn. The kernel keeps any further ones aside.
const COMPLETIONS: u32 = 32 * 1024;

/// How long the kernel may take to end cancelled operations. It takes microseconds.
const FAREWELL: Duration = Duration::from_millis(500);

/// Entries in the ring's own file table, 8 bytes each. The limit of open files may allow fewer.
const FILES: u32 = 64 * 1024;

pub(crate) struct Uring {
    // The first field is dropped first, before the buffers are unmapped. The ring's remaining work does not need them:
    // receives run only in this thread's turns.
    ring: IoUring,
    messages: Buffers,
    bulk: Buffers,
    /// How many completions of this turn have not been handled yet.
    left: usize,
    /// Listeners whose accept stopped because no file was free, and when they resume.
    stalled: Vec<(Instant, Conn)>,
    /// The size of the ring's own file table. Operations on its sockets need no look-up in the process's table.
    files: u32,
    /// Set if arrivals are stamped.
    stamps: Option<Stamps>,
    /// Pending operations whose completions carry no time and must be handled promptly.
    prompt: u32,
    /// All pending operations.
    pending: u32,
    /// Operations that the kernel has not taken because its queue is full. Those that come later go behind them.
    late: VecDeque<squeue::Entry>,
    posts: Posts,
}

/// Builds an operation on a connection's socket, which is either in the process's file table or in the ring's.
macro_rules! on {
    ($slot:expr, $conn:expr, |$file:ident| $entry:expr) => {
        match $slot.fd() {
            Some(fd) => {
                let $file = Fd(fd);
                $entry
            }
            None => {
                let $file = Fixed($conn.index);
                $entry
            }
        }
    };
}

#[inline]
fn send_entry(slot: &Slot, conn: Conn, bytes: &[u8]) -> squeue::Entry {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    on!(slot, conn, |file| opcode::Send::new(file, bytes.as_ptr(), len).flags(flags).build())
}

impl Uring {
    /// Makes a ring. The kernel takes its pages without waiting for any, so on a machine whose memory is full of cached files it may
    /// refuse one although it has made room a moment later.
    pub(crate) fn new(config: &ReactorConfig) -> io::Result<Self> {
        for _ in 1..ATTEMPTS {
            match Self::attempt(config) {
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => std::thread::sleep(ROOM_COMES),
                end => return end,
            }
        }
        Self::attempt(config)
    }

    fn attempt(config: &ReactorConfig) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let messages = Buffers::register(&ring, 0, config.buffer_size, config.buffers)?;
        let bulk = Buffers::register(&ring, 1, BULK.0, BULK.1)?;
        let files = FILES.min(u32::try_from(crate::open_files()?).unwrap_or(u32::MAX));
        ring.submitter().register_files_sparse(files)?;
        Ok(Self {
            ring,
            messages,
            bulk,
            left: 0,
            stalled: Vec::new(),
            files,
            stamps: config.stamps.then(Stamps::default),
            prompt: 0,
            pending: 0,
            late: VecDeque::new(),
            posts: Posts::default(),
        })
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        if !self.late.is_empty() || !self.queue(entry) {
            self.push_late(entry);
        }
    }

    /// Queues an operation. Returns whether there is room.
    #[inline]
    fn queue(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: every pointer in an entry is valid until its completion. Addresses and kept bytes live as long as the reactor, other
        // payloads stay in their slot, and receive buffers and posts belong to `self`.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Queues an operation behind those for which there was no room. If the kernel takes none now (EBUSY until completions are
    /// taken), they wait for the next turn, which says what is wrong if it fails for good.
    #[cold]
    fn push_late(&mut self, entry: &squeue::Entry) {
        self.late.push_back(entry.clone());
        self.flush();
    }

    /// Submits what is queued, without waiting. Returns whether the kernel has taken all of it.
    fn flush(&mut self) -> bool {
        loop {
            let before = self.ring.submission().len() + self.late.len();
            let taken = before == 0 || self.ring.submit().is_ok();
            while let Some(entry) = self.late.front().cloned()
                && self.queue(&entry)
            {
                self.late.pop_front();
            }
            let left = self.ring.submission().len() + self.late.len();
            if left == 0 {
                return true;
            }
            if !taken || left >= before {
                return false;
            }
        }
    }

    /// Submits an operation. The slot is not reused before it completes.
    fn operate(&mut self, slots: &mut Slots, conn: Conn, op: Op, entry: squeue::Entry) {
        if let Some(slot) = slots.any(conn) {
            slot.pending += 1;
            self.prompt += u32::from(op != Op::StampedReceive);
            self.pending += 1;
            self.push(&entry.user_data(user_data(op, conn)));
        }
    }

    /// Submits an operation that reports nothing unless it fails.
    #[inline]
    fn operate_silently(&mut self, conn: Conn, op: Op, entry: squeue::Entry) {
        self.push(&entry.flags(Flags::SKIP_SUCCESS).user_data(user_data(op, conn)));
    }

    pub(crate) fn connect(
        &mut self,
        slots: &mut Slots,
        address: &RawAddress,
        source: Option<&RawAddress>,
        carries: Carries,
    ) -> io::Result<Conn> {
        let conn = slots.insert(None);
        let slot = DestinationSlot::try_from_slot_target(conn.index).ok().filter(|_| conn.index < self.files);
        match (carries, slot) {
            // Few kernels have a ring that binds.
            (Carries::OneExchange, Some(slot)) if source.is_none() => {
                // No TCP_NODELAY: everything goes out in one send, so Nagle's algorithm holds nothing back.
                let socket =
                    opcode::Socket::new(address.family(), libc::SOCK_STREAM, 0).file_index(Some(slot));
                // No link to its connect either: the kernel makes a socket before it looks at the next operation. A link is cut if the
                // kernel has no memory for what follows, and then the socket would come from another thread, too late.
                self.operate_silently(conn, Op::Socket, socket.build());
            }
            (_, in_table) => {
                let made = socket::stream_from(address.family(), source);
                let fd = made.inspect_err(|_| slots.discard(conn))?;
                if self.stamps.is_some() {
                    socket::stamp_arrivals(fd.as_raw_fd());
                }
                // The table is updated at once, but the close of the slot's previous socket may still be queued. It would close this
                // one.
                let vacant = conn.generation == 0 || self.flush();
                let registered = in_table.is_some()
                    && carries != Carries::Addresses
                    && vacant
                    && self.ring.submitter().register_files_update(conn.index, &[fd.as_raw_fd()]).is_ok();
                if !registered {
                    slots.give(conn, fd);
                }
                // If it is registered, the table holds the socket, and the descriptor is closed.
            }
        }
        if let Some(slot) = slots.get(conn) {
            slot.connecting = true;
            slot.once = carries == Carries::OneExchange;
            slot.stamped = self.stamps.is_some() && !slot.once;
            let entry =
                on!(slot, conn, |file| opcode::Connect::new(file, address.pointer(), address.len()).build());
            self.operate(slots, conn, Op::Connect, entry);
        }
        Ok(conn)
    }

    pub(crate) fn listen(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        slot.listening = true;
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let entry = on!(slot, conn, |file| opcode::AcceptMulti::new(file).flags(flags).build());
        self.operate(slots, conn, Op::Accept, entry);
    }

    pub(crate) fn receive(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        slot.reading = true;
        slot.reading_bulk = slot.bulk;
        let group = if slot.bulk { self.bulk.group() } else { self.messages.group() };
        let op = receive_op(slot);
        let entry = if let (Op::StampedReceive, Some(stamps)) = (op, &self.stamps) {
            on!(slot, conn, |file| opcode::RecvMsgMulti::new(file, stamps.header(), group).build())
        } else if slot.once {
            let receive =
                on!(slot, conn, |file| opcode::Recv::new(file, ptr::null_mut(), 0).buf_group(group).build());
            receive.flags(Flags::BUFFER_SELECT)
        } else {
            on!(slot, conn, |file| opcode::RecvMulti::new(file, group).build())
        };
        self.operate(slots, conn, op, entry);
    }

    /// Requests the next receive of a connection for one exchange, whose answer may come in several parts.
    pub(crate) fn receive_more(&mut self, slots: &mut Slots, conn: Conn) {
        if slots.get(conn).is_some_and(|slot| slot.once && !slot.reading) {
            self.receive(slots, conn);
        }
    }

    /// Cancels the pending receive. When the kernel has released it, a new one starts, with the other buffers if they are wanted
    /// now, unless the connection is paused.
    pub(crate) fn rebuffer(&mut self, slots: &mut Slots, conn: Conn) {
        if let Some(slot) = slots.get(conn).filter(|slot| slot.reading) {
            let op = receive_op(slot);
            self.cancel(conn, op);
        }
    }

    /// Cancels by user data, which the kernel finds in a hash table. By descriptor it would search all operations.
    fn cancel(&mut self, conn: Conn, op: Op) {
        let entry = opcode::AsyncCancel::new(user_data(op, conn)).build();
        self.operate_silently(conn, Op::Silent, entry);
    }

    pub(crate) fn send(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        let Some((payload, done)) = &slot.payload else { return };
        let rest = payload.rest(*done);
        let entry = send_entry(slot, conn, rest);
        self.operate(slots, conn, Op::Send, entry);
    }

    /// Sends bytes that live as long as the reactor.
    #[inline]
    pub(crate) fn send_silently(&mut self, slot: &Slot, conn: Conn, bytes: &[u8]) {
        let entry = send_entry(slot, conn, bytes);
        self.operate_silently(conn, Op::SilentSend, entry);
    }

    pub(crate) fn half_close(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        let posts = slot.post.is_some();
        self.queue_post(slot, conn);
        if let Some(fd) = slot.fd() {
            if posts {
                self.flush();
            }
            socket::shutdown_write(fd);
        } else {
            let entry = on!(slot, conn, |file| opcode::Shutdown::new(file, libc::SHUT_WR).build());
            self.operate(slots, conn, Op::HalfClose, entry);
        }
    }

    pub(crate) fn close(&mut self, slots: &mut Slots, conn: Conn) {
        let Some(slot) = slots.get(conn) else { return };
        self.queue_post(slot, conn);
        slot.closing = true;
        let standing = [
            (slot.reading, receive_op(slot)),
            (slot.listening, Op::Accept),
            (slot.connecting, Op::Connect),
            (slot.payload.is_some(), Op::Send),
        ];
        let entry = match slot.take_fd() {
            Some(fd) => opcode::Close::new(Fd(fd.into_raw_fd())).build(),
            None => opcode::Close::new(Fixed(conn.index)).build(),
        };
        for (_, op) in standing.into_iter().filter(|(stands, _)| *stands) {
            self.cancel(conn, op);
        }
        let receives = slot.reading;
        // Operations take effect in the order of their submission: the next user of the slot comes after this.
        self.operate_silently(conn, Op::Silent, entry);
        slots.release(conn);
        if receives {
            self.do_deferred();
        }
    }

    /// Submits what is queued, and lets the kernel do what it has deferred: it sends the end of a connection only when the receive
    /// is cancelled and this thread has returned from the kernel. Without this, that would be after the next connection is made
    /// and answered. A server that serves one connection at a time and waits for its end (gunicorn's `sync` worker) would seem a
    /// quarter slower than it is.
    fn do_deferred(&mut self) {
        let (queued, flags) = (self.ring.submission().len() as u32, EnterFlags::GETEVENTS.bits());
        // SAFETY: there is no argument that the kernel could read.
        let _ = unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, flags, None) };
    }

    /// Whether everything that may happen now would carry its time. If so, submits what is queued. The kernel defers its
    /// work, so it wakes only threads that wait for the ring.
    pub(crate) fn may_sleep(&mut self) -> bool {
        let may = self.stamps.is_some() && self.prompt == 0 && !self.posts.are_waiting();
        if may && !self.ring.submission().is_empty() {
            self.flush();
        }
        may
    }

    /// Resumes listeners whose pause is over.
    #[cold]
    fn resume(&mut self, slots: &mut Slots) {
        let now = Instant::now();
        for (until, conn) in std::mem::take(&mut self.stalled) {
            if until <= now {
                self.listen(slots, conn);
            } else {
                self.stalled.push((until, conn));
            }
        }
    }

    pub(crate) fn wait(&mut self, slots: &mut Slots, timeout: Duration) -> io::Result<()> {
        if !self.stalled.is_empty() {
            self.resume(slots);
        }
        if self.posts.are_due() {
            self.queue_posts(slots);
        }
        if !self.late.is_empty() {
            self.flush();
        }
        // Posts that must wait for their turn, and operations for which there was no room, are submitted by the next call. What would
        // complete may depend on them.
        let idle = self.late.is_empty() && !self.posts.are_waiting();
        let timespec = Timespec::from(if idle { timeout } else { Duration::ZERO });
        let args = SubmitArgs::new().timespec(&timespec);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(error) => match error.raw_os_error() {
                // The timeout passed, a signal came, or completions must be taken first; they are taken below.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {}
                _ => return Err(error),
            },
        }
        if self.posts.are_held() && self.late.is_empty() && self.ring.submission().is_empty() {
            self.posts.turn();
        }
        self.left = self.ring.completion().len();
        Ok(())
    }

    /// The next completion, handled as far as the reactor is concerned.
    #[inline(always)]
    pub(crate) fn next(&mut self, slots: &mut Slots) -> Option<(Conn, Done)> {
        while self.left > 0 {
            self.left -= 1;
            let entry = self.ring.completion().next()?;
            let conn = Conn::from_bits(entry.user_data());
            if let Some(delivery) = self.message(slots, conn, &entry) {
                return Some((conn, Done::Received(delivery)));
            }
            if let Some(done) = self.complete(slots, &entry) {
                return Some(done);
            }
        }
        None
    }

    /// The short way for nearly every completion: a message on an open connection, whose receive goes on.
    #[inline(always)]
    fn message(&self, slots: &mut Slots, conn: Conn, entry: &cqueue::Entry) -> Option<Delivery> {
        let more = cqueue::more(entry.flags());
        if entry.result() <= 0 || !more || op_of(entry.user_data()) != Op::Receive {
            return None;
        }
        let slot = slots.get(conn)?;
        let (bulk, once, len) = (slot.reading_bulk, slot.once, entry.result() as usize);
        let buffer = cqueue::buffer_select(entry.flags())?;
        let buffers = if bulk { &self.bulk } else { &self.messages };
        Some(Delivery { start: buffers.start(buffer), len, buffer, bulk, once, stamp: 0 })
    }

    fn buffers(&mut self, bulk: bool) -> &mut Buffers {
        if bulk { &mut self.bulk } else { &mut self.messages }
    }

    #[inline]
    pub(crate) fn recycle(&mut self, delivery: Delivery) {
        self.buffers(delivery.bulk).recycle(delivery.buffer);
    }

    #[inline(never)]
    fn complete(&mut self, slots: &mut Slots, entry: &cqueue::Entry) -> Option<(Conn, Done)> {
        let conn = Conn::from_bits(entry.user_data());
        let op = op_of(entry.user_data());
        let slot = slots.any(conn)?;
        let more = cqueue::more(entry.flags());
        if op == Op::Post {
            return self.post_fell_short(slots, conn, entry.result());
        }
        if matches!(op, Op::Silent | Op::SilentSend | Op::Socket) {
            if op == Op::Socket {
                slot.errno = Some(-entry.result());
            }
            let failed = op == Op::SilentSend && entry.result() < 0 && !slot.closing;
            return failed.then(|| (conn, Done::Failed(-entry.result())));
        }
        if !more {
            slot.pending -= 1;
            slot.reading &= !matches!(op, Op::Receive | Op::StampedReceive);
            slot.listening &= op != Op::Accept;
            self.prompt -= u32::from(op != Op::StampedReceive);
            self.pending -= 1;
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
            Op::Connect => {
                slot.connecting = false;
                if entry.result() < 0 {
                    return Some((conn, Done::Failed(slot.errno.unwrap_or(-entry.result()))));
                }
                self.receive(slots, conn);
                Some((conn, Done::Connected))
            }
            Op::Accept => self.accepted(slots, conn, entry.result(), more),
            Op::Receive | Op::StampedReceive => self.received(slots, conn, entry, more),
            Op::Send => self.sent(slots, conn, entry.result()),
            Op::HalfClose | Op::Silent | Op::SilentSend | Op::Post | Op::Socket => None,
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
            self.stalled.push((Instant::now() + STALL, listener));
        }
        let fd = owned(u32::try_from(result).ok()?);
        socket::no_delay(fd.as_raw_fd());
        let conn = slots.insert(Some(fd));
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
        let slot = slots.get(conn)?;
        let (bulk, once, paused) = (slot.reading_bulk, slot.once, slot.paused);
        let delivery = self.delivery(entry, bulk, once);
        let ended = delivery.map_or(result == 0, |delivery| delivery.len == 0);
        // A multishot receive may end by itself (no buffer was free), or because we cancelled it to change buffers. It
        // starts again.
        let interrupted = [-libc::ENOBUFS, -libc::ECANCELED].contains(&result);
        if !more && !paused && (interrupted || result > 0 && !once && !ended) {
            self.receive(slots, conn);
        }
        match delivery {
            Some(delivery) if ended => {
                self.recycle(delivery);
                Some((conn, Done::Eof))
            }
            Some(delivery) => Some((conn, Done::Received(delivery))),
            None if ended => Some((conn, Done::Eof)),
            None if interrupted => None,
            None => Some((conn, Done::Failed(-result))),
        }
    }

    /// The bytes that a receive delivered, if it delivered a buffer.
    fn delivery(&mut self, entry: &cqueue::Entry, bulk: bool, once: bool) -> Option<Delivery> {
        let len = usize::try_from(entry.result()).ok()?;
        let buffer = cqueue::buffer_select(entry.flags())?;
        let start = self.buffers(bulk).start(buffer);
        let mut delivery = Delivery { start, len, buffer, bulk, once, stamp: 0 };
        if let (Op::StampedReceive, Some(stamps)) = (op_of(entry.user_data()), &self.stamps) {
            stamps.unwrap(&mut delivery);
        }
        Some(delivery)
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
        if std::mem::take(&mut slot.hidden) {
            slot.payload = slot.next.take().map(|payload| (payload, 0));
            self.send(slots, conn);
            return None;
        }
        Some((conn, Done::Sent(payload)))
    }
}

impl Drop for Uring {
    /// Submits queued closes, cancels what is pending and waits until the kernel has done with it, and closes accepted connections
    /// that were never reported.
    fn drop(&mut self) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        self.push(&cancel.flags(Flags::SKIP_SUCCESS).user_data(user_data(Op::Silent, Conn::from_bits(0))));
        let deadline = Instant::now() + FAREWELL;
        let timespec = Timespec::from(FAREWELL / 10);
        let args = SubmitArgs::new().timespec(&timespec);
        loop {
            for entry in self.ring.completion() {
                let op = op_of(entry.user_data());
                let silent = matches!(op, Op::Silent | Op::SilentSend | Op::Post | Op::Socket);
                self.pending =
                    self.pending.saturating_sub(u32::from(!silent && !cqueue::more(entry.flags())));
                if let (Op::Accept, Ok(fd)) = (op, u32::try_from(entry.result())) {
                    drop(owned(fd));
                }
            }
            // If the queue was full, the cancel and the closes have room only now.
            let all_submitted = self.flush();
            if (self.pending == 0 && all_submitted) || Instant::now() >= deadline {
                return;
            }
            // The timeout and EINTR are no failures. After any other there is nothing more to wait for.
            if let Err(error) = self.ring.submitter().submit_with_args(1, &args)
                && !matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                )
            {
                return;
            }
        }
    }
}

/// The operation of a connection's pending or next receive.
fn receive_op(slot: &Slot) -> Op {
    if slot.stamped && !slot.reading_bulk { Op::StampedReceive } else { Op::Receive }
}

fn owned(fd: u32) -> OwnedFd {
    // SAFETY: the number is the result of an accept: a new descriptor without another owner.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}
