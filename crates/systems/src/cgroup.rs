//! A limit on the memory of one system: a control group of its own (cgroups(7), both versions).
//!
//! Makes a folder under `/sys/fs/cgroup`, and removes it when the system has ended.

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
use crate::wait::{deadline_in, poll};

/// A control group with a memory limit. Dropping it removes it; its processes must have ended.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    kept: Charge,
    folder: PathBuf,
    processes: Arc<File>,
}

/// Where control groups with a memory limit can be made.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    /// The folders to try, the nearest first.
    parents: Vec<PathBuf>,
    /// The file that takes the limit.
    file: &'static str,
}

impl MemoryLimit {
    /// Makes a control group whose processes get no more than so many bytes.
    ///
    /// # Errors
    /// No control group may be made here, and why.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let Some(Hierarchy { parents, file }) =
            hierarchy(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
        else {
            return Err("the kernel has no control groups for memory here".to_owned());
        };
        let name = format!("narrows-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut why = String::new();
        for parent in parents {
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

/// Finds the hierarchy of memory from `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn hierarchy(mounts: &str, own: &str) -> Option<Hierarchy> {
    let one = mount(mounts, "cgroup", Some("memory"));
    if let Some(mounted) = one {
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next()?.split(',').any(|name| name == "memory").then(|| parts.next())?
        });
        return Some(Hierarchy {
            parents: upwards(&mounted, path.unwrap_or("/")),
            file: "memory.limit_in_bytes",
        });
    }
    let mounted = mount(mounts, "cgroup2", None)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Hierarchy { parents: upwards(&mounted, path), file: "memory.max" })
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
        let found = hierarchy(two, "0::/user.slice/a.scope\n").expect("version 2");
        assert_eq!(found.file, "memory.max");
        let parents = ["/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(found.parents, parents.map(PathBuf::from));
        let one = "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                   32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = hierarchy(one, "4:memory:/job\n3:cpu:/\n0::/\n").expect("version 1");
        assert_eq!(found.file, "memory.limit_in_bytes");
        assert_eq!(found.parents, ["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"].map(PathBuf::from));
        assert_eq!(hierarchy("", ""), None);
    }
}
