//! How a tally travels from the generator that counted it to the one that adds it up: as plain values for serde, in which each
//! number is checked so that adding several cannot overflow.
//!
//! Counts of requests by name do not travel, because files of requests do not.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tally::Tally;
use crate::times::{self, Times, buckets};

/// The most that may be counted. A thousand of them can be added.
const MOST: u64 = 1 << 53;

/// No drive takes longer, nor does the CPU time of all of its threads.
const LONGEST: Duration = Duration::from_secs(1000 * 366 * 86_400);
/// The busiest core works all the time. The kernel adds its time up in ticks, so that of a short window may be too much.
pub(crate) const BUSIEST: f64 = 100.0;
/// More ordinals than all threads of a machine keep.
const MOST_ORDINALS: usize = 1 << 20;

/// The buckets of a histogram: a value in nanoseconds, and how often it was recorded.
type Buckets = Vec<(u64, u64)>;

fn of_buckets(buckets: &Buckets) -> Result<Histogram<u64>, &'static str> {
    let total = buckets.iter().try_fold(0, |total: u64, (_, count)| total.checked_add(*count));
    if total.is_none_or(|total| total > MOST) {
        return Err("a histogram counts more than 2^53 values");
    }
    let mut histogram = times::histogram();
    for (value, count) in buckets {
        histogram.saturating_record_n((*value).max(1), *count);
    }
    Ok(histogram)
}

/// A histogram of times as its buckets.
pub(crate) mod histogram {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(histogram: &Histogram<u64>, to: S) -> Result<S::Ok, S::Error> {
        buckets(histogram).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram<u64>, D::Error> {
        of_buckets(&Buckets::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// The same, if there is one.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        histogram: &Option<Histogram<u64>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        histogram.as_ref().map(buckets).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Histogram<u64>>, D::Error> {
        let found = Option::<Buckets>::deserialize(from)?;
        found.map(|found| of_buckets(&found)).transpose().map_err(D::Error::custom)
    }
}

/// Times on their way.
#[derive(Serialize, Deserialize)]
struct TimesValue {
    answered: Buckets,
    unanswered: Option<Buckets>,
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let unanswered = self.unanswered().map(buckets);
        TimesValue { answered: buckets(&self.answered()), unanswered }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let found = TimesValue::deserialize(from)?;
        let answered = of_buckets(&found.answered).map_err(D::Error::custom)?;
        let unanswered = found.unanswered.as_ref().map(of_buckets).transpose().map_err(D::Error::custom)?;
        Ok(Self::new(answered, unanswered))
    }
}

/// The first example of each class, in words.
pub(crate) mod examples {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fault::{ErrorClass, Example, Fault, Seen};

    /// The longest text of an example that is kept, in characters.
    const LONGEST: usize = 500;

    #[derive(Serialize, Deserialize)]
    struct ExampleValue {
        text: String,
        into_window: Duration,
    }

    pub(crate) fn serialize<S: Serializer>(
        examples: &BTreeMap<ErrorClass, Example>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let value =
            |example: &Example| ExampleValue { text: example.to_string(), into_window: example.into_window };
        let values: BTreeMap<_, _> =
            examples.iter().map(|(class, example)| (class, value(example))).collect();
        values.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<ErrorClass, Example>, D::Error> {
        let values = BTreeMap::<ErrorClass, ExampleValue>::deserialize(from)?;
        let example = |(class, value): (ErrorClass, ExampleValue)| {
            let shown = value.text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c });
            let example = Example {
                fault: Fault::new(class, Seen::Nothing),
                check: None,
                told: Some(shown.collect::<String>().into()),
                heard: Seen::Nothing,
                into_window: value.into_window,
                connection: None,
                exchange: None,
            };
            (class, example)
        };
        Ok(values.into_iter().map(example).collect())
    }
}

/// The name of the reactor's backend.
pub(crate) mod backend {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(name: &&'static str, to: S) -> Result<S::Ok, S::Error> {
        name.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
        let name = String::deserialize(from)?;
        let known = ["io_uring", "epoll", ""].into_iter().find(|known| *known == name);
        known.ok_or_else(|| D::Error::custom(format!("{name:?} is no backend")))
    }
}

impl Tally {
    /// Whether a generator can have counted this: no count is so large that a thousand of them cannot be added, and shares and
    /// times are numbers that a drive can have. Counts by name do not travel.
    ///
    /// # Errors
    /// The name of a value that makes no sense.
    pub fn check(&self) -> Result<(), &'static str> {
        let counts = [
            ("attempts", self.attempts),
            ("successes", self.successes),
            ("in_flight", self.in_flight),
            ("units", self.units),
            ("payload_bytes", self.payload_bytes),
            ("late", self.late),
            ("arrivals", self.arrivals),
            ("dropped", self.dropped),
            ("backlog", self.backlog),
            ("no_continue", self.no_continue),
            ("decoded.answers", self.decoded.answers),
            ("decoded.compressed", self.decoded.compressed),
            ("decoded.sent_bytes", self.decoded.sent_bytes),
            ("decoded.decoded_bytes", self.decoded.decoded_bytes),
            ("bytes_sent", self.bytes_sent),
            ("bytes_received", self.bytes_received),
            ("total.connections", self.total.connections),
            ("total.attempts", self.total.attempts),
            ("total.successes", self.total.successes),
            ("handshakes.offered", self.handshakes.offered),
            ("open_ages", self.open_ages.len()),
            ("early_ages", self.early_ages.len()),
            ("service", self.service.len()),
            ("response", self.response.len()),
            ("behind", self.behind.len()),
            ("pool_wait", self.pool_wait.as_ref().map_or(0, |waits| waits.len())),
            ("failing", self.failing.as_secs()),
        ];
        let times = [("elapsed", self.elapsed), ("cpu", self.cpu)];
        if let Some((name, _)) = times.into_iter().find(|(_, time)| *time > LONGEST) {
            return Err(name);
        }
        if !(0.0..=BUSIEST).contains(&self.busiest) {
            return Err("busiest");
        }
        if self.ordinals.len() > MOST_ORDINALS {
            return Err("ordinals");
        }
        let named = |name: &'static str| move |count: &u64| (name, *count);
        let several = self.errors.iter().map(named("errors"));
        let several = several.chain(self.tenths.iter().map(named("tenths")));
        let several = several.chain(self.handshakes.kinds.iter().map(named("handshakes.kinds")));
        let several = several.chain(self.ordinals.values().map(named("ordinals")));
        let several = several.chain(self.total.errors.values().map(named("total.errors")));
        let mut large = counts.into_iter().chain(several).filter(|(_, count)| *count > MOST);
        large.next().map_or(Ok(()), |(name, _)| Err(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{ErrorClass, Example, Fault, Seen};

    fn tally() -> Tally {
        let mut tally = Tally { attempts: 3, successes: 2, units: 2, backend: "epoll", ..Tally::default() };
        tally.answered(1_000, 2_000_000);
        tally.answered(3_000_000, 4_000_000_000);
        tally.unsent(7_000_000);
        tally.pool_wait = Some(times::histogram());
        let example = Example {
            fault: Fault::new(ErrorClass::Status, Seen::Status(500)),
            check: None,
            told: None,
            heard: Seen::Nothing,
            into_window: Duration::from_millis(5),
            connection: Some(3),
            exchange: Some(10),
        };
        tally.fail(example, Duration::from_millis(1));
        tally
    }

    #[test]
    fn a_tally_arrives_with_each_bucket_and_its_examples_in_words() {
        let sent = tally();
        let text = serde_json::to_string(&sent).expect("it can be written");
        let got: Tally = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(got.service.answered(), sent.service.answered());
        assert_eq!(got.response.all(), sent.response.all());
        assert_eq!(got.behind.unanswered(), sent.behind.unanswered());
        assert_eq!((got.attempts, got.dropped, got.errors), (3, 1, sent.errors));
        let said = |tally: &Tally| tally.first_errors[&ErrorClass::Status].to_string();
        assert_eq!(said(&got), said(&sent));
        assert_eq!((got.ordinals, got.backend), (sent.ordinals, "epoll"));
    }

    #[test]
    fn tallies_that_were_sent_add_up_like_those_that_were_not() {
        let sent = tally();
        let got: Tally =
            serde_json::from_value(serde_json::to_value(&sent).expect("a value")).expect("a tally");
        let (mut near, mut far) = (Tally::default(), Tally::default());
        for _ in 0..3 {
            near.merge(&sent, 0);
            far.merge(&got, 0);
        }
        assert_eq!(near.response.all(), far.response.all());
        assert_eq!((near.units, near.failures()), (far.units, far.failures()));
    }

    #[test]
    fn counts_that_could_overflow_are_refused() {
        let value = serde_json::to_value(tally()).expect("a value");
        let with = |name: &str, new: serde_json::Value| {
            let mut value = value.clone();
            value[name] = new;
            serde_json::from_value::<Tally>(value)
        };
        let large = with("attempts", u64::MAX.into()).expect("a tally");
        assert_eq!(large.check(), Err("attempts"));
        let errors = serde_json::json!([u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(with("errors", errors).expect("a tally").check(), Err("errors"));
        assert_eq!(with("units", 1.into()).expect("a tally").check(), Ok(()));
        let buckets = serde_json::json!([[1, u64::MAX], [2, u64::MAX]]);
        assert!(with("open_ages", buckets).is_err());
        assert!(with("backend", "kqueue".into()).is_err());
        let age = serde_json::json!({"secs": u64::MAX, "nanos": 0});
        for (name, new) in [
            ("elapsed", age.clone()),
            ("cpu", age.clone()),
            ("failing", age),
            ("busiest", (-0.1).into()),
            ("busiest", 1e300.into()),
        ] {
            assert_eq!(with(name, new).expect("a tally").check(), Err(name));
        }
        assert!(with("busiest", serde_json::Value::Null).is_err());
        // A drive can be interrupted before its window opens, or just after that.
        let cpu = Duration::from_micros(300);
        for (window, busiest) in [(Duration::ZERO, 0.0), (Duration::from_nanos(1), BUSIEST), (cpu * 2, 0.5)] {
            assert_eq!(crate::busy_share(cpu, window), busiest);
        }
    }
}
