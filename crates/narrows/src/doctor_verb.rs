//! `narrows doctor`: says whether this machine is fit for measurements, and what to change.
//!
//! It reads facts about the machine, makes a short measurement of Narrows by itself, and judges both.

mod facts;
mod judge;
mod trial_run;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::bail;
use serde::Serialize;
use systems::machine::{Limit, Placement};

use crate::common::{self, End};
use facts::Facts;
use judge::Finding;
use trial_run::TrialRun;

/// `narrows doctor`
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    cpu: &'a str,
    kernel: &'a str,
    cores: &'a [usize],
    /// The number of findings with a remedy.
    problems: usize,
    findings: &'a [Finding],
    /// The measurement. Null if it failed; the findings say why.
    measured: Option<&'a TrialRun>,
}

/// Prints the findings.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let facts = Facts::read(files);
    let placement = Placement::decide(&facts.environment.cores);
    let measured = trial_run::measure(&placement, &cancel).map_err(|error| format!("{error:#}"));
    if cancel.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    let mut findings = judge::machine(&facts, &placement);
    findings.extend(judge::trial_run(&measured));
    let text = if args.json {
        let environment = &facts.environment;
        let json = Json {
            cpu: &environment.cpu,
            kernel: &environment.kernel,
            cores: &environment.cores,
            problems: problems(&findings),
            findings: &findings,
            measured: measured.as_ref().ok(),
        };
        serde_json::to_string_pretty(&json)? + "\n"
    } else {
        text(&facts, &findings, common::width())
    };
    common::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn problems(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.remedy.is_some()).count()
}

fn text(facts: &Facts, findings: &[Finding], width: usize) -> String {
    let environment = &facts.environment;
    let machine = format!("{}, {} cores, {}", environment.cpu, environment.cores.len(), environment.kernel);
    let mut text = common::wrapped(&machine, width, "", "") + "\n";
    for finding in findings {
        let mark = if finding.remedy.is_some() { "!" } else { " " };
        let line =
            |text: &str, first: &str, further: &str| common::wrapped(text, width, first, further) + "\n";
        let label = format!("{mark} {:<22} ", finding.what);
        text.push_str(&line(&finding.found, &label, &" ".repeat(label.len())));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&line(remedy, "    -> ", "       "));
        }
    }
    text.push_str(&match problems(findings) {
        0 => "this machine is fit for measurements\n".to_owned(),
        1 => "one thing to change\n".to_owned(),
        problems => format!("{problems} things to change\n"),
    });
    text
}
