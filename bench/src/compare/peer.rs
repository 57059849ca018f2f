//! The generators: their paths, their versions, and the flags with which each performs best.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::served;
use super::under_test::Ports;
use crate::{certificate, floor_uring};

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Closed loop, connections kept.
    KeepAlive,
    /// Closed loop, one request per connection.
    OneShot,
    /// Open loop with this many requests per second, connections kept.
    Open(u64),
    /// Requests that are never answered.
    Hold,
    /// One body of this size.
    Upload(u64),
    /// A stream of frames of this size.
    Frames(u64),
    /// This many requests, each on its own connection.
    Handshakes(u64),
    /// Closed loop, connections kept, the requests of a file in turn.
    Listed,
    /// So many streamed answers, each of `served::EVENTS` events.
    Events(u64),
    /// So many answers over HTTP/2, with this many streams of a connection.
    Multiplexed { answers: u64, streams: usize },
}

/// A generator's task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    pub work: Work,
    pub connections: usize,
    pub threads: usize,
    pub seconds: f64,
    /// Whether it is over TLS.
    pub tls: bool,
}

/// A generator.
pub struct Peer {
    pub name: &'static str,
    /// None if it is not installed.
    pub program: Option<PathBuf>,
    pub version: String,
    /// How to get it.
    pub get: &'static str,
    /// Why these flags.
    pub flags: &'static str,
}

/// Name, the argument that prints the version, how to get it, why these flags.
const TOOLS: [(&str, &str, &str, &str); 12] = [
    ("wrk", "-v", "apt-get install wrk", "one thread, no script"),
    (
        "h2load",
        "--version",
        "apt-get install nghttp2-client",
        "`--h1` except in HTTP/2's rows, one thread; it always keeps its connections",
    ),
    (
        "ab",
        "-V",
        "apt-get install apache2-utils",
        "`-k`, quiet, continues after socket errors; it has one thread",
    ),
    (
        "hey",
        "",
        "apt-get install hey",
        "one CPU, no decompression, no redirects; it keeps at most 500 connections",
    ),
    ("oha", "--version", "cargo install oha", "one thread, no terminal interface, no redirects"),
    (
        "aiperf",
        "--version",
        "pip install aiperf",
        "tokens as the server counts them, a tokenizer of single bytes, no user interface",
    ),
    ("gcannon", "", "github.com/MDA2AV/gcannon: make, with liburing-dev", "one thread, depth 1"),
    (
        "wrk2",
        "-v",
        "github.com/giltene/wrk2: make; its program wrk as wrk2 on the PATH",
        "one thread, no script",
    ),
    ("zrk", "--version", "github.com/zoxy-io/zrk: zig build", "one thread, no terminal interface"),
    ("iperf3", "--version", "apt-get install iperf3", "`-l 1M`, with its own receiver on the server's core"),
    ("curl", "--version", "apt-get install curl", "a sparse file, without `Expect`"),
    (
        NGINX,
        "-v",
        "apt-get install nginx",
        "one worker on the server's core, no log; it is the other end of the handshakes",
    ),
];

const FLOORS: [(&str, &str); 5] = [
    (
        "floor-epoll",
        "a bare epoll loop: edge-triggered, one send and one receive per request, counts lengths only",
    ),
    (
        "floor-uring",
        "a bare io_uring loop: registered files, multishot receive or one linked chain per connection",
    ),
    ("floor-tls", "a bare epoll loop over rustls without buffers, one record per send, counts lengths only"),
    ("send-loop", "a bare blocking loop of 256 KiB sends"),
    ("send-tls", "a bare blocking loop over rustls without buffers, 256 KiB at a time"),
];

/// The name of Narrows' own closed loop as the peer of its open loop.
pub const CLOSED: &str = "closed loop";

/// The server that accepts handshakes.
pub const NGINX: &str = "nginx";

/// The name of the file to upload, for tools that send a file.
pub const BODY: &str = "body";

/// The name of the file with the request of a streamed chat.
pub const CHAT: &str = "chat";

/// The name of the file of requests.
pub const LIST: &str = "requests";

/// The path of a program, if it is on the PATH or where Debian has its servers.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Peer {
    /// The program under test.
    pub fn narrows(program: &Path) -> Self {
        Self {
            name: "narrows",
            version: version(program, "--version"),
            program: Some(program.to_owned()),
            get: "cargo build --release",
            flags: "one thread; checks each answer and keeps two histograms",
        }
    }

    /// Everything that Narrows is compared with, whether installed or not.
    pub fn all(narrows: &Path) -> Vec<Self> {
        let tools = TOOLS.into_iter().map(|(name, ask, get, flags)| {
            let program = on_path(name);
            let version = program.as_deref().map_or_else(String::new, |file| version(file, ask));
            Self { name, program, version, get, flags }
        });
        let this_program = std::env::current_exe().ok();
        let floors = FLOORS.into_iter().map(|(name, flags)| {
            let available = name != "floor-uring" || floor_uring::available();
            let version = concat!("bench ", env!("CARGO_PKG_VERSION")).to_owned();
            let get = "a kernel that allows io_uring, Linux 6.1 or later";
            Self { name, program: this_program.clone().filter(|_| available), version, get, flags }
        });
        let closed = Self {
            name: CLOSED,
            flags: "Narrows itself, without a schedule and with one request; shows what these cost",
            ..Self::narrows(narrows)
        };
        tools.chain(floors).chain([closed]).collect()
    }

    /// The program and its arguments for a task. The folder has the server's files.
    pub fn command(&self, task: &Task, ports: Ports, folder: &Path) -> Vec<String> {
        let program = self.program.as_deref().map_or(self.name.into(), Path::to_string_lossy);
        let whole = task.seconds.ceil().max(1.0) as u64;
        let (scheme, port) = if task.tls { ("https", ports.tls) } else { ("http", ports.http) };
        let root = certificate::root(folder).to_string_lossy().into_owned();
        let fill = |word: &str| {
            word.replace("{c}", &task.connections.to_string())
                .replace("{t}", &task.threads.to_string())
                .replace("{d}", &whole.to_string())
                .replace("{s}", &task.seconds.to_string())
                .replace("{ms}", &(task.seconds * 1000.0).round().to_string())
                .replace("{url}", &format!("{scheme}://127.0.0.1:{port}{}", path(task.work)))
                .replace("{path}", path(task.work))
                .replace("{http}", &ports.http.to_string())
                .replace("{stream}", &ports.stream.to_string())
                .replace("{tls}", &ports.tls.to_string())
                .replace("{root}", &root)
                .replace("{chat}", &folder.join(CHAT).to_string_lossy())
                .replace("{model}", served::MODEL)
                .replace("{streams}", &streams(task.work).to_string())
                .replace("{list}", &folder.join(LIST).to_string_lossy())
                .replace("{folder}", &folder.to_string_lossy())
                .replace("{iperf3}", &ports.iperf3.to_string())
                .replace("{file}", &folder.join(BODY).to_string_lossy())
                .replace("{size}", &size(task.work).to_string())
                .replace("{rate}", &rate(task.work).to_string())
        };
        let mut command = vec![program.into_owned()];
        command.extend(self.words(task.work).split_whitespace().map(fill));
        if task.work == Work::OneShot && self.name == "wrk" {
            command.extend(["-H".to_owned(), "Connection: close".to_owned()]);
        }
        if task.tls && self.name == "narrows" {
            command.extend(["--cacert".to_owned(), root]);
        }
        command
    }

    fn words(&self, work: Work) -> &'static str {
        match (self.name, work) {
            ("aiperf", _) | (_, Work::Events(_) | Work::Multiplexed { .. }) => self.words_for_served(work),
            ("narrows", Work::Upload(_)) => "load {url} -c 1 -n 1 --body-size {size} --timeout 120s --json",
            ("narrows", Work::Frames(_)) => {
                "load frames://127.0.0.1:{stream} -c 1 -d {ms}ms --frame-size {size} --json"
            }
            ("narrows", Work::Open(_)) => "load {url} -c {c} -t {t} -d {ms}ms --rate {rate} --json",
            ("narrows", Work::OneShot) => "load {url} -c {c} -t {t} -d {ms}ms --close --json",
            ("narrows", Work::Listed) => "load {url} -c {c} -t {t} -d {ms}ms --requests {list} --json",
            ("narrows", Work::Handshakes(_)) => "load {url} -c {c} -t {t} -n {size} --close --json",
            (CLOSED, Work::Listed) => "load {url}item/00000 -c {c} -t {t} -d {ms}ms --json",
            ("narrows" | CLOSED, _) => "load {url} -c {c} -t {t} -d {ms}ms --json",
            ("wrk", _) => "-t1 -c{c} -d{d}s {url}",
            ("wrk2", _) => "-t1 -c{c} -d{d}s -R{rate} {url}",
            ("zrk", _) => "-t 1 -c {c} -d {d}s -R {rate} --plain {url}",
            ("h2load", _) => "--h1 -t1 -c{c} -D{d} {url}",
            ("ab", Work::OneShot) => "-q -r -t{d} -n 10000000 -c {c} {url}",
            ("ab", _) => "-q -r -k -t{d} -n 10000000 -c {c} {url}",
            ("hey", Work::OneShot) => {
                "-cpus 1 -disable-compression -disable-redirects -disable-keepalive -z {ms}ms -c {c} {url}"
            }
            ("hey", _) => "-cpus 1 -disable-compression -disable-redirects -z {ms}ms -c {c} {url}",
            ("oha", Work::OneShot) => {
                "--no-tui --worker-threads 1 --disable-keepalive --redirect 0 -z {ms}ms -c {c} {url}"
            }
            ("oha", _) => "--no-tui --worker-threads 1 --redirect 0 -z {ms}ms -c {c} {url}",
            ("gcannon", Work::OneShot) => "{url} -t 1 -c {c} -d {d}s -r 1",
            ("gcannon", _) => "{url} -t 1 -c {c} -d {d}s",
            ("iperf3", _) => "-c 127.0.0.1 -p {iperf3} -l 1M -n {size} -J",
            ("curl", _) => "-s -S -o /dev/null -H Expect: -w %{size_upload}:%{time_total} -T {file} {url}",
            ("floor-epoll", Work::OneShot) => "floor-epoll --port {http} -c {c} -s {s} --close",
            ("floor-epoll", _) => "floor-epoll --port {http} -c {c} -s {s} --path {path}",
            ("floor-uring", Work::OneShot) => "floor-uring --port {http} -c {c} -s {s} --close",
            ("floor-uring", _) => "floor-uring --port {http} -c {c} -s {s} --path {path}",
            ("floor-tls", _) => "floor-tls --port {tls} --root {root} -c {c} -s {s} --path {path}",
            ("send-tls", _) => "send-tls --port {tls} --root {root} --size {size}",
            (NGINX, _) => "-p {folder} -c nginx.conf -e stderr",
            ("send-loop", Work::Upload(_)) => "send-loop --port {stream} --bytes {size}",
            ("send-loop", _) => "send-loop --port {stream} --seconds {s}",
            _ => "",
        }
    }

    /// The words where `narrows serve` is the server.
    fn words_for_served(&self, work: Work) -> &'static str {
        match (self.name, work) {
            ("narrows", Work::Events(_)) => {
                "load {url} -c {c} -t {t} -n {size} --body @{chat} -H Content-Type:application/json \
                 --stream events --json"
            }
            ("narrows", Work::Multiplexed { .. }) => {
                "load {url} -c {c} -t {t} -n {size} --http2 --streams {streams} --json"
            }
            ("h2load", Work::Events(_)) => {
                "--h1 -t1 -c{c} -n{size} -d {chat} -H Content-Type:application/json {url}"
            }
            ("h2load", Work::Multiplexed { .. }) => "-t1 -c{c} -n{size} -m{streams} {url}",
            ("oha", Work::Events(_)) => {
                "--no-tui --worker-threads 1 --redirect 0 -n {size} -c {c} -m POST -D {chat} \
                 -T application/json {url}"
            }
            ("oha", Work::Multiplexed { .. }) => {
                "--no-tui --worker-threads 1 --redirect 0 --http2 -n {size} -c {c} -p {streams} {url}"
            }
            ("aiperf", _) => {
                "profile -m {model} --url http://127.0.0.1:{http} --endpoint-type chat --streaming \
                 --concurrency {c} --request-count {size} --tokenizer narrows/bytes --use-server-token-count \
                 --isl 20 --artifact-dir {folder}/aiperf --ui none"
            }
            // No scenario asks the others.
            _ => "-",
        }
    }
}

fn path(work: Work) -> &'static str {
    match work {
        Work::Hold => "/hold",
        Work::Upload(_) => "/upload",
        Work::Events(_) => "/v1/chat/completions",
        _ => "/",
    }
}

fn size(work: Work) -> u64 {
    match work {
        Work::Upload(size) | Work::Frames(size) | Work::Handshakes(size) | Work::Events(size) => size,
        Work::Multiplexed { answers, .. } => answers,
        _ => 0,
    }
}

fn streams(work: Work) -> usize {
    match work {
        Work::Multiplexed { streams, .. } => streams,
        _ => 1,
    }
}

fn rate(work: Work) -> u64 {
    match work {
        Work::Open(rate) => rate,
        _ => 0,
    }
}

/// The version that a program prints, or that of its package if it prints none.
fn version(program: &Path, ask: &str) -> String {
    if ask.is_empty() {
        let name = program.file_name().unwrap_or_default();
        let package =
            output(OsStr::new("dpkg-query"), &[OsStr::new("-W"), OsStr::new("-f=${Version}"), name]);
        return package.unwrap_or_else(|| "unknown".to_owned());
    }
    output(program.as_os_str(), &[OsStr::new(ask)]).unwrap_or_else(|| "unknown".to_owned())
}

fn output(program: &OsStr, arguments: &[&OsStr]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    let line = line.split("Copyright").next().unwrap_or(line);
    Some(line.split(" libcurl").next().unwrap_or(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_command_without_gaps() {
        let ports = Ports { http: 1, stream: 2, tls: 3, iperf3: 4 };
        let works = [
            Work::KeepAlive,
            Work::OneShot,
            Work::Hold,
            Work::Open(9),
            Work::Upload(9),
            Work::Frames(9),
            Work::Handshakes(9),
            Work::Listed,
            Work::Events(9),
            Work::Multiplexed { answers: 9, streams: 3 },
        ];
        for peer in Peer::all(Path::new("narrows")) {
            for (work, tls) in works.into_iter().flat_map(|work| [(work, false), (work, true)]) {
                let task = Task { work, connections: 5, threads: 1, seconds: 0.3, tls };
                let command = peer.command(&task, ports, Path::new("/folder"));
                assert!(command.len() > 1, "{}", peer.name);
                let gap = |word: &&String| word.contains('{') && !word.contains("%{");
                assert_eq!(command.iter().find(gap), None, "{}", peer.name);
            }
        }
    }
}
