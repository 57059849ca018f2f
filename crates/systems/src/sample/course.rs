//! The course of a quantity over time in bounded space. When the space is full, each pair of neighbours is replaced by
//! the higher one, and from then on each point stands for twice as many samples.

/// The maximum number of points; even, so that it can be halved.
const MOST: usize = 64;

/// Points of (milliseconds, value), in ascending order of time. The highest of all samples is among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Course {
    points: Vec<(u64, u64)>,
    /// How often it has been halved. A full point stands for 2 to this power samples.
    halved: u32,
    /// The number of samples in the last point.
    filled: u64,
}

impl Course {
    /// Adds a sample, which must not be earlier than the one before.
    pub(super) fn push(&mut self, ms: u64, value: u64) {
        match self.points.last_mut() {
            Some(last) if self.filled < 1 << self.halved => {
                *last = higher(*last, (ms, value));
                self.filled = self.filled.saturating_add(1);
                return;
            }
            _ => {}
        }
        if self.points.len() == MOST {
            self.points =
                self.points.chunks(2).filter_map(|two| Some(higher(*two.first()?, *two.last()?))).collect();
            self.halved = self.halved.saturating_add(1);
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

/// The higher of two points; the first if they are equal.
fn higher(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    if b.1 > a.1 { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_course_keeps_its_bounds_its_span_and_its_peak() {
        for samples in [1_u64, 63, 64, 65, 1000, 12_345] {
            let mut course = Course::default();
            let peak = samples * 2 / 3;
            (0..samples).for_each(|i| course.push(i * 250, if i == peak { 1_000_000 } else { 1000 + i % 7 }));
            assert_eq!(course.highest(), 1_000_000);
            let points = course.into_points();
            assert!(points.len() <= MOST && points.len() as u64 >= samples.min(MOST as u64 / 2), "{samples}");
            assert!(points.is_sorted_by_key(|(ms, _)| *ms), "{points:?}");
            assert!(points.contains(&(peak * 250, 1_000_000)), "{points:?}");
            // Neither end is lost: at most one point's share of the samples lies beyond it.
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
