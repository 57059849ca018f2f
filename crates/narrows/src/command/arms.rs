//! Arms: commands with placeholders, or URLs, become systems; `--knob` becomes their knobs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use load::target::Url;
use systems::input::{Source, suggestion};
use systems::knob::Knob;
use systems::manifest::Hooks;
use systems::{Draft, InputError, Listening, Manifest, Point, Remedies, Value, Workload, template};

use super::CommandArgs;
use super::knobs::{TypedKnob, typed};
use super::names::{self, Taken, plain};
use super::size;
use crate::common::{self, Usage};

/// What can be done about a command that does not start.
const OPTIONS: Remedies = Remedies {
    time: Cow::Borrowed("--ready gives it more time"),
    address: Cow::Borrowed("use {address} in the command"),
    outside: Cow::Borrowed("--attach measures that process"),
    program: Cow::Borrowed("is it installed, or is its path wrong?"),
};

/// The arms as they are typed.
#[derive(Clone, Copy)]
pub struct Typed<'a> {
    /// The options of all arms.
    pub args: &'a CommandArgs,
    /// The commands and URLs.
    pub texts: &'a [String],
    /// The names that the user wants, in order. Arms without one get one.
    pub names: &'a [String],
    /// The work that they do.
    pub workload: Workload,
    /// The folder in which commands run.
    pub dir: &'a Path,
}

/// The folders in which a command runs, in place of the current one: those of commits.
pub struct Places {
    /// All places of the first build, then all of the second.
    pub all: Vec<WorkingFolder>,
    /// How many times each was built.
    pub builds: usize,
    /// Whether the folders are on the machine of `--sut`.
    pub there: bool,
    /// Which commits they are, and what a reader must know about them.
    pub note: String,
}

/// A folder in which a command runs.
pub struct WorkingFolder {
    /// The name of the system there.
    pub name: String,
    /// What is there, in a line.
    pub about: String,
    /// Which version of the program it is.
    pub version: String,
    /// The folder.
    pub dir: PathBuf,
}

/// The arms as systems, and the knobs that span their points.
pub struct Arms {
    /// One for each arm, in the order of the command line. The first is the base. Those of a further build follow.
    pub systems: Vec<Manifest>,
    /// What all of them do.
    pub workload: Workload,
    /// The knobs in the order of the command line, with their values.
    pub knobs: Vec<(String, Vec<Value>)>,
    /// How often the systems come, each time from another build.
    pub builds: usize,
    /// Whether their folders are on the machine of `--sut`.
    pub there: bool,
    /// Which commits they are, and what a reader must know about them.
    pub note: Option<String>,
}

impl Arms {
    /// The systems of each build.
    pub fn by_build(&self) -> impl Iterator<Item = &[Manifest]> {
        self.systems.chunks(self.systems.len() / self.builds)
    }
}

/// Reads the arms of a command line. With `places`, the only command runs in each of them.
///
/// # Errors
/// The first mistake, with its place.
pub fn read(typed: Typed<'_>, places: Option<Places>) -> anyhow::Result<Arms> {
    made(typed, places).map_err(common::of_usage)
}

fn made(typed: Typed<'_>, places: Option<Places>) -> anyhow::Result<Arms> {
    let Typed { args, texts, workload, .. } = typed;
    let knobs = typed_knobs(args, workload)?;
    // An arm with the name of a reference would be taken for it.
    let references = Workload::ALL.map(|workload| workload.reference().to_owned());
    let (mut drafts, mut used) = (Vec::new(), BTreeSet::new());
    let arms = texts.iter().enumerate().map(|(index, text)| {
        let label = if texts.len() > 1 { format!("arm {}", index + 1) } else { "the command".to_owned() };
        let source = Source::new(label, text.as_str());
        let words = if is_url(text) { vec![text.clone()] } else { words(&source, args.start.shell)? };
        Ok((source, words))
    });
    let arms: Vec<(Source, Vec<String>)> = arms.collect::<Result<_, InputError>>()?;
    let commands: Vec<Vec<String>> = arms.iter().map(|(_, words)| words.clone()).collect();
    let (proposed, mut taken) = (names::names(&commands, &references), Taken::new(&references));
    let mut size = size::Systems::default();
    for (index, ((source, command), proposed)) in arms.iter().zip(&proposed).enumerate() {
        let name = typed.names.get(index).unwrap_or(proposed);
        if let [url] = &command[..]
            && is_url(url)
        {
            let draft = of_url(typed, url)?;
            // A URL that is reached elsewhere names the server, but not its port.
            let name = match (typed.names.get(index), &draft.at) {
                (None, Some(_)) => Url::parse(url).map_err(|error| Usage(error.to_string()))?.host,
                _ => name.clone(),
            };
            drafts.push(Draft { name: taken.unique(&plain(&name)), ..draft });
        } else {
            let draft = draft(typed, source, command, &knobs, &mut used)?;
            size.add(&draft, places.as_ref().map_or(1, |places| places.all.len()))?;
            match &places {
                Some(places) => {
                    drafts.extend(places.all.iter().map(|place| moved(&draft, place, &mut taken)));
                }
                None => drafts.push(Draft { name: taken.unique(&plain(name)), ..draft }),
            }
        }
    }
    // Their checks take longer than to count their memory.
    let systems = drafts.into_iter().map(Manifest::new).collect::<Result<Vec<_>, _>>()?;
    check_used(&knobs, workload, &systems, &used)?;
    let knobs = knobs.into_iter().map(|knob| (knob.name, knob.values)).collect();
    let (builds, there, note) =
        places.map_or((1, false, None), |places| (places.builds, places.there, Some(places.note)));
    Ok(Arms { systems, workload, knobs, builds, there, note })
}

/// The knobs of the command line. Knobs of the workload and those of all systems take their own values.
fn typed_knobs(args: &CommandArgs, workload: Workload) -> Result<Vec<TypedKnob>, InputError> {
    typed(args, |name| workload.knob(name).or_else(|| systems::allotment::knob(name)))
}

/// A server that runs already.
fn of_url(typed: Typed<'_>, url: &str) -> anyhow::Result<Draft> {
    let (address, _) = split_path(url);
    let at = typed.args.sent.way.instead()?;
    Ok(Draft {
        workloads: vec![typed.workload],
        language: "-".to_owned(),
        about: url.to_owned(),
        attach: Some(address.to_owned()),
        at,
        tls: secured(typed.args, url)?,
        dir: typed.dir.to_owned(),
        home: typed.dir.to_owned(),
        ..Draft::default()
    })
}

/// The command in another folder.
fn moved(command: &Draft, place: &WorkingFolder, taken: &mut Taken) -> Draft {
    Draft {
        name: taken.unique(&plain(&place.name)),
        about: place.about.clone(),
        version: Some(place.version.clone()),
        dir: place.dir.clone(),
        home: place.dir.clone(),
        ..command.clone()
    }
}

/// Checks that every knob is used.
fn check_used(
    knobs: &[TypedKnob],
    workload: Workload,
    systems: &[Manifest],
    used: &BTreeSet<String>,
) -> Result<(), InputError> {
    for knob in knobs {
        let started = systems.iter().any(|system| system.attached().is_none());
        let of_all = started && systems::allotment::knob(&knob.name).is_some();
        let elsewhere = workload.knob(&knob.name).is_some() || of_all;
        if !used.contains(&knob.name) && !elsewhere {
            let name = &knob.name;
            let help =
                format!("put {{{name}}} into a command, or give it a variable with --env NAME={{{name}}}");
            let message = format!("no command contains {{{name}}}");
            return Err(knob.source.error(0..name.len(), message, help));
        }
    }
    Ok(())
}

/// Whether an arm is a server that runs already.
pub fn is_url(arm: &str) -> bool {
    ["http://", "https://", "frames://"].iter().any(|scheme| arm.starts_with(scheme))
}

/// How to speak TLS to a server that runs already; `None` if it speaks none.
fn secured(args: &CommandArgs, url: &str) -> anyhow::Result<Option<tls::Dialing>> {
    if !url.starts_with("https://") {
        return Ok(None);
    }
    let parsed = Url::parse(url).map_err(|error| Usage(error.to_string()))?;
    args.tls.dialing(&parsed, args.traffic().http2)
}

/// A URL up to its path, and its path, which is empty or begins with `/`.
pub fn split_path(url: &str) -> (&str, &str) {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let path = rest.find('/').map_or(0, |start| rest.len() - start);
    url.split_at(url.len() - path)
}

/// Makes the values of a manifest, without its name.
fn draft(
    typed: Typed<'_>,
    source: &Source,
    command: &[String],
    knobs: &[TypedKnob],
    used: &mut BTreeSet<String>,
) -> Result<Draft, InputError> {
    let Typed { args, workload, dir, .. } = typed;
    let env = environment("--env", &args.start.env)?;
    let profile_env = environment("--profile-env", &args.start.profile_env)?;
    let hook = |name: &str, text: &Option<String>| -> Result<Option<Vec<String>>, InputError> {
        let Some(text) = text else { return Ok(None) };
        let source = Source::new(format!("--{name}"), text.as_str());
        check(&source, knobs)?;
        words(&source, args.start.shell).map(Some)
    };
    let hooks = Hooks {
        setup: hook("setup", &args.start.setup)?,
        prepare: hook("prepare", &args.start.prepare)?,
        conclude: hook("conclude", &args.start.conclude)?,
    };
    let mut names = check(source, knobs)?;
    for (option, given) in [("--env", &env), ("--profile-env", &profile_env)] {
        for (variable, value) in given {
            names.extend(check(&Source::new(format!("{option} {variable}"), value.as_str()), knobs)?);
        }
    }
    for (_, command) in hooks.all() {
        names
            .extend(command.into_iter().flatten().flat_map(|word| template::names(word).unwrap_or_default()));
    }
    let own = knobs.iter().filter(|knob| names.contains(&knob.name));
    // The launch fills in `{tls}`.
    let of_work = |name: &str| name == "tls" && workload.knob(name).is_some();
    let own = own.filter(|knob| systems::allotment::knob(&knob.name).is_none() && !of_work(&knob.name));
    let own: BTreeMap<String, Knob> = own.map(|knob| (knob.name.clone(), knob.definition())).collect();
    used.extend(own.keys().cloned());
    Ok(Draft {
        workloads: vec![workload],
        language: "-".to_owned(),
        about: source.text.to_string(),
        command: command.to_vec(),
        env,
        profile_env,
        ready_timeout_s: args.start.ready.map(|time| (time.as_secs_f64().ceil() as u32).max(1)),
        outside: args.start.attach,
        finds_port: !names.contains("port") && !names.contains("socket"),
        hooks,
        tls: names.contains("cert").then(|| args.tls.offered()),
        knobs: own,
        remedies: OPTIONS,
        dir: dir.to_owned(),
        home: dir.to_owned(),
        ..Draft::default()
    })
}

/// The variables that an option gives.
fn environment(option: &str, given: &[String]) -> Result<BTreeMap<String, String>, InputError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => {
            let source = Source::new(option, text.as_str());
            Err(source.error(
                0..text.len(),
                "not a variable with its value",
                "write NAME=VALUE or NAME={KNOB}",
            ))
        }
    };
    given.iter().map(pair).collect()
}

/// The placeholders that have a value without a knob.
const GIVEN: [&str; 6] = ["address", "port", "socket", "cert", "key", "tls"];

/// Checks that every placeholder is a knob, one of `GIVEN`, or a knob of all systems. Returns their names.
fn check(source: &Source, knobs: &[TypedKnob]) -> Result<BTreeSet<String>, InputError> {
    let found = template::places(&source.text)
        .map_err(|(span, why)| source.error(span, why, "a literal brace is written twice: {{ or }}"))?;
    let mut names = BTreeSet::new();
    let given = || GIVEN.into_iter().chain(systems::allotment::NAMES);
    for (span, name) in found {
        if given().all(|given| given != name) && !knobs.iter().any(|knob| knob.name == name) {
            let known = knobs.iter().map(|knob| knob.name.as_str()).chain(given());
            let help = format!(
                "{}; --knob {name}=VALUES makes it a knob; a literal brace is written twice",
                suggestion(&name, known)
            );
            return Err(source.error(span, format!("nothing gives {{{name}}} a value"), help));
        }
        names.insert(name);
    }
    Ok(names)
}

/// Splits a command into words as a shell does, without expanding anything; or gives it to a shell as it is.
pub fn words(source: &Source, shell: bool) -> Result<Vec<String>, InputError> {
    let text = source.text.as_ref();
    if shell {
        return Ok(["sh", "-c", text].map(str::to_owned).into());
    }
    let wrong = |message: &str, help: &str| Err(source.error(0..text.len(), message, help));
    match shlex::split(text) {
        None => wrong("a quote or a backslash is not closed", "words are split as in a shell"),
        Some(words) if words.is_empty() => wrong("an empty command", "name a program and its arguments"),
        Some(words) => {
            // These would be passed to the program as they are, which nobody wants.
            let operators = ["&&", "||", "|", "<", "&"];
            let begins = [">", "2>", "$", "~/", "`"];
            let is_special = |word: &String| {
                operators.contains(&word.as_str())
                    || begins.iter().any(|begin| word.starts_with(begin))
                    || word.ends_with(';')
            };
            if words.iter().any(is_special) {
                return wrong("this needs a shell", "add --shell, or put it into a script");
            }
            if words.first().is_some_and(|word| word.contains('=')) {
                return wrong("a variable in front of the command", "give it with --env NAME=VALUE");
            }
            Ok(words)
        }
    }
}

/// The command with its knobs filled in, for people.
pub fn shown(manifest: &Manifest, point: &Point, address: Option<IpAddr>) -> anyhow::Result<String> {
    let cores = systems::machine::Placement::decide(&systems::machine::available_cores()).system;
    let launch = systems::Launch {
        manifest,
        out: Path::new(""),
        address: address.unwrap_or(Listening::USUAL),
        listening: None,
        certificate: None,
        tls: None,
        http2: false,
        profiled: false,
        point,
        cores: systems::allotment::cores(&cores, point),
        narrows: Path::new("narrows"),
        tell: |_| {},
    };
    let words = launch.shown().map_err(|why| anyhow!("the command of {}: {why}", manifest.name))?;
    Ok(common::command_line(words.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_url_begins_behind_its_authority() {
        for (url, address, path) in [
            ("http://127.0.0.1:80/a/b", "http://127.0.0.1:80", "/a/b"),
            ("https://é.example/?c=/d://", "https://é.example", "/?c=/d://"),
            ("http://h", "http://h", ""),
            ("http://", "http://", ""),
        ] {
            assert_eq!(split_path(url), (address, path));
        }
    }

    #[test]
    fn a_command_that_needs_a_shell_says_so() {
        let read = |text: &str| words(&Source::new("arm 1", text), false);
        assert_eq!(read("a 'b c' d\\ e").expect("words"), ["a", "b c", "d e"]);
        for wrong in ["", "a && b", "a | b", "a 'b", "a > b", "a >b", "a b; c", "a $HOME", "A=1 b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(words(&Source::new("arm 1", "a && b"), true).expect("a shell"), ["sh", "-c", "a && b"]);
    }
}
