//! The machine: its description, pinning to cores, and the memory of processes.

use std::fs;
use std::io;
use std::process::Command;

/// Pins this thread, and the children that it starts from now on, to these cores.
pub fn pin(cores: &[usize]) -> io::Result<()> {
    // SAFETY: the set is plain data for which zeros are valid, and CPU_SET writes only within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(core, &mut set);
        }
        crate::net::check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set))?;
    }
    Ok(())
}

/// A memory figure of a process in KiB: `VmRSS` or `VmHWM`.
pub fn memory(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The processor time of a process until now, user and system, in seconds.
pub fn cpu(pid: u32) -> io::Result<f64> {
    // SAFETY: the kernel writes to both values, which are alive during the calls.
    unsafe {
        let (mut clock, mut time) = (0, std::mem::zeroed::<libc::timespec>());
        match libc::clock_getcpuclockid(pid as i32, &mut clock) {
            0 => crate::net::check(libc::clock_gettime(clock, &mut time))?,
            error => return Err(io::Error::from_raw_os_error(error)),
        };
        Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }
}

/// Processor, cores, memory and kernel in one line.
pub fn description() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    // Not the cores that this process may use: it has pinned itself.
    let cores = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, {} GiB; Linux {}", (total + (1 << 19)) >> 20, kernel.trim())
}

/// Today, in UTC.
pub fn date() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
