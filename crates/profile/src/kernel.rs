//! Time in the kernel, by what was asked of it. Pure.

use std::collections::BTreeMap;

use crate::profile::{KERNEL, Kind, Profile};

/// Where the kernel's time of all other entries goes.
const OTHER: &str = "other";

/// Where all of the kernel's time goes if its functions may not be seen.
const ALL: &str = "system calls";

/// Time in the kernel that began with one kind of entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelTime {
    /// The system call by the name of its manual page, such as `recvfrom`; or `page faults`, `interrupts`, `entry and exit` (of a
    /// system call, outside of its own function), `other`. `system calls` is all of it where its
    /// functions may not be seen.
    pub entry: String,
    /// The samples in it.
    pub samples: u64,
}

impl Profile {
    /// The kernel's time by the entry that led to it, with the largest first. An interrupt that arrives within a system call is part
    /// of that call: the kernel handles much of the network this way. Empty if the kernel is not in the profile.
    pub fn by_system_call(&self) -> Vec<KernelTime> {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for stack in &self.stacks {
            let names = self.frames_of(stack).filter(|frame| frame.kind == Kind::Kernel);
            let names: Vec<&str> = names.map(|frame| frame.name.as_str()).collect();
            if !names.is_empty() {
                let sum = times.entry(entry(&names)).or_default();
                *sum = sum.saturating_add(stack.count);
            }
        }
        let mut times: Vec<_> = times
            .into_iter()
            .map(|(entry, samples)| KernelTime { entry: entry.to_owned(), samples })
            .collect();
        times.sort_by_key(|time| std::cmp::Reverse(time.samples));
        times
    }
}

/// What led to these functions of the kernel, from the root to the leaf: the first of them that tells.
pub(crate) fn entry<'n>(names: &[&'n str]) -> &'n str {
    if names == [KERNEL] {
        return ALL;
    }
    let telling = names.iter().find_map(|name| system_call(name).or_else(|| other_entry(name)));
    let calls =
        |name: &&str| name.contains("syscall_64") || name.contains("SYSCALL_64") || name.contains("el0_svc");
    telling.unwrap_or(if names.iter().any(calls) { "entry and exit" } else { OTHER })
}

/// The system call whose function this is. The kernel's macros name it after the architecture and the way in
/// (`SYSCALL_DEFINE`, arch/*/include/asm/syscall_wrapper.h).
pub(crate) fn system_call(name: &str) -> Option<&str> {
    const PREFIXES: [&str; 9] = [
        "__x64_sys_",
        "__arm64_sys_",
        "__riscv_sys_",
        "__s390x_sys_",
        "__ia32_sys_",
        "__ia32_compat_sys_",
        "__se_sys_",
        "__do_sys_",
        "ksys_",
    ];
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|call| !call.is_empty())
}

fn other_entry(name: &str) -> Option<&'static str> {
    const FAULTS: [&str; 5] = ["page_fault", "do_user_addr_fault", "el0_da", "el0_ia", "do_mem_abort"];
    const INTERRUPTS: [&str; 7] = [
        "sysvec_",
        "common_interrupt",
        "el0_irq",
        "el0_interrupt",
        "irq_exit",
        "handle_softirqs",
        "__do_softirq",
    ];
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&FAULTS) { Some("page faults") } else { has(&INTERRUPTS).then_some("interrupts") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_telling_function_decides() {
        let table: [(&[&str], &str); 10] = [
            (&["[kernel]"], "system calls"),
            (
                &["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_recvfrom", "__sys_recvfrom"],
                "recvfrom",
            ),
            (
                &["do_syscall_64", "x64_sys_call", "__x64_sys_sendto", "asm_sysvec_apic_timer_interrupt"],
                "sendto",
            ),
            (&["el0t_64_sync", "el0_svc", "__arm64_sys_epoll_pwait"], "epoll_pwait"),
            (&["do_syscall_64", "ksys_read", "vfs_read"], "read"),
            (
                &["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "syscall_exit_to_user_mode"],
                "entry and exit",
            ),
            (&["asm_exc_page_fault", "exc_page_fault", "handle_mm_fault"], "page faults"),
            (&["asm_sysvec_apic_timer_interrupt", "irq_exit_rcu"], "interrupts"),
            (&["asm_common_interrupt"], "interrupts"),
            (&["ret_from_fork_asm", "schedule_tail"], "other"),
        ];
        for (names, expected) in table {
            assert_eq!(entry(names), expected, "{names:?}");
        }
    }

    #[test]
    fn only_the_kernel_counts() {
        let profile = crate::profile::tests::profile(&[
            (&["main", "__x64_sys_read"], 3),
            (&["main", "__x64_sys_write"], 4),
            (&["main", "sysvec_of_my_own"], 9),
        ]);
        let times = profile.by_system_call();
        let table: Vec<_> = times.iter().map(|time| (time.entry.as_str(), time.samples)).collect();
        assert_eq!(table, [("write", 4), ("read", 3)]);
    }
}
