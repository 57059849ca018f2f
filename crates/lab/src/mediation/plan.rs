//! The plan of a test: the scenarios of a saved experiment again, with one more knob that injects a suspected cause. Pure.

use std::collections::BTreeMap;

use systems::Value;
use systems::knob::Kind;

use crate::experiment::grid::Axis;
use crate::experiment::{Figure, Figures};
use crate::observation::Scenario;
use crate::plan::{Base, Plan, Planned};
use crate::setup::Setup;

/// The name of the experiment of a test.
const NAME: &str = "why";

/// What a test asks.
pub struct Test<'a> {
    /// The plan of the run whose reasons are tested.
    pub saved: &'a Plan,
    /// Its experiment.
    pub planned: &'a Planned,
    /// The figure in which the two differ.
    pub figure: Figure,
    /// The faster of the two.
    pub faster: &'a Scenario,
    /// The slower one.
    pub slower: &'a Scenario,
    /// The knob that injects, which the systems have for this test only.
    pub knob: &'a str,
    /// Its value that injects nothing.
    pub nothing: Value,
    /// Its values that are given to the faster one.
    pub doses: Vec<Value>,
    /// The command of the faster one.
    pub command: String,
}

impl Test<'_> {
    /// A scenario of the saved run, with a value of the knob.
    ///
    /// # Errors
    /// It has a value that this version does not allow.
    pub fn arm(&self, of: &Scenario, value: &Value) -> Result<Scenario, String> {
        let mut point = of.point.clone();
        point.insert(self.knob.to_owned(), value.clone());
        Scenario::new(NAME, of.system.clone(), of.workload(), point)
    }

    /// The plan: the faster one without a cause, which is the base, then with each dose, and the slower one. It has the traffic, the
    /// timing and the demands of the saved run, and the fewest rounds that a share needs. How many there are is fixed before the first
    /// trial ([`Plan::fill`]), because no interval of a share allows for several looks.
    ///
    /// # Errors
    /// The saved run has a value that this version does not allow.
    pub fn plan(&self, seed: u64) -> Result<Plan, String> {
        let doses = self.doses.iter().map(|dose| (self.faster, dose));
        let arms =
            [(self.faster, &self.nothing)].into_iter().chain(doses).chain([(self.slower, &self.nothing)]);
        let scenarios: Vec<Scenario> = arms.map(|(of, dose)| self.arm(of, dose)).collect::<Result<_, _>>()?;
        let mut plan = Plan::new(seed, vec![self.experiment(scenarios)]);
        plan.starts.clone_from(&self.saved.starts);
        plan.grow(&[(0, stats::FEWEST_ROUNDS as u32)]);
        Ok(plan)
    }

    fn experiment(&self, scenarios: Vec<Scenario>) -> Planned {
        let Planned { setup, apply, .. } = self.planned.clone();
        let mut subject = setup.subject.clone();
        let is = if self.figure == Figure::CpuPerUnit { "needs more CPU than" } else { "is slower than" };
        subject.title = format!("why {} {is} {}", setup.label(self.slower), setup.label(self.faster));
        subject.name = NAME.to_owned();
        subject.about = String::new();
        subject.figures = Figures { first: self.figure, others: Vec::new() };
        subject.asks = None;
        subject.published.clear();
        let base = scenarios
            .first()
            .map(|scenario| Base { scenario: scenario.clone(), command: self.command.clone() });
        let mut axes = setup.axes.clone();
        for axis in &mut axes {
            let is_set = |value: &Value| scenarios.iter().any(|s| s.point.get(&axis.knob) == Some(value));
            axis.values.retain(is_set);
        }
        axes.retain(|axis| !axis.values.is_empty());
        axes.push(Axis {
            knob: self.knob.to_owned(),
            kind: Kind::Choice,
            workload: false,
            values: [self.nothing.clone()].into_iter().chain(self.doses.iter().cloned()).collect(),
            default: Some(self.nothing.clone()),
            amount: false,
        });
        let setup = Setup {
            subject,
            rounds: 0,
            axes,
            base,
            excluded: Vec::new(),
            alike: BTreeMap::new(),
            duet: false,
            repeats: None,
            ..setup
        };
        Planned { setup, scenarios, apply, search: None, is_test: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::grid::Overrides;
    use crate::experiment::tests::planned;

    #[test]
    fn the_arms_are_two_scenarios_of_the_run_and_the_doses_of_the_faster_one() {
        let grid = "[[quick.grid]]\nsize = 1\nbuffer = [1460, 8192, 65536]\nmode = [\"a\", \"b\"]\n";
        let saved = planned(grid, Overrides::default()).unwrap();
        let of = |buffer: i64| {
            let is = |s: &&Scenario| s.point.get("buffer") == Some(&Value::Integer(buffer));
            saved.experiments[0].scenarios.iter().find(is).unwrap()
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let test = Test {
            saved: &saved,
            planned: &saved.experiments[0],
            figure: Figure::MsPerUpload,
            faster: of(65536),
            slower: of(1460),
            knob: "injected",
            nothing: text("nothing"),
            doses: vec![text("cap=2920"), text("cap=1460")],
            command: "start".to_owned(),
        };
        let mut plan = test.plan(1).unwrap();
        let shown = |s: &Scenario| format!("{} {}", s.point["buffer"], s.point["injected"]);
        let arms: Vec<String> = plan.experiments[0].scenarios.iter().map(shown).collect();
        assert_eq!(arms, ["65536 nothing", "65536 cap=2920", "65536 cap=1460", "1460 nothing"]);
        let base = plan.experiments[0].base.as_ref().unwrap();
        assert_eq!(shown(&base.scenario), "65536 nothing");
        assert!(plan.trials.iter().all(|trial| !trial.scenario.is_reference() && !trial.profiled));
        let axes = plan.experiments[0].axes.iter().map(|axis| (axis.knob.as_str(), axis.values.len()));
        assert_eq!(axes.collect::<Vec<_>>(), [("size", 1), ("buffer", 2), ("mode", 1), ("injected", 3)]);
        // More time means more rounds, whose number is known before the first trial.
        let rounds = plan.experiments[0].rounds;
        plan.fill(plan.estimate_s() * 3.0);
        assert!(rounds == 3 && plan.experiments[0].rounds > rounds && plan.budget_s.is_none());
    }
}
