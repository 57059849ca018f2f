//! The comparison: runs the scenarios against the peers in pairs, and writes the results.
//!
//! options -> machine, peers -> runs in pairs A B A B -> ratios -> RESULTS.md and results.csv

mod handshakes;
pub mod machine;
mod measure;
pub mod options;
pub mod output;
mod peer;
mod perf;
mod ratio;
mod resident;
mod results;
mod scenario;
mod served;
pub mod under_test;

use anyhow::Context;

use measure::{Kind, Run};
use options::Args;
use peer::{NGINX, Peer, Task};
use results::{Comparison, Curve, Report};
use scenario::Scenario;
use under_test::Server;

/// Runs the selected scenarios, and writes both files.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let narrows = args.narrows()?;
    let peers = Peer::all(&narrows);
    let (present, missing): (Vec<_>, Vec<_>) =
        peers.into_iter().filter(|peer| args.wants_peer(peer.name)).partition(|peer| peer.program.is_some());
    let us = Peer::narrows(&narrows);
    let mut bench =
        Bench { args, us, peers: present, server: Server::start(args.server_core)?, counted: None };
    let mut report = Report::new(args, &bench.us, &bench.peers, missing);
    for scenario in scenario::all(args.quick) {
        if !args.wants_scenario(&scenario.name()) {
            continue;
        }
        if let Some(reason) = scenario.impossible() {
            report.skipped.push((scenario.name(), reason));
            continue;
        }
        eprintln!("{}", scenario.name());
        bench.scenario(&scenario, &mut report)?;
    }
    report.write(&args.out).with_context(|| format!("cannot write to {}", args.out.display()))
}

struct Bench<'a> {
    args: &'a Args,
    us: Peer,
    peers: Vec<Peer>,
    server: Server,
    /// The system calls of Narrows in the last task.
    counted: Option<(Task, Option<f64>)>,
}

impl Bench<'_> {
    fn scenario(&mut self, scenario: &Scenario, report: &mut Report) -> anyhow::Result<()> {
        match scenario {
            Scenario::Pairs { task, against } => {
                for &name in against.iter() {
                    if let Some(index) = self.peers.iter().position(|peer| peer.name == name) {
                        let found = self.pairs(scenario.name(), task, index)?;
                        eprintln!("  {}", found.line());
                        report.comparisons.push(found);
                    }
                }
            }
            Scenario::Served { task, against } => {
                for peer in self.peers.iter().filter(|peer| against.contains(&peer.name)) {
                    let both = [&self.us, peer];
                    let found = served::compare(scenario.name(), task, both, &self.server, self.args)?;
                    eprintln!("  {}", found.line());
                    report.comparisons.push(found);
                }
            }
            Scenario::Handshakes { task } => {
                if let Some(nginx) = self.peers.iter().find(|peer| peer.name == NGINX) {
                    let found =
                        handshakes::compare(scenario.name(), task, &self.us, nginx, &self.server, self.args)?;
                    eprintln!("  {}", found.line());
                    report.comparisons.push(found);
                }
            }
            Scenario::Resident { task } => report.resident.extend(self.resident(task)?),
            Scenario::Curve { task, connections } => {
                for &count in connections {
                    report.curve.push(self.point(&Task { connections: count, ..*task })?);
                }
            }
            Scenario::Threads { task } => report.threads = Some(self.threads(scenario.name(), task)?),
        }
        Ok(())
    }

    /// Runs Narrows and a peer in turn (A B A B), then each once more to count system calls.
    fn pairs(&mut self, scenario: String, task: &Task, index: usize) -> anyhow::Result<Comparison> {
        let mut runs = Vec::new();
        let task = Task { seconds: self.args.seconds_for(task.connections), ..*task };
        for _ in 0..self.args.pairs() {
            let ours = self.measure(None, &task, Kind::Time)?;
            runs.push((ours, self.measure(Some(index), &task, Kind::Time)?));
        }
        let calls = [self.calls(None, &task), self.calls(Some(index), &task)];
        Ok(Comparison { scenario, task, peer: self.peers[index].name, runs, calls })
    }

    /// System calls per operation. Narrows is measured only once per task.
    fn calls(&mut self, who: Option<usize>, task: &Task) -> Option<f64> {
        let short = Task { seconds: task.seconds / 2.0, ..*task };
        if who.is_none()
            && let Some((_, calls)) = self.counted.as_ref().filter(|(counted_task, _)| *counted_task == short)
        {
            return *calls;
        }
        let run = self.measure(who, &short, Kind::SystemCalls).ok();
        let calls = run.as_ref().and_then(Run::calls_per_operation);
        if who.is_none() {
            self.counted = Some((short, calls));
        }
        calls
    }

    fn measure(&mut self, who: Option<usize>, task: &Task, kind: Kind) -> anyhow::Result<Run> {
        let peer = who.map_or(&self.us, |index| &self.peers[index]);
        measure::run(peer, task, kind, &mut self.server, &self.args.generator_cores)
    }

    fn point(&mut self, task: &Task) -> anyhow::Result<Curve> {
        let names = ["wrk", "floor-epoll", "floor-uring"];
        let who: Vec<Option<usize>> = std::iter::once(None)
            .chain(
                names
                    .iter()
                    .filter_map(|name| self.peers.iter().position(|peer| peer.name == *name))
                    .map(Some),
            )
            .collect();
        let task = Task { seconds: self.args.seconds_for(task.connections), ..*task };
        let mut cells: Vec<(&'static str, Vec<Run>)> = Vec::new();
        for round in 0..self.args.rounds() {
            for (index, who) in who.iter().enumerate() {
                let run = self.measure(*who, &task, Kind::Time)?;
                if round == 0 {
                    cells.push((who.map_or(self.us.name, |peer| self.peers[peer].name), Vec::new()));
                }
                cells[index].1.push(run);
            }
        }
        Ok(Curve { connections: task.connections, cells })
    }

    /// Compares Narrows with two threads to Narrows with one.
    fn threads(&mut self, scenario: String, task: &Task) -> anyhow::Result<Comparison> {
        let one = Task { seconds: self.args.seconds_for(task.connections), ..*task };
        let two = Task { threads: 2, ..one };
        let mut runs = Vec::new();
        for _ in 0..self.args.pairs() {
            let ours = self.measure(None, &two, Kind::Time)?;
            runs.push((ours, self.measure(None, &one, Kind::Time)?));
        }
        Ok(Comparison { scenario, task: two, peer: "narrows, 1 thread", runs, calls: [None, None] })
    }

    fn resident(&mut self, task: &Task) -> anyhow::Result<Vec<resident::Row>> {
        let names: &[&str] = match (self.args.quick, task.tls) {
            (true, true) => &["wrk", "floor-tls"],
            (true, false) => &["wrk", "floor-epoll"],
            (false, true) => &["wrk", "h2load", "floor-tls"],
            (false, false) => &["wrk", "h2load", "oha", "floor-epoll", "floor-uring"],
        };
        let mut rows = Vec::new();
        let peers = self.peers.iter().filter(|peer| names.contains(&peer.name));
        for peer in std::iter::once(&self.us).chain(peers) {
            rows.push(resident::measure(peer, task, &mut self.server, self.args)?);
        }
        Ok(rows)
    }
}
