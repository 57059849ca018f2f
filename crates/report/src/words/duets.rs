//! What became of the duets of an experiment, and what its ratios therefore mean.

use lab::duet::{Duets, Refusal};
use lab::findings::Shared;

use crate::number::{percent, several};

/// The sentence about the duets. None if the experiment has none.
pub(crate) fn duets(e: &Shared) -> Option<String> {
    let found = e.duets.as_ref()?;
    let Duets { held, refused, .. } = *found;
    let all = held + refused;
    let why = found.why.map(because).unwrap_or_default();
    if found.count {
        let duets = several(held as u64, "duet");
        let others = match refused {
            0 => String::new(),
            _ => format!("; {refused} of {all} do not count, the last because {why}"),
        };
        return Some(format!("{duets} at the same time on the same cores: {MEANING}{others}"));
    }
    Some(match refused {
        0 => "no trials were at the same time: these systems cannot be a duet here".to_owned(),
        _ => format!("no duets count, so each system was measured alone: {why} (in {refused} of {all})"),
    })
}

const MEANING: &str = "rates are those of shared cores, and ratios are the ones under mutual contention";

/// Why a duet was refused.
fn because(why: Refusal) -> String {
    match why {
        Refusal::Failed => "a trial failed".to_owned(),
        Refusal::Generator { share } => {
            format!("a generator worked or waited for its core for {} of the window", percent(share))
        }
        Refusal::Idle { share } => format!(
            "a system worked or waited for its core for only {} of the window, so something else was the limit (more connections keep it busy: -c)",
            percent(share)
        ),
        Refusal::Crowded { share } => format!(
            "other programs took so much of the core that a system was on it for only {} of the window (root can go first: \
             --priority)",
            percent(share)
        ),
        Refusal::Unequal { share } => {
            format!("one system got only {} of the CPU time of both", percent(share))
        }
        Refusal::Apart { ratio } => format!("one system was {ratio:.1}x as fast as the other"),
    }
}
