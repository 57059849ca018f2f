//! Where the CPU time of each scenario went, over all rounds. Pure.

use profile::Profile;

use crate::observation::{Observation, Outcome, Scenario};

/// The profile of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiled {
    /// The scenario.
    pub scenario: Scenario,
    /// The sum of the profiles of its trials.
    pub profile: Profile,
}

/// The scenarios that have profiles, in the order of their first trials. Profiles of one run have the same period; if a damaged one
/// has not, its scenario is left out.
pub fn profiles(observations: &[Observation]) -> Vec<Profiled> {
    let mut found: Vec<(&Scenario, Vec<Profile>)> = Vec::new();
    for observation in observations {
        let Outcome::Measured(m) = &observation.outcome else { continue };
        let (Some(profile), scenario) = (&m.profile, &observation.trial.scenario) else { continue };
        match found.iter_mut().find(|(known, _)| *known == scenario) {
            Some((_, profiles)) => profiles.push(profile.clone()),
            None => found.push((scenario, vec![profile.clone()])),
        }
    }
    let sum = |(scenario, profiles): (&Scenario, Vec<Profile>)| {
        Some(Profiled { scenario: scenario.clone(), profile: Profile::merge(&profiles).ok()? })
    };
    found.into_iter().filter_map(sum).collect()
}
