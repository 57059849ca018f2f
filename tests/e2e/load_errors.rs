//! Each failure that `narrows load` can meet counts in exactly one class, and the exit code depends on it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support;
use crate::support::home::Home;
use crate::support::peer::{Connection, Peer};
use crate::support::{Served, backends, load, load_json, run};

/// Sends four requests in sequence to a server that treats them in this way. All must fail in this class.
fn assert_class(class: &str, words: &[&str], treat: impl Fn(Connection) + Send + Sync + Copy + 'static) {
    for io in backends() {
        let peer = Peer::new(treat);
        let url = peer.url("http");
        let (code, json) = load_json(&[&[&*url, "-n", "4", "-c", "1", "--reactor", io], words].concat());
        assert_eq!(json["errors"], serde_json::json!({class: 4}), "{io}: {json}");
        assert_eq!((code, &json["completed"]), (1, &0.into()), "{io}: {json}");
        assert!(json["first_errors"][class].is_string(), "{json}");
    }
}

#[test]
fn another_status_is_a_status_error() {
    let server = Served::start(&[]);
    for io in backends() {
        let url = format!("{}/nowhere", server.http);
        let (code, json) = load_json(&[&url, "-n", "10", "-c", "2", "--reactor", io]);
        assert_eq!((code, &json["errors"]), (1, &serde_json::json!({"status": 10})), "{json}");
        let (code, json) =
            load_json(&[&url, "-n", "10", "-c", "2", "--reactor", io, "--expect-status", "404"]);
        assert_eq!((code, &json["completed"]), (0, &10.into()), "{json}");
        let (code, json) = load_json(&[&server.http, "-n", "10", "--reactor", io, "--expect-status", "201"]);
        assert_eq!((code, &json["errors"]), (1, &serde_json::json!({"status": 10})), "{json}");
    }
    assert_class("status", &[], |mut connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        }
    });
}

#[test]
fn an_answer_that_nobody_asked_for_counts_even_on_an_idle_connection() {
    for io in backends() {
        // Each request comes long after the one before, on the other connection. That one has its answer, and gets another.
        let last: Arc<Mutex<Option<TcpStream>>> = Arc::default();
        let peer = Peer::new(move |mut connection| {
            while connection.request().is_some() {
                connection.ok();
                let before = last.lock().expect("no panic").replace(connection.socket());
                if let Some(mut before) = before {
                    let _ = before.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            }
        });
        let words =
            [&*peer.url("http"), "-c", "2", "-t", "1", "--rate", "40", "-d", "500ms", "--reactor", io];
        let (code, json) = load_json(&words);
        assert!(code == 1 && json["errors"]["protocol"].as_u64() > Some(2), "{io}: {json}");
        assert!(
            json["connections_made"].as_u64() > Some(2) && json["completed"].as_u64() > Some(2),
            "{io}: {json}"
        );
        assert!(
            json["first_errors"]["protocol"].as_str().is_some_and(|text| text.contains("HTTP/1.1 200")),
            "{json}"
        );
    }
}

#[test]
fn a_connection_that_ends_while_it_is_idle_fails_no_request() {
    for io in backends() {
        let peer = Peer::new(|mut connection| {
            if connection.request().is_some() {
                connection.send_last("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        });
        let url = peer.url("http");
        let words = ["-c", "1", "--rate", "10", "--gaps", "constant", "-d", "1s", "--reactor", io];
        let (code, json) = load_json(&[&[&*url], &words[..]].concat());
        assert_eq!((code, &json["errors"]), (0, &serde_json::json!({})), "{io}: {json}");
        let (completed, made) = (json["completed"].as_u64(), json["connections_made"].as_u64());
        assert!(completed > Some(5) && made >= completed, "{io}: {json}");
    }
}

/// A URL at which nothing listens.
fn nowhere(scheme: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("{scheme}://{}", listener.local_addr().expect("its address"))
}

#[test]
fn a_port_that_nobody_listens_on_is_told_at_once() {
    for (scheme, extra) in [("http", "-t1"), ("http", "--close"), ("frames", "-t2"), ("http", "--rate=10")] {
        for io in backends() {
            let words = [&nowhere(scheme), "-d", "1h", "-c", "2", "--reactor", io, extra];
            load(&words).code(1).says(&["nothing listens at 127.0.0.1:", "refused", "--wait 10s"]);
        }
    }
    let words = ["--find-max-rate", "--slo", "p50<1s", "-d", "1h"];
    load(&[&[&*nowhere("http")], &words[..]].concat()).code(1).says(&["nothing listens at 127.0.0.1:"]);
}

#[test]
fn a_refusal_after_the_first_connection_is_an_error_of_its_request() {
    for io in backends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let once = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            drop(listener);
            // A server that answers first and closes may reset the connection before the request has come.
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
        });
        let (code, json) = load_json(&[&url, "-n", "3", "-c", "1", "--reactor", io]);
        once.join().unwrap();
        assert_eq!((code, &json["completed"]), (1, &1.into()), "{json}");
        assert_eq!(json["errors"], serde_json::json!({"connect_refused": 2}), "{json}");
    }
}

#[test]
fn load_waits_for_its_target_if_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        Peer::at(address, |mut connection| {
            while connection.request().is_some() {
                connection.ok();
            }
        })
    });
    let (code, json) = load_json(&[&format!("http://{address}"), "-n", "3", "-c", "1", "--wait", "20s"]);
    assert_eq!((code, &json["completed"], &json["errors"]), (0, &3.into(), &serde_json::json!({})), "{json}");
    drop(late.join());
    let ended = load(&[&nowhere("http"), "-n", "3", "--wait", "50ms"]).code(1);
    ended.says(&["nothing accepted a connection at 127.0.0.1:", "within 50.0 ms", "refused"]);
}

#[test]
fn a_server_that_closes_without_an_answer_closed_early() {
    assert_class("closed_early", &[], |mut connection| {
        connection.request();
    });
}

#[test]
fn a_server_that_closes_within_an_answer_closed_early() {
    assert_class("closed_early", &[], |mut connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    });
    assert_class("closed_early", &[], |mut connection| {
        connection.request();
        connection.send("HTTP/1.1 200 O");
    });
    // The example contains the part that arrived, also after a complete answer, and if others after it are lost as
    // well.
    for pipeline in [1, 3] {
        let peer = Peer::new(move |mut connection| {
            (0..pipeline).for_each(|_| drop(connection.request()));
            connection.ok();
            if pipeline == 1 {
                connection.request();
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        });
        for io in backends() {
            let (url, depth) = (peer.url("http"), pipeline.to_string());
            let (_, json) = load_json(&[&url, "-n", "3", "-c", "1", "--pipeline", &depth, "--reactor", io]);
            let first = json["first_errors"]["closed_early"].as_str().expect("an example");
            let seen =
                r#""HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf" (connection 0, its exchange 2, "#;
            assert!(first.starts_with(seen), "{io}, {pipeline} at once: {first}");
            let lost = if pipeline == 1 { 1 } else { 2 };
            assert_eq!(json["errors"], serde_json::json!({ "closed_early": lost }), "{json}");
        }
    }
}

#[test]
fn a_server_that_drops_a_request_unread_is_a_reset() {
    assert_class("reset", &[], |mut connection| connection.wait_unread());
}

#[test]
fn a_stray_byte_after_an_answer_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!");
        }
    });
}

#[test]
fn a_stray_byte_before_an_answer_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        while connection.request().is_some() {
            connection.send("!HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
}

#[test]
fn an_unrequested_second_answer_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        while connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".repeat(2));
        }
    });
}

#[test]
fn other_protocols_are_named() {
    for (first, name) in [
        (&b"220 (vsFTPd 3.0.3)\r\n"[..], "FTP"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "SSH"),
        (b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80", "HTTP/2 without TLS"),
        (b"-ERR wrong number of arguments for 'get' command\r\n", "Redis"),
    ] {
        let peer = Peer::new(move |mut connection| {
            connection.request();
            connection.send(first);
            connection.wait_end();
        });
        let url = peer.url("http");
        let ended = load(&[&url, "-n", "1", "-c", "1"]).code(1);
        assert!(ended.stdout.contains(&format!("the server speaks {name}")), "{name}: {ended:#?}");
        let home = Home::new();
        home.run(["try", &*url]).code(1).says(&[&format!("it speaks {name}"), "not HTTP/1.1"]);
    }
    // What wants another protocol in an answer of HTTP/1.1.
    for (answer, said) in [
        (
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
            "it speaks WebSocket, which Narrows does not",
        ),
        (
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 47\r\n\r\nClient sent an HTTP request to an HTTPS server.",
            "it speaks TLS: name its address with https://, or write {cert} and {key}",
        ),
    ] {
        let peer = Peer::new(move |mut connection| {
            while connection.request().is_some() {
                connection.send(answer);
            }
        });
        Home::new().run(["try", &*peer.url("http")]).code(1).says(&[said]);
    }
    let silent = Peer::new(|mut connection| connection.wait_end());
    let words = ["try", &*silent.url("http"), "--timeout", "300ms"];
    Home::new().run(words).code(1).says(&["it was silent until the timeout: it may speak another protocol"]);
    let secured = Served::start(&["--tls"]);
    let plain = secured.http.replace("https://", "http://");
    Home::new().run(["try", &*plain]).code(1).says(&["it speaks TLS", "https://"]);
}

#[test]
fn something_other_than_http_is_a_protocol_error() {
    assert_class("protocol", &[], |mut connection| {
        connection.request();
        connection.send("220 mail.example ESMTP\r\n\r\n");
        connection.wait_end();
    });
}

#[test]
fn a_server_that_never_answers_is_a_timeout() {
    assert_class("request_timeout", &["--timeout", "200ms"], |mut connection| connection.wait_end());
}

#[test]
fn waiting_for_an_answer_costs_no_cpu_time() {
    for io in backends() {
        let peer = Peer::new(|mut connection| connection.wait_end());
        let words = ["-n", "1", "-c", "1", "--timeout", "1s", "--reactor", io];
        let (_, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
        // Other work on the machine can only reduce it.
        assert!(json["generator"]["busiest_core"].as_f64().unwrap() < 0.2, "{io}: {json}");
        // There may be warnings about the machine (stolen time, heat), but none about the generator.
        let warnings = json["warnings"].as_array().expect("warnings");
        let machine = |code: &serde_json::Value| *code == "stolen_time" || *code == "throttled";
        assert!(warnings.iter().all(|warning| machine(&warning["code"])), "{io}: {json}");
    }
}

/// Answers with bytes that do not end: see [`Connection::send_on`].
fn send_on(mut connection: Connection, head: &str, piece: &str, pause_ms: u64) {
    connection.request();
    connection.send_on(head, piece, Duration::from_millis(pause_ms));
}

/// Longer than any test.
const NEVER_MS: u64 = 3_600_000;
const ENDLESS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_timeout_does_not_begin_anew_with_every_byte() {
    let words = ["--timeout", "400ms"];
    // A byte now and then; an endless body; more interim answers than time.
    assert_class("request_timeout", &words, |connection| send_on(connection, ENDLESS, "x", 50));
    assert_class("request_timeout", &words, |connection| send_on(connection, "", "H", NEVER_MS));
    assert_class("request_timeout", &words, |connection| {
        send_on(connection, ENDLESS, &"x".repeat(1 << 16), 1);
    });
    assert_class("request_timeout", &words, |connection| send_on(connection, CHUNKED, "1\r\nx\r\n", 50));
    assert_class("request_timeout", &words, |connection| {
        send_on(connection, "", "HTTP/1.1 100 Continue\r\n\r\n", 50);
    });
}

#[test]
fn an_idle_timeout_lets_a_long_answer_take_its_time() {
    let slowly = |mut connection: Connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\n");
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            connection.send("x");
        }
    };
    for io in backends() {
        let peer = Peer::new(slowly);
        let words = [&peer.url("http"), "-n", "1", "-c", "1", "--timeout", "400ms", "--reactor", io];
        let (code, json) = load_json(&[&words[..], &["--idle-timeout", "10s"]].concat());
        assert_eq!((code, &json["completed"]), (0, &1.into()), "{json}");
        let (_, json) = load_json(&words);
        assert_eq!(json["errors"], serde_json::json!({"request_timeout": 1}), "{json}");
    }
    assert_class("request_timeout", &["--idle-timeout", "200ms"], |connection| {
        send_on(connection, ENDLESS, "x", NEVER_MS);
    });
}

#[test]
fn endless_answers_meet_a_limit() {
    let words = ["--max-answer", "100K"];
    assert_class("length", &words, |connection| send_on(connection, ENDLESS, &"x".repeat(1 << 12), 0));
    assert_class("length", &words, |connection| {
        send_on(connection, "HTTP/1.1 200 OK\r\nContent-Length: 102401\r\n\r\n", &"x".repeat(102_401), 0);
    });
    assert_class("length", &words, |connection| send_on(connection, CHUNKED, "8\r\nxxxxxxxx\r\n", 0));
    assert_class("protocol", &[], |connection| {
        send_on(connection, "", "HTTP/1.1 100 Continue\r\n\r\n", 0);
    });
    assert_class("protocol", &[], |connection| {
        send_on(connection, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n", 0);
    });
    assert_class("protocol", &[], |connection| send_on(connection, CHUNKED, "0", 0));
    assert_class("protocol", &[], |connection| {
        send_on(connection, &format!("{CHUNKED}0\r\n"), "X-More: and more\r\n", 0);
    });
}

#[test]
fn callers_that_starve_are_named() {
    for io in backends() {
        // Of four connections it answers only one.
        let first = AtomicBool::new(true);
        let peer = Peer::new(move |mut connection| {
            let answers = first.swap(false, Ordering::Relaxed);
            while connection.request().is_some() && answers {
                connection.ok();
            }
            connection.wait_end();
        });
        let (code, json) = load_json(&[&peer.url("http"), "-c", "4", "-d", "1s", "--reactor", io]);
        assert_eq!((code, &json["errors"]), (0, &serde_json::json!({})), "{json}");
        assert!(json["oldest_us"].as_f64().is_some_and(|oldest| oldest >= 1e6), "{json}");
        let warnings = json["warnings"].as_array().expect("warnings");
        let starved = warnings.iter().find(|warning| warning["code"] == "starved").expect("a warning");
        let message = starved["message"].as_str().expect("words");
        assert!(message.starts_with("3 of 4 callers had waited up to "), "{message}");
    }
}

#[test]
fn half_an_answer_that_never_ends_is_a_timeout() {
    assert_class("request_timeout", &["--timeout", "200ms"], |mut connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        connection.wait_end();
    });
}

#[test]
fn a_body_that_is_not_read_to_its_end_is_a_timeout() {
    // More than the kernel's buffers can hold, so that sending stalls.
    let words = ["--timeout", "500ms", "--body-size", "64M"];
    assert_class("request_timeout", &words, |mut connection| {
        connection.wait_unread();
        // Wait without reading until the generator gives up, because a read would make room in the buffers.
        support::until(|| connection.abandoned());
    });
}

/// All requests that were pipelined when a connection closed count as the one that was next on it.
#[test]
fn a_limit_of_requests_per_connection_is_inferred_from_the_failures() {
    let server = Served::start(&["--max-keepalive", "100", "--silent-close"]);
    for io in backends() {
        let words = [&*server.http, "-n", "4000", "-c", "2", "--pipeline", "8", "--reactor", io];
        let (_, json) = load_json(&words);
        let schedule = |json: &serde_json::Value| {
            let warnings = json["warnings"].as_array().expect("warnings").clone();
            warnings.into_iter().find(|warning| warning["code"] == "errors_on_schedule")
        };
        let warning = schedule(&json).unwrap_or_else(|| panic!("{io}: {json}"));
        assert!(
            warning["message"].as_str().is_some_and(|text| text.contains("request 101, 202")),
            "{warning}"
        );
        let (_, json) = load_json(&[&*Served::start(&[]).http, "-n", "4000", "-c", "2", "--pipeline", "8"]);
        assert!(schedule(&json).is_none() && json["errors"] == serde_json::json!({}), "{json}");
    }
}

/// A server that announces its close processes none of the requests that were pipelined after it (RFC 9112 section 9.6).
#[test]
fn requests_that_were_pipelined_when_a_close_was_announced_are_sent_again() {
    let server = Served::start(&["--max-keepalive", "100"]);
    for io in backends() {
        let words = [&*server.http, "-n", "4000", "-c", "2", "--pipeline", "8", "--reactor", io];
        let (code, json) = load_json(&words);
        assert_eq!((code, &json["completed"]), (0, &4000.into()), "{io}: {json}");
        assert_eq!(json["errors"], serde_json::json!({}), "{io}: {json}");
    }
}

#[test]
fn many_errors_fail_the_drive_unless_they_are_allowed() {
    let peer = Peer::new(|mut connection| {
        connection.request();
        connection.ok();
        connection.request();
    });
    let url = peer.url("http");
    let words = [&*url, "-n", "10", "-c", "1"];
    let (code, json) = load_json(&words);
    assert_eq!((code, &json["completed"]), (1, &5.into()), "{json}");
    assert_eq!(json["errors"], serde_json::json!({"closed_early": 5}), "{json}");
    let (code, json) = load_json(&[&words[..], &["--allow-errors"]].concat());
    assert_eq!((code, &json["completed"]), (0, &5.into()), "{json}");
    let ended = load(&words).code(1);
    let ended = ended.says(&["5 of 10 failed (50 %), so the exit code is 1; --allow-errors makes it 0"]);
    assert!(ended.stdout.contains("attempts 10 = 5 verified + 5 errors + 0 in flight"), "{ended:#?}");
}

#[test]
fn unknown_words_and_impossible_values_are_usage_errors() {
    for words in [
        &["http://127.0.0.1:1/", "--frobnicate"][..],
        &[],
        &["http://127.0.0.1:1/", "-c", "0"],
        &["http://127.0.0.1:1/", "-n", "0"],
        &["http://127.0.0.1:1/", "-n", "1", "-d", "1s"],
        &["http://127.0.0.1:1/", "-d", "soon"],
        &["http://127.0.0.1:1/", "--pipeline", "many"],
        &["http://127.0.0.1:1/", "--body-size", "1X"],
        &["http://127.0.0.1:1/", "-H", "no colon"],
        &["http://127.0.0.1:1/", "--body", "a", "--body-size", "1"],
        &["frames://127.0.0.1:1", "--frame-prefix", "3"],
    ] {
        let ended = load(words).code(2);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{words:?}: {ended:#?}");
    }
    run(&mut support::narrows(["no-such-verb"])).code(2);
}

#[test]
fn an_invalid_target_is_a_usage_error() {
    for (words, why) in [
        (&["ftp://127.0.0.1:1/"][..], "http, https or frames"),
        (&["127.0.0.1:80"], "begin with http://"),
        (&["http://127.0.0.1:99999/"], "port"),
        (&["frames://127.0.0.1"], "needs a port"),
        (&["http://127.0.0.1:1/", "--expect-continue"], "needs a body"),
        (&["http://127.0.0.1:1/", "-X", "G T"], "method"),
        (&["frames://127.0.0.1:1", "--frame-prefix", "1", "--frame-size", "256"], "does not fit"),
    ] {
        load(words).says(&[why]).code(2);
    }
}

#[test]
fn an_impossible_drive_says_once_why_it_is_impossible() {
    load(&["http://127.0.0.1:1/", "-n", "1", "--body", "@/no/such/file"]).code(1).says(&["/no/such/file"]);
    let ended = load(&["http://192.0.2.1/", "-n", "1"]).code(1).says(&["--allow-remote"]);
    assert_eq!(ended.stdout, "");
    let frame = ["frames://127.0.0.1:1", "--frame-prefix", "1", "--frame-size", "256"];
    let ended = load(&frame).says(&["does not fit"]);
    assert_eq!(ended.stderr.matches("does not fit").count(), 1, "{}", ended.stderr);
}
