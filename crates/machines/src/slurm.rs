//! Machines of a Slurm cluster: `salloc` takes an allocation, `srun` gives the pipe to each node of it, and `salloc` gives it back.
//!
//! `salloc` runs a command here for as long as the allocation is needed. The command reads a pipe from this program, so it ends with
//! this program, however that ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdin, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use systems::piped::Piped;

/// What is asked of Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How many nodes.
    pub nodes: u16,
    /// Further options of `salloc`.
    pub options: Vec<String>,
}

/// A node of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The request, which is common to its nodes.
    pub request: Request,
    /// Which of its nodes this is, from 0.
    pub index: u16,
    /// Which job and node Slurm gave. `None` before that.
    pub granted: Option<Granted>,
}

/// What Slurm gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The number of the job.
    pub job: String,
    /// The name of the node.
    pub node: String,
}

/// Says which job and nodes there are, and stays until its input ends.
const HOLD: &str =
    r#"echo "$SLURM_JOB_ID" $(scontrol show hostnames "$SLURM_JOB_NODELIST") && exec cat >/dev/null"#;
/// The kernel kills this shell with this program, but not `salloc`, which has to give the allocation back. What it says meanwhile
/// goes into a pipe that nobody reads any more, and must not end it.
const KEEP: &str = r#"trap '' PIPE; salloc "$@"; exit $?"#;
/// A wait that is longer than this is shown.
const SHORT: Duration = Duration::from_secs(2);
/// How long Slurm may take to give an allocation back.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(50);
/// The longest line with the names of nodes, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Nodes that are ours. Dropping it gives them back, and waits until they are.
pub(crate) struct Allocation {
    /// The nodes, in the order of Slurm.
    pub(crate) nodes: Vec<Granted>,
    /// The command ends when this closes.
    input: Option<ChildStdin>,
    held: Piped,
}

impl Request {
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        // A generator that shares its machine with other jobs measures them, too.
        command.args(["-c", KEEP, "salloc", "-J", "narrows", "--exclusive", "-N", &self.nodes.to_string()]);
        command.args(&self.options).args(["sh", "-c", HOLD]);
        command
    }

    /// Takes the allocation. `notice` is told once if that takes long.
    ///
    /// # Errors
    /// Slurm refuses, is not here, or the user interrupted. The text says so.
    pub(crate) fn allocate(&self, cancel: &AtomicBool, notice: &dyn Fn(&str)) -> Result<Allocation, String> {
        let started = Piped::start(self.command());
        let (held, input, output) = started.map_err(|why| format!("cannot start `sh`: {why}"))?;
        let (sender, line) = sync_channel(1);
        let read = move || {
            let mut line = String::new();
            let _ = BufReader::new(output.take(LONGEST_LINE)).read_line(&mut line);
            let _ = sender.send(line);
        };
        // Without the thread its channel is closed, which is noticed.
        let _ = thread::Builder::new().name("salloc".to_owned()).spawn(read);
        // From here on every way out gives back what there is.
        let mut allocation = Allocation { nodes: Vec::new(), input: Some(input), held };
        let (began, mut noticed) = (Instant::now(), false);
        let line = loop {
            match line.recv_timeout(GLANCE) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Disconnected) => break String::new(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancel.load(Ordering::Relaxed) {
                return Err("interrupted while it waited for Slurm".to_owned());
            }
            if began.elapsed() >= SHORT && !std::mem::replace(&mut noticed, true) {
                notice(&format!("slurm:{}: waits for the allocation; Ctrl-C gives up", self.nodes));
            }
        };
        allocation.nodes = granted(&line);
        if allocation.nodes.len() == usize::from(self.nodes) {
            return Ok(allocation);
        }
        let said = allocation.refusal();
        let said = if said.is_empty() { line } else { said };
        Err(format!("`salloc` gave no {} nodes: {said}", self.nodes))
    }
}

/// What the line of [`HOLD`] says.
fn granted(line: &str) -> Vec<Granted> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let Some(job) = words.next() else { return Vec::new() };
    words.map(|node| Granted { job: job.clone(), node }).collect()
}

impl Granted {
    /// The command that runs a shell's script on the node. Its standard input and output are the script's.
    pub(crate) fn command(&self, script: &str) -> Command {
        let mut command = Command::new("srun");
        // The agent may use all cores, and is not held up by other steps of the job.
        command.args(["--jobid", &self.job, "-w", &self.node, "-N1", "-n1", "--overlap", "--cpu-bind=none"]);
        command.args(["sh", "-c", script]);
        command
    }
}

impl Allocation {
    /// What `salloc` said, when it has ended.
    fn refusal(&mut self) -> String {
        self.input = None;
        let _ = self.held.wait(FAREWELL);
        self.held.end(FAREWELL)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.input = None;
        // What waits for an allocation does not read its input, so it is asked to end.
        if self.nodes.is_empty() || self.held.wait(FAREWELL).is_none() {
            self.held.end(FAREWELL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_job_and_its_nodes() {
        let given = granted("17 gen1 gen3\n");
        let shown: Vec<_> = given.iter().map(|given| (given.job.as_str(), given.node.as_str())).collect();
        assert_eq!(shown, [("17", "gen1"), ("17", "gen3")]);
        assert!(granted("").is_empty() && granted("17\n").is_empty());
    }
}
