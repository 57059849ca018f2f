//! Reads and checks the account that a client driver gives of itself (docs/contracts.md, "A client driver"), and
//! converts it to a measurement. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use measurement::{Latency, Measurement, ServerCounts};
use serde::Deserialize;
use serve::CounterSnapshot;

use crate::observation::shown_reason;

/// How much longer than the ordered times a driver may take, for its own start and its summary.
pub(super) const SLACK: Duration = Duration::from_secs(15);

/// More requests than this are not those of one driver. Sums of so few cannot overflow.
const MOST: u64 = 1 << 53;

/// Drivers report shorter times as zero.
const RESOLUTION_US: f64 = 0.5;

/// Values, each with its count.
type Pairs = Vec<(u64, u64)>;

/// The last line of a trial. Optional fields are empty or zero if the driver does not report them.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Account {
    elapsed_us: u64,
    attempts: u64,
    successes: u64,
    errors: BTreeMap<String, u64>,
    in_flight: u64,
    #[serde(default)]
    in_flight_us: Pairs,
    latency_us: Pairs,
    #[serde(default)]
    unanswered_us: Pairs,
    #[serde(default)]
    pool_wait_us: Pairs,
    #[serde(default)]
    service_us: Pairs,
    #[serde(default)]
    failed_us: Pairs,
    #[serde(default)]
    failed_ordinals: Pairs,
    #[serde(default)]
    first_errors: BTreeMap<String, String>,
    #[serde(default)]
    late: u64,
    #[serde(default)]
    dropped: u64,
    pub total: LifetimeCounts,
    #[serde(default)]
    pub version: String,
}

/// Counts over the client's whole life, including warm-up and end.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct LifetimeCounts {
    pub attempts: u64,
    pub successes: u64,
    pub errors: BTreeMap<String, u64>,
}

impl Account {
    /// Checks that the account adds up.
    ///
    /// # Errors
    /// What contradicts itself.
    pub(super) fn check(&self, window: Duration, open_loop: bool) -> Result<(), String> {
        self.check_classes()?;
        let failed = self.check_counts()?;
        self.check_times(failed, open_loop)?;
        // A driver's scheduler may end its window late, but never early.
        let told = Duration::from_micros(self.elapsed_us);
        if told < shortest_window(window) || told > window * 3 + SLACK {
            let [told, asked] = [told, window].map(|time| time.as_secs_f64());
            return Err(format!("a window of {told:.3} s instead of {asked:.3} s"));
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), String> {
        let mut classes = self.errors.keys().chain(self.total.errors.keys()).chain(self.first_errors.keys());
        match classes.find(|name| load::ErrorClass::from_name(name).is_none()) {
            Some(class) => Err(format!("the error class {class:?} is not in docs/contracts.md")),
            None => Ok(()),
        }
    }

    /// Checks that attempts are the sum of successes, errors and requests in flight. Returns the errors of the window.
    fn check_counts(&self) -> Result<u64, String> {
        let Self { attempts, successes, in_flight, total, .. } = self;
        let errors = sum(self.errors.values());
        let ended = errors.and_then(|errors| errors.checked_add(*successes)?.checked_add(*in_flight));
        if ended != Some(*attempts) || *attempts > MOST || self.dropped > MOST {
            return Err(format!(
                "window: {attempts} attempts, {successes} successes, {} errors, {in_flight} in flight",
                told(errors)
            ));
        }
        let all = sum(total.errors.values());
        if all.and_then(|all| all.checked_add(total.successes)) != Some(total.attempts)
            || total.successes < *successes
        {
            let LifetimeCounts { attempts, successes, .. } = total;
            let all = told(all);
            return Err(format!("total: {attempts} attempts, {successes} successes, {all} errors"));
        }
        Ok(errors.unwrap_or_default())
    }

    /// Checks that there is one time for each success. The same holds for optional times, if they are reported. In an open
    /// loop there may be times of other arrivals that were due in the window, but no more than there were arrivals.
    fn check_times(&self, failed: u64, open_loop: bool) -> Result<(), String> {
        let count_of = |pairs: &Pairs| sum(pairs.iter().map(|(_, count)| count));
        let successes = self.successes;
        let (arrivals, what) = (self.attempts.saturating_add(self.dropped), "successes");
        for (name, pairs, needed) in [
            ("latency_us", &self.latency_us, true),
            ("pool_wait_us", &self.pool_wait_us, false),
            ("service_us", &self.service_us, false),
        ] {
            let count = count_of(pairs);
            let fits = match count {
                Some(count) if open_loop => count <= arrivals,
                count => count == Some(successes) || (pairs.is_empty() && !needed),
            };
            if !fits {
                return Err(format!("{name} has {} times for {successes} {what}", told(count)));
            }
        }
        let given_up = count_of(&self.unanswered_us);
        let all = given_up.zip(count_of(&self.latency_us)).and_then(|(ages, times)| ages.checked_add(times));
        if all.is_none_or(|all| given_up > Some(0) && all > arrivals) {
            let (all, ages) = (told(all), told(given_up));
            return Err(format!("{all} times and ages ({ages} in unanswered_us) for {arrivals} arrivals"));
        }
        if count_of(&self.in_flight_us).is_none_or(|ages| ages > MOST) {
            return Err(format!("in_flight_us has {} ages", told(count_of(&self.in_flight_us))));
        }
        let errors = count_of(&self.failed_us);
        if !self.failed_us.is_empty() && errors != Some(failed) {
            return Err(format!("failed_us has {} times for {failed} errors", told(errors)));
        }
        match count_of(&self.failed_ordinals) {
            Some(ordinals) if ordinals <= failed => Ok(()),
            ordinals => Err(format!("failed_ordinals has {} for {failed} errors", told(ordinals))),
        }
    }

    /// The counts of the whole life, by the server and by the driver.
    pub(super) fn server_counts(&self, server: CounterSnapshot) -> ServerCounts {
        ServerCounts {
            requests: server.requests,
            responses: server.responses,
            connections: server.connections,
            peak_connections: server.peak_connections,
            closes: server.closes,
            client_attempts: self.total.attempts,
            client_successes: self.total.successes,
            client_errors: self.total.errors.clone(),
        }
    }

    /// Converts the account and the server's counts to a measurement.
    pub(super) fn measurement(self, server: CounterSnapshot) -> Measurement {
        let counts = self.server_counts(server);
        let failed = Latency::from_buckets(self.failed_us);
        Measurement {
            elapsed_s: Duration::from_micros(self.elapsed_us).as_secs_f64(),
            attempts: self.attempts,
            successes: self.successes,
            errors: self.errors,
            in_flight: self.in_flight,
            late: self.late,
            dropped: self.dropped,
            units: self.successes,
            payload_bytes: self.successes.saturating_mul(2),
            in_flight_us: sorted(self.in_flight_us),
            response_us: Latency {
                unanswered: sorted(self.unanswered_us),
                ..Latency::from_buckets(self.latency_us)
            },
            pool_wait_us: Latency::from_buckets(self.pool_wait_us),
            service_us: Latency::from_buckets(self.service_us),
            // A reported time below the resolution must not become 0, which means that nothing was reported.
            mean_error_us: if failed.count > 0 { failed.mean.max(RESOLUTION_US) } else { 0.0 },
            error_ordinals: self.failed_ordinals.into_iter().take(load::Tally::ORDINALS).collect(),
            first_errors: self
                .first_errors
                .into_iter()
                .map(|(class, why)| (class, shown_reason(&why)))
                .collect(),
            connections: server.peak_connections,
            server: Some(counts),
            ..Measurement::default()
        }
    }
}

/// A window that is shorter than this is not the one that was to last so long. Clocks and schedulers differ a little.
pub fn shortest_window(asked: Duration) -> Duration {
    asked.mul_f64(0.9)
}

fn sorted(mut pairs: Pairs) -> Pairs {
    pairs.sort_unstable();
    pairs
}

/// A sum in words.
fn told(sum: Option<u64>) -> String {
    sum.map_or_else(|| "too many".to_owned(), |sum| sum.to_string())
}

/// The sum of the counts. `None` if it overflows.
fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> Option<u64> {
    counts.copied().try_fold(0, u64::checked_add)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Ten successes, three failures, two requests in flight, and all optional fields.
    fn sound() -> Value {
        json!({
            "elapsed_us": 1_000_000, "attempts": 15, "successes": 10, "errors": {"busy": 2, "closed_early": 1},
            "in_flight": 2, "in_flight_us": [[700, 1], [500, 2]], "latency_us": [[1000, 4], [2000, 6]], "pool_wait_us": [[10, 10]],
            "service_us": [[990, 10]], "failed_us": [[5, 3]], "failed_ordinals": [[101, 1]],
            "first_errors": {"busy": "no socket"}, "late": 1, "dropped": 2,
            "total": {"attempts": 20, "successes": 15, "errors": {"busy": 5}}, "version": "1"
        })
    }

    fn account(value: Value) -> Account {
        serde_json::from_value(value).expect("an account")
    }

    #[test]
    fn the_account_keeps_everything_that_a_driver_reports() {
        let account = account(sound());
        assert_eq!(account.check(Duration::from_secs(1), false), Ok(()));
        let m = account.measurement(CounterSnapshot {
            peak_connections: 4,
            closes: 3,
            ..CounterSnapshot::default()
        });
        assert_eq!((m.pool_wait_us.count, m.service_us.mean, m.mean_error_us), (10, 990.0, 5.0));
        assert_eq!((m.error_ordinals, m.late, m.dropped), (BTreeMap::from([(101, 1)]), 1, 2));
        assert_eq!(m.in_flight_us, [(500, 2), (700, 1)], "in order, with a caller that waits");
        assert_eq!((m.connections, m.first_errors["busy"].as_str()), (4, "no socket"));
        assert_eq!(m.server.expect("counts").closes, 3);
    }

    #[test]
    fn optional_fields_of_an_account_may_be_missing() {
        let mut told = sound();
        let fields = told.as_object_mut().expect("an object");
        for name in
            ["pool_wait_us", "service_us", "failed_us", "failed_ordinals", "first_errors", "late", "dropped"]
        {
            fields.remove(name);
        }
        let account = account(told);
        assert_eq!(account.check(Duration::from_secs(1), false), Ok(()));
        assert_eq!(account.measurement(CounterSnapshot::default()).mean_error_us, 0.0);
    }

    #[test]
    fn an_open_loop_may_have_the_times_of_arrivals_that_ended_later() {
        let mut told = sound();
        told["latency_us"] = json!([[1000, 15]]);
        told["unanswered_us"] = json!([[900_000, 1], [800_000, 1]]);
        let sound = account(told.clone());
        assert_eq!(sound.check(Duration::from_secs(1), true), Ok(()));
        assert!(sound.check(Duration::from_secs(1), false).is_err());
        let m = sound.measurement(CounterSnapshot::default());
        assert_eq!(m.response_us.unanswered, [(800_000, 1), (900_000, 1)]);
        told["latency_us"] = json!([[1000, 16]]);
        let wrong = account(told).check(Duration::from_secs(1), true).expect_err("too many");
        assert_eq!(wrong, "18 times and ages (2 in unanswered_us) for 17 arrivals");
    }

    #[test]
    fn failures_reported_as_zero_microseconds_have_a_known_duration() {
        let mut told = sound();
        told["failed_us"] = json!([[0, 3]]);
        let m = account(told).measurement(CounterSnapshot::default());
        assert!(m.mean_error_us > 0.0 && m.mean_error_us < 1.0, "{}", m.mean_error_us);
    }

    #[test]
    fn contradictions_in_an_account_are_named() {
        for (field, value, named) in [
            ("attempts", json!(16), "window: 16 attempts"),
            ("in_flight", json!(u64::MAX), "window"),
            ("errors", json!({"tired": 3}), "tired"),
            ("first_errors", json!({"bored": "so"}), "bored"),
            ("latency_us", json!([[1000, 9]]), "latency_us has 9 times for 10 successes"),
            ("latency_us", json!([[1, u64::MAX], [2, 2]]), "latency_us has too many times"),
            ("pool_wait_us", json!([[1, 11]]), "pool_wait_us"),
            ("service_us", json!([[1, 1]]), "service_us"),
            ("failed_us", json!([[1, 4]]), "failed_us has 4 times for 3 errors"),
            ("failed_ordinals", json!([[101, 4]]), "failed_ordinals"),
            ("in_flight_us", json!([[1, u64::MAX], [2, 2]]), "in_flight_us has too many ages"),
            ("unanswered_us", json!([[1, u64::MAX]]), "unanswered_us"),
            ("elapsed_us", json!(500_000), "a window of 0.500 s"),
            ("total", json!({"attempts": 20, "successes": 15, "errors": {}}), "total: 20 attempts"),
            ("total", json!({"attempts": 5, "successes": 5, "errors": {}}), "total: 5 attempts"),
        ] {
            let mut told = sound();
            told[field] = value;
            let wrong = account(told).check(Duration::from_secs(1), false).expect_err(field);
            assert!(wrong.contains(named), "{field}: {wrong}");
        }
    }
}
