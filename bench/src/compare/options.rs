//! What `compare` is asked to do.

use std::path::PathBuf;

use anyhow::bail;

/// The options of `compare`.
#[derive(clap::Args)]
pub struct Args {
    /// Few short runs, to see that everything works: about a minute
    #[arg(long)]
    pub quick: bool,
    /// Pairs per peer and scenario [default: 7; quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pairs: Option<u64>,
    /// Seconds of one run [default: 2; quick: 1], longer from 10,000 connections on; some peers know whole seconds only
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Only scenarios whose names begin like this: keepalive-1000,frames
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Only these peers: wrk,floor-epoll
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Vec<String>,
    /// The program under test [default: beside this one, else on the PATH]
    #[arg(long, value_name = "FILE")]
    narrows: Option<PathBuf>,
    /// The server's core
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    pub server_core: usize,
    /// The generators' cores
    #[arg(long, value_name = "CORES", value_delimiter = ',', default_value = "0")]
    pub generator_cores: Vec<usize>,
    /// The folder for RESULTS.md and results.csv
    #[arg(long, value_name = "FOLDER", default_value = "bench")]
    pub out: PathBuf,
}

impl Args {
    pub fn pairs(&self) -> u64 {
        self.pairs.unwrap_or(if self.quick { 2 } else { 7 })
    }

    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 1.0 } else { 2.0 })
    }

    /// The length of a run. Very many connections take a good part of a second to make, which is to be a small part.
    pub fn seconds_for(&self, connections: usize) -> f64 {
        self.seconds() * if connections >= 10_000 { Self::MANY } else { 1.0 }
    }

    /// How much longer runs with 10,000 connections and more are.
    pub const MANY: f64 = 2.5;

    /// Rounds of the curve, whose points are medians.
    pub fn rounds(&self) -> u64 {
        self.pairs().div_ceil(2)
    }

    pub fn wants_peer(&self, name: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer == name)
    }

    /// `frames` means all of `frames-10`, `frames-100` and so on; `frames-10` only itself.
    pub fn wants_scenario(&self, name: &str) -> bool {
        let wanted = |asked: &String| {
            name.strip_prefix(asked.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.scenarios.is_empty() || self.scenarios.iter().any(wanted)
    }

    pub fn narrows(&self) -> anyhow::Result<PathBuf> {
        let beside = std::env::current_exe()?.with_file_name("narrows");
        match &self.narrows {
            Some(path) if path.exists() => Ok(path.clone()),
            Some(path) => bail!("there is no {}", path.display()),
            None if beside.exists() => Ok(beside),
            None => match super::peer::on_path("narrows") {
                Some(path) => Ok(path),
                None => bail!("narrows is not built: cargo build --release, or --narrows FILE"),
            },
        }
    }
}
