//! What a received answer is, and whether it is right.

use std::sync::Arc;

use answers::Head;
use wire::http::{BodyLength, ResponseHead};

use super::inspect::{Inspector, Kept, Message};
use crate::fault::{ErrorClass, Fault, Seen};
use crate::stream::{Form, Rules, Stream, is_compressed, no_stream};
use crate::tally::Decoded;
use crate::target::{Expect, Http};

/// An answer's body of at least this length is worth larger buffers.
const BULK: u64 = 64 * 1024;

/// The answer being received.
#[derive(Default)]
pub(crate) struct ReceivedAnswer {
    pub status: u16,
    pub keep: bool,
    pub interim: bool,
    /// Whether it announced a long body.
    pub bulk: bool,
    length: u64,
    /// Whether the body is another than the required one.
    wrong: bool,
    id_differs: bool,
}

impl ReceivedAnswer {
    /// The answer that begins with this head, to the request with this id.
    #[inline]
    pub(crate) fn begin(head: &ResponseHead<'_>, id: Option<&u64>) -> Self {
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
            wrong: false,
            id_differs,
        }
    }
}

/// Knows which answers are right, and how long they may be.
pub(crate) struct Judge {
    expect: Expect,
    max_answer: u64,
    /// Whether the bytes of bodies matter, not only their number.
    reads: bool,
    /// Whether every answer needs a closer look: its head is looked at, or its connection ends with it. It changes with `looks`.
    closely: bool,
    /// Whether the head of an answer that arrives whole is looked at. It is if bodies are read, if the last right answer was a stream, if
    /// answers must be streams, and until the first answer with a right status.
    looks: bool,
    /// Whether the answer that came last was compressed.
    compressed: bool,
    inspector: Option<Box<Inspector>>,
    /// How the pieces of every answer are told apart, if not by its type.
    form: Option<Form>,
    /// What streams must be.
    rules: Arc<Rules>,
    /// Whether connections outlive an answer.
    keeps: bool,
}

impl Judge {
    pub(crate) fn new(target: &Http) -> Self {
        Self::of(target, &target.expect, 0)
    }

    /// Who judges by `expect` instead of what the target expects. Its checks have the numbers from `first` on.
    pub(super) fn of(target: &Http, expect: &Expect, first: u32) -> Self {
        let expect = expect.clone();
        // A required body has a required length.
        let length = expect.body.as_ref().map(|body| body.len() as u64).or(expect.length);
        let inspector = Inspector::new(target, &expect, first);
        let reads = expect.body.is_some() || inspector.is_some();
        let (max_answer, form) = (target.max_answer, target.stream);
        let rules = Arc::new(Rules::of(&expect.checks, first));
        let (expect, keeps) = (Expect { length, ..expect }, target.keep_alive);
        let (closely, looks) = (true, true);
        Self { expect, max_answer, reads, keeps, closely, looks, compressed: false, inspector, form, rules }
    }

    /// Whether a whole answer is surely right: one that needs no closer look.
    #[inline(always)]
    pub(super) fn accepts(&self, head: &ResponseHead<'_>, body: &[u8]) -> bool {
        head.keep_alive && self.accepts_length(head.status, body.len() as u64)
    }

    /// The same of an answer after which its connection goes on, with a body of this length.
    #[inline(always)]
    pub(crate) fn accepts_length(&self, status: u16, length: u64) -> bool {
        let Expect { status: wanted, length: required, .. } = &self.expect;
        !self.closely
            && wanted.contains(status)
            && length <= self.max_answer
            && required.is_none_or(|required| required == length)
    }

    /// Looks at the head of an answer whose body is still to come.
    ///
    /// # Errors
    /// The body would be too long.
    #[inline]
    pub(crate) fn admit(&self, head: &ResponseHead<'_>, kept: &mut Option<Box<Kept>>) -> Result<(), Fault> {
        if let Some(inspector) = &self.inspector {
            inspector.begin(kept.get_or_insert_default(), head.status, head.bytes);
        }
        match head.body {
            BodyLength::Exact(length) if length > self.max_answer => Err(self.too_long()),
            _ => Ok(()),
        }
    }

    /// Looks at the head of an answer whose body is still to come. Returns the stream that it begins, if it is one.
    ///
    /// # Errors
    /// The body would be too long.
    pub(super) fn begin(
        &mut self,
        head: &ResponseHead<'_>,
        kept: &mut Option<Box<Kept>>,
    ) -> Result<Option<Box<Stream>>, Fault> {
        self.admit(head, kept)?;
        Ok(self.stream(Head::http1(head.status, head.bytes)))
    }

    /// Whether an answer with a body of this length may be a stream: until one was none, and where nothing says how long it is.
    #[inline]
    pub(crate) fn may_stream(&self, length: Option<u64>, ended: bool) -> bool {
        self.closely || (length.is_none() && !ended)
    }

    /// The stream that begins with this head, if it is one. After an answer that was none, only answers that come in parts are
    /// looked at.
    #[inline(never)]
    pub(crate) fn stream(&mut self, head: Head<'_>) -> Option<Box<Stream>> {
        if !self.expect.status.contains(head.status) {
            return None;
        }
        self.compressed = is_compressed(head);
        let form = self.form.filter(|_| !self.compressed).or_else(|| Form::of(head));
        self.looks = self.reads || form.is_some() || self.form.is_some() || self.rules.are_any();
        self.closely = self.looks || !self.keeps;
        form.map(|form| Box::new(Stream::new(form, self.max_answer, Arc::clone(&self.rules))))
    }

    /// Judges an answer's stream, which has ended, after the answer itself.
    ///
    /// # Errors
    /// What is wrong. The status says more than what is missing in the stream, and the stream more than what is in the body.
    pub(crate) fn with_stream(
        &self,
        answer: Result<u64, Fault>,
        stream: Option<&mut Stream>,
    ) -> Result<u64, Fault> {
        let end = match stream {
            Some(stream) => stream.end(),
            None if self.rules.are_any() => Err(no_stream(self.compressed)),
            None => Ok(()),
        };
        match (answer, end) {
            (Err(fault), _) if fault.class == ErrorClass::Status => Err(fault),
            (answer, end) => end.and(answer),
        }
    }

    /// Adds the whole body to an answer with this head. Returns the stream that it is, if it is one.
    ///
    /// # Errors
    /// The body or an event of it is too long.
    #[inline]
    pub(super) fn whole(
        &mut self,
        answer: &mut ReceivedAnswer,
        head: &ResponseHead<'_>,
        body: &[u8],
    ) -> Result<Option<Box<Stream>>, Fault> {
        let mut stream = if self.looks { self.stream(Head::http1(head.status, head.bytes)) } else { None };
        self.add(answer, body, &mut None, &mut stream).map(|()| stream)
    }

    /// Adds bytes to an answer's body, and to its stream.
    ///
    /// # Errors
    /// The body or an event of it is too long.
    #[inline]
    pub(crate) fn add(
        &self,
        answer: &mut ReceivedAnswer,
        data: &[u8],
        kept: &mut Option<Box<Kept>>,
        stream: &mut Option<Box<Stream>>,
    ) -> Result<(), Fault> {
        if self.reads {
            self.read(answer, data, kept);
        }
        answer.length += data.len() as u64;
        if answer.length > self.max_answer {
            return Err(self.too_long());
        }
        stream.as_mut().map_or(Ok(()), |stream| stream.push(data))
    }

    #[inline(never)]
    fn read(&self, answer: &mut ReceivedAnswer, data: &[u8], kept: &mut Option<Box<Kept>>) {
        if let Some(kept) = kept {
            kept.add(data);
        }
        if let Some(expected) = &self.expect.body {
            let from = usize::try_from(answer.length).unwrap_or(usize::MAX).min(expected.len());
            let until = from.saturating_add(data.len()).min(expected.len());
            let wanted = expected.get(from..until);
            answer.wrong |= wanted.is_none_or(|wanted| !data.starts_with(wanted));
        }
    }

    #[cold]
    fn too_long(&self) -> Fault {
        Fault::new(ErrorClass::Length, Seen::Limit { of: self.max_answer, what: "bytes of an answer's body" })
    }

    /// The length of a complete answer's body, or what is wrong with the answer.
    pub(crate) fn verdict(&mut self, answer: &ReceivedAnswer, message: Message<'_>) -> Result<u64, Fault> {
        if !self.expect.status.contains(answer.status) {
            return Err(Fault::new(ErrorClass::Status, Seen::status(message.head(answer.status))));
        }
        if let Some(expected) = self.expect.length.filter(|length| *length != answer.length) {
            let seen = match self.other_content(message) {
                Seen::Nothing => Seen::Count { expected, got: answer.length },
                seen => seen,
            };
            return Err(Fault::new(ErrorClass::Length, seen));
        }
        if answer.wrong {
            return Err(Fault::new(ErrorClass::WrongContent, self.other_content(message)));
        }
        if answer.id_differs {
            return Err(Fault::new(ErrorClass::WrongId, Seen::Nothing));
        }
        if let Some(inspector) = &mut self.inspector {
            inspector.inspect(message, answer.status, answer.length)?;
        }
        Ok(answer.length)
    }

    /// The content of a body that is not the required one. Nothing if none is required, or the body is not known: one that
    /// arrives in pieces is not kept.
    #[cold]
    fn other_content(&self, message: Message<'_>) -> Seen {
        match (message.content(), &self.expect.body) {
            (body @ [_, ..], Some(required)) => Seen::body(body, required),
            _ => Seen::Nothing,
        }
    }

    pub(crate) fn take_decoded(&mut self) -> Decoded {
        self.inspector.as_mut().map(|inspector| inspector.take_decoded()).unwrap_or_default()
    }
}
