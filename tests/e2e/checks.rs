//! Checks of answers and compressed answers: `--expect` and `--compressed`.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::support::home::Home;
use crate::support::peer::Peer;
use crate::support::{Guarded, NARROWS, Served, load, load_json, nginx, squeezed};

const JSON: &str = r#"{"items":[{"id":7}],"user":{"name":"Ada"},"ok":true}"#;

/// A server that gives every request this answer, in two pieces.
fn answering(lines: &str, body: Vec<u8>) -> Peer {
    let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    Peer::new(move |mut connection| {
        while connection.request().is_some() {
            let whole = [head.as_bytes(), &body].concat();
            let (first, second) = whole.split_at(whole.len() / 2);
            connection.send(first);
            connection.send(second);
        }
    })
}

#[test]
fn answers_that_meet_every_check_are_successes() {
    let server = answering("Content-Type: application/json\r\n", JSON.as_bytes().to_vec());
    let words = [
        ("--expect", "json.items.length>0"),
        ("--expect", "json.items[0].id=7"),
        ("--expect", "json.user.name=\"Ada\""),
        ("--expect", "header:content-type~=json"),
        ("--expect", "body~=\"ok\":true"),
        ("--expect", "length<=100"),
        ("--expect", "status=2xx"),
    ];
    let words: Vec<&str> = words.iter().flat_map(|(option, check)| [*option, *check]).collect();
    let url = server.url("http");
    let (code, json) = load_json(&[&[&*url, "-n", "50", "-c", "3"], &words[..]].concat());
    assert_eq!((code, &json["completed"]), (0, &50.into()), "{json}");
    assert!(json["decoded"].is_null(), "{json}");
}

#[test]
fn the_first_answer_that_misses_a_check_is_shown_with_the_check() {
    let server = answering("", JSON.as_bytes().to_vec());
    for (check, class, says) in [
        ("json.items.length>1", "wrong_content", "json.items.length>1: it is 1 (connection"),
        ("body!~=Ada", "wrong_content", "body!~=Ada: the body has \"Ada\" (connection"),
        ("header:x-none", "wrong_content", "header:x-none: it is missing (connection"),
        ("length<10", "length", "length<10: it is 52 (connection"),
        // What is shown beside the status is the piece that ended the answer, and there may be two.
        ("status=204", "status", "status 200 in \""),
    ] {
        let url = server.url("http");
        let words = [&*url, "-n", "20", "--expect", "json exists", "--expect", check];
        let (code, json) = load_json(&words);
        assert_eq!((code, &json["errors"][class]), (1, &20.into()), "{json}");
        let first = json["first_errors"][class].as_str().expect("an example");
        assert!(first.starts_with(says), "{check}: {first}");
    }
}

#[test]
fn checks_hold_for_the_reference() {
    let server = Served::start(&[]);
    let digest = "sha256=2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
    for pipeline in ["1", "4"] {
        let words =
            ["-n", "100", "-c", "2", "--pipeline", pipeline, "--expect", digest, "--expect", "body=ok"];
        let (code, json) = load_json(&[&[&*server.http], &words[..]].concat());
        assert_eq!((code, &json["completed"]), (0, &100.into()), "{json}");
    }
    let echo = format!("{}/echo", server.http);
    let (code, json) = load_json(&[&echo, "-n", "10", "--body-size", "300K", "--expect", "length=307200"]);
    assert_eq!((code, &json["completed"]), (0, &10.into()), "{json}");
    // The limit of what is kept.
    let words = ["-n", "2", "--body-size", "300K", "--expect", "body~=x", "--max-answer", "100K"];
    let (_, json) = load_json(&[&[&*echo], &words[..]].concat());
    let first = json["first_errors"]["length"].as_str().expect("an example");
    assert!(first.contains("more than 102400 bytes of an answer's body"), "{first}");
}

/// The counts of `--compressed`: answers, compressed answers, bytes on the wire, decoded bytes.
fn counts(json: &serde_json::Value) -> [u64; 4] {
    ["answers", "compressed", "wire_bytes", "decoded_bytes"]
        .map(|name| json["decoded"][name].as_u64().unwrap_or_else(|| panic!("{name} in {json}")))
}

#[test]
fn compressed_answers_are_counted_on_the_wire_and_decoded() {
    // `narrows ` a hundred times, by the encoders of Node.js and zstd.
    let brotli = "1b1f03f88d54b5bf0e7393bbd3206f7273a2b7708034291f";
    let zstd = "28b52ffd04587d0000406e6172726f77732001001557152ec6b1b8f6";
    let bytes = |hex: &str| -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    for (name, body) in [("br", bytes(brotli)), ("zstd", bytes(zstd))] {
        let length = body.len() as u64;
        let server = answering(&format!("Content-Encoding: {name}\r\n"), body);
        let url = server.url("http");
        let words =
            [&*url, "-n", "10", "--compressed", "--expect", "body~=^narrows ", "--expect", "length=800"];
        let (code, json) = load_json(&words);
        assert_eq!((code, counts(&json)), (0, [10, 10, 10 * length, 8000]), "{json}");
        // Without --compressed the body is checked as it is.
        let (code, json) = load_json(&[&url, "-n", "5", "--expect", &format!("length={length}")]);
        assert_eq!((code, &json["completed"]), (0, &5.into()), "{json}");
    }
}

#[test]
fn answers_that_cannot_be_decoded_are_wrong_content() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![0; 10 << 20]).expect("memory");
    let bomb = encoder.finish().expect("memory");
    let cut = bomb[..bomb.len() - 9].to_vec();
    for (lines, body, limit, class, says) in [
        (
            "Content-Encoding: gzip\r\n",
            b"plain text, not compressed".to_vec(),
            "1M",
            "wrong_content",
            "it is not gzip",
        ),
        ("Content-Encoding: gzip\r\n", cut, "64M", "wrong_content", "its gzip ends early"),
        ("Content-Encoding: lzw\r\n", b"x".to_vec(), "1M", "wrong_content", "the coding \"lzw\""),
        ("Content-Encoding: gzip\r\n", bomb, "1M", "length", "more than 1048576 decoded bytes"),
    ] {
        let server = answering(lines, body);
        let (code, json) =
            load_json(&[&server.url("http"), "-n", "4", "--compressed", "--max-answer", limit]);
        assert_eq!((code, &json["errors"][class]), (1, &4.into()), "{json}");
        let first = json["first_errors"][class].as_str().expect("an example");
        assert!(first.contains(says), "{first}");
    }
}

/// nginx with gzip, on a free port.
fn nginx(dir: &TempDir) -> Option<(Guarded, String)> {
    let port = systems::free_port().expect("a free port");
    let http = format!(
        "access_log off; gzip on; gzip_min_length 100; gzip_types *; server {{ listen 127.0.0.1:{port}; root html; }}"
    );
    std::fs::create_dir(dir.path().join("html")).expect("a folder");
    std::fs::write(dir.path().join("html/large.txt"), "narrows ".repeat(5000)).expect("a file");
    std::fs::write(dir.path().join("html/small.txt"), "small").expect("a file");
    Some((nginx::start(dir.path(), port, &http)?, format!("http://127.0.0.1:{port}")))
}

#[test]
fn nginx_compresses_what_it_is_asked_to() {
    let dir = TempDir::new().expect("a folder");
    let Some((_server, url)) = nginx(&dir) else { return };
    let (large, small) = (format!("{url}/large.txt"), format!("{url}/small.txt"));
    let words = ["-n", "40", "-c", "4", "--compressed"];
    let checks = ["--expect", "length=40000", "--expect", "body~=^(narrows )+$"];
    let (code, json) = load_json(&[&[&*large], &words[..], &checks].concat());
    let [answers, compressed, wire, decoded] = counts(&json);
    assert_eq!((code, answers, compressed, decoded), (0, 40, 40, 40 * 40_000), "{json}");
    assert!(wire > 0 && wire < decoded / 10, "{json}");
    let (code, json) = load_json(&[&[&*small], &words[..], &["--expect", "body=small"]].concat());
    assert_eq!((code, counts(&json)), (0, [40, 0, 200, 200]), "{json}");
    // Without the option nothing is asked for and nothing is counted.
    let plain = ["-n", "10", "--expect", "length=40000", "--expect", "header:content-length=40000"];
    let (code, json) = load_json(&[&[&*large], &plain[..]].concat());
    assert_eq!((code, &json["completed"]), (0, &10.into()), "{json}");
    let ended = load(&[&large, "-n", "20", "--compressed"]).code(0);
    assert!(
        ended.stdout.contains("on the wire, 800 kB decoded; 100 % of the answers compressed"),
        "{ended:#?}"
    );
}

#[test]
fn arms_are_checked_at_the_first_look_and_in_every_trial() {
    let home = Home::new();
    let arm = format!("{NARROWS} serve -p {{port}}");
    let short = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];
    let tried = |check: &str| home.run(["try", &arm, "--expect", check].into_iter().chain(short));
    tried("body=no").code(1).says(&["its answer does not meet `body=no`: the body begins \"ok\""]);
    let ended = tried("body~=^ok$").code(0);
    assert!(squeezed(&ended.stdout).contains("and met `body~=^ok$`"), "{ended:#?}");
    // The run keeps its checks.
    let report = home.run(["report", "last"]).code(0);
    assert!(squeezed(&report.stdout).contains("and met `body~=^ok$`"), "{report:#?}");
}
