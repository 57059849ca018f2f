//! How much more memory a generator needs with many connections than with one, both idle and busy.

use std::time::{Duration, Instant};

use super::options::Args;
use super::peer::{Peer, Task, Work};
use super::{machine, measure, under_test::Server};

/// Resident KiB with one connection and with many, while waiting for answers and while exchanging them.
pub struct Row {
    pub tls: bool,
    pub tool: &'static str,
    pub connections: usize,
    /// While waiting for answers: with one connection, with many.
    pub idle: [Option<u64>; 2],
    /// While exchanging answers: with one connection, with many.
    pub busy: [Option<u64>; 2],
}

/// Measures one generator.
pub fn measure(peer: &Peer, task: &Task, server: &mut Server, args: &Args) -> anyhow::Result<Row> {
    let (tls, connections) = (task.tls, task.connections);
    let mut row = Row { tls, tool: peer.name, connections, idle: [None; 2], busy: [None; 2] };
    for (index, connections) in [1, connections].into_iter().enumerate() {
        // Long enough for as many handshakes as the wait below allows.
        let task = Task { connections, seconds: 60.0, ..*task };
        row.idle[index] = sample(peer, &Task { work: Work::Hold, ..task }, server, args)?;
        row.busy[index] = sample(peer, &Task { work: Work::KeepAlive, ..task }, server, args)?;
    }
    Ok(row)
}

/// Starts the generator, waits until shortly after all connections are open, reads its memory, and kills it.
fn sample(peer: &Peer, task: &Task, server: &mut Server, args: &Args) -> anyhow::Result<Option<u64>> {
    let before = server.settled()?.connections;
    let words = peer.command(task, server.ports, server.folder());
    let mut child = measure::start(&words, server, &args.generator_cores)?;
    let deadline = Instant::now() + Duration::from_secs(40);
    // Each query of the count is a connection, too.
    let mut queries = 1;
    while server.count()?.connections < before + task.connections as u64 + queries
        && Instant::now() < deadline
    {
        queries += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs_f64(args.seconds().min(2.0) / 2.0));
    let resident = machine::memory(child.id(), "VmRSS");
    // It may have ended by itself; then there is no memory to read.
    let _ = child.kill();
    child.wait()?;
    Ok(resident)
}
