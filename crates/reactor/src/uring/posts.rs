//! Small sends without an event. Their bytes are copied, so the payload is free at once.
//!
//! A post is submitted with the turn's other operations, and must not wait (`MSG_DONTWAIT`): the kernel takes its bytes during the
//! submission, or reports that it has not taken all of them. So the memory of a turn is needed until the completions of the next
//! one are handled, and two pieces of memory in turn are enough. A report is rare, because a socket's buffer nearly always has
//! room. Then the rest is sent like any payload, with a completion.
//!
//! A connection has one post in a turn at most. A later one could overtake the rest of an earlier one.

use io_uring::squeue::{self, Flags};
use io_uring::{opcode, types};

use super::Uring;
use super::op::{Op, user_data};
use crate::slots::{Conn, Slot, Slots};
use crate::{Done, Io, Payload};

/// The most bytes that are posted in one turn.
const ROOM: usize = 128 * 1024;

/// Where the bytes of a post lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Of which turn.
    turn: u32,
    start: u32,
    length: u32,
}

#[derive(Default)]
pub(super) struct Posts {
    /// Those of even and of odd turns. There is none before the first post.
    memory: [Box<[u8]>; 2],
    /// This turn, and how much of its memory is used.
    turn: u32,
    used: usize,
    /// The kernel has not taken all operations of this turn yet.
    held: bool,
    /// The connections with posts that are not submitted.
    waiting: Vec<Conn>,
}

impl Posts {
    /// Takes bytes to be sent on a connection, behind those that it already has to send. False if there is no room.
    #[inline]
    pub(super) fn take(&mut self, slot: &mut Slot, conn: Conn, bytes: &[u8]) -> bool {
        if slot.post.is_some() || bytes.len() > Io::POST {
            return self.add(slot, bytes);
        }
        let (start, end) = (self.used, self.used + bytes.len());
        let memory = self.memory.get_mut(place(self.turn)).and_then(|memory| memory.get_mut(start..end));
        let Some(memory) = memory else { return self.grow() && self.take(slot, conn, bytes) };
        memory.copy_from_slice(bytes);
        self.used = end;
        self.waiting.push(conn);
        slot.post = Some(Piece { turn: self.turn, start: start as u32, length: bytes.len() as u32 });
        true
    }

    /// Makes the memory, if there is none.
    #[cold]
    fn grow(&mut self) -> bool {
        let memory = self.memory.get_mut(place(self.turn)).filter(|memory| memory.is_empty());
        memory.map(|memory| *memory = vec![0; ROOM].into_boxed_slice()).is_some()
    }

    /// Adds to the post that a connection has.
    #[inline(never)]
    fn add(&mut self, slot: &mut Slot, bytes: &[u8]) -> bool {
        let Some(post) = slot.post else { return false };
        let (start, before) = (post.start as usize, post.length as usize);
        let length = before + bytes.len();
        // Usually the connection's own bytes are the last ones.
        let from = if start + before == self.used { start } else { self.used };
        let Some(memory) = self.memory.get_mut(place(self.turn)) else { return false };
        if length > Io::POST || from + length > memory.len() {
            return false;
        }
        memory.copy_within(start..start + before, from);
        if let Some(place) = memory.get_mut(from + before..from + length) {
            place.copy_from_slice(bytes);
        }
        self.used = from + length;
        slot.post = Some(Piece { start: from as u32, length: length as u32, ..post });
        true
    }

    /// The bytes of a post behind the first `done`. `None` if its memory may have other bytes by now.
    pub(super) fn rest(&self, post: Piece, done: usize) -> Option<&[u8]> {
        let bytes = self.memory.get(place(post.turn)).filter(|_| self.turn.wrapping_sub(post.turn) <= 1)?;
        bytes.get(post.start as usize..)?.get(done..post.length as usize)
    }

    /// Whether there are posts that can be submitted. They wait while operations of this turn do, so that a connection has no
    /// two posts whose outcomes are open.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        !self.waiting.is_empty() && !self.held
    }

    /// Whether there are posts that are not submitted.
    #[inline]
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The connections whose posts are not submitted, which are taken out.
    pub(super) fn submit(&mut self) -> Vec<Conn> {
        self.held = true;
        std::mem::take(&mut self.waiting)
    }

    /// Takes back the empty memory of [`Posts::submit`].
    pub(super) fn reuse(&mut self, mut waiting: Vec<Conn>) {
        waiting.clear();
        self.waiting = waiting;
    }

    /// Whether posts were submitted in this turn.
    #[inline]
    pub(super) fn are_held(&self) -> bool {
        self.held
    }

    /// Everything is submitted. The next posts must not touch what was just submitted.
    #[inline]
    pub(super) fn turn(&mut self) {
        self.held = false;
        if self.used > 0 && self.waiting.is_empty() {
            (self.turn, self.used) = (self.turn.wrapping_add(1), 0);
        }
    }

    /// The operation that sends a connection's post, which is then submitted; `None` if it has none.
    #[inline]
    pub(super) fn entry(&self, slot: &mut Slot, conn: Conn) -> Option<squeue::Entry> {
        let post = slot.post.take()?;
        slot.posted = Some(post);
        let bytes = self.rest(post, 0)?;
        let (start, len) = (bytes.as_ptr(), bytes.len() as u32);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT;
        let entry = match slot.fd() {
            Some(fd) => opcode::Send::new(types::Fd(fd), start, len).flags(flags).build(),
            None => opcode::Send::new(types::Fixed(conn.index), start, len).flags(flags).build(),
        };
        Some(entry.flags(Flags::SKIP_SUCCESS))
    }
}

impl Uring {
    /// Takes bytes that are sent at the end of the turn. False if there is no room for them.
    #[inline]
    pub(crate) fn post(&mut self, slot: &mut Slot, conn: Conn, bytes: &[u8]) -> bool {
        self.posts.take(slot, conn, bytes)
    }

    /// Queues the post of a connection, if it has one.
    #[inline]
    pub(super) fn queue_post(&mut self, slot: &mut Slot, conn: Conn) {
        if let Some(entry) = self.posts.entry(slot, conn) {
            self.push(&entry.user_data(user_data(Op::Post, conn)));
        }
    }

    #[inline(never)]
    pub(super) fn queue_posts(&mut self, slots: &mut Slots) {
        let waiting = self.posts.submit();
        for conn in &waiting {
            if let Some(slot) = slots.get(*conn) {
                self.queue_post(slot, *conn);
            }
        }
        self.posts.reuse(waiting);
    }

    /// Sends what is posted on a connection, and then this, as one payload.
    pub(crate) fn send_with_post(&mut self, slots: &mut Slots, conn: Conn, payload: &Payload) {
        let Some(slot) = slots.get(conn) else { return };
        let posted = slot.post.take().and_then(|post| self.posts.rest(post, 0));
        slot.payload = Some((Payload::Owned([posted.unwrap_or_default(), payload.bytes()].concat()), 0));
        self.send(slots, conn);
    }

    /// Handles a post of which the kernel has not taken everything. The rest is sent before anything else.
    #[cold]
    pub(super) fn post_fell_short(
        &mut self,
        slots: &mut Slots,
        conn: Conn,
        result: i32,
    ) -> Option<(Conn, Done)> {
        let slot = slots.get(conn)?;
        let full = result >= 0 || result == -libc::EAGAIN;
        let posted = slot.posted.take().filter(|_| full && slot.payload.is_none());
        let done = usize::try_from(result).unwrap_or(0);
        let Some(rest) = posted.and_then(|posted| self.posts.rest(posted, done)) else {
            return Some((conn, Done::Failed(if full { libc::EAGAIN } else { -result })));
        };
        let later = slot.post.take().and_then(|post| self.posts.rest(post, 0));
        let rest = [rest, later.unwrap_or_default()].concat();
        (slot.payload, slot.hidden) = (Some((Payload::Owned(rest), 0)), true);
        self.send(slots, conn);
        None
    }
}

/// Which memory a turn uses.
fn place(turn: u32) -> usize {
    (turn % 2) as usize
}
