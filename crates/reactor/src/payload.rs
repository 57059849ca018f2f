//! Bytes to send, either shared by many sends or owned by one.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that many connections of a reactor send. Reference-counted without atomics within a reactor (`Rc`), and shared
/// between reactors without copying (`Arc`).
#[derive(Debug, Clone)]
#[allow(clippy::redundant_allocation)] // the outer count is cheap, the inner one crosses threads
pub struct SharedBytes(Rc<Arc<Vec<u8>>>);

impl SharedBytes {
    /// Wraps `bytes` for the calling thread's reactor.
    pub fn new(bytes: Arc<Vec<u8>>) -> Self {
        Self(Rc::new(bytes))
    }

    /// All the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are the same bytes in memory.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A payload that sends `range`.
    ///
    /// # Panics
    /// If `range` is not within the bytes.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Payload {
        assert!(range.start <= range.end && range.end <= self.0.len(), "the range lies within the bytes");
        Payload::Shared(self.clone(), range)
    }
}

/// The bytes of one send. They neither move nor change until the send ends.
#[derive(Debug)]
pub enum Payload {
    /// A range of bytes that other sends share.
    Shared(SharedBytes, Range<usize>),
    /// Bytes of this send alone.
    Owned(Vec<u8>),
}

impl Payload {
    /// How many bytes there are.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        match self {
            Self::Shared(_, range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
        }
    }

    /// The bytes.
    #[expect(clippy::indexing_slicing, reason = "`SharedBytes::slice` has checked the range")]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(shared, range) => &shared.0[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }

    /// The bytes behind those that the kernel has taken.
    #[expect(clippy::indexing_slicing, reason = "the kernel takes no more than it was given")]
    pub(crate) fn rest(&self, done: usize) -> &[u8] {
        &self.bytes()[done..]
    }
}
