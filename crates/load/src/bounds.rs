//! What bounds each row of a tally that another machine sends: the other rows, the job, and what is possible in the time that the
//! drive took. What another machine says of its drive is checked as strictly as what a client driver says of its own
//! (docs/contracts.md, "A client driver").
//!
//! The table `rows` names a function for each row, which gets the value and the [`Scope`]. Where one row is the sum or the number
//! of others, it is demanded exactly. Otherwise bounds have room, because an honest tally must never be refused: exchanges may be
//! under way when the window opens and when it closes, clocks differ, and the kernel adds CPU time up in ticks.

mod brought;
mod counts;
mod times;

use std::fmt;
use std::time::Duration;

use crate::pacer::{Arrivals, Gaps};
use crate::target::{Http, Traffic};
use crate::times::Times;
use crate::{Ending, Job, Tally};

pub(crate) use brought::*;
pub(crate) use counts::*;
pub(crate) use times::*;

/// What a generator was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its part of the job.
    pub job: &'a Job,
    /// The time from the order to the tally, on the clock of who gave the order.
    pub lasted: Duration,
    /// Whether the drive was not ended early.
    pub whole: bool,
}

/// A value that contradicts others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The name of its row.
    pub row: &'static str,
    /// The value, and what it contradicts.
    pub why: String,
}

impl Contradiction {
    /// What a row's value contradicts.
    pub fn new(row: &'static str, why: impl Into<String>) -> Self {
        Self { row, why: why.into() }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what it says of `{}` makes no sense: {}", self.row, self.why)
    }
}

/// The bytes per second that a thread can move: more than the memory of any machine gives to one core.
const BYTES_PER_S: f64 = 1e11;
/// The exchanges or reads per second of a thread, of which a fast one does five millions.
const STEPS_PER_S: f64 = 1e8;
/// The connections per second of a thread. The kernel needs 10 us for one.
const CONNECTIONS_PER_S: f64 = 1e6;
/// The fewest bytes of a request or an answer: the head of a frame of HTTP/2 and a byte of HPACK.
const LEAST: u64 = 10;

/// What the bounds of a tally are made of.
pub(crate) struct Scope<'a> {
    tally: &'a Tally,
    job: &'a Job,
    whole: bool,
    /// No time of the drive is longer.
    lasted: Duration,
    open: bool,
    /// Whether the window begins and ends with no exchange open.
    finishes: bool,
    failures: u64,
    /// Exchanges of the window, and arrivals that were not sent.
    arrivals: u64,
    /// The exchanges that the connections can carry at once.
    places: u64,
    threads: u64,
}

impl<'a> Scope<'a> {
    pub(crate) fn of(tally: &'a Tally, asked: &Asked<'a>) -> Self {
        let Asked { job, lasted, whole } = *asked;
        Self {
            tally,
            job,
            whole,
            lasted: roomy(lasted),
            open: job.arrivals.are_open(),
            finishes: job.ending == Ending::Finish || matches!(job.target.traffic, Traffic::Frames(_)),
            failures: sum(&tally.errors),
            arrivals: tally.attempts.saturating_add(tally.dropped),
            places: (job.connections as u64).saturating_mul(job.pipeline as u64),
            threads: job.workers() as u64,
        }
    }

    fn http(&self) -> Option<&Http> {
        match &self.job.target.traffic {
            Traffic::Http(http) => Some(http),
            Traffic::Frames(_) => None,
        }
    }

    /// How many exchanges of the window may have begun before it.
    fn edge(&self) -> u64 {
        if self.finishes { 0 } else { self.places }
    }

    /// How many connections were replaced. Their unfinished exchanges began anew on others.
    fn renewed(&self) -> u64 {
        self.tally.multiplexed.map_or(0, |counts| counts.renewed)
    }

    /// How much of something all threads can do in the whole drive.
    fn possible(&self, per_s: f64) -> u64 {
        (per_s * self.threads as f64 * (self.lasted.as_secs_f64() + 0.1)) as u64
    }

    /// The exchanges that are possible in the whole drive.
    fn exchanges(&self) -> u64 {
        self.possible(STEPS_PER_S).saturating_add(self.places)
    }

    /// The fewest and the most arrivals that the schedule has in this time. `None` without one.
    fn due(&self, time: Duration) -> Option<(f64, f64)> {
        let Arrivals::Open(schedule) = &self.job.arrivals else { return None };
        let all = self.job.among.map_or(self.threads, |among| among.threads as u64);
        let mean = |rate: f64| rate * time.as_secs_f64() * self.threads as f64 / all.max(1) as f64;
        let (least, most) = (mean(schedule.from.min(schedule.to)), mean(schedule.from.max(schedule.to)));
        // Each thread has its own schedule, which may begin with an arrival.
        let begins = 2.0 * self.threads as f64;
        let chance = |mean: f64| match schedule.gaps {
            Gaps::Constant => begins,
            // Ten standard deviations.
            Gaps::Poisson(_) => begins + 100.0 + 10.0 * mean.sqrt(),
        };
        Some((least * 0.9 - chance(least), most * 1.1 + chance(most)))
    }
}

/// A time with room for another clock, and for the buckets of a histogram.
fn roomy(time: Duration) -> Duration {
    time.saturating_add(time / 50).saturating_add(Duration::from_millis(20))
}

/// What is wrong with a value.
type Fit = Result<(), String>;

fn refuse(value: impl fmt::Display, by: &str, bound: impl fmt::Display) -> Fit {
    Err(format!("{value} contradicts {by}, by which it is {bound}"))
}

fn at_most(value: u64, most: u64, by: &str) -> Fit {
    if value <= most { Ok(()) } else { refuse(value, by, format!("at most {most}")) }
}

fn at_least(value: u64, least: u64, by: &str) -> Fit {
    if value >= least { Ok(()) } else { refuse(value, by, format!("at least {least}")) }
}

fn exactly(value: u64, right: u64, by: &str) -> Fit {
    if value == right { Ok(()) } else { refuse(value, by, right) }
}

fn no_longer(value: Duration, most: Duration, by: &str) -> Fit {
    let seconds = |time: Duration| format!("{:.3} s", time.as_secs_f64());
    if value <= most { Ok(()) } else { refuse(seconds(value), by, format!("at most {}", seconds(most))) }
}

/// Whether there is a value exactly where the job asks for it.
fn present(is: bool, asked: bool, by: &str) -> Fit {
    let word = |is: bool| if is { "a value" } else { "no value" };
    if is == asked { Ok(()) } else { Err(format!("there is {}, and {by} demands {}", word(is), word(asked))) }
}

/// Puts the name of a value of a row that has several before what is wrong with it.
fn part(name: &str, fit: Fit) -> Fit {
    fit.map_err(|why| format!("{name} of {why}"))
}

fn sum<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Times that end in the drive, at most so many, and all of answers.
fn answered(times: &Times, most: u64, by: &str, scope: &Scope<'_>) -> Fit {
    part("a number of ages", at_most(times.ages(), 0, "what it measures"))?;
    counted(times, most, by, scope)
}

/// Times and ages that end in the drive, at most so many.
fn counted(times: &Times, most: u64, by: &str, scope: &Scope<'_>) -> Fit {
    part("a number of times", at_most(times.len(), most, by))?;
    let longest = Duration::from_nanos(times.all().max());
    part("a time", no_longer(longest, scope.lasted, "the length of the drive"))
}

#[cfg(test)]
mod tests;
