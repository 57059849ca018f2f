//! `narrows load https://…`: handshakes, certificates and their faults, over both kernel interfaces.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use tls::{Authority, KeyKind, Leaf};

use crate::support::peer::Peer;
use crate::support::{Served, backends, load, load_json};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A root, and a certificate that it issued, as files.
pub struct Issued {
    dir: TempDir,
}

impl Issued {
    /// For these names, until so many days from now.
    pub fn new(names: &[&str], days: i32) -> Self {
        let now = SystemTime::now();
        let (from, last) = (now - 10 * DAY, now + 10 * DAY);
        let until = if days < 0 { now - DAY * days.unsigned_abs() } else { now + DAY * days.unsigned_abs() };
        let authority = Authority::new(from, last).expect("an authority");
        let leaf = Leaf { names, key: KeyKind::P256, from, until };
        let issued = authority.issue(&leaf).expect("a certificate");
        let dir = TempDir::new().expect("a folder");
        let root = authority.certificate().into_bytes();
        for (name, pem) in [("root", root), ("cert", issued.certificate), ("key", issued.key)] {
            std::fs::write(dir.path().join(name), pem).expect("a file");
        }
        Self { dir }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    pub fn serve(&self, words: &[&str]) -> Served {
        let (cert, key) = (self.path("cert"), self.path("key"));
        Served::start(&[&["--tls", "--cert", &cert, "--key", &key], words].concat())
    }
}

fn handshakes(json: &Value) -> [u64; 4] {
    let found = &json["handshakes"];
    ["full", "retried", "resumed", "offered"].map(|kind| found[kind].as_u64().expect("a number"))
}

#[test]
fn every_connection_makes_a_full_handshake_unless_sessions_are_asked_for() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let (server, root) = (issued.serve(&["--tickets"]), issued.path("root"));
    for io in backends() {
        for version in ["1.2", "1.3"] {
            let drive = |words: &[&str]| {
                let common = ["-n", "100", "-c", "4", "--cacert", &root, "--tls", version, "--reactor", io];
                let (code, json) = load_json(&[&[&*server.http], &common[..], words].concat());
                assert_eq!((code, &json["completed"]), (0, &100.into()), "{json}");
                json
            };
            let kept = drive(&[]);
            assert_eq!(handshakes(&kept), [4, 0, 0, 0], "{kept}");
            assert!(kept["handshakes"]["opening_us"]["max"].as_f64() > Some(0.0), "{kept}");
            assert_eq!(handshakes(&drive(&["--close"])), [100, 0, 0, 0]);
            assert_eq!(handshakes(&drive(&["--close", "--tls-sessions", "always"])), [4, 0, 96, 96]);
            drive(&["--pipeline", "3"]);
            drive(&["--rate", "1k"]);
        }
    }
}

#[test]
fn bodies_arrive_whole_through_tls() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let (server, root) = (issued.serve(&[]), issued.path("root"));
    for io in backends() {
        for (path, size) in [("upload", "5M"), ("echo", "300K"), ("echo", "1")] {
            let url = format!("{}/{path}", server.http);
            let words = ["-n", "6", "-c", "2", "--cacert", &root, "--body-size", size, "--reactor", io];
            let (code, json) = load_json(&[&[&*url], &words[..]].concat());
            assert_eq!(
                (code, &json["completed"], &json["errors"]),
                (0, &6.into(), &serde_json::json!({})),
                "{json}"
            );
        }
        let words =
            ["-n", "3", "--cacert", &root, "--body-size", "100K", "--expect-continue", "--reactor", io];
        let (_, json) = load_json(&[&[&*format!("{}/upload", server.http)], &words[..]].concat());
        assert_eq!((&json["completed"], &json["no_continue"]), (&3.into(), &0.into()), "{json}");
    }
}

/// All requests fail in the class `tls`, with this example.
fn assert_fault(server: &str, words: &[&str], says: &str) {
    for io in backends() {
        let (code, json) = load_json(&[&[server, "-n", "4", "-c", "2", "--reactor", io], words].concat());
        assert_eq!((code, &json["errors"]), (1, &serde_json::json!({"tls": 4})), "{json}");
        let first = json["first_errors"]["tls"].as_str().expect("an example");
        assert!(first.starts_with(says), "{first}");
    }
}

#[test]
fn a_certificate_that_is_not_accepted_is_named() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let (server, root) = (issued.serve(&[]), issued.path("root"));
    let other = Issued::new(&["localhost"], 1);
    // All authorities of Narrows have one name, so the other one's key is tried.
    let unknown = "the peer's certificate has a wrong signature";
    assert_fault(&server.http, &["--cacert", &other.path("root")], unknown);
    let name = ["--cacert", &root, "--sni", "example.com"];
    assert_fault(&server.http, &name, "the peer's certificate is for another name");
    let expired = Issued::new(&["127.0.0.1"], -1);
    let (server, root) = (expired.serve(&[]), expired.path("root"));
    assert_fault(&server.http, &["--cacert", &root], "the peer's certificate has expired");
    let (code, json) = load_json(&[&server.http, "-n", "4", "--insecure"]);
    assert_eq!((code, &json["completed"]), (0, &4.into()), "{json}");
}

#[test]
fn sides_that_cannot_agree_are_told() {
    let issued = Issued::new(&["127.0.0.1"], 1);
    let server = issued.serve(&[]);
    let old = ["--insecure", "--alpn", "http/1.0"];
    assert_fault(&server.http, &old, "the peer sent the alert no_application_protocol");
    let (code, json) = load_json(&[&server.http, "-n", "4", "--insecure", "--alpn", "http/1.0,http/1.1"]);
    assert_eq!((code, &json["completed"]), (0, &4.into()), "{json}");
    let plain = Served::start(&[]);
    let https = plain.http.replace("http://", "https://");
    assert_fault(&https, &["--insecure"], "the peer does not speak TLS");
    // A server that speaks TLS may answer a plain request with an alert.
    let alert = Peer::new(|mut connection| {
        connection.request();
        connection.send([21, 3, 3, 0, 2, 2, 10]);
    });
    let (_, json) = load_json(&[&alert.url("http"), "-n", "1", "-c", "1"]);
    let first = json["first_errors"]["protocol"].as_str().expect("an example");
    assert!(first.starts_with("the server speaks TLS: use https://"), "{json}");
}

#[test]
fn a_handshake_that_does_not_end_is_a_connection_that_does_not_come() {
    let silent = Peer::new(|mut connection| connection.wait_end());
    for io in backends() {
        let words = ["-n", "2", "-c", "2", "--insecure", "--timeout", "1s", "--reactor", io];
        let (_, json) = load_json(&[&[&*silent.url("https")], &words[..]].concat());
        assert_eq!(json["errors"], serde_json::json!({"connect_timeout": 2}), "{json}");
        let first = json["first_errors"]["connect_timeout"].as_str().expect("an example");
        assert!(first.contains("the TLS handshake did not end"), "{json}");
    }
    let closing = Peer::new(|mut connection| connection.wait_unread());
    let (_, json) = load_json(&[&closing.url("https"), "-n", "2", "-c", "1", "--insecure"]);
    let errors = json["errors"].as_object().expect("errors");
    assert!(errors.keys().all(|class| ["tls", "reset"].contains(&class.as_str())), "{json}");
}

#[test]
fn wrong_options_of_tls_are_usage_errors() {
    let nowhere = |path: &Path| path.join("none").to_str().expect("a path").to_owned();
    let dir = TempDir::new().expect("a folder");
    let empty: PathBuf = dir.path().join("empty");
    std::fs::write(&empty, "").expect("a file");
    let (missing, empty) = (nowhere(dir.path()), empty.to_str().expect("a path").to_owned());
    let https = "https://127.0.0.1:1/";
    let cases: [(&[&str], i32, &str); 8] = [
        (&["http://127.0.0.1:1/", "--insecure"], 2, "https://"),
        (&["frames://127.0.0.1:1", "--tls", "1.3"], 2, "https://"),
        (&[https, "--tls", "1.1"], 2, "1.2"),
        (&[https, "--insecure", "--ciphers", "RC4"], 2, "TLS_AES_128_GCM_SHA256"),
        (&[https, "--insecure", "--alpn", "h2,http/1.1"], 2, "only http/1.1 and http/1.0 are spoken"),
        (&[https, "--cacert", &missing], 1, "cannot read"),
        (&[https, "--cacert", &empty], 2, "certificate"),
        (&[https, "--insecure", "--cert", &empty], 2, "--key"),
    ];
    for (words, code, says) in cases {
        load(words).code(code).says(&[says]);
    }
}
