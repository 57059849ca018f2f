//! The table of comparisons: each ratio with its interval and what may be said, and the noise floor.

use stats::{Design, LEVEL, Verdict};

use super::table::{Cell, Column, Row, Table, Unit, column};
use super::{By, Comparison, Estimate, NoiseFloor};
use crate::plan::Planned;

/// What is so without a noise floor.
pub const NO_FLOOR: &str = "No noise floor was measured, which takes the reference twice in three rounds: no difference can be claimed";

/// One line for each comparison; the last is the reference against itself. None where there is neither.
pub(super) fn table(
    planned: &Planned,
    design: Design,
    estimates: &[Estimate],
    comparisons: &[Comparison],
    floor: Option<&NoiseFloor>,
) -> Option<Table> {
    let mut rows: Vec<Row> = comparisons.iter().map(|c| row(planned, estimates, c)).collect();
    if let (Some(floor), Some(twin)) = (floor, planned.twin()) {
        let ratio = floor.ratio;
        let mut cells = vec![Cell::Text(planned.label(twin)), Cell::Text("itself".to_owned())];
        cells.extend([ratio.estimate, ratio.low, ratio.high].map(Cell::Number));
        cells.push(Cell::Text("noise floor".to_owned()));
        cells.push(Cell::Number(floor.rounds.into()));
        rows.push(Row { cells, block: !rows.is_empty() });
    }
    (!rows.is_empty()).then(|| Table {
        title: "Comparisons".to_owned(),
        about: about(design, floor, planned.threshold),
        columns: vec![
            Column::words("scenario"),
            Column::words("against"),
            column("ratio", Unit::Times),
            column("low", Unit::Times),
            column("high", Unit::Times),
            Column::words("verdict"),
            column("rounds", Unit::Count),
        ],
        keys: 2,
        rows,
        notes: Vec::new(),
    })
}

fn about(design: Design, floor: Option<&NoiseFloor>, threshold: f64) -> String {
    let percent = (1.0 - LEVEL) * 100.0;
    let valid = match design {
        Design::Once => format!("{percent:.0} % intervals"),
        Design::AtEachLook => format!("{percent:.0} % intervals, valid at all looks together"),
    };
    let floor = floor.map_or_else(
        || NO_FLOOR.to_owned(),
        |floor| {
            format!(
                "Noise floor {:.2}x (the reference against itself): smaller differences are noise",
                floor.smallest
            )
        },
    );
    format!(
        "How many times faster, inside rounds; {valid}; verdicts are corrected for all {}. Threshold {}. {}.",
        "comparisons (Holm)",
        share(threshold),
        floor
    )
}

/// A share as percent, without needless digits.
pub(super) fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from((percent - percent.round()).abs() > 1e-9);
    format!("{percent:.digits$} %")
}

fn row(planned: &Planned, estimates: &[Estimate], c: &Comparison) -> Row {
    let against = &estimates[c.against].scenario;
    let axis = |knob: &str| planned.axes.iter().find(|axis| axis.knob == knob);
    let other = match &c.by {
        By::System => against.system.clone(),
        By::Knob(knob) | By::Step(knob) => match (axis(knob), against.point.get(knob)) {
            (Some(axis), Some(value)) => format!("{knob}={}", axis.show(value)),
            _ => planned.label(against),
        },
    };
    let ratio = |of: fn(super::Ratio) -> f64| c.ratio.map(of).into();
    let cells = vec![
        Cell::Text(planned.label(&estimates[c.scenario].scenario)),
        Cell::Text(other),
        ratio(|r| r.estimate),
        ratio(|r| r.low),
        ratio(|r| r.high),
        Cell::Text(c.words()),
        Cell::Number(c.rounds.into()),
    ];
    Row { cells, block: false }
}

/// So many more rounds are not worth a promise.
pub(super) const FAR: u32 = 100;

impl Comparison {
    /// Its verdict in words.
    pub fn words(&self) -> String {
        let least = if self.at_least { ", at least" } else { "" };
        let step = matches!(self.by, By::Step(_));
        match self.verdict {
            Verdict::Slower if self.is_cliff() => format!("a cliff{least}"),
            Verdict::Slower if step => format!("more than its work{least}"),
            Verdict::Faster if step => format!("less than its work{least}"),
            Verdict::NoDifference if step => "as its work".to_owned(),
            Verdict::Faster => format!("faster{least}"),
            Verdict::Slower => format!("slower{least}"),
            Verdict::NoDifference => "no difference".to_owned(),
            Verdict::Undecided { more_rounds: Some(more) } if more > FAR => {
                format!("undecided, over {FAR} more rounds")
            }
            Verdict::Undecided { more_rounds: Some(1) } => "undecided, one more round".to_owned(),
            Verdict::Undecided { more_rounds: Some(more) } => format!("undecided, some {more} more rounds"),
            Verdict::Undecided { more_rounds: None } if self.ratio.is_none() => "not comparable".to_owned(),
            Verdict::Undecided { more_rounds: None } => "undecided".to_owned(),
        }
    }
}
