//! The loop of one serving thread: connects sockets with the protocols.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use reactor::timers::Timers;
use reactor::{Conn, Event, Handler, Io, Payload, Reactor, ReactorConfig};

use crate::http::{Rules, Wants};
use crate::limits::{HELD, UNSENT};
use crate::peer::Peer;
use crate::replaced::RecentPeaks;
use crate::secure::Secure;
use crate::{Config, Counters, Limits, Speaks};

/// The loop turns at least this often. A stop wakes it through its listeners; this is in case that fails.
const TURN: Duration = Duration::from_millis(50);
/// How long a peer that was still sending may take to end its side after the server has ended its own.
const LINGER: Duration = Duration::from_secs(2);

/// One serving thread.
struct Worker<'a> {
    rules: Rules,
    limits: Limits,
    counts: &'a Counters,
    /// The protocol of each listener.
    ports: Vec<(Conn, Speaks)>,
    tls: Option<&'a tls::Listener>,
    seats: Vec<Option<Seat>>,
    timers: Timers<Conn>,
    recent_peaks: RecentPeaks,
    /// The bytes that all connections hold.
    held: usize,
    /// When to look for connections that stand still.
    next_look: Instant,
}

/// A connection and its protocol state.
struct Seat {
    conn: Conn,
    peer: Peer,
    secure: Option<Secure>,
    out: Vec<u8>,
    /// How many answers are in `out`.
    queued: u64,
    /// How many answers are in the payload that the kernel has, and its bytes.
    under_way: u64,
    sent_bytes: usize,
    sending: bool,
    /// Its bytes in [`Worker::held`].
    held: usize,
    /// Whether the server reads nothing more before the peer has taken answers.
    paused: bool,
    /// When it last began, or something became complete: a request, a frame, an answer.
    moved: Instant,
    /// When it was accepted.
    since: Instant,
    /// The last timer that was set for it.
    wakes_at: Option<Instant>,
    heard_all: bool,
    /// What it sent was no TLS, or broke the rules of TLS. The server says why in an alert, and ignores what else arrives.
    refused: bool,
    /// Set when the server has ended its side: until then it reads what the peer still sends.
    lingers_until: Option<Instant>,
}

/// Serves until `stop` is set.
pub(crate) fn serve(
    config: &Config,
    listeners: Vec<(TcpListener, Speaks)>,
    core: Option<usize>,
    counts: &Counters,
    stop: &AtomicBool,
) -> io::Result<()> {
    if let Some(core) = core {
        reactor::pin(core);
    }
    let mut reactor = Reactor::new(ReactorConfig { backend: config.backend, ..ReactorConfig::MESSAGES })?;
    let ports = listeners
        .into_iter()
        .map(|(listener, speaks)| Ok((reactor.io().listen(listener)?, speaks)))
        .collect::<io::Result<Vec<_>>>()?;
    let Config { max_keepalive, farewell, limits, http2, .. } = *config;
    let (body, patience) = (limits.body, limits.patience);
    let rules = Rules { max_keepalive, farewell, body, room: HELD, http2, patience };
    let (seats, timers, recent_peaks) = (Vec::new(), Timers::default(), RecentPeaks::default());
    let tls = config.tls.as_deref();
    let (held, next_look) = (0, Instant::now() + limits.patience);
    let mut worker =
        Worker { rules, limits, counts, ports, tls, seats, timers, recent_peaks, held, next_look };
    let mut worked = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let wait = worker.timers.wait(Instant::now()).unwrap_or(TURN).min(TURN);
        reactor.turn(wait, &mut worker)?;
        worker.wake(reactor.io());
        let cpu = reactor::thread_cpu();
        counts.worked(cpu.saturating_sub(worked));
        worked = cpu;
    }
    // The client may already have answers whose sending is not counted yet.
    reactor.turn(Duration::ZERO, &mut worker)
}

impl Seat {
    /// Hands bytes that arrived to the peer's protocol.
    fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counters) -> Wants {
        let Some(secure) = &mut self.secure else { return self.peer.hear(bytes, now, rules, counts) };
        let mut wants = Wants::default();
        let peer = &mut self.peer;
        // Both sides agree before the handshake ends, and the first bytes may come together with its end.
        let agreed = secure.agrees_on_http2();
        let sound = secure.open(bytes, |plain| {
            if agreed {
                peer.agree_on_http2(rules);
            }
            wants.add(peer.hear(plain, now, rules, counts));
        });
        if secure.speaks_http2() {
            peer.agree_on_http2(rules);
        }
        self.refused = !sound;
        if secure.ended() {
            self.peer.ended(&mut self.out);
        }
        wants
    }

    /// Adds the answers that are due to what is to be sent, and in the end a goodbye. What is not sent yet comes first.
    fn answer(&mut self, now: Instant) {
        if self.out.len() >= UNSENT {
            return;
        }
        let Some(secure) = &mut self.secure else {
            self.queued += self.peer.answers(now, &mut self.out);
            return;
        };
        if self.refused {
            return secure.seal(&[], &mut self.out);
        }
        let mut plain = Vec::new();
        self.queued += self.peer.answers(now, &mut plain);
        secure.seal(&plain, &mut self.out);
        if self.peer.over(self.heard_all) {
            secure.say_goodbye(&mut self.out);
        }
    }

    /// The bytes that it holds: not yet sent, and kept of the request being read.
    fn weight(&self) -> (usize, usize) {
        let (waiting, kept) = self.peer.held();
        (waiting + self.out.len() + self.sent_bytes, kept)
    }

    /// Whether it has stood still for longer than this, although the server did not let it wait. Whoever does not take what is sent is
    /// not let wait, whatever is due later.
    fn stands_still(&self, patience: Duration, now: Instant) -> bool {
        now.duration_since(self.moved) > patience && (self.sending || self.peer.waits_until(now).is_none())
    }

    /// Whether the connection ends once all is sent.
    fn is_over(&self) -> bool {
        self.refused || self.peer.over(self.heard_all)
    }

    /// Whether neither side has ended the connection.
    fn is_open(&self) -> bool {
        !self.heard_all && self.lingers_until.is_none()
    }
}

impl Worker<'_> {
    fn seat(&mut self, conn: Conn) -> Option<&mut Seat> {
        self.seats.get_mut(conn.index())?.as_mut().filter(|seat| seat.conn == conn)
    }

    #[expect(clippy::indexing_slicing, reason = "there are at least so many seats by then")]
    fn accept(&mut self, io: &mut Io, conn: Conn, listener: Conn) {
        let port = self.ports.iter().find(|(name, _)| *name == listener);
        let speaks = port.map_or(Speaks::Either, |(_, speaks)| *speaks);
        if self.seats.len() <= conn.index() {
            self.seats.resize_with(conn.index() + 1, || None);
        }
        let now = Instant::now();
        let channel = self.tls.filter(|_| speaks == Speaks::Https).map(|tls| tls.accept(SystemTime::now()));
        let secure = match channel {
            None => None,
            Some(Ok(channel)) => Some(Secure::new(channel)),
            // The system has no random numbers.
            Some(Err(_)) => return io.close(conn),
        };
        if !self.counts.seated(self.limits.connections) {
            return io.close(conn);
        }
        if self.counts.opened() {
            self.recent_peaks.note(now);
        }
        self.seats[conn.index()] = Some(Seat {
            conn,
            peer: Peer::new(speaks),
            secure,
            out: Vec::new(),
            queued: 0,
            under_way: 0,
            sent_bytes: 0,
            sending: false,
            held: 0,
            paused: false,
            moved: now,
            since: now,
            wakes_at: None,
            heard_all: false,
            refused: false,
            lingers_until: None,
        });
    }

    /// Handles a connection that the peer ends first.
    fn ended(&mut self, conn: Conn, now: Instant) {
        let Some(seat) = self.seat(conn).filter(|seat| seat.is_open()) else { return };
        let since = seat.since;
        if self.recent_peaks.was_replaced(since, now) {
            self.counts.replaced();
        }
    }

    fn leave(&mut self, io: &mut Io, conn: Conn) {
        if self.seat(conn).is_some() {
            self.forget(conn);
            io.close(conn);
        }
    }

    /// Gives up the seat of a connection.
    fn forget(&mut self, conn: Conn) {
        let Some(seat) = self.seats.get_mut(conn.index()).and_then(Option::take) else { return };
        self.held -= seat.held;
        self.counts.left();
        if seat.is_open() {
            self.counts.closed();
        }
    }

    /// Ends a connection from the server's side.
    ///
    /// If the peer may still be sending, only the server's side is ended. When a socket is closed with unread data, the kernel
    /// sends a reset, and the peer can lose the last answers, or an alert, before it reads them (RFC 9112, 9.6).
    fn hang_up(&mut self, io: &mut Io, conn: Conn, now: Instant) {
        let counts = self.counts;
        let Some(seat) = self.seat(conn) else { return };
        if !seat.refused {
            counts.hung_up();
            if !seat.peer.is_cut_short() {
                return self.leave(io, conn);
            }
        }
        seat.lingers_until = Some(now + LINGER);
        counts.closed();
        io.half_close(conn);
        self.timers.add(now + LINGER, conn);
    }

    /// Sends answers that have become due.
    fn wake(&mut self, io: &mut Io) {
        let now = Instant::now();
        while let Some(conn) = self.timers.due(now) {
            self.speak(io, conn, now);
        }
        if now >= self.next_look {
            self.next_look = now + self.limits.patience / 8;
            self.end_still(io, now);
        }
    }

    /// Closes the connections on which nothing becomes complete.
    #[cold]
    fn end_still(&mut self, io: &mut Io, now: Instant) {
        let patience = self.limits.patience;
        let still = self.seats.iter().flatten().filter(|seat| seat.stands_still(patience, now));
        for conn in still.map(|seat| seat.conn).collect::<Vec<_>>() {
            self.forget(conn);
            io.abort(conn);
        }
    }

    /// Counts what a connection holds, and stops reading from a peer that does not take its answers.
    fn weigh(&mut self, io: &mut Io, conn: Conn) {
        let Some(seat) =
            self.seats.get_mut(conn.index()).and_then(Option::as_mut).filter(|seat| seat.conn == conn)
        else {
            return;
        };
        let (unsent, kept) = seat.weight();
        let before = std::mem::replace(&mut seat.held, unsent + kept);
        self.held = self.held - before + unsent + kept;
        match (unsent > UNSENT, seat.paused) {
            (true, false) => io.pause(conn),
            (false, true) => io.resume(conn),
            _ => return,
        }
        seat.paused = !seat.paused;
    }

    fn hear(&mut self, io: &mut Io, conn: Conn, bytes: &[u8]) {
        let now = Instant::now();
        let rules = Rules { room: HELD.saturating_sub(self.held), ..self.rules };
        let counts = self.counts;
        let Some(seat) = self.seat(conn).filter(|seat| !seat.refused) else { return };
        let wants = seat.hear(bytes, now, &rules, counts);
        if wants.whole {
            seat.moved = now;
        }
        if wants.bulk {
            io.expect_bulk(conn);
        }
        self.speak(io, conn, now);
    }

    /// Sends what is due, and ends the connection when everything is sent.
    fn speak(&mut self, io: &mut Io, conn: Conn, now: Instant) {
        self.send_due(io, conn, now);
        self.arrange_wake(conn, now);
        self.weigh(io, conn);
    }

    /// Sets a timer for what becomes due next.
    fn arrange_wake(&mut self, conn: Conn, now: Instant) {
        let Some(seat) = self.seat(conn) else { return };
        let due = seat.peer.waits_until(now).filter(|due| seat.wakes_at != Some(*due));
        let Some(due) = due else { return };
        seat.wakes_at = Some(due);
        self.timers.add(due, conn);
    }

    fn send_due(&mut self, io: &mut Io, conn: Conn, now: Instant) {
        let Some(seat) = self.seat(conn) else { return };
        seat.answer(now);
        if seat.sending {
            return;
        }
        if !seat.out.is_empty() {
            seat.under_way = std::mem::take(&mut seat.queued);
            seat.sent_bytes = seat.out.len();
            if seat.peer.take_moved() {
                seat.moved = now;
            }
            seat.sending = io.send(conn, Payload::Owned(std::mem::take(&mut seat.out))).is_ok();
        } else if seat.is_over() {
            match seat.lingers_until {
                _ if seat.heard_all => self.leave(io, conn),
                None => self.hang_up(io, conn, now),
                Some(until) if until <= now => self.leave(io, conn),
                Some(_) => {}
            }
        }
    }
}

impl Handler for Worker<'_> {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Accepted(listener) => self.accept(io, conn, listener),
            Event::Received(bytes, _) => self.hear(io, conn, bytes),
            Event::Sent(_) => {
                let Some(seat) = self.seat(conn) else { return };
                seat.sending = false;
                seat.sent_bytes = 0;
                let sent = std::mem::take(&mut seat.under_way);
                self.counts.responded(sent);
                self.speak(io, conn, Instant::now());
            }
            Event::Eof => {
                self.ended(conn, Instant::now());
                let Some(seat) = self.seat(conn) else { return };
                let first = seat.is_open();
                seat.heard_all = true;
                seat.peer.ended(&mut seat.out);
                if first {
                    // The client considers it closed, and may open another before the last answers are sent.
                    self.counts.closed();
                }
                self.speak(io, conn, Instant::now());
            }
            Event::Failed(_) => {
                self.ended(conn, Instant::now());
                self.leave(io, conn);
            }
            Event::Connected => {}
        }
    }
}
