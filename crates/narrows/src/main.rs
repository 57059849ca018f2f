//! Narrows finds the narrow place in a network stack.
//!
//! This crate is the command line, with one file per verb. The work is done by the crates below it.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod agent_verb;
mod built_in;
mod check_args;
mod client;
mod command;
mod common;
mod compare_verb;
mod condition;
mod doctor_verb;
mod drive;
mod driver_args;
mod examined;
mod first_args;
mod first_use;
mod fleet;
mod fleet_args;
mod generate;
mod given;
mod here;
mod history_verb;
mod init_verb;
mod lab_args;
mod load_verb;
mod mcp_verb;
mod priority;
mod published_verb;
mod question;
mod reach;
mod report_verb;
mod requests_args;
mod run_verb;
mod runs;
mod serve_verb;
mod stores;
mod systems_verb;
mod tls_args;
mod traffic;
mod try_verb;
mod tune_verb;
mod why_verb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use question::Question;

/// A laboratory for network performance: which knob or library is the narrow place, by how much, and why.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run experiments; each trial starts its system anew
    Run(Box<run_verb::Args>),
    /// Compare commands, settings of a command, commits, or servers that run already
    Try(Box<try_verb::Args>),
    /// Search for the best setting of the knobs of a system or of a command
    Tune(Box<tune_verb::Args>),
    /// Test the reasons of a comparison: give the faster command each suspected cause alone
    Why(why_verb::Args),
    /// Drive one target
    Load(Box<load_verb::Args>),
    /// Serve the reference endpoints: /, /echo, /upload, /wait/MS
    Serve(serve_verb::Args),
    /// List, check or install systems: what runs here, what is missing, and how to get it
    Systems(systems_verb::Args),
    /// Make a folder `narrows` for a project's own systems and experiments
    Init(init_verb::Args),
    /// Print a saved run again, or list the runs
    Report(report_verb::Args),
    /// Follow a question through its runs: the ratio of each run, and where it changed
    History(history_verb::Args),
    /// Show the published tables that Narrows grew from, and what their figures hide
    Published(published_verb::Args),
    /// Compare two runs or two scenarios: ratio, interval, verdict, and an exit code for CI
    Compare(compare_verb::Args),
    /// Check whether this machine is fit for measurements, and say what to change
    Doctor(doctor_verb::Args),
    /// Serve another narrows over standard input and output: it runs this on the machines that --gen and --sut name
    Agent(agent_verb::Args),
    /// Offer the verbs as tools to a program that speaks the Model Context Protocol over standard input and output
    Mcp(mcp_verb::Args),
    /// Print completions for a shell; --help says where to put them
    Completions(generate::CompletionsArgs),
    /// Write man pages to a folder, one for each verb
    #[command(hide = true)]
    Man(generate::ManArgs),
    /// Run the reference client for `narrows run`: the driver contract on standard input and output
    #[command(hide = true)]
    Client,
    /// Wait for the end of another narrows, and end what it leaves
    #[command(name = KEEP, hide = true)]
    Keep { run: String },
}

impl Verb {
    /// Whether it asks to go before all other programs.
    fn goes_first(&self) -> bool {
        match self {
            Self::Run(args) => args.lab.fleet.priority,
            Self::Try(args) => args.lab.fleet.priority,
            Self::Tune(args) => args.lab.fleet.priority,
            _ => false,
        }
    }
}

/// The verb of the keeper.
const KEEP: &str = "keep";

fn main() -> ExitCode {
    // Load can need tens of thousands of sockets. The verbs report the limit where it matters.
    let files = systems::machine::raise_file_limit();
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match command::misread(&error, &words) {
            Some(why) => return common::exit(Err(common::Usage(why).into())),
            None => error.exit(),
        },
    };
    if cli.verb.goes_first() && !priority::is_given() {
        return common::exit(priority::run_first());
    }
    systems::keeper::appoint(KEEP);
    if let Err(error) = common::begin_trace() {
        return common::exit(Err(error));
    }
    let end = match cli.verb {
        Verb::Run(args) => match &args.resume {
            Some(word) => question::resume(&args.lab, word, files),
            None => question::answer(Question::Run(args), files),
        },
        Verb::Try(args) => question::answer(Question::Try(args), files),
        Verb::Tune(args) => question::answer(Question::Tune(args), files),
        Verb::Why(args) => why_verb::run(&args, files),
        Verb::Systems(args) => systems_verb::run(&args),
        Verb::Init(args) => init_verb::run(&args),
        Verb::Report(args) => report_verb::run(&args),
        Verb::History(args) => history_verb::run(&args),
        Verb::Published(args) => published_verb::run(&args),
        Verb::Compare(args) => compare_verb::run(&args),
        Verb::Load(args) => load_verb::run(&args, files),
        Verb::Serve(args) => serve_verb::run(&args),
        Verb::Doctor(args) => doctor_verb::run(&args, files),
        Verb::Agent(args) => agent_verb::run(&args, files),
        Verb::Mcp(args) => mcp_verb::run(&args),
        Verb::Completions(args) => generate::completions(&args),
        Verb::Man(args) => generate::man(&args),
        Verb::Client => client::run(),
        Verb::Keep { run } => {
            systems::keeper::keep(&run, std::io::stdin());
            Ok(ExitCode::SUCCESS)
        }
    };
    // What the run has started has ended with it.
    systems::keeper::dismiss();
    common::exit(end)
}
