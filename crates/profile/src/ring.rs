//! The kernel's events and the buffers into which they write (perf_event_open(2)).
//!
//! Each thread has one event for each CPU that it may run on, and hands it down to the threads and processes that it starts. An
//! event that is handed down may only write to a buffer of one CPU, so all events of a CPU share one. This module is the only one
//! of the crate that may have `unsafe`, for one call: perf-event2 cannot say that events share a buffer.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Counter, SampleFlag, Sampler};
use rustix::io::Errno;

use crate::profiler::Options;
use crate::refused::{Refused, reason};
use crate::stacks::{Sample, Stacks};
use crate::tasks;

/// `PERF_EVENT_IOC_SET_OUTPUT` of linux/perf_event.h.
const SET_OUTPUT: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(b'$', 5);
/// `PERF_RECORD_MISC_COMM_EXEC`: a new name of a process is due to execve(2).
const EXECUTED: u16 = 1 << 13;
/// How much a sample needs, mostly, in bytes, and how large a buffer may be. It holds half a second and more.
const PER_SAMPLE: usize = 512;
const SMALLEST: usize = 16 << 10;
const LARGEST: usize = 8 << 20;
/// How often the threads are listed. Each time finds those that began while events were opened for the others.
const LISTINGS: usize = 4;
/// How many records are read at once. It keeps a reader from following a writer for ever.
const RECORDS: usize = 1 << 18;

/// The open events of all threads, and the buffers of the CPUs.
pub(crate) struct Rings {
    rings: Vec<(usize, Sampler)>,
    events: Vec<Counter>,
    /// The thread for which each event was opened, by the event's number.
    origins: HashMap<u64, u32>,
    /// Whether the events sample the kernel.
    pub kernel: bool,
}

impl Rings {
    /// Opens events for all threads of the processes. They do not sample yet. Without leave to sample the kernel, they sample user
    /// space only.
    pub(crate) fn open(processes: &[u32], options: &Options) -> Result<Self, Refused> {
        match Self::open_all(processes, options, options.kernel) {
            Err(Refused::Paranoid { .. } | Refused::Owner { .. }) if options.kernel => {
                Self::open_all(processes, options, false)
            }
            other => other,
        }
    }

    fn open_all(processes: &[u32], options: &Options, kernel: bool) -> Result<Self, Refused> {
        let mut all = Self { rings: Vec::new(), events: Vec::new(), origins: HashMap::new(), kernel };
        let mut builder = builder(options, kernel);
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
                let opened = all.open_thread(&mut builder, thread, &cpus, options);
                opened.map_err(|error| refused(process, error, known.len(), cpus.len()))?;
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
        builder: &mut Builder<'_>,
        thread: u32,
        cpus: &BTreeSet<usize>,
        options: &Options,
    ) -> Result<(), OpenError> {
        for cpu in cpus {
            builder.observe_pid(thread.cast_signed()).one_cpu(*cpu);
            let event = match builder.build() {
                Ok(event) => event,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::SRCH) => return Ok(()),
                    Some(Errno::NODEV) => continue,
                    _ => return Err(OpenError::Event(error)),
                },
            };
            self.origins.insert(event.id(), thread);
            if let Some((_, ring)) = self.rings.iter().find(|(of, _)| of == cpu) {
                share(&event, ring).map_err(OpenError::Event)?;
                self.events.push(event);
            } else {
                let ring = self.map(event, builder, thread, options).map_err(OpenError::Memory)?;
                self.rings.push((*cpu, ring));
            }
        }
        Ok(())
    }

    /// Makes the buffer of a CPU, and a smaller one if the kernel allows no more.
    fn map(
        &mut self,
        event: Counter,
        builder: &Builder<'_>,
        thread: u32,
        options: &Options,
    ) -> io::Result<Sampler> {
        let wanted = PER_SAMPLE.saturating_mul(options.hz as usize).next_power_of_two();
        let mut size = wanted.clamp(SMALLEST, LARGEST);
        let mut event = Some(event);
        loop {
            // A failed attempt has closed the event.
            let next = event.take().map_or_else(|| builder.build(), Ok)?;
            self.origins.insert(next.id(), thread);
            match next.sampled(size) {
                Err(_) if size > SMALLEST => size /= 2,
                other => return other,
            }
        }
    }

    /// Begins to sample.
    pub(crate) fn enable(&mut self) {
        // An event of a thread that has ended may refuse. The others count.
        self.all().for_each(|event| drop(event.enable()));
    }

    /// Samples no more.
    pub(crate) fn disable(&mut self) {
        self.all().for_each(|event| drop(event.disable()));
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Counter> {
        self.rings.iter_mut().map(|(_, ring)| ring.as_counter_mut()).chain(&mut self.events)
    }

    /// Reads what was sampled until now.
    pub(crate) fn read(&mut self, stacks: &mut Stacks) {
        let origins = &self.origins;
        for (_, ring) in &mut self.rings {
            for _ in 0..RECORDS {
                let Some(record) = ring.next_record() else { break };
                let executed = record.misc() & EXECUTED != 0;
                match record.parse_record() {
                    Ok(parsed) => take(&parsed, executed, origins, stacks),
                    Err(_) => stacks.lost = stacks.lost.saturating_add(1),
                }
            }
        }
    }
}

enum OpenError {
    Event(io::Error),
    Memory(io::Error),
}

fn refused(process: u32, error: OpenError, threads: usize, cpus: usize) -> Refused {
    match error {
        OpenError::Memory(error) => Refused::Memory(error),
        OpenError::Event(error) => match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => Refused::Files { threads, cpus },
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

/// What all events have in common.
fn builder(options: &Options, kernel: bool) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .sample_period(options.period_ns())
        .sample(SampleFlag::TID | SampleFlag::ID | SampleFlag::CALLCHAIN)
        .sample_max_stack(options.depth)
        .exclude_kernel(!kernel)
        .inherit(true)
        .task(true)
        .comm(true)
        .comm_exec(true)
        .enabled(false);
    builder
}

/// Lets an event write into the buffer of another on the same CPU.
#[allow(unsafe_code, reason = "perf-event2 has no function for this call")]
fn share(event: &Counter, ring: &Sampler) -> io::Result<()> {
    // SAFETY: the call takes the number of an open event of the same kind (perf_event_open(2), PERF_EVENT_IOC_SET_OUTPUT), and both
    // are borrowed and therefore open. It reads and writes no memory of this process; the kernel keeps the buffer for as long as
    // an event writes to it.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as libc::Ioctl, ring.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn take(record: &Record<'_>, executed: bool, origins: &HashMap<u64, u32>, stacks: &mut Stacks) {
    match record {
        Record::Sample(sample) => {
            let (Some(process), Some(thread)) = (sample.pid(), sample.tid()) else { return };
            let origin = sample.id().and_then(|id| origins.get(&id)).copied().unwrap_or(thread);
            let chain = sample.callchain().unwrap_or_default();
            stacks.add(Sample { process, thread, origin, chain });
        }
        Record::Lost(lost) => stacks.lost = stacks.lost.saturating_add(lost.lost),
        Record::LostSamples(lost) => stacks.lost = stacks.lost.saturating_add(lost.lost),
        Record::Throttle(_) => stacks.throttled = stacks.throttled.saturating_add(1),
        Record::Fork(fork) => stacks.forked(fork.pid, fork.ppid),
        Record::Comm(comm) if executed => stacks.executed(comm.pid),
        _ => {}
    }
}
