//! Verdicts as rows: the table of effects, the table of comparisons with the noise floor, and that of two runs.

use lab::compare::{Matched, RunComparison};
use lab::experiment::Figure;
use lab::findings::{
    By, Cell, Column, Comparison, Effect, FigureView, Ratio, Row, Table, Unit, Withheld, column,
};
use stats::{LEVEL, Verdict};

use super::caption::{Caption, Captioned};
use super::missing;
use crate::number::{chosen_percent, interval_in_hundredths, several};

/// More rounds than these are not worth a prediction.
pub(super) const FAR: u32 = 40;

/// A comparison's verdict.
pub(crate) fn verdict(figure: Figure, c: &Comparison) -> String {
    let least = if c.at_least { ", at least" } else { "" };
    let step = matches!(c.by, By::Step(_));
    let hardly = c.ratio.is_some_and(|ratio| ratio.is_hardly_measured());
    let open = if hardly { "hardly measured" } else { "undecided" };
    match c.verdict {
        Verdict::Slower if c.is_cliff() => format!("a cliff{least}"),
        Verdict::Slower if step => format!("more than its work{least}"),
        Verdict::Faster if step => format!("less than its work{least}"),
        Verdict::NoDifference if step => "as its work".to_owned(),
        Verdict::Undecided { more_rounds: Some(more) } if more <= FAR => {
            format!("{open}, {}", several(more.into(), "more round"))
        }
        Verdict::Undecided { .. } => match c.withheld {
            Some(why) => format!("{open}: {}", withheld(why)),
            None => open.to_owned(),
        },
        Verdict::Faster | Verdict::Slower => format!("{}{least}", word(figure, c.verdict)),
        plain => word(figure, plain).to_owned(),
    }
}

/// Why there is no verdict, in a few words.
pub(super) fn withheld(why: Withheld) -> &'static str {
    match why {
        Withheld::LowerBound => "the generator was at its limit",
        Withheld::OtherBuild => "another build differs",
        Withheld::ShortWindow => "too few answers in each window",
        Withheld::Drift => "the speed still changed in the windows",
        Withheld::Compiling => "compilers still worked in the windows",
        Withheld::Overdriven => "the rate is too near the limit",
    }
}

/// A cost is less or more.
pub(super) fn word(figure: Figure, verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster if figure.is_cost() => "less",
        Verdict::Slower if figure.is_cost() => "more",
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "no difference",
        Verdict::Undecided { .. } => "undecided",
    }
}

/// A ratio that says how many times better one is than another, as it is shown: of costs, how many times as much it needs.
pub(super) fn in_its_direction(figure: Figure, ratio: Ratio) -> Ratio {
    if figure.is_cost() { ratio.inverse() } else { ratio }
}

fn ratio_columns() -> [Column; 3] {
    ["ratio", "low", "high"].map(|name| column(name, Unit::Times))
}

/// The cells are empty if the ratio is hardly measured, except for the end that excludes 1.
fn ratio_cells(ratio: Option<Ratio>) -> [Cell; 3] {
    if let Some(ratio) = ratio.filter(|ratio| ratio.is_hardly_measured()) {
        let end = |end: f64, excludes: bool| if excludes { Cell::Number(end) } else { Cell::Empty };
        return [Cell::Empty, end(ratio.low, ratio.low > 1.0), end(ratio.high, ratio.high < 1.0)];
    }
    [ratio.map(|r| r.estimate), ratio.map(|r| r.low), ratio.map(|r| r.high)].map(Cell::from)
}

/// How sure intervals are, in percent.
fn percent_sure() -> String {
    chosen_percent(1.0 - LEVEL)
}

/// A line for each knob; None where nothing varies but the work.
pub(super) fn effects(e: &FigureView<'_>) -> Option<Captioned> {
    let caption = Caption {
        title: "Main effects".to_owned(),
        about: "What each knob does where it does most: its best value against its worst (undecided: the two that lie farthest apart); \
                the interval allows for the choice. Of values that are shown to be equally good, the one nearest to the default is the best."
            .to_owned(),
        notes: Vec::new(),
    };
    (!e.effects.is_empty()).then(|| Captioned {
        caption,
        table: Table {
            columns: ["knob", "best", "worst"]
                .map(Column::words)
                .into_iter()
                .chain(ratio_columns())
                .chain(["effect", "depends on", "best scenario"].map(Column::words))
                .collect(),
            keys: 1,
            rows: e.effects.iter().map(|effect| effect_row(e, effect)).collect(),
        },
    })
}

fn effect_row(e: &FigureView<'_>, effect: &Effect) -> Row {
    let scenario = |at: usize| e.estimates.get(at).map(|estimate| &estimate.scenario);
    let value = |at: usize| {
        let axis = e.axes.iter().find(|axis| axis.knob == effect.knob)?;
        Some(axis.show(scenario(at)?.point.get(&effect.knob)?))
    };
    let text = |word: Option<String>| word.map_or(Cell::Empty, Cell::Text);
    // What is not decided has no best value.
    let claimed = (effect.verdict == Verdict::Faster).then_some(effect);
    let depends: Vec<&str> = effect.depends_on.iter().map(|i| i.knob.as_str()).collect();
    let word = match effect.verdict {
        Verdict::NoDifference => "flat",
        Verdict::Undecided { .. } => "undecided",
        Verdict::Faster | Verdict::Slower => "matters",
    };
    let mut cells = vec![
        Cell::Text(effect.knob.clone()),
        text(claimed.and_then(|effect| value(effect.best))),
        text(claimed.and_then(|effect| value(effect.worst))),
    ];
    cells.extend(ratio_cells(Some(effect.ratio)));
    cells.extend([
        Cell::Text(word.to_owned()),
        text((!depends.is_empty()).then(|| depends.join(", "))),
        text(claimed.and_then(|effect| Some(e.label(scenario(effect.best)?)))),
    ]);
    Row { cells, block: false }
}

/// One line for each comparison; the last is the reference against itself. None where there is neither.
pub(super) fn comparisons(e: &FigureView<'_>) -> Option<Captioned> {
    let (made, impossible): (Vec<&Comparison>, Vec<&Comparison>) =
        e.comparisons.iter().partition(|c| c.is_possible());
    let mut rows: Vec<Row> = made.into_iter().filter_map(|c| comparison_row(e, c)).collect();
    let yardstick = e.estimates.iter().find(|estimate| e.is_yardstick(&estimate.scenario));
    if let (Some(floor), Some(yardstick)) = (e.noise_floor, yardstick) {
        let mut cells = vec![Cell::Text(e.label(&yardstick.scenario)), Cell::Text("itself".to_owned())];
        cells.extend(ratio_cells(Some(floor.ratio)));
        cells.extend([Cell::Text("noise floor".to_owned()), Cell::Number(floor.rounds.into())]);
        rows.push(Row { cells, block: !rows.is_empty() });
    }
    let left_out = (!impossible.is_empty()).then(|| left_out(e, impossible.len()));
    let notes = left_out.into_iter().collect();
    let caption = Caption { title: "Comparisons".to_owned(), about: how_compared(e), notes };
    (!rows.is_empty()).then(|| Captioned {
        caption,
        table: Table {
            columns: ["scenario", "against"]
                .map(Column::words)
                .into_iter()
                .chain(ratio_columns())
                .chain([Column::words("verdict"), column("rounds", Unit::Count)])
                .collect(),
            keys: 2,
            rows,
        },
    })
}

/// The noise of a run with a base. A run with a reference shows it among the comparisons.
pub(crate) fn noise(e: &FigureView<'_>) -> Option<String> {
    let (floor, base) = (e.noise_floor?, e.base.as_ref()?);
    let name = e.label(&base.scenario);
    Some(match floor.ratio.is_hardly_measured() {
        true => format!("noise: trials of {name} differ too much among themselves to say by how much"),
        false => format!("noise: {name} beside itself is {}", interval_in_hundredths(floor.ratio)),
    })
}

fn left_out(e: &FigureView<'_>, impossible: usize) -> String {
    let of = e.comparisons.len();
    format!("{impossible} of {of} comparisons cannot be made: {}", missing::of_all(e))
}

fn comparison_row(e: &FigureView<'_>, c: &Comparison) -> Option<Row> {
    let scenario = |at: usize| e.estimates.get(at).map(|estimate| &estimate.scenario);
    let against = scenario(c.against)?;
    let other = match c.by.knob() {
        None => against.system.clone(),
        Some(knob) => {
            let axis = e.axes.iter().find(|axis| axis.knob == knob);
            let value = axis.zip(against.point.get(knob)).map(|(axis, value)| axis.show(value));
            value.map_or_else(|| e.label(against), |value| format!("{knob}={value}"))
        }
    };
    let mut cells = vec![Cell::Text(e.label(scenario(c.scenario)?)), Cell::Text(other)];
    cells.extend(ratio_cells(c.ratio.map(|ratio| in_its_direction(e.figure, ratio))));
    cells.extend([Cell::Text(verdict(e.figure, c)), Cell::Number(c.rounds.into())]);
    Some(Row { cells, block: false })
}

fn how_compared(e: &FigureView<'_>) -> String {
    let valid = if e.design.is_once() { "" } else { ", valid at all looks together" };
    let what = if e.figure.is_cost() { "How many times as much it needs" } else { "How many times faster" };
    // A sentence about one of several knobs or systems.
    let alone = match e.comparisons.len() {
        0 | 1 => "",
        _ => ", each by itself (a sentence that chose one of several has a wider one)",
    };
    format!(
        "{what}, inside rounds; {} intervals{valid}{alone}, for this machine and this hour; verdicts are corrected for all comparisons (Holm). Threshold {}.",
        percent_sure(),
        chosen_percent(e.threshold)
    )
}

/// The scenarios that two runs have in common.
pub(crate) fn compared(found: &RunComparison) -> Captioned {
    let two = found.matched.iter().any(|m| m.a != m.b);
    let several = found.matched.windows(2).any(|pair| pair[0].experiment != pair[1].experiment);
    let mut columns: Vec<Column> = several.then(|| Column::words("experiment")).into_iter().collect();
    columns.push(Column::words(if two { "first" } else { "scenario" }));
    columns.extend(two.then(|| Column::words("second")));
    let keys = columns.len();
    columns.extend(ratio_columns());
    columns.extend(["verdict", "rounds"].map(Column::words));
    let row = |m: &Matched| {
        let mut cells: Vec<Cell> = several.then(|| Cell::Text(m.experiment.clone())).into_iter().collect();
        cells.push(Cell::Text(m.a.clone()));
        cells.extend(two.then(|| Cell::Text(m.b.clone())));
        match (m.ratio, m.estimate) {
            (None, Some(estimate)) => {
                let estimate = if m.figure.is_cost() { 1.0 / estimate } else { estimate };
                cells.extend([Cell::Number(estimate), Cell::Empty, Cell::Empty]);
            }
            (ratio, _) => cells.extend(ratio_cells(ratio.map(|ratio| in_its_direction(m.figure, ratio)))),
        }
        cells.push(Cell::Text(m.because.map_or(word(m.figure, m.verdict), super::runs::side).to_owned()));
        cells.push(Cell::Text(format!("{} and {}", m.rounds.0, m.rounds.1)));
        Row { cells, block: false }
    };
    let costs = found.matched.iter().any(|m| m.figure.is_cost());
    let costs = if costs { " (of costs: how many times as much it needs)" } else { "" };
    let known = found.matched.iter().any(|m| m.ratio.is_some());
    let intervals = known.then(|| {
        let about = super::runs::about(found);
        format!(", with {} intervals{about}; verdicts are corrected for all (Holm)", percent_sure())
    });
    let caption = Caption {
        title: format!("{} against {}", found.b, found.a),
        about: format!(
            "How many times faster {} is than {}{costs}{}.",
            found.b,
            found.a,
            intervals.unwrap_or_default()
        ),
        notes: Vec::new(),
    };
    Captioned { caption, table: Table { keys, columns, rows: found.matched.iter().map(row).collect() } }
}
