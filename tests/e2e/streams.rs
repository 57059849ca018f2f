//! `narrows load` and `narrows try` of endpoints that stream: a server whose pieces have known times, and proxies in front of it.

use serde_json::{Map, Value};

use crate::support::{Served, backends, load, load_json};

/// A chat of OpenAI's interface whose times the model names.
fn chat(model: &str) -> String {
    format!(r#"{{"model":"{model}","stream":true,"messages":[],"stream_options":{{"include_usage":true}}}}"#)
}

fn number(json: &Value, path: [&str; 2]) -> f64 {
    json[path[0]][path[1]].as_f64().unwrap_or_else(|| panic!("{path:?} of {json}"))
}

/// Times are never shorter than the server waits; how much longer they are is the machine's affair.
#[test]
fn the_figures_of_a_stream_are_those_of_the_script() {
    const MS: f64 = 1000.0;
    for io in backends() {
        for (tls, mode) in [(&["--tls"][..], &["-n", "20"][..]), (&[], &["-n", "20"]), (&[], &["--rate", "10", "-d", "2s"])] {
            let server = Served::start(tls);
            let url = format!("{}/events/8?first=50ms&gap=10ms&stall=300ms&every=10", server.http);
            let trust: &[&str] = if tls.is_empty() { &[] } else { &["--insecure"] };
            let words = [&[&*url, "-c", "2", "--reactor", io], mode, trust].concat();
            let (code, json) = load_json(&words);
            let open = mode.contains(&"--rate");
            let none = Value::Object(Map::default());
            assert_eq!((code, &json["attempts"], &json["errors"]), (0, &20.into(), &none), "{json}");
            // An open loop awaits some of them after its window.
            assert!(open || json["streams"] == 20, "{json}");
            let events = json["events"].as_u64().expect("a number");
            assert!(if open { events <= 160 } else { events == 160 }, "{json}");
            assert!(json["event_reads"].as_u64().is_some_and(|reads| 0 < reads && reads <= events), "{json}");
            assert!(number(&json, ["first_event_us", "p50"]) >= 50.0 * MS, "{json}");
            assert!(number(&json, ["gap_us", "max"]) >= 300.0 * MS, "a connection's tenth stream stands still: {json}");
            assert!(number(&json, ["longest_gap_us", "max"]) >= 300.0 * MS, "{json}");
            assert!(number(&json, ["service_time_us", "p50"]) >= 120.0 * MS, "{json}");
            assert_eq!(json["first_event_service_us"].is_null(), !open, "{json}");
        }
    }
}

#[test]
fn a_chat_has_its_first_reasoning_its_first_output_and_its_tokens() {
    let server = Served::start(&[]);
    let url = format!("{}/v1/chat/completions", server.http);
    let body = chat("narrows?events=6&first=20ms&gap=10ms&reasoning=3");
    let (code, json) = load_json(&[&url, "--body", &body, "-n", "4", "-c", "1"]);
    assert_eq!((code, &json["streams"], &json["tokens"]), (0, &4.into(), &24.into()), "{json}");
    assert_eq!(json["events"], 4 * (6 + 4), "with its role, its end, its usage and [DONE]: {json}");
    let first = number(&json, ["first_event_us", "max"]);
    assert!(first >= 20_000.0 && number(&json, ["first_output_us", "max"]) >= 50_000.0, "{json}");
    assert!(number(&json, ["first_byte_us", "max"]) <= first, "{json}");
    assert!(number(&json, ["per_token_us", "max"]) >= 10_000.0, "{json}");
    // Without a stream it is an answer like any other.
    let (code, json) =
        load_json(&[&url, "--body", r#"{"model":"narrows?events=2","messages":[]}"#, "-n", "2", "-c", "1"]);
    assert_eq!((code, &json["streams"], &json["events"]), (0, &0.into(), &0.into()), "{json}");
}

#[test]
fn lines_and_chunks_are_streams_if_the_user_says_so() {
    let server = Served::start(&[]);
    let url = format!("{}/chunks/5?gap=5ms", server.http);
    for (words, events) in [(&[][..], 0), (&["--stream", "lines"], 10), (&["--stream", "chunks"], 10)] {
        let (code, json) = load_json(&[&[&*url, "-n", "2", "-c", "1"], words].concat());
        assert_eq!((code, &json["completed"], &json["events"]), (0, &2.into(), &events.into()), "{json}");
    }
}

#[test]
fn the_end_of_the_window_cuts_streams_that_count_what_they_had() {
    let server = Served::start(&[]);
    let url = format!("{}/events/100000?gap=1ms", server.http);
    let (_, json) = load_json(&[&url, "-c", "3", "-d", "500ms"]);
    let none = Value::Object(Map::default());
    assert_eq!((&json["errors"], &json["cut_streams"], &json["in_flight"]), (&none, &3.into(), &3.into()), "{json}");
    assert!(json["events"].as_u64().is_some_and(|events| events > 3) && !json["gap_us"]["max"].is_null(), "{json}");
}

#[test]
fn checks_of_events_say_what_is_wrong_with_a_stream() {
    let server = Served::start(&[]);
    let url = format!("{}/events/3", server.http);
    let with = |check: &str| load(&[&url, "-n", "1", "--expect", check]);
    for right in ["events=3", "events>=1", "last-event=xxxxxxxxxxxxxxxx", "event~=x", "event.id counts"] {
        with(right).code(0);
    }
    let wrong = |check: &str, words: &str| {
        let ended = with(check).code(1);
        assert!(ended.stdout.contains(words), "{check}: {ended:#?}");
    };
    wrong("events=4", "length, first events=4: it is 3");
    wrong("last-event=[DONE]", "last-event=[DONE]: it is \"xxxxxxxxxxxxxxxx\"");
    wrong("event.json.a=1", "wrong_content, first event.json.a=1");
    with("event").code(2).says(&["event.json.a=1"]);
    let plain = format!("{}/", server.http);
    let ended = load(&[&plain, "-n", "1", "--expect", "events=1"]).code(1);
    assert!(ended.stdout.contains("the answer is no stream"), "{ended:#?}");
}
