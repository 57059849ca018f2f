//! Tests of the figures of made-up runs: what they show, in which order, and what they say about the rest.

use lab::session::{MeasurementPatch, Rule};

use super::*;
use crate::made_up::{found, rule};
use crate::svg::{Drawing, Rows};

fn answered(e: &ExperimentFindings) -> Vec<Figure> {
    let findings = Findings { experiments: vec![e.clone()] };
    answers(e, &Palette::of(&findings))
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
    e.estimates.iter_mut().for_each(|estimate| estimate.interval = None);
    assert_eq!(ranking(&answered(&e)[0]).1, [true; 3]);
}

/// The grids' titles, and how many cells of each are framed.
fn grids(figures: &[Figure]) -> Vec<(&str, usize)> {
    let grids = figures.iter().filter(|figure| matches!(figure.drawing, Drawing::Heat(_)));
    let framed = |figure: &Figure| {
        let svg = figure.drawing.svg(crate::svg::Width::Half, "f", "t", "d");
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
