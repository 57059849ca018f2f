//! The one driver loop: any protocol, any stop condition, closed loop or open.
//!
//! In a closed loop callers ask again when they have their answer; in an open loop a schedule says when exchanges arrive,
//! and a busy connection does not hold it up: what arrives waits with its intended time.
//!
//! Phases: warm-up, measured window, drain. With [`Ending::Cut`] the window is a stretch of time out of steady
//! traffic; with [`Ending::Finish`] it begins with no exchange open and ends when the last one has ended, which is
//! what long exchanges (uploads, streams) and fixed counts need.

mod lines;
mod phases;
mod share;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reactor::{AddressId, Carries, Conn, Event, Handler, Io, Reactor, Time};

use crate::fault::{ErrorClass, Example, Fault, Seen};
use crate::pacer::{Arrivals, Pacer};
use crate::protocol::{Next, Protocol, Reply};
use crate::tally::Tally;
use lines::{Lines, Stamp};
pub(crate) use share::Share;

/// How the measured window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At its time; what is under way is counted as in flight.
    Cut,
    /// When the last exchange begun has ended.
    Finish,
}

/// Told to whoever watches a drive, at once and on the generator's own thread: be quick.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// The measured window begins.
    Opened,
    /// Another [`Job::reports`](crate::Job) has passed in a thread's window.
    Passed {
        /// The thread's number.
        thread: usize,
        /// How many have passed.
        times: u32,
        /// What the thread has counted since its window opened.
        so_far: &'a Tally,
    },
    /// The window has ended.
    Closed,
}

/// Who watches.
pub type Watch<'a> = dyn Fn(Moment<'_>) + Sync + 'a;

/// A connection that could not be made is tried again after this: a refusal costs microseconds, and trying as fast as it
/// fails would measure the kernel's refusals.
const RETRY: Duration = Duration::from_millis(10);
/// The loop turns at least this often, to see the time and a cancellation.
const TURN: Duration = Duration::from_millis(20);
const NUDGE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    WarmUp,
    /// `Finish` only: the warm-up's exchanges end before the window opens.
    Settle,
    Measure,
    Drain,
    Done,
}

/// One thread's connections and counts.
pub(crate) struct Driver<'a, P: Protocol> {
    protocol: P,
    share: Share,
    to: AddressId,
    lines: Lines<P::State>,
    pacer: Pacer,
    /// Callers or arrivals without a connection, by when they wanted to send.
    waiting: VecDeque<Time>,
    /// Open loop: lines with room, the one that has been idle longest first.
    idle: VecDeque<usize>,
    /// Lines that wait to try their connection again, by when; the earliest first, since all wait equally long.
    retries: VecDeque<(Time, usize)>,
    replies: Vec<Reply>,
    /// The beginning of what a failing exchange received, while it is judged.
    heard: Seen,
    tally: Tally,
    phase: Phase,
    /// When the present phase began.
    since: Time,
    now: Time,
    /// Since the phase began: exchanges begun, or (open loop) arrivals.
    begun: u64,
    /// Exchanges under way.
    open: u64,
    cpu: Duration,
    swept: Time,
    window: bool,
    /// The tenth of the window that it is now.
    tenth: usize,
    /// Some answer came in more than one receipt.
    in_parts: bool,
    /// Reports made of the window.
    reported: u32,
    watch: &'a Watch<'a>,
}

/// Drives one thread's share until it is done or cancelled.
pub(crate) fn drive<P: Protocol>(
    reactor: &mut Reactor,
    protocol: P,
    share: Share,
    to: AddressId,
    cancel: &AtomicBool,
    watch: &Watch<'_>,
) -> io::Result<Tally> {
    let now = Time::now();
    let lines = Lines::new(share.connections, share.pipeline);
    protocol.repeated().into_iter().for_each(|bytes| reactor.io().keep(bytes));
    let mut driver = Driver {
        protocol,
        to,
        lines,
        pacer: share.warmup_pacer(),
        waiting: VecDeque::new(),
        idle: VecDeque::new(),
        retries: VecDeque::new(),
        replies: Vec::new(),
        heard: Seen::Nothing,
        tally: Tally {
            backend: reactor.io().backend(),
            pool_wait: share.pool.then(Tally::histogram),
            ..Tally::default()
        },
        phase: Phase::WarmUp,
        since: now,
        now,
        begun: 0,
        open: 0,
        cpu: reactor::thread_cpu(),
        swept: now,
        window: false,
        tenth: 0,
        in_parts: false,
        reported: 0,
        watch,
        share,
    };
    if driver.share.warmup.is_zero() {
        driver.open_window();
    }
    driver.start(reactor.io());
    while driver.phase != Phase::Done {
        if cancel.load(Ordering::Relaxed) {
            driver.close_window();
            break;
        }
        let mut patience = driver.patience();
        if driver.may_sleep() && reactor.sleep(patience) {
            // What is due goes first; the answers that came meanwhile have their stamps.
            driver.now = Time::now();
            driver.arrive(reactor.io());
            patience = Duration::ZERO;
        }
        reactor.turn(patience, &mut driver)?;
        driver.now = Time::now();
        driver.arrive(reactor.io());
        driver.retry(reactor.io());
        driver.advance(reactor.io());
        driver.sweep(reactor.io());
    }
    driver.hang_up(reactor.io());
    Ok(driver.tally)
}

impl<P: Protocol> Driver<'_, P> {
    fn attempted(&mut self) {
        self.tally.attempts += u64::from(self.window);
        self.tally.total.attempts += 1;
    }

    /// A caller has its answer, and wants to send again at once.
    fn caller_returns(&mut self) {
        if !self.is_open() {
            self.waiting.push_back(self.now);
        }
    }

    /// Begins what this connection can carry of what callers wait for.
    fn fill(&mut self, io: &mut Io, index: usize) {
        let resting = self.lines[index].retry_at.is_some_and(|at| at > self.now);
        while !resting && self.lines[index].has_room() && !self.waiting.is_empty() && self.may_begin() {
            let Some(intended) = self.waiting.pop_front() else { break };
            self.attempted();
            self.begun += u64::from(!self.is_open());
            let line = &mut self.lines[index];
            line.stamps.push_back(Stamp { intended, sent: self.now });
            if line.stamps.len() == 1 {
                line.deadline = intended + self.share.timeout;
            }
            self.open += 1;
            let state = line.state.get_or_insert_with(|| self.protocol.open());
            self.protocol.begin(state);
        }
        self.rest(index);
        if !self.lines[index].stamps.is_empty() {
            self.pump(io, index);
        }
    }

    /// Open loop: a line with room waits for arrivals.
    fn rest(&mut self, index: usize) {
        let line = &mut self.lines[index];
        if matches!(self.share.arrivals, Arrivals::Open(_)) && line.has_room() && !line.idle {
            line.idle = true;
            self.idle.push_back(index);
        }
    }

    /// Gives the kernel what this connection has to send.
    fn pump(&mut self, io: &mut Io, index: usize) {
        let closing = self.is_closing();
        loop {
            let line = &mut self.lines[index];
            let Some(conn) = line.conn else { return self.connect(io, index) };
            if !line.connected || line.sending {
                return;
            }
            let Some(state) = &mut line.state else { return };
            match self.protocol.next(state, closing) {
                Next::Send(payload) => {
                    if self.window {
                        self.tally.bytes_sent += payload.bytes().len() as u64;
                    }
                    line.sending = io.send(conn, payload).unwrap_or(false);
                }
                Next::HalfClose => return io.half_close(conn),
                Next::Nothing => return,
            }
        }
    }

    fn connect(&mut self, io: &mut Io, index: usize) {
        let carries = if self.protocol.is_one_exchange() { Carries::OneExchange } else { Carries::Anything };
        match io.connect(self.to, carries) {
            Ok(conn) => self.lines.attach(index, conn),
            Err(error) => {
                let fault = Fault::new(ErrorClass::Other, Seen::Errno(error.raw_os_error().unwrap_or(0)));
                self.give_up(io, index, fault, true);
            }
        }
    }

    /// The oldest exchange of a connection ended at that time.
    fn settle(&mut self, index: usize, reply: Reply, at: Time) {
        let line = &mut self.lines[index];
        let Some(stamp) = line.stamps.pop_front() else { return };
        line.carried += 1;
        self.open -= 1;
        if self.window && self.is_open() {
            self.tally.sent_behind(stamp.sent.since(stamp.intended));
        }
        match reply.result {
            Ok(success) => {
                self.tally.total.successes += 1;
                if self.window {
                    let (service, response) = (at.nanos_since(stamp.sent), at.nanos_since(stamp.intended));
                    self.tally.succeed(success, self.tenth, service, response);
                }
            }
            Err(fault) => self.failed(fault, stamp.sent, Some(index)),
        }
        self.caller_returns();
    }

    fn failed(&mut self, fault: Fault, since: Time, line: Option<usize>) {
        *self.tally.total.errors.entry(fault.class).or_default() += 1;
        if self.window {
            let open = line.map(|index| &self.lines[index]).filter(|line| line.connected);
            let example = Example {
                fault,
                heard: self.heard,
                at: self.now.since(self.since),
                connection: line,
                exchange: open.map(|line| line.carried),
            };
            self.tally.fail(example, self.now.since(since));
        }
    }

    /// Callers that have waited for a connection longer than their patience.
    fn expire(&mut self) {
        let timeout = self.share.timeout;
        while self.waiting.front().is_some_and(|since| self.now.since(*since) >= timeout) {
            let Some(since) = self.waiting.pop_front() else { break };
            if self.is_open() {
                self.tally.dropped += u64::from(self.window);
            } else if self.may_begin() {
                self.begun += 1;
                self.attempted();
                self.failed(Fault::new(ErrorClass::PoolWait, Seen::Nothing), since, None);
                self.caller_returns();
            }
        }
    }

    /// A connection is of no more use: every exchange on it fails with `fault`, and it is closed.
    fn give_up(&mut self, io: &mut Io, index: usize, fault: Fault, retry_later: bool) {
        // One loss takes all of them: each would have been the next that the connection carried.
        let carried = self.lines[index].carried;
        while !self.lines[index].stamps.is_empty() {
            self.settle(index, Reply { result: Err(fault), keep: false }, self.now);
            self.lines[index].carried = carried;
        }
        if let Some(conn) = self.lines.detach(index) {
            io.close(conn);
        }
        if retry_later {
            let at = self.now + RETRY;
            self.lines[index].retry_at = Some(at);
            self.retries.push_back((at, index));
        } else {
            self.lines[index].retry_at = None;
            self.fill(io, index);
        }
    }

    /// Closes every connection: the peer is not left to find out.
    fn hang_up(&mut self, io: &mut Io) {
        for index in 0..self.lines.len() {
            if let Some(conn) = self.lines.detach(index) {
                io.close(conn);
            }
        }
    }

    /// Lines whose rest is over.
    fn retry(&mut self, io: &mut Io) {
        while let Some((_, index)) = self.retries.front().copied().filter(|(at, _)| *at <= self.now) {
            self.retries.pop_front();
            self.fill(io, index);
        }
    }

    /// So many bytes came, so long ago.
    fn received(&mut self, io: &mut Io, index: usize, bytes: &[u8], age: Duration) {
        let at = self.now.before(age);
        if self.window {
            self.tally.bytes_received += bytes.len() as u64;
        }
        let Some(state) = &mut self.lines[index].state else { return };
        let mut replies = std::mem::take(&mut self.replies);
        let end = self.protocol.receive(state, bytes, &mut replies);
        if self.protocol.expects_bulk(state)
            && let Some(conn) = self.lines[index].conn
        {
            io.expect_bulk(conn);
        }
        self.in_parts |= replies.is_empty();
        let keep = replies.iter().all(|reply| reply.keep);
        for reply in replies.drain(..) {
            if reply.result.is_err_and(|fault| !matches!(fault.seen, Seen::Bytes(..))) {
                self.heard = Seen::bytes(bytes);
            }
            self.settle(index, reply, at);
            self.heard = Seen::Nothing;
        }
        self.replies = replies;
        match end {
            Err(fault) => self.give_up(io, index, fault, false),
            // Whatever was pipelined behind the last answer is lost with the connection.
            Ok(()) if !keep => {
                self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), false)
            }
            Ok(()) => {
                self.fill(io, index);
                self.lines[index].restamp(self.now, self.share.timeout);
            }
        }
    }

    fn ended(&mut self, io: &mut Io, index: usize) {
        if let Some(state) = &mut self.lines[index].state
            && let Some(reply) = self.protocol.end(state)
        {
            self.settle(index, reply, self.now);
        }
        self.give_up(io, index, Fault::new(ErrorClass::ClosedEarly, Seen::Nothing), false);
    }

    fn connected(&mut self, io: &mut Io, index: usize) {
        let line = &mut self.lines[index];
        line.connected = true;
        // Where each request makes its connection, connecting is part of the exchange; a connection that is kept
        // begins its exchanges when they are sent.
        if self.protocol.keeps_connections() {
            for stamp in &mut line.stamps {
                stamp.sent = self.now;
            }
        }
        self.pump(io, index);
    }

    /// Looks after what no event tells of: timeouts, retries, and lines that wait for callers.
    fn sweep(&mut self, io: &mut Io) {
        let every = (self.share.timeout / 50).clamp(Duration::from_millis(5), Duration::from_millis(100));
        if self.now.since(self.swept) < every {
            return;
        }
        self.swept = self.now;
        self.expire();
        for index in 0..self.lines.len() {
            let line = &mut self.lines[index];
            let Some(oldest) = line.stamps.front() else {
                if !self.waiting.is_empty() {
                    self.fill(io, index);
                }
                continue;
            };
            if line.deadline <= self.now {
                let class =
                    if line.connected { ErrorClass::RequestTimeout } else { ErrorClass::ConnectTimeout };
                self.give_up(io, index, Fault::new(class, Seen::Nothing), false);
            } else if self.now.since(oldest.sent) >= NUDGE {
                if let Some(state) = &mut line.state {
                    self.protocol.nudge(state);
                }
                self.pump(io, index);
            }
        }
    }
}

impl<P: Protocol> Handler for Driver<'_, P> {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        let Some(index) = self.lines.of(conn) else { return };
        self.now = Time::now();
        match event {
            Event::Received(bytes, age) => self.received(io, index, bytes, age),
            Event::Sent(payload) => {
                self.protocol.sent(payload);
                self.lines[index].sending = false;
                self.pump(io, index);
                let line = &mut self.lines[index];
                if line.sending {
                    // A long request makes progress: patience counts from the last byte that the kernel took.
                    line.deadline = self.now + self.share.timeout;
                }
            }
            Event::Connected => self.connected(io, index),
            Event::Eof => self.ended(io, index),
            Event::Failed(errno) => {
                let connecting = !self.lines[index].connected;
                self.give_up(io, index, Fault::from_errno(errno, connecting), connecting);
            }
            Event::Accepted(_) => {}
        }
    }
}
