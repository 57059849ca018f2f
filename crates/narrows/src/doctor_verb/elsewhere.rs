//! `narrows doctor --sut MACHINE --gen MACHINE`: the doctor on each machine, the pipe to it, its interface, and the way from each
//! generator to the system.

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use machines::{Hello, Machine, Offset, Remote};
use report::number;
use serde::Serialize;
use systems::Limit;
use systems::network::Interface;

use super::Args;
use crate::common::{self, End};
use crate::examined::Examined;
use crate::fleet::generators::Generators;
use crate::fleet::{self, AgentReply, At, Order, path, sut};

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
    machines: &'a [Classified],
}

/// What was found on a machine.
#[derive(Serialize)]
struct Classified {
    machine: String,
    #[serde(rename = "use")]
    purpose: Use,
    agent: Hello,
    path: Path,
    /// The interface through which load goes. Null if it is not known where the system or the generators are.
    interface: Option<Interface>,
    /// The way that load takes from this generator to the system, in both directions. Null for a system, and if it was not
    /// measured.
    way: Option<measurement::Path>,
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
        found.push(Classified {
            machine: remote.machine().to_string(),
            purpose,
            agent: remote.hello.clone(),
            path,
            interface: None,
            way: None,
            doctor,
        });
    }
    // What was found before is shown even if the way cannot be measured.
    if let Err(error) = ways(remotes, &mut found, args.address, (files, cancel)) {
        common::say(format_args!("the way is not measured: {error:#}"));
    }
    if cancel.load(Ordering::Relaxed) {
        bail!("interrupted");
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

/// Finds the interfaces of all machines, and measures the way from each generator alone, if there is a single system.
fn ways(
    mut remotes: Vec<Remote>,
    found: &mut [Classified],
    address: Option<IpAddr>,
    (files, cancel): (Limit, &AtomicBool),
) -> anyhow::Result<()> {
    let systems = found.iter().filter(|found| found.purpose == Use::Sut).count();
    let [own, others @ ..] = found else { return Ok(()) };
    if systems != 1 || others.is_empty() {
        return Ok(());
    }
    let generators = remotes.split_off(1);
    let Some(mut system) = remotes.pop() else { return Ok(()) };
    let usual = (*system.machine() == Machine::Local).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let at = address.or(usual).map_or(At::Reached, At::Own);
    let (server, threads) = sut::serve(&mut system, at)?;
    let at = At::Own(server.ip());
    own.interface = interface(&mut system, at)?;
    // Each alone: together they share the link of the system.
    for (mut generator, found) in generators.into_iter().zip(others) {
        found.interface = interface(&mut generator, At::Towards(server.ip()))?;
        let mut generators = Generators::reached(vec![generator], files);
        let mut counts = || sut::counts(&mut system, &Order::Counts);
        match path::measure(&mut generators, server, threads, &mut counts, cancel) {
            Ok(way) => found.way = way,
            Err(error) => {
                common::say(format_args!("the way from {} is not measured: {error:#}", found.machine))
            }
        }
    }
    sut::counts(&mut system, &Order::StopServing)?;
    Ok(())
}

fn interface(remote: &mut Remote, at: At) -> anyhow::Result<Option<Interface>> {
    Ok(fleet::describe(std::slice::from_mut(remote), at)?
        .into_iter()
        .find_map(|described| described.interface))
}

fn examine(remote: &mut Remote, cancel: &AtomicBool) -> anyhow::Result<Examined> {
    fleet::order(remote, &Order::Examine)?;
    match wait(remote, cancel)? {
        AgentReply::Examined(mut examined) => {
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
        AgentReply::Weighed(FILLER) => {
            Ok(FILLER as f64 / began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE))
        }
        _ => bail!(fleet::unasked(remote)),
    }
}

fn wait(remote: &mut Remote, cancel: &AtomicBool) -> anyhow::Result<AgentReply> {
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

fn text(found: &[Classified], width: usize) -> String {
    let mut text = String::new();
    for Classified { machine, purpose, agent, path, interface, way, doctor } in found {
        let purpose = match purpose {
            Use::Sut => "system under test",
            Use::Gen => "generator",
        };
        let Path { clock, pipe_bytes_per_s } = path;
        let micros = |nanos: u64| number::micros(nanos as f64 / 1e3);
        let side = if clock.ahead_ns < 0 { "behind" } else { "ahead" };
        text += &format!("{machine} ({purpose}; narrows {}, {})\n", agent.version, agent.architecture);
        text += &format!(
            "  pipe: round trip {}, clock {} {side} (known to ±{}), takes {}\n",
            micros(clock.round_trip_ns),
            number::seconds(clock.ahead_ns.unsigned_abs() as f64 / 1e9),
            fleet::shown_clock(clock),
            number::bytes_per_second(*pipe_bytes_per_s),
        );
        text.extend(interface.iter().map(|interface| format!("  interface: {}\n", shown(interface))));
        text.extend(way.iter().map(|found| format!("  way to the system: {}\n", report::way(*found))));
        let report = super::text(doctor, width.saturating_sub(2));
        text.extend(report.lines().map(|line| format!("  {line}\n")));
    }
    // What another machine says does not control this terminal.
    printable::printable_lines(&text)
}

fn shown(interface: &Interface) -> String {
    let Interface { name, mtu, megabits_per_s, offloads, interrupts } = interface;
    let mut parts = vec![format!("{name}, packets of up to {mtu} bytes")];
    parts.extend(megabits_per_s.map(|speed| format!("link of {speed} Mbit/s")));
    let state = |(name, on): (&String, &bool)| format!("{name} {}", if *on { "on" } else { "off" });
    match offloads.is_empty() {
        true => parts.push("offloads unknown without `ethtool`".to_owned()),
        false => parts.extend(offloads.iter().map(state)),
    }
    let of_core = |(core, percent): (&usize, &u64)| format!("core {core} {percent} %");
    if !interrupts.is_empty() {
        let cores: Vec<String> = interrupts.iter().map(of_core).collect();
        parts.push(format!("interrupts: {}", cores.join(" ")));
    }
    parts.join(", ")
}
