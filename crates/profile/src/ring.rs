//! The kernel's events and the buffers into which they write (perf_event_open(2)).
//!
//! Each thread has its events for each CPU that it may run on, and hands them down to the threads and
//! processes that it starts. An event that is handed down may only write to a buffer of one CPU, so all
//! events of a CPU share one. This module is the only one of the crate that may have `unsafe`, for one call:
//! perf-event2 cannot say that events share a buffer.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use perf_event::data::{Record, SampleRegsAbi};
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use rustix::io::Errno;

use crate::profiler::Options;
use crate::reading::{Event, Sink, Source};
use crate::refused::{Refused, reason};
use crate::stacks::Sample;
use crate::tasks;
use crate::unwind::Top;

/// `PERF_EVENT_IOC_SET_OUTPUT` of linux/perf_event.h.
const SET_OUTPUT: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(b'$', 5);
/// `PERF_RECORD_MISC_COMM_EXEC`: a new name of a process is due to execve(2).
const EXECUTED: u16 = 1 << 13;
/// `PERF_RECORD_SWITCH`, and the marks of a switch from a thread, and of one that could have gone on
/// (`PERF_RECORD_MISC_SWITCH_OUT`, `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`).
const SWITCH: u32 = 14;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// What each record of all our events has at its end, except samples: a thread, the time and the event, in 24
/// bytes.
const TRAILER: SampleFlag = SampleFlag::TID.union(SampleFlag::TIME).union(SampleFlag::ID);
/// How much of the stack in user space a sample has, in bytes. Functions of libc that make system calls need
/// some 100 bytes, and those that run for long, such as printf(3), up to 2000.
const STACK_OF_SWITCH: u32 = 1024;
const STACK_OF_TIME: u32 = 2048;
/// The registers `rbp` and `rsp` (`enum perf_event_x86_regs` in asm/perf_regs.h).
const REGISTERS: u64 = 1 << 6 | 1 << 7;
/// How much a sample needs, mostly, in bytes, and how large a buffer may be. It holds half a second and more.
const PER_SAMPLE: usize = 512 + STACK_OF_TIME as usize;
const SMALLEST: usize = 16 << 10;
const LARGEST: usize = 8 << 20;
/// How large a buffer for switches is. It holds those of 200 ms at 200,000 switches per second, which need 96
/// bytes each, or the stacks of 20 ms at 100,000 switches per second.
const FOR_SWITCHES: usize = 4 << 20;
/// How often the threads are listed. Each time finds those that began while events were opened for the
/// others.
const LISTINGS: usize = 4;
/// How many records are read at once. It keeps a reader from following a writer for ever.
const RECORDS: usize = 1 << 18;

/// What the events report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Stacks in intervals of CPU time.
    Time,
    /// When a thread leaves its CPU and when it gets one, and the stack with which it leaves.
    Switches,
}

/// The buffer of a CPU.
struct Ring {
    cpu: usize,
    sampler: Sampler,
    /// The time of the last record that had one.
    last: u64,
}

/// The open events of all threads, and the buffers of the CPUs.
pub(crate) struct Rings {
    rings: Vec<Ring>,
    events: Vec<Counter>,
    /// Events that only take stacks, and can be turned off while the others go on.
    stacks: Vec<Counter>,
    /// The thread for which each event was opened, by the event's number.
    origins: HashMap<u64, u32>,
    /// Whether the events sample the kernel.
    pub kernel: bool,
}

impl Rings {
    /// Opens events for all threads of the processes. They report nothing yet. Without leave to sample the
    /// kernel, they sample user space only.
    pub(crate) fn open(processes: &[u32], options: &Options, reports: Reports) -> Result<Self, Refused> {
        match Self::open_all(processes, options, reports, options.kernel) {
            Err(Refused::Paranoid { .. } | Refused::Owner { .. }) if options.kernel => {
                Self::open_all(processes, options, reports, false)
            }
            other => other,
        }
    }

    fn open_all(
        processes: &[u32],
        options: &Options,
        reports: Reports,
        kernel: bool,
    ) -> Result<Self, Refused> {
        let (rings, events, stacks, origins) = Default::default();
        let mut all = Self { rings, events, stacks, origins, kernel };
        let mut kinds = Kinds::of(reports, options, kernel);
        let (mut known, mut cpus) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..LISTINGS {
            let mut new = Vec::new();
            for process in processes.iter().copied() {
                let threads = tasks::threads(process).map_err(|error| Refused::Other { process, error })?;
                new.extend(
                    threads
                        .into_iter()
                        .filter(|thread| known.insert(*thread))
                        .map(|thread| (process, thread)),
                );
            }
            if new.is_empty() {
                break;
            }
            if cpus.is_empty() {
                cpus = tasks::cpus(&new.iter().map(|(_, thread)| *thread).collect::<Vec<_>>());
            }
            for (process, thread) in new {
                let opened = all.open_thread(&mut kinds, thread, &cpus);
                let each = 1_usize.saturating_add(kinds.stacks.iter().len());
                let files = known.len().saturating_mul(cpus.len()).saturating_mul(each);
                opened.map_err(|error| refused(process, error, known.len(), cpus.len(), files))?;
            }
        }
        if all.rings.is_empty() {
            let numbers: Vec<String> = processes.iter().map(ToString::to_string).collect();
            return Err(Refused::NoProcess(numbers.join(", ")));
        }
        Ok(all)
    }

    /// Opens the events of a thread. A thread that has ended and a CPU that is offline are left out.
    fn open_thread(
        &mut self,
        kinds: &mut Kinds,
        thread: u32,
        cpus: &BTreeSet<usize>,
    ) -> Result<(), OpenError> {
        for cpu in cpus {
            let Some(event) = open(&mut kinds.first, thread, *cpu)? else { continue };
            self.origins.insert(event.id(), thread);
            if let Some(ring) = self.rings.iter().find(|ring| ring.cpu == *cpu) {
                share(&event, &ring.sampler).map_err(OpenError::Event)?;
                self.events.push(event);
            } else {
                let sampler = self.map(event, kinds, thread).map_err(OpenError::Memory)?;
                self.rings.push(Ring { cpu: *cpu, sampler, last: 0 });
            }
            let Some(stacks) = &mut kinds.stacks else { continue };
            let Some(event) = open(stacks, thread, *cpu)? else { continue };
            self.origins.insert(event.id(), thread);
            if let Some(ring) = self.rings.iter().find(|ring| ring.cpu == *cpu) {
                share(&event, &ring.sampler).map_err(OpenError::Event)?;
                self.stacks.push(event);
            }
        }
        Ok(())
    }

    /// Makes the buffer of a CPU, and a smaller one if the kernel allows no more.
    fn map(&mut self, event: Counter, kinds: &Kinds, thread: u32) -> io::Result<Sampler> {
        let mut size = kinds.size;
        let mut event = Some(event);
        loop {
            // A failed attempt has closed the event.
            let next = event.take().map_or_else(|| kinds.first.build(), Ok)?;
            self.origins.insert(next.id(), thread);
            match next.sampled(size) {
                Err(_) if size > SMALLEST => size /= 2,
                other => return other,
            }
        }
    }

    /// The threads that have events of their own.
    pub(crate) fn threads(&self) -> Vec<u32> {
        let threads: BTreeSet<u32> = self.origins.values().copied().collect();
        threads.into_iter().collect()
    }

    /// Begins to report.
    pub(crate) fn enable(&mut self) {
        // An event of a thread that has ended may refuse. The others count.
        self.all().for_each(|event| drop(event.enable()));
        self.sample(true);
    }

    /// Reports no more.
    pub(crate) fn disable(&mut self) {
        self.sample(false);
        self.all().for_each(|event| drop(event.disable()));
    }

    /// How long the threads were on a CPU while the events were on, in the kernel and in user space, nanoseconds.
    /// The kernel counts all of it, whatever may be sampled. What cannot be read counts nothing.
    pub(crate) fn cpu_ns(&mut self) -> u64 {
        self.all().filter_map(|event| event.read().ok()).fold(0, u64::saturating_add)
    }

    /// Turns the events on or off that only take stacks, here and where they were handed down to.
    pub(crate) fn sample(&mut self, on: bool) {
        for event in &mut self.stacks {
            drop(if on { event.enable() } else { event.disable() });
        }
    }

    /// The events that are never turned off.
    fn all(&mut self) -> impl Iterator<Item = &mut Counter> {
        self.rings.iter_mut().map(|ring| ring.sampler.as_counter_mut()).chain(&mut self.events)
    }

    /// Reads what was reported until now.
    pub(crate) fn read(&mut self, sink: &mut impl Sink) {
        for ring in &mut self.rings {
            for _ in 0..RECORDS {
                let Some(record) = ring.sampler.next_record() else { break };
                take(&record, &self.origins, &mut ring.last, sink);
            }
        }
    }
}

/// The kinds of events that each thread has, and the size of the buffers.
struct Kinds {
    first: Builder<'static>,
    stacks: Option<Builder<'static>>,
    size: usize,
}

impl Kinds {
    fn of(reports: Reports, options: &Options, kernel: bool) -> Self {
        if reports == Reports::Time {
            let mut first = builder(Software::CPU_CLOCK, options, STACK_OF_TIME);
            first
                .sample_period(options.period_ns())
                .exclude_kernel(!kernel)
                .task(true)
                .comm(true)
                .comm_exec(true);
            let wanted = PER_SAMPLE.saturating_mul(options.hz as usize).next_power_of_two();
            return Self { first, stacks: None, size: wanted.clamp(SMALLEST, LARGEST) };
        }
        // An event that counts nothing reports the switches.
        let mut first = builder(Software::DUMMY, options, STACK_OF_SWITCH);
        first.exclude_kernel(true).context_switch(true).task(true).comm(true).comm_exec(true);
        // All switches are in the kernel, so an event without the kernel would count none.
        let mut stacks = builder(Software::CONTEXT_SWITCHES, options, STACK_OF_SWITCH);
        stacks.sample_period(1).exclude_kernel(false).exclude_callchain_kernel(!kernel);
        Self { first, stacks: Some(stacks), size: FOR_SWITCHES }
    }
}

/// Opens an event. `None` if the thread has ended or the CPU is offline.
fn open(builder: &mut Builder<'_>, thread: u32, cpu: usize) -> Result<Option<Counter>, OpenError> {
    match builder.observe_pid(thread.cast_signed()).one_cpu(cpu).build() {
        Ok(event) => Ok(Some(event)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::SRCH | Errno::NODEV) => Ok(None),
            _ => Err(OpenError::Event(error)),
        },
    }
}

enum OpenError {
    Event(io::Error),
    Memory(io::Error),
}

fn refused(process: u32, error: OpenError, threads: usize, cpus: usize, files: usize) -> Refused {
    match error {
        OpenError::Memory(error) => Refused::Memory(error),
        OpenError::Event(error) => match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => Refused::Files { threads, cpus, files },
            _ => reason(process, error),
        },
    }
}

/// How deep stacks may be, if this is wanted.
pub(crate) fn depth(wanted: u16) -> u16 {
    let most = fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let most: u16 = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(127);
    wanted.min(most).max(1)
}

/// What all events have in common. Records can be told apart only by events that report the same of a sample.
fn builder(event: Software, options: &Options, stack: u32) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder
        .sample(TRAILER | SampleFlag::CALLCHAIN)
        .sample_id_all(true)
        .sample_max_stack(options.depth)
        .clockid(Clock::MONOTONIC)
        .inherit(true)
        .enabled(false);
    if cfg!(target_arch = "x86_64") {
        builder
            .sample(TRAILER | SampleFlag::CALLCHAIN | SampleFlag::REGS_USER | SampleFlag::STACK_USER)
            .sample_regs_user(REGISTERS)
            .sample_stack_user(stack);
    }
    builder
}

/// Lets an event write into the buffer of another on the same CPU.
#[allow(unsafe_code, reason = "perf-event2 has no function for this call")]
fn share(event: &Counter, ring: &Sampler) -> io::Result<()> {
    // SAFETY: the call takes the number of an open event of the same kind (perf_event_open(2),
    // PERF_EVENT_IOC_SET_OUTPUT), and both are borrowed and therefore open. It reads and writes no memory of
    // this process; the kernel keeps the buffer for as long as an event writes to it.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as libc::Ioctl, ring.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Hands a record on. `last` is the time of the one before it.
fn take(record: &perf_event::Record<'_>, origins: &HashMap<u64, u32>, last: &mut u64, sink: &mut impl Sink) {
    let source = |thread: u32, time: u64, id: u64| {
        let origin = origins.get(&id).copied().unwrap_or(thread);
        Source { thread, origin, time }
    };
    let trailer = trailer(record.data()).map(|(thread, time, id)| source(thread, time, id));
    let since = *last;
    if record.ty() == SWITCH {
        // There are many of them, and all that they say is in the header and at the end.
        let Some(of) = trailer else { return };
        *last = of.time;
        let preempted = record.misc() & PREEMPTED != 0;
        return sink.take(match record.misc() & SWITCH_OUT {
            0 => Event::On { of },
            _ => Event::Off { of, preempted },
        });
    }
    let lost = |count| Event::Lost { count, since, time: trailer.map_or(since, |of| of.time) };
    let event = match record.parse_record() {
        Ok(Record::Sample(sample)) => {
            let (Some(process), Some(thread), Some(time)) = (sample.pid(), sample.tid(), sample.time())
            else {
                return;
            };
            *last = time;
            let of = source(thread, time, sample.id().unwrap_or_default());
            let chain = sample.callchain().unwrap_or_default();
            let top = top(&sample);
            return sink.take(Event::Sample { of, sample: Sample { process, chain, top } });
        }
        Ok(Record::Lost(record)) => lost(record.lost),
        Ok(Record::LostSamples(record)) => lost(record.lost),
        Ok(Record::Throttle(_)) => Event::Throttled,
        Ok(Record::Fork(fork)) => Event::Forked { process: fork.pid, parent: fork.ppid },
        Ok(Record::Comm(comm)) if record.misc() & EXECUTED != 0 => Event::Executed { process: comm.pid },
        Ok(Record::Exit(exit)) => match trailer {
            Some(of) => Event::Ended { of: Source { thread: exit.tid, ..of } },
            None => return,
        },
        Ok(_) => return,
        Err(_) => Event::Unread,
    };
    sink.take(event);
}

/// The registers and the top of the stack of a sample in a program of 64 bits.
fn top<'s>(sample: &'s perf_event::data::Sample<'_>) -> Option<Top<'s>> {
    let registers = sample.regs_user().filter(|registers| registers.abi == SampleRegsAbi::ABI_64)?;
    let [frame, stack] = registers.regs.as_ref().try_into().ok()?;
    Some(Top { frame, stack, bytes: sample.stack_user()? })
}

/// The thread, the time and the event's number at the end of a record that is no sample. A record may lie in
/// two parts.
fn trailer(parts: &[&[u8]]) -> Option<(u32, u64, u64)> {
    let mut end = [0_u8; 24];
    let last = parts.iter().rev().flat_map(|part| part.iter().rev());
    let mut copied: usize = 0;
    for (byte, from) in end.iter_mut().rev().zip(last) {
        *byte = *from;
        copied = copied.saturating_add(1);
    }
    let (_, thread, time, id) = (end.get(0..4)?, end.get(4..8)?, end.get(8..16)?, end.get(16..24)?);
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    let thread = u32::from_ne_bytes(thread.try_into().ok()?);
    (copied == end.len()).then_some((thread, number(time)?, number(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_record_may_lie_in_two_parts() {
        let mut record = vec![0xff; 8];
        record.extend([9_u32, 7].map(u32::to_ne_bytes).concat());
        record.extend([5_u64 << 40, 3].map(u64::to_ne_bytes).concat());
        for cut in 0..=record.len() {
            let (first, second) = record.split_at(cut);
            assert_eq!(trailer(&[first, second]), Some((7, 5 << 40, 3)), "{cut}");
        }
        assert_eq!((trailer(&[&record[9..]]), trailer(&[])), (None, None));
    }
}
