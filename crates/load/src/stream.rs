//! Streamed answers: which answers are streams, what has arrived of one, and whether it ended as it must. No framing and no
//! clock: a protocol pushes the bytes of a body as they come out of its framing, and hands on what they brought as a mark. The
//! driver knows when that was.

mod delta;

use std::sync::Arc;

use answers::{Actual, Check, Excerpt, Head, Streamed, Subject};
use serde::{Deserialize, Serialize};
use wire::events::{Event, EventDecoder};

use crate::fault::{ErrorClass, Fault, Seen};
use delta::DONE;

/// The most bytes of one event or line.
const LONGEST: usize = 16 << 20;

/// How the pieces of a stream are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Server-sent events.
    Events,
    /// Lines that are not empty.
    Lines,
    /// The chunks of the framing.
    Chunks,
}

impl Form {
    /// The form of an answer with this head, by its type. Compressed pieces cannot be told apart, so such an answer is no stream.
    pub fn of(head: Head<'_>) -> Option<Self> {
        const TYPES: [(&[u8], Form); 5] = [
            (b"text/event-stream", Form::Events),
            (b"application/x-ndjson", Form::Lines),
            (b"application/ndjson", Form::Lines),
            (b"application/jsonl", Form::Lines),
            (b"application/x-jsonlines", Form::Lines),
        ];
        let value = head.values("content-type").next()?;
        let name = value.split(|byte| *byte == b';').next()?.trim_ascii();
        let (_, form) = TYPES.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
        (!is_compressed(head)).then_some(form)
    }
}

pub(crate) fn is_compressed(head: Head<'_>) -> bool {
    head.values("content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// What bytes of a stream brought: its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Brought {
    /// Whole pieces.
    pub pieces: u32,
    /// The first piece that is not empty, reasoning or not.
    pub content: bool,
    /// The first piece that is neither empty nor reasoning, of a stream that has reasoned before.
    pub output: bool,
    /// The tokens of the answer, where its stream says how many they were.
    pub tokens: Option<u32>,
    /// What is wrong in the stream, so far.
    pub fault: Option<Fault>,
}

/// What streams must be besides well-formed: checks of their events, with their places among the checks of the target.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    each: Vec<(u32, Check)>,
    /// The place of the check that ids count.
    ids: Option<u32>,
    whole: Vec<(u32, Check)>,
}

impl Rules {
    /// The rules among these checks, whose places begin with `first`.
    pub(crate) fn of(checks: &[Check], first: u32) -> Self {
        let mut rules = Self::default();
        for (check, at) in checks.iter().zip(first..).filter(|(check, _)| check.subject() == Subject::Stream)
        {
            match check {
                check if check.is_of_each_event() => rules.each.push((at, check.clone())),
                check if check.demands_ids() => rules.ids = Some(at),
                check => rules.whole.push((at, check.clone())),
            }
        }
        rules
    }

    /// Whether an answer must be a stream.
    pub(crate) fn are_any(&self) -> bool {
        !self.each.is_empty() || !self.whole.is_empty() || self.ids.is_some()
    }
}

/// A stream that is being received.
#[derive(Debug)]
pub(crate) struct Stream {
    form: Form,
    events: EventDecoder,
    /// The beginning of a line or a chunk whose end has not come.
    begun: Vec<u8>,
    limit: usize,
    rules: Arc<Rules>,
    /// The id of the last event, if it was a number.
    id: Option<u64>,
    /// What has arrived since the last mark.
    brought: Brought,
    pieces: u64,
    has_content: bool,
    has_output: bool,
    /// It is one of OpenAI's interface, which ends with [`DONE`].
    is_chat: bool,
    is_done: bool,
    /// The data of the last piece.
    last: Vec<u8>,
    /// What is wrong with it. The rest is still read, so that its connection can go on.
    fault: Option<Fault>,
}

impl Stream {
    /// A stream of this form, whose pieces have no more bytes than `limit`.
    pub(crate) fn new(form: Form, limit: u64, rules: Arc<Rules>) -> Self {
        let limit = usize::try_from(limit).unwrap_or(LONGEST).min(LONGEST);
        Self {
            form,
            events: EventDecoder::new(limit),
            begun: Vec::new(),
            limit,
            rules,
            id: None,
            brought: Brought::default(),
            pieces: 0,
            has_content: false,
            has_output: false,
            is_chat: false,
            is_done: false,
            last: Vec::new(),
            fault: None,
        }
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// A piece is longer than is accepted, so the stream cannot be read any further.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Fault> {
        match self.form {
            Form::Events => self.push_events(data),
            Form::Lines => self.push_lines(data),
            Form::Chunks => self.keep(data),
        }
    }

    /// Ends a piece if it is a chunk of the framing, and that has ended.
    pub(crate) fn end_chunk_if(&mut self, ended: bool) {
        if ended && self.form == Form::Chunks {
            self.end_begun();
        }
    }

    fn push_events(&mut self, mut data: &[u8]) -> Result<(), Fault> {
        // The decoder lends its event, and the stream counts it.
        let mut events = std::mem::replace(&mut self.events, EventDecoder::new(0));
        let mut result = Ok(());
        loop {
            match events.push(data) {
                Ok(step) => {
                    data = data.get(step.consumed..).unwrap_or_default();
                    match step.event {
                        Some(event) => self.event(event),
                        None => break,
                    }
                }
                Err(_) => {
                    result = Err(self.too_long());
                    break;
                }
            }
        }
        self.events = events;
        result
    }

    fn push_lines(&mut self, mut data: &[u8]) -> Result<(), Fault> {
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = data.split_at(end);
            data = rest.get(1..).unwrap_or_default();
            self.keep(line)?;
            self.end_begun();
        }
        self.keep(data)
    }

    fn keep(&mut self, data: &[u8]) -> Result<(), Fault> {
        if self.begun.len().saturating_add(data.len()) > self.limit {
            return Err(self.too_long());
        }
        self.begun.extend_from_slice(data);
        Ok(())
    }

    /// Ends the line or the chunk that has begun.
    fn end_begun(&mut self) {
        let piece = std::mem::take(&mut self.begun);
        let data = piece.trim_ascii_end();
        if !data.is_empty() {
            self.piece(data);
        }
        // Its memory serves the next piece.
        self.begun = piece;
        self.begun.clear();
    }

    fn event(&mut self, event: Event<'_>) {
        if event.kind == b"error" {
            self.fail(ErrorClass::WrongContent, Seen::error_event(event.data));
        }
        if let Some(index) = self.rules.ids {
            self.count_id(index, event.id);
        }
        self.piece(event.data);
    }

    /// Compares the id of an event with that of the one before it.
    fn count_id(&mut self, index: u32, id: Option<&[u8]>) {
        let number = id.and_then(|id| std::str::from_utf8(id).ok()?.parse::<u64>().ok());
        let before = std::mem::replace(&mut self.id, number);
        let follows = self.pieces == 0 || before.and_then(|before| before.checked_add(1)) == number;
        if number.is_none() || !follows {
            let found = id.map_or(Actual::Missing, |id| Actual::Text(Excerpt::of(id)));
            self.fail(ErrorClass::WrongContent, Seen::Check { index, found });
        }
    }

    fn piece(&mut self, data: &[u8]) {
        if self.is_done {
            self.fail(ErrorClass::Length, Seen::AfterDone);
        } else if delta::is_error(data) && self.form != Form::Chunks {
            self.fail(ErrorClass::WrongContent, Seen::error_event(data));
        }
        self.is_done |= data == DONE && self.form != Form::Chunks;
        if !self.rules.each.is_empty() && !self.is_done {
            self.check_each(data);
        }
        self.pieces = self.pieces.saturating_add(1);
        self.brought.pieces = self.brought.pieces.saturating_add(1);
        // Nothing more is known of the pieces of other streams.
        if (!self.has_output || self.is_chat) && self.fault.is_none() {
            self.look_into(data);
        }
        self.last.clear();
        self.last.extend_from_slice(data);
    }

    fn check_each(&mut self, data: &[u8]) {
        let rules = Arc::clone(&self.rules);
        for (index, check) in &rules.each {
            if let Err(found) = check.holds_event(data) {
                self.fail(ErrorClass::WrongContent, Seen::Check { index: *index, found });
            }
        }
    }

    fn look_into(&mut self, data: &[u8]) {
        let found = delta::brings(data);
        self.is_chat |= found.delta;
        self.brought.output |= found.output && self.has_content && !self.has_output;
        self.brought.content |= found.content && !self.has_content;
        self.has_content |= found.content;
        self.has_output |= found.output;
        if let Some(tokens) = found.tokens {
            self.brought.tokens = Some(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
    }

    /// What has arrived since the last call.
    pub(crate) fn brought(&mut self) -> Brought {
        std::mem::take(&mut self.brought)
    }

    /// Remembers what is wrong first.
    fn fail(&mut self, class: ErrorClass, seen: Seen) {
        self.brought.fault = Some(*self.fault.get_or_insert(Fault::new(class, seen)));
    }

    #[cold]
    fn too_long(&self) -> Fault {
        Fault::new(ErrorClass::Length, Seen::Limit { of: self.limit as u64, what: "bytes of an event" })
    }

    /// Ends it, because the framing has ended. What the end completes counts as having arrived now.
    ///
    /// # Errors
    /// It was wrong, or it ended too early.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.form {
            // A last line needs no line feed.
            Form::Lines | Form::Chunks => self.end_begun(),
            Form::Events if self.events.is_amid() => {
                // Without the empty line behind it, an event is none; but the last one is often sent so.
                let _ = self.push_events(b"\n\n");
                if self.last != DONE {
                    self.fail(ErrorClass::Length, Seen::AmidEvent);
                }
            }
            Form::Events => {}
        }
        if self.is_chat && !self.is_done {
            self.fail(ErrorClass::Length, Seen::NotDone);
        }
        let rules = Arc::clone(&self.rules);
        for (index, check) in &rules.whole {
            let streamed = Streamed { events: self.pieces, last: &self.last };
            if let Err(found) = check.holds_stream(&streamed) {
                self.fail(ErrorClass::Length, Seen::Check { index: *index, found });
            }
        }
        self.fault.map_or(Ok(()), Err)
    }
}

/// What came of a whole answer as a stream, and what is wrong with it. `None` if it is no stream.
///
/// # Errors
/// The check that does not hold, as its place among `checks`, or what else is wrong.
pub fn judge_whole(
    form: Option<Form>,
    head: Head<'_>,
    body: &[u8],
    checks: &[Check],
) -> Result<Option<u64>, Fault> {
    let rules = Rules::of(checks, 0);
    let Some(form) = form.filter(|_| !is_compressed(head)).or_else(|| Form::of(head)) else {
        return if rules.are_any() { Err(no_stream(is_compressed(head))) } else { Ok(None) };
    };
    let mut stream = Stream::new(form, body.len() as u64, Arc::new(rules));
    stream.push(body)?;
    stream.end()?;
    Ok(Some(stream.pieces))
}

/// An answer must be a stream, and is none, or one whose pieces cannot be told apart.
pub(crate) fn no_stream(is_compressed: bool) -> Fault {
    Fault::new(ErrorClass::WrongContent, if is_compressed { Seen::Compressed } else { Seen::NoStream })
}

#[cfg(test)]
mod tests;
