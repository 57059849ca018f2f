//! `narrows client`: the reference client, a driver like any other (docs/contracts.md, "A client driver").

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use load::target::{self, Body, Expect, Http, Target, Traffic, Url};
use load::{Job, Stop};
use serde::Deserialize;
use serde_json::json;

use crate::common::End;

/// The configuration line.
#[derive(Deserialize)]
struct Orders {
    url: String,
    pools: usize,
    pool_size: usize,
    concurrency: usize,
    timeout_ms: u64,
    warmup_ms: u64,
    duration_ms: u64,
}

/// Does one trial's work.
pub fn run() -> End {
    match drive() {
        Ok(code) => Ok(code),
        Err(error) => {
            say(&json!({"event": "error", "message": format!("{error:#}")}))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn drive() -> End {
    let mut input = std::io::stdin().lock();
    let orders: Orders = serde_json::from_str(&line(&mut input)?).context("the configuration line")?;
    let job = job(&orders)?;
    say(&json!({"event": "ready"}))?;
    line(&mut input)?;
    let tally = load::drive(&job, &AtomicBool::new(false), &|_| {})?;
    say(&json!({
        "event": "done",
        "elapsed_us": tally.elapsed.as_micros() as u64,
        "attempts": tally.attempts,
        "successes": tally.successes,
        "errors": tally.errors_by_name(),
        "in_flight": tally.in_flight,
        "latency_us": lab::observation::Latency::from_nanos(&tally.response).buckets,
        "total": {
            "attempts": tally.total.attempts,
            "successes": tally.total.successes,
            "errors": tally.total.errors.iter().map(|(class, count)| (class.name(), *count)).collect::<BTreeMap<_, _>>(),
        },
        "version": concat!("narrows ", env!("CARGO_PKG_VERSION")),
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn job(orders: &Orders) -> anyhow::Result<Job> {
    let url = Url::parse(&orders.url)?;
    let address = target::resolve(&url.host, url.port, false)?;
    let traffic = Traffic::Http(Http {
        method: "GET".to_owned(),
        host: url.authority(),
        path: url.path,
        headers: Vec::new(),
        body: Body::None,
        keep_alive: true,
        expect_continue: false,
        ids: true,
        expect: Expect { status: Some(200), body: Some(b"ok".to_vec()) },
    });
    let connections = (orders.pools * orders.pool_size).min(orders.concurrency);
    if connections == 0 {
        bail!("pools, pool_size and concurrency are at least 1");
    }
    let window = Stop::After(Duration::from_millis(orders.duration_ms));
    let mut job = Job::new(Target { address, traffic }, connections, window);
    job.callers = orders.concurrency;
    job.warmup = Duration::from_millis(orders.warmup_ms);
    job.timeout = Duration::from_millis(orders.timeout_ms);
    // Every caller finishes what it has begun; the sweep for timeouts comes round within a fiftieth.
    job.drain = job.timeout * 2;
    Ok(job)
}

fn line(input: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        bail!("standard input ended");
    }
    Ok(line)
}

fn say(event: &serde_json::Value) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{event}")?;
    Ok(output.flush()?)
}
