//! `narrows compare`: compares two runs, two scenarios, or two reports in files.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use lab::compare::{Chosen, Matched, RunComparison, Selection, Side, compare};
use lab::findings::{Findings, findings};
use lab::store::Store;
use report::{Case, Grade, Judgement};
use serde::Deserialize;

use crate::common::{self, End, Usage};
use crate::condition::{Condition, FAILED, SUITE, say_failed};
use crate::stores::StoreArg;

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
    /// Workflow commands of GitHub Actions: an annotation for each verdict, or each condition of --fail-if.
    Github,
    /// JUnit's XML: a test for each verdict, or each condition of --fail-if.
    Junit,
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
    /// Exit with code 3 if a scenario of B certainly meets this condition, such as `throughput<0.97` or `cpu>1.03`, or if
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
    store: StoreArg,
}

/// Compares and prints. A scenario that cannot be judged does not pass `--fail-if`, because its server may no longer
/// start.
pub fn run(args: &Args) -> End {
    let parse = |text: &String| match Path::new(text).is_file() {
        true => Ok(Side { run: text.clone(), selection: Selection::default() }),
        false => text.parse::<Side>().map_err(Usage),
    };
    let (left, right) = (parse(&args.a)?, parse(&args.b)?);
    let conditions = Condition::all(&args.fail_if).map_err(Usage)?;
    if let Some(absolute) = conditions.iter().find(|condition| !condition.needs_baseline()) {
        bail!(Usage(format!(
            "--fail-if {}: two runs are compared by their ratios: write one, such as p99>1.1",
            absolute.text
        )));
    }
    let (a, b) = (choose(&args.a, left, &args.store)?, choose(&args.b, right, &args.store)?);
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
    let absent = conditions.iter().find(|c| !found.matched.iter().any(|m| c.is_about(m.figure)));
    if let Some(condition) = absent {
        bail!(Usage(format!("--fail-if {}: the runs do not have this figure in common", condition.text)));
    }
    let cases = judged(&conditions, &found);
    common::print(&text(args.format, &found, &cases))?;
    let failed = say_failed(&cases);
    if cases.iter().any(|case| case.grade == Grade::Unjudged) {
        common::say(
            "a scenario that cannot be judged does not pass --fail-if: select others with RUN:EXPERIMENT/SYSTEM, or measure again",
        );
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The comparison in a format. `cases` are those of conditions; without any, the verdicts decide.
fn text(format: Format, found: &RunComparison, cases: &[Case]) -> String {
    let judgement = || match Judgement::of_comparison(found) {
        verdicts if cases.is_empty() => verdicts,
        verdicts => verdicts.decided_by(cases.to_vec()),
    };
    match format {
        Format::Text => report::comparison_text(found, common::width(), common::colour()),
        Format::Markdown => report::comparison_markdown(found),
        Format::Json => report::comparison_json(found),
        Format::Github => report::github(&judgement()),
        Format::Junit => report::junit(&judgement()),
    }
}

/// A case for each condition and scenario, and then one for each scenario that no condition can be asked of. Without conditions
/// there is none.
fn judged(conditions: &[Condition], found: &RunComparison) -> Vec<Case> {
    if conditions.is_empty() {
        return Vec::new();
    }
    let of = |condition: &Condition| {
        let about = found.matched.iter().filter(|m| m.ratio.is_some() && condition.is_about(m.figure));
        let case = |m: &Matched| condition.case(&format!("{} {}", m.experiment, m.b), m.figure, m.ratio, m.p);
        about.map(case).collect::<Vec<Case>>()
    };
    let unjudged = report::unjudged(found).into_iter().map(|words| Case {
        suite: SUITE.to_owned(),
        name: words.clone(),
        grade: Grade::Unjudged,
        words,
    });
    conditions.iter().flat_map(of).chain(unjudged).collect()
}

/// Reads one side: a saved run, or a report in a file.
fn choose(name: &str, side: Side, store: &StoreArg) -> anyhow::Result<Chosen> {
    let path = Path::new(&side.run);
    let file = path.extension().is_some_and(|extension| extension == "json") || path.is_file();
    let (found, environment, identity) = if file {
        let Report { experiments, environment } = read(path)?;
        (Findings { experiments }, environment, format!("file {}", path.display()))
    } else {
        let store = Store::read(&store.newest()?)?;
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
    let bytes = common::read(path)?;
    if bytes.starts_with(b"SQLite format 3\0") {
        let path = path.display();
        bail!(
            "{path} is a store: name two of its runs, as `narrows compare previous last --store {path}`; to compare with another \
             store, `narrows report RUN --store {path} --format json -o FILE` writes a run to a file"
        );
    }
    let value: serde_json::Value = serde_json::from_slice(&bytes).with_context(form)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
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
