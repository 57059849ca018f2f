//! The phases of a drive: what may begin now, and when the measured window opens and closes.

use std::time::Duration;

use reactor::{Io, Time};

use super::{Driver, Ending, GRACE, Moment, Phase, RENDEZVOUS_TURN, Share, TURN};
use crate::pacer::{Pace, Pacer, Stop};
use crate::protocol::Protocol;

/// What may begin in a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    until: Time,
    most: u64,
}

impl Gate {
    /// The gate of a phase that began at `since`.
    pub(super) fn of(phase: Phase, since: Time, share: &Share) -> Self {
        let stop = match phase {
            Phase::WarmUp if share.warms_up_until_it_meets() => Stop::Count(u64::MAX),
            Phase::WarmUp => Stop::After(share.warmup),
            Phase::Measure => share.stop,
            Phase::Settle | Phase::Drain | Phase::Done => Stop::After(Duration::ZERO),
        };
        match stop {
            Stop::After(length) => Self { until: since + length, most: u64::MAX },
            Stop::Count(most) => Self { until: Time::NEVER, most },
        }
    }

    /// Closed loop: whether another exchange may begin now, after `begun` others.
    #[inline]
    pub(super) fn admits(self, now: Time, begun: u64) -> bool {
        now < self.until && begun < self.most
    }

    /// Whether the time is over.
    #[inline]
    pub(super) fn is_over(self, now: Time) -> bool {
        now >= self.until
    }
}

impl<P: Protocol> Driver<'_, P> {
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open_loop
    }

    /// How long the loop may wait: until the phase ends or an arrival is due, at most [`TURN`].
    pub(super) fn patience(&mut self) -> Duration {
        let now = if self.is_open() { Time::now() } else { self.now };
        let mut until = now + TURN;
        if let Some((retry_at, _)) = self.retries.front() {
            until = until.min(*retry_at);
        }
        if !self.gate.is_over(now) {
            until = until.min(self.gate.until);
        }
        until = until.min(self.begins_at);
        if let Some(meets_at) = self.share.meets_at().filter(|_| self.opened.is_none()) {
            // The instant becomes known between two turns.
            until = until.min(meets_at).min(now + RENDEZVOUS_TURN);
        }
        if self.is_open() && matches!(self.phase, Phase::WarmUp | Phase::Measure) {
            return match self.pacer.pace(now.since(self.since), self.begun) {
                Pace::Wait(time) => until.min(now + time).since(now),
                Pace::Send(_) | Pace::Stop => Duration::ZERO,
            };
        }
        until.since(now)
    }

    /// Whether there is nothing to do within [`patience`](Self::patience), whatever answers arrive: only the schedule begins
    /// exchanges, no arrival waits for a lane, answers are known to arrive in one piece, and connections last.
    pub(super) fn may_sleep(&self) -> bool {
        self.is_open()
            && matches!(self.phase, Phase::WarmUp | Phase::Measure)
            && self.waiting.is_empty()
            && !self.wakeful
            && self.tally.total.successes > 0
    }

    /// What the pacer says; `Stop` in phases in which no exchange begins.
    pub(super) fn pace(&mut self) -> Pace {
        match self.phase {
            Phase::WarmUp | Phase::Measure => self.pacer.pace(self.now.since(self.since), self.begun),
            Phase::Settle | Phase::Drain | Phase::Done => Pace::Stop,
        }
    }

    /// Whether a waiting exchange may begin now. In an open loop the pacer already decided when it arrived.
    pub(super) fn may_begin(&self) -> bool {
        self.is_open() || self.gate.admits(self.now, self.begun)
    }

    /// Whether the window may open now, as far as other generators decide that.
    fn may_open(&self) -> bool {
        self.share.meets_at().is_none_or(|meets_at| self.now >= meets_at)
    }

    /// Tells the other generators once that this thread is ready for the window.
    fn look_whether_ready(&mut self) {
        let Some(rendezvous) = self.share.rendezvous.as_ref().filter(|_| !self.ready) else { return };
        let passed = self.now.since(self.since);
        let warm = match self.phase {
            Phase::WarmUp => self.share.warms_up_until_it_meets() && passed >= self.share.warmup,
            Phase::Settle => self.open == 0,
            Phase::Measure | Phase::Drain | Phase::Done => false,
        };
        let patience = self.share.warmup + self.share.timeout;
        let kept = self.protocol.keeps_connections();
        let settled = || {
            let all = || self.lanes.iter();
            // A server that is gone takes no connection, however long it is waited for.
            all().all(|lane| lane.ready) || all().all(|lane| lane.retry_at.is_some())
        };
        if warm && (!kept || passed >= patience || settled()) {
            self.ready = true;
            rendezvous.arrive();
        }
    }

    /// Whether the schedule, the time or the count is over.
    fn is_over(&mut self) -> bool {
        if self.phase == Phase::WarmUp && self.share.warms_up_until_it_meets() {
            return self.may_open();
        }
        if self.is_open() { self.pace() == Pace::Stop } else { !self.may_begin() }
    }

    /// Changes the phase. Its time counts on.
    fn change(&mut self, phase: Phase) {
        self.phase = phase;
        self.gate = Gate::of(phase, self.since, &self.share);
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.since = self.now;
        self.change(phase);
        self.begun = 0;
        if phase == Phase::Measure {
            self.pacer = Pacer::new(self.share.arrivals.clone(), self.share.stop, self.share.offset);
        }
    }

    pub(super) fn open_window(&mut self) {
        (self.watch)(Moment::Opened);
        self.now = match self.share.meets_at() {
            // What is due is due by the common schedule, even if this thread is late.
            Some(meets_at) if self.is_open() => meets_at.min(Time::now()),
            _ => Time::now(),
        };
        self.enter(Phase::Measure);
        self.opened = Some(self.now);
        self.window = true;
        self.look_for_tenth();
        self.report_at = self.share.reports.map_or(Time::NEVER, |every| self.now + every);
        self.tally.attempts = self.open;
        if !self.is_open() && self.share.ending == Ending::Cut {
            self.tally.early_ages = self.ages();
        }
        // Those of the warm-up do not count.
        self.protocol.take_decoded();
        self.waited = reactor::thread_waited();
        self.cpu = reactor::thread_cpu();
    }

    pub(super) fn close_window(&mut self) {
        if !std::mem::take(&mut self.window) {
            return;
        }
        let elapsed = self.now.since(self.since);
        self.tally.elapsed = elapsed;
        self.tally.in_flight = self.open;
        self.tally.decoded = self.protocol.take_decoded();
        if self.is_open() {
            self.take_overdue(elapsed);
            self.tally.arrivals = self.begun;
            self.tally.backlog = self.waiting.len() as u64;
        } else if self.share.ending == Ending::Cut {
            self.tally.open_ages = self.ages();
        }
        self.cut_streams();
        self.tally.cpu = reactor::thread_cpu().saturating_sub(self.cpu);
        let waited = reactor::thread_waited().zip(self.waited);
        self.tally.waited = waited.map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before));
        self.tally.busiest = crate::busy_share(self.tally.cpu, elapsed);
        (self.watch)(Moment::Closed);
    }

    /// Ends the drive early. Returns whether it goes on for a moment: an open loop waits for the answers that are under way,
    /// because each that it does not see makes percentiles lower bounds.
    pub(super) fn interrupt(&mut self) -> bool {
        self.close_window();
        let waits = self.is_open() && self.opened.is_some();
        if waits && !self.interrupted {
            self.interrupted = true;
            self.share.drain = GRACE;
            self.enter(Phase::Drain);
        }
        waits
    }

    /// Takes the arrivals that were due before the end of the window but that the loop had no chance to see, for example
    /// because the machine stalled.
    fn take_overdue(&mut self, elapsed: Duration) {
        let Stop::After(length) = self.share.stop else { return };
        let last = elapsed.min(length.saturating_sub(Duration::from_nanos(1)));
        while self.is_open()
            && self.phase == Phase::Measure
            && let Pace::Send(due) = self.pacer.pace(last, self.begun)
        {
            self.waiting.push_back(self.since + due);
            self.begun += 1;
        }
    }

    /// Moves to the next phase when its time has come or its exchanges have ended.
    pub(super) fn advance(&mut self, io: &mut Io) {
        if self.now >= self.tenth_ends {
            self.look_for_tenth();
        }
        if self.now >= self.report_at {
            self.report();
        }
        if self.now >= self.begins_at {
            self.begin_next(io);
        }
        self.look_whether_ready();
        let over = self.is_over();
        match self.phase {
            Phase::WarmUp if over => match self.share.ending {
                Ending::Cut => {
                    if self.yet_to_begin > 0 {
                        self.begin_rest(io);
                    }
                    self.open_window();
                    self.fill_all(io);
                }
                Ending::Finish => self.enter(Phase::Settle),
            },
            Phase::Settle if self.open == 0 && self.may_open() => {
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
                Ending::Finish => {
                    self.take_overdue(self.now.since(self.since));
                    self.change(Phase::Drain);
                }
            },
            Phase::Drain if self.open == 0 && (self.waiting.is_empty() || !self.is_open()) => {
                self.close_window();
                self.change(Phase::Done);
            }
            Phase::Drain if !self.window && self.now.since(self.since) > self.share.drain => {
                self.change(Phase::Done);
            }
            _ => {}
        }
    }

    /// Finds the current tenth of the window, and when it ends.
    fn look_for_tenth(&mut self) {
        self.tenth_ends = Time::NEVER;
        let Stop::After(length) = self.share.stop else { return };
        let elapsed = self.now.since(self.since).as_secs_f64();
        // With `Finish` the window continues past its length. What ends then counts in the last tenth.
        self.tenth = ((elapsed / length.as_secs_f64() * 10.0) as usize).min(9);
        if self.tenth < 9 {
            self.tenth_ends = self.since + length / 10 * (self.tenth as u32 + 1);
        }
    }

    /// Reports the counts so far, and finds out when the next report is due.
    fn report(&mut self) {
        let Some(every) = self.share.reports.filter(|_| self.window) else {
            self.report_at = Time::NEVER;
            return;
        };
        self.reported += 1;
        self.report_at = self.since + every * (self.reported + 1);
        let (thread, times) = (self.share.number, self.reported);
        (self.watch)(Moment::Passed { thread, times, so_far: &self.tally });
    }

    /// Starts the drive. An open loop first makes its connections, before anything arrives, and so does a drive without a
    /// warm-up that waits for other generators.
    pub(super) fn start(&mut self, io: &mut Io) {
        if self.is_open() {
            self.idle.extend(0..self.lanes.len());
        }
        let waits = self.phase == Phase::Settle;
        if (self.is_open() || waits) && self.protocol.keeps_connections() {
            (0..self.lanes.len()).for_each(|index| self.connect(io, index));
        }
        if !waits {
            self.begin_phase(io);
        }
    }

    /// Begins the exchanges of a phase. In a closed loop every caller wants to send at once, except in the warm-up of a cut
    /// window: there the connections begin one after the other during its first half. Servers whose answers take equally long
    /// would otherwise answer all of them at the same time for ever, and a window would hold one answer more or less of each.
    pub(super) fn begin_phase(&mut self, io: &mut Io) {
        if self.is_open() {
            return self.arrive(io);
        }
        self.yet_to_begin = self.lanes.len();
        if self.phase == Phase::WarmUp && self.share.ending == Ending::Cut {
            self.begins_at = self.now;
            self.begin_next(io);
        } else {
            self.begin_rest(io);
        }
    }

    /// Begins with the connections whose time has come.
    fn begin_next(&mut self, io: &mut Io) {
        let (lanes, spread) = (self.lanes.len().max(1) as u32, self.share.warmup / 2);
        while self.now >= self.begins_at && self.yet_to_begin > 1 {
            let index = self.lanes.len() - self.yet_to_begin;
            self.yet_to_begin -= 1;
            self.begins_at = self.since + spread / lanes * (index as u32 + 1);
            self.waiting.extend(std::iter::repeat_n(self.now, self.share.pipeline));
            self.fill(io, index);
        }
        if self.now >= self.begins_at {
            self.begin_rest(io);
        }
    }

    /// Begins with all others. Callers without a connection of their own wait for one.
    fn begin_rest(&mut self, io: &mut Io) {
        let begun = (self.lanes.len() - self.yet_to_begin) * self.share.pipeline;
        (self.yet_to_begin, self.begins_at) = (0, Time::NEVER);
        self.waiting.extend(std::iter::repeat_n(self.now, self.share.callers.saturating_sub(begun)));
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
        for left in (1..=self.idle.len()).rev() {
            if self.waiting.is_empty() {
                break;
            }
            let Some(index) = self.idle.pop_front() else { break };
            self.lanes[index].idle = false;
            // Lanes that can carry several share them.
            self.fill_with(io, index, (0, self.waiting.len().div_ceil(left)));
        }
    }
}
