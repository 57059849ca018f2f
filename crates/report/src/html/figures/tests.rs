//! Tests of the figures of made-up runs: what they show, in which order, and what they say about the rest.

use lab::experiment::Figure as Quantity;
use lab::findings::ExperimentFindings;
use lab::search::{Bounded, Limit};
use lab::session::{MeasurementPatch, Rule};

use super::*;
use crate::made_up::{Sought, found, rule, view};
use crate::svg::{Drawing, Lines, Rows, Width};

fn answered(e: &ExperimentFindings) -> Vec<Figure> {
    let findings = Findings { experiments: vec![e.clone()], gates: Vec::new() };
    answers(&view(e), &Palette::of(&findings))
}

/// More connections than any pool here may have.
fn beyond_its_pool(rule: Rule) -> Rule {
    let server = serde_json::json!({ "server": { "peak_connections": 100_000 } });
    Rule { measured: MeasurementPatch::new(server).expect("a measurement has it"), ..rule }
}

fn ranking(figure: &Figure) -> (Vec<&str>, Vec<bool>) {
    let Drawing::Rows(Rows { rows, .. }) = &figure.drawing else { panic!("{figure:?}") };
    let labels = rows.iter().map(|row| row.label.split(':').next().unwrap_or_default());
    (labels.collect(), rows.iter().map(|row| row.style.hollow).collect())
}

#[test]
fn rows_that_are_not_ranked_come_last_as_outlines() {
    let fast = rule("fast", &[], 2.0);
    let slow = rule("slow", &[], 0.5);
    let fair = found(&["fast", "slow"], &[], &[fast.clone(), slow.clone()]);
    let figures = answered(&fair);
    assert_eq!(ranking(&figures[0]), (vec!["fast", "reference-client", "slow"], vec![false; 3]));
    assert!(figures[0].legend.is_empty() && !figures[0].about.contains("ollow"), "{}", figures[0].about);

    let unfair = found(&["fast", "slow"], &[], &[beyond_its_pool(fast), slow]);
    let figures = answered(&unfair);
    assert_eq!(ranking(&figures[0]), (vec!["reference-client", "slow", "fast"], vec![false, false, true]));
    assert_eq!(figures[0].legend.last().map(|(word, _)| word.as_str()), Some(NOT_RANKED));
    assert!(figures[0].about.contains("Hollow marks are not ranked"), "{}", figures[0].about);
    let mut page = String::new();
    figures[0].write(&mut page, "f");
    assert!(page.contains("mark hollow") && page.contains("(not ranked)</td>"), "{page}");
}

#[test]
fn too_few_rounds_rank_nothing() {
    let mut e = found(&["fast", "slow"], &[], &[]);
    e.figures[0].estimates.iter_mut().for_each(|estimate| estimate.interval = None);
    assert_eq!(ranking(&answered(&e)[0]).1, [true; 3]);
}

/// The grids' titles, and how many cells of each are framed.
fn grids(figures: &[Figure]) -> Vec<(&str, usize)> {
    let grids = figures.iter().filter(|figure| matches!(figure.drawing, Drawing::Heat(_)));
    let framed = |figure: &Figure| {
        let svg = figure.drawing.svg(Width::Half, "f", "t", "d");
        svg.matches("cell best").count()
    };
    grids
        .map(|figure| (figure.title.split(": requests").next().unwrap_or_default(), framed(figure)))
        .collect()
}

const POOL: [(&str, &[i64]); 2] = [("pool_size", &[10, 20, 30]), ("concurrency", &[64, 128, 256])];

#[test]
fn no_cell_that_is_not_ranked_is_framed() {
    let best = rule("a", &[("pool_size", 30), ("concurrency", 256)], 2.0);
    for (rules, said) in [
        (vec![best.clone()], "the best cell is framed."),
        (vec![beyond_its_pool(best)], "cells with a dotted edge are not ranked."),
        (vec![beyond_its_pool(rule("a", &[], 1.0))], "no cell is framed, because none is ranked."),
    ] {
        let figures = answered(&found(&["a"], &POOL, &rules));
        let grid = figures.iter().find(|figure| matches!(figure.drawing, Drawing::Heat(_))).expect("a grid");
        assert!(grid.about.ends_with(said), "{}", grid.about);
        let Drawing::Heat(heat) = &grid.drawing else { unreachable!() };
        let highest = heat.cells.iter().flatten().flatten().max_by(|a, b| a.value.total_cmp(&b.value));
        let outlined = heat.cells.iter().flatten().flatten().filter(|cell| !cell.ranked).count();
        let (framed, ranked, unranked) = match said {
            "the best cell is framed." => (1, true, 0),
            "cells with a dotted edge are not ranked." => (1, false, 1),
            _ => (0, false, 9),
        };
        assert_eq!(
            (grids(&figures)[0].1, highest.map(|cell| cell.ranked), outlined),
            (framed, Some(ranked), unranked)
        );
    }
}

#[test]
fn each_system_has_a_grid_before_any_has_a_second() {
    let keepalive: &[i64] = &[0, 10, 100, 1000, 10_000, 100_000];
    let knobs = [POOL[0], POOL[1], ("max_keepalive", keepalive)];
    let rules = [rule("b", &[("max_keepalive", 100)], 3.0), rule("a", &[("max_keepalive", 10_000)], 2.0)];
    let figures = answered(&found(&["a", "b"], &knobs, &rules));
    let titles: Vec<&str> = grids(&figures).into_iter().map(|(title, _)| title).collect();
    assert_eq!(titles[..2], ["a: max_keepalive 10000", "b: max_keepalive 100"]);
    let of = |system: &str| titles.iter().filter(|title| title.starts_with(system)).count();
    assert_eq!((of("a:"), of("b:")), (3, 3));
    let last = figures.iter().rfind(|figure| matches!(figure.drawing, Drawing::Heat(_))).expect("a grid");
    let told = last.about.split(" 6 of 12 grids are drawn, the best of each system first, without ").nth(1);
    let told = told.and_then(|rest| rest.strip_suffix("; the table has all.")).expect("what is left out");
    let told: Vec<&str> = told.split("; ").collect();
    let mut both = [titles, told].concat();
    both.sort_unstable();
    let mut all: Vec<String> = Vec::new();
    for value in keepalive {
        all.extend(["a", "b"].map(|system| format!("{system}: max_keepalive {value}")));
    }
    all.sort_unstable();
    assert_eq!(both, all, "{}", last.about);

    let seven = ["a", "b", "c", "d", "e", "f", "g"];
    let figures = answered(&found(&seven, &[POOL[0], POOL[1], ("max_keepalive", &[0, 1])], &[]));
    let titles: Vec<&str> = grids(&figures).into_iter().map(|(title, _)| &title[..1]).collect();
    assert_eq!(titles, seven);
    let few = answered(&found(&["a", "b"], &POOL, &[]));
    assert!(grids(&few).len() == 2 && few.iter().all(|figure| !figure.about.contains("are drawn")));
}

const KNOBS: [(&str, &[i64]); 4] =
    [("workers", &[1, 2, 4, 8]), ("buffer", &[8, 16, 32]), ("cache", &[0, 1]), ("spare", &[0, 1, 2])];

/// A rule that replaces the memory.
fn bytes(point: &[(&str, i64)], bytes: u64) -> Rule {
    let system = serde_json::json!({ "system": { "peak_pss_bytes": bytes } });
    Rule { measured: MeasurementPatch::new(system).expect("a measurement has it"), ..rule("a", point, 1.0) }
}

/// A search in which `workers` and `cache` cost memory, and half a limit of it is what most settings need.
fn sought(until: usize) -> ExperimentFindings {
    let rules = [
        rule("a", &[("workers", 2)], 1.2),
        rule("a", &[("workers", 4)], 1.5),
        rule("a", &[("workers", 8)], 1.55),
        rule("a", &[("buffer", 16)], 1.1),
        rule("a", &[("cache", 1)], 1.2),
        bytes(&[("workers", 2)], 40_000_000),
        bytes(&[("workers", 4)], 60_000_000),
        bytes(&[("cache", 1)], 75_000_000),
        bytes(&[("cache", 1), ("workers", 4)], 90_000_000),
        bytes(&[("workers", 8)], 180_000_000),
    ];
    let limits = [Limit { of: Bounded::Memory, below: 100e6 }];
    let also = [Quantity::MemoryBytes];
    Sought { knobs: &KNOBS, also: &also, limits: &limits, rules: &rules, trials: 200, until }.found()
}

fn charts(figure: &Figure) -> Vec<&Lines> {
    match &figure.drawing {
        Drawing::Lines(lines) => vec![lines],
        Drawing::Small(small) => small.charts.iter().collect(),
        _ => panic!("{figure:?}"),
    }
}

#[test]
fn a_search_has_its_path_its_knobs_its_strongest_pair_and_its_front() {
    let e = sought(usize::MAX);
    let found = e.tuned.as_ref().expect("a search");
    let advice = found.advice.as_ref().expect("it has ended");
    let figures = answered(&e);
    let titles: Vec<&str> = figures.iter().map(|figure| figure.title.as_str()).collect();
    let begins = [
        "The race led to `workers=4 buffer=16 cache=1`; fresh rounds show it at ",
        "`workers`, `cache` and `buffer` seem to matter; `spare` hardly does",
        "`workers` and `cache` together",
    ];
    assert!(begins.iter().zip(&titles).all(|(begin, title)| title.starts_with(begin)), "{titles:?}");
    assert!(titles[3].starts_with("No setting that ran has better medians than these "), "{titles:?}");
    assert!(figures[0].main && figures[1..].iter().all(|figure| !figure.main));

    // The path: the default, the best so far, every setting of every heat by its name, and the proof at the end.
    let path = charts(&figures[0])[0];
    let marks: usize = path.series[2..].iter().map(|series| series.points.len()).sum();
    let raced: usize =
        found.heats.iter().flat_map(|heat| &heat.settings).filter(|(_, ratio)| ratio.is_some()).count();
    assert_eq!(marks, raced + 1);
    let proof = path.series.last().expect("the proof");
    assert_eq!(proof.label, "workers=4 buffer=16 cache=1 in fresh rounds");
    let gain = advice.gain.expect("a gain");
    assert_eq!((proof.points[0].y, proof.points[0].interval), (gain.estimate, Some((gain.low, gain.high))));
    assert!(
        path.series[..proof_at(path)]
            .iter()
            .flat_map(|s| &s.points)
            .all(|p| p.x < proof.points[0].x || p.y == 1.0)
    );

    // The knobs: a chart for each with all its values, and the default's mark over its own.
    let knobs = charts(&figures[1]);
    assert_eq!(knobs.iter().map(|chart| chart.y.label.as_str()).collect::<Vec<_>>()[3], "spare");
    for chart in &knobs {
        let values = KNOBS.iter().find(|(knob, _)| *knob == chart.y.label).expect("a knob").1;
        assert_eq!((chart.series[0].points.len(), chart.series[1].points.len()), (values.len(), 1));
        assert_eq!(chart.series[0].style.hue.is_none(), chart.y.label == "spare");
    }

    // The front: what breaks the limit is hollow, and what is on the front has its name.
    let front = charts(&figures[3])[0];
    let hollow = front.series.iter().filter(|series| series.points[0].hollow).count();
    assert_eq!(hollow, found.tried.iter().filter(|tried| !tried.keeps).count());
    assert!(hollow > 0 && front.series[0].points.len() == found.front.len());
    let svg = figures[3].drawing.svg(Width::Wide, "f", "t", "d");
    assert!(svg.contains(">A</text>"), "{svg}");
    let lettered: Vec<&str> = figures[3].legend.iter().map(|(word, _)| word.as_str()).collect();
    assert!(lettered.contains(&"A: the defaults") || lettered[0].starts_with("A: "), "{lettered:?}");
}

fn proof_at(path: &Lines) -> usize {
    path.series.len() - 1
}

#[test]
fn an_interrupted_search_has_no_proof_in_its_path() {
    let e = sought(20);
    let figures = answered(&e);
    assert!(figures[0].title.starts_with("The race leads to `"), "{}", figures[0].title);
    assert!(
        charts(&figures[0])[0].series.iter().flat_map(|s| &s.points).all(|point| point.interval.is_none())
    );
    assert!(answered(&sought(0)).is_empty());
}

#[test]
fn values_that_never_work_are_in_no_chart() {
    let fail = lab::observation::Failure {
        stage: lab::observation::Stage::Start,
        reason: "it ended".to_owned(),
        output: String::new(),
    };
    let rules =
        [Rule { fail: Some(fail), ..rule("a", &[("workers", 8)], 1.0) }, rule("a", &[("buffer", 16)], 1.3)];
    let knobs = [KNOBS[0], KNOBS[1]];
    let e = Sought { knobs: &knobs, also: &[], limits: &[], rules: &rules, trials: 100, until: usize::MAX }
        .found();
    let figures = answered(&e);
    let of_workers =
        charts(&figures[1]).into_iter().find(|chart| chart.y.label == "workers").expect("its chart");
    let Ticks::At(ticks) = &of_workers.x.ticks else { panic!("{:?}", of_workers.x) };
    assert_eq!(ticks.iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>(), ["1", "2", "4"]);
    assert_eq!(of_workers.series[0].points.len(), 3);
    let Drawing::Heat(grid) = &figures[2].drawing else { panic!("{:?}", figures[2]) };
    assert_eq!(grid.cells.iter().flatten().filter(|cell| cell.is_none()).count(), 3);
    assert_eq!(figures.len(), 3);
}

#[test]
fn of_many_values_those_that_ran_are_drawn() {
    let many: Vec<i64> = (1..=100).collect();
    let knobs = [("workers", &many[..]), KNOBS[1]];
    let rules = [rule("a", &[("buffer", 16)], 1.3)];
    let e = Sought { knobs: &knobs, also: &[], limits: &[], rules: &rules, trials: 60, until: usize::MAX }
        .found();
    let figures = answered(&e);
    let ran = |knob: &str| {
        let tried = e.tuned.iter().flat_map(|found| &found.tried);
        tried.filter_map(|tried| tried.point.get(knob)).collect::<std::collections::BTreeSet<_>>().len()
    };
    let of_workers = charts(&figures[1]).into_iter().find(|chart| chart.y.label == "workers");
    assert_eq!(of_workers.expect("its chart").series[0].points.len(), ran("workers"));
    let Drawing::Heat(grid) = &figures[2].drawing else { panic!("{:?}", figures[2]) };
    let sides = [grid.cells.len(), grid.cells[0].len()];
    assert!(sides.contains(&ran("workers")) && sides.contains(&3) && ran("workers") < 30, "{sides:?}");
}

/// A rule for clients with so many connections and this memory, at rest and under load.
fn connected(system: &str, connections: u64, rest: u64, peak: u64) -> Rule {
    let measured = serde_json::json!({
        "connections": connections,
        "system": { "rest_pss_bytes": rest, "peak_pss_bytes": peak, "pss_course": [[0, peak / 2], [700, peak]] },
    });
    Rule {
        measured: MeasurementPatch::new(measured).expect("a measurement has it"),
        ..rule(system, &[], 1.0)
    }
}

#[test]
fn many_connections_have_a_figure_and_a_sentence_of_their_memory() {
    let rules =
        [connected("b", 10_000, 5_000_000, 85_000_000), connected("a", 10_000, 40_000_000, 160_000_000)];
    let e = found(&["a", "b"], &[], &rules);
    let said = "memory for each of 10000 connections, at most: b 8.0 kB [8.0 kB, 8.0 kB], a 12 kB [12 kB, 12 kB] (the peak \
                less the memory at rest)";
    assert_eq!(crate::words::per_connection(&view(&e)).as_deref(), Some(said));
    let findings = Findings { experiments: vec![e.clone()], gates: Vec::new() };
    let figures = more(&view(&e), &Palette::of(&findings));
    let figure = figures.iter().find(|figure| figure.title == "Memory with 10000 connections");
    let figure = figure.expect("a figure");
    assert!(figure.about.contains(said), "{}", figure.about);
    let lines = charts(figure)[0];
    let labels: Vec<&str> = lines.series.iter().map(|series| series.label.as_str()).collect();
    assert_eq!(labels, ["b", "a"]);
    let ends = [0, 2].map(|at| lines.series[0].points[at].y);
    assert_eq!(ends, [5e6, 85e6]);

    let few = found(&["a", "b"], &[], &[connected("b", 900, 5_000_000, 85_000_000)]);
    assert_eq!(crate::words::per_connection(&view(&few)), None);
    let findings = Findings { experiments: vec![few.clone()], gates: Vec::new() };
    let titles = more(&view(&few), &Palette::of(&findings)).into_iter().map(|figure| figure.title);
    assert_eq!(titles.filter(|title| title.starts_with("Memory with")).count(), 0);
}
