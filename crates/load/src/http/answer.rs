//! What a received answer is, and whether it is right.

use wire::http::{BodyLength, ResponseHead};

use crate::fault::{ErrorClass, Fault, Seen};
use crate::target::Expect;

/// An answer's body of at least this length is worth larger buffers.
const BULK: u64 = 64 * 1024;

/// The answer being received.
#[derive(Default)]
pub(super) struct ReceivedAnswer {
    pub status: u16,
    pub keep: bool,
    pub interim: bool,
    /// Whether it announced a long body.
    pub bulk: bool,
    length: u64,
    differs: bool,
    id_differs: bool,
}

impl ReceivedAnswer {
    /// The answer that begins with this head, to the request with this id.
    #[inline]
    pub(super) fn begin(head: &ResponseHead<'_>, id: Option<&u64>) -> Self {
        let id_differs = id.is_some_and(|id| {
            let value = head.watched.unwrap_or_default();
            std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()) != Some(*id)
        });
        Self {
            status: head.status,
            keep: head.keep_alive,
            interim: (100..200).contains(&head.status),
            bulk: matches!(head.body, BodyLength::Exact(len) if len >= BULK),
            length: 0,
            differs: false,
            id_differs,
        }
    }

    #[inline]
    fn body(&mut self, data: &[u8], expected: Option<&[u8]>) {
        if let Some(expected) = expected {
            let from = usize::try_from(self.length).unwrap_or(usize::MAX).min(expected.len());
            let until = from.saturating_add(data.len()).min(expected.len());
            self.differs |= !data.starts_with(&expected[from..until]);
        }
        self.length += data.len() as u64;
    }
}

/// Knows which answers are right, and how long they may be.
pub(crate) struct Judge {
    expect: Expect,
    max_answer: u64,
}

impl Judge {
    pub(super) fn new(expect: &Expect, max_answer: u64) -> Self {
        // A required body has a required length.
        let length = expect.body.as_ref().map(|body| body.len() as u64).or(expect.length);
        Self { expect: Expect { length, ..expect.clone() }, max_answer }
    }

    /// Looks at the length that an answer announces.
    ///
    /// # Errors
    /// The body would be too long.
    #[inline]
    pub(super) fn admit(&self, head: &ResponseHead<'_>) -> Result<(), Fault> {
        match head.body {
            BodyLength::Exact(length) if length > self.max_answer => Err(self.too_long()),
            _ => Ok(()),
        }
    }

    /// Adds bytes to an answer's body.
    ///
    /// # Errors
    /// The body is too long.
    #[inline]
    pub(super) fn add(&self, answer: &mut ReceivedAnswer, data: &[u8]) -> Result<(), Fault> {
        answer.body(data, self.expect.body.as_deref());
        if answer.length > self.max_answer { Err(self.too_long()) } else { Ok(()) }
    }

    fn too_long(&self) -> Fault {
        Fault::new(ErrorClass::Length, Seen::Limit { of: self.max_answer, what: "bytes of an answer's body" })
    }

    /// The length of a complete answer's body, or what is wrong with the answer. `head` is evidence.
    #[inline]
    pub(super) fn verdict(&self, answer: &ReceivedAnswer, head: &[u8]) -> Result<u64, Fault> {
        let expected = match self.expect.status {
            Some(status) => answer.status == status,
            None => (200..300).contains(&answer.status),
        };
        if !expected {
            return Err(Fault::new(ErrorClass::Status, Seen::status(answer.status, head)));
        }
        if let Some(expected) = self.expect.length.filter(|length| *length != answer.length) {
            let seen = Seen::Count { expected, got: answer.length };
            return Err(Fault::new(ErrorClass::Length, seen));
        }
        if answer.differs {
            return Err(Fault::new(ErrorClass::WrongContent, Seen::Nothing));
        }
        if answer.id_differs {
            return Err(Fault::new(ErrorClass::WrongId, Seen::Nothing));
        }
        Ok(answer.length)
    }
}
