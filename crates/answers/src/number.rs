//! Numbers of JSON and of checks, and how they are compared.

use std::cmp::Ordering;
use std::fmt;

/// A number. Whole numbers are exact, however large.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Real(real) => real.fmt(f),
        }
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Order {
    /// The signs of all of them. A sign that begins with another one comes first.
    pub(crate) const SIGNS: [(&'static str, Self); 6] = [
        ("!=", Self::Unequal),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("=", Self::Equal),
        ("<", Self::Less),
        (">", Self::More),
    ];

    /// Whether `got` stands in this order to `wanted`.
    pub(crate) fn holds(self, got: Number, wanted: Number) -> bool {
        let Some(order) = got.compare(wanted) else { return self == Self::Unequal };
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}
