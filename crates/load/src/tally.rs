//! What a drive counted: one tally per thread, merged at the end. Its size is bounded. The table `rows` says what it has.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{self, Asked, Contradiction, Scope};
use crate::fault::{ErrorClass, Example};
use crate::protocol::Success;
use crate::rows::{Form, Loops, Value, counts, merge};
use crate::times::Times;

/// Makes the tally from the table.
macro_rules! tally {
    ($(
        $doc:literal
        $(#[$attribute:meta])*
        $name:ident: $type:ty [$merge:ident, $loops:ident, $bound:ident]
        $(, saved as $saved:ident: $saved_as:ty)?
        $(, printed as $printed:ident: $printed_as:ty)?;
    )*) => {
        /// The counts of the measured window.
        ///
        /// A rate counts what ended in the window. In a closed loop the times are those of the same exchanges. In an open loop
        /// they are the times of every arrival that was due in the window, whenever it ended.
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        pub struct Tally {
            $(#[doc = $doc] $(#[$attribute])* pub $name: $type,)*
        }

        impl Tally {
            /// Adds the tally of another thread or generator.
            pub fn merge(&mut self, other: &Self) {
                $(merge::$merge(&mut self.$name, &other.$name);)*
            }

            /// Whether a generator can have counted this when it was asked to do a job: no count is so large that a thousand of
            /// them cannot be added, shares and times are numbers that a drive can have, and each row keeps to its bound.
            ///
            /// # Errors
            /// The first row that contradicts others, the job, or what is possible.
            pub fn check(&self, asked: &Asked<'_>) -> Result<(), Contradiction> {
                $(if !self.$name.fits() {
                    return Err(Contradiction::new(stringify!($name), "no drive counts this"));
                })*
                let scope = Scope::of(self, asked);
                $(bounds::$bound(&self.$name, &scope).map_err(|why| Contradiction::new(stringify!($name), why))?;)*
                Ok(())
            }

            /// The times that are printed, in order, with the name of their field and the loops that have them.
            pub fn times(&self) -> impl Iterator<Item = (&'static str, Loops, &Times)> {
                let rows = [$($((stringify!($printed), Loops::$loops, self.$name.times()),)?)*];
                rows.into_iter().filter_map(|(name, loops, times)| Some((name, loops, times?)))
            }
        }
    };
}

crate::rows!(tally);

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
        Form::of(&self.errors)
    }

    /// Counts a failure.
    pub(crate) fn fail(&mut self, class: ErrorClass) {
        count_class(&mut self.errors, class);
    }

    /// Adds the counts of another name or thread.
    pub fn merge(&mut self, other: &Self) {
        self.add(other);
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
    pub times: Option<Times>,
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
}

/// What connections carried that carry many exchanges at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multiplexed {
    /// How many exchanges were to be open on each.
    pub asked: u64,
    /// The most that were open on one.
    pub reached: u64,
    /// The fewest that a peer allowed, if those were fewer than asked for.
    pub allowed: Option<u64>,
    /// Connections that the peer let carry no further exchanges, and that others replaced; of the whole drive.
    pub renewed: u64,
    /// Exchanges that took too long and were given up alone.
    pub cancelled: u64,
}

impl Value for Multiplexed {
    fn add(&mut self, other: &Self) {
        self.asked = self.asked.max(other.asked);
        self.reached = self.reached.max(other.reached);
        self.allowed = self.allowed.into_iter().chain(other.allowed).min();
        self.renewed.add(&other.renewed);
        self.cancelled.add(&other.cancelled);
    }

    fn fits(&self) -> bool {
        let Self { asked, reached, allowed, renewed, cancelled } = self;
        [asked, reached, renewed, cancelled].into_iter().chain(allowed).all(u64::fits)
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
    #[serde(rename = "wire_bytes")]
    pub sent_bytes: u64,
    /// Bytes of the decoded bodies.
    pub decoded_bytes: u64,
}

impl Decoded {
    pub(crate) fn add(&mut self, other: &Self) {
        Value::add(self, other);
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

counts! {
    Named { successes, errors, response }
    Handshakes { kinds, offered, times }
    Decoded { answers, compressed, sent_bytes, decoded_bytes }
    Totals { connections, attempts, successes, errors }
}

#[expect(clippy::indexing_slicing, reason = "there is a count for each class")]
fn count_class(errors: &mut [u64; ErrorClass::COUNT], class: ErrorClass) {
    errors[class as usize] += 1;
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
        Form::of(&self.errors)
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
            waits.record(response_ns.saturating_sub(service_ns));
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
        let (longest, oldest) = (self.response.answered().max(), self.open_ages.answered().max());
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
        let done = |ages: &Times| -> f64 {
            let part = |age: u64| (age as f64 / mean).min(1.0);
            let ages = ages.answered();
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

    /// Numbers the connections of its examples as in the whole drive, in which its own begin with `first`.
    pub(crate) fn number_from(&mut self, first: usize) {
        let connections = self.first_errors.values_mut().filter_map(|example| example.connection.as_mut());
        connections.for_each(|index| *index = index.saturating_add(first));
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
        for (mut tally, first) in [(failed(500, 20, 1), 0), (failed(503, 10, 2), 3), (failed(404, 30, 0), 6)]
        {
            tally.number_from(first);
            total.merge(&tally);
        }
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
            tally.early_ages.record(before);
            tally.open_ages.record((before + window) % took);
            let done = ended as f64 + tally.edges().expect("ages were looked at");
            assert!((done - 10.0 / 3.0).abs() < 0.01, "{phase}: {done}");
        }
        // Callers that are never served add nothing, however long they wait.
        let mut starved = Tally::default();
        starved.answered(1000, 1000);
        starved.early_ages.record(5_000);
        starved.open_ages.record(9_000);
        assert_eq!(starved.edges(), Some(0.0));
        assert_eq!(Tally::default().edges(), None);
    }

    #[test]
    fn the_wait_for_a_pool_is_the_difference_of_both_times() {
        let pooled = || {
            let mut tally = Tally { pool_wait: Some(Times::default()), ..Tally::default() };
            tally.answered(1000, 5000);
            tally
        };
        let mut total = Tally::default();
        total.merge(&pooled());
        total.merge(&pooled());
        let waits = total.pool_wait.expect("waits").answered();
        // The histogram keeps three digits.
        assert!(waits.len() == 2 && waits.max().abs_diff(4000) <= 4, "{}", waits.max());
        let mut plain = Tally::default();
        plain.answered(1, 1);
        assert!(plain.pool_wait.is_none());
    }
}
