//! Whether the other side of a pipe is silent. Pure: times are nanoseconds of a monotonic clock.
//!
//! A thread notes when bytes last came. A long silence alone proves nothing: the machine may have stood still, or the thread has
//! waited until somebody took what it had read. What came meanwhile waits to be read. So the side is silent if it was suspected before,
//! and still nothing came although the thread has had the time of two beats to read since. One would not do: the other side may have stood
//! still, too, and beats within the time of one.

use crate::link::{BEAT, SILENCE};

/// What is known of a side that may be silent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Silence {
    /// When bytes had last come, and when that was first seen to be long ago.
    suspected: Option<(u64, u64)>,
}

impl Silence {
    /// Looks at the time `now`. Bytes last came at the time `heard`. Returns whether the side is silent.
    pub fn lasts(&mut self, heard: u64, now: u64) -> bool {
        let [silence, grace] = [SILENCE, BEAT.saturating_mul(2)].map(|time| time.as_nanos() as u64);
        let silent = now.saturating_sub(heard);
        if silent < silence.saturating_sub(grace) {
            self.suspected = None;
            return false;
        }
        let (_, since) = *self.suspected.filter(|(known, _)| *known == heard).get_or_insert((heard, now));
        self.suspected = Some((heard, since));
        silent >= silence && now.saturating_sub(since) >= grace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_side_is_silent_after_five_seconds_and_not_before() {
        let mut silence = Silence::default();
        let looks: Vec<u64> = (0..=20).filter(|look| silence.lasts(7, 7 + look * SECOND / 2)).collect();
        assert_eq!(looks.first(), Some(&10));
        assert_eq!(looks.len(), 11);
    }

    #[test]
    fn a_side_that_beats_is_never_silent() {
        let mut silence = Silence::default();
        assert!((0..100).all(|look| !silence.lasts(look * SECOND, look * SECOND + SECOND - 1)));
        // Nor is one that pauses now and then.
        assert!((100..200).all(|look| !silence.lasts(look / 5 * 5 * SECOND, look * SECOND)));
    }

    #[test]
    fn after_a_standstill_there_is_time_to_read_what_came() {
        let (mut silence, hour) = (Silence::default(), 3600 * SECOND);
        assert!(!silence.lasts(0, SECOND));
        assert!(!silence.lasts(0, hour), "what came in this hour may not have been read");
        assert!(!silence.lasts(0, hour + 2 * SECOND - 1));
        let mut other = silence;
        assert!(silence.lasts(0, hour + 2 * SECOND), "there was time to read");
        assert!(!other.lasts(hour, hour + 2 * SECOND), "it was read");
        // What was read and is old again begins a new suspicion.
        assert!(!other.lasts(hour + 1, 2 * hour) && !other.lasts(hour + 2, 2 * hour + SECOND));
    }
}
