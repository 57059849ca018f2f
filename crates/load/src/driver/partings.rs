//! Connections that are of no more use to the driver, while their peers still hear why: a GOAWAY or an alert.
//!
//! A socket that is closed at once answers whatever still arrives with a reset, and a reset may overtake what was sent before it
//! (RFC 9112 section 9.6). So the sending side is closed first, and what arrives is ignored until the peer has closed as well.

use std::time::Duration;

use reactor::{Conn, Event, Io, Time};

use crate::protocol::{Next, Protocol};

/// How long a peer has to close its side.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// How many connections part at once. Further ones are closed without a word, so that a hostile peer cannot use up the files.
const MOST: usize = 64;

/// The connections that part.
pub(super) struct Partings<P: Protocol> {
    all: Vec<Parting<P>>,
}

struct Parting<P: Protocol> {
    conn: Conn,
    /// What is still to be said, until all of it is.
    session: Option<P::Session>,
    until: Time,
}

impl<P: Protocol> Default for Partings<P> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<P: Protocol> Partings<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Ends a connection. `sending` says whether the kernel still has a payload of it.
    pub(super) fn begin(
        &mut self,
        io: &mut Io,
        protocol: &mut P,
        (conn, session, sending): (Conn, P::Session, bool),
        now: Time,
    ) {
        if self.all.len() >= MOST {
            return io.close(conn);
        }
        let mut parting = Parting { conn, session: Some(session), until: now + PATIENCE };
        if !sending {
            parting.speak(io, protocol);
        }
        self.all.push(parting);
    }

    /// Handles what happens on a connection that belongs to no lane.
    #[cold]
    pub(super) fn event(&mut self, io: &mut Io, protocol: &mut P, conn: Conn, event: Event<'_>) {
        let Some(place) = self.all.iter().position(|parting| parting.conn == conn) else { return };
        match event {
            Event::Sent(payload) => {
                protocol.sent(payload);
                if let Some(parting) = self.all.get_mut(place) {
                    parting.speak(io, protocol);
                }
            }
            Event::Eof | Event::Failed(_) => {
                self.all.swap_remove(place);
                io.close(conn);
            }
            Event::Received(..) | Event::Connected | Event::Accepted(_) => {}
        }
    }

    /// Closes the connections whose peers have not closed in time.
    pub(super) fn sweep(&mut self, io: &mut Io, now: Time) {
        self.all.retain(|parting| {
            let waits = now < parting.until;
            if !waits {
                io.close(parting.conn);
            }
            waits
        });
    }
}

impl<P: Protocol> Parting<P> {
    /// Sends what is to be said, and then closes the sending side.
    fn speak(&mut self, io: &mut Io, protocol: &mut P) {
        while let Some(session) = &mut self.session {
            match protocol.next(session, true) {
                Next::Send(payload) => match io.send(self.conn, payload) {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(_) => self.session = None,
                },
                Next::HalfClose | Next::Fail(_) | Next::Nothing => self.session = None,
            }
        }
        io.half_close(self.conn);
    }
}
