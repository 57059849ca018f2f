//! Reads TOML into a checked [`Manifest`]. serde checks the file's form, and this module checks the fields. Errors show
//! positions.

mod apply;
mod draft;
mod inputs;
mod known;
mod needs;
mod raw;
mod secured;
mod sent;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

use toml::Spanned;

pub use draft::Draft;
pub(super) use known::Known;
use raw::RawCommand;
pub(super) use raw::{
    RawAnswer, RawBuild, RawEnvironment, RawKnob, RawManifest, RawReady, RawStart, RawVariant,
};

use super::{
    ADDRESS, Attached, Build, DEBIAN, Hooks, Manifest, OwnAnswer, PLACEHOLDERS, Program, Ready, Remedies,
    Start, USERS, debian_name,
};
use crate::allotment;
use crate::input::{self, InputError, Source, nearest};
use crate::knob::Knob;
use crate::listening::Listening;
use crate::template;
use crate::work::tls;
use crate::workload::{Role, Workload};

/// The placeholders that have a value only when a system is started.
const OF_START: [&str; 8] =
    [ADDRESS, "port", "socket", allotment::MEMORY, allotment::FILES, "cert", "key", "tls"];

/// The placeholders that only servers have.
const OF_SERVERS: [&str; 6] = [ADDRESS, "port", "socket", "cert", "key", "tls"];

const DAY_S: i64 = 86_400;
/// How long a server may take to be ready, unless its manifest says otherwise.
const READY: Duration = Duration::from_secs(10);

/// Reads `source` as the manifest of the system in `dir`. Returns the plain system, then its variants.
pub(super) fn read(source: &Source, dir: &Path) -> Result<Vec<Manifest>, InputError> {
    let raw: RawManifest = input::parse(source)?;
    let reader = Reader { source };
    reader.name(&raw.name, dir)?;
    let home = dir.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    reader.check(raw, dir, home)
}

/// Checks the manifest of a system that has no file.
pub(super) fn drafted(draft: Draft) -> Result<Manifest, InputError> {
    let (dir, home) = (draft.dir.clone(), draft.home.clone());
    let (version, remedies) = (draft.version.clone(), draft.remedies.clone());
    let source = Source::new(draft.name.as_str(), "");
    let reader = Reader { source: &source };
    let raw = RawManifest::from(draft);
    reader.word(&raw.name, "system")?;
    Ok(Manifest { version, remedies, ..reader.check(raw, &dir, &home)?.remove(0) })
}

/// Checks a manifest that was made elsewhere. Returns what a file with the same content would have been read as.
pub(super) fn sent(manifest: &Manifest) -> Result<Manifest, InputError> {
    let source = Source::new(manifest.name.as_str(), "");
    let reader = Reader { source: &source };
    let raw = RawManifest::from(manifest.clone());
    reader.word(&raw.name, "system")?;
    if let Some(path) = [&manifest.dir, &manifest.home].into_iter().find(|path| !path.is_absolute()) {
        let message = format!("`{}` is not the whole path of its folder", path.display());
        return reader.wrong(raw.name.span(), message, "begin with a slash");
    }
    let name = raw.name.span();
    let mut read = reader.check(raw, &manifest.dir, &manifest.home)?.remove(0);
    read.version = manifest.version.clone();
    read.remedies = manifest.remedies.clone();
    if let Some(variant) = &manifest.variant {
        read.name = format!("{}@{}", read.name, variant.name);
        read.variant = Some(reader.sent_variant(variant)?);
        reader.debians(&name, &read)?;
    }
    Ok(read)
}

pub(super) struct Reader<'a> {
    source: &'a Source,
}

pub(super) type Read<T> = Result<T, InputError>;

impl Reader<'_> {
    /// Checks that a manifest keeps docs/contracts.md. Returns the plain system, then its variants.
    fn check(&self, raw: RawManifest, dir: &Path, home: &Path) -> Read<Vec<Manifest>> {
        let workloads = self.workloads(&raw.workloads, raw.role)?;
        let knobs = self.knobs(&raw.knobs, &workloads)?;
        let attach = self.attach(&raw, &workloads)?;
        let answer = self.answer(raw.answer.as_ref(), &workloads)?;
        let tls = self.dialing(&raw, dir)?;
        let program = match (attach, &raw.start) {
            (Some(attached), _) => Program::Attached(attached),
            (None, Some(start)) => {
                let start = self.start(start, raw.role, &knobs, dir)?;
                let knob_spans: Vec<_> =
                    raw.knobs.keys().map(|name| (name.get_ref().as_str(), name.span())).collect();
                self.every_knob_used(&knob_spans, &start)?;
                Program::Started(start)
            }
            (None, None) => {
                let help = "add [start] with command = [\"…\"]; docs/contracts.md says what it is";
                return self.wrong(raw.name.span(), "it does not say how to start it", help);
            }
        };
        let grace = raw.stop.and_then(|stop| stop.grace_ms);
        let name = raw.name.span();
        let plain = Manifest {
            name: raw.name.into_inner(),
            role: raw.role,
            language: raw.language,
            about: raw.about,
            needs: raw.needs.into_iter().map(|need| self.need(need)).collect::<Result<_, _>>()?,
            build: raw.build.map(|build| self.build(&build)).transpose()?,
            program,
            http2: raw.http2,
            tls,
            answer,
            ready: self.ready(raw.ready, raw.role)?,
            grace: Duration::from_millis(self.number(grace, 1000, 0..=60_000, "grace_ms")?),
            apply: apply::read(self, &raw.apply, &workloads, &knobs)?,
            workloads,
            knobs,
            dir: dir.to_owned(),
            home: home.to_owned(),
            variant: None,
            version: None,
            remedies: Remedies::default(),
        };
        self.debians(&name, &plain)?;
        self.with_variants(plain, raw.variants)
    }

    pub(super) fn wrong<T>(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Read<T> {
        Err(self.source.error(span, message, help))
    }

    /// Checks that a name can be used in flags and paths. `kind` is what it names.
    pub(super) fn word(&self, name: &Spanned<String>, kind: &str) -> Read<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let text = name.get_ref().as_str();
        if text.is_empty() || text.starts_with('.') || !text.chars().all(plain) {
            let help = "use letters, digits, `-`, `_` and `.`: it is used in flags and paths";
            return self.wrong(name.span(), format!("`{text}` cannot be a {kind}'s name"), help);
        }
        Ok(())
    }

    fn name(&self, name: &Spanned<String>, dir: &Path) -> Read<()> {
        let folder = dir.file_name().unwrap_or_default().to_string_lossy();
        self.word(name, "system")?;
        let text = name.get_ref().as_str();
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
            let help = format!("name at least one of {}", names(Workload::ALL));
            return self.wrong(raw.span(), "no workload", help);
        }
        let mut workloads = Vec::new();
        for workload in raw.get_ref() {
            let known = *workload.get_ref();
            if known.role() != role {
                let message = format!("a {role} cannot do `{known}`");
                let its = Workload::ALL.into_iter().filter(|workload| workload.role() == role);
                let help = format!("a {role} can do {}", names(its));
                return self.wrong(workload.span(), message, help);
            }
            if workloads.contains(&known) {
                return self.wrong(workload.span(), format!("`{known}` is listed twice"), "remove one");
            }
            workloads.push(known);
        }
        Ok(workloads)
    }

    fn number(
        &self,
        raw: Option<Spanned<i64>>,
        default: u64,
        range: RangeInclusive<i64>,
        field: &str,
    ) -> Read<u64> {
        let Some(raw) = raw else { return Ok(default) };
        let number = *raw.get_ref();
        if !range.contains(&number) {
            let help = format!("choose {field} from {} to {}", range.start(), range.end());
            return self.wrong(raw.span(), format!("{field} = {number} is out of range"), help);
        }
        Ok(number.unsigned_abs())
    }

    pub(super) fn build(&self, raw: &RawBuild) -> Read<Build> {
        let known: Known = PLACEHOLDERS.into_iter().filter(|name| !OF_START.contains(name)).collect();
        let version = raw.version.as_ref().map(|version| self.command(version, &known));
        let timeout = self.number(raw.timeout_s.clone(), 300, 1..=DAY_S, "timeout_s")?;
        Ok(Build {
            command: self.command(&raw.command, &known)?,
            timeout: Duration::from_secs(timeout),
            version: version.transpose()?,
            inputs: inputs::read(self, &raw.inputs)?,
            get: raw.get.clone(),
        })
    }

    /// Checks how a system in the folder `dir` is started.
    pub(super) fn start(
        &self,
        raw: &RawStart,
        role: Role,
        knobs: &BTreeMap<String, Knob>,
        dir: &Path,
    ) -> Read<Start> {
        let server = role == Role::Server;
        let known = PLACEHOLDERS.into_iter().filter(|name| server || !OF_SERVERS.contains(name));
        let known: Known = known.chain(knobs.keys().map(String::as_str)).collect();
        let command = self.command(&raw.command, &known)?;
        let env = self.environment(&raw.env, &known)?;
        let profile_env = self.environment(&raw.profile_env, &known)?;
        let hook = |raw: &Option<RawCommand>| raw.as_ref().map(|raw| self.command(raw, &known)).transpose();
        let hooks =
            Hooks { setup: hook(&raw.setup)?, prepare: hook(&raw.prepare)?, conclude: hook(&raw.conclude)? };
        let dir = raw.dir.as_ref().map_or_else(|| dir.to_owned(), |own| dir.join(own.get_ref()));
        let start = Start { command, env, profile_env, finds_port: raw.finds_port, dir, hooks };
        let told = start.uses("port") || start.uses("socket");
        if start.uses("port") && start.uses("socket") {
            let help = "remove one: a server is driven where it is told to listen";
            return self.wrong(raw.command.span(), "both {port} and {socket}", help);
        }
        if !start.uses("cert") && (start.uses("key") || start.uses(tls::KNOB)) {
            let help = "put {cert} into start.command, start.env or a hook: a server needs both to speak TLS";
            return self.wrong(raw.command.span(), "{key} or {tls} without {cert}", help);
        }
        if server && !told && !start.finds_port {
            let help = "put {port} or {socket} into start.command, start.env or a hook; with finds_port = true the server chooses it";
            return self.wrong(raw.command.span(), "the server is not told its port", help);
        }
        if start.finds_port && (told || !server) {
            let help =
                "remove one: with finds_port = true Narrows finds the port on which the server listens";
            return self.wrong(
                raw.command.span(),
                "finds_port where the program is told its port or has none",
                help,
            );
        }
        Ok(start)
    }

    pub(super) fn environment(
        &self,
        raw: &RawEnvironment,
        known: &Known<'_>,
    ) -> Read<BTreeMap<String, String>> {
        let mut env = BTreeMap::new();
        for (name, value) in raw {
            if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
                let message = format!("`{}` cannot name an environment variable", name.get_ref());
                return self.wrong(name.span(), message, "use a name such as ERL_FLAGS");
            }
            self.placeholders(value, known)?;
            env.insert(name.get_ref().clone(), value.get_ref().clone());
        }
        Ok(env)
    }

    fn command(&self, raw: &RawCommand, known: &Known<'_>) -> Read<Vec<String>> {
        if raw.get_ref().first().is_none_or(|program| program.get_ref().is_empty()) {
            return self.wrong(raw.span(), "an empty command", "name a program and its arguments");
        }
        raw.get_ref().iter().map(|argument| self.placeholders(argument, known)).collect()
    }

    pub(super) fn placeholders(&self, raw: &Spanned<String>, known: &Known<'_>) -> Read<String> {
        let text = raw.get_ref();
        let names = template::names(text).or_else(|why| self.wrong(raw.span(), why, ""))?;
        for name in names {
            let variable = name.strip_prefix('$').filter(|_| known.has(USERS));
            let debian = debian_name(&name).is_some() && known.has(DEBIAN);
            if variable.is_none_or(str::is_empty) && !debian && !known.has(&name) {
                let near = nearest(&name, known.iter());
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

    /// The server that its user starts, if the manifest attaches to one. It must run on this machine.
    fn attach(&self, raw: &RawManifest, workloads: &[Workload]) -> Read<Option<Attached>> {
        let Some(attach) = &raw.attach else {
            return match &raw.get {
                Some(get) => {
                    self.wrong(get.span(), "get without attach", "remove it: a need has its own get")
                }
                None => Ok(None),
            };
        };
        let wrong = |message: String, help: &str| self.wrong(attach.span(), message, help);
        let tables = [
            ("[build]", raw.build.is_some()),
            ("[start]", raw.start.is_some()),
            ("[ready]", raw.ready.is_some()),
            ("[stop]", raw.stop.is_some()),
            ("[knobs]", !raw.knobs.is_empty()),
            ("[variants]", !raw.variants.is_empty()),
        ];
        if let Some((table, _)) = tables.iter().find(|(_, there)| *there) {
            let help = "remove one: Narrows neither starts nor stops a server that it attaches to";
            return wrong(format!("attach and {table} at once"), help);
        }
        let Some(get) = &raw.get else {
            return wrong(
                "it does not say how to start it".to_owned(),
                "add get = \"…\": what a person types",
            );
        };
        let url = attach.get_ref().trim_end_matches('/');
        let (scheme, authority) = url.split_once("://").unwrap_or_default();
        let speaks = if scheme == "https" { "http" } else { scheme };
        let known = Workload::ALL.iter().any(|workload| workload.about().scheme == speaks);
        let elsewhere = raw.at.clone().filter(|_| known && !authority.is_empty());
        let host = elsewhere.is_some().then(|| authority.to_owned());
        let listening = elsewhere.or_else(|| {
            let authority = Some(authority).filter(|_| known)?;
            let (host, port) = authority.rsplit_once(':')?;
            let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
            match host {
                "127.0.0.1" => Some(Listening::Address(Listening::usual(port))),
                "[::1]" => Some(Listening::Address((Ipv6Addr::LOCALHOST, port).into())),
                "localhost" => Some(Listening::Port(port)),
                _ => None,
            }
        });
        let Some(listening) = listening else {
            let help = "write http://127.0.0.1:PORT, http://[::1]:PORT, https://… or frames://…: its process must be on this machine";
            return wrong(format!("cannot attach to `{}`", attach.get_ref()), help);
        };
        if let Some(other) = workloads.iter().find(|workload| workload.about().scheme != speaks) {
            return wrong(
                format!("`{url}` does not do `{other}`"),
                "frames:// is for frames, http:// and https:// for the others",
            );
        }
        Ok(Some(Attached { url: url.to_owned(), listening, host, get: get.get_ref().clone() }))
    }

    pub(super) fn answer(
        &self,
        raw: Option<&Spanned<RawAnswer>>,
        workloads: &[Workload],
    ) -> Read<Option<OwnAnswer>> {
        let Some(raw) = raw else { return Ok(None) };
        if workloads != [Workload::Requests] {
            let help =
                "uploads, frames and clients are checked by counts: let the program keep docs/contracts.md";
            return self.wrong(raw.span(), "[answer] is for systems that do requests only", help);
        }
        let raw = raw.get_ref();
        Ok(Some(OwnAnswer {
            body: raw.body.clone().unwrap_or_else(|| OwnAnswer::OK.to_owned()),
            closes: raw.closes,
            fault: raw.fault.clone(),
            about: raw.about.clone(),
        }))
    }

    fn ready(&self, raw: Option<Spanned<RawReady>>, role: Role) -> Read<Ready> {
        let Some(raw) = raw else {
            return Ok(Ready { http: None, timeout: READY, more_if_busy: true, outside: false });
        };
        let span = raw.span();
        if role == Role::Client {
            return self.wrong(
                span,
                "a client has no [ready]",
                "remove it: a driver prints {\"event\":\"ready\"}",
            );
        }
        let RawReady { tcp, http, timeout_s, outside } = raw.into_inner();
        let more_if_busy = timeout_s.is_none();
        let timeout = Duration::from_secs(self.number(timeout_s, READY.as_secs(), 1..=DAY_S, "timeout_s")?);
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
            (_, http) => Ok(Ready { http: http.map(Spanned::into_inner), timeout, more_if_busy, outside }),
        }
    }

    /// Checks that every knob reaches the program. Otherwise a sweep would find that the knob makes no difference.
    pub(super) fn every_knob_used(&self, knobs: &[(&str, Range<usize>)], start: &Start) -> Read<()> {
        let used: BTreeSet<String> =
            start.texts().flat_map(|text| template::names(text).unwrap_or_default()).collect();
        match knobs.iter().find(|(name, _)| !used.contains(*name)) {
            None => Ok(()),
            Some((word, span)) => {
                let help = format!("put {{{word}}} into start.command or start.env");
                self.wrong(span.clone(), format!("the program is not told the knob `{word}`"), help)
            }
        }
    }
}

impl Start {
    /// The words of its commands and the values of its environment.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let hooks = self.hooks.all().into_iter().filter_map(|(_, command)| command).flatten();
        self.command.iter().chain(self.env.values()).chain(hooks)
    }

    /// Whether the command, the environment or a hook contains the placeholder.
    pub(crate) fn uses(&self, placeholder: &str) -> bool {
        self.texts()
            .any(|text| template::names(text).is_ok_and(|names| names.iter().any(|name| name == placeholder)))
    }
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic())
}

fn names(workloads: impl IntoIterator<Item = Workload>) -> String {
    workloads.into_iter().map(Workload::name).collect::<Vec<_>>().join(", ")
}
