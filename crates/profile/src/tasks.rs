//! The threads of processes, and the CPUs that they may run on. Reads `/proc` and `/sys` (proc(5)).

use std::collections::BTreeSet;
use std::fs;
use std::io;

/// More CPUs than Linux has. A list in a file may claim any number.
const MOST_CPUS: usize = 16_384;

/// The threads of a process by their numbers. None if it is gone.
///
/// # Errors
/// The list cannot be read, for example because this process has too many files open.
pub(crate) fn threads(process: u32) -> io::Result<Vec<u32>> {
    match fs::read_dir(format!("/proc/{process}/task")) {
        Ok(entries) => {
            Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The CPUs on which at least one of these threads may run. All that are online if that cannot be read.
pub(crate) fn cpus(threads: &[u32]) -> BTreeSet<usize> {
    let online =
        fs::read_to_string("/sys/devices/system/cpu/online").map(|text| list(&text)).unwrap_or_default();
    let mut allowed = BTreeSet::new();
    for thread in threads {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        allowed.extend(field(&status, "Cpus_allowed_list:").map(list).unwrap_or_default());
        if !online.is_empty() && online.is_subset(&allowed) {
            break;
        }
    }
    match (online.is_empty(), allowed.is_empty()) {
        (true, true) => BTreeSet::from([0]),
        (true, false) => allowed,
        (false, true) => online,
        (false, false) => online.intersection(&allowed).copied().collect(),
    }
}

/// Whether a thread sleeps (proc(5), `/proc/PID/stat`). Its name, which is in parentheses, may be anything.
pub(crate) fn is_asleep(thread: u32) -> bool {
    let stat = fs::read(format!("/proc/{thread}/stat")).unwrap_or_default();
    let name = stat.iter().rposition(|byte| *byte == b')').unwrap_or(stat.len());
    matches!(stat.get(name.saturating_add(2)), Some(b'S' | b'D'))
}

/// A field of a `status` file.
pub(crate) fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The number that a process has for itself, which differs from ours if it is in a container. None if it is gone.
pub(crate) fn own_number(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let own = field(&status, "NStgid:").and_then(|numbers| numbers.split_ascii_whitespace().next_back());
    Some(own.and_then(|number| number.parse().ok()).unwrap_or(process))
}

/// The numbers of a list such as `0-3,8`. Without what cannot be read.
fn list(text: &str) -> BTreeSet<usize> {
    let mut numbers = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            numbers.extend(first..=last.min(MOST_CPUS));
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let table: [(&str, &[usize]); 5] =
            [("0-3,8\n", &[0, 1, 2, 3, 8]), ("5", &[5]), ("", &[]), ("a-3,1", &[1]), ("3-1", &[])];
        for (text, expected) in table {
            assert_eq!(list(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
        assert!(list("0-18446744073709551615").len() <= MOST_CPUS + 1);
    }

    #[test]
    fn a_thread_that_waits_sleeps_and_one_that_runs_does_not() {
        let (number, numbers) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            number.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            let _ = stopped.recv();
        });
        let number = numbers.recv().unwrap();
        while !is_asleep(number) {
            std::thread::yield_now();
        }
        assert!(!is_asleep(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()));
        assert!(!is_asleep(u32::MAX));
        drop(stop);
        sleeper.join().unwrap();
    }

    #[test]
    fn this_process_has_threads_and_cpus() {
        let threads = threads(std::process::id()).unwrap();
        assert!(threads.contains(&std::process::id()));
        assert!(!cpus(&threads).is_empty());
        assert!(super::threads(u32::MAX).unwrap().is_empty());
    }
}
