//! What the driver does when something happens on a connection.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reactor::{Conn, Event, Handler, Io, Time};

use super::{Driver, lanes::Stamp};
use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::Protocol;

impl<P: Protocol> Driver<'_, P> {
    /// Handles bytes that arrived `age` ago.
    #[inline]
    fn received(&mut self, io: &mut Io, index: usize, bytes: &[u8], age: Duration) {
        let arrived = self.now.before(age);
        if self.window {
            self.tally.bytes_received += bytes.len() as u64;
        }
        let lane = &mut self.lanes[index];
        let Some(state) = &mut lane.state else { return };
        lane.heard = self.now;
        let end = self.protocol.receive(state, bytes, &mut self.replies);
        if self.protocol.expects_bulk(state)
            && let Some(conn) = lane.conn
        {
            io.expect_bulk(conn);
        }
        let (speaks, limit) = (self.protocol.has_to_speak(state), self.protocol.limit(state));
        let over = self.protocol.is_over(state);
        let opens = !lane.ready && self.protocol.is_ready(state);
        if limit < u64::MAX {
            lane.refuse();
        }
        if opens {
            self.ready(index);
        } else if lane.ready {
            self.in_parts |= self.replies.is_empty();
        }
        self.settle_replies(index, bytes, arrived);
        match end {
            Err(fault) => {
                if speaks {
                    // An alert tells the peer why.
                    self.pump(io, index);
                }
                self.give_up(io, index, fault, !self.lanes[index].ready);
            }
            // What the peer has not processed begins anew on another connection.
            Ok(()) if limit < u64::MAX && self.lanes[index].stamps.first() >= limit => {
                self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), false)
            }
            Ok(()) if over => self.ended(io, index),
            Ok(()) => {
                self.fill(io, index);
                if speaks {
                    self.pump(io, index);
                }
            }
        }
    }

    /// Counts the exchanges that have ended. `bytes` is what arrived last.
    #[inline]
    fn settle_replies(&mut self, index: usize, bytes: &[u8], ended: Time) {
        for at in 0..self.replies.len() {
            let Some(reply) = self.replies.get(at) else { break };
            let Some(stamp) = self.lanes[index].stamps.take(reply.number) else { continue };
            self.open -= 1;
            match reply.result {
                Ok(success) => self.succeeded(success, &stamp, ended),
                Err(fault) => self.failed_with(fault, bytes, &stamp, (index, reply.number)),
            }
            self.caller_returns();
        }
        self.replies.clear();
    }

    /// Counts an exchange that failed because of these bytes, if there are any.
    #[cold]
    fn failed_with(&mut self, fault: Fault, bytes: &[u8], stamp: &Stamp<P::Request>, at: (usize, u64)) {
        if P::LEGIBLE && !bytes.is_empty() && !fault.seen.shows_bytes() {
            self.heard = Seen::bytes(bytes);
        }
        self.lost(fault, stamp, at);
        self.heard = Seen::Nothing;
    }

    fn ended(&mut self, io: &mut Io, index: usize) {
        let Some(state) = &mut self.lanes[index].state else { return };
        let fault = self.protocol.end(state, &mut self.replies);
        self.settle_replies(index, &[], self.now);
        let opening = !self.lanes[index].ready;
        self.give_up(io, index, fault, opening);
    }

    fn connected(&mut self, io: &mut Io, index: usize) {
        self.tally.total.connections += 1;
        if self.tally.total.connections == 1 {
            self.beginning.connected.store(true, Ordering::Relaxed);
        }
        let lane = &mut self.lanes[index];
        lane.connected = true;
        let state = lane.state.get_or_insert_with(|| self.protocol.open(index));
        if P::SAYS_ENDS {
            self.protocol.connected(state, lane.conn.and_then(|conn| io.ends(conn)));
        }
        if self.protocol.is_ready(state) {
            self.ready(index);
        }
        self.pump(io, index);
    }

    /// Lets a connection carry exchanges, because its opening has ended.
    fn ready(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        (lane.ready, lane.taken) = (true, self.now);
        if let Some(handshake) = lane.state.as_ref().and_then(|state| self.protocol.handshake(state))
            && self.window
        {
            self.tally.handshakes.count(handshake, self.now.nanos_since(lane.dialed));
        }
        // If each request makes its own connection, opening it is part of the exchange. On a kept connection an exchange
        // counts from its send.
        if self.protocol.keeps_connections() {
            for stamp in lane.stamps.iter_mut() {
                stamp.sent = self.now;
            }
        }
    }
}

impl<P: Protocol> Handler for Driver<'_, P> {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        let Some(index) = self.lanes.find(conn) else { return };
        self.now = Time::now();
        match event {
            Event::Received(bytes, age) => self.received(io, index, bytes, age),
            Event::Sent(payload) => {
                self.protocol.sent(payload);
                let lane = &mut self.lanes[index];
                (lane.sending, lane.taken) = (false, self.now);
                self.pump(io, index);
            }
            Event::Connected => self.connected(io, index),
            Event::Eof => self.ended(io, index),
            Event::Failed(errno) => {
                let connecting = !self.lanes[index].connected;
                if connecting
                    && matches!(errno, libc::ECONNREFUSED | libc::ENOENT)
                    && !self.beginning.connected.load(Ordering::Relaxed)
                {
                    self.beginning.refused.store(true, Ordering::Relaxed);
                    self.refused = Some(io::Error::from_raw_os_error(errno));
                }
                self.give_up(io, index, Fault::from_errno(errno, connecting), connecting);
            }
            Event::Accepted(_) => {}
        }
    }
}
