//! What the slower of two scenarios waits for, where it waits more than it works.

use std::collections::{BTreeMap, BTreeSet};

use profile::Wait;
use serde::{Deserialize, Serialize};

use super::{ByScenario, Compared, Comparison, by_scenario};
use crate::observation::{Outcome, Scenario};

/// A wait that is much longer for a unit of work in one scenario than in the other. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// The scenario that waits less.
    pub less: usize,
    /// The scenario that waits more.
    pub more: usize,
    /// What is waited for: `lock`, `disk`, `timer`, `receive`, `send`, `pipe`, `child`, or a system call.
    pub wait: String,
    /// The function of the program that waits. None if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How long the one waits for a unit of work, seconds, over all threads. None if it works most of the time and was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less_s: Option<f64>,
    /// How long the other one does.
    pub more_s: f64,
}

impl Waiting {
    /// Whether it is about these two scenarios.
    pub fn is_between(&self, one: usize, other: usize) -> bool {
        (self.less, self.more) == (one, other) || (self.less, self.more) == (other, one)
    }
}

/// A wait in the background takes as long in each second, however slow the system is. A wait that makes the system slower takes at least
/// this many times as long.
const MORE_IN_A_SECOND: f64 = 1.5;

/// A wait is not named if another wait of the same scenario is this many times longer.
const MINOR: f64 = 10.0;

/// The word for a wait for another thread.
const LOCK: &str = "lock";

/// A wait, and who waits.
type Kind = (String, Option<String>);

/// For pairs of scenarios of which some figure says that they differ: what the slower one waits for, the longest first.
pub(super) fn waiting(figures: &[Compared<'_>]) -> Vec<Waiting> {
    let comparisons = figures.iter().flat_map(|figure| &figure.comparisons);
    let pairs: BTreeSet<[usize; 2]> = comparisons.filter_map(Comparison::better_first).collect();
    let Some(figure) = figures.first() else { return Vec::new() };
    let trials = by_scenario(&figure.observations);
    pairs.into_iter().flat_map(|pair| between(figure, &trials, pair)).collect()
}

/// What the slower of two scenarios, which is the second, waits for.
fn between(figure: &Compared<'_>, trials: &ByScenario<'_>, [less, more]: [usize; 2]) -> Vec<Waiting> {
    let of = |at: usize| Some(Waited::of(figure, trials, &figure.estimates.get(at)?.scenario));
    let (Some(of_less), Some(of_more)) = (of(less), of(more)) else { return Vec::new() };
    // One that works all the time was not watched, because it does not wait.
    if of_more.units <= 0.0 {
        return Vec::new();
    }
    let is_watched = of_less.units > 0.0;
    let grown = |(kind, blocked_s): (&Kind, &f64)| {
        let other_s = of_less.blocked_s.get(kind).copied().unwrap_or(0.0);
        let in_a_second = |blocked_s: f64, of: &Waited| blocked_s / of.seconds.max(f64::MIN_POSITIVE);
        let (wait, by) = kind.clone();
        // Threads of a pool that have nothing to do wait for each other, too, and nobody knows how many the other one has.
        if !is_watched && wait == LOCK {
            return None;
        }
        let grows = in_a_second(*blocked_s, &of_more) >= MORE_IN_A_SECOND * in_a_second(other_s, &of_less);
        let (less_s, more_s) = (is_watched.then(|| other_s / of_less.units), blocked_s / of_more.units);
        (grows && more_s > less_s.unwrap_or(0.0)).then_some(Waiting { less, more, wait, by, less_s, more_s })
    };
    let mut found: Vec<Waiting> = of_more.blocked_s.iter().filter_map(grown).collect();
    let longer_s = |waiting: &Waiting| waiting.more_s - waiting.less_s.unwrap_or(0.0);
    found.sort_by(|a, b| longer_s(b).total_cmp(&longer_s(a)));
    let longest = found.first().map_or(0.0, longer_s);
    found.retain(|waiting| longer_s(waiting) * MINOR >= longest);
    found
}

/// What the trials of a scenario say of its waits.
#[derive(Default)]
struct Waited {
    /// Seconds of all threads, by what is waited for.
    blocked_s: BTreeMap<Kind, f64>,
    /// How long was watched.
    seconds: f64,
    /// Units of work meanwhile, at the rates of the windows.
    units: f64,
}

impl Waited {
    fn of(figure: &Compared<'_>, trials: &ByScenario<'_>, scenario: &Scenario) -> Self {
        let mut waited = Self::default();
        let unit = &figure.planned.workload.about().unit;
        for observation in trials.get(scenario).into_iter().flatten() {
            let Outcome::Measured(m) = &observation.outcome else { continue };
            let Some(waits) = m.waits.as_ref().filter(|_| m.elapsed_s > 0.0) else { continue };
            waited.seconds += waits.seconds;
            waited.units += m.worth(unit) / unit.size / m.elapsed_s * waits.seconds;
            for time in waits.by_wait() {
                if let Some(wait) = word(&time.wait) {
                    *waited.blocked_s.entry((wait, time.by)).or_default() += time.blocked_ns as f64 / 1e9;
                }
            }
        }
        waited
    }
}

/// The word for a wait. None for those of a server that has nothing to do, and where nothing is known.
fn word(wait: &Wait) -> Option<String> {
    let word = match wait {
        Wait::Lock => LOCK,
        Wait::Disk => "disk",
        Wait::Timer => "timer",
        Wait::Receive => "receive",
        Wait::Send => "send",
        Wait::Pipe => "pipe",
        Wait::Child => "child",
        Wait::Other(call) => call,
        Wait::Readiness | Wait::Accept | Wait::Unknown => return None,
    };
    Some(word.to_owned())
}
