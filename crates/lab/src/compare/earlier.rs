//! What earlier runs of the same question say about two runs: how much runs differ on this machine although nothing has
//! changed. The same question is the same scenario of the same experiment, with the same timing and base, on the same machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{BetweenRuns, Location};

use super::{Chosen, Entry, Sides, environment};
use crate::findings::FigureView;
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
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
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

impl History {
    /// The difference of the two runs in a pair of scenarios, whose error holds how much runs differ; None with too few earlier
    /// runs. And these runs. None if a scenario has too few rounds itself.
    pub(super) fn difference(
        &self,
        sides: &Sides,
        a: Entry,
        b: Entry,
    ) -> Option<(Option<Location>, Earlier)> {
        let own = [location(a)?, location(b)?];
        let [at_a, at_b] = [a, b].map(|entry| {
            let mut others = self.of_question(sides, [a, b], entry);
            others.retain(|run| !own.iter().any(|own| is_same(own, run)));
            others
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

    /// What the runs that ask what both sides ask have estimated of this scenario.
    fn of_question(&self, sides: &Sides, both: [Entry; 2], entry: Entry) -> Vec<Location> {
        let machines = [&sides.a.environment, &sides.b.environment];
        let is_here = |run: &&Chosen| {
            !machines.iter().any(|machine| environment::is_another_machine(&run.environment, machine))
        };
        let of = |run: &Chosen| {
            let alike = |e: &FigureView| {
                let same = |asked: &Entry| {
                    e.figure == asked.experiment.figure && environment::asks_the_same(e, &asked.experiment)
                };
                both.iter().all(same)
            };
            let experiment = run.findings.views().find(alike)?;
            let mut estimates = experiment.estimates.iter();
            let estimate = estimates.find(|other| other.scenario == entry.estimate.scenario)?;
            location(Entry { experiment, estimate }).filter(|_| estimate.compares())
        };
        self.runs.iter().filter(is_here).filter_map(of).collect()
    }
}

/// Whether two estimates come from the same figures: those of one run, which a file may give once more.
fn is_same(a: &Location, b: &Location) -> bool {
    (a.estimate - b.estimate).abs() < SAME && (a.error - b.error).abs() < SAME
}

/// The estimate of a scenario beside its yardstick. None if there are too few rounds.
fn location(entry: Entry) -> Option<Location> {
    Location::of(&entry.to_yardstick()?)
}
