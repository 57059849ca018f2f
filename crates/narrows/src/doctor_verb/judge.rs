//! What of a machine is in the way of measuring, and the command that mends it. Pure.

use std::io::ErrorKind;

use report::number;
use serde::Serialize;
use systems::machine::{Limit, Placement};

use super::facts::Facts;
use super::trial_run::TrialRun;

/// One look at the machine: what was found, and what to do if it is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// The command that mends it, or what to do where there is none; `None` where nothing is wrong.
    pub remedy: Option<String>,
}

/// Files that 10,000 connections need on one side.
const FILES: u64 = 10_064;
/// Accept queues shorter than this overflow when thousands of connections are made at once.
const BACKLOG: u64 = 4096;
/// Fewer ports than this are used up by 10,000 connections and what waits after them.
const PORTS: u64 = 20_000;
/// Beyond this, other work takes time from what is measured.
const LOAD: f64 = 0.5;
/// The share of processor time that may go to other machines on the host.
const STOLEN: f64 = 0.01;
/// Two trials of the same that lie this far apart hide differences of 5 %, from which on differences are told.
const NOISE: f64 = 0.05;

fn check(what: &'static str, found: String, bad: bool, remedy: impl Into<String>) -> Finding {
    Finding { what, found, remedy: bad.then(|| remedy.into()) }
}

/// Judges what was read.
pub fn machine(facts: &Facts, placement: &Placement) -> Vec<Finding> {
    let mut findings = processor(facts, placement);
    findings.extend(kernel(facts));
    findings.extend(network(facts));
    findings
}

fn processor(facts: &Facts, placement: &Placement) -> Vec<Finding> {
    let governor = facts.environment.governor.as_deref().unwrap_or("not told");
    let slow = ["powersave", "ondemand", "conservative", "schedutil"].contains(&governor);
    let cores = if facts.online > 1 {
        format!("allow more cores than {:?}: `taskset -cp 0-{} $$`", placement.system, facts.online - 1)
    } else {
        "a machine with two cores or more: system and generator disturb each other on one (`lscpu`)"
            .to_owned()
    };
    vec![
        check(
            "cores",
            format!("generator {:?}, systems {:?}", placement.generator, placement.system),
            placement.shared,
            cores,
        ),
        check(
            "other work",
            format!("load average {}", facts.load),
            facts.load > LOAD,
            "stop what else runs (`top -o %CPU`); wait until the load average is near 0",
        ),
        check(
            "stolen time",
            format!("{} since the machine started", number::percent(facts.stolen)),
            facts.stolen > STOLEN,
            "a neighbour on the host takes the processor (`vmstat 1`, column st): a machine of your own, or more --rounds",
        ),
        check(
            "heat",
            format!("slowed down {} times since the machine started", facts.throttles),
            facts.throttles > 0,
            "better cooling, or fewer cores at work; `grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_count` counts",
        ),
        check("frequency governor", governor.to_owned(), slow, "`cpupower frequency-set -g performance`"),
    ]
}

fn kernel(facts: &Facts) -> Vec<Finding> {
    let off = facts.sysctl("kernel.io_uring_disabled");
    let uring = if matches!(off, "1" | "2") {
        "`sysctl -w kernel.io_uring_disabled=0`; epoll is used meanwhile"
    } else {
        "a kernel from 6.1 on (`uname -r`), in a container with leave to use io_uring (`--security-opt seccomp=unconfined`); \
         epoll is used meanwhile"
    };
    let paranoid = facts.sysctl("kernel.perf_event_paranoid");
    let closed = !facts.privileged && paranoid.parse::<i64>().is_ok_and(|level| level > 1);
    let counters = if closed {
        "`sysctl -w kernel.perf_event_paranoid=1`; only what is told of system calls and instructions needs it"
    } else {
        "the processor's counters are hidden, as in most virtual machines (`perf stat true`): one that passes them on, or bare \
         metal; only what is told of instructions needs them"
    };
    let (tracing, mount) = match facts.tracing {
        None => ("can be read", ""),
        Some(ErrorKind::PermissionDenied) => (
            "not for this user",
            "`sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing`; only what is told of system calls needs it",
        ),
        Some(_) => (
            "not mounted",
            "as root: `mount -t tracefs nodev /sys/kernel/tracing`; only what is told of system calls needs it",
        ),
    };
    let known = if facts.hardware_counters { "known" } else { "none" };
    let Limit { before, now, hard } = facts.environment.files;
    vec![
        check("I/O interface", facts.interface.clone(), facts.interface != "io_uring", uring),
        check(
            "perf counters",
            format!("of the hardware: {known}; kernel.perf_event_paranoid = {paranoid}"),
            closed || !facts.hardware_counters,
            counters,
        ),
        check("tracepoints", tracing.to_owned(), facts.tracing.is_some(), mount),
        check(
            "open files",
            format!("{now} (found {before}, hard limit {hard})"),
            now < FILES,
            "for 10,000 connections, as root: `prlimit --pid $$ --nofile=20000:20000`; for good: /etc/security/limits.conf",
        ),
    ]
}

fn network(facts: &Facts) -> Vec<Finding> {
    let backlog = facts.sysctl("net.core.somaxconn");
    let range = facts.sysctl("net.ipv4.ip_local_port_range");
    let reuse = facts.sysctl("net.ipv4.tcp_tw_reuse");
    vec![
        check(
            "accept queue",
            format!("net.core.somaxconn = {backlog}"),
            backlog.parse().is_ok_and(|found: u64| found < BACKLOG),
            format!("`sysctl -w net.core.somaxconn={BACKLOG}`"),
        ),
        check(
            "ports",
            format!("net.ipv4.ip_local_port_range = {range}"),
            facts.ports < PORTS,
            "`sysctl -w net.ipv4.ip_local_port_range='32768 60999'`",
        ),
        check(
            "ports in TIME_WAIT",
            format!("net.ipv4.tcp_tw_reuse = {reuse}"),
            reuse == "0",
            "`sysctl -w net.ipv4.tcp_tw_reuse=2`: without it one request per connection runs out of ports",
        ),
    ]
}

/// Judges the measurement of Narrows by itself.
pub fn trial_run(measured: &Result<TrialRun, String>) -> Vec<Finding> {
    let run = match measured {
        Ok(run) => run,
        Err(why) => {
            let remedy =
                "mend that first: no experiment can run either; `narrows serve` and `narrows load` show more";
            return vec![check("floor", why.clone(), true, remedy)];
        }
    };
    let trip = run.round_trip_us.map_or_else(|| "-".to_owned(), number::micros);
    vec![
        check(
            "floor",
            format!(
                "the reference: {}, {trip} for one request alone, {} of the generator for each",
                number::per_second(run.requests_per_s),
                number::micros(run.generator_us)
            ),
            false,
            "",
        ),
        check(
            "noise, A against A",
            format!(
                "{} in {} pairs, {} in the worst",
                number::percent(run.noise),
                run.pairs,
                number::percent(run.worst_noise)
            ),
            run.noise > NOISE,
            "stop other work (`top -o %CPU`), and take more --rounds and a longer measure_s: smaller differences cannot be told \
             from noise",
        ),
    ]
}

impl Facts {
    /// A kernel setting; empty where the kernel does not have it.
    fn sysctl(&self, name: &str) -> &str {
        self.environment.sysctls.get(name).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use systems::machine::Environment;

    use super::*;

    /// A machine that nothing is wrong with.
    fn fit() -> Facts {
        let sysctls = [
            ("kernel.io_uring_disabled", "0"),
            ("kernel.perf_event_paranoid", "1"),
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.ip_local_port_range", "32768 60999"),
            ("net.ipv4.tcp_tw_reuse", "2"),
        ];
        Facts {
            environment: Environment {
                cores: vec![0, 1],
                governor: Some("performance".to_owned()),
                sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                files: Limit { before: 1024, now: 20_000, hard: 20_000 },
                ..Environment::default()
            },
            online: 2,
            load: 0.1,
            stolen: 0.0,
            throttles: 0,
            ports: 28_232,
            interface: "io_uring".to_owned(),
            hardware_counters: true,
            privileged: false,
            tracing: None,
        }
    }

    fn wrong(facts: &Facts) -> Vec<(&'static str, String)> {
        let placement = Placement::decide(&facts.environment.cores);
        let findings = machine(facts, &placement).into_iter();
        findings.filter_map(|finding| Some((finding.what, finding.remedy?))).collect()
    }

    fn set(facts: &mut Facts, name: &str, value: &str) {
        facts.environment.sysctls.insert(name.to_owned(), value.to_owned());
    }

    /// What is done to a fit machine, what must be found of it, and the command that mends it.
    type Case = (fn(&mut Facts), &'static str, &'static str);

    const CASES: [Case; 18] = [
        (|f| f.environment.cores = vec![0], "cores", "taskset -cp 0-1"),
        (|f| (f.environment.cores, f.online) = (vec![0], 1), "cores", "lscpu"),
        (|f| f.load = 0.6, "other work", "top"),
        (|f| f.stolen = 0.02, "stolen time", "vmstat"),
        (|f| f.throttles = 1, "heat", "thermal_throttle"),
        (|f| f.environment.governor = Some("powersave".to_owned()), "frequency governor", "cpupower"),
        (
            |f| {
                f.interface = "epoll".to_owned();
                set(f, "kernel.io_uring_disabled", "2");
            },
            "I/O interface",
            "sysctl -w kernel.io_uring_disabled=0",
        ),
        (|f| f.interface = "epoll".to_owned(), "I/O interface", "uname -r"),
        (
            |f| set(f, "kernel.perf_event_paranoid", "2"),
            "perf counters",
            "sysctl -w kernel.perf_event_paranoid=1",
        ),
        (|f| f.hardware_counters = false, "perf counters", "perf stat"),
        // For who is not bound by it, the setting mends nothing.
        (
            |f| {
                (f.hardware_counters, f.privileged) = (false, true);
                set(f, "kernel.perf_event_paranoid", "4");
            },
            "perf counters",
            "perf stat",
        ),
        (|f| f.tracing = Some(ErrorKind::PermissionDenied), "tracepoints", "mount -o remount"),
        (|f| f.tracing = Some(ErrorKind::NotFound), "tracepoints", "mount -t tracefs"),
        (|f| f.environment.files.now = 1024, "open files", "prlimit"),
        (|f| set(f, "net.core.somaxconn", "128"), "accept queue", "sysctl -w net.core.somaxconn=4096"),
        (|f| f.ports = 1000, "ports", "sysctl -w net.ipv4.ip_local_port_range"),
        (|f| set(f, "net.ipv4.tcp_tw_reuse", "0"), "ports in TIME_WAIT", "sysctl -w net.ipv4.tcp_tw_reuse=2"),
        // Both: the one that a command mends comes first.
        (
            |f| {
                f.hardware_counters = false;
                set(f, "kernel.perf_event_paranoid", "4");
            },
            "perf counters",
            "sysctl -w kernel.perf_event_paranoid=1",
        ),
    ];

    #[test]
    fn a_fit_machine_is_told_nothing() {
        assert_eq!(wrong(&fit()), []);
    }

    #[test]
    fn each_problem_is_found_alone_with_its_command() {
        for (spoil, what, command) in CASES {
            let mut facts = fit();
            spoil(&mut facts);
            let found = wrong(&facts);
            assert_eq!(found.iter().map(|(what, _)| *what).collect::<Vec<_>>(), [what]);
            assert!(found[0].1.contains(command), "{found:?}");
        }
    }

    /// Just on the good side, and what an old kernel does not have.
    #[test]
    fn what_is_nearly_wrong_is_silent() {
        let nearly: [fn(&mut Facts); 6] = [
            |f| f.load = 0.5,
            |f| f.stolen = 0.01,
            |f| f.environment.files.now = FILES,
            |f| f.ports = PORTS,
            |f| f.environment.governor = None,
            |f| f.environment.sysctls.clear(),
        ];
        for (number, change) in nearly.iter().enumerate() {
            let mut facts = fit();
            change(&mut facts);
            assert_eq!(wrong(&facts), [], "case {number}");
        }
    }

    #[test]
    fn noise_is_a_problem_when_it_hides_what_would_be_told() {
        let run = |noise| TrialRun {
            requests_per_s: 1e5,
            round_trip_us: Some(20.0),
            generator_us: 4.0,
            noise,
            worst_noise: 0.2,
            pairs: 5,
        };
        for (noise, told) in [(0.04, false), (0.06, true)] {
            let findings = trial_run(&Ok(run(noise)));
            assert!(findings[0].remedy.is_none() && findings[0].found.contains("100k/s"), "{findings:?}");
            assert_eq!(findings[1].remedy.is_some(), told, "{findings:?}");
        }
        let failed = trial_run(&Err("no route to 127.0.0.1".to_owned()));
        assert!(failed[0].found.contains("no route") && failed[0].remedy.is_some());
    }
}
