//! The calling thread's core, timers and CPU time, and the process's limit of open files.

use std::io;
use std::time::Duration;

/// The number of files that this process may have open.
///
/// # Errors
/// The kernel refused to tell.
pub fn open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is alive during the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => Ok(limit.rlim_cur),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Pins the calling thread to one core. If the core is offline or forbidden, the thread stays where it is: an unpinned
/// measurement is better than none.
pub fn pin(core: usize) {
    // SAFETY: an all-zero cpu_set_t is the empty set; CPU_SET checks its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Makes the kernel wake this thread exactly when it asks, and not up to 50 us later to save power.
pub fn exact_timers() {
    // SAFETY: prctl(2) with PR_SET_TIMERSLACK takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
}

/// How long the calling thread could run and waited for a core. None if the kernel does not say (`CONFIG_SCHED_INFO`), or if this
/// program has no descriptor left.
pub fn thread_waited() -> Option<Duration> {
    // "time on a core, time waited, time slices", all in nanoseconds: Documentation/scheduler/sched-stats.rst
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// The user and kernel CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is alive during the call; the clock exists on every Linux, and on failure `time` stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
