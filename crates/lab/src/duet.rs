//! Duets: two trials at the same time, on the same cores, each with a generator of its own.
//!
//! Both see the same machine, so what disturbs one disturbs the other, and their ratio hardly varies on a machine on which trials
//! one after the other differ by half (Bulej and others, "Duet benchmarking: improving measurement accuracy in the cloud", ICPE
//! 2020, arXiv 2001.05811). The ratio is the one *under mutual contention*. It is that of the systems only while the systems limit
//! the rate: where generators wait for their core, both rates become equal. This module says of two measurements whether they
//! were a duet in that sense. It is pure.

use std::collections::BTreeMap;
use std::slice::Chunks;

use measurement::Measurement;
use measurement::doubt::GENERATOR_BUSY;
use serde::{Deserialize, Serialize};

use crate::observation::{Observation, Outcome, Trial};

/// A system limits the rate if it runs, or waits for its core, for at least this share of the window.
const SATURATED: f64 = 0.9;
/// The least that each must get of a core of its own, or of its half of a core that both share. Where others take more, a system loses
/// its turn while it has requests, and both rates are those of turns.
const LEAST_CORE: f64 = 0.6;
/// The least share of the CPU time of both that each must get.
const LEAST_SHARE: f64 = 0.45;
/// Systems that are further apart than this are not near-equal: what they take from caches and the network differs, too.
const APART: f64 = 1.5;
/// Duets are given up after so many of a pair were refused, if that is more than were held. What others do on the machine passes, but
/// systems stay apart.
const MOST_REFUSED: usize = 4;
const MOST_APART: usize = 2;

/// What became of two trials that the plan lets happen at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Duet {
    /// They happened at the same time.
    Held,
    /// They did, and it was no duet. So they were done again, one after the other, and these are those measurements.
    Refused(Refusal),
}

/// Why two trials at the same time were no duet. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A trial failed.
    Failed,
    /// A generator ran, or waited for its core, for nearly all of the window. So it may have been the limit.
    Generator {
        /// The share of the window.
        share: f64,
    },
    /// A system neither ran nor waited for its core for a part of the window. So something else was the limit.
    Idle {
        /// The share in which it did.
        share: f64,
    },
    /// Other programs took most of the core.
    Crowded {
        /// The share of the window in which the system that got less was on a core.
        share: f64,
    },
    /// One of them got more of the CPU time than the other.
    Unequal {
        /// The share of the one that got less.
        share: f64,
    },
    /// They are too far apart.
    Apart {
        /// How many times the one is better than the other.
        ratio: f64,
    },
}

impl Refusal {
    /// Whether the next duet of the two would most likely be refused, too.
    fn lasts(self) -> bool {
        matches!(self, Self::Apart { .. } | Self::Failed)
    }

    /// Why these two measurements, which were taken at the same time, are no duet. None if they are one. In an open loop, `open`,
    /// systems have time to spare, and only the generators and the cost of an operation are looked at.
    pub fn of(a: &Measurement, b: &Measurement, open: bool) -> Option<Self> {
        let both = [a, b];
        let generators = both.map(generator_share);
        // The busiest core of the one is that of the other, too.
        let busiest = a.generator.busiest_core + b.generator.busiest_core;
        let share = generators.into_iter().fold(busiest, f64::max);
        if share > GENERATOR_BUSY {
            return Some(Self::Generator { share });
        }
        if !open {
            let share = both.map(system_share).into_iter().fold(f64::INFINITY, f64::min);
            if share < SATURATED {
                return Some(Self::Idle { share });
            }
            let [one, other] = both.map(|m| m.system.cpu_s);
            let share = one.min(other) / a.elapsed_s;
            let own = (a.system.cores.len().max(1) as f64 / 2.0).min(1.0);
            if share < LEAST_CORE * own {
                return Some(Self::Crowded { share });
            }
            let share = one.min(other) / (one + other);
            if share.is_nan() || share < LEAST_SHARE {
                return Some(Self::Unequal { share });
            }
        }
        let [one, other] =
            both.map(|m| if open { m.system.cpu_s / m.done() } else { m.done() / m.elapsed_s });
        let ratio = (one / other).max(other / one);
        (ratio.is_nan() || ratio > APART).then_some(Self::Apart { ratio })
    }
}

/// The share of the window in which one of a generator's threads, on average, ran or waited for its core.
fn generator_share(m: &Measurement) -> f64 {
    let threads = m.generator.cores.len().max(1) as f64;
    (m.generator.cpu_s + m.generator.waited_s) / m.elapsed_s / threads
}

/// The share of the window in which the threads of a system, added up, ran or waited for a core. Above 1 where there are several.
fn system_share(m: &Measurement) -> f64 {
    (m.system.cpu_s + m.system.waited_s.unwrap_or(0.0)) / m.elapsed_s
}

/// What became of the duets of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Duets {
    /// How many were held.
    pub held: usize,
    /// How many were refused, so that their trials were done again, one after the other.
    pub refused: usize,
    /// How many were not tried, because too many had been refused.
    pub not_tried: usize,
    /// Why the last was refused. None if none was.
    pub why: Option<Refusal>,
    /// Whether those that were held count. Otherwise trials that were alone do.
    pub count: bool,
}

impl Duets {
    /// Those of these observations of an experiment. None if its plan has none.
    pub fn of(observations: &[&Observation]) -> Option<Self> {
        let paired = || observations.iter().filter(|o| o.trial.duet.is_some());
        let refusal = |o: &&Observation| match o.duet {
            Some(Duet::Refused(why)) => Some(why),
            _ => None,
        };
        // Each duet has two observations.
        let number = |is: &dyn Fn(&Observation) -> bool| paired().filter(|o| is(o)).count().div_ceil(2);
        paired().next().map(|_| Self {
            held: number(&|o| o.duet == Some(Duet::Held)),
            refused: number(&|o| matches!(o.duet, Some(Duet::Refused(_)))),
            not_tried: number(&|o| o.duet.is_none()),
            why: paired().copied().filter_map(|o| refusal(&o)).next_back(),
            count: count(observations),
        })
    }
}

/// Whether the duets of a plan are tried further. Of each pair as many must have been held as were refused, or few refused.
pub fn holds<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> bool {
    let mut seen: BTreeMap<(&str, u32), Seen> = BTreeMap::new();
    for observation in observations {
        let (Some(pair), Some(duet)) = (observation.trial.duet, &observation.duet) else { continue };
        let seen = seen.entry((&observation.trial.scenario.experiment, pair)).or_default();
        match duet {
            Duet::Held => seen.held += 1,
            Duet::Refused(why) => {
                seen.refused += 1;
                seen.lasting += usize::from(why.lasts());
            }
        }
    }
    // Each duet has two observations.
    seen.values().all(|seen| {
        let few = seen.refused < 2 * MOST_REFUSED && seen.lasting < 2 * MOST_APART;
        few || seen.held >= seen.refused
    })
}

/// How many observations of a pair there are.
#[derive(Default)]
struct Seen {
    held: usize,
    refused: usize,
    /// Refused for a reason that lasts.
    lasting: usize,
}

/// Whether duets count, and not trials that were alone: they [hold](holds), and there are some.
fn count(observations: &[&Observation]) -> bool {
    observations.iter().any(|o| o.duet == Some(Duet::Held)) && holds(observations.iter().copied())
}

/// Those observations of an experiment that count: of a plan with duets either the duets or the trials that were alone. Failures
/// count in any case.
pub fn counted<'a>(observations: &[&'a Observation]) -> Vec<&'a Observation> {
    let duets = count(observations);
    let counts = |o: &&&Observation| {
        let (paired, failed) = (o.trial.duet.is_some(), matches!(o.outcome, Outcome::Failed(_)));
        !paired || failed || (o.duet == Some(Duet::Held)) == duets
    };
    observations.iter().filter(counts).copied().collect()
}

/// Splits trials into those that happen at the same time. Each group has one trial, or two neighbours.
pub fn groups<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Vec<Vec<&'a Trial>> {
    let mut groups: Vec<Vec<&Trial>> = Vec::new();
    for trial in trials {
        match groups.last_mut() {
            Some(group) if group.len() == 1 && group.iter().all(|first| first.is_with(trial)) => {
                group.push(trial)
            }
            _ => groups.push(vec![trial]),
        }
    }
    groups
}

/// The parts of such a group that are executed one after the other: the whole group while duets [hold](holds), and otherwise each
/// trial, so that none waits for another to be saved.
pub fn parts<'g, 'a>(group: &'g [&'a Trial], seen: &[Observation]) -> Chunks<'g, &'a Trial> {
    let together = group.len() > 1 && holds(seen);
    group.chunks(if together { group.len() } else { 1 })
}

#[cfg(test)]
mod tests;
