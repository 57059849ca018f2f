//! Which statuses are accepted.

use serde::{Deserialize, Serialize};

/// A range of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Statuses {
    /// Any 2xx.
    pub const SUCCESS: Self = Self::class(2);
    /// The first status that an answer can have. Those of interim answers are below it.
    pub const FIRST: u16 = 200;
    /// The last status that an answer can have.
    pub const LAST: u16 = 599;

    /// Only this one.
    pub const fn exactly(status: u16) -> Self {
        Self { first: status, last: status }
    }

    /// All that begin with this digit.
    pub const fn class(digit: u16) -> Self {
        let first = digit.saturating_mul(100);
        Self { first, last: first.saturating_add(99) }
    }

    /// Those that are also among the others.
    pub fn and(self, other: Self) -> Self {
        Self { first: self.first.max(other.first), last: self.last.min(other.last) }
    }

    /// Whether none is accepted.
    pub fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Whether a status is one of them.
    #[inline]
    pub const fn contains(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }
}

impl Default for Statuses {
    fn default() -> Self {
        Self::SUCCESS
    }
}
