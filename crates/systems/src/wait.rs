//! Waits: for the end of processes by an event, and for everything else by asking again.

use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The pauses between two questions grow with the time since the first. So a short wait ends at most one short pause
/// late, a long one at most a sixteenth, and a program that needs a second to start is not asked a thousand times.
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(20);
const SHARE: u32 = 16;

/// The instant at which a wait ends. A wait of centuries would overflow the clock, so the longest is ten years.
pub fn deadline_in(patience: Duration) -> Instant {
    const TEN_YEARS: Duration = Duration::from_secs(10 * 366 * 86_400);
    let now = Instant::now();
    now.checked_add(patience.min(TEN_YEARS)).unwrap_or(now)
}

/// Calls `done` until it returns true or the deadline passes, at least once. Returns what it returned last.
pub(crate) fn poll(deadline: Instant, mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if done() {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        #[expect(clippy::arithmetic_side_effects, reason = "a constant that is not zero divides it")]
        let pause = began.elapsed() / SHARE;
        thread::sleep(pause.clamp(SHORTEST, LONGEST).min(left));
    }
}

/// Waits until `living` finds no process, or the deadline passes. Returns those that it found last.
pub(crate) fn until_none(deadline: Instant, mut living: impl FnMut() -> Vec<u32>) -> Vec<u32> {
    let mut found = Vec::new();
    poll(deadline, || {
        found = living();
        if !found.is_empty() {
            found.iter().for_each(|pid| for_end(*pid, deadline));
            // A process may have started others in the meantime.
            found = living();
        }
        found.is_empty()
    });
    found
}

/// Waits until a process and all its threads have ended, or the deadline passes. It may then be a zombie. Ask whether it
/// has ended: a kernel without pidfds (before 5.3) only allows a short sleep. If there is no such process any more, this
/// sleeps as short, so that asking again never spins.
pub(crate) fn for_end(pid: u32, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    let process = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH);
    let waited = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())).and_then(|process| {
        let patience = Timespec::try_from(left).ok();
        rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], patience.as_ref())
    });
    if waited.is_err() {
        thread::sleep(left.min(SHORTEST));
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn the_end_of_a_process_ends_the_wait_and_its_deadline_too() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let soon = Instant::now() + Duration::from_millis(5);
        for_end(pid, soon);
        assert!(Instant::now() >= soon && child.try_wait().unwrap().is_none(), "it lives");
        drop(child.stdin.take());
        for_end(pid, late());
        // Not reaped yet: a zombie counts as ended.
        assert!(child.try_wait().unwrap().is_some());
        for_end(pid, late());
    }

    #[test]
    fn a_patience_without_an_end_has_a_deadline() {
        assert!(deadline_in(Duration::MAX) > deadline_in(Duration::from_secs(86_400)));
    }

    #[test]
    fn what_still_lives_at_the_deadline_is_returned() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let living =
            || crate::proc::stat(pid).filter(crate::proc::Stat::lives).map(|_| pid).into_iter().collect();
        assert_eq!(until_none(Instant::now(), living), [pid]);
        drop(child.stdin.take());
        assert!(until_none(late(), living).is_empty());
        child.wait().unwrap();
    }

    #[test]
    fn a_question_is_asked_at_least_once_and_until_it_is_answered() {
        let mut asked = 0;
        let mut ask = |answer: u32, deadline| {
            asked = 0;
            let answered = poll(deadline, || {
                asked += 1;
                asked == answer
            });
            (answered, asked)
        };
        assert_eq!(ask(1, Instant::now()), (true, 1));
        assert_eq!(ask(2, Instant::now()), (false, 1));
        assert_eq!(ask(5, late()), (true, 5));
    }
}
