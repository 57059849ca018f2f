//! What can be wrong with the values that connections are made from. The peer has no part in it.

use thiserror::Error;

/// A value that no connection can be made from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsError {
    /// A PEM file cannot be read.
    #[error("{what} is not PEM: {why}")]
    Pem {
        /// Which file.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A PEM file has no section of the kind that it should have.
    #[error("{what} has no section BEGIN {section}")]
    Section {
        /// Which file.
        what: &'static str,
        /// The kind of section that it should have.
        section: &'static str,
    },
    /// A certificate or key cannot be used.
    #[error("{what} cannot be used: {why}")]
    Unusable {
        /// Which certificate or key.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The key does not belong to the certificate.
    #[error("{key} does not belong to {certificate}")]
    OtherKey {
        /// Which key.
        key: &'static str,
        /// Which certificate.
        certificate: &'static str,
    },
    /// A cipher suite, group or version that does not exist here.
    #[error("unknown {kind} \"{name}\"; there are {known}")]
    Unknown {
        /// What kind of name it should be.
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// None of the chosen cipher suites belongs to the chosen version.
    #[error("none of the cipher suites is of TLS {0}")]
    NoCipher(&'static str),
    /// The server's name is neither a DNS name nor an IP address.
    #[error("\"{0}\" is neither a DNS name nor an IP address")]
    Name(String),
    /// The name of an application protocol is empty or has more than 255 bytes.
    #[error("the name of an application protocol has 1 to 255 bytes, not {0}")]
    Alpn(usize),
    /// A certificate cannot be issued.
    #[error("no certificate for {names}: {why}")]
    Issue {
        /// The names of the certificate.
        names: String,
        /// Why not.
        why: String,
    },
    /// rustls refuses the values for another reason.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Setup(error.to_string())
    }
}
