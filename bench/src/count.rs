//! Counts the instructions that a generator needs in user space, path by path, under callgrind.
//!
//! paths -> callgrind at three sizes -> differences, which leave out the start -> COUNTS.md
//!
//! Unlike times, such counts hardly depend on the machine. Callgrind sees neither the kernel nor the kernel's page in user
//! space (vDSO) that reads the clock, so clock readings are counted beside the instructions.

mod callgrind;
mod options;
mod paths;
mod serve;
mod table;

use std::fs;
use std::path::Path as File;

use anyhow::Context;

use crate::compare::under_test::Server;
use callgrind::Count;
pub use options::Args;
use paths::{PATHS, Path, Program, Servers};
use serve::Serve;
use table::Row;

/// Counts the selected paths, prints them, and writes COUNTS.md.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let tool = callgrind::version()?;
    let (after, before) = (args.narrows()?, args.before.as_deref());
    let server = Server::start(args.server_core)?;
    let serve = Serve::start(&after, args.server_core)?;
    let servers = Servers { usual: &server, serve: &serve };
    let scratch = tempfile::tempdir()?;
    let mut rows = Vec::new();
    let wanted: Vec<&Path> = PATHS.iter().filter(|path| args.wants(path.name)).collect();
    anyhow::ensure!(!wanted.is_empty(), "no path has such a name: see bench/src/count/paths.rs");
    for path in &wanted {
        let cost = |narrows: &File| cost(path, narrows, &servers, scratch.path(), args.quick);
        let row = match (path.program, before) {
            // A floor is no part of Narrows, and has no earlier version.
            (Program::Narrows | Program::Secured | Program::Http2, Some(before)) => {
                Row { path, before: Some(cost(before)?), now: cost(&after)? }
            }
            _ => Row { path, before: None, now: cost(&after)? },
        };
        eprintln!("{}", row.line());
        rows.push(row);
    }
    let memory = args.wants("http2").then(|| serve::memory(&after, &serve)).transpose()?;
    let text = table::text(&rows, &tool, before.is_some(), memory);
    print!("{text}");
    // A part of the table, or an inexact one, must not replace it.
    if wanted.len() == PATHS.len() && !args.quick {
        fs::create_dir_all(&args.out)?;
        fs::write(args.out.join("COUNTS.md"), text)?;
    }
    Ok(())
}

/// What one operation costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    pub instructions: f64,
    /// Readings of the clock.
    pub clocks: f64,
    /// The difference between the first and the second step, as a share of the cost. It is small if the cost is linear.
    pub bend: f64,
}

impl Cost {
    /// The cost of an operation from the counts of three equally spaced numbers of operations, `step` apart.
    fn of(counts: [Count; 3], step: f64) -> Self {
        let per = |figure: fn(&Count) -> u64, from: usize, to: usize| {
            (figure(&counts[to]) as f64 - figure(&counts[from]) as f64) / (step * (to - from) as f64)
        };
        let instructions = |count: &Count| count.instructions;
        let whole = per(instructions, 0, 2);
        let bend = (per(instructions, 1, 2) - per(instructions, 0, 1)).abs() / whole;
        Self { instructions: whole, clocks: per(|count| count.clocks, 0, 2), bend }
    }
}

/// Counts one path at three sizes.
fn cost(
    path: &Path,
    narrows: &File,
    servers: &Servers<'_>,
    scratch: &File,
    quick: bool,
) -> anyhow::Result<Cost> {
    let step = if quick { path.step.div_ceil(10) } else { path.step };
    let mut counts = [Count::default(); 3];
    for (count, times) in counts.iter_mut().zip(1..) {
        let words = path.command(narrows, servers, step * times)?;
        *count = callgrind::count(&words, &scratch.join("callgrind")).with_context(|| path.name)?;
    }
    Ok(Cost::of(counts, step as f64 * path.unit.per_step()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_no_part_of_the_cost_of_an_operation() {
        let count = |instructions, clocks| Count { instructions, clocks };
        let cost = Cost::of([count(1_000_100, 30), count(1_000_300, 40), count(1_000_500, 50)], 10.0);
        assert_eq!(cost, Cost { instructions: 20.0, clocks: 1.0, bend: 0.0 });
        let bent = Cost::of([count(0, 0), count(90, 0), count(200, 0)], 10.0);
        assert_eq!((bent.instructions, bent.bend), (10.0, 0.2));
    }
}
