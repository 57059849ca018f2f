//! The open streams of a connection: what they hold, and whose turn it is to send.
//!
//! A peer may have a thousand open, and each frame and each piece of an answer concerns one of them. Only what concerns all streams
//! looks at all of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use wire::h2::{Broken, ReceiveWindow, SendWindow};

use super::Request;
use super::answer::Answer;

/// One request and its answer.
pub(super) struct Stream {
    pub id: u32,
    pub request: Request,
    /// There is one when the request is complete.
    pub answer: Option<Answer>,
    pub send: SendWindow,
    pub window: ReceiveWindow,
    /// What was last counted of it.
    held: Held,
    /// Whether it is in one of the queues.
    queued: bool,
}

impl Stream {
    pub(super) fn new(id: u32, request: Request, send: SendWindow, window: ReceiveWindow) -> Self {
        Self { id, request, answer: None, send, window, held: Held::default(), queued: false }
    }
}

/// Bytes in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Of answers that wait.
    pub answers: usize,
    /// Of requests.
    pub requests: usize,
}

impl Held {
    pub(super) fn all(self) -> usize {
        self.answers + self.requests
    }
}

/// All that are open. The queues may name streams that have ended.
#[derive(Default)]
pub(super) struct Streams {
    /// By rising ids.
    open: VecDeque<Stream>,
    /// What all of them hold.
    held: Held,
    /// Those that may send, in turn.
    ready: VecDeque<u32>,
    /// Those that may send when the window of the connection opens, in turn.
    blocked: VecDeque<u32>,
    /// Those whose answer, or its next piece, is not due yet. The first of them is open.
    not_due: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// The place of a stream.
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    pub(super) fn get(&self, place: usize) -> Option<&Stream> {
        self.open.get(place)
    }

    /// Adds a stream, whose id is higher than all before. Returns its place.
    pub(super) fn push(&mut self, stream: Stream) -> usize {
        self.open.push_back(stream);
        let place = self.open.len() - 1;
        self.change(place, |_| ());
        place
    }

    pub(super) fn remove(&mut self, place: usize) {
        if let Some(stream) = self.open.remove(place) {
            self.held.answers -= stream.held.answers;
            self.held.requests -= stream.held.requests;
        }
        self.skip_ended();
    }

    /// Removes streams that have ended from the front of those that are not due, so that nobody waits for them.
    fn skip_ended(&mut self) {
        while let Some(Reverse((_, id))) = self.not_due.peek()
            && self.find(*id).is_none()
        {
            self.not_due.pop();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes the streams whose requests are not complete.
    pub(super) fn remove_incomplete(&mut self) {
        for place in (0..self.open.len()).rev() {
            if self.get(place).is_some_and(|stream| stream.answer.is_none()) {
                self.remove(place);
            }
        }
    }

    /// Changes a stream, and counts what it holds then. Call [`Self::queue`] after a change that may let it send more.
    pub(super) fn change<T>(&mut self, place: usize, change: impl FnOnce(&mut Stream) -> T) -> Option<T> {
        let stream = self.open.get_mut(place)?;
        let result = change(stream);
        let before = std::mem::replace(
            &mut stream.held,
            Held { answers: stream.answer.as_ref().map_or(0, Answer::held), requests: stream.request.held() },
        );
        self.held.answers = self.held.answers - before.answers + stream.held.answers;
        self.held.requests = self.held.requests - before.requests + stream.held.requests;
        Some(result)
    }

    /// Changes the windows of all streams. Call [`Self::queue`] for each of them then.
    pub(super) fn change_windows(&mut self, by: i64) -> Result<(), Broken> {
        self.open.iter_mut().try_for_each(|stream| stream.send.change(by))
    }

    /// Puts a stream where it waits: for its turn, for the window of the connection, or until more is due. A stream that waits for its
    /// own window, or for the rest of its request, is in no queue. `is_open` says whether the window of the connection is.
    pub(super) fn queue(&mut self, place: usize, now: Instant, is_open: bool) {
        let Some(stream) = self.open.get_mut(place).filter(|stream| !stream.queued) else { return };
        let Some(answer) = &stream.answer else { return };
        if answer.due() > now {
            self.not_due.push(Reverse((answer.due(), stream.id)));
        } else if answer.needs_window() && stream.send.allows(1) == 0 {
            return;
        } else if answer.needs_window() && !is_open {
            self.blocked.push_back(stream.id);
        } else {
            self.ready.push_back(stream.id);
        }
        stream.queued = true;
        if self.ready.len() + self.blocked.len() + self.not_due.len() > 2 * self.open.len() {
            self.tidy();
        }
    }

    /// Removes streams that have ended from the queues.
    fn tidy(&mut self) {
        let open = &self.open;
        let is_open = |id: u32| open.binary_search_by_key(&id, |stream| stream.id).is_ok();
        self.ready.retain(|id| is_open(*id));
        self.blocked.retain(|id| is_open(*id));
        self.not_due.retain(|Reverse((_, id))| is_open(*id));
    }

    /// Lets those take their turns for which something has become due.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some(Reverse((due, id))) = self.not_due.peek()
            && *due <= now
        {
            self.ready.push_back(*id);
            self.not_due.pop();
        }
        self.skip_ended();
    }

    /// When something becomes due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.not_due.peek().map(|Reverse((due, _))| *due)
    }

    /// The place of the stream whose turn it is, which leaves its queue. `is_open` says whether the window of the connection is.
    pub(super) fn next(&mut self, is_open: bool) -> Option<usize> {
        loop {
            // Those that were blocked have waited for longer. They become blocked again if the window closes.
            let blocked = if is_open { self.blocked.pop_front() } else { None };
            let id = blocked.or_else(|| self.ready.pop_front())?;
            if let Some(place) = self.find(id) {
                self.open.get_mut(place)?.queued = false;
                return Some(place);
            }
        }
    }
}

#[cfg(test)]
impl Streams {
    /// Whether the first stream that is not due is open.
    pub(super) fn waits_for_an_open_one(&self) -> bool {
        self.not_due.peek().is_none_or(|Reverse((_, id))| self.find(*id).is_some())
    }

    /// What all of them hold, counted anew.
    pub(super) fn recount(&self) -> Held {
        let answers = self.open.iter().filter_map(|stream| stream.answer.as_ref());
        let requests = self.open.iter().map(|stream| stream.request.held());
        Held { answers: answers.map(Answer::held).sum(), requests: requests.sum() }
    }
}
