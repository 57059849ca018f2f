//! Judges what disturbs measurements on a machine, and names the command that fixes it. Pure.

use std::io::ErrorKind;

use report::number;
use systems::machine::{Limit, Placement};

use super::facts::Facts;
use crate::examined::{Finding, TrialRun};

/// The files that 10,000 connections need on one side.
const FILES: u64 = 10_064;
/// The shortest accept queue that does not overflow when thousands of connections are opened at once.
const BACKLOG: u64 = 4096;
/// The fewest ports for 10,000 connections and those in TIME_WAIT.
const PORTS: u64 = 20_000;
/// The highest load average at which other work does not disturb measurements.
const LOAD: f64 = 0.5;
/// The largest share of processor time that may go to other machines on the host.
const STOLEN: f64 = 0.01;
/// The largest difference between two equal trials. More hides differences of 5 %, the default threshold of reports.
const NOISE: f64 = 0.05;

fn check(what: &'static str, found: String, bad: bool, remedy: impl Into<String>) -> Finding {
    Finding { what: what.into(), found, remedy: bad.then(|| remedy.into()) }
}

/// Judges the facts about the machine.
pub fn machine(facts: &Facts, placement: &Placement) -> Vec<Finding> {
    let mut findings = processor(facts, placement);
    findings.extend(kernel(facts));
    findings.extend(network(facts));
    findings
}

fn processor(facts: &Facts, placement: &Placement) -> Vec<Finding> {
    let governor = facts.environment.governor.as_deref().unwrap_or("unknown");
    let slow = ["powersave", "ondemand", "conservative", "schedutil"].contains(&governor);
    let cores = if facts.online > 1 {
        format!("allow more cores than {:?}: `taskset -cp 0-{} $$`", placement.system, facts.online - 1)
    } else {
        "use a machine with at least two cores (`lscpu`): system and generator disturb each other on one"
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
            "stop other programs (`top -o %CPU`), and wait until the load average is near 0",
        ),
        check(
            "stolen time",
            format!("{} since the machine started", number::percent(facts.stolen)),
            facts.stolen > STOLEN,
            "other machines on the host use the processor (`vmstat 1`, column st): use a dedicated machine, or more --rounds",
        ),
        check(
            "heat",
            format!("throttled {} times since the machine started", facts.throttles),
            facts.throttles > 0,
            "improve the cooling, or use fewer cores; `grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_count` shows the \
             counts",
        ),
        check("frequency governor", governor.to_owned(), slow, "`cpupower frequency-set -g performance`"),
    ]
}

fn kernel(facts: &Facts) -> Vec<Finding> {
    let off = facts.sysctl("kernel.io_uring_disabled");
    let uring = if matches!(off, "1" | "2") {
        "`sysctl -w kernel.io_uring_disabled=0`; until then epoll is used"
    } else {
        "use Linux 6.1 or newer (`uname -r`), and in a container allow io_uring (`--security-opt seccomp=unconfined`); until \
         then epoll is used"
    };
    let paranoid = facts.sysctl("kernel.perf_event_paranoid");
    let closed = !facts.privileged && paranoid.parse::<i64>().is_ok_and(|level| level > 1);
    let counters = if closed {
        "`sysctl -w kernel.perf_event_paranoid=1`; only counts of system calls and instructions need it"
    } else {
        "the processor's counters are hidden, as in most virtual machines (`perf stat true`): use a virtual machine that shows \
         them, or a physical one; only counts of instructions need them"
    };
    let (tracing, mount) = match facts.tracing {
        None => ("can be read", ""),
        Some(ErrorKind::PermissionDenied) => (
            "this user may not read them",
            "`sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing`; only counts of system calls need them, and until \
             then Narrows counts by tracing (ptrace), which slows the system while it counts",
        ),
        Some(_) => (
            "tracefs is not mounted, and this user may not mount it",
            "as root: `mount -t tracefs nodev /sys/kernel/tracing`; only counts of system calls need it, and until then Narrows \
             counts by tracing (ptrace), which slows the system while it counts",
        ),
    };
    let hardware = if facts.hardware_counters { "available" } else { "none" };
    let Limit { before, now, hard } = facts.environment.files;
    vec![
        check("I/O interface", facts.interface.clone(), facts.interface != "io_uring", uring),
        check(
            "perf counters",
            format!("hardware counters: {hardware}; kernel.perf_event_paranoid = {paranoid}"),
            closed || !facts.hardware_counters,
            counters,
        ),
        check("tracepoints", tracing.to_owned(), facts.tracing.is_some(), mount),
        check(
            "open files",
            format!("{now} (initially {before}, hard limit {hard})"),
            now < FILES,
            "for 10,000 connections, as root: `prlimit --pid $$ --nofile=20000:20000`; permanently: /etc/security/limits.conf",
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
            "`sysctl -w net.ipv4.tcp_tw_reuse=2`; without it, workloads with one request per connection run out of ports",
        ),
    ]
}

/// Judges the measurement of Narrows by itself.
pub fn trial_run(measured: &Result<TrialRun, String>) -> Vec<Finding> {
    let run = match measured {
        Ok(run) => run,
        Err(why) => {
            let remedy = "fix this first, because no experiment can run; `narrows serve` and `narrows load` show details";
            return vec![check("floor", why.clone(), true, remedy)];
        }
    };
    let trip = run.round_trip_us.map_or_else(|| "-".to_owned(), number::micros);
    vec![
        check(
            "floor",
            format!(
                "the reference: {}, {trip} for a single request, {} of the generator per request",
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
            "stop other programs (`top -o %CPU`), and use more --rounds and a longer measure_s: smaller differences cannot be \
             told from noise",
        ),
    ]
}

impl Facts {
    /// The value of a kernel setting. Empty if the kernel does not have it.
    fn sysctl(&self, name: &str) -> &str {
        self.environment.sysctls.get(name).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use systems::machine::Environment;

    use std::borrow::Cow;

    use super::*;

    /// A machine without problems.
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

    fn problems(facts: &Facts) -> Vec<(Cow<'static, str>, String)> {
        let placement = Placement::decide(&facts.environment.cores);
        let findings = machine(facts, &placement).into_iter();
        findings.filter_map(|finding| Some((finding.what, finding.remedy?))).collect()
    }

    fn set(facts: &mut Facts, name: &str, value: &str) {
        facts.environment.sysctls.insert(name.to_owned(), value.to_owned());
    }

    /// A change to a fit machine, the finding that it causes, and the command that fixes it.
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
        // The setting does not matter to a privileged user.
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
        // If both are wrong, the remedy is the one with a command.
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
    fn a_fit_machine_has_no_problems() {
        assert_eq!(problems(&fit()), []);
    }

    #[test]
    fn each_change_causes_only_its_problem() {
        for (spoil, what, command) in CASES {
            let mut facts = fit();
            spoil(&mut facts);
            let found = problems(&facts);
            assert_eq!(found.iter().map(|(what, _)| what.as_ref()).collect::<Vec<_>>(), [what]);
            assert!(found[0].1.contains(command), "{found:?}");
        }
    }

    #[test]
    fn values_at_the_limits_and_missing_settings_are_no_problem() {
        let changes: [fn(&mut Facts); 6] = [
            |f| f.load = 0.5,
            |f| f.stolen = 0.01,
            |f| f.environment.files.now = FILES,
            |f| f.ports = PORTS,
            |f| f.environment.governor = None,
            |f| f.environment.sysctls.clear(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut facts = fit();
            change(&mut facts);
            assert_eq!(problems(&facts), [], "case {number}");
        }
    }

    #[test]
    fn noise_is_a_problem_if_it_hides_differences_that_matter() {
        let run = |noise| TrialRun {
            requests_per_s: 1e5,
            round_trip_us: Some(20.0),
            generator_us: 4.0,
            noise,
            worst_noise: 0.2,
            pairs: 5,
        };
        for (noise, problem) in [(0.04, false), (0.06, true)] {
            let findings = trial_run(&Ok(run(noise)));
            assert!(findings[0].remedy.is_none() && findings[0].found.contains("100k/s"), "{findings:?}");
            assert_eq!(findings[1].remedy.is_some(), problem, "{findings:?}");
        }
        let failed = trial_run(&Err("no route to 127.0.0.1".to_owned()));
        assert!(failed[0].found.contains("no route") && failed[0].remedy.is_some());
    }
}
