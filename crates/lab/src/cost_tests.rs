//! What a long plan, a long history, large files and long outputs of others cost: twice the input takes about twice as long.

use std::collections::BTreeMap;
use std::path::Path;

use cost::is_near_linear;
use stats::Noise;
use systems::knob::Kind;
use systems::{Catalog, Manifest, Point, Source, Value, Workload};

use crate::compare::{Chosen, History, Selection, compare};
use crate::experiment::grid::{Axis, Overrides, Request};
use crate::experiment::tests::{experiment, home, text};
use crate::experiment::{Experiment, Form};
use crate::findings::{Findings, findings};
use crate::history::{Occasion, history};
use crate::meter::Meter;
use crate::observation::{Observation, Scenario};
use crate::plan::{self, Plan};
use crate::rounds;
use crate::search::pairs;
use crate::session::Fake;
use crate::simulation::search::{Surface, carried_out};
use crate::simulation::{Rounds, observed, plan};
use crate::store::{RunHeader, Store};

/// So many scenarios, or so much else, and then twice as many.
const SOME: usize = 500;

/// A plan, and what a fake machine sees of it.
fn carried_out_by_fake(plan: Plan) -> (Plan, Vec<Observation>) {
    let seen = observed(&plan, Fake::new(1e6, Vec::new(), Noise::SHARED_MACHINE, 1));
    (plan, seen)
}

/// A plan of so many scenarios in three rounds, and what they showed.
fn scenarios(count: usize) -> (Plan, Vec<Observation>) {
    carried_out_by_fake(plan(count as i64, Rounds::Fixed(3), 1))
}

/// The same of so many experiments, each with the same two scenarios.
fn experiments(count: usize) -> (Plan, Vec<Observation>) {
    let of_one = plan(1, Rounds::Fixed(1), 1);
    let named = |name: &str, scenario: &Scenario| {
        let Scenario { system, point, .. } = scenario.clone();
        Scenario::new(name, system, Workload::Requests, point).expect("the same work")
    };
    let planned = |at: usize| {
        let name = format!("e{at}");
        let mut planned = of_one.experiments[0].clone();
        planned.scenarios = planned.scenarios.iter().map(|scenario| named(&name, scenario)).collect();
        planned.setup.subject.name = name;
        planned.setup.rounds = 0;
        planned
    };
    let mut plan = Plan::new(1, (0..count).map(planned).collect());
    plan.grow(&(0..count).map(|at| (at, 3)).collect::<Vec<_>>());
    carried_out_by_fake(plan)
}

/// The same of so many scenarios of the workload `frames`, in which each size of a frame goes with one buffer.
fn frames_in_pairs(count: usize) -> (Plan, Vec<Observation>) {
    let mut planned = plan(1, Rounds::Fixed(1), 1).experiments.remove(0);
    let values: Vec<Value> = (1..=count as i64).map(Value::Integer).collect();
    let knobs = ["frame_size", "buffer"];
    let scenario = |value: &Value| {
        let point = knobs.map(|knob| (knob.to_owned(), value.clone())).into_iter().collect();
        Scenario::new("e", "s", Workload::Frames, point).expect("work")
    };
    let axis = |knob: &str| Axis {
        knob: knob.to_owned(),
        kind: Kind::Integer,
        workload: knob == "frame_size",
        values: values.clone(),
        default: None,
        amount: false,
    };
    planned.scenarios = values.iter().map(scenario).collect();
    planned.setup.axes = knobs.map(axis).into();
    planned.setup.subject.workload = Workload::Frames;
    (planned.setup.base, planned.setup.rounds) = (None, 0);
    let mut plan = Plan::new(1, vec![planned]);
    plan.grow(&[(0, 3)]);
    carried_out_by_fake(plan)
}

/// A run that found this.
fn chosen(name: &str, findings: &Findings) -> Chosen {
    Chosen {
        name: name.to_owned(),
        findings: findings.clone(),
        environment: serde_json::Value::Null,
        selection: Selection::default(),
        identity: name.to_owned(),
    }
}

/// Asserts the cost of the comparison of two runs that found the same, and of one with itself.
fn is_compared(made: fn(usize) -> (Plan, Vec<Observation>), second: &'static str, with_earlier: bool) {
    is_near_linear(SOME, |count| {
        let (plan, seen) = made(count);
        let found = findings(&plan, &seen);
        let (a, b) = (chosen("a", &found), chosen(second, &found));
        let runs = (0..5).map(|at| chosen(&at.to_string(), &found)).collect();
        let history = with_earlier.then(|| History { runs, first_is_later: false });
        move || {
            let found = compare(&a, &b, history.as_ref());
            assert_eq!((found.matched.len(), found.unmatched.len()), (count, 0));
        }
    });
}

#[test]
fn findings_of_scenarios() {
    is_near_linear(SOME, |count| {
        let (plan, seen) = scenarios(count);
        move || {
            let found = findings(&plan, &seen);
            assert_eq!(found.experiments[0].figures[0].estimates.len(), count + 1);
        }
    });
}

#[test]
fn findings_of_experiments() {
    is_near_linear(SOME, |count| {
        let (plan, seen) = experiments(count);
        move || assert_eq!(findings(&plan, &seen).experiments.len(), count)
    });
}

#[test]
fn findings_of_experiments_that_are_judged_together() {
    is_near_linear(SOME, |count| {
        let (mut plan, seen) = experiments(count);
        plan.together = true;
        for planned in plan.experiments.iter_mut().skip(1) {
            planned.setup.repeats = Some("e0".to_owned());
        }
        move || assert_eq!(findings(&plan, &seen).experiments[0].builds, Some(count))
    });
}

#[test]
fn scenarios_of_one_run() {
    is_compared(scenarios, "a", false);
}

#[test]
fn scenarios_of_two_runs() {
    is_compared(scenarios, "b", false);
}

#[test]
fn scenarios_of_two_runs_beside_earlier_ones() {
    is_compared(scenarios, "b", true);
}

#[test]
fn experiments_of_two_runs() {
    is_compared(experiments, "b", false);
}

#[test]
fn experiments_of_two_runs_beside_earlier_ones() {
    is_compared(experiments, "b", true);
}

#[test]
fn scenarios_that_only_one_run_has() {
    is_near_linear(SOME, |count| {
        let (plan, seen) = scenarios(count);
        let (a, mut b) = (chosen("a", &findings(&plan, &seen)), chosen("b", &Findings::default()));
        b.findings.experiments = a.findings.experiments.clone();
        b.findings.experiments[0].figures[0].estimates.retain(|e| e.is_reference());
        move || assert_eq!(compare(&a, &b, None).unmatched.len(), count)
    });
}

#[test]
fn histories_of_scenarios() {
    for of_commits in [false, true] {
        is_near_linear(SOME, |count| {
            let (plan, seen) = scenarios(count);
            let found = findings(&plan, &seen);
            let run = |run| Occasion { run, started_unix_s: 0.0, of_commits, findings: found.clone() };
            let runs = [run(1), run(2)];
            move || assert_eq!(history(&runs).len(), count)
        });
    }
}

#[test]
fn findings_of_knobs_that_change_together() {
    is_near_linear(SOME, |count| {
        let (plan, seen) = frames_in_pairs(count);
        move || {
            let found = findings(&plan, &seen);
            let table = &found.experiments[0].view(0).tables[0];
            assert!(table.rows.len() == count && table.columns.len() < 20, "{:?}", table.columns);
        }
    });
}

#[test]
fn histories_of_runs() {
    is_near_linear(SOME, |count| {
        let (plan, seen) = scenarios(1);
        let found = findings(&plan, &seen);
        let run = |run| Occasion { run, started_unix_s: 0.0, of_commits: false, findings: found.clone() };
        let runs: Vec<Occasion> = (0..count as i64).map(run).collect();
        move || assert_eq!(history(&runs)[0].points.len(), count)
    });
}

#[test]
fn rounds_of_new_scenarios() {
    is_near_linear(SOME, |count| {
        let of_value = |value: usize| {
            let point = Point::from([("knob".to_owned(), Value::Integer(value as i64))]);
            Scenario::new("e", "s", Workload::Requests, point).expect("the defaults are work")
        };
        let new: Vec<Scenario> = (1..=count).map(of_value).collect();
        let begun = plan(1, Rounds::Fixed(1), 1);
        move || {
            let mut plan = begun.clone();
            (0..3).for_each(|_| plan.add_round(0, &new));
            assert_eq!(plan.experiments[0].scenarios.len(), count + 2);
        }
    });
}

#[test]
fn rounds_of_experiments() {
    is_near_linear(SOME, |count| {
        let (mut begun, seen) = experiments(count);
        begun.grow_within(f64::MAX, true);
        move || {
            let mut plan = begun.clone();
            assert!(plan.round_s() > 0.0 && rounds::expected(&plan) > 0);
            rounds::extend(&mut plan, &seen);
        }
    });
}

/// Asserts the cost of reading and planning an experiment whose quick grid is made for a size.
fn is_planned(grid: impl Fn(usize) -> String) {
    let home = home();
    let catalog = Catalog::load(home.path());
    is_near_linear(SOME, |count| {
        let (source, catalog) = (Source::new("experiments/e.toml", text(&grid(count))), catalog.clone());
        move || {
            let experiment = Experiment::parse(&source).expect("an experiment");
            experiment.check(&catalog).expect("its knobs are known");
            let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
            let plan =
                plan::plan(&[request], &catalog, &BTreeMap::new(), 1).expect("it is within the bounds");
            assert!(!plan.trials.is_empty());
        }
    });
}

#[test]
fn plans_of_files() {
    let list = |count: usize| (1..=count).map(|value| format!("{value},")).collect::<String>();
    is_planned(|count| format!("[[quick.grid]]\nsize = [{}]\n", list(count)));
    is_planned(|count| format!("[[quick.grid]]\nsize = [{}]\nbuffer = [{}]\n", list(10), list(count / 10)));
    // The same value again and again.
    is_planned(|count| format!("[[quick.grid]]\nsize = [{}]\n", "1,".repeat(10 * count)));
    // Blocks of different points, and of the same.
    is_planned(|count| (1..=count).map(|size| format!("[[quick.grid]]\nsize = {size}\n")).collect());
    is_planned(|count| "[[quick.grid]]\nsize = [1, 2]\n".repeat(count));
}

/// The values of `--set` are the same in every block.
#[test]
fn blocks_with_many_values_that_are_set() {
    let home = home();
    let catalog = Catalog::load(home.path());
    for block in ["[[quick.grid]]\n", "[[quick.grid]]\ncores = 100000\n", "[[quick.grid]]\nsize = 1\n"] {
        is_near_linear(SOME, |count| {
            let experiment = experiment(&block.repeat(count));
            let values = (1..=count).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
            let overrides = Overrides { set: vec![format!("buffer={values}")], ..Overrides::default() };
            let requests = [Request { experiment, form: Form::Quick, overrides }];
            let catalog = catalog.clone();
            move || {
                let why = plan::plan(&requests, &catalog, &BTreeMap::new(), 1).expect_err("too many");
                // The other system has no buffer, and so one point in each block.
                let all = format!("the grid has {} scenarios, and may have 5000", count * (count + 1));
                assert!(why.one_line().contains(&all), "{why}");
            }
        });
    }
}

/// A catalog with a system of so many knobs.
fn many_knobs(count: usize) -> Catalog {
    let part = |made: &dyn Fn(usize) -> String| (0..count).map(made).collect::<String>();
    let words = part(&|at| format!("'{{k{at}}}',"));
    let knobs = part(&|at| format!("[knobs.k{at}]\ntype='integer'\ndefault=1\nabout=''\n"));
    let manifest = format!(
        "name='many'\nrole='server'\nworkloads=['upload']\nlanguage=''\nabout=''\n[start]\ncommand=['x','{{port}}',{words}]\n{knobs}"
    );
    let mut catalog = Catalog::new(Path::new("/h"));
    let manifest = Manifest::parse(&Source::new("system.toml", manifest), Path::new("/h/systems/many"));
    manifest.expect("a manifest").into_iter().for_each(|system| catalog.insert(system));
    catalog
}

#[test]
fn plans_of_systems_with_many_knobs() {
    for is_set in [false, true] {
        is_near_linear(SOME, |count| {
            let catalog = many_knobs(count / 5);
            let given: Vec<String> = (0..count / 5).map(|at| format!("k{at}={at}")).collect();
            let lines = if is_set { "size = 1".to_owned() } else { given.join("\n") };
            let file =
                text(&format!("[[quick.grid]]\n{lines}\n")).replace("\"cowboy\", \"node\"", "\"many\"");
            let source = Source::new("experiments/e.toml", file);
            let set = if is_set { given } else { Vec::new() };
            let overrides = Overrides { set, ..Overrides::default() };
            move || {
                let experiment = Experiment::parse(&source).expect("an experiment");
                let request = Request { experiment, form: Form::Quick, overrides: overrides.clone() };
                let plan =
                    plan::plan(&[request], &catalog, &BTreeMap::new(), 1).expect("it is within the bounds");
                assert_eq!(plan.experiments[0].axes.len(), count / 5 + usize::from(is_set));
            }
        });
    }
}

/// A search weighs each pair of values of two knobs, of which there are at most `MOST_PAIRS`.
#[test]
fn searches_of_many_pairs_of_values() {
    is_near_linear(SOME, |count| {
        let knobs = (1..).find(|knobs| pairs(vec![2; *knobs]) >= 10 * count).expect("so many");
        let surface = Surface::flat(&vec![2; knobs], 1);
        move || {
            let (plan, _) = carried_out(surface.plan(60, 1), &mut surface.fake(Noise::SHARED_MACHINE, 1));
            assert!(plan.experiments[0].search.is_some());
        }
    });
}

#[test]
fn accounts_of_client_drivers() {
    let told = |field: &str, pairs: usize| {
        let times: Vec<[usize; 2]> = (0..pairs).rev().map(|at| [10 * at, 1]).collect();
        let mut account = serde_json::json!({
            "event": "done", "elapsed_us": 1_000_000, "attempts": 3 * pairs, "successes": pairs, "errors": {"busy": pairs}, "in_flight": pairs,
            "latency_us": [[1000, pairs]], "total": {"attempts": 2 * pairs, "successes": pairs, "errors": {"busy": pairs}},
        });
        account[field] = serde_json::json!(times);
        account.to_string()
    };
    for field in ["latency_us", "in_flight_us", "pool_wait_us", "service_us", "failed_us"] {
        is_near_linear(SOME, |pairs| {
            let line = told(field, pairs);
            move || {
                let window = std::time::Duration::from_secs(1);
                let read = crate::session::measurement_of_line(&line, window, false);
                assert!(read.as_ref().is_ok_and(Option::is_some), "{field}: {read:?}");
            }
        });
    }
}

#[test]
fn outputs_of_meters() {
    let begin = |program: &str| match program {
        "wrk" => "  100 requests in 1.00s\nRequests/sec: 100\n",
        "h2load" => {
            "finished in 1s, 100 req/s, 1MB/s\nrequests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed\n"
        }
        "pgbench" => "tps = 100 (x)\nnumber of transactions actually processed: 100\n",
        "redis-benchmark" => "\"GET\",\"100.00\"\n",
        _ => "Type  Ops/sec\nTotals 100\n",
    };
    let further = [" 50% 1ms\n", "tps = 1 (x)\n", "Type  Ops/sec  p50\n"];
    for program in ["wrk", "h2load", "pgbench", "redis-benchmark", "memtier_benchmark"] {
        for line in further {
            is_near_linear(SOME, |lines| {
                let meter = Meter::new(vec![program.to_owned()], Vec::new()).expect("its reader is built in");
                let output = [&line.repeat(lines), "\n", begin(program)].concat();
                move || assert!(meter.read(&output).is_ok(), "{program} {line:?}: {:?}", meter.read(&output))
            });
        }
    }
    is_near_linear(SOME, |lines| {
        let read = crate::meter::place("rate=json.a.b").expect("a place");
        let meter = Meter::new(vec!["x".to_owned()], vec![read]).expect("its rate is named");
        let output = ["{x\n".repeat(99).as_str(), &"y\n".repeat(lines), "{\"a\": {\"b\": 3}}\n"].concat();
        move || assert_eq!(meter.read(&output).map(|found| found.per_s), Ok(3.0))
    });
}

#[test]
fn stores_of_many_trials_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |count: usize| folder.path().join(format!("{count}.db"));
    let header = |plan| RunHeader {
        started_unix_s: 1.0,
        command: "narrows run e".to_owned(),
        question: None,
        plan,
        environment: serde_json::Value::Null,
    };
    is_near_linear(SOME / 5, |count| {
        let (plan, seen) = scenarios(count);
        let store = Store::open(&path(count)).expect("a store");
        let run = store.begin(&header(plan)).expect("it is saved");
        store.append(run, &seen).expect("they are saved");
        move || {
            let plan = store.header(run).expect("its header").plan;
            let seen = store.observations(run).expect("its observations");
            assert_eq!((plan.trials.len(), plan.missing(&seen).len()), (seen.len(), 0));
        }
    });
    is_near_linear(SOME / 5, |count| {
        let store = Store::open(&path(1000 + count)).expect("a store");
        let (plan, _) = scenarios(1);
        (0..count).for_each(|_| _ = store.begin(&header(plan.clone())).expect("it is saved"));
        move || {
            assert_eq!(store.runs().expect("a list").into_iter().filter(Result::is_ok).count(), count);
            assert_eq!(store.before(None).expect("a list").len(), count);
            assert_eq!(store.resolve("last").ok(), Some(count as i64));
        }
    });
}
