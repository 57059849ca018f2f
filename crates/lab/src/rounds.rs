//! Decides which trials a run without a fixed number of rounds needs next, and when it has enough. Pure: the same plan
//! and observations give the same next trials, so that a resumed run continues as if it had not been interrupted.
//!
//! A search chooses its own trials (`search`). For the rest there are two rules (`stats::Design`). A plan that is examined once gets
//! rounds of all its experiments as long as they fit into its budget: how many there are depends on time only, never on figures. A plan with several looks gets the rounds
//! up to the next look for each experiment that is undecided: if the plan has conditions about it, until each of these is decided,
//! and otherwise until its comparisons are.
//!
//! A round always contains all scenarios of its experiment, decided or not: the rows of a round tell what it did to the
//! others (`stats::Panel`).

use stats::{Design, LOOKS};

use crate::findings;
use crate::observation::{Observation, Outcome, by_experiment};
use crate::plan::{Plan, Planned};
use crate::search::{Limit, Search, Space};

/// The most rounds of a plan that is examined once. Ten rounds find most differences of 5 %. `--rounds` allows more.
pub const MOST_ROUNDS: u32 = 10;

/// How many rounds are expected in a plan that grows, if everything takes as long as estimated and stays undecided.
pub fn expected(plan: &Plan) -> u32 {
    let planned = plan.experiments.iter().map(|planned| planned.rounds).max().unwrap_or(0);
    let fits = |rounds: &u32| plan.rounds_s(*rounds) <= plan.budget_s.unwrap_or(0.0);
    if plan.design.is_once() {
        return (1..=MOST_ROUNDS).take_while(fits).last().unwrap_or(0).max(planned);
    }
    let looks = std::iter::successors(plan.design.next_look(0), |look| plan.design.next_look(*look));
    looks.take_while(fits).last().unwrap_or(planned).max(planned)
}

/// The same plan with so many times the rounds that are expected of it, whatever they show.
pub fn several_times(mut plan: Plan, times: u32) -> Plan {
    if times > 1 {
        let rounds = expected(&plan).saturating_mul(times);
        (plan.budget_s, plan.design) = (None, Design::ONCE);
        plan.grow(&(0..plan.experiments.len()).map(|index| (index, rounds)).collect::<Vec<_>>());
    }
    plan
}

/// Adds the trials that are needed next to a plan whose trials all have observations. Returns false if none are: everything
/// is decided, the budget is spent, or the number of rounds is fixed.
pub fn extend(plan: &mut Plan, observations: &[Observation]) -> bool {
    if plan.experiments.iter().any(|planned| planned.search.is_some()) {
        return search_on(plan, observations);
    }
    let Some(budget_s) = plan.budget_s else { return false };
    let left_s = budget_s - observations.iter().map(|o| o.took_s).sum::<f64>();
    let before = plan.trials.len();
    let seen = by_experiment(observations);
    let experiments = plan
        .experiments
        .iter()
        .map(|planned| (planned, seen.get(planned.name.as_str()).cloned().unwrap_or_default()));
    let rounds = if plan.design.is_once() {
        one_round(experiments.collect(), left_s)
    } else {
        next_looks(plan, experiments.collect(), &findings::undecided(plan, observations), left_s)
    };
    if plan.has_room_for(&rounds) {
        plan.grow(&rounds);
    }
    plan.trials.len() > before
}

/// Turns every experiment with a space of settings into a search of at most so many trials whose winner must keep the limits, and
/// plans its first round. Returns false if no experiment has one.
pub fn begin_search(plan: &mut Plan, trials: usize, limits: &[Limit]) -> bool {
    plan.trials.clear();
    for planned in &mut plan.experiments {
        let Some(space) = Space::of(&planned.setup) else { continue };
        planned.search = Some(Search::new(&planned.setup, trials, plan.seed, limits));
        planned.scenarios = vec![space.base];
        planned.setup.rounds = 0;
    }
    search_on(plan, &[])
}

/// Adds the rounds that the plan's searches need next. Returns false if the searches have ended.
fn search_on(plan: &mut Plan, observations: &[Observation]) -> bool {
    let before = plan.trials.len();
    for index in 0..plan.experiments.len() {
        let planned = &plan.experiments[index];
        let Some(search) = &planned.search else { continue };
        for (step, scenarios) in search.next(&planned.setup, plan.budget_s, observations) {
            if let Some(search) = &mut plan.experiments[index].search {
                search.steps.push(step);
            }
            plan.add_round(index, &scenarios);
        }
    }
    plan.trials.len() > before
}

type Observed<'a> = Vec<(&'a Planned, Vec<&'a Observation>)>;

/// One more round of every experiment, if it fits. Nothing can be compared in an experiment without two scenarios that
/// were measured.
fn one_round(experiments: Observed, left_s: f64) -> Vec<(usize, u32)> {
    let compares = |planned: &Planned, observations: &[&Observation]| {
        let measured = |o: &&&Observation| matches!(o.outcome, Outcome::Measured(_));
        let of_systems = observations.iter().filter(measured).filter(|o| !o.trial.scenario.is_reference());
        let first = of_systems.clone().next().map(|o| &o.trial.scenario);
        // A base is compared with its twin.
        planned.rounds < MOST_ROUNDS
            && (planned.base.is_some() && of_systems.clone().next().is_some()
                || of_systems.clone().any(|o| Some(&o.trial.scenario) != first))
    };
    let open = experiments.iter().enumerate().filter(|(_, (planned, seen))| compares(planned, seen));
    let cost_s: f64 = open.clone().map(|(_, (planned, seen))| round_s(planned, seen)).sum();
    if cost_s > left_s {
        return Vec::new();
    }
    open.map(|(index, (planned, _))| (index, planned.rounds + 1)).collect()
}

/// The rounds up to the next look for each experiment that is undecided, as long as they fit. What a condition limits goes first,
/// because a condition that is left open may fail the run.
fn next_looks(plan: &Plan, experiments: Observed, undecided: &[bool], mut left_s: f64) -> Vec<(usize, u32)> {
    let mut rounds = Vec::new();
    let limited = |planned: &Planned| {
        plan.conditions.iter().any(|c| planned.figures.iter().any(|figure| c.is_about(figure)))
    };
    let mut order: Vec<usize> = (0..experiments.len()).collect();
    order.sort_by_key(|index| !limited(experiments[*index].0));
    for index in order {
        let (planned, observations) = &experiments[index];
        let Some(look) = plan.design.next_look(planned.rounds) else { continue };
        let step = look - planned.rounds;
        let cost_s = f64::from(step) * round_s(planned, observations);
        // What is not examined here spends no error. It goes on to the next look whatever it shows.
        let examined = LOOKS.contains(&planned.rounds);
        if (!examined || undecided[index]) && cost_s <= left_s {
            left_s -= cost_s;
            rounds.push((index, look));
        }
    }
    rounds.sort_unstable();
    rounds
}

/// The expected duration of a round in seconds, from the trials so far.
fn round_s(planned: &Planned, observations: &[&Observation]) -> f64 {
    let total: f64 = observations.iter().map(|o| o.took_s).sum();
    total / f64::from(planned.rounds.max(1))
}

#[cfg(test)]
mod tests;
