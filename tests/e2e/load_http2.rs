//! `narrows load --http2`, over plain text and TLS, against `narrows serve` and its faults, over both kernel interfaces.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::load_tls::Issued;
use crate::support::{Guarded, Served, backends, has, load, load_json, until};

/// Drives with HTTP/2 and these words. Returns the JSON of a drive that succeeded.
pub fn drive(url: &str, words: &[&str]) -> Value {
    let (code, json) = load_json(&[&[url, "--http2"], words].concat());
    assert_eq!(code, 0, "{words:?}: {json}");
    json
}

fn at(json: &Value, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {json}"))
}

#[test]
fn answers_are_verified_in_closed_and_open_loops() {
    let server = Served::start(&[]);
    for io in backends() {
        let common = ["-c", "3", "--streams", "10", "-n", "600", "--expect", "body=ok", "--reactor", io];
        for more in [&[][..], &["--rate", "5000"], &["-t", "2"], &["-H", "Cookie: a=b", "-H", "X-Long: y"]] {
            let json = drive(&server.http, &[&common[..], more].concat());
            assert_eq!((at(&json, "/completed"), &json["errors"]), (600, &json!({})), "{io} {more:?}");
            let reached = at(&json, "/multiplexed/reached");
            assert!(
                (1..=10).contains(&reached) && json["multiplexed"]["asked"] == 10,
                "{io} {more:?}: {json}"
            );
        }
        let alone = drive(&server.http, &["-c", "2", "-n", "10", "--close", "--reactor", io]);
        assert_eq!(at(&alone, "/completed"), 10, "a connection for each request");
    }
    let wrong = load_json(&[&server.http, "--http2", "-n", "5", "--streams", "2", "--expect", "body=no"]);
    assert_eq!((wrong.0, &wrong.1["errors"]), (1, &json!({ "wrong_content": 5 })));
}

#[test]
fn bodies_go_both_ways_through_small_windows_and_large_ones() {
    for window in ["1000", "16M"] {
        let server = Served::start(&["--window", window]);
        for io in backends() {
            let url = |path: &str| server.http.clone() + path;
            let common = ["-c", "2", "--streams", "3", "-n", "12", "--reactor", io];
            let up = ["--body-size", "1000001", "--expect", "body=1000001"];
            drive(&url("/upload"), &[&common[..], &up].concat());
            let echo = ["--body-size", "300K", "--expect", "length=307200"];
            drive(&url("/echo"), &[&common[..], &echo].concat());
            drive(&url("/bytes/10000000"), &[&common[..], &["--expect", "length=10000000"]].concat());
            drive(&url("/upload"), &[&common[..], &up, &["--expect-continue"]].concat());
            drive(
                &url("/events/5?gap=1ms"),
                &[&common[..], &["--expect", "header:content-type=text/event-stream"]].concat(),
            );
            drive(
                &url("/bytes/7"),
                &[&common[..], &["-X", "HEAD", "--expect", "header:content-length=7"]].concat(),
            );
        }
    }
}

#[test]
fn a_server_keeps_to_the_window_and_the_table_that_it_is_told() {
    let server = Served::start(&[]);
    for io in backends() {
        for words in
            [["--window", "1"], ["--window", "1000"], ["--hpack-table", "0"], ["--hpack-table", "64K"]]
        {
            let common = ["-c", "2", "--streams", "3", "-n", "12", "--reactor", io];
            let path = if words[1] == "1" { "/bytes/300" } else { "/bytes/100000" };
            let length = format!("length={}", &path[7..]);
            drive(&(server.http.clone() + path), &[&common[..], &words, &["--expect", &length]].concat());
        }
    }
}

#[test]
fn what_a_server_refuses_fails_alone_and_what_it_does_not_process_begins_anew() {
    let common = ["-c", "1", "--streams", "10", "-n", "1000", "--allow-errors"];
    let errors = |serve: &[&str], io: &str| {
        let server = Served::start(serve);
        let json = drive(&server.http, &[&common[..], &["--reactor", io]].concat());
        (json["errors"].clone(), json)
    };
    for io in backends() {
        let (refused, json) = errors(&["--refuse-every", "10"], io);
        assert_eq!(refused, json!({ "busy": 100 }), "{io}");
        assert!(
            json["first_errors"]["busy"]
                .as_str()
                .is_some_and(|text| text.starts_with("RST_STREAM REFUSED_STREAM"))
        );
        let (reset, json) = errors(&["--reset-every", "10"], io);
        assert_eq!(reset, json!({ "reset": 100 }), "{io}");
        assert!(
            json["first_errors"]["reset"]
                .as_str()
                .is_some_and(|text| text.starts_with("RST_STREAM INTERNAL_ERROR"))
        );
        let (none, json) = errors(&["--goaway-after", "50"], io);
        assert_eq!((none, at(&json, "/completed")), (json!({}), 1000), "{io}: GOAWAY ends nobody wrongly");
        assert!(at(&json, "/multiplexed/renewed") >= 18, "{io}: {json}");
        let (none, json) = errors(&["--max-streams", "3"], io);
        assert_eq!((none, at(&json, "/completed")), (json!({}), 1000), "{io}");
        assert_eq!((at(&json, "/multiplexed/allowed"), at(&json, "/multiplexed/reached")), (3, 3), "{io}");
    }
    let server = Served::start(&["--max-streams", "3"]);
    let said = load(&[&server.http, "--http2", "--streams", "10", "-n", "10", "-c", "1"]).code(0).stdout;
    assert!(said.contains("asked for 10 streams, the peer allows 3"), "{said}");
}

#[test]
fn a_timeout_cancels_one_stream_and_the_others_of_its_connection_go_on() {
    let server = Served::start(&["-t", "1"]);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("requests.json");
    let line = |path: &str| format!("{{\"method\": \"GET\", \"path\": \"{path}\"}}\n");
    std::fs::write(&file, line("/wait/60000") + &line("/").repeat(9)).expect("a file");
    let file = file.to_str().expect("UTF-8");
    for io in backends() {
        let words = [
            "--requests",
            file,
            "-c",
            "1",
            "--streams",
            "10",
            "-n",
            "50",
            "--timeout",
            "5s",
            "--allow-errors",
        ];
        let json = drive(&server.http, &[&words[..], &["--reactor", io]].concat());
        assert_eq!(json["errors"], json!({ "request_timeout": 5 }), "{io}");
        assert_eq!((at(&json, "/completed"), at(&json, "/multiplexed/cancelled")), (45, 5), "{io}");
    }
    let [_, _, connections, _] = server.counts();
    assert_eq!(connections, backends().len() as u64, "no connection was given up");
}

#[test]
fn lists_with_placeholders_bodies_and_compressed_answers() {
    let server = Served::start(&[]);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("requests.json");
    let lines = [
        r#"{"method": "GET", "path": "/bytes/{{random 1..9}}", "expect": ["length<10"]}"#,
        r#"{"method": "POST", "path": "/echo", "body": "n={{counter}}", "headers": {"X-A": "{{uuid}}"}, "expect": ["body~=^n=[0-9]+$"]}"#,
        r#"{"method": "HEAD", "path": "/bytes/5"}"#,
        r#"{"method": "GET", "path": "/nowhere", "expect": ["status=404"]}"#,
    ];
    std::fs::write(&file, lines.join("\n")).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let json =
        drive(&server.http, &["--requests", file, "-c", "2", "--streams", "5", "-n", "200", "--compressed"]);
    assert_eq!((at(&json, "/completed"), &json["errors"]), (200, &json!({})), "{json}");
}

#[test]
fn tls_agrees_on_exactly_h2() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let (server, root) = (issued.serve(&["--goaway-after", "40"]), issued.path("root"));
    for io in backends() {
        for version in ["1.2", "1.3"] {
            let words = [
                "-c",
                "2",
                "--streams",
                "5",
                "-n",
                "200",
                "--cacert",
                &root,
                "--tls",
                version,
                "--reactor",
                io,
            ];
            let json = drive(&server.http, &[&words[..], &["--expect", "body=ok"]].concat());
            assert_eq!((at(&json, "/completed"), &json["errors"]), (200, &json!({})), "{io} {version}");
        }
    }
    let one = load_json(&[&server.http, "--cacert", &root, "-n", "5", "-c", "1"]);
    assert_eq!((one.0, &one.1["multiplexed"]), (0, &Value::Null), "without --http2 it is HTTP/1.1");
    if has("openssl") {
        let port = systems::free_port().expect("a free port");
        let (cert, key, text) = (issued.path("cert"), issued.path("key"), port.to_string());
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", &text, "-cert", &cert, "-key", &key, "-www"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _server = Guarded::spawn(&mut command);
        assert!(until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()));
        let url = format!("https://localhost:{port}/");
        let (code, json) = load_json(&[&url, "--http2", "--cacert", &root, "-n", "2", "-c", "1"]);
        assert_eq!((code, &json["errors"]), (1, &json!({ "tls": 2 })), "HTTP/1.1 is no substitute: {json}");
    }
}

#[test]
fn a_server_of_http1_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let (code, json) = load_json(&[&url, "--http2", "-n", "1", "-c", "1"]);
    let first = json["first_errors"]["protocol"].as_str().unwrap_or_default().to_owned();
    assert!(code == 1 && first.starts_with("the server speaks HTTP/1.1, and not HTTP/2"), "{json}");
}

#[test]
fn what_http2_does_not_have_is_an_error() {
    let url = "http://127.0.0.1:1/";
    for (words, why) in [
        (&["--streams", "2"][..], "--http2"),
        (&["--http2", "--pipeline", "2"], "--pipeline"),
        (&["--http2", "--streams", "2", "--close"], "--streams cannot be used with --close"),
        (&["--http2", "-H", "Connection: close"], "leave the header out"),
        (&["--window", "64K"], "--http2"),
        (&["--hpack-table", "0"], "--http2"),
        (&["--http2", "--window", "0"], "a window is from 1 to 2147483647 bytes"),
        (&["--http2", "--window", "2G"], "a window is from 1 to 2147483647 bytes"),
        (&["--http2", "--hpack-table", "65K"], "a table is from 0 to 64K bytes"),
    ] {
        load(&[&[url], words].concat()).code(2).says(&[why]);
    }
    load(&["https://127.0.0.1:1/", "--http2", "--alpn", "http/1.1"]).code(2).says(&["offers exactly h2"]);
    load(&["frames://127.0.0.1:1", "--http2"]).code(2).says(&["work only with requests"]);
}
