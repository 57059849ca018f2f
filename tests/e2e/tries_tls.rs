//! `narrows try` with servers that speak TLS.

use std::net::TcpListener;

use crate::load_tls::Issued;
use crate::support::home::Home;
use crate::support::{Guarded, NARROWS, has, nginx, squeezed};

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "1s", "--warmup", "50ms", "--seed", "1"];

fn secured() -> String {
    format!("{NARROWS} serve -p {{port}} --tls --cert {{cert}} --key {{key}} --tickets")
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn commands_with_a_certificate_are_driven_in_tls_beside_plain_ones() {
    let home = Home::new();
    let plain = format!("{NARROWS} serve -p {{port}}");
    let secured = secured();
    let words = ["try", &plain, &secured, "--names", "plain,secured", "--close", "--tls-sessions", "always"];
    let ended = home.run(words.into_iter().chain(["--rounds", "3"]).chain(SHORT.into_iter().skip(2))).code(0);
    let said = squeezed(&ended.stdout);
    // The two are compared, although they are not spoken to alike. That takes three rounds.
    assert!(said.contains("tls off against 1.3") || said.contains("tls 1.3 against off"), "{said}");
    for m in home.measured("plain") {
        assert!(m.handshakes.is_none() && m.successes > 0, "{m:#?}");
    }
    for m in home.measured("secured") {
        let found = m.handshakes.as_ref().expect("handshakes");
        assert!(found.resumed > 0 && found.refused() == 0 && m.errors.is_empty(), "{m:#?}");
    }
    let words = ["try", &secured, "-k", "tls=1.2,1.3", "-k", "certificate=p256,rsa2048", "--groups", "P-256"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    assert!(ended.stdout.contains("certificate"), "{ended:#?}");
    // Four points, and the base's twin.
    assert_eq!(home.observations().len(), 5);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn what_was_tried_in_tls_can_be_saved_and_run_again() {
    let home = Home::new();
    let plain = format!("{NARROWS} serve -p {{port}}");
    let words = ["try", &plain, &secured(), "--names", "plain,secured", "--save", "mine", "--tls", "1.2"];
    let sessions = ["--close", "--tls-sessions", "always"];
    home.run(words.into_iter().chain(sessions).chain(SHORT)).code(0);
    let folder = home.path("narrows");
    let mut again = home.narrows(["run", "mine", "--rounds", "1"]);
    let ended = crate::support::run(again.env("NARROWS_HOME", &folder)).code(0);
    assert!(!ended.stderr.contains("takes no part"), "{ended:#?}");
    let versions: Vec<String> = home
        .observations()
        .iter()
        .map(|seen| format!("{} {}", seen.trial.scenario.system, seen.trial.scenario.point["tls"]))
        .collect();
    for expected in ["mine-plain off", "mine-secured 1.2"] {
        assert!(versions.iter().any(|seen| seen == expected), "{versions:?}");
    }
    // The plain arm, which has no sessions, adds no points to the other one.
    for seen in home.observations().iter().filter(|seen| seen.trial.scenario.system.ends_with("secured")) {
        assert_eq!(seen.trial.scenario.point["sessions"].to_string(), "always");
    }
    home.assert_nothing_left();
}

/// nginx with this certificate, on a free port of localhost.
struct Nginx {
    _child: Guarded,
    port: u16,
    /// Whether it listens at ::1 too.
    v6: bool,
}

impl Nginx {
    fn start(home: &Home, issued: &Issued) -> Option<Self> {
        let port = systems::free_port().expect("a free port");
        let v6 = TcpListener::bind("[::1]:0").is_ok();
        let second = if v6 { format!("listen [::1]:{port} ssl;") } else { String::new() };
        let http = format!(
            "access_log off; keepalive_requests 1000000; server {{ listen 127.0.0.1:{port} ssl; {second} \
             ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {}; ssl_certificate_key {}; \
             location / {{ return 200 \"ok\"; }} }}",
            issued.path("cert"),
            issued.path("key"),
        );
        Some(Self { _child: nginx::start(&home.path(""), port, &http)?, port, v6 })
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_running_server_is_verified_and_driven_in_tls() {
    let (home, issued) = (Home::new(), Issued::new(&["localhost", "::1"], 1));
    let Some(nginx) = Nginx::start(&home, &issued) else { return };
    let url = &*format!("https://localhost:{}/", nginx.port);
    let root = issued.path("root");
    let words = ["try", url, &secured(), "--names", "nginx,own", "--cacert", &root, "--save", "kept"];
    home.run(words.into_iter().chain(SHORT)).code(0);
    for m in home.measured("nginx") {
        assert!(m.successes > 0 && m.errors.is_empty() && m.system.cpu_s > 0.0, "{m:#?}");
    }
    let mut again = home.narrows(["run", "kept", "--rounds", "1"]);
    crate::support::run(again.env("NARROWS_HOME", home.path("narrows"))).code(0);
    assert!(home.measured("kept-nginx").iter().all(|m| m.errors.is_empty()));

    let other = Issued::new(&["localhost"], 1);
    let wrong = ["try", url, "--cacert", &other.path("root")];
    home.run(wrong.into_iter().chain(SHORT)).code(1).says(&["the peer's certificate has a wrong signature"]);
    let name = url.replace("localhost", "127.0.0.1");
    let wrong = ["try", &name, "--cacert", &root];
    home.run(wrong.into_iter().chain(SHORT)).code(1).says(&["the peer's certificate is for another name"]);
    home.run(["try", &name, "--cacert", &root, "--sni", "localhost"].into_iter().chain(SHORT)).code(0);
    home.run(["try", url, "--insecure"].into_iter().chain(SHORT)).code(0);
    if nginx.v6 {
        // nginx refuses a Host without the brackets.
        let six = url.replace("localhost", "[::1]");
        home.run(["try", &six, "--cacert", &root].into_iter().chain(SHORT)).code(0);
    }
}

#[test]
fn a_unix_socket_is_spoken_to_in_tls() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script = "const [path, cert, key] = process.argv.slice(2), fs = require('fs');\n\
                  require('https').createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, \
                  (request, answer) => answer.end('ok')).listen(path);\n";
    home.write("socket.js", script);
    let words = ["try", "node socket.js {socket} {cert} {key}", "--close"];
    home.run(words.into_iter().chain(SHORT)).code(0);
    for m in home.measured("socket.js") {
        assert!(m.handshakes.as_ref().is_some_and(|found| found.full > 0) && m.errors.is_empty(), "{m:#?}");
    }
}
