//! What other machines cost: a run and a trial over four of them beside the same here, and many agents for the one that drives them.

use std::time::{Duration, Instant};

use load::Tally;
use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::{Guarded, until};
use crate::{GENERATORS, HERE, agents, load, number, say};

/// The figure in the middle.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A run of experiment `e`: the time around its trials, and the median time of those in which nothing is counted, in seconds.
fn timed(home: &Home, machines: &[&str]) -> [f64; 2] {
    let began = Instant::now();
    home.run([&["run", "e", "--rounds", "file", "--seed", "1"][..], machines].concat()).code(0);
    let took = began.elapsed().as_secs_f64();
    let seen = home.observations();
    assert_eq!(seen.len(), home.planned());
    let usual = seen.iter().filter(|seen| !seen.trial.counted).map(|seen| seen.took_s).collect();
    [took - seen.iter().map(|seen| seen.took_s).sum::<f64>(), median(usual)]
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn l_what_a_run_over_four_machines_costs() {
    let home = Home::new();
    home.twin("twin");
    home.timed_experiment("requests", "[\"twin\"]", 6, 0.3, "[[grid]]\nconnections = 12\n");
    let four = ["--sut", "ssh://sut", "--gen", GENERATORS];
    // The first run copies the program.
    timed(&home, &four);
    // What else this machine does is the same for both runs of a pair.
    let pairs: Vec<[f64; 2]> = (0..5)
        .map(|n| {
            let ([here, there], turned) = ([&[][..], &four[..]], n % 2 == 1);
            let first = timed(&home, if turned { there } else { here });
            let second = timed(&home, if turned { here } else { there });
            let sign = if turned { 1.0 } else { -1.0 };
            [0, 1].map(|k| (first[k] - second[k]) * sign)
        })
        .collect();
    let [run, trial] = [0, 1].map(|k| median(pairs.iter().map(|pair| pair[k]).collect()));
    say(&format!(
        "over four machines a run takes {run:.2} s more around its trials, and each trial {:.0} ms more, medians of 5 pairs",
        trial * 1e3
    ));
}

/// What a process has used, as it was last seen.
#[derive(Debug, Default, Clone, Copy)]
struct Used {
    cpu_s: f64,
    received: f64,
    sent: f64,
    /// The most memory, in bytes.
    peak: f64,
}

impl Used {
    /// What is seen of a process now. `None` if it is gone.
    fn of(pid: i32) -> Option<Self> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let (io, stat, status) = (read("io")?, read("stat")?, read("status")?);
        let after = |text: &str, word: &str| -> Option<f64> {
            text.split_once(word)?.1.split_whitespace().next()?.parse().ok()
        };
        let ticks =
            |n: usize| -> Option<f64> { stat.rsplit_once(')')?.1.split_whitespace().nth(n)?.parse().ok() };
        Some(Self {
            cpu_s: (ticks(11)? + ticks(12)?) / 100.0,
            received: after(&io, "rchar:")?,
            sent: after(&io, "wchar:")?,
            peak: after(&status, "VmHWM:")? * 1024.0,
        })
    }
}

/// Drives with so many agents, and says what this costs the one that drives.
fn fleet(size: usize) -> Used {
    let server = super::Delays::serve(HERE);
    let machines = vec!["local"; size].join(",");
    let [connections, rate] = [2 * size, 4 * size].map(|number| number.to_string());
    let words = ["-c", &connections, "--rate", &rate, "-d", "10s", "--warmup", "1s", "-t", "1"];
    let mut drive = Guarded::spawn(&mut load(&server.url(), &machines, &words));
    let mut used = Used::default();
    while drive.running() {
        used = Used::of(drive.pid()).unwrap_or(used);
        std::thread::sleep(Duration::from_millis(20));
    }
    let json = drive.end().code(0).json();
    assert_eq!(json["generators"].as_array().map(Vec::len), Some(size), "{json}");
    assert_eq!(number(&json, "arrivals"), (40 * size) as f64, "{json}");
    assert!(until(|| agents() == 0), "no agent is left");
    used
}

/// The bytes of what a generator says in the end, with three histograms of 1,000 buckets, and the seconds in which 1,000 of them are
/// read and merged.
fn merging() -> (usize, f64) {
    let buckets: Vec<[u64; 2]> = (1..=1000).map(|n| [1000 * n, 7]).collect();
    let mut one = serde_json::to_value(Tally::default()).expect("a value");
    for name in ["service", "response", "behind"] {
        one[name] = json!({"answered": buckets, "unanswered": null});
    }
    for name in ["attempts", "successes"] {
        (one[name], one["total"][name]) = (json!(7000), json!(7000));
    }
    one["elapsed"] = json!({"secs": 1, "nanos": 0});
    let sent = one.to_string();
    let (began, mut sum) = (Instant::now(), Tally::default());
    for _ in 0..1000 {
        let said: Value = serde_json::from_str(&sent).expect("a value");
        let tally: Tally = serde_json::from_value(said).expect("a tally");
        sum.merge(&tally);
    }
    let took = began.elapsed().as_secs_f64();
    assert_eq!(sum.service.len(), 7_000_000);
    (sent.len(), took)
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn m_what_a_fleet_costs_the_one_that_drives() {
    let (few, many) = (fleet(50), fleet(200));
    for (what, few, many) in [
        ("CPU ms", few.cpu_s * 1e3, many.cpu_s * 1e3),
        ("KB received", few.received / 1e3, many.received / 1e3),
        ("KB sent", few.sent / 1e3, many.sent / 1e3),
        ("KB of memory", few.peak / 1e3, many.peak / 1e3),
    ] {
        let each = (many - few) / 150.0;
        let thousand = many + 800.0 * each;
        say(&format!(
            "{what}: {few:.0} with 50 agents, {many:.0} with 200: {each:.1} for each more, {thousand:.0} with 1,000 if that goes on"
        ));
    }
    let (bytes, took) = merging();
    say(&format!("what 1,000 generators say, {bytes} bytes each, is read and merged in {took:.2} s"));
}
