//! The connections of one thread, as the driver sees them. A lane carries exchanges on a connection, which may be lost and
//! replaced.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use reactor::{Conn, Time};

use super::Share;

/// When an exchange should have been sent, and when it was sent.
pub(super) struct Stamp {
    pub intended: Time,
    pub sent: Time,
}

/// One lane.
pub(super) struct Lane<S> {
    pub conn: Option<Conn>,
    pub connected: bool,
    /// The kernel has a payload that it has not sent yet.
    pub sending: bool,
    /// When the connection was made, or when the kernel last reported that it had taken what was to be sent.
    pub taken: Time,
    /// When something was last received.
    pub heard: Time,
    pub state: Option<S>,
    /// The open exchanges, oldest first.
    pub stamps: VecDeque<Stamp>,
    /// Exchanges that ended on the current connection.
    pub carried: u64,
    /// Whether the lane is in the queue of idle lanes.
    pub idle: bool,
    /// No new connection is tried before this time.
    pub retry_at: Option<Time>,
    depth: usize,
}

impl<S> Lane<S> {
    pub(super) fn has_room(&self) -> bool {
        self.stamps.len() < self.depth
    }

    /// When it last sent anything.
    pub(super) fn last_sent(&self) -> Time {
        self.stamps.back().map_or(self.taken, |newest| newest.sent.max(self.taken))
    }

    /// Whether the oldest exchange has taken too long. The timeout counts from the last byte of its request to the whole
    /// answer, and before that to the connection. A pool's counts from the beginning, with the wait for the connection.
    pub(super) fn is_overdue(&self, now: Time, share: &Share) -> bool {
        let Some(oldest) = self.stamps.front() else { return false };
        let sent = if self.connected { oldest.sent.max(self.taken) } else { oldest.sent };
        match share.idle_timeout {
            Some(idle) if self.connected && self.heard > sent => now.since(self.heard) >= idle,
            _ => now.since(if share.pool { oldest.intended } else { sent }) >= share.timeout,
        }
    }
}

/// All lanes, by number or by connection.
pub(super) struct Lanes<S> {
    lanes: Vec<Lane<S>>,
    /// Lane numbers by the connection's index in the reactor.
    by_conn: Vec<u32>,
}

impl<S> Lanes<S> {
    pub(super) fn new(count: usize, depth: usize) -> Self {
        let now = Time::now();
        let lane = || Lane {
            conn: None,
            connected: false,
            sending: false,
            taken: now,
            heard: now,
            state: None,
            stamps: VecDeque::new(),
            carried: 0,
            idle: false,
            retry_at: None,
            depth,
        };
        Self { lanes: std::iter::repeat_with(lane).take(count).collect(), by_conn: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane<S>> {
        self.lanes.iter()
    }

    /// The number of the lane that uses this connection.
    pub(super) fn find(&self, conn: Conn) -> Option<usize> {
        let index = *self.by_conn.get(conn.index())? as usize;
        (self.lanes.get(index)?.conn == Some(conn)).then_some(index)
    }

    /// Gives a lane a connection that is being made.
    pub(super) fn attach(&mut self, index: usize, conn: Conn) {
        if self.by_conn.len() <= conn.index() {
            self.by_conn.resize(conn.index() + 1, u32::MAX);
        }
        self.by_conn[conn.index()] = index as u32;
        let lane = &mut self.lanes[index];
        lane.conn = Some(conn);
        lane.connected = false;
        lane.carried = 0;
        lane.retry_at = None;
    }

    /// Takes a lane's connection away, and forgets its state.
    pub(super) fn detach(&mut self, index: usize) -> Option<Conn> {
        let lane = &mut self.lanes[index];
        lane.connected = false;
        lane.sending = false;
        lane.state = None;
        lane.conn.take()
    }
}

impl<S> Index<usize> for Lanes<S> {
    type Output = Lane<S>;
    fn index(&self, index: usize) -> &Lane<S> {
        &self.lanes[index]
    }
}

impl<S> IndexMut<usize> for Lanes<S> {
    fn index_mut(&mut self, index: usize) -> &mut Lane<S> {
        &mut self.lanes[index]
    }
}
