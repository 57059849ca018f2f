//! Where a process has its executables and libraries in memory (proc(5), `/proc/PID/maps`), and how their files are opened.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many regions of one process are kept. Linux allows 65,530 by default (vm.max_map_count).
const MOST_REGIONS: usize = 65_536;
/// What the kernel appends to the path of a file that was removed.
const DELETED: &str = " (deleted)";

/// A part of a process's memory that it may execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Where in its file it begins, in bytes.
    pub offset: u64,
    /// The device of its file, as the kernel's major and minor number.
    device: (u32, u32),
    inode: u64,
    /// The path of its file, or a name in brackets, or nothing. Without the mark for removed files.
    pub path: String,
    deleted: bool,
}

/// The executable regions of a process, in the order of their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    pub process: u32,
    regions: Vec<Region>,
}

impl Image {
    /// Reads the regions of a process. `None` if it has ended, or belongs to another user.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let text = fs::read(format!("/proc/{process}/maps")).ok()?;
        let regions = parse(&String::from_utf8_lossy(&text));
        // A process that has ended and was not yet waited for has no memory.
        (!regions.is_empty()).then_some(Self { process, regions })
    }

    /// A process with these lines in its `maps` file.
    #[cfg(test)]
    pub(crate) fn with(process: u32, maps: &str) -> Self {
        Self { process, regions: parse(maps) }
    }

    /// The files in memory, each with the offset of something in it that may be executed.
    pub(crate) fn files(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let files = self.regions.iter().filter(|region| region.is_file());
        files.filter_map(|region| Some((region.file(self.process)?, region.offset)))
    }

    /// The region with this address.
    pub(crate) fn region(&self, address: u64) -> Option<&Region> {
        let next = self.regions.partition_point(|region| region.start <= address);
        self.regions.get(next.checked_sub(1)?).filter(|region| address < region.end)
    }
}

impl Region {
    /// Whether it is a part of a file that has a path. Memory that programs make for their own code may have one, too
    /// (memfd_create(2), `/dev/zero`).
    pub(crate) fn is_file(&self) -> bool {
        self.inode != 0
            && self.path.starts_with('/')
            && !self.path.starts_with("/memfd:")
            && self.path != "/dev/zero"
    }

    /// The offset in its file of an address within it.
    pub(crate) fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }

    /// A path that leads to the very file that is in memory, also if another has its name by now, or if the process has another
    /// root. `None` if there is none, or if this user may not open it.
    pub(crate) fn file(&self, process: u32) -> Option<PathBuf> {
        let plain = PathBuf::from(&self.path);
        if !self.deleted && self.is_same(&plain, true) {
            return Some(plain);
        }
        let mapped = PathBuf::from(format!("/proc/{process}/map_files/{:x}-{:x}", self.start, self.end));
        if self.is_same(&mapped, false) {
            return Some(mapped);
        }
        let rooted = PathBuf::from(format!("/proc/{process}/root{}", self.path));
        (!self.deleted && self.is_same(&rooted, false)).then_some(rooted)
    }

    /// Some file systems (overlayfs, btrfs) report another device to stat(2), so it is compared only where the path may lead to an
    /// unrelated file.
    fn is_same(&self, path: &Path, device: bool) -> bool {
        fs::metadata(path).is_ok_and(|file| {
            let numbers = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
            file.is_file() && file.ino() == self.inode && (!device || numbers == self.device)
        })
    }
}

/// The executable regions of a `maps` file. A line is `START-END PERM OFFSET MAJOR:MINOR INODE PATH`, in hexadecimal except the
/// inode. Lines that cannot be read are left out.
fn parse(text: &str) -> Vec<Region> {
    let mut regions: Vec<Region> = text.lines().filter_map(region).take(MOST_REGIONS).collect();
    regions.sort_by_key(|region| region.start);
    regions
}

fn region(line: &str) -> Option<Region> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    words.next().filter(|permissions| permissions.contains('x'))?;
    let offset = hex(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    let (path, deleted) = path.strip_suffix(DELETED).map_or((path, false), |path| (path, true));
    Some(Region { start: hex(start)?, end: hex(end)?, offset, device, inode, path: path.to_owned(), deleted })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c0a25000 r--p 00000000 fe:01 1234                       /usr/bin/a b
55d0c0a25000-55d0c0b00000 r-xp 00025000 fe:01 1234                       /usr/bin/a b
7f0000000000-7f0000001000 r-xp 00000000 00:00 0 
7f0000001000-7f0000002000 r-xs 00001000 00:01 77                         /memfd:vmem (deleted)
7f0000002000-7f0000003000 r-xp 00000000 fe:01 99                         /opt/old.so (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";

    #[test]
    fn executable_regions() {
        let image = Image::with(1, MAPS);
        assert_eq!(image.regions.len(), 5);
        let at = |address| image.region(address).map(|region| (region.path.as_str(), region.is_file()));
        assert_eq!(at(0x55d0_c0a2_5010), Some(("/usr/bin/a b", true)));
        assert_eq!(image.region(0x55d0_c0a2_5010).unwrap().file_offset(0x55d0_c0a2_5010), 0x2_5010);
        assert_eq!(at(0x55d0_c0a0_0010), None);
        assert_eq!(at(0x7f00_0000_0000), Some(("", false)));
        assert_eq!(at(0x7f00_0000_1000), Some(("/memfd:vmem", false)));
        assert_eq!(at(0x7f00_0000_2fff), Some(("/opt/old.so", true)));
        assert_eq!(at(0x7f00_0000_3000), None);
        assert_eq!(at(0x7ffd_0000_0000), Some(("[vdso]", false)));
        assert_eq!((at(0), at(u64::MAX)), (None, None));
    }

    #[test]
    fn the_file_of_this_program() {
        let process = std::process::id();
        let image = Image::of(process).unwrap();
        let path = std::env::current_exe().unwrap();
        let own = image.regions.iter().find(|region| path.to_str() == Some(region.path.as_str())).unwrap();
        let found = own.file(process).unwrap();
        assert_eq!(fs::metadata(found).unwrap().ino(), fs::metadata(path).unwrap().ino());
        let other = Region { inode: own.inode + 1, ..own.clone() };
        assert_ne!(other.file(process), Some(PathBuf::from(&own.path)));
        assert_eq!(Image::of(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[0-9a-f:x /\\-\n]{0,200}") {
            let image = Image { process: 0, regions: parse(&text) };
            for region in &image.regions {
                let _ = (image.region(region.start), region.file_offset(region.end));
            }
        }
    }
}
