//! Searches the highest sustainable rate: doubles the rate until it fails, then halves the bracket. Pure.

/// A search in progress. Try the rate that [`Search::next`] returns, and pass the result to [`Search::tried`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The highest rate that held.
    pub holds: Option<f64>,
    /// The lowest rate that failed.
    pub fails: Option<f64>,
    start: f64,
    lowest: f64,
    highest: f64,
}

/// The ratio of the bracket's ends at which the search stops. Trials at one rate differ by about as much.
const NEAR: f64 = 1.05;

impl Search {
    /// Starts at `start` and stays between `lowest` and `highest`. All rates are per second.
    pub fn new(start: f64, lowest: f64, highest: f64) -> Self {
        Self { holds: None, fails: None, start: start.clamp(lowest, highest), lowest, highest }
    }

    /// The rate to try next. `None` if the bracket is narrow enough, or a bound is reached.
    pub fn next(&self) -> Option<f64> {
        match (self.holds, self.fails) {
            (None, None) => Some(self.start),
            (Some(holds), None) => (holds < self.highest).then(|| (holds * 2.0).min(self.highest)),
            (None, Some(fails)) => (fails > self.lowest).then(|| (fails / 2.0).max(self.lowest)),
            // The geometric mean, because the bracket is measured as a ratio.
            (Some(holds), Some(fails)) => (fails / holds > NEAR).then(|| (holds * fails).sqrt()),
        }
    }

    /// Records whether a rate held. If a rate fails below one that held, the bracket moves down: the failure counts.
    pub fn tried(&mut self, rate: f64, held: bool) {
        if held {
            self.holds = Some(self.holds.map_or(rate, |known| known.max(rate)));
        } else {
            self.fails = Some(self.fails.map_or(rate, |known| known.min(rate)));
            self.holds = self.holds.filter(|holds| *holds < rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: f64, start: f64, highest: f64) -> (Search, usize) {
        let (mut search, mut steps) = (Search::new(start, start / 1000.0, highest), 0);
        while let Some(rate) = search.next() {
            search.tried(rate, rate <= limit);
            steps += 1;
            assert!(steps < 60, "it ends");
        }
        (search, steps)
    }

    #[test]
    fn the_limit_is_bracketed_from_below_and_from_above() {
        for limit in [3.0, 999.0, 12_345.0, 800_000.0] {
            for start in [1.0, 1000.0, 5_000_000.0 / 8.0] {
                let (found, steps) = search(limit, start, 5_000_000.0);
                if limit < start / 1000.0 {
                    continue;
                }
                let (holds, fails) = (found.holds.expect("held"), found.fails.expect("failed"));
                assert!(
                    holds <= limit && limit < fails && fails / holds <= NEAR,
                    "{limit} {start}: {found:?}"
                );
                assert!(steps <= 40);
            }
        }
    }

    #[test]
    fn a_search_that_never_fails_ends_at_the_highest_rate_and_one_that_never_holds_at_the_lowest() {
        let (found, _) = search(f64::INFINITY, 1000.0, 50_000.0);
        assert_eq!((found.holds, found.fails), (Some(50_000.0), None));
        let (found, steps) = search(0.0, 1000.0, 50_000.0);
        assert!(found.holds.is_none() && found.fails == Some(1.0) && steps <= 12, "{found:?}");
    }
}
