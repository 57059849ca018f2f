//! What there is to know of a machine before anything is measured on it. Reads, and judges nothing.

use std::fs;
use std::io::ErrorKind;

use systems::machine::{self, Environment, Limit};

/// What was read. What could not be is empty or zero.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// What is saved with every run as well.
    pub environment: Environment,
    /// Cores of the machine, whether Narrows may use them or not.
    pub online: usize,
    /// Work that wanted a core during the last minute.
    pub load: f64,
    /// The share of all processor time since the machine started that a hypervisor gave to others.
    pub stolen: f64,
    /// How often the processor slowed itself down for heat since then.
    pub throttles: u64,
    /// Ports that connections to one address can come from.
    pub ports: u64,
    /// The kernel interface that carries the generator's I/O, or why there is none.
    pub interface: String,
    /// Whether the kernel knows counters of this processor's hardware.
    pub hardware_counters: bool,
    /// Whether this user may count whatever `kernel.perf_event_paranoid` says.
    pub privileged: bool,
    /// Why the kernel's tracepoints cannot be read; None where they can.
    pub tracing: Option<ErrorKind>,
}

impl Facts {
    /// Reads this machine; `files` is what raising the limit came to.
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

/// How many cores a list such as `0-3,6` names.
fn cores_of(list: &str) -> usize {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let ends = (low.parse::<usize>().ok()?, high.parse::<usize>().ok()?);
        (ends.1 + 1).checked_sub(ends.0)
    };
    list.trim().split(',').filter_map(range).sum()
}

/// Whether the process has CAP_PERFMON or CAP_SYS_ADMIN (capabilities(7)), by its `/proc/PID/status`.
fn privileged(status: &str) -> bool {
    const ENOUGH: u64 = 1 << 38 | 1 << 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & ENOUGH != 0)
}

/// A processor's counters are an event source of their own: `cpu` on x86, `cpu_core` on mixed ones, `armv8_…` on ARM.
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
    fn who_may_count_is_told_by_capabilities() {
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
