//! `narrows load` and `narrows try` of endpoints that stream: a server whose pieces have known times, and proxies in front of it.

use std::net::TcpStream;
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::home::Home;
use crate::support::{Guarded, NARROWS, Served, backends, has, load, load_json, nginx, plain, until};

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
        for (tls, mode) in
            [(&["--tls"][..], &["-n", "20"][..]), (&[], &["-n", "20"]), (&[], &["--rate", "10", "-d", "2s"])]
        {
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
            assert!(
                number(&json, ["gap_us", "max"]) >= 300.0 * MS,
                "a connection's tenth stream stands still: {json}"
            );
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
    // Tokens come every 10 ms. If the first one is late, those behind it follow sooner.
    assert!(number(&json, ["per_token_us", "max"]) >= 5_000.0, "{json}");
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
    assert_eq!(
        (&json["errors"], &json["cut_streams"], &json["in_flight"]),
        (&none, &3.into(), &3.into()),
        "{json}"
    );
    assert!(
        json["events"].as_u64().is_some_and(|events| events > 3) && !json["gap_us"]["max"].is_null(),
        "{json}"
    );
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

/// Whether a result warns that streams were held back.
fn is_buffered(json: &Value) -> bool {
    json["warnings"].as_array().expect("warnings").iter().any(|warning| warning["code"] == "buffered")
}

#[test]
fn a_proxy_that_buffers_is_told_from_one_that_does_not() {
    let server = Served::start(&[]);
    let path = "/events/10?first=5ms&gap=5ms";
    let (_, direct) = load_json(&[&format!("{}{path}", server.http), "-n", "4", "-c", "2"]);
    assert!(!is_buffered(&direct) && number(&direct, ["first_event_us", "max"]) >= 5000.0, "{direct}");
    // By default nginx asks in HTTP/1.0, whose answers have no chunks, and passes on full buffers.
    for (buffering, held) in [("on", true), ("off", false)] {
        let (dir, port) = (TempDir::new().expect("a folder"), systems::free_port().expect("a free port"));
        let http = format!(
            "access_log off; server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {}; \
             proxy_buffering {buffering}; }} }}",
            server.http
        );
        let Some(_nginx) = nginx::start(dir.path(), port, &http) else { return };
        let (code, json) = load_json(&[&format!("http://127.0.0.1:{port}{path}"), "-n", "4", "-c", "2"]);
        assert_eq!((code, &json["streams"], &json["events"]), (0, &4.into(), &40.into()), "{json}");
        assert_eq!(is_buffered(&json), held, "proxy_buffering {buffering}: {json}");
        assert_eq!(json["gap_us"].is_null(), held, "{json}");
        // What is held back comes with the last event, 50 ms after the request.
        let first = number(&json, ["first_event_us", "mean"]);
        assert!(!held || first >= 50_000.0, "{json}");
    }
}

#[test]
fn good_answers_meet_all_their_limits() {
    let server = Served::start(&[]);
    let url = format!("{}/events/4?first=20ms&gap=20ms", server.http);
    let with = |slo: &str| load_json(&[&url, "-n", "3", "-c", "1", "--slo", slo]);
    for (slo, good) in [
        ("first-event<10s,gap.p99<10s,longest-gap<10s,whole<10s", 3),
        ("first-event<20ms", 0),
        ("whole<80ms", 0),
        ("first-byte<10s,whole<80ms", 0),
    ] {
        let (code, json) = with(slo);
        assert_eq!((code, &json["good"]), (0, &good.into()), "{slo}: {json}");
    }
    let (_, json) = load_json(&[&url, "-n", "1"]);
    assert!(json["good"].is_null(), "{json}");
    let said = load(&[&url, "-n", "3", "-c", "1", "--slo", "whole<80ms"]).code(0);
    assert!(said.stdout.contains("0 of 3 (0 %) met whole<80ms"), "{said:#?}");
    load(&[&url, "-n", "1", "--slo", "gap.p100<1s"]).code(2).says(&["gap.p99"]);
}

/// Sends ten events: one by one, two at a time, or all together.
const SSE: &str = r#"
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(10):
            time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0.01)
            self.wfile.write(b"9\r\ndata: %d\n\n\r\n" % number)
            if sys.argv[1] == "flows" or (sys.argv[1] == "pairs" and number % 2):
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"#;

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_try_of_two_servers_in_an_empty_folder_compares_their_streams() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("sse.py", SSE);
    let arms = ["flows", "holds", "pairs"].map(|how| format!("python3 sse.py {how} {{port}}"));
    let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
    let words =
        ["-c", "2", "--rounds", "3", "-d", "600ms", "--warmup", "0s", "--figure", "first-event,gap,start"];
    let ended = home.run(["try"].into_iter().chain(arms.clone()).chain(words)).code(0);
    for said in ["first event", "buffered: all events", "proxy_buffering off"] {
        assert!(ended.stdout.contains(said), "{said}: {ended:#?}");
    }
    let ended = home.run(["try", arms[0], arms[2]].into_iter().chain(words)).code(0);
    let said = ended.stdout.replace('\n', " ");
    assert!(said.contains("events came in a read") && said.contains("from the base"), "{ended:#?}");
    let rate = ["-c", "2", "--rounds", "1", "-d", "600ms", "--warmup", "0s"];
    let ended = home.run(["try", arms[0]].into_iter().chain(rate)).code(0);
    ended.says(&["the answers are streams of 10 events: --figure first-event"]);
    let wrong = home.run(["try"].into_iter().chain(arms).chain(["--figure", "goodput"])).code(2);
    wrong.says(&["--figure goodput needs its limits"]);
}

/// Sends an event and an error, or two events, and then nothing more.
const STAYS_OPEN: &str = r#"
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        kind = "event: error\n" if self.path == "/broken" else ""
        self.wfile.write(f"data: 1\n\n{kind}data: 2\n\n".encode())
        time.sleep(3)

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_stream_that_the_window_cuts_has_failed_if_something_was_wrong_already() {
    if !has("python3") {
        return;
    }
    let (home, port) = (Home::new(), systems::free_port().expect("a free port"));
    home.write("stays_open.py", STAYS_OPEN);
    let mut command = Command::new("python3");
    plain(command.arg(home.path("stays_open.py")).arg(port.to_string()));
    let mut server = Guarded::spawn(&mut command);
    let open = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(until(|| open() || !server.running()), "it listens");
    for (path, errors, in_flight) in [("broken", json!({"wrong_content": 2}), 0), ("whole", json!({}), 2)] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        let (_, json) = load_json(&[&url, "-c", "2", "-d", "1500ms", "--warmup", "0s"]);
        assert_eq!((&json["errors"], &json["in_flight"]), (&errors, &in_flight.into()), "{path}: {json}");
    }
}

#[test]
fn streams_are_driven_from_another_machine() {
    let served = Served::start(&[]);
    // The end of the window cuts those that are under way: it falls into the middle of a stream.
    let url = format!("{}/events/40?gap=10ms", served.http);
    let (code, json) = load_json(&[&url, "-c", "4", "-d", "1s", "--warmup", "0s", "--gen", "local"]);
    assert_eq!((code, &json["errors"]), (0, &json!({})), "{json}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_search_finds_the_setting_with_the_most_goodput() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("sse.py", SSE);
    let words = ["tune", "python3 sse.py flows {port} {pause}", "--knob", "pause=0.004,0.002", "-c", "2"];
    let timing = ["-d", "200ms", "--warmup", "0s", "--budget", "100s", "--slo", "first-event<1s,whole<5s"];
    let ended = home.run(words.into_iter().chain(timing)).code(0);
    assert!(
        ended.stdout.contains("set pause=0.002: ") && ended.stdout.contains("answers a second"),
        "{ended:#?}"
    );
    let wrong = home.run(["tune", "nginx", "--slo", "first-event<40ms"]).code(2);
    wrong.says(&["limits of single answers are about the answers of a command"]);
}

/// Passes on what its upstream answers, as it comes.
const PROXY: &str = r#"
import sys, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        with urllib.request.urlopen(sys.argv[2] + self.path) as answer:
            self.send_response(200)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_gateway_has_a_server_behind_it() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("proxy.py", PROXY);
    let port = systems::free_port().expect("a free port");
    let upstream = format!("--upstream={port}");
    let arms = [format!("{NARROWS} serve --port {{port}}"), "python3 proxy.py {port} {upstream}".to_owned()];
    let figures = "first-event,start,first-request,idle-memory,idle-cpu";
    let words = ["--path", "/events/5?gap=2ms", "-c", "2", "--rounds", "3", "-d", "300ms", "--warmup", "0s"];
    let more = ["--figure", figures, "--names", "direct,proxy", upstream.as_str()];
    let arms = arms.iter().map(String::as_str);
    let ended = home.run(["try"].into_iter().chain(arms.clone()).chain(words).chain(more)).code(0);
    for figure in ["first_event_us:", "start_ms:", "first_request_us:", "idle_memory_bytes:", "idle_cpu:"] {
        assert!(ended.stdout.contains(figure), "{figure}: {ended:#?}");
    }
    let without = home.run(["try"].into_iter().chain(arms).chain(["--dry-run"])).code(2);
    without.says(&["{upstream} needs --upstream"]);
    home.run(["try", "./server {port}", "--upstream", "--dry-run"]).code(2).says(&["no command has"]);
    // It has ended with the run.
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
}
