//! A test: the two scenarios of a decided comparison, and the counts in which they differ.
//!
//! The systems of the saved run are made again, and get one more knob. Its values tell a library that is preloaded into them what to
//! do. So an arm is a point of that knob, and everything else is as it was. The arm without a cause has the library, too.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use inject::{Injection, LIBRARY, VARIABLE};
use lab::experiment::Figure;
use lab::findings::{Claim, FigureView};
use lab::mediation;
use lab::observation::Scenario;
use lab::plan::{Plan, Planned};
use lab::store::Store;
use systems::knob::{Kind, Knob};
use systems::machine::Limit;
use systems::manifest::Program;
use systems::{Catalog, Manifest, Role, Scratch, Value};

use super::suspect::{Cause, DOSES, ONCE, Suspect, suspects};
use super::verdicts::{Arms, Dosed, verdicts};
use crate::command::budget;
use crate::common::{self, End, INTERRUPTED};
use crate::first_use;
use crate::fleet_args::FleetArgs;
use crate::lab_args::LabArgs;
use crate::report_verb::Saved;
use crate::runs::{self, Asked, Parts, Run, Screen};

/// The knob that injects.
const KNOB: &str = "injected";

/// With fewer rounds than this, each cause has one dose: a verdict needs rounds more than it needs doses.
const ENOUGH_ROUNDS: u32 = 8;

/// How a test is carried out, and where it is saved.
pub struct How<'a> {
    /// The store of the saved run.
    pub store: &'a Path,
    /// The time that it may take.
    pub budget: Option<Duration>,
    /// Whether progress is shown in plain lines.
    pub quiet: bool,
    /// The options of the saved run that say where its systems listen.
    pub fleet: &'a FleetArgs,
    /// The limit on open files.
    pub files: Limit,
    /// What the run of the test saves of its question.
    pub asked: &'a Asked,
}

/// What is tested.
pub struct Case<'a> {
    saved: &'a Saved,
    planned: &'a Planned,
    figure: Figure,
    faster: &'a Scenario,
    slower: &'a Scenario,
    suspects: Vec<Suspect>,
    /// Those that cannot be injected into the faster one.
    impossible: Vec<Suspect>,
}

/// A test that is ready to be carried out.
struct Prepared {
    /// The systems, with the knob that injects.
    catalog: Catalog,
    plan: Plan,
    arms: Arms,
}

impl<'a> Case<'a> {
    /// The first claim of the run about two scenarios that differ in what can be injected, of the causes that are chosen.
    ///
    /// # Errors
    /// The run decides nothing, or its scenarios do not differ so.
    pub fn of(saved: &'a Saved, chosen: &[Cause]) -> anyhow::Result<Self> {
        // Nothing is counted of clients, so no claim about them is taken where servers were measured, too.
        if saved.header().plan.experiments.iter().all(|planned| planned.workload.role() == Role::Client) {
            bail!(
                "the run measures clients: reasons are tested of servers only, because causes are injected where connections are \
                 accepted"
            );
        }
        let compared =
            || saved.found.views().flat_map(|e| compared(&e).into_iter().map(move |pair| (e, pair)));
        if compared().next().is_none() {
            bail!(
                "the run decides nothing, so there is no reason to test: it needs more rounds, or its arms do not differ"
            );
        }
        let mut hopeless: Option<String> = None;
        let case = compared().find_map(|(e, (both, figure))| {
            let [faster, slower] = both.map(|at| e.estimates.get(at));
            let all = suspects(faster?, slower?, chosen);
            let (impossible, suspects): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|suspect| suspect.impossible().is_some());
            if suspects.is_empty() && hopeless.is_none() {
                hopeless = impossible.first().map(not_here);
            }
            let plan = &saved.header().plan;
            let planned = plan.experiments.iter().find(|planned| planned.name == e.shared.setup.name)?;
            let [faster, slower] = [&faster?.scenario, &slower?.scenario];
            let case = Self { saved, planned, figure, faster, slower, suspects, impossible };
            (!case.suspects.is_empty()).then_some(case)
        });
        if let (None, Some(hopeless)) = (&case, hopeless) {
            bail!("{hopeless}");
        }
        if case.is_none() && !chosen.is_empty() {
            bail!(
                "none of the causes that --cause names can be tested: the slower one has none of them, or they were not counted (see \
                 `narrows doctor`). Omit --cause to test all that differ"
            );
        }
        case.context(
            "there is nothing to test. Narrows can inject shorter reads, more system calls, more context switches and smaller \
             receive buffers. The slower one has none of these, or they were not counted (see `narrows doctor`)",
        )
    }

    /// Carries out the test with the systems of the run, and prints what became of each suspect.
    pub fn test(&self, how: &How<'_>, parts: Parts<'_>) -> End {
        self.check_versions(parts.catalog)?;
        if !parts.typed {
            let both = [&self.faster.system, &self.slower.system].map(Clone::clone);
            first_use::show_named(parts.catalog, &both.into());
        }
        let scratch = Scratch::new().context("no folder for the library that is preloaded")?;
        let library = scratch.path().join("inject.so");
        std::fs::write(&library, LIBRARY).with_context(|| format!("cannot write {}", library.display()))?;
        let Prepared { catalog, plan, arms } = self.prepare(parts.catalog, &library, how.budget)?;
        let cancel = common::cancellation()?;
        let parts = Parts { catalog: &catalog, ..parts };
        for suspect in &self.impossible {
            common::say(not_here(suspect));
        }
        let there = runs::place(&plan, &LabArgs::default().on(how.fleet), parts, how.files, &cancel, true)?;
        let Some(there) = there else {
            common::say("interrupted before the first trial");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        let store = Store::open(how.store)?;
        let run = Run::begin(store, plan, how.asked, &*there.executor, how.quiet)?;
        let Some(run) = run else { return runs::not_begun(&*there.executor) };
        let (code, saved) = run.carry_out(there, &cancel, Screen::Test)?;
        if let Some(saved) = saved.filter(|_| code == ExitCode::SUCCESS) {
            common::print(verdicts(&arms, &saved.found, saved.observations()))?;
        }
        Ok(code)
    }

    /// # Errors
    /// A name stands for another commit than in the run.
    fn check_versions(&self, catalog: &Catalog) -> anyhow::Result<()> {
        let versions = self.saved.found.experiments.iter().flat_map(|e| &e.shared.versions);
        for (system, before) in versions {
            if let Some(now) = catalog.get(system).ok().and_then(|manifest| manifest.version.as_ref())
                && before != now
            {
                bail!(
                    "{system} was {before} in the run, and is {now} now: compare them again, and ask why of that run"
                );
            }
        }
        Ok(())
    }

    /// The test that fits into the budget.
    fn prepare(
        &self,
        catalog: &Catalog,
        library: &Path,
        budget: Option<Duration>,
    ) -> anyhow::Result<Prepared> {
        let mut prepared = self.with_doses(catalog, library, &DOSES)?;
        let budget_s = budget.map_or_else(|| budget::usual_s(&prepared.plan), |budget| budget.as_secs_f64());
        prepared.plan.fill(budget_s);
        if prepared.plan.experiments.iter().any(|planned| planned.rounds < ENOUGH_ROUNDS) {
            prepared = self.with_doses(catalog, library, &[ONCE])?;
            prepared.plan.fill(budget_s);
        }
        budget::check(&prepared.plan, budget)?;
        Ok(prepared)
    }

    /// The systems with these doses of each suspect, the plan of the test, and what its scenarios are.
    fn with_doses(&self, catalog: &Catalog, library: &Path, doses: &[f64]) -> anyhow::Result<Prepared> {
        let suspects: Vec<(Suspect, Vec<(f64, Injection)>)> =
            self.suspects.iter().map(|suspect| (*suspect, suspect.doses(doses))).collect();
        let injections = suspects.iter().flat_map(|(_, doses)| doses).map(|(_, injection)| value(*injection));
        let given: Vec<Value> = injections.collect();
        let nothing = value(Injection::default());
        let values: Vec<Value> = std::iter::once(nothing.clone()).chain(given.clone()).collect();
        let mut prepared = catalog.clone();
        for system in [&self.faster.system, &self.slower.system] {
            let manifest = injected(catalog.get(system)?, library, values.clone())?;
            prepared.insert(manifest);
        }
        let test = mediation::Test {
            saved: &self.saved.header().plan,
            planned: self.planned,
            figure: self.figure,
            faster: self.faster,
            slower: self.slower,
            knob: KNOB,
            nothing: nothing.clone(),
            doses: given,
            command: prepared.get(&self.faster.system)?.program.command_line(),
        };
        let arm = |of: &Scenario, value: &Value| test.arm(of, value).map_err(anyhow::Error::msg);
        let dosed = suspects.into_iter().map(|(suspect, doses)| {
            let arms =
                doses.into_iter().map(|(dose, injection)| Ok((dose, arm(self.faster, &value(injection))?)));
            Ok(Dosed { suspect, arms: arms.collect::<anyhow::Result<_>>()? })
        });
        let arms = Arms {
            faster: arm(self.faster, &nothing)?,
            dosed: dosed.collect::<anyhow::Result<_>>()?,
            slower: arm(self.slower, &nothing)?,
        };
        let plan = test.plan(common::new_seed()).map_err(anyhow::Error::msg)?;
        Ok(Prepared { catalog: prepared, plan, arms })
    }
}

/// That a cause cannot be injected.
fn not_here(suspect: &Suspect) -> String {
    let why = suspect.impossible().unwrap_or_default();
    format!("cannot be tested here: {}. The faster one cannot be given them: {why}", suspect.words())
}

/// The value of the knob that injects this.
fn value(injection: Injection) -> Value {
    Value::Text(injection.to_string())
}

/// What the claims say to differ: each pair, the better one first, and by which figure. Where speeds are undecided, CPU time may differ.
fn compared(e: &FigureView<'_>) -> Vec<([usize; 2], Figure)> {
    let pair = |claim: &Claim| match claim {
        Claim::Knob { comparison, .. }
        | Claim::Systems { comparison, .. }
        | Claim::Cliff { comparison, .. } => Some((comparison.better_first()?, e.figure)),
        Claim::Undecided { comparison: c, .. } => {
            let cpu = e.open_cpu(c).filter(|cpu| cpu.is_certain())?;
            Some(([cpu.less, cpu.more], Figure::CpuPerUnit))
        }
        _ => None,
    };
    e.claims.iter().filter_map(pair).collect()
}

/// A system with the knob, and with the library before those that are preloaded into it already.
///
/// # Errors
/// It runs already, or it has such a knob.
fn injected(manifest: &Manifest, library: &Path, values: Vec<Value>) -> anyhow::Result<Manifest> {
    let name = &manifest.name;
    let mut manifest = manifest.clone();
    let Program::Started(start) = &mut manifest.program else {
        bail!(
            "{name} is a server that runs already: nothing can be injected into it; let `narrows try` start it with its command"
        );
    };
    let literal = |text: &str| text.replace('{', "{{").replace('}', "}}");
    let given = start.env.get("LD_PRELOAD").cloned();
    let given = given.or_else(|| std::env::var("LD_PRELOAD").ok().map(|given| literal(&given)));
    let given = given.filter(|given| !given.is_empty()).map_or_else(String::new, |given| format!(":{given}"));
    start.env.insert("LD_PRELOAD".to_owned(), literal(&library.display().to_string()) + &given);
    start.env.insert(VARIABLE.to_owned(), format!("{{{KNOB}}}"));
    let knob = Knob {
        about: "a suspected cause".to_owned(),
        workloads: manifest.workloads.clone(),
        ..Knob::new(Kind::Choice, Value::Text(Injection::default().to_string()), values)
    };
    if manifest.knobs.insert(KNOB.to_owned(), knob).is_some() {
        bail!("{name} has a knob `{KNOB}`, which tests of reasons need for themselves: give it another name");
    }
    Ok(manifest)
}
