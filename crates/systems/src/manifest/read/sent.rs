//! A checked manifest as raw fields again, so that one that was made elsewhere is checked like a file.

use std::collections::BTreeMap;

use super::super::{BuildInput, Hooks, Manifest, Need, Program, Start, Variant};
use super::draft::{raw, spanned, words};
use super::raw::{RawAnswer, RawBuild, RawDebian, RawManifest, RawNeed, RawReady, RawStart, RawStop};
use super::{Read, Reader};
use crate::manifest::{Build, OwnAnswer};
use crate::workload::Role;

impl From<Manifest> for RawManifest {
    fn from(sent: Manifest) -> Self {
        let (start, attached) = match sent.program {
            Program::Started(start) => (Some(start), None),
            Program::Attached(attached) => (None, Some(attached)),
        };
        let started = start.is_some();
        let ready = RawReady {
            tcp: None,
            http: sent.ready.http.map(spanned),
            timeout_s: (!sent.ready.more_if_busy)
                .then(|| spanned(whole(sent.ready.timeout.as_secs().into()))),
            outside: sent.ready.outside,
        };
        let name = match (sent.name.split_once('@'), &sent.variant) {
            (Some((plain, _)), Some(_)) => plain.to_owned(),
            _ => sent.name,
        };
        Self {
            name: spanned(name),
            role: sent.role,
            workloads: spanned(sent.workloads.into_iter().map(spanned).collect()),
            language: sent.language,
            about: sent.about,
            needs: sent.needs.into_iter().map(raw_need).collect(),
            build: sent.build.map(raw_build),
            start: start.map(raw_start),
            get: attached.as_ref().map(|attached| spanned(attached.get.clone())),
            at: attached
                .as_ref()
                .and_then(|attached| attached.host.as_ref().map(|_| attached.listening.clone())),
            attach: attached.map(|attached| spanned(attached.url)),
            http2: sent.http2,
            tls: None,
            dialing: sent.tls,
            answer: sent.answer.map(|answer| spanned(raw_answer(answer))),
            ready: (started && sent.role == Role::Server).then(|| spanned(ready)),
            stop: started.then(|| RawStop { grace_ms: Some(spanned(whole(sent.grace.as_millis()))) }),
            knobs: sent.knobs.into_iter().map(|(name, knob)| (spanned(name), spanned(raw(knob)))).collect(),
            variants: Default::default(),
            apply: sent.apply.into_iter().map(|(knob, text)| (spanned(knob), spanned(text))).collect(),
        }
    }
}

impl Reader<'_> {
    /// Checks what a variant adds.
    pub(super) fn sent_variant(&self, sent: &Variant) -> Read<Variant> {
        let env = sent.env.iter().map(|(name, value)| (spanned(name.clone()), spanned(value.clone())));
        let path = sent.path.clone().map(spanned);
        self.added(&spanned(sent.name.clone()), path.as_ref(), &env.collect(), Some(sent.get.clone()))
    }
}

/// A number that is too large for any field stays too large.
fn whole(number: u128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn raw_need(need: Need) -> RawNeed {
    // Packages of a release need no probe.
    let probe = Some(need.probe).filter(|probe| !probe.is_empty() || need.debian.is_none());
    RawNeed {
        name: spanned(need.name),
        probe: probe.map(spanned),
        version: need.version.map(spanned),
        get: Some(need.get),
        packages: need.packages,
        debian: need.debian.map(|debian| {
            spanned(RawDebian {
                release: spanned(debian.release),
                packages: debian.packages.into_iter().map(spanned).collect(),
                dependencies: debian.dependencies,
                name: debian.name.map(spanned),
            })
        }),
    }
}

fn raw_build(build: Build) -> RawBuild {
    let input = |input| match input {
        BuildInput::Variable(name) => format!("${name}"),
        BuildInput::Path(path) => path,
    };
    RawBuild {
        command: words(build.command),
        timeout_s: Some(spanned(whole(build.timeout.as_secs().into()))),
        version: build.version.map(words),
        inputs: build.inputs.into_iter().map(input).map(spanned).collect(),
        get: build.get,
    }
}

fn raw_start(start: Start) -> RawStart {
    let Hooks { setup, prepare, conclude } = start.hooks;
    let environment = |env: BTreeMap<String, String>| {
        env.into_iter().map(|(name, value)| (spanned(name), spanned(value))).collect()
    };
    RawStart {
        command: words(start.command),
        env: environment(start.env),
        profile_env: environment(start.profile_env),
        finds_port: start.finds_port,
        // A whole path replaces the folder that it would begin in.
        dir: Some(spanned(start.dir.to_string_lossy().into_owned())),
        setup: setup.map(words),
        prepare: prepare.map(words),
        conclude: conclude.map(words),
    }
}

fn raw_answer(answer: OwnAnswer) -> RawAnswer {
    RawAnswer { body: Some(answer.body), closes: answer.closes, fault: answer.fault, about: answer.about }
}
