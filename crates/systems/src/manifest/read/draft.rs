//! A system as values, for what has no manifest of its own: a command, what it does, its knobs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::{Spanned, Value as Toml};

use super::{Command, RawBuild, RawKnob, RawManifest, RawReady, RawStart};
use crate::knob::{Knob, Value};
use crate::workload::{Role, Workload};

/// What a system is; the fields are those of docs/contracts.md.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it can do: `clients` alone, or some of the others.
    pub workloads: Vec<Workload>,
    /// The language its program is written in.
    pub language: String,
    /// What it is, in one line.
    pub about: String,
    /// How it is built; none: there is nothing to build.
    pub build: Option<Vec<String>>,
    /// How it is started.
    pub command: Vec<String>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// The path of a GET that answers 200 when it is ready; none: that it accepts a connection is enough.
    pub ready: Option<String>,
    /// Its own knobs.
    pub knobs: BTreeMap<String, Knob>,
    /// The absolute path of the folder in which its commands run.
    pub dir: PathBuf,
    /// The absolute path of the folder under which it is built.
    pub home: PathBuf,
}

/// A value of no file has no place.
fn nowhere<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn words(command: Vec<String>) -> Command {
    nowhere(command.into_iter().map(nowhere).collect())
}

impl From<Draft> for RawManifest {
    fn from(draft: Draft) -> Self {
        let ready = |path| RawReady { tcp: None, http: Some(nowhere(path)), timeout_s: None };
        let knobs = draft.knobs.into_iter().map(|(name, knob)| (nowhere(name), nowhere(raw(knob))));
        let env = draft.env.into_iter().map(|(name, value)| (nowhere(name), nowhere(value)));
        Self {
            name: nowhere(draft.name),
            role: draft.workloads.first().map_or(Role::Server, |workload| workload.role()),
            workloads: nowhere(draft.workloads.into_iter().map(nowhere).collect()),
            language: draft.language,
            about: draft.about,
            needs: Vec::new(),
            build: draft.build.map(|command| RawBuild {
                command: words(command),
                timeout_s: None,
                version: None,
                inputs: Vec::new(),
                get: None,
            }),
            start: Some(RawStart { command: words(draft.command), env: env.collect() }),
            attach: None,
            get: None,
            answer: None,
            ready: draft.ready.map(|path| nowhere(ready(path))),
            stop: None,
            knobs: knobs.collect(),
            variants: BTreeMap::new(),
            apply: BTreeMap::new(),
        }
    }
}

fn raw(knob: Knob) -> RawKnob {
    let value = |value: Value| {
        nowhere(match value {
            Value::Boolean(flag) => Toml::Boolean(flag),
            Value::Integer(number) => Toml::Integer(number),
            Value::Text(word) => Toml::String(word),
        })
    };
    RawKnob {
        kind: knob.kind,
        default: value(knob.default),
        values: knob.values.into_iter().map(value).collect(),
        min: knob.min.map(|bound| value(Value::Integer(bound))),
        max: knob.max.map(|bound| value(Value::Integer(bound))),
        about: knob.about,
        effect: knob.effect,
        workloads: (!knob.workloads.is_empty())
            .then(|| nowhere(knob.workloads.into_iter().map(nowhere).collect())),
    }
}
