//! Prints the throughput, percentiles and errors of every second while a target is driven.
//!
//! The generator's threads only hand over their counts. Another thread prints them, so that a slow terminal does not
//! slow the generator.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hdrhistogram::Histogram;
use load::{Arrivals, Job, Tally};
use report::number;

/// The time between two lines.
pub const EVERY: Duration = Duration::from_secs(1);

/// The number of snapshots per generator thread that can wait to be printed.
const ROOM: usize = 2;

/// Prints a line every second. On a terminal, the line changes in place and disappears at the end.
pub struct Seconds {
    /// None after the drive.
    snapshots: Option<SyncSender<Snapshot>>,
    shown: Option<JoinHandle<()>>,
}

/// The counts of a generator thread from its start to the end of a second.
struct Snapshot {
    thread: usize,
    second: u32,
    so_far: Counts,
}

/// The counts that a line shows.
#[derive(Clone)]
struct Counts {
    units: u64,
    errors: u64,
    behind: u64,
    bytes_sent: u64,
    response: Histogram<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { units: 0, errors: 0, behind: 0, bytes_sent: 0, response: load::histogram() }
    }
}

impl Counts {
    fn of(tally: &Tally) -> Self {
        Self {
            units: tally.units,
            errors: tally.failures(),
            behind: tally.late + tally.dropped,
            bytes_sent: tally.bytes_sent,
            response: tally.response.answered(),
        }
    }

    fn since(mut self, before: &Self) -> Self {
        self.units -= before.units;
        self.errors -= before.errors;
        self.behind -= before.behind;
        self.bytes_sent -= before.bytes_sent;
        // This cannot fail, because the earlier histogram is a part of the later one and has the same shape.
        let _ = self.response.subtract(&before.response);
        self
    }

    fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.errors += other.errors;
        self.behind += other.behind;
        self.bytes_sent += other.bytes_sent;
        let _ = self.response.add(&other.response);
    }
}

impl Seconds {
    /// Starts printing for a job. On a terminal, the line changes in place unless `plain`.
    pub fn new(job: &Job, plain: bool) -> Self {
        let (snapshots, taken) = sync_channel(ROOM * job.workers());
        let lines = Lines::new(job.workers(), job.arrivals != Arrivals::Closed);
        let show = move || show(taken, lines, plain);
        // If the thread cannot start, no lines are printed. The drive is not affected.
        let shown = thread::Builder::new().name("live".to_owned()).spawn(show).ok();
        Self { snapshots: Some(snapshots), shown }
    }

    /// Hands over a thread's counts at the end of a second. Never waits: if there is no room, the thread's next snapshot
    /// includes them.
    pub fn passed(&self, thread: usize, second: u32, tally: &Tally) {
        if let Some(snapshots) = &self.snapshots {
            let _ = snapshots.try_send(Snapshot { thread, second, so_far: Counts::of(tally) });
        }
    }
}

impl Drop for Seconds {
    fn drop(&mut self) {
        self.snapshots = None;
        if let Some(shown) = self.shown.take() {
            let _ = shown.join();
        }
    }
}

/// Prints lines until the drive is over.
fn show(snapshots: Receiver<Snapshot>, mut lines: Lines, plain: bool) {
    let in_place = !plain && std::io::stderr().is_terminal();
    let bar = in_place.then(|| crate::common::status_line("{wide_msg}", None));
    for line in snapshots.into_iter().filter_map(|snapshot| lines.take(snapshot)) {
        match &bar {
            Some(bar) => bar.set_message(line),
            None => crate::common::say(line),
        }
    }
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
}

/// Makes lines from snapshots.
struct Lines {
    /// The last second that each thread has reported, and its counts.
    latest: Vec<(u32, Counts)>,
    /// The second of the last line, and the counts of all threads at that time.
    shown: (u32, Counts),
    open_loop: bool,
}

impl Lines {
    fn new(threads: usize, open_loop: bool) -> Self {
        Self { latest: vec![(0, Counts::default()); threads], shown: (0, Counts::default()), open_loop }
    }

    /// Takes a snapshot. Returns a line with the counts since the last line if all threads have reported a new second.
    fn take(&mut self, snapshot: Snapshot) -> Option<String> {
        *self.latest.get_mut(snapshot.thread)? = (snapshot.second, snapshot.so_far);
        let second = self.latest.iter().map(|(second, _)| *second).min()?;
        let passed = second.checked_sub(self.shown.0).filter(|passed| *passed > 0)?;
        let mut all = Counts::default();
        self.latest.iter().for_each(|(_, counts)| all.add(counts));
        let line = line(second, EVERY * passed, &all.clone().since(&self.shown.1), self.open_loop);
        self.shown = (second, all);
        Some(line)
    }
}

/// The width of the narrowest usual terminal.
const WIDTH: usize = 80;

/// Formats a line of at most [`WIDTH`] columns: `  12 s   99.0k/s   p50 607 us   p99 8.24 ms   max 51.4 ms`, and the
/// numbers of late and failed operations.
fn line(second: u32, passed: Duration, counts: &Counts, open_loop: bool) -> String {
    // Streams and large bodies take several seconds. Until they end, the bytes sent show their progress.
    let rate = if counts.units == 0 && counts.bytes_sent > 0 {
        number::bytes_per_second(counts.bytes_sent as f64 / passed.as_secs_f64()) + " sent"
    } else {
        number::per_second(counts.units as f64 / passed.as_secs_f64())
    };
    let mut line = format!("{second:>4} s  {rate:>8}");
    let samples = counts.response.len();
    for (name, p) in [("p50", 50.0), ("p99", 99.0)] {
        let enough = stats::samples_needed(p).is_some_and(|needed| samples >= needed);
        let value = enough.then(|| nanos(counts.response.value_at_percentile(p)));
        line += &format!("  {name} {:>7}", value.unwrap_or_else(|| "-".to_owned()));
    }
    if open_loop && counts.behind > 0 {
        line += &format!("  late {}", counts.behind);
    }
    if counts.errors > 0 {
        line += &format!("  err {}", counts.errors);
    }
    let max = format!("  max {:>7}", nanos(counts.response.max()));
    if samples > 0 && line.len() + max.len() <= WIDTH {
        line += &max;
    }
    line
}

fn nanos(nanos: u64) -> String {
    number::micros(nanos as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally of `(number of answers, nanoseconds of each)`.
    fn tally(answers: &[(u64, u64)]) -> Tally {
        let mut response = load::histogram();
        answers.iter().for_each(|(count, nanos)| response.saturating_record_n(*nanos, *count));
        let units = answers.iter().map(|(count, _)| count).sum();
        Tally { units, response: response.into(), ..Tally::default() }
    }

    fn snapshot(thread: usize, second: u32, answers: &[(u64, u64)]) -> Snapshot {
        Snapshot { thread, second, so_far: Counts::of(&tally(answers)) }
    }

    #[test]
    fn operations_that_have_not_ended_show_the_bytes_sent() {
        let under_way = |bytes_sent| Counts { bytes_sent, ..Counts::default() };
        let line = |counts: &Counts| line(3, EVERY, counts, false);
        assert_eq!(line(&under_way(1_200_000_000)), "   3 s  1.20 GB/s sent  p50       -  p99       -");
        assert_eq!(line(&under_way(0)), "   3 s       0/s  p50       -  p99       -");
    }

    #[test]
    fn a_line_shows_what_all_threads_did_since_the_last_line() {
        let mut lines = Lines::new(2, false);
        let (quick, slow) = (100_000, 2_000_000);
        assert_eq!(lines.take(snapshot(0, 1, &[(200, quick)])), None);
        let first = lines.take(snapshot(1, 1, &[(100, quick)])).unwrap();
        assert_eq!(first, "   1 s     300/s  p50  100 us  p99       -  max  100 us");
        assert_eq!(lines.take(snapshot(1, 2, &[(100, quick), (50, slow)])), None);
        let second = lines.take(snapshot(0, 2, &[(200, quick), (150, slow)])).unwrap();
        assert_eq!(second, "   2 s     200/s  p50 2.00 ms  p99       -  max 2.00 ms");
    }

    #[test]
    fn the_next_snapshot_includes_a_lost_one() {
        let mut lines = Lines::new(1, false);
        assert!(lines.take(snapshot(0, 1, &[(100, 100_000)])).is_some());
        // The snapshot of the second second found no room.
        let third = lines.take(snapshot(0, 3, &[(700, 100_000)])).unwrap();
        assert!(third.starts_with("   3 s     300/s"), "{third}");
    }

    #[test]
    fn the_generator_does_not_wait_for_the_terminal() {
        let (snapshots, taken) = sync_channel(1);
        let live = Seconds { snapshots: Some(snapshots), shown: None };
        (1..=3).for_each(|second| live.passed(0, second, &tally(&[(u64::from(second), 1000)])));
        drop(live);
        assert_eq!(taken.into_iter().map(|snapshot| snapshot.second).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_longest_line_has_80_columns() {
        let mut tally = tally(&[(5000, 12_345_678_901)]);
        (tally.units, tally.late) = (123_456_789, 123_456);
        tally.errors[0] = 1_234_567;
        let line = line(3600, EVERY, &Counts::of(&tally), true);
        assert!(line.len() <= WIDTH, "{}: {line}", line.len());
    }
}
