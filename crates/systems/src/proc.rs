//! Reads `/proc`: processes, their memory and context switches, and what they hold.
//!
//! Every reading is best effort: a process may vanish between any two lines, and then counts as nothing. What could not be read for
//! another reason is kept by [`unread`].

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::unread;

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// Its own user and kernel time, in clock ticks.
    pub(crate) own_ticks: u64,
    /// The same of its children that have ended and been waited for.
    pub(crate) children_ticks: u64,
    /// Page faults, minor and major, of its own and of those children.
    pub(crate) faults: u64,
    /// When it began, in clock ticks since the machine did.
    pub(crate) began: u64,
}

impl Stat {
    /// Whether it is neither a zombie nor dead.
    pub(crate) fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&unread::text(format!("/proc/{pid}/stat"))?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The program's name is in parentheses. It can contain anything, even parentheses and spaces.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |i: &usize| fields.get(*i)?.parse::<u64>().ok();
    let sum = |places: &[usize]| places.iter().try_fold(0, |sum: u64, place| sum.checked_add(number(place)?));
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        own_ticks: sum(&[11, 12])?,
        children_ticks: sum(&[13, 14])?,
        faults: sum(&[7, 8, 9, 10])?,
        began: number(&19)?,
    })
}

/// All processes of the machine.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = unread::entries("/proc");
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let entries = unread::entries(format!("/proc/{pid}/task"));
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children that a thread has started or adopted, as far as they stay while they are read. `None` if there is no such thread, or
/// the kernel has no such lists.
pub(crate) fn children(pid: u32, thread: u32) -> Option<Vec<u32>> {
    let text = unread::text(format!("/proc/{pid}/task/{thread}/children"))?;
    Some(text.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// These processes and all their descendants.
pub(crate) fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut found: Vec<u32> = roots.to_vec();
    let mut index = 0_usize;
    while let Some(parent) = found.get(index).copied() {
        let children =
            parents.iter().filter(|(pid, its_parent)| *its_parent == parent && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        index = index.saturating_add(1);
    }
    found
}

/// The limit on file locks that a process has. `None` if there is none, or no such process.
pub(crate) fn locks_limit(pid: u32) -> Option<u64> {
    number(&unread::text(format!("/proc/{pid}/limits"))?, "Max file locks")
}

/// The program's name, for messages. The kernel keeps only its first bytes. The whole name is then among the words of
/// the command line, the first of them or for a script a later one.
pub(crate) fn name(pid: u32) -> String {
    let Ok(mut name) = fs::read(format!("/proc/{pid}/comm")) else { return "?".to_owned() };
    name.pop(); // the line's end
    if name.len() == KEPT_OF_A_NAME {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let files =
            words.split(|byte| *byte == 0).filter_map(|word| word.rsplit(|byte| *byte == b'/').next());
        let whole = files.into_iter().find(|file| file.starts_with(&name)).map(<[u8]>::to_vec);
        name = whole.unwrap_or(name);
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// How many bytes of a program's name the kernel keeps.
const KEPT_OF_A_NAME: usize = 15;

/// The proportional set size in bytes.
pub(crate) fn pss(pid: u32) -> Option<u64> {
    kilobytes(&unread::text(format!("/proc/{pid}/smaps_rollup"))?, "Pss:")
}

/// The peak resident size since the process started, in bytes.
pub(crate) fn peak_rss(pid: u32) -> Option<u64> {
    kilobytes(&unread::text(format!("/proc/{pid}/status"))?, "VmHWM:")
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    number(text, field)?.checked_mul(1024)
}

fn number(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The sockets for which these processes wait with epoll, each by the name that `/proc` gives it, and whether they do so with `EPOLLET`
/// (epoll(7)).
pub(crate) fn epolled(pids: impl IntoIterator<Item = u32>) -> HashMap<PathBuf, bool> {
    let mut found = HashMap::new();
    for pid in pids {
        let link = |fd: &str| fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
        let is = |link: &PathBuf, what: &str| link.as_os_str().as_bytes().starts_with(what.as_bytes());
        let open = unread::entries(format!("/proc/{pid}/fd"));
        for fd in open.filter_map(|entry| entry.file_name().into_string().ok()) {
            if !is(&link(&fd), "anon_inode:[eventpoll]") {
                continue;
            }
            let info = unread::text(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            let sockets = info.lines().filter_map(waited_for).map(|(fd, events)| (link(fd), events));
            let sockets = sockets.filter(|(link, _)| is(link, "socket:"));
            found.extend(sockets.map(|(link, events)| (link, events & EPOLLET != 0)));
        }
    }
    found
}

/// The flag of `EPOLLET` in the events that the kernel shows.
const EPOLLET: u64 = 1 << 31;

/// What a line of an epoll descriptor's fdinfo says: for which descriptor it waits, and for which events (proc(5)).
fn waited_for(line: &str) -> Option<(&str, u64)> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?;
    let mut rest = words.skip_while(|word| *word != "events:").skip(1);
    Some((fd, u64::from_str_radix(rest.next()?, 16).ok()?))
}

/// The threads of a process.
pub(crate) fn tasks(pid: u32) -> impl Iterator<Item = u32> {
    let entries = unread::entries(format!("/proc/{pid}/task"));
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What the scheduler says of a thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// Voluntary and involuntary context switches.
    pub(crate) switches: u64,
    /// Nanoseconds in which it could run and waited for a core. None if the kernel does not say (`CONFIG_SCHED_INFO`).
    pub(crate) waited_ns: Option<u64>,
    /// Nanoseconds on a core, if it is a thread that compiles the program's code while the program runs.
    pub(crate) compiled_ns: Option<u64>,
}

/// How the names of threads begin that compile code while it runs: those of HotSpot (also of Graal), of OpenJ9, and of .NET. Other
/// runtimes compile in threads without such a name, or in those that run the code.
const COMPILERS: [&str; 5] = ["C1 Compiler", "C2 Compiler", "JVMCI", "JIT Compilation", ".NET Tiered"];

/// What the scheduler says of each thread.
pub(crate) fn scheduled(pid: u32) -> Vec<(u32, Scheduled)> {
    let tasks = tasks(pid).filter_map(|task| {
        let read = |file: &str| unread::text(format!("/proc/{pid}/task/{task}/{file}"));
        let status = read("status")?;
        let involuntary = number(&status, "nonvoluntary_ctxt_switches:")?;
        let switches = number(&status, "voluntary_ctxt_switches:")?.checked_add(involuntary)?;
        // A thread that ends between the two readings is left out.
        let schedstat = read("schedstat")?;
        let compiles = status.lines().next().is_some_and(compiles);
        let compiled_ns = nanoseconds(&schedstat, 0).filter(|_| compiles);
        Some((task, Scheduled { switches, waited_ns: nanoseconds(&schedstat, 1), compiled_ns }))
    });
    tasks.collect()
}

/// Nanoseconds on a core of each thread, as far as the kernel says.
pub(crate) fn on_core(pid: u32) -> impl Iterator<Item = (u32, u64)> {
    tasks(pid).filter_map(move |task| {
        let schedstat = unread::text(format!("/proc/{pid}/task/{task}/schedstat"))?;
        Some((task, nanoseconds(&schedstat, 0)?))
    })
}

/// One of three numbers: nanoseconds on a core, nanoseconds of waiting for one, and the number of turns.
fn nanoseconds(schedstat: &str, at: usize) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// Whether a thread compiles, by the first line of its `status`: its name.
fn compiles(line: &str) -> bool {
    let name = line.strip_prefix("Name:").map(str::trim_start);
    name.is_some_and(|name| COMPILERS.iter().any(|begin| name.starts_with(begin)))
}

/// The memory of all TCP sockets of the machine, in pages.
pub(crate) fn tcp_memory_pages() -> Option<u64> {
    let text = unread::text("/proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "mem");
    words.nth(1)?.parse().ok()
}

/// Whether the process holds one of these sockets.
pub(crate) fn holds(pid: u32, inodes: &HashSet<u64>) -> bool {
    sockets(pid).any(|inode| inodes.contains(&inode))
}

/// The inodes of the sockets that a process holds.
pub(crate) fn sockets(pid: u32) -> impl Iterator<Item = u64> {
    let descriptors = unread::entries(format!("/proc/{pid}/fd"));
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter_map(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
}

/// The Unix sockets that accept connections: their inodes, and their paths as they were bound.
pub(crate) fn unix_listeners() -> Vec<(u64, PathBuf)> {
    parse_unix(&unread::bytes("/proc/net/unix").unwrap_or_default())
}

fn parse_unix(table: &[u8]) -> Vec<(u64, PathBuf)> {
    let listener = |line: &[u8]| {
        let (mut rest, mut words) = (line, Vec::new());
        while words.len() < 7 {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            let (word, more) = rest.split_at(end);
            words.push(word);
            rest = more;
        }
        let [_, _, _, b"00010000", _, _, inode] = words.as_slice() else { return None };
        let inode = std::str::from_utf8(inode).ok()?.parse().ok()?;
        // A path may have spaces.
        Some((inode, PathBuf::from(OsStr::from_bytes(rest.strip_prefix(b" ")?))))
    };
    table.split(|byte| *byte == b'\n').filter_map(listener).collect()
}

/// The folder in which a process runs.
pub(crate) fn folder(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn stat_survives_odd_names() {
        let text = "17 (a) R (b) S 1 5 5 0 -1 4194304 98 2 1 0 7 8 9 10 20 0 1 0 104142";
        let (own_ticks, children_ticks, faults, began) = (15, 19, 98 + 2 + 1, 104_142);
        let expected = Stat { state: 'S', parent: 1, group: 5, own_ticks, children_ticks, faults, began };
        assert_eq!(parse_stat(text), Some(expected));
        for broken in ["", "17 (a", "17 (a) R 1", "17 (a) R x y z"] {
            assert_eq!(parse_stat(broken), None);
        }
    }

    #[test]
    fn the_time_on_a_core_and_the_wait_for_one_are_the_first_numbers() {
        for (text, waited) in [("0 3703859 1\n", Some(3_703_859)), ("5", None), ("", None), ("1 x 2", None)] {
            assert_eq!(nanoseconds(text, 1), waited);
        }
        assert_eq!(nanoseconds("7 8 9\n", 0), Some(7));
    }

    #[test]
    fn threads_that_compile_are_known_by_their_names() {
        for name in
            ["C2 CompilerThre", "C1 CompilerThre", "JVMCI-native Co", "JIT Compilation", ".NET Tiered Com"]
        {
            assert!(compiles(&format!("Name:\t{name}")), "{name}");
        }
        for line in ["Name:\tjava", "Name:\tCompiler", "Umask:\t0022", ""] {
            assert!(!compiles(line), "{line}");
        }
    }

    #[test]
    fn what_is_waited_for_is_in_the_lines_of_descriptors() {
        let line = "tfd:        7 events: 80002019 data:     7fd0a4c7a1d0  pos:0 ino:3039 sdev:8";
        assert_eq!(waited_for(line), Some(("7", 0x8000_2019)));
        for other in ["pos:\t0", "tfd:", "tfd: 7", "tfd: 7 events:", "tfd: 7 events: x"] {
            assert_eq!(waited_for(other), None);
        }
    }

    #[test]
    fn names_of_programs_and_scripts_are_whole() {
        let folder = tempfile::TempDir::new().unwrap();
        let program = r#"ln -s /bin/sh "$0"; exec "$0" -c 'echo; read line'"#;
        let script = r#"printf '#!/bin/sh\necho\nread line\n' > "$0"; chmod +x "$0"; exec "$0""#;
        for (make, expected) in [
            (program, "IODash_Benchmark_HTTP"),
            (program, "fifteen_letters"),
            (program, "short"),
            (script, "a server of requests"),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", make]).arg(folder.path().join(expected));
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            let seen = name(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!((line.as_str(), seen.as_str()), ("\n", expected));
        }
        assert_eq!(name(0), "?");
    }

    #[test]
    fn listening_unix_sockets_have_a_path() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 11 /run/a\n\
            0000000000000000: 00000002 00000000 00010000 0001 01    12 /run/a b\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 13\n\
            0000000000000000: 00000002 00000000 0001";
        assert_eq!(parse_unix(table), [(12, PathBuf::from("/run/a b"))]);
    }

    #[test]
    fn readings_of_this_process() {
        let me = std::process::id();
        assert!(stat(me).unwrap().lives());
        assert!(with_descendants(&[stat(me).unwrap().parent]).contains(&me));
        assert!(!with_descendants(&[me]).contains(&stat(me).unwrap().parent));
        assert!(peak_rss(me).unwrap() > 0);
        assert!(scheduled(me).iter().any(|(task, _)| *task == me));
        assert!(stat(me).unwrap().faults > 0);
        assert!(tcp_memory_pages().is_some());
    }
}
