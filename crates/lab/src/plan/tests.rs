//! Tests of the plan: the order of its trials, the reference's points, budgets, and the ready-made experiments.

use std::path::Path;

use proptest::prelude::*;
use systems::{Home, Source};

use super::*;
use crate::experiment::grid::Overrides;
use crate::experiment::tests::{experiment, home, planned, text};
use crate::experiment::{Asks, Experiment, list};

const GRID: &str = "[[quick.grid]]\nsize = [1, 2]\nbuffer = [1460, 8192]\nmode = [\"a\", \"b\"]\n";

fn points(plan: &Plan, system: &str) -> Vec<String> {
    let scenarios = plan.experiments[0].scenarios.iter().filter(|s| s.system == system);
    scenarios.map(|s| s.point.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")).collect()
}

/// A request for the full form of a small experiment with this grid.
fn full(grid: &str, overrides: Overrides) -> Request {
    let swapped = text(grid).replace("quick", "other").replace("full", "quick").replace("other", "full");
    let experiment = Experiment::parse(&Source::new("experiments/e.toml", swapped)).unwrap();
    Request { experiment, form: Form::Full, overrides }
}

fn planned_full(grid: &str, overrides: Overrides) -> Plan {
    let home = home();
    plan(&[full(grid, overrides)], &Catalog::load(home.path()), &BTreeMap::new(), 1).unwrap()
}

#[test]
fn the_full_form_has_the_reference_at_each_point_of_the_workloads_knobs() {
    let plan = planned_full(GRID, Overrides::default());
    assert_eq!(points(&plan, "cowboy").len(), 8);
    assert_eq!(points(&plan, "reference"), ["size=1", "size=2"]);
    for scenario in &plan.experiments[0].scenarios {
        assert!(plan.experiments[0].scenarios.contains(&scenario.reference()));
    }
    assert!(plan.experiments[0].twin().is_some());
}

#[test]
fn the_quick_form_has_one_trial_of_the_reference_in_a_round() {
    let plan = planned(GRID, Overrides::default()).unwrap();
    assert_eq!(points(&plan, "reference"), ["size=1"]);
    let of_reference = plan.trials.iter().filter(|t| t.scenario.is_reference());
    assert_eq!(of_reference.map(|t| (t.round, t.twin)).collect::<Vec<_>>(), [(0, false), (1, false)]);
}

#[test]
fn axes_keep_the_files_order() {
    let plan = planned(
        "[[quick.grid]]\nmode = [\"b\", \"a\"]\nbuffer = [8192, 1460]\nsize = \"1M\"\n",
        Overrides::default(),
    );
    let axes = plan.unwrap().experiments.remove(0).setup.axes;
    let shown: Vec<String> = axes
        .iter()
        .map(|a| {
            format!(
                "{} {} {}",
                a.knob,
                a.workload,
                a.values.iter().map(|v| a.show(v)).collect::<Vec<_>>().join(",")
            )
        })
        .collect();
    assert_eq!(shown, ["mode false b,a", "buffer false 1460,8K", "size true 1M"]);
}

#[test]
fn systems_that_cannot_run_get_no_trials() {
    let home = home();
    let request =
        |grid| Request { experiment: experiment(grid), form: Form::Quick, overrides: Overrides::default() };
    let excluded = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), "get it".to_owned())).collect();
    let catalog = Catalog::load(home.path());
    let one = plan(&[request(GRID)], &catalog, &excluded(&["cowboy"]), 1).unwrap();
    let gone = Excluded { system: "cowboy".to_owned(), reason: "get it".to_owned(), partly: false };
    assert_eq!(one.experiments[0].excluded, [gone]);
    assert_eq!(
        (points(&one, "cowboy").len(), points(&one, "node").len(), points(&one, "reference").len()),
        (0, 2, 1)
    );
    let none = plan(&[request(GRID)], &catalog, &excluded(&["cowboy", "node"]), 1).unwrap();
    assert_eq!((none.trials.len(), none.experiments[0].excluded.len()), (0, 2));
    let unreferenced = plan(&[request(GRID)], &catalog, &excluded(&["reference"]), 1).unwrap();
    assert_eq!(points(&unreferenced, "reference").len(), 0);
    assert_eq!(unreferenced.experiments[0].excluded.len(), 1);
}

#[test]
fn a_seed_always_gives_the_same_order() {
    let two = Overrides { rounds: Some(2), ..Overrides::default() };
    let plan = planned_full("[[quick.grid]]\nsize = [1, 2]\n", two);
    let twin = |t: &Trial| if t.twin { "twin" } else { "" };
    let name = |t: &Trial| format!("{}{}{}", t.scenario.system, t.scenario.point["size"], twin(t));
    let order: Vec<String> = plan.trials.iter().map(name).collect();
    let expected = "node1 cowboy1 cowboy2 reference1 reference1twin reference2 node2 node2 cowboy1 reference1 reference1twin cowboy2 node1 reference2";
    assert_eq!(order.join(" "), expected);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn an_experiment_that_is_requested_twice_runs_once() {
    let home = home();
    let request =
        || Request { experiment: experiment(GRID), form: Form::Quick, overrides: Overrides::default() };
    let catalog = Catalog::load(home.path());
    let plan_of = |requests: &[Request]| plan(requests, &catalog, &BTreeMap::new(), 1).unwrap();
    assert_eq!(plan_of(&[request(), request()]), plan_of(&[request()]));
}

#[test]
fn a_budget_reduces_the_number_of_rounds() {
    let plan = planned_full(GRID, Overrides { rounds: Some(4), ..Overrides::default() });
    let round = plan.estimate_s() / 4.0;
    for (budget, rounds) in [(1e9, 4), (round * 2.5, 2), (0.0, 1)] {
        let less = plan.within(budget);
        assert_eq!(less.experiments[0].rounds, rounds);
        assert!(less.trials.iter().enumerate().all(|(i, t)| t.index == i as u32 && t.round < rounds));
        let twins = rounds.min(3);
        assert_eq!(less.trials.len(), (12 * rounds + twins) as usize, "8 + 2 scenarios, 2 references, twins");
    }
}

/// The root of the checkout.
fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

#[test]
fn the_ready_made_experiments_can_be_planned() {
    let catalog = Catalog::load(checkout());
    let all = list(&[Home::named(checkout())]);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let ready_made = [
        "clients",
        "connections",
        "cowboy-versions",
        "frames",
        "open-loop",
        "pools",
        "receivers",
        "servers",
        "upload-buffers",
        "upload-modes",
        "upload-runtimes",
        "upload-sizes",
    ];
    for name in ready_made {
        assert!(names.contains(&name), "{name} is missing");
    }
    for (_, experiment) in all {
        experiment.unwrap().check(&catalog).unwrap();
    }
}

#[test]
fn each_ready_made_experiment_asks_a_question_that_both_of_its_forms_can_answer() {
    let catalog = Catalog::load(checkout());
    for (name, experiment) in list(&[Home::named(checkout())]) {
        let experiment = experiment.unwrap();
        for form in [Form::Quick, Form::Full] {
            let request = Request { experiment: experiment.clone(), form, overrides: Overrides::default() };
            let plan = plan(&[request], &catalog, &BTreeMap::new(), 1).unwrap();
            let planned = &plan.experiments[0];
            let answers = match planned.asks.as_ref().unwrap_or_else(|| panic!("{name} has no `asks`")) {
                Asks::Systems => planned
                    .scenarios
                    .iter()
                    .any(|s| s.system != planned.scenarios[0].system && !is_reference(&s.system)),
                Asks::Knob(knob) => {
                    planned.axes.iter().any(|axis| axis.knob == *knob && axis.values.len() > 1)
                }
            };
            assert!(answers, "{name} ({form:?}) asks about {:?}", planned.asks);
        }
    }
}

#[test]
fn enough_rounds_of_the_quick_forms_fit_into_their_budget() {
    // Six rounds of what runs without being named fit into 270 seconds, and three of everything into seven minutes.
    let experiments = || list(&[Home::named(checkout())]).into_iter().filter_map(|(_, e)| e.ok());
    let round_s = |all: bool| {
        let chosen = experiments().filter(|experiment| all || !experiment.on_request);
        let request = |experiment| Request { experiment, form: Form::Quick, overrides: Overrides::default() };
        let requests: Vec<Request> = chosen.map(request).collect();
        let plan = plan(&requests, &Catalog::load(checkout()), &BTreeMap::new(), 1).unwrap();
        for e in &plan.experiments {
            // A machine need not allow every point.
            assert!(e.excluded.iter().all(|left| left.partly), "{:?}", e.excluded);
        }
        plan.round_s()
    };
    let (usual, all) = (round_s(false), round_s(true));
    println!("a round takes {usual:.0} s, and {all:.0} s with --all");
    assert!(usual * 6.0 <= 270.0 && all * 3.0 <= 420.0, "{usual} s, {all} s");
}

fn grids() -> impl Strategy<Value = String> {
    let values = proptest::collection::vec(1..50u32, 1..5);
    let block = (values.clone(), values, any::<bool>()).prop_map(|(size, buffer, mode)| {
        let mode = if mode { "mode = \"all\"\n" } else { "" };
        format!("[[quick.grid]]\nsize = {size:?}\nbuffer = {buffer:?}\n{mode}")
    });
    proptest::collection::vec(block, 1..4).prop_map(|blocks| blocks.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_round_has_each_scenario_once(grid in grids(), rounds in 1..4u32, seed: u64) {
        let home = home();
        let catalog = Catalog::load(home.path());
        let overrides = Overrides { rounds: Some(rounds), ..Overrides::default() };
        let requests = [full(&grid, overrides)];
        let first = plan(&requests, &catalog, &BTreeMap::new(), seed).unwrap();
        let mut expected = first.experiments[0].scenarios.clone();
        expected.sort();
        let twins: Vec<(u32, &Scenario)> =
            first.trials.iter().filter(|t| t.twin).map(|t| (t.round, &t.scenario)).collect();
        let twin = first.experiments[0].twin().unwrap();
        prop_assert_eq!(twins, (0..rounds).map(|round| (round, twin)).collect::<Vec<_>>());
        prop_assert!(expected.windows(2).all(|w| w[0] != w[1]));
        for round in 0..rounds {
            let trials = first.trials.iter().filter(|t| t.round == round && !t.twin);
            let mut scenarios: Vec<Scenario> = trials.map(|t| t.scenario.clone()).collect();
            scenarios.sort();
            prop_assert_eq!(&scenarios, &expected);
        }
        prop_assert!(first.trials.iter().enumerate().all(|(i, t)| t.index == i as u32));
        prop_assert!(first.trials.windows(2).all(|w| w[0].round <= w[1].round));
        prop_assert_eq!(plan(&requests, &catalog, &BTreeMap::new(), seed).unwrap(), first);
    }
}

#[test]
fn a_scenario_with_invalid_knobs_cannot_be_read() {
    let read = |value: serde_json::Value| {
        let point = serde_json::json!({ "size": value, "buffer": "any" });
        let words =
            serde_json::json!({ "experiment": "e", "system": "s", "workload": "upload", "point": point });
        serde_json::from_value::<Scenario>(words).map_err(|error| error.to_string())
    };
    let scenario = read(1460.into()).expect("a size");
    assert_eq!(scenario.work().payload_bytes(), 1460);
    let again = serde_json::to_value(&scenario).and_then(serde_json::from_value::<Scenario>);
    assert_eq!(again.expect("what was written"), scenario);
    for value in [serde_json::json!("big"), serde_json::json!(-1), serde_json::json!(true)] {
        let wrong = read(value).expect_err("no size");
        assert!(wrong.starts_with("knob size: "), "{wrong}");
    }
}

#[test]
fn the_trials_of_an_experiment_share_its_ask_which_is_saved_once() {
    let mut request = full("[[quick.grid]]\nsize = 1\n", Overrides::default());
    request.experiment.ask = Some(Ask::get("/unlike-any-other"));
    let home = home();
    let plan = plan(&[request], &Catalog::load(home.path()), &BTreeMap::new(), 1).unwrap();
    let ask = plan.experiments[0].ask.as_ref().unwrap();
    assert!(plan.trials.iter().all(|trial| trial.ask.as_ref().is_some_and(|own| Arc::ptr_eq(own, ask))));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(json.matches("unlike-any-other").count(), 1);
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_twin_stands_next_to_its_scenario_and_parts_no_pair() {
    let one = Overrides { rounds: Some(40), systems: vec!["node".to_owned()], ..Overrides::default() };
    let plan = planned_full("[[quick.grid]]\nsize = 1\n", one);
    let twins: Vec<u32> = plan.trials.iter().filter(|t| t.twin).map(|t| t.round).collect();
    assert_eq!(twins, [0, 1, 2, 12, 16, 20, 24, 28, 32, 36]);
    let mut first = 0;
    for round in 0..40 {
        let trials: Vec<&Trial> = plan.trials.iter().filter(|t| t.round == round).collect();
        first += u32::from(trials[0].scenario.is_reference());
        if let [one, middle, _] = trials[..] {
            assert!(middle.scenario.is_reference() && one.scenario != trials[2].scenario, "{round}");
        }
    }
    assert!((10..=30).contains(&first), "the order is shuffled: {first}");
}

#[test]
fn a_plan_has_bounds_which_an_error_names() {
    let list = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let grid =
        |buffers: usize| format!("[[quick.grid]]\nsize = [{}]\nbuffer = [{}]\n", list(40), list(buffers));
    let fails = |plan: Result<Plan, InputError>, said: &str| {
        let why = plan.expect_err(said).one_line();
        assert!(why.contains(said), "{said}: {why}");
    };
    // The other system has no buffer.
    let whole = planned(&grid(124), Overrides::default()).unwrap();
    assert_eq!(whole.experiments[0].scenarios.iter().filter(|s| !s.is_reference()).count(), MOST_SCENARIOS);
    fails(
        planned(&grid(125), Overrides::default()),
        "the grid has 5040 scenarios, and may have 5000: `buffer` has 125 values",
    );
    fails(planned(&grid(100_000), Overrides::default()), "e.toml:18:");
    // Two systems, the reference, and perhaps a twin.
    let rounds = |rounds: u32| Overrides { rounds: Some(rounds), ..Overrides::default() };
    let small = "[[quick.grid]]\nsize = 1\n";
    assert_eq!(planned(small, rounds(25_000)).unwrap().trials.len(), 75_000);
    fails(planned(small, rounds(25_001)), "about 100004 trials, and a run may have 100000");
    fails(planned(small, rounds(u32::MAX)), "and a run may have 100000");
    let parsed = |rounds: u64| {
        let text = text(small).replace("rounds = 2", &format!("rounds = {rounds}"));
        Experiment::parse(&Source::new("experiments/e.toml", text)).map_err(|why| why.one_line())
    };
    assert!(parsed(10_000).is_ok());
    assert!(parsed(10_001).is_err_and(|why| why.contains("10001 rounds, and there may be 10000")));
    assert!(parsed(4_000_000).is_err());
}

#[test]
fn a_scenario_counts_in_each_block_and_is_counted_before_it_is_made() {
    let set = |values: usize| {
        let list = (1..=values).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        Overrides { set: vec![format!("buffer={list}")], ..Overrides::default() }
    };
    let why = |grid: &str, overrides| planned(grid, overrides).expect_err("too many").one_line();
    let blocks = |count: usize| "[[quick.grid]]\n".repeat(count);
    // One system has the values, and the other one point in each block.
    assert_eq!(planned(&blocks(1), set(4999)).unwrap().experiments[0].scenarios.len(), 5001);
    assert_eq!(planned(&blocks(50), set(99)).unwrap().experiments[0].scenarios.len(), 101);
    for (grid, overrides, said) in [
        (
            blocks(1),
            set(5000),
            "--set:1:23896: the grid has 5001 scenarios, and may have 5000: `buffer` has 5000 values (",
        ),
        (
            blocks(50),
            set(100),
            "--set:1:296: the grid has 5050 scenarios, and may have 5000: it has 50 blocks, and `buffer` has 100 values (",
        ),
        (
            blocks(2501),
            Overrides::default(),
            "e.toml:1:1: the grid has 5002 scenarios, and may have 5000: it has 2501 blocks (",
        ),
        (blocks(60_000), set(3000), "the grid has 180060000 scenarios"),
        // What this machine does not allow counts, too.
        (
            "[[quick.grid]]\ncores = 100000\n".repeat(2501),
            Overrides::default(),
            "the grid has 5002 scenarios",
        ),
    ] {
        let why = why(&grid, overrides);
        assert!(why.contains(said), "{said}: {why}");
    }
    // More than can be counted.
    let list = (1..=10_000).map(|n| format!("{n},")).collect::<String>();
    let knobs = ["size", "buffer", "cores", "memory", "files"];
    let grid = knobs.map(|knob| format!("{knob} = [{list}]\n")).concat();
    let why = why(&format!("[[quick.grid]]\n{grid}"), Overrides::default());
    assert!(why.contains("the grid has more than 5000 scenarios, and may have 5000"), "{why}");
}
