//! Made-up runs for tests: clients whose figures follow the rules of the fake executor.

use lab::experiment::grid::Axis as Knob;
use lab::experiment::{Figure as Quantity, Form, Subject};
use lab::findings::{ExperimentFindings, findings};
use lab::observation::{Observation, Scenario, Timing, Trial};
use lab::plan::{Plan, Planned, Setup};
use lab::session::{Executor, Fake, Rule};
use stats::Noise;
use systems::knob::Kind;
use systems::{Point, Value, Workload};

/// All points of the grid that these knobs span.
fn points(knobs: &[(&str, &[i64])]) -> Vec<Point> {
    let mut points = vec![Point::new()];
    for (knob, values) in knobs {
        let with = |point: &Point, value: &i64| {
            let mut point = point.clone();
            point.insert((*knob).to_owned(), Value::Integer(*value));
            point
        };
        points = points.iter().flat_map(|p| values.iter().map(move |v| with(p, v))).collect();
    }
    points
}

const TIMING: Timing = Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 };

/// A plan of four rounds with clients at every point, and the reference at one.
fn plan(systems: &[&str], knobs: &[(&str, &[i64])]) -> Plan {
    let points = points(knobs);
    let scenario = |system: &str, point: &Point| {
        Scenario::new("e", system, Workload::Clients, point.clone()).expect("work")
    };
    let mut scenarios: Vec<Scenario> =
        systems.iter().flat_map(|system| points.iter().map(|point| scenario(system, point))).collect();
    scenarios.push(scenarios[0].reference());
    let axis = |(knob, values): &(&str, &[i64])| Knob {
        knob: (*knob).to_owned(),
        kind: Kind::Integer,
        workload: true,
        values: values.iter().copied().map(Value::Integer).collect(),
        default: None,
        amount: false,
    };
    let rounds = (0..4).flat_map(|round| scenarios.iter().map(move |scenario| (round, scenario)));
    let trial = |(at, (round, scenario)): (usize, (u32, &Scenario))| Trial {
        index: at as u32,
        round,
        scenario: scenario.clone(),
        timing: TIMING,
        twin: false,
        counted: false,
    };
    let trials = rounds.enumerate().map(trial).collect();
    let subject = Subject {
        name: "e".to_owned(),
        title: "Of a test".to_owned(),
        about: String::new(),
        workload: Workload::Clients,
        figure: Quantity::RequestsPerS,
        also: Vec::new(),
        published: Vec::new(),
        threshold: 0.05,
    };
    let setup = Setup {
        subject,
        form: Form::Quick,
        rounds: 4,
        timing: TIMING,
        axes: knobs.iter().map(axis).collect(),
        excluded: Vec::new(),
        base: None,
        repeats: None,
        ask: None,
        defaults: Default::default(),
    };
    let planned = Planned { setup, scenarios, apply: Default::default(), search: None };
    Plan { seed: 1, design: stats::Design::ONCE, budget_s: None, experiments: vec![planned], trials }
}

/// The findings of such a plan under these rules of the fake executor.
pub(crate) fn found(systems: &[&str], knobs: &[(&str, &[i64])], rules: &[Rule]) -> ExperimentFindings {
    let plan = plan(systems, knobs);
    let mut fake = Fake::new(1000.0, rules.to_vec(), Noise { spread: 0.01, ..Noise::default() }, 1);
    let observe = |trial: &Trial| Observation {
        trial: trial.clone(),
        began_unix_s: 0.0,
        took_s: 1.0,
        outcome: fake.execute(trial).expect("it pretends"),
    };
    let observations: Vec<Observation> = plan.trials.iter().map(observe).collect();
    findings(&plan, &observations).experiments.remove(0)
}

/// A rule for a system at these values.
pub(crate) fn rule(system: &str, point: &[(&str, i64)], better: f64) -> Rule {
    let value = |(knob, value): &(&str, i64)| ((*knob).to_owned(), Value::Integer(*value));
    Rule {
        system: Some(system.to_owned()),
        point: point.iter().map(value).collect(),
        better: Some(better),
        ..Rule::default()
    }
}
