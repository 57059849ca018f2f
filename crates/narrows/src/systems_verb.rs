//! `narrows systems`: what runs here, at which version; what is missing, and how to get it; and whether a system keeps the
//! contract.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use lab::session::Bench;
use lab::session::conformance::{self, Check, Verdict};
use serde::Serialize;
use systems::build;
use systems::machine::{Limit, Placement};
use systems::probe::{self, Availability, Context};
use systems::{Catalog, Manifest};

use crate::common::{self, End, INTERRUPTED};

/// `narrows systems`
#[derive(clap::Args)]
pub struct Args {
    /// Check whether these keep docs/contracts.md: start, answer, count, stop, and every knob
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    check: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One system and its checks.
#[derive(Serialize)]
struct Checked {
    system: String,
    kept: bool,
    checks: Vec<Check>,
}

/// One system, as it is listed.
#[derive(Serialize)]
struct Listed {
    name: String,
    role: String,
    workloads: Vec<String>,
    language: String,
    about: String,
    available: bool,
    /// Names and versions of what it needs.
    versions: Vec<(String, String)>,
    missing: Vec<Missing>,
    knobs: Vec<Knob>,
    /// Why its manifest cannot be read; then the rest is empty.
    broken: Option<String>,
}

#[derive(Serialize)]
struct Missing {
    name: String,
    get: String,
    detail: String,
}

#[derive(Serialize)]
struct Knob {
    name: String,
    default: String,
    allowed: String,
    about: String,
}

/// Lists the systems, or checks some.
pub fn run(args: &Args) -> End {
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    let catalog = Catalog::load(&systems::catalog::find_home(None)?);
    let cancel = common::cancellation()?;
    let context = Context { home: catalog.home(), narrows: &narrows, cancel: &cancel };
    if !args.check.is_empty() {
        return check(args, &catalog, context, &cancel);
    }
    let mut listed: Vec<Listed> = catalog.manifests().map(|manifest| list(manifest, context)).collect();
    listed.extend(catalog.broken().map(|(name, error)| Listed::broken(name, error.one_line())));
    if args.json {
        common::print(&format!("{}\n", serde_json::to_string_pretty(&listed)?))?;
    } else {
        common::print(&text(&listed))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks each of the named systems; exit code 1 when one breaks a promise.
fn check(args: &Args, catalog: &Catalog, context: Context<'_>, cancel: &Arc<AtomicBool>) -> End {
    let manifests = args.check.iter().map(|name| catalog.get(name)).collect::<Result<Vec<_>, _>>()?;
    let placement = Placement::decide(&systems::machine::available_cores());
    let mut all = Vec::new();
    for manifest in manifests {
        let checks = match probe::availability(manifest, context) {
            Availability::Missing { what } => Some(conformance::missing(&what)),
            Availability::Ready { .. } => {
                let mut bench = Bench::new(
                    catalog.clone(),
                    context.narrows.to_owned(),
                    placement.clone(),
                    Limit::default(),
                    Arc::clone(cancel),
                );
                conformance::conformance(&mut bench, &manifest.name)
            }
        };
        let Some(checks) = checks else { return Ok(ExitCode::from(INTERRUPTED)) };
        let checked = Checked { system: manifest.name.clone(), kept: conformance::all_kept(&checks), checks };
        if !args.json {
            common::print(&checked.text())?;
        }
        all.push(checked);
    }
    if args.json {
        common::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    }
    Ok(if all.iter().all(|checked| checked.kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Checked {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.system);
        for check in &self.checks {
            let word = match check.verdict {
                Verdict::Kept => "ok",
                Verdict::Broken => "FAILED",
                Verdict::Excused => "-",
            };
            text.push_str(&format!("  {word:<6}  {}: {}\n", check.name, check.seen));
            if !check.remedy.is_empty() {
                text.push_str(&format!("          to do: {}\n", check.remedy));
            }
        }
        let failed = self.checks.iter().filter(|check| check.verdict == Verdict::Broken).count();
        let end = match failed {
            0 => "keeps docs/contracts.md".to_owned(),
            failed => {
                format!("{failed} of {} checks failed; docs/contracts.md has the rules", self.checks.len())
            }
        };
        text.push_str(&format!("  {} {end}\n\n", self.system));
        text
    }
}

fn list(manifest: &Manifest, context: Context<'_>) -> Listed {
    let (versions, missing) = match probe::availability(manifest, context) {
        Availability::Ready { versions } => (versions, Vec::from_iter(unbuilt(manifest, context))),
        Availability::Missing { what } => (
            Vec::new(),
            what.into_iter()
                .map(|need| Missing { name: need.name, get: need.get, detail: need.detail })
                .collect(),
        ),
    };
    let knobs = manifest.knobs.iter().map(|(name, knob)| Knob {
        name: name.clone(),
        default: knob.show(&knob.default),
        allowed: knob.allowed(),
        about: knob.about.clone(),
    });
    Listed {
        name: manifest.name.clone(),
        role: manifest.role.to_string(),
        workloads: manifest.workloads.iter().map(ToString::to_string).collect(),
        language: manifest.language.clone(),
        about: manifest.about.clone(),
        available: missing.is_empty(),
        versions,
        missing,
        knobs: knobs.collect(),
        broken: None,
    }
}

/// What was said when the system could not be built, as where a registry is out of reach.
fn unbuilt(manifest: &Manifest, context: Context<'_>) -> Option<Missing> {
    let detail = build::last_failure(manifest, context)?;
    let get = manifest.build.as_ref().and_then(|build| build.get.clone());
    Some(Missing {
        name: "a build that succeeds".to_owned(),
        get: get.unwrap_or_else(|| format!("narrows systems --check {} tries again", manifest.name)),
        detail,
    })
}

impl Listed {
    fn broken(name: &str, error: String) -> Self {
        Self {
            name: name.to_owned(),
            role: String::new(),
            workloads: Vec::new(),
            language: String::new(),
            about: String::new(),
            available: false,
            versions: Vec::new(),
            missing: Vec::new(),
            knobs: Vec::new(),
            broken: Some(error),
        }
    }
}

fn text(listed: &[Listed]) -> String {
    let mut text = String::new();
    for system in listed {
        if let Some(error) = &system.broken {
            text.push_str(&format!("{:<20} broken manifest: {error}\n\n", system.name));
            continue;
        }
        let state = if system.available { "runs here" } else { "missing" };
        let versions: Vec<String> =
            system.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        text.push_str(&format!(
            "{:<20} {:<7} {:<10} {} · {}\n{:20} {}\n",
            system.name,
            system.role,
            state,
            system.workloads.join(", "),
            versions.join(", "),
            "",
            system.about
        ));
        for need in &system.missing {
            text.push_str(&format!("{:20} needs {} ({}): {}\n", "", need.name, need.detail, need.get));
        }
        // A variant's are those of the plain system above it.
        let variant = system.name.contains('@');
        for knob in system.knobs.iter().filter(|_| !variant) {
            text.push_str(&format!(
                "{:20} --set {}={}  {} ({})\n",
                "", knob.name, knob.default, knob.about, knob.allowed
            ));
        }
        text.push('\n');
    }
    text
}
