//! The history of a question: as text, JSON and CSV, as the CSV that Apache Otava reads, and as a page with pictures.

use std::collections::BTreeMap;

use lab::findings::{Cell, Column, Row, Table, Unit};
use lab::history::{Change, Point, Series};
use lab::store::RunId;
use serde::Serialize;
use stats::FEWEST_TO_CHANGE;

use crate::csv::line;
use crate::date::utc;
use crate::html::{self, Figure};
use crate::json::pretty;
use crate::number::{interval, several};
use crate::svg::{self, Axis, Drawing, Rows, Scale, Style, Ticks};
use crate::text::{BOLD, Page, YELLOW};
use crate::words::{Caption, Captioned, capital, quantity};

/// The schema version of a history.
const SCHEMA: u32 = 1;

/// The name of the interval of a point.
const INTERVAL: &str = "95 % interval";

/// The history of a question. Ratios say how many times better a scenario is than its anchor, whether more or less of the figure is
/// better.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "History"))]
struct Document<'a> {
    /// The schema version. It changes if a field is removed or changes its meaning.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: u32,
    /// The history of each scenario.
    series: &'a [Series],
}

/// The schema of [`history_json`].
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Document)
}

/// The history of each scenario for a terminal, in lines of at most `width` columns. `colour` adds ANSI colours.
pub fn history_text(all: &[Series], width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let mut out = String::new();
    for (index, series) in all.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        page.paragraph(&mut out, BOLD, "", &title(series));
        let changed = if series.changes.is_empty() { "" } else { YELLOW };
        page.paragraph(&mut out, changed, "  ", &answer(series));
        out.push('\n');
        page.table(&mut out, &table(series));
    }
    out
}

/// An object with `schema` and `series`, as described by docs/schema/history.schema.json.
pub fn history_json(all: &[Series]) -> String {
    pretty(&Document { schema: SCHEMA, series: all })
}

/// A line for each point, with the change that begins there. Times are in seconds since the Unix epoch.
pub fn history_csv(all: &[Series]) -> String {
    let columns = [
        "experiment",
        "figure",
        "scenario",
        "anchor",
        "run",
        "time",
        "version",
        "anchor_version",
        "rounds",
        "ratio",
        "low",
        "high",
        "change",
        "change_low",
        "change_high",
    ];
    let mut out = line(columns.map(str::to_owned).into_iter());
    for series in all {
        for (at, point) in series.points.iter().enumerate() {
            let change = change_at(series, at).map(|change| change.ratio);
            let change = |end: fn(lab::findings::Ratio) -> f64| {
                change.map_or_else(String::new, |ratio| end(ratio).to_string())
            };
            let fields = [
                series.experiment.clone(),
                series.figure.name().to_owned(),
                series.scenario.clone(),
                series.anchor.clone(),
                point.run.to_string(),
                point.started_unix_s.to_string(),
                point.version.clone().unwrap_or_default(),
                point.anchor_version.clone().unwrap_or_default(),
                point.rounds.to_string(),
                point.ratio.estimate.to_string(),
                point.ratio.low.to_string(),
                point.ratio.high.to_string(),
                change(|ratio| ratio.estimate),
                change(|ratio| ratio.low),
                change(|ratio| ratio.high),
            ];
            out.push_str(&line(fields.into_iter()));
        }
    }
    out
}

/// The CSV that Apache Otava reads with `time_column: time` and `attributes: [commit, run]`: a line for each run, and a metric for
/// each scenario, the ratio. The commit is the version of the last scenario, and empty where no version is known.
pub fn history_otava(all: &[Series]) -> String {
    let mut runs: BTreeMap<RunId, &Point> = BTreeMap::new();
    for point in all.iter().flat_map(|series| &series.points) {
        let known = runs.entry(point.run).or_insert(point);
        if point.version.is_some() {
            *known = point;
        }
    }
    let metric =
        |series: &Series| format!("{}/{}/{}", series.experiment, series.scenario, series.figure.name());
    let columns = ["time", "commit", "run"].map(str::to_owned).into_iter();
    let mut out = line(columns.chain(all.iter().map(metric)));
    for run in runs.into_values() {
        let seconds = run.started_unix_s.max(0.0) as i64 % 60;
        let time = format!("{}:{seconds:02} +0000", utc(run.started_unix_s));
        let fields = [time, run.version.clone().unwrap_or_default(), run.run.to_string()].into_iter();
        let ratio = |series: &Series| {
            let point = series.points.iter().find(|point| point.run == run.run);
            point.map_or_else(String::new, |point| point.ratio.estimate.to_string())
        };
        out.push_str(&line(fields.chain(all.iter().map(ratio))));
    }
    out
}

/// A page with a picture of each history.
pub fn history_html(all: &[Series]) -> String {
    let figures = all.iter().map(figure).collect::<Vec<_>>();
    html::of_figures("History", &figures)
}

/// The points of a history with their intervals, the oldest above, and where it changes.
fn figure(series: &Series) -> Figure {
    let row = |(at, point): (usize, &Point)| {
        let note = change_at(series, at)
            .map_or_else(String::new, |change| format!("from here {}", interval(change.ratio)));
        let changes = series.changes.iter().filter(|change| change.at <= at).count();
        let version = point.version.as_ref().map_or_else(String::new, |version| format!(", {version}"));
        svg::Row {
            label: format!("run {}, {}{version}", point.run, utc(point.started_unix_s)),
            // The colour and the shape are those of the level.
            style: Style { hue: Some(changes), shape: changes, hollow: false },
            value: point.ratio.estimate,
            interval: Some((point.ratio.low, point.ratio.high)),
            note,
        }
    };
    Figure {
        title: title(series),
        about: format!(
            "{}. The oldest run is at the top. Right of 1 is better than {}, and whiskers are {INTERVAL}s.",
            capital(&answer(series)),
            series.anchor
        ),
        legend: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis {
                label: "times as good (logarithmic)".to_owned(),
                unit: Unit::Times,
                scale: Scale::Log,
                ticks: Ticks::Round,
            },
            rule: Some(1.0),
            noise: None,
            bars: false,
            rows: series.points.iter().enumerate().map(row).collect(),
            interval: INTERVAL.to_owned(),
        }),
        main: true,
    }
}

fn title(series: &Series) -> String {
    let Series { experiment, figure, scenario, anchor, .. } = series;
    format!("{experiment}: {}, {scenario} beside {anchor}", quantity(*figure))
}

/// How often it has changed, and by how much the last time.
fn answer(series: &Series) -> String {
    let runs = several(series.points.len() as u64, "run");
    let last = series.changes.last().and_then(|change| Some((change, series.points.get(change.at)?)));
    let Some((change, point)) = last else {
        let more = match series.points.len() < FEWEST_TO_CHANGE {
            true => format!(", and at least {FEWEST_TO_CHANGE} are needed to find one"),
            false => String::new(),
        };
        return format!("no change in {runs}{more}");
    };
    let changes = several(series.changes.len() as u64, "change");
    let version = point.version.as_ref().map_or_else(String::new, |version| format!(", {version}"));
    format!(
        "{changes} in {runs}; from run {} on ({}{version}) it is {} as good as before",
        point.run,
        utc(point.started_unix_s),
        interval(change.ratio)
    )
}

fn change_at(series: &Series, at: usize) -> Option<&Change> {
    series.changes.iter().find(|change| change.at == at)
}

/// The points as a table. Columns without any cell are left out.
fn table(series: &Series) -> Captioned {
    let words = |text: Option<String>| text.map_or(Cell::Empty, Cell::Text);
    let row = |(at, point): (usize, &Point)| Row {
        cells: vec![
            Cell::Text(point.run.to_string()),
            Cell::Text(utc(point.started_unix_s)),
            words(point.version.clone()),
            words(point.anchor_version.clone()),
            Cell::Text(interval(point.ratio)),
            words(change_at(series, at).map(|change| format!("from here {}", interval(change.ratio)))),
        ],
        block: change_at(series, at).is_some(),
    };
    let mut rows: Vec<Row> = series.points.iter().enumerate().map(row).collect();
    let names = ["run", "began (UTC)", "version", "of anchor", "times as good", "change"];
    let used: Vec<bool> =
        (0..names.len()).map(|at| rows.iter().any(|row| row.cells.get(at) != Some(&Cell::Empty))).collect();
    let keep = |at: usize| used.get(at).copied().unwrap_or(false);
    for row in &mut rows {
        let cells = std::mem::take(&mut row.cells).into_iter().enumerate();
        row.cells = cells.filter(|(at, _)| keep(*at)).map(|(_, cell)| cell).collect();
    }
    let names = names.into_iter().enumerate().filter(|(at, _)| keep(*at));
    let columns = names.map(|(_, name)| Column::words(name)).collect();
    let caption = Caption { title: String::new(), about: String::new(), notes: Vec::new() };
    Captioned { caption, table: Table { columns, keys: 1, rows } }
}

#[cfg(test)]
mod tests {
    use lab::experiment::Figure as Quantity;
    use lab::findings::{Findings, Ratio};
    use lab::history::{Occasion, history};

    use super::*;
    use crate::made_up::found;

    /// Four runs, the last two of which are twice as good, and a fifth of another scenario.
    fn made_up() -> Vec<Series> {
        let point = |run: i64, estimate: f64| Point {
            run,
            started_unix_s: 86_400.0 * run as f64 + 7.0,
            version: Some(format!("<c{run}>")),
            anchor_version: None,
            rounds: 6,
            ratio: Ratio { estimate, low: estimate * 0.9, high: estimate * 1.1 },
        };
        let ratio = Ratio { estimate: 2.0, low: 1.8, high: 2.2 };
        let series = |scenario: &str, points, changes| Series {
            experiment: "try".to_owned(),
            figure: Quantity::RequestsPerS,
            scenario: scenario.to_owned(),
            anchor: "base".to_owned(),
            points,
            changes,
        };
        let points = vec![point(1, 1.0), point(2, 1.0), point(3, 2.0), point(4, 2.0)];
        vec![
            series("head", points, vec![Change { at: 2, ratio, p: 0.001 }]),
            series("a,b", vec![point(5, 1.0)], Vec::new()),
        ]
    }

    #[test]
    fn a_change_stands_in_the_answer_and_at_its_run() {
        let text = history_text(&made_up(), 100, false);
        let said = "1 change in 4 runs; from run 3 on (1970-01-04 00:00, <c3>) it is 2.0x [1.8, 2.2] as good as before";
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            joined.contains(said) && joined.contains("no change in 1 run, and at least 10 are needed"),
            "{text}"
        );
        let line = text.lines().find(|line| line.starts_with('3')).expect("a row");
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.ends_with("2.0x [1.8, 2.2] from here 2.0x [1.8, 2.2]"), "{line}");
        assert!(!text.contains("of anchor"), "no anchor has a version: {text}");
    }

    #[test]
    fn an_arm_of_commits_is_known_by_its_place_and_another_by_its_name() {
        let run = |run: RunId, names: &[&str], of_commits| Occasion {
            run,
            started_unix_s: run as f64,
            of_commits,
            findings: Findings {
                experiments: vec![found(names, &[("pools", &[1])], &[])],
                gates: Vec::new(),
            },
        };
        let seen = |of_commits| {
            let all = history(&[run(1, &["c1", "c2"], of_commits), run(2, &["c2", "c3"], of_commits)]);
            let each = all.into_iter().map(|series| (series.scenario, series.points.len()));
            each.collect::<Vec<_>>()
        };
        assert_eq!(seen(true), [("c2".to_owned(), 2), ("c3".to_owned(), 2)]);
        assert_eq!(seen(false), [("c1".to_owned(), 1), ("c2".to_owned(), 2), ("c3".to_owned(), 1)]);
    }

    #[test]
    fn otava_gets_a_line_for_each_run_and_a_column_for_each_scenario() {
        let lines: Vec<String> = history_otava(&made_up()).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "time,commit,run,try/head/requests_per_s,\"try/a,b/requests_per_s\"");
        assert_eq!(lines[3], "1970-01-04 00:00:07 +0000,<c3>,3,2,");
        assert_eq!((lines.len(), &*lines[5]), (6, "1970-01-06 00:00:07 +0000,<c5>,5,,1"));
    }

    #[test]
    fn the_csv_has_the_change_where_it_begins() {
        let csv = history_csv(&made_up());
        assert_eq!(csv.lines().filter(|line| line.ends_with(",2,1.8,2.2")).count(), 1, "{csv}");
        assert_eq!(csv.lines().filter(|line| line.ends_with(",,,")).count(), 4, "{csv}");
    }

    #[test]
    fn the_picture_has_each_point_with_its_interval_and_the_change() {
        let page = history_html(&made_up());
        let (wide, _) = page.split_once("</svg>").expect("a picture");
        assert_eq!(
            (wide.matches("class=\"whisker\"").count(), wide.matches("<g class=\"h1").count()),
            (4, 2)
        );
        assert!(wide.contains("from here 2.0x [1.8, 2.2]") && wide.contains("&lt;c3&gt;"), "{wide}");
        assert!(!page.contains("<c3>") && page.ends_with("</html>\n"));
    }
}
