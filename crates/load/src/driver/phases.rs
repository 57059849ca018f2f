//! The course of a drive: what may begin now, and when the measured window opens and closes.

use std::time::Duration;

use reactor::{Io, Time};

use super::{Driver, Ending, Moment, Phase, TURN};
use crate::pacer::{Arrivals, Pace, Pacer, Stop};
use crate::protocol::Protocol;

impl<P: Protocol> Driver<'_, P> {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.share.arrivals, Arrivals::Open(_))
    }

    /// How long the loop may sleep: until the phase ends or something arrives, at most a turn.
    pub(super) fn patience(&mut self) -> Duration {
        let now = Time::now();
        let elapsed = now.since(self.since);
        let retry = self.retries.front().map_or(TURN, |(at, _)| at.since(now));
        let length = match (self.phase, self.share.stop) {
            (Phase::WarmUp, _) => self.share.warmup,
            (Phase::Measure, Stop::After(length)) => length,
            (Phase::Measure, Stop::Count(_)) => Duration::MAX,
            _ => return retry.min(TURN),
        };
        let arrival = match self.pacer.pace(elapsed, self.begun) {
            Pace::Wait(time) => time,
            _ if self.is_open() => Duration::ZERO,
            _ => TURN,
        };
        length.saturating_sub(elapsed).min(arrival).min(retry).min(TURN)
    }

    /// Whether nothing is to be done before the time that [`patience`](Self::patience) says, whatever is answered meanwhile: the
    /// schedule alone makes exchanges begin, nothing waits for a line, and answers are known to come whole.
    pub(super) fn may_sleep(&self) -> bool {
        self.is_open()
            && matches!(self.phase, Phase::WarmUp | Phase::Measure)
            && self.waiting.is_empty()
            && !self.in_parts
            && self.tally.total.successes > 0
    }

    /// What the pacer says in a phase in which exchanges begin.
    pub(super) fn pace(&mut self) -> Pace {
        match self.phase {
            Phase::WarmUp | Phase::Measure => self.pacer.pace(self.now.since(self.since), self.begun),
            Phase::Settle | Phase::Drain | Phase::Done => Pace::Stop,
        }
    }

    /// No exchange is to begin any more.
    pub(super) fn is_closing(&self) -> bool {
        match self.phase {
            Phase::Settle | Phase::Drain | Phase::Done => true,
            Phase::WarmUp => self.now.since(self.since) >= self.share.warmup,
            Phase::Measure => self.share.stop_reached(self.now.since(self.since)),
        }
    }

    /// May what waits begin now? In an open loop the pacer has had its say when it arrived.
    pub(super) fn may_begin(&mut self) -> bool {
        self.is_open() || matches!(self.pace(), Pace::Send(_))
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = self.now;
        self.begun = 0;
        if phase == Phase::Measure {
            self.pacer = Pacer::new(self.share.arrivals, self.share.stop, self.share.offset);
        }
    }

    pub(super) fn open_window(&mut self) {
        (self.watch)(Moment::Opened);
        self.now = Time::now();
        self.enter(Phase::Measure);
        self.window = true;
        self.tally.attempts = self.open;
        self.cpu = reactor::thread_cpu();
    }

    pub(super) fn close_window(&mut self) {
        if !std::mem::take(&mut self.window) {
            return;
        }
        let elapsed = self.now.since(self.since);
        self.tally.elapsed = elapsed;
        self.tally.in_flight = self.open;
        if self.is_open() {
            self.drop_overdue(elapsed);
            // Arrived, and the window is over: nobody will send them.
            self.tally.dropped += self.waiting.len() as u64;
            self.waiting.clear();
        }
        self.tally.cpu = reactor::thread_cpu().saturating_sub(self.cpu);
        self.tally.busiest = self.tally.cpu.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        (self.watch)(Moment::Closed);
    }

    /// What was due before the window's end while the loop looked away (a machine that stood still) was to be sent as well.
    fn drop_overdue(&mut self, elapsed: Duration) {
        let Stop::After(length) = self.share.stop else { return };
        let last = elapsed.min(length.saturating_sub(Duration::from_nanos(1)));
        while self.phase == Phase::Measure && matches!(self.pacer.pace(last, self.begun), Pace::Send(_)) {
            self.begun += 1;
            self.tally.dropped += 1;
        }
    }

    /// Goes from phase to phase as time passes and exchanges end.
    pub(super) fn advance(&mut self, io: &mut Io) {
        if let (true, Stop::After(length)) = (self.window, self.share.stop) {
            let elapsed = self.now.since(self.since).as_secs_f64();
            // A finishing window goes on after its length; what ends then belongs to the last tenth.
            self.tenth = ((elapsed / length.as_secs_f64() * 10.0) as usize).min(9);
        }
        self.report();
        let over = self.pace() == Pace::Stop;
        match self.phase {
            Phase::WarmUp if over => match self.share.ending {
                Ending::Cut => {
                    self.open_window();
                    self.fill_all(io);
                }
                Ending::Finish => self.enter(Phase::Settle),
            },
            Phase::Settle if self.open == 0 => {
                self.waiting.clear();
                self.open_window();
                self.begin_phase(io);
            }
            Phase::Measure if over => match self.share.ending {
                Ending::Cut => {
                    self.close_window();
                    self.enter(Phase::Drain);
                }
                // The window goes on: its time still counts from its beginning.
                Ending::Finish => self.phase = Phase::Drain,
            },
            Phase::Drain if self.open == 0 && (self.waiting.is_empty() || !self.is_open()) => {
                self.close_window();
                self.phase = Phase::Done;
            }
            Phase::Drain if !self.window && self.now.since(self.since) > self.share.drain => {
                self.phase = Phase::Done
            }
            _ => {}
        }
    }

    fn report(&mut self) {
        let Some(every) = self.share.reports.filter(|_| self.window) else { return };
        if self.now.since(self.since) >= every * (self.reported + 1) {
            self.reported += 1;
            let (thread, times) = (self.share.number, self.reported);
            (self.watch)(Moment::Passed { thread, times, so_far: &self.tally });
        }
    }

    /// Makes the connections that an open loop needs before anything arrives, and begins.
    pub(super) fn start(&mut self, io: &mut Io) {
        if self.is_open() {
            self.idle.extend(0..self.lines.len());
            if self.protocol.keeps_connections() {
                (0..self.lines.len()).for_each(|index| self.connect(io, index));
            }
        }
        self.begin_phase(io);
    }

    /// In a closed loop every caller wants to send at once.
    pub(super) fn begin_phase(&mut self, io: &mut Io) {
        if self.is_open() {
            return self.arrive(io);
        }
        self.waiting.extend(std::iter::repeat_n(self.now, self.share.callers));
        self.fill_all(io);
    }

    /// Callers that returned while nothing might begin find their lines.
    pub(super) fn fill_all(&mut self, io: &mut Io) {
        for index in 0..self.lines.len() {
            if self.waiting.is_empty() {
                break;
            }
            self.fill(io, index);
        }
    }

    /// Open loop: whatever the schedule says is due arrives, and goes to the lines that are idle.
    pub(super) fn arrive(&mut self, io: &mut Io) {
        if !self.is_open() {
            return;
        }
        while let Pace::Send(at) = self.pace() {
            self.waiting.push_back(self.since + at);
            self.begun += 1;
        }
        // A line that waits to try its connection again goes to the end of the queue: look at each once.
        for _ in 0..self.idle.len() {
            if self.waiting.is_empty() {
                break;
            }
            let Some(index) = self.idle.pop_front() else { break };
            self.lines[index].idle = false;
            self.fill(io, index);
        }
    }
}
