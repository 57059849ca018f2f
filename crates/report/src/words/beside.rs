//! What a run says to published figures: shapes that are found again or not, and what is not as in the document.

use lab::experiment::grid::show_size;
use lab::findings::{
    Beside, BestOf, BestValues, ChangedOrder, Difference, FigureView, OrderOfTwo, Placed, Presence,
    RANKED_ERRORS, Range, Shape, ShapeFigures, SizeRatio,
};
use systems::{Point, Value};

use super::caption::{Caption, Captioned};
use crate::number::{chosen_percent, factor, factors, percent, several, times};

/// Up to this many missing rows are named. More are only counted.
const NAMED: usize = 6;

/// The published tables beside the run.
pub(crate) fn beside(e: &FigureView<'_>) -> Vec<Captioned> {
    let captioned = |beside: &Beside| Captioned { caption: caption(e, beside), table: beside.table.clone() };
    e.beside.iter().map(captioned).collect()
}

/// The words above and below a published table.
pub(crate) fn caption(e: &FigureView<'_>, beside: &Beside) -> Caption {
    let Beside { published, source, .. } = beside;
    let less = if e.figure.more_is_better() { "less" } else { "longer" };
    let what = match beside.best {
        BestOf::Rows => format!("how many times {less} than the best of these rows, then and today"),
        BestOf::Size => format!("how many times {less} than the best of the same size, then and today"),
        BestOf::Point => {
            format!("how many times {less} than the best of the same point, then and today")
        }
        BestOf::Clients => {
            let few = chosen_percent(RANKED_ERRORS);
            format!(
                "how many times {less} than the best of all; then each client at its best row with {few} errors or fewer, today all \
                 at one point"
            )
        }
    };
    let differences = beside.differences.iter().map(|each| difference(e, each));
    let is_noted = |of: &&Shape| is_shown(&of.figures) || matches!(of.figures, ShapeFigures::Void { .. });
    let (shown, absent): (Vec<&Shape>, Vec<&Shape>) = beside.shapes.iter().partition(is_noted);
    let not_run = (!absent.is_empty()).then(|| match absent.len() {
        1 => "1 more shape is not shown by the points that ran".to_owned(),
        more => format!("{more} more shapes are not shown by the points that ran"),
    });
    Caption {
        title: format!("Beside {published}"),
        about: format!("Beside the published table {published} ({source}): {what}."),
        notes: shown.into_iter().map(shape).chain(not_run).chain(differences).collect(),
    }
}

/// What today's points say to a published table's shapes. None if they show none of them.
pub(crate) fn beside_in_a_line(beside: &Beside) -> Option<String> {
    let count = |agrees: Option<bool>| {
        beside.shapes.iter().filter(|shape| is_shown(&shape.figures) && shape.agrees == agrees).count()
    };
    let (same, other, open) = (count(Some(true)), count(Some(false)), count(None));
    let shapes = |count: usize| several(count as u64, "shape");
    let said = match (same + other, open) {
        (0, 0) => return None,
        (0, open) => format!("{} measured, none decided; --details says why", shapes(open)),
        (decided, open) => {
            let different = if other > 0 { format!(", {other} different") } else { String::new() };
            let left = if open > 0 { format!("; {open} more not decided") } else { String::new() };
            format!("{same} of {} found again{different}{left}", shapes(decided))
        }
    };
    Some(format!("published figures ({}): {said}", beside.published))
}

/// Whether today's points show anything of a shape.
fn is_shown(figures: &ShapeFigures) -> bool {
    match figures {
        ShapeFigures::Order { in_both, .. } => *in_both > 1,
        // What had no figure then cannot be found again.
        ShapeFigures::Void { .. } => false,
        ShapeFigures::Times { today, .. } => today.is_some(),
        ShapeFigures::Cliff { today, .. } => today.is_some(),
        ShapeFigures::Knob { .. } | ShapeFigures::Framings { .. } | ShapeFigures::Failing { .. } => true,
    }
}

/// A shape behind its verdict.
pub(super) fn shape(shape: &Shape) -> String {
    let verdict = match shape.agrees {
        Some(true) => "agrees",
        Some(false) => "differs",
        None => "open",
    };
    let why = match (&shape.figures, shape.agrees) {
        _ if shape.at_limit => {
            "; the generator was at its limit: some of today's figures are lower bounds".to_owned()
        }
        // These say themselves what is not decided.
        (
            ShapeFigures::Order { .. }
            | ShapeFigures::Void { .. }
            | ShapeFigures::Framings { .. }
            | ShapeFigures::Failing { .. },
            _,
        ) => String::new(),
        (ShapeFigures::Times { today: None, .. } | ShapeFigures::Cliff { today: None, .. }, _) => {
            String::new()
        }
        (_, None) => "; these rounds do not decide it".to_owned(),
        (_, Some(_)) => String::new(),
    };
    format!("{verdict}: {}{why}", figures(&shape.figures))
}

fn figures(of: &ShapeFigures) -> String {
    match of {
        ShapeFigures::Order { then, today, at, same_point, in_both, pairs } => {
            let few = if *in_both < 2 { "; fewer than two of them are in both" } else { "" };
            let (then, today, changes) = (order(then), order(today), changes(pairs));
            if *same_point {
                return format!("order at {}: then {then}; today {today}{changes}{few}", point(at));
            }
            let [own, at] = match at.is_empty() {
                true => [String::new(), String::new()],
                false => [", each at its best".to_owned(), format!(", all at {}", point(at))],
            };
            format!("order then{own}: {then}; today{at}: {today}{changes}{few}")
        }
        ShapeFigures::Failing { system, at, then, today } => format!(
            "{system} failed {} of its requests at {} then, and fails {} today",
            percent(*then),
            point(at),
            percent(*today)
        ),
        ShapeFigures::Void { system, today } => {
            let today = match today {
                Presence::Measured => "today it has one",
                Presence::NoFigure => "today it has none either",
                Presence::NotRun => "it was not run today",
            };
            format!("{system} had no figure that counts then; {today}")
        }
        ShapeFigures::Knob { knob, then, today, best } => format!(
            "`{knob}` from its worst to its best value: {} then, {} today{}",
            range(*then),
            range(*today),
            best.as_ref().map_or_else(String::new, best_values)
        ),
        ShapeFigures::Times { of, against, system, size, then, today, missing } => {
            let system = system.as_ref().map_or_else(String::new, |system| format!(" with {system}"));
            let size = size.map_or_else(String::new, |size| format!(" at {}", show_size(size)));
            let today = today
                .map_or_else(|| absent_today(missing), |today| format!(", and takes {} today", range(today)));
            format!("{of} took {} the time of {against}{system}{size} then{today}", range(*then))
        }
        ShapeFigures::Cliff { framing, active, from, to, then, today } => {
            let today = today.map_or_else(
                || "; it was not measured today".to_owned(),
                |today| format!(", and there are {} fewer today", factor(today)),
            );
            format!(
                "with framing {framing} and active {active} there were {} fewer frames of {to} than of {from} bytes then{today}",
                factor(*then)
            )
        }
        ShapeFigures::Framings { of, against, active, sizes } => framings([of, against, active], sizes),
    }
}

/// `concurrency 128, pool_size 32`.
fn point(at: &Point) -> String {
    let knobs: Vec<String> = at.iter().map(|(knob, value)| format!("{knob} {value}")).collect();
    knobs.join(", ")
}

/// Which of two systems have no figure today.
fn absent_today(missing: &[String]) -> String {
    match missing {
        [] => "; they did not run with the same runtime today".to_owned(),
        [one] => format!("; {one} has no figure today"),
        several => format!("; {} have no figure today", several.join(" and ")),
    }
}

/// Systems, the best first: `A > B (2.0x less)`.
fn order(placed: &[Placed]) -> String {
    let place = |placed: &Placed| {
        let least = if placed.at_least { " at least" } else { "" };
        let less =
            if placed.behind > 1.0 { format!(" ({} less)", factor(placed.behind)) } else { String::new() };
        format!("{}{least}{less}", placed.system)
    };
    let all: Vec<String> = placed.iter().map(place).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(" > ") }
}

/// The pairs of systems whose order is not the same or not known, by kind.
fn changes(pairs: &[OrderOfTwo]) -> String {
    let kinds = [
        (ChangedOrder::AtLimit, "the generator was at its limit, which leaves open the order of", ""),
        (ChangedOrder::Undecided, "these rounds do not decide the order of", ""),
        (ChangedOrder::Level, "", "are level in one of the two"),
        (ChangedOrder::Turned, "", "are the other way round today"),
    ];
    let kind = |(kind, before, behind): (ChangedOrder, &str, &str)| {
        let named = pairs.iter().filter(|pair| pair.order == kind);
        let named: Vec<String> = named.map(|pair| format!("{} and {}", pair.first, pair.second)).collect();
        let said = format!("{before} {} {behind}", named.join(", "));
        if named.is_empty() { String::new() } else { format!("; {}", said.trim()) }
    };
    kinds.map(kind).concat()
}

fn best_values(best: &BestValues) -> String {
    let values = |values: &[Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let near = match best.as_good {
        _ if best.then == best.today => "",
        Some(true) => ", from which it is less than 5 % away",
        None => ", which may be as good",
        Some(false) => "",
    };
    format!("; the best is {} then, {} today{near}", values(&best.then), values(&best.today))
}

fn framings([of, against, active]: [&String; 3], sizes: &[SizeRatio]) -> String {
    let ratio =
        |at: &SizeRatio| format!("{} then and {} today at {}", times(at.then), times(at.today), at.size);
    let ratios: Vec<String> = sizes.iter().map(ratio).collect();
    let which = |wanted: Option<bool>, said: &str| {
        let found = sizes.iter().filter(|at| at.same == wanted).map(|at| at.size.to_string());
        let found: Vec<String> = found.collect();
        if found.is_empty() { String::new() } else { format!("; {said} at {}", found.join(", ")) }
    };
    format!(
        "frames with framing {of} against framing {against}, both with active {active}: {}{}{}",
        ratios.join(", "),
        which(None, "these rounds do not decide it"),
        which(Some(false), "it is not the same")
    )
}

fn range(range: Range) -> String {
    factors(range.low, range.high)
}

/// What is not as in the document.
pub(super) fn difference(e: &FigureView<'_>, difference: &Difference) -> String {
    match difference {
        Difference::Knob { knob, then, today } => {
            let axis = e.axes.iter().find(|axis| axis.knob == *knob);
            let show = |value: &Value| axis.map_or_else(|| value.to_string(), |axis| axis.show(value));
            let today: Vec<String> = today.iter().map(show).collect();
            format!("`{knob}`: {} then, {} today", show(then), today.join(", "))
        }
        Difference::StandIn { system, stands_for, runtime } => {
            let runtime = runtime.as_ref().map_or_else(String::new, |runtime| format!(" with {runtime}"));
            format!("{system} stands for {stands_for}{runtime} today")
        }
        Difference::Version { system, then, today } => {
            format!("{system}: version {then} then, {today} today")
        }
        Difference::NotRun { systems } => format!("not run today: {}", systems.join(", ")),
        Difference::Unranked { system } => format!("{system} ran, and none of its rows may be ranked"),
        Difference::UnrankedThere { system } => {
            format!("{system} has no row at this point that may be ranked")
        }
        Difference::Unpooled { system } => {
            format!(
                "{system} has no pool: it opens as many connections as it has callers, so it is not ranked among pools"
            )
        }
        Difference::RowsMissing { system, rows, of } => {
            let count = rows.len();
            let named = if count <= NAMED { format!(": {}", rows.join("; ")) } else { String::new() };
            format!(
                "{count} of {of} published rows of {system} did not run today, or have no figure that may be compared{named}"
            )
        }
    }
}
