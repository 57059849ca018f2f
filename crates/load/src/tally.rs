//! What a drive counted: one tally per thread, merged at the end. Its size is bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::fault::{ErrorClass, Example};
use crate::protocol::Success;

/// The longest latency that is recorded: an hour, in nanoseconds. Latencies have three significant digits.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The counts of the measured window.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Exchanges that were open when the window opened, or began in it.
    pub attempts: u64,
    /// Exchanges that ended in the window with a verified answer.
    pub successes: u64,
    /// Exchanges that failed in the window, by class.
    pub errors: [u64; ErrorClass::COUNT],
    /// Exchanges that were open when the window closed.
    pub in_flight: u64,
    /// What the workload counts: the frames of a stream, otherwise one per success.
    pub units: u64,
    /// Payload bytes of successes.
    pub payload_bytes: u64,
    /// All bytes sent.
    pub bytes_sent: u64,
    /// All bytes received.
    pub bytes_received: u64,
    /// Successes: nanoseconds from the actual send to the checked answer.
    pub service: Histogram<u64>,
    /// Successes: nanoseconds from the intended send to the checked answer.
    pub response: Histogram<u64>,
    /// Open loop: nanoseconds from the intended to the actual send, of every exchange that ended in the window.
    pub behind: Histogram<u64>,
    /// Successes: nanoseconds from the intended to the actual send, which is the wait for a connection of the pool. Only if
    /// the job asks for it.
    pub pool_wait: Option<Histogram<u64>>,
    /// Open loop: exchanges sent more than [`Tally::LATE`] after their intended time.
    pub late: u64,
    /// Open loop: arrivals that were given up, because they could not be sent within the timeout or before the end.
    pub dropped: u64,
    /// Exchanges whose body was sent although `100 Continue` had not come within [`Tally::CONTINUE`].
    pub no_continue: u64,
    /// Successes in each tenth of a window of fixed length. Shows whether the traffic was steady.
    pub tenths: [u64; 10],
    /// The total time of failed exchanges, from send to failure. Shows whether failing was quicker than succeeding.
    pub failing: Duration,
    /// Which exchange of its open connection each failed one was, and how often. A peer that closes after every n-th exchange
    /// shows here as multiples of n. Keeps the first [`Tally::ORDINALS`] different ordinals.
    pub ordinals: BTreeMap<u64, u64>,
    /// The first example of each class.
    pub first_errors: BTreeMap<ErrorClass, Example>,
    /// The actual length of the window.
    pub elapsed: Duration,
    /// CPU time of the generator's threads in the window.
    pub cpu: Duration,
    /// The CPU time of the busiest core as a share of the window. Without pinned threads, that of the busiest thread.
    pub busiest: f64,
    /// The reactor's backend: `io_uring` or `epoll`.
    pub backend: &'static str,
    /// Counts of the whole drive, including warm-up and drain.
    pub total: Totals,
}

/// Counts of a whole drive. Attempts are successes, errors, and exchanges that were still open when the drain ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Exchanges that began.
    pub attempts: u64,
    /// Exchanges with a verified answer.
    pub successes: u64,
    /// Exchanges that failed, by class.
    pub errors: BTreeMap<ErrorClass, u64>,
}

impl Default for Tally {
    fn default() -> Self {
        let histogram = Self::histogram();
        Self {
            attempts: 0,
            successes: 0,
            errors: [0; ErrorClass::COUNT],
            in_flight: 0,
            units: 0,
            payload_bytes: 0,
            bytes_sent: 0,
            bytes_received: 0,
            service: histogram.clone(),
            response: histogram.clone(),
            behind: histogram,
            pool_wait: None,
            tenths: [0; 10],
            failing: Duration::ZERO,
            ordinals: BTreeMap::new(),
            late: 0,
            dropped: 0,
            no_continue: 0,
            first_errors: BTreeMap::new(),
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            busiest: 0.0,
            backend: "",
            total: Totals::default(),
        }
    }
}

impl Tally {
    /// A send this long after its intended time is late. It is ten times the timer error of an idle machine.
    pub const LATE: Duration = Duration::from_millis(1);
    /// How long a body waits for `100 Continue`. It is sent after that, because a server may leave the interim answer out.
    pub const CONTINUE: Duration = Duration::from_secs(1);
    /// How many different ordinals of failed exchanges are kept.
    pub const ORDINALS: usize = 32;

    /// An empty histogram. All of them have the same bounds.
    pub(crate) fn histogram() -> Histogram<u64> {
        Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
    }

    /// The number of failures of all classes.
    pub fn failures(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// The number of failures by class name, without classes that have none.
    pub fn errors_by_name(&self) -> BTreeMap<String, u64> {
        let pairs = ErrorClass::ALL.into_iter().zip(self.errors);
        pairs.filter(|(_, count)| *count > 0).map(|(class, count)| (class.name().to_owned(), count)).collect()
    }

    /// Verified units per second.
    pub fn throughput(&self) -> f64 {
        self.units as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn succeed(&mut self, success: Success, tenth: usize, service_ns: u64, response_ns: u64) {
        self.successes += 1;
        self.tenths[tenth] += 1;
        self.units += success.units;
        self.payload_bytes += success.payload;
        self.service.saturating_record(service_ns.max(1));
        self.response.saturating_record(response_ns.max(1));
        if let Some(waits) = &mut self.pool_wait {
            waits.saturating_record(response_ns.saturating_sub(service_ns).max(1));
        }
    }

    /// Counts an exchange that was sent `time` after its intended time.
    pub(crate) fn sent_behind(&mut self, time: Duration) {
        self.late += u64::from(time > Self::LATE);
        self.behind.saturating_record((time.as_nanos() as u64).max(1));
    }

    /// Counts an exchange that failed after `took`.
    pub(crate) fn fail(&mut self, example: Example, took: Duration) {
        let class = example.fault.class;
        self.errors[class as usize] += 1;
        self.failing += took;
        if let Some(ordinal) = example.exchange
            && (self.ordinals.len() < Self::ORDINALS || self.ordinals.contains_key(&ordinal))
        {
            *self.ordinals.entry(ordinal).or_default() += 1;
        }
        self.first_errors.entry(class).or_insert(example);
    }

    /// Adds another thread's tally. In the whole drive, its connections are numbered from `first_connection`.
    pub(crate) fn merge(&mut self, other: &Self, first_connection: usize) {
        self.attempts += other.attempts;
        self.successes += other.successes;
        self.in_flight += other.in_flight;
        self.units += other.units;
        self.payload_bytes += other.payload_bytes;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (mine, theirs) in self.errors.iter_mut().zip(other.errors) {
            *mine += theirs;
        }
        for (class, example) in &other.first_errors {
            let connection = example.connection.map(|index| first_connection + index);
            let theirs = Example { connection, ..*example };
            let first = self.first_errors.entry(*class).or_insert(theirs);
            if theirs.into_window < first.into_window {
                *first = theirs;
            }
        }
        // All histograms have the same bounds, so adding cannot fail.
        let _ = self.service.add(&other.service);
        let _ = self.response.add(&other.response);
        let _ = self.behind.add(&other.behind);
        match (&mut self.pool_wait, &other.pool_wait) {
            (Some(mine), Some(theirs)) => {
                let _ = mine.add(theirs);
            }
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
        self.late += other.late;
        self.failing += other.failing;
        for (mine, theirs) in self.tenths.iter_mut().zip(other.tenths) {
            *mine += theirs;
        }
        for (ordinal, count) in &other.ordinals {
            *self.ordinals.entry(*ordinal).or_default() += count;
        }
        self.dropped += other.dropped;
        self.no_continue += other.no_continue;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.cpu += other.cpu;
        self.busiest = self.busiest.max(other.busiest);
        self.backend = other.backend;
        self.total.attempts += other.total.attempts;
        self.total.successes += other.total.successes;
        for (class, count) in &other.total.errors {
            *self.total.errors.entry(*class).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, Seen};

    fn failed(status: u16, at_ms: u64, connection: usize) -> Tally {
        let mut tally = Tally::default();
        let example = Example {
            fault: Fault::new(ErrorClass::Status, Seen::Status(status)),
            heard: Seen::Nothing,
            into_window: Duration::from_millis(at_ms),
            connection: Some(connection),
            exchange: Some(10),
        };
        tally.fail(example, Duration::from_millis(1));
        tally
    }

    #[test]
    fn the_first_example_of_all_threads_is_kept_with_its_connection_in_the_whole_drive() {
        let mut total = Tally::default();
        // Each thread has three connections. The second thread failed first.
        total.merge(&failed(500, 20, 1), 0);
        total.merge(&failed(503, 10, 2), 3);
        total.merge(&failed(404, 30, 0), 6);
        assert_eq!(total.errors[ErrorClass::Status as usize], 3);
        let first = total.first_errors[&ErrorClass::Status];
        assert_eq!((first.fault.seen, first.connection), (Seen::Status(503), Some(5)));
        assert_eq!(total.ordinals, BTreeMap::from([(10, 3)]));
    }

    #[test]
    fn the_wait_for_a_pool_is_the_difference_of_both_times() {
        let pooled = || {
            let mut tally = Tally { pool_wait: Some(Tally::histogram()), ..Tally::default() };
            tally.succeed(Success { units: 1, payload: 2 }, 0, 1000, 5000);
            tally
        };
        let mut total = Tally::default();
        total.merge(&pooled(), 0);
        total.merge(&pooled(), 1);
        let waits = total.pool_wait.expect("waits");
        // The histogram keeps three digits.
        assert!(waits.len() == 2 && waits.max().abs_diff(4000) <= 4, "{}", waits.max());
        let mut plain = Tally::default();
        plain.succeed(Success::default(), 0, 1, 1);
        assert!(plain.pool_wait.is_none());
    }
}
