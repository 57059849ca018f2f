//! Sentences about published tables that neither the documentation nor the snapshots of the program show.

use lab::findings::{
    Beside, BestOf, BestValues, ChangedOrder, Difference, OrderOfTwo, Placed, Presence, Range, Shape,
    ShapeFigures, SizeRatio, Table,
};
use published::{Found, LessTime, Seen, SendersRate, Step};
use systems::{Point, Value};

use super::beside::{beside_in_a_line, difference, shape};
use super::published::{found, seen};
use crate::made_up::{found as run, rule, view};

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

const THEN: Range = Range { low: 7.55, high: 10.68 };

fn knob(as_good: Option<bool>) -> ShapeFigures {
    let [then, today] = [262_144, 8192].map(|value| vec![Value::Integer(value)]);
    let best = Some(BestValues { then, today, as_good });
    ShapeFigures::Knob { knob: "buffer".to_owned(), then: THEN, today: Range { low: 2.0, high: 2.0 }, best }
}

fn times(system: Option<&str>, today: Option<Range>) -> ShapeFigures {
    let (of, against, system) = ("new".to_owned(), "old".to_owned(), system.map(str::to_owned));
    let missing = if today.is_none() { vec![of.clone(), against.clone()] } else { Vec::new() };
    ShapeFigures::Times { of, against, system, size: Some(1 << 30), then: THEN, today, missing }
}

fn cliff(today: Option<f64>) -> ShapeFigures {
    let [framing, active] = ["4", "once"].map(str::to_owned);
    ShapeFigures::Cliff { framing, active, from: 1400, to: 1500, then: 5.63, today }
}

fn order(pairs: Vec<OrderOfTwo>, in_both: usize) -> ShapeFigures {
    let placed = |system: &str, behind, at_least| Placed { system: system.to_owned(), behind, at_least };
    let then = vec![placed("a", 1.0, false), placed("b", 1.227, false)];
    ShapeFigures::Order {
        then,
        today: vec![placed("b", 1.0, true)],
        at: Point::new(),
        same_point: false,
        in_both,
        pairs,
    }
}

#[test]
fn shapes_are_said_with_what_leaves_them_open() {
    let pair = |order| OrderOfTwo { first: "a".to_owned(), second: "b".to_owned(), order };
    let range = "`buffer` from its worst to its best value: 7.5x to 10.7x then, 2.0x today";
    let best = "; the best is 262144 then, 8192 today";
    let undecided = "; these rounds do not decide it";
    let then = "new took 7.5x to 10.7x the time of old";
    let frames =
        "with framing 4 and active once there were 5.6x fewer frames of 1500 than of 1400 bytes then";
    let orders = "order then: a > b (1.23x less); today: b at least";
    let all = [ChangedOrder::Turned, ChangedOrder::Level, ChangedOrder::Undecided, ChangedOrder::AtLimit];
    for (agrees, figures, said) in [
        (Some(false), knob(Some(false)), format!("differs: {range}{best}")),
        (Some(true), knob(Some(true)), format!("agrees: {range}{best}, from which it is less than 5 % away")),
        (None, knob(None), format!("open: {range}{best}, which may be as good{undecided}")),
        (
            Some(true),
            times(None, Some(THEN)),
            format!("agrees: {then} at 1G then, and takes 7.5x to 10.7x today"),
        ),
        (
            None,
            times(Some("x"), None),
            format!("open: {then} with x at 1G then; new and old have no figure today"),
        ),
        (None, cliff(Some(5.0)), format!("open: {frames}, and there are 5.0x fewer today{undecided}")),
        (None, cliff(None), format!("open: {frames}; it was not measured today")),
        (None, order(vec![], 1), format!("open: {orders}; fewer than two of them are in both")),
        (
            Some(false),
            order(all.map(pair).to_vec(), 2),
            format!(
                "differs: {orders}; the generator was at its limit, which leaves open the order of a and b; these rounds do not \
                 decide the order of a and b; a and b are level in one of the two; a and b are the other way round today"
            ),
        ),
        (
            None,
            ShapeFigures::Void { system: "a".to_owned(), today: Presence::NoFigure },
            "open: a had no figure that counts then; today it has none either".to_owned(),
        ),
    ] {
        let of = Shape { agrees, at_limit: false, figures };
        assert_eq!(shape(&of), said);
        // `compare` reads reports.
        let json = serde_json::to_string(&of).unwrap();
        assert_eq!(serde_json::from_str::<Shape>(&json).unwrap(), of, "{json}");
    }
    let held = shape(&Shape { agrees: None, at_limit: true, figures: cliff(Some(5.0)) });
    assert!(
        held.ends_with("today; the generator was at its limit: some of today's figures are lower bounds")
    );
}

#[test]
fn shapes_at_one_point_are_said_with_it() {
    let at: Point = [("pool_size".to_owned(), Value::Integer(32))].into();
    let ShapeFigures::Order { then, today, pairs, .. } = order(Vec::new(), 2) else { panic!() };
    let same = ShapeFigures::Order { then, today, pairs, at: at.clone(), same_point: true, in_both: 2 };
    let failing = ShapeFigures::Failing { system: "b".to_owned(), at, then: 0.994, today: 0.5 };
    for (figures, said) in [
        (same, "agrees: order at pool_size 32: then a > b (1.23x less); today b at least"),
        (failing, "agrees: b failed 99 % of its requests at pool_size 32 then, and fails 50 % today"),
    ] {
        let of = Shape { agrees: Some(true), at_limit: false, figures };
        assert_eq!(shape(&of), said);
        let json = serde_json::to_string(&of).unwrap();
        assert_eq!(serde_json::from_str::<Shape>(&json).unwrap(), of, "{json}");
    }
}

#[test]
fn the_screen_counts_only_shapes_that_the_points_can_show() {
    let of = |agrees, figures| Shape { agrees, at_limit: false, figures };
    let ran = |agrees| of(agrees, cliff(Some(5.0)));
    let not_run = || vec![of(None, cliff(None)), of(None, times(None, None)), of(None, order(vec![], 1))];
    let line = |shown: Vec<Shape>| {
        beside_in_a_line(&Beside {
            published: "t".to_owned(),
            source: String::new(),
            shapes: shown.into_iter().chain(not_run()).collect(),
            differences: Vec::new(),
            best: BestOf::Rows,
            table: Table { columns: Vec::new(), keys: 0, rows: Vec::new() },
        })
    };
    let said = |words: &str| Some(format!("published figures (t): {words}"));
    let (same, other) = (Some(true), Some(false));
    assert_eq!(line(vec![]), None);
    assert_eq!(line(vec![ran(same)]), said("1 of 1 shape found again"));
    assert_eq!(
        line(vec![ran(same), ran(None), ran(other), ran(same)]),
        said("2 of 3 shapes found again, 1 different; 1 more not decided")
    );
    assert_eq!(line(vec![ran(None)]), said("1 shape measured, none decided; --details says why"));
}

#[test]
fn framings_are_said_size_by_size() {
    let [of, against, active] = ["4", "0", "once"].map(str::to_owned);
    let at = |size, today, same| SizeRatio { size, then: 0.5, today, same };
    let sizes = vec![at(10, 0.5, Some(true)), at(20, 1.0, Some(false)), at(30, 0.9, None)];
    let figures = ShapeFigures::Framings { of, against, active, sizes };
    assert_eq!(
        shape(&Shape { agrees: Some(false), at_limit: false, figures }),
        "differs: frames with framing 4 against framing 0, both with active once: 0.50x then and 0.50x today at 10, 0.50x then \
         and 1.00x today at 20, 0.50x then and 0.90x today at 30; these rounds do not decide it at 30; it is not the same at 20"
    );
}

#[test]
fn what_is_not_as_in_the_document_is_said() {
    let e = run(&["fast"], &[("pool_size", &[8])], &[rule("fast", &[], 1.0)]);
    let system = || "x".to_owned();
    let rows =
        |count: usize| Difference::RowsMissing { system: system(), rows: vec!["r".to_owned(); count], of: 9 };
    let missing = "published rows of x did not run today, or have no figure that may be compared";
    let [then, today] = [8, 16].map(Value::Integer);
    for (of, said) in [
        (
            Difference::Knob { knob: "pool_size".to_owned(), then, today: vec![today] },
            "`pool_size`: 8 then, 16 today".to_owned(),
        ),
        (
            Difference::StandIn {
                system: system(),
                stands_for: "y".to_owned(),
                runtime: Some("z".to_owned()),
            },
            "x stands for y with z today".to_owned(),
        ),
        (
            Difference::Version { system: system(), then: "1.0".to_owned(), today: "x 2.0".to_owned() },
            "x: version 1.0 then, x 2.0 today".to_owned(),
        ),
        (Difference::NotRun { systems: words(&["a", "b"]) }, "not run today: a, b".to_owned()),
        (Difference::Unranked { system: system() }, "x ran, and none of its rows may be ranked".to_owned()),
        (
            Difference::UnrankedThere { system: system() },
            "x has no row at this point that may be ranked".to_owned(),
        ),
        (
            Difference::Unpooled { system: system() },
            "x has no pool: it opens as many connections as it has callers, so it is not ranked among pools"
                .to_owned(),
        ),
        (rows(2), format!("2 of 9 {missing}: r; r")),
        (rows(7), format!("7 of 9 {missing}")),
    ] {
        assert_eq!(difference(&view(&e), &of), said);
    }
}

#[test]
fn what_is_found_in_other_tables_is_said() {
    let step = |ratios: &[f64]| {
        let [from, to] = [1, 2].map(Value::Integer);
        Step { knob: "n".to_owned(), from, to, ratios: ratios.to_vec() }
    };
    assert_eq!(found(&Found::Step(step(&[0.5]))), "`n` 2 instead of 1: 2.0x less time in the one comparison");
    assert_eq!(
        found(&Found::Step(step(&[1.5, 2.0]))),
        "`n` 2 instead of 1: 1.50x to 2.0x more time in both comparisons"
    );
    let ratios = [(String::new(), 2.0)].into();
    let systems = Found::Systems { of: "a".to_owned(), against: "b".to_owned(), size: 1 << 20, ratios };
    assert_eq!(found(&systems), "time of a against b at 1M: 2.00x");
    let upload = LessTime {
        system: "a".to_owned(),
        runtime: String::new(),
        small: 1 << 20,
        small_ms: 12.0,
        large: 2 << 20,
        large_ms: 11.0,
    };
    assert_eq!(
        seen(&Seen::LessTime(vec![upload])),
        "more work took less time: a took 12.0 ms for 1M and 11.0 ms for 2M"
    );
    let way = SendersRate { way: "w".to_owned(), from: 10.0, to: 1500.0, apart: 0.125 };
    let bound = Seen::SendersRate { ways: vec![way], faster: Vec::new() };
    assert_eq!(
        seen(&bound),
        "w: messages of 10 and of 1500 bytes come at rates 12 % apart, although the bytes are 150 times as many"
    );
    assert_eq!(
        seen(&Seen::Mean { operations: None }),
        "each figure is a mean, with neither spread nor median"
    );
}
