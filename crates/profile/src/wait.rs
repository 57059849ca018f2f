//! What a thread waits for, by the functions of its stack. Pure.

use serde::{Deserialize, Serialize};

use crate::kernel;
use crate::profile::{Frame, Kind};
use crate::waits::{ALREADY_WAITING, NOT_SAMPLED};

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Another thread of its own program: a lock, a condition, a channel (futex(2)).
    Lock,
    /// The disk: a page that is read or written, the journal of a file system, a device.
    Disk,
    /// Time to pass: it sleeps.
    Timer,
    /// Any of its peers, of files, or a timeout: epoll_wait(2), poll(2), select(2), io_uring_enter(2). Event
    /// loops have nothing to do then.
    Readiness,
    /// Data from a socket that it reads.
    Receive,
    /// A connection.
    Accept,
    /// Room in a socket that it writes.
    Send,
    /// The other end of a pipe.
    Pipe,
    /// The end of a process that it started.
    Child,
    /// Something else. The system call by the name of its manual page, as in
    /// [`KernelTime`](crate::KernelTime); or the function in user space that ran, where the kernel's are not
    /// known.
    Other(String),
    /// The stack is not known: it was not taken, or the thread has waited since before.
    Unknown,
}

/// What tells by the whole name of a function of the kernel, or of a system call.
const NAMES: [(Wait, &[&str]); 9] = [
    (Wait::Lock, &["do_futex", "futex", "futex_wait", "futex_waitv", "futex_time64"]),
    (
        Wait::Timer,
        &["nanosleep", "clock_nanosleep", "clock_nanosleep_time64", "hrtimer_nanosleep", "common_nsleep"],
    ),
    (
        Wait::Readiness,
        &[
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
            "do_epoll_wait",
            "ep_poll",
            "poll",
            "ppoll",
            "ppoll_time64",
            "do_sys_poll",
            "select",
            "pselect6",
            "do_select",
            "core_sys_select",
            "io_uring_enter",
            "io_cqring_wait",
            "io_getevents",
            "read_events",
        ],
    ),
    (
        Wait::Receive,
        &[
            "recv",
            "recvfrom",
            "recvmsg",
            "recvmmsg",
            "recvmmsg_time64",
            "sock_recvmsg",
            "sock_read_iter",
            "tcp_recvmsg",
            "inet_recvmsg",
            "unix_stream_recvmsg",
            "unix_stream_read_generic",
            "sk_wait_data",
        ],
    ),
    (Wait::Accept, &["accept", "accept4", "do_accept", "inet_accept", "inet_csk_accept", "unix_accept"]),
    (
        Wait::Send,
        &[
            "send",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "sock_sendmsg",
            "sock_write_iter",
            "tcp_sendmsg",
            "unix_stream_sendmsg",
            "sk_stream_wait_memory",
            "sock_alloc_send_pskb",
        ],
    ),
    (
        Wait::Pipe,
        &[
            "pipe_read",
            "anon_pipe_read",
            "fifo_pipe_read",
            "pipe_write",
            "anon_pipe_write",
            "fifo_pipe_write",
        ],
    ),
    (Wait::Child, &["wait4", "waitid", "waitpid", "do_wait", "kernel_wait4", "kernel_waitid"]),
    (
        Wait::Disk,
        &[
            "fsync",
            "fdatasync",
            "sync_file_range",
            "msync",
            "sync",
            "syncfs",
            "do_fsync",
            "vfs_fsync_range",
            "io_schedule",
            "io_schedule_timeout",
            "folio_wait_bit",
            "folio_wait_writeback",
            "submit_bio_wait",
            "rq_qos_wait",
        ],
    ),
];
/// What tells by the beginning of a function's name.
const BEGINNINGS: [(Wait, &[&str]); 3] = [
    (
        Wait::Disk,
        &[
            "wait_on_page",
            "__wait_on_buffer",
            "jbd2_",
            "ext4_sync",
            "xfs_file_fsync",
            "xfs_log_",
            "blk_",
            "blkdev_",
        ],
    ),
    (Wait::Receive, &["__skb_wait_for_more_packets", "__skb_recv"]),
    (Wait::Pipe, &["pipe_wait_"]),
];
/// Functions of libc that wait for a futex.
const LOCKS: [&str; 8] = [
    "lll_lock_wait",
    "futex_abstimed_wait",
    "futex_lock_pi",
    "pthread_mutex_lock",
    "pthread_cond_",
    "pthread_rwlock_",
    "sem_wait",
    "pthread_barrier_wait",
];

/// How the functions of Go and of Rust begin that make system calls for others.
const RUNTIMES: [&str; 9] = [
    "runtime.",
    "syscall.",
    "internal/runtime/",
    "runtime/internal/",
    "internal/poll.",
    "golang.org/x/sys/",
    "std::",
    "core::",
    "libc::",
];

/// What a thread with these frames waits for, from the root to the leaf: the first function of the kernel
/// that tells, or else the one in user space that made the system call.
pub(crate) fn wait(frames: &[&Frame]) -> Wait {
    if let [frame] = frames
        && (frame.name == NOT_SAMPLED || frame.name == ALREADY_WAITING)
    {
        return Wait::Unknown;
    }
    let visible = |frame: &&&Frame| frame.kind == Kind::Kernel && frame.name != "[unknown]";
    let kernel: Vec<&str> = frames.iter().filter(visible).map(|frame| frame.name.as_str()).collect();
    if kernel.is_empty() {
        let leaf = frames.iter().rev().find(|frame| frame.kind != Kind::Kernel);
        return leaf.map_or(Wait::Unknown, |frame| by_user(&frame.name));
    }
    let told = kernel.iter().find_map(|name| told(kernel::system_call(name).unwrap_or(name)));
    told.unwrap_or_else(|| Wait::Other(kernel::entry(&kernel).to_owned()))
}

fn told(name: &str) -> Option<Wait> {
    // Compilers append what they did with a function.
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let whole = NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(wait, _)| wait);
    let begun = || {
        let begins = |names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
        BEGINNINGS.iter().find(|(_, names)| begins(names)).map(|(wait, _)| wait)
    };
    whole.or_else(begun).cloned()
}

/// What a function in user space waits for that makes system calls.
fn by_user(name: &str) -> Wait {
    let plain = plain(name);
    if LOCKS.iter().any(|lock| plain.starts_with(lock)) {
        return Wait::Lock;
    }
    // Only whole names of system calls: a function of a program may begin as one of the kernel's.
    let call = if plain == "usleep" || plain == "sleep" { "nanosleep" } else { plain };
    let known = NAMES.iter().find(|(_, names)| names.contains(&call));
    known.map_or_else(|| Wait::Other(name.to_owned()), |(wait, _)| wait.clone())
}

/// A function's name without what libc adds to its own, without its version, and without the package of Go's
/// runtime.
fn plain(name: &str) -> &str {
    let name = match RUNTIMES.iter().any(|runtime| name.starts_with(runtime)) {
        true => name.rsplit_once('.').map_or(name, |(_, name)| name),
        false => name.split_once(['@', '.']).map_or(name, |(name, _)| name),
    };
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let name = name.trim_start_matches('_');
    name.strip_prefix("libc_").unwrap_or(name)
}

/// The innermost function in user space, without those of libc and of runtimes that only make system calls for
/// others.
pub(crate) fn caller<'f>(frames: &[&'f Frame]) -> Option<&'f str> {
    let user = frames.iter().rev().filter(|frame| matches!(frame.kind, Kind::User | Kind::Runtime));
    user.map(|frame| (frame, frame.name.as_str()))
        .find(|(frame, name)| !wraps(frame, name))
        .map(|(_, name)| name)
}

fn wraps(frame: &Frame, name: &str) -> bool {
    const MODULES: [&str; 7] =
        ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "libc.musl", "ld-2."];
    let file = frame.module.rsplit('/').next().unwrap_or_default();
    // In a program that has libc in it, only names can tell.
    let inside =
        matches!(plain(name), "_start" | "start_thread" | "clone" | "clone3" | "syscall" | "libc_start_main")
            || name.starts_with("__libc_")
            || name.starts_with("__GI_")
            || LOCKS.iter().any(|lock| plain(name).starts_with(lock))
            || !matches!(by_user(name), Wait::Other(_));
    file == "[vdso]"
        || MODULES.iter().any(|module| file.starts_with(module))
        || RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
        || name.starts_with('<') && (name.contains(" as std::") || name.starts_with("<std::"))
        || inside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::tests::frame;

    /// A stack out of names with marks: `k:` for the kernel's, `c:` for libc's.
    fn frames(names: &[&str]) -> Vec<Frame> {
        let one = |marked: &&str| match marked.split_once(':').filter(|(mark, _)| mark.len() == 1) {
            Some(("k", name)) => Frame { kind: Kind::Kernel, module: "[kernel]".into(), ..frame(name) },
            Some(("c", name)) => Frame { module: "/lib/libc.so.6".into(), ..frame(name) },
            _ => frame(marked),
        };
        names.iter().map(one).collect()
    }

    fn of(names: &[&str]) -> (Wait, Option<String>) {
        let frames = frames(names);
        let frames: Vec<&Frame> = frames.iter().collect();
        (wait(&frames), caller(&frames).map(str::to_owned))
    }

    #[test]
    fn the_first_function_that_tells_decides() {
        let other = |name: &str| Wait::Other(name.into());
        let table: [(&[&str], Wait); 17] = [
            (&["k:do_syscall_64", "k:__x64_sys_futex", "k:do_futex", "k:schedule"], Wait::Lock),
            (&["k:__x64_sys_clock_nanosleep", "k:common_nsleep", "k:do_nanosleep"], Wait::Timer),
            (&["k:__arm64_sys_epoll_pwait", "k:do_epoll_wait", "k:schedule"], Wait::Readiness),
            (&["k:x64_sys_call", "k:__x64_sys_io_uring_enter", "k:io_cqring_wait"], Wait::Readiness),
            (&["k:__x64_sys_recvfrom", "k:__sys_recvfrom", "k:tcp_recvmsg", "k:wait_woken"], Wait::Receive),
            (&["k:ksys_read", "k:vfs_read", "k:sock_read_iter", "k:tcp_recvmsg"], Wait::Receive),
            (&["k:ksys_read", "k:vfs_read", "k:anon_pipe_read", "k:schedule"], Wait::Pipe),
            (
                &["k:ksys_read", "k:vfs_read", "k:filemap_read", "k:folio_wait_bit", "k:io_schedule"],
                Wait::Disk,
            ),
            (&["k:ksys_read", "k:vfs_read", "k:tty_read", "k:schedule"], other("read")),
            (&["k:ksys_write", "k:sock_write_iter", "k:sk_stream_wait_memory"], Wait::Send),
            (&["k:__x64_sys_accept4", "k:inet_csk_accept"], Wait::Accept),
            (&["k:__x64_sys_fsync", "k:do_fsync", "k:jbd2_log_wait_commit"], Wait::Disk),
            (&["k:ksys_write", "k:ext4_file_write_iter", "k:jbd2_journal_start.part.0"], Wait::Disk),
            (&["k:do_syscall_64", "k:kernel_wait4", "k:do_wait"], Wait::Child),
            (&["k:asm_exc_page_fault", "k:filemap_fault", "k:io_schedule"], Wait::Disk),
            (&["k:asm_exc_page_fault", "k:rwsem_down_read_slowpath"], other("page faults")),
            (&["k:__x64_sys_rt_sigtimedwait", "k:schedule"], other("rt_sigtimedwait")),
        ];
        for (names, expected) in table {
            assert_eq!(of(names).0, expected, "{names:?}");
        }
    }

    #[test]
    fn without_the_kernel_the_function_that_called_it_decides() {
        let other = |name: &str| Wait::Other(name.into());
        let table = [
            ("c:__libc_recv", Wait::Receive),
            ("c:__GI___lll_lock_wait", Wait::Lock),
            ("c:__futex_abstimed_wait_common", Wait::Lock),
            ("c:clock_nanosleep@GLIBC_2.2.5", Wait::Timer),
            ("c:epoll_wait", Wait::Readiness),
            ("c:__GI___wait4", Wait::Child),
            ("c:accept4", Wait::Accept),
            ("c:fsync", Wait::Disk),
            ("c:read", other("read")),
            ("runtime.futex", Wait::Lock),
            ("internal/runtime/syscall.Syscall6", other("internal/runtime/syscall.Syscall6")),
        ];
        for (name, expected) in table {
            assert_eq!(of(&["main", name]).0, expected, "{name}");
            assert_eq!(of(&["main", name, "k:[unknown]"]).0, expected, "{name}");
        }
        assert_eq!(of(&[NOT_SAMPLED]).0, Wait::Unknown);
        assert_eq!(of(&[ALREADY_WAITING]).0, Wait::Unknown);
        assert_eq!(of(&[]), (Wait::Unknown, None));
    }

    #[test]
    fn the_caller_is_a_function_of_the_program() {
        let table: [(&[&str], Option<&str>); 8] = [
            (&["c:__libc_start_call_main", "main", "serve", "c:__libc_recv", "k:schedule"], Some("serve")),
            (&["main.serve", "internal/poll.(*FD).Read", "syscall.Read", "k:schedule"], Some("main.serve")),
            (&["server::accept", "std::net::tcp::TcpListener::accept", "c:accept4"], Some("server::accept")),
            (&["main", "worker", "__GI___lll_lock_wait"], Some("worker")),
            (&["_start", "__libc_start_main", "main", "epoll_wait"], Some("main")),
            (&["c:start_thread", "c:read", "k:schedule"], None),
            (&["main.poll", "net.(*conn).Read", "internal/poll.(*FD).Read"], Some("net.(*conn).Read")),
            (&["readinto", "_PyEval_EvalFrameDefault", "sock_recv_impl", "c:recv"], Some("sock_recv_impl")),
        ];
        for (names, expected) in table {
            assert_eq!(of(names).1.as_deref(), expected, "{names:?}");
        }
    }

    proptest! {
        #[test]
        fn any_names_have_an_answer(names in prop::collection::vec("(k:|c:|)[a-z_.@<:]{0,12}", 0..8)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (wait, caller) = of(&names);
            prop_assert_eq!(wait == Wait::Unknown, names.is_empty());
            prop_assert!(caller.is_none_or(|caller| names.iter().any(|name| name.ends_with(&caller))));
        }
    }
}
