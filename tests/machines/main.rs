//! What `make machines` shows: generators on other machines, over links, with clocks of their own. The machines are network
//! namespaces that `scripts/machines` makes; the tests run in its place `here`, one after the other. They assert counts, names and
//! what is left, and print times and rates.

#![allow(unsafe_code, reason = "the shared helpers send signals and set limits")]

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod delays;
mod far;
mod runs;
mod slurm;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use delays::Delays;
use support::{Ended, Guarded, NARROWS, Served, narrows, run, skip, until};

const GENERATORS: &str = "ssh://gen1,ssh://gen2,ssh://gen3";
/// Where `scripts/machines` keeps what belongs to the machines.
const STATE: &str = "/run/narrows-machines";
/// The addresses of this place and of the system's machine.
const HERE: &str = "10.213.7.1";
const SUT: &str = "10.213.7.2";
/// A link of 1 Gbit/s, as tc takes it.
const GIGABIT: &str = "tbf rate 1gbit burst 128k latency 10ms";

fn say(line: &str) {
    println!("\n  {line}");
}

/// Narrows' own server on the machine of the system. It is a child of the test, in the network of that machine.
fn serve() -> Served {
    let first =
        std::fs::read_to_string(format!("{STATE}/sut.here")).expect("`make machines` runs these tests");
    let mut command = Command::new("nsenter");
    command.args([
        "--net",
        "--target",
        first.trim(),
        NARROWS,
        "serve",
        "--host",
        SUT,
        "-p",
        "0",
        "--frames",
        "0",
    ]);
    support::plain(&mut command);
    Served::spawn(&mut command)
}

/// The command of a drive.
fn load(url: &str, generators: &str, words: &[&str]) -> Command {
    let whole = [&["load", url, "--allow-remote", "--gen", generators, "--json"], words].concat();
    narrows(whole)
}

fn loaded(url: &str, generators: &str, words: &[&str]) -> Value {
    run(&mut load(url, generators, words)).code(0).json()
}

fn number(json: &Value, name: &str) -> f64 {
    json[name].as_f64().unwrap_or_else(|| panic!("{name}: {json}"))
}

/// Runs a command here.
fn command(words: &[&str]) -> Ended {
    let mut command = Command::new(words[0]);
    support::plain(&mut command);
    run(command.args(&words[1..]))
}

/// Runs a command on a machine.
fn on(machine: &str, line: &str) -> Ended {
    command(&["ssh", machine, line])
}

/// A rule of tc on the links of machines, both ways. Dropping it removes the rule.
struct Shaped(Vec<String>);

impl Shaped {
    fn new(machines: &[&str], rule: &str) -> Result<Self, String> {
        let mut shaped = Self(Vec::new());
        for machine in machines {
            shaped.0.push((*machine).to_owned());
            let there = on(machine, &format!("tc qdisc replace dev eth0 root {rule}"));
            let link = format!("to-{machine}");
            let words: Vec<&str> = rule.split(' ').collect();
            let here = command(&[&["tc", "qdisc", "replace", "dev", &link, "root"], &words[..]].concat());
            for ended in [there, here] {
                if !ended.status.success() {
                    return Err(ended.stderr);
                }
            }
        }
        Ok(shaped)
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        for machine in &self.0 {
            on(machine, "tc qdisc del dev eth0 root");
            command(&["tc", "qdisc", "del", "dev", &format!("to-{machine}"), "root"]);
        }
    }
}

/// The agents on all machines, whose processes are seen from here.
fn agents() -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.ends_with(b"narrows\0agent\0")).count()
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn a_doctor_examines_four_machines_with_clocks_of_their_own() {
    let json =
        run(&mut narrows(["doctor", "--json", "--sut", "ssh://sut", "--gen", GENERATORS])).code(0).json();
    let machines = json["machines"].as_array().expect("machines");
    assert_eq!(machines.len(), 4, "{json}");
    for machine in machines {
        let ahead = machine["path"]["ahead_ns"].as_i64().expect("a number");
        say(&format!(
            "{}: clock {:.3} s ahead, round trip {} us",
            machine["machine"],
            ahead as f64 / 1e9,
            machine["path"]["round_trip_ns"].as_f64().expect("a number") / 1e3
        ));
        if std::path::Path::new("/proc/self/ns/time").exists() {
            assert!(ahead > 1_000_000_000, "the clocks of these machines are seconds ahead: {machine}");
        }
    }
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn b_three_generators_count_what_the_server_counts() {
    let server = serve();
    let json = loaded(&server.http, GENERATORS, &["-d", "5s", "-c", "30"]);
    let [requests, _, connections, _] = server.counts();
    let (completed, in_flight) = (number(&json, "completed"), number(&json, "in_flight"));
    say(&format!("{completed} verified and {in_flight} in flight; the server counted {requests} requests"));
    assert_eq!((requests as f64, connections), (completed + in_flight, 30), "{json}");
    assert_eq!(json["errors"], serde_json::json!({}), "{json}");
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn c_a_link_is_the_limit() {
    let server = serve();
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 64 << 10]).expect("a file");
    let echo = format!("{}/echo", server.http);
    let bulk = |connections: &str| {
        let body = format!("@{}", body.display());
        let words = ["-d", "5s", "--warmup", "1s", "-c", connections, "--body", &body];
        let json = loaded(&echo, GENERATORS, &words);
        assert!(number(&json, "completed") > 0.0, "{json}");
        let bits = number(&json, "bytes_sent") * 8.0 / number(&json, "elapsed_s");
        format!(
            "{:.3} Gbit/s each way, p50 {:.1} ms",
            bits / 1e9,
            number(&json["service_time_us"], "p50") / 1e3
        )
    };
    say(&format!("bodies of 64 KiB without a limit, 48 connections: {}", bulk("48")));
    let gigabit = Shaped::new(&["sut"], GIGABIT);
    match &gigabit {
        Ok(_) => say(&format!("the same over a link of 1 Gbit/s: {}", bulk("48"))),
        Err(why) => skip("a link of 1 Gbit/s", why),
    }
    // The packets of three machines wait for 5 ms each way, so that a round trip takes 10 ms.
    match Shaped::new(&["gen1", "gen2", "gen3"], "netem delay 5ms limit 100000") {
        Ok(_far) => {
            say(&format!("the same with 5 ms each way: {}", bulk("48")));
            say(&format!("one connection of each generator, with 5 ms each way: {}", bulk("3")));
        }
        Err(why) => skip("a link with 5 ms", why.trim()),
    }
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn d_merged_percentiles_are_those_of_one_generator() {
    // The n-th request of both drives gets the same delay, so the sets of delays are equal.
    let drive = |generators: &str| {
        let server = Delays::serve(HERE);
        let words = ["--rate", "400", "-n", "12000", "-c", "120"];
        let json = loaded(&server.url(), generators, &words);
        assert_eq!((json["completed"].as_u64(), server.served()), (Some(12_000), 12_000), "{json}");
        json["response_time_us"].clone()
    };
    // Whatever else this machine does only adds to a time, so the less of two is nearer to the truth.
    let drives = ["ssh://gen1", GENERATORS, GENERATORS, "ssh://gen1"].map(drive);
    for name in ["p50", "p99", "p99_9"] {
        let [one, three] =
            [[0, 3], [1, 2]].map(|[n, m]| number(&drives[n], name).min(number(&drives[m], name)));
        let apart = (three / one - 1.0).abs();
        let verdict = if apart < 0.01 { "within" } else { "NOT within" };
        say(&format!("{name}: {:.3} ms of one, {:.3} ms of three: {verdict} 1 %", one / 1e3, three / 1e3));
    }
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn e_thirty_two_agents_begin_together() {
    let server = serve();
    let machines: Vec<String> = (0..32).map(|n| format!("ssh://gen{}", n % 3 + 1)).collect();
    let json = loaded(
        &server.http,
        &machines.join(","),
        &["-d", "10s", "--warmup", "1s", "-c", "32", "--rate", "3200"],
    );
    assert_eq!(json["generators"].as_array().map(Vec::len), Some(32), "{json}");
    assert_eq!(json["arrivals"], 32_000, "{json}");
    let windows = &json["windows"];
    say(&format!(
        "windows of 10 s opened within {} us and closed within {} us, ±{} us: {:.3} % of the window",
        windows["opened_within_us"],
        windows["closed_within_us"],
        windows["clock_error_us"],
        number(windows, "share") * 100.0
    ));
    assert!(until(|| agents() == 0), "no agent is left");
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn f_what_reaching_four_machines_costs() {
    let server = serve();
    let timed = |generators: &str| {
        let began = Instant::now();
        loaded(&server.http, generators, &["-n", "4", "-c", "4"]);
        began.elapsed()
    };
    let four = format!("ssh://sut,{GENERATORS}");
    timed(&four);
    let middle = |generators: &str| {
        let mut times: Vec<Duration> = (0..5).map(|_| timed(generators)).collect();
        times.sort();
        times[2].as_secs_f64()
    };
    let (here, there) = (middle("local"), middle(&four));
    say(&format!(
        "4 requests: {here:.3} s with one local agent, {there:.3} s with four machines, medians of 5"
    ));
    for machine in ["sut", "gen1", "gen2", "gen3"] {
        assert!(run(&mut narrows(["agent", "--clean", &format!("ssh://{machine}")])).status.success());
    }
    say(&format!("with copying the program to all four: {:.3} s", timed(&four).as_secs_f64()));
}

#[test]
#[ignore = "needs the machines of scripts/machines"]
fn g_a_link_that_drops_fails_the_drive_and_leaves_nothing() {
    let server = serve();
    let drive = Guarded::spawn(&mut load(&server.http, GENERATORS, &["-d", "60s", "-c", "6"]));
    assert!(until(|| agents() == 3), "three agents run");
    std::thread::sleep(Duration::from_secs(2));
    let link = |state: &str| command(&["ip", "link", "set", "to-gen2", state]).code(0);
    link("down");
    let ended = drive.end().code(1).says(&["machine ssh://gen2", "said nothing for 5 s"]);
    assert_eq!(ended.stdout, "", "there is no figure");
    assert!(until(|| agents() == 0), "no agent is left, also behind the link");
    link("up");
    let json = loaded(&server.http, GENERATORS, &["-n", "300", "-c", "6"]);
    assert_eq!(json["completed"], 300, "the machine is back: {json}");
    say(ended.stderr.trim());
}
