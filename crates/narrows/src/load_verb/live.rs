//! The seconds of a drive as they pass: throughput, percentiles and errors of each.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::findings::Unit;
use load::{Arrivals, Job, Tally};

/// How often a line is shown.
pub const EVERY: Duration = Duration::from_secs(1);

/// A line each second: the same line again on a terminal, plain lines elsewhere. Its end takes the line away.
pub struct Seconds {
    /// None where lines are plain.
    bar: Option<ProgressBar>,
    /// What each thread had counted when it last told, and the seconds it has told of.
    threads: Mutex<Vec<Told>>,
    open_loop: bool,
}

#[derive(Default, Clone)]
struct Told {
    /// In all.
    so_far: Counts,
    /// In its last second.
    second: Counts,
    seconds: u32,
}

/// What a line is made of.
#[derive(Clone)]
struct Counts {
    units: u64,
    errors: u64,
    behind: u64,
    response: Histogram<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { units: 0, errors: 0, behind: 0, response: Tally::default().response }
    }
}

impl Counts {
    fn of(tally: &Tally) -> Self {
        Self {
            units: tally.units,
            errors: tally.failures(),
            behind: tally.late + tally.dropped,
            response: tally.response.clone(),
        }
    }

    fn since(mut self, before: &Self) -> Self {
        self.units -= before.units;
        self.errors -= before.errors;
        self.behind -= before.behind;
        // The earlier histogram is a part of the later one, of the same shape.
        let _ = self.response.subtract(&before.response);
        self
    }

    fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.errors += other.errors;
        self.behind += other.behind;
        let _ = self.response.add(&other.response);
    }
}

impl Seconds {
    /// For a job; on a terminal in place unless lines are to be plain.
    pub fn new(job: &Job, plain: bool) -> Self {
        let bar = (!plain && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        let threads = Mutex::new(vec![Told::default(); job.workers()]);
        Self { bar, threads, open_loop: job.arrivals != Arrivals::Closed }
    }

    /// A thread has counted so much. The line appears when the last of the threads has told of its second.
    pub fn passed(&self, thread: usize, tally: &Tally) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = threads.get_mut(thread) else { return };
        let so_far = Counts::of(tally);
        // A thread may tell twice before another tells once: nothing of it is lost.
        told.second.add(&so_far.clone().since(&told.so_far));
        told.so_far = so_far;
        told.seconds += 1;
        let seconds = told.seconds;
        if threads.iter().any(|told| told.seconds < seconds) {
            return;
        }
        let mut all = Counts::default();
        threads.iter_mut().for_each(|told| all.add(&std::mem::take(&mut told.second)));
        drop(threads);
        let line = line(seconds, &all, self.open_loop);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => crate::common::say(line),
        }
    }
}

impl Drop for Seconds {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What every terminal has.
const WIDTH: usize = 80;

/// At most that many columns: `  12 s   99.0k/s   p50 607 us   p99 8.24 ms   max 51.4 ms`, and what was late or failed.
fn line(second: u32, counts: &Counts, open_loop: bool) -> String {
    let rate = report::show(counts.units as f64 / EVERY.as_secs_f64(), Unit::PerSecond);
    let mut line = format!("{second:>4} s  {rate:>8}");
    let samples = counts.response.len();
    for (name, p) in [("p50", 50.0), ("p99", 99.0)] {
        let enough = stats::samples_needed(p).is_some_and(|needed| samples >= needed);
        let value = enough.then(|| micros(counts.response.value_at_percentile(p)));
        line += &format!("  {name} {:>7}", value.unwrap_or_else(|| "-".to_owned()));
    }
    if open_loop && counts.behind > 0 {
        line += &format!("  late {}", counts.behind);
    }
    if counts.errors > 0 {
        line += &format!("  err {}", counts.errors);
    }
    let max = format!("  max {:>7}", micros(counts.response.max()));
    if samples > 0 && line.len() + max.len() <= WIDTH {
        line += &max;
    }
    line
}

fn micros(nanos: u64) -> String {
    report::show(nanos as f64 / 1000.0, Unit::Microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_what_came_since_the_one_before() {
        let mut tally = Tally { units: 300, ..Tally::default() };
        (0..300).for_each(|_| tally.response.saturating_record(100_000));
        let first = Counts::of(&tally);
        tally.units = 500;
        (0..200).for_each(|_| tally.response.saturating_record(2_000_000));
        let second = Counts::of(&tally).since(&first);
        assert_eq!(line(1, &first, false), "   1 s     300/s  p50  100 us  p99       -  max  100 us");
        assert_eq!(line(2, &second, false), "   2 s     200/s  p50 2.00 ms  p99       -  max 2.00 ms");
    }

    #[test]
    fn the_longest_line_has_80_columns() {
        let mut tally = Tally { units: 123_456_789, late: 123_456, ..Tally::default() };
        tally.errors[0] = 1_234_567;
        (0..5000).for_each(|_| tally.response.saturating_record(12_345_678_901));
        let line = line(3600, &Counts::of(&tally), true);
        assert!(line.len() <= WIDTH, "{}: {line}", line.len());
    }
}
