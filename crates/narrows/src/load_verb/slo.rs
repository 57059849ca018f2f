//! Parses and checks objectives such as `p99<20ms,errors<0.1%`.

use std::time::Duration;

use load::Tally;
use report::number;

use crate::common;

/// Objectives that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo(Vec<Objective>);

/// The largest share of arrivals that may be dropped, or wait to be sent when the window closes. Above it, an open loop did
/// not reach its rate.
const DROPPED: f64 = 0.001;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Objective {
    /// This percentile of the response time is below this limit.
    Percentile(f64, Duration),
    /// Failed and dropped operations are less than this share of all arrivals.
    Errors(f64),
}

impl Slo {
    /// Parses objectives that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|part| objective(part.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The number of answers that all percentiles need.
    pub fn answers_needed(&self) -> u64 {
        let needed = self.0.iter().filter_map(|objective| match objective {
            Objective::Percentile(p, _) => stats::samples_needed(*p),
            Objective::Errors(_) => None,
        });
        needed.max().unwrap_or(1)
    }

    /// The first objective that does not hold, in words. `None` if all hold. No objective holds if an open loop did not reach
    /// its rate. A percentile that is only a lower bound does not hold either.
    pub fn broken(&self, tally: &Tally) -> Option<String> {
        let arrived = if tally.arrivals > 0 { tally.arrivals } else { tally.attempts.max(1) };
        let unsent = tally.dropped.max(tally.backlog) as f64 / arrived as f64;
        if unsent > DROPPED {
            let failed = most_frequent(tally);
            return Some(format!(
                "{} of the arrivals were not sent in time{failed}",
                number::percent(unsent)
            ));
        }
        self.0.iter().find_map(|objective| match objective {
            Objective::Percentile(p, limit) => {
                let Some(seen) = tally.response.percentile(*p) else {
                    let (needed, answers) = (stats::samples_needed(*p)?, tally.response.len());
                    let failed = most_frequent(tally);
                    return Some(format!("p{p} needs {needed} answers, and there were {answers}{failed}"));
                };
                let (time, least) = (Duration::from_nanos(seen.value()), seen.is_lower_bound());
                let shown = number::seconds(time.as_secs_f64());
                let failed = most_frequent(tally);
                match (time >= *limit, least) {
                    (true, true) => Some(format!("p{p} is at least {shown}{failed}")),
                    (true, false) => Some(format!("p{p} is {shown}")),
                    (false, true) => Some(format!(
                        "p{p} cannot be judged: it is at least {shown}, but too many requests were not answered{failed}"
                    )),
                    (false, false) => None,
                }
            }
            Objective::Errors(limit) => {
                let share = (tally.failures() + tally.dropped) as f64 / arrived as f64;
                (share >= *limit && share > 0.0)
                    .then(|| format!("{} failed or were dropped", number::percent(share)))
            }
        })
    }
}

/// The most frequent failure, if there is one.
fn most_frequent(tally: &Tally) -> String {
    let worst = tally.errors_by_name().into_iter().max_by_key(|(_, count)| *count);
    worst.map_or_else(String::new, |(class, count)| format!("; {count} failed: {class}"))
}

fn objective(text: &str) -> Result<Objective, String> {
    let wrong = || format!("{text:?} is not an objective: write p99<20ms or errors<0.1%");
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
    Ok(Objective::Percentile(p, common::duration(limit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_parsed_as_users_write_them() {
        let slo = Slo::parse("p99<20ms, errors<0.1%").expect("two objectives");
        let expected = [Objective::Percentile(99.0, Duration::from_millis(20)), Objective::Errors(0.001)];
        assert_eq!(slo, Slo(expected.to_vec()));
        for wrong in ["", "p99", "p99<", "p100<1s", "p<1s", "errors<1", "errors<101%", "mean<1s", "p99<20"] {
            let result = Slo::parse(wrong);
            assert!(result.is_err() || wrong == "p99<20", "{wrong}: {result:?}");
        }
    }

    #[test]
    fn a_percentile_with_too_few_answers_does_not_hold() {
        let slo = Slo::parse("p99<20ms").expect("an objective");
        assert!(
            slo.broken(&Tally::default())
                .is_some_and(|why| why.contains("needs 1000 answers, and there were 0"))
        );
    }
}
