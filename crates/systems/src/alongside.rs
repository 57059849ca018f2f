//! A program that works beside a system for a part of a trial: the driver of `narrows try --driver`.
//!
//! It is pinned to cores of its own, in a process group of its own, and nothing of it survives. Of its output the end is kept.
//! Knows processes; knows nothing of traffic.

use std::collections::HashMap;
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use crate::group::{Exit, Waited};

use crate::group::Group;
use crate::output::{self, Tail};
use crate::proc;
use crate::sample;
use crate::wait::deadline_in;

/// The most of each stream that is kept, in bytes.
pub const KEPT: usize = 1 << 20;

/// How often its threads are looked at. What a thread did after the last look before its end is not known.
const GLANCE: Duration = Duration::from_millis(20);

/// A program that runs. Dropping it kills it with its descendants.
pub struct Alongside {
    group: Group,
    out: Tail,
    err: Tail,
    /// The nanoseconds on a core of each of its threads, when it was last seen.
    threads: HashMap<u32, u64>,
}

/// What a program did.
#[derive(Debug)]
pub struct Worked {
    /// The end of its standard output, without white space at its end.
    pub out: String,
    /// The end of its standard error, in the same way.
    pub err: String,
    /// The CPU time of all its processes.
    pub cpu: Duration,
    /// The CPU time of its busiest thread.
    pub busiest: Duration,
}

impl Worked {
    /// The end of all that it printed, as it is shown to people.
    pub fn shown(&self) -> String {
        output::shown(format!("{}\n{}", self.out, self.err).trim())
    }

    /// The last line that it printed to its standard error, or else to its output.
    pub fn last_line(&self) -> Option<&str> {
        let mut lines = [&self.err, &self.out].into_iter().flat_map(|text| text.lines().rev()).map(str::trim);
        lines.find(|line| !line.is_empty())
    }
}

impl Alongside {
    /// Starts a command, pinned to `cores` unless the slice is empty. The kernel kills it when the thread that called this ends.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command, cores: &[usize]) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group::spawn(command, cores)?;
        let (out, err) = (Tail::new(KEPT), Tail::new(KEPT));
        if let Some(stream) = group.child().stdout.take() {
            out.drain(stream);
        }
        if let Some(stream) = group.child().stderr.take() {
            err.drain(stream);
        }
        Ok(Self { group, out, err, threads: HashMap::new() })
    }

    /// Waits until it ends, the deadline passes or `cancel` is set.
    pub fn wait(&mut self, deadline: Instant, cancel: &AtomicBool) -> Waited {
        loop {
            let waited = self.group.wait(deadline.min(deadline_in(GLANCE)), cancel);
            if waited != Waited::TimedOut || Instant::now() >= deadline {
                return waited;
            }
            self.look();
        }
    }

    /// Kills what is left of it, and says what it did.
    pub fn end(mut self) -> Worked {
        // A process that has ended is not reaped yet, so its time can still be read.
        let cpu = sample::cpu_time(&self.group.tree().members());
        self.group.kill();
        let busiest = self.threads.values().copied().max().unwrap_or(0);
        let (out, err) = (self.out.settled(), self.err.settled());
        Worked { out, err, cpu, busiest: Duration::from_nanos(busiest).min(cpu) }
    }

    fn look(&mut self) {
        for process in self.group.tree().members() {
            for (thread, nanos) in proc::on_core(process) {
                self.threads.insert(thread, nanos);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn sh(script: &str) -> Alongside {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Alongside::start(command, &[]).unwrap()
    }

    fn soon() -> Instant {
        deadline_in(Duration::from_secs(60))
    }

    #[test]
    fn the_time_of_a_program_and_of_its_children_is_known_after_its_end() {
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut program = sh(&format!("echo out; echo err >&2; sh -c '{count}'; {count}; exit 3"));
        assert_eq!(program.wait(soon(), &AtomicBool::new(false)), Waited::Exited(Exit::Code(3)));
        let worked = program.end();
        assert_eq!((worked.out.as_str(), worked.err.as_str()), ("out", "err"));
        assert!(worked.cpu > Duration::ZERO && worked.busiest <= worked.cpu, "{worked:?}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children_at_the_deadline() {
        let mut program = sh("sleep 600 & echo $!; wait");
        let waited = program.wait(deadline_in(Duration::from_millis(300)), &AtomicBool::new(false));
        assert_eq!(waited, Waited::TimedOut);
        let child: u32 = program.end().out.parse().unwrap();
        assert!(proc::stat(child).is_none_or(|stat| !stat.lives()), "{child} lives");
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let mut program = sh("sleep 600");
        assert_eq!(program.wait(soon(), &AtomicBool::new(true)), Waited::Cancelled);
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let mut program = sh("yes 0123456789 | head -c 8000000; echo the end");
        assert_eq!(program.wait(soon(), &AtomicBool::new(false)), Waited::Exited(Exit::Code(0)));
        let worked = program.end();
        assert!(worked.out.len() <= KEPT && worked.out.ends_with("the end"), "{}", worked.out.len());
    }
}
