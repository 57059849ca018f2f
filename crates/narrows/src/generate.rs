//! `narrows completions` and `narrows man`: completions of shells and man pages, from the definitions of the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_complete::Shell as Generator;
use clap_mangen::Man;

use crate::Cli;
use crate::common::{self, End};

/// A shell, with the file from which it reads completions.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    /// For ~/.local/share/bash-completion/completions/narrows
    Bash,
    /// For the file _narrows in a folder of $fpath
    Zsh,
    /// For ~/.config/fish/completions/narrows.fish
    Fish,
}

/// `narrows completions`
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// `narrows man`
#[derive(clap::Args)]
pub struct ManArgs {
    /// The folder for narrows.1, narrows-run.1 and so on. It is made if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> End {
    // A pipe that closes early is no reason to panic, so the text is complete before it is printed.
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(generator, &mut command(), "narrows", &mut text);
    common::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and one for each verb.
pub fn man(args: &ManArgs) -> End {
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    let mut command = command().disable_help_subcommand(true);
    command.build();
    let date = date();
    page(&command, &date, &args.dir)?;
    command.get_subcommands().try_for_each(|verb| page(verb, &date, &args.dir))?;
    Ok(ExitCode::SUCCESS)
}

/// The day of SOURCE_DATE_EPOCH (<https://reproducible-builds.org/specs/source-date-epoch/>), or today.
fn date() -> String {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u32>().ok());
    let seconds = given.map_or_else(|| common::since_epoch().as_secs_f64(), f64::from);
    report::date::utc(seconds).split(' ').next().unwrap_or_default().to_owned()
}

fn page(command: &Command, date: &str, dir: &Path) -> anyhow::Result<()> {
    let version = concat!("narrows ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).date(date).source(version).manual("Narrows");
    let path = dir.join(page.get_filename());
    let context = || format!("cannot write {}", path.display());
    let mut text = Vec::new();
    page.render(&mut text).with_context(context)?;
    fs::write(&path, text).with_context(context)
}

/// The command line without what its help hides, which the generators would show.
fn command() -> Command {
    let whole = Cli::command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let about = whole.get_about().cloned().unwrap_or_default();
    Command::new("narrows")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .subcommand_required(true)
        .subcommands(verbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        command().debug_assert();
    }
}
