//! Failures at every n-th request of a connection, and arrivals that were not sent when they were due.

use std::cmp::Reverse;

use super::Evidence;
use crate::Measurement;

/// Finds a number of requests at whose multiples more connections fail than by chance. Other failures may have other
/// causes.
pub(super) fn errors_on_schedule(m: &Measurement) -> Option<Evidence> {
    let total: u64 = m.error_ordinals.values().sum();
    let failures_at = |every: u64| -> u64 {
        let multiples = m.error_ordinals.iter().filter(|(ordinal, _)| *ordinal % every == 0);
        multiples.map(|(_, count)| count).sum()
    };
    let common = m.error_ordinals.keys().fold(0, |known, ordinal| gcd(known, *ordinal));
    let candidates = most_frequent(m).chain([common]).filter(|every| *every >= 10);
    let (count, every) = candidates.map(|every| (failures_at(every), every)).max()?;
    // The probability that three failures are at multiples of ten by chance is one in a thousand.
    (count >= 3 && chance_ln(total, count, every) <= 1.001 * THOUSANDTH.ln())
        .then_some(Evidence::FailuresEvery { requests: every, count, of: total })
}

/// How many ordinals are looked at. Each takes as long as there are others, and an agent may say a million of them.
const CANDIDATES: usize = 64;

/// The ordinals at which most connections failed. Of those at which equally many did, the first.
fn most_frequent(m: &Measurement) -> impl Iterator<Item = u64> {
    let mut ordinals: Vec<(Reverse<u64>, u64)> =
        m.error_ordinals.iter().map(|(ordinal, count)| (Reverse(*count), *ordinal)).collect();
    ordinals.sort_unstable();
    ordinals.into_iter().take(CANDIDATES).map(|(_, ordinal)| ordinal)
}

const THOUSANDTH: f64 = 0.001;

/// The logarithm of an upper bound for the probability that `count` of `total` failures lie on multiples of `every` by
/// chance. It is the tail of the binomial distribution, with the entropy bound of its coefficient.
fn chance_ln(total: u64, count: u64, every: u64) -> f64 {
    let share = count as f64 / total as f64;
    let part = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    total as f64 * (part(share) + part(1.0 - share)) - count as f64 * (every as f64).ln()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The schedule was not kept if more than this share of arrivals was late or dropped.
pub(super) const LATE: f64 = 0.01;

/// The evidence if an open loop could not keep its schedule.
pub(super) fn behind(m: &Measurement) -> Option<Evidence> {
    // An objective has judged the times from when requests were due, and how many were not sent.
    if m.max_rate.is_some() {
        return None;
    }
    let arrivals = m.due().max(1);
    let share = (m.late + m.dropped) as f64 / arrivals as f64;
    (share > LATE).then_some(Evidence::Behind { arrivals, late: m.late, dropped: m.dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_takes_as_long_as_there_are_ordinals() {
        // Prime to each other, equally frequent, and multiples of one number: each kind in which candidates are found.
        let ordinals: [&dyn Fn(u64) -> (u64, u64); 3] =
            [&|at| (10 + at, 1), &|at| (10 * (at + 1), 3), &|at| (3 * at + 11, at % 7)];
        for ordinal in ordinals {
            cost::is_near_linear(2000, |count| {
                let error_ordinals = (0..count as u64).map(ordinal).collect();
                let m = Measurement { error_ordinals, ..Measurement::default() };
                move || _ = std::hint::black_box(errors_on_schedule(&m))
            });
        }
    }
}
