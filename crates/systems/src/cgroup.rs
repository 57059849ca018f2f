//! Control groups (cgroups(7), both versions): a limit on the memory of one system, and how long limits of CPU time have
//! stopped this program and what it started.
//!
//! Makes a folder under `/sys/fs/cgroup` for a limit, and removes it when the system has ended.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::keeper::{self, Charge};
use crate::proc;
use crate::sys;
use crate::unread;
use crate::wait::{deadline_in, poll};

/// A control group with a memory limit. Dropping it removes it; its processes must have ended.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    kept: Charge,
    folder: PathBuf,
    processes: Arc<File>,
}

/// The groups of one controller in which this program is.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Their folders, its own first.
    groups: Vec<PathBuf>,
    /// Whether they are of the first version.
    first: bool,
}

impl MemoryLimit {
    /// Makes a control group whose processes get no more than so many bytes.
    ///
    /// # Errors
    /// No control group may be made here, and why.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(Hierarchy { groups, first }) = Hierarchy::of("memory") else {
            return Err("the kernel has no control groups for memory here".to_owned());
        };
        let file = if first { "memory.limit_in_bytes" } else { "memory.max" };
        let name = format!("narrows-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut why = String::new();
        for parent in groups {
            sweep(&parent);
            let folder = parent.join(&name);
            match Self::make(&folder, file, bytes) {
                Ok(limit) => return Ok(limit),
                Err(error) => {
                    let _ = fs::remove_dir(&folder);
                    keeper::release(&Charge::Confined(folder.clone()));
                    why = format!("{}: {error}", folder.display());
                }
            }
        }
        Err(format!("no control group may be made here ({why}); run as root, or in a delegated group"))
    }

    fn make(folder: &Path, file: &str, bytes: u64) -> io::Result<Self> {
        let kept = Charge::Confined(folder.to_owned());
        keeper::take(&kept);
        fs::create_dir(folder)?;
        fs::write(folder.join(file), bytes.to_string())?;
        // Without swap the limit is one of all memory. Not every kernel counts swap.
        for (swap, limit) in [("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", &bytes.to_string())] {
            let _ = OpenOptions::new()
                .write(true)
                .open(folder.join(swap))
                .and_then(|mut f| f.write_all(limit.as_bytes()));
        }
        let processes = OpenOptions::new().write(true).open(folder.join("cgroup.procs"))?;
        Ok(Self { kept, folder: folder.to_owned(), processes: Arc::new(processes) })
    }

    /// Lets the command join the group before it begins.
    pub(crate) fn confine(&self, command: &mut Command) {
        sys::enlist(command, Arc::clone(&self.processes));
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The kernel may count a process for a moment after its end.
        poll(deadline_in(Duration::from_secs(1)), || fs::remove_dir(&self.folder).is_ok());
        keeper::release(&self.kept);
    }
}

/// Removes the groups of processes that were killed together with their keeper. The kernel refuses to remove one in which
/// something runs.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("narrows-")?.split('-').next());
        if owner.and_then(|pid| pid.parse().ok()).is_some_and(|pid| proc::stat(pid).is_none()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// For how long limits of CPU time have stopped the groups in which this program and another process are, in seconds, since they
/// were made. A group that wants several cores is stopped on each of them, and all of that counts.
pub(crate) fn held_s(other: Option<u32>) -> f64 {
    let processes = std::iter::once("self".to_owned()).chain(other.map(|pid| pid.to_string()));
    let mounts = read("/proc/self/mountinfo");
    let found = processes.filter_map(|process| Hierarchy::of_process(&mounts, &process, "cpu"));
    let groups: BTreeSet<PathBuf> = found.flat_map(|found| found.groups).collect();
    let stats = groups.iter().filter_map(|group| unread::text(group.join("cpu.stat")));
    stats.map(|stat| stopped_s(&stat)).sum()
}

/// A file of the kernel; empty if there is none.
fn read(path: &str) -> String {
    unread::text(path).unwrap_or_default()
}

/// The time in a `cpu.stat`: version 1 counts nanoseconds, version 2 microseconds.
fn stopped_s(stat: &str) -> f64 {
    let counts = stat.lines().filter_map(|line| line.split_once(' '));
    let in_seconds = counts.filter_map(|(name, count)| match name {
        "throttled_time" => Some(count.parse::<f64>().ok()? / 1e9),
        "throttled_usec" => Some(count.parse::<f64>().ok()? / 1e6),
        _ => None,
    });
    in_seconds.sum()
}

impl Hierarchy {
    fn of(controller: &str) -> Option<Self> {
        Self::of_process(&read("/proc/self/mountinfo"), "self", controller)
    }

    /// The groups of a process, by its number or `self`, where these are mounted.
    fn of_process(mounts: &str, process: &str, controller: &str) -> Option<Self> {
        Self::parse(mounts, &read(&format!("/proc/{process}/cgroup")), controller)
    }

    /// Finds it from `/proc/self/mountinfo` and `/proc/self/cgroup`.
    fn parse(mounts: &str, own: &str, controller: &str) -> Option<Self> {
        if let Some(mounted) = mount(mounts, "cgroup", Some(controller)) {
            let path = own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                parts.next()?.split(',').any(|name| name == controller).then(|| parts.next())?
            });
            return Some(Self { groups: upwards(&mounted, path.unwrap_or("/")), first: true });
        }
        let mounted = mount(mounts, "cgroup2", None)?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(Self { groups: upwards(&mounted, path), first: false })
    }
}

/// The mount point of a file system of this kind, with this option.
fn mount(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = right.split(' ');
        let fits = fields.next() == Some(kind)
            && option
                .is_none_or(|option| fields.nth(1).is_some_and(|all| all.split(',').any(|o| o == option)));
        fits.then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The group's own folder and those above it.
fn upwards(mounted: &Path, path: &str) -> Vec<PathBuf> {
    let own = mounted.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(mounted)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let two = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let found = Hierarchy::parse(two, "0::/user.slice/a.scope\n", "memory").expect("version 2");
        let groups = ["/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(found, Hierarchy { groups: groups.map(PathBuf::from).to_vec(), first: false });
        let one = "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                   32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = |controller| Hierarchy::parse(one, "4:memory:/job\n3:cpu,cpuacct:/\n0::/\n", controller);
        let first = |groups: &[&str]| {
            let groups = groups.iter().map(PathBuf::from).collect();
            Some(Hierarchy { groups, first: true })
        };
        assert_eq!(found("memory"), first(&["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"]));
        assert_eq!(found("cpu"), first(&["/sys/fs/cgroup/cpu"]));
        assert_eq!(Hierarchy::parse("", "", "memory"), None);
    }

    #[test]
    fn both_versions_say_how_long_a_group_was_stopped() {
        assert_eq!(stopped_s("nr_periods 9\nnr_throttled 2\nthrottled_time 1500000000\n"), 1.5);
        assert_eq!(stopped_s("usage_usec 7\nnr_throttled 2\nthrottled_usec 250000\nnr_bursts 0\n"), 0.25);
        assert_eq!(stopped_s("usage_usec 7\n"), 0.0, "the root group has no limit");
    }
}
