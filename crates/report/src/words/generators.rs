//! The generators on other machines: a line for each, one for their windows, and one for the way to the system.

use lab::findings::{Driver, ExperimentFindings, Generators};
use lab::observation::Path;

use crate::number::{bytes_per_second, micros, percent, seconds, several};

/// A line for each generator, and what they have in common. Empty if the generator was on the machine of the systems.
pub(crate) fn generators(e: &ExperimentFindings) -> Vec<String> {
    let Some(found) = &e.generators else { return Vec::new() };
    let mut lines: Vec<String> = found.each.iter().map(driver).collect();
    lines.push(windows(found));
    lines.extend(found.path.map(way));
    lines
}

/// The same in one line.
pub(crate) fn generators_in_a_line(e: &ExperimentFindings) -> Option<String> {
    let found = e.generators.as_ref()?;
    Some(format!("driven by {}; {}", several(found.each.len() as u64, "generator"), windows(found)))
}

fn driver(driver: &Driver) -> String {
    let Driver { machine, trials, share, connections, busiest_core } = driver;
    let share = share
        .map_or_else(|| "no operation".to_owned(), |share| format!("{} of the operations", percent(share)));
    format!(
        "{machine}: {share} in {}, over at most {}; its busiest core worked at most {} of the time",
        several((*trials).into(), "trial"),
        several(*connections, "connection"),
        percent(*busiest_core)
    )
}

fn windows(found: &Generators) -> String {
    let apart = match (found.skew_s, found.skew_share) {
        (Some(skew_s), Some(share)) => {
            format!(
                "their windows were apart by at most {} ({} of their length)",
                seconds(skew_s),
                percent(share)
            )
        }
        _ => "it is not known how far apart their windows were".to_owned(),
    };
    match found.skew_unknown {
        unknown if unknown > 0 && found.skew_s.is_some() => {
            format!("{apart}; {} of {} do not say it", unknown, several(found.trials.into(), "trial"))
        }
        _ => apart,
    }
}

fn way(path: Path) -> String {
    let round_trip = micros(path.round_trip_us);
    match path.bytes_per_s {
        Some(bytes) => format!(
            "the way to the system: an answer takes {round_trip} at least, and the network carries {} each way",
            bytes_per_second(bytes)
        ),
        None => format!(
            "the way to the system: an answer takes {round_trip} at least, and the network carries more than these machines could send"
        ),
    }
}
