//! The table of what a drive measures: a row for each counter and each histogram. The tally, the sum of several tallies, what
//! travels between machines and is checked there, what a trial saves, and what `narrows load` prints are made from it.
//!
//! A row says in this order: what it is, in a sentence; its name and type in the tally; how two values become one (a function of
//! [`merge`]); in which loops it is measured; what bounds it (a function of the module `bounds`); the field in which a trial saves it;
//! and the field of `narrows load --json`. A row without one of the last two is not saved or not printed. Times are nanoseconds in the tally. The unit of a field is the end of its name, and with the type it says which values make sense
//! ([`Value`] here, `Checked` in the crate `measurement`). [`Form`] converts a value to the type of a field. An attribute is one
//! of the field in the tally.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault::{ErrorClass, Example};
use crate::tally::{Handshakes, Multiplexed};
use crate::times::Times;

/// The table. Calls the macro `$then` with its rows.
#[macro_export]
macro_rules! rows {
    ($then:ident) => {
        $then! {
            "Exchanges that were open when the window opened, or began in it: the sum of successes, errors and those in \
             flight. Open loop: also those that were due in it and began later."
            attempts: u64 [sum, Both, attempts], saved as attempts: u64, printed as attempts: u64;
            "Exchanges that ended in the window with a verified answer."
            successes: u64 [sum, Both, successes], saved as successes: u64, printed as completed: u64;
            "What the workload counts: the frames of a stream, otherwise one per success."
            units: u64 [sum, Both, units], saved as units: u64, printed as units: u64;
            "Exchanges that failed in the window, by class (docs/contracts.md). Open loop: also those that failed after it."
            errors: [u64; ErrorClass::COUNT] [sum, Both, errors],
                saved as errors: BTreeMap<String, u64>, printed as errors: BTreeMap<String, u64>;
            "The first example of each class: what was seen, when, and on which connection."
            first_errors: BTreeMap<ErrorClass, Example> [first, Both, first_errors],
                saved as first_errors: BTreeMap<String, String>, printed as first_errors: BTreeMap<String, String>;
            "Which exchange of its open connection each failed one was, and how often. A peer that closes after every n-th \
             exchange shows here as multiples of n. A thread keeps the first `Tally::ORDINALS` different ordinals."
            ordinals: BTreeMap<u64, u64> [sum, Both, ordinals], saved as error_ordinals: BTreeMap<u64, u64>;
            "The other attempts: they were open when the window closed, or, in an open loop, had not begun."
            in_flight: u64 [sum, Both, in_flight], saved as in_flight: u64, printed as in_flight: u64;
            "The ages of the exchanges and of the waiting callers when the window closed. Where they are saved: as \
             `[microseconds, count]`, ascending, and empty if they were not measured."
            open_ages: Times [sum, Closed, late_ages], saved as in_flight_us: Vec<(u64, u64)>;
            "The same when the window opened."
            early_ages: Times [sum, Closed, early_ages];
            "Open loop: arrivals that were due in the window. Attempts may be more, because of what the warm-up left. 0 if \
             they were not counted."
            arrivals: u64 [sum, Open, arrivals], saved as arrivals: u64, printed as arrivals: u64;
            "Open loop: exchanges sent more than `Tally::LATE` after their intended time."
            late: u64 [sum, Open, late], saved as late: u64, printed as late: u64;
            "Open loop: arrivals that could not be sent within the timeout. They are not attempts."
            dropped: u64 [sum, Open, dropped], saved as dropped: u64, printed as dropped: u64;
            "Open loop: arrivals that were due but not sent when the window closed. Later they were sent or dropped."
            backlog: u64 [sum, Open, backlog];
            "Exchanges whose body was sent although `100 Continue` had not come within `Tally::CONTINUE`."
            no_continue: u64 [sum, Both, no_continue], saved as no_continue: u64, printed as no_continue: u64;
            "The actual length of the window."
            elapsed: Duration [max, Both, elapsed], saved as elapsed_s: f64, printed as elapsed_s: f64;
            "Payload bytes of successes: bodies or frames."
            payload_bytes: u64 [sum, Both, payload], saved as payload_bytes: u64;
            "All bytes sent in the window."
            bytes_sent: u64 [sum, Both, sent], saved as bytes_sent: u64, printed as bytes_sent: u64;
            "All bytes received in the window."
            bytes_received: u64 [sum, Both, received], saved as bytes_received: u64, printed as bytes_received: u64;
            "From the intended send to the first byte of the answer: of streams, and of other right answers that arrived in \
             parts. The first byte of the others came with the last one. None if there was no such answer."
            first_byte: Option<Times> [sum, Both, begun],
                saved as first_byte_us: Option<Latency>, printed as first_byte_us: Option<Latency>;
            "The same from the actual send."
            first_byte_service: Option<Times> [sum, Open, like_first_byte],
                saved as first_byte_service_us: Option<Latency>, printed as first_byte_service_us: Option<Latency>;
            "From the intended send to the first event of a stream that is not empty; in a stream of OpenAI's interface to the \
             first that has content or reasoning. An event is a server-sent event, a line or a chunk. None without streams."
            first_event: Option<Times> [sum, Both, first_event],
                saved as first_event_us: Option<Latency>, printed as first_event_us: Option<Latency>;
            "The same from the actual send."
            first_event_service: Option<Times> [sum, Open, like_first_event],
                saved as first_event_service_us: Option<Latency>, printed as first_event_service_us: Option<Latency>;
            "From the intended send to the first content that is no reasoning, of streams that have reasoned before."
            first_output: Option<Times> [sum, Both, begun],
                saved as first_output_us: Option<Latency>, printed as first_output_us: Option<Latency>;
            "From one read with events of a stream to the next, from its first event on, of all streams together. None if every \
             stream came in one read."
            gap: Option<Times> [sum, Both, gap], saved as gap_us: Option<Latency>, printed as gap_us: Option<Latency>;
            "The longest gap of each stream. That of a stream that was cut is a lower bound."
            longest_gap: Option<Times> [sum, Both, longest_gap],
                saved as longest_gap_us: Option<Latency>, printed as longest_gap_us: Option<Latency>;
            "From the first event to the end of a stream, divided by its tokens after the first. Of streams that say in `usage` \
             how many tokens they have."
            per_token: Option<Times> [sum, Both, per_token],
                saved as per_token_us: Option<Latency>, printed as per_token_us: Option<Latency>;
            "Streams that ended rightly in the window."
            streams: u64 [sum, Both, streams], saved as streams: u64, printed as streams: u64;
            "Closed loop: streams that were open when the window closed, and sound so far. They are in flight."
            cut_streams: u64 [sum, Closed, cut_streams], saved as cut_streams: u64, printed as cut_streams: u64;
            "Events that arrived in the window, also of streams that did not end in it."
            events: u64 [sum, Both, events], saved as events: u64, printed as events: u64;
            "Reads that brought these events."
            event_reads: u64 [sum, Both, event_reads], saved as event_reads: u64, printed as event_reads: u64;
            "Answers that ended in the window and met all limits of their times. None if there are no limits."
            good: Option<u64> [sum, Both, good], saved as good: Option<u64>, printed as good: Option<u64>;
            "The tokens of the streams that ended rightly, as far as they say how many."
            tokens: u64 [sum, Both, tokens], saved as tokens: u64, printed as tokens: u64;
            "From the actual send to the checked answer."
            service: Times [sum, Both, service], saved as service_us: Latency, printed as service_time_us: Latency;
            "From the intended send to the checked answer. For a client, from before the request entered its pool."
            response: Times [sum, Both, response], saved as response_us: Latency, printed as response_time_us: Latency;
            "From the intended to the actual send."
            behind: Times [sum, Open, behind], printed as send_behind_us: Latency;
            "How long successes waited for a connection of the pool, at the times of `response`. Only if the job asks for it, \
             or a client's driver tells it."
            pool_wait: Option<Times> [sum, Both, pool_wait], saved as pool_wait_us: Latency;
            "Successes in each tenth of a window of fixed length. Shows whether the traffic was steady. For a client, the \
             server's answers. Where they are saved: empty if they were not counted."
            tenths: [u64; 10] [sum, Both, tenths], saved as tenths: Vec<u64>;
            "The total time of failed exchanges, from send to failure. Shows whether failing was quicker than succeeding."
            failing: Duration [sum, Both, failing];
            "The handshakes of TLS that ended in the window."
            handshakes: Handshakes [sum, Both, handshakes],
                saved as handshakes: Option<Handshakes>, printed as handshakes: Handshakes;
            "Connections of HTTP/2: what they carried at once. None if there were none."
            multiplexed: Option<Multiplexed> [sum, Both, multiplexed],
                saved as multiplexed: Option<Multiplexed>, printed as multiplexed: Option<Multiplexed>;
            "CPU time of the generator's threads in the window."
            cpu: Duration [sum, Both, at_work];
            "Time in which the generator's threads could run and waited for a core, in the window. Zero if the kernel does not say."
            waited: Duration [sum, Both, at_work];
            "The longest time for which a generator's loop did not come to what it had to do, in the window: it handled something \
             else, or had no core. Shorter pauses than a turn of the loop hide in its waiting."
            pause: Duration [max, Both, pause], saved as pause_s: f64, printed as longest_pause_s: f64;
            "The CPU time of the busiest core as a share of the window. Without pinned threads, that of the busiest thread."
            busiest: f64 [max, Both, busiest];
            "The reactor's backend: `io_uring` or `epoll`."
            backend: Cow<'static, str> [last, Both, backend];
            "The counts of the requests with each name of a list. They do not travel, because files of requests do not."
            #[serde(skip)]
            by_name: Vec<Named> [sum, Both, by_name];
            "The bodies of successes, if compressed answers are decoded."
            decoded: Decoded [sum, Both, decoded];
            "Counts of the whole drive, including warm-up and drain."
            total: Totals [sum, Both, total];
        }
    };
}

/// In which loops a row is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// In both.
    Both,
    /// In an open loop only.
    Open,
    /// In a closed loop only.
    Closed,
}

impl Loops {
    /// Whether a loop of this kind is one of them.
    pub fn has(self, open: bool) -> bool {
        self == Self::Both || (self == Self::Open) == open
    }
}

/// A value in the form in which it is saved or printed.
pub trait Form<T> {
    /// Converts the value.
    fn of(value: &T) -> Self;
}

impl Form<u64> for u64 {
    fn of(value: &u64) -> Self {
        *value
    }
}

impl Form<Self> for BTreeMap<u64, u64> {
    fn of(value: &Self) -> Self {
        value.clone()
    }
}

impl<T, F: Form<T>> Form<Option<T>> for Option<F> {
    fn of(value: &Option<T>) -> Self {
        value.as_ref().map(F::of)
    }
}

impl Form<Self> for Multiplexed {
    fn of(value: &Self) -> Self {
        *value
    }
}

impl<F: Form<Handshakes>> Form<Handshakes> for Option<F> {
    /// None if there was none.
    fn of(found: &Handshakes) -> Self {
        (found.all() > 0).then(|| F::of(found))
    }
}

impl Form<Duration> for f64 {
    fn of(value: &Duration) -> Self {
        value.as_secs_f64()
    }
}

impl Form<[u64; ErrorClass::COUNT]> for BTreeMap<String, u64> {
    /// Leaves out the classes that have none.
    fn of(errors: &[u64; ErrorClass::COUNT]) -> Self {
        let pairs = ErrorClass::ALL.into_iter().zip(*errors);
        pairs.filter(|(_, count)| *count > 0).map(|(class, count)| (class.name().to_owned(), count)).collect()
    }
}

impl Form<BTreeMap<ErrorClass, Example>> for BTreeMap<String, String> {
    fn of(examples: &BTreeMap<ErrorClass, Example>) -> Self {
        examples.iter().map(|(class, text)| (class.name().to_owned(), text.to_string())).collect()
    }
}

impl Form<[u64; 10]> for Vec<u64> {
    fn of(tenths: &[u64; 10]) -> Self {
        if tenths.iter().any(|count| *count > 0) { tenths.to_vec() } else { Vec::new() }
    }
}

impl Form<Times> for Vec<(u64, u64)> {
    fn of(times: &Times) -> Self {
        crate::micros_of(&times.answered())
    }
}

/// The rules by which the values of two threads or generators become one.
pub(crate) mod merge {
    use super::*;

    pub(crate) fn sum<T: Value>(mine: &mut T, theirs: &T) {
        mine.add(theirs);
    }

    pub(crate) fn max<T: PartialOrd + Copy>(mine: &mut T, theirs: &T) {
        if *theirs > *mine {
            *mine = *theirs;
        }
    }

    pub(crate) fn last<T: Clone>(mine: &mut T, theirs: &T) {
        mine.clone_from(theirs);
    }

    /// The example that was seen first.
    pub(crate) fn first(mine: &mut BTreeMap<ErrorClass, Example>, theirs: &BTreeMap<ErrorClass, Example>) {
        for (class, example) in theirs {
            match mine.get(class) {
                Some(first) if first.into_window <= example.into_window => {}
                _ => _ = mine.insert(*class, example.clone()),
            }
        }
    }
}

/// A value of a row. Those of other machines may be large: a sum that is too small is better than a crash, and what is so large
/// that a thousand cannot be added is refused.
pub(crate) trait Value {
    /// Adds another one, if `sum` is its rule.
    fn add(&mut self, _other: &Self) {}

    /// Whether a generator can have counted it.
    fn fits(&self) -> bool {
        true
    }

    /// The times, if it is a histogram.
    fn times(&self) -> Option<&Times> {
        None
    }
}

/// The most that may be counted. A thousand of them can be added.
pub(crate) const MOST: u64 = 1 << 53;
/// No drive takes longer, nor does the CPU time of all of its threads.
const LONGEST: Duration = Duration::from_secs(1000 * 366 * 86_400);
/// The busiest core works all the time. The kernel adds its time up in ticks, so that of a short window may be too much.
pub(crate) const BUSIEST: f64 = 100.0;
/// More names or ordinals than all threads of a machine keep.
const MOST_ENTRIES: usize = 1 << 20;

impl Value for Example {}

impl Value for u64 {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn fits(&self) -> bool {
        *self <= MOST
    }
}

impl Value for Duration {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn fits(&self) -> bool {
        *self <= LONGEST
    }
}

impl Value for f64 {
    fn fits(&self) -> bool {
        (0.0..=BUSIEST).contains(self)
    }
}

impl Value for Cow<'static, str> {
    fn fits(&self) -> bool {
        ["io_uring", "epoll", ""].contains(&&**self)
    }
}

impl Value for Times {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }

    fn fits(&self) -> bool {
        self.len() <= MOST
    }

    fn times(&self) -> Option<&Times> {
        Some(self)
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
    }

    fn fits(&self) -> bool {
        self.iter().all(T::fits)
    }
}

impl<T: Value + Default> Value for Vec<T> {
    fn add(&mut self, other: &Self) {
        self.resize_with(self.len().max(other.len()), T::default);
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
    }

    fn fits(&self) -> bool {
        self.len() <= MOST_ENTRIES && self.iter().all(T::fits)
    }
}

impl<K: Ord + Copy, T: Value + Clone> Value for BTreeMap<K, T> {
    fn add(&mut self, other: &Self) {
        for (key, theirs) in other {
            self.entry(*key).and_modify(|mine| mine.add(theirs)).or_insert_with(|| theirs.clone());
        }
    }

    fn fits(&self) -> bool {
        self.len() <= MOST_ENTRIES && self.values().all(T::fits)
    }
}

impl<T: Value + Default> Value for Option<T> {
    fn add(&mut self, other: &Self) {
        if let Some(theirs) = other {
            self.get_or_insert_default().add(theirs);
        }
    }

    fn fits(&self) -> bool {
        self.as_ref().is_none_or(T::fits)
    }

    fn times(&self) -> Option<&Times> {
        self.as_ref()?.times()
    }
}

/// Lets structs of counts be added up and checked field by field.
macro_rules! counts {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl $crate::rows::Value for $name {
            fn add(&mut self, other: &Self) {
                let Self { $($field),* } = self;
                $($field.add(&other.$field);)*
            }

            fn fits(&self) -> bool {
                let Self { $($field),* } = self;
                $($field.fits())&&*
            }
        }
    )*};
}
pub(crate) use counts;
