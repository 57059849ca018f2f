//! `narrows client`: the reference client. It keeps the same contract as every driver (docs/contracts.md, "A client
//! driver").

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use load::rows::Form;
use load::target::{self, Expect, Http, Target, Traffic, Url};
use load::{ArrivalSchedule, Arrivals, Gaps, Job, Stop, Tally, micros_of};
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
    /// In an open loop, the arrivals per second over all callers.
    rate: Option<f64>,
    #[serde(default)]
    gaps: GapsWord,
    #[serde(default)]
    seed: u64,
}

/// The distribution of the gaps between arrivals.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GapsWord {
    #[default]
    Constant,
    Poisson,
}

/// Runs one trial.
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
    say(&account(&tally))?;
    Ok(ExitCode::SUCCESS)
}

/// The last line. The generator records only the sum of the failures' times, so each failure is given the mean.
fn account(tally: &Tally) -> serde_json::Value {
    let failures = tally.failures();
    let failed = (failures > 0).then(|| (tally.failing.as_micros() as u64 / failures, failures));
    json!({
        "event": "done",
        "elapsed_us": tally.elapsed.as_micros() as u64,
        "attempts": tally.attempts,
        "successes": tally.successes,
        "errors": tally.errors_by_name(),
        "in_flight": tally.in_flight,
        "in_flight_us": micros_of(&tally.open_ages.answered()),
        "latency_us": micros_of(&tally.response.answered()),
        "unanswered_us": tally.response.unanswered().map(micros_of).unwrap_or_default(),
        "pool_wait_us": tally.pool_wait.as_ref().map(|waits| micros_of(&waits.answered())).unwrap_or_default(),
        "service_us": micros_of(&tally.service.answered()),
        "failed_us": failed.into_iter().collect::<Vec<_>>(),
        "failed_ordinals": tally.ordinals.iter().collect::<Vec<_>>(),
        "first_errors": BTreeMap::<String, String>::of(&tally.first_errors),
        "late": tally.late,
        "dropped": tally.dropped,
        "total": {
            "attempts": tally.total.attempts,
            "successes": tally.total.successes,
            "errors": tally.total.errors,
        },
        "version": concat!("narrows ", env!("CARGO_PKG_VERSION")),
    })
}

fn job(orders: &Orders) -> anyhow::Result<Job> {
    let url = Url::parse(&orders.url)?;
    let address = target::resolve(&url.host, url.port, false)?.address;
    let http = Http { ids: true, expect: Expect::exactly("ok"), ..Http::get(url.authority(), url.path) };
    let connections = (orders.pools * orders.pool_size).min(orders.concurrency);
    if connections == 0 {
        bail!("pools, pool_size and concurrency must be at least 1");
    }
    let window = Stop::After(Duration::from_millis(orders.duration_ms));
    let mut job =
        Job::new(Target { address: address.into(), traffic: Traffic::Http(http) }, connections, window);
    job.callers = orders.concurrency;
    job.pool = true;
    if let Some(rate) = orders.rate {
        if !(rate > 0.0 && rate.is_finite()) {
            bail!("rate is {rate} but must be above 0");
        }
        let gaps = match orders.gaps {
            GapsWord::Constant => Gaps::Constant,
            GapsWord::Poisson => Gaps::Poisson(orders.seed),
        };
        job.arrivals = Arrivals::Open(ArrivalSchedule { from: rate, to: rate, gaps });
    }
    job.warmup = Duration::from_millis(orders.warmup_ms);
    job.timeout = Duration::from_millis(orders.timeout_ms);
    // Every caller finishes what it has begun. Twice the timeout is enough, because the generator finds timeouts a
    // little late.
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
