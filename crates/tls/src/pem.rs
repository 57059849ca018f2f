//! Certificates and keys out of PEM.

use rustls::RootCertStore;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::TlsError;

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, followed by those that lead to a root.
    pub certificate: Vec<u8>,
    /// The key of the first certificate.
    pub key: Vec<u8>,
}

// The key is a secret.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The names of an identity's two files in errors.
#[derive(Clone, Copy)]
pub(crate) struct Files {
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

/// The identity of a client.
pub(crate) const CLIENT: Files = Files { certificate: "the client's certificate", key: "the client's key" };
/// The identity of a server.
pub(crate) const SERVER: Files = Files { certificate: "the server's certificate", key: "the server's key" };

impl Identity {
    /// The certificates and the key in the form that rustls takes.
    pub(crate) fn read(
        &self,
        files: Files,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            Error::NoItemsFound => TlsError::Section { what: files.key, section: "PRIVATE KEY" },
            error => TlsError::Pem { what: files.key, why: why(&error) },
        })?;
        Ok((certificates(files.certificate, &self.certificate)?, key))
    }
}

impl Files {
    /// Says which of the two files rustls refused.
    pub(crate) fn refused(self, error: rustls::Error) -> TlsError {
        use rustls::{Error as Tls, InconsistentKeys};
        match error {
            Tls::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::OtherKey { key: self.key, certificate: self.certificate }
            }
            Tls::InvalidCertificate(why) => {
                TlsError::Unusable { what: self.certificate, why: format!("{why:?}") }
            }
            error => TlsError::Unusable { what: self.key, why: error.to_string() },
        }
    }
}

/// All certificates of a PEM file, at least one.
pub(crate) fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem { what, why: why(&error) })?;
    if certificates.is_empty() {
        return Err(TlsError::Section { what, section: "CERTIFICATE" });
    }
    Ok(certificates)
}

/// The roots of a PEM file. Every certificate in it must be usable.
pub(crate) fn roots(what: &'static str, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(what, pem)? {
        roots.add(certificate).map_err(|error| TlsError::Unusable { what, why: error.to_string() })?;
    }
    Ok(roots)
}

fn why(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { .. } => "a section has no END line".to_owned(),
        Error::IllegalSectionStart { .. } => "a BEGIN line is not complete".to_owned(),
        Error::Base64Decode(why) => format!("a section is not base64: {why}"),
        error => error.to_string(),
    }
}
