//! Whether work grows no faster than its input, for the tests of all crates. No crate needs this except in its tests.
//!
//! A test has no instruction counter on a virtual machine, and CPU time varies on a shared one: the same work has taken three times
//! as long a moment later. So one measurement decides nothing. Pairs of measurements follow each other until they agree.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What is too much for twice the input. What is linear takes twice the time, and what is quadratic four times.
const TOO_MUCH: u32 = 3;

/// Work counts as near-linear when this many more pairs lie below [`TOO_MUCH`] than above it. If noise puts one pair in four on the wrong
/// side, quadratic work passes once in 27 times.
const SETTLED: i32 = 3;

/// Work is refused when this many more lie above it than below. Then linear work is refused once in 7,000 times (the gambler's ruin).
const REFUSED: i32 = -8;

/// What is shorter is repeated within one measurement, because an interrupt would weigh too much.
const LEAST: Duration = Duration::from_millis(10);

/// Checks that work on `twice` the input takes about twice the CPU time of work on `some` of it. The error is the last pair of times.
///
/// # Errors
///
/// The work grows faster than its input.
pub fn near_linear(some: &dyn Fn(), twice: &dyn Fn()) -> Result<(), String> {
    let repeats =
        (0..10).map(|power| 1 << power).find(|&repeats| cpu(some, repeats) >= LEAST).unwrap_or(1 << 10);
    let mut balance = 0;
    loop {
        let times = [cpu(some, repeats), cpu(twice, repeats)];
        balance += if times[1] < TOO_MUCH * times[0] { 1 } else { -1 };
        if balance >= SETTLED {
            return Ok(());
        }
        if balance <= REFUSED {
            return Err(format!("{:?} and {:?} for twice the input", times[0], times[1]));
        }
    }
}

/// Makes work for an input of this size and for one of twice the size, and asserts the same of both.
///
/// # Panics
///
/// The work grows faster than its input.
#[track_caller]
pub fn is_near_linear<W: Fn()>(size: usize, work: impl Fn(usize) -> W) {
    let (some, twice) = (work(size), work(2 * size));
    assert_eq!(near_linear(&some, &twice), Ok(()));
}

/// The CPU time of this thread in some work that is done so many times.
fn cpu(work: &dyn Fn(), repeats: usize) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let began = now();
    (0..repeats).for_each(|_| work());
    now().saturating_sub(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up pairs of so many numbers.
    fn pairs(of: usize, with: usize) -> u64 {
        let other =
            |one: usize| (0..with).map(|other| std::hint::black_box((one ^ other) as u64)).sum::<u64>();
        (0..of).map(other).sum()
    }

    #[test]
    fn what_is_quadratic_is_refused_and_what_is_linear_is_not() {
        let work = |of, with| move || assert!(pairs(of, with) > 0);
        assert_eq!(near_linear(&work(300, 300), &work(600, 300)), Ok(()));
        assert!(near_linear(&work(300, 300), &work(600, 600)).is_err());
    }
}
