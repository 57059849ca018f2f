//! Bytes to send: shared by many sends, or owned by one.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that many connections of one reactor send. Counted without atomics inside a reactor (`Rc`), shared
/// between reactors without copies (`Arc`).
#[derive(Debug, Clone)]
#[allow(clippy::redundant_allocation)] // the outer count is the cheap one, the inner one crosses threads
pub struct Shared(Rc<Arc<Vec<u8>>>);

impl Shared {
    /// For the calling thread's reactor.
    pub fn new(bytes: Arc<Vec<u8>>) -> Self {
        Self(Rc::new(bytes))
    }

    /// All of the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether two are the same bytes in memory.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A payload of `range`.
    ///
    /// # Panics
    /// When `range` is not within the bytes.
    pub fn slice(&self, range: Range<usize>) -> Payload {
        assert!(range.start <= range.end && range.end <= self.0.len(), "a slice of what is there");
        Payload::Shared(self.clone(), range)
    }
}

/// What one send sends. Its bytes neither move nor change until the send ends.
#[derive(Debug)]
pub enum Payload {
    /// A part of bytes that others send too.
    Shared(Shared, Range<usize>),
    /// Its own.
    Owned(Vec<u8>),
}

impl Payload {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(shared, range) => &shared.0[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}
