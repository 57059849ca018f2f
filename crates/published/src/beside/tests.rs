//! Tests of made-up runs beside the published figures: runs that agree, that differ, and that decide nothing.

use std::collections::BTreeMap;
use std::fs;

use measurement::{Latency, Measurement};
use systems::{Catalog, Point, Source, Value, Workload, is_reference};

use super::*;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Form, TABLES, list};
use lab::findings::{BestValues, ChangedOrder, OrderOfTwo, Placed, Presence, findings_beside};
use lab::observation::{Observation, Outcome, Trial, projection};
use lab::plan::plan;

/// A home with servers and clients that stand for the published systems, with the knobs that the tables vary.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let system = |name: &str, role: &str, workloads: &str, knobs: &[(&str, &str)]| {
        let folder = home.path().join("systems").join(name);
        fs::create_dir_all(&folder).unwrap();
        let words: Vec<String> = knobs.iter().map(|(knob, _)| format!(", \"{{{knob}}}\"")).collect();
        let port = if role == "server" { ", \"{port}\"" } else { "" };
        let mut text = format!(
            "name = \"{name}\"\nrole = \"{role}\"\nworkloads = [{workloads}]\nlanguage = \"C\"\nabout = \"a system\"\n\
             [start]\ncommand = [\"true\"{port}{}]\n",
            words.concat()
        );
        for (knob, rest) in knobs {
            text.push_str(&format!("[knobs.{knob}]\nabout = \"a knob\"\n{rest}\n"));
        }
        if name.starts_with("cowboy2") {
            text.push_str("[variants.otp21]\n[variants.emu]\n[variants.jit]\n[variants.otp26]\n");
        }
        fs::write(folder.join("system.toml"), text).unwrap();
    };
    let integer = |default: i64| format!("type = \"integer\"\ndefault = {default}");
    let (active_n, length, buffer) = (integer(100), integer(8_000_000), integer(1460));
    system("cowboy1", "server", "\"upload\"", &[]);
    for name in ["cowboy2", "cowboy2-10"] {
        let knobs = [("active_n", &*active_n), ("length", &length), ("buffer", &buffer)];
        system(name, "server", "\"upload\"", &knobs);
    }
    let framing = "type = \"choice\"\ndefault = \"4\"\nvalues = [\"0\", \"4\"]";
    let active = "type = \"any\"\ndefault = \"once\"\nvalues = [\"once\", 40, \"true\"]";
    system(
        "erlang-packet",
        "server",
        "\"frames\"",
        &[("framing", framing), ("active", active), ("buffer", &buffer)],
    );
    for name in ["iodash", "boost-asio", "node", "libuv"] {
        system(name, "server", "\"requests\"", &[]);
    }
    for name in ["buoy", "gun-poolboy", "mint", "mojito", "httpc", "reference-client"] {
        system(name, "client", "\"clients\"", &[]);
    }
    system("ibrowse", "client", "\"clients\"", &[("pipelining", &integer(10))]);
    system("reference", "server", "\"upload\", \"requests\", \"frames\"", &[]);
    fs::create_dir_all(home.path().join("experiments")).unwrap();
    home
}

fn experiment(workload: &str, figure: &str, published: &str, systems: &str, grid: &str) -> String {
    let form = |name: &str| {
        format!(
            "[{name}]\nrounds = 3\nwarmup_s = 0\nmeasure_s = 1\n{}",
            grid.replace("[[grid]]", &format!("[[{name}.grid]]"))
        )
    };
    format!(
        "name = \"e\"\ntitle = \"t\"\nworkload = \"{workload}\"\nsystems = [{systems}]\nfigure = \"{figure}\"\n{published}\n{}{}",
        form("quick"),
        form("full")
    )
}

/// A measurement with this figure, which is milliseconds for uploads and a rate for other workloads.
fn measurement(workload: Workload, figure: f64) -> Measurement {
    let upload = workload == Workload::Upload;
    let n = if upload { 10 } else { (figure * 2.0) as u64 };
    let us = if upload { figure * 1e3 } else { 10.0 };
    let latency =
        Latency { count: n, min: us, mean: us, max: us, buckets: vec![(us as u64, n)], ..Latency::default() };
    Measurement {
        elapsed_s: 2.0,
        attempts: n,
        successes: n,
        units: n,
        service_us: latency.clone(),
        response_us: latency,
        ..Measurement::default()
    }
}

/// Plans an experiment and makes up its observations. The reference's figure is 1.
fn ran(text: &str, rounds: u32, outcome: impl Fn(&Trial) -> Measurement) -> FigureView<'static> {
    let home = home();
    let source = Source::new("experiments/e.toml", text);
    let request = Request {
        experiment: Experiment::parse(&source).unwrap(),
        form: Form::Quick,
        overrides: Overrides { rounds: Some(rounds), ..Overrides::default() },
    };
    let plan = plan(&[request], &Catalog::load(home.path()), &BTreeMap::new(), 1).unwrap();
    let observations: Vec<Observation> = plan
        .trials
        .iter()
        .map(|trial| {
            let reference = is_reference(&trial.scenario.system);
            let m = if reference { measurement(trial.scenario.workload(), 1.0) } else { outcome(trial) };
            Observation {
                trial: trial.clone(),
                began_unix_s: 0.0,
                took_s: 0.0,
                duet: None,
                outcome: Outcome::Measured(Box::new(m)),
            }
        })
        .collect();
    // A test may leak.
    Box::leak(Box::new(findings_beside(&plan, &observations, beside))).experiments[0].view(0)
}

fn word(trial: &Trial, knob: &str) -> String {
    trial.scenario.point.get(knob).map_or(String::new(), ToString::to_string)
}

fn beside_of<'a>(e: &FigureView<'a>) -> &'a Beside {
    e.beside.first().expect("a published table")
}

/// What a shape says: whether it agrees, and its figures.
fn first(beside: &Beside) -> (Option<bool>, &ShapeFigures) {
    (beside.shapes[0].agrees, &beside.shapes[0].figures)
}

fn range_of(low: f64, high: f64) -> Range {
    Range { low, high }
}

/// The same in tenths.
fn tenths(range: Range) -> Range {
    let rounded = |ratio: f64| (ratio * 10.0).round() / 10.0;
    range_of(rounded(range.low), rounded(range.high))
}

const BUFFERS: &str = "published = \"cowboy-buffers\"";

/// Uploads of 64M with these times for the buffers 1460, 8192 and 262144.
fn buffers(rounds: u32, ms: impl Fn(u32) -> [f64; 3]) -> FigureView<'static> {
    let grid = "[[grid]]\nsize = \"64M\"\nreuse = false\nbuffer = [1460, 8192, 262144]\n";
    let text = experiment("upload", "ms_per_upload", BUFFERS, "\"cowboy2\"", grid);
    ran(&text, rounds, |trial| {
        let at = ["1460", "8192", "262144"].iter().position(|b| *b == word(trial, "buffer")).unwrap();
        measurement(Workload::Upload, ms(trial.round)[at])
    })
}

#[test]
fn a_buffer_that_moves_as_published_agrees() {
    let e = buffers(3, |_| [350.0, 115.0, 50.0]);
    let beside = beside_of(&e);
    let [Shape { agrees: Some(true), at_limit: false, figures }] = &beside.shapes[..] else {
        panic!("{beside:?}")
    };
    let ShapeFigures::Knob { knob, then, today, best } = figures else { panic!("{beside:?}") };
    assert_eq!((knob.as_str(), tenths(*then), *today), ("buffer", range_of(6.9, 9.0), range_of(7.0, 7.0)));
    let large = vec![Value::Integer(262_144)];
    assert_eq!(*best, Some(BestValues { then: large.clone(), today: large, as_good: Some(true) }));
    let knob = |knob: &str, then, today| Difference::Knob { knob: knob.to_owned(), then, today: vec![today] };
    let [expect, size, system, rows] = &beside.differences[..] else { panic!("{beside:?}") };
    assert_eq!(*expect, knob("expect", Value::Boolean(true), Value::Boolean(false)));
    assert_eq!(*size, knob("size", Value::Integer(1 << 30), Value::Integer(1 << 26)));
    assert_eq!(*system, stand_in("cowboy2", "cowboy2_so_buffer", None));
    assert!(matches!(rows, Difference::RowsMissing { rows, of: 16, .. } if rows.len() == 10), "{rows:?}");
    let table = &beside_of(&e).table;
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["runtime", "buffer", "published", "today"]);
    // Three buffers under two runtimes, as ratios to the best. Today's ratios are the same for both.
    let ratio = |row: usize, column: usize| match table.rows[row].cells[column] {
        Cell::Number(ratio) => ratio,
        _ => panic!("{:?}", table.rows),
    };
    assert_eq!(table.rows.len(), 6);
    assert_eq!((ratio(2, 2), ratio(0, 3), ratio(1, 3), ratio(2, 3)), (1.0, 7.0, 2.3, 1.0));
    assert_eq!(ratio(3, 2), 5684.605 / 822.515);
    assert!(table.rows[3].block);
}

fn stand_in(system: &str, stands_for: &str, runtime: Option<&str>) -> Difference {
    let [system, stands_for] = [system, stands_for].map(str::to_owned);
    Difference::StandIn { system, stands_for, runtime: runtime.map(str::to_owned) }
}

fn best_of(shape: &Shape) -> (i64, Option<bool>) {
    match &shape.figures {
        ShapeFigures::Knob { best: Some(BestValues { today, as_good, .. }), .. } => match today[..] {
            [Value::Integer(value)] => (value, *as_good),
            _ => panic!("{shape:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_best_value_or_another_size_of_effect_differs() {
    let beside = |ms| beside_of(&buffers(3, move |_| ms)).shapes[0].clone();
    let other = beside([350.0, 40.0, 50.0]);
    assert_eq!(other.agrees, Some(false));
    assert_eq!(best_of(&other), (8192, Some(false)));
    assert_eq!(beside([60.0, 55.0, 50.0]).agrees, Some(false), "1.2x is not 6.9x");
    assert_eq!(beside([50.0, 50.0, 50.0]).agrees, Some(false), "flat is not 6.9x");
    let near = beside([350.0, 49.0, 50.0]);
    assert_eq!(near.agrees, Some(true), "a value as good as the best is no other optimum: {near:?}");
    assert_eq!(best_of(&near), (8192, Some(true)));
}

#[test]
fn a_difference_with_contradicting_or_too_few_rounds_is_undecided() {
    let contradicted =
        buffers(3, |round| if round == 1 { [350.0, 40.0, 50.0] } else { [350.0, 115.0, 50.0] });
    let few = buffers(2, |_| [350.0, 115.0, 50.0]);
    for e in [contradicted, few] {
        let seen = &beside_of(&e).shapes[0];
        assert_eq!((seen.agrees, seen.at_limit), (None, false), "{seen:?}");
    }
}

#[test]
fn the_same_version_is_preferred_and_versions_are_not_mixed() {
    let grid = "[[grid]]\nsize = \"1G\"\nbuffer = [1460, 262144]\n\
                [[grid]]\nsystems = [\"cowboy2\"]\nsize = \"1G\"\nbuffer = 8192\n";
    let text = experiment("upload", "ms_per_upload", BUFFERS, "\"cowboy2\", \"cowboy2-10\"", grid);
    let e = ran(&text, 3, |trial| {
        let other = trial.scenario.system == "cowboy2";
        let small = word(trial, "buffer") == "1460";
        measurement(Workload::Upload, if small && !other { 800.0 } else { 100.0 })
    });
    let beside = beside_of(&e);
    let (Some(true), ShapeFigures::Knob { today, .. }) = first(beside) else { panic!("{beside:?}") };
    assert_eq!(*today, range_of(8.0, 8.0));
    assert_eq!(beside_of(&e).table.rows.len(), 4, "8192 ran with the other version only");
    assert!(!beside.differences.iter().any(|d| matches!(d, Difference::StandIn { .. })), "{beside:?}");
}

#[test]
fn systems_are_compared_at_each_size() {
    let grid = "[[grid]]\nsize = [\"1M\", \"1G\"]\nreuse = false\nexpect = true\n";
    let run = |systems: &str, factor: f64| {
        let published = "published = \"cowboy-sizes\"";
        let text = experiment("upload", "ms_per_upload", published, systems, grid);
        ran(&text, 3, |trial| {
            let slow = if trial.scenario.system == "cowboy2" { factor } else { 1.0 };
            measurement(Workload::Upload, slow * if word(trial, "size") == "1048576" { 2.0 } else { 700.0 })
        })
    };
    let times = |e: &FigureView<'_>, bytes: i64| {
        let found = beside_of(e).shapes.iter().find_map(|shape| match &shape.figures {
            ShapeFigures::Times { of, against, size: Some(size), then, today, .. } if *size == bytes => {
                assert_eq!([of, against], ["cowboy2.10.0", "cowboy1.1.2"]);
                Some((shape.agrees, tenths(*then), *today))
            }
            _ => None,
        });
        found.unwrap()
    };
    let e = run("\"cowboy1\", \"cowboy2\"", 9.0);
    let today = Some(range_of(9.0, 9.0));
    let large = range_of(7.6, 10.7);
    assert_eq!(times(&e, 1 << 30), (Some(true), large, today));
    // The published mean at 1M was that of a few slow uploads.
    assert_eq!(times(&e, 1 << 20), (Some(false), range_of(0.7, 2.3), today));
    assert_eq!(times(&run("\"cowboy1\", \"cowboy2\"", 2.0), 1 << 30).0, Some(false));
    let alone = run("\"cowboy2\"", 9.0);
    assert_eq!(times(&alone, 1 << 30), (None, large, None));
    let missing = |e: &FigureView<'_>| match &beside_of(e).shapes.last().unwrap().figures {
        ShapeFigures::Times { missing, .. } => missing.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(&alone), ["cowboy1.1.2"]);
    let elsewhere = grid.replace("1M\", \"1G", "32M");
    let neither =
        experiment("upload", "ms_per_upload", "published = \"cowboy-sizes\"", "\"cowboy2\"", &elsewhere);
    let neither = ran(&neither, 3, |_| measurement(Workload::Upload, 9.0));
    assert_eq!(missing(&neither), ["cowboy1.1.2", "cowboy2.10.0"]);
    let absent = Difference::NotRun { systems: vec!["cowboy1.1.2".to_owned()] };
    assert!(beside_of(&alone).differences.contains(&absent));
}

#[test]
fn the_cliff_of_frames_is_expected_at_its_published_size() {
    let run = |sizes: &str, four: f64| {
        let grid =
            format!("[[grid]]\nframing = [\"0\", \"4\"]\nbuffer = [1460, 8192]\nframe_size = [{sizes}]\n");
        let text =
            experiment("frames", "frames_per_s", "published = \"erlang-packet\"", "\"erlang-packet\"", &grid);
        ran(&text, 3, |trial| {
            let past = word(trial, "frame_size") == "1500" && word(trial, "framing") == "4";
            // With another buffer there is no cliff, so these rows must not stand for the published ones.
            let slow = past && word(trial, "buffer") == "1460";
            measurement(Workload::Frames, if slow { four } else { 400_000.0 })
        })
    };
    let cliff = |e: &FigureView<'_>, way: &str| {
        let found = beside_of(e).shapes.iter().find_map(|shape| match &shape.figures {
            ShapeFigures::Cliff { framing, active, from: 1400, to: 1500, then, today } if active == way => {
                assert_eq!(framing, "4");
                let tenths = |ratio: f64| (ratio * 10.0).round() / 10.0;
                Some((shape.agrees, tenths(*then), today.map(tenths)))
            }
            _ => None,
        });
        found.unwrap()
    };
    let ahead = |e: &FigureView<'_>| {
        let last = beside_of(e).shapes.last().unwrap().clone();
        let ShapeFigures::Framings { of, against, sizes, .. } = last.figures else { panic!("{last:?}") };
        assert_eq!([of, against], ["4", "0"]);
        (last.agrees, sizes.into_iter().map(|at| (at.size, at.same)).collect::<Vec<_>>())
    };
    let e = run("1400, 1500", 70_000.0);
    assert_eq!(cliff(&e, "once"), (Some(true), 5.6, Some(5.7)));
    assert_eq!(cliff(&e, "true"), (None, 1.7, None), "it did not run");
    assert_eq!(ahead(&e), (Some(true), vec![(1400, Some(true)), (1500, Some(true))]));
    let flat = run("1400, 1500", 400_000.0);
    assert_eq!(cliff(&flat, "once").0, Some(false));
    assert_eq!(ahead(&flat), (Some(false), vec![(1400, Some(true)), (1500, Some(false))]));
    let elsewhere = run("1456, 1457", 400_000.0);
    assert_eq!(cliff(&elsewhere, "once"), (None, 5.6, None));
    assert_eq!(beside_of(&elsewhere).table.rows.len(), 0);
}

fn servers(systems: &str, rates: &[(&str, f64)]) -> FigureView<'static> {
    let grid = "[[grid]]\nconnections = 1000\nkeep_alive = [true, false]\n";
    let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
    ran(&text, 3, |trial| {
        let rate = rates.iter().find(|(name, _)| *name == trial.scenario.system).unwrap().1;
        // With keep-alive the order differs. The document's servers got a connection for each request.
        let rate = if word(trial, "keep_alive") == "true" { 1e9 / rate } else { rate };
        measurement(Workload::Requests, rate)
    })
}

/// The first shape, which is an order: whether it agrees, the systems then and today, and the pairs that changed.
fn order_of(e: &FigureView<'_>) -> (Option<bool>, Vec<String>, Vec<String>, Vec<OrderOfTwo>) {
    let (agrees, ShapeFigures::Order { then, today, pairs, .. }) = first(beside_of(e)) else {
        panic!("{e:?}")
    };
    let names = |placed: &[Placed]| placed.iter().map(|placed| placed.system.clone()).collect();
    (agrees, names(then), names(today), pairs.clone())
}

fn changed(first: &str, second: &str, order: ChangedOrder) -> OrderOfTwo {
    OrderOfTwo { first: first.to_owned(), second: second.to_owned(), order }
}

#[test]
fn the_order_of_servers_is_compared_as_published() {
    let all = "\"iodash\", \"boost-asio\", \"node\", \"libuv\"";
    let e = servers(all, &[("iodash", 40e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    let (agrees, then, today, pairs) = order_of(&e);
    assert_eq!((agrees, pairs), (Some(true), vec![]));
    assert_eq!(then, ["IODash", "Boost", "Node.js"]);
    assert_eq!(today, ["IODash", "Boost", "libuv", "Node.js"]);
    let void = ShapeFigures::Void { system: "libuv".to_owned(), today: Presence::Measured };
    assert_eq!(beside_of(&e).shapes[1].figures, void);
    let [then, today] = [10_000, 1000].map(Value::Integer);
    let connections = Difference::Knob { knob: "connections".to_owned(), then, today: vec![today] };
    assert_eq!(beside_of(&e).differences, [connections]);
    let turned = servers(all, &[("iodash", 30e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    let (agrees, .., pairs) = order_of(&turned);
    assert_eq!((agrees, pairs), (Some(false), vec![changed("IODash", "Boost", ChangedOrder::Turned)]));
    let level = servers(all, &[("iodash", 36e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    let (agrees, .., pairs) = order_of(&level);
    assert_eq!((agrees, pairs), (Some(false), vec![changed("IODash", "Boost", ChangedOrder::Level)]));
}

/// By chance, three rounds of noise point the same way in a quarter of all runs.
#[test]
fn equal_servers_are_rarely_ranked() {
    let grid = "[[grid]]\nconnections = 10000\nkeep_alive = false\n";
    let systems = "\"iodash\", \"boost-asio\", \"node\"";
    let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
    let claims = (0..200).filter(|seed| {
        let e = ran(&text, 3, |trial| {
            let mut rng = stats::SplitMix64::new(seed * 1000 + u64::from(trial.index));
            measurement(Workload::Requests, 40e3 * (0.1 * rng.normal()).exp())
        });
        let (agrees, .., pairs) = order_of(&e);
        agrees == Some(true) || pairs.iter().any(|pair| pair.order == ChangedOrder::Turned)
    });
    assert!(claims.count() <= 10, "more than one in twenty");
}

#[test]
fn a_scenario_that_the_generator_held_back_is_undecided() {
    let grid = "[[grid]]\nconnections = 10000\nkeep_alive = false\n";
    let systems = "\"iodash\", \"boost-asio\", \"node\"";
    let order = |bound: &[&str]| {
        let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
        ran(&text, 3, |trial| {
            let system = trial.scenario.system.as_str();
            let rates = [("iodash", 40e3), ("boost-asio", 30e3), ("node", 6e3)];
            let rate = rates.iter().find(|(name, _)| *name == system).unwrap().1;
            let mut m = measurement(Workload::Requests, rate);
            m.generator.busiest_core = if bound.contains(&system) { 0.99 } else { 0.5 };
            m
        })
    };
    assert_eq!(order_of(&order(&[])).0, Some(true));
    assert_eq!(order_of(&order(&["iodash"])).0, Some(true), "the first may be faster still");
    let open = order(&["iodash", "boost-asio"]);
    let (agrees, .., pairs) = order_of(&open);
    assert_eq!((agrees, pairs), (None, vec![changed("IODash", "Boost", ChangedOrder::AtLimit)]));
    let (_, ShapeFigures::Order { today, .. }) = first(beside_of(&open)) else { panic!() };
    assert_eq!(today.iter().map(|placed| placed.at_least).collect::<Vec<_>>(), [true, true, false]);

    let grid = "[[grid]]\nsize = \"1G\"\nreuse = false\nbuffer = [1460, 262144]\n";
    let e = ran(&experiment("upload", "ms_per_upload", BUFFERS, "\"cowboy2\"", grid), 3, |trial| {
        let small = word(trial, "buffer") == "1460";
        let mut m = measurement(Workload::Upload, if small { 700.0 } else { 100.0 });
        m.generator.busiest_core = if small { 0.5 } else { 0.99 };
        m
    });
    let held = &beside_of(&e).shapes[0];
    assert_eq!((held.agrees, held.at_limit), (None, true));
}

#[test]
fn servers_that_did_not_run_are_listed_as_missing() {
    let e = servers("\"node\", \"libuv\"", &[("node", 6e3), ("libuv", 35e3)]);
    let beside = beside_of(&e);
    assert_eq!(beside.shapes[0].agrees, None);
    assert!(matches!(first(beside).1, ShapeFigures::Order { in_both: 1, .. }), "{beside:?}");
    let absent = Difference::NotRun { systems: vec!["IODash".to_owned(), "Boost".to_owned()] };
    assert!(beside.differences.contains(&absent), "{beside:?}");
}

#[test]
fn an_experiment_without_a_table_or_with_another_figure_is_not_compared() {
    let grid = "[[grid]]\nsize = \"1G\"\nbuffer = [1460, 8192]\n";
    for (figure, published) in [("ms_per_upload", ""), ("bytes_per_s", BUFFERS)] {
        let text = experiment("upload", figure, published, "\"cowboy2\"", grid);
        let e = ran(&text, 3, |_| measurement(Workload::Upload, 5.0));
        assert_eq!(e.beside, [], "{figure}");
    }
}

mod equal_points;
mod named;
mod several;
