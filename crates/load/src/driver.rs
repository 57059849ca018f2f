//! The driver loop, for any protocol, any stop condition, closed and open loops.
//!
//! In a closed loop a caller sends its next request as soon as it has its answer. In an open loop a schedule decides when
//! exchanges arrive. A busy connection does not delay the schedule: an arrival waits and keeps its intended time.
//!
//! The phases are warm-up, measured window and drain. With [`Ending::Cut`] the window is a period of steady traffic. With
//! [`Ending::Finish`] it begins with no exchange open and ends when the last exchange has ended. Long exchanges (uploads,
//! streams) and fixed counts need that.

mod account;
mod events;
mod exchanges;
mod lanes;
mod multiplexing;
mod partings;
mod phases;
mod share;
mod streams;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reactor::{AddressId, Carries, Io, Reactor, Time};
use serde::{Deserialize, Serialize};

use crate::fault::{ErrorClass, Fault, Seen};
use crate::pacer::Pacer;
use crate::protocol::{Next, Outcomes, Protocol};
use crate::tally::{Named, Tally};
use crate::times::Times;
use exchanges::Exchange;
use lanes::Lanes;
use partings::Partings;
use phases::Gate;
pub(crate) use share::Share;

/// How the measured window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// When its time is over. Open exchanges count as in flight.
    Cut,
    /// When the last exchange that began in it has ended.
    Finish,
}

/// What a [`Watch`] is told. The call is made at that moment, on the generator's own thread, so it must be quick.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// The measured window opened.
    Opened,
    /// Another interval of [`Job::reports`](crate::Job) has passed in a thread's window.
    Passed {
        /// The thread's number.
        thread: usize,
        /// How many intervals have passed.
        times: u32,
        /// What the thread has counted since its window opened.
        so_far: &'a Tally,
    },
    /// The measured window closed.
    Closed,
}

/// An observer of a drive.
pub type Watch<'a> = dyn Fn(Moment<'_>) + Sync + 'a;

/// The delay before a failed connection is retried. A refusal takes microseconds: retrying at once would measure how fast
/// the kernel refuses.
const RETRY: Duration = Duration::from_millis(10);
/// How long an open loop that is interrupted waits for answers that are under way.
const GRACE: Duration = Duration::from_millis(200);
/// The loop turns at least this often, to check the time and cancellation.
const TURN: Duration = Duration::from_millis(20);

/// The longest sleep in which a connection hears nothing on which the peer may ask for an answer of its own.
const NAP: Duration = Duration::from_millis(5);

/// The same while the instant at which the window opens is not there yet. It is named some milliseconds before.
const RENDEZVOUS_TURN: Duration = Duration::from_millis(1);

/// After a sleep of this length, events come before requests. A peer may have ended a connection in the meantime, or sent on it what
/// nobody asked for. In a shorter sleep this is as unlikely as for any other client.
const LISTEN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    WarmUp,
    /// The exchanges of a warm-up with `Finish` end before the window opens. A drive without a warm-up waits in it for other
    /// generators.
    Settle,
    Measure,
    Drain,
    Done,
}

/// One thread's connections and counts.
pub(crate) struct Driver<'a, P: Protocol> {
    protocol: P,
    share: Share,
    /// Whether a schedule says when exchanges begin.
    open_loop: bool,
    to: AddressId,
    lanes: Lanes<P>,
    pacer: Pacer,
    /// Callers or arrivals without a connection: when each wanted to send.
    waiting: VecDeque<Time>,
    /// Connections that were lanes' and part from their peers.
    partings: Partings<P>,
    /// Open loop: lanes with room; the one that has been idle longest comes first.
    idle: VecDeque<usize>,
    /// Closed loop: how many callers are to leave, because peers allow fewer exchanges than they would have open.
    leaving: usize,
    /// Lanes that wait to reconnect, and until when. In order of time, because all wait equally long.
    retries: VecDeque<(Time, usize)>,
    outcomes: Outcomes,
    /// The first bytes that a failing exchange received, while it is being counted.
    heard: Seen,
    tally: Tally,
    phase: Phase,
    /// When the current phase began.
    since: Time,
    /// What may begin in it.
    gate: Gate,
    /// Whether the other generators know that this thread is ready for the window.
    ready: bool,
    /// When the window opened.
    opened: Option<Time>,
    now: Time,
    /// Exchanges begun, or (open loop) arrivals, since the phase began.
    begun: u64,
    /// Open exchanges.
    open: u64,
    /// What the thread had used, and how long it had waited for a core, when the window opened.
    cpu: Duration,
    waited: Option<Duration>,
    /// When the next sweep is due.
    sweep_at: Time,
    window: bool,
    /// The current tenth of the window, from 0.
    tenth: usize,
    /// When the next one begins, if there is one.
    tenth_ends: Time,
    /// Whether events must wake the thread for the rest of the drive. One reason is an answer that came in parts: its rest would stay
    /// in the socket. The other is a connection that ended: its end carries no stamp, so the next request on it would fail.
    wakeful: bool,
    /// Whether the user has ended the drive.
    interrupted: bool,
    /// Why the first connection was refused.
    refused: Option<io::Error>,
    beginning: &'a Beginning,
    /// How many reports of the window have been made.
    reported: u32,
    /// When the next one is due, if there is one.
    report_at: Time,
    /// Closed loop: how many lanes have not begun yet.
    yet_to_begin: usize,
    /// When the next of them does.
    begins_at: Time,
    watch: &'a Watch<'a>,
}

/// How the connections of all threads began.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// A connection was made.
    connected: AtomicBool,
    /// A connection was refused before any was made.
    refused: AtomicBool,
}

/// Drives one thread's share until it is done or cancelled.
///
/// # Errors
/// A connection was refused before any was made, or the reactor failed.
pub(crate) fn drive<P: Protocol>(
    reactor: &mut Reactor,
    protocol: P,
    share: Share,
    to: AddressId,
    (cancel, beginning): (&AtomicBool, &Beginning),
    watch: &Watch<'_>,
) -> io::Result<Tally> {
    let mut driver = Driver::new(reactor.io(), protocol, share, to, beginning, watch);
    match (driver.share.warmup.is_zero(), &driver.share.rendezvous) {
        (true, None) => driver.open_window(),
        (true, Some(_)) => driver.enter(Phase::Settle),
        (false, _) => {}
    }
    driver.start(reactor.io());
    while driver.phase != Phase::Done {
        if let Some(why) = driver.refused {
            return Err(why);
        }
        let interrupted = cancel.load(Ordering::Relaxed) || beginning.refused.load(Ordering::Relaxed);
        if interrupted && !driver.interrupt() {
            break;
        }
        let mut patience = driver.patience();
        let nap = if P::IN_ORDER { patience } else { patience.min(NAP) };
        if driver.may_sleep() && reactor.sleep(nap) {
            driver.now = Time::now();
            // Send what is due first. Answers that arrived in the meantime carry their stamps.
            if nap < LISTEN {
                driver.arrive(reactor.io());
            }
            patience = Duration::ZERO;
        }
        let before = driver.now;
        reactor.turn(patience, &mut driver)?;
        // In a closed loop the last event's reading of the clock is recent enough.
        if driver.now == before || driver.is_open() {
            driver.now = Time::now();
        }
        driver.note_pause(before, patience);
        if driver.is_open() {
            driver.arrive(reactor.io());
        }
        if !driver.retries.is_empty() {
            driver.retry(reactor.io());
        }
        driver.advance(reactor.io());
        if driver.now >= driver.sweep_at {
            driver.sweep(reactor.io());
        }
    }
    driver.abandon();
    driver.hang_up(reactor.io());
    while !driver.partings.is_empty() && reactor.turn(partings::PATIENCE, &mut driver).is_ok() {
        driver.partings.sweep(reactor.io(), Time::now());
    }
    Ok(driver.tally)
}

impl<'a, P: Protocol> Driver<'a, P> {
    fn new(
        io: &mut Io,
        protocol: P,
        share: Share,
        to: AddressId,
        beginning: &'a Beginning,
        watch: &'a Watch<'a>,
    ) -> Self {
        let now = Time::now();
        let lanes = Lanes::new(share.connections, share.pipeline);
        protocol.repeated().into_iter().for_each(|(bytes, at_once)| io.keep(bytes, at_once));
        Self {
            to,
            lanes,
            pacer: share.warmup_pacer(),
            waiting: VecDeque::new(),
            idle: VecDeque::new(),
            partings: Partings::default(),
            retries: VecDeque::new(),
            leaving: 0,
            outcomes: Outcomes::default(),
            heard: Seen::Nothing,
            tally: Tally {
                backend: io.backend().into(),
                good: share.goal.as_ref().map(|_| 0),
                pool_wait: share.pool.then(Times::default),
                by_name: vec![Named::default(); protocol.names()],
                ..Tally::default()
            },
            phase: Phase::WarmUp,
            since: now,
            gate: Gate::of(Phase::WarmUp, now, &share),
            ready: false,
            opened: None,
            now,
            begun: 0,
            open: 0,
            cpu: Duration::ZERO,
            waited: None,
            sweep_at: now,
            window: false,
            tenth: 0,
            tenth_ends: Time::NEVER,
            wakeful: false,
            interrupted: false,
            refused: None,
            beginning,
            reported: 0,
            report_at: Time::NEVER,
            yet_to_begin: 0,
            begins_at: Time::NEVER,
            watch,
            open_loop: share.arrivals.are_open(),
            share,
            protocol,
        }
    }

    /// Takes note of how late this turn of the loop is. It began at `before`, and was to wait for `patience` at most.
    #[inline]
    fn note_pause(&mut self, before: Time, patience: Duration) {
        let took = self.now.since(before);
        if took > patience && self.window {
            self.tally.pause = self.tally.pause.max(took - patience);
        }
    }

    /// Closed loop: this many callers have their answers and want to send again at once.
    fn callers_return(&mut self, count: usize) {
        if !self.is_open() {
            let stay = self.stay(count);
            (0..stay).for_each(|_| self.waiting.push_back(self.now));
        }
    }

    /// Begins as many waiting exchanges as this lane can carry.
    fn fill(&mut self, io: &mut Io, index: usize) {
        self.fill_with(io, index, (0, usize::MAX));
    }

    /// Begins as many exchanges as this lane can carry: of those that wait, then, in a closed loop, of the `returning` callers
    /// whose exchanges have just ended. If nobody waits, they need not queue. At `most` so many begin.
    #[inline(never)]
    fn fill_with(&mut self, io: &mut Io, index: usize, (returning, most): (usize, usize)) {
        let open_loop = self.is_open();
        let mut returning = self.stay(returning);
        let lane = &mut self.lanes[index];
        let resting = lane.retry_at.is_some_and(|retry_at| retry_at > self.now);
        // What waits on this lane begins first.
        lane.begin(&mut self.protocol);
        let waits = lane.exchanges.waiting() > 0;
        let mut session = lane.session.as_mut().filter(|_| lane.ready && !waits);
        let mut begun = 0;
        let room = lane.room.min(lane.exchanges.len().saturating_add(most));
        // In an open loop the pacer already decided when the exchange arrived.
        while !resting && lane.exchanges.len() < room && (open_loop || self.gate.admits(self.now, self.begun))
        {
            let intended = if !self.waiting.is_empty() {
                let Some(since) = self.waiting.pop_front() else { break };
                since
            } else if returning > 0 && !open_loop {
                returning -= 1;
                self.now
            } else {
                break;
            };
            let request = self.protocol.pick();
            let exchange = Exchange { intended, sent: self.now, request };
            match &mut session {
                Some(session) => {
                    lane.exchanges.push_begun(exchange);
                    self.protocol.begin(session, request);
                }
                None => lane.exchanges.push(exchange),
            }
            self.begun += u64::from(!open_loop);
            begun += 1;
        }
        self.open += begun;
        let carries = !lane.exchanges.is_empty();
        self.attempted(begun);
        if open_loop {
            self.rest(index);
        } else if returning > 0 {
            self.callers_return(returning);
        }
        if carries {
            self.pump(io, index);
        }
    }

    /// Open loop: puts a lane with room in the idle queue.
    fn rest(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if lane.has_room() && !lane.idle {
            lane.idle = true;
            self.idle.push_back(index);
        }
    }

    /// Sends what this lane has to send.
    fn pump(&mut self, io: &mut Io, index: usize) {
        let closing = self.gate.is_over(self.now);
        let lane = &mut self.lanes[index];
        let Some(conn) = lane.conn else { return self.connect(io, index) };
        let Some(session) = &mut lane.session else { return };
        while !lane.sending {
            match self.protocol.next(session, closing) {
                Next::Send(payload) => {
                    if self.window {
                        self.tally.bytes_sent += payload.len() as u64;
                    }
                    if !P::IN_ORDER {
                        while let Some(id) = self.protocol.progressed(session) {
                            lane.exchanges.pushed(id, self.now);
                        }
                    }
                    // What others send without an event, they share.
                    if !P::IN_ORDER && io.post(conn, payload.bytes()) {
                        lane.taken = self.now;
                        self.protocol.sent(payload);
                        continue;
                    }
                    lane.sending = io.send(conn, payload).unwrap_or(false);
                }
                Next::HalfClose => return io.half_close(conn),
                Next::Fail(fault) => {
                    let opening = !lane.ready;
                    return self.give_up(io, index, fault, opening);
                }
                Next::Nothing => return,
            }
        }
    }

    fn connect(&mut self, io: &mut Io, index: usize) {
        let carries = match self.protocol.is_one_exchange() {
            _ if self.protocol.asks_for_ends() => Carries::Addresses,
            true => Carries::OneExchange,
            false => Carries::Anything,
        };
        match io.connect(self.to, carries) {
            Ok(conn) => self.lanes.attach(index, conn, self.now),
            Err(error) => {
                let fault = Fault::new(ErrorClass::Other, Seen::Errno(error.raw_os_error().unwrap_or(0)));
                self.give_up(io, index, fault, true);
            }
        }
    }

    /// Closes a connection that is of no more use. Its exchanges under way fail with `fault`; those that wait begin on the next
    /// one.
    fn give_up(&mut self, io: &mut Io, index: usize, fault: Fault, retry_later: bool) {
        self.wakeful = true;
        let lane = &mut self.lanes[index];
        let oldest = lane.exchanges.first();
        // A connection that carried no exchange fails them all, so that nothing begins anew for ever.
        let left = if lane.answered { lane.exchanges.waiting() } else { 0 };
        let lost = lane.exchanges.len().saturating_sub(left);
        self.streams_unanswered(index, lost);
        // One loss fails all of them. Each gets the same id: the oldest one.
        while self.lanes[index].exchanges.len() > left
            && let Some(exchange) = self.lanes[index].exchanges.pop()
        {
            self.open -= 1;
            self.lost(fault, &exchange, (index, oldest));
            self.callers_return(1);
        }
        self.leave(io, index, false);
        if retry_later {
            let retry_at = self.now + RETRY;
            self.lanes[index].retry_at = Some(retry_at);
            self.retries.push_back((retry_at, index));
        } else {
            self.lanes[index].retry_at = None;
            self.fill(io, index);
        }
    }

    /// Closes a lane's connection: at once, unless its peer still hears something, or it is to part anyway.
    fn leave(&mut self, io: &mut Io, index: usize, parts: bool) {
        let lane = &mut self.lanes[index];
        let (session, sending) = (lane.session.take(), lane.sending);
        let Some(conn) = self.lanes.detach(index) else { return };
        match session.filter(|session| parts || self.protocol.standing(session).speaks) {
            Some(session) => {
                self.partings.begin(io, &mut self.protocol, (conn, session, sending), self.now);
            }
            None => io.close(conn),
        }
    }

    /// Closes every connection, so that the peer notices. One that carries many exchanges may still get frames of those that have
    /// ended, so it ends as one whose peer hears something.
    fn hang_up(&mut self, io: &mut Io) {
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let parts = !P::IN_ORDER && lane.answered && lane.exchanges.is_empty();
            self.leave(io, index, parts);
        }
    }

    /// Reconnects lanes whose delay is over.
    fn retry(&mut self, io: &mut Io) {
        while let Some((_, index)) =
            self.retries.front().copied().filter(|(retry_at, _)| *retry_at <= self.now)
        {
            self.retries.pop_front();
            self.fill(io, index);
        }
    }

    /// Handles what no event reports: timeouts, nudges, and free lanes while callers wait.
    fn sweep(&mut self, io: &mut Io) {
        let shortest =
            self.share.idle_timeout.map_or(self.share.timeout, |idle| idle.min(self.share.timeout));
        let every = (shortest / 50).clamp(Duration::from_millis(5), Duration::from_millis(100));
        self.sweep_at = self.now + every;
        self.partings.sweep(io, self.now);
        self.expire();
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if lane.exchanges.is_empty() {
                if !self.waiting.is_empty() {
                    self.fill(io, index);
                }
            } else if lane.overdue(0, self.now, &self.share).is_some() {
                self.time_out(io, index);
            } else if let Some(last) = lane.waited(Tally::CONTINUE, self.now)
                && let Some(session) = &mut lane.session
                && self.protocol.nudge(session, last)
            {
                self.tally.no_continue += u64::from(self.window);
                self.pump(io, index);
            }
        }
    }

    /// Gives up the exchanges of a lane that have taken too long: one by one where the session allows it, otherwise with the
    /// connection.
    fn time_out(&mut self, io: &mut Io, index: usize) {
        if !self.lanes[index].ready {
            let session = self.lanes[index].session.as_ref();
            let seen = session.map_or(Seen::Nothing, |session| self.protocol.hindrance(session));
            return self.give_up(io, index, Fault::new(ErrorClass::ConnectTimeout, seen), false);
        }
        let fault = Fault::new(ErrorClass::RequestTimeout, Seen::Nothing);
        let mut from = 0;
        while let Some((place, id)) = self.lanes[index].overdue(from, self.now, &self.share) {
            // The exchanges before this place are in time. New ones come behind it.
            from = place;
            let lane = &mut self.lanes[index];
            let dead = lane.is_dead(self.now, self.share.timeout);
            if let (Some(id), Some(session)) = (id, &mut lane.session)
                && (dead || !self.protocol.cancel(session, id))
            {
                return self.give_up(io, index, fault, false);
            }
            if id.is_some() {
                lane.note_cancel(self.now);
                self.count_cancel();
            }
            let lane = &mut self.lanes[index];
            let Some(exchange) = lane.exchanges.remove(place) else { break };
            self.stream_unanswered(index, id, (exchange.intended, exchange.sent));
            let lane = &mut self.lanes[index];
            id.and_then(|id| lane.exchanges.forget(id));
            self.open -= 1;
            let id = id.unwrap_or(lane.exchanges.first());
            self.lost(fault, &exchange, (index, id));
            self.callers_return(1);
        }
        self.fill(io, index);
        // What was cancelled is told to the peer, even if nothing else is sent.
        self.pump(io, index);
    }
}

#[cfg(test)]
mod tests;
