//! Withholds verdicts of an open loop whose rate was too near what a system can do at all. Half of what a first look reached may
//! be that much, and then the figures are those of a queue.

use measurement::RANKED_ERRORS;
use stats::Verdict;

use super::{Compared, Comparison, Withheld};
use crate::experiment::Figure;
use crate::figures::{figure_of, measured};
use crate::observation::{Observation, Scenario};

/// The largest share of a system's slowest trial at saturation at which others may arrive.
const MOST: f64 = 0.8;

/// A system that keeps less of a core busy than this is not at its limit by its CPU time, whatever else delays arrivals.
const IDLE: f64 = 0.5;

/// The largest share of late and dropped arrivals at which the CPU time of such a system for a unit of work is still that of the rate:
/// on a machine with other work arrivals are late because the generator, too, waits for its core.
const LATE_BUT_IDLE: f64 = 0.1;

/// Makes each comparison undecided that is of such a rate, and marks the rows. `observations` are those of all experiments of the run.
pub(super) fn withhold(compared: &mut [Vec<Compared<'_>>], observations: &[Observation]) {
    let reached: Vec<(Scenario, f64)> = compared
        .iter()
        .flatten()
        .flat_map(|c| measured(c.planned.planned, observations))
        .filter(|(trial, _)| !trial.scenario.work().is_open_loop() && trial.objective.is_none())
        .filter_map(|(trial, m)| {
            let unit = &trial.scenario.workload().about().unit;
            Some((trial.scenario.clone(), figure_of(Figure::RequestsPerS, unit, m?)?))
        })
        .collect();
    for Compared { planned, estimates, comparisons, overdriven, .. } in compared.iter_mut().flatten() {
        let over: Vec<bool> = estimates
            .iter()
            .map(|e| {
                let rate = e.scenario.work().rate().map(|rate| rate.per_s as f64);
                let idle =
                    planned.figure == Figure::CpuPerUnit && e.cpu_share.is_some_and(|share| share < IDLE);
                let most_late = if idle { LATE_BUT_IDLE } else { RANKED_ERRORS };
                let late = e.late_share.unwrap_or(0.0) + e.dropped_share.unwrap_or(0.0) > most_late;
                let own = reached.iter().filter(|(other, _)| is_same(other, &e.scenario));
                let least = own.map(|(_, per_s)| *per_s).fold(f64::INFINITY, f64::min);
                rate.is_some_and(|rate| late || rate > MOST * least)
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

/// Whether two scenarios differ only in their experiment and in how requests arrive.
fn is_same(one: &Scenario, other: &Scenario) -> bool {
    let rest = |scenario: &Scenario| {
        let knobs = scenario.point.iter().filter(|(knob, _)| !["rate", "gaps"].contains(&knob.as_str()));
        knobs.map(|(knob, value)| (knob.clone(), value.clone())).collect::<Vec<_>>()
    };
    one.system == other.system && one.workload() == other.workload() && rest(one) == rest(other)
}
