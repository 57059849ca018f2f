//! `narrows load`: how a target is reached. Unix sockets, the PROXY protocol, IPv6, names, other addresses than the URL's, and
//! addresses that connections come from.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::load_tls::Issued;
use crate::support::home::Home;
use crate::support::peer::{Peer, Request};
use crate::support::{
    Guarded, NARROWS, Served, backends, installed, load, load_json, nginx, plain, run, say_skipped, squeezed,
    until,
};

/// Requests, and whose they were.
type Asked = Arc<Mutex<Vec<(SocketAddr, Request)>>>;

/// A server that answers `200 ok` to everything. It records each request.
fn recorder() -> (Peer, Asked) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let peer = Peer::new(move |mut connection| {
        let client = connection.client();
        while let Some(request) = connection.request() {
            kept.lock().unwrap().push((client, request));
            connection.ok();
        }
    });
    (peer, seen)
}

/// The port of a URL.
fn port(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

/// Whether this machine has `::1`. If not, the test is skipped.
fn has_v6() -> bool {
    let has = TcpListener::bind("[::1]:0").is_ok();
    if !has {
        // Installing something would not change that.
        say_skipped("::1", "this machine has no IPv6");
    }
    has
}

/// A server at a Unix socket that answers `200 ok`, and records heads.
fn at_socket(path: &Path) -> Arc<Mutex<Vec<String>>> {
    let listener = UnixListener::bind(path).expect("a socket");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|count| count > 0) {
                    if head.ends_with("\r\n\r\n") {
                        kept.lock().unwrap().push(std::mem::take(&mut head));
                        let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                    }
                }
            });
        }
    });
    seen
}

#[test]
fn a_unix_socket_is_driven() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("server.socket");
    let (seen, path) = (at_socket(&path), path.to_str().expect("a path"));
    for io in backends() {
        for more in [&["-n", "40"][..], &["-n", "40", "--close"], &["-n", "40", "--rate", "1k"]] {
            let words = [&["http://localhost/a", "--unix", path, "-c", "4", "--reactor", io], more].concat();
            let (code, json) = load_json(&words);
            assert_eq!((code, &json["completed"], &json["address"]), (0, &40.into(), &path.into()), "{json}");
        }
    }
    let mut seen = seen.lock().unwrap();
    assert!(seen.iter().all(|head| head.starts_with("GET /a HTTP/1.1\r\nHost: localhost\r\n")), "{seen:?}");
    seen.clear();
    drop(seen);
    let ended = load(&["http://localhost/", "--unix", path, "-n", "1"]).code(0);
    assert!(ended.stdout.starts_with(&format!("http://localhost/ (at {path}): ")), "{ended:#?}");
}

#[test]
fn a_socket_that_cannot_be_driven_is_named() {
    let dir = TempDir::new().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    let (file, gone, long) = (path("file"), path("gone"), path(&"x".repeat(120)));
    fs::write(&file, "").expect("a file");
    drop(UnixListener::bind(&gone).expect("a socket"));
    let none = path("none");
    for io in backends() {
        let unix = |path: &str, code: i32, says: &[&str]| {
            load(&["http://localhost/", "--unix", path, "-n", "1", "--reactor", io]).code(code).says(says);
        };
        unix(&none, 1, &["nothing listens at", "No such file", "--wait 10s"]);
        unix(&gone, 1, &["nothing listens at", "refused", "--wait 10s"]);
        unix(&file, 2, &["file is not a socket", "on which the server listens"]);
        unix(&long, 2, &["at most 107 bytes", "use a shorter path"]);
    }
    for (option, value, says) in [
        ("--source", "127.0.0.2", "leave out --source"),
        ("--connect-to", "127.0.0.1:1", "leave one of them out"),
    ] {
        load(&["http://localhost/", "--unix", &file, option, value]).code(2).says(&[says]);
    }
}

#[test]
fn the_first_version_of_the_proxy_protocol_names_the_real_ends() {
    let (peer, seen) = recorder();
    let address = peer.url("http").replace("http://", "");
    for io in backends() {
        for more in [&[][..], &["--close"], &["--pipeline", "3"], &["--rate", "1k"]] {
            let common =
                [&*peer.url("http"), "-n", "30", "-c", "3", "--reactor", io, "--proxy-protocol", "1"];
            let (code, json) = load_json(&[&common[..], more].concat());
            assert_eq!((code, &json["completed"]), (0, &30.into()), "{json}");
            let requests = std::mem::take(&mut *seen.lock().unwrap());
            let mut first = BTreeMap::new();
            for (client, request) in &requests {
                let head = &request.head;
                let rest = match first.insert(*client, ()) {
                    None => {
                        let (ip, port) = (client.ip(), client.port());
                        let (server, server_port) = address.rsplit_once(':').expect("an address");
                        let line = format!("PROXY TCP4 {ip} {server} {port} {server_port}\r\n");
                        head.strip_prefix(&line).unwrap_or_else(|| panic!("{line} is not in {head}"))
                    }
                    Some(()) => head,
                };
                assert!(rest.starts_with("GET / HTTP/1.1\r\n"), "{head}");
            }
            assert_eq!(requests.len(), 30);
        }
    }
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("server.socket");
    let (seen, path) = (at_socket(&path), path.to_str().expect("a path"));
    load(&["http://h/", "--unix", path, "-n", "2", "-c", "1", "--proxy-protocol", "1"]).code(0);
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("PROXY UNKNOWN\r\nGET / ") && seen[1].starts_with("GET / "), "{seen:?}");
}

/// nginx behind a proxy, at 127.0.0.1, at ::1, at a Unix socket, and with TLS. It logs what the proxy says beside what the
/// kernel says.
struct Nginx {
    dir: TempDir,
    issued: Issued,
    plain: u16,
    tls: u16,
    _child: Guarded,
}

impl Nginx {
    fn start() -> Option<Self> {
        let dir = TempDir::new().expect("a folder");
        let issued = Issued::new(&["localhost"], 1);
        let [plain, tls] = [0, 1].map(|_| systems::free_port().expect("a free port"));
        let v6 = match TcpListener::bind("[::1]:0").is_ok() {
            true => format!("listen [::1]:{plain} proxy_protocol;"),
            false => String::new(),
        };
        let http = format!(
            "log_format both '$proxy_protocol_addr:$proxy_protocol_port $remote_addr:$remote_port \
             $proxy_protocol_server_port $server_port $http_host'; access_log seen both;\n\
             server {{ listen 127.0.0.1:{plain} proxy_protocol; {v6} listen unix:{}/nginx.socket proxy_protocol;\n\
             listen 127.0.0.1:{tls} ssl proxy_protocol; ssl_certificate {}; ssl_certificate_key {};\n\
             location / {{ return 200 \"$proxy_protocol_addr\"; }} }}",
            dir.path().display(),
            issued.path("cert"),
            issued.path("key"),
        );
        let child = nginx::start(dir.path(), tls, &http)?;
        Some(Self { dir, issued, plain, tls, _child: child })
    }

    /// What was logged, after so many lines have come. The log is empty again.
    fn logged(&self, lines: usize) -> Vec<String> {
        let path = self.dir.path().join("seen");
        let read = || fs::read_to_string(&path).unwrap_or_default();
        assert!(until(|| read().lines().count() >= lines), "{}", read());
        let found = read().lines().map(str::to_owned).collect();
        // nginx appends, so that it goes on from the beginning.
        fs::OpenOptions::new().write(true).truncate(true).open(&path).expect("the log");
        found
    }
}

#[test]
fn nginx_believes_both_versions_over_tcp_tls_and_unix_sockets() {
    let Some(nginx) = Nginx::start() else { return };
    let (plain, tls) =
        (format!("http://127.0.0.1:{}/", nginx.plain), format!("https://localhost:{}/", nginx.tls));
    let v6 = format!("http://[::1]:{}/", nginx.plain);
    let (root, socket) = (nginx.issued.path("root"), nginx.dir.path().join("nginx.socket"));
    let socket = socket.to_str().expect("a path");
    let mut targets: Vec<&[&str]> = Vec::new();
    let (tcp, secured, unix, six) =
        ([&*plain], [&*tls, "--cacert", &root], ["http://localhost/", "--unix", socket], [&*v6]);
    targets.extend([&tcp[..], &secured, &unix]);
    if has_v6() {
        targets.push(&six);
    }
    for io in backends() {
        for version in ["1", "2"] {
            for (target, close) in targets.iter().flat_map(|target| [(target, false), (target, true)]) {
                let common = ["-n", "20", "-c", "2", "--reactor", io, "--proxy-protocol", version];
                let close: &[&str] = if close { &["--close"] } else { &[] };
                let (code, json) = load_json(&[*target, &common[..], close].concat());
                assert_eq!((code, &json["completed"]), (0, &20.into()), "{target:?} {version} {json}");
                for line in nginx.logged(20) {
                    let words: Vec<&str> = line.split(' ').collect();
                    let [said, real, said_port, port, _] = words[..] else { panic!("{line}") };
                    if target[0].contains("localhost/") {
                        assert!(said.starts_with(':') || said.starts_with('-'), "no address: {line}");
                    } else {
                        assert_eq!((said, said_port), (real, port), "{line}");
                    }
                }
            }
        }
        // Without the header nginx closes the connection.
        let (code, json) = load_json(&[&plain, "-n", "4", "-c", "1", "--reactor", io]);
        assert_eq!((code, &json["completed"]), (1, &0.into()), "{json}");
    }
}

#[test]
fn haproxy_believes_both_versions_and_the_source() {
    let Some(program) = installed("haproxy") else { return };
    let dir = TempDir::new().expect("a folder");
    let port = systems::free_port().expect("a free port");
    let config = format!(
        "defaults\n mode http\n timeout client 60s\n timeout http-request 60s\n\
         frontend f\n bind 127.0.0.1:{port} accept-proxy\n \
         http-request return status 200 content-type text/plain string ok \
         if {{ fc_rcvd_proxy }} {{ src 127.0.0.2 }} {{ dst_port {port} }}\n \
         http-request return status 403\n"
    );
    let file: PathBuf = dir.path().join("haproxy.cfg");
    fs::write(&file, config).expect("a file");
    let mut command = Command::new(program);
    plain(&mut command);
    let mut child = Guarded::spawn(command.arg("-db").arg("-f").arg(&file));
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(until(|| listens() || !child.running()) && child.running(), "{:#?}", child.end());
    let url = format!("http://127.0.0.1:{port}/");
    for io in backends() {
        for version in ["1", "2"] {
            let drive = |source: &str| {
                let words =
                    ["-n", "20", "-c", "2", "--reactor", io, "--proxy-protocol", version, "--source", source];
                load_json(&[&[&*url], &words[..]].concat()).1
            };
            assert_eq!(drive("127.0.0.2")["completed"], 20, "{version} {io}");
            let other = drive("127.0.0.3");
            assert_eq!(other["errors"], serde_json::json!({"status": 20}), "{version} {io} {other}");
        }
    }
}

#[test]
fn ipv6_is_served_and_driven() {
    if !has_v6() {
        return;
    }
    let issued = Issued::new(&["::1"], 1);
    let (cert, key, root) = (issued.path("cert"), issued.path("key"), issued.path("root"));
    let plain = Served::start(&["--host", "::1"]);
    let secured = Served::start(&["--host", "::1", "--tls", "--cert", &cert, "--key", &key]);
    assert!(plain.http.starts_with("http://[::1]:") && plain.frames.starts_with("frames://[::1]:"));
    for io in backends() {
        let targets = [
            vec![&*plain.http],
            vec![&*plain.frames],
            vec![&*secured.http, "--cacert", &root],
            vec![&*plain.http, "--source", "::1"],
        ];
        for target in targets {
            let (code, json) = load_json(&[&target[..], &["-n", "20", "-c", "2", "--reactor", io]].concat());
            assert_eq!((code, &json["units"]), (0, &20.into()), "{target:?} {json}");
            assert!(json["address"].as_str().is_some_and(|address| address.starts_with("[::1]:")), "{json}");
        }
    }
    load(&[&plain.http.replace(['[', ']'], "")]).code(2).says(&["in brackets"]);
}

#[test]
fn a_name_is_said_with_its_address() {
    let (peer, seen) = recorder();
    let url = peer.url("http").replace("127.0.0.1", "localhost");
    let ended = load(&[&url, "-n", "2", "-c", "1"]).code(0);
    let head = squeezed(ended.stdout.lines().next().expect("a line"));
    assert!(head.starts_with(&format!("{url} (localhost is 127.0.0.1")), "{head}");
    let (_, json) = load_json(&[&url, "-n", "2", "-c", "1"]);
    assert_eq!(json["address"], format!("127.0.0.1:{}", port(&url)), "{json}");
    let host = url.replace("http://", "");
    assert!(seen.lock().unwrap().iter().all(|(_, request)| request.header("host") == Some(&host)));
    // An address needs no explanation.
    let ended = load(&[&peer.url("http"), "-n", "2", "-c", "1"]).code(0);
    assert!(ended.stdout.starts_with(&format!("{}: ", peer.url("http"))), "{ended:#?}");
}

#[test]
fn the_url_is_asked_at_another_address() {
    let (peer, seen) = recorder();
    let at = peer.url("http").replace("http://", "");
    let (code, json) = load_json(&["http://example.test:81/", "--connect-to", &at, "-n", "2", "-c", "1"]);
    assert_eq!((code, &json["completed"], &json["address"]), (0, &2.into(), &(*at).into()), "{json}");
    assert!(seen.lock().unwrap().iter().all(|(_, r)| r.header("host") == Some("example.test:81")));
    let issued = Issued::new(&["example.test"], 1);
    let server = issued.serve(&[]);
    let (at, root) = (server.http.replace("https://", ""), issued.path("root"));
    let words = ["https://example.test/", "--connect-to", &at, "--cacert", &root, "-n", "2", "-c", "1"];
    let ended = load(&words).code(0);
    assert!(ended.stdout.starts_with(&format!("https://example.test/ (at {at}): ")), "{ended:#?}");
    let remote = ["http://localhost/", "--connect-to", "192.0.2.1:80"];
    load(&remote).code(1).says(&["192.0.2.1:80 is not this machine", "--allow-remote"]);
    load(&["http://localhost/", "--connect-to", "127.0.0.1"]).code(2).says(&["write it as HOST:PORT"]);
}

#[test]
fn connections_come_from_the_sources_in_turn() {
    let (peer, seen) = recorder();
    for io in backends() {
        for more in [&["--close"][..], &[], &["-t", "2"], &["--rate", "1k"]] {
            let common = [&*peer.url("http"), "-n", "80", "-c", "4", "--source", "127.0.0.2,127.0.0.3"];
            let (code, json) = load_json(&[&common[..], &["--reactor", io], more].concat());
            assert_eq!((code, &json["completed"]), (0, &80.into()), "{json}");
            let mut connections = BTreeMap::<IpAddr, Vec<u16>>::new();
            for (client, _) in std::mem::take(&mut *seen.lock().unwrap()) {
                let ports = connections.entry(client.ip()).or_default();
                if !ports.contains(&client.port()) {
                    ports.push(client.port());
                }
            }
            let counts: Vec<(String, usize)> =
                connections.iter().map(|(ip, ports)| (ip.to_string(), ports.len())).collect();
            let each = if more == ["--close"] { 40 } else { 2 };
            assert_eq!(
                counts,
                [("127.0.0.2".to_owned(), each), ("127.0.0.3".to_owned(), each)],
                "{io} {more:?}"
            );
        }
    }
}

#[test]
fn sources_that_cannot_be_used_are_refused() {
    let v4 = "http://127.0.0.1:1/";
    for (target, sources, says) in [
        (v4, "192.0.2.1", "192.0.2.1 cannot be used"),
        (v4, "::1", "of another family: name addresses of IPv4"),
        ("http://[::1]:1/", "127.0.0.2", "of another family: name addresses of IPv6"),
        (v4, "127.0.0.2,127.0.0.2", "name each address once"),
        (v4, "0.0.0.0", "one by one"),
        (v4, "localhost", "invalid IP address"),
        ("http://192.0.2.1/", "127.0.0.2", "which is not on this machine"),
    ] {
        load(&[target, "--allow-remote", "--source", sources]).code(2).says(&[says]);
    }
}

#[test]
fn more_connections_than_ports_are_refused_before_anything_begins() {
    let (peer, _) = recorder();
    let ports = systems::machine::ports();
    let [above, twice] = [ports + 1, 2 * ports + 1].map(|connections| connections.to_string());
    let url = peer.url("http");
    load(&[&url, "-c", &above]).code(2).says(&[
        &format!("{above} connections need as many local ports, and there are {ports}"),
        "use --source 127.0.0.1,127.0.0.2,",
    ]);
    load(&[&url, "-c", &twice, "--source", "127.0.0.5,127.0.0.6"])
        .code(2)
        .says(&["use --source 127.0.0.1,127.0.0.2,127.0.0.3,"]);
    assert_eq!(peer.connections(), 0);
}

/// In a network of its own, in which there are only 20 ports for each address.
#[test]
fn several_sources_have_more_connections_than_one_has_ports() {
    let script =
        "ip link set lo up && echo '50000 50019' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let alone = |words: &[&str]| {
        let mut command = Command::new("unshare");
        plain(&mut command);
        command.args(["-rn", "sh", "-c", script, "sh"]).args(words);
        command
    };
    let possible = alone(&["true"]).status().is_ok_and(|status| status.success());
    if !possible {
        // Installing something would not change that.
        say_skipped("--source with few ports", "no network namespace can be made here");
        return;
    }
    for io in backends() {
        let drive = format!(
            "{NARROWS} serve -p 8080 & {NARROWS} load http://127.0.0.1:8080/ --wait 60s -n 200 -c 40 --json \
             --source 127.0.0.2,127.0.0.3 --reactor {io}; code=$?; kill $!; wait $!; exit $code"
        );
        let ended = run(&mut alone(&["sh", "-c", &drive])).code(0);
        let json = ended.json();
        assert_eq!((&json["completed"], &json["errors"]), (&200.into(), &serde_json::json!({})), "{json}");
        let refused = format!("{NARROWS} load http://127.0.0.1:8080/ -c 21 --reactor {io}");
        run(&mut alone(&["sh", "-c", &refused])).code(2).says(&["there are 20"]);
    }
}

/// Short trials, so that a test takes seconds.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "20ms", "--seed", "1"];

#[test]
#[ignore = "long; `make test-long` runs it"]
fn servers_at_ipv6_are_tried() {
    if !has_v6() {
        return;
    }
    let home = Home::new();
    let running = Served::start(&["--host", "::1"]);
    let port = port(&running.http);
    let by_name = format!("http://localhost:{port}");
    let command = format!("{NARROWS} serve --host ::1 -p {{port}}");
    let names = ["--names", "url,name,command"];
    let words = ["try", &running.http, &by_name, &command];
    home.run(words.into_iter().chain(names).chain(SHORT)).code(0);
    for name in ["url", "name", "command"] {
        let measured = home.measured(name);
        assert!(!measured.is_empty(), "{name}");
        for m in measured {
            assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
        }
    }
    // A port that the server chooses.
    let chooses = format!("{NARROWS} serve --host ::1 -p 0");
    let home = Home::new();
    home.run(["try", &*chooses, "--names", "found"].into_iter().chain(SHORT)).code(0);
    assert!(home.measured("found").iter().all(|m| m.successes > 0 && m.errors.is_empty()));
    // An address in a URL is meant as it is.
    let v4 = format!("http://127.0.0.1:{port}");
    let ended = home.run(["try", &*v4, "--ready", "1s"].into_iter().chain(SHORT)).code(1);
    ended.says(&[&format!("nothing listens on 127.0.0.1:{port}")]);
}
