//! The arms of `narrows try`: commands with placeholders, or URLs, become systems; `--knob` becomes their knobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use anyhow::anyhow;
use load::target::Url;
use systems::input::{Source, suggestion};
use systems::knob::{Kind, Knob};
use systems::manifest::Hooks;
use systems::{Draft, InputError, Manifest, Value, Workload, template};

use super::Args;
use crate::common::{self, Usage};

/// The most values of a range, and so the most points of one knob.
const MOST_VALUES: usize = 1000;

/// The arms as systems, and the knobs that span their points.
pub struct Arms {
    /// One for each arm, in the order of the command line. The first is the base.
    pub systems: Vec<Manifest>,
    /// The knobs in the order of the command line, with their values.
    pub knobs: Vec<(String, Vec<Value>)>,
}

/// A knob as it was typed.
struct TypedKnob {
    /// The name of the option's text in messages.
    source: Source,
    name: String,
    values: Vec<Value>,
}

/// Reads the arms of a command line. Their commands run in `dir`.
///
/// # Errors
/// The first mistake, with its place.
pub fn read(args: &Args, workload: Workload, dir: &Path) -> anyhow::Result<Arms> {
    let knobs = knobs(args, workload)?;
    // An arm with the name of a reference would be taken for it.
    let mut names = Workload::ALL.map(|workload| workload.reference().to_owned()).to_vec();
    let mut systems = Vec::new();
    let mut used = BTreeSet::new();
    for (index, text) in args.arms.iter().enumerate() {
        let source = Source::new(format!("arm {}", index + 1), text.as_str());
        let wanted = args.names.get(index).cloned();
        let manifest = if is_url(text) {
            let port = without_path(text).rsplit(':').next();
            let name = wanted.unwrap_or_else(|| format!("port-{}", port.unwrap_or("80")));
            Manifest::new(Draft {
                name: unique(&mut names, &plain(&name)),
                workloads: vec![workload],
                language: "-".to_owned(),
                about: text.clone(),
                attach: Some(without_path(text).to_owned()),
                tls: secured(args, text)?,
                dir: dir.to_owned(),
                home: dir.to_owned(),
                ..Draft::default()
            })?
        } else {
            let command = words(&source, args.shell)?;
            let name = wanted.unwrap_or_else(|| name_of(&command, args.shell));
            let name = unique(&mut names, &plain(&name));
            let draft = draft(args, &source, &command, &knobs, dir, &mut used)?;
            Manifest::new(Draft { name, workloads: vec![workload], ..draft })?
        };
        systems.push(manifest);
    }
    for knob in &knobs {
        let started = systems.iter().any(|system: &Manifest| system.attached().is_none());
        let of_all = started && systems::allotment::knob(&knob.name).is_some();
        let elsewhere = workload.knob(&knob.name).is_some() || of_all;
        if !used.contains(&knob.name) && !elsewhere {
            let name = &knob.name;
            let help =
                format!("put {{{name}}} into a command, or give it a variable with --env NAME={{{name}}}");
            return Err(knob
                .source
                .error(0..name.len(), format!("no command contains {{{name}}}"), help)
                .into());
        }
    }
    let points = knobs.iter().map(|knob| knob.values.len()).fold(1, usize::saturating_mul);
    if points > MOST_VALUES {
        anyhow::bail!(
            "the knobs span {points} points, and at most {MOST_VALUES} are tried: give fewer values"
        );
    }
    Ok(Arms { systems, knobs: knobs.into_iter().map(|knob| (knob.name, knob.values)).collect() })
}

/// The names by which people call a number of workers.
const WORKERS: [&str; 9] = [
    "w",
    "worker",
    "workers",
    "threads",
    "procs",
    "processes",
    "processors",
    "worker_processes",
    "gomaxprocs",
];

/// The first knob with more workers than systems have cores, and that number.
pub fn more_than_cores(arms: &Arms, cores: usize) -> Option<(&str, i64)> {
    let workers = arms.knobs.iter().filter(|(name, _)| WORKERS.contains(&name.to_lowercase().as_str()));
    workers
        .filter_map(|(name, values)| {
            let most = values.iter().filter_map(|value| match value {
                Value::Integer(number) => Some(*number),
                _ => None,
            });
            most.max()
                .filter(|most| usize::try_from(*most).is_ok_and(|most| most > cores))
                .map(|most| (name.as_str(), most))
        })
        .next()
}

/// Whether an arm is a server that runs already.
pub fn is_url(arm: &str) -> bool {
    ["http://", "https://", "frames://"].iter().any(|scheme| arm.starts_with(scheme))
}

/// How to speak TLS to a server that runs already; `None` if it speaks none.
fn secured(args: &Args, url: &str) -> anyhow::Result<Option<tls::Dialing>> {
    if !url.starts_with("https://") {
        return Ok(None);
    }
    let parsed = Url::parse(url).map_err(|error| Usage(error.to_string()))?;
    args.tls.dialing(&parsed)
}

/// A URL up to its path.
pub fn without_path(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |index| index + 3);
    url[authority..].find('/').map_or(url, |index| &url[..authority + index])
}

/// Makes the values of a manifest, without its name.
fn draft(
    args: &Args,
    source: &Source,
    command: &[String],
    knobs: &[TypedKnob],
    dir: &Path,
    used: &mut BTreeSet<String>,
) -> anyhow::Result<Draft> {
    let env = environment(args)?;
    let hook = |name: &str, text: &Option<String>| -> Result<Option<Vec<String>>, InputError> {
        let Some(text) = text else { return Ok(None) };
        let source = Source::new(format!("--{name}"), text.as_str());
        check(&source, knobs)?;
        words(&source, args.shell).map(Some)
    };
    let hooks = Hooks {
        setup: hook("setup", &args.setup)?,
        prepare: hook("prepare", &args.prepare)?,
        conclude: hook("conclude", &args.conclude)?,
    };
    let mut names = check(source, knobs)?;
    for (variable, value) in &env {
        names.extend(check(&Source::new(format!("--env {variable}"), value.as_str()), knobs)?);
    }
    for (_, command) in hooks.all() {
        names
            .extend(command.into_iter().flatten().flat_map(|word| template::names(word).unwrap_or_default()));
    }
    let own = knobs.iter().filter(|knob| names.contains(&knob.name));
    // The launch fills in `{tls}`.
    let of_work = |name: &str| name == "tls" && args.workload().knob(name).is_some();
    let own = own.filter(|knob| systems::allotment::knob(&knob.name).is_none() && !of_work(&knob.name));
    let own: BTreeMap<String, Knob> = own.map(|knob| (knob.name.clone(), knob.definition())).collect();
    used.extend(own.keys().cloned());
    Ok(Draft {
        language: "-".to_owned(),
        about: source.text.to_string(),
        command: command.to_vec(),
        env,
        ready_timeout_s: Some((args.ready.as_secs_f64().ceil() as u32).max(1)),
        outside: args.attach,
        finds_port: !names.contains("port") && !names.contains("socket"),
        hooks,
        tls: names.contains("cert").then(|| args.tls.offered()),
        knobs: own,
        dir: dir.to_owned(),
        home: dir.to_owned(),
        ..Draft::default()
    })
}

/// The variables of `--env`.
fn environment(args: &Args) -> Result<BTreeMap<String, String>, InputError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => {
            let source = Source::new("--env", text.as_str());
            Err(source.error(
                0..text.len(),
                "not a variable with its value",
                "write NAME=VALUE or NAME={KNOB}",
            ))
        }
    };
    args.env.iter().map(pair).collect()
}

/// The placeholders that have a value without a knob.
const GIVEN: [&str; 7] = ["port", "socket", "cert", "key", "tls", "cores", "memory"];

/// Checks that every placeholder is a knob or one of `GIVEN`. Returns their names.
fn check(source: &Source, knobs: &[TypedKnob]) -> Result<BTreeSet<String>, InputError> {
    let found = template::places(&source.text)
        .map_err(|(span, why)| source.error(span, why, "a literal brace is written twice: {{ or }}"))?;
    let mut names = BTreeSet::new();
    for (span, name) in found {
        if !GIVEN.contains(&name.as_str()) && !knobs.iter().any(|knob| knob.name == name) {
            let known = knobs.iter().map(|knob| knob.name.as_str()).chain(GIVEN);
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
            if words[0].contains('=') {
                return wrong("a variable in front of the command", "give it with --env NAME=VALUE");
            }
            Ok(words)
        }
    }
}

/// All knobs of the command line.
fn knobs(args: &Args, workload: Workload) -> anyhow::Result<Vec<TypedKnob>> {
    let typed = args.knobs.iter().map(|text| ("--knob", text.clone()));
    // hyperfine's form has the name and the values as two words.
    let listed = args.parameter_lists.chunks(2).filter(|pair| pair.len() == 2);
    let listed = listed.map(|pair| ("-L", format!("{}={}", pair[0], pair[1])));
    let mut knobs: Vec<TypedKnob> = Vec::new();
    for (option, text) in typed.chain(listed) {
        let knob = TypedKnob::parse(option, &text)?.normalised(workload)?;
        if knobs.iter().any(|known| known.name == knob.name) {
            let help = "write all its values in one option";
            let message = format!("`{}` is given twice", knob.name);
            return Err(knob.source.error(0..knob.name.len(), message, help).into());
        }
        knobs.push(knob);
    }
    Ok(knobs)
}

impl TypedKnob {
    /// The values as a knob of the workload or of all systems takes them, such as 64M for a size.
    fn normalised(self, workload: Workload) -> Result<Self, InputError> {
        let known = workload.knob(&self.name).or_else(|| systems::allotment::knob(&self.name));
        let Some(knob) = known else { return Ok(self) };
        let read = |value: &Value| knob.parse(&value.to_string());
        let values = self.values.iter().map(read).collect::<Result<_, _>>().map_err(|why| {
            let span = self.name.len() + 1..self.source.text.len();
            self.source.error(span, why, format!("it is: {}", knob.about))
        })?;
        Ok(Self { values, ..self })
    }

    fn parse(option: &str, text: &str) -> Result<Self, InputError> {
        let source = Source::new(option, text);
        let Some((name, list)) =
            text.split_once('=').filter(|(name, list)| !name.is_empty() && !list.is_empty())
        else {
            let help = "write NAME=1,2,4 or NAME=1..64*2 or NAME=1..16+1";
            return Err(source.error(0..text.len(), "not a knob with its values", help));
        };
        let values = values(list).map_err(|why| {
            let span: Range<usize> = name.len() + 1..text.len();
            source.error(span, why, "write 1,2,4 or 1..64*2 or 1..16+1")
        })?;
        Ok(Self { name: name.to_owned(), values, source })
    }

    /// A knob of numbers, or of the words that were typed. Its first value is its default.
    fn definition(&self) -> Knob {
        let numbers = self.values.iter().all(|value| matches!(value, Value::Integer(_)));
        Knob {
            kind: if numbers { Kind::Integer } else { Kind::Choice },
            default: self.values[0].clone(),
            values: self.values.clone(),
            min: None,
            max: None,
            about: format!("values given with {}", self.source.path.display()),
            workloads: Vec::new(),
            effect: None,
            amount: false,
        }
    }
}

/// The values of a list or of a range.
fn values(text: &str) -> Result<Vec<Value>, String> {
    if let Some(values) = range(text) {
        return values;
    }
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if let Some(twice) = words.iter().enumerate().find(|(index, word)| words[..*index].contains(word)) {
        return Err(format!("{} is there twice", twice.1));
    }
    if words.contains(&"") {
        return Err("an empty value".to_owned());
    }
    // A number that would change by being read, such as 007, stays a word.
    let numbers: Option<Vec<Value>> = words
        .iter()
        .map(|word| word.parse::<i64>().ok().filter(|n| n.to_string() == *word).map(Value::Integer))
        .collect();
    Ok(numbers.unwrap_or_else(|| words.into_iter().map(|word| Value::Text(word.to_owned())).collect()))
}

/// The values of `FROM..TO`, `FROM..TO+STEP` or `FROM..TO*FACTOR`. None if it is no range.
fn range(text: &str) -> Option<Result<Vec<Value>, String>> {
    let (from, rest) = text.split_once("..")?;
    let from: i64 = from.trim().parse().ok()?;
    let split = rest.find(['+', '*']).unwrap_or(rest.len());
    let (to, step) = rest.split_at(split);
    let to: i64 = to.trim().parse().ok()?;
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let next: Box<dyn Fn(i64) -> Option<i64>> =
        match (step.chars().next(), number(step.get(1..).unwrap_or(""))) {
            (None, _) => Box::new(|n| n.checked_add(1)),
            (Some('+'), Some(step)) if step > 0 => Box::new(move |n| n.checked_add(step)),
            (Some('*'), Some(factor)) if factor > 1 && from > 0 => Box::new(move |n| n.checked_mul(factor)),
            _ => {
                return Some(Err(format!(
                    "`{step}` is not a step: write +1 or more, or *2 or more from 1 on"
                )));
            }
        };
    if from > to {
        return Some(Err(format!("{from} is above {to}")));
    }
    let all = std::iter::successors(Some(from), |n| next(*n)).take_while(|n| *n <= to).take(MOST_VALUES + 1);
    let all: Vec<Value> = all.map(Value::Integer).collect();
    Some(if all.len() > MOST_VALUES { Err(format!("more than {MOST_VALUES} values")) } else { Ok(all) })
}

/// Programs whose first argument says what runs.
const RUNNERS: [&str; 17] = [
    "python", "python3", "node", "ruby", "java", "sh", "bash", "go", "npx", "uv", "deno", "bun", "php",
    "perl", "erl", "elixir", "env",
];

/// A short name for a command: the program's, or that of the script that it runs.
fn name_of(command: &[String], shell: bool) -> String {
    let split = if shell { shlex::split(command.last().map_or("", String::as_str)) } else { None };
    let words = split.as_deref().unwrap_or(command);
    let program = words.first().map_or("", String::as_str);
    let base = |word: &str| Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let script = words.iter().skip(1).find(|word| !word.starts_with('-') && word.contains(['.', '/']));
    match script.filter(|word| RUNNERS.contains(&base(program).as_str()) && !word.contains('{')) {
        Some(script) => script.trim_start_matches("./").to_owned(),
        None if program.starts_with('/') => base(program),
        None => program.trim_start_matches("./").to_owned(),
    }
}

/// The name with only the characters that names of systems may have.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "arm".to_owned() } else { name.to_owned() }
}

/// The name, with a number behind it if it is taken.
fn unique(names: &mut Vec<String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !names.contains(name));
    let free = free.unwrap_or_default();
    names.push(free.clone());
    free
}

/// The command with its knobs filled in, for people.
pub fn shown(manifest: &Manifest, point: &systems::Point) -> anyhow::Result<String> {
    let cores = systems::machine::Placement::decide(&systems::machine::available_cores()).system;
    let launch = systems::Launch {
        manifest,
        out: Path::new(""),
        listening: None,
        certificate: None,
        tls: None,
        point,
        cores: systems::allotment::cores(&cores, point),
        narrows: Path::new("narrows"),
    };
    let words = launch.shown().map_err(|why| anyhow!("the command of {}: {why}", manifest.name))?;
    Ok(common::command_line(words.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().copied().map(Value::Integer).collect()
    }

    #[test]
    fn lists_and_ranges_of_values() {
        for (text, expected) in [
            ("1,2,4", integers(&[1, 2, 4])),
            ("1..4", integers(&[1, 2, 3, 4])),
            ("1..64*4", integers(&[1, 4, 16, 64])),
            ("1..60*4", integers(&[1, 4, 16])),
            ("1..10+4", integers(&[1, 5, 9])),
            ("-2..0", integers(&[-2, -1, 0])),
            ("7", integers(&[7])),
        ] {
            assert_eq!(values(text), Ok(expected), "{text}");
        }
        let words = |list: &[&str]| list.iter().map(|word| Value::Text((*word).to_owned())).collect();
        assert_eq!(values("sync,gthread"), Ok(words(&["sync", "gthread"])));
        assert_eq!(values("007,8"), Ok(words(&["007", "8"])));
        assert_eq!(values("a..b"), Ok(words(&["a..b"])));
        for wrong in ["4..1", "1..9*1", "0..9*2", "1..9+0", "1,,2", "1,1", "1..100000", "1..9+x"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_get_short_names() {
        let name = |text: &str| plain(&name_of(&shlex::split(text).expect("words"), false));
        for (command, expected) in [
            ("./server --port {port}", "server"),
            ("./old/server {port}", "old-server"),
            ("/usr/sbin/nginx -p .", "nginx"),
            ("python3 app.py {port}", "app.py"),
            ("node dist/main.js", "dist-main.js"),
            ("python3 -m http.server {port}", "http.server"),
            ("gunicorn -b 127.0.0.1:{port} app:app", "gunicorn"),
        ] {
            assert_eq!(name(command), expected, "{command}");
        }
        let mut names = Vec::new();
        let all: Vec<String> = (0..3).map(|_| unique(&mut names, "server")).collect();
        assert_eq!(all, ["server", "server-2", "server-3"]);
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
