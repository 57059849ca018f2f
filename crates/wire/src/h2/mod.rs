//! HTTP/2 as RFC 9113 (frames, streams, messages) and RFC 7541 (HPACK) define it, for both ends.
//!
//! Knows bytes only. [`Reader`] cuts a connection's bytes into frames, [`ResponseHeads`] and [`RequestHeads`] make heads of header
//! blocks, and [`Templates`] makes header blocks of fields. The caller has the streams: it decides what a frame means for them,
//! and keeps the windows ([`SendWindow`], [`ReceiveWindow`]).
//!
//! What breaks the connection is [`Broken`], with the code that the peer is told. What spoils one message only is
//! [`Malformed`].

mod decoder;
mod encoder;
mod fields;
mod frame;
mod heads;
mod huffman;
mod integer;
mod reader;
mod settings;
mod table;
mod translate;
mod window;

use std::fmt;

pub use decoder::{Decoder, Facts};
pub use encoder::{Templates, put_field, put_status};
pub use frame::{
    Flags, HEAD, Kind, put_frame_head, put_go_away, put_headers, put_ping, put_reset, put_settings,
    put_settings_ack, put_window_update, set_stream,
};
pub use heads::{Request, RequestHeads, Response, ResponseHeads};
pub use reader::{Event, Message, Reader, Step};
pub use settings::Settings;
pub use translate::request_of_http1;
pub use window::{ReceiveWindow, SendWindow};

/// What a client sends first on a connection (RFC 9113 section 3.4), before its settings.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest payload of a frame, unless a setting allows longer ones. This codec accepts no longer ones.
pub const FRAME: usize = 16_384;
/// The window of a connection and of each stream, unless something changes it.
pub const WINDOW: u32 = 65_535;
/// The largest window.
pub const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// The size of a table of HPACK, unless a setting changes it.
pub const TABLE: usize = 4096;
/// The most bytes of a header block, and of the list of fields that it means.
pub const BLOCK: usize = 64 * 1024;

/// A code that RST_STREAM and GOAWAY carry (RFC 9113 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// No error.
    pub const NO_ERROR: Self = Self(0);
    /// Something that must not be.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// More than a window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame on a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of the wrong length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is needed no more.
    pub const CANCEL: Self = Self(8);
    /// A header block that HPACK cannot decode.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer does too much.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// The name of the code; `None` if the document has none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

/// What breaks a connection: it is unusable afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({code})")]
pub struct Broken {
    /// What the peer is told in GOAWAY.
    pub code: Code,
    /// What is wrong, in words.
    pub why: &'static str,
}

impl Broken {
    /// Something that breaks a connection.
    #[must_use]
    pub const fn new(code: Code, why: &'static str) -> Self {
        Self { code, why }
    }

    pub(crate) const fn protocol(why: &'static str) -> Self {
        Self::new(Code::PROTOCOL_ERROR, why)
    }

    pub(crate) const fn size(why: &'static str) -> Self {
        Self::new(Code::FRAME_SIZE_ERROR, why)
    }

    pub(crate) const fn compression(why: &'static str) -> Self {
        Self::new(Code::COMPRESSION_ERROR, why)
    }
}

/// What is wrong with one message (RFC 9113 section 8.1.1). Other streams go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

#[cfg(test)]
mod tests;
