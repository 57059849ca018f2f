//! Sans-I/O codecs: HTTP/1.1 messages, length-prefixed frames, and the bytes that bodies are made of.
//!
//! This crate turns bytes into events and values into bytes. It knows no sockets, no clocks and no other crate of
//! Narrows, so that the generator, the reference server and the fuzzer all run exactly the same code. Nothing a peer can
//! send may make it panic, allocate without bound, or answer differently because of where the reads happened to cut.

pub mod frames;
pub mod http;
pub mod pattern;
