//! Tests of made-up runs beside the published figures: runs that agree, that differ, and that decide nothing.

use std::fs;

use systems::{Catalog, Source, Workload, is_reference};

use super::*;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Form, TABLES, list};
use lab::findings::{ExperimentFindings, findings};
use lab::observation::{Latency, Measurement, Observation, Outcome, Trial};
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
    for name in ["buoy", "gun-poolboy", "mojito", "httpc", "reference-client"] {
        system(name, "client", "\"clients\"", &[]);
    }
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
    let latency = Latency { count: n, min: us, mean: us, max: us, buckets: vec![(us as u64, n)] };
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
fn ran(text: &str, rounds: u32, outcome: impl Fn(&Trial) -> Measurement) -> ExperimentFindings {
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
                outcome: Outcome::Measured(Box::new(m)),
            }
        })
        .collect();
    let mut found = findings(&plan, &observations);
    beside(&mut found);
    found.experiments.remove(0)
}

fn word(trial: &Trial, knob: &str) -> String {
    trial.scenario.point.get(knob).map_or(String::new(), ToString::to_string)
}

fn beside_of(e: &ExperimentFindings) -> &Beside {
    e.beside.first().expect("a published table")
}

/// The shape whose sentence begins with these words.
fn shape<'a>(beside: &'a Beside, begins: &str) -> &'a Shape {
    let found = beside.shapes.iter().find(|c| c.text.starts_with(begins));
    found.unwrap_or_else(|| panic!("{begins:?}: {:#?}", beside.shapes))
}

const BUFFERS: &str = "published = \"cowboy-buffers\"";

/// Uploads of 64M with these times for the buffers 1460, 8192 and 262144.
fn buffers(rounds: u32, ms: impl Fn(u32) -> [f64; 3]) -> ExperimentFindings {
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
    assert_eq!(
        beside.shapes,
        [Shape {
            agrees: Some(true),
            text: "`buffer` from its worst to its best value: 6.9x to 9.0x then, 7.0x today; the best is 262144 then, \
                   262144 today"
                .to_owned()
        }]
    );
    assert_eq!(beside.differences[..2], ["`expect`: true then, false today", "`size`: 1G then, 64M today"]);
    assert_eq!(beside.differences[2], "cowboy2 stands for cowboy2_so_buffer today");
    assert!(beside.differences[3].contains("10 of 16 published rows"), "{:?}", beside.differences);
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
    assert!(table.rows[3].block && table.notes[0].starts_with("agrees: `buffer`"), "{:?}", table.notes);
}

#[test]
fn another_best_value_or_another_size_of_effect_differs() {
    let beside = |ms| beside_of(&buffers(3, move |_| ms)).shapes[0].clone();
    let other = beside([350.0, 40.0, 50.0]);
    assert_eq!(other.agrees, Some(false));
    assert!(other.text.ends_with("the best is 262144 then, 8192 today"), "{}", other.text);
    assert_eq!(beside([60.0, 55.0, 50.0]).agrees, Some(false), "1.2x is not 6.9x");
    assert_eq!(beside([50.0, 50.0, 50.0]).agrees, Some(false), "flat is not 6.9x");
    let near = beside([350.0, 49.0, 50.0]);
    assert_eq!(near.agrees, Some(true), "a value as good as the best is no other optimum: {}", near.text);
    assert!(near.text.ends_with("8192 today, from which it is less than 5 % away"), "{}", near.text);
}

#[test]
fn a_difference_with_contradicting_or_too_few_rounds_is_undecided() {
    let contradicted =
        buffers(3, |round| if round == 1 { [350.0, 40.0, 50.0] } else { [350.0, 115.0, 50.0] });
    let seen = &beside_of(&contradicted).shapes[0];
    assert_eq!(seen.agrees, None);
    assert!(seen.text.ends_with("these rounds do not decide it"), "{}", seen.text);
    let few = buffers(2, |_| [350.0, 115.0, 50.0]);
    let seen = &beside_of(&few).shapes[0];
    assert_eq!(seen.agrees, None);
    assert!(seen.text.ends_with("these rounds do not decide it"), "{}", seen.text);
    let notes = &beside_of(&few).table.notes;
    assert!(notes[0].starts_with("open: "), "{notes:?}");
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
    assert_eq!(beside.shapes[0].agrees, Some(true), "{beside:?}");
    assert!(beside.shapes[0].text.contains("8.0x today"), "{beside:?}");
    assert_eq!(beside_of(&e).table.rows.len(), 4, "8192 ran with the other version only");
    assert!(beside.differences.iter().all(|sentence| !sentence.contains("stands for")), "{beside:?}");
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
    let e = run("\"cowboy1\", \"cowboy2\"", 9.0);
    let large = shape(beside_of(&e), "cowboy2.10.0 by cowboy1.1.2 at 1G");
    assert_eq!(large.agrees, Some(true));
    assert!(large.text.ends_with("7.6x to 10.7x the time then, 9.0x today"), "{}", large.text);
    // The published mean at 1M was that of a few slow uploads.
    let small = shape(beside_of(&e), "cowboy2.10.0 by cowboy1.1.2 at 1M");
    assert_eq!(small.agrees, Some(false));
    assert!(small.text.ends_with("0.73x to 2.3x the time then, 9.0x today"), "{}", small.text);
    assert_eq!(
        shape(beside_of(&run("\"cowboy1\", \"cowboy2\"", 2.0)), "cowboy2.10.0 by cowboy1.1.2 at 1G").agrees,
        Some(false)
    );
    let alone = run("\"cowboy2\"", 9.0);
    let large = shape(beside_of(&alone), "cowboy2.10.0 by cowboy1.1.2 at 1G");
    assert_eq!(large.agrees, None);
    assert!(large.text.ends_with("one of them is missing today"), "{}", large.text);
    assert!(beside_of(&alone).differences.contains(&"not run today: cowboy1.1.2".to_owned()));
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
    let e = run("1400, 1500", 70_000.0);
    let cliff = shape(beside_of(&e), "framing 4, active once, from 1400 to 1500 bytes");
    assert_eq!(cliff.agrees, Some(true));
    assert!(cliff.text.ends_with("5.6x fewer frames then, 5.7x today"), "{}", cliff.text);
    assert_eq!(shape(beside_of(&e), "framing 4, active true, from 1400").agrees, None, "it did not run");
    let ahead = shape(beside_of(&e), "framing 4 by 0");
    assert_eq!(ahead.agrees, Some(true));
    assert!(ahead.text.contains("0.97 and 1.00 at 1400, 0.18 and 0.17 at 1500"), "{}", ahead.text);
    let flat = run("1400, 1500", 400_000.0);
    assert_eq!(shape(beside_of(&flat), "framing 4, active once, from 1400").agrees, Some(false));
    let ahead = shape(beside_of(&flat), "framing 4 by 0");
    assert!(ahead.agrees == Some(false) && ahead.text.ends_with("not the same at 1500"), "{}", ahead.text);
    let elsewhere = run("1456, 1457", 400_000.0);
    let cliff = shape(beside_of(&elsewhere), "framing 4, active once, from 1400");
    assert!(cliff.agrees.is_none() && cliff.text.ends_with("not measured today"), "{}", cliff.text);
    assert_eq!(beside_of(&elsewhere).table.rows.len(), 0);
}

fn servers(systems: &str, rates: &[(&str, f64)]) -> ExperimentFindings {
    let grid = "[[grid]]\nconnections = 1000\nkeep_alive = [true, false]\n";
    let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
    ran(&text, 3, |trial| {
        let rate = rates.iter().find(|(name, _)| *name == trial.scenario.system).unwrap().1;
        // With keep-alive the order differs. The document's servers got a connection for each request.
        let rate = if word(trial, "keep_alive") == "true" { 1e9 / rate } else { rate };
        measurement(Workload::Requests, rate)
    })
}

#[test]
fn the_order_of_servers_is_compared_as_published() {
    let all = "\"iodash\", \"boost-asio\", \"node\", \"libuv\"";
    let e = servers(all, &[("iodash", 40e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    let order = &beside_of(&e).shapes[0];
    assert_eq!(order.agrees, Some(true), "{}", order.text);
    assert_eq!(
        order.text,
        "order then: IODash > Boost (1.23x less) > Node.js (7.3x less); today: IODash > Boost (1.11x less) > libuv (1.14x \
         less) > Node.js (6.7x less)"
    );
    let libuv = &beside_of(&e).shapes[1];
    assert_eq!(libuv.text, "libuv had no figure that counts then; today it has one");
    assert_eq!(beside_of(&e).differences, ["`connections`: 10000 then, 1000 today"]);
    let turned = servers(all, &[("iodash", 30e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    let order = &beside_of(&turned).shapes[0];
    assert_eq!(order.agrees, Some(false));
    assert!(order.text.ends_with("IODash and Boost are the other way round today"), "{}", order.text);
    let level = servers(all, &[("iodash", 36e3), ("boost-asio", 36e3), ("node", 6e3), ("libuv", 35e3)]);
    assert_eq!(beside_of(&level).shapes[0].agrees, Some(false));
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
        let order = &beside_of(&e).shapes[0];
        order.agrees == Some(true) || order.text.contains("the other way round")
    });
    assert!(claims.count() <= 10, "more than one in twenty");
}

#[test]
fn a_scenario_that_the_generator_held_back_is_undecided() {
    let grid = "[[grid]]\nconnections = 10000\nkeep_alive = false\n";
    let systems = "\"iodash\", \"boost-asio\", \"node\"";
    let order = |bound: &[&str]| {
        let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
        let e = ran(&text, 3, |trial| {
            let system = trial.scenario.system.as_str();
            let rates = [("iodash", 40e3), ("boost-asio", 30e3), ("node", 6e3)];
            let rate = rates.iter().find(|(name, _)| *name == system).unwrap().1;
            let mut m = measurement(Workload::Requests, rate);
            m.generator.busiest_core = if bound.contains(&system) { 0.99 } else { 0.5 };
            m
        });
        beside_of(&e).shapes[0].clone()
    };
    assert_eq!(order(&[]).agrees, Some(true));
    assert_eq!(order(&["iodash"]).agrees, Some(true), "the first may be faster still");
    let open = order(&["iodash", "boost-asio"]);
    assert_eq!(open.agrees, None);
    assert!(open.text.contains("today: IODash at least > Boost"), "{}", open.text);
    assert!(
        open.text.ends_with("the generator was at its limit: no order of IODash and Boost"),
        "{}",
        open.text
    );

    let grid = "[[grid]]\nsize = \"1G\"\nreuse = false\nbuffer = [1460, 262144]\n";
    let e = ran(&experiment("upload", "ms_per_upload", BUFFERS, "\"cowboy2\"", grid), 3, |trial| {
        let small = word(trial, "buffer") == "1460";
        let mut m = measurement(Workload::Upload, if small { 700.0 } else { 100.0 });
        m.generator.busiest_core = if small { 0.5 } else { 0.99 };
        m
    });
    let held = &beside_of(&e).shapes[0];
    assert_eq!(held.agrees, None);
    assert!(held.text.contains("7.0x today") && held.text.ends_with("lower bounds"), "{}", held.text);
}

#[test]
fn servers_that_did_not_run_are_listed_as_missing() {
    let e = servers("\"node\", \"libuv\"", &[("node", 6e3), ("libuv", 35e3)]);
    let beside = beside_of(&e);
    assert_eq!(beside.shapes[0].agrees, None);
    assert!(beside.shapes[0].text.ends_with("fewer than two of them are in both"), "{beside:?}");
    assert!(beside.differences.contains(&"not run today: IODash, Boost".to_owned()), "{beside:?}");
}

#[test]
fn clients_are_ranked_at_their_best_with_few_errors() {
    let grid = "[[grid]]\npool_size = [32, 128]\nconcurrency = 256\nmax_keepalive = [0, 100]\n";
    let systems = "\"buoy\", \"gun-poolboy\", \"httpc\"";
    let text = experiment("clients", "requests_per_s", "published = \"pools-2019\"", systems, grid);
    let e = ran(&text, 3, |trial| {
        let size: f64 = word(trial, "pool_size").parse().unwrap();
        let rate = match trial.scenario.system.as_str() {
            "buoy" => 100_000.0,
            "gun-poolboy" => 90.0 * size,
            _ => 50.0 * size,
        };
        // Clients are faster if the server never closes, but the document's server did close.
        let open = if word(trial, "max_keepalive") == "0" { 1.1 } else { 1.0 };
        let mut m = measurement(Workload::Clients, rate * open);
        if trial.scenario.system == "buoy" {
            m.errors = BTreeMap::from([("closed_early".to_owned(), m.successes)]);
            m.attempts *= 2;
        }
        m
    });
    let order = &beside_of(&e).shapes[0];
    assert_eq!(order.agrees, Some(true), "{}", order.text);
    assert!(order.text.ends_with("today: MachineGun > Httpc (1.80x less)"), "{}", order.text);
    let table = &beside_of(&e).table;
    let row = |client: &str| table.rows.iter().find(|r| r.cells[0] == Cell::Text(client.to_owned())).unwrap();
    let text = |word: &str| Cell::Text(word.to_owned());
    assert_eq!(row("MachineGun").cells[1..3], [text("MachineGun 1x1024@2048"), Cell::Number(1.0)]);
    let today = text("gun-poolboy pool_size=128 max_keepalive=100");
    assert_eq!(row("MachineGun").cells[3..], [today, Cell::Number(1.0)]);
    assert_eq!(row("Buoy").cells[1..], [const { Cell::Empty }; 4], "no row with few errors, then or today");
    let beside = beside_of(&e);
    assert!(
        beside.differences.contains(&"Buoy ran, and none of its rows may be ranked".to_owned()),
        "{beside:?}"
    );
    assert!(beside.differences.iter().all(|sentence| !sentence.starts_with("MachineGun ran")), "{beside:?}");
    assert_eq!(row("Mojito").cells[3..], [const { Cell::Empty }; 2], "it did not run");
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

#[test]
fn an_experiment_with_an_unknown_table_is_refused() {
    let text = experiment(
        "upload",
        "ms_per_upload",
        "published = \"cowboy-bufers\"",
        "\"cowboy2\"",
        "[[grid]]\nsize = 1\n",
    );
    let error = Experiment::parse(&Source::new("experiments/e.toml", text)).unwrap_err().one_line();
    assert!(error.contains("e.toml:6:13: there is no published table `cowboy-bufers`"), "{error}");
    assert!(error.contains("did you mean `cowboy-buffers`?"), "{error}");
}

#[test]
fn the_ready_made_experiments_and_the_tables_name_each_other() {
    let home = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let catalog = Catalog::load(home);
    let mut named = BTreeSet::new();
    let experiments = list(home).into_iter().map(|(name, experiment)| (name, experiment.unwrap()));
    for (name, experiment, published) in experiments
        .flat_map(|(name, e)| e.published.clone().into_iter().map(move |p| (name.clone(), e.clone(), p)))
    {
        let table = super::super::load(&published).unwrap();
        assert_eq!(table.workload, experiment.workload, "{name}: {published}");
        named.insert((name, published.clone()));
        // A misspelled knob would match nothing.
        let columns = table.columns.iter().filter(|c| c.knob.is_some()).map(|c| &c.name);
        for knob in columns.chain(table.fixed.keys()).chain(table.defaults.keys()) {
            let has =
                |system: &String| catalog.get(system).is_ok_and(|m| m.knobs.iter().any(|(k, _)| k == knob));
            let known = experiment.workload.knob(knob).is_some() || table.systems.values().flatten().any(has);
            assert!(known, "{published}: nobody has a knob `{knob}`");
        }
    }
    for table in super::super::tables().unwrap() {
        assert!(TABLES.contains(&table.name.as_str()), "an experiment cannot name {}", table.name);
        let experiment = table.experiment.clone().unwrap();
        assert!(named.contains(&(experiment, table.name.clone())), "{} beside no run", table.name);
        // A variant that no system has would match nothing.
        for variant in table.runtimes.values().flatten() {
            let mut systems = table.systems.values().flatten();
            assert!(systems.any(|name| catalog.get(&format!("{name}@{variant}")).is_ok()), "{variant}");
        }
        let printed: BTreeSet<&str> = table.rows.keys().into_iter().map(|(_, runtime, _)| runtime).collect();
        assert!(table.runtimes.keys().all(|runtime| printed.contains(runtime.as_str())), "{}", table.name);
    }
}

mod several;
