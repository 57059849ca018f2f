//! Why one point is faster than another: what is counted, and where the kernel does not count, what tracing counts.

use measurement::{KernelCounts, Measurement};
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
        1,
        0.3,
        &format!("[[grid]]\nconnections = 1\nmore = [0, {CALLS}]\n"),
    );
    home
}

/// The work of the rows, the one without more calls first. Whether the speeds differ enough for a claim depends on the machine,
/// so this is not about claims.
fn work(home: &Home) -> Vec<Value> {
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let rows = report["experiments"][0]["figures"][0]["estimates"].as_array().expect("rows").iter();
    let rows = rows.filter(|row| row["scenario"]["system"] == "calling");
    rows.map(|row| row["work"].clone()).collect()
}

/// Checks that the calls that one row has more of are counted. Returns the work of the rows.
fn calls_are_counted(home: &Home) -> Vec<Value> {
    let work = work(home);
    let [few, many] = [0, 1].map(|row: usize| work[row]["calls_per_unit"].as_f64().expect("calls"));
    assert!(many - few > 0.9 * CALLS as f64, "{work:#?}");
    work
}

#[test]
fn where_the_kernel_counts_nothing_tracing_does() {
    if !has("node") {
        return;
    }
    let home = home();
    run(&mut home.narrows_uncounted(&["run", "e", "--rounds", "file"])).code(0);
    home.assert_nothing_left();
    let counted: Vec<_> = home.measured("calling").into_iter().filter_map(|m| m.counted).collect();
    let (traced, kernels): (Vec<&KernelCounts>, Vec<&KernelCounts>) =
        counted.iter().partition(|counts| counts.traced.is_some());
    // This user may use the kernel's counters, or may not trace either.
    if traced.is_empty() || kernels.iter().any(|counts| counts.system_calls.is_some()) {
        return;
    }
    assert!(traced.iter().all(|counts| counts.system_calls.is_none()), "{traced:#?}");
    let work = calls_are_counted(&home);
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
        calls_are_counted(&home);
    }
    // The kernel keeps an account of every connection, and of both ends. On a busy machine the last look at it may be an early one.
    for ends in counted.iter().filter_map(|counts| counts.tcp) {
        let (server, clients) =
            (ends.server.expect("the server's end"), ends.clients.expect("the other end"));
        assert_eq!((server.sockets, clients.sockets), (1, 1), "{ends:#?}");
        assert!(server.bytes >= server.data_segments && server.segments >= server.data_segments, "{ends:#?}");
    }
}
