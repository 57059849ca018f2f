//! The trace of what a trial starts, asks and stops.

use std::fs;

use crate::support::home::Home;
use crate::support::run;

#[test]
fn a_trace_shows_what_a_trial_started_sent_and_stopped() {
    let home = Home::new();
    // It prints whether it sees the variable, so that its output would differ with a trace.
    let command = r#"["sh", "-c", "env | grep -c NARROWS_TRACE > seen; exec {narrows} serve -p {port}"]"#;
    let more = "env.GREETING = \"hello you\"\nprepare = [\"echo\", \"prepared\"]\n[ready]\nhttp = \"/\"\n";
    home.server("traced", command, more);
    home.experiment("requests", "[\"traced\"]", 1, "[[grid]]\nconnections = 2\n");
    let trace = home.path("trace");
    let mut narrows = home.narrows(["run", "e", "--rounds", "1"]);
    run(narrows.env("NARROWS_TRACE", &trace)).code(0);
    let text = fs::read_to_string(&trace).expect("the trace");
    let at = |words: &str, from: usize| match text[from..].find(words) {
        Some(found) => from + found + words.len(),
        None => panic!("{words:?} is not in the rest of: {text}"),
    };
    let mut place = at(" e traced connections=2", 0);
    for words in [
        "the prepare command of traced",
        "echo prepared",
        "exited with code 0",
        "sh -c 'env | grep -c NARROWS_TRACE > seen; exec ",
        "with GREETING='hello you'",
        r#" bytes "GET / HTTP/1.1\r\nHost: 127.0.0.1:"#,
        r#" bytes "HTTP/1.1 200 OK\r\n"#,
        " serves, and its socket belongs to what was started",
        "equal work: three exchanges",
        r#" bytes "GET / HTTP/1.1\r\nHost: 127.0.0.1:"#,
        r#" bytes "HTTP/1.1 200 OK\r\n"#,
        "equal work: right",
        "sent SIGTERM to the group of ",
        "ended ",
        "--- measured ",
    ] {
        place = at(words, place);
    }
    assert_eq!(fs::read_to_string(home.path("systems/traced/seen")).expect("it ran").trim(), "0");

    // A file that cannot be written is an error that names it.
    let mut narrows = home.narrows(["run", "e"]);
    let refused = run(narrows.env("NARROWS_TRACE", "/no/such/folder/trace"));
    refused.code(1).says(&["NARROWS_TRACE=/no/such/folder/trace: cannot write there"]);
}
