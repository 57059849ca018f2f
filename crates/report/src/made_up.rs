//! Made-up runs for tests: clients, and searches for the best setting of a server, whose figures follow the rules of the fake
//! executor. Made-up profiles.

use lab::experiment::grid::Axis as Knob;
use lab::experiment::{Figure as Quantity, Figures, Form, Subject};
use lab::findings::{ExperimentFindings, FigureView, Findings, findings};
use lab::observation::{Observation, Scenario, Timing, Trial};
use lab::plan::{Base, Plan, Planned, Setup};
use lab::rounds;
use lab::search::Limit;
use lab::session::{Executor, Fake, Rule};
use profile::{Frame, Kind as Code, Profile, Stack};
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

fn setup(workload: Workload, knobs: &[(&str, &[i64])]) -> Setup {
    let axis = |(knob, values): &(&str, &[i64])| Knob {
        knob: (*knob).to_owned(),
        kind: Kind::Integer,
        workload: workload == Workload::Clients,
        values: values.iter().copied().map(Value::Integer).collect(),
        default: None,
        amount: false,
    };
    let subject = Subject {
        name: "e".to_owned(),
        title: "Of a test".to_owned(),
        about: String::new(),
        workload,
        figures: Figures { first: Quantity::RequestsPerS, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    };
    Setup {
        subject,
        form: Form::Quick,
        rounds: 0,
        timing: TIMING,
        axes: knobs.iter().map(axis).collect(),
        excluded: Vec::new(),
        base: None,
        repeats: None,
        ask: None,
        defaults: Default::default(),
        alike: Default::default(),
        duet: false,
        from_file: false,
    }
}

/// A plan of four rounds with clients at these points, and the reference at one.
fn plan(systems: &[&str], knobs: &[(&str, &[i64])], points: &[Point]) -> Plan {
    let scenario = |system: &str, point: &Point| {
        Scenario::new("e", system, Workload::Clients, point.clone()).expect("work")
    };
    let mut scenarios: Vec<Scenario> =
        systems.iter().flat_map(|system| points.iter().map(|point| scenario(system, point))).collect();
    scenarios.push(scenarios[0].reference());
    let rounds = (0..4).flat_map(|round| scenarios.iter().map(move |scenario| (round, scenario)));
    let trial = |(at, (round, scenario)): (usize, (u32, &Scenario))| Trial {
        index: at as u32,
        round,
        ..Trial::alone(scenario.clone(), TIMING)
    };
    let trials = rounds.enumerate().map(trial).collect();
    let setup = Setup { rounds: 4, ..setup(Workload::Clients, knobs) };
    let planned = Planned { setup, scenarios, apply: Default::default(), search: None, is_test: false };
    Plan { trials, ..Plan::new(1, vec![planned]) }
}

/// The findings of such a plan with every point of a grid, under these rules of the fake executor.
pub(crate) fn found(systems: &[&str], knobs: &[(&str, &[i64])], rules: &[Rule]) -> ExperimentFindings {
    carried_out(&plan(systems, knobs, &points(knobs)), rules)
}

/// The findings of a client at points at which each value of one knob goes with one of another.
pub(crate) fn found_in_pairs(knobs: [&str; 2], values: &[i64]) -> ExperimentFindings {
    let pair =
        |value: &i64| knobs.map(|knob| (knob.to_owned(), Value::Integer(*value))).into_iter().collect();
    let points: Vec<Point> = values.iter().map(pair).collect();
    carried_out(&plan(&["a"], &knobs.map(|knob| (knob, values)), &points), &[])
}

fn carried_out(plan: &Plan, rules: &[Rule]) -> ExperimentFindings {
    let mut fake = fake(rules);
    let observations: Vec<Observation> = plan.trials.iter().map(|trial| observe(&mut fake, trial)).collect();
    findings(plan, &observations).experiments.remove(0)
}

/// The findings of eight rounds of `base` and `new`, which is so many times as good.
pub(crate) fn arms(better: f64) -> Findings {
    let scenario = |system: &str| Scenario::new("e", system, Workload::Requests, Point::new()).expect("work");
    let scenarios = vec![scenario("base"), scenario("new")];
    let base = Some(Base { scenario: scenarios[0].clone(), command: String::new() });
    let setup = Setup { base, ..setup(Workload::Requests, &[]) };
    let planned = Planned { setup, scenarios, apply: Default::default(), search: None, is_test: false };
    let mut plan = Plan::new(1, vec![planned]);
    plan.grow(&[(0, 8)]);
    let mut fake = fake(&[rule("new", &[], better)]);
    let observations: Vec<Observation> = plan.trials.iter().map(|trial| observe(&mut fake, trial)).collect();
    findings(&plan, &observations)
}

/// An experiment as its first figure sees it.
pub(crate) fn view(found: &ExperimentFindings) -> FigureView<'_> {
    found.view(0)
}

fn fake(rules: &[Rule]) -> Fake {
    Fake::new(1000.0, rules.to_vec(), Noise { spread: 0.01, ..Noise::default() }, 1)
}

fn observe(fake: &mut Fake, trial: &Trial) -> Observation {
    let outcome = fake.execute(trial).expect("it pretends");
    Observation { trial: trial.clone(), began_unix_s: 0.0, took_s: 1.0, duet: None, outcome }
}

/// A search for the best setting of the server `a`.
pub(crate) struct Sought<'a> {
    /// The default of each knob is its first value.
    pub knobs: &'a [(&'a str, &'a [i64])],
    pub also: &'a [Quantity],
    pub limits: &'a [Limit],
    pub rules: &'a [Rule],
    /// The most trials.
    pub trials: usize,
    /// The trials after which the run was interrupted.
    pub until: usize,
}

impl Sought<'_> {
    pub(crate) fn found(&self) -> ExperimentFindings {
        let point = self.knobs.iter().map(|(knob, values)| ((*knob).to_owned(), Value::Integer(values[0])));
        let scenario = Scenario::new("e", "a", Workload::Requests, point.collect()).expect("work");
        let mut setup = setup(Workload::Requests, self.knobs);
        setup.base = Some(Base { scenario, command: String::new() });
        setup.subject.figures.others = self.also.to_vec();
        let apply = self.knobs.iter().map(|(knob, _)| ((*knob).to_owned(), format!("{knob} {{value}};")));
        let apply = [("a".to_owned(), apply.collect())].into();
        let planned = Planned { setup, scenarios: Vec::new(), apply, search: None, is_test: false };
        let experiments = vec![planned];
        let mut plan = Plan::new(1, experiments);
        rounds::begin_search(&mut plan, self.trials, self.limits).expect("a search");
        let (mut fake, mut seen) = (fake(self.rules), Vec::new());
        loop {
            let missing = plan.trials[seen.len()..].iter().take(self.until - seen.len());
            let more: Vec<Observation> = missing.map(|trial| observe(&mut fake, trial)).collect();
            seen.extend(more);
            if seen.len() == self.until || !rounds::extend(&mut plan, &seen) {
                return findings(&plan, &seen).experiments.remove(0);
            }
        }
    }
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

/// A profile with these stacks, from the root to the leaf. Names that begin with `sys_` are functions of the
/// kernel, and each stack has lines of its own.
pub(crate) fn profile<N: AsRef<str>>(stacks: &[(Vec<N>, u64)]) -> Profile {
    let mut made = Profile { kernel: true, period_ns: 1_000_000, ..Profile::default() };
    for (line, (names, count)) in (1..).zip(stacks) {
        let mut frames = Vec::new();
        for name in names {
            let name = name.as_ref().to_owned();
            let (module, kind) = match name.starts_with("sys_") {
                true => ("[kernel]", Code::Kernel),
                false => ("/srv/server", Code::User),
            };
            frames.push(made.frames.len() as u32);
            let module = module.to_owned();
            made.frames.push(Frame { name, module, kind, inlined: false, file: None, line: Some(line) });
        }
        made.stacks.push(Stack { frames, count: *count });
        made.samples = made.samples.saturating_add(*count);
    }
    made
}
