//! Proof of the verdicts by simulation: thousands of runs through the real plan, the real rule for rounds and the real findings,
//! with an executor that knows the truth. Prints the table of docs/statistics.md.

use stats::{Noise, Verdict};
use systems::knob::Kind;
use systems::{Point, Value, Workload};

use crate::experiment::grid::Axis;
use crate::experiment::{Figure, Form};
use crate::findings::{Compared, compared};
use crate::observation::{Observation, Scenario, Timing};
use crate::plan::{Plan, Planned, reference_of};
use crate::rounds;
use crate::session::{Fake, Rule, observe};

/// A system with one knob of so many values, the first of them the default, and the reference.
fn plan(values: i64, rounds: u32, budget_s: Option<f64>, seed: u64) -> Plan {
    let workload = Workload::Requests;
    let scenario = |value: i64| Scenario {
        experiment: "e".to_owned(),
        system: "s".to_owned(),
        workload,
        point: Point::from([("knob".to_owned(), Value::Integer(value))]),
    };
    let mut scenarios: Vec<Scenario> = (0..values).map(scenario).collect();
    scenarios.push(reference_of(&scenarios[0]));
    let planned = Planned {
        name: "e".to_owned(),
        title: String::new(),
        about: String::new(),
        workload,
        figure: Figure::RequestsPerS,
        published: None,
        form: Form::Quick,
        rounds: 0,
        threshold: 0.05,
        timing: Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 },
        axes: vec![Axis {
            knob: "knob".to_owned(),
            kind: Kind::Integer,
            workload: false,
            values: (0..values).map(Value::Integer).collect(),
            default: Some(Value::Integer(0)),
        }],
        scenarios: scenarios.clone(),
        excluded: Vec::new(),
    };
    let mut plan = Plan { seed, budget_s, experiments: vec![planned], trials: Vec::new() };
    plan.grow(0, &scenarios, rounds);
    plan
}

/// Value 1 is so many times better than the others.
fn fake(better: f64, seed: u64) -> Fake {
    let point = Point::from([("knob".to_owned(), Value::Integer(1))]);
    let rule = Rule { point, better: Some(better), ..Rule::default() };
    Fake::new(1e6, vec![rule], Noise::SHARED_MACHINE, seed)
}

/// Carries a plan out without a store; what was found at its end.
fn run(mut plan: Plan, mut fake: Fake) -> (Plan, Compared) {
    let mut seen: Vec<Observation> = Vec::new();
    loop {
        for trial in &plan.trials[seen.len()..] {
            seen.push(observe(&mut fake, trial).unwrap());
        }
        if !rounds::extend(&mut plan, &seen) {
            break;
        }
    }
    let found = compared(&plan.experiments[0], plan.design(), &seen.iter().collect::<Vec<_>>());
    (plan, found)
}

#[test]
fn speed() {
    let n = 100;
    for (values, rounds, budget) in [(2, 10, None), (2, 3, Some(1e9)), (4, 3, Some(1e9))] {
        let t = std::time::Instant::now();
        let mut c = [0; 4];
        let mut rr = 0;
        for seed in 0..n {
            let (plan, found) = run(plan(values, rounds, budget, seed), fake(1.05, seed + 1000));
            if !found.comparisons[0].verdict.is_decided() && budget.is_some() {
                println!("{:?} {:?}", found.comparisons[0], found.floor);
            }
            rr += plan.experiments[0].rounds;
            c[match found.comparisons[0].verdict {
                Verdict::Faster => 0,
                Verdict::Slower => 1,
                Verdict::NoDifference => 2,
                Verdict::Undecided { .. } => 3,
            }] += 1;
        }
        println!("{values} {rounds} {budget:?} {c:?} rounds {} {:?}", rr as f64 / n as f64, t.elapsed());
    }
}
