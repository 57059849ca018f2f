//! The times of streamed answers: what a session says has arrived of them, at the time at which the kernel had it.

use reactor::Time;

use super::exchanges::{Exchange, Parts};
use super::{Driver, Ending};
use crate::fault::Fault;
use crate::goal::{GAPS, Seen};
use crate::protocol::Protocol;
use crate::stream::Brought;

/// What is known of a stream: a few numbers, because ten thousand may be open.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Course {
    /// When the first event that is not empty arrived.
    first: Option<Time>,
    /// When the last read with an event arrived, from that event on.
    last: Option<Time>,
    /// How many gaps there were between such reads.
    gaps: u64,
    /// The longest of them, in nanoseconds.
    longest: u64,
    /// The tokens, where the stream says how many they were.
    tokens: Option<u32>,
    /// How many gaps were not below each limit of gaps.
    over: [u32; GAPS],
    /// What was wrong in it. What follows does not count.
    fault: Option<Fault>,
}

impl Course {
    /// Takes events that arrived. Returns how long after those before them.
    fn take(&mut self, brought: Brought, arrived: Time) -> Option<u64> {
        self.tokens = brought.tokens.or(self.tokens);
        if brought.content {
            self.first = Some(arrived);
        }
        // What comes before is empty: a role, or a greeting.
        if brought.pieces == 0 || self.first.is_none() {
            return None;
        }
        let gap = self.last.replace(arrived).map(|last| arrived.nanos_since(last))?;
        self.gaps += 1;
        self.longest = self.longest.max(gap);
        Some(gap)
    }

    /// The mean time of a token after the first one, in nanoseconds, of a stream that ended at this time.
    fn per_token(&self, ended: Time) -> Option<u64> {
        let others = u64::from(self.tokens?).checked_sub(1).filter(|others| *others > 0)?;
        Some(ended.nanos_since(self.first?) / others)
    }
}

impl<P: Protocol> Driver<'_, P> {
    /// Takes what arrived of an answer that is a stream.
    pub(super) fn streamed(&mut self, index: usize, id: u64, brought: Brought, arrived: Time) {
        let exchanges = &mut self.lanes[index].exchanges;
        exchanges.came(id, Some(arrived), arrived);
        let Some((exchange, parts)) = exchanges.parts(id) else { return };
        let (intended, sent) = (exchange.intended, exchange.sent);
        let begins = parts.course.is_none();
        let course = parts.course.get_or_insert_default();
        course.fault = course.fault.or(brought.fault);
        if course.fault.is_some() {
            return;
        }
        let gap = course.take(brought, arrived);
        let first_byte = parts.first.filter(|_| begins);
        if let (Some(gap), Some(goal)) = (gap, &self.share.goal) {
            goal.count_gap(gap, &mut course.over);
        }
        if self.window && brought.pieces > 0 {
            self.tally.events += u64::from(brought.pieces);
            self.tally.event_reads += 1;
        }
        if !self.times_count(intended) {
            return;
        }
        if let Some(first) = first_byte {
            self.first_byte(first, intended, sent);
        }
        if brought.content {
            let tally = &mut self.tally;
            tally.first_event.get_or_insert_default().record(arrived.nanos_since(intended));
            if self.open_loop {
                tally.first_event_service.get_or_insert_default().record(arrived.nanos_since(sent));
            }
        }
        if brought.output {
            self.tally.first_output.get_or_insert_default().record(arrived.nanos_since(intended));
        }
        if let Some(gap) = gap {
            self.tally.gap.get_or_insert_default().record(gap);
        }
    }

    /// Records when the first byte of an answer arrived.
    pub(super) fn first_byte(&mut self, first: Time, intended: Time, sent: Time) {
        self.tally.first_byte.get_or_insert_default().record(first.nanos_since(intended));
        if self.open_loop {
            self.tally.first_byte_service.get_or_insert_default().record(first.nanos_since(sent));
        }
    }

    /// Counts an answer that ended rightly in the window, if it meets the limits of good ones.
    pub(super) fn look_whether_good(
        &mut self,
        parts: Option<&Parts>,
        exchange: &Exchange<P::Request>,
        ended: Time,
    ) {
        let (Some(goal), Some(good)) =
            (self.share.goal.as_ref().filter(|_| self.window), &mut self.tally.good)
        else {
            return;
        };
        let since = |time: Time| time.nanos_since(exchange.intended);
        let course = parts.and_then(|parts| parts.course.as_ref());
        let seen = Seen {
            first_byte: parts.and_then(|parts| parts.first).map(since),
            first_event: course.and_then(|course| course.first).map(since),
            longest_gap: course.map(|course| course.longest),
            gaps: course.map_or(0, |course| course.gaps),
            over: course.map_or([0; GAPS], |course| course.over),
            whole: since(ended),
        };
        *good += u64::from(goal.is_met(&seen));
    }

    /// Counts a stream that ended rightly.
    pub(super) fn stream_succeeded(&mut self, course: &Course, intended: Time, ended: Time) {
        let tokens = u64::from(course.tokens.unwrap_or(0));
        if self.window {
            self.tally.streams += 1;
            self.tally.tokens += tokens;
        }
        if !self.times_count(intended) {
            return;
        }
        if course.gaps > 0 {
            self.tally.longest_gap.get_or_insert_default().record(course.longest);
        }
        if let Some(each) = course.per_token(ended) {
            self.tally.per_token.get_or_insert_default().record(each);
        }
    }

    /// Open loop: records the age of an exchange that is not answered, if its first event has not come. One without an answer
    /// may be a stream if others are.
    pub(super) fn stream_unanswered(
        &mut self,
        index: usize,
        id: Option<u64>,
        (intended, sent): (Time, Time),
    ) {
        let (response, service) = (&mut self.tally.first_event, &mut self.tally.first_event_service);
        if let (Some(response), Some(service)) = (response, service)
            && self.opened.is_some_and(|opened| intended >= opened)
        {
            let course = id.and_then(|id| self.lanes[index].exchanges.course(id));
            if course.is_none_or(|course| course.first.is_none()) {
                response.give_up(self.now.nanos_since(intended));
                service.give_up(self.now.nanos_since(sent));
            }
        }
    }

    /// The same for so many exchanges of a lane, the oldest first.
    pub(super) fn streams_unanswered(&mut self, index: usize, count: usize) {
        if self.tally.first_event_service.is_none() {
            return;
        }
        let all = self.lanes[index].exchanges.iter().take(count);
        let all: Vec<_> = all.map(|(id, exchange)| (id, (exchange.intended, exchange.sent))).collect();
        all.into_iter().for_each(|(id, times)| self.stream_unanswered(index, id, times));
    }

    /// Counts the streams that the end of the window cuts and that are sound so far. Their events have been counted. One in which
    /// something was wrong has failed.
    pub(super) fn cut_streams(&mut self) {
        if self.open_loop || self.share.ending != Ending::Cut {
            return;
        }
        let open = self.lanes.iter().flat_map(|lane| lane.exchanges.streams());
        let sound = open.filter(|course| course.last.is_some() && course.fault.is_none());
        let (mut cut, mut longest) = (0, self.tally.longest_gap.take());
        for course in sound {
            cut += 1;
            // A gap that is under way may become longer than all before it.
            if let Some(last) = course.last.filter(|_| course.gaps > 0) {
                longest.get_or_insert_default().give_up(course.longest.max(self.now.nanos_since(last)));
            }
        }
        (self.tally.cut_streams, self.tally.longest_gap) = (cut, longest);
        for (index, id, sent, fault) in self.broken_streams() {
            // What still comes of it does not count again.
            let exchanges = &mut self.lanes[index].exchanges;
            exchanges.forget(id);
            self.open -= u64::from(exchanges.take(id).is_some());
            self.failed_at_the_end(fault, sent, (index, id));
        }
    }

    /// The streams in which something was wrong and that have not ended: their lanes, ids, sends and faults.
    fn broken_streams(&self) -> Vec<(usize, u64, Time, Fault)> {
        let lanes = self.lanes.iter().enumerate();
        let broken = lanes.filter(|(_, lane)| lane.exchanges.streams().any(|course| course.fault.is_some()));
        let exchanges = broken.flat_map(|(index, lane)| {
            lane.exchanges.iter().filter_map(move |(id, exchange)| {
                let id = id?;
                Some((index, id, exchange.sent, lane.exchanges.course(id)?.fault?))
            })
        });
        exchanges.collect()
    }
}
