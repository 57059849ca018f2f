//! Requests of a list, each sent as a part of the memory of all.

use std::collections::VecDeque;
use std::sync::Arc;

use reactor::{Payload, SharedBytes};
use stats::SplitMix64;
use wire::http::ResponseDecoder;

use super::State;
use super::answer::Judge;
use super::source::Source;
use crate::list::{Filler, List, Order};
use crate::tally::Decoded;
use crate::target::{Expect, Http};

/// The requests that one of several threads takes from a list.
pub(crate) struct Listed {
    list: Arc<List>,
    bytes: SharedBytes,
    depth: usize,
    /// Who judges the answers to requests that say what they must be.
    judges: Vec<Judge>,
    /// The number of the next request, if requests are taken in order.
    next: usize,
    step: usize,
    random: SplitMix64,
    filler: Filler,
    /// Memory of requests that were filled in.
    spare: Vec<Vec<u8>>,
}

impl Listed {
    /// The source of one of several threads.
    pub(crate) fn new(
        target: &Http,
        list: &Arc<List>,
        depth: usize,
        (thread, threads): (usize, usize),
    ) -> Self {
        let (next, step) = match list.order() {
            Order::Recorded => (thread % list.len(), threads),
            Order::InOrder | Order::Once | Order::Random => {
                (crate::first(thread, threads, list.len()) % list.len(), 1)
            }
        };
        let seed = list.seed().wrapping_add((thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut random = SplitMix64::new(seed);
        let mut first = target.expect.checks.len() as u32;
        let judge = |expect: &Expect| {
            let judge = Judge::of(target, expect, first);
            first += expect.checks.len() as u32;
            judge
        };
        let judges = list.expects().iter().map(judge).collect();
        let filler = Filler::new(SplitMix64::new(random.next_u64()), thread, threads);
        Self {
            list: Arc::clone(list),
            bytes: SharedBytes::new(Arc::clone(list.bytes())),
            depth,
            judges,
            next,
            step,
            random,
            filler,
            spare: Vec::new(),
        }
    }

    /// Appends a request as it is sent.
    pub(crate) fn append(&mut self, number: usize, out: &mut Vec<u8>) {
        self.list.append(number, &mut self.filler, out);
    }

    /// Whether it is a HEAD request.
    pub(crate) fn is_head(&self, number: usize) -> bool {
        self.list.entry(number).head
    }

    /// Who judges the answer to a request.
    #[inline]
    pub(crate) fn judge_of<'j>(&'j mut self, usual: &'j mut Judge, number: usize) -> &'j mut Judge {
        let expected = self.list.expected(number);
        expected.and_then(|number| self.judges.get_mut(number)).unwrap_or(usual)
    }

    /// Fills a request in.
    fn fill(&mut self, number: usize) -> Payload {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        self.list.append(number, &mut self.filler, &mut bytes);
        Payload::Owned(bytes)
    }
}

impl Source for Listed {
    type Request = u32;

    #[inline]
    fn pick(&mut self) -> u32 {
        if self.list.order() == Order::Random {
            return self.list.at_random(&mut self.random) as u32;
        }
        let picked = self.next;
        self.next += self.step;
        if self.next >= self.list.len() {
            self.next %= self.list.len();
        }
        picked as u32
    }

    #[inline]
    fn add(&mut self, state: &mut State, request: u32) {
        state.marks.push_back(u64::from(request));
    }

    #[inline]
    fn take(&mut self, state: &mut State, _alone: bool) -> Payload {
        // The requests that are sent are before those that are not.
        let number = state.marks.get(state.open).map_or(0, |mark| *mark as usize);
        state.open += 1;
        state.unsent -= 1;
        let entry = self.list.entry(number);
        if !entry.is_ready() {
            return self.fill(number);
        }
        let mut range = entry.range();
        while state.unsent > 0 {
            let Some(next) = state.marks.get(state.open).map(|mark| self.list.entry(*mark as usize)) else {
                break;
            };
            if !next.is_ready() || next.range().start != range.end {
                break;
            }
            range.end = next.range().end;
            state.open += 1;
            state.unsent -= 1;
        }
        self.bytes.slice(range)
    }

    fn sent(&mut self, payload: Payload) {
        if let Payload::Owned(bytes) = payload {
            self.spare.push(bytes);
        }
    }

    fn shared(&self) -> (&SharedBytes, usize) {
        let longest = self.list.longest().unwrap_or(usize::MAX);
        (&self.bytes, longest.saturating_mul(self.depth))
    }

    fn decoder(&self) -> ResponseDecoder {
        ResponseDecoder::new()
    }

    #[inline]
    fn expect_answer(&self, state: &mut State) {
        if let Some(mark) = state.marks.front() {
            state.decoder.answers_head(self.list.entry(*mark as usize).head);
        }
    }

    #[inline]
    fn judge<'j>(&'j mut self, usual: &'j mut Judge, marks: &VecDeque<u64>) -> &'j mut Judge {
        match marks.front() {
            Some(mark) => self.judge_of(usual, *mark as usize),
            None => usual,
        }
    }

    fn take_decoded(&mut self) -> Decoded {
        let mut decoded = Decoded::default();
        self.judges.iter_mut().for_each(|judge| decoded.add(&judge.take_decoded()));
        decoded
    }

    fn name(&self, request: u32) -> Option<usize> {
        Some(self.list.entry(request as usize).name())
    }

    fn names(&self) -> usize {
        self.list.names().len()
    }
}
