//! The heads of frames, and the frames that are written (RFC 9113 sections 4 and 6).

use super::{Code, FRAME, Settings};

/// The length of a frame's head.
pub const HEAD: usize = 9;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Part of a body.
    Data = 0,
    /// The head of a message, or its trailers.
    Headers = 1,
    /// Advice, which is ignored.
    Priority = 2,
    /// A stream ends early.
    Reset = 3,
    /// What the sender accepts.
    Settings = 4,
    /// A push, which is an error.
    PushPromise = 5,
    /// A question whether the peer is there, or the answer.
    Ping = 6,
    /// No further streams are accepted.
    GoAway = 7,
    /// More may be sent.
    WindowUpdate = 8,
    /// More of a header block.
    Continuation = 9,
}

impl Kind {
    pub(super) fn of(byte: u8) -> Option<Self> {
        const ALL: [Kind; 10] = [
            Kind::Data,
            Kind::Headers,
            Kind::Priority,
            Kind::Reset,
            Kind::Settings,
            Kind::PushPromise,
            Kind::Ping,
            Kind::GoAway,
            Kind::WindowUpdate,
            Kind::Continuation,
        ];
        ALL.get(usize::from(byte)).copied()
    }
}

/// The flags of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// SETTINGS and PING: an answer.
    pub const ACK: Self = Self(1);
    /// DATA and HEADERS: the last frame of a message.
    pub const END_STREAM: Self = Self(1);
    /// HEADERS and CONTINUATION: the header block is complete.
    pub const END_HEADERS: Self = Self(4);
    /// DATA and HEADERS: the payload is padded.
    pub const PADDED: Self = Self(8);
    /// HEADERS: it begins with advice.
    pub const PRIORITY: Self = Self(32);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self, yes: bool) -> Self {
        if yes { Self(self.0 | other.0) } else { self }
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHead {
    pub length: usize,
    pub kind: Option<Kind>,
    pub flags: Flags,
    pub stream: u32,
}

impl FrameHead {
    #[inline]
    pub(super) fn read([l2, l1, l0, kind, flags, s3, s2, s1, s0]: [u8; HEAD]) -> Self {
        Self {
            length: u32::from_be_bytes([0, l2, l1, l0]) as usize,
            kind: Kind::of(kind),
            flags: Flags(flags),
            // The first bit is reserved, and ignored.
            stream: u32::from_be_bytes([s3 & 0x7f, s2, s1, s0]),
        }
    }

    /// The head at the beginning of the input, if it is of this kind and has these flags and no others, and what follows it.
    #[inline(always)]
    pub(super) fn plain(input: &[u8], kind: Kind, flags: Flags) -> Option<(Self, &[u8])> {
        let (bytes, rest) = input.split_first_chunk::<HEAD>()?;
        let [l2, l1, l0, is, has, s3, s2, s1, s0] = *bytes;
        // One read of memory for four bytes.
        let begin = u32::from_be_bytes([l2, l1, l0, is]);
        if begin & 0xff != kind as u32 || has != flags.0 {
            return None;
        }
        let length = (begin >> 8) as usize;
        // The first bit is still in it.
        let stream = u32::from_be_bytes([s3, s2, s1, s0]);
        Some((Self { length, kind: Some(kind), flags, stream }, rest))
    }

    /// Whether the frame belongs to a stream, and its reserved bit is not set.
    #[inline(always)]
    pub(super) fn has_stream(&self) -> bool {
        self.stream.cast_signed() > 0
    }
}

/// Appends the head of a frame.
#[inline]
pub fn put_frame_head(out: &mut Vec<u8>, length: usize, kind: Kind, flags: Flags, stream: u32) {
    let [_, l2, l1, l0] = (length as u32).to_be_bytes();
    let [s3, s2, s1, s0] = stream.to_be_bytes();
    out.extend_from_slice(&[l2, l1, l0, kind as u8, flags.0, s3, s2, s1, s0]);
}

/// Writes another stream into the frame that begins at `at`.
#[inline]
pub fn set_stream(out: &mut [u8], at: usize, stream: u32) {
    if let Some(place) = out.get_mut(at.saturating_add(5)..at.saturating_add(HEAD)) {
        place.copy_from_slice(&stream.to_be_bytes());
    }
}

/// Appends a header block, in as many frames as it needs.
pub fn put_headers(out: &mut Vec<u8>, stream: u32, block: &[u8], end_stream: bool) {
    let (first, mut rest) = block.split_at_checked(FRAME).unwrap_or((block, &[]));
    let flags = Flags::NONE.with(Flags::END_STREAM, end_stream).with(Flags::END_HEADERS, rest.is_empty());
    put_frame_head(out, first.len(), Kind::Headers, flags, stream);
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (part, after) = rest.split_at_checked(FRAME).unwrap_or((rest, &[]));
        let flags = Flags::NONE.with(Flags::END_HEADERS, after.is_empty());
        put_frame_head(out, part.len(), Kind::Continuation, flags, stream);
        out.extend_from_slice(part);
        rest = after;
    }
}

/// Appends SETTINGS.
pub fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    put_frame_head(out, settings.entries().count().saturating_mul(6), Kind::Settings, Flags::NONE, 0);
    for (id, value) in settings.entries() {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the answer to SETTINGS.
pub fn put_settings_ack(out: &mut Vec<u8>) {
    put_frame_head(out, 0, Kind::Settings, Flags::ACK, 0);
}

/// Appends PING, or the answer to one.
pub fn put_ping(out: &mut Vec<u8>, data: [u8; 8], answers: bool) {
    put_frame_head(out, 8, Kind::Ping, Flags::NONE.with(Flags::ACK, answers), 0);
    out.extend_from_slice(&data);
}

/// Appends RST_STREAM.
pub fn put_reset(out: &mut Vec<u8>, stream: u32, code: Code) {
    put_frame_head(out, 4, Kind::Reset, Flags::NONE, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends GOAWAY: streams up to `last` were or will be processed.
pub fn put_go_away(out: &mut Vec<u8>, last: u32, code: Code, why: &str) {
    put_frame_head(out, why.len().saturating_add(8), Kind::GoAway, Flags::NONE, 0);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(why.as_bytes());
}

/// Appends WINDOW_UPDATE, of a stream or of the connection, which is 0.
pub fn put_window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    put_frame_head(out, 4, Kind::WindowUpdate, Flags::NONE, stream);
    out.extend_from_slice(&by.to_be_bytes());
}
