//! Tests of findings on made-up observations with known answers, and the helpers of the other tests of findings.

use std::collections::BTreeMap;

use measurement::doubt::Doubt;
use measurement::{GeneratorUse, Latency, Measurement, ServerCounts, SystemUse};
use systems::knob::Kind;
use systems::{Point, Value, is_reference};

use super::*;
use crate::experiment::grid::Axis;
use crate::experiment::{Figure, Figures, Form, Subject};
use crate::observation::{Failure, Scenario, Timing, Trial};

pub(super) type Axes<'a> = &'a [(&'a str, Kind, &'a [Value])];

pub(super) fn int(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Integer).collect()
}

fn subject_of(workload: Workload, figure: Figure) -> Subject {
    Subject {
        name: "e".to_owned(),
        title: "A title".to_owned(),
        about: String::new(),
        workload,
        figures: Figures { first: figure, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    }
}

/// A plan of three rounds with every point of the axes for each system, and the reference.
pub(super) fn plan_of(workload: Workload, figure: Figure, systems: &[&str], axes: Axes) -> Plan {
    let timing = Timing { warmup_s: 0.0, measure_s: 2.0, timeout_s: 30.0 };
    let axis = |&(knob, kind, values): &(&str, Kind, &[Value])| Axis {
        knob: knob.to_owned(),
        kind,
        workload: workload.knob(knob).is_some(),
        values: values.to_vec(),
        default: None,
        amount: false,
    };
    let mut points = vec![Point::new()];
    for (knob, _, values) in axes {
        let with = |p: &Point, v: &Value| {
            let mut p = p.clone();
            p.insert((*knob).to_owned(), v.clone());
            p
        };
        points = points.iter().flat_map(|p| values.iter().map(move |v| with(p, v))).collect();
    }
    let scenario =
        |system: &str, point: &Point| Scenario::new("e", system, workload, point.clone()).expect("work");
    let mut scenarios: Vec<Scenario> =
        systems.iter().flat_map(|s| points.iter().map(|p| scenario(s, p))).collect();
    let mut references: Vec<Scenario> = scenarios.iter().map(Scenario::reference).collect();
    references.sort();
    references.dedup();
    scenarios.extend(references);
    let subject = subject_of(workload, figure);
    let setup = Setup {
        subject,
        form: Form::Quick,
        rounds: 3,
        timing,
        axes: axes.iter().map(axis).collect(),
        excluded: Vec::new(),
        base: None,
        repeats: None,
        ask: None,
        defaults: BTreeMap::new(),
        alike: BTreeMap::new(),
        duet: false,
        from_file: false,
    };
    let planned =
        Planned { setup, scenarios: scenarios.clone(), apply: BTreeMap::new(), search: None, is_test: false };
    let twin = scenarios.iter().find(|s| is_reference(&s.system)).map(|s| (s.clone(), true));
    let round = twin.into_iter().chain(scenarios.iter().map(|s| (s.clone(), false)));
    let planned_trials =
        (0..3).flat_map(|number| round.clone().map(move |(scenario, twin)| (number, scenario, twin)));
    let trials = planned_trials.enumerate().map(|(index, (round, scenario, twin))| {
        let index = index as u32;
        Trial { index, round, twin, ..Trial::alone(scenario, timing) }
    });
    let (trials, experiments) = (trials.collect(), vec![planned]);
    Plan { trials, ..Plan::new(1, experiments) }
}

/// A measurement without doubts: `n` operations of one megabyte in two seconds, each `us` long.
pub(super) fn measurement(n: u64, us: f64) -> Measurement {
    let latency =
        Latency { count: n, min: us, mean: us, max: us, buckets: vec![(us as u64, n)], ..Latency::default() };
    Measurement {
        elapsed_s: 2.0,
        attempts: n + 1,
        successes: n,
        in_flight: 1,
        units: n,
        payload_bytes: n * 1_000_000,
        service_us: latency.clone(),
        response_us: latency,
        system: SystemUse { cpu_s: 1.0, peak_pss_bytes: 38_000_000, cores: vec![1], ..SystemUse::default() },
        generator: GeneratorUse { busiest_core: 0.5, cores: vec![0], ..GeneratorUse::default() },
        ..Measurement::default()
    }
}

pub(super) fn observe(plan: &Plan, outcome: impl Fn(&Trial) -> Outcome) -> Vec<Observation> {
    let observation = |t: &Trial| Observation {
        trial: t.clone(),
        began_unix_s: 0.0,
        took_s: 0.0,
        duet: None,
        outcome: outcome(t),
    };
    plan.trials.iter().map(observation).collect()
}

pub(super) fn measured(m: Measurement) -> Outcome {
    Outcome::Measured(Box::new(m))
}

pub(super) fn number(trial: &Trial, knob: &str) -> i64 {
    match trial.scenario.point.get(knob) {
        Some(Value::Integer(n)) => *n,
        other => panic!("{knob} is {other:?}"),
    }
}

/// The first figure of the first experiment. A test may leak.
pub(super) fn one(findings: Findings) -> FigureView<'static> {
    Box::leak(Box::new(findings)).experiments[0].view(0)
}

/// Uploads for which only `buffer` matters: 690 ms at 1460, otherwise 100 ms. The reference takes 50 ms.
pub(super) fn buffers() -> (Plan, Vec<Observation>) {
    let (buffer, length, size) = (int(&[1460, 262_144]), int(&[8, 9]), int(&[1 << 20]));
    let axes: Axes =
        &[("size", Kind::Size, &size), ("buffer", Kind::Size, &buffer), ("length", Kind::Integer, &length)];
    let plan = plan_of(Workload::Upload, Figure::MsPerUpload, &["cowboy2"], axes);
    let observations = observe(&plan, |t| {
        // Every trial of the third round takes 1 % longer. Ratios within the round must not change.
        let drift = if t.round == 2 { 1.01 } else { 1.0 };
        let ms = if is_reference(&t.scenario.system) {
            50.0
        } else {
            let flat = if number(t, "length") == 9 { 1.01 } else { 1.0 };
            flat * if number(t, "buffer") == 1460 { 690.0 } else { 100.0 }
        };
        measured(measurement(20, ms * 1000.0 * drift))
    });
    (plan, observations)
}

#[test]
fn uploads_have_one_row_each_in_grid_order() {
    let (plan, observations) = buffers();
    let e = one(findings(&plan, &observations));
    let table = &e.tables[0];
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let expected =
        ["system", "buffer", "length", "time", "low", "high", "of ref", "CPU/MB", "CPU", "memory", "sock"];
    assert_eq!(names, expected);
    assert_eq!((table.rows.len(), table.keys, table.rows[4].block), (5, 3, true));
    let first = &table.rows[0].cells;
    let Cell::Number(time) = first[3] else { panic!("{first:?}") };
    assert!((time - 690.0 * 1.01_f64.cbrt()).abs() < 1e-6, "{time}");
    assert_eq!(first[..3], ["cowboy2".into(), Cell::Number(1460.0), Cell::Number(8.0)]);
    assert_eq!(table.rows[4].cells[1], Cell::Empty);
    assert_eq!((table.kind, &table.notes[..]), (TableKind::List, &[Note::NothingFailed][..]));
}

impl From<&str> for Cell {
    fn from(word: &str) -> Self {
        Self::Text(word.to_owned())
    }
}

#[test]
fn the_share_of_the_reference_comes_from_the_same_round() {
    let (plan, observations) = buffers();
    let e = one(findings(&plan, &observations));
    let estimate = &e.estimates[2];
    assert!((estimate.figure.unwrap() - 100.0 * 1.01_f64.cbrt()).abs() < 1e-6, "a geometric mean");
    assert!((estimate.spread.unwrap().range - 0.01).abs() < 1e-9);
    assert!((estimate.of_reference.unwrap() - 0.5).abs() < 1e-9, "100 % is as fast as the reference");
    assert_eq!(estimate.cpu_share, Some(0.5));
    assert!((estimate.cpu_s_per_unit.unwrap() - 1.0 / 20e6).abs() < 1e-15);
    assert_eq!((estimate.attempts, estimate.successes, estimate.in_flight), (63, 60, 3));
    assert_eq!((estimate.p50_us, estimate.p99_us), (Some(stats::Percentile::Exactly(100_000)), None));
    assert_eq!(e.estimates[4].of_reference, Some(1.0));
}

/// The value of a knob in an estimate's scenario.
pub(super) fn value(e: &FigureView<'_>, index: usize, knob: &str) -> String {
    e.estimates[index].scenario.point.get(knob).map_or_else(String::new, ToString::to_string)
}

/// A comparison's knob, its two values, and the ratio of the better to the worse with its interval, in tenths.
pub(super) fn summary<'a>(e: &FigureView<'_>, c: &'a Comparison) -> (&'a str, [String; 2], [f64; 3]) {
    let knob = c.by.knob().unwrap_or("");
    let ratio = c.ratio.expect("a ratio");
    let ratio = if c.verdict.is_decided() { ratio.upwards() } else { ratio };
    let tenths = [ratio.estimate, ratio.low, ratio.high].map(|times| (times * 10.0).round() / 10.0);
    (knob, [c.scenario, c.against].map(|index| value(e, index, knob)), tenths)
}

fn counts(successes: u64, attempts: u64) -> ServerCounts {
    ServerCounts {
        requests: 110,
        responses: 105,
        peak_connections: 32,
        client_attempts: attempts,
        client_successes: successes,
        ..ServerCounts::default()
    }
}

#[test]
fn clients_are_ranked_only_with_few_errors() {
    let sizes = int(&[32, 64]);
    let plan = plan_of(
        Workload::Clients,
        Figure::RequestsPerS,
        &["buoy", "httpc"],
        &[("pool_size", Kind::Integer, &sizes)],
    );
    let observations = observe(&plan, |t| {
        let mut m = measurement(100 * number(t, "pool_size") as u64, 10_000.0);
        m.server = Some(counts(100, 120));
        if t.scenario.system == "buoy" {
            m.successes *= 20;
            m.errors = BTreeMap::from([("busy".to_owned(), m.successes * 4)]);
            m.server = Some(counts(106, 120));
        }
        measured(m)
    });
    let e = one(findings(&plan, &observations));
    let table = &e.tables[0];
    let names: Vec<&str> = table.columns.iter().take(6).map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["#", "Client", "Pool Count", "Pool Size", "Concurrency", "Req/sec"]);
    let order: Vec<(Cell, Cell)> =
        table.rows.iter().map(|r| (r.cells[0].clone(), r.cells[1].clone())).collect();
    assert_eq!(order[0].0, Cell::Number(1.0));
    assert_eq!(order[4..], [(Cell::Empty, "buoy".into()), (Cell::Empty, "buoy".into())]);
    let agree = |at: usize| table.rows[at].cells.last() == Some(&Cell::Agree(at == 0));
    assert!(table.rows[4].block && table.notes[0] == Note::Unranked && agree(0) && agree(4), "{table:?}");
    assert_eq!(table.rows[0].cells[2], Cell::Number(1.0), "the default of a knob that is not in the grid");
    let codes: Vec<Code> = e.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, [Code::Errors, Code::CountsDisagree]);
    assert!((e.estimates[0].error_share - 0.8).abs() < 1e-12);
    let [Claim::Knob { comparison, narrow: true, .. }] = e.claims else { panic!("{:?}", e.claims) };
    assert_eq!(summary(&e, comparison), ("pool_size", ["64", "32"].map(str::to_owned), [2.0; 3]));
    assert_eq!(e.estimates[comparison.scenario].scenario.system, "httpc");
}

#[test]
fn a_knob_that_sets_how_much_work_a_system_does_is_no_finding() {
    let sizes = int(&[1, 64]);
    let mut plan =
        plan_of(Workload::Requests, Figure::RequestsPerS, &["a"], &[("answer", Kind::Size, &sizes)]);
    let observations = observe(&plan, |t| {
        let large = t.scenario.point.get("answer") == Some(&sizes[1]);
        measured(measurement(if large { 400 } else { 4000 }, 5.0))
    });
    let blames = |claim: &Claim| matches!(claim, Claim::Knob { .. });
    assert!(one(findings(&plan, &observations)).claims.iter().any(blames));
    plan.experiments[0].setup.axes[0].amount = true;
    assert!(!one(findings(&plan, &observations)).claims.iter().any(blames));
}

#[test]
fn failures_and_doubts_are_listed() {
    let connections = int(&[1, 2]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a", "b"], axes);
    let mut observations = observe(&plan, |t| match (t.scenario.system.as_str(), t.round) {
        ("a", 0) => Outcome::Failed(Failure {
            stage: crate::observation::Stage::Start,
            reason: "it ended with 1".to_owned(),
            output: "boom".to_owned(),
        }),
        ("b", round) => {
            let mut m = measurement(if round == 0 { 1 } else { 10 }, 5.0);
            m.generator = GeneratorUse { busiest_core: 0.95, cores: vec![1], ..GeneratorUse::default() };
            measured(m)
        }
        _ => measured(measurement(4000, 5.0)),
    });
    observations.pop();
    let e = one(findings(&plan, &observations));
    assert_eq!((e.trials_planned, e.trials_done, e.failures.len()), (21, 20, 2));
    assert_eq!((e.failures[0].scenario.as_str(), e.failures[0].trials), ("a connections=1", 1));
    let seen: Vec<(Code, usize)> = e.warnings.iter().map(|w| (w.code, w.scenarios.len())).collect();
    let few = 3; // both scenarios of a, and the reference, which lost its last trial
    assert_eq!(
        seen,
        [
            (Code::Incomplete, 0),
            (Code::TooFewTrials, few),
            (Code::Unsteady, 2),
            (Code::PercentileUnsupported, 2),
            (Code::Trial(Doubt::GeneratorBound), 2),
            (Code::Trial(Doubt::TooShort), 2),
            (Code::Trial(Doubt::CoresShared), 2),
        ]
    );
    let decided = |claim: &Claim| matches!(claim, Claim::Knob { .. } | Claim::Systems { .. });
    assert!(!e.claims.iter().any(decided), "{:?}", e.claims);
    let empty = one(findings(&plan, &[]));
    assert_eq!((empty.claims.len(), empty.tables[0].rows.len()), (0, 6));
    assert_eq!(empty.silence(), Some(Silence::NotYet));
}

#[test]
fn versions_are_those_that_the_systems_reported() {
    let (plan, mut observations) = buffers();
    for observation in &mut observations {
        let Outcome::Measured(m) = &mut observation.outcome else { panic!() };
        m.system.version = "2.8.0".to_owned();
    }
    let e = one(findings(&plan, &observations));
    assert_eq!(e.versions["cowboy2"], "2.8.0");
}

#[test]
fn one_disturbed_trial_does_not_move_the_figure() {
    let (plan, mut observations) = buffers();
    let before = one(findings(&plan, &observations)).estimates[0].figure;
    let Outcome::Measured(m) = &mut observations[0].outcome else { panic!() };
    m.service_us.mean *= 0.9;
    assert_eq!(one(findings(&plan, &observations)).estimates[0].figure, before);
}

#[test]
fn a_client_that_exceeds_its_pool_cap_is_shown_but_not_ranked() {
    let size = int(&[32]);
    let axes: Axes = &[("pool_size", Kind::Integer, &size)];
    let plan = plan_of(Workload::Clients, Figure::RequestsPerS, &["httpc"], axes);
    let found = |peak: u64| {
        let observations = observe(&plan, |_| {
            let mut m = measurement(2000, 10_000.0);
            m.server = Some(ServerCounts { peak_connections: peak, ..counts(100, 120) });
            measured(m)
        });
        let found = one(findings(&plan, &observations));
        let warned = found.warnings.iter().any(|w| w.code == Code::Trial(Doubt::PoolCapExceeded));
        (found.estimates[0].ranks(), warned)
    };
    assert_eq!((found(32), found(33)), ((true, false), (false, true)));
}

#[test]
fn snippets_set_the_knobs_that_matter_as_the_manifest_says() {
    let (mut plan, mut observations) = buffers();
    let lines =
        |knobs: &[(&str, &str)]| knobs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let apply =
        [("buffer", "{{buffer, {value}}}"), ("length", "length => {value}"), ("size", "never {value}")];
    plan.experiments[0].apply = [("cowboy2".to_owned(), lines(&apply))].into();
    let snippets = |plan: &Plan, observations: &[Observation]| one(findings(plan, observations)).snippets;
    // `length` has no effect, and the size is fixed.
    let found = snippets(&plan, &observations);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].system.as_str(), found[0].text.as_str()), ("cowboy2", "{buffer, 262144}"));
    assert_eq!(found[0].point, Point::from([("buffer".to_owned(), Value::Integer(262_144))]));
    // A default need not be set.
    let axes = &mut plan.experiments[0].setup.axes;
    axes.iter_mut()
        .filter(|axis| axis.knob == "buffer")
        .for_each(|axis| axis.default = Some(Value::Integer(262_144)));
    assert_eq!(snippets(&plan, &observations), []);
    observations.clear();
    assert_eq!(snippets(&plan, &observations), []);
}

#[test]
fn a_trial_in_which_no_operation_ended_has_no_figure_and_is_listed() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a"], axes);
    let observations = observe(&plan, |t| {
        let still = t.scenario.system == "a" && t.round == 1;
        let mut m = measurement(if still { 0 } else { 4000 }, 5.0);
        m.attempts = 4000;
        measured(m)
    });
    let e = one(findings(&plan, &observations));
    assert_eq!((e.estimates[0].by_round.len(), e.comparisons.len()), (2, 0));
    let evidence = Evidence::NothingEnded { attempts: 4000, window_s: 2.0 };
    assert_eq!(e.without_figure, [WithoutFigure { system: "a".to_owned(), evidence }]);
}
