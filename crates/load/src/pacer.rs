//! Decides when the next exchange may begin. Pure: it is told the time and holds no clock.

use std::time::Duration;

/// When to stop beginning exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this long.
    After(Duration),
    /// After this many.
    Count(u64),
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Begin one.
    Send,
    /// Begin no more.
    Stop,
}

/// The pacer of a closed loop: whoever is free may send, until it is time to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacer {
    /// When to stop.
    pub stop: Stop,
}

impl Pacer {
    /// What to do `elapsed` after the beginning, with `sent` exchanges begun.
    pub fn pace(self, elapsed: Duration, sent: u64) -> Pace {
        let over = match self.stop {
            Stop::After(length) => elapsed >= length,
            Stop::Count(count) => sent >= count,
        };
        if over { Pace::Stop } else { Pace::Send }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stops_at_its_length_and_counts_at_their_number() {
        let second = Duration::from_secs(1);
        let nearly = second - Duration::from_nanos(1);
        let table = [
            (Stop::After(second), Duration::ZERO, u64::MAX, Pace::Send),
            (Stop::After(second), nearly, 0, Pace::Send),
            (Stop::After(second), second, 0, Pace::Stop),
            (Stop::Count(3), second * 3600, 2, Pace::Send),
            (Stop::Count(3), Duration::ZERO, 3, Pace::Stop),
            (Stop::Count(0), Duration::ZERO, 0, Pace::Stop),
        ];
        for (stop, elapsed, sent, expected) in table {
            assert_eq!(Pacer { stop }.pace(elapsed, sent), expected, "{stop:?} {elapsed:?} {sent}");
        }
    }
}
