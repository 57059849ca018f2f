//! Clients of HTTP/2, which `narrows serve` answers.

use std::process::Command;

use super::files;
use crate::load_tls::Issued;
use crate::support::{Served, installed, plain, run};

/// Runs a client to its end. Returns what it printed.
pub(super) fn client(program: &str, words: &[&str]) -> Option<String> {
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
