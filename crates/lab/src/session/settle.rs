//! Drives a fresh server in short slices until its speed stands still: how fast it is then, how long an operation takes its
//! callers, and how long it needs until then.

use std::time::Instant;

use measurement::{COMPILING, Measurement};
use serde::{Deserialize, Serialize};
use systems::trace;

use crate::observation::{Stage, Timing};
use crate::session::drive::Drive;
use crate::session::driver::Orders;
use crate::session::trial_error::TrialError;

/// What a first look finds out about a server's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speed {
    /// Nothing: it is not driven.
    Unasked,
    /// How long an answer takes, which is soon known.
    Soon,
    /// Also after which time the speed stands still.
    Steady,
}

/// What a first look at a server's speed shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Right answers per second, at the end.
    pub per_s: f64,
    /// How many callers there are: connections, and the exchanges that may be open on each.
    pub callers: f64,
    /// After how many seconds its speed stood still: 0 if it did so from the beginning, and None if it was still becoming faster at
    /// the end.
    pub settled_s: Option<f64>,
    /// How long the look at its speed took in all, seconds.
    pub took_s: f64,
}

impl Pace {
    /// How long a caller of a closed loop waits for an answer, seconds.
    pub fn cycle_s(&self) -> f64 {
        self.callers / self.per_s
    }
}

/// A slice of the drive, seconds.
const SLICE_S: f64 = 0.25;
/// The fewest slices: three times those that have an average with less noise than one.
const FEWEST: usize = 9;
/// As many are enough where only the time of an answer is asked for: the first has also made the connections.
const SOON: usize = 2;
/// A slice has at least so many answers of each caller, or it becomes longer.
const ANSWERS: f64 = 2.0;
/// Answers that take so long are not those of code that is still being compiled. Seconds.
const SLOW_S: f64 = 0.2;
/// Less CPU time than this in a slice varies by more than what is looked for: that of a server that waits most of the time.
const LEAST_CPU_S: f64 = 0.05;
/// The speed stands still if its last third exceeds the third before by no more than this.
const FASTER: f64 = 0.10;
/// The same for the CPU time of an answer, which is less noisy.
const CHEAPER: f64 = 0.04;
/// The number of last slices in which compilers had little to do, once the speed stands still: they take at most 2 s.
const RESTED: usize = 8;
/// While compilers work, a look may take so many times as long.
const PATIENCE: f64 = 2.0;
/// Another process may take so many times as long until its compilers rest.
const SLOWER: f64 = 1.2;

/// What a slice shows, as logarithms; higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    speed: f64,
    /// None if hardly any CPU time was counted.
    thrift: Option<f64>,
    /// The share of the CPU time that compilers took, not as a logarithm.
    compiling: f64,
}

/// Whether the speed stands still: the last third of the slices is hardly faster than the third before, and hardly cheaper, and
/// compilers have little to do in it. The thirds grow with the time, so that a slow change is noticed as well as a quick one, and
/// noise matters less and less. The compilers matter because a JVM on one core may stand still for ten seconds at a fifth of its
/// speed, while the better code is being made.
///
/// With noise of 10 % in the speed of a slice and of 4 % in its CPU time, a steady server passes at once in four of five cases; one
/// whose thirds differ by 16 % in both, in less than one of two hundred (the test below). What passes wrongly is noticed in the
/// windows of the trials, all together.
fn stands_still(slices: &[Slice]) -> bool {
    let third = slices.len() / 3;
    let (earlier, last) = slices.split_at(slices.len() - third);
    let before = earlier.get(earlier.len() - third..).unwrap_or(earlier);
    let gain = |of: fn(&Slice) -> Option<f64>| {
        let mean = |part: &[Slice]| part.iter().map(of).sum::<Option<f64>>().map(|sum| sum / third as f64);
        Some(mean(last)? - mean(before)?)
    };
    slices.len() >= FEWEST
        && gain(|slice| Some(slice.speed)).is_none_or(|gain| gain <= FASTER)
        && gain(|slice| slice.thrift).is_none_or(|gain| gain <= CHEAPER)
        && !is_compiling(slices)
}

/// Whether compilers took much of the CPU time of the last slices.
fn is_compiling(slices: &[Slice]) -> bool {
    let last = slices.len().min(RESTED);
    let share: f64 = slices.iter().rev().take(last).map(|slice| slice.compiling).sum();
    share > COMPILING * last as f64
}

/// Drives in slices until the speed stands still, at most as long as the timing's window says, or twice as long while compilers
/// work.
///
/// # Errors
/// Nothing was answered rightly in that time.
pub(super) fn settle(drive: &Drive<'_>, mut orders: Orders, speed: Speed) -> Result<Pace, TrialError> {
    let (began, longest_s) = (Instant::now(), orders.timing.measure_s);
    let (mut slice_s, mut driven_s, mut compiled_until_s) = (SLICE_S, 0.0, 0.0);
    let (mut slices, mut seen): (Vec<Slice>, Option<(f64, f64)>) = (Vec::new(), None);
    let mut settled_s = None;
    let mut wrong = String::new();
    loop {
        let left_s = longest_s * if is_compiling(&slices) { PATIENCE } else { 1.0 } - driven_s;
        if left_s <= 0.0 || settled_s.is_some() || drive.place.cancelled() {
            break;
        }
        let measure_s = slice_s.min(left_s);
        orders.timing = Timing { warmup_s: 0.0, measure_s, ..orders.timing };
        let (m, _) = drive.once(&orders)?;
        driven_s += measure_s;
        if let Some((class, why)) = m.first_errors.iter().next() {
            wrong = format!(" ({class}: {why})");
        }
        let callers = m.concurrency.max(1) as f64;
        let per_s = m.done() / m.elapsed_s.max(f64::MIN_POSITIVE);
        let cycle_s = callers / per_s;
        if m.successes > 0 {
            seen = Some((per_s, callers));
        }
        if m.successes as f64 >= callers && cycle_s > SLOW_S {
            settled_s = Some(0.0);
        } else if (m.successes as f64) < ANSWERS * callers {
            slice_s *= 2.0;
            slices.clear();
        } else {
            slices.extend(slice(&m));
            if slices.last().is_some_and(|slice| slice.compiling > COMPILING) {
                compiled_until_s = driven_s;
            }
            let soon = speed == Speed::Soon && slices.len() >= SOON;
            // A slice that became longer than its answers need shows that they were slower at first.
            let at_once = slices.len() <= FEWEST && slice_s <= (2.0 * ANSWERS * cycle_s).max(SLICE_S);
            if soon || stands_still(&slices) {
                // A speed that stands still did so in the last two thirds.
                settled_s =
                    Some(if soon || at_once { 0.0 } else { (driven_s / 2.0).max(SLOWER * compiled_until_s) });
            }
        }
    }
    if drive.place.cancelled() {
        return Err(TrialError::Interrupted);
    }
    let (per_s, callers) = seen.ok_or_else(|| {
        let connections = orders.work.connections();
        let reason = format!(
            "no right answer in {driven_s} s on {connections} connections{wrong}: use fewer (-c), or a longer --timeout"
        );
        TrialError::failed(Stage::Drive, reason)
    })?;
    trace::say(|| format!("it reaches {per_s:.0}/s after {driven_s:.1} s"));
    Ok(Pace { per_s, callers, settled_s, took_s: began.elapsed().as_secs_f64() })
}

fn slice(m: &Measurement) -> Option<Slice> {
    let speed = (m.done() / m.elapsed_s).ln();
    let counted = m.system.cpu_s >= LEAST_CPU_S;
    let thrift = counted.then(|| (m.done() / m.system.cpu_s).ln()).filter(|thrift| thrift.is_finite());
    speed.is_finite().then_some(Slice { speed, thrift, compiling: m.system.compiling_share().unwrap_or(0.0) })
}

#[cfg(test)]
mod tests {
    use stats::SplitMix64;

    use super::*;

    /// Slices of a server whose speed and thrift follow this course, with the noise of a shared machine.
    fn slices(count: usize, rng: &mut SplitMix64, course: impl Fn(f64) -> f64) -> Vec<Slice> {
        let slice = |at: usize| {
            let true_log = course((at as f64 + 0.5) * SLICE_S).ln();
            Slice {
                speed: true_log + 0.1 * rng.normal(),
                thrift: Some(true_log + 0.04 * rng.normal()),
                compiling: 0.0,
            }
        };
        (0..count).map(slice).collect()
    }

    /// After how many seconds it stands still, each of 1000 times, in order.
    fn settled(course: impl Fn(f64) -> f64 + Copy) -> Vec<f64> {
        let mut rng = SplitMix64::new(1);
        let run = |_| {
            let all = slices(80, &mut rng, course);
            let still = (1..=all.len()).find(|count| stands_still(&all[..*count]));
            still.unwrap_or(all.len()) as f64 * SLICE_S
        };
        let mut runs: Vec<f64> = (0..1000).map(run).collect();
        runs.sort_by(f64::total_cmp);
        runs
    }

    #[test]
    fn a_steady_server_stands_still_at_once() {
        let runs = settled(|_| 1.0);
        assert!(
            runs[500] == 2.25 && runs[900] <= 3.0 && runs[990] <= 6.0,
            "{:?}",
            [runs[500], runs[900], runs[990]]
        );
    }

    #[test]
    fn a_server_that_becomes_faster_is_driven_until_it_no_longer_does() {
        // It begins with a tenth of its speed, or with a half, and approaches it with these time constants. So long is it driven in
        // 95 % of the looks, and in half of them. The slow change of the last is hardly more than the noise of early slices.
        for (begins, constant, least, usual) in
            [(0.1, 1.0, 2.5, 4.0), (0.1, 3.0, 6.0, 9.0), (0.5, 3.0, 2.5, 9.0)]
        {
            let course = |t: f64| 1.0 - (1.0 - begins) * (-t / constant).exp();
            let runs = settled(course);
            let seen = [runs[50], runs[500]];
            assert!(seen[0] >= least && seen[1] >= usual, "{begins} {constant}: {seen:?}");
        }
    }

    #[test]
    fn a_difference_of_16_percent_between_thirds_is_rarely_missed() {
        let mut rng = SplitMix64::new(3);
        let passed = |rng: &mut SplitMix64, rise: f64| {
            let course = |t: f64| if t > 1.5 { 1.0 + rise } else { 1.0 };
            (0..4000).filter(|_| stands_still(&slices(FEWEST, rng, course))).count()
        };
        assert!((3100..3500).contains(&passed(&mut rng, 0.0)));
        assert!(passed(&mut rng, 0.16) < 20);
    }

    #[test]
    fn without_cpu_time_the_speed_alone_decides() {
        let course = |speeds: &[f64]| -> Vec<Slice> {
            speeds.iter().map(|speed| Slice { speed: *speed, thrift: None, compiling: 0.0 }).collect()
        };
        assert!(stands_still(&course(&[0.0, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])));
        assert!(!stands_still(&course(&[0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6])));
        assert!(!stands_still(&course(&[1.0; FEWEST - 1])));
    }

    #[test]
    fn a_speed_does_not_stand_still_while_compilers_work() {
        let slices = |compiling: [f64; 3]| {
            let slice = |at: usize| Slice { speed: 1.0, thrift: None, compiling: compiling[at / RESTED] };
            (0..3 * RESTED).map(slice).collect::<Vec<_>>()
        };
        assert!(stands_still(&slices([0.5, 0.4, 0.01])));
        assert!(!stands_still(&slices([0.0, 0.0, 0.3])));
    }
}
