//! What the driver counts: the end of each exchange, arrivals that are never sent, and what the end of the window leaves
//! open.

use reactor::Time;

use super::lanes::Stamp;
use super::{Driver, Phase};
use crate::fault::{ErrorClass, Example, Fault, Seen};
use crate::protocol::{Protocol, Success};

impl<P: Protocol> Driver<'_, P> {
    /// Counts exchanges that begin.
    #[inline]
    pub(super) fn attempted(&mut self, count: u64) {
        self.tally.total.attempts += count;
        if self.window {
            self.tally.attempts += count;
        } else if self.counts() {
            // What begins after the window was due before its end.
            self.tally.attempts += count;
            self.tally.in_flight += count;
        }
    }

    /// Whether the outcome of an exchange counts. In an open loop it still does after the window.
    fn counts(&self) -> bool {
        self.window || (self.is_open() && self.phase == Phase::Drain)
    }

    /// Whether the times of an exchange count. In an open loop they do if it was due in the window.
    fn times_count(&self, intended: Time) -> bool {
        if self.is_open() { self.opened.is_some_and(|opened| intended >= opened) } else { self.window }
    }

    /// Counts the end of a lane's exchange with this number.
    #[inline]
    pub(super) fn settle(&mut self, index: usize, number: u64, result: Result<Success, &Fault>, ended: Time) {
        let Some(stamp) = self.lanes[index].stamps.take(number) else { return };
        self.open -= 1;
        match result {
            Ok(success) => {
                self.tally.total.successes += 1;
                if self.window {
                    self.tally.succeed(success, self.tenth);
                }
                if self.times_count(stamp.intended) {
                    self.tally.answered(ended.nanos_since(stamp.sent), ended.nanos_since(stamp.intended));
                    self.sent_behind(&stamp);
                }
            }
            Err(fault) => self.lost(*fault, &stamp, (index, number)),
        }
        self.caller_returns();
    }

    /// Counts an exchange that failed. `at` is its lane and its number.
    #[inline(never)]
    pub(super) fn lost(&mut self, fault: Fault, stamp: &Stamp, at: (usize, u64)) {
        self.failed(fault, stamp.sent, Some(at));
        if self.is_open() && self.times_count(stamp.intended) {
            self.sent_behind(stamp);
            // A right answer would have taken longer than this.
            self.unanswered(stamp);
        }
    }

    fn sent_behind(&mut self, stamp: &Stamp) {
        if self.is_open() {
            self.tally.sent_behind(stamp.sent.nanos_since(stamp.intended));
        }
    }

    fn unanswered(&mut self, stamp: &Stamp) {
        self.tally.unanswered(self.now.nanos_since(stamp.sent), self.now.nanos_since(stamp.intended));
    }

    fn failed(&mut self, fault: Fault, since: Time, at: Option<(usize, u64)>) {
        *self.tally.total.errors.entry(fault.class).or_default() += 1;
        if self.counts() {
            // After the window it was in flight until now.
            self.tally.in_flight -= u64::from(!self.window);
            let example = Example {
                fault,
                check: None,
                heard: self.heard,
                into_window: self.opened.map(|opened| self.now.since(opened)).unwrap_or_default(),
                connection: at.map(|(index, _)| index),
                exchange: at.filter(|(index, _)| self.lanes[*index].connected).map(|(_, number)| number + 1),
            };
            self.tally.fail(example, self.now.since(since));
        }
    }

    /// Gives up callers and arrivals that have waited for a connection longer than the timeout.
    pub(super) fn expire(&mut self) {
        let timeout = self.share.timeout;
        while self.waiting.front().is_some_and(|since| self.now.since(*since) >= timeout) {
            let Some(since) = self.waiting.pop_front() else { break };
            if self.is_open() {
                self.drop_arrival(since);
            } else if self.may_begin() {
                self.begun += 1;
                self.attempted(1);
                self.failed(Fault::new(ErrorClass::PoolWait, Seen::Nothing), since, None);
                self.caller_returns();
            }
        }
    }

    fn drop_arrival(&mut self, due: Time) {
        if self.times_count(due) {
            self.tally.unsent(self.now.nanos_since(due));
        }
    }

    /// Closed loop: looks how long the open exchanges and the waiting callers have waited when the window closes.
    pub(super) fn look_at_ages(&mut self) {
        let stamps = self.lanes.iter().flat_map(|lane| lane.stamps.iter().map(|stamp| stamp.intended));
        for since in stamps.chain(self.waiting.iter().copied()) {
            self.tally.open_ages.saturating_record(self.now.nanos_since(since).max(1));
        }
    }

    /// Open loop: records the ages of what is still open when the drive ends.
    pub(super) fn abandon(&mut self) {
        if !self.is_open() {
            return;
        }
        for index in 0..self.lanes.len() {
            while let Some(stamp) = self.lanes[index].stamps.pop() {
                if self.times_count(stamp.intended) {
                    self.sent_behind(&stamp);
                    self.unanswered(&stamp);
                }
            }
        }
        for due in std::mem::take(&mut self.waiting) {
            self.drop_arrival(due);
        }
    }
}
