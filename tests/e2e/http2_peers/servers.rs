//! Servers of HTTP/2, which the generator drives.

use std::process::Command;

use serde_json::json;

use super::clients::client;
use super::{drive, drive_allowing, drive_long, files, port, start};
use crate::load_tls::Issued;
use crate::support::{has, installed, load_json, nginx, plain, run};

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
    drive_allowing(&at);
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
    drive_allowing(&at);
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

/// It speaks HTTP/2 in TLS by itself. The system go-http speaks it in plain text, too.
const GO: &str = r#"package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { io.WriteString(answer, "ok") })
	http.HandleFunc("/missing", http.NotFound)
	http.HandleFunc("/echo", func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Trailer", "x-done")
		io.Copy(answer, request.Body)
		answer.Header().Set("x-done", "yes")
	})
	panic(http.ListenAndServeTLS("127.0.0.1:"+os.Args[1], os.Args[2], os.Args[3], nil))
}
"#;

#[test]
fn go_answers_the_generator() {
    if !has("go") {
        return;
    }
    let (dir, port, issued) = (files(), port(), Issued::new(&["localhost"], 1));
    let [source, program] = ["server.go", "server"].map(|name| dir.path().join(name));
    std::fs::write(&source, GO).expect("a file");
    let mut build = Command::new("go");
    plain(build.current_dir(dir.path()).env("GOTOOLCHAIN", "local").args(["build", "-o"]));
    run(build.arg(&program).arg(&source)).code(0);
    let [cert, key, ca] = ["cert", "key", "root"].map(|name| issued.path(name));
    let _server = start(Command::new(&program).args([&port.to_string(), &cert, &key]), port);
    let at = |path: &str| format!("https://localhost:{port}/{path}");
    drive(&at(""), &["--cacert", &ca, "--expect", "body=ok"]);
    drive(&at("missing"), &["--cacert", &ca, "--expect-status", "404"]);
    let sent = ["--cacert", &ca, "--body-size", "10000000", "--expect", "length=10000000"];
    drive_long(&at("echo"), &sent);
    if let Some(said) = client("nghttp", &["-v", &at("echo")]) {
        assert!(said.contains("x-done: yes"), "{said}");
    }
}
