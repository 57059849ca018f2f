//! What goes beyond the plain path: compressed bodies are decoded, and checks look at heads and bodies.

use answers::{Answer, Broken, Check, Encodings, Head, Subject, decode};

use crate::fault::{ErrorClass, Fault, Seen};
use crate::tally::Decoded;
use crate::target::{Expect, Http};

/// The longest answer that is remembered.
const MEMO: usize = 64 * 1024;
/// Memory for a longer body is given back when the next answer begins.
const SPARE: usize = 64 * 1024;

/// A whole answer: its head, and its body if it is inspected.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Message<'a> {
    /// It begins here, and more may follow it.
    pub from: &'a [u8],
    /// Its length in bytes.
    pub len: usize,
    /// The length of its body, at its end.
    pub body: usize,
}

impl<'a> Message<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.from.get(..self.len).unwrap_or_default()
    }

    /// The head, of an answer with this status. It has no fields if it is not known.
    pub(super) fn head(&self, status: u16) -> Head<'a> {
        Head::http1(status, self.parts().0)
    }

    /// The body, if it is known.
    pub(super) fn content(&self) -> &'a [u8] {
        self.parts().1
    }

    /// The head and the body.
    fn parts(&self) -> (&'a [u8], &'a [u8]) {
        self.bytes().split_at_checked(self.len.saturating_sub(self.body)).unwrap_or_default()
    }
}

/// What is kept of an answer that arrives in pieces.
#[derive(Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// The length of its head.
    head: usize,
    /// Whether its body is inspected.
    whole: bool,
}

impl Kept {
    /// The answer that was kept, if any was.
    pub(crate) fn message(kept: Option<&Self>) -> Message<'_> {
        let Some(Self { bytes, head, .. }) = kept else { return Message::default() };
        Message { from: bytes, len: bytes.len(), body: bytes.len() - head }
    }

    /// Adds bytes to the body.
    pub(super) fn add(&mut self, data: &[u8]) {
        if self.whole {
            self.bytes.extend_from_slice(data);
        }
    }
}

/// Inspects the answers of one thread.
pub(super) struct Inspector {
    checks: Vec<Check>,
    /// The number of the first check.
    first: u32,
    reads_bodies: bool,
    decode: bool,
    /// The most bytes of a decoded body.
    limit: u64,
    /// Head and body of the last answer that passed. The same bytes pass again.
    passed: Vec<u8>,
    /// What it counts as.
    passed_as: Decoded,
    decoded: Decoded,
}

impl Inspector {
    /// The inspector that a target's answers need; `None` on the plain path.
    pub(super) fn new(target: &Http, expect: &Expect, first: u32) -> Option<Box<Self>> {
        let looks = |check: &Check| !matches!(check.subject(), Subject::Status | Subject::Stream);
        let checks = expect.checks.iter().any(looks);
        (checks || target.decode).then(|| {
            Box::new(Self {
                checks: expect.checks.clone(),
                first,
                reads_bodies: expect.reads_bodies(),
                decode: target.decode,
                limit: target.max_answer,
                passed: Vec::new(),
                passed_as: Decoded::default(),
                decoded: Decoded::default(),
            })
        })
    }

    /// Begins to keep an answer with this head.
    pub(super) fn begin(&self, kept: &mut Kept, status: u16, head: &[u8]) {
        kept.bytes.clear();
        kept.bytes.shrink_to(SPARE);
        kept.bytes.extend_from_slice(head);
        kept.head = head.len();
        kept.whole = self.reads_bodies
            || self.encodings(Head::http1(status, head)).is_ok_and(|encodings| !encodings.is_empty());
    }

    fn encodings(&self, head: Head<'_>) -> Result<Encodings, Broken> {
        if self.decode { Encodings::of(head) } else { Ok(Encodings::default()) }
    }

    /// Judges an answer whose body was sent in `length` bytes.
    ///
    /// # Errors
    /// The body cannot be decoded, or a check does not hold.
    #[cold]
    #[inline(never)]
    pub(super) fn inspect(&mut self, message: Message<'_>, status: u16, length: u64) -> Result<(), Fault> {
        if self.has_passed(message, length) {
            self.decoded.add(&self.passed_as);
            return Ok(());
        }
        let (head, body) = (message.head(status), message.content());
        let encodings = self.encodings(head).map_err(|broken| self.broken(broken))?;
        let mut answer = Answer { head, body, length };
        let decoded;
        if !encodings.is_empty() {
            decoded = decode(encodings, body, self.limit).map_err(|broken| self.broken(broken))?;
            answer = Answer { body: &decoded, length: decoded.len() as u64, ..answer };
        }
        for (check, index) in self.checks.iter().zip(self.first..) {
            check.holds(&answer).map_err(|found| {
                let class = match check.subject() {
                    Subject::Length => ErrorClass::Length,
                    _ => ErrorClass::WrongContent,
                };
                Fault::new(class, Seen::Check { index, found })
            })?;
        }
        let counts = Decoded {
            answers: 1,
            compressed: u64::from(!encodings.is_empty()),
            sent_bytes: length,
            decoded_bytes: answer.length,
        };
        self.decoded.add(&counts);
        self.remember(message, counts);
        Ok(())
    }

    fn broken(&self, broken: Broken) -> Fault {
        match broken {
            Broken::Limit => {
                let seen = Seen::Limit { of: self.limit, what: "decoded bytes of an answer's body" };
                Fault::new(ErrorClass::Length, seen)
            }
            broken => Fault::new(ErrorClass::WrongContent, Seen::Coding(broken)),
        }
    }

    fn has_passed(&self, message: Message<'_>, length: u64) -> bool {
        // A body that is not kept may be any of its length.
        self.passed_as.answers > 0 && self.passed_as.sent_bytes == length && self.passed == message.bytes()
    }

    fn remember(&mut self, message: Message<'_>, counts: Decoded) {
        if message.len <= MEMO {
            self.passed.clear();
            self.passed.extend_from_slice(message.bytes());
            self.passed_as = counts;
        }
    }

    /// The bodies since the last call.
    pub(super) fn take_decoded(&mut self) -> Decoded {
        std::mem::take(&mut self.decoded)
    }
}

#[cfg(test)]
mod tests;
