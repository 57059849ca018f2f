//! The options of `compare`.

use std::path::{Path, PathBuf};

use anyhow::bail;

/// The options of `compare`.
#[derive(clap::Args)]
pub struct Args {
    /// Make few short runs to check that everything works; takes about a minute
    #[arg(long)]
    pub quick: bool,
    /// Pairs per peer and scenario [default: 7; quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pairs: Option<u64>,
    /// Seconds per run [default: 2; quick: 1]; longer from 10,000 connections on. Some peers accept only whole seconds
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Run only scenarios whose names begin with one of these, e.g. keepalive-1000,frames
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Run only these peers, e.g. wrk,floor-epoll
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Vec<String>,
    /// Program under test [default: next to this one, else on the PATH]
    #[arg(long, value_name = "FILE")]
    narrows: Option<PathBuf>,
    /// Core of the server
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    pub server_core: usize,
    /// Cores of the generators
    #[arg(long, value_name = "CORES", value_delimiter = ',', default_value = "0")]
    pub generator_cores: Vec<usize>,
    /// Folder for RESULTS.md and results.csv
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

    /// The length of a run in seconds. Opening very many connections takes much of a second, so such runs are longer.
    pub fn seconds_for(&self, connections: usize) -> f64 {
        self.seconds() * if connections >= 10_000 { Self::MANY } else { 1.0 }
    }

    /// The factor for runs with 10,000 connections or more.
    pub const MANY: f64 = 2.5;

    /// Rounds of the curve. Its points are medians.
    pub fn rounds(&self) -> u64 {
        self.pairs().div_ceil(2)
    }

    pub fn wants_peer(&self, name: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer == name)
    }

    /// `frames` selects `frames-10`, `frames-100` and so on; `frames-10` selects only itself.
    pub fn wants_scenario(&self, name: &str) -> bool {
        let wanted = |asked: &String| {
            name.strip_prefix(asked.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.scenarios.is_empty() || self.scenarios.iter().any(wanted)
    }

    pub fn narrows(&self) -> anyhow::Result<PathBuf> {
        narrows(self.narrows.as_deref())
    }
}

/// The program under test: the given one, or else the one next to this program or on the PATH.
pub fn narrows(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("narrows");
    match given {
        Some(path) if path.exists() => Ok(path.to_owned()),
        Some(path) => bail!("--narrows {}: there is no such file", path.display()),
        None if beside.exists() => Ok(beside),
        None => match super::peer::on_path("narrows") {
            Some(path) => Ok(path),
            None => bail!("narrows is not built: run cargo build --release, or give --narrows FILE"),
        },
    }
}
