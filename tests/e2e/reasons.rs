//! Why one point is faster than another: what is counted, and where the kernel does not count, what tracing counts.

use lab::observation::{KernelCounts, Measurement};
use serde_json::Value;

use crate::support::home::Home;
use crate::support::{has, run};

/// A server that makes so many more system calls for each request.
const CALLS: u64 = 400;

fn home() -> Home {
    let home = Home::new();
    let script = "const more = Number(process.argv[3]);
        require('http').createServer((request, answer) => {
            for (let i = 0; i < more; i++) require('fs').statSync('/');
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("calling", script, "");
    home.server(
        "calling",
        r#"["node", "server.js", "{port}", "{more}"]"#,
        &format!(
            "[ready]\ntimeout_s = 120\n[knobs.more]\ntype = \"integer\"\ndefault = 0\nvalues = [0, {CALLS}]\nabout = \"calls\""
        ),
    );
    home.timed_experiment(
        "requests",
        "[\"calling\"]",
        4,
        0.3,
        &format!("[[grid]]\nconnections = 1\nmore = [0, {CALLS}]\n"),
    );
    home
}

/// The reasons of the claim about the knob, and the work of the rows, the one without more calls first.
fn explained(home: &Home) -> (Vec<Value>, Vec<Value>) {
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let found = &report["experiments"][0];
    let claims = found["claims"].as_array().expect("claims");
    let knob = claims.iter().find(|claim| claim["claim"] == "knob").unwrap_or_else(|| panic!("{claims:#?}"));
    let rows = found["estimates"].as_array().expect("rows").iter();
    let rows = rows.filter(|row| row["scenario"]["system"] == "calling").map(|row| row["work"].clone());
    (knob["reasons"].as_array().expect("reasons").clone(), rows.collect())
}

fn calls_are_the_reason(home: &Home) -> Vec<Value> {
    let (reasons, work) = explained(home);
    let calls = reasons.iter().find(|reason| reason["counted"] == "system_calls");
    let calls = calls.unwrap_or_else(|| panic!("{reasons:#?}"));
    let more = calls["slower"].as_f64().unwrap() - calls["faster"].as_f64().unwrap();
    assert!(more > 0.9 * CALLS as f64, "{calls}");
    work
}

#[test]
fn where_the_kernel_counts_nothing_tracing_finds_the_reason() {
    if !has("node") {
        return;
    }
    let home = home();
    run(&mut home.narrows_uncounted(&["run", "e", "--rounds", "file"])).code(0);
    home.assert_nothing_left();
    let counted: Vec<_> = home.measured("calling").into_iter().filter_map(|m| m.counted).collect();
    let (traced, kernels): (Vec<&KernelCounts>, Vec<&KernelCounts>) =
        counted.iter().partition(|counts| counts.traced.is_some());
    // Only a kernel that forbids tracing too counts nothing.
    if traced.is_empty() {
        assert!(kernels.iter().all(|counts| counts.system_calls.is_none()), "{kernels:#?}");
        return;
    }
    assert!(traced.iter().all(|counts| counts.system_calls.is_none()), "{traced:#?}");
    let work = calls_are_the_reason(&home);
    assert!(work.iter().all(|work| work["traced"] == true), "{work:#?}");
    let report = home.run(["report", "last", "--details"]).code(0);
    assert!(report.stdout.contains("are counted by tracing the system"), "{}", report.stdout);
}

#[test]
fn where_the_kernel_counts_nothing_is_traced_and_each_trial_says_what_it_waited_for() {
    if !has("node") {
        return;
    }
    let home = home();
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured: Vec<Measurement> = home.measured("calling");
    for m in &measured {
        assert!(m.system.waited_s.is_none_or(|waited| waited >= 0.0), "{m:#?}");
        assert!(m.system.page_faults.is_some() && m.system.softirq_share.is_some(), "{m:#?}");
    }
    let counted: Vec<_> = measured.iter().filter_map(|m| m.counted).collect();
    for counts in &counted {
        assert!(counts.system_calls.is_none() || counts.traced.is_none(), "{counts:#?}");
    }
    if counted.iter().any(|counts| counts.system_calls.is_some()) {
        calls_are_the_reason(&home);
    }
    // The kernel keeps an account of every connection, and of both ends.
    for ends in counted.iter().filter_map(|counts| counts.tcp) {
        let (server, clients) =
            (ends.server.expect("the server's end"), ends.clients.expect("the other end"));
        assert_eq!((server.sockets, clients.sockets), (1, 1), "{ends:#?}");
        assert!(server.bytes > 0 && server.data_segments > 0 && server.segments >= server.data_segments);
    }
}
