//! Objectives such as `p99<20ms,errors<0.1%`, and whether a drive met them. Pure.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::assignment::LONGEST;
use crate::{Goal, Tally};

/// Objectives that must all hold. Its form in files is the text that the user wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slo {
    text: String,
    objectives: Vec<Objective>,
    /// The limits of single answers, if there are any.
    goal: Option<Goal>,
}

// Both come from the text, whose numbers are never NaN.
impl Eq for Slo {}

/// The largest share of arrivals that may be dropped, or wait to be sent when the window closes. Above it, an open loop did
/// not reach its rate.
const DROPPED: f64 = 0.001;
/// In a short window more of them may wait: those of so many seconds. A pause of a scheduler lets as many wait.
const WAITING_S: f64 = 0.01;

/// One of the objectives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// This percentile of the response time is below this limit.
    Percentile(f64, Duration),
    /// Failed and dropped operations are less than this share of all arrivals.
    Errors(f64),
}

/// Why objectives do not hold. `failures` is the most frequent class of failures with its count, if there is one.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Broken {
    /// An open loop did not reach its rate.
    #[error("{} of the arrivals were not sent in time{}", percent(*.share), most(.failures))]
    Unsent {
        /// The share of the arrivals that were not sent.
        share: f64,
        /// See above.
        failures: Option<(String, u64)>,
    },
    /// There are too few answers for a percentile.
    #[error("p{p} needs {needed} answers, and there were {answers}{}", most(.failures))]
    TooFew {
        /// The percentile.
        p: f64,
        /// The answers that it needs.
        needed: u64,
        /// The answers that there were.
        answers: u64,
        /// See above.
        failures: Option<(String, u64)>,
    },
    /// A percentile is not below its limit.
    #[error("p{p} is {}{}", time(*.seen), most(.failures))]
    Slow {
        /// The percentile.
        p: f64,
        /// Its time.
        seen: Duration,
        /// See above.
        failures: Option<(String, u64)>,
    },
    /// A percentile is at least so long, because unanswered requests may have taken longer. It may be above its limit.
    #[error("p{p} is at least {}: too many requests were not answered{}", time(*.seen), most(.failures))]
    Unanswered {
        /// The percentile.
        p: f64,
        /// Its lower bound.
        seen: Duration,
        /// See above.
        failures: Option<(String, u64)>,
    },
    /// Too many operations failed or were dropped.
    #[error("{} failed or were dropped{}", percent(*.share), most(.failures))]
    Failed {
        /// Their share of all arrivals.
        share: f64,
        /// See above.
        failures: Option<(String, u64)>,
    },
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn most(failures: &Option<(String, u64)>) -> String {
    failures.as_ref().map_or_else(String::new, |(class, count)| format!("; {count} failed: {class}"))
}

impl Slo {
    /// Parses objectives that are separated by commas.
    ///
    /// # Errors
    /// The first that is no objective, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut objectives, mut goal) = (Vec::new(), None::<Goal>);
        for part in text.split(',').map(str::trim) {
            let limit =
                part.split_once('<').and_then(|(quantity, limit)| Goal::read(quantity.trim(), limit.trim()));
            match limit {
                Some(limit) => {
                    let limit = limit?;
                    goal = Some(match goal {
                        Some(goal) => goal.and(limit)?,
                        None => limit,
                    });
                }
                None => objectives.push(objective(part)?),
            }
        }
        Ok(Self { text: text.to_owned(), objectives, goal })
    }

    /// The limits of single answers, if there are any.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// The objectives, in the order in which they were written.
    pub fn objectives(&self) -> &[Objective] {
        &self.objectives
    }

    /// Whether an objective is about a percentile of response times.
    pub fn has_percentiles(&self) -> bool {
        self.objectives.iter().any(|objective| matches!(objective, Objective::Percentile(..)))
    }

    /// The number of answers that all percentiles need.
    pub fn answers_needed(&self) -> u64 {
        let needed = self.objectives.iter().filter_map(|objective| match objective {
            Objective::Percentile(p, _) => stats::samples_needed(*p),
            Objective::Errors(_) => None,
        });
        needed.max().unwrap_or(1)
    }

    /// The first objective that does not hold. `None` if all hold. No objective holds if an open loop did not reach its
    /// rate. A percentile that is only a lower bound does not hold either.
    pub fn broken(&self, tally: &Tally) -> Option<Broken> {
        let arrived = if tally.arrivals > 0 { tally.arrivals } else { tally.attempts.max(1) };
        let share = |count: u64| count as f64 / arrived as f64;
        let failures = tally.errors_by_name().into_iter().max_by_key(|(_, count)| *count);
        let waiting = DROPPED.max(WAITING_S / tally.elapsed.as_secs_f64().max(WAITING_S));
        if share(tally.dropped) > DROPPED || share(tally.backlog) > waiting {
            return Some(Broken::Unsent { share: share(tally.dropped.max(tally.backlog)), failures });
        }
        self.objectives.iter().find_map(|objective| match *objective {
            Objective::Percentile(p, limit) => slow(tally, p, limit, &failures),
            Objective::Errors(limit) => {
                let share = share(tally.failures() + tally.dropped);
                let failures = failures.clone();
                (share >= limit && share > 0.0).then_some(Broken::Failed { share, failures })
            }
        })
    }
}

/// Why a percentile is not known to be below its limit.
fn slow(tally: &Tally, p: f64, limit: Duration, failures: &Option<(String, u64)>) -> Option<Broken> {
    let failures = failures.clone();
    let Some(percentile) = tally.response.percentile(p) else {
        let (needed, answers) = (stats::samples_needed(p)?, tally.response.len());
        return Some(Broken::TooFew { p, needed, answers, failures });
    };
    let seen = Duration::from_nanos(percentile.value());
    match percentile.is_lower_bound() {
        true => Some(Broken::Unanswered { p, seen, failures }),
        false => (seen >= limit).then_some(Broken::Slow { p, seen, failures: None }),
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Slo> for String {
    fn from(slo: Slo) -> Self {
        slo.text
    }
}

impl TryFrom<String> for Slo {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

fn objective(text: &str) -> Result<Objective, String> {
    let wrong = || {
        format!(
            "{text:?} is not an objective: write p99<20ms or errors<0.1% of all answers, or limits of single ones: first-byte, \
             first-event, gap.p99, longest-gap or whole, as in first-event<200ms"
        )
    };
    let (quantity, limit) = text.split_once('<').ok_or_else(wrong)?;
    if quantity == "errors" {
        let percent: f64 =
            limit.strip_suffix('%').and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
        return (0.0..=100.0)
            .contains(&percent)
            .then_some(Objective::Errors(percent / 100.0))
            .ok_or_else(wrong);
    }
    let p: f64 = quantity.strip_prefix('p').and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    if stats::samples_needed(p).is_none() {
        return Err(format!("p{p} is not a percentile: write a number from 0 to below 100"));
    }
    Ok(Objective::Percentile(p, duration(limit)?))
}

/// Parses a duration: `10s`, `500ms`, `2m`, `1h`, or a plain number of seconds.
///
/// # Errors
/// What is wrong, and what to write.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit:?} is not a unit of time: write 500ms, 10s, 2m or 1h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a duration: write 500ms, 10s, 2m or 1h"))?;
    let time = Duration::try_from_secs_f64(number * factor).map_err(|error| error.to_string())?;
    if time > LONGEST {
        Err(format!("{text:?} is longer than ten years: use a shorter time"))
    } else {
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_users_write_them() {
        for (text, millis) in
            [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1.5", 1500), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "10 s", "-1s", "1d", "1e999"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_that_cannot_be_added_to_others_is_refused() {
        for text in ["18446744073709550000s", "87841h"] {
            assert!(duration(text).is_err_and(|why| why.contains("ten years")), "{text}");
        }
        assert_eq!(duration("87840h"), Ok(LONGEST));
    }

    #[test]
    fn objectives_are_parsed_as_users_write_them() {
        let slo = Slo::parse("p99<20ms, errors<0.1%").expect("two objectives");
        let expected = [Objective::Percentile(99.0, Duration::from_millis(20)), Objective::Errors(0.001)];
        assert_eq!((slo.objectives.as_slice(), slo.answers_needed()), (&expected[..], 1000));
        for wrong in ["", "p99", "p99<", "p100<1s", "p<1s", "errors<1", "errors<101%", "mean<1s", "p99<1us"] {
            assert!(Slo::parse(wrong).is_err(), "{wrong}");
        }
        let seconds = Slo::parse("p99<20").expect("a limit without a unit is in seconds");
        assert_eq!(seconds.objectives, [Objective::Percentile(99.0, Duration::from_secs(20))]);
    }

    #[test]
    fn an_objective_is_its_text_in_files() {
        let slo = Slo::parse("p50<1s,errors<1%").expect("two objectives");
        assert_eq!(String::from(slo.clone()), slo.to_string());
        assert_eq!(Slo::try_from(slo.to_string()), Ok(slo));
    }

    #[test]
    fn a_tally_is_judged_by_the_first_objective_that_does_not_hold() {
        let answered = |ms: u64, count: u32| {
            let elapsed = Duration::from_secs(20);
            let mut tally = Tally { arrivals: u64::from(count), elapsed, ..Tally::default() };
            (0..count).for_each(|_| tally.answered(ms * 1_000_000, ms * 1_000_000));
            tally
        };
        let slo = Slo::parse("p99<20ms,errors<0.1%").expect("two objectives");
        let broken = |tally: &Tally| slo.broken(tally).map(|why| why.to_string());
        assert_eq!(broken(&answered(19, 1000)), None);
        assert_eq!(broken(&answered(30, 1000)).as_deref(), Some("p99 is 30.0 ms"));
        let few = broken(&answered(1, 999));
        assert_eq!(few.as_deref(), Some("p99 needs 1000 answers, and there were 999"));
        let mut tally = answered(1, 1000);
        tally.errors[crate::ErrorClass::Status as usize] = 1;
        assert_eq!(broken(&tally).as_deref(), Some("0.10 % failed or were dropped; 1 failed: status"));
        tally.backlog = 2;
        let unsent = broken(&tally);
        assert_eq!(unsent.as_deref(), Some("0.20 % of the arrivals were not sent in time; 1 failed: status"));
        // In half a second, arrivals of ten milliseconds may wait.
        tally.errors = Tally::default().errors;
        (tally.backlog, tally.elapsed) = (19, Duration::from_millis(500));
        assert_eq!(broken(&tally), None);
        tally.backlog = 21;
        assert_eq!(broken(&tally).as_deref(), Some("2.10 % of the arrivals were not sent in time"));
        let mut hanging = answered(1, 1000);
        (0..50).for_each(|_| hanging.unanswered(1_000_000, 500_000));
        let why = broken(&hanging).expect("unanswered requests may have taken longer than the limit");
        assert!(why.contains("too many requests were not answered"), "{why}");
    }
}
