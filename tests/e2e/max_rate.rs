//! `narrows load --find-max-rate`: the bracket, or the reason why there is none.

use crate::support::peer::Peer;
use crate::support::{Served, load, squeezed};

/// Five connections with answers after 50 ms carry at most 100 requests per second on any machine.
#[test]
fn a_limit_is_bracketed_and_attempts_last_as_long_as_the_objectives_need() {
    let server = Served::start(&[]);
    let target = format!("{}/wait/50", server.http);
    let words =
        ["-c", "5", "-d", "500ms", "--rate", "20", "--find-max-rate", "--slo", "p50<10s,errors<5%", "--json"];
    let ended = load(&[&[target.as_str()], &words[..]].concat()).code(0);
    let found = ended.json();
    let (holds, fails) = (found["holds"].as_f64().expect("held"), found["fails"].as_f64().expect("failed"));
    assert!(holds < fails && holds <= 150.0, "{found}");
    let first = &found["steps"][0];
    assert_eq!(first["rate"], 20.0, "{found}");
    // Half a second has ten arrivals, but a median needs twenty answers.
    assert!(!found.to_string().contains("needs 20 answers, and there were 1"), "{found}");
}

#[test]
fn objectives_that_need_a_longer_window_are_refused_with_its_length() {
    let words = ["-d", "300ms", "--find-max-rate", "--slo", "p99.9<1s"];
    let ended = load(&[&["http://127.0.0.1:1/"], &words[..]].concat()).code(2);
    ended.says(&["the objectives need 10000 answers", "-d 2.8s or more", "--rate 9167 or more"]);
}

#[test]
fn a_target_that_fails_at_every_rate_says_why() {
    let peer = Peer::new(|mut connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let target = peer.url("http");
    let words = ["-c", "2", "-d", "50ms", "--rate", "1000", "--find-max-rate", "--slo", "p50<1s"];
    let ended = load(&[&[target.as_str()], &words[..]].concat()).code(3);
    let said = squeezed(&ended.stdout);
    for words in ["failed: status", "a longer -d tries lower rates"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn options_that_contradict_the_target_or_each_other_are_refused() {
    let cases: [(&[&str], &str); 8] = [
        (&["http://127.0.0.1:1/", "-d", "0s"], "-d 0s measures nothing"),
        (&["http://127.0.0.1:1/", "--cores", "4096"], "may not run on core 4096"),
        (&["http://127.0.0.1:1/", "--frame-size", "10"], "only with frames"),
        (&["frames://127.0.0.1:1", "--body-size", "5"], "work only with requests"),
        (&["frames://127.0.0.1:1", "--close"], "work only with requests"),
        (
            &["http://127.0.0.1:1/", "--find-max-rate", "--slo", "errors<1%", "--rate", "1k..2k"],
            "must not be a ramp",
        ),
        (
            &["http://127.0.0.1:1/", "--find-max-rate", "--slo", "errors<1%", "--hlog", "x"],
            "cannot be used with",
        ),
        (&["http://127.0.0.1:1/", "--close", "--pipeline", "2"], "cannot be used with --close"),
    ];
    for (words, why) in cases {
        load(words).code(2).says(&[why]);
    }
}
