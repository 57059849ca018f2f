//! Tests of experiment files: every mistake is reported with position, reason and remedy, and grids become the right
//! scenarios.

use std::collections::BTreeMap;

use systems::{Catalog, Home};

use super::*;
use crate::experiment::grid::Request;
use crate::plan::{Plan, plan};
use grid::Overrides;
use systems::is_reference;

/// A home with two servers and a reference. `cowboy` has knobs that `node` lacks.
pub(crate) fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let system = |name: &str, knobs: &str, rest: &str| {
        let folder = home.path().join("systems").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "name = \"{name}\"\nrole = \"server\"\nworkloads = [\"upload\", \"requests\"]\nlanguage = \"C\"\n\
             about = \"a server\"\n[start]\ncommand = [\"true\", \"{{port}}\"{knobs}]\n{rest}"
        );
        std::fs::write(folder.join("system.toml"), text).unwrap();
    };
    system(
        "cowboy",
        ", \"{buffer}\", \"{mode}\"",
        "[knobs.buffer]\ntype = \"size\"\ndefault = 1460\nvalues = [1460, 8192]\nmin = 1\nabout = \"buffer\"\n\
         [knobs.mode]\ntype = \"choice\"\ndefault = \"a\"\nvalues = [\"a\", \"b\"]\nabout = \"mode\"\n",
    );
    system("node", "", "");
    system("reference", "", "");
    std::fs::create_dir_all(home.path().join("experiments")).unwrap();
    home
}

/// A small experiment with the given quick grid.
pub(crate) fn text(grid: &str) -> String {
    format!(
        "name = \"e\"\ntitle = \"t\"\nworkload = \"upload\"\nsystems = [\"cowboy\", \"node\"]\n\
         figure = \"ms_per_upload\"\n[full]\nrounds = 1\nwarmup_s = 0\nmeasure_s = 1\n[[full.grid]]\nsize = 1\n\
         [quick]\nrounds = 2\nwarmup_s = 0.5\nmeasure_s = 1.0\n{grid}"
    )
}

pub(crate) fn experiment(grid: &str) -> Experiment {
    Experiment::parse(&Source::new("experiments/e.toml", text(grid))).unwrap()
}

pub(crate) fn planned(grid: &str, overrides: Overrides) -> Result<Plan, InputError> {
    let home = home();
    let request = Request { experiment: experiment(grid), form: Form::Quick, overrides };
    plan(&[request], &Catalog::load(home.path()), &BTreeMap::new(), 1)
}

fn set(words: &[&str]) -> Overrides {
    Overrides { set: words.iter().map(|&w| w.to_owned()).collect(), ..Overrides::default() }
}

/// The scenarios as `system knob=value …`, without the reference's.
fn lines(plan: &Plan) -> Vec<String> {
    let scenarios = plan.experiments[0].scenarios.iter().filter(|s| !is_reference(&s.system));
    let line = |s: &crate::observation::Scenario| {
        let knobs: Vec<String> = s.point.iter().map(|(k, v)| format!("{k}={v}")).collect();
        format!("{} {}", s.system, knobs.join(" "))
    };
    scenarios.map(line).collect()
}

#[test]
fn blocks_are_joined_with_defaults_and_without_knobs_that_a_system_lacks() {
    let grid = "[[quick.grid]]\nsize = [\"1K\", 2048]\nbuffer = \"all\"\n\
                [[quick.grid]]\nbuffer = 8192\nsize = 1024\n\
                [[quick.grid]]\nsystems = [\"node\"]\nsize = 7\nexpect = true\n";
    assert_eq!(
        lines(&planned(grid, Overrides::default()).unwrap()),
        [
            "cowboy buffer=1460 expect=false size=1024",
            "cowboy buffer=8192 expect=false size=1024",
            "cowboy buffer=1460 expect=false size=2048",
            "cowboy buffer=8192 expect=false size=2048",
            "node expect=false size=1024",
            "node expect=false size=2048",
            "node expect=true size=7",
        ]
    );
}

#[test]
fn a_requested_system_that_no_block_is_open_to_takes_part_in_all_blocks() {
    let grid =
        "[[quick.grid]]\nsystems = [\"node\"]\nsize = 1\n[[quick.grid]]\nsystems = [\"node\"]\nsize = 2\n";
    assert_eq!(lines(&planned(grid, Overrides::default()).unwrap()), ["node size=1", "node size=2"]);
    let both = || Overrides { systems: vec!["cowboy".to_owned(), "node".to_owned()], ..Overrides::default() };
    let all = ["cowboy size=1", "cowboy size=2", "node size=1", "node size=2"];
    assert_eq!(lines(&planned(grid, both()).unwrap()), all);
    // A system that a block names or is open to takes part in the file's blocks only.
    let grid = grid.replace("[\"node\"]\nsize = 2", "[\"cowboy\"]\nsize = 2");
    assert_eq!(lines(&planned(&grid, both()).unwrap()), ["cowboy size=2", "node size=1"]);
    let grid = grid.replace("systems = [\"cowboy\"]\n", "");
    assert_eq!(lines(&planned(&grid, both()).unwrap()), ["cowboy size=2", "node size=1", "node size=2"]);
}

#[test]
fn what_this_machine_does_not_allow_is_left_out_of_a_file_and_refused_as_an_option() {
    for (knob, much) in [("cores", "100000"), ("files", "9000000000000")] {
        let grid = |values: &str| format!("[[quick.grid]]\nsize = 1\n{knob} = {values}\n");
        let plan = planned(&grid(&format!("[1, {much}]")), Overrides::default()).unwrap();
        assert_eq!(lines(&plan), ["cowboy", "node"].map(|system| format!("{system} {knob}=1 size=1")));
        let planned_here = &plan.experiments[0];
        assert_eq!(planned_here.axes.iter().find(|axis| axis.knob == knob).unwrap().values.len(), 1);
        let [first, second] = &planned_here.excluded[..] else { panic!("{:?}", planned_here.excluded) };
        assert!(first.partly && (first.system.as_str(), second.system.as_str()) == ("cowboy", "node"));
        let begins = format!("{knob} {much}: more than this machine allows, ");
        assert!(first.reason.starts_with(&begins), "{}", first.reason);
        // Nothing is left.
        let plan = planned(&grid(much), Overrides::default()).unwrap();
        assert!(lines(&plan).is_empty() && plan.experiments[0].excluded.iter().all(|left| !left.partly));
        let error = planned(&grid("1"), set(&[&format!("{knob}={much}")])).unwrap_err();
        assert!(error.to_string().contains(&format!("{much} is more than this machine allows")), "{error}");
    }
}

#[test]
fn the_command_line_replaces_values_adds_knobs_and_selects_systems() {
    let grid = "[[quick.grid]]\nsize = [1, 2]\n";
    let plan = planned(grid, set(&["size=3,1K", "buffer=all"])).unwrap();
    assert_eq!(
        lines(&plan),
        [
            "cowboy buffer=1460 size=3",
            "cowboy buffer=8192 size=3",
            "cowboy buffer=1460 size=1024",
            "cowboy buffer=8192 size=1024",
            "node size=3",
            "node size=1024",
        ]
    );
    let only = Overrides { systems: vec!["node".to_owned()], rounds: Some(5), ..Overrides::default() };
    let plan = planned(grid, only).unwrap();
    assert_eq!(lines(&plan), ["node size=1", "node size=2"]);
    // Two scenarios and the reference.
    assert_eq!(plan.trials.len(), 3 * 5);
}

#[test]
fn a_system_that_no_block_names_takes_part_if_it_is_requested() {
    let grid = "[[quick.grid]]\nsystems = [\"cowboy\"]\nsize = [1, 2]\nbuffer = 8192\n";
    let all = lines(&planned(grid, Overrides::default()).unwrap());
    assert_eq!(all, ["cowboy buffer=8192 size=1", "cowboy buffer=8192 size=2"]);
    let only = Overrides { systems: vec!["node".to_owned()], ..Overrides::default() };
    assert_eq!(lines(&planned(grid, only.clone()).unwrap()), ["node size=1", "node size=2"]);
    // A block that names the system is the only one it takes part in.
    let grid = format!("{grid}[[quick.grid]]\nsystems = [\"node\"]\nsize = 7\n");
    assert_eq!(lines(&planned(&grid, only).unwrap()), ["node size=7"]);
}

#[test]
fn mistakes_on_the_command_line_suggest_the_nearest_name() {
    let system = |name: &str| Overrides { systems: vec![name.to_owned()], ..Overrides::default() };
    for (overrides, says) in [
        (
            set(&["bufer=1"]),
            "--set:1:1: no system of these experiments has a knob `bufer` (did you mean `buffer`?)",
        ),
        (set(&["size=1,2x"]), "--set:1:8: `2x` is not a size"),
        (set(&["mode=c"]), "--set:1:6: `c` is not allowed: use one of `a`, `b`"),
        (set(&["size"]), "--set:1:1: not a knob with its values"),
        (system("nod"), "--systems:1:1: there is no system `nod` (did you mean `node`?"),
        (Overrides { rounds: Some(0), ..Overrides::default() }, "no rounds"),
    ] {
        let error = planned("[[quick.grid]]\nsize = 1\n", overrides).unwrap_err().one_line();
        assert!(error.contains(says), "{error} has no {says}");
    }
}

#[test]
fn the_reference_may_be_named_and_can_run_alone() {
    let named = |names: &[&str]| {
        let systems = names.iter().map(|&name| name.to_owned()).collect();
        let plan =
            planned("[[quick.grid]]\nsize = 1\n", Overrides { systems, ..Overrides::default() }).unwrap();
        plan.experiments[0].scenarios.iter().map(|s| s.system.clone()).collect::<Vec<_>>()
    };
    assert_eq!(named(&["reference"]), ["reference"]);
    assert_eq!(named(&["reference", "node"]), ["node", "reference"]);
}

#[test]
fn mistakes_in_a_grid_are_reported_with_position_and_remedy() {
    let line = text("").lines().count() + 2;
    for (grid, says) in [
        (
            "[[quick.grid]]\nbufer = 1\n",
            ":1: no system of this experiment has a knob `bufer` (did you mean `buffer`?)",
        ),
        ("[[quick.grid]]\nsize = [1, \"x\"]\n", ":12: `x` is not a size"),
        ("[[quick.grid]]\nbuffer = 0\n", ":10: `0` is not allowed: use a size"),
        ("[[quick.grid]]\nmode = \"c\"\n", ":8: `c` is not allowed"),
        ("[[quick.grid]]\nsystems = [\"nod\"]\n", ":12: there is no system `nod` (did you mean `node`?"),
    ] {
        let error = planned(grid, Overrides::default()).unwrap_err().one_line();
        let says = format!("experiments/e.toml:{line}{says}");
        assert!(error.contains(&says), "{error} has no {says}");
    }
}

#[test]
fn mistakes_of_form_are_reported_with_position_and_remedy() {
    let good = text("[[quick.grid]]\nsize = 1\n");
    for (from, to, says) in [
        ("name = \"e\"", "name = \"f\"", "e.toml:1:8: the name is `f`, the file's is `e` (make them equal)"),
        ("title", "tilte", "e.toml:2:1: unknown field `tilte`"),
        ("[\"cowboy\"", "[\"reference\"", "e.toml:4:12: the reference is always added"),
        ("\"cowboy\"", "\"node\"", "named twice"),
        ("ms_per_upload", "frames_per_s", "this figure does not exist for the workload `upload`"),
        ("rounds = 2", "rounds = 0", "no rounds"),
        ("measure_s = 1.0", "measure_s = 0.0", "0 is not a time"),
        ("measure_s = 1.0", "measure_s = nan", "NaN is not a time"),
        ("title = ", "threshold = 0.0\ntitle = ", "0 is not a difference"),
        ("title = ", "threshold = 1.5\ntitle = ", "1.5 is not a difference"),
        ("warmup_s = 0.5", "warmup_s = -1", "-1 is not a time"),
        ("size = 1\n[quick]", "size = []\n[quick]", "no values for `size`"),
        ("size = 1\n[quick]", "size = 1.5\n[quick]", "a value (true, a whole number, a text)"),
        ("[\"cowboy\", \"node\"]", "[\"node\"]\nasks = \"systems\"", "e.toml:5:8: there is one system"),
        ("[[quick.grid]]\nsize = 1\n", "", "missing field `grid`"),
        ("[[quick.grid]]\nsize = 1\n", "grid = []\n", "an empty grid"),
    ] {
        assert!(good.contains(from), "{from}");
        let source = Source::new("experiments/e.toml", good.replace(from, to));
        let error = Experiment::parse(&source).unwrap_err().one_line();
        assert!(error.contains(says), "{error} has no {says}");
    }
}

#[test]
fn an_experiment_asks_about_systems_or_about_a_knob_that_there_is() {
    let ask = |what: &str| {
        let text = text("[[quick.grid]]\nbuffer = [1460, 8192]\n").replacen(
            "[full]",
            &format!("asks = \"{what}\"\n[full]"),
            1,
        );
        let experiment = Experiment::parse(&Source::new("experiments/e.toml", text)).unwrap();
        let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
        plan(&[request], &Catalog::load(home().path()), &BTreeMap::new(), 1)
    };
    for (what, asks) in [("systems", Asks::Systems), ("buffer", Asks::Knob("buffer".to_owned()))] {
        let plan = ask(what).unwrap();
        assert_eq!(plan.experiments[0].asks, Some(asks));
        // It is saved with the run.
        let saved = serde_json::to_string(&plan).unwrap();
        assert!(saved.contains(&format!("\"asks\":\"{what}\"")), "{saved}");
        assert_eq!(serde_json::from_str::<Plan>(&saved).unwrap(), plan);
    }
    let error = ask("bufer").unwrap_err().one_line();
    let says = "e.toml:6:8: no system of this experiment has a knob `bufer` (did you mean `buffer`?)";
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_request_whose_answer_no_status_meets_is_a_mistake() {
    let asked = |status: &str, expect: &str| {
        let all = text("[[quick.grid]]\nsize = 1\n").replace("\"upload\"", "\"requests\"");
        let all = all.replace("ms_per_upload\"", "requests_per_s\"\nbase = \"node\"");
        let request =
            format!("[request]\nmethod = \"GET\"\npath = \"/\"\n{status}expect = [{expect}]\n[full]");
        Experiment::parse(&Source::new("experiments/e.toml", all.replace("[full]", &request)))
    };
    for (status, expect, says) in [
        (
            "status = 200\n",
            "\"status=404\"",
            "e.toml:11:10: no status meets both these checks and `status = 200`",
        ),
        ("", "\"status=2xx\", \"status=404\"", "e.toml:10:10: no status meets all these checks"),
    ] {
        let error = asked(status, expect).unwrap_err().one_line();
        assert!(error.contains(says), "{error} has no {says}");
    }
    for (status, expect) in [("status = 204\n", "\"status=2xx\", \"length=0\""), ("", "\"status=404\"")] {
        assert!(asked(status, expect).is_ok(), "{status}{expect}");
    }
}

#[test]
fn a_broken_experiment_does_not_stop_the_others() {
    let home = home();
    let file = |name: &str, text: &str| {
        std::fs::write(home.path().join("experiments").join(name), text).unwrap();
    };
    file("e.toml", &text("[[quick.grid]]\nsize = 1\n"));
    file("broken.toml", "name = ");
    file("notes.md", "no experiment");
    let homes = [Home::named(home.path())];
    let all = list(&homes);
    assert_eq!(
        all.iter().map(|(n, e)| (n.as_str(), e.is_ok())).collect::<Vec<_>>(),
        [("broken", false), ("e", true)]
    );
    assert!(load(&homes, "e").is_ok());
    let path = home.path().join("experiments/e.toml");
    assert!(load(&[], path.to_str().unwrap()).is_ok());
    let says = load(&homes, "brokn").unwrap_err().one_line();
    assert!(says.contains("there is no experiment `brokn` (did you mean `broken`?)"), "{says}");
}

#[test]
fn a_broken_manifest_excludes_only_its_system() {
    let home = home();
    std::fs::write(home.path().join("systems/cowboy/system.toml"), "name = ").unwrap();
    let request = Request {
        experiment: experiment("[[quick.grid]]\nsize = 1\nbuffer = 1460\n"),
        form: Form::Quick,
        overrides: Overrides::default(),
    };
    let plan = plan(&[request], &Catalog::load(home.path()), &BTreeMap::new(), 1).unwrap();
    assert_eq!(lines(&plan), ["node size=1"]);
    let excluded = &plan.experiments[0].excluded[0];
    assert!(excluded.system == "cowboy" && excluded.reason.contains("system.toml:1:"), "{excluded:?}");
}

fn subject(figure: Figure) -> Subject {
    Subject {
        name: "made".to_owned(),
        title: "Made of values".to_owned(),
        about: String::new(),
        workload: Workload::Requests,
        figures: Figures { first: figure, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    }
}

/// A server `plain` with a knob `batch`, without a folder.
fn server(command: &[&str]) -> Result<Manifest, InputError> {
    let knob = systems::Knob {
        min: Some(1),
        max: Some(64),
        about: "answers at once".to_owned(),
        ..systems::Knob::new(
            systems::knob::Kind::Integer,
            Value::Integer(1),
            vec![Value::Integer(1), Value::Integer(8)],
        )
    };
    Manifest::new(systems::Draft {
        name: "plain".to_owned(),
        workloads: vec![Workload::Requests],
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        knobs: [("batch".to_owned(), knob)].into(),
        dir: "/".into(),
        home: "/".into(),
        ..systems::Draft::default()
    })
}

const TIMING: Timing = Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 };

/// Goes from systems and an experiment made of values to findings, without a file.
#[test]
fn an_experiment_made_of_values_runs() {
    let mut catalog = Catalog::new(Path::new("/nowhere"));
    catalog.insert(server(&["serve", "{port}", "{batch}"]).unwrap());
    let blocks = [vec![
        ("batch", vec![Value::Integer(1), Value::Integer(8)]),
        ("connections", vec![Value::Integer(4)]),
    ]];
    let experiment = Experiment::new(subject(Figure::RequestsPerS), &["plain"], 9, TIMING, &blocks).unwrap();
    experiment.check(&catalog).unwrap();
    let request = Request { experiment, form: Form::Full, overrides: Overrides::default() };
    let plan = plan(&[request], &catalog, &BTreeMap::new(), 1).unwrap();
    let knobs: Vec<&str> = plan.experiments[0].axes.iter().map(|axis| axis.knob.as_str()).collect();
    assert_eq!(knobs, ["batch", "connections"], "in the order in which they were given");
    let better = crate::session::Rule {
        point: [("batch".to_owned(), Value::Integer(8))].into(),
        better: Some(4.0),
        ..Default::default()
    };
    // A system that is as fast as the reference might be limited by the generator.
    let fast_reference = crate::session::Rule {
        system: Some("reference".to_owned()),
        better: Some(9.0),
        ..Default::default()
    };
    let noise = stats::Noise { spread: 0.01, ..stats::Noise::default() };
    let mut fake = crate::session::Fake::new(1000.0, vec![better, fast_reference], noise, 1);
    let observe = |trial| crate::session::observe(&mut fake, trial).expect("nobody interrupts");
    let observations: Vec<_> = plan.trials.iter().map(observe).collect();
    let found = crate::findings::findings(&plan, &observations);
    let claims = &found.experiments[0].figures[0].claims;
    let [crate::findings::Claim::Knob { comparison, narrow: true, default: true, .. }, ..] = &claims[..]
    else {
        panic!("{claims:?}")
    };
    assert_eq!(comparison.by, crate::findings::By::Knob("batch".to_owned()));
    let ratio = comparison.ratio.expect("two scenarios with figures").estimate;
    assert!((ratio - 4.0).abs() < 0.1, "{ratio}");
}

/// The fake executor gives the highest rate, too.
#[test]
fn an_experiment_of_the_highest_rate_runs() {
    let mut catalog = Catalog::new(Path::new("/nowhere"));
    catalog.insert(server(&["serve", "{port}", "{batch}"]).unwrap());
    let blocks = [vec![("batch", vec![Value::Integer(1), Value::Integer(8)])]];
    let objective = Some(Slo::parse("p99<20ms").unwrap());
    let figures = Figures { first: Figure::MaxRate, others: vec![Figure::RequestsPerS, Figure::P99Us] };
    let subject = Subject { objective, figures, ..subject(Figure::MaxRate) };
    let experiment = Experiment::new(subject, &["plain"], 3, TIMING, &blocks).unwrap();
    let request = Request { experiment, form: Form::Full, overrides: Overrides::default() };
    let plan = plan(&[request], &catalog, &BTreeMap::new(), 1).unwrap();
    let rule = |value: i64, better, measured| crate::session::Rule {
        point: [("batch".to_owned(), Value::Integer(value))].into(),
        better: Some(better),
        measured: crate::session::MeasurementPatch::new(measured).unwrap(),
        ..Default::default()
    };
    let rules = vec![
        rule(1, 1.0, serde_json::json!({})),
        rule(8, 2.0, serde_json::json!({ "max_rate": { "fails_at": null } })),
        // A system that is as fast as the reference might be limited by the generator.
        crate::session::Rule {
            system: Some("reference".to_owned()),
            better: Some(9.0),
            ..Default::default()
        },
    ];
    let mut fake = crate::session::Fake::new(1000.0, rules, stats::Noise::default(), 1);
    crate::session::Executor::prepare(&mut fake, &plan, &[], &mut |_| {});
    let observe = |trial| crate::session::observe(&mut fake, trial).expect("nobody interrupts");
    let observations: Vec<_> = plan.trials.iter().map(observe).collect();
    let found = crate::findings::findings(&plan, &observations);
    let estimates = |figure| found.views().find(|e| e.figure == figure).unwrap().estimates;
    let highest = estimates(Figure::MaxRate);
    assert_eq!((highest[0].figure, highest[1].figure), (Some(1000.0), Some(2000.0)));
    // No rate failed at the second, so it may carry more.
    assert_eq!((highest[0].is_lower_bound(), highest[1].is_lower_bound()), (false, true));
    assert!(!estimates(Figure::RequestsPerS)[1].is_lower_bound(), "its other figures are at that rate");
    assert!(highest[0].late_share.is_some(), "the window at that rate is an open loop");
}

#[test]
fn experiments_from_values_obey_the_same_rules_as_files() {
    let wrong = server(&["serve", "{port}"]).expect_err("a knob that reaches nothing").one_line();
    assert!(wrong.starts_with("plain: the program is not told the knob `batch`"), "{wrong}");
    let wrong = server(&["serve", "{batch}"]).expect_err("no port").one_line();
    assert!(wrong.starts_with("plain: the server is not told its port"), "{wrong}");
    let made = |figure, timing, systems: &[&str], values: Vec<Value>| {
        let blocks = [vec![("connections", values)]];
        let experiment = Experiment::new(subject(figure), systems, 3, timing, &blocks);
        experiment.and_then(|experiment| {
            experiment.check(&Catalog::new(Path::new("/nowhere")))?;
            Ok(experiment)
        })
    };
    let forever = Timing { measure_s: 1e9, ..TIMING };
    let four = || vec![Value::Integer(4)];
    for (made, said) in [
        (
            made(Figure::FramesPerS, TIMING, &[], four()),
            "this figure does not exist for the workload `requests`",
        ),
        (made(Figure::P99Us, TIMING, &["reference"], four()), "the reference is always added"),
        (made(Figure::RequestsPerS, forever, &[], four()), "1000000000 is not a time that a trial can take"),
        (made(Figure::RequestsPerS, TIMING, &[], vec![]), "no values for `connections`"),
        (made(Figure::RequestsPerS, TIMING, &["plain"], four()), "there is no system `plain`"),
    ] {
        let wrong = made.expect_err(said).one_line();
        assert!(wrong.starts_with(&format!("made: {said}")), "{wrong}");
    }
}
