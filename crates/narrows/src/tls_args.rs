//! The options of TLS of a client: how its connections are made, and whose certificates are accepted.

use std::path::PathBuf;

use anyhow::bail;
use load::target::{self, Url};
use serde::{Deserialize, Serialize};
use tls::{Dialing, Identity, Parameters, Trust, Version};
use toml::{Table, Value};

use crate::common::Usage;
use crate::given;

/// Options of a target that begins with https://.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Accept every certificate. The connection is still encrypted
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Accept certificates that lead to a root in this PEM file, instead of the system's roots
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// The client's certificate (PEM), for a server that asks for one
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that is sent to the server and that its certificate must be for [default: the target's host]
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Application protocols to offer: http/1.1, http/1.0. The server must choose one of them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = protocol)]
    alpn: Vec<String>,
    /// Accept only these versions: 1.2, 1.3
    #[arg(long = "tls", value_name = "VERSIONS", value_delimiter = ',', value_parser = version)]
    versions: Vec<Version>,
    /// Offer only these cipher suites, the most wanted first
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ciphers: Vec<String>,
    /// Offer only these groups for the key exchange, the most wanted first
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    groups: Vec<String>,
    /// Whether a connection offers the session of the one before it [default: never]
    #[arg(long, value_enum, value_name = "WHEN")]
    tls_sessions: Option<Sessions>,
}

/// When sessions are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Sessions {
    /// Each connection makes a full handshake.
    Never,
    /// A connection that replaces another one offers its session.
    Always,
}

fn version(text: &str) -> Result<Version, String> {
    Version::from_name(text).map_err(|error| error.to_string())
}

/// An application protocol. A server that chose another one would be sent what it cannot read.
fn protocol(text: &str) -> Result<String, String> {
    match text {
        "http/1.1" | "http/1.0" => Ok(text.to_owned()),
        _ => Err("only http/1.1 and http/1.0 are spoken".to_owned()),
    }
}

impl TlsArgs {
    /// Whether any of these options is given.
    pub fn any(&self) -> bool {
        let files = [&self.cacert, &self.cert, &self.key];
        let lists = [&self.alpn, &self.ciphers, &self.groups];
        self.insecure
            || files.iter().any(|file| file.is_some())
            || lists.iter().any(|list| !list.is_empty())
            || self.sni.is_some()
            || !self.versions.is_empty()
            || self.tls_sessions.is_some()
    }

    /// The one version that is offered.
    ///
    /// # Errors
    /// There are several.
    pub fn version(&self) -> Result<Version, String> {
        match self.versions[..] {
            [] => Ok(Version::Tls13),
            [version] => Ok(version),
            _ => Err("--tls takes one version here: -k tls=1.2,1.3 compares them".to_owned()),
        }
    }

    /// Whether connections offer sessions.
    pub fn offers_sessions(&self) -> bool {
        self.tls_sessions == Some(Sessions::Always)
    }

    /// The given options that set what a knob can set, each after its knob.
    pub fn instead_of_knobs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let options = [
            (!self.versions.is_empty(), ("tls", "--tls")),
            (self.tls_sessions.is_some(), ("sessions", "--tls-sessions")),
        ];
        options.into_iter().filter(|(given, _)| *given).map(|(_, names)| names)
    }

    /// The first option that says whose certificates are accepted, or that a server whose certificate Narrows makes does not
    /// need.
    pub fn of_certificates(&self) -> Option<&'static str> {
        let options = [
            (self.insecure, "--insecure"),
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
            (self.sni.is_some(), "--sni"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, option)| option)
    }

    /// Whether it is said whose certificates are accepted.
    pub fn says_whom_to_trust(&self) -> bool {
        self.insecure || self.cacert.is_some()
    }

    /// What is offered to a server whose certificate Narrows makes. The run says whom to trust.
    pub fn offered(&self) -> Dialing {
        let parameters = self.parameters();
        Dialing { name: "localhost".to_owned(), trust: Trust::Anyone, identity: None, parameters }
    }

    /// These options as `[tls]` of a manifest: all of them, or those of a server whose certificate Narrows makes.
    pub fn saved(&self, all: bool) -> Table {
        let mut table = Table::new();
        let mut put = |name: &str, value: Value| _ = table.insert(name.to_owned(), value);
        let files = [("cacert", &self.cacert), ("cert", &self.cert), ("key", &self.key)];
        for (name, file) in files.into_iter().filter(|_| all) {
            let Some(file) = file else { continue };
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            put(name, Value::String(file.to_string_lossy().into_owned()));
        }
        if let Some(name) = self.sni.as_ref().filter(|_| all) {
            put("sni", Value::String(name.clone()));
        }
        if self.insecure && all {
            put("insecure", Value::Boolean(true));
        }
        for (name, list) in [("alpn", &self.alpn), ("ciphers", &self.ciphers), ("groups", &self.groups)] {
            if !list.is_empty() {
                put(name, Value::Array(list.iter().cloned().map(Value::String).collect()));
            }
        }
        table
    }

    /// What contradicts HTTP/2, if that is spoken.
    pub fn contradiction(&self, http2: bool) -> Option<&'static str> {
        (http2 && !self.alpn.is_empty()).then_some("--http2 offers exactly h2: leave --alpn out")
    }

    /// The parameters of connections of one version of HTTP. No other is offered beside HTTP/2.
    fn parameters_of(&self, http2: bool) -> Parameters {
        let mut parameters = self.parameters();
        if http2 {
            parameters.only_http2();
        }
        parameters
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            versions: self.versions.clone(),
            ciphers: self.ciphers.clone(),
            groups: self.groups.clone(),
            alpn: self.alpn.iter().map(|name| name.clone().into_bytes()).collect(),
            sessions: self.offers_sessions(),
        }
    }

    /// What connections to this URL are made from; `None` if it is not https.
    ///
    /// # Errors
    /// A file cannot be read, or the system has no roots.
    pub fn dialing(&self, url: &Url, http2: bool) -> anyhow::Result<Option<Dialing>> {
        if url.scheme != "https" {
            return Ok(None);
        }
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(Identity { certificate: given::read(cert)?, key: given::read(key)? })
            }
            _ => None,
        };
        Ok(Some(Dialing {
            name: self.sni.clone().unwrap_or_else(|| target::bare(&url.host).to_owned()),
            trust: self.trust()?,
            identity,
            parameters: self.parameters_of(http2),
        }))
    }

    fn trust(&self) -> anyhow::Result<Trust> {
        if self.insecure {
            return Ok(Trust::Anyone);
        }
        if let Some(file) = &self.cacert {
            return Ok(Trust::Pem(given::read(file)?));
        }
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
            bail!(Usage(format!(
                "this system has no root certificates{why}: use --cacert FILE or --insecure"
            )));
        }
        Ok(Trust::Roots(found.certs.iter().map(|root| root.to_vec()).collect()))
    }
}
