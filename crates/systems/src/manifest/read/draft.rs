//! A system made from values instead of a manifest file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::{Spanned, Value as Toml};

use super::super::{Hooks, Remedies};
use super::raw::{RawBuild, RawCommand, RawKnob, RawManifest, RawReady, RawStart};
use crate::knob::{Knob, Value};
use crate::listening::Listening;
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
    /// The start command. Empty if its user starts it.
    pub command: Vec<String>,
    /// The URL of a server that its user starts.
    pub attach: Option<String>,
    /// Where that server listens, if its URL does not say so.
    pub at: Option<Listening>,
    /// How its clients speak TLS, if that is not the run's matter.
    pub tls: Option<tls::Dialing>,
    /// Variables to add to the environment.
    pub env: BTreeMap<String, String>,
    /// Further variables for trials that are profiled.
    pub profile_env: BTreeMap<String, String>,
    /// The path of a GET that answers 200 when it is ready. If none, it is enough that it accepts a connection.
    pub ready: Option<String>,
    /// How long the start may take, whole seconds. 10 if not set.
    pub ready_timeout_s: Option<u32>,
    /// Whether the socket may belong to a process outside the group.
    pub outside: bool,
    /// Whether a server chooses its port itself.
    pub finds_port: bool,
    /// Commands around the trials.
    pub hooks: Hooks,
    /// Its own knobs.
    pub knobs: BTreeMap<String, Knob>,
    /// Its version, if it is known before it runs.
    pub version: Option<String>,
    /// What can be done about a start that fails.
    pub remedies: Remedies,
    /// The absolute path of the folder in which its commands run.
    pub dir: PathBuf,
    /// The absolute path of the folder under which it is built.
    pub home: PathBuf,
}

/// A value that comes from no file, so it has no position.
pub(super) fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

pub(super) fn words(command: Vec<String>) -> RawCommand {
    spanned(command.into_iter().map(spanned).collect())
}

impl From<Draft> for RawManifest {
    fn from(draft: Draft) -> Self {
        let attached = draft.attach.is_some();
        let is_server = draft.workloads.first().is_none_or(|workload| workload.role() == Role::Server);
        let ready = (is_server && !attached).then(|| {
            spanned(RawReady {
                tcp: None,
                http: draft.ready.map(spanned),
                timeout_s: draft.ready_timeout_s.map(|seconds| spanned(seconds.into())),
                outside: draft.outside,
            })
        });
        let hook = |command: Option<Vec<String>>| command.map(words);
        let knobs = draft.knobs.into_iter().map(|(name, knob)| (spanned(name), spanned(raw(knob))));
        let environment = |env: BTreeMap<String, String>| {
            env.into_iter().map(|(name, value)| (spanned(name), spanned(value))).collect()
        };
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
            start: (!attached).then(|| RawStart {
                command: words(draft.command),
                env: environment(draft.env),
                profile_env: environment(draft.profile_env),
                finds_port: draft.finds_port,
                dir: None,
                setup: hook(draft.hooks.setup),
                prepare: hook(draft.hooks.prepare),
                conclude: hook(draft.hooks.conclude),
            }),
            get: attached.then(|| spanned(String::new())),
            attach: draft.attach.map(spanned),
            at: draft.at,
            // What its user started or wrote a command for, shows whether it does when it is asked.
            http2: true,
            tls: None,
            dialing: draft.tls,
            answer: None,
            ready,
            stop: None,
            knobs: knobs.collect(),
            variants: BTreeMap::new(),
            apply: BTreeMap::new(),
        }
    }
}

pub(super) fn raw(knob: Knob) -> RawKnob {
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
        amount: knob.amount,
        alike: knob.alike.map(value),
        workloads: (!knob.workloads.is_empty())
            .then(|| spanned(knob.workloads.into_iter().map(spanned).collect())),
    }
}
