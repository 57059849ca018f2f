//! Sampling of the time off the CPU, from its beginning to its end.

use std::time::Duration;

use crate::profiler::Options;
use crate::reading::{Event, Reading, Sink};
use crate::refused::Refused;
use crate::resolve::{resolve, without_place};
use crate::ring::Reports;
use crate::switches::{Spent, Switches};
use crate::symbols::Symbols;
use crate::tasks;
use crate::waits::{ALREADY_WAITING, NOT_SAMPLED, Waits};

/// How often the kernel's buffers are read, and how long stacks are taken at least if there are too many of
/// them.
const INTERVAL: Duration = Duration::from_millis(20);

/// Watches where processes wait, from [`Waiter::begin`] to [`Waiter::finish`]. Watching also ends when it is
/// dropped.
///
/// It may run beside a [`Profiler`](crate::Profiler). Each switch of a thread costs the process some 0.7 µs,
/// and some 5 µs if its stack is taken; a switch itself costs some 2 µs. At most 10,000 stacks are taken per
/// second on average: if there are more switches, stacks are taken for 20 ms and more at a time, with pauses.
/// All switches are timed nevertheless.
#[derive(Debug)]
pub struct Waiter {
    reading: Reading<Switches>,
}

impl Waiter {
    /// Begins to watch all threads of these processes, and the threads and processes that they start later.
    /// Processes that they have started before must be named, too.
    ///
    /// Threads are watched on the CPUs on which at least one of them may run now. Each thread needs two file
    /// descriptors for each of these CPUs. A user other than root needs kernel.perf_event_paranoid to be 1 or
    /// less, also without the kernel's functions: threads leave their CPU within the kernel.
    ///
    /// # Errors
    /// Says why the kernel refuses, and what to do about it.
    pub fn begin(processes: &[u32], options: &Options) -> Result<Self, Refused> {
        let options = options.possible();
        let switches = |threads: &[u32], began: u64| Switches::new(options.stacks, threads, began);
        let reading = Reading::begin(processes, &options, Reports::Switches, INTERVAL, switches)?;
        Ok(Self { reading })
    }

    /// Ends watching and names the functions. Waits that have not ended count until now. As
    /// [`Profiler::finish`](crate::Profiler::finish), it must be called before the processes end, and never
    /// fails.
    pub fn finish(self, symbols: &mut Symbols) -> Waits {
        let read = self.reading.end();
        let switches = read.sink.unwrap_or_else(|| Switches::new(0, &[], 0));
        let (mut table, shallow) = resolve(&switches.stacks, read.images, symbols, read.depth);
        for (name, spent) in [(NOT_SAMPLED, switches.unsampled), (ALREADY_WAITING, switches.before)] {
            if spent != Spent::default() {
                table.add([without_place(name)], spent);
            }
        }
        let mut waits = Waits {
            seconds: read.seconds,
            switches: switches.switches,
            lost: switches.stacks.lost,
            shallow: shallow.blocked.saturating_add(shallow.preempted),
            kernel: read.kernel,
            ..Waits::default()
        };
        waits.set(table);
        waits
    }
}

impl Sink for Switches {
    fn take(&mut self, event: Event<'_>) {
        self.take(event);
    }

    fn read(&mut self, until: u64) -> bool {
        self.read(until)
    }

    fn end(&mut self, time: u64) {
        self.end(time, tasks::is_asleep);
    }
}
