//! Decides when the next exchange may begin. Pure: the caller passes the time.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stats::SplitMix64;

/// When to stop beginning exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// After this time.
    After(Duration),
    /// After this many exchanges.
    Count(u64),
}

/// What makes an exchange begin.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Arrivals {
    /// Closed loop: a caller sends its next request as soon as it has its answer.
    #[default]
    Closed,
    /// Open loop: a schedule that does not depend on the answers.
    Open(ArrivalSchedule),
    /// Open loop: at times that were recorded.
    Recorded(Recording),
}

impl Arrivals {
    /// Whether arrivals do not depend on the answers.
    #[inline]
    pub fn are_open(&self) -> bool {
        *self != Self::Closed
    }

    /// Thread `number`'s part of these arrivals, shared evenly by `threads`.
    pub fn shared(&self, threads: usize, number: usize) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Open(schedule) => Self::Open(schedule.shared(threads, number)),
            Self::Recorded(recording) => {
                Self::Recorded(Recording { first: number, step: threads, ..recording.clone() })
            }
        }
    }
}

/// Arrivals that were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The times of arrivals after the beginning, in nanoseconds, in ascending order.
    times: Arc<Vec<u64>>,
    /// How many times as fast they come as they were recorded.
    speed: f64,
    /// The number of the first arrival, and by how much the next ones differ.
    first: usize,
    step: usize,
}

impl Recording {
    /// Arrivals at these times in nanoseconds, in ascending order, `speed` times as fast.
    pub fn new(times: Arc<Vec<u64>>, speed: f64) -> Self {
        Self { times, speed, first: 0, step: 1 }
    }

    /// How many times as fast arrivals come as they were recorded.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// When the arrival with this number is due.
    pub(crate) fn when(&self, number: u64) -> Option<Duration> {
        let place = usize::try_from(number).ok()?.checked_mul(self.step)?.checked_add(self.first)?;
        let nanos = *self.times.get(place)? as f64 / self.speed;
        Some(Duration::from_nanos(nanos as u64))
    }
}

/// The schedule of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ArrivalSchedule {
    /// Arrivals per second at the beginning.
    pub from: f64,
    /// Arrivals per second at the end of the measured window; in between the rate changes linearly.
    pub to: f64,
    /// The gaps between arrivals.
    pub gaps: Gaps,
}

/// The gaps between arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gaps {
    /// All gaps are equal.
    Constant,
    /// Exponentially distributed, as independent users produce them (a Poisson process), from this seed.
    Poisson(u64),
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Begin an exchange that was due this long after the start.
    Send(Duration),
    /// Begin nothing for this long.
    Wait(Duration),
    /// Begin no more exchanges.
    Stop,
}

/// Paces one phase of a drive.
#[derive(Debug, Clone)]
pub struct Pacer {
    arrivals: Arrivals,
    stop: Stop,
    /// The time over which the rate changes, in seconds.
    length: f64,
    /// The time of the next arrival in a process of rate 1: its number for constant gaps, a sum of exponentials for Poisson.
    mass: f64,
    /// The number of the arrival that `mass` belongs to.
    number: u64,
    random: SplitMix64,
}

impl Pacer {
    /// Creates a pacer that starts now. `offset` (0..1) shifts its schedule by that fraction of a gap, so that the schedules
    /// of several threads interleave.
    pub fn new(arrivals: Arrivals, stop: Stop, offset: f64) -> Self {
        let length = match stop {
            Stop::After(length) => length.as_secs_f64(),
            Stop::Count(count) => match &arrivals {
                Arrivals::Open(schedule) => 2.0 * count as f64 / (schedule.from + schedule.to),
                Arrivals::Closed | Arrivals::Recorded(_) => 0.0,
            },
        };
        let seed = match &arrivals {
            Arrivals::Open(ArrivalSchedule { gaps: Gaps::Poisson(seed), .. }) => *seed,
            _ => 0,
        };
        let random = SplitMix64::new(seed);
        let mut pacer = Self { arrivals, stop, length, mass: offset, number: 0, random };
        pacer.mass += pacer.first_gap();
        pacer
    }

    /// What to do at `elapsed` after the start, when `sent` exchanges have begun. The due time depends on `sent` alone.
    pub fn pace(&mut self, elapsed: Duration, sent: u64) -> Pace {
        match self.stop {
            Stop::After(length) if elapsed >= length => return Pace::Stop,
            Stop::Count(count) if sent >= count => return Pace::Stop,
            _ => {}
        }
        let due = match &self.arrivals {
            Arrivals::Closed => return Pace::Send(elapsed),
            Arrivals::Recorded(recording) => recording.when(sent).unwrap_or(Duration::MAX),
            Arrivals::Open(schedule) => {
                let schedule = *schedule;
                while self.number < sent {
                    self.number += 1;
                    self.mass += self.gap();
                }
                let due = schedule.when(self.mass, self.length);
                Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX)
            }
        };
        match self.stop {
            // No further arrival is due before the end.
            Stop::After(length) if due >= length => Pace::Wait(length.saturating_sub(elapsed)),
            _ if due <= elapsed => Pace::Send(due),
            _ => Pace::Wait(due.saturating_sub(elapsed)),
        }
    }

    fn first_gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Open(ArrivalSchedule { gaps: Gaps::Poisson(_), .. }) => self.gap(),
            _ => 0.0,
        }
    }

    /// The next gap of a process of rate 1.
    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Open(ArrivalSchedule { gaps: Gaps::Poisson(_), .. }) => {
                // The top 53 bits as a number in (0, 1].
                let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                -uniform.ln()
            }
            _ => 1.0,
        }
    }
}

impl ArrivalSchedule {
    /// Thread `number`'s part of this schedule, shared evenly by `threads`.
    pub fn shared(self, threads: usize, number: usize) -> Self {
        let share = threads.max(1) as f64;
        let gaps = match self.gaps {
            Gaps::Constant => Gaps::Constant,
            // Independent Poisson processes add up to a Poisson process. Equal seeds would make all threads send in step.
            Gaps::Poisson(seed) => {
                Gaps::Poisson(seed.wrapping_add((number as u64).wrapping_mul(0x5851_f42d_4c95_7f2d)))
            }
        };
        Self { from: self.from / share, to: self.to / share, gaps }
    }

    /// When the arrival with this mass is due, in seconds: the inverse of `from t + (to - from) t^2 / (2 length)`.
    fn when(self, mass: f64, length: f64) -> f64 {
        let slope = if length > 0.0 { (self.to - self.from) / length } else { 0.0 };
        if slope.abs() < f64::EPSILON {
            return mass / self.from;
        }
        let under = self.from * self.from + 2.0 * slope * mass;
        if under < 0.0 {
            return f64::INFINITY; // a falling rate reaches zero first
        }
        // This form does not suffer from cancellation for small slopes.
        2.0 * mass / (self.from + under.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn open(from: f64, to: f64, gaps: Gaps) -> Arrivals {
        Arrivals::Open(ArrivalSchedule { from, to, gaps })
    }

    /// The due times of all arrivals until `stop`. The clock jumps from one to the next.
    fn arrivals(arrivals: Arrivals, stop: Stop) -> Vec<Duration> {
        let mut pacer = Pacer::new(arrivals, stop, 0.0);
        let (mut elapsed, mut due) = (Duration::ZERO, Vec::new());
        loop {
            match pacer.pace(elapsed, due.len() as u64) {
                Pace::Send(time) => due.push(time),
                Pace::Wait(time) => elapsed += time.max(Duration::from_nanos(1)),
                Pace::Stop => return due,
            }
        }
    }

    #[test]
    fn a_closed_loop_sends_until_its_end() {
        let nearly = SECOND - Duration::from_nanos(1);
        let table = [
            (Stop::After(SECOND), Duration::ZERO, u64::MAX, Pace::Send(Duration::ZERO)),
            (Stop::After(SECOND), nearly, 0, Pace::Send(nearly)),
            (Stop::After(SECOND), SECOND, 0, Pace::Stop),
            (Stop::Count(3), SECOND * 3600, 2, Pace::Send(SECOND * 3600)),
            (Stop::Count(3), Duration::ZERO, 3, Pace::Stop),
            (Stop::Count(0), Duration::ZERO, 0, Pace::Stop),
        ];
        for (stop, elapsed, sent, expected) in table {
            let mut pacer = Pacer::new(Arrivals::Closed, stop, 0.0);
            assert_eq!(pacer.pace(elapsed, sent), expected, "{stop:?} {elapsed:?} {sent}");
        }
    }

    #[test]
    fn constant_arrivals_come_at_their_times_and_as_many_as_fit() {
        let due = arrivals(open(1000.0, 1000.0, Gaps::Constant), Stop::After(SECOND));
        assert_eq!(due.len(), 1000);
        assert!(due.iter().enumerate().all(|(k, time)| time.as_micros().abs_diff(k as u128 * 1000) <= 1));
    }

    #[test]
    fn a_late_clock_makes_arrivals_catch_up_with_their_intended_times() {
        let mut pacer = Pacer::new(open(1000.0, 1000.0, Gaps::Constant), Stop::After(SECOND), 0.0);
        let late = Duration::from_millis(500);
        for sent in 0..=500 {
            assert_eq!(pacer.pace(late, sent), Pace::Send(Duration::from_millis(sent)));
        }
        assert!(matches!(pacer.pace(late, 501), Pace::Wait(_)));
    }

    #[test]
    fn a_ramp_sends_the_mean_of_its_ends() {
        let due = arrivals(open(100.0, 900.0, Gaps::Constant), Stop::After(SECOND * 2));
        assert!((995..=1005).contains(&due.len()), "{}", due.len());
        let early = due.iter().filter(|time| **time < SECOND).count();
        assert!((295..=305).contains(&early), "100 to 500 a second in the first half: {early}");
        assert!(due.is_sorted());
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
        let due = arrivals(open(10_000.0, 10_000.0, Gaps::Poisson(7)), Stop::Count(100_000));
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e4).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.05, "an exponential's variance is its mean squared: {variance}");
        let again = arrivals(open(10_000.0, 10_000.0, Gaps::Poisson(7)), Stop::Count(100_000));
        assert_eq!(due, again, "a seed replays");
    }

    #[test]
    fn threads_share_a_rate_and_interleave() {
        let whole = ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Constant };
        let mut all: Vec<Duration> = (0..4)
            .flat_map(|number| {
                let offset = number as f64 / 4.0;
                let stop = Stop::After(SECOND);
                let mut pacer = Pacer::new(Arrivals::Open(whole.shared(4, number)), stop, offset);
                (0..250).map(move |sent| match pacer.pace(SECOND - Duration::from_nanos(1), sent) {
                    Pace::Send(due) => due,
                    other => panic!("{other:?}"),
                })
            })
            .collect();
        all.sort();
        assert!(all.windows(2).all(|pair| (pair[1] - pair[0]).as_micros().abs_diff(1000) <= 1));
    }
}
