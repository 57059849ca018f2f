//! The connections of one thread, as the driver sees them: lines that carry exchanges, each on a connection that may be
//! lost and made again.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use reactor::{Conn, Time};

/// When an exchange was wanted, and when it was sent.
pub(super) struct Stamp {
    pub intended: Time,
    pub sent: Time,
}

/// One line.
pub(super) struct Line<S> {
    pub conn: Option<Conn>,
    pub connected: bool,
    /// A payload is with the kernel.
    pub sending: bool,
    pub state: Option<S>,
    /// The open exchanges, oldest first.
    pub stamps: VecDeque<Stamp>,
    /// When patience ends: a timeout after the last byte that the kernel took, or after the exchange began.
    pub deadline: Time,
    /// Exchanges that ended on the present connection.
    pub carried: u64,
    /// It stands in the queue of idle lines.
    pub idle: bool,
    /// No connection is tried before this.
    pub retry_at: Option<Time>,
    depth: usize,
}

impl<S> Line<S> {
    pub(super) fn has_room(&self) -> bool {
        self.stamps.len() < self.depth
    }

    /// An answer came: the exchange that is now the oldest has its own patience.
    pub(super) fn restamp(&mut self, now: Time, timeout: Duration) {
        if !self.stamps.is_empty() {
            self.deadline = now + timeout;
        }
    }
}

/// All lines, found by number or by connection.
pub(super) struct Lines<S> {
    lines: Vec<Line<S>>,
    /// Line numbers by the connection's index in the reactor.
    by_conn: Vec<u32>,
}

impl<S> Lines<S> {
    pub(super) fn new(count: usize, depth: usize) -> Self {
        let now = Time::now();
        let line = || Line {
            conn: None,
            connected: false,
            sending: false,
            state: None,
            stamps: VecDeque::new(),
            deadline: now,
            carried: 0,
            idle: false,
            retry_at: None,
            depth,
        };
        Self { lines: std::iter::repeat_with(line).take(count).collect(), by_conn: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The line of a connection that is still its own.
    pub(super) fn of(&self, conn: Conn) -> Option<usize> {
        let index = *self.by_conn.get(conn.index())? as usize;
        (self.lines.get(index)?.conn == Some(conn)).then_some(index)
    }

    /// A connection is being made for a line.
    pub(super) fn attach(&mut self, index: usize, conn: Conn) {
        if self.by_conn.len() <= conn.index() {
            self.by_conn.resize(conn.index() + 1, u32::MAX);
        }
        self.by_conn[conn.index()] = index as u32;
        let line = &mut self.lines[index];
        line.conn = Some(conn);
        line.connected = false;
        line.carried = 0;
        line.retry_at = None;
    }

    /// The line loses its connection and what it remembered of it.
    pub(super) fn detach(&mut self, index: usize) -> Option<Conn> {
        let line = &mut self.lines[index];
        line.connected = false;
        line.sending = false;
        line.state = None;
        line.conn.take()
    }
}

impl<S> Index<usize> for Lines<S> {
    type Output = Line<S>;
    fn index(&self, index: usize) -> &Line<S> {
        &self.lines[index]
    }
}

impl<S> IndexMut<usize> for Lines<S> {
    fn index_mut(&mut self, index: usize) -> &mut Line<S> {
        &mut self.lines[index]
    }
}
