//! Decides which trials a run without a fixed number of rounds needs next, and when it has enough. Pure: the same plan
//! and observations give the same next trials, so that a resumed run continues as if it had not been interrupted.
//!
//! A search chooses its own trials (`search`). For the rest there are two rules (`stats::Design`). A plan that is examined once gets
//! rounds of all its experiments as long as they fit into its budget: how many there are depends on time only, never on figures. A plan
//! with several looks gets the rounds up to the next look for each experiment that is undecided: if the plan has conditions about it,
//! until each of these is decided, and otherwise until its comparisons are. When no next look fits, the plan gets the rounds that do
//! fit, and is examined a last time after them.
//!
//! A round always contains all scenarios of its experiment, decided or not: the rows of a round tell what it did to the
//! others (`stats::Panel`).

use stats::{Design, LOOKS};
use systems::Value;

use crate::findings;
use crate::observation::{Observation, Outcome, by_experiment};
use crate::plan::{MOST_BYTES_OF_SEARCH, Plan, Planned, RoundTimes, entry_bytes, size};
use crate::search::{Limit, Search, Space};

/// The most rounds of a plan that is examined once. Ten rounds find most differences of 5 %. `--rounds` allows more.
pub const MOST_ROUNDS: u32 = 10;

/// How many rounds are expected in a plan that grows, if everything takes as long as estimated and stays undecided.
pub fn expected(plan: &Plan) -> u32 {
    let planned = plan.experiments.iter().map(|planned| planned.rounds).max().unwrap_or(0);
    let times = plan.round_times();
    let fits = |rounds: &u32| times.of_s(0..*rounds) <= plan.budget_s.unwrap_or(0.0);
    let most = plan.design.last_look().unwrap_or(MOST_ROUNDS);
    (1..=most).take_while(fits).last().unwrap_or(0).max(planned)
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

/// Whether what is measured decides how many trials a plan has.
pub fn may_extend(plan: &Plan) -> bool {
    plan.budget_s.is_some() || plan.experiments.iter().any(|planned| planned.search.is_some())
}

/// Adds the trials that are needed next to a plan whose trials all have observations. Returns false if none are: everything
/// is decided, the budget is spent, or the number of rounds is fixed. A spent budget may still change the plan's design.
pub fn extend(plan: &mut Plan, observations: &[Observation]) -> bool {
    if plan.experiments.iter().any(|planned| planned.search.is_some()) {
        return search_on(plan, observations);
    }
    let Some(budget_s) = plan.budget_s else { return false };
    let left_s = budget_s - observations.iter().map(|o| o.took_s).sum::<f64>();
    let seen = by_experiment(observations);
    let experiments = plan
        .experiments
        .iter()
        .map(|planned| (planned, seen.get(planned.name.as_str()).cloned().unwrap_or_default()));
    if plan.design.is_once() {
        let rounds = one_round(plan, experiments.collect(), left_s);
        return grow(plan, &rounds);
    }
    let open = open(plan, experiments.collect(), &findings::undecided(plan, observations));
    let rounds = next_looks(&open, left_s);
    if !rounds.is_empty() || open.is_empty() {
        return grow(plan, &rounds);
    }
    // If all experiments are open, time alone ends the plan, and its looks may end here. If one was decided, how long the others could go
    // on depends on what it showed, so the looks stay as planned.
    let all_open = open.len() == plan.experiments.len();
    let rounds = last_rounds(&open, left_s);
    let grown = grow(plan, &rounds);
    if all_open {
        let reached = plan.experiments.iter().map(|planned| planned.rounds).max().unwrap_or(0);
        plan.design = plan.design.ending_after(reached);
    }
    grown
}

/// Adds these rounds, if there is room for them. Returns whether there are any.
fn grow(plan: &mut Plan, rounds: &[(usize, u32)]) -> bool {
    let has_room = plan.has_room_for(rounds);
    if has_room {
        plan.grow(rounds);
    }
    has_room && !rounds.is_empty()
}

/// Turns every experiment with a space of settings into a search of at most so many trials whose winner must keep the limits, and
/// plans its first round.
///
/// # Errors
/// No experiment has such a space, or the trials would take too much memory.
pub fn begin_search(plan: &mut Plan, trials: usize, limits: &[Limit]) -> Result<(), String> {
    plan.trials.clear();
    for planned in &mut plan.experiments {
        let Some(space) = Space::of(&planned.setup) else { continue };
        let search = Search::new(&planned.setup, trials, plan.seed, limits);
        let bytes = search.terms.trials.saturating_mul(trial_bytes(&space));
        if bytes > MOST_BYTES_OF_SEARCH {
            let [bytes, most] = [bytes, MOST_BYTES_OF_SEARCH].map(|bytes| bytes.div_ceil(1 << 20));
            return Err(format!(
                "its trials take up to {bytes} MiB, and may take {most}: give shorter values or a shorter --budget"
            ));
        }
        planned.search = Some(search);
        planned.scenarios = vec![space.base];
        planned.setup.rounds = 0;
    }
    match search_on(plan, &[]) {
        true => Ok(()),
        false => Err("its knobs have no default among their values".to_owned()),
    }
}

/// About how many bytes a trial of a search takes at most.
fn trial_bytes(space: &Space) -> usize {
    let longest = |(knob, values): &(String, Vec<Value>)| {
        values.iter().map(|value| entry_bytes(knob, value)).max().unwrap_or(0)
    };
    space.knobs.iter().map(longest).fold(size(&space.base), usize::saturating_add)
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
fn one_round(plan: &Plan, experiments: Observed, left_s: f64) -> Vec<(usize, u32)> {
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
    let cost_s = |(planned, seen): &(&Planned, Vec<&Observation>)| {
        round_times(plan, planned, seen).of_s(planned.rounds..planned.rounds + 1)
    };
    let cost_s: f64 = open.clone().map(|(_, observed)| cost_s(observed)).sum();
    if cost_s > left_s {
        return Vec::new();
    }
    open.map(|(index, (planned, _))| (index, planned.rounds + 1)).collect()
}

/// An experiment that gets more rounds if there is time.
struct Open {
    /// Its position in the plan.
    index: usize,
    rounds: u32,
    /// After how many rounds it is examined next.
    look: u32,
    times: RoundTimes,
}

/// The experiments that get more rounds if there is time. What a condition limits goes first, because a condition that is left open
/// may fail the run.
fn open(plan: &Plan, experiments: Observed, undecided: &[bool]) -> Vec<Open> {
    let limited = |planned: &Planned| {
        plan.conditions.iter().any(|c| planned.figures.iter().any(|figure| c.is_about(figure)))
    };
    let mut order: Vec<usize> = (0..experiments.len()).collect();
    order.sort_by_key(|index| !limited(experiments[*index].0));
    let open = order.into_iter().filter_map(|index| {
        let (planned, observations) = &experiments[index];
        let rounds = planned.rounds;
        let look = plan.design.next_look(rounds)?;
        // What is not examined here spends no error. It goes on to the next look whatever it shows.
        let examined = LOOKS.contains(&rounds);
        let is_open = !examined || undecided[index];
        is_open.then(|| Open { index, rounds, look, times: round_times(plan, planned, observations) })
    });
    open.collect()
}

/// The rounds up to the next look of each experiment, as long as there is time for all of them.
fn next_looks(open: &[Open], mut left_s: f64) -> Vec<(usize, u32)> {
    let mut rounds = Vec::new();
    for next in open {
        let cost_s = next.times.of_s(next.rounds..next.look);
        if cost_s <= left_s {
            left_s -= cost_s;
            rounds.push((next.index, next.look));
        }
    }
    rounds.sort_unstable();
    rounds
}

/// The last rounds for which there is time, if there is none for a next look.
fn last_rounds(open: &[Open], mut left_s: f64) -> Vec<(usize, u32)> {
    let mut rounds = Vec::new();
    for next in open {
        let fits = |last: &u32| next.times.of_s(next.rounds..*last) <= left_s;
        if let Some(last) = (next.rounds + 1..next.look).take_while(fits).last() {
            left_s -= next.times.of_s(next.rounds..last);
            rounds.push((next.index, last));
        }
    }
    rounds.sort_unstable();
    rounds
}

/// How long further rounds take: the estimate, times how much longer than estimated the rounds so far took. The first round counts only
/// as long as there is no other, because the kernel's work is counted in it.
fn round_times(plan: &Plan, planned: &Planned, observations: &[&Observation]) -> RoundTimes {
    let later = || observations.iter().filter(|o| o.trial.round > 0);
    let ratio = |seen: &mut dyn Iterator<Item = &&Observation>| {
        let (took, expected) =
            seen.fold((0.0, 0.0), |(took, expected), o| (took + o.took_s, expected + plan.trial_s(&o.trial)));
        (expected > 0.0).then_some(took / expected)
    };
    let slower = ratio(&mut later()).or_else(|| ratio(&mut observations.iter())).unwrap_or(1.0);
    plan.round_times_of(planned).slowed_by(slower)
}

#[cfg(test)]
mod tests;
