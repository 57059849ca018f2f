//! What the driver does when something happens on a connection.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reactor::{Conn, Event, Handler, Io, Time};

use super::Driver;
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
        let speaks = self.protocol.has_to_speak(state);
        if !lane.ready {
            if self.protocol.is_ready(state) {
                self.ready(index);
            }
        } else {
            self.in_parts |= self.replies.is_empty();
        }
        let mut keep = true;
        for at in 0..self.replies.len() {
            let reply = &self.replies[at];
            keep &= reply.keep;
            match &reply.result {
                Ok(success) => self.settle(index, Ok(*success), arrived),
                Err(fault) => {
                    let fault = *fault;
                    if P::LEGIBLE && !fault.seen.shows_bytes() {
                        self.heard = Seen::bytes(bytes);
                    }
                    self.settle(index, Err(&fault), arrived);
                    self.heard = Seen::Nothing;
                }
            }
        }
        self.replies.clear();
        match end {
            Err(fault) => {
                if speaks {
                    // An alert tells the peer why.
                    self.pump(io, index);
                }
                self.give_up(io, index, fault, !self.lanes[index].ready);
            }
            // Requests that were pipelined after the last answer are lost with the connection.
            Ok(()) if !keep => {
                self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), false)
            }
            Ok(()) => {
                self.fill(io, index);
                if speaks {
                    self.pump(io, index);
                }
            }
        }
    }

    fn ended(&mut self, io: &mut Io, index: usize) {
        if let Some(state) = &mut self.lanes[index].state
            && let Some(reply) = self.protocol.end(state)
        {
            self.settle(index, reply.result.as_ref().copied(), self.now);
        }
        let opening = !self.lanes[index].ready;
        self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), opening);
    }

    fn connected(&mut self, io: &mut Io, index: usize) {
        self.tally.total.connections += 1;
        if self.tally.total.connections == 1 {
            self.beginning.connected.store(true, Ordering::Relaxed);
        }
        let lane = &mut self.lanes[index];
        lane.connected = true;
        let state = lane.state.get_or_insert_with(|| self.protocol.open(index));
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
