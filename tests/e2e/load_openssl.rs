//! `narrows load https://…` of OpenSSL's server, which ends answers in its own way; and plain text to servers that speak TLS.

use std::process::{Command, Stdio};

use crate::load_tls::Issued;
use crate::support::{Guarded, backends, has, load, load_json, until};

/// `openssl s_server -www`, which answers a page of its own and says its end with a close of TLS. It then waits for ours.
fn s_server(issued: &Issued, port: u16) -> Guarded {
    let (cert, key, port) = (issued.path("cert"), issued.path("key"), port.to_string());
    let mut command = Command::new("openssl");
    command.args(["s_server", "-accept", &port, "-cert", &cert, "-key", &key, "-www"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Guarded::spawn(&mut command);
    assert!(until(|| std::net::TcpStream::connect(("127.0.0.1", port.parse().expect("a port"))).is_ok()));
    server
}

#[test]
fn a_close_of_tls_ends_an_answer_without_a_length() {
    if !has("openssl") {
        return;
    }
    let issued = Issued::new(&["localhost"], 1);
    let port = systems::free_port().expect("a free port");
    let _server = s_server(&issued, port);
    let (url, root) = (format!("https://localhost:{port}/"), issued.path("root"));
    for io in backends() {
        for version in ["1.2", "1.3"] {
            let words = ["-n", "3", "-c", "1", "--cacert", &root, "--tls", version, "--reactor", io];
            let (code, json) = load_json(&[&[&*url], &words[..]].concat());
            assert_eq!((code, &json["completed"]), (0, &3.into()), "{io} {version}: {json}");
            assert_eq!(json["errors"], serde_json::json!({}), "{io} {version}: {json}");
        }
    }
}

#[test]
fn plain_text_to_a_server_that_speaks_tls_is_told() {
    let issued = Issued::new(&["localhost"], 1);
    let server = issued.serve(&[]);
    let plain = server.http.replace("https://", "http://");
    load(&[&plain, "-n", "2", "-c", "1"]).code(1).says(&["the server speaks TLS: use https://"]);
    if has("openssl") {
        let port = systems::free_port().expect("a free port");
        let _server = s_server(&issued, port);
        let plain = format!("http://localhost:{port}/");
        load(&[&plain, "-n", "1", "-c", "1"]).code(1).says(&["the server speaks TLS: use https://"]);
    }
}
