//! Memory of a generator with many connections over its memory with one: idle, and busy.

use std::time::{Duration, Instant};

use super::options::Args;
use super::peer::{Peer, Task, Work};
use super::{machine, measure, under_test::Server};

/// KiB resident: with one connection and with many, waiting for answers and exchanging them.
pub struct Row {
    pub tool: &'static str,
    pub connections: usize,
    /// One, many.
    pub idle: [Option<u64>; 2],
    pub busy: [Option<u64>; 2],
}

/// Measures one generator.
pub fn measure(peer: &Peer, connections: usize, server: &mut Server, args: &Args) -> anyhow::Result<Row> {
    let mut row = Row { tool: peer.name, connections, idle: [None; 2], busy: [None; 2] };
    for (at, count) in [1, connections].into_iter().enumerate() {
        row.idle[at] = sample(peer, Work::Hold, count, server, args)?;
        row.busy[at] = sample(peer, Work::KeepAlive, count, server, args)?;
    }
    Ok(row)
}

/// Starts it, waits until all connections are there and a little longer, looks, and ends it.
fn sample(
    peer: &Peer,
    work: Work,
    connections: usize,
    server: &mut Server,
    args: &Args,
) -> anyhow::Result<Option<u64>> {
    let task = Task { work, connections, threads: 1, seconds: 20.0 };
    let before = server.settled()?.connections;
    let words = peer.command(&task, server.ports, server.folder());
    let mut child = measure::start(&words, server, &args.generator_cores)?;
    let patience = Instant::now() + Duration::from_secs(10);
    // Each question is a connection, too.
    let mut asked = 1;
    while server.count()?.connections < before + connections as u64 + asked && Instant::now() < patience {
        asked += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs_f64(args.seconds().min(2.0) / 2.0));
    let resident = machine::memory(child.id(), "VmRSS");
    // It may have ended by itself, which is why there may be nothing to see.
    let _ = child.kill();
    child.wait()?;
    Ok(resident)
}
