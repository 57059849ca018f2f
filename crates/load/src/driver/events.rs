//! What the driver does when something happens on a connection.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reactor::{Conn, Event, Handler, Io, Time};

use super::{Driver, exchanges::Exchange};
use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::{Mark, Protocol};

impl<P: Protocol> Driver<'_, P> {
    /// Handles bytes that arrived `age` ago.
    #[inline]
    fn received(&mut self, io: &mut Io, index: usize, bytes: &[u8], age: Duration) {
        let arrived = self.now.before(age);
        if self.window {
            self.tally.bytes_received += bytes.len() as u64;
        }
        let depth = self.lanes.depth;
        let lane = &mut self.lanes[index];
        let Some(session) = &mut lane.session else { return };
        lane.heard = self.now;
        let end = self.protocol.receive(session, bytes, &mut self.outcomes);
        let standing = self.protocol.standing(session);
        if standing.bulk
            && let Some(conn) = lane.conn
        {
            io.expect_bulk(conn);
        }
        let before = if P::IN_ORDER { (0, false) } else { (lane.room, lane.ready) };
        lane.make_room(standing, depth);
        if standing.ready && !lane.ready {
            self.ready(index);
        }
        if !P::IN_ORDER {
            self.look_at_room(index, before);
        }
        let returning = self.settle(index, bytes, arrived);
        match end {
            Err(fault) => {
                self.callers_return(returning);
                let lane = &self.lanes[index];
                if lane.ready && lane.exchanges.is_empty() && fault.class == ErrorClass::Protocol {
                    self.unasked(*fault, index);
                }
                self.give_up(io, index, *fault, !self.lanes[index].ready);
            }
            // What the peer has not processed begins anew on another connection.
            Ok(()) if self.lanes[index].is_spent() => {
                self.callers_return(returning);
                if !P::IN_ORDER {
                    self.multiplexed().renewed += 1;
                }
                self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), false)
            }
            Ok(()) if standing.over => {
                self.callers_return(returning);
                self.ended(io, index);
            }
            Ok(()) => {
                self.fill_with(io, index, (returning, usize::MAX));
                if standing.speaks {
                    self.pump(io, index);
                }
            }
        }
    }

    /// Counts what became of a lane's exchanges. `bytes` is what arrived last. Returns how many exchanges have ended.
    #[inline]
    fn settle(&mut self, index: usize, bytes: &[u8], arrived: Time) -> usize {
        if !self.outcomes.marks.is_empty() {
            self.take_marks(index, arrived);
        }
        let mut ended = 0;
        for at in 0..self.outcomes.ends.len() {
            let Some(end) = self.outcomes.ends.get(at) else { break };
            let lane = &mut self.lanes[index];
            let Some(exchange) = lane.exchanges.take(end.id) else { continue };
            // Nearly always this is false: answers have one part, and no limits of their times.
            let in_parts = lane.exchanges.has_parts() || self.share.goal.is_some();
            lane.answered = true;
            ended += 1;
            match end.result {
                Ok(success) => {
                    let id = end.id;
                    self.succeeded(success, &exchange, arrived);
                    if in_parts {
                        self.came_in_parts((index, id), &exchange, arrived);
                    }
                }
                Err(fault) => self.failed_with(fault, bytes, &exchange, (index, end.id)),
            }
        }
        self.open -= ended as u64;
        self.outcomes.ends.clear();
        ended
    }

    /// Takes note of what became of exchanges that have not ended.
    #[cold]
    fn take_marks(&mut self, index: usize, arrived: Time) {
        self.wakeful = true;
        let mut marks = std::mem::take(&mut self.outcomes.marks);
        for (id, mark) in marks.drain(..) {
            let exchanges = &mut self.lanes[index].exchanges;
            match mark {
                Mark::Interim => exchanges.came(id, None, arrived),
                Mark::Answering => exchanges.came(id, Some(arrived), arrived),
                Mark::Streaming(brought) => self.streamed(index, id, brought, arrived),
                Mark::Refused => exchanges.refuse(id),
            }
        }
        // Its memory serves the next ones.
        self.outcomes.marks = marks;
    }

    /// Records the times of the parts of a right answer, if it came in parts.
    #[cold]
    fn came_in_parts(&mut self, (index, id): (usize, u64), exchange: &Exchange<P::Request>, ended: Time) {
        let parts = self.lanes[index].exchanges.forget(id);
        self.look_whether_good(parts.as_ref(), exchange, ended);
        let Some(parts) = parts else { return };
        match (&parts.course, parts.first) {
            (Some(course), _) => self.stream_succeeded(course, exchange.intended, ended),
            (None, Some(first)) if self.times_count(exchange.intended) => {
                self.first_byte(first, exchange.intended, exchange.sent);
            }
            _ => {}
        }
    }

    /// Counts an exchange that failed because of these bytes, if there are any.
    #[cold]
    fn failed_with(&mut self, fault: Fault, bytes: &[u8], exchange: &Exchange<P::Request>, at: (usize, u64)) {
        if self.protocol.is_legible() && !bytes.is_empty() && !fault.seen.shows_bytes() {
            self.heard = Seen::bytes(bytes);
        }
        self.lost(fault, exchange, at);
        self.stream_unanswered(at.0, Some(at.1), (exchange.intended, exchange.sent));
        self.lanes[at.0].exchanges.forget(at.1);
        self.heard = Seen::Nothing;
    }

    fn ended(&mut self, io: &mut Io, index: usize) {
        let Some(session) = &mut self.lanes[index].session else { return };
        let fault = self.protocol.end(session, &mut self.outcomes);
        let returning = self.settle(index, &[], self.now);
        self.callers_return(returning);
        let opening = !self.lanes[index].ready;
        self.give_up(io, index, fault, opening);
    }

    fn connected(&mut self, io: &mut Io, index: usize) {
        self.tally.total.connections += 1;
        if self.tally.total.connections == 1 {
            self.beginning.connected.store(true, Ordering::Relaxed);
        }
        let depth = self.lanes.depth;
        let lane = &mut self.lanes[index];
        let asks = self.protocol.asks_for_ends();
        let ends = lane.conn.filter(|_| asks).and_then(|conn| io.ends(conn));
        let session = self.protocol.open(index, ends);
        let standing = self.protocol.standing(&session);
        lane.session = Some(session);
        lane.make_room(standing, depth);
        if standing.ready {
            self.ready(index);
        }
        self.pump(io, index);
    }

    /// Begins the exchanges of a connection, because its opening has ended.
    fn ready(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        (lane.ready, lane.taken) = (true, self.now);
        if let Some(handshake) = lane.session.as_ref().and_then(|session| self.protocol.handshake(session))
            && self.window
        {
            self.tally.handshakes.count(handshake, self.now.nanos_since(lane.dialed));
        }
        // If each request makes its own connection, opening it is part of the exchange. On a kept connection an exchange
        // counts from its send.
        if self.protocol.keeps_connections() {
            for exchange in lane.exchanges.iter_mut() {
                exchange.sent = self.now;
            }
        }
        lane.begin(&mut self.protocol);
    }
}

impl<P: Protocol> Handler for Driver<'_, P> {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        let Some(index) = self.lanes.find(conn) else {
            return self.partings.event(io, &mut self.protocol, conn, event);
        };
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
                let connecting = !self.lanes[index].is_connected();
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
