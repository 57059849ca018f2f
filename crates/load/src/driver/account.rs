//! What the driver counts: the end of each exchange, arrivals that are never sent, and what the end of the window leaves
//! open.

use reactor::Time;

use super::exchanges::Exchange;
use super::{Driver, Phase};
use crate::fault::{ErrorClass, Example, Fault, Seen};
use crate::protocol::{Protocol, Success};
use crate::tally::Named;
use crate::times::Times;

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
    pub(super) fn times_count(&self, intended: Time) -> bool {
        if self.is_open() { self.opened.is_some_and(|opened| intended >= opened) } else { self.window }
    }

    /// Counts an exchange that ended with a right answer.
    #[inline]
    pub(super) fn succeeded(&mut self, success: Success, exchange: &Exchange<P::Request>, ended: Time) {
        self.tally.total.successes += 1;
        if self.window {
            self.tally.succeed(success, self.tenth);
        }
        if self.times_count(exchange.intended) {
            self.tally.answered(ended.nanos_since(exchange.sent), ended.nanos_since(exchange.intended));
            self.sent_behind(exchange);
        }
        let (window, times_count) = (self.window, self.times_count(exchange.intended));
        if let Some(named) = self.named(exchange.request) {
            named.successes += u64::from(window);
            if times_count {
                named.response.record(ended.nanos_since(exchange.intended));
            }
        }
    }

    /// The counts of a request's name, if it has one.
    #[inline]
    fn named(&mut self, request: P::Request) -> Option<&mut Named> {
        self.tally.by_name.get_mut(self.protocol.name(request)?)
    }

    /// Counts an exchange that failed. `at` is its lane and its id.
    #[inline(never)]
    pub(super) fn lost(&mut self, fault: Fault, exchange: &Exchange<P::Request>, at: (usize, u64)) {
        self.failed(fault, exchange.sent, Some(at), Some(exchange.request));
        if self.is_open() && self.times_count(exchange.intended) {
            self.sent_behind(exchange);
            // A right answer would have taken longer than this.
            self.unanswered(exchange);
        }
    }

    fn sent_behind(&mut self, exchange: &Exchange<P::Request>) {
        if self.is_open() {
            self.tally.sent_behind(exchange.sent.nanos_since(exchange.intended));
        }
    }

    fn unanswered(&mut self, exchange: &Exchange<P::Request>) {
        let response = self.now.nanos_since(exchange.intended);
        self.tally.unanswered(self.now.nanos_since(exchange.sent), response);
        if let Some(named) = self.named(exchange.request) {
            named.response.give_up(response);
        }
    }

    fn failed(&mut self, fault: Fault, since: Time, at: Option<(usize, u64)>, request: Option<P::Request>) {
        *self.tally.total.errors.entry(fault.class).or_default() += 1;
        if self.counts() {
            // After the window it was in flight until now.
            self.tally.in_flight -= u64::from(!self.window);
            self.failed_in_window(fault, since, at, request);
        }
    }

    /// Counts an exchange as failed that was in flight when the window closed, because something was wrong already.
    pub(super) fn failed_at_the_end(&mut self, fault: Fault, since: Time, at: (usize, u64)) {
        *self.tally.total.errors.entry(fault.class).or_default() += 1;
        self.tally.in_flight -= 1;
        self.failed_in_window(fault, since, Some(at), None);
    }

    fn failed_in_window(
        &mut self,
        fault: Fault,
        since: Time,
        at: Option<(usize, u64)>,
        request: Option<P::Request>,
    ) {
        let example = Example {
            fault,
            check: None,
            told: None,
            heard: self.heard,
            into_window: self.opened.map(|opened| self.now.since(opened)).unwrap_or_default(),
            connection: at.map(|(index, _)| index),
            exchange: at.filter(|(index, _)| self.lanes[*index].is_connected()).map(|(_, id)| id + 1),
        };
        self.tally.fail(example, self.now.since(since));
        if let Some(named) = request.and_then(|request| self.named(request)) {
            named.fail(fault.class);
        }
    }

    /// Counts bytes that came on a connection while it carried no exchange. No other failure would show them.
    #[cold]
    pub(super) fn unasked(&mut self, fault: Fault, index: usize) {
        self.attempted(1);
        self.failed(fault, self.now, Some((index, self.lanes[index].exchanges.first())), None);
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
                let request = self.protocol.pick();
                self.failed(Fault::new(ErrorClass::PoolWait, Seen::Nothing), since, None, Some(request));
                self.callers_return(1);
            }
        }
    }

    fn drop_arrival(&mut self, due: Time) {
        // Its request is not sent later in place of another one.
        let request = self.protocol.pick();
        if self.times_count(due) {
            let age = self.now.nanos_since(due);
            self.tally.unsent(age);
            if let Some(named) = self.named(request) {
                named.response.give_up(age);
            }
        }
    }

    /// Closed loop: how long the open exchanges and the waiting callers have waited.
    pub(super) fn ages(&self) -> Times {
        let mut ages = Times::default();
        let open = self.lanes.iter().flat_map(|lane| lane.exchanges.iter());
        for since in open.map(|(_, exchange)| exchange.intended).chain(self.waiting.iter().copied()) {
            ages.record(self.now.nanos_since(since));
        }
        ages
    }

    /// Open loop: records the ages of what is still open when the drive ends.
    pub(super) fn abandon(&mut self) {
        if !self.is_open() {
            return;
        }
        for index in 0..self.lanes.len() {
            self.streams_unanswered(index, usize::MAX);
            while let Some(exchange) = self.lanes[index].exchanges.pop() {
                if self.times_count(exchange.intended) {
                    self.sent_behind(&exchange);
                    self.unanswered(&exchange);
                }
            }
        }
        for due in std::mem::take(&mut self.waiting) {
            self.drop_arrival(due);
        }
    }
}
