//! The open exchanges of one connection.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use reactor::Time;

use super::streams::Course;

/// An exchange that has not ended. Millions of them pass a second, so it holds no more than every exchange needs.
pub(super) struct Exchange<R> {
    /// When it should have been sent.
    pub intended: Time,
    /// When it was sent.
    pub sent: Time,
    /// What it sends.
    pub request: R,
}

/// What is known of an exchange whose answer arrives in parts, or whose request is sent in parts.
pub(super) struct Parts {
    /// When the first part arrived; `None` while there are only interim answers.
    pub first: Option<Time>,
    /// When the last part or interim answer arrived. Zero if none has.
    last: Time,
    /// When a further part of a long request was given to be sent.
    pushed: Option<Time>,
    /// What is known of it as a stream, if it is one.
    pub course: Option<Course>,
}

/// Fibonacci hashing of ids (Knuth, The Art of Computer Programming, 6.4). The high bits are the mixed ones, and a table takes its
/// places from the low bits.
#[derive(Default)]
struct Fibonacci(u64);

impl Hasher for Fibonacci {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The id of an exchange that waits to begin.
const NONE: u64 = u64::MAX;

/// The open exchanges of a lane, in the order in which they begin. Any of them may end first. The oldest has a place of its
/// own, because nearly every lane has only one: there it needs no memory elsewhere, and no queue.
///
/// The last ones may wait to begin: until the connection is ready, until it has room, or for another connection.
#[derive(Default)]
pub(super) struct Exchanges<R> {
    /// The id of the oldest, or [`NONE`].
    first: u64,
    oldest: Option<Exchange<R>>,
    /// The others, with their ids, which rise. The id of one that waits is [`NONE`].
    later: VecDeque<(u64, Exchange<R>)>,
    /// How many have begun on this connection: the id of the next.
    begun: u64,
    /// How many wait to begin.
    waiting: usize,
    /// What is known of exchanges that go in parts, by their ids. Each part is looked up, and thousands may be open.
    in_parts: HashMap<u64, Parts, BuildHasherDefault<Fibonacci>>,
}

impl<R: Copy> Exchanges<R> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.oldest.is_some()) + self.later.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    /// How many have begun on this connection, and are open.
    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.len() - self.waiting
    }

    /// How many wait to begin.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The id of the oldest exchange under way, or of the next one if there is none.
    pub(super) fn first(&self) -> u64 {
        if self.under_way() > 0 { self.first } else { self.begun }
    }

    pub(super) fn newest(&self) -> Option<&Exchange<R>> {
        self.later.back().map(|(_, exchange)| exchange).or(self.oldest.as_ref())
    }

    /// Adds one that waits to begin.
    pub(super) fn push(&mut self, exchange: Exchange<R>) {
        self.waiting += 1;
        self.add(NONE, exchange);
    }

    /// Adds one that begins now. None may wait before it.
    #[inline(always)]
    pub(super) fn push_begun(&mut self, exchange: Exchange<R>) {
        self.add(self.begun, exchange);
        self.begun += 1;
    }

    #[inline(always)]
    fn add(&mut self, id: u64, exchange: Exchange<R>) {
        if self.oldest.is_none() {
            (self.first, self.oldest) = (id, Some(exchange));
        } else {
            self.later.push_back((id, exchange));
        }
    }

    /// Gives the next id to the first that waits. Returns its request.
    pub(super) fn begin(&mut self) -> Option<R> {
        let place = self.len().checked_sub(self.waiting).filter(|_| self.waiting > 0)?;
        let (id, exchange) = match place.checked_sub(1) {
            None => (&mut self.first, self.oldest.as_ref()?),
            Some(place) => self.later.get_mut(place).map(|(id, exchange)| (id, &*exchange))?,
        };
        *id = self.begun;
        self.begun += 1;
        self.waiting -= 1;
        Some(exchange.request)
    }

    /// Takes the one with this id; nearly always it is the oldest.
    #[inline(always)]
    pub(super) fn take(&mut self, id: u64) -> Option<Exchange<R>> {
        if id == self.first { self.pop() } else { self.take_later(id) }
    }

    #[inline(never)]
    fn take_later(&mut self, id: u64) -> Option<Exchange<R>> {
        let place = self.place(id)?;
        self.later.remove(place).map(|(_, exchange)| exchange)
    }

    /// The place of this id among the later ones.
    fn place(&self, id: u64) -> Option<usize> {
        self.later.binary_search_by_key(&id, |(other, _)| *other).ok()
    }

    /// Takes note that something arrived: the first part of the answer, if it is none yet, or an interim answer.
    pub(super) fn came(&mut self, id: u64, first: Option<Time>, last: Time) {
        let parts = self.parts_of(id);
        (parts.first, parts.last) = (parts.first.or(first), last);
    }

    /// Takes note that a further part of a request was given to be sent.
    pub(super) fn pushed(&mut self, id: u64, now: Time) {
        self.parts_of(id).pushed = Some(now);
    }

    fn parts_of(&mut self, id: u64) -> &mut Parts {
        let none = Parts { first: None, last: Time::ZERO, pushed: None, course: None };
        self.in_parts.entry(id).or_insert(none)
    }

    /// When a further part of a request was given to be sent.
    pub(super) fn last_push(&self, id: u64) -> Option<Time> {
        self.in_parts.get(&id)?.pushed
    }

    /// The id of the newest exchange that began so long ago.
    pub(super) fn began(&self, ago: Duration, now: Time) -> Option<u64> {
        let is_old = |exchange: &Exchange<R>| now.since(exchange.sent) >= ago;
        let older = self.later.partition_point(|(id, exchange)| *id != NONE && is_old(exchange));
        match older.checked_sub(1).and_then(|place| self.later.get(place)) {
            Some((id, _)) => Some(*id),
            None => (self.first != NONE && self.oldest.as_ref().is_some_and(is_old)).then_some(self.first),
        }
    }

    /// An exchange, and the parts of its answer.
    pub(super) fn parts(&mut self, id: u64) -> Option<(&Exchange<R>, &mut Parts)> {
        let parts = self.in_parts.get_mut(&id)?;
        let exchange = match &self.oldest {
            Some(oldest) if self.first == id => oldest,
            _ => {
                let place = self.later.binary_search_by_key(&id, |(other, _)| *other).ok()?;
                self.later.get(place).map(|(_, exchange)| exchange)?
            }
        };
        Some((exchange, parts))
    }

    /// The streams that are open.
    pub(super) fn streams(&self) -> impl Iterator<Item = &Course> {
        self.in_parts.values().filter_map(|parts| parts.course.as_ref())
    }

    /// What is known of an answer as a stream.
    pub(super) fn course(&self, id: u64) -> Option<&Course> {
        self.in_parts.get(&id)?.course.as_ref()
    }

    /// When the last part of an answer arrived, of one that has not ended.
    pub(super) fn last_part(&self, id: u64) -> Option<Time> {
        self.in_parts.get(&id).map(|parts| parts.last)
    }

    /// Whether an answer of an exchange arrives in parts.
    #[inline]
    pub(super) fn has_parts(&self) -> bool {
        !self.in_parts.is_empty()
    }

    /// Forgets the parts of an answer. Returns them, if there were any.
    pub(super) fn forget(&mut self, id: u64) -> Option<Parts> {
        self.in_parts.remove(&id)
    }

    /// Lets the one with this id wait to begin anew.
    pub(super) fn refuse(&mut self, id: u64) {
        self.forget(id);
        if let Some(exchange) = self.take(id) {
            self.push(exchange);
        }
    }

    /// Takes the one at this place; the oldest has 0.
    pub(super) fn remove(&mut self, place: usize) -> Option<Exchange<R>> {
        let (id, exchange) = match place.checked_sub(1) {
            None => return self.pop(),
            Some(later) => self.later.remove(later)?,
        };
        self.waiting -= usize::from(id == NONE);
        Some(exchange)
    }

    /// Takes the oldest, whether it has begun or not.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Exchange<R>> {
        let oldest = self.oldest.take()?;
        self.waiting -= usize::from(self.first == NONE);
        if !self.later.is_empty()
            && let Some((id, next)) = self.later.pop_front()
        {
            (self.first, self.oldest) = (id, Some(next));
        }
        Some(oldest)
    }

    /// Lets all wait that are open, for another connection.
    pub(super) fn start_over(&mut self) {
        (self.begun, self.waiting, self.first) = (0, self.len(), NONE);
        self.in_parts.clear();
        self.later.iter_mut().for_each(|(id, _)| *id = NONE);
    }

    /// All, with their ids; `None` has not begun.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<u64>, &Exchange<R>)> {
        (0..self.len()).filter_map(|place| self.at(place))
    }

    /// The one at this place, with its id.
    pub(super) fn at(&self, place: usize) -> Option<(Option<u64>, &Exchange<R>)> {
        let (id, exchange) = match place.checked_sub(1) {
            None => (self.first, self.oldest.as_ref()?),
            Some(later) => self.later.get(later).map(|(id, exchange)| (*id, exchange))?,
        };
        Some(((id != NONE).then_some(id), exchange))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Exchange<R>> {
        self.oldest.iter_mut().chain(self.later.iter_mut().map(|(_, exchange)| exchange))
    }
}

#[cfg(test)]
mod tests;
