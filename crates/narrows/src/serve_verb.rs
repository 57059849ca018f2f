//! `narrows serve`: the reference endpoints.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use serve::{Farewell, Speaks};

use crate::common::{self, End, Usage};

/// `narrows serve`
#[derive(clap::Args)]
pub struct Args {
    /// The address on which to listen
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The HTTP port; 0 chooses a free one
    #[arg(short, long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
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
    /// The number of threads; default: one per core
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The kernel interface
    #[arg(long, value_enum, default_value_t)]
    reactor: common::ReactorChoice,
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
        farewell: if args.silent_close { Farewell::Silent } else { Farewell::Announced },
        backend: args.reactor.into(),
    };
    let wanted: Vec<String> = config.ports.iter().map(|(address, _)| address.to_string()).collect();
    let server =
        serve::start(&config).with_context(|| format!("cannot listen on {}", wanted.join(" and ")))?;
    for (address, (_, speaks)) in server.addresses().iter().zip(&ports) {
        let scheme = if *speaks == Speaks::Frames { "frames" } else { "http" };
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

impl Args {
    fn ports(&self) -> Vec<(u16, Speaks)> {
        match self.any {
            Some(port) => vec![(port, Speaks::Either)],
            None => {
                let http = (self.port, Speaks::Http);
                std::iter::once(http).chain(self.frames.map(|port| (port, Speaks::Frames))).collect()
            }
        }
    }
}
