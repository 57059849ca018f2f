//! A quantity over time in bounded room: whenever the room is full, each two neighbours become the higher of them, and
//! from then on twice as many samples go into one.

/// Points that are kept at most; even, so that they can be halved.
const MOST: usize = 64;

/// Points of (milliseconds, value), ascending in time; the highest of all samples is among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Course {
    points: Vec<(u64, u64)>,
    /// How often it has been halved: 2 to this power are the samples in a point.
    halved: u32,
    /// Samples in the last point.
    filled: u64,
}

impl Course {
    /// A sample, not earlier than the one before.
    pub(super) fn push(&mut self, ms: u64, value: u64) {
        match self.points.last_mut() {
            Some(last) if self.filled < 1 << self.halved => {
                *last = higher(*last, (ms, value));
                self.filled += 1;
                return;
            }
            _ => {}
        }
        if self.points.len() == MOST {
            self.points = self.points.chunks(2).map(|two| higher(two[0], two[two.len() - 1])).collect();
            self.halved += 1;
        }
        self.points.push((ms, value));
        self.filled = 1;
    }

    pub(super) fn highest(&self) -> u64 {
        self.points.iter().map(|(_, value)| *value).max().unwrap_or(0)
    }

    pub(super) fn into_points(self) -> Vec<(u64, u64)> {
        self.points
    }
}

/// The earlier of two that are as high.
fn higher(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    if b.1 > a.1 { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_course_keeps_its_room_its_span_and_its_peak() {
        for samples in [1_u64, 63, 64, 65, 1000, 12_345] {
            let mut course = Course::default();
            let peak = samples * 2 / 3;
            (0..samples).for_each(|i| course.push(i * 250, if i == peak { 1_000_000 } else { 1000 + i % 7 }));
            assert_eq!(course.highest(), 1_000_000);
            let points = course.into_points();
            assert!(points.len() <= MOST && points.len() as u64 >= samples.min(MOST as u64 / 2), "{samples}");
            assert!(points.is_sorted_by_key(|(ms, _)| *ms), "{points:?}");
            assert!(points.contains(&(peak * 250, 1_000_000)), "{points:?}");
            // Nothing at either end is forgotten: at most one point's share of the samples lies beyond.
            let share = samples.div_ceil(MOST as u64 / 2) * 250;
            let (first, last) = (points[0].0, points[points.len() - 1].0);
            assert!(first <= share && last + share >= (samples - 1) * 250, "{samples}: {points:?}");
        }
    }

    #[test]
    fn few_samples_are_kept_as_they_are() {
        let mut course = Course::default();
        let samples = [(0, 5), (250, 9), (500, 3)];
        samples.iter().for_each(|(ms, value)| course.push(*ms, *value));
        assert_eq!(course.into_points(), samples);
        assert_eq!(Course::default().highest(), 0);
    }
}
