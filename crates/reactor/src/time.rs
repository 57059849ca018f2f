//! Points in time as one number. A driver subtracts several times for each small request. `std`'s `Instant` keeps seconds
//! and nanoseconds apart and needs some 40 instructions for each subtraction.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds of the monotonic clock (`CLOCK_MONOTONIC`), from an arbitrary start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The clock's start, which is before every time that it shows.
    pub const ZERO: Self = Self(0);
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The current time.
    pub fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is alive during the call; the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        Self(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// The point in time at which the clock shows so many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// What the clock shows, in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is later.
    pub fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The point in time that lies `time` before `self`.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(time)))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }
}

/// The duration in nanoseconds, at most `u64::MAX` (more than five centuries).
fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_can_be_added_and_subtracted() {
        let earlier = Time::now();
        let later = earlier + Duration::from_millis(1500);
        assert!(Time::now() >= earlier && later > earlier);
        assert_eq!(
            (later.since(earlier), later.nanos_since(earlier)),
            (Duration::from_millis(1500), 1_500_000_000)
        );
        assert_eq!(
            (earlier.since(later), later.before(Duration::from_millis(1500))),
            (Duration::ZERO, earlier)
        );
        assert!(earlier + Duration::MAX > later && earlier.before(Duration::MAX) <= earlier);
    }
}
