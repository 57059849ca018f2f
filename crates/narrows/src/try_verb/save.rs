//! `--save`: writes the arms as systems and the comparison as an experiment, so that `narrows run` can repeat it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lab::ask::{Ask, Demand};
use lab::plan::{Plan, Planned};
use systems::manifest::{Manifest, Program};
use systems::{Knob, Value};
use toml::{Table, Value as Toml};

use crate::command::arms::Arms;
use crate::common::{AtomicFile, Usage};
use crate::tls_args::TlsArgs;

/// The folder for a project's own systems and experiments.
const FOLDER: &str = "narrows";

/// Where the files are, from a system's folder.
const UP: &str = "../../..";

/// The longest content of an answer that an experiment file contains. Of a longer one only the length is demanded.
const LONGEST_CONTENT: usize = 1 << 12;

/// Writes `narrows/systems/NAME-ARM/system.toml` and `narrows/experiments/NAME.toml`. Returns the names of the experiments.
///
/// # Errors
/// A file cannot be written.
pub fn save(name: &str, arms: &Arms, plan: &Plan, tls: &TlsArgs) -> anyhow::Result<Vec<String>> {
    let mut files: Vec<(PathBuf, Table)> = Vec::new();
    for system in &arms.systems {
        let system_name = format!("{name}-{}", system.name);
        let all = plan.experiments.iter().flat_map(|planned| &planned.scenarios);
        let http2 = all.filter(|scenario| scenario.system == system.name).any(|s| s.work().http2());
        files.push((system_file(&system_name), manifest(&system_name, system, tls, http2)));
    }
    let mut experiments = Vec::new();
    for planned in &plan.experiments {
        let experiment_name = planned.name.replacen("try", name, 1);
        files.push((experiment_file(&experiment_name), experiment(name, &experiment_name, planned)?));
        experiments.push(experiment_name);
    }
    for (path, table) in files {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        AtomicFile::create(&path)?.write(table.to_string())?;
    }
    Ok(experiments)
}

/// Checks before the run that `save` can write its files.
///
/// # Errors
/// The name cannot be that of a system, or one of the files exists.
pub fn check(name: &str, arms: &Arms, ask: Option<&Ask>, tls: &TlsArgs) -> anyhow::Result<()> {
    if ask.is_some_and(|ask| ask.list.is_some()) {
        bail!(Usage(
            "--save writes one request, and not the requests of a file: leave --requests or --save out; the run itself is saved, \
             too"
            .to_owned()
        ));
    }
    if arms.systems.iter().any(|system| system.attached().is_some_and(|attached| attached.host.is_some())) {
        bail!(Usage(
            "--save writes a URL that says where its server listens: leave --unix and --connect-to out, or --save".to_owned()
        ));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        bail!(Usage(format!("--save {name:?}: use letters, digits, `-`, `_` and `.`")));
    }
    let secured = arms.systems.iter().any(|system| system.attached().is_some() && system.tls.is_some());
    if secured && !tls.says_whom_to_trust() {
        bail!(Usage("--save of an https:// arm needs --cacert FILE or --insecure".to_owned()));
    }
    let systems = arms.systems.iter().map(|system| system_file(&format!("{name}-{}", system.name)));
    let mut files = systems.chain([experiment_file(name)]);
    if let Some(path) = files.find(|path| path.exists()) {
        bail!("--save {name}: {} exists: choose another name, or remove it", path.display());
    }
    Ok(())
}

fn system_file(name: &str) -> PathBuf {
    Path::new(FOLDER).join("systems").join(name).join("system.toml")
}

fn experiment_file(name: &str) -> PathBuf {
    Path::new(FOLDER).join("experiments").join(format!("{name}.toml"))
}

fn text(text: impl Into<String>) -> Toml {
    Toml::String(text.into())
}

fn words(words: &[String]) -> Toml {
    Toml::Array(words.iter().map(text).collect())
}

fn value(value: &Value) -> Toml {
    match value {
        Value::Boolean(flag) => Toml::Boolean(*flag),
        Value::Integer(number) => Toml::Integer(*number),
        Value::Text(word) => text(word),
    }
}

fn manifest(name: &str, system: &Manifest, tls: &TlsArgs, http2: bool) -> Table {
    let mut table = Table::new();
    let workloads = system.workloads.iter().map(|workload| text(workload.name())).collect();
    table.insert("name".to_owned(), text(name));
    table.insert("role".to_owned(), text("server"));
    table.insert("workloads".to_owned(), Toml::Array(workloads));
    table.insert("language".to_owned(), text(&system.language));
    table.insert("about".to_owned(), text(&system.about));
    if http2 {
        // Whoever tried it in HTTP/2 knows that it speaks it.
        table.insert("http2".to_owned(), Toml::Boolean(true));
    }
    if system.tls.is_some() {
        let of_tls = tls.saved(system.attached().is_some());
        table.insert("tls".to_owned(), Toml::Table(of_tls));
    }
    let start = match &system.program {
        Program::Attached(attached) => {
            table.insert("attach".to_owned(), text(&attached.url));
            // Who typed the URL knows how to start it.
            table.insert("get".to_owned(), text("start it again"));
            return table;
        }
        Program::Started(start) => start,
    };
    let mut of_start = Table::new();
    of_start.insert("command".to_owned(), words(&start.command));
    of_start.insert("dir".to_owned(), text(UP));
    if start.finds_port {
        of_start.insert("finds_port".to_owned(), Toml::Boolean(true));
    }
    for (hook, command) in start.hooks.all() {
        if let Some(command) = command {
            of_start.insert(hook.to_owned(), words(command));
        }
    }
    for (field, env) in [("env", &start.env), ("profile_env", &start.profile_env)] {
        if !env.is_empty() {
            let env = env.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            of_start.insert(field.to_owned(), Toml::Table(env));
        }
    }
    table.insert("start".to_owned(), Toml::Table(of_start));
    let mut ready = Table::new();
    if !system.ready.more_if_busy {
        ready.insert("timeout_s".to_owned(), Toml::Integer(system.ready.timeout.as_secs() as i64));
    }
    if system.ready.outside {
        ready.insert("outside".to_owned(), Toml::Boolean(true));
    }
    table.insert("ready".to_owned(), Toml::Table(ready));
    if !system.knobs.is_empty() {
        let knobs = system.knobs.iter().map(|(name, knob)| (name.clone(), Toml::Table(of_knob(knob))));
        table.insert("knobs".to_owned(), Toml::Table(knobs.collect()));
    }
    table
}

fn of_knob(knob: &Knob) -> Table {
    let kind = Toml::try_from(knob.kind).unwrap_or_else(|_| text("choice"));
    Table::from_iter([
        ("type".to_owned(), kind),
        ("default".to_owned(), value(&knob.default)),
        ("values".to_owned(), Toml::Array(knob.values.iter().map(value).collect())),
        ("about".to_owned(), text(&knob.about)),
    ])
}

fn experiment(name: &str, experiment_name: &str, planned: &Planned) -> anyhow::Result<Table> {
    let own = |system: &str| text(format!("{name}-{system}"));
    let mut systems: Vec<&str> = Vec::new();
    for scenario in &planned.scenarios {
        if !systems.contains(&scenario.system.as_str()) {
            systems.push(&scenario.system);
        }
    }
    let mut table = Table::new();
    table.insert("name".to_owned(), text(experiment_name));
    table.insert("title".to_owned(), text(&planned.title));
    table.insert("workload".to_owned(), text(planned.workload.name()));
    table.insert("systems".to_owned(), Toml::Array(systems.iter().map(|system| own(system)).collect()));
    table.insert("figure".to_owned(), text(planned.figures.first.name()));
    if !planned.figures.others.is_empty() {
        let also = planned.figures.others.iter().map(|figure| text(figure.name())).collect();
        table.insert("also".to_owned(), Toml::Array(also));
    }
    if let Some(objective) = &planned.objective {
        table.insert("objective".to_owned(), text(objective.to_string()));
    }
    table.insert("threshold".to_owned(), Toml::Float(planned.threshold));
    if let Some(base) = &planned.base {
        table.insert("base".to_owned(), own(&base.scenario.system));
    }
    if planned.duet {
        table.insert("duet".to_owned(), Toml::Boolean(true));
    }
    if let Some(ask) = &planned.ask {
        table.insert("request".to_owned(), Toml::try_from(short(ask)).context("the request")?);
    }
    let form = Table::from_iter([
        ("rounds".to_owned(), Toml::Integer(3)),
        ("warmup_s".to_owned(), Toml::Float(planned.timing.warmup_s)),
        ("measure_s".to_owned(), Toml::Float(planned.timing.measure_s)),
        ("timeout_s".to_owned(), Toml::Float(planned.timing.timeout_s)),
        ("grid".to_owned(), Toml::Array(grid(planned, own))),
    ]);
    table.insert("quick".to_owned(), Toml::Table(form.clone()));
    table.insert("full".to_owned(), Toml::Table(form));
    Ok(table)
}

/// The blocks of the grid: one, or one for each value of `tls` if every system has only one of them.
fn grid(planned: &Planned, own: impl Fn(&str) -> Toml) -> Vec<Toml> {
    let systems_at = |tls: &Value| -> BTreeSet<&str> {
        let at = planned.scenarios.iter().filter(|scenario| scenario.point.get("tls") == Some(tls));
        at.map(|scenario| scenario.system.as_str()).collect()
    };
    let versions = planned.axes.iter().find(|axis| axis.knob == "tls").map(|axis| axis.values.as_slice());
    let versions: Vec<(&Value, BTreeSet<&str>)> =
        versions.unwrap_or_default().iter().map(|tls| (tls, systems_at(tls))).collect();
    let all: BTreeSet<&str> = versions.iter().flat_map(|(_, systems)| systems.iter().copied()).collect();
    let once = versions.iter().map(|(_, systems)| systems.len()).sum::<usize>() == all.len();
    let whole: Table = planned
        .axes
        .iter()
        .map(|axis| (axis.knob.clone(), Toml::Array(axis.values.iter().map(value).collect())))
        .collect();
    if versions.len() < 2 || !once {
        return vec![Toml::Table(whole)];
    }
    let block = |(tls, systems): (&Value, BTreeSet<&str>)| {
        // Only what occurs in this version: a value of the other block would add points.
        let here = |knob: &str, value: &Value| {
            let mut points = planned.scenarios.iter().map(|scenario| &scenario.point);
            points.any(|point| point.get("tls") == Some(tls) && point.get(knob) == Some(value))
        };
        let axes = planned.axes.iter().map(|axis| {
            let values = axis.values.iter().filter(|value| here(&axis.knob, value));
            (axis.knob.clone(), values.map(value).collect::<Vec<Toml>>())
        });
        let axes = axes.filter(|(_, values)| !values.is_empty());
        let mut block: Table = axes.map(|(knob, values)| (knob, Toml::Array(values))).collect();
        block.insert("systems".to_owned(), Toml::Array(systems.into_iter().map(&own).collect()));
        Toml::Table(block)
    };
    versions.into_iter().map(block).collect()
}

/// The request, with the length of a long answer in place of its content.
fn short(ask: &Ask) -> Ask {
    let answer = match &ask.answer {
        Demand::Content(bytes) if bytes.0.len() > LONGEST_CONTENT => Demand::Length(bytes.0.len() as u64),
        demand => demand.clone(),
    };
    Ask { answer, ..ask.clone() }
}
