//! TLS without I/O: bytes in, plaintext and bytes out. Clients, servers, and the lab's own certificates.
//!
//! - [`Dialer`] makes the connections of a client, and [`Listener`] those of a server. Each is made once from plain values
//!   ([`Dialing`], [`Serving`]).
//! - A [`Channel`] is one connection. It takes the bytes that arrived, hands out plaintext, and collects what is to be sent.
//! - A [`Handshake`] is what the two sides agreed on, and a [`Fault`] is why a connection is of no more use.
//! - An [`Authority`] issues certificates for a run.
//!
//! A *session* is what a client keeps from one connection in order to resume it on the next. A [`Line`] is one client: it
//! makes one connection after the other and keeps its own sessions, if sessions are asked for.
//!
//! This crate knows no sockets and no files. The time is an argument of [`Line::open`] and [`Listener::accept`]. Randomness
//! comes from the operating system. Nothing that a peer sends may make it panic or allocate without bound, and what it
//! answers does not depend on how the reads cut the stream. The protocol and its cryptography are those of rustls and ring
//! (docs/decisions/0011); callers need no type of theirs.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod authority;
mod channel;
mod clock;
mod dialer;
mod error;
mod fault;
mod handshake;
mod listener;
mod parameters;
mod pem;
mod sessions;
mod verifier;

pub use authority::{Authority, Issued, KeyKind, Leaf};
pub use channel::{Channel, ClientChannel, ServerChannel};
pub use dialer::{Dialer, Dialing, Line, Trust};
pub use error::TlsError;
pub use fault::{CertificateFault, Detail, Fault};
pub use handshake::{Handshake, Kind};
pub use listener::{Listener, Serving};
pub use parameters::{HTTP2, Parameters, Version, ciphers, groups};
pub use pem::Identity;
