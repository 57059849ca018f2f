//! Tasks whose server is `narrows serve`: streams of events, and HTTP/2, neither of which the bench's own server speaks.
//!
//! Generators are told how many answers to get, so nothing is counted. Each run is the difference between many answers and few:
//! it has no part of a start, and AIPerf's alone takes some ten seconds of CPU time.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::machine;
use super::measure::{self, Run};
use super::options::Args;
use super::peer::{CHAT, Peer, Task, Work};
use super::results::Comparison;
use super::under_test::{Ports, Server};
use crate::net;

/// The events of a stream, and the time between them. Events come one by one, as tokens do.
pub const EVENTS: u64 = 50;
pub const MODEL: &str = "m?events=50&first=50ms&gap=10ms";

/// How many times the answers of a short run a long run has.
const TIMES: u64 = 5;

/// Runs Narrows and a peer in turn against `narrows serve`.
pub fn compare(
    scenario: String,
    task: &Task,
    [us, peer]: [&Peer; 2],
    server: &Server,
    args: &Args,
) -> anyhow::Result<Comparison> {
    let running = Served::start(us, server)?;
    let mut runs = Vec::new();
    for _ in 0..args.pairs() {
        let ours = running.difference(us, task, server, args)?;
        runs.push((ours, running.difference(peer, task, server, args)?));
    }
    Ok(Comparison { scenario, task: *task, peer: peer.name, runs, calls: [None, None] })
}

/// `narrows serve` on the server's core. It is killed when this value is dropped.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    /// Starts it, and waits until it accepts connections. Writes the files that generators send and read.
    fn start(us: &Peer, server: &Server) -> anyhow::Result<Self> {
        fs::write(server.folder().join(CHAT), chat())?;
        tokenizer(server)?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let program = us.program.as_deref().context("the program under test has no path")?;
        machine::pin(&[server.core])?;
        let mut command = Command::new(program);
        command.args(["serve", "--port", &port.to_string(), "--max-connections", "20000"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut started = Self { child: command.spawn().context("narrows serve")?, port };
        let deadline = Instant::now() + Duration::from_secs(10);
        while net::connect(port).is_err() {
            if started.child.try_wait()?.is_some() || Instant::now() > deadline {
                bail!("narrows serve does not accept connections");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }

    /// What a long run needed more than a short one.
    fn difference(&self, peer: &Peer, task: &Task, server: &Server, args: &Args) -> anyhow::Result<Run> {
        let few = self.run(peer, task, server, args)?;
        let many = self.run(peer, &Task { work: times(task.work), ..*task }, server, args)?;
        Ok(Run {
            operations: many.operations - few.operations,
            // Streams last as long as they are made to, so their rate says nothing.
            seconds: if matches!(task.work, Work::Events(_)) { f64::NAN } else { many.seconds - few.seconds },
            cpu: many.cpu - few.cpu,
            fault: few.fault.or(many.fault),
            complaint: few.complaint.or(many.complaint),
            ..many
        })
    }

    fn run(&self, peer: &Peer, task: &Task, server: &Server, args: &Args) -> anyhow::Result<Run> {
        let words = peer.command(task, Ports { http: self.port, ..server.ports }, server.folder());
        let done = measure::spawn(&words, server, &args.generator_cores, task.seconds)?;
        let operations = operations(task.work) as f64;
        Ok(Run { operations, ..Run::of(peer, &words, &done, server.folder()) })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The work with more answers.
fn times(work: Work) -> Work {
    match work {
        Work::Events(answers) => Work::Events(answers * TIMES),
        Work::Multiplexed { answers, streams } => Work::Multiplexed { answers: answers * TIMES, streams },
        other => other,
    }
}

/// The operations of a task: the events of all streams, or the answers.
fn operations(work: Work) -> u64 {
    match work {
        Work::Events(answers) => answers * EVENTS,
        Work::Multiplexed { answers, .. } => answers,
        _ => 0,
    }
}

/// The request of a streamed chat.
fn chat() -> String {
    serde_json::json!({
        "model": MODEL, "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "Hello" }],
    })
    .to_string()
}

/// The commit that a snapshot of a model is called by.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// AIPerf does not start without a tokenizer, although the server counts the tokens here. This one is of single bytes. It is laid out
/// as a cache of the library that AIPerf asks, which would otherwise look for it in the network.
fn tokenizer(server: &Server) -> anyhow::Result<()> {
    let model = server.folder().join("hub/models--narrows--bytes");
    let snapshot = model.join("snapshots").join(COMMIT);
    fs::create_dir_all(model.join("refs"))?;
    fs::create_dir_all(&snapshot)?;
    fs::write(model.join("refs/main"), COMMIT)?;
    let vocabulary: serde_json::Map<_, _> =
        (32..127_u8).map(|byte| (char::from(byte).to_string(), (byte - 32).into())).collect();
    let whole = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "post_processor": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
    });
    let kind = serde_json::json!({ "tokenizer_class": "PreTrainedTokenizerFast" });
    fs::write(snapshot.join("tokenizer.json"), whole.to_string())?;
    fs::write(snapshot.join("tokenizer_config.json"), kind.to_string())?;
    fs::write(snapshot.join("config.json"), r#"{"model_type": "gpt2"}"#)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_more_of_the_same() {
        let work = Work::Events(100);
        assert_eq!(operations(times(work)) - operations(work), (TIMES - 1) * 100 * EVENTS);
        assert!(MODEL.contains(&format!("events={EVENTS}&")));
        assert!(chat().contains(MODEL));
    }
}
