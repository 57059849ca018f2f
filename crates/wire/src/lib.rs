//! Sans-I/O codecs: HTTP/1.1 messages, HTTP/2, server-sent events, length-prefixed frames, the header of the PROXY protocol, and the bytes
//! that bodies are made of.
//!
//! This crate turns bytes into events and values into bytes. It knows no sockets, no clocks and no other crate of
//! Narrows, so that the generator, the reference server and the fuzzer run the same code. Nothing that a peer sends may
//! make it panic or allocate without bound. Its answers do not depend on how the reads cut the stream.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

pub mod events;
pub mod foreign;
pub mod frames;
pub mod h2;
pub mod http;
pub mod pattern;
pub mod proxy;

#[cfg(test)]
mod cost_tests;
