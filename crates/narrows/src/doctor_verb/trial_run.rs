//! A short measurement of Narrows by itself, on the cores that a run would use. It shows the highest speed of this
//! machine, and the noise between two equal trials.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use load::target::{Expect, Http, Traffic};
use load::{Job, Stop, Tally, Target};
use serve::{CloseStyle, Speaks};
use systems::machine::Placement;

use crate::examined::TrialRun;

/// The number of pairs of consecutive trials.
const PAIRS: usize = 5;
/// The connections of each trial.
const CONNECTIONS: usize = 32;
const WARMUP: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(100);

/// Drives the reference endpoints for about a second.
pub fn measure(placement: &Placement, cancel: &AtomicBool) -> anyhow::Result<TrialRun> {
    let pinned = |cores: &[usize]| cores.iter().map(|core| Some(*core)).collect::<Vec<_>>();
    let server = serve::start(&serve::Config {
        ports: vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Speaks::Http)],
        threads: pinned(&placement.system),
        max_keepalive: None,
        tls: None,
        farewell: CloseStyle::Announced,
        limits: serve::Limits::default(),
        http2: serve::Http2::USUAL,
        backend: reactor::Backend::Auto,
    })
    .context("the reference endpoints do not start")?;
    let drive = |connections: usize| {
        let mut job = Job::new(target(server.address()), connections, Stop::After(WINDOW));
        job.threads = pinned(&placement.generator);
        job.warmup = WARMUP;
        job.timeout = Duration::from_secs(5);
        let tally = load::drive(&job, cancel, &|_| {})?;
        match tally.first_errors.values().next() {
            Some(example) => bail!("the reference endpoints do not answer: {example}"),
            None => Ok(tally),
        }
    };
    // The first drive is a warm-up.
    drive(CONNECTIONS)?;
    let alone = drive(1)?;
    let pairs = (0..PAIRS)
        .map(|_| Ok([drive(CONNECTIONS)?, drive(CONNECTIONS)?]))
        .collect::<anyhow::Result<Vec<[Tally; 2]>>>()?;
    server.stop().context("the reference endpoints failed")?;
    summary(&alone, &pairs).context("no request was answered within a tenth of a second")
}

fn summary(alone: &Tally, pairs: &[[Tally; 2]]) -> Option<TrialRun> {
    let rates: Vec<[f64; 2]> = pairs.iter().map(|[a, b]| [a.throughput(), b.throughput()]).collect();
    let all = pairs.iter().flatten();
    let cpu_us: f64 = all.clone().map(|tally| tally.cpu.as_secs_f64() * 1e6).sum();
    let answers: u64 = all.map(|tally| tally.successes).sum();
    let (noise, worst_noise) = noise(&rates)?;
    Some(TrialRun {
        requests_per_s: stats::median(rates.iter().flatten().copied())?,
        round_trip_us: alone.service.percentile(50.0).map(|nanos| nanos.value() as f64 / 1000.0),
        generator_us: cpu_us / answers.max(1) as f64,
        noise,
        worst_noise,
        pairs: pairs.len(),
    })
}

/// The median and the largest difference within a pair. The difference from a trial without answers is 1. None if no
/// trial had an answer.
fn noise(rates: &[[f64; 2]]) -> Option<(f64, f64)> {
    let difference = |[a, b]: &[f64; 2]| if a.max(*b) > 0.0 { 1.0 - a.min(*b) / a.max(*b) } else { 1.0 };
    let differences: Vec<f64> = rates.iter().map(difference).collect();
    let worst = differences.iter().copied().fold(0.0, f64::max);
    let any = rates.iter().flatten().any(|rate| *rate > 0.0);
    Some((stats::median(differences)?, worst)).filter(|_| any)
}

fn target(address: SocketAddr) -> Target {
    let http = Http { expect: Expect::exactly("ok"), ..Http::get("127.0.0.1", "/") };
    Target { address: address.into(), traffic: Traffic::Http(http) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_difference_within_pairs_not_between_them() {
        let drifting = [[100.0, 100.0], [200.0, 200.0], [50.0, 50.0]];
        assert_eq!(noise(&drifting), Some((0.0, 0.0)));
        let (median, worst) = noise(&[[100.0, 90.0], [50.0, 100.0], [100.0, 99.0]]).expect("a noise");
        assert!((median - 0.1).abs() < 1e-9 && (worst - 0.5).abs() < 1e-9, "{median} {worst}");
        assert_eq!(noise(&[[100.0, 0.0], [0.0, 0.0]]), Some((1.0, 1.0)));
        assert_eq!(noise(&[[0.0, 0.0]]), None);
        assert_eq!(noise(&[]), None);
    }
}
