//! `narrows doctor`: says whether this machine is fit for measurements, and what to change.
//!
//! It reads facts about the machine, makes a short measurement of Narrows by itself, and judges both.

mod elsewhere;
mod facts;
mod judge;
mod trial_run;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use systems::machine::{Limit, Placement};

use crate::common::{self, End};
use crate::examined::{Examined, Finding};
use crate::fleet::MachineList;
use crate::fleet_args;
use facts::Facts;

/// `narrows doctor`
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Examine these machines instead, on which systems will run: ssh://[user@]host[:port], exec:COMMAND that gives a pipe
    /// to `narrows agent`, slurm:N for nodes of a Slurm cluster, or local; separated by commas
    #[arg(long, value_name = "MACHINES")]
    sut: Vec<MachineList>,
    /// Examine these machines instead, on which generators will run
    #[arg(long = "gen", value_name = "MACHINES")]
    generators: Vec<MachineList>,
    /// Measure the way from each generator to this address of the machine of --sut [default: the address at which ssh reached
    /// it, or 127.0.0.1 for local]
    #[arg(long, value_name = "ADDRESS", requires = "sut", value_parser = fleet_args::address)]
    address: Option<IpAddr>,
}

/// Prints the findings.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    if !args.sut.is_empty() || !args.generators.is_empty() {
        return elsewhere::run(args, files, &cancel);
    }
    let examined = examine(files, &cancel)?;
    let text = if args.json {
        serde_json::to_string_pretty(&examined)? + "\n"
    } else {
        text(&examined, common::width())
    };
    common::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Examines this machine.
///
/// # Errors
/// The user interrupted.
pub fn examine(files: Limit, cancel: &AtomicBool) -> anyhow::Result<Examined> {
    let facts = Facts::read(files);
    let placement = Placement::decide(&facts.environment.cores);
    let measured = trial_run::measure(&placement, cancel).map_err(|error| format!("{error:#}"));
    if cancel.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    let mut findings = judge::machine(&facts, &placement);
    findings.extend(judge::trial_run(&measured));
    let environment = facts.environment;
    Ok(Examined {
        cpu: environment.cpu,
        kernel: environment.kernel,
        cores: environment.cores,
        problems: problems(&findings),
        findings,
        measured: measured.ok(),
    })
}

fn problems(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.remedy.is_some()).count()
}

fn text(examined: &Examined, width: usize) -> String {
    let Examined { cpu, kernel, cores, findings, .. } = examined;
    let machine = format!("{cpu}, {} cores, {kernel}", cores.len());
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
    text.push_str(&match examined.problems {
        0 => "this machine is fit for measurements\n".to_owned(),
        1 => "one thing to change\n".to_owned(),
        problems => format!("{problems} things to change\n"),
    });
    text
}
