//! `narrows try --http2`: what its connections carried is saved and said, and what was tried can be run again.

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::{NARROWS, run, squeezed};

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];

/// Whether this is somewhere in a value.
fn has(value: &Value, part: &Value) -> bool {
    let within = match value {
        Value::Array(values) => values.iter().any(|value| has(value, part)),
        Value::Object(fields) => fields.values().any(|value| has(value, part)),
        _ => false,
    };
    within || value == part
}

#[test]
fn a_server_that_allows_fewer_streams_is_named_and_what_it_allowed_is_saved() {
    let home = Home::new();
    let few = format!("{NARROWS} serve -p {{port}} --max-streams 10");
    let many = format!("{NARROWS} serve -p {{port}}");
    let words = ["try", &few, &many, "--names", "few,many", "--http2", "-c", "2", "--streams", "100"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    let said = squeezed(&ended.stdout);
    let why = "100 streams were asked for on each connection, and the server allows 10 in 1 of 2 scenarios";
    assert!(said.contains(why) && said.contains("fewer --streams and more connections (-c)"), "{ended:#?}");
    for (system, reached, allowed) in [("few", 10, Some(10)), ("many", 100, None)] {
        for m in home.measured(system) {
            let found = m.multiplexed.unwrap_or_else(|| panic!("{system}: {m:#?}"));
            assert_eq!((found.asked, found.reached, found.allowed), (100, reached, allowed), "{system}");
        }
    }
    let json = home.run(["report", "1", "--format", "json"]).code(0).json();
    let found = json!({ "asked": 100, "reached": 10, "allowed": 10, "renewed": 0, "cancelled": 0 });
    assert!(has(&json, &found), "{json}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn what_was_tried_in_http2_can_be_saved_and_run_again() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}} --max-streams 4");
    let words = ["try", &server, &server, "--names", "a,b", "--http2", "-c", "2", "--streams", "5"];
    let more = ["--window", "64K", "--hpack-table", "0", "--save", "mine"];
    home.run(words.into_iter().chain(more).chain(SHORT)).code(0);
    let mut again = home.narrows(["run", "mine", "--rounds", "file"]);
    let ended = run(again.env("NARROWS_HOME", home.path("narrows"))).code(0);
    assert!(!ended.stderr.contains("takes no part") && !ended.stderr.contains("no HTTP/2"), "{ended:#?}");
    let details = home.run(["report", "1", "--details", "--store", "narrows.db"]).code(0);
    let said = squeezed(&details.stdout);
    assert!(
        said.contains("the server allows 4") && said.contains("(the knobs streams and connections)"),
        "{said}"
    );
    let observations = home.observations();
    let mut again = observations.iter().filter(|seen| seen.trial.scenario.system.starts_with("mine-"));
    for knob in [("http", "2"), ("streams", "5"), ("window", "65536"), ("hpack_table", "0")] {
        let all = observations.iter().map(|seen| seen.trial.scenario.point[knob.0].to_string());
        assert!(all.clone().all(|value| value == knob.1), "{knob:?}: {:?}", all.collect::<Vec<_>>());
    }
    assert!(again.next().is_some(), "{observations:#?}");
    for m in ["mine-a", "mine-b"].into_iter().flat_map(|system| home.measured(system)) {
        let found = m.multiplexed.expect("HTTP/2");
        assert_eq!((found.asked, found.allowed), (5, Some(4)));
    }
    home.assert_nothing_left();
}
