//! From the beginning of sampling to its end. A thread reads what the kernel reports, so that its buffers
//! stay small.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::profiler::Options;
use crate::refused::Refused;
use crate::resolve::Images;
use crate::ring::{Reports, Rings};
use crate::stacks::Sample;

/// What the kernel reports. Times are those of [`now`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'r> {
    /// The stack of a thread.
    Sample { of: Source, sample: Sample<'r> },
    /// A thread left its CPU.
    Off { of: Source, preempted: bool },
    /// A thread got a CPU.
    On { of: Source },
    /// Reports had no room. They were made between `since` and `time`.
    Lost { count: u64, since: u64, time: u64 },
    /// A report could not be understood.
    Unread,
    /// The kernel stopped sampling for the rest of a tick.
    Throttled,
    /// A process was started by another.
    Forked { process: u32, parent: u32 },
    /// A process began another program.
    Executed { process: u32 },
    /// A thread ended.
    Ended { of: Source },
}

/// Of which thread a report is, and when it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub thread: u32,
    /// The thread whose event this is: the reported one, or the one from which it inherited the event.
    pub origin: u32,
    pub time: u64,
}

/// Who takes the reports.
pub(crate) trait Sink: Send + 'static {
    /// Takes one report. Those of one CPU arrive in their order.
    fn take(&mut self, event: Event<'_>);

    /// All reports until this time were taken. Says whether stacks are wanted until the next call.
    fn read(&mut self, until: u64) -> bool;

    /// All reports until this time were taken, and there will be no others.
    fn end(&mut self, time: u64);
}

/// What is being read.
#[derive(Debug)]
pub(crate) struct Reading<S> {
    /// Gives the reports, and for how long the threads were on a CPU.
    reader: JoinHandle<(S, u64)>,
    /// The reader ends when this is dropped.
    stop: Sender<()>,
    began: Instant,
    images: Images,
    kernel: bool,
    depth: u16,
}

/// What was read.
pub(crate) struct Read<S> {
    /// `None` if the reader panicked.
    pub sink: Option<S>,
    /// How long the threads were on a CPU, nanoseconds. It says nothing if switches were reported.
    pub cpu_ns: u64,
    pub images: Images,
    /// Whether the kernel's functions are in the stacks.
    pub kernel: bool,
    /// The number of frames that a stack may have.
    pub depth: u16,
    pub seconds: f64,
}

impl<S: Sink> Reading<S> {
    /// Begins to sample and to read what is reported, in these intervals. `sink` is made from the threads
    /// that there are and the time.
    ///
    /// # Errors
    /// Says why the kernel refuses.
    pub(crate) fn begin(
        processes: &[u32],
        options: &Options,
        reports: Reports,
        interval: Duration,
        sink: impl FnOnce(&[u32], u64) -> S,
    ) -> Result<Self, Refused> {
        let images = Images::before(processes);
        let mut rings = Rings::open(processes, options, reports)?;
        let kernel = rings.kernel;
        let (stop, stopped) = channel::<()>();
        let began = Instant::now();
        let mut sink = sink(&rings.threads(), now());
        rings.enable();
        let read = move || {
            let mut sampling = true;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let until = now();
                rings.read(&mut sink);
                let wanted = sink.read(until);
                if wanted != sampling {
                    rings.sample(wanted);
                    sampling = wanted;
                }
            }
            let end = now();
            rings.disable();
            rings.read(&mut sink);
            sink.end(end);
            (sink, rings.cpu_ns())
        };
        let reader = thread::Builder::new().name("profiler".into()).spawn(read);
        let reader = reader
            .map_err(|error| Refused::Other { process: processes.first().copied().unwrap_or(0), error })?;
        Ok(Self { reader, stop, began, images, kernel, depth: options.depth })
    }

    /// Ends sampling.
    pub(crate) fn end(self) -> Read<S> {
        let Self { reader, stop, began, images, kernel, depth } = self;
        let seconds = began.elapsed().as_secs_f64();
        drop(stop);
        let (sink, cpu_ns) = reader.join().ok().unzip();
        Read { sink, cpu_ns: cpu_ns.unwrap_or(0), images, kernel, depth, seconds }
    }
}

/// The time of the monotonic clock in nanoseconds, as the kernel writes it into reports.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
