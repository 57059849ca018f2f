//! Finds the kernel's tracepoints by name, in tracefs.
//!
//! Where tracefs is not mounted, root may mount it for itself: fsopen(2), fsconfig(2) and fsmount(2) make a mount that has
//! no place in the tree of files. Only this process sees it, through a descriptor, and it ends with the process. So
//! nothing on the machine changes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// The number of a tracepoint, such as `raw_syscalls/sys_enter`.
///
/// # Errors
/// Of the usual place, `/sys/kernel/tracing`, if no other place has it either.
pub(super) fn id(name: &str) -> io::Result<u64> {
    let file = format!("events/{name}/id");
    let at = |root: &str| std::fs::read_to_string(format!("{root}/{file}"));
    let text = at("/sys/kernel/tracing")
        .or_else(|why| at("/sys/kernel/debug/tracing").map_err(|_| why))
        .or_else(|why| private(&file).map_err(|_| why))?;
    text.trim().parse().map_err(io::Error::other)
}

/// Reads a file of the mount that only this process sees.
fn private(file: &str) -> io::Result<String> {
    static ROOT: LazyLock<rustix::io::Result<OwnedFd>> = LazyLock::new(mount);
    let root = ROOT.as_ref().map_err(|why| io::Error::from(*why))?;
    let opened = openat(root, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(opened).read_to_string(&mut text)?;
    Ok(text)
}

/// Mounts tracefs at no place. A kernel before 5.2 has no such calls, and users other than root may not.
fn mount() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_mount_changes_nothing_that_others_see() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let before = mounts();
        // Only root may mount. If it may, a tracepoint has the same number as everywhere, and no other name is found.
        if let Ok(text) = private("events/raw_syscalls/sys_enter/id") {
            assert_eq!(text.trim().parse().ok(), id("raw_syscalls/sys_enter").ok());
            assert_eq!(private("events/no/such/id").unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(mounts(), before);
        assert!(id("no/such").is_err());
    }
}
