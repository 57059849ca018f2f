//! A system made from values instead of a manifest file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::{Spanned, Value as Toml};

use super::{RawBuild, RawCommand, RawKnob, RawManifest, RawReady, RawStart};
use crate::knob::{Knob, Value};
use crate::workload::{Role, Workload};

/// The values of a manifest. The fields are those of docs/contracts.md.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The name, made of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The workloads that it can do: either `clients`, or any of the others.
    pub workloads: Vec<Workload>,
    /// The language that its program is written in.
    pub language: String,
    /// A description in one line.
    pub about: String,
    /// The build command. None if there is nothing to build.
    pub build: Option<Vec<String>>,
    /// The start command.
    pub command: Vec<String>,
    /// Variables to add to the environment.
    pub env: BTreeMap<String, String>,
    /// The path of a GET that answers 200 when it is ready. If none, it is enough that it accepts a connection.
    pub ready: Option<String>,
    /// Its own knobs.
    pub knobs: BTreeMap<String, Knob>,
    /// The absolute path of the folder in which its commands run.
    pub dir: PathBuf,
    /// The absolute path of the folder under which it is built.
    pub home: PathBuf,
}

/// A value that comes from no file, so it has no position.
fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn words(command: Vec<String>) -> RawCommand {
    spanned(command.into_iter().map(spanned).collect())
}

impl From<Draft> for RawManifest {
    fn from(draft: Draft) -> Self {
        let ready = |path| RawReady { tcp: None, http: Some(spanned(path)), timeout_s: None };
        let knobs = draft.knobs.into_iter().map(|(name, knob)| (spanned(name), spanned(raw(knob))));
        let env = draft.env.into_iter().map(|(name, value)| (spanned(name), spanned(value)));
        Self {
            name: spanned(draft.name),
            role: draft.workloads.first().map_or(Role::Server, |workload| workload.role()),
            workloads: spanned(draft.workloads.into_iter().map(spanned).collect()),
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
            ready: draft.ready.map(|path| spanned(ready(path))),
            stop: None,
            knobs: knobs.collect(),
            variants: BTreeMap::new(),
            apply: BTreeMap::new(),
        }
    }
}

fn raw(knob: Knob) -> RawKnob {
    let value = |value: Value| {
        spanned(match value {
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
            .then(|| spanned(knob.workloads.into_iter().map(spanned).collect())),
    }
}
