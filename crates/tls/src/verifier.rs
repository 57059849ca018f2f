//! Which certificates a client accepts.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::dialer::Trust;
use crate::error::TlsError;
use crate::pem;

pub(crate) fn verifier(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let roots = match trust {
        Trust::Anyone => return Ok(Arc::new(Anyone(provider))),
        Trust::Pem(pem) => pem::roots("the file of root certificates", pem)?,
        Trust::Roots(roots) => {
            let mut usable = RootCertStore::empty();
            usable.add_parsable_certificates(roots.iter().map(|root| CertificateDer::from(root.as_slice())));
            usable
        }
    };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let why = "no root certificate can be used".to_owned();
    let verifier = verifier.map_err(|_| TlsError::Unusable { what: "the system's collection", why })?;
    Ok(Arc::new(Remembering { verifier, accepted: Mutex::default() }))
}

/// Asks another verifier, and remembers what it accepted last. The same certificates are accepted again for the same name and
/// the same second, without another look at their signatures, which is a third of the client's work in a handshake. That the
/// server has the key is verified each time.
#[derive(Debug)]
struct Remembering {
    verifier: Arc<WebPkiServerVerifier>,
    accepted: Mutex<Option<Shown>>,
}

/// What a server shows, and when and as whom.
#[derive(Debug)]
struct Shown {
    certificates: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
    ocsp_response: Vec<u8>,
    now: UnixTime,
}

impl Shown {
    fn is(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> bool {
        let shown = std::iter::once(end_entity).chain(intermediates);
        self.now == now
            && self.name == *name
            && self.ocsp_response == ocsp_response
            && self.certificates.iter().map(AsRef::as_ref).eq(shown.map(AsRef::<[u8]>::as_ref))
    }
}

impl ServerCertVerifier for Remembering {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if accepted.as_ref().is_some_and(|it| it.is(end_entity, intermediates, name, ocsp_response, now)) {
            return Ok(ServerCertVerified::assertion());
        }
        let verdict =
            self.verifier.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)?;
        let shown = std::iter::once(end_entity).chain(intermediates);
        *accepted = Some(Shown {
            certificates: shown.map(|certificate| certificate.clone().into_owned()).collect(),
            name: name.to_owned(),
            ocsp_response: ocsp_response.to_vec(),
            now,
        });
        Ok(verdict)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Accepts every certificate, but only from a server that has its key.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
