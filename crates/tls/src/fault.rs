//! Why a connection is of no more use. Cheap to make and to copy, because a broken peer causes millions of them.

use std::fmt::{self, Write};

use rustls::{CertificateError, Error, PeerIncompatible};

/// A failure of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The peer sent a fatal alert, with this code.
    Alert(u8),
    /// The peer's certificate was not accepted.
    Certificate(CertificateFault),
    /// The two sides have none of these in common.
    NothingInCommon(&'static str),
    /// The server chose no application protocol, although some were offered.
    NoAlpn,
    /// The first bytes of the peer are not TLS.
    NotTls,
    /// The peer ended the connection before the handshake was complete.
    EndedInHandshake,
    /// The peer ended the connection without saying so (`close_notify`).
    Truncated,
    /// A record or a message is larger than TLS allows.
    TooLarge,
    /// A record could not be decrypted, or is not authentic.
    Undecryptable,
    /// The peer broke the protocol.
    Broken(Detail),
    /// Nothing can be sent before the handshake is complete.
    NotReady,
    /// The connection has carried so many records that its keys are used up.
    UsedUp,
}

/// Why a certificate was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFault {
    /// The peer sent no certificate.
    Missing,
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// It is for another name.
    WrongName,
    /// It does not lead to a known root.
    UnknownIssuer,
    /// A signature is wrong.
    BadSignature,
    /// It cannot be decoded.
    Malformed,
    /// It is that of an authority, which signs the certificates of servers and is not one of them.
    Authority,
    /// It is for another purpose, for example for clients only.
    WrongPurpose,
    /// It is revoked.
    Revoked,
    /// Something else, in the words of the library that checks certificates.
    Other(Detail),
}

/// The first bytes of a description.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    bytes: [u8; 46],
    len: u8,
}

impl Detail {
    fn of(what: &impl fmt::Debug) -> Self {
        let mut detail = Self { bytes: [0; 46], len: 0 };
        // An error says that the description is cut.
        _ = write!(detail, "{what:?}");
        detail
    }

    /// The description.
    pub fn text(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for Detail {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let room = self.bytes.get_mut(usize::from(self.len)..).unwrap_or_default();
            if room.len() < character.len_utf8() {
                return Err(fmt::Error);
            }
            self.len += character.encode_utf8(room).len() as u8;
        }
        Ok(())
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::Alert(u8::from(*alert)),
            Error::InvalidCertificate(error) => Self::Certificate(error.into()),
            Error::NoCertificatesPresented => Self::Certificate(CertificateFault::Missing),
            Error::PeerIncompatible(why) => incompatible(why),
            Error::NoApplicationProtocol => Self::NothingInCommon("application protocol"),
            Error::PeerSentOversizedRecord => Self::TooLarge,
            Error::InvalidMessage(
                rustls::InvalidMessage::MessageTooLarge
                | rustls::InvalidMessage::HandshakePayloadTooLarge
                | rustls::InvalidMessage::CertificatePayloadTooLarge,
            ) => Self::TooLarge,
            Error::DecryptError => Self::Undecryptable,
            Error::InvalidMessage(why) => Self::Broken(Detail::of(why)),
            Error::PeerMisbehaved(why) => Self::Broken(Detail::of(why)),
            error => Self::Broken(Detail::of(error)),
        }
    }
}

fn incompatible(why: &PeerIncompatible) -> Fault {
    use PeerIncompatible as No;
    match why {
        No::NoCipherSuitesInCommon => Fault::NothingInCommon("cipher suite"),
        No::NoKxGroupsInCommon => Fault::NothingInCommon("group"),
        No::NoSignatureSchemesInCommon | No::NoCertificateRequestSignatureSchemesInCommon => {
            Fault::NothingInCommon("signature scheme")
        }
        No::ServerDoesNotSupportTls12Or13
        | No::ServerTlsVersionIsDisabledByOurConfig
        | No::SupportedVersionsExtensionRequired
        | No::Tls12NotOffered
        | No::Tls12NotOfferedOrEnabled => Fault::NothingInCommon("version"),
        why => Fault::Broken(Detail::of(why)),
    }
}

impl From<&CertificateError> for CertificateFault {
    fn from(error: &CertificateError) -> Self {
        use CertificateError as Bad;
        match error {
            Bad::Expired | Bad::ExpiredContext { .. } => Self::Expired,
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => Self::NotYetValid,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Self::WrongName,
            Bad::UnknownIssuer => Self::UnknownIssuer,
            Bad::BadSignature => Self::BadSignature,
            Bad::BadEncoding => Self::Malformed,
            Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => Self::WrongPurpose,
            Bad::Revoked => Self::Revoked,
            Bad::Other(rustls::OtherError(why)) => match Detail::of(why) {
                // rustls has no value for this: the word is that of the library below it.
                detail if detail.text() == "CaUsedAsEndEntity" => Self::Authority,
                detail => Self::Other(detail),
            },
            error => Self::Other(Detail::of(error)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alert(code) => match alert_name(*code) {
                Some(name) => write!(f, "the peer sent the alert {name}"),
                None => write!(f, "the peer sent the alert {code}"),
            },
            Self::Certificate(fault) => write!(f, "the peer's certificate {fault}"),
            Self::NothingInCommon(what) => write!(f, "the two sides have no {what} in common"),
            Self::NoAlpn => f.write_str("the server chose no application protocol (ALPN)"),
            Self::NotTls => f.write_str("the peer does not speak TLS"),
            Self::EndedInHandshake => f.write_str("the connection ended during the handshake"),
            Self::Truncated => f.write_str("the connection ended without close_notify"),
            Self::TooLarge => f.write_str("a record or message is too large"),
            Self::Undecryptable => f.write_str("a record cannot be decrypted"),
            Self::Broken(detail) => write!(f, "the peer broke the protocol: {}", detail.text()),
            Self::NotReady => f.write_str("the handshake is not complete"),
            Self::UsedUp => f.write_str("the keys of the connection are used up"),
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Expired => f.write_str("has expired"),
            Self::NotYetValid => f.write_str("is not valid yet"),
            Self::WrongName => f.write_str("is for another name"),
            Self::UnknownIssuer => f.write_str("does not lead to a known root"),
            Self::BadSignature => f.write_str("has a wrong signature"),
            Self::Malformed => f.write_str("cannot be decoded"),
            Self::Authority => f.write_str(
                "is that of an authority, not of a server: use one that the authority has signed, or --insecure",
            ),
            Self::WrongPurpose => f.write_str("is for another purpose"),
            Self::Revoked => f.write_str("is revoked"),
            Self::Other(detail) => write!(f, "is not accepted: {}", detail.text()),
        }
    }
}

/// IANA's name of an alert.
fn alert_name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_the_names_that_other_programs_print() {
        assert_eq!(Fault::Alert(40).to_string(), "the peer sent the alert handshake_failure");
        assert_eq!(Fault::Alert(255).to_string(), "the peer sent the alert 255");
    }

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        let detail = Detail::of(&"ä".repeat(40));
        assert_eq!(detail.text(), format!("\"{}", "ä".repeat(22)));
        assert_eq!(Detail::of(&Some(1)).text(), "Some(1)");
    }

    #[test]
    fn a_certificate_that_is_refused_for_a_rare_reason_says_so_in_the_librarys_words() {
        let error = CertificateError::UnhandledCriticalExtension;
        let fault = Fault::from(&Error::InvalidCertificate(error));
        assert_eq!(fault.to_string(), "the peer's certificate is not accepted: UnhandledCriticalExtension");
    }
}
