//! What a search is about: a system with a manifest, or a command that becomes one; the knobs to search, and those that are held.

use std::path::PathBuf;
use std::slice;

use anyhow::{Context, bail};
use lab::ask::Ask;
use lab::search::{self, MOST_PAIRS, MOST_VALUES_OF_KNOB};
use systems::input::suggestion;
use systems::{Catalog, CatalogError, Knob, Manifest, Source, Value, Workload, allotment};

use super::Args;
use crate::built_in;
use crate::command::arms::{self, Typed};
use crate::command::knobs::{TypedKnob, typed};
use crate::command::pace::WINDOW;
use crate::common::{self, Usage};
use crate::requests_args::Scripted;

/// What is tuned.
pub struct Target {
    /// A catalog that has the system.
    pub catalog: Catalog,
    /// Its name there.
    pub system: String,
    /// Whether it was made of a command.
    pub is_command: bool,
    /// The current folder, in which a command and its services run.
    pub dir: PathBuf,
    pub workload: Workload,
    /// The knobs to search with their values, the base's first. At least one knob, each with several values.
    pub knobs: Vec<(String, Vec<Value>)>,
    /// The knobs that are held at a value.
    pub held: Vec<(String, Value)>,
    /// What is sent to a command.
    pub ask: Option<Ask>,
    /// The requests of a file, if they are sent.
    pub scripted: Option<Scripted>,
}

impl Target {
    /// Reads the command line.
    ///
    /// # Errors
    /// The first mistake, with what to do.
    pub fn read(args: &Args) -> anyhow::Result<Self> {
        let text = args.target.as_str();
        if arms::is_url(text) {
            bail!(Usage(format!(
                "{text} runs already, and a search starts its target again for each setting: give the command that starts it, \
                 or set servers beside each other with `narrows try`"
            )));
        }
        let dir = std::env::current_dir().context("cannot find the current folder")?;
        // No name of a system has one of these.
        let target = match text.contains(['{', ' ', '/']) {
            true => Self::of_command(args, dir)?,
            false => Self::of_system(args, dir)?,
        };
        if let Some((knob, _)) = target.held.iter().find(|(held, _)| target.searches(held)) {
            bail!(Usage(format!(
                "{knob} is searched with --knob and held with --set: leave one of them out"
            )));
        }
        if let Some((knob, values)) =
            target.knobs.iter().find(|(_, values)| values.len() > MOST_VALUES_OF_KNOB)
        {
            bail!(Usage(format!(
                "--knob {knob} has {} values, and at most {MOST_VALUES_OF_KNOB} of a knob are searched, because a search weighs \
                 each pair of values of two knobs: a range with a step has fewer, such as 1..1000*2 or 1..1000+10",
                values.len()
            )));
        }
        let pairs = search::pairs(target.knobs.iter().map(|(_, values)| values.len()));
        if pairs > MOST_PAIRS {
            bail!(Usage(format!(
                "the knobs have {pairs} pairs of values, and a search weighs at most {MOST_PAIRS}: search fewer knobs, or \
                 ranges with a step"
            )));
        }
        Ok(target)
    }

    fn searches(&self, knob: &str) -> bool {
        self.knobs.iter().any(|(known, _)| known == knob)
    }

    /// How many requests arrive in a second. None if they follow each other.
    pub fn rate(&self) -> Option<f64> {
        let rate = self.held.iter().find(|(knob, _)| knob == "rate").map(|(_, value)| value);
        rate.and_then(|value| match value {
            Value::Integer(per_s) if *per_s > 0 => Some(*per_s as f64),
            _ => None,
        })
    }

    fn of_system(args: &Args, dir: PathBuf) -> anyhow::Result<Self> {
        let catalog = Catalog::load_all(&built_in::homes()?);
        let manifest = catalog.get(&args.target).map_err(|error| match error {
            CatalogError::Unknown { name, help } => {
                let help = format!(
                    "a command has a space, a slash or a placeholder, such as './{name} -w {{w}} --port {{port}}'; for a system: \
                     {help}"
                );
                CatalogError::Unknown { name, help }
            }
            other => other,
        })?;
        let name = &args.target;
        if manifest.attached().is_some() {
            bail!(Usage(format!(
                "{name} is started by you, and a search starts its target again for each setting: give the command that starts it"
            )));
        }
        if let Some((option, why)) = args.command.of_commands_only() {
            bail!(Usage(format!("{option} is for commands, and {name} is a system with a manifest: {why}")));
        }
        let workload = args.workload_of(manifest)?;
        args.command.check(workload, &[], args.duration.unwrap_or(WINDOW))?;
        let given = args.command.traffic().given();
        let given = given.into_iter().map(|(_, knob, value)| (knob, value)).collect();
        let held = args.held(manifest, workload, given)?;
        let knobs = args.searched(manifest, workload, &held)?;
        let system = manifest.name.clone();
        Ok(Self { catalog, system, is_command: false, dir, workload, knobs, held, ask: None, scripted: None })
    }

    fn of_command(args: &Args, dir: PathBuf) -> anyhow::Result<Self> {
        let texts = slice::from_ref(&args.target);
        let workload = args.workload_of_command()?;
        args.command.check(workload, texts, args.duration.unwrap_or(WINDOW))?;
        let scripted = args.command.script()?;
        let ask = args.command.ask(workload, texts, scripted.as_ref(), false)?;
        let arms = arms::read(Typed { args: &args.command, texts, names: &[], workload, dir: &dir }, None)?;
        let mut catalog = Catalog::new(&dir);
        let manifest = arms.systems.into_iter().next().context("no command")?;
        for (knob, _) in &arms.knobs {
            refuse_of_work(workload, knob)?;
        }
        let mut fixed = args.command.held(workload, args.command.traffic().rate.map(|(rate, _)| rate));
        if manifest.speaks(true) {
            fixed.extend(args.command.of_scheme(true)?);
        }
        let held = args.held(&manifest, workload, fixed)?;
        let mut knobs = arms.knobs;
        knobs.retain(|(_, values)| values.len() > 1);
        if knobs.is_empty() {
            bail!(Usage(
                "a search needs a knob with two values or more, such as {w} in the command and --knob w=1,2,4 or w=1..16".to_owned()
            ));
        }
        let system = manifest.name.clone();
        catalog.insert(manifest);
        Ok(Self { catalog, system, is_command: true, dir, workload, knobs, held, ask, scripted })
    }
}

impl Args {
    /// The workload that is asked for, or the first that the system does.
    fn workload_of(&self, manifest: &Manifest) -> anyhow::Result<Workload> {
        let Some(asked) = &self.workload else {
            return manifest.workloads.first().copied().context("the system does no work");
        };
        let found = manifest.workloads.iter().find(|workload| workload.name() == asked);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = manifest.workloads.iter().map(|workload| workload.name()).collect();
            Usage(format!("{} does not do `{asked}`: it does {}", self.target, known.join(", "))).into()
        })
    }

    /// The work of a command, whose answers no manifest promises.
    fn workload_of_command(&self) -> anyhow::Result<Workload> {
        match self.workload.as_deref() {
            None => Ok(self.command.workload(slice::from_ref(&self.target))),
            Some("requests") if !self.command.sent.frames => Ok(Workload::Requests),
            Some("frames") => Ok(Workload::Frames),
            Some(other) => bail!(Usage(format!(
                "--workload {other}: a command does requests, or frames with --frames; a system with a manifest can do more: \
                 `narrows init` shows how to write one"
            ))),
        }
    }

    /// The knobs of the system to search, its defaults first: those of `--knob`, or all that are settings.
    fn searched(
        &self,
        manifest: &Manifest,
        workload: Workload,
        held: &[(String, Value)],
    ) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
        let own = || manifest.knobs_in(workload).filter(|(name, _)| is_setting(workload, name));
        let of_all = || allotment::NAMES.into_iter().filter_map(|name| Some((name, allotment::knob(name)?)));
        let known = |name: &str| own().chain(of_all()).find(|(known, _)| *known == name).map(|(_, k)| k);
        let mut knobs = Vec::new();
        for TypedKnob { source, name, values } in typed(&self.command, known).map_err(common::of_usage)? {
            refuse_of_work(workload, &name)?;
            let Some(knob) = known(&name) else {
                let names: Vec<&str> = own().map(|(name, _)| name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let message = format!("{} has no knob `{name}`; it has: {names}", self.target);
                let all = own().chain(of_all()).map(|(name, _)| name);
                return Err(common::of_usage(source.error(0..name.len(), message, suggestion(&name, all))));
            };
            knobs.push((name, with_default(knob, values)));
        }
        if knobs.is_empty() {
            // A knob that sets the amount of work is no setting: less work is always faster.
            let settings = own().filter(|(name, k)| !k.amount && held.iter().all(|(held, _)| held != name));
            knobs = settings.map(|(n, k)| (n.to_owned(), with_default(k, k.values.clone()))).collect();
        }
        knobs.retain(|(_, values)| values.len() > 1);
        if knobs.is_empty() {
            bail!(Usage(format!(
                "{} has no knob with two values: give one with --knob NAME=VALUES",
                self.target
            )));
        }
        Ok(knobs)
    }

    /// The knobs that are held: those in `fixed`, which are defaults or other options, and those of `--set` and `--size`.
    fn held(
        &self,
        manifest: &Manifest,
        workload: Workload,
        fixed: Vec<(&'static str, Value)>,
    ) -> anyhow::Result<Vec<(String, Value)>> {
        let given = self.command.traffic().given();
        let known = |name: &str| manifest.knob(workload, name);
        let names = || manifest.knobs_in(workload).map(|(name, _)| name).chain(allotment::NAMES);
        let mut held: Vec<(String, Value)> = Vec::new();
        for (name, value) in fixed {
            let Some(knob) = known(name) else {
                let names = names().collect::<Vec<_>>().join(", ");
                bail!(Usage(format!(
                    "{workload} has no knob `{name}`, which an option sets; hold one of these with --set: {names}"
                )));
            };
            let value = knob.check(&value).map_err(|why| Usage(format!("{name}: {why}")))?;
            held.push((name.to_owned(), value));
        }
        let mut said: Vec<&str> = given.iter().map(|(_, knob, _)| *knob).collect();
        for (source, name, text) in self.sets()? {
            let whole = 0..source.text.len();
            let Some(knob) = known(name) else {
                let message = format!("neither {workload} nor the target has a knob `{name}`");
                return Err(common::of_usage(source.error(whole, message, suggestion(name, names()))));
            };
            if said.contains(&name) {
                let message = format!("`{name}` is set twice");
                return Err(common::of_usage(source.error(whole, message, "set it with one option")));
            }
            said.push(name);
            let value = one_value(knob, &source, text)?;
            held.retain(|(known, _)| known != name);
            held.push((name.to_owned(), value));
        }
        Ok(held)
    }

    /// The knobs that `--size` and `--set` hold: the option's text, the knob and its value.
    fn sets(&self) -> anyhow::Result<Vec<(Source, &str, &str)>> {
        let size = self.size.iter().map(|size| (Source::new("--size", size.as_str()), "size", size.as_str()));
        let mut sets: Vec<(Source, &str, &str)> = size.collect();
        for text in &self.set {
            let source = Source::new("--set", text.as_str());
            match text.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                    sets.push((source, name.trim(), value.trim()));
                }
                _ => {
                    let help = "write NAME=VALUE, such as --set concurrency=8";
                    let error = source.error(0..text.len(), "not a knob with its value", help);
                    return Err(common::of_usage(error));
                }
            }
        }
        Ok(sets)
    }
}

/// The value that a knob is held at.
fn one_value(knob: &Knob, source: &Source, text: &str) -> anyhow::Result<Value> {
    const SEVERAL: &str =
        "several values: a search holds this knob fixed, because every setting must do the same work";
    let refused = |why: String| {
        let (message, remedy) = match text.contains(',') || text.contains("..") {
            true => (SEVERAL.to_owned(), "write one value, or compare several with `narrows run`; "),
            false => (why, ""),
        };
        source.error(0..source.text.len(), message, format!("{remedy}it is: {}", knob.about))
    };
    knob.parse(text).map_err(|why| common::of_usage(refused(why)))
}

/// Whether a knob sets a system up. The others say what work is done.
fn is_setting(workload: Workload, knob: &str) -> bool {
    workload.knob(knob).is_none() || workload.about().settings.contains(&knob)
}

/// Refuses to search for the best value of a knob that says what work is done.
fn refuse_of_work(workload: Workload, knob: &str) -> Result<(), Usage> {
    match is_setting(workload, knob) {
        true => Ok(()),
        false => Err(Usage(format!(
            "--knob {knob}: this knob says what work is done, and a workload is not a setting: hold it with --set {knob}=VALUE"
        ))),
    }
}

/// Different values, the default first.
fn with_default(knob: &Knob, values: Vec<Value>) -> Vec<Value> {
    let mut all = vec![knob.default.clone()];
    all.extend(values.into_iter().filter(|value| *value != knob.default));
    all
}
