//! Narrows finds the narrow place in a network stack.
//!
//! The command line: one file per verb. Everything of substance is in the crates below.

mod client;
mod common;
mod load_verb;
mod serve_verb;

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
    /// Drive one target, now
    Load(load_verb::Args),
    /// The reference endpoints on one port: /, /echo, /upload, /wait/MS
    Serve(serve_verb::Args),
    /// The reference client, for `narrows run`: speaks the driver contract on standard input and output
    #[command(hide = true)]
    Client,
}

fn main() -> ExitCode {
    // Load is measured in the tens of thousands of sockets; the limit is said where it matters.
    systems::machine::raise_file_limit();
    let cli = Cli::parse();
    let end = match cli.verb {
        Verb::Load(args) => load_verb::run(&args),
        Verb::Serve(args) => serve_verb::run(&args),
        Verb::Client => client::run(),
    };
    common::exit(end)
}
