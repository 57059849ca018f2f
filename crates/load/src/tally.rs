//! What a drive counted: one tally per thread, merged at the end. Its size is bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::fault::{ErrorClass, Example};
use crate::protocol::Success;
use crate::times::{Times, histogram};
use crate::travel;

/// One of the two names of backends. With its own name, serde does not take it for borrowed text.
type BackendName = &'static str;

/// The counts of the measured window.
///
/// A rate counts what ended in the window. In a closed loop the times are those of the same exchanges. In an open loop they
/// are the times of every arrival that was due in the window, whenever it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// Exchanges that were open when the window opened, or began in it. Open loop: also those that were due in it and began
    /// later.
    pub attempts: u64,
    /// Exchanges that ended in the window with a verified answer.
    pub successes: u64,
    /// Exchanges that failed in the window, by class. Open loop: also those that failed after it.
    pub errors: [u64; ErrorClass::COUNT],
    /// The other attempts: they were open when the window closed, or, in an open loop, had not begun.
    pub in_flight: u64,
    /// Closed loop: the ages of the exchanges and of the waiting callers when the window closed, in nanoseconds.
    #[serde(with = "travel::histogram")]
    pub open_ages: Histogram<u64>,
    /// The same when the window opened.
    #[serde(with = "travel::histogram")]
    pub early_ages: Histogram<u64>,
    /// What the workload counts: the frames of a stream, otherwise one per success.
    pub units: u64,
    /// Payload bytes of successes.
    pub payload_bytes: u64,
    /// All bytes sent.
    pub bytes_sent: u64,
    /// All bytes received.
    pub bytes_received: u64,
    /// From the actual send to the checked answer.
    pub service: Times,
    /// From the intended send to the checked answer.
    pub response: Times,
    /// Open loop: from the intended to the actual send.
    pub behind: Times,
    /// Times as in `response`: nanoseconds from the intended to the actual send, which is the wait for a connection of the pool. Only if
    /// the job asks for it.
    #[serde(with = "travel::optional")]
    pub pool_wait: Option<Histogram<u64>>,
    /// Open loop: exchanges sent more than [`Tally::LATE`] after their intended time.
    pub late: u64,
    /// Open loop: arrivals that were due in the window. Attempts may be more, because of what the warm-up left.
    pub arrivals: u64,
    /// Open loop: arrivals that could not be sent within the timeout. They are not attempts.
    pub dropped: u64,
    /// Open loop: arrivals that were due but not sent when the window closed. Later they were sent or dropped.
    pub backlog: u64,
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
    #[serde(with = "travel::examples")]
    pub first_errors: BTreeMap<ErrorClass, Example>,
    /// The actual length of the window.
    pub elapsed: Duration,
    /// CPU time of the generator's threads in the window.
    pub cpu: Duration,
    /// The CPU time of the busiest core as a share of the window. Without pinned threads, that of the busiest thread.
    pub busiest: f64,
    /// The reactor's backend: `io_uring` or `epoll`.
    #[serde(with = "travel::backend")]
    pub backend: BackendName,
    /// The handshakes that ended in the window.
    pub handshakes: Handshakes,
    /// The counts of the requests with each name of a list.
    #[serde(skip)]
    pub by_name: Vec<Named>,
    /// The bodies of successes, if compressed answers are decoded.
    pub decoded: Decoded,
    /// Counts of the whole drive, including warm-up and drain.
    pub total: Totals,
}

/// What was counted of the requests with one name.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// As in [`Tally`].
    pub successes: u64,
    /// As in [`Tally`].
    pub errors: [u64; ErrorClass::COUNT],
    /// As in [`Tally`].
    pub response: Times,
}

impl Named {
    /// The number of failures by class, without classes that have none.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        by_class(&self.errors)
    }

    /// Counts a failure.
    pub(crate) fn fail(&mut self, class: ErrorClass) {
        count_class(&mut self.errors, class);
    }

    /// Adds the counts of another name or thread.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.successes, other.successes);
        self.errors.iter_mut().zip(other.errors).for_each(|(mine, theirs)| add(mine, theirs));
        self.response.merge(&other.response);
    }
}

/// Handshakes of TLS that succeeded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Handshakes {
    /// How many, by kind: full, retried and resumed ([`tls::Kind::ALL`]).
    pub kinds: [u64; tls::Kind::ALL.len()],
    /// Those in which a session was offered.
    pub offered: u64,
    /// From the request for a connection to its readiness. None if there was no handshake.
    pub times: Option<Box<Times>>,
}

impl Handshakes {
    /// The handshakes of a kind.
    #[expect(clippy::indexing_slicing, reason = "there is a count for each kind")]
    pub fn of(&self, kind: tls::Kind) -> u64 {
        self.kinds[kind as usize]
    }

    /// All handshakes.
    pub fn all(&self) -> u64 {
        self.kinds.iter().sum()
    }

    #[expect(clippy::indexing_slicing, reason = "there is a count for each kind")]
    pub(crate) fn count(&mut self, handshake: tls::Handshake, nanos: u64) {
        self.kinds[handshake.kind as usize] += 1;
        self.offered += u64::from(handshake.offered);
        self.times.get_or_insert_default().record(nanos);
    }

    fn merge(&mut self, other: &Self) {
        self.kinds.iter_mut().zip(other.kinds).for_each(|(mine, theirs)| add(mine, theirs));
        add(&mut self.offered, other.offered);
        if let Some(times) = &other.times {
            self.times.get_or_insert_default().merge(times);
        }
    }
}

/// Bodies of answers before and after their decoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decoded {
    /// How many answers there were.
    pub answers: u64,
    /// How many of them were compressed.
    pub compressed: u64,
    /// Bytes of the bodies as they were sent.
    pub sent_bytes: u64,
    /// Bytes of the decoded bodies.
    pub decoded_bytes: u64,
}

impl Decoded {
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.answers, other.answers);
        add(&mut self.compressed, other.compressed);
        add(&mut self.sent_bytes, other.sent_bytes);
        add(&mut self.decoded_bytes, other.decoded_bytes);
    }
}

/// Counts of a whole drive. Attempts are successes, errors, and exchanges that were still open when the drain ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Connections that were made.
    pub connections: u64,
    /// Exchanges that began.
    pub attempts: u64,
    /// Exchanges with a verified answer.
    pub successes: u64,
    /// Exchanges that failed, by class.
    pub errors: BTreeMap<ErrorClass, u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            attempts: 0,
            successes: 0,
            errors: [0; ErrorClass::COUNT],
            in_flight: 0,
            open_ages: histogram(),
            early_ages: histogram(),
            units: 0,
            payload_bytes: 0,
            bytes_sent: 0,
            bytes_received: 0,
            service: Times::default(),
            response: Times::default(),
            behind: Times::default(),
            pool_wait: None,
            tenths: [0; 10],
            failing: Duration::ZERO,
            ordinals: BTreeMap::new(),
            late: 0,
            arrivals: 0,
            dropped: 0,
            backlog: 0,
            no_continue: 0,
            first_errors: BTreeMap::new(),
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            busiest: 0.0,
            backend: "",
            handshakes: Handshakes::default(),
            by_name: Vec::new(),
            decoded: Decoded::default(),
            total: Totals::default(),
        }
    }
}

/// Adds a count. Counts of other machines may be large, and a sum that is too small is better than a crash.
fn add(mine: &mut u64, theirs: u64) {
    *mine = mine.saturating_add(theirs);
}

#[expect(clippy::indexing_slicing, reason = "there is a count for each class")]
fn count_class(errors: &mut [u64; ErrorClass::COUNT], class: ErrorClass) {
    errors[class as usize] += 1;
}

fn by_class(errors: &[u64; ErrorClass::COUNT]) -> BTreeMap<String, u64> {
    let pairs = ErrorClass::ALL.into_iter().zip(*errors);
    pairs.filter(|(_, count)| *count > 0).map(|(class, count)| (class.name().to_owned(), count)).collect()
}

impl Tally {
    /// A send this long after its intended time is late. It is ten times the timer error of an idle machine.
    pub const LATE: Duration = Duration::from_millis(1);
    /// How long a body waits for `100 Continue`. It is sent after that, because a server may leave the interim answer out.
    pub const CONTINUE: Duration = Duration::from_secs(1);
    /// How many different ordinals of failed exchanges are kept.
    pub const ORDINALS: usize = 32;

    /// The number of failures of all classes.
    pub fn failures(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// The number of failures by class name, without classes that have none.
    pub fn errors_by_name(&self) -> BTreeMap<String, u64> {
        by_class(&self.errors)
    }

    /// Verified units per second.
    pub fn throughput(&self) -> f64 {
        self.units as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Counts an exchange that ended in the window with a verified answer.
    pub(crate) fn succeed(&mut self, success: Success, tenth: usize) {
        self.successes += 1;
        if let Some(count) = self.tenths.get_mut(tenth) {
            *count += 1;
        }
        self.units += success.units;
        self.payload_bytes += success.payload;
    }

    /// Records the times of an answered exchange.
    pub(crate) fn answered(&mut self, service_ns: u64, response_ns: u64) {
        self.service.record(service_ns);
        self.response.record(response_ns);
        if let Some(waits) = &mut self.pool_wait {
            waits.saturating_record(response_ns.saturating_sub(service_ns).max(1));
        }
    }

    /// Records the ages of an exchange that was begun and not answered rightly.
    pub(crate) fn unanswered(&mut self, service_ns: u64, response_ns: u64) {
        self.service.give_up(service_ns);
        self.response.give_up(response_ns);
    }

    /// Counts an exchange that was sent `nanos` after its intended time.
    pub(crate) fn sent_behind(&mut self, nanos: u64) {
        self.late += u64::from(u128::from(nanos) > Self::LATE.as_nanos());
        self.behind.record(nanos);
    }

    /// Records the age of an arrival that was never sent.
    pub(crate) fn unsent(&mut self, nanos: u64) {
        self.dropped += 1;
        self.response.give_up(nanos);
        self.behind.give_up(nanos);
    }

    /// The age in nanoseconds of the oldest exchange or caller that was open when the window closed. `None` if an answer took
    /// as long, or nothing was answered.
    pub fn oldest(&self) -> Option<u64> {
        let (longest, oldest) = (self.response.answered().max(), self.open_ages.max());
        (longest > 0 && oldest > longest).then_some(oldest)
    }

    /// What the exchanges at the edges of a cut window of a closed loop add to those that ended in it: the parts of the open ones
    /// that are done when it closes, less the parts that were done before it opened. An exchange is done in proportion to its
    /// age, and is whole after the mean response time. `None` if the ages were not looked at, or nothing was answered.
    ///
    /// A count of whole exchanges may be off by one for each caller. Each exchange counts here as the part of it that lies in
    /// the window, which is exact if all take equally long. If they do not, both edges are wrong alike on average, so the sum
    /// is not biased, whatever the distribution; and it stays within one exchange for each caller.
    pub fn edges(&self) -> Option<f64> {
        let mean = self.response.answered().mean();
        let done = |ages: &Histogram<u64>| -> f64 {
            let part = |age: u64| (age as f64 / mean).min(1.0);
            ages.iter_recorded().map(|age| part(age.value_iterated_to()) * age.count_at_value() as f64).sum()
        };
        (!self.open_ages.is_empty() && mean > 0.0).then(|| done(&self.open_ages) - done(&self.early_ages))
    }

    /// Counts an exchange that failed after `took`.
    pub(crate) fn fail(&mut self, example: Example, took: Duration) {
        let class = example.fault.class;
        count_class(&mut self.errors, class);
        self.failing += took;
        // A stalled server lets requests time out, whichever they are on their connections.
        let timed_out = matches!(class, ErrorClass::RequestTimeout | ErrorClass::ConnectTimeout);
        if let Some(ordinal) = example.exchange.filter(|_| !timed_out)
            && (self.ordinals.len() < Self::ORDINALS || self.ordinals.contains_key(&ordinal))
        {
            *self.ordinals.entry(ordinal).or_default() += 1;
        }
        self.first_errors.entry(class).or_insert(example);
    }

    /// Adds the tally of another thread or generator. In the whole drive, its connections are numbered from `first_connection`.
    pub fn merge(&mut self, other: &Self, first_connection: usize) {
        add(&mut self.attempts, other.attempts);
        add(&mut self.successes, other.successes);
        add(&mut self.in_flight, other.in_flight);
        add(&mut self.units, other.units);
        add(&mut self.payload_bytes, other.payload_bytes);
        add(&mut self.bytes_sent, other.bytes_sent);
        add(&mut self.bytes_received, other.bytes_received);
        for (mine, theirs) in self.errors.iter_mut().zip(other.errors) {
            add(mine, theirs);
        }
        for (class, example) in &other.first_errors {
            let connection = example.connection.map(|index| first_connection.saturating_add(index));
            let theirs = Example { connection, ..example.clone() };
            match self.first_errors.get(class) {
                Some(first) if first.into_window <= theirs.into_window => {}
                _ => _ = self.first_errors.insert(*class, theirs),
            }
        }
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.behind.merge(&other.behind);
        // All histograms have the same bounds, so adding cannot fail.
        let _ = self.open_ages.add(&other.open_ages);
        let _ = self.early_ages.add(&other.early_ages);
        match (&mut self.pool_wait, &other.pool_wait) {
            (Some(mine), Some(theirs)) => {
                let _ = mine.add(theirs);
            }
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
        add(&mut self.late, other.late);
        self.failing = self.failing.saturating_add(other.failing);
        for (mine, theirs) in self.tenths.iter_mut().zip(other.tenths) {
            add(mine, theirs);
        }
        for (ordinal, count) in &other.ordinals {
            add(self.ordinals.entry(*ordinal).or_default(), *count);
        }
        add(&mut self.arrivals, other.arrivals);
        add(&mut self.dropped, other.dropped);
        add(&mut self.backlog, other.backlog);
        add(&mut self.no_continue, other.no_continue);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.busiest = self.busiest.max(other.busiest);
        self.backend = other.backend;
        self.handshakes.merge(&other.handshakes);
        self.by_name.resize_with(self.by_name.len().max(other.by_name.len()), Named::default);
        self.by_name.iter_mut().zip(&other.by_name).for_each(|(mine, theirs)| mine.merge(theirs));
        self.decoded.add(&other.decoded);
        add(&mut self.total.connections, other.total.connections);
        add(&mut self.total.attempts, other.total.attempts);
        add(&mut self.total.successes, other.total.successes);
        for (class, count) in &other.total.errors {
            add(self.total.errors.entry(*class).or_default(), *count);
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
            check: None,
            told: None,
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
        let first = &total.first_errors[&ErrorClass::Status];
        assert_eq!((first.fault.seen, first.connection), (Seen::Status(503), Some(5)));
        assert_eq!(total.ordinals, BTreeMap::from([(10, 3)]));
    }

    #[test]
    fn parts_of_exchanges_at_the_edges_make_a_count_exact() {
        // Exchanges of 300 ms in a window of 1 s, from all phases: each caller ends three or four, and does 3.33.
        for phase in 0..30 {
            let mut tally = Tally::default();
            let (took, window, before) = (300_000_000, 1_000_000_000, phase * 10_000_000);
            let ended = (before + window) / took;
            (0..ended).for_each(|_| tally.answered(took, took));
            tally.early_ages.saturating_record(before.max(1));
            tally.open_ages.saturating_record(((before + window) % took).max(1));
            let done = ended as f64 + tally.edges().expect("ages were looked at");
            assert!((done - 10.0 / 3.0).abs() < 0.01, "{phase}: {done}");
        }
        // Callers that are never served add nothing, however long they wait.
        let mut starved = Tally::default();
        starved.answered(1000, 1000);
        starved.early_ages.saturating_record(5_000);
        starved.open_ages.saturating_record(9_000);
        assert_eq!(starved.edges(), Some(0.0));
        assert_eq!(Tally::default().edges(), None);
    }

    #[test]
    fn the_wait_for_a_pool_is_the_difference_of_both_times() {
        let pooled = || {
            let mut tally = Tally { pool_wait: Some(histogram()), ..Tally::default() };
            tally.answered(1000, 5000);
            tally
        };
        let mut total = Tally::default();
        total.merge(&pooled(), 0);
        total.merge(&pooled(), 1);
        let waits = total.pool_wait.expect("waits");
        // The histogram keeps three digits.
        assert!(waits.len() == 2 && waits.max().abs_diff(4000) <= 4, "{}", waits.max());
        let mut plain = Tally::default();
        plain.answered(1, 1);
        assert!(plain.pool_wait.is_none());
    }
}
