//! The conditions of a gate as cases for CI: what was seen of each scenario, and whether the condition is met.

use lab::condition::{Bound, Condition};
use lab::experiment::Figure;
use lab::findings::{ConditionOutcome, FigureView, Findings, Gated, Tested, Unit};

use super::cases::{Case, Grade};
use super::missing::{missing, without_ratio};
use super::verdicts::withheld;
use crate::number::{interval_in_thousandths, show};

/// The name of the suite of conditions.
pub const SUITE: &str = "fail-if";

/// A case for each condition of a run and each scenario that it limits. Without conditions there is none.
pub fn gated(found: &Findings) -> Vec<Case> {
    let of_gate = |gate: &lab::findings::Gate| {
        let of_scenario = |gated: &Gated| {
            let e = found.experiments[gated.experiment].view(gated.figure);
            let scenario = e.label(&e.estimates[gated.scenario].scenario);
            let case = condition(&gate.condition, &scenario, e.figure, &gated.tested);
            match why_not_seen(&e, gated) {
                Some(why) => Case { words: format!("{}: {why}", case.words), ..case },
                None => case,
            }
        };
        let cases: Vec<Case> = gate.scenarios.iter().map(of_scenario).collect();
        if cases.is_empty() { vec![without_comparison(&gate.condition)] } else { cases }
    };
    found.gates.iter().flat_map(of_gate).collect()
}

/// A condition on one scenario.
pub fn condition(condition: &Condition, scenario: &str, figure: Figure, tested: &Tested) -> Case {
    let text = &condition.text;
    let in_unit = |value: f64| show(value, Unit::of(figure));
    let seen = tested.seen.map(|seen| match condition.bound {
        Bound::Ratio(_) => format!("{} of the baseline", interval_in_thousandths(seen)),
        Bound::Figure(_) => {
            let [value, low, high] = [seen.estimate, seen.low, seen.high].map(in_unit);
            format!("{value} [{low}, {high}]")
        }
    });
    let seen = seen.map_or(String::new(), |seen| format!("{seen}: "));
    let certain = tested.certain_beyond(condition, figure).map_or(String::new(), |beyond| {
        let side = if condition.below { "below" } else { "above" };
        let beyond = match condition.bound {
            Bound::Ratio(_) => format!("{beyond:.3}"),
            Bound::Figure(_) => in_unit(beyond),
        };
        format!("; with this noise it is certain only {side} {beyond}")
    });
    let (grade, answer) = match tested.answer {
        ConditionOutcome::Met => (Grade::Worse, ""),
        ConditionOutcome::Excluded => (Grade::Fine, "certainly not "),
        ConditionOutcome::Inconclusive => (Grade::Inconclusive, "inconclusive: "),
        ConditionOutcome::Unjudged => (Grade::Unjudged, ""),
    };
    Case {
        suite: SUITE.to_owned(),
        name: format!("{text}: {scenario}"),
        grade,
        words: format!("{scenario}: {seen}{answer}{text}{certain}"),
    }
}

/// The case of a condition about figures that nothing was compared in.
fn without_comparison(condition: &Condition) -> Case {
    Case {
        suite: SUITE.to_owned(),
        name: condition.text.clone(),
        grade: Grade::Unjudged,
        words: format!("nothing was compared: {}", condition.text),
    }
}

/// Why nothing is seen of a scenario. None if something is, or if another build is the reason.
fn why_not_seen(e: &FigureView<'_>, gated: &Gated) -> Option<String> {
    if gated.tested.seen.is_some() {
        return None;
    }
    if let Some(why) = gated.tested.withheld {
        return Some(withheld(why).to_owned());
    }
    let compared = e.comparisons.iter().find(|c| c.scenario == gated.scenario && e.is_beside_base(c));
    let row = e.estimates.get(gated.scenario)?;
    match compared.filter(|c| c.ratio.is_none()) {
        Some(c) => Some(without_ratio(e, c)),
        None => row.missing(e, e.figure).map(|why| missing(e, row, &why)),
    }
}
