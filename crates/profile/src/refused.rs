//! Why the kernel lets us sample nothing, and what to do about it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;

use crate::tasks::field;

/// `CAP_PERFMON` and `CAP_SYS_ADMIN`, each of which allows it (capabilities(7)).
const CAPABILITIES: u64 = 1 << 38 | 1 << 21;

/// Why nothing can be sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// None of the processes exists.
    #[error("there is no process to profile: {0} ended before it could be sampled")]
    NoProcess(String),
    /// The kernel's setting keeps users from sampling.
    #[error(
        "the kernel refuses to profile process {process}: kernel.perf_event_paranoid is {paranoid}; run \
         `sysctl kernel.perf_event_paranoid=1` as root (2 is enough for CPU time without the kernel's functions), or give this program \
         CAP_PERFMON"
    )]
    Paranoid {
        /// The process.
        process: u32,
        /// The value of kernel.perf_event_paranoid.
        paranoid: i64,
    },
    /// The process belongs to another user.
    #[error(
        "the kernel refuses to profile process {process}: it belongs to user {owner}; run as this user or as root, or give this \
         program CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    Owner {
        /// The process.
        process: u32,
        /// The user's number.
        owner: u32,
    },
    /// A filter of system calls keeps perf_event_open(2) from us, as those of containers do.
    #[error(
        "a filter of system calls (seccomp) refuses perf_event_open, as container runtimes set it by default; start the container \
         with `--cap-add PERFMON` or with a profile of seccomp that allows perf_event_open"
    )]
    Seccomp,
    /// The kernel was built without it, or it is turned off.
    #[error(
        "this kernel cannot sample ({0}): it needs CONFIG_PERF_EVENTS, and perf_event_open must not be turned off"
    )]
    Unsupported(io::Error),
    /// The events need more file descriptors than this process may have.
    #[error(
        "{threads} threads on {cpus} CPUs need {files} file descriptors, which are more than this process may open; raise \
         `ulimit -n`"
    )]
    Files {
        /// The threads to sample.
        threads: usize,
        /// The CPUs that they may run on.
        cpus: usize,
        /// The file descriptors that they need.
        files: usize,
    },
    /// The buffers need more locked memory than this user may have.
    #[error(
        "the kernel gives no memory for samples ({0}); raise kernel.perf_event_mlock_kb or `ulimit -l`, or end other profilers of \
         this user"
    )]
    Memory(io::Error),
    /// Another error of the kernel.
    #[error("cannot sample process {process}: {error}")]
    Other {
        /// The process.
        process: u32,
        /// What the kernel said.
        error: io::Error,
    },
}

/// The reason for which perf_event_open(2) failed with `error` for a thread of `process`.
pub(crate) fn reason(process: u32, error: io::Error) -> Refused {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities =
        field(&status, "CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let facts = Facts {
        paranoid: fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        capable: capabilities & CAPABILITIES != 0,
        filtered: field(&status, "Seccomp:") == Some("2"),
        owner: fs::metadata(format!("/proc/{process}")).ok().map(|process| process.uid()),
        user: rustix::process::geteuid().as_raw(),
    };
    judge(process, error, &facts)
}

/// What the reason depends on.
struct Facts {
    paranoid: Option<i64>,
    capable: bool,
    filtered: bool,
    owner: Option<u32>,
    user: u32,
}

fn judge(process: u32, error: io::Error, facts: &Facts) -> Refused {
    let denied = match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => true,
        // A filter of containers may claim that the call does not exist.
        Some(Errno::NOSYS) if facts.filtered => return Refused::Seccomp,
        Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOENT) => return Refused::Unsupported(error),
        _ => false,
    };
    match (facts.paranoid, facts.owner) {
        (Some(paranoid), _) if denied && !facts.capable && paranoid > 2 => {
            Refused::Paranoid { process, paranoid }
        }
        (_, Some(owner)) if denied && !facts.capable && owner != facts.user => {
            Refused::Owner { process, owner }
        }
        _ if denied && facts.filtered => Refused::Seccomp,
        (Some(paranoid), _) if denied && !facts.capable => Refused::Paranoid { process, paranoid },
        _ => Refused::Other { process, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_actual_one() {
        let facts = |paranoid, capable, filtered, owner| Facts {
            paranoid: Some(paranoid),
            capable,
            filtered,
            owner: Some(owner),
            user: 1000,
        };
        let table = [
            (Errno::ACCESS, facts(3, false, false, 1000), "kernel.perf_event_paranoid is 3"),
            (Errno::ACCESS, facts(3, false, true, 0), "kernel.perf_event_paranoid is 3"),
            (Errno::ACCESS, facts(2, false, false, 33), "belongs to user 33"),
            (Errno::PERM, facts(2, false, true, 1000), "seccomp"),
            (Errno::PERM, facts(2, true, true, 33), "seccomp"),
            (Errno::NOSYS, facts(2, false, true, 1000), "seccomp"),
            (Errno::NOSYS, facts(2, true, false, 1000), "CONFIG_PERF_EVENTS"),
            (Errno::ACCESS, facts(2, false, false, 1000), "kernel.perf_event_paranoid is 2"),
            (Errno::INVAL, facts(2, false, true, 1000), "cannot sample process 7: Invalid argument"),
        ];
        for (errno, facts, words) in table {
            let text = judge(7, errno.into(), &facts).to_string();
            assert!(text.contains(words), "{text}");
        }
        let files = Refused::Files { threads: 100, cpus: 64, files: 6400 }.to_string();
        assert!(files.contains("100 threads on 64 CPUs need 6400 file descriptors"), "{files}");
    }
}
