//! What the two sides agreed on.

use rustls::{CommonState, HandshakeKind};

use crate::parameters::{Version, cipher_name, group_name};

/// How a handshake went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// With a new key exchange and the server's certificate.
    Full,
    /// Full, after the server asked for a key of another group (HelloRetryRequest), which takes one more round trip.
    Retried,
    /// The server accepted a session. It sent no certificate and signed nothing.
    Resumed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Full, Self::Retried, Self::Resumed];

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Retried => "retried",
            Self::Resumed => "resumed",
        }
    }
}

/// A completed handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// How it went.
    pub kind: Kind,
    /// The version.
    pub version: Version,
    /// The cipher suite, by IANA's name.
    pub cipher: &'static str,
    /// The group of the key exchange; none if a session of TLS 1.2 was resumed.
    pub group: Option<&'static str>,
    /// Whether this side offered a session. A server does not offer any.
    ///
    /// It is also true if the line's session was older than the lifetime that its server gave it; rustls then keeps it back.
    pub offered: bool,
}

impl Handshake {
    /// Whether a session was offered and the server did not accept it.
    pub fn refused(&self) -> bool {
        self.offered && self.kind != Kind::Resumed
    }

    /// What a connection agreed on, if it did.
    pub(crate) fn of(state: &CommonState, offered: bool) -> Option<Self> {
        let kind = match state.handshake_kind()? {
            HandshakeKind::Full => Kind::Full,
            HandshakeKind::FullWithHelloRetryRequest => Kind::Retried,
            HandshakeKind::Resumed => Kind::Resumed,
        };
        Some(Self {
            kind,
            version: Version::of(state.protocol_version()?)?,
            cipher: cipher_name(state.negotiated_cipher_suite()?.suite()),
            group: state.negotiated_key_exchange_group().map(|group| group_name(group.name())),
            offered,
        })
    }
}
