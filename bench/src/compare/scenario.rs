//! The scenarios of the comparison.

use super::peer::{self, Task, Work};
use crate::net;

/// One scenario.
pub enum Scenario {
    /// Narrows against each of these peers, in pairs.
    Pairs { task: Task, against: &'static [&'static str] },
    /// Narrows against each of these peers, in pairs, with `narrows serve` as the server.
    Served { task: Task, against: &'static [&'static str] },
    /// What the generator pays for a handshake, against what the server pays to accept it.
    Handshakes { task: Task },
    /// How much more memory this many connections need than one.
    Resident { task: Task },
    /// Cost per request for growing numbers of connections.
    Curve { task: Task, connections: Vec<usize> },
    /// Two threads of Narrows against one.
    Threads { task: Task },
}

const CLOSED: &[&str] = &["wrk", "h2load", "ab", "hey", "oha", "gcannon", "floor-epoll", "floor-uring"];
const OPEN: &[&str] = &["wrk2", "zrk", "closed loop"];
const ONE_SHOT: &[&str] = &["wrk", "ab", "hey", "oha", "gcannon", "floor-epoll", "floor-uring"];
const UPLOAD: &[&str] = &["iperf3", "curl", "send-loop"];
const FRAMES: &[&str] = &["send-loop"];
const LISTED: &[&str] = &[peer::CLOSED];
const TLS_CLOSED: &[&str] = &["wrk", "h2load", "floor-tls"];
const TLS_UPLOAD: &[&str] = &["send-tls"];
const EVENTS: &[&str] = &["aiperf", "oha", "h2load"];
const MULTIPLEXED: &[&str] = &["h2load", "oha"];
const SIZES: [(u64, &str); 8] = [
    (10, "10"),
    (100, "100"),
    (1000, "1000"),
    (1456, "1456"),
    (10_000, "10000"),
    (100_000, "100000"),
    (1 << 20, "1M"),
    (1 << 30, "1G"),
];

fn task(work: Work, connections: usize) -> Task {
    Task { work, connections, threads: 1, seconds: 0.0, tls: false }
}

fn over_tls(work: Work, connections: usize) -> Task {
    Task { tls: true, ..task(work, connections) }
}

/// All scenarios, in the order of the results.
pub fn all(quick: bool) -> Vec<Scenario> {
    let pairs = |work, connections, against| Scenario::Pairs { task: task(work, connections), against };
    let mut list = Vec::new();
    let closed: &[usize] = if quick { &[100] } else { &[100, 1000, 10_000] };
    list.extend(closed.iter().map(|&count| pairs(Work::KeepAlive, count, CLOSED)));
    list.push(pairs(Work::OneShot, if quick { 100 } else { 10_000 }, if quick { FEW } else { ONE_SHOT }));
    let rates: &[u64] = if quick { &[10_000] } else { &[10_000, 40_000] };
    list.extend(rates.iter().map(|&rate| pairs(Work::Open(rate), 100, OPEN)));
    list.push(pairs(Work::Listed, 100, LISTED));
    let body = Work::Upload(if quick { 256 << 20 } else { 4 << 30 });
    list.push(pairs(body, 1, UPLOAD));
    for (size, _) in SIZES.into_iter().filter(|(size, _)| !quick || *size == 1000) {
        list.push(pairs(Work::Frames(size), 1, FRAMES));
    }
    list.push(Scenario::Pairs { task: over_tls(Work::KeepAlive, 100), against: TLS_CLOSED });
    let handshakes = Work::Handshakes(if quick { 1000 } else { 10_000 });
    list.push(Scenario::Handshakes { task: over_tls(handshakes, 100) });
    list.push(Scenario::Pairs { task: over_tls(body, 1), against: TLS_UPLOAD });
    let answers = if quick { 100 } else { 200 };
    list.push(Scenario::Served { task: task(Work::Events(answers), 100), against: EVENTS });
    let answers = if quick { 20_000 } else { 100_000 };
    for (connections, streams) in [(100, 1), (1, 100)] {
        let task = task(Work::Multiplexed { answers, streams }, connections);
        list.push(Scenario::Served { task, against: MULTIPLEXED });
    }
    let many = if quick { 1000 } else { 10_000 };
    list.push(Scenario::Resident { task: task(Work::Hold, many) });
    list.push(Scenario::Resident { task: over_tls(Work::Hold, many) });
    let connections = if quick { vec![1, 100] } else { vec![1, 10, 100, 1000, 10_000] };
    list.push(Scenario::Curve { task: task(Work::KeepAlive, 1), connections });
    list.push(Scenario::Threads { task: task(Work::KeepAlive, 100) });
    list
}

const FEW: &[&str] = &["wrk", "floor-epoll", "floor-uring"];

impl Scenario {
    /// The name that `--scenarios` takes.
    pub fn name(&self) -> String {
        let name = match self {
            Self::Pairs { task, .. } | Self::Served { task, .. } | Self::Handshakes { task } => {
                match task.work {
                    Work::KeepAlive => format!("keepalive-{}", task.connections),
                    Work::OneShot => format!("oneshot-{}", task.connections),
                    Work::Open(rate) => format!("open-{rate}"),
                    Work::Upload(size) => format!("upload-{}", bytes(size)),
                    Work::Frames(size) => format!("frames-{}", bytes(size)),
                    Work::Handshakes(_) => "handshakes".to_owned(),
                    Work::Listed => "requests-100k".to_owned(),
                    Work::Events(_) => format!("events-{}", task.connections),
                    Work::Multiplexed { streams, .. } => format!("http2-{}x{streams}", task.connections),
                    Work::Hold => "hold".to_owned(),
                }
            }
            Self::Resident { .. } => "memory".to_owned(),
            Self::Curve { .. } => "curve".to_owned(),
            Self::Threads { .. } => "threads".to_owned(),
        };
        if self.task().tls { format!("tls-{name}") } else { name }
    }

    fn task(&self) -> &Task {
        match self {
            Self::Pairs { task, .. }
            | Self::Served { task, .. }
            | Self::Handshakes { task }
            | Self::Resident { task }
            | Self::Curve { task, .. }
            | Self::Threads { task } => task,
        }
    }

    /// Why the scenario cannot be measured here, if so.
    pub fn impossible(&self) -> Option<String> {
        let most = match self {
            Self::Curve { connections, .. } => connections.iter().copied().max().unwrap_or(0),
            other => other.task().connections,
        };
        let limit = net::files();
        (limit < most as u64 + 100)
            .then(|| format!("{most} connections need more open files than the limit of {limit}"))
    }
}

/// A size as text: 10, 1456, 1M, 4G.
pub fn bytes(size: u64) -> String {
    if let Some((_, name)) = SIZES.iter().find(|(known, _)| *known == size) {
        return (*name).to_owned();
    }
    match size {
        size if size >= 1 << 30 => format!("{}G", size >> 30),
        size if size >= 1 << 20 => format!("{}M", size >> 20),
        size => size.to_string(),
    }
}
