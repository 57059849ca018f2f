//! `narrows doctor`: is this machine fit to measure on, and what to change.

use std::fs;
use std::process::ExitCode;

use systems::machine::{Environment, Limit, Placement};

use crate::common::{self, End};

/// One look at the machine: what was found, and what to do if it is not as it should be.
struct Finding {
    what: &'static str,
    found: String,
    remedy: Option<&'static str>,
}

/// Files that 10,000 connections need on one side.
const FILES: u64 = 10_064;
/// Accept queues shorter than this overflow when thousands of connections are made at once.
const BACKLOG: u64 = 4096;

/// Prints what was found.
pub fn run(files: Limit) -> End {
    let environment = Environment::read(files);
    let findings = look(&environment);
    let mut text =
        format!("{}, {} cores, {}\n", environment.cpu, environment.cores.len(), environment.kernel);
    for finding in &findings {
        let mark = if finding.remedy.is_some() { "!" } else { " " };
        text.push_str(&format!("{mark} {:<22} {}\n", finding.what, finding.found));
        if let Some(remedy) = finding.remedy {
            text.push_str(&format!("  {:<22} -> {remedy}\n", ""));
        }
    }
    let wrong = findings.iter().filter(|finding| finding.remedy.is_some()).count();
    let end = match wrong {
        0 => "fit to measure on\n".to_owned(),
        1 => "one thing to change\n".to_owned(),
        _ => format!("{wrong} things to change\n"),
    };
    common::print(&(text + &end))?;
    Ok(ExitCode::SUCCESS)
}

fn look(environment: &Environment) -> Vec<Finding> {
    let mut findings = processor(environment);
    findings.extend(network(environment));
    findings
}

fn check(what: &'static str, found: String, bad: bool, remedy: &'static str) -> Finding {
    Finding { what, found, remedy: bad.then_some(remedy) }
}

fn processor(environment: &Environment) -> Vec<Finding> {
    let placement = Placement::decide(&environment.cores);
    let governor = environment.governor.clone().unwrap_or_else(|| "not told".to_owned());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let busy = load.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    let steal = steal_share(environment.cores.len());
    vec![
        check(
            "cores",
            format!("generator {:?}, systems {:?}", placement.generator, placement.system),
            placement.shared,
            "use a machine with two cores or more: system and generator disturb each other on one",
        ),
        check(
            "other work",
            format!("load average {busy}"),
            busy > 0.5,
            "stop what else runs; wait until the load average is near 0",
        ),
        check(
            "stolen time",
            format!("{:.1} % since the machine started", steal * 100.0),
            steal > 0.01,
            "a neighbour on the host takes the processor; use a machine of your own, or more rounds",
        ),
        check(
            "frequency governor",
            governor.clone(),
            ["powersave", "ondemand", "conservative", "schedutil"].contains(&governor.as_str()),
            "cpupower frequency-set -g performance",
        ),
    ]
}

fn network(environment: &Environment) -> Vec<Finding> {
    let sysctl = |name: &str| environment.sysctls.get(name).cloned().unwrap_or_default();
    let backend = reactor::Reactor::new(reactor::Config::MESSAGES).map(|mut made| made.io().backend());
    let backlog = sysctl("net.core.somaxconn");
    let ports = sysctl("net.ipv4.ip_local_port_range");
    let reuse = sysctl("net.ipv4.tcp_tw_reuse");
    let Limit { before, now, hard } = environment.files;
    vec![
        check(
            "I/O interface",
            backend.map_or_else(|error| error.to_string(), str::to_owned),
            sysctl("kernel.io_uring_disabled") == "2",
            "sysctl kernel.io_uring_disabled=0; epoll is used meanwhile",
        ),
        check(
            "open files",
            format!("{now} (found {before}, hard limit {hard})"),
            now < FILES,
            "raise the hard limit for 10,000 connections: /etc/security/limits.conf, or `ulimit -Hn 20000` as root",
        ),
        check(
            "accept queue",
            format!("net.core.somaxconn = {backlog}"),
            backlog.parse().is_ok_and(|found: u64| found < BACKLOG),
            "sysctl net.core.somaxconn=4096",
        ),
        check(
            "ports",
            format!("net.ipv4.ip_local_port_range = {ports}"),
            systems::machine::ports() < 20_000,
            "sysctl net.ipv4.ip_local_port_range='32768 60999'",
        ),
        check(
            "ports in TIME_WAIT",
            format!("net.ipv4.tcp_tw_reuse = {reuse}"),
            reuse == "0",
            "sysctl net.ipv4.tcp_tw_reuse=2: without it one request per connection runs out of ports",
        ),
    ]
}

/// The share of processor time since the machine started that a hypervisor gave to others.
fn steal_share(cores: usize) -> f64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    systems::machine::stolen_s() / (seconds * cores as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_one_core_and_few_files_is_told_so() {
        let environment = Environment {
            cores: vec![0],
            files: Limit { before: 256, now: 256, hard: 256 },
            ..Environment::default()
        };
        let findings = look(&environment);
        let told = |what| findings.iter().any(|finding| finding.what == what && finding.remedy.is_some());
        assert!(told("cores") && told("open files") && !told("accept queue"));
    }
}
