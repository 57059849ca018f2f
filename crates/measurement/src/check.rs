//! Whether a measurement that came from another machine or a store can be true. What is refused here could not be added to
//! others or shown. Whether the rest is right is for the doubts.
//!
//! The macro [`table`] makes a struct that is checked field by field. The type of a field says what is checked, and the end of its
//! name is its unit, which says how large it may be.

use std::collections::BTreeMap;

use systems::tcp::TcpEnds;

use crate::{Latency, Measurement};

/// The most that is counted. A thousand such counts can be added.
const MOST: u64 = 1 << 53;
/// No time is longer, in seconds: a thousand years.
const LONGEST_S: f64 = 1000.0 * 366.0 * 86_400.0;
/// A core works all the time at most. The kernel adds its time up in ticks, so that of a short window may be too much.
const BUSIEST: f64 = 100.0;
/// More entries than a list of times, of failures or of memory can have.
const MOST_ENTRIES: usize = 1 << 20;
/// The longest text, in bytes.
const LONGEST_TEXT: usize = 1 << 16;
/// How many tenths a window has.
const TENTHS: usize = 10;

/// Makes structs that are checked field by field. In brackets stands the check of a field that is not the one of its type.
macro_rules! table {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$attribute:meta])* pub $field:ident: $type:ty $([$check:ident])?,)* }
    )*) => {$(
        $(#[$meta])*
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }

        impl $crate::check::Checked for $name {
            fn check(&self, found: &mut $crate::check::Checker) {
                $(found.field(stringify!($field), |found| {
                    $crate::check::table!(check self.$field, found $(, $check)?);
                });)*
            }
        }
    )*};
    (check $value:expr, $found:ident) => { $crate::check::Checked::check(&$value, $found) };
    (check $value:expr, $found:ident, $check:ident) => { $found.$check(&$value) };
}
pub(crate) use table;

/// A value that another machine or a store can have got wrong.
pub(crate) trait Checked: Sized {
    /// Checks it. Most types have no wrong values.
    fn check(&self, _found: &mut Checker) {}

    /// Checks a list.
    fn check_list(list: &[Self], found: &mut Checker) {
        found.entries(list);
        list.iter().for_each(|value| value.check(found));
    }

    /// What it adds to a sum of counts.
    fn amount(&self) -> u64 {
        0
    }
}

/// Checks values, and remembers the first that makes no sense.
#[derive(Default)]
pub(crate) struct Checker {
    /// The names that lead to the field.
    path: Vec<&'static str>,
    /// A field that makes no sense, and why.
    wrong: Option<String>,
    /// Checks only that each number is in its range. It does not check lengths, or whether numbers agree.
    sizes_only: bool,
}

impl Checker {
    /// Checks a part of what is checked.
    pub(crate) fn field(&mut self, name: &'static str, check: impl FnOnce(&mut Self)) {
        self.path.push(name);
        check(self);
        self.path.pop();
    }

    fn that(&mut self, fits: bool, why: impl FnOnce() -> String) {
        self.size(fits || self.sizes_only, why);
    }

    fn size(&mut self, fits: bool, why: impl FnOnce() -> String) {
        if !fits && self.wrong.is_none() {
            self.wrong = Some(format!("`{}` {}", self.path.join("."), why()));
        }
    }

    /// A number that is not negative.
    fn number(&mut self, value: f64) {
        let most = self.path.iter().rev().find_map(|name| most(name)).unwrap_or(MOST as f64);
        self.size((0.0..=most).contains(&value), || format!("is {value}, not a number from 0 to {most}"));
    }

    /// A number that may be negative.
    pub(crate) fn signed(&mut self, value: &Option<f64>) {
        self.number(value.unwrap_or(0.0).abs());
    }

    fn length(&mut self, length: usize, most: usize) {
        self.that(length <= most, || format!("has {length} entries, more than {most}"));
    }

    /// A value that may be as large as its type, and is never added up.
    pub(crate) fn any<T>(&mut self, _value: &T) {}

    /// A list of which only the length matters.
    pub(crate) fn entries<T>(&mut self, list: &[T]) {
        self.length(list.len(), MOST_ENTRIES);
    }

    /// The sum of counts.
    fn sum<'a>(&mut self, counts: impl Iterator<Item = &'a (impl Checked + 'a)>) -> u64 {
        let sum = counts.fold(0, |sum: u64, count| sum.saturating_add(count.amount()));
        sum.check(self);
        sum
    }

    /// Counts by an ascending value. Returns their sum.
    fn buckets(&mut self, buckets: &[(u64, u64)]) -> u64 {
        self.entries(buckets);
        let unordered = || "is not in ascending order".to_owned();
        self.that(buckets.is_sorted_by(|(one, _), (next, _)| one < next), unordered);
        // Runs of earlier versions may have a value twice.
        self.size(buckets.is_sorted_by_key(|(value, _)| *value), unordered);
        self.number(buckets.last().map_or(0.0, |(last, _)| *last as f64));
        self.sum(buckets.iter().map(|(_, count)| count))
    }
}

/// The most that a number may be, by the unit that its name ends with.
fn most(name: &str) -> Option<f64> {
    match name {
        _ if name.ends_with("per_s") => Some(MOST as f64),
        _ if name.ends_with("_s") => Some(LONGEST_S),
        _ if name.ends_with("_us") => Some(LONGEST_S * 1e6),
        _ if name.ends_with("_core") || name.ends_with("_share") => Some(BUSIEST),
        _ => None,
    }
}

impl Checked for bool {}
impl Checked for u32 {}
impl Checked for usize {}
impl Checked for TcpEnds {}

impl Checked for u64 {
    fn check(&self, found: &mut Checker) {
        found.size(*self <= MOST, || format!("is {self}, more than 2^53"));
    }

    /// The counts in the tenths of a window.
    fn check_list(list: &[Self], found: &mut Checker) {
        found.length(list.len(), TENTHS);
        found.sum(list.iter());
    }

    fn amount(&self) -> u64 {
        *self
    }
}

impl Checked for (u64, u64) {
    fn check_list(list: &[Self], found: &mut Checker) {
        found.buckets(list);
    }
}

impl Checked for f64 {
    fn check(&self, found: &mut Checker) {
        found.number(*self);
    }
}

impl Checked for String {
    fn check(&self, found: &mut Checker) {
        found.that(self.len() <= LONGEST_TEXT, || format!("has more than {LONGEST_TEXT} bytes"));
    }
}

impl<T: Checked> Checked for Option<T> {
    fn check(&self, found: &mut Checker) {
        self.iter().for_each(|value| value.check(found));
    }
}

impl<T: Checked, const N: usize> Checked for [T; N] {
    fn check(&self, found: &mut Checker) {
        T::check_list(self, found);
    }
}

impl<T: Checked> Checked for Vec<T> {
    fn check(&self, found: &mut Checker) {
        T::check_list(self, found);
    }
}

impl<K: Checked, V: Checked> Checked for BTreeMap<K, V> {
    fn check(&self, found: &mut Checker) {
        found.length(self.len(), MOST_ENTRIES);
        self.iter().for_each(|(key, value)| {
            key.check(found);
            value.check(found);
        });
        found.sum(self.values());
    }
}

impl Checked for Latency {
    fn check(&self, found: &mut Checker) {
        let Self { count, min, mean, max, buckets, unanswered } = self;
        for (name, value) in [("min", min), ("mean", mean), ("max", max)] {
            found.field(name, |found| found.number(*value));
        }
        let mut sum = 0;
        found.field("buckets", |found| sum = found.buckets(buckets));
        found.field("count", |found| {
            found.that(sum == *count, || format!("is {count}, and its buckets have {sum}"));
        });
        found.field("unanswered", |found| unanswered.check(found));
    }
}

impl Measurement {
    /// Whether this can be the measurement of a trial.
    ///
    /// # Errors
    /// The first field that makes no sense, and why.
    pub fn check(&self) -> Result<(), String> {
        self.check_with(Checker::default())
    }

    /// Whether its numbers can be added to those of others. Runs of earlier versions need not pass [`Self::check`].
    ///
    /// # Errors
    /// The first number that is too large or negative.
    pub fn check_sizes(&self) -> Result<(), String> {
        self.check_with(Checker { sizes_only: true, ..Checker::default() })
    }

    fn check_with(&self, mut found: Checker) -> Result<(), String> {
        Checked::check(self, &mut found);
        let (successes, attempts, in_flight) = (self.successes, self.attempts, self.in_flight);
        let failed = self.errors.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let ended = successes.saturating_add(failed);
        found.field("successes", |found| {
            found.that(successes <= attempts, || format!("is {successes} of {attempts} attempts"));
        });
        found.field("attempts", |found| {
            found.that(ended.saturating_add(in_flight) == attempts, || {
                format!(
                    "is {attempts}, with {successes} successes, {failed} errors and {in_flight} in flight"
                )
            });
        });
        // No time is that of an exchange that was neither begun nor due.
        let timed = attempts.saturating_add(self.dropped);
        for (name, times) in [("service_us", &self.service_us), ("response_us", &self.response_us)] {
            found.field(name, |found| {
                let count = times.count;
                found.that(count <= timed, || format!("has {count} times for {timed} arrivals"));
            });
        }
        let ordinals = self.error_ordinals.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        found.field("error_ordinals", |found| {
            found.that(ordinals <= failed, || format!("has {ordinals} for {failed} errors"));
        });
        found.wrong.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generated, Latency, Path, Together};

    fn honest() -> Measurement {
        let times = Latency::from_buckets(vec![(10, 3), (20, 5)]);
        Measurement {
            elapsed_s: 1.0,
            attempts: 9,
            successes: 8,
            in_flight: 1,
            service_us: times.clone(),
            response_us: times,
            tenths: vec![1; 10],
            together: Some(Together {
                skew_s: Some(0.001),
                generators: vec![Generated { machine: "local".to_owned(), ..Generated::default() }],
                path: Some(Path { round_trip_us: 20.0, bytes_per_s: Some(1e9), bulk_us: None }),
                ..Together::default()
            }),
            ..Measurement::default()
        }
    }

    #[test]
    fn what_no_trial_can_measure_is_refused_by_its_name() {
        type Spoil = fn(&mut Measurement);
        let table: &[(&str, Spoil)] = &[
            ("elapsed_s", |m| m.elapsed_s = f64::NAN),
            ("elapsed_s", |m| m.elapsed_s = -1.0),
            ("elapsed_s", |m| m.elapsed_s = 1e300),
            ("stolen_s", |m| m.stolen_s = f64::INFINITY),
            ("mean_error_us", |m| m.mean_error_us = -1.0),
            ("attempts", |m| m.attempts = u64::MAX),
            ("successes", |m| m.successes = 10),
            ("attempts", |m| m.attempts = 10),
            ("attempts", |m| m.errors = [("status".to_owned(), 1)].into()),
            ("service_us", |m| m.service_us = Latency::from_buckets(vec![(10, 10)])),
            ("error_ordinals", |m| m.error_ordinals = [(7, 1)].into()),
            ("errors", |m| m.errors = [("a".to_owned(), MOST), ("b".to_owned(), u64::MAX)].into()),
            ("payload_bytes", |m| m.payload_bytes = MOST + 1),
            ("service_us.mean", |m| m.service_us.mean = f64::NAN),
            ("service_us.count", |m| m.service_us.count = 7),
            ("service_us.buckets", |m| m.service_us.buckets = vec![(20, 5), (10, 3)]),
            ("service_us.buckets", |m| m.service_us.buckets = vec![(10, 3), (10, 5)]),
            ("service_us.buckets", |m| m.service_us.buckets = vec![(10, 3), (u64::MAX, 5)]),
            ("response_us.buckets", |m| m.response_us.buckets = vec![(1, u64::MAX), (2, u64::MAX)]),
            ("response_us.unanswered", |m| m.response_us.unanswered = vec![(1, u64::MAX)]),
            ("in_flight_us", |m| m.in_flight_us = vec![(2, 1), (1, 1)]),
            ("edges", |m| m.edges = Some(f64::NAN)),
            ("tenths", |m| m.tenths = vec![1; 11]),
            ("first_errors", |m| m.first_errors = [("a".to_owned(), "x".repeat(LONGEST_TEXT + 1))].into()),
            ("generator.busiest_core", |m| m.generator.busiest_core = -0.5),
            ("system.cpu_s", |m| m.system.cpu_s = f64::NAN),
            ("system.pss_course", |m| m.system.pss_course = vec![(0, 0); MOST_ENTRIES + 1]),
            ("system.version", |m| m.system.version = "x".repeat(LONGEST_TEXT + 1)),
            ("together.skew_s", |m| m.together.as_mut().unwrap().skew_s = Some(-1.0)),
            ("together.generators.busiest_core", |m| {
                m.together.as_mut().unwrap().generators[0].busiest_core = f64::INFINITY;
            }),
            ("together.path.round_trip_us", |m| {
                m.together.as_mut().unwrap().path.as_mut().unwrap().round_trip_us = -2.0;
            }),
            ("together.path.bulk_us", |m| {
                m.together.as_mut().unwrap().path.as_mut().unwrap().bulk_us = Some([1.0, f64::NAN, 1.0]);
            }),
        ];
        assert_eq!(honest().check(), Ok(()));
        assert_eq!(Measurement::default().check(), Ok(()));
        for (name, spoil) in table {
            let mut spoilt = honest();
            spoil(&mut spoilt);
            let wrong = spoilt.check().expect_err(name);
            assert!(wrong.starts_with(&format!("`{name}` ")), "{name}: {wrong}");
        }
    }

    #[test]
    fn a_run_of_an_earlier_version_needs_no_buckets_but_numbers_that_can_be_added() {
        let mut stored = honest();
        (stored.service_us.buckets, stored.successes) = (Vec::new(), 10);
        assert_eq!(stored.check_sizes(), Ok(()));
        stored.dropped = u64::MAX;
        assert!(stored.check_sizes().is_err_and(|why| why.starts_with("`dropped` ")));
    }

    #[test]
    fn what_an_earlier_version_stored_is_read_unless_its_numbers_are_impossible() {
        let sizes = |buckets: &[(u64, u64)]| {
            let mut measured = honest();
            measured.service_us.buckets = buckets.to_vec();
            measured.check_sizes()
        };
        assert_eq!(sizes(&[(10, 3), (10, 5)]), Ok(()));
        for impossible in [&[(10, 3), (100_000, 1), (20, 5)][..], &[(10, 3), (u64::MAX, 5)]] {
            assert!(sizes(impossible).is_err_and(|why| why.contains("service_us.buckets")), "{impossible:?}");
        }
    }
}
