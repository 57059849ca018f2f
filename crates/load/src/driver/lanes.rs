//! The connections of one thread, as the driver sees them. A lane carries exchanges on a connection, which may be lost and
//! replaced.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use reactor::{Conn, Time};

use super::Share;
use crate::protocol::Protocol;

/// When an exchange should have been sent, when it was sent, and its request.
pub(super) struct Stamp<R> {
    pub intended: Time,
    pub sent: Time,
    pub request: R,
}

/// The stamps of a lane's open exchanges, by their numbers. The oldest has a place of its own, because nearly every lane has
/// only one: there it needs no memory elsewhere, and no queue.
#[derive(Default)]
pub(super) struct Stamps<R> {
    /// The number of the oldest, or of the next exchange if none is open.
    first: u64,
    oldest: Option<Stamp<R>>,
    /// Those with the numbers after it; `None` has ended before the oldest.
    later: VecDeque<Option<Stamp<R>>>,
    open: usize,
}

impl<R> Stamps<R> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.open
    }

    /// The number of the oldest, or of the next exchange if none is open.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    pub(super) fn oldest(&self) -> Option<&Stamp<R>> {
        self.oldest.as_ref()
    }

    pub(super) fn newest(&self) -> Option<&Stamp<R>> {
        self.later.iter().rev().flatten().next().or(self.oldest.as_ref())
    }

    #[inline]
    pub(super) fn push(&mut self, stamp: Stamp<R>) {
        self.open += 1;
        if self.oldest.is_none() {
            self.oldest = Some(stamp);
        } else {
            self.later.push_back(Some(stamp));
        }
    }

    /// Takes the one with this number; nearly always it is the oldest.
    #[inline]
    pub(super) fn take(&mut self, number: u64) -> Option<Stamp<R>> {
        if number == self.first { self.pop() } else { self.take_later(number) }
    }

    #[inline(never)]
    fn take_later(&mut self, number: u64) -> Option<Stamp<R>> {
        let place = number.checked_sub(self.first + 1)?;
        let stamp = self.later.get_mut(usize::try_from(place).ok()?)?.take();
        self.open -= usize::from(stamp.is_some());
        stamp
    }

    /// Takes the oldest.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Stamp<R>> {
        let oldest = self.oldest.take()?;
        self.first += 1;
        self.open -= 1;
        if !self.later.is_empty() {
            self.oldest = self.next();
        }
        Some(oldest)
    }

    /// Takes the oldest of the later ones.
    #[inline]
    fn next(&mut self) -> Option<Stamp<R>> {
        loop {
            match self.later.pop_front()? {
                None => self.first += 1,
                found => return found,
            }
        }
    }

    /// Numbers what is open from 0, for another connection.
    pub(super) fn renumber(&mut self) {
        self.first = 0;
        self.later.retain(Option::is_some);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stamp<R>> {
        self.oldest.iter().chain(self.later.iter().flatten())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stamp<R>> {
        self.oldest.iter_mut().chain(self.later.iter_mut().flatten())
    }
}

/// One lane.
pub(super) struct Lane<P: Protocol> {
    pub conn: Option<Conn>,
    /// When the connection was asked for.
    pub dialed: Time,
    pub connected: bool,
    /// The connection can carry exchanges.
    pub ready: bool,
    /// The kernel has a payload that it has not sent yet.
    pub sending: bool,
    /// When the connection was made, or when the kernel last reported that it had taken what was to be sent.
    pub taken: Time,
    /// When something was last received.
    pub heard: Time,
    pub state: Option<P::State>,
    pub stamps: Stamps<P::Request>,
    /// Whether the lane is in the queue of idle lanes.
    pub idle: bool,
    /// No new connection is tried before this time.
    pub retry_at: Option<Time>,
    /// How many exchanges may be open; 0 if the peer takes no more.
    depth: usize,
}

impl<P: Protocol> Lane<P> {
    /// Begins no further exchange on this connection.
    pub(super) fn refuse(&mut self) {
        self.depth = 0;
    }

    pub(super) fn has_room(&self) -> bool {
        self.stamps.len() < self.depth
    }

    /// When it last sent anything.
    pub(super) fn last_sent(&self) -> Time {
        self.stamps.newest().map_or(self.taken, |newest| newest.sent.max(self.taken))
    }

    /// Whether the oldest exchange has taken too long. The timeout counts from the last byte of its request to the whole
    /// answer. Before the connection is made, it limits the connecting. In a pool it counts from the intended send.
    pub(super) fn is_overdue(&self, now: Time, share: &Share) -> bool {
        let Some(oldest) = self.stamps.oldest() else { return false };
        let sent = if self.ready { oldest.sent.max(self.taken) } else { oldest.sent };
        match share.idle_timeout {
            Some(idle) if self.ready && self.heard > sent => now.since(self.heard) >= idle,
            _ => now.since(if share.pool { oldest.intended } else { sent }) >= share.timeout,
        }
    }
}

/// All lanes, by number or by connection.
pub(super) struct Lanes<P: Protocol> {
    lanes: Vec<Lane<P>>,
    /// Lane numbers by the connection's index in the reactor.
    by_conn: Vec<u32>,
    /// How many exchanges may be open on a lane.
    depth: usize,
}

impl<P: Protocol> Lanes<P> {
    pub(super) fn new(count: usize, depth: usize) -> Self {
        let now = Time::now();
        let lane = || Lane {
            conn: None,
            dialed: now,
            connected: false,
            ready: false,
            sending: false,
            taken: now,
            heard: now,
            state: None,
            stamps: Stamps::default(),
            idle: false,
            retry_at: None,
            depth,
        };
        Self { lanes: std::iter::repeat_with(lane).take(count).collect(), by_conn: Vec::new(), depth }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane<P>> {
        self.lanes.iter()
    }

    /// The number of the lane that uses this connection.
    pub(super) fn find(&self, conn: Conn) -> Option<usize> {
        let index = *self.by_conn.get(conn.index())? as usize;
        (self.lanes.get(index)?.conn == Some(conn)).then_some(index)
    }

    /// Gives a lane a connection that is being made.
    pub(super) fn attach(&mut self, index: usize, conn: Conn, now: Time) {
        if self.by_conn.len() <= conn.index() {
            self.by_conn.resize(conn.index() + 1, u32::MAX);
        }
        if let Some(lane) = self.by_conn.get_mut(conn.index()) {
            *lane = index as u32;
        }
        let lane = &mut self[index];
        lane.conn = Some(conn);
        lane.dialed = now;
        (lane.connected, lane.ready) = (false, false);
        lane.retry_at = None;
    }

    /// Takes a lane's connection away, and forgets its state. What is open is numbered anew.
    pub(super) fn detach(&mut self, index: usize) -> Option<Conn> {
        let depth = self.depth;
        let lane = &mut self[index];
        (lane.connected, lane.ready) = (false, false);
        lane.sending = false;
        lane.state = None;
        lane.depth = depth;
        lane.stamps.renumber();
        lane.conn.take()
    }
}

impl<P: Protocol> Index<usize> for Lanes<P> {
    type Output = Lane<P>;
    #[expect(clippy::indexing_slicing, reason = "callers have the number of a lane")]
    fn index(&self, index: usize) -> &Lane<P> {
        &self.lanes[index]
    }
}

impl<P: Protocol> IndexMut<usize> for Lanes<P> {
    #[expect(clippy::indexing_slicing, reason = "callers have the number of a lane")]
    fn index_mut(&mut self, index: usize) -> &mut Lane<P> {
        &mut self.lanes[index]
    }
}
