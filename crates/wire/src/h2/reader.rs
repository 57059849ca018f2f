//! Cuts the bytes of a connection into frames (RFC 9113 sections 4 and 6), wherever the reads have cut them. DATA is passed on as
//! it arrives; everything else when it is whole.

use std::ops::Range;

use super::frame::{Flags, FrameHead, HEAD, Kind};
use super::{BLOCK, Broken, Code, FRAME, Settings};

/// The most CONTINUATION frames of a header block.
const CONTINUATIONS: u32 = 8;
/// Memory for a longer header block is given back.
const SPARE: usize = 16 * 1024;

/// The result of one `push`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// How many bytes of the input were consumed. Push the rest next.
    pub consumed: usize,
    /// What was found in them.
    pub event: Event<'a>,
}

/// What a reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// All input is consumed; the reader needs more.
    NeedMore,
    /// A whole header block, in whatever frames it was sent.
    Headers {
        /// Its stream, which is not 0.
        stream: u32,
        /// The block.
        block: &'a [u8],
        /// Whether the message ends with it.
        end_stream: bool,
    },
    /// Part of a body.
    Data {
        /// Its stream, which is not 0.
        stream: u32,
        /// The bytes, without padding; there may be none.
        data: &'a [u8],
        /// By how much windows shrink: the first part of a frame has all of its payload.
        counted: u32,
        /// Whether the message ends with it.
        end_stream: bool,
    },
    /// A stream ends early.
    Reset {
        /// Which.
        stream: u32,
        /// Why.
        code: Code,
    },
    /// What the peer accepts. It waits for an answer.
    Settings(Settings),
    /// The peer has accepted our settings.
    SettingsAck,
    /// The peer waits for an answer with the same bytes.
    Ping([u8; 8]),
    /// The answer to our question.
    Pong([u8; 8]),
    /// The peer accepts no further streams.
    GoAway {
        /// The last that it has processed, or will.
        last: u32,
        /// Why.
        code: Code,
        /// What it says besides.
        text: &'a [u8],
    },
    /// More may be sent.
    WindowUpdate {
        /// On which stream; 0 is the connection.
        stream: u32,
        /// How much.
        by: u32,
    },
    /// A frame that spoils its stream, and no other.
    Spoiled {
        /// Which.
        stream: u32,
        /// What the peer is told.
        code: Code,
        /// What is wrong.
        why: &'static str,
    },
    /// Advice of a stream that may not exist. It changes nothing.
    Priority {
        /// Which stream.
        stream: u32,
    },
}

/// A whole message with a body, in two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its stream, which is not 0.
    pub stream: u32,
    /// The header block.
    pub block: &'a [u8],
    /// The body, which may be empty. Windows shrink by its length.
    pub body: &'a [u8],
    /// How many bytes of the input it is.
    pub consumed: usize,
}

/// Where something lies.
#[derive(Clone)]
enum Place {
    Input(Range<usize>),
    /// In the payload that was gathered.
    Gathered(Range<usize>),
    /// In the header block that was gathered.
    Block,
}

/// What a frame means, without what it borrows.
enum Found {
    Simple(Event<'static>),
    Headers(u32, Place, bool),
    Data { stream: u32, place: Place, counted: u32, end_stream: bool },
    GoAway { last: u32, code: Code, text: Place },
}

/// A header block whose end is still to come.
#[derive(Debug, Clone, Copy)]
struct Pending {
    stream: u32,
    end_stream: bool,
    /// How many CONTINUATION frames have come.
    frames: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between frames.
    Head,
    /// Within a frame that is gathered.
    Payload(FrameHead),
    /// Within DATA: `left` bytes of the payload and then `pad` bytes. `counted` is what windows have not heard of yet.
    Data { stream: u32, left: usize, pad: usize, counted: u32, end_stream: bool },
    /// Before the byte that says how much padding DATA has.
    PadLength(FrameHead),
    /// Within what is not read.
    Skip(usize),
}

/// Reads the frames of one connection, of either side.
#[derive(Debug)]
pub struct Reader {
    state: State,
    /// Bytes of a head or of a payload that reads have cut.
    gathered: Vec<u8>,
    block: Vec<u8>,
    pending: Option<Pending>,
    broken: Option<Broken>,
}

impl Default for Reader {
    fn default() -> Self {
        let (gathered, block) = (Vec::new(), Vec::new());
        Self { state: State::Head, gathered, block, pending: None, broken: None }
    }
}

impl Reader {
    /// Whether it is between frames, and within no header block.
    #[must_use]
    #[inline]
    pub fn idle(&self) -> bool {
        matches!(self.state, State::Head) && self.gathered.is_empty() && self.pending.is_none()
    }

    /// Takes bytes. Call again with the rest until everything is consumed and the event is `NeedMore`.
    ///
    /// # Errors
    /// What breaks the connection. Every later call returns the same error.
    #[inline]
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a>, Broken> {
        if let Some(step) = self.usual(input) {
            return Ok(step);
        }
        self.push_slowly(input)
    }

    /// Whether a frame may begin here.
    #[inline]
    fn is_between(&self) -> bool {
        self.idle() && self.broken.is_none()
    }

    /// The most common message: HEADERS and one DATA, both whole and without padding, at the beginning of the input. Nothing is
    /// consumed: whoever takes it goes on behind it. `None` means nothing.
    #[inline(always)]
    pub fn message<'a>(&self, input: &'a [u8]) -> Option<Message<'a>> {
        if !self.is_between() {
            return None;
        }
        let (first, rest) = FrameHead::plain(input, Kind::Headers, Flags::END_HEADERS)?;
        let (block, rest) = rest.split_at_checked(first.length)?;
        let (second, rest) = FrameHead::plain(rest, Kind::Data, Flags::END_STREAM)?;
        let body = rest.get(..second.length)?;
        if first.stream != second.stream || !first.has_stream() || first.length.max(second.length) > FRAME {
            return None;
        }
        let consumed = block.len().saturating_add(body.len()).saturating_add(2 * HEAD);
        Some(Message { stream: first.stream, block, body, consumed })
    }

    /// The common case: a frame of a message that arrived in one piece, without padding. `None` means nothing and changes
    /// nothing.
    #[inline]
    fn usual<'a>(&self, input: &'a [u8]) -> Option<Step<'a>> {
        if !self.is_between() {
            return None;
        }
        let (head, rest) = input.split_first_chunk::<HEAD>()?;
        let head = FrameHead::read(*head);
        if head.length > FRAME || head.stream == 0 || head.flags.has(Flags::PADDED) {
            return None;
        }
        let payload = rest.get(..head.length)?;
        let (stream, end_stream) = (head.stream, head.flags.has(Flags::END_STREAM));
        let event = match head.kind? {
            Kind::Data => Event::Data { stream, data: payload, counted: head.length as u32, end_stream },
            Kind::Headers if head.flags.has(Flags::END_HEADERS) && !head.flags.has(Flags::PRIORITY) => {
                Event::Headers { stream, block: payload, end_stream }
            }
            _ => return None,
        };
        Some(Step { consumed: HEAD.saturating_add(head.length), event })
    }

    #[inline(never)]
    fn push_slowly<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a>, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let mut consumed = 0;
        let found = match self.advance(input, &mut consumed) {
            Ok(found) => found,
            Err(broken) => {
                self.broken = Some(broken);
                return Err(broken);
            }
        };
        let slice = |place: Place| match place {
            Place::Input(range) => input.get(range),
            Place::Gathered(range) => self.gathered.get(range),
            Place::Block => Some(self.block.as_slice()),
        };
        let event = match found {
            None => Event::NeedMore,
            Some(Found::Simple(event)) => event,
            Some(Found::Headers(stream, place, end_stream)) => {
                Event::Headers { stream, block: slice(place).unwrap_or_default(), end_stream }
            }
            Some(Found::Data { stream, place, counted, end_stream }) => {
                Event::Data { stream, data: slice(place).unwrap_or_default(), counted, end_stream }
            }
            Some(Found::GoAway { last, code, text }) => {
                Event::GoAway { last, code, text: slice(text).unwrap_or_default() }
            }
        };
        Ok(Step { consumed, event })
    }

    /// Goes on to the next event. None if all of `input` is consumed before.
    fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Option<Found>, Broken> {
        loop {
            let rest = input.get(*at..).unwrap_or_default();
            match self.state {
                State::Head => {
                    let Some((bytes, taken)) = self.gather::<HEAD>(rest) else {
                        *at = input.len();
                        return Ok(None);
                    };
                    *at = at.saturating_add(taken);
                    let head = FrameHead::read(bytes);
                    self.check(&head)?;
                    if let Some(found) = self.begin(head)? {
                        return Ok(Some(found));
                    }
                }
                State::Payload(head) => {
                    let Some(place) = self.payload(head.length, rest, at) else { return Ok(None) };
                    self.state = State::Head;
                    let found = self.whole(&head, input, place.clone())?;
                    match (&found, place) {
                        // What is handed out lies there until the next call.
                        (Some(_), Place::Gathered(_)) => self.state = State::Skip(0),
                        _ => self.gathered.clear(),
                    }
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                State::Data { left, .. } if rest.is_empty() && left > 0 => return Ok(None),
                State::Data { stream, left, pad, counted, end_stream } => {
                    let (start, taken) = (*at, left.min(rest.len()));
                    *at = at.saturating_add(taken);
                    let left = left.saturating_sub(taken);
                    self.state = match left {
                        0 => State::Skip(pad),
                        left => State::Data { stream, left, pad, counted: 0, end_stream },
                    };
                    let (place, end_stream) = (Place::Input(start..*at), end_stream && left == 0);
                    return Ok(Some(Found::Data { stream, place, counted, end_stream }));
                }
                State::PadLength(head) => {
                    let Some(pad) = rest.first() else { return Ok(None) };
                    *at = at.saturating_add(1);
                    self.data(&head, usize::from(*pad).saturating_add(1), usize::from(*pad))?;
                }
                State::Skip(left) => {
                    self.gathered.clear();
                    let taken = left.min(rest.len());
                    *at = at.saturating_add(taken);
                    let left = left.saturating_sub(taken);
                    if left > 0 {
                        self.state = State::Skip(left);
                        return Ok(None);
                    }
                    self.state = State::Head;
                }
            }
        }
    }

    /// Takes a payload. None if it is not whole yet.
    fn payload(&mut self, length: usize, rest: &[u8], at: &mut usize) -> Option<Place> {
        let start = *at;
        if self.gathered.is_empty() && rest.len() >= length {
            *at = at.saturating_add(length);
            return Some(Place::Input(start..*at));
        }
        let wanted = length.saturating_sub(self.gathered.len());
        let part = rest.get(..wanted).unwrap_or(rest);
        self.gathered.extend_from_slice(part);
        *at = at.saturating_add(part.len());
        (part.len() == wanted).then_some(Place::Gathered(0..length))
    }

    /// Takes `N` bytes, some of which may have come before. Returns how many of `rest` they are.
    #[inline]
    fn gather<const N: usize>(&mut self, rest: &[u8]) -> Option<([u8; N], usize)> {
        if self.gathered.is_empty()
            && let Some(bytes) = rest.first_chunk::<N>()
        {
            return Some((*bytes, N));
        }
        let wanted = N.saturating_sub(self.gathered.len());
        let part = rest.get(..wanted).unwrap_or(rest);
        self.gathered.extend_from_slice(part);
        let bytes = *self.gathered.first_chunk::<N>()?;
        self.gathered.clear();
        Some((bytes, part.len()))
    }

    /// What a frame's head alone breaks.
    #[inline]
    fn check(&self, head: &FrameHead) -> Result<(), Broken> {
        if head.length > FRAME {
            return Err(Broken::size("a frame is longer than 16,384 bytes"));
        }
        match &self.pending {
            Some(pending) if head.kind != Some(Kind::Continuation) || head.stream != pending.stream => {
                return Err(Broken::protocol("another frame comes within a header block"));
            }
            None if head.kind == Some(Kind::Continuation) => {
                return Err(Broken::protocol("CONTINUATION without a header block"));
            }
            _ => {}
        }
        let Some(kind) = head.kind else { return Ok(()) };
        match kind {
            Kind::Data | Kind::Headers | Kind::Priority | Kind::Reset if head.stream == 0 => {
                Err(Broken::protocol("a frame of a stream is on stream 0"))
            }
            Kind::Settings | Kind::Ping | Kind::GoAway if head.stream != 0 => {
                Err(Broken::protocol("a frame of the connection is on a stream"))
            }
            Kind::PushPromise => Err(Broken::protocol("PUSH_PROMISE, although pushes are not accepted")),
            Kind::Settings if head.flags.has(Flags::ACK) && head.length > 0 => {
                Err(Broken::size("the answer to SETTINGS has a payload"))
            }
            Kind::Settings if !head.length.is_multiple_of(6) => {
                Err(Broken::size("the length of SETTINGS is no multiple of 6"))
            }
            Kind::Reset | Kind::WindowUpdate if head.length != 4 => {
                Err(Broken::size("RST_STREAM or WINDOW_UPDATE is not 4 bytes long"))
            }
            Kind::Ping if head.length != 8 => Err(Broken::size("PING is not 8 bytes long")),
            Kind::GoAway if head.length < 8 => Err(Broken::size("GOAWAY is shorter than 8 bytes")),
            Kind::Data if head.flags.has(Flags::PADDED) && head.length == 0 => {
                Err(Broken::size("DATA has no room for the length of its padding"))
            }
            _ => Ok(()),
        }
    }

    /// Goes on into a frame. Returns what its head alone means.
    #[inline]
    fn begin(&mut self, head: FrameHead) -> Result<Option<Found>, Broken> {
        match head.kind {
            None => self.state = State::Skip(head.length),
            Some(Kind::Data) if head.flags.has(Flags::PADDED) => self.state = State::PadLength(head),
            Some(Kind::Data) => self.data(&head, 0, 0)?,
            Some(Kind::Priority) if head.length != 5 => {
                self.state = State::Skip(head.length);
                let (stream, code) = (head.stream, Code::FRAME_SIZE_ERROR);
                return Ok(Some(Found::Simple(Event::Spoiled {
                    stream,
                    code,
                    why: "PRIORITY is not 5 bytes long",
                })));
            }
            Some(_) => self.state = State::Payload(head),
        }
        Ok(None)
    }

    /// Goes on into the data of a frame, of which `besides` bytes are something else.
    fn data(&mut self, head: &FrameHead, besides: usize, pad: usize) -> Result<(), Broken> {
        let left = head.length.checked_sub(besides);
        let left = left.ok_or(Broken::protocol("DATA has more padding than payload"))?;
        let (counted, end_stream) = (head.length as u32, head.flags.has(Flags::END_STREAM));
        self.state = State::Data { stream: head.stream, left, pad, counted, end_stream };
        Ok(())
    }

    /// What a whole frame means. None if it is part of something that goes on.
    fn whole(&mut self, head: &FrameHead, input: &[u8], place: Place) -> Result<Option<Found>, Broken> {
        let payload = match &place {
            Place::Input(range) => input.get(range.clone()),
            Place::Gathered(range) => self.gathered.get(range.clone()),
            Place::Block => None,
        };
        let payload = payload.unwrap_or_default();
        let stream = head.stream;
        let event = match head.kind {
            Some(Kind::Headers) => return self.headers(head, input, place),
            Some(Kind::Continuation) => return self.continuation(head, input, place),
            Some(Kind::Priority) => {
                if number(payload, 0) & 0x7fff_ffff == stream {
                    let why = "a stream depends on itself";
                    Event::Spoiled { stream, code: Code::PROTOCOL_ERROR, why }
                } else {
                    Event::Priority { stream }
                }
            }
            Some(Kind::Reset) => Event::Reset { stream, code: Code(number(payload, 0)) },
            Some(Kind::Settings) if head.flags.has(Flags::ACK) => Event::SettingsAck,
            Some(Kind::Settings) => Event::Settings(Settings::read(payload)?),
            Some(Kind::Ping) => {
                let data = payload.first_chunk::<8>().copied().unwrap_or_default();
                if head.flags.has(Flags::ACK) { Event::Pong(data) } else { Event::Ping(data) }
            }
            Some(Kind::GoAway) => {
                let (last, code) = (number(payload, 0) & 0x7fff_ffff, Code(number(payload, 4)));
                return Ok(Some(Found::GoAway { last, code, text: place.within(8, 0) }));
            }
            Some(Kind::WindowUpdate) => match number(payload, 0) & 0x7fff_ffff {
                0 if stream == 0 => return Err(Broken::protocol("WINDOW_UPDATE opens the window by 0")),
                0 => {
                    let why = "WINDOW_UPDATE opens the window by 0";
                    Event::Spoiled { stream, code: Code::PROTOCOL_ERROR, why }
                }
                by => Event::WindowUpdate { stream, by },
            },
            Some(Kind::Data | Kind::PushPromise) | None => return Ok(None),
        };
        Ok(Some(Found::Simple(event)))
    }

    /// Handles HEADERS.
    fn headers(&mut self, head: &FrameHead, input: &[u8], place: Place) -> Result<Option<Found>, Broken> {
        let payload = match &place {
            Place::Input(range) => input.get(range.clone()),
            Place::Gathered(range) => self.gathered.get(range.clone()),
            Place::Block => None,
        };
        let payload = payload.unwrap_or_default();
        let (mut before, mut after) = (0_usize, 0_usize);
        if head.flags.has(Flags::PADDED) {
            let pad =
                payload.first().ok_or(Broken::size("HEADERS has no room for the length of its padding"))?;
            (before, after) = (1, usize::from(*pad));
        }
        if head.flags.has(Flags::PRIORITY) {
            let depends = payload.get(before..).and_then(<[u8]>::first_chunk::<5>);
            depends.ok_or(Broken::size("HEADERS has no room for its priority"))?;
            if number(payload, before) & 0x7fff_ffff == head.stream {
                return Err(Broken::protocol("a stream depends on itself"));
            }
            before = before.saturating_add(5);
        }
        if before.saturating_add(after) > head.length {
            return Err(Broken::protocol("HEADERS has more padding than payload"));
        }
        let end_stream = head.flags.has(Flags::END_STREAM);
        let fragment = place.within(before, after);
        if head.flags.has(Flags::END_HEADERS) {
            return Ok(Some(Found::Headers(head.stream, fragment, end_stream)));
        }
        self.block.clear();
        self.block.shrink_to(SPARE);
        self.pending = Some(Pending { stream: head.stream, end_stream, frames: 0 });
        self.lengthen(input, fragment)?;
        Ok(None)
    }

    /// Handles CONTINUATION.
    fn continuation(
        &mut self,
        head: &FrameHead,
        input: &[u8],
        place: Place,
    ) -> Result<Option<Found>, Broken> {
        let Some(mut pending) = self.pending else { return Ok(None) };
        pending.frames = pending.frames.saturating_add(1);
        if pending.frames > CONTINUATIONS {
            let why = "a header block has more than 8 CONTINUATION frames";
            return Err(Broken::new(Code::ENHANCE_YOUR_CALM, why));
        }
        self.pending = Some(pending);
        self.lengthen(input, place)?;
        if !head.flags.has(Flags::END_HEADERS) {
            return Ok(None);
        }
        self.pending = None;
        Ok(Some(Found::Headers(pending.stream, Place::Block, pending.end_stream)))
    }

    /// Adds to the header block that is gathered.
    fn lengthen(&mut self, input: &[u8], fragment: Place) -> Result<(), Broken> {
        let fragment = match fragment {
            Place::Input(range) => input.get(range),
            Place::Gathered(range) => self.gathered.get(range),
            Place::Block => None,
        };
        self.block.extend_from_slice(fragment.unwrap_or_default());
        if self.block.len() > BLOCK {
            return Err(Broken::new(Code::ENHANCE_YOUR_CALM, "a header block is longer than 64 KiB"));
        }
        Ok(())
    }
}

impl Place {
    /// The place without some bytes at its beginning and at its end.
    fn within(&self, before: usize, after: usize) -> Self {
        let inner =
            |range: &Range<usize>| range.start.saturating_add(before)..range.end.saturating_sub(after);
        match self {
            Self::Input(range) => Self::Input(inner(range)),
            Self::Gathered(range) => Self::Gathered(inner(range)),
            Self::Block => Self::Block,
        }
    }
}

/// The four bytes at this place as a number.
fn number(payload: &[u8], at: usize) -> u32 {
    let bytes = payload.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
