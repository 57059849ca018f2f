//! The error budget of a session: which of many candidates, tried one after another against a base, are
//! better.
//!
//! Whoever tries forty candidates at a level of 5 % accepts noise by luck. So each attempt has a smaller
//! level of its own. A candidate that passes is measured again in fresh rounds, and is accepted if these pass
//! at the level `c`, which is [`CONFIRMATION_LEVEL`]. The level of attempt `i`, counted from 1, is
//!
//! ```text
//! (0.05 / c) * k / ((i + k - 1) * (i + k))        with c = 0.02 and k = 50.
//! ```
//!
//! It is 0.049 at first, 0.026 at attempt 20, 0.0056 at attempt 100 and 0.0020 at attempt 200. The levels of
//! the first `n` attempts add up to `2.5 * n / (n + 50)`, and so stay below `0.05 / c`. This is
//! alpha-spending.
//!
//! # What is promised
//!
//! In at most 5 % of sessions, however long they are, a candidate is accepted that is not better. This holds
//! where nothing is better, and also beside candidates that are. Noise passes an attempt with at most the
//! probability `level`, and is then confirmed with at most the probability `c`. The sum of these products
//! over all attempts is below 0.05 (Bonferroni). So the attempts may depend on each other in any way, and a
//! candidate may be chosen in view of all earlier figures. Three things are needed:
//!
//! - Whatever happened before, the p-value of a candidate that is not better is at most `a` with probability
//!   `a` or less.
//! - The same holds for the p-value of the fresh rounds, whatever the first rounds showed. Their number is
//!   fixed before they begin, none of the first rounds counts, and a candidate is confirmed once for each
//!   attempt.
//! - Every attempt whose figures somebody saw is recorded, before the next one.
//!
//! In a session where nothing is better, at most 2.5 confirmations are measured in vain, on average.
//!
//! # Why this rule
//!
//! With the sum `A = 0.05 / c`, a series `g` that adds up to 1, and acceptances at the attempts `t1`, `t2`,
//! ..., the other rules are
//!
//! - LORD++ (Ramdas, Yang, Wainwright and Jordan, "Online control of the false discovery rate with decaying
//!   memory", NIPS 2017): level `W0 g(t) + (A - W0) g(t - t1) + A (g(t - t2) + g(t - t3) + ...)`.
//! - SAFFRON (Ramdas, Zrnic, Wainwright and Jordan, "SAFFRON: an adaptive algorithm for online control of the
//!   false discovery rate", ICML 2018): half of that, but an attempt with a p-value up to 0.5 does not move
//!   `g` on.
//!
//! Here are the shares in simulated sessions. A better attempt is better by 4 standard errors. The columns
//! are: any of 200 attempts accepted where none is better (10,000 sessions); the better attempt found at
//! position 20 of 40; at 100 of 200; at 100 of 200 where all others are worse by 1 standard error; the share
//! found of 20 better attempts among 200, and the sessions of these in which another one was accepted (2000
//! sessions each).
//!
//! | levels | none better | 20 of 40 | 100 of 200 | among worse | of 20 | and a wrong one |
//! |---|---|---|---|---|---|---|
//! | spent as squares, sum 0.05 | 0.1 % | 57 % | 30 % | 30 % | 33 % | 0 % |
//! | spent as squares | 1.1 % | 88 % | 63 % | 64 % | 65 % | 1 % |
//! | spent as here, sum 1, `c` 0.05 | 3.8 % | 95 % | 86 % | 86 % | 87 % | 3 % |
//! | **spent as here** | 3.8 % | 96 % | 91 % | 90 % | 90 % | 4 % |
//! | LORD++, its series, half at first | 0.6 % | 85 % | 74 % | 75 % | 95 % | 12 % |
//! | LORD++, this series, all at first | 3.8 % | 95 % | 90 % | 90 % | 97 % | 15 % |
//! | SAFFRON, its series, half at first | 1.2 % | 90 % | 76 % | 68 % | 96 % | 16 % |
//! | SAFFRON, this series, all at first | 3.3 % | 95 % | 91 % | 89 % | 96 % | 14 % |
//!
//! - LORD++ and SAFFRON find a little more where much is better, because every acceptance adds to their
//!   levels. For the same reason they accept noise in 12 to 16 % of those sessions. They bound the expected
//!   share of wrong ones among all that are accepted. A session builds on what it accepts, so it needs the
//!   stronger promise.
//! - Where one candidate is better they find no more. Before the first acceptance LORD++ spends, too. SAFFRON
//!   needs independent p-values, and finds less where candidates are worse than the base, as most are.
//! - The confirmation makes the levels larger by `1 / c`. Without it attempt 100 would have the level 0.0001,
//!   and the noise of a machine is not known that well. 0.02 finds more than 0.05, since it divides the error
//!   more evenly.
//! - Squares give nearly everything to the first ten attempts.
//!
//! The table takes the standard error as known. Rounds estimate it, which costs most where they are few. Here
//! are the shares for p-values of [`Location`](crate::Location), with normal noise or heavy tails (Student's
//! with 3 degrees of freedom), and an attempt that is better by 4 or 5 standard errors of the mean. A
//! candidate that is better by 5 %, with a standard error of 1 %, is better by 4.9 of them.
//!
//! | p-values from | none better | 4 at 20 of 40 | 4 at 100 of 200 | 5 at 20 of 40 | 5 at 100 of 200 |
//! |---|---|---|---|---|---|
//! | a known error | 3.8 % | 96 % | 91 % | 100 % | 99 % |
//! | 30 rounds, normal | 4.3 % | 91 % | 77 % | 99 % | 96 % |
//! | 30 rounds, heavy tails | 3.9 % | 100 % | 98 % | 100 % | 100 % |
//! | 10 rounds, normal | 4.2 % | 80 % | 60 % | 96 % | 84 % |
//! | 10 rounds, heavy tails | 3.0 % | 94 % | 87 % | 98 % | 96 % |

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::LEVEL;

/// The level of a confirmation: the largest p-value in fresh rounds with which an attempt is accepted.
pub const CONFIRMATION_LEVEL: f64 = 0.02;

/// The most attempts that a ledger keeps.
pub const MOST_ATTEMPTS: usize = 100_000;

/// What the levels of all attempts add up to in the end. Times that of the confirmations it is the whole
/// error.
const SUM: f64 = LEVEL / CONFIRMATION_LEVEL;

/// The number of attempts whose levels add up to half of that.
const HALF_SPENT: f64 = 50.0;

/// The attempts of a session, in their order. The next level depends on their number alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    #[serde(deserialize_with = "attempts")]
    attempts: Vec<Attempt>,
}

/// An attempt that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The one-sided p-value for "the candidate is better", 0..=1.
    pub p: f64,
    /// The level at which it was tested.
    pub level: f64,
    /// The p-value in fresh rounds, 0..=1. None if there were none.
    pub confirmation: Option<f64>,
    /// What was decided.
    pub decision: Decision,
}

/// What is decided about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The candidate is better: p is at most the level, and fresh rounds confirm it.
    Accept,
    /// The candidate is not shown to be better: p is above the level.
    Reject,
    /// p is at most the level, but no fresh rounds were measured, or they do not confirm it.
    Unconfirmed,
}

impl Ledger {
    /// The attempts so far.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Whether the ledger has [`MOST_ATTEMPTS`]. It takes no more of them.
    pub fn is_full(&self) -> bool {
        self.attempts.len() >= MOST_ATTEMPTS
    }

    /// The level at which the next attempt is tested: above 0 and below [`LEVEL`], or 0 if the ledger is
    /// full. An attempt with a p-value above it needs no confirmation. Takes constant time.
    pub fn level(&self) -> f64 {
        if self.is_full() {
            return 0.0;
        }
        let before = self.attempts.len() as f64;
        SUM * HALF_SPENT / ((before + HALF_SPENT) * (before + HALF_SPENT + 1.0))
    }

    /// Records the next attempt and decides about it. `p` is its one-sided p-value, and `confirmation` that
    /// of the fresh rounds. A p-value that is not in 0..=1 counts as 1. A full ledger rejects the attempt and
    /// does not keep it.
    pub fn record(&mut self, p: f64, confirmation: Option<f64>) -> Decision {
        if self.is_full() {
            return Decision::Reject;
        }
        let (p, level, confirmation) = (p_value(p), self.level(), confirmation.map(p_value));
        let decision = match confirmation {
            _ if p > level => Decision::Reject,
            Some(fresh) if fresh <= CONFIRMATION_LEVEL => Decision::Accept,
            _ => Decision::Unconfirmed,
        };
        self.attempts.push(Attempt { p, level, confirmation, decision });
        decision
    }
}

/// The p-value, or 1 if it is none.
fn p_value(p: f64) -> f64 {
    if (0.0..=1.0).contains(&p) { p } else { 1.0 }
}

/// Reads the attempts of a ledger. Fails if there are too many of them, or if one has a number that is no
/// probability.
fn attempts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Attempt>, D::Error> {
    let attempts = Vec::<Attempt>::deserialize(from)?;
    if attempts.len() > MOST_ATTEMPTS {
        let message = format!(
            "this ledger has {} attempts, but a ledger keeps at most {MOST_ATTEMPTS}: begin a new session",
            attempts.len()
        );
        return Err(D::Error::custom(message));
    }
    for (number, attempt) in (1..).zip(&attempts) {
        let mut figures = [Some(attempt.p), Some(attempt.level), attempt.confirmation].into_iter().flatten();
        if let Some(wrong) = figures.find(|figure| !(0.0..=1.0).contains(figure)) {
            let message = format!(
                "attempt {number} of this ledger has {wrong}, \
                 which is not between 0 and 1: begin a new session"
            );
            return Err(D::Error::custom(message));
        }
    }
    Ok(attempts)
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
