//! `narrows compare`: compares two runs, two scenarios, or two reports in files.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use lab::compare::{
    Chosen, History, Incomparable, MOST_RUNS, RunComparison, Selection, Side, compare, gated,
    may_ask_the_same,
};
use lab::condition::Condition;
use lab::findings::{Findings, findings};
use lab::store::{RunHeader, RunId, Store, StoreError};
use report::{Case, Grade, Judgement, SUITE};
use serde::Deserialize;

use crate::common::{self, End, Usage};
use crate::condition::{self, Inconclusive, conclude};
use crate::given;
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
    /// it cannot be judged because of errors, a missing figure, fewer than 3 rounds or a missing counterpart. The code is 4 if
    /// a condition is inconclusive, as all are while fewer than 5 earlier runs show how much runs differ
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    fail_if: Vec<String>,
    /// What becomes of a condition that is neither certainly met nor excluded, instead of exit code 4
    #[arg(long, value_enum, value_name = "END", requires = "fail_if")]
    inconclusive: Option<Inconclusive>,
    /// Judge by the rounds of the two runs alone. On another occasion both may differ by more than these intervals say
    #[arg(long)]
    within_run: bool,
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
    let conditions = condition::conditions(&args.fail_if).map_err(Usage)?;
    if let Some(absolute) = conditions.iter().find(|condition| !condition.needs_baseline()) {
        bail!(Usage(format!(
            "--fail-if {}: two runs are compared by their ratios: write one, such as p99>1.1",
            absolute.text
        )));
    }
    let ((a, of_a), (b, of_b)) = (choose(&args.a, left, &args.store)?, choose(&args.b, right, &args.store)?);
    if a.identity == b.identity && a.selection == b.selection {
        return Err(Usage(format!(
            "{} and {} are the same: name two runs, or two scenarios such as '{}:EXPERIMENT/SYSTEM KNOB=VALUE'",
            args.a, args.b, args.a
        ))
        .into());
    }
    let history = match args.within_run || a.identity == b.identity {
        true => None,
        false => Some(history(&args.store, (&a, of_a), (&b, of_b))?),
    };
    let found = compare(&a, &b, history.as_ref());
    refuse(args, &conditions, &found)?;
    let mut judgement = Judgement::of_comparison(&found);
    let cases = judged(&conditions, (&a, &b), &found, history.as_ref());
    if !cases.is_empty() {
        judgement = judgement.decided_by(cases);
    }
    if args.inconclusive == Some(Inconclusive::Fail) {
        judgement.fail_inconclusive();
    }
    common::print(text(args.format, &found, &judgement))?;
    if conditions.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let remedy = match found.matched.iter().any(|m| m.because == Some(Incomparable::FewRuns)) {
        true => "measure both in one run, as `narrows try` does",
        false => "more rounds in both runs may decide it",
    };
    let code = conclude(&judgement.cases, args.inconclusive, remedy);
    if judgement.cases.iter().any(|case| case.grade == Grade::Unjudged) {
        common::say(
            "a scenario that cannot be judged does not pass --fail-if: select others with RUN:EXPERIMENT/SYSTEM, or measure again",
        );
    }
    Ok(code)
}

/// Refuses a comparison that says nothing.
fn refuse(args: &Args, conditions: &[Condition], found: &RunComparison) -> anyhow::Result<()> {
    if found.matched.is_empty() && found.unmatched.is_empty() {
        bail!(
            "{} and {} measured one server each, and none beside it, so nothing tells whether the server or the machine has changed: \
             `narrows try` measures two servers, or two commits (--git), in the same rounds",
            args.a,
            args.b
        );
    }
    if found.matched.is_empty() {
        bail!("{} and {} have no scenario in common: {}", args.a, args.b, report::alone(found));
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
    Ok(())
}

/// The comparison in a format.
fn text(format: Format, found: &RunComparison, judgement: &Judgement) -> String {
    match format {
        Format::Text => report::comparison_text(found, common::width(), common::colour()),
        Format::Markdown => report::comparison_markdown(found),
        Format::Json => report::comparison_json(found),
        Format::Github => report::github(judgement),
        Format::Junit => report::junit(judgement),
    }
}

/// A case for each condition and scenario, and then one for each scenario that no condition can be asked of. Without conditions
/// there is none.
fn judged(
    conditions: &[Condition],
    (a, b): (&Chosen, &Chosen),
    found: &RunComparison,
    history: Option<&History>,
) -> Vec<Case> {
    if conditions.is_empty() {
        return Vec::new();
    }
    let tested = gated(a, b, conditions, history).into_iter().filter_map(|(condition, pair, tested)| {
        let (condition, m) = (conditions.get(condition)?, found.matched.get(pair)?);
        let case = report::condition(condition, &format!("{} {}", m.experiment, m.b), m.figure, &tested);
        Some(match report::few_runs(m) {
            Some(why) => Case { words: format!("{}: {why}", case.words), ..case },
            None => case,
        })
    });
    let unjudged = report::unjudged(found).into_iter().map(|words| Case {
        suite: SUITE.to_owned(),
        name: words.clone(),
        grade: Grade::Unjudged,
        words,
    });
    tested.chain(unjudged).collect()
}

/// Reads the earlier runs that may show how much runs differ. A side that is a file counts as the earlier one. A run that is
/// damaged counts as none, because nobody asked for it.
fn history(
    store: &StoreArg,
    (a, of_a): (&Chosen, Option<RunId>),
    (b, of_b): (&Chosen, Option<RunId>),
) -> anyhow::Result<History> {
    let first_is_later = of_a > of_b;
    let mut history = History { runs: Vec::new(), first_is_later };
    let store = match Store::read(&store.newest()?) {
        // Two files are compared where nothing was measured.
        Err(StoreError::Missing { .. }) => return Ok(history),
        store => store?,
    };
    let fits = |header: &RunHeader| {
        [a, b].iter().any(|side| may_ask_the_same(&header.plan, &header.environment, side))
    };
    let earlier = store.readable(store.before(of_a.max(of_b))?, fits);
    history.runs.extend(earlier.take(MOST_RUNS).map(|(run, header, observations)| Chosen {
        name: run.to_string(),
        findings: findings(&header.plan, &observations),
        environment: header.environment,
        selection: Selection::default(),
        identity: identity(run),
    }));
    Ok(history)
}

/// What identifies a run of the store.
fn identity(run: RunId) -> String {
    format!("run {run}")
}

/// Reads one side: a saved run with its number, or a report in a file.
fn choose(name: &str, side: Side, store: &StoreArg) -> anyhow::Result<(Chosen, Option<RunId>)> {
    let path = Path::new(&side.run);
    let file = path.extension().is_some_and(|extension| extension == "json") || path.is_file();
    let (found, environment, identity, run) = if file {
        let Report { experiments, environment } = read(path)?;
        let found = Findings { experiments, gates: Vec::new() };
        (found, environment, format!("file {}", path.display()), None)
    } else {
        let store = Store::read(&store.newest()?)?;
        let run = store.resolve(&side.run)?;
        let header = store.header(run)?;
        let found = findings(&header.plan, &store.observations(run)?);
        (found, header.environment, identity(run), Some(run))
    };
    side.selection.check(&found).map_err(|error| anyhow!("{name}: {error}"))?;
    let chosen =
        Chosen { name: name.to_owned(), findings: found, environment, selection: side.selection, identity };
    Ok((chosen, run))
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
    let bytes = given::read(path)?;
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
