//! `narrows doctor --sut MACHINE --gen MACHINE`: the doctor on each machine, and the pipe to it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use machines::{Hello, Machine, Offset, Remote};
use report::number;
use serde::Serialize;
use systems::Limit;

use super::{Args, Examined};
use crate::common::{self, End};
use crate::fleet::{self, Answer, Order};

/// How long a machine may take to be examined. It takes two seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many bytes are sent to measure the bandwidth of a pipe.
const FILLER: usize = 1 << 20;
/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(50);

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Use {
    Sut,
    Gen,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    /// The number of findings with a remedy, on all machines.
    problems: usize,
    machines: &'a [Found],
}

/// What was found on a machine.
#[derive(Serialize)]
struct Found {
    machine: String,
    #[serde(rename = "use")]
    purpose: Use,
    agent: Hello,
    path: Path,
    doctor: Examined,
}

/// The pipe to a machine.
#[derive(Serialize)]
struct Path {
    #[serde(flatten)]
    clock: Offset,
    /// How fast the pipe takes bytes. It says nothing of the network between the machines that carries load.
    pipe_bytes_per_s: f64,
}

/// Examines the machines one after the other, because several may be the same one.
pub fn run(args: &Args, files: Limit, cancel: &AtomicBool) -> End {
    let named = |lists: &[fleet::MachineList], purpose| -> Vec<(Machine, Use)> {
        lists.iter().flat_map(|list| &list.0).map(|machine| (machine.clone(), purpose)).collect()
    };
    let wanted = [named(&args.sut, Use::Sut), named(&args.generators, Use::Gen)].concat();
    let machines: Vec<Machine> = wanted.iter().map(|(machine, _)| machine.clone()).collect();
    let mut remotes = fleet::reach(&machines, files, cancel)?;
    let mut found = Vec::new();
    for (remote, (_, purpose)) in remotes.iter_mut().zip(wanted) {
        let path = Path { clock: remote.offset()?, pipe_bytes_per_s: bandwidth(remote, cancel)? };
        let doctor = examine(remote, cancel)?;
        found.push(Found {
            machine: remote.machine().to_string(),
            purpose,
            agent: remote.hello.clone(),
            path,
            doctor,
        });
    }
    let problems = found.iter().map(|found| found.doctor.problems).sum();
    let text = if args.json {
        serde_json::to_string_pretty(&Json { problems, machines: &found })? + "\n"
    } else {
        text(&found, common::width())
    };
    common::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn examine(remote: &mut Remote, cancel: &AtomicBool) -> anyhow::Result<Examined> {
    fleet::order(remote, &Order::Examine)?;
    match wait(remote, cancel)? {
        Answer::Examined(mut examined) => {
            examined.problems = super::problems(&examined.findings);
            Ok(*examined)
        }
        _ => bail!(fleet::unasked(remote)),
    }
}

fn bandwidth(remote: &mut Remote, cancel: &AtomicBool) -> anyhow::Result<f64> {
    let began = Instant::now();
    fleet::order(remote, &Order::Weigh("x".repeat(FILLER)))?;
    match wait(remote, cancel)? {
        Answer::Weighed(FILLER) => Ok(FILLER as f64 / began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE)),
        _ => bail!(fleet::unasked(remote)),
    }
}

fn wait(remote: &mut Remote, cancel: &AtomicBool) -> anyhow::Result<Answer> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = fleet::answer(remote, GLANCE)? {
            return Ok(answer);
        }
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if Instant::now() >= deadline {
            bail!(remote.error(format!("it was not examined within {} s", PATIENCE.as_secs())));
        }
    }
}

fn text(found: &[Found], width: usize) -> String {
    let mut text = String::new();
    for Found { machine, purpose, agent, path, doctor } in found {
        let purpose = match purpose {
            Use::Sut => "system under test",
            Use::Gen => "generator",
        };
        let Path { clock, pipe_bytes_per_s } = path;
        let micros = |nanos: u64| number::micros(nanos as f64 / 1e3);
        let side = if clock.ahead_ns < 0 { "behind" } else { "ahead" };
        text += &format!("{machine} ({purpose}; narrows {}, {})\n", agent.version, agent.architecture);
        text += &format!(
            "  path: round trip {}, clock {} {side} (known to ±{}); its pipe takes {}\n",
            micros(clock.round_trip_ns),
            number::seconds(clock.ahead_ns.unsigned_abs() as f64 / 1e9),
            fleet::shown_clock(clock),
            number::bytes_per_second(*pipe_bytes_per_s),
        );
        let report = super::text(doctor, width.saturating_sub(2));
        text.extend(report.lines().map(|line| format!("  {line}\n")));
    }
    // What another machine says does not control this terminal.
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}
