//! Narrows finds the narrow place in a network stack.
//!
//! The command line: one file per verb. Everything of substance is in the crates below.

mod client;
mod common;
mod compare_verb;
mod doctor_verb;
mod load_verb;
mod published_verb;
mod report_verb;
mod run_verb;
mod serve_verb;
mod systems_verb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A laboratory for network performance: which knob or library is the narrow place, by how much, and why.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The lab: experiments, each system restarted at each point of its knobs
    Run(run_verb::Args),
    /// Drive one target, now
    Load(load_verb::Args),
    /// The reference endpoints on one port: /, /echo, /upload, /wait/MS
    Serve(serve_verb::Args),
    /// What runs here, at which version; what is missing, and how to get it
    Systems(systems_verb::Args),
    /// A saved run, printed again; without a run, the list of runs
    Report(report_verb::Args),
    /// The published tables that Narrows grew from, and what their figures hide
    Published(published_verb::Args),
    /// Two runs, or two scenarios, compared: ratio, interval, verdict; an exit code for CI
    Compare(compare_verb::Args),
    /// Is this machine fit to measure on, and what to change
    Doctor(doctor_verb::Args),
    /// The reference client, for `narrows run`: speaks the driver contract on standard input and output
    #[command(hide = true)]
    Client,
}

fn main() -> ExitCode {
    // Load is measured in the tens of thousands of sockets; the limit is said where it matters.
    let files = systems::machine::raise_file_limit();
    let cli = Cli::parse();
    let end = match cli.verb {
        Verb::Run(args) => run_verb::run(&args, files),
        Verb::Systems(args) => systems_verb::run(&args),
        Verb::Report(args) => report_verb::run(&args),
        Verb::Published(args) => published_verb::run(&args),
        Verb::Compare(args) => compare_verb::run(&args),
        Verb::Load(args) => load_verb::run(&args),
        Verb::Serve(args) => serve_verb::run(&args),
        Verb::Doctor(args) => doctor_verb::run(&args, files),
        Verb::Client => client::run(),
    };
    common::exit(end)
}
