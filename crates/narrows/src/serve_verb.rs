//! `narrows serve`: the reference endpoints.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serve::{CloseStyle, Http2, Limits, Speaks};

use crate::common::{self, End, Usage};
use crate::given;

/// `narrows serve`
#[derive(clap::Args)]
pub struct Args {
    /// The address on which to listen
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The HTTP port; 0 chooses a free one
    #[arg(short, long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Speak TLS on the HTTP port, with a certificate that is made for this run unless --cert gives one. --tls=1.3 accepts only
    /// this version, and --tls=off is plain text
    #[arg(long, value_enum, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    tls: Option<TlsChoice>,
    /// The certificate of --tls, and those that lead to its root (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<PathBuf>,
    /// The key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Write the root of the certificate that is made to this file, for --cacert of a client
    #[arg(long, value_name = "FILE", requires = "tls", conflicts_with = "cert")]
    root: Option<PathBuf>,
    /// Give tickets for sessions, which clients may offer again
    #[arg(long, requires = "tls")]
    tickets: bool,
    /// Receive frames on this port: a 4-byte big-endian length, then that many bytes
    #[arg(long, value_name = "PORT")]
    frames: Option<u16>,
    /// Serve HTTP and frames on this one port, distinguished by the first byte
    #[arg(long, value_name = "PORT", hide = true, conflicts_with_all = ["port", "frames"])]
    any: Option<u16>,
    /// Close each connection after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_keepalive: Option<u64>,
    /// Do not announce the close with `Connection: close`
    #[arg(long, requires = "max_keepalive")]
    silent_close: bool,
    /// HTTP/2: the streams that a client may have open on a connection; further ones are refused
    #[arg(long, value_name = "N", default_value_t = Http2::USUAL.max_streams, value_parser = clap::value_parser!(u32).range(1..))]
    max_streams: u32,
    /// HTTP/2: say GOAWAY after this many requests of a connection
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    goaway_after: Option<u64>,
    /// HTTP/2: refuse every N-th request of a connection unprocessed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    refuse_every: Option<u64>,
    /// HTTP/2: answer every N-th request of a connection with a reset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    reset_every: Option<u64>,
    /// HTTP/2: what a client may send on a stream before it is allowed more (1 to 2147483647 bytes)
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = window)]
    window: u32,
    /// The most connections at once; those that come then are closed
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: u64,
    /// The longest body of a request; a longer one is refused with 413
    #[arg(long, value_name = "SIZE", default_value = "16G", value_parser = common::size)]
    max_body: u64,
    /// Close a connection on which nothing becomes complete for this long: no request, frame or answer. An answer with a longer
    /// silence is refused
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = common::duration)]
    patience: Duration,
    /// The number of threads; default: one per core
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The kernel interface
    #[arg(long, value_enum, default_value_t)]
    reactor: common::ReactorChoice,
}

/// Whether to speak TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TlsChoice {
    /// In all versions.
    On,
    /// Plain text.
    Off,
    /// Only TLS 1.2.
    #[value(name = "1.2")]
    Tls12,
    /// Only TLS 1.3.
    #[value(name = "1.3")]
    Tls13,
}

/// Parses a window of HTTP/2.
fn window(text: &str) -> Result<u32, String> {
    let size = common::size(text)?;
    let window = u32::try_from(size).ok().filter(|window| (1..1 << 31).contains(window));
    window.ok_or_else(|| "it must be from 1 to 2147483647 bytes".to_owned())
}

/// How often it checks whether its threads still run.
const GLANCE: Duration = Duration::from_millis(50);

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> End {
    // The kernel would not refuse this, because the threads of a server share its port.
    if args.port != 0 && args.frames == Some(args.port) {
        return Err(Usage(format!(
            "port {} cannot serve both HTTP and frames: give -p and --frames different ports (-p is 8080 by default)",
            args.port
        ))
        .into());
    }
    let cancel = common::cancellation()?;
    let mut alarm = common::Alarm::new()?;
    let ports = args.ports();
    let threads = args.threads.map_or_else(|| systems::machine::available_cores().len(), usize::from);
    let config = serve::Config {
        ports: ports.iter().map(|(port, speaks)| (SocketAddr::new(args.host, *port), *speaks)).collect(),
        threads: vec![None; threads.max(1)],
        max_keepalive: args.max_keepalive,
        tls: args.listener()?.map(Arc::new),
        farewell: if args.silent_close { CloseStyle::Silent } else { CloseStyle::Announced },
        limits: Limits { connections: args.max_connections, body: args.max_body, patience: args.patience },
        http2: Http2 {
            max_streams: args.max_streams,
            goaway_after: args.goaway_after,
            refuse_every: args.refuse_every,
            reset_every: args.reset_every,
            window: args.window,
        },
        backend: args.reactor.into(),
    };
    let wanted: Vec<String> = config.ports.iter().map(|(address, _)| address.to_string()).collect();
    let server =
        serve::start(&config).with_context(|| format!("cannot listen on {}", wanted.join(" and ")))?;
    for (address, (_, speaks)) in server.addresses().iter().zip(&ports) {
        let scheme = match speaks {
            Speaks::Frames => "frames",
            Speaks::Https => "https",
            Speaks::Http | Speaks::Either => "http",
        };
        common::say(format_args!("serving {scheme}://{address}"));
    }
    while !cancel.load(Ordering::Relaxed) && server.alive() {
        alarm.sleep(GLANCE);
    }
    let counts = server.stop().context("the server failed")?;
    common::say(format_args!(
        "{} requests, {} answers, {} connections, at most {} at once",
        counts.requests, counts.responses, counts.connections, counts.peak_connections
    ));
    Ok(std::process::ExitCode::SUCCESS)
}

/// How long a certificate is valid that is made for one run, before and after its beginning.
const VALID: Duration = Duration::from_secs(24 * 3600);

impl Args {
    /// What the connections of --tls are made from.
    fn listener(&self) -> anyhow::Result<Option<tls::Listener>> {
        let versions = match self.tls {
            None | Some(TlsChoice::Off) => return Ok(None),
            Some(TlsChoice::On) => Vec::new(),
            Some(TlsChoice::Tls12) => vec![tls::Version::Tls12],
            Some(TlsChoice::Tls13) => vec![tls::Version::Tls13],
        };
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                tls::Identity { certificate: given::read(cert)?, key: given::read(key)? }
            }
            _ => self.identity()?,
        };
        // A client that offers no application protocol is served, too.
        let alpn = vec![tls::HTTP2.to_vec(), b"http/1.1".to_vec()];
        let parameters =
            tls::Parameters { versions, alpn, sessions: self.tickets, ..tls::Parameters::default() };
        let serving = tls::Serving { identity, clients: None, parameters };
        Ok(Some(tls::Listener::new(&serving).map_err(|error| Usage(error.to_string()))?))
    }

    /// Whether the HTTP port speaks TLS.
    fn secured(&self) -> bool {
        self.tls.is_some_and(|choice| choice != TlsChoice::Off)
    }

    /// A certificate that is made for this run.
    fn identity(&self) -> anyhow::Result<tls::Identity> {
        let now = SystemTime::now();
        let (from, until) = (now - VALID, now + VALID);
        let authority = tls::Authority::new(from, until)?;
        if let Some(file) = &self.root {
            common::AtomicFile::create(file)?.write(authority.certificate())?;
        }
        let host = self.host.to_string();
        let names = ["localhost", &host];
        Ok(authority.issue(&tls::Leaf { names: &names, key: tls::KeyKind::P256, from, until })?)
    }

    fn ports(&self) -> Vec<(u16, Speaks)> {
        match self.any {
            Some(port) => vec![(port, if self.secured() { Speaks::Https } else { Speaks::Either })],
            None => {
                let http = (self.port, if self.secured() { Speaks::Https } else { Speaks::Http });
                std::iter::once(http).chain(self.frames.map(|port| (port, Speaks::Frames))).collect()
            }
        }
    }
}
