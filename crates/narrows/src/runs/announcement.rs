//! What a run says before its first trial.

use lab::plan::Plan;
use lab::rounds;
use lab::store::RunId;
use report::number;

use super::is_search;
use crate::common;

/// Says how many trials will run, how long they take, and which differences they can show. `noise` is the standard deviation of a
/// trial's logarithm in earlier runs on this machine, if there are any.
pub fn announce(plan: &Plan, pending: usize, run: RunId, noise: Option<f64>) {
    if is_search(plan) {
        let most = plan
            .experiments
            .iter()
            .filter_map(|planned| Some(planned.search.as_ref()?.terms.trials))
            .sum::<usize>();
        common::say(format_args!(
            "run {run}: a search of at most {} in {:.0} s, seed {}",
            number::several(most as u64, "trial"),
            plan.budget_s.unwrap_or_default(),
            plan.seed
        ));
        return;
    }
    let share = pending as f64 / plan.trials.len().max(1) as f64;
    let planned = plan.experiments.iter().map(|planned| planned.rounds).max().unwrap_or(0);
    let rounds = if plan.budget_s.is_some() { rounds::expected(plan) } else { planned };
    let further_s = plan.round_times().of_s(planned..rounds);
    let seconds = plan.estimate_s() * share + further_s;
    let all = number::several(rounds.into(), "round");
    let takes = match plan.budget_s {
        // What is decided earlier ends earlier.
        Some(_) if !plan.design.is_once() => format!(" and more, at most {all} in about {seconds:.0} s"),
        Some(_) => format!(" and more, {all} in about {seconds:.0} s"),
        None => format!(", about {seconds:.0} s"),
    };
    let (of, seed) = (plan.trials.len(), plan.seed);
    common::say(format_args!("run {run}: {pending} of {of} trials{takes}, seed {seed}"));
    let comparisons = plan.experiments.iter().map(lab::findings::comparisons_asked).max().unwrap_or(0);
    let spread = noise.unwrap_or(USUAL_SPREAD);
    let Some(found) = plan.design.detectable(rounds, comparisons, spread) else { return };
    // Of a smaller difference the run may find that it is none worth having.
    let smallest = plan.experiments.iter().map(|planned| planned.threshold).reduce(f64::min).unwrap_or(0.0);
    let found = number::times(found.exp().max(1.0 + smallest));
    match noise {
        Some(noise) => common::say(format_args!(
            "earlier runs here had {} of noise between trials: {rounds} rounds find a difference of {found} in four of five runs",
            number::percent(noise)
        )),
        None => common::say(format_args!(
            "{rounds} rounds can show differences from {found} if the trials of a system vary by {}",
            number::chosen_percent(USUAL_SPREAD)
        )),
    }
}

/// By how much the trials of a system vary on a shared machine: the median standard deviation of their logarithms.
const USUAL_SPREAD: f64 = 0.1;
