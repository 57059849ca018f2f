//! `narrows compare`: compares two runs, two scenarios, or two reports in files.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use lab::compare::{Chosen, RunComparison, Selection, Side, compare};
use lab::findings::{Findings, findings};
use lab::store::Store;
use report::number::exact_times;
use serde::Deserialize;
use stats::LEVEL;

use crate::common::{self, End, Usage};

/// The format of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table for the terminal.
    #[default]
    Text,
    /// A table to paste into a README or a pull request.
    Markdown,
    /// One JSON object, with a schema version.
    Json,
}

/// `narrows compare`
#[derive(clap::Args)]
pub struct Args {
    /// The baseline: the number of a run, `last`, `previous`, or a file from `narrows report --format json`.
    /// A part of a run: `last:frames`, `'last:frames/erlang-packet framing=4'`
    #[arg(value_name = "A")]
    a: String,
    /// The run to compare with the baseline, in the same form
    #[arg(value_name = "B")]
    b: String,
    /// Exit with code 3 if a scenario of B certainly meets this condition, such as `throughput<0.97` or `time>1.1`, or if
    /// it cannot be judged because of errors, a missing figure, fewer than 3 rounds or a missing counterpart
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    fail_if: Vec<String>,
    /// Compare even if different processors, cores or timings make the comparison meaningless
    #[arg(long)]
    force: bool,
    /// The format of the comparison
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    store: common::StoreArg,
}

/// The exit code if a condition of `--fail-if` holds, or if a scenario cannot be judged.
const FAILED: u8 = 3;

/// Compares and prints. A scenario that cannot be judged does not pass `--fail-if`, because its server may no longer
/// start.
pub fn run(args: &Args) -> End {
    let parse = |text: &String| match Path::new(text).is_file() {
        true => Ok(Side { run: text.clone(), selection: Selection::default() }),
        false => text.parse::<Side>().map_err(Usage),
    };
    let (left, right) = (parse(&args.a)?, parse(&args.b)?);
    let conditions = args.fail_if.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(Usage)?;
    let (a, b) = (choose(&args.a, left, &args.store.path)?, choose(&args.b, right, &args.store.path)?);
    if a.identity == b.identity && a.selection == b.selection {
        return Err(Usage(format!(
            "{} and {} are the same: name two runs, or two scenarios such as '{}:EXPERIMENT/SYSTEM KNOB=VALUE'",
            args.a, args.b, args.a
        ))
        .into());
    }
    let found = compare(&a, &b);
    if found.matched.is_empty() {
        bail!("{} and {} have no scenario in common: {}", args.a, args.b, report::alone(&found));
    }
    if found.is_meaningless() && !args.force {
        let grave = found.differences.iter().filter(|difference| difference.grave);
        let words: Vec<String> = grave.map(|d| format!("{}: {} and {}", d.what, d.a, d.b)).collect();
        bail!("the comparison would be meaningless ({}); --force compares anyway", words.join("; "));
    }
    let text = match args.format {
        Format::Text => report::comparison_text(&found, common::width(), common::colour()),
        Format::Markdown => report::comparison_markdown(&found),
        Format::Json => report::comparison_json(&found),
    };
    common::print(&text)?;
    let failed: Vec<String> = conditions.iter().flat_map(|condition| condition.broken_by(&found)).collect();
    failed.iter().for_each(common::say);
    let unjudged = if conditions.is_empty() { Vec::new() } else { report::unjudged(&found) };
    unjudged.iter().for_each(|scenario| common::say(format_args!("cannot be judged: {scenario}")));
    if !unjudged.is_empty() {
        common::say(
            "a scenario that cannot be judged does not pass --fail-if: select others with RUN:EXPERIMENT/SYSTEM, or measure again",
        );
    }
    Ok(if failed.is_empty() && unjudged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Reads one side: a saved run, or a report in a file.
fn choose(name: &str, side: Side, store: &Path) -> anyhow::Result<Chosen> {
    let path = Path::new(&side.run);
    let file = path.extension().is_some_and(|extension| extension == "json") || path.is_file();
    let (found, environment, identity) = if file {
        let Report { experiments, environment } = read(path)?;
        (Findings { experiments }, environment, format!("file {}", path.display()))
    } else {
        let store = Store::read(store)?;
        let run = store.resolve(&side.run)?;
        let header = store.header(run)?;
        let found = findings(&header.plan, &store.observations(run)?);
        (found, header.environment, format!("run {run}"))
    };
    side.selection.check(&found).map_err(|error| anyhow!("{name}: {error}"))?;
    Ok(Chosen { name: name.to_owned(), findings: found, environment, selection: side.selection, identity })
}

/// The parts of a JSON report that a comparison needs.
#[derive(Deserialize)]
struct Report {
    experiments: Vec<lab::findings::ExperimentFindings>,
    #[serde(default)]
    environment: serde_json::Value,
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let form = || {
        format!("{} is not a report: `narrows report RUN --format json -o FILE` writes one", path.display())
    };
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.starts_with(b"SQLite format 3\0") {
        let path = path.display();
        bail!(
            "{path} is a store: name two of its runs, as `narrows compare previous last --store {path}`; to compare with another \
             store, `narrows report RUN --store {path} --format json -o FILE` writes a run to a file"
        );
    }
    let value: serde_json::Value = serde_json::from_slice(&bytes).with_context(form)?;
    match value["schema"].as_u64() {
        Some(schema) if schema == u64::from(report::SCHEMA) => {
            serde_json::from_value(value).with_context(form)
        }
        Some(other) => bail!(
            "{} has schema {other}, but this Narrows reads schema {}: write the report again with this version",
            path.display(),
            report::SCHEMA
        ),
        None => bail!(form()),
    }
}

/// The ratio that a condition limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    /// The ratio of operations per second.
    Throughput,
    /// The ratio of the time per operation.
    Time,
}

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq)]
struct Condition {
    text: String,
    metric: Metric,
    below: bool,
    bound: f64,
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |problem: &str| {
            Err(format!("--fail-if {text:?}: {problem}; write throughput<0.97 or time>1.1, ratios of B to A"))
        };
        let text = text.trim();
        let Some(sign) = text.find(['<', '>']) else { return wrong("< or > is missing") };
        let metric = match text[..sign].trim() {
            "throughput" => Metric::Throughput,
            "time" => Metric::Time,
            _ => return wrong("it must begin with `throughput` or `time`"),
        };
        match text[sign + 1..].trim().parse::<f64>() {
            Ok(bound) if bound.is_finite() && bound > 0.0 => {
                Ok(Self { text: text.to_owned(), metric, below: &text[sign..=sign] == "<", bound })
            }
            _ => wrong("the bound must be a number above 0"),
        }
    }

    /// A line for each scenario that certainly meets the condition: its whole interval is beyond the bound.
    fn broken_by(&self, found: &RunComparison) -> Vec<String> {
        let broken = found.matched.iter().filter(|m| {
            let Some(ratio) = m.ratio else { return false };
            let ratio = if self.metric == Metric::Time { ratio.inverse() } else { ratio };
            let beyond = if self.below { ratio.high < self.bound } else { ratio.low > self.bound };
            // A bound on the other side of 1 does not need a significant difference.
            let trivial = if self.below { self.bound > 1.0 } else { self.bound < 1.0 };
            beyond && (trivial || m.p.is_some_and(|p| p <= LEVEL))
        });
        broken
            .map(|m| {
                let ratio = m.ratio.map_or(f64::NAN, |r| r.estimate);
                format!("failed: {} {}: {} as fast: {}", m.experiment, m.b, exact_times(ratio), self.text)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_as_users_write_them() {
        let good = Condition::parse(" throughput < 0.97 ").unwrap();
        assert_eq!((good.metric, good.below, good.bound), (Metric::Throughput, true, 0.97));
        assert_eq!(Condition::parse("time>1.1").unwrap().metric, Metric::Time);
        for bad in ["", "throughput", "throughput<", "throughput<x", "speed<1", "time>-1", "time>inf", "<0.9"]
        {
            assert!(Condition::parse(bad).is_err(), "{bad}");
        }
    }
}
