//! TLS under attack, in the manner of tlsfuzzer and BoGo: raw bytes of hostile clients against `narrows serve --tls`, and hostile
//! servers against `narrows load https://…`.

mod clients;
mod servers;

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use crate::load_tls::Issued;

/// A right client that trusts this root and speaks this version only.
fn config(issued: &Issued, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(issued.path("root")).expect("a root")).expect("a root");
    let versions = ClientConfig::builder_with_protocol_versions(&[version]);
    Arc::new(versions.with_root_certificates(roots).with_no_client_auth())
}

/// A connection of such a client, before its first byte.
fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a connection")
}
