//! The lab's own certificates: an authority for one run, and what it issues.

use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256,
};
use rsa::RsaPrivateKey;
use rsa::pkcs8::EncodePrivateKey;
use rsa::rand_core::OsRng;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::clock::since_1970;
use crate::error::TlsError;
use crate::pem::Identity;

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// ECDSA over P-256.
    P256,
    /// RSA with 2048 bits. It takes some tenths of a second to make one.
    Rsa2048,
}

impl KeyKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::P256, Self::Rsa2048];

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::P256 => "p256",
            Self::Rsa2048 => "rsa2048",
        }
    }

    fn make(self) -> Result<KeyPair, String> {
        let made = match self {
            Self::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::Rsa2048 => {
                let key = RsaPrivateKey::new(&mut OsRng, 2048).map_err(|error| error.to_string())?;
                let der = key.to_pkcs8_der().map_err(|error| error.to_string())?;
                let der = PrivatePkcs8KeyDer::from(der.as_bytes());
                KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_RSA_SHA256)
            }
        };
        made.map_err(|error| error.to_string())
    }
}

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// DNS names and IP addresses that it is for.
    pub names: &'a [&'a str],
    /// The kind of its key.
    pub key: KeyKind,
    /// When its time begins.
    pub from: SystemTime,
    /// When its time is over.
    pub until: SystemTime,
}

/// A certificate and its key, as PEM.
pub type Issued = Identity;

/// A certificate authority. Its key exists only in memory.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority, for certificates in this time.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn new(from: SystemTime, until: SystemTime) -> Result<Self, TlsError> {
        const NAME: &str = "Narrows, for one run";
        let refused = |why| refused(&[NAME], why);
        let mut params = params(&[], from, until).map_err(refused)?;
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyKind::P256.make().map_err(refused)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(|error| refused(error.to_string()))?;
        Ok(Self { issuer })
    }

    /// Its certificate as PEM: the root for clients, and for servers that ask for certificates.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate, with a new key, for a server or a client.
    ///
    /// # Errors
    /// A name is neither a DNS name nor an IP address, or the operating system has no random numbers.
    pub fn issue(&self, leaf: &Leaf<'_>) -> Result<Issued, TlsError> {
        let refused = |why| refused(leaf.names, why);
        let key = leaf.key.make().map_err(refused)?;
        let mut params = params(leaf.names, leaf.from, leaf.until).map_err(refused)?;
        if let Some(name) = leaf.names.first() {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if leaf.key == KeyKind::Rsa2048 {
            // Some servers exchange keys with RSA, too.
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(|error| refused(error.to_string()))?;
        let key = key.serialize_pem().into_bytes();
        Ok(Identity { certificate: certificate.pem().into_bytes(), key })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// What all certificates have: the names that they are for, and their time.
fn params(names: &[&str], from: SystemTime, until: SystemTime) -> Result<CertificateParams, String> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(|error| error.to_string())?;
    (params.not_before, params.not_after) = (date(from), date(until));
    params.distinguished_name.remove(DnType::CommonName);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn date(time: SystemTime) -> OffsetDateTime {
    let seconds = i64::try_from(since_1970(time).as_secs()).unwrap_or(i64::MAX);
    // A time after the year 9999 has no form in a certificate.
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn refused(names: &[&str], why: String) -> TlsError {
    TlsError::Issue { names: names.join(", "), why }
}
