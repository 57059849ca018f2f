//! Whether a measurement that came from another machine or a store can be true. What is refused here could not be added to
//! others or shown. Whether the rest is right is for the doubts.

use super::{Latency, Measurement, Together};

/// The most that is counted. A thousand such counts can be added.
const MOST: u64 = 1 << 53;
/// No time is longer, in seconds: a thousand years.
const LONGEST_S: f64 = 1000.0 * 366.0 * 86_400.0;
/// More entries than a list of times, of failures or of memory can have.
const MOST_ENTRIES: usize = 1 << 20;
/// The longest text, in bytes.
const LONGEST_TEXT: usize = 1 << 16;
/// How many tenths a window has.
const TENTHS: usize = 10;

/// A field that makes no sense, and why.
type Wrong = String;

/// Checks values, and remembers the first that makes no sense.
#[derive(Default)]
struct Checker {
    wrong: Option<Wrong>,
    /// Checks only that each number is in its range. It does not check lengths, or whether numbers agree.
    sizes_only: bool,
}

impl Checker {
    fn that(&mut self, fits: bool, name: &str, why: impl FnOnce() -> String) {
        self.size(fits || self.sizes_only, name, why);
    }

    fn size(&mut self, fits: bool, name: &str, why: impl FnOnce() -> String) {
        if !fits && self.wrong.is_none() {
            self.wrong = Some(format!("`{name}` {}", why()));
        }
    }

    /// A number from 0 to `most`.
    fn number(&mut self, name: &str, value: f64, most: f64) {
        self.size((0.0..=most).contains(&value), name, || {
            format!("is {value}, not a number from 0 to {most}")
        });
    }

    fn seconds(&mut self, name: &str, value: f64) {
        self.number(name, value, LONGEST_S);
    }

    fn micros(&mut self, name: &str, value: f64) {
        self.number(name, value, LONGEST_S * 1e6);
    }

    fn count(&mut self, name: &str, value: u64) {
        self.size(value <= MOST, name, || format!("is {value}, more than 2^53"));
    }

    fn length(&mut self, name: &str, length: usize, most: usize) {
        self.that(length <= most, name, || format!("has {length} entries, more than {most}"));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.that(text.len() <= LONGEST_TEXT, name, || format!("has more than {LONGEST_TEXT} bytes"));
    }

    /// Counts by an ascending value. Returns their sum.
    fn buckets(&mut self, name: &str, buckets: &[(u64, u64)]) -> u64 {
        self.length(name, buckets.len(), MOST_ENTRIES);
        let unordered = || "is not in ascending order".to_owned();
        self.that(buckets.is_sorted_by(|(one, _), (next, _)| one < next), name, unordered);
        // Runs of earlier versions may have a value twice.
        self.size(buckets.is_sorted_by_key(|(value, _)| *value), name, unordered);
        if let Some((last, _)) = buckets.last() {
            self.micros(name, *last as f64);
        }
        let sum = buckets.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        self.count(name, sum);
        sum
    }

    fn latency(&mut self, name: &str, latency: &Latency) {
        let part = |part: &str| format!("{name}.{part}");
        let Latency { count, min, mean, max, buckets, unanswered } = latency;
        for (of, value) in [("min", min), ("mean", mean), ("max", max)] {
            self.micros(&part(of), *value);
        }
        let sum = self.buckets(&part("buckets"), buckets);
        self.that(sum == *count, &part("count"), || format!("is {count}, and its buckets have {sum}"));
        self.buckets(&part("unanswered"), unanswered);
    }

    fn together(&mut self, together: &Together) {
        self.seconds("together.skew_s", together.skew_s.unwrap_or(0.0));
        self.length("together.generators", together.generators.len(), MOST_ENTRIES);
        for generator in &together.generators {
            self.text("together.generators.machine", &generator.machine);
            self.count("together.generators.successes", generator.successes);
            self.count("together.generators.connections", generator.connections);
            self.number("together.generators.busiest_core", generator.busiest_core, BUSIEST);
        }
        if let Some(path) = together.path {
            self.micros("together.path.round_trip_us", path.round_trip_us);
            self.number("together.path.bytes_per_s", path.bytes_per_s.unwrap_or(0.0), MOST as f64);
            path.bulk_us.iter().flatten().for_each(|time| self.micros("together.path.bulk_us", *time));
        }
    }
}

/// A core works all the time at most. The kernel adds its time up in ticks, so that of a short window may be too much.
const BUSIEST: f64 = 100.0;

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
    pub(crate) fn check_sizes(&self) -> Result<(), String> {
        self.check_with(Checker { sizes_only: true, ..Checker::default() })
    }

    fn check_with(&self, mut found: Checker) -> Result<(), String> {
        self.check_counts(&mut found);
        self.check_times(&mut found);
        self.check_lists(&mut found);
        self.check_use(&mut found);
        if let Some(together) = &self.together {
            found.together(together);
        }
        found.wrong.map_or(Ok(()), Err)
    }

    fn check_counts(&self, found: &mut Checker) {
        let counts = [
            ("attempts", self.attempts),
            ("successes", self.successes),
            ("in_flight", self.in_flight),
            ("late", self.late),
            ("arrivals", self.arrivals),
            ("dropped", self.dropped),
            ("no_continue", self.no_continue),
            ("units", self.units),
            ("payload_bytes", self.payload_bytes),
            ("bytes_sent", self.bytes_sent),
            ("bytes_received", self.bytes_received),
            ("concurrency", self.concurrency),
            ("connections", self.connections),
            ("throttles", self.throttles),
            ("time_wait", self.time_wait),
            ("ports", self.ports),
            ("retransmits", self.retransmits),
        ];
        counts.into_iter().for_each(|(name, count)| found.count(name, count));
        let (successes, attempts) = (self.successes, self.attempts);
        found.that(successes <= attempts, "successes", || format!("is {successes} of {attempts} attempts"));
        found.length("errors", self.errors.len(), MOST_ENTRIES);
        for (class, count) in &self.errors {
            found.text("errors", class);
            found.count("errors", *count);
        }
        let sum = self.errors.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        found.count("errors", sum);
    }

    fn check_times(&self, found: &mut Checker) {
        found.seconds("elapsed_s", self.elapsed_s);
        found.seconds("stolen_s", self.stolen_s);
        found.micros("mean_error_us", self.mean_error_us);
        found.latency("service_us", &self.service_us);
        found.latency("response_us", &self.response_us);
        found.latency("pool_wait_us", &self.pool_wait_us);
        if let Some(handshakes) = &self.handshakes {
            found.latency("handshakes.opening_us", &handshakes.opening_us);
            for count in [handshakes.full, handshakes.retried, handshakes.resumed, handshakes.offered] {
                found.count("handshakes", count);
            }
        }
        if let Some(max_rate) = &self.max_rate {
            found.number("max_rate.per_s", max_rate.per_s, MOST as f64);
            found.number("max_rate.fails_at", max_rate.fails_at.unwrap_or(0.0), MOST as f64);
            found.number("max_rate.busiest_core", max_rate.busiest_core, BUSIEST);
        }
    }

    fn check_lists(&self, found: &mut Checker) {
        found.buckets("in_flight_us", &self.in_flight_us);
        found.number("edges", self.edges.unwrap_or(0.0).abs(), MOST as f64);
        found.length("tenths", self.tenths.len(), TENTHS);
        self.tenths.iter().for_each(|count| found.count("tenths", *count));
        found.length("first_errors", self.first_errors.len(), MOST_ENTRIES);
        self.first_errors.values().for_each(|text| found.text("first_errors", text));
        found.length("error_ordinals", self.error_ordinals.len(), MOST_ENTRIES);
        let sum = self.error_ordinals.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        found.count("error_ordinals", sum);
    }

    fn check_use(&self, found: &mut Checker) {
        let (system, generator) = (&self.system, &self.generator);
        found.seconds("system.cpu_s", system.cpu_s);
        found.seconds("system.waited_s", system.waited_s.unwrap_or(0.0));
        found.seconds("system.compiled_s", system.compiled_s.unwrap_or(0.0));
        found.seconds("system.ready_s", system.ready_s.unwrap_or(0.0));
        found.number("system.softirq_share", system.softirq_share.unwrap_or(0.0), BUSIEST);
        found.seconds("generator.cpu_s", generator.cpu_s);
        found.number("generator.busiest_core", generator.busiest_core, BUSIEST);
        found.length("system.pss_course", system.pss_course.len(), MOST_ENTRIES);
        for (name, cores) in [("system.cores", &system.cores), ("generator.cores", &generator.cores)] {
            found.length(name, cores.len(), MOST_ENTRIES);
        }
        for (name, text) in [
            ("system.unequal", &system.unequal),
            ("system.version", &system.version),
            ("generator.backend", &generator.backend),
        ] {
            found.text(name, text);
        }
        let counts = [
            ("system.peak_pss_bytes", system.peak_pss_bytes),
            ("system.peak_rss_bytes", system.peak_rss_bytes),
            ("system.context_switches", system.context_switches),
            ("system.rest_pss_bytes", system.rest_pss_bytes.unwrap_or(0)),
            ("system.socket_memory_bytes", system.socket_memory_bytes),
            ("system.page_faults", system.page_faults.unwrap_or(0)),
        ];
        counts.into_iter().for_each(|(name, count)| found.count(name, count));
        if let Some(counted) = &self.counted {
            found.count("counted.operations", counted.operations);
            found.count("counted.bytes", counted.bytes);
            found.count("counted.bytes_received", counted.bytes_received);
            let calls = [counted.system_calls, counted.reads, counted.instructions];
            calls.into_iter().flatten().for_each(|count| found.count("counted", count));
            if let Some(traced) = &counted.traced {
                let counts = [traced.operations, traced.bytes, traced.system_calls, traced.reads];
                counts.into_iter().for_each(|count| found.count("counted.traced", count));
            }
        }
        if let Some(server) = &self.server {
            let counts = [
                server.requests,
                server.responses,
                server.connections,
                server.peak_connections,
                server.closes,
                server.client_attempts,
                server.client_successes,
            ];
            counts.into_iter().for_each(|count| found.count("server", count));
            found.length("server.client_errors", server.client_errors.len(), MOST_ENTRIES);
            server.client_errors.values().for_each(|count| found.count("server.client_errors", *count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Generated, Path};
    use super::*;

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
