//! HTTP/1.1 messages as RFC 9110 (semantics) and RFC 9112 (syntax and framing) define them.
//!
//! Knows bytes only. The caller decides which response answers which request, when to give up and what a status means.
//!
//! Both decoders are strict where leniency would make a broken peer look healthy, or would let two parsers disagree about
//! where a message ends:
//! - **Bare LF is refused.** RFC 9112 section 2.2 lets a recipient accept it ("MAY"). This codec does not: bare LF enables
//!   request smuggling, no server worth measuring sends it, and a single line ending needs one comparison on the hot path.
//! - Obsolete line folding, blanks before the colon, bare CR, NUL and other controls are errors.
//! - `Content-Length` together with `Transfer-Encoding`, or repeated with unequal values, is an error. Repeated equal
//!   values count as one (RFC 9112 section 6.3 allows either choice, and real proxies produce them).
//! - A status line without the space before an empty reason is accepted: it is common and cannot be misread.
//! - Versions other than HTTP/1.0 and HTTP/1.1 are errors.

mod body;
mod decoder;
mod encode;
mod head;
mod request;
mod response;

pub use encode::{
    CONTINUE, Connection, EncodeError, RequestLine, encode_response, encode_response_end,
    encode_response_head,
};
pub use request::{RequestDecoder, RequestHead};
pub use response::{ResponseDecoder, ResponseHead};

/// How the body of a message is delimited (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body, regardless of the header fields.
    None,
    /// Exactly this many bytes.
    Exact(u64),
    /// Chunks, each with its own length.
    Chunked,
    /// Everything until the peer closes.
    UntilClose,
}

/// The versions of HTTP that this codec speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: a connection closes after the response unless both sides say otherwise.
    Http10,
    /// HTTP/1.1: a connection is kept unless one side says otherwise.
    Http11,
}

/// A request method. Methods that Narrows does not distinguish are `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD: its response has no body.
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// PATCH
    Patch,
    /// Any other token.
    Other,
}

impl Method {
    /// The method with this name. Names are case-sensitive (RFC 9110 section 9.1).
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }
}

/// What is wrong with a message. The connection is unusable afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The peer closed in the middle of a message.
    #[error("the connection was closed before the message was complete")]
    ClosedEarly,
    /// The head is longer than [`Limits::head`].
    #[error("the head is longer than the limit")]
    HeadTooLong,
    /// Not HTTP, or a version other than 1.0 and 1.1.
    #[error("the message does not say HTTP/1.0 or HTTP/1.1 where it must")]
    BadVersion,
    /// The status is not three digits from 100 up.
    #[error("the status is not three digits from 100 up")]
    BadStatus,
    /// The method is not a token followed by one space.
    #[error("the method is not a token followed by one space")]
    BadMethod,
    /// The request target is empty or contains illegal characters.
    #[error("the request target is empty or contains illegal characters")]
    BadTarget,
    /// A line that ends with LF alone.
    #[error("a line ends with LF alone instead of CR LF")]
    BareLf,
    /// A CR that is not followed by LF.
    #[error("a CR is not followed by LF")]
    BareCr,
    /// A control character in a line.
    #[error("a line contains a control character")]
    ControlCharacter,
    /// A header name that is not a token directly followed by a colon.
    #[error("a header name is not a token directly followed by a colon")]
    BadHeaderName,
    /// A header line that continues the one before it (obsolete line folding).
    #[error("a header line begins with a blank (obsolete line folding)")]
    FoldedHeader,
    /// A Content-Length that is not a number that fits 64 bits.
    #[error("the content-length is not a number that fits 64 bits")]
    BadContentLength,
    /// Two lengths that differ.
    #[error("two content-lengths differ")]
    UnequalContentLengths,
    /// Content-Length and Transfer-Encoding in one message.
    #[error("the message has both content-length and transfer-encoding")]
    LengthAndEncoding,
    /// A Transfer-Encoding that does not delimit the body.
    #[error("the transfer-encoding is malformed or does not delimit the body")]
    BadTransferEncoding,
    /// No Host, or several: an HTTP/1.1 request has exactly one (RFC 9112 section 3.2).
    #[error("the request has no host, or more than one")]
    BadHost,
    /// A chunk size that is not a hexadecimal number that fits 64 bits.
    #[error("a chunk size is not a hexadecimal number that fits 64 bits")]
    BadChunkSize,
    /// A chunk that is not followed by CR LF.
    #[error("a chunk is not followed by CR LF")]
    BadChunkEnd,
    /// A chunk's extensions are longer than [`Limits::chunk_line`], or the trailers than [`Limits::head`].
    #[error("chunk extensions or trailers are longer than the limit")]
    ChunkLineTooLong,
}

/// How many bytes of heads and framing a peer may send before it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, including the empty line that ends it; also the limit for all trailers together.
    pub head: usize,
    /// Bytes of one chunk-size line, including its extensions.
    pub chunk_line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head: 64 * 1024, chunk_line: 4 * 1024 }
    }
}

/// The result of one `push`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a, H> {
    /// How many bytes of the input were consumed. Push the rest next.
    pub consumed: usize,
    /// What was found in them.
    pub event: HttpEvent<'a, H>,
}

/// What a decoder found. A message is one `Head`, any number of `Body` and one `End`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEvent<'a, H> {
    /// All input is consumed; the decoder needs more.
    NeedMore,
    /// The complete head of a message.
    Head(H),
    /// Part of the payload, without chunk framing; never empty.
    Body(&'a [u8]),
    /// The message is complete; the next byte begins another.
    End,
}

/// A message that arrived in one piece: see [`ResponseDecoder::whole`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeMessage<'a, H> {
    /// The length of the message in bytes.
    pub consumed: usize,
    /// Its head.
    pub head: H,
    /// Its payload.
    pub body: &'a [u8],
}
