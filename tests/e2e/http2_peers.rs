//! HTTP/2 beside other implementations: the generator against their servers, `narrows serve` against their clients, and both
//! against the conformance tests h2spec and h2specd.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::load_tls::Issued;
use crate::support::{
    Ended, Guarded, NARROWS, Served, checkout, has, installed, load_json, nginx, plain, run, say_skipped,
    until,
};

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

#[test]
fn nghttpd_answers_the_generator() {
    let Some(program) = installed("nghttpd") else { return };
    let (dir, port) = (files(), port());
    let mut command = Command::new(program);
    let text = port.to_string();
    command.args(["--no-tls", "--echo-upload", "--trailer", "x-trailer: a", "-d"]).arg(dir.path()).arg(&text);
    let _server = start(&mut command, port);
    let at = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let json = drive(&at("ok"), &["--expect", "body=ok"]);
    assert_eq!(json["multiplexed"]["reached"], 3, "{json}");
    drive_long(&at("big"), &["--expect", "length=10000000"]);
    drive_long(&at("echo"), &["--body-size", "10000000", "--expect", "length=10000000"]);
}

#[test]
fn nginx_answers_the_generator_and_renews_connections() {
    let (dir, port, secured) = (files(), port(), port());
    let issued = Issued::new(&["localhost"], 1);
    let root = dir.path().display();
    let (cert, key, ca) = (issued.path("cert"), issued.path("key"), issued.path("root"));
    let http = format!(
        "access_log off; gzip on; gzip_min_length 1; gzip_types *; client_max_body_size 100m; root {root}; \
         server {{ listen 127.0.0.1:{port} http2; location /put {{ return 200 got; }} }} \
         server {{ listen 127.0.0.1:{secured} ssl http2; ssl_certificate {cert}; ssl_certificate_key {key}; }}"
    );
    let Some(_server) = nginx::start(dir.path(), port, &http) else { return };
    let at = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    // It says GOAWAY after 1,000 requests of a connection.
    let json = drive(&at("ok"), &["--expect", "body=ok"]);
    assert_eq!(json["errors"], json!({}));
    let (code, json) = load_json(&[&at("ok"), "--http2", "-c", "1", "--streams", "10", "-n", "3500"]);
    assert_eq!((code, &json["completed"], &json["errors"]), (0, &3500.into(), &json!({})), "{json}");
    assert!(json["multiplexed"]["renewed"].as_u64().is_some_and(|renewed| renewed >= 3), "{json}");
    drive_long(&at("big"), &["--expect", "length=10000000"]);
    drive(&at("ok"), &["--compressed", "--expect", "body=ok"]);
    drive(&format!("https://localhost:{secured}/ok"), &["--cacert", &ca, "--expect", "body=ok"]);
}

#[test]
fn node_answers_the_generator() {
    if !has("node") {
        return;
    }
    let (dir, port) = (files(), port());
    let script = format!(
        "const s = require('http2').createServer({{ settings: {{ maxConcurrentStreams: 50 }} }});\
         s.on('stream', (q, h) => {{ q.on('error', () => {{}});\
           if (h[':path'] === '/echo') {{ q.respond({{ ':status': 200 }}, {{ waitForTrailers: true }});\
             q.on('wantTrailers', () => q.sendTrailers({{ 'x-done': 'yes' }})); q.pipe(q); }}\
           else {{ q.respond({{ ':status': 200, 'x-request-id': h['x-request-id'] || '' }}); q.end('ok'); }} }});\
         s.listen({port}, '127.0.0.1');"
    );
    let file = dir.path().join("server.js");
    std::fs::write(&file, script).expect("a file");
    let _server = start(Command::new("node").arg(&file), port);
    let at = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    drive(&at(""), &["--expect", "body=ok"]);
    drive_long(&at("echo"), &["--body-size", "10000000", "--expect", "length=10000000"]);
    let (_, json) = load_json(&[&at(""), "--http2", "-c", "1", "--streams", "100", "-n", "500"]);
    assert_eq!(json["multiplexed"]["allowed"], 50, "{json}");
}

/// Runs a client to its end. Returns what it printed.
fn client(program: &str, words: &[&str]) -> Option<String> {
    let mut command = Command::new(installed(program)?);
    plain(command.args(words));
    Some(run(&mut command).code(0).stdout)
}

#[test]
fn other_clients_are_answered() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let (server, secured) = (Served::start(&[]), issued.serve(&[]));
    let at = |path: &str| server.http.clone() + path;
    if let Some(said) = client("h2load", &["-n", "5000", "-c", "4", "-m", "50", &at("/")]) {
        assert!(said.contains("5000 succeeded, 0 failed") && said.contains("5000 2xx"), "{said}");
    }
    if let Some(said) = client("h2load", &["-n", "500", "-c", "2", "-m", "10", &secured.http]) {
        assert!(said.contains("Application protocol: h2\n") && said.contains("500 succeeded"), "{said}");
    }
    if let Some(said) = client("nghttp", &["-v", &at("/bytes/3")]) {
        assert!(said.contains(":status: 200") && said.contains("content-length: 3"), "{said}");
    }
    let dir = files();
    let (big, root) = (dir.path().join("big"), issued.path("root"));
    let body = format!("@{}", big.display());
    let prior =
        ["-s", "-w", "|%{http_version} %{size_download}", "-o", "/dev/null", "--http2-prior-knowledge"];
    for (words, wanted) in [
        (&["--data-binary", &body, &at("/echo")][..], "|2 10000000"),
        (&["--data-binary", &body, &at("/upload")], "|2 8"),
        (&["-I", &at("/bytes/5")], "|2 0"),
        (&["-H", "Expect: 100-continue", "-d", "hello", &at("/echo")], "|2 5"),
    ] {
        let Some(said) = client("curl", &[&prior[..], words].concat()) else { return };
        assert!(said.ends_with(wanted), "{words:?}: {said}");
    }
    for (version, wanted) in [("--http2", "ok 2"), ("--http1.1", "ok 1.1")] {
        let said =
            client("curl", &["-s", version, "--cacert", &root, "-w", " %{http_version}", &secured.http]);
        assert_eq!(said.as_deref(), Some(wanted));
    }
}

/// The path of a conformance test, if `scripts/conformance` could build it. Not every machine reaches the Go module proxy.
fn conformance(tool: &str) -> Option<PathBuf> {
    let path = checkout().join("target/tools").join(tool);
    if !path.exists() {
        say_skipped(tool, "scripts/conformance could not build it");
    }
    Some(path).filter(|path| path.exists())
}

/// The counts in the last line of h2spec and h2specd: all, passed, skipped and failed.
fn counted(ended: &Ended) -> Vec<u64> {
    let line = ended.stdout.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_default();
    line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
}

fn spec(program: &Path, url: &str, secured: bool) -> Ended {
    let (host, port) = url.rsplit_once(':').expect("a port");
    let host = host.rsplit_once('/').expect("a host").1;
    let mut command = Command::new(program);
    command.args(["-h", host, "-p", port, "-P", "/bytes/100", "-o", "5", "-S"]);
    if secured {
        command.args(["-t", "-k"]);
    }
    plain(&mut command);
    run(&mut command)
}

#[test]
fn the_server_conforms() {
    let Some(program) = conformance("h2spec") else { return };
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let secured = issued.serve(&[]);
    let ended = spec(&program, &secured.http, true);
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[0] >= 146 && counts[1] == counts[0], "{}", ended.stdout);
    // On a port that speaks HTTP/1.1 as well, what is neither is answered as a bad request of HTTP/1.1. h2spec wants no answer.
    let ended = spec(&program, &Served::start(&[]).http, false);
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[3] == 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("Sends invalid connection preface"), "{}", ended.stdout);
}

#[test]
fn the_generator_conforms() {
    let Some(program) = conformance("h2specd") else { return };
    let dir = TempDir::new().expect("a folder");
    // One request. The connection stays open for a while after its answer: some tests send a PING then, and want an answer.
    let drive = format!("{NARROWS} load --http2 -c 1 --rate 2 -d 500ms --timeout 1s");
    // It gives up where a command takes three seconds, or a port is taken.
    let gave_up = |ended: &Ended| {
        let said = ended.stdout.clone() + &ended.stderr;
        said.contains("Error: Timeout") || said.contains("address already in use")
    };
    let mut ended = None;
    for first in [20_100, 20_300, 20_500, 20_700, 20_900] {
        let first: u32 = first;
        let mut command = Command::new(&program);
        plain(command.args(["-h", "127.0.0.1", "-f", &first.to_string(), "-o", "5", "-e", &drive]));
        command.stdin(Stdio::null()).current_dir(dir.path());
        ended = Some(run(&mut command)).filter(|ended| !gave_up(ended));
        if ended.is_some() {
            break;
        }
    }
    let Some(ended) = ended else { return say_skipped("h2specd", "this machine is too busy for it") };
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[0] >= 57 && counts[1] == counts[0], "{}", ended.stdout);
}
