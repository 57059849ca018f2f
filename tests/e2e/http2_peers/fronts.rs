//! Programs that speak HTTP/2 in front of a server of HTTP/1.1: the generator drives them, and `narrows serve` is behind them.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::clients::client;
use super::{drive, drive_long, port, start};
use crate::load_tls::Issued;
use crate::support::peer::Peer;
use crate::support::{Guarded, Served, installed, load_json, until};

/// A program in front.
struct Front {
    dir: TempDir,
    issued: Issued,
    /// Its ports in plain text and in TLS.
    ports: [u16; 2],
    running: Option<Guarded>,
}

impl Front {
    fn new() -> Self {
        let issued = Issued::new(&["localhost"], 1);
        let dir = TempDir::new().expect("a folder");
        Self { dir, issued, ports: [port(), port()], running: None }
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes its configuration.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    fn start(mut self, command: &mut Command) -> Self {
        command.env("HOME", self.dir()).current_dir(self.dir());
        self.running = Some(start(command, self.ports[0]));
        self
    }

    /// A URL in plain text.
    fn plain(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.ports[0])
    }

    /// Drives it in plain text: requests, long answers, long requests, and another status.
    fn passes_on(&self) {
        self.passes_on_at(&self.plain(""), &[]);
    }

    /// The same in TLS.
    fn passes_on_in_tls(&self) {
        let root = self.issued.path("root");
        self.passes_on_at(&format!("https://localhost:{}/", self.ports[1]), &["--cacert", &root]);
    }

    fn passes_on_at(&self, base: &str, words: &[&str]) {
        let at = |path: &str| base.to_owned() + path;
        drive(&at(""), &[&["--expect", "body=ok"], words].concat());
        drive_long(&at("bytes/10000000"), &[&["--expect", "length=10000000"], words].concat());
        let sent = ["--body-size", "10000000", "--expect", "length=10000000"];
        drive_long(&at("echo"), &[&sent, words].concat());
        let lost = at("nowhere");
        let other = [&lost, "--http2", "-n", "100", "-c", "1", "--streams", "100", "--expect-status", "404"];
        let (code, json) = load_json(&[&other, words].concat());
        assert_eq!((code, &json["completed"]), (0, &100.into()), "{base}: {json}");
    }

    /// Drives it in plain text. Its answers must end with the trailer of what is behind.
    fn passes_trailers_on(&self) {
        let url = self.plain("");
        drive(&url, &["--expect", "body=ok"]);
        if let Some(said) = client("nghttp", &["-v", &url]) {
            assert!(said.contains("x-trailer: a"), "{said}");
        }
    }
}

/// Some of them have processes of their own, which end with them only if they are told.
impl Drop for Front {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running
            && running.running()
        {
            running.signal(libc::SIGTERM);
            until(|| !running.running());
        }
    }
}

/// The address of what is behind, without a scheme.
fn behind(served: &Served) -> &str {
    served.http.strip_prefix("http://").expect("a URL")
}

/// A server whose answers are chunked, and end with a trailer.
fn trailing() -> Peer {
    Peer::new(|mut connection| {
        let answer = "HTTP/1.1 200 OK\r\nTrailer: x-trailer\r\nTransfer-Encoding: chunked\r\n\r\n\
                      2\r\nok\r\n0\r\nx-trailer: a\r\n\r\n";
        while connection.request().is_some() {
            connection.send(answer.as_bytes());
        }
    })
}

fn haproxy(backend: &str) -> Option<Front> {
    let (program, front) = (installed("haproxy")?, Front::new());
    let [plain, secured] = front.ports;
    let pem = [front.issued.path("cert"), front.issued.path("key")]
        .map(|path| fs::read_to_string(path).expect("PEM"));
    let pem = front.write("both.pem", &pem.concat());
    let config = format!(
        "defaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 60s\n\
         listen front\n bind 127.0.0.1:{plain} proto h2\n bind 127.0.0.1:{secured} ssl crt {pem} alpn h2\n\
         server behind {backend}\n"
    );
    let config = front.write("haproxy.cfg", &config);
    Some(front.start(Command::new(program).args(["-db", "-f", &config])))
}

fn caddy(backend: &str) -> Option<Front> {
    let (program, front) = (installed("caddy")?, Front::new());
    let [plain, secured] = front.ports;
    let (cert, key) = (front.issued.path("cert"), front.issued.path("key"));
    let config = format!(
        "{{\n admin off\n auto_https off\n servers {{\n protocols h1 h2 h2c\n }}\n}}\n\
         http://:{plain} {{\n bind 127.0.0.1\n reverse_proxy {backend}\n}}\n\
         https://:{secured} {{\n bind 127.0.0.1\n tls {cert} {key}\n reverse_proxy {backend}\n}}\n"
    );
    let config = front.write("Caddyfile", &config);
    Some(front.start(Command::new(program).args(["run", "--config", &config, "--adapter", "caddyfile"])))
}

fn apache(backend: &str) -> Option<Front> {
    let (program, front) = (installed("apache2")?, Front::new());
    let [plain, secured] = front.ports;
    let (cert, key) = (front.issued.path("cert"), front.issued.path("key"));
    let modules = ["mpm_event", "authz_core", "http2", "ssl", "proxy", "proxy_http"]
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    // As root it demands another user for its processes.
    let config = format!(
        "ServerRoot {root}\nDefaultRuntimeDir {root}\nPidFile apache.pid\nServerName localhost\nErrorLog /dev/stderr\n\
         User nobody\nGroup nogroup\n{modules}Listen 127.0.0.1:{plain}\nListen 127.0.0.1:{secured}\nProtocols h2 h2c\n\
         ProxyPass / http://{backend}/\n<VirtualHost *:{secured}>\nSSLEngine on\nSSLCertificateFile {cert}\n\
         SSLCertificateKeyFile {key}\n</VirtualHost>\n",
        root = front.dir().display()
    );
    let config = front.write("apache.conf", &config);
    Some(front.start(Command::new(program).args(["-DFOREGROUND", "-f", &config])))
}

fn h2o(backend: &str) -> Option<Front> {
    let (program, front) = (installed("h2o")?, Front::new());
    let [plain, secured] = front.ports;
    let (cert, key) = (front.issued.path("cert"), front.issued.path("key"));
    let config = format!(
        "listen: {{host: 127.0.0.1, port: {plain}}}\n\
         listen: {{host: 127.0.0.1, port: {secured}, ssl: {{certificate-file: {cert}, key-file: {key}, ocsp-update-interval: 0}}}}\n\
         num-threads: 1\nhosts: {{default: {{paths: {{/: {{proxy.reverse.url: \"http://{backend}/\"}}}}}}}}\n"
    );
    let config = front.write("h2o.conf", &config);
    Some(front.start(Command::new(program).args(["-c", &config])))
}

fn lighttpd(backend: &str) -> Option<Front> {
    let (program, front) = (installed("lighttpd")?, Front::new());
    let (host, to) = backend.rsplit_once(':').expect("a port");
    let config = format!(
        "server.bind = \"127.0.0.1\"\nserver.port = {}\nserver.document-root = \"{}\"\nserver.modules = (\"mod_proxy\")\n\
         server.upload-dirs = (\"{1}\")\nproxy.server = (\"\" => ((\"host\" => \"{host}\", \"port\" => {to})))\n",
        front.ports[0],
        front.dir().display()
    );
    let config = front.write("lighttpd.conf", &config);
    Some(front.start(Command::new(program).args(["-D", "-f", &config])))
}

fn varnish(backend: &str) -> Option<Front> {
    let (program, front) = (installed("varnishd")?, Front::new());
    let (host, to) = backend.rsplit_once(':').expect("a port");
    let config = format!(
        "vcl 4.1;\nbackend default {{ .host = \"{host}\"; .port = \"{to}\"; }}\nsub vcl_recv {{ return (pass); }}\n"
    );
    let config = front.write("pass.vcl", &config);
    let (address, work) = (format!("127.0.0.1:{}", front.ports[0]), front.dir().join("work"));
    let mut command = Command::new(program);
    command
        .args(["-F", "-a", &address, "-f", &config, "-p", "feature=+http2", "-s", "malloc,64m", "-n"])
        .arg(work);
    Some(front.start(&mut command))
}

#[test]
fn haproxy_passes_on() {
    let served = Served::start(&[]);
    let Some(front) = haproxy(behind(&served)) else { return };
    front.passes_on();
    front.passes_on_in_tls();
}

#[test]
fn caddy_passes_on() {
    let served = Served::start(&[]);
    let Some(front) = caddy(behind(&served)) else { return };
    front.passes_on();
    front.passes_on_in_tls();
}

#[test]
fn apache_passes_on() {
    let served = Served::start(&[]);
    let Some(front) = apache(behind(&served)) else { return };
    front.passes_on();
    front.passes_on_in_tls();
}

#[test]
fn h2o_passes_on() {
    let served = Served::start(&[]);
    let Some(front) = h2o(behind(&served)) else { return };
    front.passes_on();
    front.passes_on_in_tls();
}

#[test]
fn lighttpd_passes_on_and_allows_few_streams() {
    let served = Served::start(&[]);
    let Some(front) = lighttpd(behind(&served)) else { return };
    front.passes_on();
    let (_, json) = load_json(&[&front.plain(""), "--http2", "-c", "1", "--streams", "100", "-n", "500"]);
    assert_eq!(json["multiplexed"]["reached"], json["multiplexed"]["allowed"], "{json}");
}

#[test]
fn varnish_passes_on() {
    let served = Served::start(&[]);
    let Some(front) = varnish(behind(&served)) else { return };
    front.passes_on();
}

#[test]
fn answers_with_trailers_are_right() {
    let trailing = trailing();
    let url = trailing.url("http");
    let backend = url.strip_prefix("http://").expect("a URL");
    for front in [haproxy(backend), caddy(backend), apache(backend)].into_iter().flatten() {
        front.passes_trailers_on();
    }
}
