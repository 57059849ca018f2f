//! Reads the facts about a machine that matter for measurements, without judging them.

use std::fs;
use std::io::ErrorKind;

use systems::machine::{self, Environment, Limit};

/// The facts about a machine. Facts that cannot be read are empty or zero.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The description that is also saved with every run.
    pub environment: Environment,
    /// The number of the machine's cores, including those that Narrows may not use.
    pub online: usize,
    /// The load average of the last minute.
    pub load: f64,
    /// The share of all processor time since the machine started that a hypervisor gave to others.
    pub stolen: f64,
    /// How often the processor has throttled itself because of heat since then.
    pub throttles: u64,
    /// The number of ports from which connections to one address can come.
    pub ports: u64,
    /// The kernel interface that carries the generator's I/O, or why there is none.
    pub interface: String,
    /// Whether the kernel can use the hardware counters of this processor.
    pub hardware_counters: bool,
    /// Whether this user may count, whatever the value of `kernel.perf_event_paranoid`.
    pub privileged: bool,
    /// Why the kernel's tracepoints cannot be read. None if they can.
    pub tracing: Option<ErrorKind>,
}

impl Facts {
    /// Reads the facts about this machine. `files` is the result of raising the limit of open files.
    pub fn read(files: Limit) -> Self {
        let environment = Environment::read(files);
        let made = reactor::Reactor::new(reactor::ReactorConfig::MESSAGES);
        let uptime = first_number("/proc/uptime") * environment.cores.len() as f64;
        Self {
            online: cores_of(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default()),
            load: first_number("/proc/loadavg"),
            stolen: machine::stolen_s() / uptime.max(1.0),
            throttles: machine::throttles(),
            ports: machine::ports(),
            interface: made.map_or_else(|e| e.to_string(), |mut made| made.io().backend().to_owned()),
            hardware_counters: hardware_counters(),
            privileged: privileged(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
            tracing: systems::calls::tracing().err().map(|why| why.kind()),
            environment,
        }
    }
}

fn first_number(path: &str) -> f64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// The number of cores in a list such as `0-3,6`.
fn cores_of(list: &str) -> usize {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let ends = (low.parse::<usize>().ok()?, high.parse::<usize>().ok()?);
        (ends.1 + 1).checked_sub(ends.0)
    };
    list.trim().split(',').filter_map(range).sum()
}

/// Whether a process has CAP_PERFMON or CAP_SYS_ADMIN (capabilities(7)). `status` is its `/proc/PID/status`.
fn privileged(status: &str) -> bool {
    const ENOUGH: u64 = 1 << 38 | 1 << 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & ENOUGH != 0)
}

/// Whether the processor's counters are an event source: `cpu` on x86, `cpu_core` on hybrid processors, `armv8_…` on ARM.
fn hardware_counters() -> bool {
    let sources = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    sources
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_counted() {
        for (list, count) in [("0\n", 1), ("0-1\n", 2), ("0-3,6,8-9\n", 7), ("", 0), ("x", 0), ("3-1", 0)] {
            assert_eq!(cores_of(list), count, "{list:?}");
        }
    }

    #[test]
    fn the_capabilities_decide_who_may_count() {
        for (mask, may) in [
            ("000001ffffffffff", true),
            ("0000004000000000", true),
            ("0000000000000000", false),
            ("x", false),
        ] {
            assert_eq!(privileged(&format!("Name:\tx\nCapEff:\t{mask}\n")), may, "{mask}");
        }
        assert!(!privileged(""));
    }

    #[test]
    fn this_machine_has_cores_and_ports() {
        let facts = Facts::read(machine::raise_file_limit());
        assert!(facts.online >= 1 && facts.ports > 0 && !facts.interface.is_empty(), "{facts:?}");
    }
}
