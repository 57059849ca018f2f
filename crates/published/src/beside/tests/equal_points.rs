//! Orders beside a run are taken at one point of the workload, which is as near to the document's as the rows of today
//! allow.

use measurement::ServerCounts;

use super::*;

#[test]
fn clients_are_compared_at_the_point_that_is_most_like_the_document() {
    let grid = "[[grid]]\npool_size = [32, 128]\nconcurrency = 256\nmax_keepalive = [0, 100]\n";
    let e = pools("\"buoy\", \"gun-poolboy\", \"httpc\"", grid, |trial| {
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
    let (agrees, _, today, _) = order_of(&e);
    assert_eq!((agrees, today), (Some(true), vec!["MachineGun".to_owned(), "Httpc".to_owned()]));
    assert_eq!(compared_at(&e), [("concurrency", 256), ("pool_size", 128), ("pools", 1)]);
    let table = &beside_of(&e).table;
    let row = |client: &str| table.rows.iter().find(|r| r.cells[0] == Cell::Text(client.to_owned())).unwrap();
    let text = |word: &str| Cell::Text(word.to_owned());
    assert_eq!(row("MachineGun").cells[1..3], [text("MachineGun 1x1024@2048"), Cell::Number(1.0)]);
    let today = text("gun-poolboy pool_size=128 max_keepalive=100");
    assert_eq!(row("MachineGun").cells[3..], [today, Cell::Number(1.0)]);
    assert_eq!(row("Buoy").cells[1..], [const { Cell::Empty }; 4], "no row with few errors, then or today");
    let beside = beside_of(&e);
    let unranked = Difference::Unranked { system: "Buoy".to_owned() };
    assert!(beside.differences.contains(&unranked), "{beside:?}");
    assert!(!beside.differences.iter().any(|d| matches!(d, Difference::Knob { .. })), "{beside:?}");
    assert_eq!(row("Mojito").cells[3..], [const { Cell::Empty }; 2], "it did not run");
}

/// A run of clients beside the document of 2019.
fn pools(systems: &str, grid: &str, outcome: impl Fn(&Trial) -> Measurement) -> FigureView<'static> {
    let published = "published = \"pools-2019\"";
    ran(&experiment("clients", "requests_per_s", published, systems, grid), 3, outcome)
}

/// Today's point of the order.
fn compared_at<'a>(e: &FigureView<'a>) -> Vec<(&'a str, i64)> {
    let (_, ShapeFigures::Order { at, .. }) = first(beside_of(e)) else { panic!("{e:?}") };
    let number = |value: &Value| if let Value::Integer(number) = value { *number } else { panic!("{at:?}") };
    at.iter().map(|(knob, value)| (knob.as_str(), number(value))).collect()
}

/// What is said of a knob to stand otherwise than in the document.
fn knob_today(e: &FigureView<'_>, name: &str) -> Option<Vec<Value>> {
    beside_of(e).differences.iter().find_map(|difference| match difference {
        Difference::Knob { knob, today, .. } if knob == name => Some(today.clone()),
        _ => None,
    })
}

/// A measurement of a client that loses so many percent of its requests.
fn losing(rate: f64, percent: u64) -> Measurement {
    let mut m = measurement(Workload::Clients, rate);
    m.errors = BTreeMap::from([("other".to_owned(), m.successes * percent / 100)]);
    m
}

/// A shape of clients at a point that both have, and whether it agrees.
fn at_a_point(shape: &Shape) -> (String, Option<bool>) {
    let (what, at) = match &shape.figures {
        ShapeFigures::Order { at, same_point: true, in_both: 3, .. } => ("order", at),
        ShapeFigures::Failing { system, at, then, today } => {
            assert!(*then > 0.9 && *today < 1.0, "{then} {today}");
            (system.as_str(), at)
        }
        other => panic!("{other:?}"),
    };
    (format!("{what} {}@{}", at["pool_size"], at["concurrency"]), shape.agrees)
}

#[test]
fn clients_are_compared_at_each_point_that_the_document_has_too() {
    let grid = "[[grid]]\npool_size = [32, 128]\nconcurrency = [256, 1024]\nmax_keepalive = [0, 100]\n";
    let run = |ibrowse: f64, lost: u64| {
        pools("\"gun-poolboy\", \"mojito\", \"ibrowse\", \"buoy\"", grid, |trial| {
            let size: f64 = word(trial, "pool_size").parse().unwrap();
            let mut m = match trial.scenario.system.as_str() {
                "ibrowse" => losing(ibrowse, 0),
                "buoy" => losing(9000.0, lost),
                "mojito" => losing(92.5 * size, 0),
                _ => losing(92.0 * size, 0),
            };
            m.system.version = format!("{} 0.2.10", trial.scenario.system);
            m
        })
    };
    let e = run(19_100.0, 9900);
    let beside = beside_of(&e);
    assert_eq!(beside.best, BestOf::Point);
    let shapes = |e: &FigureView<'_>| beside_of(e).shapes.iter().map(at_a_point).collect::<Vec<_>>();
    let all = |order: [Option<bool>; 2], buoy: Option<bool>| {
        [
            ("order 32@1024", order[0]),
            ("Buoy 32@1024", buoy),
            ("order 128@1024", order[1]),
            ("Buoy 128@1024", buoy),
        ]
        .map(|(shape, agrees)| (shape.to_owned(), agrees))
    };
    // 256 callers are in no table. Mojito and MachineGun are level, then as today.
    assert_eq!(shapes(&e), all([Some(true); 2], Some(true)));
    assert_eq!(shapes(&run(2000.0, 0)), all([Some(false); 2], Some(false)));
    assert_eq!(shapes(&run(19_100.0, 1)), all([Some(true); 2], None), "too near the limit of a rank");
    let text = |word: &str| Cell::Text(word.to_owned());
    let ran = beside.table.rows.iter().filter(|row| row.cells[3] != Cell::Empty);
    let ran: Vec<(&Cell, &Cell, bool)> = ran.map(|row| (&row.cells[0], &row.cells[1], row.block)).collect();
    let [ibrowse, mojito, machine_gun] = ["Ibrowse", "Mojito", "MachineGun"].map(text);
    assert_eq!([ran[0].0, ran[1].0, ran[2].0], [&ibrowse, &mojito, &machine_gun]);
    assert_eq!((ran.len(), ran[0]), (6, (&ibrowse, &text("Ibrowse 1x32@1024"), false)));
    assert_eq!(ran[3], (&ibrowse, &text("Ibrowse 1x128@1024"), true));
    // With the document's closes, not without.
    assert_eq!(knob_today(&e, "max_keepalive"), None);
    let [system, then, today] = ["Buoy", "0.2.1", "buoy 0.2.10"].map(str::to_owned);
    assert!(
        beside.differences.contains(&Difference::Version { system, then, today }),
        "{:?}",
        beside.differences
    );
    let absent = ["Dlhttpc", "Hackney", "Httpc", "Mint"].map(str::to_owned).to_vec();
    let missing = beside.differences.iter().find_map(|difference| match difference {
        Difference::NotRun { systems } => Some(systems.iter().cloned().collect::<BTreeSet<_>>()),
        _ => None,
    });
    assert_eq!(missing, Some(absent.into_iter().collect()));
}

#[test]
fn clients_are_not_compared_at_different_points() {
    // Each of them would be compared where it is most like the document: Mojito without closes, and the others with them.
    let grid = "[[grid]]\npool_size = 32\nconcurrency = 256\nmax_keepalive = [0, 100]\n\
                [[grid]]\npool_size = 128\nconcurrency = 256\n";
    let run = |lost: u64| {
        pools("\"gun-poolboy\", \"httpc\", \"mojito\"", grid, |trial| {
            let closes = word(trial, "max_keepalive") == "100";
            let rate = 20.0 * word(trial, "pool_size").parse::<f64>().unwrap();
            let mojito = trial.scenario.system == "mojito";
            losing(if mojito { rate * 2.0 } else { rate }, if closes && mojito { lost } else { 0 })
        })
    };
    let e = run(2);
    assert_eq!(compared_at(&e), [("concurrency", 256), ("pool_size", 128), ("pools", 1)]);
    assert_eq!(knob_today(&e, "max_keepalive"), Some(vec![Value::Integer(0)]));
    let (_, ShapeFigures::Order { today, .. }) = first(beside_of(&e)) else { panic!("{e:?}") };
    let behind: Vec<(&str, f64)> = today.iter().map(|p| (p.system.as_str(), p.behind)).collect();
    assert_eq!(behind[0], ("Mojito", 1.0));
    assert_eq!([behind[1].1, behind[2].1], [2.0, 2.0], "at the same pool size");
    // With few errors it is compared with closes, like the others, and then nothing differs.
    let e = run(1);
    assert_eq!(compared_at(&e), [("concurrency", 256), ("pool_size", 32), ("pools", 1)]);
    assert_eq!(knob_today(&e, "max_keepalive"), None);
}

#[test]
fn a_client_without_a_rank_at_the_common_point_is_named_with_the_reason() {
    let grid = "[[grid]]\npool_size = 32\nconcurrency = 256\nmax_keepalive = [0, 100]\n";
    let e = pools("\"buoy\", \"gun-poolboy\", \"httpc\", \"mint\"", grid, |trial| {
        let closes = word(trial, "max_keepalive") == "100";
        let mut m = losing(3000.0, if closes && trial.scenario.system == "buoy" { 50 } else { 0 });
        if trial.scenario.system == "mint" {
            m.server = Some(ServerCounts { peak_connections: 256, ..ServerCounts::default() });
        }
        m
    });
    let differences = &beside_of(&e).differences;
    // The document has no figure of Buoy with few errors, so its rows do not choose the point.
    assert!(
        differences.contains(&Difference::UnrankedThere { system: "Buoy".to_owned() }),
        "{differences:?}"
    );
    assert!(differences.contains(&Difference::Unpooled { system: "Mint".to_owned() }), "{differences:?}");
}

#[test]
fn own_knobs_are_compared_with_what_the_document_set() {
    let systems = "\"ibrowse\", \"gun-poolboy\"";
    let plain = "[[grid]]\npool_size = 32\nconcurrency = 1024\nmax_keepalive = 100\n";
    let default = pools(systems, plain, |_| losing(3000.0, 0));
    assert_eq!(knob_today(&default, "pipelining"), Some(vec![Value::Integer(10)]), "the default of ibrowse");
    let both = plain.to_owned() + "pipelining = [1, 1024]\n";
    let e =
        pools(systems, &both, |trial| losing(if word(trial, "pipelining") == "1" { 9e3 } else { 3e3 }, 0));
    assert_eq!(knob_today(&e, "pipelining"), None);
    let (_, ShapeFigures::Order { today, .. }) = first(beside_of(&e)) else { panic!("{e:?}") };
    assert_eq!(
        today.iter().map(|p| p.behind).collect::<Vec<_>>(),
        [1.0, 1.0],
        "as published, not at its best"
    );
}

#[test]
fn servers_are_compared_at_one_number_of_connections() {
    let grid = "[[grid]]\nconnections = [100, 1000, 10000]\nkeep_alive = false\n";
    let run = |broken: u64| {
        let systems = "\"iodash\", \"boost-asio\", \"node\"";
        let text = experiment("requests", "requests_per_s", "published = \"iodash\"", systems, grid);
        ran(&text, 3, |trial| {
            let many = word(trial, "connections") == "10000";
            let mut m = measurement(Workload::Requests, if many { 10e3 } else { 40e3 });
            if many && trial.scenario.system == "node" {
                m.errors = BTreeMap::from([("reset".to_owned(), broken)]);
            }
            m
        })
    };
    assert_eq!(knob_today(&run(0), "connections"), None);
    // Node.js at 1,000 connections would be four times as fast as the others at 10,000.
    let e = run(10_000);
    assert_eq!(knob_today(&e, "connections"), Some(vec![Value::Integer(1000)]), "the nearest that all have");
    let (_, ShapeFigures::Order { today, .. }) = first(beside_of(&e)) else { panic!("{e:?}") };
    assert_eq!(today.iter().map(|p| p.behind).collect::<Vec<_>>(), [1.0; 3]);
}
