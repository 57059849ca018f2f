//! The options of `count`.

use std::path::PathBuf;

/// The options of `count`.
#[derive(clap::Args)]
pub struct Args {
    /// Count a tenth of the operations, to check that everything works
    #[arg(long)]
    pub quick: bool,
    /// Also count this earlier narrows, and set both side by side
    #[arg(long, value_name = "FILE")]
    pub before: Option<PathBuf>,
    /// Count only paths whose names begin with one of these, e.g. kept,upload
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    paths: Vec<String>,
    /// Program under test [default: next to this one, else on the PATH]
    #[arg(long, value_name = "FILE")]
    narrows: Option<PathBuf>,
    /// Core of the server
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    pub server_core: usize,
    /// Folder for COUNTS.md, which only a count of all paths without --quick writes
    #[arg(long, value_name = "FOLDER", default_value = "bench")]
    pub out: PathBuf,
}

impl Args {
    pub fn wants(&self, name: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|asked| name.starts_with(asked.as_str()))
    }

    pub fn narrows(&self) -> anyhow::Result<PathBuf> {
        crate::compare::options::narrows(self.narrows.as_deref())
    }
}
