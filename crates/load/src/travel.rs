//! How the times and examples of a tally travel from the generator that counted them to the one that adds them up: as plain values
//! for serde. The other values travel as they are. [`Tally::check`](crate::Tally::check) says whether what arrived can be added.

use std::time::Duration;

use hdrhistogram::Histogram;
use printable::{beginning, printable};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fault::{ErrorClass, Example, Fault, Seen};
use crate::rows::MOST;
use crate::times::{self, Times, buckets};

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

/// The longest text of an example that is kept, in characters.
const LONGEST: usize = 500;

/// An example in words.
#[derive(Serialize, Deserialize)]
struct ExampleValue {
    class: ErrorClass,
    text: String,
    into_window: Duration,
}

impl Serialize for Example {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (class, into_window) = (self.fault.class, self.into_window);
        ExampleValue { class, text: self.to_string(), into_window }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Example {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let ExampleValue { class, text, into_window } = ExampleValue::deserialize(from)?;
        Ok(Self {
            fault: Fault::new(class, Seen::Nothing),
            check: None,
            told: Some(printable(&beginning(&text, LONGEST)).into()),
            heard: Seen::Nothing,
            into_window,
            connection: None,
            exchange: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::BUSIEST;
    use crate::target::{Http, Traffic};
    use crate::{Asked, Job, Stop, Tally, Target, Totals};

    fn tally() -> Tally {
        let mut tally =
            Tally { attempts: 3, successes: 2, units: 2, backend: "epoll".into(), ..Tally::default() };
        tally.pool_wait = Some(Times::default());
        tally.elapsed = Duration::from_secs(1);
        tally.total =
            Totals { connections: 1, attempts: 3, successes: 2, errors: [(ErrorClass::Status, 1)].into() };
        tally.answered(1_000, 2_000_000);
        tally.answered(3_000_000, 4_000_000_000);
        tally.unsent(7_000_000);
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

    fn job() -> Job {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
        let traffic = Traffic::Http(Http::get("h", "/"));
        Job::new(Target { address, traffic }, 1, Stop::After(Duration::from_secs(1)))
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
        assert_eq!((got.ordinals, &*got.backend), (sent.ordinals, "epoll"));
    }

    #[test]
    fn tallies_that_were_sent_add_up_like_those_that_were_not() {
        let sent = tally();
        let got: Tally =
            serde_json::from_value(serde_json::to_value(&sent).expect("a value")).expect("a tally");
        let (mut near, mut far) = (Tally::default(), Tally::default());
        for _ in 0..3 {
            near.merge(&sent);
            far.merge(&got);
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
        let refused = |name: &str, new: serde_json::Value| {
            let asked = Asked { job: &job(), lasted: Duration::from_secs(2), whole: true };
            with(name, new).expect("a tally").check(&asked).expect_err(name).row
        };
        assert_eq!(refused("attempts", u64::MAX.into()), "attempts");
        let errors = serde_json::json!([u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(refused("errors", errors), "errors");
        assert_eq!(refused("units", 1.into()), "units");
        let buckets = serde_json::json!({"answered": [[1, u64::MAX], [2, u64::MAX]], "unanswered": null});
        assert!(with("open_ages", buckets).is_err());
        assert_eq!(refused("backend", "kqueue".into()), "backend");
        let age = serde_json::json!({"secs": u64::MAX, "nanos": 0});
        for (name, new) in [
            ("elapsed", age.clone()),
            ("cpu", age.clone()),
            ("failing", age),
            ("busiest", (-0.1).into()),
            ("busiest", 1e300.into()),
        ] {
            assert_eq!(refused(name, new), name);
        }
        assert!(with("busiest", serde_json::Value::Null).is_err());
        // A drive can be interrupted before its window opens, or just after that.
        let cpu = Duration::from_micros(300);
        for (window, busiest) in [(Duration::ZERO, 0.0), (Duration::from_nanos(1), BUSIEST), (cpu * 2, 0.5)] {
            assert_eq!(crate::busy_share(cpu, window), busiest);
        }
    }

    /// A tally with so many ordinals and buckets as another machine may send them, as text.
    fn long(count: usize) -> String {
        let mut value = serde_json::to_value(tally()).expect("a value");
        let ordinals = (1..=count).map(|at| (at.to_string(), 1.into()));
        value["ordinals"] = serde_json::Value::Object(ordinals.collect());
        for times in ["service", "response", "behind", "open_ages"] {
            let buckets: Vec<[usize; 2]> = (1..=count).map(|at| [at * 1000, 1]).collect();
            value[times] = serde_json::json!({ "answered": buckets, "unanswered": buckets });
        }
        value.to_string()
    }

    #[test]
    fn tallies_take_as_long_as_they_are_to_read_check_and_add_up() {
        cost::is_near_linear(2000, |count| {
            let text = long(count);
            let (mut total, job) = (Tally::default(), job());
            let read: Tally = serde_json::from_str(&text).expect("a tally");
            total.merge(&read);
            assert_eq!(total.ordinals.len(), count);
            move || {
                let tally: Tally = serde_json::from_str(&text).expect("a tally");
                let _ = tally.check(&Asked { job: &job, lasted: Duration::from_secs(2), whole: true });
                total.clone().merge(&tally);
            }
        });
    }
}
