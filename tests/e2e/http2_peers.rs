//! HTTP/2 beside other implementations: the generator against their servers, `narrows serve` against their clients, and both
//! against the conformance tests h2spec and h2specd.

mod clients;
mod conformance;
mod fronts;
mod servers;

use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Guarded, load_json, plain, until};

/// Drives with HTTP/2, one connection of 100 streams and several of few. All answers must be right.
fn drive(url: &str, words: &[&str]) -> Value {
    let mut last = Value::Null;
    for size in [["-c", "1", "--streams", "100"], ["-c", "4", "--streams", "3"]] {
        let (code, json) = load_json(&[&[url, "--http2", "-n", "1200"], &size[..], words].concat());
        assert_eq!((code, &json["errors"]), (0, &json!({})), "{url} {words:?}: {json}");
        last = json;
    }
    last
}

/// Makes 6 long exchanges.
fn drive_long(url: &str, words: &[&str]) {
    let (code, json) =
        load_json(&[&[url, "--http2", "-n", "6", "-c", "1", "--streams", "3"], words].concat());
    assert_eq!((code, &json["completed"]), (0, &6.into()), "{url} {words:?}: {json}");
}

/// Drives a server that is allowed little, or much.
fn drive_allowing(at: &dyn Fn(&str) -> String) {
    for table in ["0", "100", "64K"] {
        drive(&at("ok"), &["--hpack-table", table, "--expect", "body=ok"]);
    }
    for window in ["20000", "64K"] {
        drive_long(&at("big"), &["--window", window, "--expect", "length=10000000"]);
    }
}

/// A folder with a small file and one of 10 MB.
fn files() -> TempDir {
    let dir = TempDir::new().expect("a folder");
    std::fs::write(dir.path().join("ok"), "ok").expect("a file");
    std::fs::write(dir.path().join("big"), vec![b'x'; 10_000_000]).expect("a file");
    dir
}

/// Starts a server, and waits until it accepts connections on this port.
fn start(command: &mut Command, port: u16) -> Guarded {
    plain(command);
    let mut server = Guarded::spawn(command);
    assert!(until(|| TcpStream::connect(("127.0.0.1", port)).is_ok() || !server.running()), "it listens");
    server
}

fn port() -> u16 {
    systems::free_port().expect("a free port")
}
