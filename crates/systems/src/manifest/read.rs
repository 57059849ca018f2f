//! From TOML to a checked [`Manifest`]: the file's shape, then what its fields must keep, each with its place.

mod apply;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{Build, Manifest, Need, PLACEHOLDERS, Ready, Start};
use crate::input::{self, InputError, Source, nearest};
use crate::knob::{Kind, Knob, Value};
use crate::template;
use crate::workload::{Role, Workload};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    name: Spanned<String>,
    role: Role,
    workloads: Spanned<Vec<Spanned<Workload>>>,
    language: String,
    about: String,
    #[serde(default)]
    needs: Vec<RawNeed>,
    build: Option<RawBuild>,
    start: RawStart,
    ready: Option<Spanned<RawReady>>,
    stop: Option<RawStop>,
    #[serde(default)]
    knobs: BTreeMap<Spanned<String>, Spanned<RawKnob>>,
    #[serde(default)]
    apply: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNeed {
    name: String,
    probe: Spanned<Vec<String>>,
    version: Option<Spanned<String>>,
    get: String,
    #[serde(default)]
    packages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBuild {
    command: Command,
    timeout_s: Option<Spanned<i64>>,
    version: Option<Command>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStart {
    command: Command,
    #[serde(default)]
    env: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReady {
    tcp: Option<Spanned<bool>>,
    http: Option<Spanned<String>>,
    timeout_s: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStop {
    grace_ms: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKnob {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) default: Spanned<toml::Value>,
    #[serde(default)]
    pub(super) values: Vec<Spanned<toml::Value>>,
    pub(super) min: Option<Spanned<toml::Value>>,
    pub(super) max: Option<Spanned<toml::Value>>,
    pub(super) about: String,
    pub(super) workloads: Option<Spanned<Vec<Spanned<Workload>>>>,
}

type Command = Spanned<Vec<Spanned<String>>>;

const DAY_S: i64 = 86_400;

/// Reads `source` as the manifest of the system in `dir`.
pub(super) fn read(source: &Source, dir: &Path) -> Result<Manifest, InputError> {
    let raw: RawManifest = input::parse(source)?;
    let reader = Reader { source };
    reader.name(&raw.name, dir)?;
    let workloads = reader.workloads(&raw.workloads, raw.role)?;
    let knobs = reader.knobs(&raw.knobs, &workloads)?;
    let start = reader.start(&raw.start, raw.role, &knobs)?;
    reader.every_knob_used(&raw.knobs, &start)?;
    let grace = raw.stop.and_then(|stop| stop.grace_ms);
    Ok(Manifest {
        name: raw.name.into_inner(),
        role: raw.role,
        language: raw.language,
        about: raw.about,
        needs: raw.needs.into_iter().map(|need| reader.need(need)).collect::<Result<_, _>>()?,
        build: raw.build.map(|build| reader.build(&build)).transpose()?,
        start,
        ready: reader.ready(raw.ready, raw.role)?,
        grace: Duration::from_millis(reader.number(grace, 1000, (0, 60_000), "grace_ms")?),
        apply: apply::read(&reader, &raw.apply, &workloads, &knobs)?,
        workloads,
        knobs,
        dir: dir.to_owned(),
    })
}

struct Reader<'a> {
    source: &'a Source,
}

type Read<T> = Result<T, InputError>;

impl Reader<'_> {
    fn wrong<T>(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Read<T> {
        Err(self.source.error(span, message, help))
    }

    fn name(&self, name: &Spanned<String>, dir: &Path) -> Read<()> {
        let folder = dir.file_name().unwrap_or_default().to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let text = name.get_ref().as_str();
        if text.is_empty() || text.starts_with('.') || !text.chars().all(plain) {
            let help = "use letters, digits, `-`, `_` and `.`: it is used in flags and paths";
            return self.wrong(name.span(), format!("`{text}` cannot be a system's name"), help);
        }
        if text != folder {
            let message = format!("the name `{text}` is not the folder's, `{folder}`");
            return self.wrong(
                name.span(),
                message,
                format!("write name = \"{folder}\", or rename the folder"),
            );
        }
        Ok(())
    }

    fn workloads(&self, raw: &Spanned<Vec<Spanned<Workload>>>, role: Role) -> Read<Vec<Workload>> {
        if raw.get_ref().is_empty() {
            return self.wrong(
                raw.span(),
                "no workload",
                "name at least one: upload, frames, requests or clients",
            );
        }
        let mut workloads = Vec::new();
        for workload in raw.get_ref() {
            let known = *workload.get_ref();
            if known.role() != role {
                let message = format!("a {role} cannot do `{known}`");
                let help = "a client has only \"clients\"; a server has upload, frames, requests";
                return self.wrong(workload.span(), message, help);
            }
            if workloads.contains(&known) {
                return self.wrong(workload.span(), format!("`{known}` stands here twice"), "remove one");
            }
            workloads.push(known);
        }
        Ok(workloads)
    }

    fn number(&self, raw: Option<Spanned<i64>>, default: u64, range: (i64, i64), field: &str) -> Read<u64> {
        let Some(raw) = raw else { return Ok(default) };
        let number = *raw.get_ref();
        if number < range.0 || number > range.1 {
            let help = format!("choose {field} from {} to {}", range.0, range.1);
            return self.wrong(raw.span(), format!("{field} = {number} is out of range"), help);
        }
        Ok(number.unsigned_abs())
    }

    fn need(&self, raw: RawNeed) -> Read<Need> {
        let program = raw.probe.get_ref().first();
        if program.is_none_or(String::is_empty) {
            return self.wrong(
                raw.probe.span(),
                "an empty probe",
                "name a command, as [\"erl\", \"-version\"]",
            );
        }
        if let Some(version) = &raw.version
            && let Err(e) = regex::Regex::new(version.get_ref())
        {
            let reason = e.to_string().lines().last().unwrap_or_default().trim().to_owned();
            let message = format!("not a regular expression: {reason}");
            return self.wrong(
                version.span(),
                message,
                "see docs.rs/regex for the syntax; quote it with '…'",
            );
        }
        Ok(Need {
            name: raw.name,
            probe: raw.probe.into_inner(),
            version: raw.version.map(Spanned::into_inner),
            get: raw.get,
            packages: raw.packages,
        })
    }

    fn build(&self, raw: &RawBuild) -> Read<Build> {
        let known = PLACEHOLDERS.into_iter().filter(|name| *name != "port").collect::<Vec<_>>();
        let version = raw.version.as_ref().map(|version| self.command(version, &known));
        let timeout = self.number(raw.timeout_s.clone(), 300, (1, DAY_S), "timeout_s")?;
        Ok(Build {
            command: self.command(&raw.command, &known)?,
            timeout: Duration::from_secs(timeout),
            version: version.transpose()?,
        })
    }

    fn start(&self, raw: &RawStart, role: Role, knobs: &BTreeMap<String, Knob>) -> Read<Start> {
        let server = role == Role::Server;
        let known = PLACEHOLDERS.into_iter().filter(|name| server || *name != "port");
        let known = known.chain(knobs.keys().map(String::as_str)).collect::<Vec<_>>();
        let command = self.command(&raw.command, &known)?;
        let mut env = BTreeMap::new();
        for (name, value) in &raw.env {
            if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
                let message = format!("`{}` cannot name an environment variable", name.get_ref());
                return self.wrong(name.span(), message, "use a name such as ERL_FLAGS");
            }
            self.placeholders(value, &known)?;
            env.insert(name.get_ref().clone(), value.get_ref().clone());
        }
        let start = Start { command, env };
        if server && !start.uses("port") {
            let help = "put {port} into start.command or start.env: Narrows chooses the port";
            return self.wrong(raw.command.span(), "the server is not told its port", help);
        }
        Ok(start)
    }

    fn command(&self, raw: &Command, known: &[&str]) -> Read<Vec<String>> {
        if raw.get_ref().first().is_none_or(|program| program.get_ref().is_empty()) {
            return self.wrong(raw.span(), "an empty command", "name a program and its arguments");
        }
        raw.get_ref().iter().map(|argument| self.placeholders(argument, known)).collect()
    }

    fn placeholders(&self, raw: &Spanned<String>, known: &[&str]) -> Read<String> {
        let text = raw.get_ref();
        let names = template::names(text).or_else(|why| self.wrong(raw.span(), why, ""))?;
        for name in names {
            if !known.contains(&name.as_str()) {
                let near = nearest(&name, known.iter().copied());
                let near = near.map(|near| format!("did you mean {{{near}}}? ")).unwrap_or_default();
                let all = known.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ");
                let help = format!("{near}known here: {all}; a literal brace is doubled");
                return self.wrong(raw.span(), format!("unknown placeholder `{{{name}}}`"), help);
            }
        }
        if text.contains('\0') {
            return self.wrong(raw.span(), "a zero byte cannot be passed to a program", "remove it");
        }
        Ok(text.clone())
    }

    fn ready(&self, raw: Option<Spanned<RawReady>>, role: Role) -> Read<Ready> {
        let Some(raw) = raw else { return Ok(Ready { http: None, timeout: Duration::from_secs(10) }) };
        let span = raw.span();
        if role == Role::Client {
            return self.wrong(
                span,
                "a client has no [ready]",
                "remove it: a driver prints {\"event\":\"ready\"}",
            );
        }
        let RawReady { tcp, http, timeout_s } = raw.into_inner();
        let timeout = Duration::from_secs(self.number(timeout_s, 10, (1, DAY_S), "timeout_s")?);
        match (tcp, http) {
            (Some(tcp), Some(_)) if *tcp.get_ref() => {
                self.wrong(tcp.span(), "tcp and http at once", "keep one")
            }
            (Some(tcp), None) if !tcp.get_ref() => {
                self.wrong(tcp.span(), "nothing shows that it is ready", "write tcp = true or http = \"/\"")
            }
            (_, Some(http)) if !is_path(http.get_ref()) => {
                let message = format!("`{}` is not a path", http.get_ref());
                self.wrong(http.span(), message, "write a path such as \"/\", without spaces")
            }
            (_, http) => Ok(Ready { http: http.map(Spanned::into_inner), timeout }),
        }
    }

    /// A knob that reaches the program nowhere would be swept, and found to make no difference.
    fn every_knob_used(&self, raw: &BTreeMap<Spanned<String>, Spanned<RawKnob>>, start: &Start) -> Read<()> {
        match raw.keys().find(|name| !start.uses(name.get_ref())) {
            None => Ok(()),
            Some(name) => {
                let word = name.get_ref();
                let help = format!("put {{{word}}} into start.command or start.env");
                self.wrong(name.span(), format!("the program is not told the knob `{word}`"), help)
            }
        }
    }
}

impl Start {
    fn uses(&self, placeholder: &str) -> bool {
        let mut texts = self.command.iter().chain(self.env.values());
        texts
            .any(|text| template::names(text).is_ok_and(|names| names.iter().any(|name| name == placeholder)))
    }
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic())
}

impl Reader<'_> {
    fn knobs(
        &self,
        raw: &BTreeMap<Spanned<String>, Spanned<RawKnob>>,
        workloads: &[Workload],
    ) -> Read<BTreeMap<String, Knob>> {
        let mut knobs = BTreeMap::new();
        for (name, raw) in raw {
            self.knob_name(name, workloads)?;
            let knob = self.knob(raw, workloads)?;
            knobs.insert(name.get_ref().clone(), knob);
        }
        Ok(knobs)
    }

    fn knob_name(&self, name: &Spanned<String>, workloads: &[Workload]) -> Read<()> {
        let word = name.get_ref().as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) || !word.chars().all(plain) {
            let help = "begin with a letter; use letters, digits and `_`";
            return self.wrong(name.span(), format!("`{word}` cannot be a knob's name"), help);
        }
        // These words mean something else inside a block of an experiment.
        if PLACEHOLDERS.contains(&word) || word == "systems" {
            let help = "rename the knob; taken are port, narrows, dir, out, home, cores, systems";
            return self.wrong(name.span(), format!("`{word}` is already the name of something else"), help);
        }
        if let Some(workload) = workloads.iter().find(|workload| workload.knob(word).is_some()) {
            let message = format!("`{word}` is already a knob of the workload `{workload}`");
            return self.wrong(name.span(), message, "rename the knob, and its placeholder");
        }
        Ok(())
    }

    fn knob(&self, raw: &Spanned<RawKnob>, system: &[Workload]) -> Read<Knob> {
        let (span, raw) = (raw.span(), raw.get_ref());
        let mut knob = Knob {
            kind: raw.kind,
            default: Value::Boolean(false),
            values: Vec::new(),
            min: self.bound(raw.kind, raw.min.as_ref())?,
            max: self.bound(raw.kind, raw.max.as_ref())?,
            about: raw.about.clone(),
            workloads: self.knob_workloads(raw.workloads.as_ref(), system)?,
        };
        if let (Some(min), Some(max), Some(at)) = (knob.min, knob.max, &raw.max)
            && min > max
        {
            return self.wrong(at.span(), format!("max = {max} is below min = {min}"), "exchange them");
        }
        let values = raw.values.iter().map(|value| Ok((value.span(), self.value(value)?)));
        let values = values.collect::<Read<Vec<_>>>()?;
        if matches!(raw.kind, Kind::Choice | Kind::Any) {
            // The words define the choice, so they must be there before anything is checked against it.
            let words = values.iter().filter(|(_, value)| matches!(value, Value::Text(_)));
            knob.values = words.map(|(_, value)| value.clone()).collect();
        }
        if raw.kind == Kind::Choice && knob.values.is_empty() {
            return self.wrong(span, "a choice without words", "add values = [\"…\", …]");
        }
        let check =
            |span: Range<usize>, value: &Value| knob.check(value).or_else(|why| self.wrong(span, why, ""));
        let checked =
            values.iter().map(|(span, value)| check(span.clone(), value)).collect::<Read<Vec<_>>>()?;
        if let Some(double) = (1..checked.len()).find(|i| checked[..*i].contains(&checked[*i])) {
            return self.wrong(values[double].0.clone(), "this value stands here twice", "remove one");
        }
        let default = check(raw.default.span(), &self.value(&raw.default)?)?;
        Ok(Knob { default, values: checked, ..knob })
    }

    fn knob_workloads(
        &self,
        raw: Option<&Spanned<Vec<Spanned<Workload>>>>,
        system: &[Workload],
    ) -> Read<Vec<Workload>> {
        let Some(raw) = raw else { return Ok(system.to_vec()) };
        if raw.get_ref().is_empty() {
            return self.wrong(
                raw.span(),
                "no workload",
                "leave the field out: it then means all of the system's",
            );
        }
        if let Some(stranger) = raw.get_ref().iter().find(|workload| !system.contains(workload.get_ref())) {
            let message = format!("the system does not do `{}`", stranger.get_ref());
            return self.wrong(stranger.span(), message, "name only the system's workloads");
        }
        Ok(raw.get_ref().iter().map(|workload| *workload.get_ref()).collect())
    }

    fn value(&self, raw: &Spanned<toml::Value>) -> Read<Value> {
        match raw.get_ref() {
            toml::Value::Boolean(flag) => Ok(Value::Boolean(*flag)),
            toml::Value::Integer(number) => Ok(Value::Integer(*number)),
            toml::Value::String(text) if !text.contains('\0') => Ok(Value::Text(text.clone())),
            _ => self.wrong(
                raw.span(),
                "not a knob's value",
                "write an integer, true, false or a word in quotes",
            ),
        }
    }

    fn bound(&self, kind: Kind, raw: Option<&Spanned<toml::Value>>) -> Read<Option<i64>> {
        let Some(raw) = raw else { return Ok(None) };
        if matches!(kind, Kind::Boolean | Kind::Choice) {
            return self.wrong(raw.span(), "only an integer or a size has bounds", "remove min and max");
        }
        let free = Knob {
            kind: if kind == Kind::Any { Kind::Integer } else { kind },
            default: Value::Integer(0),
            values: Vec::new(),
            min: None,
            max: None,
            about: String::new(),
            workloads: Vec::new(),
        };
        match free.check(&self.value(raw)?) {
            Ok(Value::Integer(number)) => Ok(Some(number)),
            Ok(_) => self.wrong(raw.span(), "not a number", "write an integer or a size"),
            Err(why) => self.wrong(raw.span(), why, ""),
        }
    }
}
