//! `narrows try --driver`: another program drives the servers in the rounds of Narrows, and says what it measured.

use lab::observation::Outcome;
use measurement::Measurement;

use crate::support::home::Home;
use crate::support::{Ended, NARROWS, has, squeezed, until};

/// One round, which decides nothing.
const SHORT: [&str; 4] = ["--rounds", "1", "--seed", "1"];

/// The reference as a command of the user's.
fn server() -> String {
    format!("{NARROWS} serve -p {{port}}")
}

/// A driver for a shell, that counts its runs in the file `ran`, and prints this.
fn shell(script: &str) -> String {
    format!("sh -c 'echo $0 >> ran; {script}' {{port}}")
}

fn tried(home: &Home, driver: &str, more: &[&str]) -> Ended {
    let server = server();
    home.run([&["try", &server, "--driver", driver][..], more, &SHORT].concat())
}

fn measured(home: &Home) -> Vec<Measurement> {
    let outcomes = home.observations().into_iter().map(|seen| seen.outcome);
    outcomes
        .filter_map(|outcome| match outcome {
            Outcome::Measured(measured) => Some(*measured),
            Outcome::Failed(_) => None,
        })
        .collect()
}

#[test]
fn another_program_drives_and_its_figures_count() {
    let home = Home::new();
    let driver =
        format!("{NARROWS} load http://{{host}}:{{port}}/ -c {{connections}} -d {{duration}}s --json");
    let words =
        ["-c", "3", "-d", "1s", "--read", "rate=json.throughput_per_s", "--read", "requests=json.completed"];
    let ended = tried(&home, &driver, &words).code(0);
    let said = squeezed(&ended.stdout);
    assert!(said.contains("Measured by narrows; answers not verified"), "{ended:#?}");
    assert!(said.contains("connections 3"), "{ended:#?}");
    let all = measured(&home);
    assert!(all.len() >= 2, "{ended:#?}");
    for m in &all {
        let metered = m.metered.as_ref().expect("what the driver says");
        assert!(metered.by == "narrows" && metered.per_s > 0.0, "{m:#?}");
        assert!(
            m.successes > 0 && m.elapsed_s >= 1.0 && m.system.cpu_s > 0.0 && m.generator.cpu_s > 0.0,
            "{m:#?}"
        );
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    assert_eq!(report["experiments"][0]["ask"]["meter"]["name"], "narrows");
    assert_eq!(report["experiments"][0]["ask"]["meter"]["command"][1], "load");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn drivers_of_a_duet_drive_at_the_same_time() {
    let home = Home::new();
    let driver = format!("{NARROWS} load http://{{host}}:{{port}}/ -c 2 -d {{duration}}s --json");
    let other = format!("{NARROWS} serve -p {{port}} --host 127.0.0.1");
    let words = ["try", &server(), &other, "--driver", &driver, "--read", "rate=json.throughput_per_s"];
    let ended = home.run(words.into_iter().chain(["--duet", "--warmup", "1s"]).chain(SHORT)).code(0);
    let all = home.observations();
    assert!(all.iter().any(|seen| seen.duet.is_some()), "{ended:#?}");
    assert!(all.iter().all(|seen| matches!(seen.outcome, Outcome::Measured(_))), "{ended:#?}");
}

#[test]
fn each_trial_starts_the_server_again_and_runs_the_driver_once() {
    let home = Home::new();
    let driver = shell("echo rate=100 p99=7ms");
    let reads = ["--read", "rate=/rate=([0-9]+)/", "--read", "p99=/p99=([^ ]+)/", "--figure", "rate,p99"];
    let ended = tried(&home, &driver, &reads).code(0);
    let ports = std::fs::read_to_string(home.path("ran")).expect("it has run");
    let trials = home.observations();
    let counted = trials.iter().filter(|seen| seen.trial.counted).count();
    // The first look drives once, and the system calls are counted in a drive of their own, or in two.
    let runs = ports.lines().count();
    assert!((1 + trials.len()..=1 + trials.len() + 2 * counted).contains(&runs), "{runs} {ended:#?}");
    let all = measured(&home);
    assert!(
        all.iter().all(|m| m.metered.as_ref().is_some_and(|found| found.p99_us == Some(7000.0))),
        "{all:#?}"
    );
    assert!(squeezed(&ended.stdout).contains("7.00 ms"), "{ended:#?}");
}

#[test]
fn a_driver_that_fails_is_refused_with_what_it_said() {
    let read = ["--read", "rate=/([0-9.]+) a second/"];
    for (script, said) in [
        ("echo on it; echo wrong url >&2; exit 3", "the driver sh: it exited with code 3: wrong url"),
        ("echo only words", "--read rate=body~=([0-9.]+) a second"),
        ("kill -9 $$", "the driver sh: it was killed by signal 9"),
        ("echo 0 a second", "its rate is 0"),
        (":", "--read rate=body~=([0-9.]+) a second"),
    ] {
        let home = Home::new();
        let ended = tried(&home, &shell(script), &read).code(1);
        ended.says(&[said]);
        assert!(!home.has_run(), "{script}: nothing is measured");
    }
}

#[test]
fn a_driver_that_hangs_is_killed_with_its_children() {
    let home = Home::new();
    let driver = shell("sleep 600 & sleep 600");
    let ended = tried(&home, &driver, &["--read", "rate=/(.*)/", "--driver-timeout", "300ms"]).code(1);
    ended.says(&["the driver sh: it did not end within 300ms and was killed", "--driver-timeout"]);
    home.assert_nothing_left();
}

#[test]
fn a_driver_ends_when_narrows_is_interrupted() {
    let home = Home::new();
    let (server, driver) = (server(), shell("sleep 600"));
    let mut running = home.spawn(&["try", &server, "--driver", &driver, "--read", "rate=/(.*)/"]);
    assert!(until(|| home.path("ran").exists() || !running.running()) && running.running());
    running.signal(libc::SIGINT);
    running.end();
    home.assert_nothing_left();
}

#[test]
fn of_a_driver_that_prints_100_megabytes_only_the_end_is_kept() {
    let home = Home::new();
    let driver = shell("yes 0123456789012345678901234567890 | head -c 100000000; echo; echo 55 a second");
    let server = server();
    let words = ["try", &server, "--driver", &driver, "--read", "rate=/([0-9]+) a second/", "--rounds", "1"];
    let (ended, peak) = home.spawn(&words).end_with_peak();
    let ended = ended.code(0);
    assert!(
        measured(&home).iter().all(|m| m.metered.as_ref().is_some_and(|found| found.per_s == 55.0)),
        "{ended:#?}"
    );
    assert!(peak < 100_000_000, "it held {peak} bytes");
}

#[test]
fn requests_that_a_driver_calls_failed_make_its_trial_bad() {
    let home = Home::new();
    let driver = shell("echo rate=100 ok=900 bad=100");
    let reads = [
        "--read",
        "rate=/rate=([0-9]+)/",
        "--read",
        "requests=/ok=([0-9]+)/",
        "--read",
        "failed=/bad=([0-9]+)/",
    ];
    let ended = tried(&home, &driver, &reads).code(0);
    assert!(squeezed(&ended.stdout).contains("10 %"), "{ended:#?}");
    let m = measured(&home).pop().expect("a trial");
    assert_eq!((m.successes, m.errors.get("other"), m.attempts), (900, Some(&100), 1000), "{m:#?}");
}

#[test]
fn redis_is_compared_with_its_own_benchmark() {
    if !has("redis-server") || !has("redis-benchmark") {
        return;
    }
    let home = Home::new();
    let redis = "redis-server --port {port} --save \"\"";
    let slower = format!("{redis} --appendonly yes --appendfsync always --dir .");
    let driver = "redis-benchmark -p {port} -c 10 -n 5000 -t set --csv";
    let words = ["try", redis, &slower, "--driver", driver, "--figure", "rate,p50,p99,cpu"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    assert!(
        squeezed(&ended.stdout).contains("Measured by redis-benchmark; answers not verified"),
        "{ended:#?}"
    );
    let all = measured(&home);
    assert!(all.len() >= 3 && all.iter().all(|m| m.successes == 5000), "{ended:#?}");
    for m in &all {
        let metered = m.metered.as_ref().expect("what the driver says");
        assert!(metered.p50_us.is_some() && metered.p99_us >= metered.p50_us, "{m:#?}");
    }
}

#[test]
fn wrk_prints_percentiles_only_if_it_is_asked_to() {
    if !has("wrk") {
        return;
    }
    let home = Home::new();
    let words = ["--figure", "rate,p99", "-c", "4"];
    let without = "wrk -t1 -c{connections} -d{duration} http://{host}:{port}/";
    tried(&home, without, &words).code(1).says(&["the driver wrk: its output has no p99: give it --latency"]);
    let with = format!("{without} --latency");
    tried(&home, &with, &words).code(0);
    let all = measured(&home);
    assert!(!all.is_empty() && all.iter().all(|m| m.errors.is_empty() && m.successes > 0), "{all:#?}");
    // An answer that is not 2xx or 3xx is a failure.
    let missing = "wrk -t1 -c2 -d1 http://{host}:{port}/none";
    tried(&home, missing, &[]).code(1).says(&["none of its requests succeeded"]);
}
