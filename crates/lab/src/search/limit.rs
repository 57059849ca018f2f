//! What an advised setting must keep: upper bounds on what its trials cost.

use load::{Objective, Slo};
use measurement::Measurement;
use serde::{Deserialize, Serialize};

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// What it bounds.
    pub of: Bounded,
    /// The bound, in the unit of what it bounds. A value at the bound is not below it.
    pub below: f64,
}

/// What a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bounded {
    /// This percentile of response times, in microseconds.
    Percentile(f64),
    /// Failed and dropped operations as a share of all arrivals; in a closed loop, of those that ended.
    Errors,
    /// The largest proportional set size, in bytes.
    Memory,
}

impl Limit {
    /// The limits that these objectives are.
    pub fn of_slo(slo: &Slo) -> Vec<Self> {
        let limit = |objective: &Objective| match *objective {
            Objective::Percentile(p, limit) => {
                Self { of: Bounded::Percentile(p), below: limit.as_secs_f64() * 1e6 }
            }
            Objective::Errors(share) => Self { of: Bounded::Errors, below: share },
        };
        slo.objectives().iter().map(limit).collect()
    }

    /// What a trial has of it. None if the trial cannot tell.
    pub fn value(&self, m: &Measurement) -> Option<f64> {
        match self.of {
            Bounded::Percentile(p) => m.response_us.percentile(p).map(|us| us.value() as f64),
            Bounded::Errors => Some(wrong_share(m)),
            Bounded::Memory => Some(m.system.peak_pss_bytes as f64).filter(|bytes| *bytes > 0.0),
        }
    }

    /// How many times the trial's value fits into the limit, as a logarithm: above zero if it keeps the limit. None if it
    /// cannot tell: a percentile that is only a lower bound may be above the limit. A share of errors is kept or not, because
    /// it is mostly zero.
    pub fn room(&self, m: &Measurement) -> Option<f64> {
        let value = self.value(m)?;
        let room = match self.of {
            Bounded::Errors if value < self.below || value == 0.0 => 1.0,
            Bounded::Errors => -1.0,
            _ => (self.below / value).ln(),
        };
        let least = match self.of {
            Bounded::Percentile(p) => m.response_us.percentile(p).is_some_and(|us| us.is_lower_bound()),
            Bounded::Errors | Bounded::Memory => false,
        };
        Some(room).filter(|room| room.is_finite() && !(least && *room > 0.0))
    }
}

/// Failed and dropped operations as a share of all arrivals; in a closed loop, of those that ended. As in [`Slo::broken`].
fn wrong_share(m: &Measurement) -> f64 {
    let all = if m.arrivals > 0 { m.arrivals } else { m.ended() };
    let wrong = m.errors.values().sum::<u64>() + m.dropped;
    if wrong == 0 { 0.0 } else { wrong as f64 / all.max(wrong) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measurement::Latency;

    fn measured(buckets: &[(u64, u64)], unanswered: &[(u64, u64)]) -> Measurement {
        let (buckets, unanswered) = (buckets.to_vec(), unanswered.to_vec());
        Measurement {
            successes: 2000,
            response_us: Latency { count: 2000, buckets, unanswered, ..Latency::default() },
            ..Measurement::default()
        }
    }

    #[test]
    fn a_percentile_that_is_a_lower_bound_can_break_a_limit_but_not_keep_it() {
        let limit = Limit { of: Bounded::Percentile(99.0), below: 5_000.0 };
        let room = |buckets, unanswered| limit.room(&measured(buckets, unanswered));
        assert!(room(&[(1_000, 2000)], &[]).is_some_and(|room| room > 0.0));
        assert_eq!(room(&[(1_000, 2000)], &[(900, 500)]), None);
        assert!(room(&[(9_000, 2000)], &[(9_500, 500)]).is_some_and(|room| room < 0.0));
        assert_eq!(room(&[(1_000, 20)], &[]), None, "too few answers");
    }

    #[test]
    fn dropped_arrivals_are_errors() {
        let limit = Limit { of: Bounded::Errors, below: 0.01 };
        let mut m = measured(&[], &[]);
        assert_eq!(limit.room(&m), Some(1.0));
        (m.arrivals, m.dropped) = (2000, 100);
        assert_eq!((limit.value(&m), limit.room(&m)), (Some(0.05), Some(-1.0)));
    }
}
