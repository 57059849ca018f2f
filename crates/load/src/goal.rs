//! Limits of the times of single answers, such as `first-event<200ms,gap.p99<50ms,whole<5s`. An answer that meets all of them is
//! good. Pure.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::slo::duration;

/// Limits that an answer must meet all. Its form in files is the text that the user wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Goal {
    limits: Vec<(Part, Duration)>,
}

// The percentiles come from a text, and are never NaN.
impl Eq for Goal {}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    FirstByte,
    FirstEvent,
    /// A percentile of the answer's own gaps.
    Gap(f64),
    LongestGap,
    Whole,
}

impl Part {
    fn name(self) -> String {
        match self {
            Self::FirstByte => "first-byte".to_owned(),
            Self::FirstEvent => "first-event".to_owned(),
            Self::Gap(p) => format!("gap.p{p}"),
            Self::LongestGap => "longest-gap".to_owned(),
            Self::Whole => "whole".to_owned(),
        }
    }
}

/// How many limits of percentiles of gaps there may be. Each open stream counts the gaps above each of them.
pub(crate) const GAPS: usize = 4;

/// The times of an answer that has ended, in nanoseconds. None where there was none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub first_byte: Option<u64>,
    pub first_event: Option<u64>,
    pub longest_gap: Option<u64>,
    /// How many gaps there were, and how many of them not below each of the limits.
    pub gaps: u64,
    pub over: [u32; GAPS],
    pub whole: u64,
}

impl Goal {
    /// Reads a limit of single answers. `None` if the text is about something else.
    pub(crate) fn read(quantity: &str, limit: &str) -> Option<Result<Self, String>> {
        let part = match quantity {
            "first-byte" => Part::FirstByte,
            "first-event" => Part::FirstEvent,
            "longest-gap" => Part::LongestGap,
            "whole" => Part::Whole,
            _ => {
                let p = quantity.strip_prefix("gap.p")?.parse().ok();
                let p = p.filter(|p: &f64| stats::samples_needed(*p).is_some());
                match p {
                    Some(p) => Part::Gap(p),
                    None => {
                        return Some(Err(format!(
                            "{quantity} is no percentile of the gaps of an answer: write gap.p99"
                        )));
                    }
                }
            }
        };
        Some(duration(limit).map(|limit| Self { limits: vec![(part, limit)] }))
    }

    /// Both together.
    pub(crate) fn and(mut self, other: Self) -> Result<Self, String> {
        self.limits.extend(other.limits);
        let gaps = self.limits.iter().filter(|(part, _)| matches!(part, Part::Gap(_))).count();
        if gaps > GAPS {
            Err(format!("there are {gaps} limits of gaps, and at most {GAPS}"))
        } else {
            Ok(self)
        }
    }

    /// Counts a gap for those limits that it is not below.
    pub(crate) fn count_gap(&self, gap: u64, over: &mut [u32; GAPS]) {
        let gaps = self.limits.iter().filter(|(part, _)| matches!(part, Part::Gap(_)));
        for ((_, limit), over) in gaps.zip(over) {
            *over = over.saturating_add(u32::from(u128::from(gap) >= limit.as_nanos()));
        }
    }

    /// Whether an answer meets all limits. One without gaps meets those of gaps, and one that came at once, or is no stream, had
    /// its first byte and its first event when it was whole.
    pub(crate) fn is_met(&self, seen: &Seen) -> bool {
        let below = |nanos: u64, limit: &Duration| u128::from(nanos) < limit.as_nanos();
        let mut over = seen.over.iter();
        self.limits.iter().all(|(part, limit)| match part {
            Part::FirstByte => below(seen.first_byte.unwrap_or(seen.whole), limit),
            Part::FirstEvent => below(seen.first_event.unwrap_or(seen.whole), limit),
            Part::LongestGap => below(seen.longest_gap.unwrap_or(0), limit),
            Part::Whole => below(seen.whole, limit),
            Part::Gap(p) => {
                // By nearest rank: so many of the gaps must be below the limit.
                let rank = (p / 100.0 * seen.gaps as f64).ceil();
                let not_below = over.next().copied().unwrap_or(0);
                seen.gaps.saturating_sub(u64::from(not_below)) as f64 >= rank
            }
        })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self
            .limits
            .iter()
            .map(|(part, limit)| format!("{}<{}ms", part.name(), limit.as_secs_f64() * 1e3));
        f.write_str(&limits.collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let slo = crate::Slo::parse(&text)?;
        slo.goal().cloned().ok_or_else(|| format!("{text:?} has no limit of single answers"))
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slo;

    const MS: u64 = 1_000_000;

    fn goal(text: &str) -> Goal {
        Slo::parse(text).expect(text).goal().expect(text).clone()
    }

    #[test]
    fn an_answer_is_good_if_it_meets_all_limits() {
        let goal = goal("first-event<200ms,gap.p99<50ms,gap.p50<20ms,whole<5s");
        let mut seen = Seen { first_event: Some(100 * MS), whole: 1000 * MS, ..Seen::default() };
        for gap in 1..=100 {
            goal.count_gap(if gap == 100 { 60 * MS } else { 10 * MS }, &mut seen.over);
            seen.gaps = gap;
        }
        assert_eq!(seen.over, [1, 1, 0, 0]);
        assert!(goal.is_met(&seen), "one gap of a hundred may be long");
        let broken = [
            Seen { over: [2, 1, 0, 0], ..seen },
            Seen { over: [1, 51, 0, 0], ..seen },
            Seen { first_event: Some(200 * MS), ..seen },
            Seen { first_event: None, ..seen },
            Seen { whole: 5000 * MS, ..seen },
        ];
        assert!(broken.iter().all(|seen| !goal.is_met(seen)));
        assert!(goal.is_met(&Seen { whole: 199 * MS, ..Seen::default() }), "an answer that came at once");
    }

    #[test]
    fn a_goal_is_its_text_in_files() {
        let goal = goal("first-byte<1s,longest-gap<300ms,gap.p99.9<50ms");
        assert_eq!(Goal::try_from(goal.to_string()), Ok(goal));
        for wrong in ["gap.p100<1s", "gap.px<1s", "whole<x", "gap.p1<1,gap.p2<1,gap.p3<1,gap.p4<1,gap.p5<1"] {
            assert!(Slo::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Goal::try_from("p99<1s".to_owned()).is_err());
    }
}
