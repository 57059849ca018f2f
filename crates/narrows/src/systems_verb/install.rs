//! `narrows systems --install`: prints what each system lacks, in one line, and installs what Debian provides of it.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use systems::probe::{self, Availability, Context, Missing};
use systems::{Manifest, install};

use crate::common::{self, End, INTERRUPTED};

/// A system that cannot run here, and what it lacks.
type Lacking<'a> = (&'a Manifest, Vec<Missing>);

/// Installs what these systems lack. The exit code is 1 if something that Debian provides is still missing at the end. What a
/// person has to install does not count. `named` says whether the user named the systems.
pub fn install(chosen: &[&Manifest], context: Context<'_>, named: bool) -> End {
    let before = lacking(chosen, context);
    common::print(&told(&before, named))?;
    let packages = packages(&before);
    if packages.is_empty() {
        return Ok(if context.cancel.load(Ordering::Relaxed) {
            INTERRUPTED.into()
        } else {
            ExitCode::SUCCESS
        });
    }
    let all = install::install(&packages).context("cannot start `sh` to install packages")?;
    if context.cancel.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED.into());
    }
    let again: Vec<&Manifest> = before.iter().map(|(manifest, _)| *manifest).collect();
    let mut after = lacking(&again, context);
    after.retain(|(_, what)| by_packages(what));
    if after.is_empty() {
        common::print("Everything that Debian provides is installed now.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    // If nothing could be installed, the same lines were printed above.
    if all {
        common::print(&told(&after, true))?;
    }
    Ok(ExitCode::FAILURE)
}

fn lacking<'a>(manifests: &[&'a Manifest], context: Context<'_>) -> Vec<Lacking<'a>> {
    let judged = manifests.iter().map(|manifest| (*manifest, probe::availability(manifest, context)));
    let missing = judged.filter_map(|(manifest, availability)| match availability {
        Availability::Missing { what } => Some((manifest, what)),
        Availability::Ready { .. } => None,
    });
    missing.collect()
}

fn by_packages(what: &[Missing]) -> bool {
    what.iter().any(|need| !need.packages.is_empty())
}

fn packages(lacking: &[Lacking<'_>]) -> Vec<String> {
    let packages = lacking.iter().flat_map(|(_, what)| what).flat_map(|need| need.packages.iter().cloned());
    packages.collect::<BTreeSet<_>>().into_iter().collect()
}

/// One line per system. A variant that a person has to set up is left out unless systems were `named`, because most
/// people do not want it.
fn told(lacking: &[Lacking<'_>], named: bool) -> String {
    let (debian, by_hand): (Vec<_>, Vec<_>) = lacking.iter().partition(|(_, what)| by_packages(what));
    let asked = |(manifest, _): &&Lacking<'_>| named || manifest.variant.is_none();
    let by_hand: Vec<&Lacking<'_>> = by_hand.into_iter().filter(asked).collect();
    let mut text = String::new();
    if debian.is_empty() {
        text.push_str("Nothing that Debian provides is missing.\n");
    }
    section(&mut text, "Debian packages provide what these systems lack:", &debian);
    section(
        &mut text,
        "These need something that you have to install (`narrows systems` says how):",
        &by_hand,
    );
    text
}

fn section(text: &mut String, title: &str, lacking: &[&Lacking<'_>]) {
    if lacking.is_empty() {
        return;
    }
    text.push_str(&format!("{title}\n"));
    for (manifest, what) in lacking {
        let needs: Vec<&str> = what.iter().map(|need| need.name.as_str()).collect();
        text.push_str(&format!("  {:<20} {}\n", manifest.name, needs.join(", ")));
    }
}
