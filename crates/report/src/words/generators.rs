//! The generators on other machines: a line for each, one for their windows, and one for the way to the system.

use lab::findings::{Driver, Generators, Shared};
use measurement::Path;

use crate::number::{bytes_per_second, micros, percent, seconds, several};

/// A line for each generator, and what they have in common. Empty if the generator was on the machine of the systems.
pub(crate) fn generators(e: &Shared) -> Vec<String> {
    let Some(found) = &e.generators else { return Vec::new() };
    let mut lines: Vec<String> = found.each.iter().map(driver).collect();
    lines.extend(windows(found));
    lines.extend(found.path.map(|path| format!("the way to the system: {}", way(path))));
    lines
}

/// The same in one line.
pub(crate) fn generators_in_a_line(e: &Shared) -> Option<String> {
    let found = e.generators.as_ref()?;
    let windows = windows(found).map_or_else(String::new, |windows| format!("; {windows}"));
    Some(format!("driven by {}{windows}", several(found.each.len() as u64, "generator")))
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

/// How far apart their windows were. The window of a single generator is apart from no other.
fn windows(found: &Generators) -> Option<String> {
    if found.each.len() < 2 {
        return None;
    }
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
    if found.skew_unknown == 0 || found.skew_s.is_none() {
        return Some(apart);
    }
    let trials = several(found.trials.into(), "trial");
    Some(format!("{apart}; {} of {trials} do not say it", found.skew_unknown))
}

/// What a way between machines can do.
pub fn way(path: Path) -> String {
    let carries = match path.bytes_per_s {
        Some(bytes) => format!("{} each way", bytes_per_second(bytes)),
        None => "more than these machines can send".to_owned(),
    };
    let round_trip = micros(path.round_trip_us);
    let bulk = path.bulk_us.map_or_else(String::new, |[_, _, mib_us]| {
        format!(", an exchange of 1 MiB each way takes at least {}", micros(mib_us))
    });
    format!("an answer takes at least {round_trip}{bulk}, and the network carries {carries}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_apart_only_if_there_are_several() {
        let found = |generators: usize, skew_s: Option<f64>, skew_unknown| Generators {
            each: vec![Driver::default(); generators],
            trials: 4,
            skew_s,
            skew_share: skew_s,
            skew_unknown,
            path: None,
        };
        assert_eq!(windows(&found(1, Some(0.5), 0)), None);
        let said = |skew_s, unknown| windows(&found(2, skew_s, unknown)).expect("a sentence");
        assert!(said(Some(0.5), 0).ends_with("(50 % of their length)"), "{}", said(Some(0.5), 0));
        assert!(said(Some(0.5), 1).ends_with("1 of 4 trials do not say it"));
        assert!(said(None, 4).contains("not known"));
    }
}
