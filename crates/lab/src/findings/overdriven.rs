//! Withholds verdicts of an open loop whose rate was too near what a system can do at all. Half of what a first look reached may
//! be that much, and then the figures are those of a queue.

use std::collections::BTreeMap;

use measurement::RANKED_ERRORS;
use stats::Verdict;
use systems::{Value, Workload};

use super::{Compared, Comparison, Withheld};
use crate::experiment::Figure;
use crate::figures::figure_of;
use crate::observation::{Observation, Outcome, Scenario};

/// The largest share of a system's slowest trial at saturation at which others may arrive.
const MOST: f64 = 0.8;

/// A system that keeps less of a core busy than this is not at its limit by its CPU time, whatever else delays arrivals.
const IDLE: f64 = 0.5;

/// The largest share of late and dropped arrivals at which the CPU time of such a system for a unit of work is still that of the rate:
/// on a machine with other work arrivals are late because the generator, too, waits for its core.
const LATE_BUT_IDLE: f64 = 0.1;

/// Makes each comparison undecided that is of such a rate, and marks the rows. `observations` are those of all experiments of the run.
pub(super) fn withhold(compared: &mut [Vec<Compared<'_>>], observations: &[Observation]) {
    let mut slowest: BTreeMap<Served<'_>, f64> = BTreeMap::new();
    for Observation { trial, outcome, .. } in observations {
        let is_full = !trial.scenario.work().is_open_loop() && trial.objective.is_none() && !trial.twin;
        let Outcome::Measured(m) = outcome else { continue };
        let unit = &trial.scenario.workload().about().unit;
        if let Some(per_s) = figure_of(Figure::RequestsPerS, unit, m).filter(|_| is_full) {
            let known = slowest.entry(served(&trial.scenario)).or_insert(f64::INFINITY);
            *known = known.min(per_s);
        }
    }
    for Compared { planned, estimates, comparisons, overdriven, .. } in compared.iter_mut().flatten() {
        let over: Vec<bool> = estimates
            .iter()
            .map(|e| {
                let Some(rate) = e.scenario.work().rate() else { return false };
                let idle =
                    planned.figure == Figure::CpuPerUnit && e.cpu_share.is_some_and(|share| share < IDLE);
                let most_late = if idle { LATE_BUT_IDLE } else { RANKED_ERRORS };
                let late = e.late_share.unwrap_or(0.0) + e.dropped_share.unwrap_or(0.0) > most_late;
                let least = slowest.get(&served(&e.scenario)).copied().unwrap_or(f64::INFINITY);
                late || rate.per_s as f64 > MOST * least
            })
            .collect();
        let is_over = |at: usize| over.get(at).copied().unwrap_or(false);
        let over_either = |c: &&mut Comparison| is_over(c.scenario) || is_over(c.against);
        for c in comparisons.iter_mut().filter(|c| c.ratio.is_some()).filter(over_either) {
            c.withheld = Some(Withheld::Overdriven);
            c.verdict = Verdict::Undecided { more_rounds: None };
        }
        *overdriven = over;
    }
}

/// A system and its work, without how requests arrive.
type Served<'a> = (&'a str, Workload, Vec<(&'a str, &'a Value)>);

/// What is equal of scenarios that differ only in their experiment and in how requests arrive.
fn served(scenario: &Scenario) -> Served<'_> {
    let knobs = scenario.point.iter().map(|(knob, value)| (knob.as_str(), value));
    let rest = knobs.filter(|(knob, _)| !["rate", "gaps"].contains(knob));
    (&scenario.system, scenario.workload(), rest.collect())
}
