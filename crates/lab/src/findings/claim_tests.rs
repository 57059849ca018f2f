//! Tests of claims: which are made, in which order, and about which scenarios.

use stats::Verdict;
use systems::Value;
use systems::is_reference;
use systems::knob::Kind;

use super::tests::{
    Axes, buffers, int, measured, measurement, number, observe, one, plan_of, summary, value,
};
use super::*;
use crate::experiment::Figure;

#[test]
fn claims_name_knobs_that_matter_and_knobs_that_do_not() {
    let (plan, observations) = buffers();
    let e = one(findings(&plan, &observations));
    let [
        Claim::Knob { comparison, narrow: true, ties, .. },
        Claim::NoDifference { by, threshold: 0.05, against, .. },
    ] = e.claims
    else {
        panic!("{:?}", e.claims)
    };
    assert_eq!(summary(&e, comparison), ("buffer", ["262144", "1460"].map(str::to_owned), [6.9; 3]));
    assert_eq!((comparison.verdict, comparison.rounds, ties.len()), (Verdict::Faster, 3, 0));
    assert_eq!((by.knob(), value(&e, *against, "length")), (Some("length"), "8".to_owned()));
}

#[test]
fn frames_have_a_pivot_table_and_a_cliff_is_claimed() {
    let (sizes, framing) = (int(&[10, 1456, 1457]), ["0", "4"].map(|w| Value::Text(w.to_owned())));
    let axes: Axes = &[("frame_size", Kind::Size, &sizes), ("framing", Kind::Choice, &framing)];
    let plan = plan_of(Workload::Frames, Figure::FramesPerS, &["erlang-packet"], axes);
    let observations = observe(&plan, |t| {
        let slow = !is_reference(&t.scenario.system)
            && t.scenario.point["framing"] == framing[1]
            && number(t, "frame_size") == 1457;
        let reference = is_reference(&t.scenario.system);
        measured(measurement(
            if slow {
                4_000
            } else if reference {
                30_000
            } else {
                24_000
            },
            1.0,
        ))
    });
    let e = one(findings(&plan, &observations));
    let pivot = &e.tables[0];
    let names: Vec<&str> = pivot.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["frame_size", "0", "4", "reference"]);
    let cells = |size: f64, four: f64| [size, 12_000.0, four, 15_000.0].map(Cell::Number).to_vec();
    let rows: Vec<Vec<Cell>> = pivot.rows.iter().map(|row| row.cells.clone()).collect();
    assert_eq!(rows, [cells(10.0, 12_000.0), cells(1456.0, 12_000.0), cells(1457.0, 2_000.0)]);
    assert_eq!(e.tables[1].rows.len(), 9);
    let [
        Claim::Cliff { comparison: cliff, .. },
        Claim::Knob { comparison: knob, narrow: true, .. },
        Claim::DependsOn { knob: depends, interaction },
    ] = e.claims
    else {
        panic!("{:?}", e.claims)
    };
    assert_eq!(summary(&e, knob), ("framing", ["4", "0"].map(str::to_owned), [6.0; 3]));
    assert_eq!((knob.verdict, value(&e, knob.scenario, "frame_size")), (Verdict::Slower, "1457".to_owned()));
    assert_eq!(summary(&e, cliff), ("frame_size", ["1457", "1456"].map(str::to_owned), [6.0; 3]));
    assert_eq!((depends.as_str(), interaction.knob.as_str()), ("framing", "frame_size"));
    assert_eq!((interaction.value.as_str(), interaction.against.as_str()), ("4", "0"));
    assert_eq!((interaction.most.0.as_str(), interaction.least.0.as_str()), ("10", "1457"));
}

#[test]
fn a_system_that_the_generator_held_back_is_at_least_as_fast_as_claimed() {
    let connections = int(&[1, 2]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["libuv", "node"], axes);
    let observations = observe(&plan, |t| {
        let fast = t.scenario.system == "libuv";
        let slow = t.scenario.system == "node";
        let mut m = measurement(
            if fast {
                20_000
            } else if slow {
                5000
            } else {
                30_000
            },
            5.0,
        );
        m.generator.busiest_core = if fast { 0.99 } else { 0.4 };
        measured(m)
    });
    let e = one(findings(&plan, &observations));
    let [
        Claim::Systems { comparison: systems, unequal: false, .. },
        // A lower bound may differ.
        Claim::Undecided { comparison: open, equal: 1, of: 2, .. },
    ] = e.claims
    else {
        panic!("{:?}", e.claims)
    };
    let system = |at: usize| e.estimates[at].scenario.system.as_str();
    assert_eq!((system(systems.scenario), system(systems.against)), ("libuv", "node"));
    assert_eq!((systems.verdict, systems.at_least), (Verdict::Faster, true));
    assert_eq!(summary(&e, systems).2, [4.0; 3]);
    assert_eq!(summary(&e, open), ("connections", ["2", "1"].map(str::to_owned), [1.0; 3]));
    assert_eq!(system(open.scenario), "libuv");
}

#[test]
fn a_system_that_the_generator_held_back_is_not_slower_and_the_comparison_says_why() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["libuv", "node"], axes);
    for (busy, verdict) in [(0.99, Verdict::Undecided { more_rounds: None }), (0.4, Verdict::Faster)] {
        let observations = observe(&plan, |t| {
            let held = t.scenario.system == "libuv";
            let mut m = measurement(if held { 4000 } else { 20_000 }, 5.0);
            m.generator.busiest_core = if held { busy } else { 0.4 };
            measured(m)
        });
        let e = one(findings(&plan, &observations));
        let [found] = e.comparisons else { panic!("{:?}", e.comparisons) };
        let ratio = found.ratio.expect("both were measured");
        let withheld = (busy > 0.9).then_some(Withheld::LowerBound);
        assert_eq!((found.verdict, found.withheld), (verdict, withheld), "{found:?}");
        assert!(ratio.low > 2.0, "{ratio:?}");
    }
}

#[test]
fn systems_are_told_in_order_and_ties_apart() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let systems = ["slowest", "fast", "slow", "noisy"];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &systems, axes);
    let observations = observe(&plan, |t| {
        let answers = match t.scenario.system.as_str() {
            "fast" => 20_000 + 10 * u64::from(t.round),
            "noisy" => [30_000, 10_000, 20_000][t.round as usize],
            "slow" => 10_000,
            "slowest" => 5000,
            _ => 60_000,
        };
        measured(measurement(answers, 5.0))
    });
    let e = one(findings(&plan, &observations));
    let [Claim::Systems { comparison, equal, ties, rest, .. }] = e.claims else { panic!("{:?}", e.claims) };
    let name = |index: usize| e.estimates[index].scenario.system.as_str();
    assert_eq!((name(comparison.scenario), name(comparison.against)), ("fast", "slow"));
    assert_eq!(ties.iter().map(|index| name(*index)).collect::<Vec<_>>(), ["noisy"]);
    assert_eq!(*equal, [0; 0]);
    let rest: Vec<(&str, f64)> = rest
        .iter()
        .map(|other| (name(other.scenario), other.ratio.expect("a ratio").estimate.round()))
        .collect();
    assert_eq!(rest, [("slowest", 4.0)]);
}

/// Of a claim: what it is about.
fn about(claim: &Claim) -> String {
    match claim {
        Claim::Unanswered { asks } => format!("no answer: {}", String::from(asks.clone())),
        Claim::DependsOn { knob, .. } => format!("on what {knob} depends"),
        claim => claim.knob().unwrap_or("systems").to_owned(),
    }
}

#[test]
fn what_the_experiment_asks_comes_first_and_the_largest_other_effect_second() {
    let (buffer, length) = (int(&[1460, 8192]), int(&[8, 9]));
    let axes: Axes = &[("buffer", Kind::Size, &buffer), ("length", Kind::Integer, &length)];
    let claims = |systems: &[&str], asks: Option<&str>| {
        let mut plan = plan_of(Workload::Upload, Figure::MsPerUpload, systems, axes);
        plan.experiments[0].setup.subject.asks = asks.map(|asks| asks.to_owned().into());
        // `buffer` matters most, then the system, and `length` does not; with `new`, `buffer` matters less.
        let observations = observe(&plan, |t| {
            let small = t.scenario.point.get("buffer") == Some(&Value::Integer(1460));
            let us = match (t.scenario.system.as_str(), small) {
                ("old", true) => 900_000.0,
                ("old", false) => 200_000.0,
                ("new", true) => 300_000.0,
                _ => 100_000.0,
            };
            measured(measurement(20, us + f64::from(t.round)))
        });
        let e = one(findings(&plan, &observations));
        e.claims.iter().map(about).collect::<Vec<_>>()
    };
    let both = ["old", "new"];
    assert_eq!(claims(&both, None), ["buffer", "systems", "length"]);
    assert_eq!(claims(&both, Some("buffer")), ["buffer", "systems", "length"]);
    assert_eq!(claims(&both, Some("systems")), ["systems", "buffer", "length"]);
    assert_eq!(
        claims(&both, Some("length")),
        ["length", "buffer", "systems"],
        "also if it makes no difference"
    );
    // No other effect is taken for the answer.
    assert_eq!(claims(&["old"], Some("systems")), ["no answer: systems", "buffer", "length"]);
    assert_eq!(claims(&["old"], Some("size")), ["no answer: size", "buffer", "length"]);
    assert_eq!(claims(&["old"], None), ["buffer", "length"]);
}

#[test]
fn what_an_asked_knob_depends_on_stands_behind_it() {
    let (sizes, framing) = (int(&[10, 1456, 1457]), ["0", "4"].map(|w| Value::Text(w.to_owned())));
    let axes: Axes = &[("frame_size", Kind::Size, &sizes), ("framing", Kind::Choice, &framing)];
    let mut plan = plan_of(Workload::Frames, Figure::FramesPerS, &["erlang-packet"], axes);
    plan.experiments[0].setup.subject.asks = Some("framing".to_owned().into());
    let observations = observe(&plan, |t| {
        let n = match is_reference(&t.scenario.system) {
            true => 30_000,
            false if t.scenario.point["framing"] == framing[1] && number(t, "frame_size") == 1457 => 4_000,
            false => 24_000,
        };
        measured(measurement(n, 1.0))
    });
    let e = one(findings(&plan, &observations));
    assert_eq!(
        e.claims.iter().map(about).collect::<Vec<_>>(),
        ["framing", "on what framing depends", "frame_size"]
    );
}

#[test]
fn a_system_that_is_shown_to_be_as_fast_is_no_tie() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["fast", "level", "slow"], axes);
    let observations = observe(&plan, |t| {
        let n = match t.scenario.system.as_str() {
            "fast" => 20_000,
            "level" => 19_900,
            "slow" => 10_000,
            _ => 60_000,
        };
        measured(measurement(n, 5.0))
    });
    let e = one(findings(&plan, &observations));
    let [Claim::Systems { equal, ties, .. }] = e.claims else { panic!("{:?}", e.claims) };
    let names =
        |all: &[usize]| all.iter().map(|at| e.estimates[*at].scenario.system.clone()).collect::<Vec<_>>();
    assert_eq!((names(equal), names(ties)), (vec!["level".to_owned()], vec![]));
}

#[test]
fn systems_whose_defaults_are_unlike_are_compared_at_like_settings_too() {
    let pipelining = int(&[1, 10]);
    let axes: Axes = &[("pipelining", Kind::Integer, &pipelining)];
    let mut plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["ibrowse", "hackney", "mojito"], axes);
    // Only ibrowse has the knob.
    let planned = &mut plan.experiments[0];
    for name in ["hackney", "mojito"] {
        planned.scenarios.retain(|s| s.system != name || s.point["pipelining"] == pipelining[0]);
        for scenario in planned.scenarios.iter_mut().filter(|s| s.system == name) {
            scenario.point.clear();
        }
        plan.trials.retain(|t| t.scenario.system != name || t.scenario.point["pipelining"] == pipelining[0]);
        for trial in plan.trials.iter_mut().filter(|t| t.scenario.system == name) {
            trial.scenario.point.clear();
        }
    }
    let of_ibrowse = |value: i64| {
        [("ibrowse".to_owned(), [("pipelining".to_owned(), Value::Integer(value))].into())].into()
    };
    plan.experiments[0].setup.defaults = of_ibrowse(10);
    let systems = |plan: &Plan| {
        let observations = observe(plan, |t| {
            let piped = t.scenario.point.get("pipelining") == Some(&Value::Integer(10));
            let n = match t.scenario.system.as_str() {
                "ibrowse" if piped => 20_000,
                "hackney" => 8_000,
                "ibrowse" => 5_000,
                _ => 4_000,
            };
            measured(measurement(n, 5.0))
        });
        let e = one(findings(plan, &observations));
        let name = |at: usize| e.estimates[at].scenario.system.clone();
        let leader = |claim: &Claim| match claim {
            Claim::Systems { comparison, alike, .. } => Some((*alike, name(comparison.scenario))),
            _ => None,
        };
        e.claims.iter().filter_map(leader).collect::<Vec<_>>()
    };
    let leads = |alike: bool, name: &str| (alike, name.to_owned());
    assert_eq!(systems(&plan), [leads(false, "ibrowse")], "nobody says that the default is unlike");
    plan.experiments[0].setup.alike = of_ibrowse(1);
    assert_eq!(systems(&plan), [leads(false, "ibrowse"), leads(true, "hackney")]);
    // Where the grid has no like settings, nothing more can be said.
    plan.experiments[0].setup.alike = of_ibrowse(2);
    assert_eq!(systems(&plan), [leads(false, "ibrowse")]);
}

#[test]
fn a_leader_at_one_point_is_told_apart_from_leaders_at_others() {
    let connections = int(&[1, 100, 1000]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a", "b"], axes);
    let observations = observe(&plan, |t| {
        let n = match (t.scenario.system.as_str(), number(t, "connections")) {
            ("a", 1 | 1000) | ("b", 100) => 20_000,
            ("a" | "b", _) => 10_000,
            _ => 50_000,
        };
        measured(measurement(n, 5.0))
    });
    let e = one(findings(&plan, &observations));
    let found = e.claims.iter().find_map(|claim| match claim {
        Claim::Systems { comparison, elsewhere, .. } => Some((comparison.scenario, elsewhere.clone())),
        _ => None,
    });
    let (leader, elsewhere) = found.expect("a leader");
    let place = |at: usize| (e.estimates[at].scenario.system.as_str(), value(&e, at, "connections"));
    assert_eq!(place(leader), ("a", "1".to_owned()));
    assert_eq!(elsewhere.into_iter().map(place).collect::<Vec<_>>(), [("b", "100".to_owned())]);
}

#[test]
fn a_difference_that_one_round_contradicts_is_undecided() {
    let buffer = int(&[1460, 8192]);
    let plan =
        plan_of(Workload::Upload, Figure::MsPerUpload, &["cowboy2"], &[("buffer", Kind::Size, &buffer)]);
    let claims = |contradicted: bool| {
        let observations = observe(&plan, |t| {
            let slow = !is_reference(&t.scenario.system) && number(t, "buffer") == 1460;
            let here = slow && !(contradicted && t.round == 1);
            let reference = is_reference(&t.scenario.system);
            measured(measurement(
                20,
                if here {
                    300_000.0
                } else if reference {
                    100_000.0
                } else {
                    200_000.0
                },
            ))
        });
        one(findings(&plan, &observations))
    };
    let values = || ["8192", "1460"].map(str::to_owned);
    let sure = claims(false);
    let Claim::Knob { comparison, narrow: true, .. } = &sure.claims[0] else { panic!("{:?}", sure.claims) };
    assert_eq!(summary(&sure, comparison), ("buffer", values(), [1.5; 3]));
    let open = claims(true);
    let Claim::Undecided { comparison, equal: 0, of: 1, .. } = &open.claims[0] else {
        panic!("{:?}", open.claims)
    };
    assert_eq!(summary(&open, comparison), ("buffer", values(), [1.3, 0.7, 2.3]));
}

#[test]
fn the_interval_of_a_claim_allows_for_the_choice_and_does_not_deny_the_verdict() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    // The claim of a run with so much noise, if it says who leads, and the same comparison by itself.
    let told = |systems: &[&str], noise: i64| {
        let plan = plan_of(Workload::Requests, Figure::RequestsPerS, systems, axes);
        let observations = observe(&plan, |t| {
            let round = t.round as usize;
            let (answers, off) = match t.scenario.system.as_str() {
                "fast" => (20_000, [0, 3, -2][round]),
                "slow" => (15_000, [2, -3, 2][round]),
                "slowest" => (5000, [-1, 0, 1][round]),
                _ => (60_000, 0),
            };
            measured(measurement((answers + noise * off) as u64, 5.0))
        });
        let e = one(findings(&plan, &observations));
        let Some(Claim::Systems { comparison, .. }) = e.claims.first() else { return None };
        let mut pair = [comparison.scenario, comparison.against];
        pair.sort_unstable();
        let of_pair = |c: &&Comparison| pair == [c.scenario.min(c.against), c.scenario.max(c.against)];
        let alone = e.comparisons.iter().find(of_pair).unwrap().ratio.unwrap().upwards();
        Some((comparison.ratio.unwrap(), alone))
    };
    let (ratio, alone) = told(&["fast", "slow", "slowest"], 20).unwrap();
    assert_eq!(ratio.estimate, alone.estimate);
    assert!(1.0 < ratio.low && ratio.low < alone.low && alone.high < ratio.high, "{ratio:?} {alone:?}");
    let (only, alone) = told(&["fast", "slow"], 20).unwrap();
    assert_eq!((only.low, only.high), (alone.low, alone.high), "one comparison chooses nothing");
    // With more noise the verdict holds longer than the wider interval, whose end is then at 1.
    let told: Vec<Ratio> =
        (1..80).filter_map(|n| Some(told(&["fast", "slow", "slowest"], 20 * n)?.0)).collect();
    assert!(told.iter().all(|ratio| ratio.low >= 1.0) && told.iter().any(|ratio| ratio.low == 1.0));
}
