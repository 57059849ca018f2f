//! The generators on other machines that drove the trials of an experiment, and how well they kept together.

use measurement::{Path, Together};
use serde::{Deserialize, Serialize};

use super::measurements;
use crate::observation::Observation;

/// The generators of an experiment's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generators {
    /// Each of them, in the order in which they were named.
    pub each: Vec<Driver>,
    /// The trials that were driven from other machines.
    pub trials: u32,
    /// How far apart their windows were at most, with the error of their clocks, in seconds. None if no trial says.
    pub skew_s: Option<f64>,
    /// The largest such distance as a share of the window.
    pub skew_share: Option<f64>,
    /// The trials that do not say how far apart their windows were.
    pub skew_unknown: u32,
    /// The way between them and the system. None if it was not measured.
    pub path: Option<Path>,
}

/// What one generator did in all trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Driver {
    /// Its machine, as it was named.
    pub machine: String,
    /// The trials in which it drove.
    pub trials: u32,
    /// Its verified operations in them, as a share of those of all generators. None if there was none.
    pub share: Option<f64>,
    /// The most connections that it had.
    pub connections: u64,
    /// The largest share of a window in which its busiest core worked.
    pub busiest_core: f64,
}

/// The generators of these trials. None if no trial was driven from another machine.
pub(super) fn generators(observations: &[&Observation]) -> Option<Generators> {
    let all = measurements(observations).filter_map(|(_, m)| Some((m, m.together.as_ref()?)));
    let trials: Vec<(f64, &Together)> = all.map(|(m, together)| (m.elapsed_s, together)).collect();
    let most = trials.iter().map(|(_, together)| together.generators.len()).max()?;
    let skews = || trials.iter().filter_map(|(elapsed_s, together)| Some((together.skew_s?, *elapsed_s)));
    let shares =
        skews().filter(|(_, elapsed_s)| *elapsed_s > 0.0).map(|(skew_s, elapsed_s)| skew_s / elapsed_s);
    Some(Generators {
        each: (0..most).map(|position| driver(position, &trials)).collect(),
        trials: trials.len() as u32,
        skew_s: skews().map(|(skew_s, _)| skew_s).reduce(f64::max),
        skew_share: shares.reduce(f64::max),
        skew_unknown: trials.iter().filter(|(_, together)| together.skew_s.is_none()).count() as u32,
        path: trials.iter().find_map(|(_, together)| together.path),
    })
}

/// The generator at a position. A trial with few connections has only the first generators.
fn driver(position: usize, trials: &[(f64, &Together)]) -> Driver {
    let mut driver = Driver::default();
    let (mut own, mut all) = (0u64, 0u64);
    for (_, together) in trials {
        let Some(generated) = together.generators.get(position) else { continue };
        driver.machine.clone_from(&generated.machine);
        driver.trials += 1;
        driver.connections = driver.connections.max(generated.connections);
        driver.busiest_core = driver.busiest_core.max(generated.busiest_core);
        own = own.saturating_add(generated.successes);
        all = together.generators.iter().fold(all, |sum, one| sum.saturating_add(one.successes));
    }
    driver.share = (all > 0).then(|| own as f64 / all as f64);
    driver
}
