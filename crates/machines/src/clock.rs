//! The offset between two monotonic clocks, from round trips over a pipe (Cristian, "Probabilistic clock synchronization",
//! 1989). Pure. Clocks that show the time of day are not used, because they can jump.

use serde::{Deserialize, Serialize};

/// The most round trips that are made.
pub const MOST: usize = 32;
/// The fewest round trips that are made. The first one may meet a machine that is asleep.
pub const FEWEST: usize = 4;

/// One round trip, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// This side's clock when the question was sent.
    pub sent: u64,
    /// The other side's clock when it answered.
    pub there: u64,
    /// This side's clock when the answer arrived.
    pub arrived: u64,
}

/// What the other side's clock shows, compared with this side's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// How far the other clock is ahead, in nanoseconds.
    pub ahead_ns: i64,
    /// The true offset differs from that by this at most, in nanoseconds: half the shortest round trip.
    pub error_ns: u64,
    /// The shortest round trip, in nanoseconds.
    pub round_trip_ns: u64,
}

impl Offset {
    /// The offset by the shortest of these round trips. `None` if there is none that is possible.
    pub fn of(rounds: &[Round]) -> Option<Self> {
        let possible = rounds.iter().filter(|round| round.arrived >= round.sent);
        let best = possible.min_by_key(|round| round.arrived.saturating_sub(round.sent))?;
        let round_trip_ns = best.arrived.saturating_sub(best.sent);
        // In the middle of the shortest round trip, nobody waited for long on either way.
        let middle = best.sent.midpoint(best.arrived);
        let ahead_ns = i64::try_from(i128::from(best.there).saturating_sub(i128::from(middle))).ok()?;
        Some(Self { ahead_ns, error_ns: round_trip_ns.div_ceil(2), round_trip_ns })
    }

    /// What the other clock shows when this side's shows `here`.
    pub fn there(&self, here: u64) -> u64 {
        here.saturating_add_signed(self.ahead_ns)
    }

    /// What this side's clock shows when the other shows `there`. Times before the beginning of the clock are possible.
    pub fn here(&self, there: u64) -> i128 {
        i128::from(there).saturating_sub(i128::from(self.ahead_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            ahead in -1_000_000_000_000_i64..1_000_000_000_000,
            delays in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 1..40),
        ) {
            let mut now = 2_000_000_000_000_u64;
            let rounds: Vec<Round> = delays.iter().map(|(out, back)| {
                let sent = now;
                let there = (sent + out).checked_add_signed(ahead).expect("a time");
                now += out + back + 1000;
                Round { sent, there, arrived: sent + out + back }
            }).collect();
            let offset = Offset::of(&rounds).expect("an offset");
            prop_assert!(offset.ahead_ns.abs_diff(ahead) <= offset.error_ns, "{offset:?}");
            let shortest = delays.iter().map(|(out, back)| out + back).min();
            prop_assert_eq!(Some(offset.round_trip_ns), shortest);
            prop_assert_eq!(offset.here(offset.there(now)), i128::from(now));
        }

        #[test]
        fn no_clock_of_a_peer_makes_it_panic(sent: u64, there: u64, arrived: u64, here: u64) {
            if let Some(offset) = Offset::of(&[Round { sent, there, arrived }]) {
                let _ = (offset.there(here), offset.here(there));
            }
        }
    }

    #[test]
    fn without_a_possible_round_trip_there_is_no_offset() {
        assert_eq!(Offset::of(&[]), None);
        assert_eq!(Offset::of(&[Round { sent: 2, there: 0, arrived: 1 }]), None);
    }
}
