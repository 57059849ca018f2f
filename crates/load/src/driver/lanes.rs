//! The connections of one thread, as the driver sees them. A lane carries exchanges on a connection, which may be lost and
//! replaced.

use std::ops::{Index, IndexMut};
use std::time::Duration;

use reactor::{Conn, Time};

use super::Share;
use super::exchanges::{Exchange, Exchanges};
use crate::protocol::{Protocol, Standing};

/// One lane.
pub(super) struct Lane<P: Protocol> {
    pub conn: Option<Conn>,
    /// When the connection was asked for.
    pub dialed: Time,
    /// The session has been opened, and exchanges may begin.
    pub ready: bool,
    /// The kernel has a payload that it has not sent yet.
    pub sending: bool,
    /// When the connection was made, or when the kernel last reported that it had taken what was to be sent.
    pub taken: Time,
    /// When something was last received.
    pub heard: Time,
    /// There is one as soon as the connection is made.
    pub session: Option<P::Session>,
    pub exchanges: Exchanges<P::Request>,
    /// Whether an exchange has ended on this connection.
    pub answered: bool,
    /// Whether the lane is in the queue of idle lanes.
    pub idle: bool,
    /// No new connection is tried before this time.
    pub retry_at: Option<Time>,
    /// How many exchanges may be open; 0 if nothing further begins on this connection.
    pub room: usize,
    /// Closed loop: how many callers have no place, because the peer allows fewer exchanges than they would have open.
    pub surplus: usize,
    /// When the first exchange was given up since something was heard.
    pub cancelled: Option<Time>,
}

impl<P: Protocol> Lane<P> {
    pub(super) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.exchanges.len() < self.room
    }

    /// Whether the connection has carried what it could.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.room == 0 && self.exchanges.under_way() == 0
    }

    /// Takes over how many exchanges the session has room for, of at most `depth`.
    #[inline]
    pub(super) fn make_room(&mut self, standing: Standing, depth: usize) {
        self.room = standing.capacity.min(if standing.ready { depth } else { first_room::<P>(depth) });
    }

    /// Begins what waits, as far as the session has room.
    #[inline]
    pub(super) fn begin(&mut self, protocol: &mut P) {
        if self.exchanges.waiting() > 0 {
            self.begin_waiting(protocol);
        }
    }

    #[inline(never)]
    fn begin_waiting(&mut self, protocol: &mut P) {
        let Some(session) = self.session.as_mut().filter(|_| self.ready) else { return };
        while self.exchanges.waiting() > 0 && self.exchanges.under_way() < self.room {
            let Some(request) = self.exchanges.begin() else { break };
            protocol.begin(session, request);
        }
    }

    /// Whether the peer seems to be gone: nothing was heard for this long since an exchange was given up.
    pub(super) fn is_dead(&self, now: Time, timeout: Duration) -> bool {
        self.cancelled.is_some_and(|since| since >= self.heard && now.since(since) >= timeout)
    }

    /// An exchange was given up.
    pub(super) fn note_cancel(&mut self, now: Time) {
        if self.cancelled.is_none_or(|since| since < self.heard) {
            self.cancelled = Some(now);
        }
    }

    /// The newest exchange that has waited for so long for an interim answer, if one does.
    pub(super) fn waited(&self, ago: Duration, now: Time) -> Option<u64> {
        if !P::IN_ORDER {
            return self.exchanges.began(ago, now);
        }
        let last_sent = self.exchanges.newest().map_or(self.taken, |newest| newest.sent.max(self.taken));
        (now.since(last_sent) >= ago).then_some(u64::MAX)
    }

    /// The place and the id of the first exchange from this place on that has taken too long.
    pub(super) fn overdue(&self, from: usize, now: Time, share: &Share) -> Option<(usize, Option<u64>)> {
        (from..self.exchanges.len()).find_map(|place| {
            let (id, exchange) = self.exchanges.at(place)?;
            self.is_overdue(id, exchange, now, share).then_some((place, id))
        })
    }

    /// Whether an exchange has taken too long. The timeout counts from the last byte of its request to the whole answer.
    /// Before the connection is made, it limits the connecting. In a pool it counts from the intended send.
    fn is_overdue(&self, id: Option<u64>, exchange: &Exchange<P::Request>, now: Time, share: &Share) -> bool {
        let since = if share.pool { exchange.intended } else { exchange.sent };
        if !self.ready {
            // A request that GOAWAY refused waits for the next connection, which has its own time.
            return now.since(since.max(self.dialed)) >= share.timeout;
        }
        // Without an order, what the connection sends and receives may belong to any exchange.
        let (taken, heard) = if P::IN_ORDER {
            (self.taken, Some(self.heard))
        } else {
            let sent = id.and_then(|id| self.exchanges.last_push(id)).unwrap_or(exchange.sent);
            (sent, id.and_then(|id| self.exchanges.last_part(id)))
        };
        let sent = exchange.sent.max(taken);
        match (share.idle_timeout, heard) {
            (Some(idle), Some(heard)) if heard > sent => now.since(heard) >= idle,
            _ => now.since(if share.pool { exchange.intended } else { sent }) >= share.timeout,
        }
    }
}

/// How many exchanges may wait for a connection that is not ready. One that carries many at once says only then how many.
fn first_room<P: Protocol>(depth: usize) -> usize {
    if P::IN_ORDER { depth } else { depth.min(1) }
}

/// All lanes, by number or by connection.
pub(super) struct Lanes<P: Protocol> {
    lanes: Vec<Lane<P>>,
    /// Lane numbers by the connection's index in the reactor.
    by_conn: Vec<u32>,
    /// How many exchanges may be open on a lane, if the session has room for them.
    pub depth: usize,
}

impl<P: Protocol> Lanes<P> {
    pub(super) fn new(count: usize, depth: usize) -> Self {
        let now = Time::now();
        let lane = || Lane {
            conn: None,
            dialed: now,
            ready: false,
            sending: false,
            taken: now,
            heard: now,
            session: None,
            exchanges: Exchanges::default(),
            answered: false,
            idle: false,
            retry_at: None,
            room: first_room::<P>(depth),
            surplus: 0,
            cancelled: None,
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
        lane.ready = false;
        lane.retry_at = None;
    }

    /// Takes a lane's connection away, and forgets its session. What is open waits for the next one.
    pub(super) fn detach(&mut self, index: usize) -> Option<Conn> {
        let depth = self.depth;
        let lane = &mut self[index];
        (lane.ready, lane.sending, lane.answered) = (false, false, false);
        lane.session = None;
        (lane.room, lane.cancelled) = (first_room::<P>(depth), None);
        lane.exchanges.start_over();
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
