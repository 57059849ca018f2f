//! What both sides choose by name: versions, cipher suites, groups and application protocols.

use std::sync::Arc;

use rustls::crypto::ring::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{
    CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion, version,
};
use serde::{Deserialize, Serialize};

use crate::error::TlsError;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Version {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl Version {
    /// All versions.
    pub const ALL: [Self; 2] = [Self::Tls12, Self::Tls13];

    /// The name of the version, without "TLS".
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }

    /// The version with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn from_name(name: &str) -> Result<Self, TlsError> {
        Self::ALL.into_iter().find(|version| version.name() == name).ok_or_else(|| TlsError::Unknown {
            kind: "version of TLS",
            name: name.to_owned(),
            known: list(Self::ALL.iter().map(|version| version.name())),
        })
    }

    pub(crate) fn of(version: ProtocolVersion) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.protocol().version == version)
    }

    fn protocol(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &version::TLS12,
            Self::Tls13 => &version::TLS13,
        }
    }
}

/// What one side is willing to agree on. The default is all that there is, no application protocol, and no sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Parameters {
    /// The versions; none stands for all.
    pub versions: Vec<Version>,
    /// The cipher suites by name ([`ciphers`]), the most wanted first; none stands for all.
    pub ciphers: Vec<String>,
    /// The groups by name ([`groups`]), the most wanted first; none stands for all. A client sends a key of the first one.
    pub groups: Vec<String>,
    /// The application protocols, the most wanted first. If there are any, the connection must agree on one of them.
    pub alpn: Vec<Vec<u8>>,
    /// Whether a client offers its sessions again, and whether a server gives tickets for them.
    pub sessions: bool,
}

/// The name of HTTP/2 among application protocols (RFC 9113, section 3.2).
pub const HTTP2: &[u8] = b"h2";

impl Parameters {
    /// Lets the connection agree on HTTP/2 and on nothing else.
    pub fn only_http2(&mut self) {
        self.alpn = vec![HTTP2.to_vec()];
    }
}

/// The cipher suites: rustls' value, IANA's name, and OpenSSL's where it differs.
const CIPHERS: [(SupportedCipherSuite, &str, &str); 9] = [
    (cipher_suite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", ""),
    (cipher_suite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", ""),
    (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", ""),
    (
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ),
    (
        cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    (
        cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ),
];

/// The groups: rustls' value, IANA's name, and the usual other one.
const GROUPS: [(&dyn SupportedKxGroup, &str, &str); 3] = [
    (kx_group::X25519, "x25519", ""),
    (kx_group::SECP256R1, "secp256r1", "P-256"),
    (kx_group::SECP384R1, "secp384r1", "P-384"),
];

/// The names of the cipher suites, in the usual order of preference. OpenSSL's names are known, too.
pub fn ciphers() -> impl Iterator<Item = &'static str> {
    CIPHERS.iter().map(|(_, name, _)| *name)
}

/// The names of the groups, in the usual order of preference.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(_, name, _)| *name)
}

pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    CIPHERS.iter().find(|(known, ..)| known.suite() == suite).map_or("unknown", |(_, name, _)| name)
}

pub(crate) fn group_name(group: NamedGroup) -> &'static str {
    GROUPS.iter().find(|(known, ..)| known.name() == group).map_or("unknown", |(_, name, _)| name)
}

impl Parameters {
    /// The cryptography of the chosen suites and groups.
    pub(crate) fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let suites = chosen("cipher suite", &self.ciphers, &CIPHERS)?;
        let absent = self
            .versions
            .iter()
            .find(|wanted| suites.iter().all(|suite| suite.version() != wanted.protocol()));
        if let Some(version) = absent {
            return Err(TlsError::NoCipher(version.name()));
        }
        let kx_groups = chosen("group", &self.groups, &GROUPS)?;
        Ok(Arc::new(CryptoProvider { cipher_suites: suites, kx_groups, ..default_provider() }))
    }

    /// The chosen versions.
    pub(crate) fn protocols(&self) -> Vec<&'static SupportedProtocolVersion> {
        let versions = if self.versions.is_empty() { &Version::ALL[..] } else { &self.versions };
        versions.iter().map(|version| version.protocol()).collect()
    }

    /// The application protocols, if their names are legal.
    pub(crate) fn alpn(&self) -> Result<Vec<Vec<u8>>, TlsError> {
        match self.alpn.iter().find(|name| !(1..=255).contains(&name.len())) {
            Some(name) => Err(TlsError::Alpn(name.len())),
            None => Ok(self.alpn.clone()),
        }
    }
}

/// The values with these names, in their order; all values if there are no names. Case does not count.
fn chosen<T: Copy>(
    kind: &'static str,
    names: &[String],
    all: &[(T, &'static str, &'static str)],
) -> Result<Vec<T>, TlsError> {
    if names.is_empty() {
        return Ok(all.iter().map(|(value, ..)| *value).collect());
    }
    let find = |name: &String| {
        let is = |known: &str| !known.is_empty() && known.eq_ignore_ascii_case(name);
        let row = all.iter().find(|(_, first, second)| is(first) || is(second));
        let known = || list(all.iter().map(|(_, name, _)| *name));
        row.map(|(value, ..)| *value).ok_or_else(|| TlsError::Unknown {
            kind,
            name: name.clone(),
            known: known(),
        })
    };
    names.iter().map(find).collect()
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
