//! What is sent to a system whose requests are not those of docs/contracts.md, and which of its answers are right.
//!
//! Values only. The session turns them into traffic, and the plan keeps them, so that a saved run says what it sent.

use std::sync::Arc;

use answers::{Capture, Check, Statuses};
use load::Values;
use load::target::{Body, Expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systems::contact::Opening;
use wire::proxy::{self, Version};

/// A request, and the answers that count as successes.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Additional headers. They replace default headers of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    #[serde(default)]
    pub body: Payload,
    /// Whether to send `Expect: 100-continue` and wait for 100.
    #[serde(default)]
    pub expect_continue: bool,
    /// The required status. None accepts any 2xx.
    pub status: Option<u16>,
    /// What the body of an answer must be.
    #[serde(default)]
    pub answer: Demand,
    /// Further checks of each answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub expect: Vec<Check>,
    /// Whether the systems answer differently, and are measured without being compared.
    #[serde(default)]
    pub unequal: bool,
    /// The requests of a file, which are sent instead of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Listed>,
    /// A request that is made once before the others of a trial, and whose answer has values for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// The header with which each connection begins, as that of a proxy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<ProxyProtocol>,
}

/// A version of the PROXY protocol's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum ProxyProtocol {
    /// A line of text.
    #[serde(rename = "1")]
    One,
    /// Bytes of fixed places.
    #[serde(rename = "2")]
    Two,
}

impl ProxyProtocol {
    /// What writes the header on a connection for a single exchange.
    pub fn opening(self) -> Opening {
        match self {
            Self::One => |ends| proxy::header(Version::One, ends),
            Self::Two => |ends| proxy::header(Version::Two, ends),
        }
    }
}

impl From<ProxyProtocol> for Version {
    fn from(version: ProxyProtocol) -> Self {
        match version {
            ProxyProtocol::One => Self::One,
            ProxyProtocol::Two => Self::Two,
        }
    }
}

/// A request whose answer has values for later requests, which name them as `{{name}}` in paths, headers and bodies.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct First {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: Payload,
    /// The values that are taken from its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub capture: Vec<Capture>,
    /// Whether later requests send the cookies that it sets.
    #[serde(default)]
    pub cookies: bool,
}

/// A file of requests. Their number may be large, so the file is read again when a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The file, as its user named it.
    pub file: String,
    /// How many requests it has.
    pub requests: u64,
    /// The SHA-256 of this file, its data and its bodies.
    pub sha256: String,
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// No body and no Content-Length.
    #[default]
    None,
    /// These bytes.
    Bytes(Bytes),
    /// This many bytes of the seeded pattern.
    Size(u64),
}

impl From<Payload> for Body {
    fn from(payload: Payload) -> Self {
        match payload {
            Payload::None => Self::None,
            Payload::Bytes(bytes) => Self::Bytes(Arc::new(bytes.0)),
            Payload::Size(size) => Self::Pattern(size),
        }
    }
}

/// What the body of a right answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Anything.
    #[default]
    Any,
    /// Anything of this length in bytes.
    Length(u64),
    /// Exactly these bytes.
    Content(Bytes),
}

/// Bytes. In JSON they are a text with one character for each byte, so that ASCII stays readable.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Bytes(pub Vec<u8>);

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let byte = |c: char| u8::try_from(c).map_err(|_| format!("`{c}` does not stand for a byte"));
        text.chars().map(byte).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into_iter().map(char::from).collect()
    }
}

impl Ask {
    /// A GET of `path` that any 2xx answers.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Payload::None,
            expect_continue: false,
            status: None,
            answer: Demand::Any,
            expect: Vec::new(),
            unequal: false,
            list: None,
            first: None,
            proxy_protocol: None,
        }
    }

    /// The same request with values in place of their names.
    pub fn filled(&self, values: &Values) -> Self {
        let body = match &self.body {
            Payload::Bytes(bytes) => Payload::Bytes(Bytes(values.fill_body(&bytes.0))),
            other => other.clone(),
        };
        Self {
            path: values.fill_path(&self.path),
            headers: values.fill_headers(&self.headers),
            body,
            ..self.clone()
        }
    }

    /// Which answers are right.
    pub fn right(&self) -> Expect {
        let (body, length) = match &self.answer {
            Demand::Any => (None, None),
            Demand::Length(length) => (None, Some(*length)),
            Demand::Content(bytes) => (Some(bytes.0.clone()), None),
        };
        Expect { body, length, ..Expect::meeting(self.status, self.expect.clone()) }
    }

    /// The accepted statuses.
    pub fn statuses(&self) -> Statuses {
        let checks = self.expect.iter().filter(|check| check.statuses().is_some());
        Expect::meeting(self.status, checks.cloned().collect()).status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_json() {
        let all = Bytes((0..=255).collect());
        let json = serde_json::to_string(&all).expect("it can be written");
        assert_eq!(serde_json::from_str::<Bytes>(&json).expect("it can be read"), all);
        assert!(serde_json::from_str::<Bytes>("\"€\"").is_err());
    }
}
