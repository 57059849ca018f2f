//! Samples what a system's processes use: CPU, memory, context switches, waits for a core, page faults, and the kernel's
//! memory for its sockets.
//!
//! A thread samples what has a peak. What only grows is read exactly at the start and the end of the window.

mod account;
mod course;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::attach::Theirs;
use crate::proc::{self, Scheduled};
use crate::sys;
use crate::tree::Tree;
use account::{Account, Readings, Spent};
use course::Course;

/// What a system's processes used during a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Use {
    /// CPU seconds, user and kernel, of all processes, also of those that ended in the window.
    pub cpu_s: f64,
    /// The peak of the sum of proportional set sizes in the window, in bytes.
    pub peak_pss_bytes: u64,
    /// The course of that sum: milliseconds since the window began, and bytes. At most 64 points; the peak is one of
    /// them.
    pub pss_course: Vec<(u64, u64)>,
    /// The sum of the processes' peak resident sizes since they started (VmHWM), in bytes.
    pub peak_rss_bytes: u64,
    /// Voluntary and involuntary context switches of all threads that are alive at the end.
    pub context_switches: u64,
    /// The peak growth in the window of the machine's TCP socket memory since the sampler started, in bytes.
    pub socket_memory_bytes: u64,
    /// Seconds in which threads that are alive at the end could run and waited for a core, added up. None if the kernel
    /// does not say.
    pub waited_s: Option<f64>,
    /// Seconds that threads which compile the program's code were on a core, added up. None if it has no such thread.
    pub compiled_s: Option<f64>,
    /// Page faults, minor and major, of all processes, also of those that ended in the window.
    pub page_faults: u64,
}

/// Whose processes are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A program that Narrows started.
    Ours(Tree),
    /// A server that the user started.
    Theirs(Theirs),
}

impl Whose {
    pub(crate) fn members(&self) -> Vec<u32> {
        match self {
            Self::Ours(tree) => tree.members(),
            Self::Theirs(theirs) => theirs.members(),
        }
    }
}

/// Samples the processes of one system.
pub struct Sampler {
    shared: Arc<Shared>,
    /// The threads when the window opened.
    marked: Threads,
}

struct Shared {
    whose: Whose,
    socket_pages_before: u64,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    members: Vec<u32>,
    /// When the window began.
    opened: Instant,
    /// The sum of proportional set sizes since then.
    pss: Course,
    rss: u64,
    socket_pages: u64,
    account: Account,
    /// The number of marks so far. A sample that began before a mark does not count after it.
    window: u64,
    sample_now: bool,
    ended: bool,
}

/// What the scheduler says of threads, by their ids.
#[derive(Default)]
struct Threads(HashMap<u32, Scheduled>);

const EVERY: Duration = Duration::from_millis(250);
/// Reading the memory of a large process takes the kernel a long time. Sampling may use at most this fraction of the
/// time: one part in 50.
const COST: u32 = 50;

impl Sampler {
    /// Starts sampling. Call it before the load starts: the growth of socket memory is counted from here.
    pub(crate) fn start(whose: Whose) -> Self {
        let members = whose.members();
        let marked = Threads::read(&members);
        let shared = Arc::new(Shared {
            whose,
            socket_pages_before: proc::tcp_memory_pages().unwrap_or(0),
            state: Mutex::new(State::new(members)),
            wake: Condvar::new(),
        });
        let follower = Arc::clone(&shared);
        // Without the thread the peaks are the values at the window's end.
        let _ = thread::Builder::new().name("sampler".to_owned()).spawn(move || follower.follow());
        Self { shared, marked }
    }

    /// Begins the window. Reads only what grows, which usually takes well under a millisecond.
    pub fn mark(&mut self) {
        let members = {
            let mut state = self.shared.lock();
            let members = std::mem::take(&mut state.members);
            *state = State { window: state.window.wrapping_add(1), sample_now: true, ..State::new(members) };
            state.members.clone()
        };
        // The thread looks for processes that began since its last sample.
        self.shared.wake.notify_all();
        self.marked = Threads::read(&members);
    }

    /// Ends the window and returns what was used in it.
    pub fn finish(self) -> Use {
        let known = self.shared.lock().members.clone();
        let mut readings = read(&known);
        let threads = Threads::read(&known);
        // Those that began since the last sample.
        let members = self.shared.whose.members();
        let new: Vec<u32> = members.iter().copied().filter(|pid| !known.contains(pid)).collect();
        readings.extend(read(&new));
        let rss = members.iter().filter_map(|pid| proc::peak_rss(*pid)).sum();
        let pages = proc::tcp_memory_pages().unwrap_or(0);
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.wake.notify_all();
        let mut pss = std::mem::take(&mut state.pss);
        if pss.highest() == 0 {
            // The window ended before the thread's first sample.
            pss.push(state.elapsed_ms(), total_pss(&members));
        }
        let (cpu_ns, page_faults) = std::mem::take(&mut state.account).close(&readings);
        let growth = state.socket_pages.max(pages).saturating_sub(self.shared.socket_pages_before);
        Use {
            cpu_s: Duration::from_nanos(cpu_ns).as_secs_f64(),
            peak_pss_bytes: pss.highest(),
            pss_course: pss.into_points(),
            peak_rss_bytes: state.rss.max(rss),
            context_switches: threads.switches_since(&self.marked),
            socket_memory_bytes: growth.saturating_mul(sys::page_size()),
            waited_s: threads.waited_since(&self.marked).map(|waited| waited.as_secs_f64()),
            compiled_s: threads.compiled_since(&self.marked).map(|compiled| compiled.as_secs_f64()),
            page_faults,
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
    /// The state of a window that begins now.
    fn new(members: Vec<u32>) -> Self {
        let account = Account::open(sys::ticks_since_start(), read(&members));
        Self {
            members,
            account,
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
            let readings = read(&members);
            let pss = total_pss(&members);
            let rss = members.iter().filter_map(|pid| proc::peak_rss(*pid)).sum();
            let pages = proc::tcp_memory_pages().unwrap_or(0);
            let mut state = self.lock();
            state.members = members;
            if state.window == window {
                let ms = state.elapsed_ms();
                state.pss.push(ms, pss);
                state.account.see(&readings);
                state.rss = state.rss.max(rss);
                state.socket_pages = state.socket_pages.max(pages);
            }
            let pause = EVERY.max(began.elapsed().saturating_mul(COST));
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

impl Threads {
    fn read(members: &[u32]) -> Self {
        Self(members.iter().flat_map(|pid| proc::scheduled(*pid)).collect())
    }

    /// What each thread did, before and now.
    fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (Scheduled, Scheduled)> + 'a {
        self.0.iter().map(|(task, now)| (before.0.get(task).copied().unwrap_or_default(), *now))
    }

    fn switches_since(&self, before: &Self) -> u64 {
        self.since(before).map(|(before, now)| now.switches.saturating_sub(before.switches)).sum()
    }

    fn waited_since(&self, before: &Self) -> Option<Duration> {
        let grown = |(before, now): (Scheduled, Scheduled)| {
            Some(now.waited_ns?.saturating_sub(before.waited_ns.unwrap_or(0)))
        };
        self.since(before).map(grown).sum::<Option<u64>>().map(Duration::from_nanos)
    }

    /// None if no thread compiles. What a compiler did that has ended since is not known.
    fn compiled_since(&self, before: &Self) -> Option<Duration> {
        let grown = |(before, now): (Scheduled, Scheduled)| {
            Some(now.compiled_ns?.saturating_sub(before.compiled_ns.unwrap_or(0)))
        };
        let grown = self.since(before).filter_map(grown);
        grown.reduce(u64::saturating_add).map(Duration::from_nanos)
    }
}

/// The sum of these processes' proportional set sizes, in bytes.
pub(crate) fn total_pss(members: &[u32]) -> u64 {
    members.iter().filter_map(|pid| proc::pss(*pid)).sum()
}

/// What these processes have used so far. A child that is reaped between the readings of it and of its parent would count twice
/// or not at all, so everything is read again until nothing was.
fn read(members: &[u32]) -> Readings {
    const TRIES: u32 = 4;
    let mut found = Readings::new();
    for _ in 0..TRIES {
        found = members.iter().filter_map(|pid| spent(*pid)).collect();
        if members.len() < 2 || found.iter().all(|((pid, began), spent)| unreaped(*pid, *began, spent)) {
            break;
        }
    }
    found
}

/// What a process has used so far. Its own time is exact to the nanosecond, that of its children to a clock tick.
fn spent(pid: u32) -> Option<((u32, u64), Spent)> {
    let stat = proc::stat(pid)?;
    let spent = Spent {
        parent: stat.parent,
        own_ns: sys::cpu_time_ns(pid).unwrap_or_else(|| stat.own_ticks.saturating_mul(tick_ns())),
        children_ns: stat.children_ticks.saturating_mul(tick_ns()),
        faults: stat.faults,
    };
    Some(((pid, stat.began), spent))
}

/// The CPU time that these processes, and those that they have reaped, have used so far.
pub(crate) fn cpu_time(members: &[u32]) -> Duration {
    let used = read(members).into_values().map(|spent| spent.cpu_ns());
    Duration::from_nanos(used.fold(0, u64::saturating_add))
}

/// Whether a process has neither been reaped nor reaped others since it was read.
fn unreaped(pid: u32, began: u64, then: &Spent) -> bool {
    let children = |stat: proc::Stat| stat.children_ticks.saturating_mul(tick_ns());
    proc::stat(pid).is_some_and(|stat| stat.began == began && children(stat) == then.children_ns)
}

#[expect(clippy::arithmetic_side_effects, reason = "the call never returns zero")]
fn tick_ns() -> u64 {
    1_000_000_000 / sys::clock_ticks_per_second()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_compilers_use_is_known_by_the_names_of_their_threads() {
        let own = [std::process::id()];
        let before = Threads::read(&own);
        assert_eq!(before.compiled_since(&before), None);
        let (has_worked, worked) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let compiler = thread::Builder::new().name("C2 CompilerThread0".to_owned()).spawn(move || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            has_worked.send(()).unwrap();
            let _ = ended.recv();
        });
        worked.recv().unwrap();
        let after = Threads::read(&own);
        assert!(after.compiled_since(&before).unwrap() > Duration::ZERO);
        assert_eq!(after.compiled_since(&after), Some(Duration::ZERO));
        end.send(()).unwrap();
        compiler.unwrap().join().unwrap();
    }
}
