//! What is asked of the kernel and of the C library in their own terms.
//!
//! Outside the reactor, only this module and `profile::ring` may have `unsafe`. Its functions are safe to call with any
//! values. Calls that rustix makes safe are made where they are needed, unless many places need the same one.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::os::unix::thread::JoinHandleExt;
use std::process::Command;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions,
};
use rustix::thread::CpuSet;

/// A process as the kernel names it. `None` for numbers that mean other things than one process.
pub(crate) fn process(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The thread that calls this, as the kernel numbers it.
pub(crate) fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Sends a signal to a process if it is still the one that is meant. Nothing happens if it is gone. The kernel may give the
/// number of a process that ends to another at any time, so the process is held before `meant` looks at it.
pub(crate) fn signal(pid: u32, signal: Signal, meant: impl Fn(u32) -> bool) {
    let Some(number) = process(pid) else { return };
    let _ = match rustix::process::pidfd_open(number, PidfdFlags::empty()) {
        Ok(held) if meant(pid) => rustix::process::pidfd_send_signal(held, signal),
        // A kernel before 5.3, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) if meant(pid) => rustix::process::kill_process(number, signal),
        _ => Ok(()),
    };
}

/// Sends a signal to all processes of a group. Nothing happens if there are none.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    let _ = process(group).map(|group| rustix::process::kill_process_group(group, signal));
}

/// How a child ended. `None` if it has not. Does not reap it.
pub(crate) fn ended(child: u32) -> Option<WaitIdStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(process(child)?), options).ok().flatten()
}

/// Reaps a child if it has ended. Nothing happens if it is not a child.
pub(crate) fn reap(child: u32) {
    let _ = process(child).map(|child| rustix::process::waitpid(Some(child), WaitOptions::NOHANG));
}

/// Raises the soft limit on open files to the hard one. Returns what it was before, and `None` if there was no limit.
pub(crate) fn raise_file_limit() -> rustix::io::Result<Option<u64>> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    Ok(limit.current)
}

/// Prepares what happens in the child between fork and exec. The kernel kills it when the thread that starts it ends. It
/// runs on `cores` only, if there are any, and may open as many files as the hard limit allows.
pub(crate) fn tie_to_us(command: &mut Command, cores: Option<CpuSet>) {
    let us = Pid::from_raw(std::process::id().cast_signed());
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before this took effect, nobody would ever kill us.
        if rustix::process::getppid() != us {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let Some(cores) = &cores {
            rustix::thread::sched_setaffinity(None, cores)?;
        }
        let _ = raise_file_limit();
        Ok(())
    };
    // SAFETY: the closure makes plain system calls only, which are safe between fork and exec. It allocates nothing, and
    // touches only what it owns.
    unsafe { command.pre_exec(before_exec) };
}

/// Lets the command begin with this limit on open files, soft and hard. It does not begin if the kernel refuses.
pub(crate) fn limit_files(command: &mut Command, files: u64) {
    let limit = Rlimit { current: Some(files), maximum: Some(files) };
    let before_exec = move || Ok(rustix::process::setrlimit(Resource::Nofile, limit)?);
    // SAFETY: setrlimit(2) is safe between fork and exec. The closure allocates nothing and owns two numbers.
    unsafe { command.pre_exec(before_exec) };
}

/// Lets the command begin with this limit on file locks, and with none if there is no number. What the kernel refuses stays as it was.
pub(crate) fn limit_locks(command: &mut Command, number: Option<u64>) {
    let before_exec = move || {
        let limit = rustix::process::getrlimit(Resource::Locks);
        let _ = rustix::process::setrlimit(
            Resource::Locks,
            Rlimit { current: number.or(limit.maximum), ..limit },
        );
        Ok(())
    };
    // SAFETY: getrlimit(2) and setrlimit(2) are safe between fork and exec. The closure allocates nothing and owns a number.
    unsafe { command.pre_exec(before_exec) };
}

/// Lets the command go before all programs of usual priority. It gets a session of its own, because the kernel may weigh whole
/// sessions against each other (sched(7), autogroup), and the user's other programs must keep their weight. The kernel kills it when
/// the thread that starts it ends. It does not begin if its user may not do this.
pub(crate) fn go_first(command: &mut Command) {
    const FIRST: i32 = -20;
    let before_exec = || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        let _ = rustix::process::setsid();
        rustix::process::setpriority_process(None, FIRST)?;
        // Where the kernel weighs no sessions, there is no such file.
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
        if let Ok(weight) = rustix::fs::open(c"/proc/self/autogroup", flags, rustix::fs::Mode::empty()) {
            let _ = rustix::io::write(&weight, b"-20");
        }
        Ok(())
    };
    // SAFETY: the closure makes plain system calls only, which are safe between fork and exec. It allocates nothing, and closes what it
    // opens.
    unsafe { command.pre_exec(before_exec) };
}

/// Gives the command a session of its own, and lets it ignore the signals that ask Narrows to end.
pub(crate) fn set_apart(command: &mut Command) {
    let before_exec = || {
        let _ = rustix::process::setsid();
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: nothing runs when the signal comes. It stays ignored in the program that is executed.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        Ok(())
    };
    // SAFETY: setsid(2) and signal(2) are safe between fork and exec. The closure allocates nothing and owns nothing.
    unsafe { command.pre_exec(before_exec) };
}

/// Lets the command write its own number, which `0` stands for, into a list of processes before it begins.
pub(crate) fn enlist(command: &mut Command, list: Arc<File>) {
    let before_exec = move || match rustix::io::write(&list, b"0")? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    };
    // SAFETY: write(2) is safe between fork and exec. The closure allocates nothing, and keeps the file open.
    unsafe { command.pre_exec(before_exec) };
}

/// The clock ticks of a second, in which `/proc` counts times. The C library is asked, because what rustix reads for this is not there
/// under valgrind.
pub(crate) fn clock_ticks_per_second() -> u64 {
    configured(libc::_SC_CLK_TCK, 100)
}

/// The bytes of a page of memory.
pub(crate) fn page_size() -> u64 {
    configured(libc::_SC_PAGESIZE, 4096)
}

fn configured(name: i32, usual: u64) -> u64 {
    // SAFETY: the call takes no pointers.
    u64::try_from(unsafe { libc::sysconf(name) }).ok().filter(|value| *value > 0).unwrap_or(usual)
}

/// The clock ticks since the machine started, as `/proc` counts them.
pub(crate) fn ticks_since_start() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) } != 0 {
        return 0;
    }
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0).saturating_mul(clock_ticks_per_second());
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(clock_ticks_per_second());
    seconds.saturating_add(nanos / 1_000_000_000)
}

/// The CPU time of a process in nanoseconds. `None` if it is gone.
pub(crate) fn cpu_time_ns(pid: u32) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` outlives the call.
    if unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Interrupts a system call in which a thread waits. Does nothing else to it.
pub(crate) fn interrupt_call<T>(thread: &JoinHandle<T>) {
    extern "C" fn nothing(_: i32) {}
    static CAUGHT: Once = Once::new();
    #[expect(clippy::arithmetic_side_effects, reason = "signals are below 128")]
    let signal = libc::SIGRTMIN() + 3;
    // SAFETY: sigaction is plain data for which zeros are valid: no flags, so that calls are interrupted, and no mask. The
    // handler does nothing.
    CAUGHT.call_once(|| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    });
    // The type of a thread's id is a pointer with musl and an integer with glibc.
    // SAFETY: the thread has not been joined, because its handle is there, so its id is valid. The signal has a handler.
    unsafe { libc::pthread_kill(thread.as_pthread_t() as libc::pthread_t, signal) };
}

/// Waits for the stop of a tracee of this thread. Returns the tracee and why it stopped, as waitid(2) says it. Does not reap
/// processes.
pub(crate) fn wait_for_stop() -> io::Result<(i32, i32)> {
    // SAFETY: siginfo_t is plain data for which zeros are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WSTOPPED | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: `info` outlives the call.
    if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: waitid filled `info` in, so these fields are the valid ones of the union.
    Ok(unsafe { (info.si_pid(), info.si_status()) })
}

/// What can be asked of a tracee without moving memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    /// Become a tracee of this thread, with all that it starts later. Stops for system calls are told from signals.
    Seize,
    /// Stop.
    Interrupt,
    /// Stay stopped, but say when that changes.
    Listen,
    /// Go on to the next system call, with this signal if it is not 0.
    GoOn(i32),
    /// Go on untraced, with this signal if it is not 0.
    Detach(i32),
}

/// Asks a tracee, or a task that shall become one.
pub(crate) fn ptrace(task: i32, ask: Ask) -> io::Result<()> {
    const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT;
    let (request, data) = match ask {
        Ask::Seize => (libc::PTRACE_SEIZE, OPTIONS),
        Ask::Interrupt => (libc::PTRACE_INTERRUPT, 0),
        Ask::Listen => (libc::PTRACE_LISTEN, 0),
        Ask::GoOn(signal) => (libc::PTRACE_SYSCALL, signal),
        Ask::Detach(signal) => (libc::PTRACE_DETACH, signal),
    };
    // SAFETY: none of these requests reads or writes memory of this process.
    let answer = unsafe { libc::ptrace(request, task, 0_usize, data.cast_unsigned() as usize) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel says of the system call for which a tracee stopped: `struct ptrace_syscall_info`.
pub(crate) fn syscall_info(task: i32) -> io::Result<[u8; 88]> {
    /// `PTRACE_GET_SYSCALL_INFO`, which not every C library names.
    const GET_SYSCALL_INFO: i64 = 0x420e;
    let mut info = [0_u8; 88];
    // SAFETY: the kernel writes at most as many bytes as it is told, which `info` has.
    let written = unsafe { libc::ptrace(GET_SYSCALL_INFO as _, task, info.len(), info.as_mut_ptr()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(info) }
}
