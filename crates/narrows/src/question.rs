//! What a run asks, as a value: the verb and its options. It is saved with the run. So a run goes on, or begins again without a
//! generator, from what was asked, and not from the words of its command line.

use anyhow::{anyhow, bail};
use clap::Parser;
use lab::session::Without;
use lab::store::{RunHeader, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use systems::machine::Limit;

use crate::common::{self, End};
use crate::fleet_args::FleetArgs;
use crate::lab_args::LabArgs;
use crate::runs::{Asked, MachineLost, Run};
use crate::{Cli, Verb, run_verb, try_verb, tune_verb};

/// What a run asks: the options of its verb. Their names and values are those of the command line, and stay readable: an option that
/// is not saved has its default, which is nothing.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// `narrows run`
    Run(Box<run_verb::Args>),
    /// `narrows try`
    Try(Box<try_verb::Args>),
    /// `narrows tune`
    Tune(Box<tune_verb::Args>),
}

/// The options that do not change what a run asks: where its output goes, how many trials there are, and which other experiments run
/// with one.
const BESIDE: [&str; 18] = [
    "experiments",
    "all",
    "quick",
    "systems",
    "rounds",
    "budget",
    "seed",
    "quiet",
    "store",
    "format",
    "save",
    "dry_run",
    "build",
    "builds",
    "fail_if",
    "inconclusive",
    "go_on_without",
    "ledger",
];

impl Question {
    /// What two runs have in common that ask the same. `commits` says whether it matters which commits they compare. None if one of
    /// its options names a file whose name is no text.
    pub fn identity(&self, commits: bool) -> Option<Value> {
        let mut asked = self.saved()?;
        for options in asked.as_object_mut()?.values_mut() {
            let matters = |name: &str| !BESIDE.contains(&name) && (commits || name != "git");
            options.as_object_mut()?.retain(|name, _| matters(name));
        }
        Some(asked)
    }

    /// Whether it compares commits, whose clones are not saved with the run.
    pub fn is_of_commits(&self) -> bool {
        matches!(self, Self::Try(args) if args.is_of_commits())
    }

    /// Whether it is an attempt of a ledger, which is measured at once.
    fn has_ledger(&self) -> bool {
        matches!(self, Self::Try(args) if args.has_ledger())
    }

    /// It as it is saved: the options that are given. None if one names a file whose name is no text.
    fn saved(&self) -> Option<Value> {
        let mut saved = serde_json::to_value(self).ok()?;
        for options in saved.as_object_mut()?.values_mut() {
            options.as_object_mut()?.retain(|_, value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(values) => !values.is_empty(),
                _ => true,
            });
        }
        Some(saved)
    }

    /// Reads what was saved. None if another version has saved it and this one does not know an option or its value.
    fn read(saved: &Value) -> Option<Self> {
        let question = Self::deserialize(saved).ok()?;
        // An option that is unknown has not been read.
        (question.saved().as_ref() == Some(saved)).then_some(question)
    }

    /// What a saved run asks. The words of its command line are read only if it began with a version that saved no questions.
    ///
    /// # Errors
    /// This version does not understand it.
    pub fn of(run: RunId, header: &RunHeader) -> anyhow::Result<Self> {
        let command = &header.command;
        let unread = |why: anyhow::Error| {
            anyhow!("run {run} began with `narrows {command}`, which cannot be read again: {why}")
        };
        match &header.question {
            Some(saved) => Self::read(saved)
                .ok_or_else(|| unread(anyhow!("another version saved it, and can continue it"))),
            None => Self::of_command(command).map_err(unread),
        }
    }

    /// What a command line asks, without the name of the program.
    ///
    /// # Errors
    /// This version does not understand it, or its verb begins no run.
    pub fn of_command(command: &str) -> anyhow::Result<Self> {
        let words = shlex::split(command).unwrap_or_default();
        let read = Cli::try_parse_from(std::iter::once("narrows".to_owned()).chain(words));
        let cli =
            read.map_err(|error| anyhow!("{}", error.to_string().lines().next().unwrap_or_default()))?;
        match cli.verb {
            Verb::Run(args) => Ok(Self::Run(args)),
            Verb::Try(args) => Ok(Self::Try(args)),
            Verb::Tune(args) => Ok(Self::Tune(args)),
            Verb::Why(_) => bail!("it tested the reasons of another run: name that run instead"),
            _ => bail!("this verb begins no run"),
        }
    }

    /// What a run that answers it saves of it.
    fn asked(&self, command: &str) -> Asked {
        let at_once = self.is_of_commits() || self.has_ledger();
        Asked { command: command.to_owned(), question: self.saved(), at_once }
    }

    fn begin(&self, command: &str, files: Limit) -> End {
        let asked = self.asked(command);
        match self {
            Self::Run(args) => run_verb::run(args, &asked, files),
            Self::Try(args) => try_verb::run(args, &asked, files),
            Self::Tune(args) => tune_verb::run(args, &asked, files),
        }
    }

    /// The machines of its run.
    pub fn fleet(&mut self) -> &mut FleetArgs {
        match self {
            Self::Run(args) => &mut args.lab.fleet,
            Self::Try(args) => &mut args.lab.fleet,
            Self::Tune(args) => &mut args.lab.fleet,
        }
    }
}

/// Begins a run that answers what the running command asks.
pub fn answer(question: Question, files: Limit) -> End {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command = common::command_line(words);
    let end = question.begin(&command, files);
    or_without(question, command, end, files)
}

/// Continues a saved run as the verb that began it.
pub fn resume(lab: &LabArgs, word: &str, files: Limit) -> End {
    let run = Run::saved(lab, word)?;
    let (question, command) = (Question::of(run.id, &run.header)?, run.header.command.clone());
    if question.is_of_commits() {
        bail!(
            "run {} cannot be continued, because the clones of its commits are not saved with it: `narrows {command}` runs it again",
            run.id
        );
    }
    if question.has_ledger() {
        bail!(
            "run {} cannot be continued, because it is an attempt of a ledger, which is measured at once: `narrows {command}` makes \
             another attempt",
            run.id
        );
    }
    if !matches!(question, Question::Run(_)) {
        common::say(format_args!("run {} goes on: narrows {command}", run.id));
    }
    // The machines are those with which it began.
    let end = match &question {
        Question::Run(args) => run_verb::resume(&run, &lab.on(&args.lab.fleet), files),
        Question::Try(args) => {
            try_verb::resume(args, &question.asked(&command), &run, &lab.on(&args.lab.fleet), files)
        }
        Question::Tune(args) => tune_verb::resume(args, &run, &lab.on(&args.lab.fleet), files),
    };
    or_without(question, command, end, files)
}

/// The end of a run, or that of another run without the generator that it has lost, if it may go on so. That run begins from the
/// beginning, so no figure is of trials with different generators.
fn or_without(mut question: Question, mut command: String, mut end: End, files: Limit) -> End {
    loop {
        let lost = end.as_ref().err().and_then(|error| error.downcast_ref());
        let Some(MachineLost { why, without: Some(without) }) = lost else { return end };
        question.fleet().go_on(without)?;
        let words = shlex::split(&command).unwrap_or_default();
        command = common::command_line(commanded(words, without).into_iter());
        common::say(format_args!("{why}; another run begins: narrows {command}"));
        end = question.begin(&command, files);
    }
}

/// The words of a command with other generators.
fn commanded(words: Vec<String>, without: &Without) -> Vec<String> {
    let mut words = words.into_iter();
    let mut commanded: Vec<String> = words.next().into_iter().collect();
    for machine in &without.others {
        commanded.extend(["--gen".to_owned(), machine.clone()]);
    }
    commanded.extend(["--without".to_owned(), without.lost.clone()]);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                commanded.push(word);
                break;
            }
            "--gen" => _ = words.next(),
            other if other.starts_with("--gen=") => {}
            _ => commanded.push(word),
        }
    }
    commanded.extend(words);
    commanded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Command lines with most options.
    const COMMANDS: [&str; 12] = [
        "run",
        "run a b --full --systems x,y --set buffer=1,2 --rounds 5 --budget 10m --seed 18446744073709551615 --fake f.toml",
        "run a --rounds file --sut ssh://u@h:22 --gen 'exec:x -o c,d,local' --gen slurm:2 --address ::1 --go-on-without",
        "try 'a {port}' 'b {port}' --names c,d --figure p99,max-rate --slo 'p99<20ms,errors<0.1%' --threshold 0.1 -d 1.5s --cold",
        "try http://h:1 --rate 1k --gaps poisson -X PUT -H 'a: b' --body @f --expect 'json.a=1' --expect-status 201 --compressed",
        "try https://h:1 --tls 1.2,1.3 --cert c --key k --alpn http/1.1 --tls-sessions always --connect-to x:1 --proxy-protocol 2",
        "try a --requests f --requests-format vegeta-json --requests-order in-order --data d --shell --env A=B --service s",
        "try a --first 'POST /l x' --capture t=json.t --cookies --fail-if 'rate<0.9' --inconclusive pass --format junit --save n",
        "try a --git A..B --build make --builds 3 -k w=1,2 -L v 1,2 --ready 2m --attach --unequal --rounds 7 --store s.db",
        "try 'a {port}' 'b {port}' --ledger l.json --format verdict --figure p99 --no-duet",
        "try 'a {port}' --driver 'x -p {port} -t {duration}' --read rate=json.a --read 'p99=/p99 (.*)/' --driver-timeout 9s",
        "tune nginx --knob w=1..16 --memory 500M --slo 'p99<20ms' --workload requests --set a=1 --size 1M --timeout 3s",
    ];

    fn asked(command: &str) -> Question {
        let header = |question| RunHeader {
            started_unix_s: 0.0,
            command: command.to_owned(),
            question,
            plan: lab::plan::Plan::new(1, Vec::new()),
            environment: Value::Null,
        };
        let of_words = Question::of(1, &header(None)).expect("a command line");
        let saved = of_words.saved().expect("it can be saved");
        let text: Value = serde_json::from_str(&saved.to_string()).expect("JSON");
        let of_value = Question::of(1, &header(Some(text))).expect("what was saved");
        assert_eq!(of_value.saved(), Some(saved), "{command}");
        of_value
    }

    #[test]
    fn questions_are_read_as_they_were_saved() {
        for command in COMMANDS {
            asked(command);
        }
        assert!(asked("try a --git A,B").is_of_commits() && !asked("try 'a --git B'").is_of_commits());
    }

    /// Any JSON, with values that are hard to read as options.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            proptest::sample::select(vec![
                "@", "{port}", "1..", "p99<", "1e400", "ssh://", "json.", "0x", "-1"
            ])
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z_]{1,9}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The places in a value: objects and lists, and what they have.
    fn places(value: &Value, place: String, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(name, inner)| places(inner, format!("{place}/{name}"), found));
            }
            Value::Array(all) => {
                all.iter().enumerate().for_each(|(at, inner)| places(inner, format!("{place}/{at}"), found));
            }
            _ => {}
        }
        found.push(place);
    }

    proptest! {
        /// A store may be damaged, or be another program's.
        #[test]
        fn no_saved_question_panics_and_what_is_read_is_what_was_saved(
            command in proptest::sample::select(COMMANDS.to_vec()),
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any_json()), 1..4),
        ) {
            let mut saved = asked(command).saved().expect("it can be saved");
            for (place, value) in changes {
                let mut found = Vec::new();
                places(&saved, String::new(), &mut found);
                let place: &String = place.get(&found[..]);
                *saved.pointer_mut(place).expect("a place") = value;
            }
            if let Some(question) = Question::read(&saved) {
                prop_assert_eq!(question.saved(), Some(saved));
                prop_assert!(question.identity(true).is_some());
            }
        }
    }

    #[test]
    fn runs_ask_the_same_if_what_is_measured_is_the_same() {
        let identity = |command: &str| asked(command).identity(true).expect("it can be saved");
        for (one, other, same) in [
            (
                "try 'a {port}' b --seed 1 --rounds 3 --quiet",
                "try 'a {port}' b --budget 2m --format json",
                true,
            ),
            ("try a b --ledger l.json", "try a b", true),
            ("try a b", "try a c", false),
            ("try a b", "try a b -d 2s", false),
            ("try a --git A..B --build make", "try a --git A..B --build 'make -j'", true),
            ("try a --git A..B", "try a --git A..C", false),
            ("run e f --rounds 3 --store x.db", "run e --systems s", true),
            ("run e --set buffer=1", "run e", false),
        ] {
            assert_eq!(identity(one) == identity(other), same, "{one} | {other}");
        }
        let of_commits = |command: &str| asked(command).identity(false);
        assert_eq!(of_commits("try a --git A..B"), of_commits("try a --git B..C"));
        assert_ne!(of_commits("try a --git A..B"), of_commits("try b --git B..C"));
    }

    #[test]
    fn only_what_is_given_is_saved_and_what_is_unknown_is_not_ignored() {
        let saved = asked("try './a {port}' -d 2s").saved();
        let second = |secs: u64| json!({ "secs": secs, "nanos": 0 });
        let expected = json!({ "try": {
            "arms": ["./a {port}"], "duration": second(2), "threshold": 0.05, "timeout": second(30), "gaps": "constant",
            "pipeline": 1, "format": "text", "builds": 1,
        } });
        assert_eq!(saved, Some(expected.clone()));
        for (place, value) in [("/try/arm", json!(["x"])), ("/try/builds", json!("two")), ("/do", json!({}))]
        {
            let mut other = expected.clone();
            let (parent, name) = place.rsplit_once('/').expect("a place");
            let parent = other.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
            parent.insert(name.to_owned(), value);
            assert!(Question::read(&other).is_none(), "{place}");
        }
    }

    #[test]
    fn another_run_goes_on_with_the_other_generators() {
        let command = "run e --gen ssh://a,ssh://b,ssh://c --without ssh://z --go-on-without";
        let others = vec!["ssh://a".to_owned(), "ssh://c".to_owned()];
        let without = Without { lost: "ssh://b".to_owned(), others };
        let mut question = asked(command);
        question.fleet().go_on(&without).expect("names of machines");
        let saved = question.saved().expect("it can be saved");
        assert_eq!(saved["run"]["generators"], json!(["ssh://a", "ssh://c"]));
        assert_eq!(saved["run"]["without"], json!(["ssh://b", "ssh://z"]));
        let words = commanded(shlex::split(command).expect("words"), &without);
        assert_eq!(asked(&common::command_line(words.into_iter())).saved(), Some(saved));
    }

    #[test]
    fn the_command_of_the_other_run_names_the_other_generators() {
        let without = Without {
            lost: "ssh://b".to_owned(),
            others: vec!["ssh://a".to_owned(), "exec:x -o 'c,d'".to_owned()],
        };
        for (before, after) in [
            ("run e --gen ssh://a,ssh://b --quiet", "e --quiet"),
            ("run --gen=ssh://a e --gen ssh://b", "e"),
            ("run e --gen ssh://b --without ssh://z", "e --without ssh://z"),
            ("try --gen ssh://b -- --gen './server --gen x'", "-- --gen './server --gen x'"),
        ] {
            let words = shlex::split(before).expect("words");
            let verb = words[0].clone();
            let beginning = [&*verb, "--gen", "ssh://a", "--gen", "exec:x -o 'c,d'", "--without", "ssh://b"];
            let mut expected = beginning.map(str::to_owned).to_vec();
            expected.extend(shlex::split(after).expect("words"));
            assert_eq!(commanded(words, &without), expected, "{before}");
        }
    }
}
