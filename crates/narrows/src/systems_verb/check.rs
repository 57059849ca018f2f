//! `narrows systems --check`: checks whether systems keep docs/contracts.md, one promise at a time.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::session::Bench;
use lab::session::conformance::{self, Check, CheckVerdict};
use serde::Serialize;
use systems::Catalog;
use systems::machine::{Limit, Placement};
use systems::probe::{self, Availability, Context};

use super::Args;
use crate::common::{self, End, INTERRUPTED};

/// One system and its checks.
#[derive(Serialize)]
struct Checked {
    system: String,
    kept: bool,
    checks: Vec<Check>,
}

/// Checks each of the named systems. The exit code is 1 if one breaks a promise.
pub fn check(args: &Args, catalog: &Catalog, context: Context<'_>, cancel: &Arc<AtomicBool>) -> End {
    let manifests = args.check.iter().map(|name| catalog.get(name)).collect::<Result<Vec<_>, _>>()?;
    let placement = Placement::decide(&systems::machine::available_cores());
    let mut all = Vec::new();
    for manifest in manifests {
        let checks = match probe::availability(manifest, context) {
            Availability::Missing { what } => Some(conformance::missing(&what)),
            Availability::Ready { versions } => {
                let mut bench = Bench::new(
                    catalog.clone(),
                    context.narrows.to_owned(),
                    placement.clone(),
                    Limit::default(),
                    Arc::clone(cancel),
                );
                bench.record_versions(&manifest.name, &versions);
                conformance::conformance(&mut bench, &manifest.name)
            }
        };
        let Some(checks) = checks else { return Ok(ExitCode::from(INTERRUPTED)) };
        let checked = Checked { system: manifest.name.clone(), kept: conformance::all_kept(&checks), checks };
        if !args.json {
            common::print_lines(checked.text())?;
        }
        all.push(checked);
    }
    if args.json {
        common::print(format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    }
    Ok(if all.iter().all(|checked| checked.kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Checked {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.system);
        for check in &self.checks {
            let word = match check.verdict {
                CheckVerdict::Kept => "ok",
                CheckVerdict::Broken => "FAILED",
                CheckVerdict::Excused => "-",
            };
            text.push_str(&format!("  {word:<6}  {}: {}\n", check.name, check.seen));
            if !check.remedy.is_empty() {
                text.push_str(&format!("          to do: {}\n", check.remedy));
            }
        }
        let failed = self.checks.iter().filter(|check| check.verdict == CheckVerdict::Broken).count();
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
