//! `narrows published`: the tables of the published benchmarks, and what their own figures show of their weaknesses.

use std::process::ExitCode;

use crate::common::{self, End, Usage};

/// How a table is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Tables for the terminal.
    #[default]
    Text,
    /// Tables to paste into a README or a pull request.
    Markdown,
    /// One object, with a schema version.
    Json,
    /// The rows, raw numbers.
    Csv,
}

/// `narrows published`
#[derive(clap::Args)]
pub struct Args {
    /// A table by its name, or a file that ends in .toml, with its rows beside it in a .csv; none: the list of tables
    name: Option<String>,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Show all rows, not only the first of each system (json and csv have all of them)
    #[arg(long)]
    all: bool,
}

/// Prints a table with what was found in it, or the list of tables.
pub fn run(args: &Args) -> End {
    let tables = published::tables()?;
    let Some(name) = &args.name else {
        let text = match args.format {
            Format::Text => report::published::list(&tables),
            Format::Json => report::published::list_json(&tables),
            Format::Markdown | Format::Csv => {
                return Err(Usage("the list of tables is text or json; name a table".to_owned()).into());
            }
        };
        common::print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let audit = published::audit(&published::load(name)?, &tables);
    let shown = || if args.all { audit.clone() } else { audit.clone().shortened() };
    let text = match args.format {
        Format::Text => report::published::text(&shown(), common::width(), common::colour()),
        Format::Markdown => report::published::markdown(&shown()),
        Format::Json => report::published::json(&audit),
        Format::Csv => report::published::csv(&audit),
    };
    common::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
