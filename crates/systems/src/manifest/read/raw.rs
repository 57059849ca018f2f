//! A manifest as serde reads it. serde checks the form of the file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::secured::RawTls;
use crate::knob::Kind;
use crate::listening::Listening;
use crate::workload::{Role, Workload};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawManifest {
    pub(in crate::manifest) name: Spanned<String>,
    pub(in crate::manifest) role: Role,
    pub(in crate::manifest) workloads: Spanned<Vec<Spanned<Workload>>>,
    pub(in crate::manifest) language: String,
    pub(in crate::manifest) about: String,
    #[serde(default)]
    pub(in crate::manifest) needs: Vec<RawNeed>,
    pub(in crate::manifest) build: Option<RawBuild>,
    pub(in crate::manifest) start: Option<RawStart>,
    pub(in crate::manifest) attach: Option<Spanned<String>>,
    pub(in crate::manifest) get: Option<Spanned<String>>,
    /// Where the server of `attach` listens, if its URL does not say so and the manifest has no file.
    #[serde(skip)]
    pub(in crate::manifest) at: Option<Listening>,
    /// Whether it speaks HTTP/2 as well.
    #[serde(default)]
    pub(in crate::manifest) http2: bool,
    pub(in crate::manifest) tls: Option<Spanned<RawTls>>,
    /// The values of `tls`, if the manifest has no file.
    #[serde(skip)]
    pub(in crate::manifest) dialing: Option<tls::Dialing>,
    pub(in crate::manifest) answer: Option<Spanned<RawAnswer>>,
    pub(in crate::manifest) ready: Option<Spanned<RawReady>>,
    pub(in crate::manifest) stop: Option<RawStop>,
    #[serde(default)]
    pub(in crate::manifest) knobs: BTreeMap<Spanned<String>, Spanned<RawKnob>>,
    #[serde(default)]
    pub(in crate::manifest) variants: BTreeMap<Spanned<String>, RawVariant>,
    #[serde(default)]
    pub(in crate::manifest) apply: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawNeed {
    pub(in crate::manifest) name: Spanned<String>,
    pub(in crate::manifest) probe: Option<Spanned<Vec<String>>>,
    pub(in crate::manifest) version: Option<Spanned<String>>,
    pub(in crate::manifest) get: Option<String>,
    #[serde(default)]
    pub(in crate::manifest) packages: Vec<String>,
    pub(in crate::manifest) debian: Option<Spanned<RawDebian>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawDebian {
    pub(in crate::manifest) release: Spanned<String>,
    pub(in crate::manifest) packages: Vec<Spanned<String>>,
    #[serde(default = "yes")]
    pub(in crate::manifest) dependencies: bool,
    pub(in crate::manifest) name: Option<Spanned<String>>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawBuild {
    pub(in crate::manifest) command: RawCommand,
    pub(in crate::manifest) timeout_s: Option<Spanned<i64>>,
    pub(in crate::manifest) version: Option<RawCommand>,
    #[serde(default)]
    pub(in crate::manifest) inputs: Vec<Spanned<String>>,
    pub(in crate::manifest) get: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawStart {
    pub(in crate::manifest) command: RawCommand,
    #[serde(default)]
    pub(in crate::manifest) env: RawEnvironment,
    #[serde(default)]
    pub(in crate::manifest) profile_env: RawEnvironment,
    #[serde(default)]
    pub(in crate::manifest) finds_port: bool,
    pub(in crate::manifest) dir: Option<Spanned<String>>,
    pub(in crate::manifest) setup: Option<RawCommand>,
    pub(in crate::manifest) prepare: Option<RawCommand>,
    pub(in crate::manifest) conclude: Option<RawCommand>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawAnswer {
    pub(in crate::manifest) body: Option<String>,
    #[serde(default)]
    pub(in crate::manifest) closes: bool,
    pub(in crate::manifest) fault: Option<String>,
    pub(in crate::manifest) about: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawReady {
    pub(in crate::manifest) tcp: Option<Spanned<bool>>,
    pub(in crate::manifest) http: Option<Spanned<String>>,
    pub(in crate::manifest) timeout_s: Option<Spanned<i64>>,
    #[serde(default)]
    pub(in crate::manifest) outside: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawStop {
    pub(in crate::manifest) grace_ms: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawKnob {
    #[serde(rename = "type")]
    pub(in crate::manifest) kind: Kind,
    pub(in crate::manifest) default: Spanned<toml::Value>,
    #[serde(default)]
    pub(in crate::manifest) values: Vec<Spanned<toml::Value>>,
    pub(in crate::manifest) min: Option<Spanned<toml::Value>>,
    pub(in crate::manifest) max: Option<Spanned<toml::Value>>,
    pub(in crate::manifest) about: String,
    pub(in crate::manifest) effect: Option<String>,
    #[serde(default)]
    pub(in crate::manifest) amount: bool,
    pub(in crate::manifest) alike: Option<Spanned<toml::Value>>,
    pub(in crate::manifest) workloads: Option<Spanned<Vec<Spanned<Workload>>>>,
}

/// What one variant changes. It inherits everything else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawVariant {
    pub(in crate::manifest) about: Option<String>,
    pub(in crate::manifest) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(in crate::manifest) env: RawEnvironment,
    pub(in crate::manifest) get: Option<String>,
    #[serde(default)]
    pub(in crate::manifest) needs: Vec<RawNeed>,
    pub(in crate::manifest) build: Option<RawBuild>,
    pub(in crate::manifest) start: Option<RawStart>,
    pub(in crate::manifest) answer: Option<Spanned<RawAnswer>>,
}

pub(in crate::manifest) type RawEnvironment = BTreeMap<Spanned<String>, Spanned<String>>;
pub(in crate::manifest) type RawCommand = Spanned<Vec<Spanned<String>>>;
