//! The results, and the two files that they are written to.

mod csv;
mod markdown;

use std::path::Path;

use super::measure::Run;
use super::options::Args;
use super::peer::{CLOSED, NGINX, Peer, Task, Work};
use super::ratio::Ratio;
use super::{machine, resident};

/// Narrows and a peer in one task.
pub struct Comparison {
    pub scenario: String,
    pub task: Task,
    pub peer: &'static str,
    /// Pairs of runs; Narrows is first in each.
    pub runs: Vec<(Run, Run)>,
    /// System calls per operation, of Narrows and of the peer.
    pub calls: [Option<f64>; 2],
}

/// One number of connections, and the runs of each tool with it.
pub struct Curve {
    pub connections: usize,
    pub cells: Vec<(&'static str, Vec<Run>)>,
}

/// A generator as the results name it.
pub struct Tool {
    pub name: &'static str,
    pub version: String,
    pub flags: &'static str,
}

/// All results.
pub struct Report {
    pub date: String,
    pub machine: String,
    pub pairs: u64,
    pub seconds: f64,
    pub cores: (usize, Vec<usize>),
    pub tools: Vec<Tool>,
    /// Name of the peer, how to get it.
    pub missing: Vec<(&'static str, &'static str)>,
    /// Scenario, and why it was skipped.
    pub skipped: Vec<(String, String)>,
    pub comparisons: Vec<Comparison>,
    pub resident: Vec<resident::Row>,
    pub curve: Vec<Curve>,
    pub threads: Option<Comparison>,
}

impl Report {
    pub fn new(args: &Args, us: &Peer, peers: &[Peer], missing: Vec<Peer>) -> Self {
        let tools = std::iter::once(us).chain(peers);
        Self {
            date: machine::date(),
            machine: machine::description(),
            pairs: args.pairs(),
            seconds: args.seconds(),
            cores: (args.server_core, args.generator_cores.clone()),
            tools: tools
                .map(|peer| Tool { name: peer.name, version: peer.version.clone(), flags: peer.flags })
                .collect(),
            missing: missing.iter().map(|peer| (peer.name, peer.get)).collect(),
            skipped: Vec::new(),
            comparisons: Vec::new(),
            resident: Vec::new(),
            curve: Vec::new(),
            threads: None,
        }
    }

    /// Writes RESULTS.md and results.csv.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("RESULTS.md"), markdown::text(self))?;
        std::fs::write(folder.join("results.csv"), csv::text(self))
    }
}

/// The aim that Narrows has against a peer.
pub enum Aim {
    /// The most that the cost ratio may be.
    AtMost(f64),
    /// The least that the rate ratio may be.
    AtLeast(f64),
}

impl Comparison {
    /// Whether the task moves bytes rather than requests.
    pub fn streams(&self) -> bool {
        matches!(self.task.work, Work::Upload(_) | Work::Frames(_))
    }

    /// The units of a cost and of a rate.
    pub fn units(&self) -> (&'static str, &'static str) {
        match self.task.work {
            _ if self.streams() => ("s/GiB", "GiB/s"),
            Work::Handshakes(_) => ("us/handshake", "handshakes/s"),
            Work::Events(_) => ("us/event", "events/s"),
            _ => ("us/request", "requests/s"),
        }
    }

    /// The ratio of Narrows to the peer, pair by pair.
    pub fn ratio(&self, figure: impl Fn(&Run) -> f64) -> Option<Ratio> {
        Ratio::of(self.runs.iter().map(|(ours, theirs)| figure(ours) / figure(theirs)))
    }

    pub fn median(&self, ours: bool, figure: impl Fn(&Run) -> f64) -> Option<f64> {
        let runs = self.runs.iter().map(|pair| if ours { &pair.0 } else { &pair.1 });
        stats::median(runs.map(figure).filter(|figure| figure.is_finite()))
    }

    pub fn aim(&self) -> Option<Aim> {
        match (self.task.work, self.peer) {
            (Work::KeepAlive, "wrk") if self.task.tls => Some(Aim::AtMost(0.70)),
            (Work::KeepAlive, "h2load") if self.task.tls => Some(Aim::AtMost(0.55)),
            (Work::KeepAlive, "floor-tls") => Some(Aim::AtMost(1.2)),
            (Work::Listed, CLOSED) => Some(Aim::AtMost(1.05)),
            (Work::Handshakes(_), NGINX) => Some(Aim::AtMost(1.0)),
            (Work::Upload(_), "send-tls") => Some(Aim::AtLeast(0.9)),
            (Work::KeepAlive, "wrk") => Some(Aim::AtMost(0.73)),
            (Work::KeepAlive, "h2load") => Some(Aim::AtMost(0.65)),
            (Work::KeepAlive, "oha") => Some(Aim::AtMost(0.45)),
            (Work::KeepAlive, "floor-epoll") => Some(Aim::AtMost(1.08)),
            (Work::KeepAlive, "gcannon") => Some(Aim::AtMost(0.95)),
            (Work::Open(_), CLOSED) => Some(Aim::AtMost(1.3)),
            (Work::Events(_), "aiperf") => Some(Aim::AtMost(0.25)),
            (Work::Multiplexed { streams: 1, .. }, "h2load") => Some(Aim::AtMost(0.5)),
            (Work::Multiplexed { .. }, "h2load") => Some(Aim::AtMost(0.15)),
            (Work::OneShot, "wrk") => Some(Aim::AtMost(0.85)),
            (Work::Upload(_), "iperf3") => Some(Aim::AtLeast(1.0)),
            (Work::Frames(_), "send-loop") => Some(Aim::AtLeast(0.9)),
            _ => None,
        }
    }

    /// Says `met` or `missed` only if the whole interval agrees.
    pub fn verdict(&self) -> &'static str {
        let (ratio, wanted, sign) = match self.aim() {
            // Instruction counts vary less than time, so they decide if they can be counted.
            Some(Aim::AtMost(most)) => {
                let ratio = self.ratio(Run::instructions_per_operation);
                (ratio.or_else(|| self.ratio(Run::cpu_per_operation)), most, 1.0)
            }
            Some(Aim::AtLeast(least)) => (self.ratio(Run::rate), least, -1.0),
            None => return "",
        };
        let Some(ratio) = ratio else { return "not measured" };
        if ratio.confidence < 0.95 {
            return "too few pairs";
        }
        let worst = (sign * ratio.low).max(sign * ratio.high);
        let best = (sign * ratio.low).min(sign * ratio.high);
        match (worst <= sign * wanted, best > sign * wanted) {
            (true, _) => "met",
            (_, true) => "missed",
            _ => "undecided",
        }
    }

    /// The first fault of a run.
    pub fn fault(&self) -> Option<String> {
        self.runs.iter().find_map(|(ours, theirs)| {
            let named = |run: &Run| run.fault.as_ref().map(|text| format!("{}: {text}", run.tool));
            named(ours).or_else(|| named(theirs))
        })
    }

    /// The first errors that a tool reported.
    pub fn complaint(&self) -> Option<String> {
        let named = |run: &Run| run.complaint.as_ref().map(|text| format!("{}: {text}", run.tool));
        self.runs.iter().find_map(|(ours, theirs)| named(ours).or_else(|| named(theirs)))
    }

    /// A line of progress.
    pub fn line(&self) -> String {
        let text = |ratio: Option<Ratio>| ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.text());
        let cost = text(self.ratio(Run::cpu_per_operation));
        let fault = self.fault().or_else(|| self.complaint());
        let fault = fault.map_or_else(String::new, |fault| format!("; {fault}"));
        format!("{:<12} CPU {cost}, rate {}{fault}", self.peer, text(self.ratio(Run::rate)))
    }
}
