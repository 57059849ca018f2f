//! A trial that searches the highest rate at which its objective holds: which windows it drives, and what they show. Pure.
//!
//! A short closed loop says where to begin. Then each try is a window of an open loop at a rung of the ladder that all
//! trials share.

use std::collections::BTreeMap;

use load::search::{Course, HIGHEST, Ladder, Search, Window};
use load::{Broken, Slo};
use measurement::MaxRate;
use measurement::doubt::GENERATOR_BUSY;

use crate::observation::Timing;

/// The longest window of the closed loop, seconds.
const PROBE_S: f64 = 0.5;
/// The rate that is tried first, as a share of the closed loop's. An open loop waits longer than a closed one at the same
/// rate.
const START: f64 = 0.8;
/// The distance to the second rung: 17 %.
const STRIDE: i32 = 8;
/// The number of tries at most.
const MOST: usize = 12;
/// The number of windows that tries usually take, with the time in which the server works off what it was sent too fast.
const USUAL: f64 = 10.0;
/// The warm-up of each try, seconds. The server is warm, and only connections are new.
const SETTLE_S: f64 = 0.2;
/// No try begins later than this many times the expected duration.
const PATIENCE: f64 = 3.0;

/// A climb in progress: drive what [`Climb::next`] returns, and pass the result to [`Climb::tried`].
#[derive(Debug)]
pub struct Climb {
    objective: Slo,
    timing: Timing,
    window: Window,
    search: Search,
    tries: u32,
    /// What the last try at a rung that failed showed.
    failed: BTreeMap<i32, Failed>,
}

#[derive(Debug)]
struct Failed {
    why: Broken,
    /// The share of the window in which the generator's busiest core worked.
    busiest_core: f64,
}

/// A window to drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Try {
    rung: i32,
    /// Arrivals per second.
    pub per_s: f64,
    /// The durations and the timeout.
    pub timing: Timing,
}

/// The expected duration of all windows of a climb, seconds.
pub fn estimate_s(timing: Timing) -> f64 {
    probe(timing).measure_s + USUAL * (SETTLE_S + timing.measure_s)
}

/// How long after its beginning a climb may begin another try, seconds.
pub fn longest_s(timing: Timing) -> f64 {
    PATIENCE * (timing.warmup_s + estimate_s(timing))
}

/// The closed loop that says where to begin.
pub fn probe(timing: Timing) -> Timing {
    Timing { measure_s: timing.measure_s.min(PROBE_S), ..timing }
}

impl Climb {
    /// A climb in a trial of this timing, whose closed loop carried so many requests per second.
    pub fn new(objective: &Slo, timing: Timing, closed_per_s: f64) -> Self {
        let ladder = Ladder::SHARED;
        let window = Window::new(objective, std::time::Duration::from_secs_f64(timing.measure_s));
        let lowest = ladder.above(window.lowest_rate().max(ladder.base));
        let rungs = lowest..=ladder.below(HIGHEST).max(lowest);
        let course = Course { rungs, start: ladder.below(START * closed_per_s), stride: STRIDE, most: MOST };
        Self {
            objective: objective.clone(),
            timing,
            window,
            search: Search::new(ladder, course),
            tries: 0,
            failed: BTreeMap::new(),
        }
    }

    /// The next try. None if the rate is found, or there were too many tries.
    pub fn next(&self) -> Option<Try> {
        let rung = self.search.next()?;
        let per_s = self.search.rate(rung);
        let measure_s = self.window.length(per_s).as_secs_f64();
        Some(Try { rung, per_s, timing: Timing { warmup_s: SETTLE_S, measure_s, ..self.timing } })
    }

    /// Records why the objective did not hold in a try, or that it held; and the share of the window in which the
    /// generator's busiest core worked.
    pub fn tried(&mut self, made: Try, broken: Option<Broken>, busiest_core: f64) {
        self.search.tried(made.rung, broken.is_none());
        self.tries += 1;
        if let Some(why) = broken {
            self.failed.insert(made.rung, Failed { why, busiest_core });
        }
    }

    /// The highest rate at which the objective held.
    ///
    /// # Errors
    /// It held at none: the lowest rate that was tried, what was seen there, and what to do.
    pub fn found(&self) -> Result<MaxRate, String> {
        let fails = self.search.fails();
        let failed = fails.and_then(|rung| self.failed.get(&rung));
        if let Some(holds) = self.search.holds() {
            return Ok(MaxRate {
                per_s: self.search.rate(holds),
                fails_at: fails.map(|rung| self.search.rate(rung)),
                busiest_core: failed.map_or(0.0, |failed| failed.busiest_core),
                tries: self.tries,
            });
        }
        let objective = &self.objective;
        let Some((rung, failed)) = fails.zip(failed) else {
            return Err(format!(
                "there was no time to try `{objective}` at any rate: the server answers too late"
            ));
        };
        let busy = match failed.busiest_core > GENERATOR_BUSY {
            true => "; the generator was at its limit, so the server may meet it",
            false => "",
        };
        Err(format!(
            "`{objective}` does not hold at {:.0} requests per second, the lowest rate that was tried: {}{busy}; use a \
             weaker objective, or a longer window (measure_s), in which lower rates are tried",
            self.search.rate(rung),
            failed.why
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing { warmup_s: 0.5, measure_s: 1.0, timeout_s: 5.0 };

    fn slo() -> Slo {
        Slo::parse("p99<20ms,errors<0.1%").expect("two objectives")
    }

    /// A climb in which rates up to `limit` hold, after a closed loop that carried `closed` requests per second.
    fn climbed(limit: f64, closed: f64, busiest_core: f64) -> Climb {
        let mut climb = Climb::new(&slo(), TIMING, closed);
        while let Some(made) = climb.next() {
            let broken = || Broken::Failed { share: 0.5, failures: None };
            climb.tried(made, (made.per_s > limit).then(broken), busiest_core);
            assert!(climb.tries <= MOST as u32, "it ends");
        }
        climb
    }

    #[test]
    fn the_rate_is_the_same_rung_wherever_the_climb_begins() {
        let ladder = Ladder::SHARED;
        for limit in [400.0, 3_000.0, 47_000.0, 1_234_567.0] {
            for times in [0.4, 0.8, 1.0, 1.5, 4.0] {
                let found = climbed(limit, limit * times, 0.5).found().expect("a rate holds");
                let rung = ladder.below(limit);
                let expected = (ladder.rate(rung), Some(ladder.rate(rung + 1)));
                assert_eq!((found.per_s, found.fails_at), expected, "{limit} {times}");
            }
        }
    }

    #[test]
    fn each_try_has_the_answers_that_the_objective_needs() {
        let climb = climbed(0.0, 50_000.0, 0.5);
        let made = Climb::new(&slo(), TIMING, 100.0).next().expect("a try");
        assert!(made.per_s * made.timing.measure_s >= 1000.0, "{made:?}");
        assert!(made.timing.measure_s <= 4.0 * TIMING.measure_s, "{made:?}");
        let slow = climb.failed.keys().map(|rung| climb.search.rate(*rung)).fold(f64::INFINITY, f64::min);
        assert!((275.0..275.0 * 1.02).contains(&slow), "the climb went down to the lowest rung: {slow}");
    }

    #[test]
    fn an_objective_that_no_rate_meets_says_what_was_seen_at_the_lowest() {
        let why = climbed(0.0, 50_000.0, 0.95).found().expect_err("no rate holds");
        for said in
            ["`p99<20ms,errors<0.1%`", "requests per second", "50.00 % failed", "generator", "measure_s"]
        {
            assert!(why.contains(said), "{said}: {why}");
        }
        let why = climbed(0.0, 0.0, 0.5).found().expect_err("no rate holds");
        assert!(!why.contains("generator"), "{why}");
        let why = Climb::new(&slo(), TIMING, 0.0).found().expect_err("nothing was tried");
        assert!(why.contains("no time"), "{why}");
    }

    #[test]
    fn a_server_that_carries_more_than_is_tried_has_no_rate_that_fails() {
        let found = climbed(f64::INFINITY, 5e6, 0.5).found().expect("all hold");
        assert_eq!((found.fails_at, found.busiest_core), (None, 0.0));
        assert!(found.per_s > 9e6 && found.per_s <= HIGHEST, "{found:?}");
    }
}
