//! `narrows systems --install`: prints what each system lacks, in one line, and gets what Debian provides of it: packages of this
//! machine's release are installed, those of another release are unpacked in the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{self, Form};
use lab::plan::plan;
use systems::probe::{self, Availability, Context, Missing};
use systems::{Catalog, Debian, Manifest, debian, install};

use crate::common::{self, End, INTERRUPTED};

/// A system that cannot run here, and what it lacks.
type Lacking<'a> = (&'a Manifest, Vec<Missing>);

/// Which of the systems the user wants.
pub enum Asked {
    /// The user named them.
    Named,
    /// All of them; of the variants from other releases only these, which a run without arguments needs.
    Usual(BTreeSet<String>),
}

impl Asked {
    fn wants(&self, (manifest, what): &Lacking<'_>) -> bool {
        match self {
            Self::Named => true,
            Self::Usual(usual) if by_release(what) => usual.contains(&manifest.name),
            // A variant that a person has to set up, because most people do not want it.
            Self::Usual(_) => by_packages(what) || manifest.variant.is_none(),
        }
    }
}

/// The systems that `narrows run` needs without arguments.
pub fn usual(catalog: &Catalog) -> BTreeSet<String> {
    let all = experiment::list(catalog.homes()).into_iter().filter_map(|(_, read)| read.ok());
    let requests: Vec<Request> = all
        .filter(|experiment| !experiment.on_request)
        .map(|experiment| Request { experiment, form: Form::Quick, overrides: Overrides::default() })
        .collect();
    // What is wrong with an experiment is said by its run.
    let plan = plan(&requests, catalog, &BTreeMap::new(), 0);
    plan.into_iter().flat_map(|plan| plan.trials).map(|trial| trial.scenario.system).collect()
}

/// Gets what these systems lack. The exit code is 1 if something that Debian provides is still missing at the end. What a
/// person has to install does not count.
pub fn install(chosen: &[&Manifest], context: Context<'_>, asked: &Asked) -> End {
    let mut before = lacking(chosen, context);
    let not_asked: Vec<Lacking<'_>> = before.extract_if(.., |lacking| !asked.wants(lacking)).collect();
    common::print_lines(told(&before))?;
    let others: Vec<&str> = not_asked
        .iter()
        .filter(|(_, what)| by_release(what))
        .map(|(system, _)| system.name.as_str())
        .collect();
    if !others.is_empty() {
        common::print_lines(format!("By name it also fetches what these lack: {}\n", others.join(", ")))?;
    }
    let (packages, releases) = (packages(&before), releases(&before));
    if packages.is_empty() && releases.is_empty() {
        return Ok(if context.cancel.load(Ordering::Relaxed) {
            INTERRUPTED.into()
        } else {
            ExitCode::SUCCESS
        });
    }
    let all = packages.is_empty()
        || install::install(&packages).context("cannot start `sh` to install packages")?;
    let all = fetch(&releases, context)? && all;
    if context.cancel.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED.into());
    }
    let again: Vec<&Manifest> = before.iter().map(|(manifest, _)| *manifest).collect();
    let mut after = lacking(&again, context);
    after.retain(|(_, what)| by_packages(what) || by_release(what));
    if after.is_empty() {
        common::print_lines(match packages.is_empty() {
            true => "Everything that Debian provides is here now.\n",
            false => "Everything that Debian provides is installed now.\n",
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    // If nothing could be installed, the same lines were printed above.
    if all {
        common::print_lines(told(&after))?;
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

/// Fetches packages of releases. Returns whether all are here.
fn fetch(releases: &BTreeSet<Debian>, context: Context<'_>) -> anyhow::Result<bool> {
    let mut printed = Ok(());
    let mut say = |line: &str| {
        let now = common::print_lines(format!("{line}\n"));
        printed = std::mem::replace(&mut printed, Ok(())).and(now);
    };
    let failed = debian::fetch(releases, context.cancel, &mut say);
    printed?;
    for (debian, why) in &failed {
        let packages = debian.packages.join(", ");
        common::print_lines(format!("{packages} of {} cannot be fetched: {why}\n", debian.release))?;
    }
    Ok(failed.is_empty())
}

fn releases(lacking: &[Lacking<'_>]) -> BTreeSet<Debian> {
    lacking.iter().flat_map(|(_, what)| what).filter_map(|need| need.debian.clone()).collect()
}

fn by_release(what: &[Missing]) -> bool {
    what.iter().any(|need| need.debian.is_some())
}

fn by_packages(what: &[Missing]) -> bool {
    what.iter().any(|need| !need.packages.is_empty())
}

fn packages(lacking: &[Lacking<'_>]) -> Vec<String> {
    let packages = lacking.iter().flat_map(|(_, what)| what).flat_map(|need| need.packages.iter().cloned());
    packages.collect::<BTreeSet<_>>().into_iter().collect()
}

/// One line per system.
fn told(lacking: &[Lacking<'_>]) -> String {
    let (debian, others): (Vec<_>, Vec<_>) = lacking.iter().partition(|(_, what)| by_packages(what));
    let (releases, by_hand): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, what)| by_release(what));
    let mut text = String::new();
    if debian.is_empty() && releases.is_empty() {
        text.push_str("Nothing that Debian provides is missing.\n");
    }
    section(&mut text, "Debian packages provide what these systems lack:", &debian);
    let title =
        "Releases of Debian have what these systems lack. It is unpacked in the cache, and not installed:";
    section(&mut text, title, &releases);
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
