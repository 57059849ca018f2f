//! Tests of drawings: they are named, well-formed and escaped, and their tables have all data.

use super::*;
use lab::findings::Unit;

const HOSTILE: &str = "</svg><script>\u{1b}\"'&";

fn axis(scale: Scale) -> Axis {
    Axis { label: format!("x {HOSTILE}"), unit: Unit::Count, scale, ticks: Ticks::Round }
}

fn style(system: usize) -> Style {
    Style { hue: (system > 0).then_some(system), shape: system, hollow: false }
}

fn chart(points: &[(f64, f64, Option<Interval>)]) -> Lines {
    let point = |&(x, y, interval): &(f64, f64, Option<Interval>)| Point { interval, ..Point::new(x, y) };
    Lines {
        x: axis(Scale::Log),
        y: axis(Scale::Linear),
        series: vec![Series {
            label: HOSTILE.to_owned(),
            style: style(2),
            drawn: Drawn::Joined,
            points: points.iter().map(point).collect(),
        }],
        bands: vec![Band { from: 10.0, to: 20.0, label: HOSTILE.to_owned() }],
        interval: "95 % interval".to_owned(),
        hollow: NOT_RANKED,
    }
}

fn lines(points: &[(f64, f64, Option<Interval>)]) -> Drawing {
    Drawing::Lines(chart(points))
}

fn drawn(drawn: Drawn, points: &[(f64, f64, Option<Interval>)]) -> Lines {
    let mut chart = chart(points);
    chart.series[0].drawn = drawn;
    chart
}

fn small(charts: Vec<Lines>) -> Small {
    Small { x: HOSTILE.to_owned(), y: HOSTILE.to_owned(), charts }
}

fn rows(values: &[(f64, Option<Interval>)], bars: bool) -> Drawing {
    let row = |&(value, interval): &(f64, Option<Interval>)| Row {
        label: HOSTILE.to_owned(),
        style: style(0),
        value,
        interval,
        note: HOSTILE.to_owned(),
    };
    Drawing::Rows(Rows {
        x: axis(if bars { Scale::Linear } else { Scale::Log }),
        rule: Some(1.0),
        noise: Some((0.9, 1.1)),
        bars,
        rows: values.iter().map(row).collect(),
        interval: "95 % interval".to_owned(),
    })
}

fn heat(cells: Vec<Vec<Option<f64>>>, range: (f64, f64)) -> Drawing {
    let ranked = |value| Some(Cell { value: value?, ranked: true });
    grid(cells.into_iter().map(|row| row.into_iter().map(ranked).collect()).collect(), range)
}

fn grid(cells: Vec<Vec<Option<Cell>>>, range: (f64, f64)) -> Drawing {
    let words = |n: usize| (HOSTILE.to_owned(), (0..n).map(|i| format!("{i} {HOSTILE}")).collect());
    Drawing::Heat(Heat {
        across: words(cells.first().map_or(0, Vec::len)),
        down: words(cells.len()),
        cells,
        unit: Unit::PerSecond,
        more_is_better: true,
        range,
        hollow: NOT_RANKED,
    })
}

fn flame(boxes: &[(usize, [f64; 2], Option<f64>)]) -> Drawing {
    let block = |&(depth, edges, change): &(usize, [f64; 2], Option<f64>)| Block {
        depth,
        edges,
        change,
        dark: depth % 2 == 1,
        name: HOSTILE.to_owned(),
        note: HOSTILE.to_owned(),
        tip: HOSTILE.to_owned(),
        cells: vec![HOSTILE.to_owned()],
    };
    Drawing::Flame(Flame {
        columns: vec![HOSTILE.to_owned()],
        blocks: boxes.iter().map(block).collect(),
        dark: HOSTILE,
    })
}

fn all() -> Vec<Drawing> {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    vec![
        lines(&[(1.0, 2.0, Some((1.0, 3.0))), (100.0, 5.0, None)]),
        lines(&[]),
        lines(&[(0.0, 0.0, Some((nan, inf))), (-5.0, nan, None), (inf, -inf, Some((0.0, 0.0)))]),
        Drawing::Panels(Panels(vec![chart(&[(1.0, 2.0, None)]), chart(&[(9.0, 5.0, None)]), chart(&[])])),
        Drawing::Small(small(vec![chart(&[(1.0, 2.0, None)]), chart(&[(9.0, nan, None)]), chart(&[])])),
        Drawing::Small(small(Vec::new())),
        Drawing::Lines(drawn(Drawn::Lettered('A'), &[(1.0, 2.0, None), (1.0, 2.0, None), (nan, inf, None)])),
        rows(&[(6.9, Some((6.5, 7.2))), (0.2, None)], false),
        rows(&[(3.0, None), (0.0, None), (nan, None)], true),
        rows(&[], true),
        heat(vec![vec![Some(1.0), None], vec![Some(1e6), Some(nan)]], (1.0, 1e6)),
        heat(vec![vec![Some(5.0)]], (5.0, 5.0)),
        heat(Vec::new(), (inf, -inf)),
        flame(&[(0, [0.0, 1.0], Some(1.0)), (1, [0.0, 0.9], Some(-1.0)), (2, [0.2, 0.201], None)]),
        flame(&[(0, [0.0, 0.0], None), (1, [nan, nan], Some(nan)), (1, [0.0, nan], Some(inf))]),
        flame(&[]),
    ]
}

/// Fails unless each tag is closed in its order, quotes are paired, and no text has what XML forbids.
pub(crate) fn assert_well_formed(markup: &str) {
    let mut open = Vec::new();
    for part in markup.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("a tag without an end: <{part}"));
        assert!(tag.matches('"').count().is_multiple_of(2) && !text.contains('>'), "<{part}");
        let is_entity =
            |rest: &str| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|e| rest.starts_with(e));
        assert!(part.split('&').skip(1).all(is_entity), "<{part}");
        let is_forbidden = |c| matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
        assert!(!part.contains(is_forbidden), "<{part}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "<{part}"),
            None if tag.ends_with('/') => {}
            None => open.extend(tag.split_whitespace().next()),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn drawings_are_well_formed_named_and_escaped() {
    for drawing in all() {
        for width in [Width::Wide, Width::Half, Width::Narrow] {
            let svg = drawing.svg(width, "f1", HOSTILE, HOSTILE);
            assert_eq!(svg.matches("<svg").count(), 1, "{svg}");
            assert!(svg.ends_with("</svg>") && svg.matches("</svg>").count() == 1, "{svg}");
            assert_well_formed(&svg);
            assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
            assert!(!svg.contains("NaN") || !svg.contains("=\"NaN"), "{svg}");
            let id = format!("f1-{}", width.class());
            assert!(svg.contains(&format!("aria-labelledby=\"{id}-t {id}-d\"")), "{svg}");
            assert!(
                svg.contains(&format!("<title id=\"{id}-t\">&lt;/svg&gt;&lt;script&gt;\u{241b}")),
                "{svg}"
            );
        }
    }
}

#[test]
fn coordinates_are_finite() {
    for drawing in all() {
        let svg = drawing.svg(Width::Wide, "f1", "t", "d");
        for name in ["x", "y", "width", "height", "d", "viewBox"] {
            for value in svg.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(!value.contains("NaN") && !value.contains("inf"), "{name}={value}");
            }
        }
    }
}

#[test]
fn the_table_has_all_data_that_is_drawn() {
    let data = lines(&[(1.0, 2.0, Some((1.0, 3.0))), (100.0, 5.0, None)]).data();
    assert_eq!(data.columns.len(), 4);
    assert_eq!(data.rows[0], [HOSTILE, "1", "2", "1 to 3"]);
    assert_eq!(data.rows[1], [HOSTILE, "100", "5", "-"]);
    let panels = vec![chart(&[(1.0, 2.0, None), (3.0, 4.0, None)]), chart(&[(2.0, 7.0, None)])];
    let data = Drawing::Panels(Panels(panels)).data();
    assert_eq!(data.columns.len(), 4);
    assert_eq!(
        data.rows[1..],
        [[HOSTILE, "3", "4", "-"], [HOSTILE, "2", "-", "7"]].map(|r| r.map(str::to_owned).to_vec())
    );
    let data = rows(&[(6.0, Some((5.0, 7.0)))], false).data();
    assert_eq!(data.rows, [[HOSTILE, "6", "5 to 7", HOSTILE].map(str::to_owned).to_vec()]);
    let data = heat(vec![vec![Some(1000.0), None]], (1.0, 1.0)).data();
    assert_eq!(data.rows[0][1..], ["1.00k/s", "-"]);
}

#[test]
fn marks_that_are_not_ranked_are_outlines_with_a_note() {
    let best = |ranked: [bool; 2]| {
        let cell = |value, ranked| Some(Cell { value, ranked });
        let drawing = grid(vec![vec![cell(9.0, ranked[0]), cell(5.0, ranked[1])]], (5.0, 9.0));
        let svg = drawing.svg(Width::Half, "f1", "t", "d");
        let framed =
            svg.split("<rect class=\"cell best\"").skip(1).filter_map(|rest| rest.split(": ").nth(1));
        let framed: Vec<String> = framed.map(|rest| rest[..1].to_owned()).collect();
        (framed, svg.matches("cell hollow").count(), drawing.data().rows[0][1..].join(" "))
    };
    assert_eq!(best([true, true]), (vec!["9".to_owned()], 0, "9.00/s 5.00/s".to_owned()));
    assert_eq!(best([false, true]), (vec!["5".to_owned()], 1, "9.00/s (not ranked) 5.00/s".to_owned()));
    assert_eq!(best([false, false]).0, Vec::<String>::new());

    let outline = |hollow| {
        let mut lines = chart(&[(1.0, 2.0, None), (3.0, 4.0, None)]);
        lines.series[0].points[1].hollow = hollow;
        let Drawing::Rows(mut rows) = rows(&[(1.0, None), (2.0, None)], false) else { unreachable!() };
        rows.rows[1].style.hollow = hollow;
        [Drawing::Lines(lines), Drawing::Rows(rows)].map(|drawing| {
            let svg = drawing.svg(Width::Half, "f1", "t", "d");
            let told = drawing.data().rows.iter().flatten().filter(|cell| cell.contains(NOT_RANKED)).count();
            (svg.matches("mark hollow").count(), svg.matches("(not ranked)</title>").count(), told)
        })
    };
    assert_eq!(outline(false), [(0, 0, 0); 2]);
    assert_eq!(outline(true), [(1, 1, 1); 2]);
}

#[test]
fn panels_share_their_x_axis_below_each_other() {
    let panels =
        vec![chart(&[(1.0, 2.0, None), (50.0, 4.0, None)]), chart(&[(50.0, 7.0, None), (900.0, 8.0, None)])];
    let svg = Drawing::Panels(Panels(panels)).svg(Width::Half, "f1", "t", "d");
    // The points of both charts at 50, found by the beginning of their marks' paths.
    let marks = svg.split("<path class=\"mark\" d=\"M").skip(1).filter_map(|rest| rest.split('l').next());
    let places: Vec<Vec<f64>> =
        marks.map(|at| at.split(' ').filter_map(|number| number.parse().ok()).collect()).collect();
    assert_eq!(places.len(), 4, "{svg}");
    assert_eq!(places[1][0], places[2][0]);
    assert!(
        places[..2].iter().all(|above| places[2..].iter().all(|below| below[1] > above[1])),
        "{places:?}"
    );
}

#[test]
fn a_series_is_a_line_or_marks_or_both_or_marks_with_letters() {
    for (how, parts) in [
        (Drawn::Joined, (1, 2, 0)),
        (Drawn::Apart, (0, 2, 0)),
        (Drawn::Line, (1, 0, 0)),
        (Drawn::Lettered('Q'), (0, 2, 2)),
    ] {
        let drawing = Drawing::Lines(drawn(how, &[(1.0, 2.0, None), (3.0, 4.0, None)]));
        let svg = drawing.svg(Width::Half, "f1", "t", "d");
        let count = |part: &str| svg.matches(part).count();
        assert_eq!((count("class=\"line\""), count("class=\"mark\""), count(">Q</text>")), parts, "{how:?}");
        assert_eq!(drawing.data().rows.len(), 2);
    }
}

/// The numbers after the beginnings of all parts of a drawing that begin so.
fn places(svg: &str, begin: &str) -> Vec<Vec<f64>> {
    let parts = svg.split(begin).skip(1).filter_map(|rest| rest.split(['l', 'a', ')']).next());
    parts.map(|at| at.split(' ').filter_map(|number| number.parse().ok()).collect()).collect()
}

#[test]
fn small_charts_stand_beside_each_other_with_one_y_axis() {
    let charts = vec![chart(&[(1.0, 2.0, None)]), chart(&[(1.0, 8.0, None)]), chart(&[(1.0, 2.0, None)])];
    let svg = Drawing::Small(small(charts)).svg(Width::Half, "f1", "t", "d");
    let (origins, marks) = (places(&svg, "translate("), places(&svg, "<path class=\"mark\" d=\"M"));
    assert_eq!(origins, [[0.0, 0.0], [235.0, 0.0], [0.0, 150.0]]);
    // Equal values are equally high in their charts.
    assert_eq!(marks[0], marks[2]);
    assert!(marks[1][1] < marks[0][1], "{marks:?}");
}
