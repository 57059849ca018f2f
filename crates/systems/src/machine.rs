//! The machine that a run uses: its limits, its cores and who gets which, and a record of it.
//!
//! Knows this process and `/proc`; knows nothing of systems.

use std::collections::BTreeMap;
use std::process::Command;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity};
use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::sys;
use crate::unread;

/// The limit on open files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The soft limit before Narrows raised it.
    pub before: u64,
    /// The current soft limit.
    pub now: u64,
    /// The hard limit, up to which no privileges are needed.
    pub hard: u64,
}

/// Lets a command go before all programs of usual priority on this machine, in a session of its own. It does not begin if its user may
/// not do this. It is killed when the calling thread ends.
pub fn go_first(command: &mut Command) {
    sys::go_first(command);
}

/// The kernel kills the command when the thread that started it ends. Its soft limit on open files becomes the hard one.
pub fn tie_to_us(command: &mut Command) {
    sys::tie_to_us(command, None);
}

/// Raises the soft limit on open files to the hard limit. If that fails, the limit stays as it was.
pub fn raise_file_limit() -> Limit {
    let before = getrlimit(Resource::Nofile).current;
    let _ = sys::raise_file_limit();
    let now = getrlimit(Resource::Nofile);
    let [before, now, hard] = [before, now.current, now.maximum].map(|limit| limit.unwrap_or(u64::MAX));
    Limit { before, now, hard }
}

/// The cores that this thread may use, ascending; never empty.
pub fn available_cores() -> Vec<usize> {
    let cores = cores_of(0);
    if cores.is_empty() { vec![0] } else { cores }
}

/// The cores that a process may use, ascending; empty if it is gone. Process 0 means the calling thread.
pub fn cores_of(pid: u32) -> Vec<usize> {
    let set = sched_getaffinity(sys::process(pid)).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// The cores as the kernel's set. Numbers that do not fit into it are left out.
pub(crate) fn core_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    set
}

/// Seconds of CPU time that the hypervisor gave to others since the machine started, over all cores.
pub fn stolen_s() -> f64 {
    let stat = unread::text("/proc/stat").unwrap_or_default();
    // cpu user nice system idle iowait irq softirq steal: proc(5)
    let words = stat.lines().next().unwrap_or_default().split_ascii_whitespace();
    let steal: f64 = words.skip(8).take(1).filter_map(|word| word.parse::<f64>().ok()).sum();
    steal / sys::clock_ticks_per_second() as f64
}

/// What these cores have done since the machine started, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTicks {
    /// In softirqs, where the kernel handles packets and timers.
    softirq: u64,
    /// In all, idle or not.
    all: u64,
}

impl CoreTicks {
    /// Reads them. No cores mean all of them.
    pub fn of(cores: &[usize]) -> Self {
        Self::parse(&unread::text("/proc/stat").unwrap_or_default(), cores)
    }

    fn parse(stat: &str, cores: &[usize]) -> Self {
        let lines = stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' '));
        let of_cores = lines
            .filter(|(core, _)| core.parse().is_ok_and(|core| cores.is_empty() || cores.contains(&core)));
        of_cores.fold(Self::default(), |sum, (_, ticks)| {
            // user nice system idle iowait irq softirq steal; guests are part of user: proc(5)
            let ticks = ticks.split_ascii_whitespace().take(8).map(|word| word.parse().unwrap_or(0));
            let ticks: Vec<u64> = ticks.collect();
            let softirq = ticks.get(6).copied().unwrap_or(0);
            let all = ticks.into_iter().fold(sum.all, u64::saturating_add);
            Self { softirq: sum.softirq.saturating_add(softirq), all }
        })
    }

    /// The share of the time since an `earlier` reading that softirqs took. None if no tick has passed.
    pub fn softirq_share(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|ticks| *ticks > 0)?;
        Some(self.softirq.saturating_sub(earlier.softirq) as f64 / all as f64)
    }
}

/// How often the processors have throttled because of heat since the machine started; 0 if the kernel does not count
/// it.
pub fn throttles() -> u64 {
    let cpus = unread::entries("/sys/devices/system/cpu");
    cpus.map(|cpu| throttles_of(&cpu.path().join("thermal_throttle"))).sum()
}

/// What took processor time away from this machine, since it started or since an earlier reading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disturbance {
    /// See [`stolen_s`].
    pub stolen_s: f64,
    /// See [`throttles`].
    pub throttles: u64,
    /// For how long limits of CPU time have stopped the control groups of this program and of a system, in seconds over all cores.
    pub held_s: f64,
}

impl Disturbance {
    /// The disturbance since the machine started, of this program and of the process of a system.
    pub fn so_far(system: Option<u32>) -> Self {
        Self { stolen_s: stolen_s(), throttles: throttles(), held_s: cgroup::held_s(system) }
    }

    /// The disturbance since an `earlier` reading.
    pub fn since(self, earlier: Self) -> Self {
        let throttles = self.throttles.saturating_sub(earlier.throttles);
        let since = |now: f64, before: f64| (now - before).max(0.0);
        Self {
            stolen_s: since(self.stolen_s, earlier.stolen_s),
            throttles,
            held_s: since(self.held_s, earlier.held_s),
        }
    }
}

/// The counts of one processor: its core's plus its package's. The kernel repeats the package's with each of its cores.
fn throttles_of(folder: &std::path::Path) -> u64 {
    let count = |name: &str| unread::text(folder.join(name))?.trim().parse::<u64>().ok();
    ["core_throttle_count", "package_throttle_count"].into_iter().filter_map(count).sum()
}

/// The soft limit on open files of this process.
pub fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The highest limit on open files that a program can be started with, and how to get a higher one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MostFiles {
    /// The limit.
    pub files: u64,
    /// What sets it, and what raises it.
    pub why: String,
}

impl MostFiles {
    /// Reads the limits of this process and of the kernel.
    pub fn read() -> Self {
        let kernels = unread::text("/proc/sys/fs/nr_open").unwrap_or_default();
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        Self::of(hard, kernels.trim().parse().unwrap_or(u64::MAX), may_raise_limits())
    }

    fn of(hard: u64, kernels: u64, raises: bool) -> Self {
        if raises || kernels <= hard {
            let why = "the kernel's limit; as root, `sysctl -w fs.nr_open=VALUE` raises it";
            return Self { files: kernels, why: why.to_owned() };
        }
        let why = "the hard limit; as root with CAP_SYS_RESOURCE, `ulimit -Hn VALUE` raises it for the shell that starts Narrows";
        Self { files: hard, why: why.to_owned() }
    }
}

/// Whether this process may raise a hard limit: it has CAP_SYS_RESOURCE in the first user namespace, which maps every user
/// to itself.
fn may_raise_limits() -> bool {
    let users = unread::text("/proc/self/uid_map").unwrap_or_default();
    let is_first = users.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    let allowed =
        || capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_RESOURCE));
    is_first && allowed()
}

/// The number of local ports for connections to one address (net.ipv4.ip_local_port_range).
pub fn ports() -> u64 {
    let text = unread::text("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = text.split_ascii_whitespace().filter_map(|word| word.parse::<u64>().ok());
    match (ends.next(), ends.next()) {
        (Some(low), Some(high)) => high.saturating_add(1).saturating_sub(low),
        _ => 0,
    }
}

/// How many connections may wait to be accepted by one listening socket (net.core.somaxconn). 0 if it is unknown.
pub fn backlog() -> u64 {
    let text = unread::text("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The memory that programs can still get without swapping, in bytes. 0 if it is unknown.
pub fn available_memory() -> u64 {
    meminfo("MemAvailable").unwrap_or(0)
}

/// The number of sockets in TIME_WAIT. Each of them occupies a port for a minute.
pub fn time_wait() -> u64 {
    let text = unread::text("/proc/net/sockstat").unwrap_or_default();
    let tcp = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let mut words = tcp.split(' ').skip_while(|word| *word != "tw").skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The number of segments that TCP has retransmitted since the machine started.
pub fn retransmits() -> u64 {
    let text = unread::text("/proc/net/snmp").unwrap_or_default();
    // One line has the names, the next has the numbers.
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_ascii_whitespace);
    let (Some(names), Some(mut numbers)) = (lines.next(), lines.next()) else { return 0 };
    let column = names.take_while(|name| *name != "RetransSegs").count();
    numbers.nth(column).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The cores of the system under test and of the generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The system's cores.
    pub system: Vec<usize>,
    /// The generator's cores.
    pub generator: Vec<usize>,
    /// Both share one core and disturb each other.
    pub shared: bool,
}

impl Placement {
    /// Gives the first half of the cores (rounded down) to the generator and the rest to the system. A single core is
    /// shared.
    pub fn decide(available: &[usize]) -> Self {
        if available.len() < 2 {
            return Self { system: available.to_vec(), generator: available.to_vec(), shared: true };
        }
        let (generator, system) = available.split_at(available.len() / 2);
        Self { system: system.to_vec(), generator: generator.to_vec(), shared: false }
    }
}

/// The record of the machine that is saved with every run. What could not be read is empty, zero or absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Narrows' version.
    pub narrows: String,
    /// The commit that it was built from, if known.
    pub commit: Option<String>,
    /// The kernel's name, release and version.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// The cores that Narrows may use.
    pub cores: Vec<usize>,
    /// Bytes of main memory.
    pub memory_bytes: u64,
    /// The frequency governor of the first core.
    pub governor: Option<String>,
    /// The kernel settings that matter here, by name. Those that this kernel does not have are left out.
    pub sysctls: BTreeMap<String, String>,
    /// The limit on open files.
    pub files: Limit,
}

const SYSCTLS: [&str; 14] = [
    "kernel.io_uring_disabled",
    "kernel.perf_event_paranoid",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
];

impl Environment {
    /// Reads this machine. `files` is what [`raise_file_limit`] returned.
    pub fn read(files: Limit) -> Self {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = |path: &str| unread::text(path).map(words);
        let kernel = |field: &str| text(&format!("/proc/sys/kernel/{field}")).unwrap_or_default();
        let sysctl =
            |name: &&str| Some(((*name).to_owned(), text(&format!("/proc/sys/{}", name.replace('.', "/")))?));
        Self {
            narrows: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("NARROWS_COMMIT").filter(|c| !c.is_empty()).map(str::to_owned),
            kernel: format!("{} {} {}", kernel("ostype"), kernel("osrelease"), kernel("version")),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: available_cores(),
            memory_bytes: memory().unwrap_or(0),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            sysctls: SYSCTLS.iter().filter_map(sysctl).collect(),
            files,
        }
    }
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = unread::text(path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.map(|value| value.trim().to_owned())
}

fn memory() -> Option<u64> {
    meminfo("MemTotal")
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let kilobytes: u64 = field("/proc/meminfo", name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn placement() {
        for (available, generator, system, shared) in [
            (vec![], vec![], vec![], true),
            (vec![3], vec![3], vec![3], true),
            (vec![0, 1], vec![0], vec![1], false),
            (vec![1, 4, 6], vec![1], vec![4, 6], false),
            (vec![0, 1, 2, 3, 4], vec![0, 1], vec![2, 3, 4], false),
        ] {
            assert_eq!(Placement::decide(&available), Placement { system, generator, shared });
        }
    }

    #[test]
    fn throttles_are_summed_over_core_and_package() {
        let folder = std::env::temp_dir().join(format!("narrows-throttle-{}", std::process::id()));
        assert_eq!(throttles_of(&folder), 0, "there is nothing");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("core_throttle_count"), "3\n").unwrap();
        fs::write(folder.join("package_throttle_count"), "4\n").unwrap();
        let counted = throttles_of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(counted, 7);
    }

    #[test]
    fn the_share_of_softirqs_is_that_of_the_cores_named() {
        let stat = |soft| {
            format!(
                "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 0 9 0 0 0 0 0 0\ncpu1 40 0 30 10 0 0 {soft} 0 40 0\nintr 5\n"
            )
        };
        let ticks = |soft, cores: &[usize]| CoreTicks::parse(&stat(soft), cores);
        assert_eq!(ticks(20, &[1]), CoreTicks { softirq: 20, all: 100 });
        assert_eq!(ticks(20, &[]), CoreTicks { softirq: 20, all: 110 });
        assert_eq!(ticks(20, &[7]), CoreTicks::default());
        let earlier = CoreTicks { softirq: 10, all: 50 };
        assert_eq!(ticks(20, &[1]).softirq_share(earlier), Some(0.2));
        assert_eq!(ticks(20, &[1]).softirq_share(ticks(20, &[1])), None);
        assert!(CoreTicks::of(&[]).all > 0);
    }

    #[test]
    fn disturbances_are_counted_from_an_earlier_reading() {
        let disturbance = |stolen_s, throttles| Disturbance { stolen_s, throttles, held_s: stolen_s };
        assert_eq!(disturbance(3.0, 7).since(disturbance(1.0, 5)), disturbance(2.0, 2));
        // A counter can go back, for example when a core goes offline.
        assert_eq!(disturbance(0.5, 1).since(disturbance(1.0, 5)), disturbance(0.0, 0));
    }

    #[test]
    fn what_limits_open_files_is_named() {
        let most = |hard, kernels, raises| {
            let MostFiles { files, why } = MostFiles::of(hard, kernels, raises);
            (files, why.contains("sysctl -w fs.nr_open"))
        };
        assert_eq!(most(20_000, 1 << 20, false), (20_000, false));
        assert_eq!(most(20_000, 1 << 20, true), (1 << 20, true));
        // A hard limit from before the kernel's was lowered.
        assert_eq!(most(1 << 30, 1 << 20, false), (1 << 20, true));
        let here = MostFiles::read();
        assert!(here.files > 0 && here.why.contains("VALUE"), "{here:?}");
    }

    #[test]
    fn this_machine() {
        let limit = raise_file_limit();
        assert!(limit.now >= limit.before && limit.now <= limit.hard);
        let machine = Environment::read(limit);
        assert!(machine.memory_bytes > 0 && !machine.kernel.trim().is_empty() && !machine.cores.is_empty());
        assert!(machine.sysctls.contains_key("net.core.somaxconn"), "{machine:?}");
        let text = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), machine);
    }
}
