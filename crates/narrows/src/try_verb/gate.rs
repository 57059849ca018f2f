//! `--fail-if`: which arms or values certainly meet a condition.

use lab::findings::{By, Comparison, ExperimentFindings, Findings};

use crate::condition::Condition;

/// A line for each arm or value that certainly meets a condition, or that cannot be judged. Arms are set beside the base
/// arm, and values of a knob beside that of the base. If there are several builds, all of them must meet it.
pub fn broken(conditions: &[Condition], found: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    for condition in conditions {
        let mut judged = false;
        let first_builds = found.experiments.iter().filter(|e| e.repeats.is_none());
        for e in first_builds.filter(|e| condition.is_about(e.figure)) {
            let base = e.base.as_ref().map(|base| base.scenario.system.as_str());
            let is_base = |index: usize| base == Some(e.estimates[index].scenario.system.as_str());
            let asked = e.comparisons.iter().enumerate();
            for (at, c) in asked.filter(|(_, c)| c.by != By::System || is_base(c.against)) {
                judged = true;
                let label = e.label(&e.estimates[c.scenario].scenario);
                let builds: Vec<&Comparison> =
                    builds(found, e).filter_map(|e| e.comparisons.get(at)).collect();
                let holds =
                    |c: &&Comparison| c.ratio.is_some_and(|ratio| condition.holds(e.figure, ratio, c.p));
                match c.ratio.filter(|_| builds.iter().all(|c| c.ratio.is_some() && !c.held_back)) {
                    Some(ratio) if builds.iter().all(holds) => {
                        lines.push(condition.line(&label, e.figure, ratio));
                    }
                    Some(_) => {}
                    None => lines.push(format!("cannot be judged: {label}: {}", condition.text)),
                }
            }
        }
        if !judged {
            lines.push(format!("cannot be judged: nothing was compared: {}", condition.text));
        }
    }
    lines
}

/// The experiment and those that repeat it with other builds.
fn builds<'a>(
    found: &'a Findings,
    first: &'a ExperimentFindings,
) -> impl Iterator<Item = &'a ExperimentFindings> {
    let repeats = found
        .experiments
        .iter()
        .filter(|e| e.figure == first.figure && e.repeats.as_deref() == Some(first.name.as_str()));
    std::iter::once(first).chain(repeats)
}
