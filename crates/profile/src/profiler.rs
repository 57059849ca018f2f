//! From the beginning of sampling to its end. A thread reads what the kernel has sampled, so that its buffers stay small.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::profile::Profile;
use crate::refused::Refused;
use crate::resolve::{Images, resolve};
use crate::ring::{self, Rings};
use crate::stacks::Stacks;
use crate::symbols::Symbols;

/// How often the kernel's buffers are read. They have room for several times as long.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most samples per second. Beyond, sampling takes a noticeable part of what it samples.
const MOST_HZ: u32 = 20_000;

/// How to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of CPU time, for each CPU; 1 to 20,000. The default is 997: a prime number, so that samples do not keep step
    /// with what a program or the kernel does at each tick.
    pub hz: u32,
    /// Whether to sample the kernel's functions. They are left out if this user may not see them; [`Profile::kernel`] says so.
    pub kernel: bool,
    /// The most frames of one stack, of user space and of the kernel together. The kernel allows 127
    /// (kernel.perf_event_max_stack). A deeper stack has a frame `[deeper frames]` in the place of its first callers.
    pub depth: u16,
    /// The most different stacks of addresses. The samples of further ones are counted in a stack with the only frame
    /// `[more stacks]`.
    pub stacks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { hz: 997, kernel: true, depth: 127, stacks: 20_000 }
    }
}

impl Options {
    pub(crate) fn period_ns(&self) -> u64 {
        1_000_000_000_u64.checked_div(u64::from(self.hz.clamp(1, MOST_HZ))).unwrap_or(1)
    }
}

/// Samples processes from [`Profiler::begin`] to [`Profiler::finish`]. Sampling also ends when it is dropped.
#[derive(Debug)]
pub struct Profiler {
    reader: JoinHandle<Stacks>,
    /// The reader ends when this is dropped.
    stop: Sender<()>,
    began: Instant,
    images: Images,
    kernel: bool,
    options: Options,
}

impl Profiler {
    /// Begins to sample all threads of these processes, and the threads and processes that they start later. Processes that they
    /// have started before must be named, too.
    ///
    /// Samples are taken on the CPUs on which at least one of the threads may run now. Each thread needs a file descriptor for each
    /// of these CPUs.
    ///
    /// # Errors
    /// Says why the kernel refuses, and what to do about it.
    pub fn begin(processes: &[u32], options: &Options) -> Result<Self, Refused> {
        let options = Options {
            hz: options.hz.clamp(1, MOST_HZ),
            depth: ring::depth(options.depth),
            ..options.clone()
        };
        let images = Images::before(processes);
        let mut rings = Rings::open(processes, &options)?;
        let kernel = rings.kernel;
        let mut stacks = Stacks::new(options.stacks);
        let (stop, stopped) = channel::<()>();
        let began = Instant::now();
        rings.enable();
        let read = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                rings.read(&mut stacks);
            }
            rings.disable();
            rings.read(&mut stacks);
            stacks
        };
        let reader = thread::Builder::new().name("profiler".into()).spawn(read);
        let reader = reader
            .map_err(|error| Refused::Other { process: processes.first().copied().unwrap_or(0), error })?;
        Ok(Self { reader, stop, began, images, kernel, options })
    }

    /// Ends sampling and names the functions. Call it before the processes end: what is known of a process that has ended is what its
    /// memory was at the beginning, if it existed then, and what its parent's is, if it had begun no other program. Otherwise its frames
    /// are `[ended]`.
    ///
    /// It never fails. Names that cannot be found within ten seconds are left out.
    pub fn finish(self, symbols: &mut Symbols) -> Profile {
        let Self { reader, stop, began, images, kernel, options } = self;
        let seconds = began.elapsed().as_secs_f64();
        drop(stop);
        // A reader that panicked has no samples.
        let stacks = reader.join().unwrap_or_else(|_| Stacks::new(0));
        let mut profile = resolve(&stacks, images, symbols, options.depth);
        (profile.period_ns, profile.kernel, profile.seconds) = (options.period_ns(), kernel, seconds);
        profile
    }
}
