//! The profiles of a run in the formats of other tools.

use anyhow::bail;
use lab::profiles::Profiled;
use profile::{Profile, formats};

use super::series;

/// Stacks in lines. The first frame of each is its scenario.
pub(super) fn folded(profiles: &[Profiled]) -> anyhow::Result<String> {
    Ok(formats::folded(&under_scenarios(profiles)?))
}

/// One profile for each scenario.
pub(super) fn speedscope(profiles: &[Profiled], title: &str) -> anyhow::Result<String> {
    any(profiles)?;
    let named: Vec<(String, &Profile)> =
        profiles.iter().map(|of| (series(&of.scenario), &of.profile)).collect();
    Ok(formats::speedscope(&named, title))
}

/// Protocol buffers. The first frame of each stack is its scenario.
pub(super) fn pprof(profiles: &[Profiled]) -> anyhow::Result<Vec<u8>> {
    Ok(formats::pprof(&under_scenarios(profiles)?))
}

/// All profiles as one, in which the scenarios are the roots.
fn under_scenarios(profiles: &[Profiled]) -> anyhow::Result<Profile> {
    any(profiles)?;
    let named: Vec<Profile> =
        profiles.iter().map(|of| of.profile.clone().under(&series(&of.scenario))).collect();
    Ok(Profile::merge(&named)?)
}

fn any(profiles: &[Profiled]) -> anyhow::Result<()> {
    if profiles.is_empty() {
        bail!(
            "this run has no profiles: `try` and `run --full` make them of servers where the kernel allows it; see `narrows doctor`"
        );
    }
    Ok(())
}
