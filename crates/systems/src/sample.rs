//! What a system's processes use: CPU, memory, context switches, and the kernel's memory for its sockets.
//!
//! A thread follows what has a peak; what only grows is read at the two ends of the window, so that these are exact.

mod course;

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::attach::Theirs;
use crate::proc;
use course::Course;

/// What a system's processes used during a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Use {
    /// CPU seconds, user and kernel, of all processes and of their children that ended.
    pub cpu_s: f64,
    /// The highest sum of proportional set sizes seen in the window, bytes.
    pub peak_pss_bytes: u64,
    /// That sum as it went: milliseconds since the window began, bytes; some dozens of points at most, the peak among them.
    pub pss_course: Vec<(u64, u64)>,
    /// The highest resident size since the start (VmHWM), summed over the processes, bytes.
    pub peak_rss_bytes: u64,
    /// Voluntary and involuntary context switches of all threads that live at the end.
    pub context_switches: u64,
    /// Growth of the machine's TCP socket memory since the sampler's start, at its highest in the window, bytes.
    pub socket_memory_bytes: u64,
}

/// Whose use is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A process group that Narrows started.
    Group(u32),
    /// A server that its user started.
    Theirs(Theirs),
}

impl Whose {
    pub(crate) fn members(&self) -> Vec<u32> {
        match self {
            Self::Group(group) => proc::members(*group),
            Self::Theirs(theirs) => theirs.members(),
        }
    }
}

/// Follows the processes of one system.
pub struct Sampler {
    shared: Arc<Shared>,
    marked: Counts,
}

struct Shared {
    whose: Whose,
    socket_pages_before: u64,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    members: Vec<u32>,
    /// When the window began, and the sum of proportional set sizes since.
    opened: Instant,
    pss: Course,
    rss: u64,
    socket_pages: u64,
    /// Counts the marks, so that a sample that was begun before one does not count after it.
    window: u64,
    sample_now: bool,
    ended: bool,
}

/// What only grows.
#[derive(Default)]
struct Counts {
    cpu_ns: u64,
    switches: HashMap<u32, u64>,
}

const EVERY: Duration = Duration::from_millis(250);
/// Reading the memory of a large process takes the kernel long; it shall cost at most one part in this many.
const COST: u32 = 50;

impl Sampler {
    /// Begins to follow them; before the load, so that the sockets' memory has something to grow from.
    pub(crate) fn start(whose: Whose) -> Self {
        let state = State::new(whose.members());
        let shared = Arc::new(Shared {
            whose,
            socket_pages_before: proc::tcp_memory_pages().unwrap_or(0),
            state: Mutex::new(state),
            wake: Condvar::new(),
        });
        let follower = Arc::clone(&shared);
        // Without the thread the peaks are those of the window's end.
        let _ = thread::Builder::new().name("sampler".to_owned()).spawn(move || follower.follow());
        let marked = Counts::read(&shared.lock().members);
        Self { shared, marked }
    }

    /// The window begins here. Reads only what grows; usually well under a millisecond.
    pub fn mark(&mut self) {
        let members = {
            let mut state = self.shared.lock();
            let members = std::mem::take(&mut state.members);
            *state = State { window: state.window + 1, sample_now: true, ..State::new(members) };
            state.members.clone()
        };
        self.shared.wake.notify_all();
        self.marked = Counts::read(&members);
    }

    /// The window ends here.
    pub fn finish(self) -> Use {
        let members = self.shared.lock().members.clone();
        let now = Counts::read(&members);
        let rss = members.iter().filter_map(|pid| proc::peak_rss(*pid)).sum();
        let pages = proc::tcp_memory_pages().unwrap_or(0);
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.wake.notify_all();
        let mut pss = std::mem::take(&mut state.pss);
        if pss.highest() == 0 {
            // The window was shorter than the thread's first sample.
            pss.push(state.elapsed_ms(), total_pss(&members));
        }
        let growth = state.socket_pages.max(pages).saturating_sub(self.shared.socket_pages_before);
        Use {
            cpu_s: Duration::from_nanos(now.cpu_ns.saturating_sub(self.marked.cpu_ns)).as_secs_f64(),
            peak_pss_bytes: pss.highest(),
            pss_course: pss.into_points(),
            peak_rss_bytes: state.rss.max(rss),
            context_switches: now.switches_since(&self.marked),
            socket_memory_bytes: growth * page_size(),
        }
    }
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampler").field("whose", &self.shared.whose).finish_non_exhaustive()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
    }
}

impl State {
    /// Of a window that begins now.
    fn new(members: Vec<u32>) -> Self {
        Self {
            members,
            opened: Instant::now(),
            pss: Course::default(),
            rss: 0,
            socket_pages: 0,
            window: 0,
            sample_now: false,
            ended: false,
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self) {
        loop {
            let began = Instant::now();
            let window = self.lock().window;
            let members = self.whose.members();
            let pss = total_pss(&members);
            let rss = members.iter().filter_map(|pid| proc::peak_rss(*pid)).sum();
            let pages = proc::tcp_memory_pages().unwrap_or(0);
            let mut state = self.lock();
            state.members = members;
            if state.window == window {
                let ms = state.elapsed_ms();
                state.pss.push(ms, pss);
                state.rss = state.rss.max(rss);
                state.socket_pages = state.socket_pages.max(pages);
            }
            let pause = EVERY.max(began.elapsed() * COST);
            let idle = |state: &mut State| !state.ended && !state.sample_now;
            let waited = self.wake.wait_timeout_while(state, pause, idle);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.ended {
                return;
            }
            state.sample_now = false;
        }
    }
}

impl Counts {
    fn read(members: &[u32]) -> Self {
        // CPU first: everything after it takes time of its own.
        let cpu_ns = members.iter().map(|pid| cpu_ns(*pid)).sum();
        let switches = members.iter().flat_map(|pid| proc::switches(*pid)).collect();
        Self { cpu_ns, switches }
    }

    fn switches_since(&self, before: &Self) -> u64 {
        let grown =
            |(task, now): (&u32, &u64)| now.saturating_sub(before.switches.get(task).copied().unwrap_or(0));
        self.switches.iter().map(grown).sum()
    }
}

fn total_pss(members: &[u32]) -> u64 {
    members.iter().filter_map(|pid| proc::pss(*pid)).sum()
}

/// CPU time of a process and of its children that ended: its clock is exact to the nanosecond, the children's to a tick.
fn cpu_ns(pid: u32) -> u64 {
    let Some(stat) = proc::stat(pid) else { return 0 };
    let own = clock_ns(pid).unwrap_or(stat.own_ticks * tick_ns());
    own + stat.children_ticks * tick_ns()
}

fn clock_ns(pid: u32) -> Option<u64> {
    let mut clock = MaybeUninit::<libc::clockid_t>::uninit();
    // SAFETY: `clock` outlives the call and is read only when the call filled it in.
    let clock = unsafe {
        if libc::clock_getcpuclockid(pid.cast_signed(), clock.as_mut_ptr()) != 0 {
            return None;
        }
        clock.assume_init()
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    Some(seconds * 1_000_000_000 + nanos)
}

fn tick_ns() -> u64 {
    1_000_000_000 / sysconf(libc::_SC_CLK_TCK, 100)
}

fn page_size() -> u64 {
    sysconf(libc::_SC_PAGESIZE, 4096)
}

fn sysconf(name: i32, usual: u64) -> u64 {
    // SAFETY: a plain library call without memory.
    u64::try_from(unsafe { libc::sysconf(name) }).ok().filter(|value| *value > 0).unwrap_or(usual)
}
