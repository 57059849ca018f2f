//! What earlier runs of the same question say about two runs: how much runs differ on this machine although nothing has
//! changed. The same question is the same scenario of the same experiment, with the same timing and base, on the same machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::{BetweenRuns, Location};

use super::indexed::{Indexed, Name};
use super::{Chosen, Entry, environment};
use crate::plan::Plan;

/// The most earlier runs that are worth reading. More hardly make an interval narrower.
pub const MOST_RUNS: usize = 30;

/// So near are estimates from the same figures, whose last digits a file may change.
const SAME: f64 = 1e-9;

/// The runs of a store that began before the later of two that are compared.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The runs, with everything that they measured.
    pub runs: Vec<Chosen>,
    /// Whether the first of the two began after the second. The earlier one counts as an earlier run, also if only a file has it.
    pub first_is_later: bool,
}

/// The earlier runs of a question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Earlier {
    /// How many there are. The earlier of the two that are compared is one of them.
    pub runs: u32,
    /// The standard deviation between runs of the logarithm of the figure's ratio to its yardstick, without what the rounds leave
    /// open: 0.03 is about 3 %. Null if there are fewer than five runs.
    pub spread: Option<f64>,
}

/// Whether a run may be an earlier run of what two sides ask, as far as its plan and its machine say.
pub fn may_ask_the_same(plan: &Plan, machine: &serde_json::Value, side: &Chosen) -> bool {
    let known = |name: &str| side.findings.experiments.iter().any(|e| e.name == name);
    plan.experiments.iter().any(|planned| known(&planned.name))
        && !environment::is_another_machine(machine, &side.environment)
}

/// The earlier runs of the machines of two sides, with their figures by name.
pub(super) struct Known<'a> {
    runs: Vec<BTreeMap<Name<'a>, Vec<Indexed<'a>>>>,
    first_is_later: bool,
}

impl<'a> Known<'a> {
    pub fn of(history: &'a History, a: &Chosen, b: &Chosen) -> Self {
        let machines = [&a.environment, &b.environment];
        let is_here = |run: &&Chosen| {
            !machines.iter().any(|machine| environment::is_another_machine(&run.environment, machine))
        };
        let by_name = |run: &'a Chosen| {
            let mut figures: BTreeMap<Name, Vec<Indexed>> = BTreeMap::new();
            for figure in Indexed::all(&run.findings) {
                figures.entry(figure.name()).or_default().push(figure);
            }
            figures
        };
        let runs = history.runs.iter().filter(is_here).map(by_name).collect();
        Self { runs, first_is_later: history.first_is_later }
    }

    /// The figures that ask what both of these ask: at most one of each run.
    fn asking(&'a self, both: [&'a Indexed<'a>; 2]) -> Vec<&'a Indexed<'a>> {
        let alike = |of: &&Indexed| {
            both.iter().all(|asked| of.figure == asked.figure && environment::asks_the_same(of, asked))
        };
        // What asks the same has the same name.
        let named = |run: &'a BTreeMap<Name<'a>, Vec<Indexed<'a>>>| run.get(&both[0].name());
        self.runs.iter().filter_map(|run| named(run)?.iter().find(alike)).collect()
    }
}

/// The earlier runs of each question that two sides ask.
pub(super) struct Questions<'a> {
    /// By the two figures that are compared. Their scenarios are many, and ask one question.
    runs: BTreeMap<[*const Indexed<'a>; 2], Vec<&'a Indexed<'a>>>,
    first_is_later: bool,
}

/// By what the two figures of a pair are known.
fn question<'a>(a: Entry<'a>, b: Entry<'a>) -> [*const Indexed<'a>; 2] {
    [a, b].map(|entry| std::ptr::from_ref(entry.experiment))
}

impl<'a> Questions<'a> {
    /// Looks once for the earlier runs of each pair of figures.
    pub fn of(known: &'a Known<'a>, pairs: &[(Entry<'a>, Entry<'a>)]) -> Self {
        let mut runs = BTreeMap::new();
        for (a, b) in pairs {
            let asking = || known.asking([a.experiment, b.experiment]);
            runs.entry(question(*a, *b)).or_insert_with(asking);
        }
        Self { runs, first_is_later: known.first_is_later }
    }

    /// The difference of the two runs in a pair of scenarios, whose error holds how much runs differ; None with too few earlier
    /// runs. And these runs. None if a scenario has too few rounds itself.
    pub fn difference(&self, a: Entry<'a>, b: Entry<'a>) -> Option<(Option<Location>, Earlier)> {
        let own = [location(a)?, location(b)?];
        let [at_a, at_b] = [a, b].map(|entry| {
            let runs = self.runs.get(&question(a, b)).into_iter().flatten();
            let others = runs.filter_map(|experiment| estimated(experiment, entry));
            others.filter(|run| !own.iter().any(|own| is_same(own, run))).collect::<Vec<_>>()
        });
        let ([mut earlier, later], of_earlier) =
            if self.first_is_later { ([at_b, at_a], own[1]) } else { ([at_a, at_b], own[0]) };
        earlier.push(of_earlier);
        // One question: the earlier run is one of those that show how much the later may differ.
        let later = if a.estimate.scenario == b.estimate.scenario { earlier.clone() } else { later };
        let runs = earlier.len().min(later.len());
        let known = BetweenRuns::of(&earlier).zip(BetweenRuns::of(&later));
        let spread = known.map(|(one, other)| one.spread().max(other.spread()));
        let found = known.map(|(earlier, later)| {
            let [of_a, of_b] = if self.first_is_later { [later, earlier] } else { [earlier, later] };
            BetweenRuns::difference((&own[1], &of_b), (&own[0], &of_a))
        });
        Some((found, Earlier { runs: runs as u32, spread }))
    }
}

/// What an earlier run has estimated of this scenario.
fn estimated<'a>(experiment: &'a Indexed<'a>, entry: Entry<'_>) -> Option<Location> {
    let estimate = experiment.estimate(&entry.estimate.scenario)?;
    location(Entry { experiment, estimate }).filter(|_| estimate.compares())
}

/// Whether two estimates come from the same figures: those of one run, which a file may give once more.
fn is_same(a: &Location, b: &Location) -> bool {
    (a.estimate - b.estimate).abs() < SAME && (a.error - b.error).abs() < SAME
}

/// The estimate of a scenario beside its yardstick. None if there are too few rounds.
fn location(entry: Entry) -> Option<Location> {
    Location::of(&entry.to_yardstick()?)
}
