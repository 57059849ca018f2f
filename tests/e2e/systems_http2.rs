//! The systems of the checkout that speak HTTP/2: every answer is right, in plain text and in TLS, with one stream or a hundred on a
//! connection.

use crate::run_systems::{ENOUGH, runs};
use crate::support::home::Home;

/// Servers of requests, and programs in front of nginx.
const SERVERS: [&str; 10] =
    ["caddy", "cowboy2", "go-http", "haproxy", "hitch", "hyper", "jetty", "netty", "nginx", "node"];
/// Servers of streams, and proxies in front of `narrows serve`.
const STREAMING: [&str; 10] = [
    "caddy-proxy",
    "cowboy2",
    "direct",
    "go-http",
    "granian",
    "haproxy-proxy",
    "hypercorn",
    "hyper",
    "nginx-proxy",
    "node",
];

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_answer_requests_over_http2() {
    let home = Home::with(&SERVERS);
    let grid = "[[grid]]\nconnections = 1\nstreams = 100\nhttp = \"2\"\ntls = [\"off\", \"1.3\"]\n\
                [[grid]]\nconnections = 4\nstreams = 3\nhttp = \"2\"\ntls = \"1.2\"\n";
    home.timed_experiment("requests", &format!("{SERVERS:?}"), 1, ENOUGH, grid);
    for system in runs(&home, "reference") {
        // Before each trial the system has answered requests of this kind. A cold JVM on a busy machine may answer no other
        // one in a window.
        let cold = ["jetty", "netty"].contains(&system.as_str());
        assert!(cold || home.measured(&system).iter().any(|m| m.successes > 0), "{system}");
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_accept_uploads_over_http2() {
    let systems = ["cowboy2", "go-http", "hyper", "netty", "node"];
    let home = Home::with(&systems);
    // At its default flow size, Cowboy 2.8 can stop reading a kept connection.
    let grid = "[[grid]]\nsize = [0, \"10M\"]\nconcurrency = 2\nhttp = \"2\"\ntls = [\"off\", \"1.3\"]\n\
                initial_stream_flow_size = \"1G\"\n";
    home.timed_experiment("upload", &format!("{systems:?}"), 1, ENOUGH, grid);
    runs(&home, "reference");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_and_proxies_stream_over_http2() {
    let home = Home::with(&STREAMING);
    let grid = "[[grid]]\nconnections = 8\nevents = 5\ngap_ms = 1\nhttp = \"2\"\n";
    home.timed_experiment("streams", &format!("{STREAMING:?}"), 1, ENOUGH, grid);
    runs(&home, "reference");
}
