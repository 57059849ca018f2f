//! The kinds of operations, which completions carry in their user data.

use crate::slots::Conn;

/// An operation of the ring.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(super) enum Op {
    Accept,
    Connect,
    Receive,
    /// A receive whose messages carry their arrival times.
    StampedReceive,
    Send,
    /// A send that reports only its failure.
    SilentSend,
    /// A send of copied bytes, which reports only what it has not sent.
    Post,
    /// The ring creates a socket. The linked connect reports a failure.
    Socket,
    /// A half-close. The kernel does it in a thread of its own, so the slot must stay the connection's until it is done: it would
    /// half-close the next one.
    HalfClose,
    /// Close and cancel. Their failures show elsewhere.
    Silent,
}

/// The user data of an operation on a connection.
pub(super) fn user_data(op: Op, conn: Conn) -> u64 {
    (op as u64) << 56 | conn.to_bits()
}

/// The operation that user data names.
#[inline]
pub(super) fn op_of(user_data: u64) -> Op {
    match user_data >> 56 {
        0 => Op::Accept,
        1 => Op::Connect,
        2 => Op::Receive,
        3 => Op::StampedReceive,
        4 => Op::Send,
        5 => Op::SilentSend,
        6 => Op::Post,
        7 => Op::Socket,
        8 => Op::HalfClose,
        _ => Op::Silent,
    }
}
