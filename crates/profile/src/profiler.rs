//! How to sample, and sampling of CPU time from its beginning to its end.

use std::time::Duration;

use crate::profile::{Frame, Profile};
use crate::reading::{Event, Reading, Sink};
use crate::refused::Refused;
use crate::resolve::resolve;
use crate::ring::{self, Reports};
use crate::stacks::Stacks;
use crate::symbols::Symbols;

/// How often the kernel's buffers are read. They have room for several times as long.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most samples per second. Beyond, sampling takes a noticeable part of what it samples.
const MOST_HZ: u32 = 20_000;

/// How to sample, by a [`Profiler`] or by a [`Waiter`](crate::Waiter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of CPU time, for each CPU; 1 to 20,000. The default is 997: a prime number, so that
    /// samples do not keep step with what a program or the kernel does at each tick.
    pub hz: u32,
    /// Whether to sample the kernel's functions. If this user may not see them, the kernel's time is in one
    /// frame; [`Profile::kernel`] says so.
    pub kernel: bool,
    /// The most frames of one stack, of user space and of the kernel together. The kernel allows 127
    /// (kernel.perf_event_max_stack). A deeper stack has a frame `[deeper frames]` in the place of its first
    /// callers.
    pub depth: u16,
    /// The most different stacks of addresses. The samples of further ones are counted in a stack with the
    /// only frame `[more stacks]`.
    pub stacks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { hz: 997, kernel: true, depth: 127, stacks: 20_000 }
    }
}

impl Options {
    /// These options within what is possible.
    pub(crate) fn possible(&self) -> Self {
        Self { hz: self.hz.clamp(1, MOST_HZ), depth: ring::depth(self.depth), ..self.clone() }
    }

    pub(crate) fn period_ns(&self) -> u64 {
        1_000_000_000_u64.checked_div(u64::from(self.hz.clamp(1, MOST_HZ))).unwrap_or(1)
    }
}

/// Samples processes from [`Profiler::begin`] to [`Profiler::finish`]. Sampling also ends when it is dropped.
#[derive(Debug)]
pub struct Profiler {
    reading: Reading<Stacks<u64>>,
    options: Options,
}

impl Profiler {
    /// Begins to sample all threads of these processes, and the threads and processes that they start later.
    /// Processes that they have started before must be named, too.
    ///
    /// Samples are taken on the CPUs on which at least one of the threads may run now. Each thread needs a
    /// file descriptor for each of these CPUs.
    ///
    /// # Errors
    /// Says why the kernel refuses, and what to do about it.
    pub fn begin(processes: &[u32], options: &Options) -> Result<Self, Refused> {
        let options = options.possible();
        let stacks = Stacks::new(options.stacks);
        let reading = Reading::begin(processes, &options, Reports::Time, INTERVAL, |_, _| stacks)?;
        Ok(Self { reading, options })
    }

    /// Ends sampling and names the functions. Call it before the processes end: what is known of a process
    /// that has ended is what its memory was at the beginning, if it existed then, and what its parent's is,
    /// if it had begun no other program. Otherwise its frames are `[ended]`.
    ///
    /// It never fails. Names that cannot be found within ten seconds are left out.
    pub fn finish(self, symbols: &mut Symbols) -> Profile {
        let read = self.reading.end();
        let stacks = read.sink.unwrap_or_else(|| Stacks::new(0));
        let (mut table, shallow) = resolve(&stacks, read.images, symbols, read.depth);
        let (period_ns, mut samples) = (self.options.period_ns(), stacks.total());
        if !read.kernel {
            // What the threads were on a CPU for and no sample shows, they were in the kernel for.
            let all = read.cpu_ns.checked_div(period_ns).unwrap_or(0);
            let hidden = all.saturating_sub(samples).saturating_sub(stacks.lost);
            table.add([Frame::of_kernel()], hidden);
            samples = samples.saturating_add(hidden);
        }
        let mut profile = Profile {
            period_ns,
            samples,
            lost: stacks.lost,
            throttled: stacks.throttled,
            shallow,
            kernel: read.kernel,
            seconds: read.seconds,
            ..Profile::default()
        };
        table.put_into(&mut profile);
        profile
    }
}

impl Sink for Stacks<u64> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Sample { of, sample } => {
                if self.counts(of.thread, of.origin) {
                    let number = self.number(&sample);
                    self.add(number, 1);
                }
            }
            other => self.note(other),
        }
    }

    fn read(&mut self, _: u64) -> bool {
        true
    }

    fn end(&mut self, _: u64) {}
}
