//! The phases of a drive: what may begin now, and when the measured window opens and closes.

use std::time::Duration;

use reactor::{Io, Time};

use super::{Driver, Ending, Moment, Phase, TURN};
use crate::pacer::{Arrivals, Pace, Pacer, Stop};
use crate::protocol::Protocol;

impl<P: Protocol> Driver<'_, P> {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.share.arrivals, Arrivals::Open(_))
    }

    /// How long the loop may wait: until the phase ends or an arrival is due, at most [`TURN`].
    pub(super) fn patience(&mut self) -> Duration {
        let now = Time::now();
        let elapsed = now.since(self.since);
        let retry = self.retries.front().map_or(TURN, |(when, _)| when.since(now));
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

    /// Whether there is nothing to do within [`patience`](Self::patience), whatever answers arrive: only the schedule begins
    /// exchanges, no arrival waits for a lane, and answers are known to arrive in one piece.
    pub(super) fn may_sleep(&self) -> bool {
        self.is_open()
            && matches!(self.phase, Phase::WarmUp | Phase::Measure)
            && self.waiting.is_empty()
            && !self.in_parts
            && self.tally.total.successes > 0
    }

    /// What the pacer says; `Stop` in phases in which no exchange begins.
    pub(super) fn pace(&mut self) -> Pace {
        match self.phase {
            Phase::WarmUp | Phase::Measure => self.pacer.pace(self.now.since(self.since), self.begun),
            Phase::Settle | Phase::Drain | Phase::Done => Pace::Stop,
        }
    }

    /// Whether no more exchanges may begin.
    pub(super) fn is_closing(&self) -> bool {
        match self.phase {
            Phase::Settle | Phase::Drain | Phase::Done => true,
            Phase::WarmUp => self.now.since(self.since) >= self.share.warmup,
            Phase::Measure => self.share.stop_reached(self.now.since(self.since)),
        }
    }

    /// Whether a waiting exchange may begin now. In an open loop the pacer already decided when it arrived.
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
        self.opened = Some(self.now);
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
            self.take_overdue(elapsed);
            self.tally.backlog = self.waiting.len() as u64;
        } else {
            self.look_at_ages();
        }
        self.tally.cpu = reactor::thread_cpu().saturating_sub(self.cpu);
        self.tally.busiest = self.tally.cpu.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        (self.watch)(Moment::Closed);
    }

    /// Takes the arrivals that were due before the end of the window but that the loop had no chance to see, for example
    /// because the machine stalled.
    fn take_overdue(&mut self, elapsed: Duration) {
        let Stop::After(length) = self.share.stop else { return };
        let last = elapsed.min(length.saturating_sub(Duration::from_nanos(1)));
        while self.phase == Phase::Measure
            && let Pace::Send(due) = self.pacer.pace(last, self.begun)
        {
            self.waiting.push_back(self.since + due);
            self.begun += 1;
        }
    }

    /// Moves to the next phase when its time has come or its exchanges have ended.
    pub(super) fn advance(&mut self, io: &mut Io) {
        if let (true, Stop::After(length)) = (self.window, self.share.stop) {
            let elapsed = self.now.since(self.since).as_secs_f64();
            // With `Finish` the window continues past its length. What ends then counts in the last tenth.
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
                // The window stays open, and its time still counts from its beginning.
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

    /// Starts the drive. An open loop first makes its connections, before anything arrives.
    pub(super) fn start(&mut self, io: &mut Io) {
        if self.is_open() {
            self.idle.extend(0..self.lanes.len());
            if self.protocol.keeps_connections() {
                (0..self.lanes.len()).for_each(|index| self.connect(io, index));
            }
        }
        self.begin_phase(io);
    }

    /// Begins the exchanges of a phase. In a closed loop every caller wants to send at once.
    pub(super) fn begin_phase(&mut self, io: &mut Io) {
        if self.is_open() {
            return self.arrive(io);
        }
        self.waiting.extend(std::iter::repeat_n(self.now, self.share.callers));
        self.fill_all(io);
    }

    /// Gives lanes to the callers that returned while nothing was allowed to begin.
    pub(super) fn fill_all(&mut self, io: &mut Io) {
        for index in 0..self.lanes.len() {
            if self.waiting.is_empty() {
                break;
            }
            self.fill(io, index);
        }
    }

    /// Open loop: takes all arrivals that are due by the schedule, and gives them to idle lanes.
    pub(super) fn arrive(&mut self, io: &mut Io) {
        if !self.is_open() {
            return;
        }
        while let Pace::Send(due) = self.pace() {
            self.waiting.push_back(self.since + due);
            self.begun += 1;
        }
        // A lane that waits to reconnect goes back to the end of the queue, so look at each lane only once.
        for _ in 0..self.idle.len() {
            if self.waiting.is_empty() {
                break;
            }
            let Some(index) = self.idle.pop_front() else { break };
            self.lanes[index].idle = false;
            self.fill(io, index);
        }
    }
}
