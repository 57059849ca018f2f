//! Reads how the clients of a server speak TLS: `[tls]` of a manifest.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use tls::{Dialer, Dialing, Identity, Parameters, Trust};
use toml::Spanned;

use super::{RawManifest, Read, Reader};

/// The fields of `[tls]`, which are options of `narrows load`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::manifest) struct RawTls {
    cacert: Option<Spanned<String>>,
    #[serde(default)]
    insecure: bool,
    sni: Option<String>,
    cert: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    #[serde(default)]
    alpn: Vec<String>,
    #[serde(default)]
    ciphers: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
}

impl Reader<'_> {
    /// What connections in TLS are made from, if the manifest says it. Files are relative to `dir`. A server that its user
    /// has started needs it; for one that Narrows starts, the run makes the certificate.
    pub(super) fn dialing(&self, raw: &RawManifest, dir: &Path) -> Read<Option<Dialing>> {
        if let Some(dialing) = &raw.dialing {
            return self.sound(raw.name.span(), dialing.clone()).map(Some);
        }
        let secured = raw.attach.as_ref().filter(|url| url.get_ref().starts_with("https://"));
        let Some(table) = &raw.tls else {
            return match secured {
                None => Ok(None),
                Some(url) => {
                    let help = "add [tls] with cacert = \"FILE\", or with insecure = true";
                    self.wrong(url.span(), "it does not say whose certificate is accepted", help)
                }
            };
        };
        let span = table.span();
        let table = table.get_ref();
        let own = table.cacert.is_some() || table.insecure || table.sni.is_some();
        match (secured, own || table.cert.is_some()) {
            (None, _) if raw.attach.is_some() => {
                return self.wrong(span, "[tls] of a server without TLS", "write attach = \"https://…\"");
            }
            (None, true) => {
                let help = "remove cacert, insecure, sni and cert: the run makes the certificate of a server that it starts";
                return self.wrong(span, "certificates in [tls] of a server that Narrows starts", help);
            }
            _ => {}
        }
        let trust = match (&table.cacert, table.insecure) {
            (Some(file), false) => Trust::Pem(self.file(file, dir)?),
            (None, true) => Trust::Anyone,
            (None, false) if secured.is_none() => Trust::Anyone,
            _ => {
                let help = "write cacert = \"FILE\", or insecure = true";
                return self.wrong(span, "[tls] does not say whose certificate is accepted", help);
            }
        };
        let identity = match (&table.cert, &table.key) {
            (Some(cert), Some(key)) => {
                Some(Identity { certificate: self.file(cert, dir)?, key: self.file(key, dir)? })
            }
            (None, None) => None,
            _ => return self.wrong(span, "cert without key, or key without cert", "write both"),
        };
        // TLS knows an address of IPv6 without the brackets of a URL.
        let host = secured.and_then(|url| Some(url.get_ref().split_once("://")?.1.rsplit_once(':')?.0));
        let host = host.map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let parameters = Parameters {
            alpn: table.alpn.iter().map(|name| name.clone().into_bytes()).collect(),
            ciphers: table.ciphers.clone(),
            groups: table.groups.clone(),
            ..Parameters::default()
        };
        let name = table.sni.as_deref().or(host).unwrap_or("localhost").to_owned();
        self.sound(span, Dialing { name, trust, identity, parameters }).map(Some)
    }

    fn sound(&self, span: Range<usize>, dialing: Dialing) -> Read<Dialing> {
        match Dialer::new(&dialing) {
            Ok(_) => Ok(dialing),
            Err(error) => self.wrong(span, error.to_string(), ""),
        }
    }

    fn file(&self, name: &Spanned<String>, dir: &Path) -> Read<Vec<u8>> {
        let path = dir.join(name.get_ref());
        std::fs::read(&path).or_else(|error| {
            let message = format!("cannot read {}: {error}", path.display());
            self.wrong(name.span(), message, "paths begin in the system's folder")
        })
    }
}
