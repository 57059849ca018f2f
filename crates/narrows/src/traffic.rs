//! The options that say what is sent. `load`, `try` and `tune` share them.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, bail};
use lab::ask::{Bytes, Payload};
use load::target::Allowance;
use serde::{Deserialize, Serialize};
use systems::Value;
use wire::frames::Prefix;

use crate::check_args::CheckArgs;
use crate::common::{self, Usage};
use crate::first_args::FirstArgs;
use crate::given;

/// What is sent, and which answers are right.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct TrafficArgs {
    /// Number of concurrent connections [default: 10, or for a system with a manifest its workload's]
    #[arg(short, long, value_name = "N", value_parser = positive)]
    pub connections: Option<usize>,
    /// The longest time from a request's last byte to the whole answer
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "30s")]
    pub timeout: std::time::Duration,
    /// Open loop: arrivals per second (1000, 10k), or a ramp from one rate to another (1k..50k), independent of the answers
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<(f64, f64)>,
    /// The gaps between arrivals of an open loop
    #[arg(long, value_enum, default_value_t, requires = "rate")]
    pub gaps: GapsChoice,
    /// One request per connection
    #[arg(long)]
    pub close: bool,
    /// Concurrent requests per connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    pub pipeline: usize,
    /// Speak HTTP/2 and nothing else: to http:// without asking first, to https:// as ALPN's h2
    #[arg(long, conflicts_with = "pipeline")]
    pub http2: bool,
    /// Concurrent requests per connection of HTTP/2: its streams [default: 1]
    #[arg(long, value_name = "N", value_parser = positive, requires = "http2")]
    pub streams: Option<usize>,
    /// What the server may send on a stream of HTTP/2 before it is allowed more [default: 1G less a byte]
    #[arg(long, value_name = "SIZE", value_parser = window, requires = "http2")]
    pub window: Option<u64>,
    /// The table of HPACK that the server may use, up to 64K; 0: none [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = hpack_table, requires = "http2")]
    pub hpack_table: Option<u64>,
    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub request: Option<String>,
    /// Add a header `Name: value`, or replace the default one of that name
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Send this text as the body; with @FILE the content of a file, with - standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "body_size", allow_hyphen_values = true)]
    pub body: Option<String>,
    /// Send a body of this size (64K, 1M, 1G), filled with a seeded pattern
    #[arg(long, value_name = "SIZE", value_parser = common::size)]
    pub body_size: Option<u64>,
    /// Send `Expect: 100-continue` and wait for the answer, at most a second
    #[arg(long)]
    pub expect_continue: bool,
    /// Payload bytes of a frame [default: 1000]
    #[arg(long, value_name = "SIZE", value_parser = common::size)]
    pub frame_size: Option<u64>,
    /// Bytes of the length prefix of a frame: 1, 2 or 4 [default: 4]
    // Only `load` takes another than the default, and its options are not saved.
    #[arg(long, value_name = "BYTES", value_parser = prefix)]
    #[serde(skip)]
    pub frame_prefix: Option<Prefix>,
    #[command(flatten)]
    #[serde(flatten)]
    pub checks: CheckArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub first: FirstArgs,
}

/// The gaps between arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum GapsChoice {
    /// All gaps are equal.
    #[default]
    Constant,
    /// Gaps are exponentially distributed, as if users were independent.
    Poisson,
}

/// The default of `--connections`.
const CONNECTIONS: usize = 10;

impl TrafficArgs {
    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.connections.unwrap_or(CONNECTIONS)
    }

    /// How many requests are open on a connection.
    pub fn depth(&self) -> usize {
        if self.http2 { self.streams.unwrap_or(1) } else { self.pipeline }
    }

    /// What the server of HTTP/2 is allowed.
    pub fn allowance(&self) -> Allowance {
        let (usual, in_range) = (Allowance::default(), |size: u64| u32::try_from(size).ok());
        Allowance {
            window: self.window.and_then(in_range).unwrap_or(usual.window),
            table: self.hpack_table.and_then(in_range).unwrap_or(usual.table),
        }
    }

    /// The body to send.
    ///
    /// # Errors
    /// A file or standard input cannot be read, or `--expect-continue` has nothing to wait with.
    pub fn body(&self) -> anyhow::Result<Payload> {
        let body = match (&self.body, self.body_size) {
            (Some(text), _) => Payload::Bytes(Bytes(given(text)?)),
            (None, Some(size)) => Payload::Size(size),
            (None, None) => Payload::None,
        };
        let empty = match &body {
            Payload::None => true,
            Payload::Bytes(bytes) => bytes.0.is_empty(),
            Payload::Size(size) => *size == 0,
        };
        if self.expect_continue && empty {
            bail!(Usage("--expect-continue needs a body: --body TEXT or --body-size SIZE".to_owned()));
        }
        Ok(body)
    }

    /// The method to send with this body.
    pub fn method(&self, body: &Payload) -> String {
        let usual = if matches!(body, Payload::None) { "GET" } else { "POST" };
        self.request.clone().unwrap_or_else(|| usual.to_owned())
    }

    /// Checks that the values of the first answer are used in what is sent.
    ///
    /// # Errors
    /// One is not.
    pub fn check_values(&self, path: &str, body: &str) -> Result<(), Usage> {
        let headers = self.headers.iter().map(|(_, value)| value.as_str());
        self.first.check_named(headers.chain([path, body]))
    }

    /// The knobs of a workload that these options set: each option that is given, its knob and the value.
    pub fn given(&self) -> Vec<(&'static str, &'static str, Value)> {
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let word = |word: &str| Value::Text(word.to_owned());
        let poisson = self.gaps == GapsChoice::Poisson;
        let options = [
            ("--connections", "connections", self.connections.map(|count| integer(count as u64))),
            ("--close", "keep_alive", self.close.then_some(Value::Boolean(false))),
            ("--pipeline", "pipeline", (self.pipeline > 1).then(|| integer(self.pipeline as u64))),
            ("--http2", "http", self.http2.then(|| word("2"))),
            ("--streams", "streams", self.streams.map(|count| integer(count as u64))),
            ("--window", "window", self.window.map(integer)),
            ("--hpack-table", "hpack_table", self.hpack_table.map(integer)),
            ("--rate", "rate", self.rate.map(|(rate, _)| integer(rate.round() as u64))),
            ("--gaps", "gaps", poisson.then(|| word("poisson"))),
            ("--frame-size", "frame_size", self.frame_size.map(integer)),
        ];
        options.into_iter().filter_map(|(option, knob, value)| Some((option, knob, value?))).collect()
    }

    /// Whether an option is given that makes requests, or demands answers, that no workload has.
    pub fn of_own_requests(&self) -> bool {
        self.body.is_some()
            || self.body_size.is_some()
            || self.request.is_some()
            || !self.headers.is_empty()
            || self.expect_continue
            || self.checks.any()
            || self.first.any()
    }

    /// The first option that contradicts another or does not apply to the scheme.
    pub fn contradiction(&self, scheme: &str) -> Option<&'static str> {
        let http_only = self.of_own_requests() || self.close || self.pipeline > 1 || self.http2;
        match scheme {
            "frames" if http_only => Some(
                "bodies, methods, headers, checks, --close, --pipeline and --http2 work only with requests, not with frames",
            ),
            "frames" if self.rate.is_some() => {
                Some("--rate needs requests; frames are sent as fast as the receiver accepts them")
            }
            "http" | "https" if self.frame_size.is_some() || self.frame_prefix.is_some() => {
                Some("--frame-size and --frame-prefix work only with frames")
            }
            _ if self.pipeline > 1 && self.close => Some("--pipeline cannot be used with --close"),
            _ if self.streams.is_some_and(|streams| streams > 1) && self.close => {
                Some("--streams cannot be used with --close")
            }
            _ if self.http2 && self.headers.iter().any(|(name, _)| is_of_http1(name)) => Some(
                "HTTP/2 has no Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding and Upgrade: leave the header out",
            ),
            _ => self.checks.contradiction(),
        }
    }
}

/// Whether only HTTP/1.1 has this header.
fn is_of_http1(name: &str) -> bool {
    let names = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// The bytes that `--body` names, by the rule of curl's `--data-binary`.
fn given(text: &str) -> anyhow::Result<Vec<u8>> {
    match text.strip_prefix('@') {
        _ if text == "-" => standard_input().context("--body"),
        Some("-") => standard_input().context("--body"),
        Some(file) => given::read(Path::new(file)).context("--body"),
        None => {
            // It was the name of a file once.
            if Path::new(text).is_file() {
                common::say(format_args!("--body {text} sends this text; --body @{text} sends the file"));
            }
            Ok(text.as_bytes().to_vec())
        }
    }
}

/// All of standard input. It ends once, and a search among commits asks for it again.
fn standard_input() -> anyhow::Result<Vec<u8>> {
    static READ: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = READ.get() {
        return Ok(bytes.clone());
    }
    let bytes = given::standard_input().context("for --body")?;
    Ok(READ.get_or_init(|| bytes).clone())
}

/// Parses a rate or a ramp: `1000`, `10k`, `1k..50k`.
fn rate(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| {
        let (number, factor) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1000.0),
            None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
        };
        let rate = number.parse::<f64>().ok().map(|rate| rate * factor);
        rate.filter(|rate| (0.001..=1e8).contains(rate))
            .ok_or_else(|| format!("{text:?} is not a rate: write 500, 10k or 1k..50k"))
    };
    match text.split_once("..") {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(text).map(|rate| (rate, rate)),
    }
}

/// Parses a number of connections, threads and the like.
pub fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=1_000_000).contains(number))
        .ok_or_else(|| "it must be a number from 1 to 1000000".to_owned())
}

fn window(text: &str) -> Result<u64, String> {
    let most = u64::from(Allowance::LARGEST_WINDOW);
    common::size(text)
        .ok()
        .filter(|size| (1..=most).contains(size))
        .ok_or_else(|| format!("a window is from 1 to {most} bytes: write 65535, 64K or 1M"))
}

fn hpack_table(text: &str) -> Result<u64, String> {
    common::size(text)
        .ok()
        .filter(|size| *size <= u64::from(Allowance::LARGEST_TABLE))
        .ok_or_else(|| "a table is from 0 to 64K bytes: write 0, 4096 or 64K".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| "write it as `Name: value`".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn prefix(text: &str) -> Result<Prefix, String> {
    match text {
        "1" => Ok(Prefix::One),
        "2" => Ok(Prefix::Two),
        "4" => Ok(Prefix::Four),
        _ => Err("it must be 1, 2 or 4".to_owned()),
    }
}
