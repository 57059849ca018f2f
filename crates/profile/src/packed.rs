//! A profile or waits in a field of a JSON text: deflated JSON in Base64 (RFC 1951, RFC 4648). Pure.
//!
//! The JSON of a profile of 0.3 s has some 40 kB, because names and modules repeat; packed it has some 5 kB. Use it with
//! `#[serde(with = "profile::packed")]` on an `Option`.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest JSON that is unpacked, in bytes. That of a profile of 20,000 different stacks has about half as many.
const LONGEST: u64 = 64 << 20;

/// Writes a value.
///
/// # Errors
/// It cannot be written as JSON.
pub fn serialize<T: Serialize, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    let Some(value) = value else { return to.serialize_none() };
    let json = serde_json::to_vec(value).map_err(S::Error::custom)?;
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&json).map_err(S::Error::custom)?;
    let packed = packed.finish().map_err(S::Error::custom)?;
    to.serialize_some(&STANDARD.encode(packed))
}

/// Reads a value.
///
/// # Errors
/// It is no Base64, not deflated, too long, or no such value.
pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let packed = STANDARD.decode(text).map_err(D::Error::custom)?;
    let mut json = Vec::new();
    DeflateDecoder::new(packed.as_slice()).take(LONGEST).read_to_end(&mut json).map_err(D::Error::custom)?;
    serde_json::from_slice(&json).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::profile::tests::profile;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        profile: Option<Profile>,
    }

    #[test]
    fn a_profile_survives_packing() {
        for profile in [None, Some(profile(&[(&["main", "__x64_sys_read"], 3), (&["main"], 4)]))] {
            let holder = Holder { profile };
            let text = serde_json::to_string(&holder).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), holder, "{text}");
        }
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        let deflated = |json: &str| {
            let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(json.as_bytes()).unwrap();
            STANDARD.encode(packed.finish().unwrap())
        };
        for packed in ["?".to_owned(), "AAAA".to_owned(), deflated("[]"), deflated("{}")] {
            let text = serde_json::json!({ "profile": packed }).to_string();
            assert!(serde_json::from_str::<Holder>(&text).is_err(), "{text}");
        }
    }
}
