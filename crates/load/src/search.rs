//! Searches the highest rate at which objectives hold, on the rungs of a ladder of rates. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Slo;

/// The highest rate that is tried, per second. One machine cannot generate more.
pub const HIGHEST: f64 = 10_000_000.0;

/// A geometric series of rates. Rung 0 is its base, and rungs below it have negative numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ladder {
    /// The rate of rung 0, per second.
    pub base: f64,
    /// The number of rungs from a rate to its double.
    pub octave: i32,
}

impl Ladder {
    /// The ladder that all trials share, so that settings are compared at the same rates. A rung is 2 % above the one
    /// below it.
    pub const SHARED: Self = Self { base: 1.0, octave: 35 };

    /// The rate of a rung, per second.
    pub fn rate(&self, rung: i32) -> f64 {
        self.base * (f64::from(rung) / f64::from(self.octave)).exp2()
    }

    /// The highest rung that is not above a rate.
    pub fn below(&self, rate: f64) -> i32 {
        (self.place(rate) + NEAR).floor() as i32
    }

    /// The lowest rung that is not below a rate.
    pub fn above(&self, rate: f64) -> i32 {
        (self.place(rate) - NEAR).ceil() as i32
    }

    fn place(&self, rate: f64) -> f64 {
        (rate / self.base).log2() * f64::from(self.octave)
    }
}

/// A rate this close to a rung, in rungs, is the rung's. Logarithms are not exact.
const NEAR: f64 = 1e-6;

/// How a search goes from rung to rung.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The rungs that may be tried.
    pub rungs: RangeInclusive<i32>,
    /// The rung that is tried first.
    pub start: i32,
    /// The distance to the second rung. While all hold or all fail, each distance is twice the last, up to an octave.
    pub stride: i32,
    /// The number of tries at most.
    pub most: usize,
}

/// A search in progress. Try the rung that [`Search::next`] returns, and pass the result to [`Search::tried`].
///
/// It goes up or down until one rung holds and a higher one fails, and halves what lies between. A rung that fails by
/// bad luck would hide all that are above it. So when the lowest rung that failed is next to the highest that held, it
/// is tried once more. If it holds then, the search goes on above it.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    ladder: Ladder,
    course: Course,
    /// Each rung that was tried, and whether it held.
    tries: Vec<(i32, bool)>,
}

impl Search {
    /// A search that has tried nothing. A start that is not among the rungs is moved to the nearest of them.
    pub fn new(ladder: Ladder, course: Course) -> Self {
        let (lowest, highest) = (*course.rungs.start(), *course.rungs.end());
        let start = course.start.min(highest).max(lowest);
        Self { ladder, course: Course { start, ..course }, tries: Vec::new() }
    }

    /// The rung to try next. `None` if the highest that holds is found, or there were too many tries.
    pub fn next(&self) -> Option<i32> {
        let (lowest, highest) = (*self.course.rungs.start(), *self.course.rungs.end());
        if self.tries.len() >= self.course.most {
            return None;
        }
        match (self.holds(), self.fails()) {
            (None, None) => Some(self.course.start),
            (Some(holds), None) => {
                (holds < highest).then(|| holds.saturating_add(self.distance()).min(highest))
            }
            (None, Some(fails)) if fails > lowest => Some(fails.saturating_sub(self.distance()).max(lowest)),
            (Some(holds), Some(fails)) if fails - holds > 1 => Some(holds + (fails - holds) / 2),
            (_, Some(fails)) => {
                let failures = self.tries.iter().filter(|(rung, _)| *rung == fails).count();
                (failures < 2).then_some(fails)
            }
        }
    }

    /// Records whether a rung held.
    pub fn tried(&mut self, rung: i32, held: bool) {
        self.tries.push((rung, held));
    }

    /// The highest rung that held.
    pub fn holds(&self) -> Option<i32> {
        self.tries.iter().filter(|(_, held)| *held).map(|(rung, _)| *rung).max()
    }

    /// The lowest rung that failed, above those that held.
    pub fn fails(&self) -> Option<i32> {
        let holds = self.holds();
        let failed =
            self.tries.iter().filter(|(rung, held)| !held && holds.is_none_or(|holds| *rung > holds));
        failed.map(|(rung, _)| *rung).min()
    }

    /// The rate of a rung, per second.
    pub fn rate(&self, rung: i32) -> f64 {
        self.ladder.rate(rung)
    }

    /// The distance to the next rung while all tries agree.
    fn distance(&self) -> i32 {
        let last = match self.tries[..] {
            [.., (before, _), (last, _)] => last.saturating_sub(before).saturating_abs(),
            _ => 0,
        };
        let octave = self.ladder.octave.max(1);
        last.saturating_mul(2).max(self.course.stride.max(1)).min(octave)
    }
}

/// How long a try lasts: as long as requested, or longer if the objectives need more answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    requested_s: f64,
    answers: f64,
}

impl Window {
    /// The most by which a try at a low rate is lengthened to get the answers that its objectives need.
    pub const LONGEST: f64 = 4.0;
    /// The factor on the number of answers that the objectives need, because some requests may fail.
    const SPARE: f64 = 1.1;

    /// The windows in which these objectives are judged.
    pub fn new(slo: &Slo, requested: Duration) -> Self {
        Self { requested_s: requested.as_secs_f64(), answers: slo.answers_needed() as f64 * Self::SPARE }
    }

    /// The length of a try at a rate.
    pub fn length(self, rate: f64) -> Duration {
        Duration::from_secs_f64(self.requested_s.max(self.answers / rate))
    }

    /// The lowest rate whose window is not too long.
    pub fn lowest_rate(self) -> f64 {
        self.answers / (Self::LONGEST * self.requested_s)
    }

    /// How long a window must be requested, in seconds, to try a rate.
    pub fn needed_s(self, rate: f64) -> f64 {
        self.answers / rate / Self::LONGEST
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OCTAVE: i32 = Ladder::SHARED.octave;

    fn course(start: i32, most: usize) -> Course {
        Course { rungs: 300..=800, start, stride: 8, most }
    }

    /// Tries rungs until the search ends. `holds` gets a rung and how often it was tried before.
    fn climbed(course: Course, mut holds: impl FnMut(i32, usize) -> bool) -> Search {
        let mut search = Search::new(Ladder::SHARED, course);
        while let Some(rung) = search.next() {
            assert!(search.course.rungs.contains(&rung), "{rung}");
            let before = search.tries.iter().filter(|(known, _)| *known == rung).count();
            search.tried(rung, holds(rung, before));
            assert!(search.tries.len() <= 100, "it ends");
        }
        search
    }

    #[test]
    fn rungs_are_two_percent_apart_and_double_in_an_octave() {
        let ladder = Ladder::SHARED;
        let step = ladder.rate(1) / ladder.rate(0);
        assert!((step - 1.02).abs() < 1e-4, "{step}");
        assert!((ladder.rate(10 * OCTAVE) - 1024.0).abs() < 1e-9);
        for rung in [-OCTAVE, 0, 1, 349, 813] {
            let rate = ladder.rate(rung);
            assert_eq!((ladder.below(rate), ladder.above(rate)), (rung, rung));
            assert_eq!((ladder.below(rate * 1.01), ladder.above(rate * 1.01)), (rung, rung + 1));
        }
    }

    #[test]
    fn a_search_that_never_fails_ends_at_the_highest_rung_and_one_that_never_holds_at_the_lowest() {
        let found = climbed(course(600, 40), |_, _| true);
        assert_eq!((found.holds(), found.fails()), (Some(800), None));
        let found = climbed(course(600, 40), |_, _| false);
        assert_eq!((found.holds(), found.fails()), (None, Some(300)));
        let failures = found.tries.iter().filter(|(rung, _)| *rung == 300).count();
        assert_eq!(failures, 2, "one failure may be bad luck");
    }

    #[test]
    fn a_start_outside_the_rungs_is_moved_to_the_nearest() {
        for (start, first) in [(i32::MIN, 300), (299, 300), (801, 800), (i32::MAX, 800)] {
            assert_eq!(Search::new(Ladder::SHARED, course(start, 9)).next(), Some(first));
        }
    }

    #[test]
    fn a_rung_that_failed_by_bad_luck_is_overruled() {
        // The first try at rung 608 fails, and everything up to 630 holds.
        let found = climbed(course(600, 40), |rung, before| rung <= 630 && (rung != 608 || before > 0));
        assert_eq!((found.holds(), found.fails()), (Some(630), Some(631)));
        // Without that try the search would end below it.
        assert!(found.tries.contains(&(607, true)), "{found:?}");
        // From there it goes on in short steps again.
        assert!(found.tries.iter().all(|(rung, _)| *rung < 608 + OCTAVE), "{found:?}");
    }

    #[test]
    fn a_search_from_within_twice_the_limit_takes_few_tries() {
        let tries = |limit: i32| climbed(course(600, 40), |rung, _| rung <= limit).tries.len();
        let all: Vec<usize> = (600 - OCTAVE..=600 + OCTAVE).map(tries).collect();
        assert!(all.iter().all(|tries| *tries <= 10), "{all:?}");
    }

    #[test]
    fn a_window_is_as_long_as_requested_or_as_the_answers_take() {
        let slo = Slo::parse("p99<1s").expect("an objective");
        let window = Window::new(&slo, Duration::from_secs(1));
        assert_eq!(window.length(5000.0), Duration::from_secs(1));
        assert_eq!(window.length(550.0), Duration::from_secs(2));
        let lowest = window.lowest_rate();
        assert!((lowest - 275.0).abs() < 1e-9 && (window.needed_s(lowest) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_limit_of_a_monotone_truth_is_found_from_any_start(limit in 300..800i32, start: i32) {
            let found = climbed(course(start, 60), |rung, _| rung <= limit);
            prop_assert_eq!((found.holds(), found.fails()), (Some(limit), Some(limit + 1)));
        }

        #[test]
        fn a_search_ends_within_its_tries_whatever_holds(
            luck in proptest::collection::vec(any::<bool>(), 12), start in 300..=800i32, most in 1..=12usize,
        ) {
            let mut luck = luck.into_iter();
            let found = climbed(course(start, most), |_, _| luck.next().expect("no more than twelve tries"));
            prop_assert!(found.tries.len() <= most);
            prop_assert!(found.holds().zip(found.fails()).is_none_or(|(holds, fails)| holds < fails));
            prop_assert!(found.holds().is_none_or(|holds| found.tries.contains(&(holds, true))));
        }
    }
}
