//! TLS between the generator and a server. Pure.

use serde::{Deserialize, Serialize};
use tls::{KeyKind, Version};

use super::about::{KnobReader, Purpose, WorkloadKnob, choice};
use crate::knob::Point;
use crate::workload::Workload;

/// How a server is spoken to in TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tls {
    /// The only version that the generator offers.
    pub version: Version,
    /// The kind of the key of the server's certificate.
    pub certificate: KeyKind,
    /// Whether a connection offers the session of the one before it on its lane.
    pub sessions: bool,
}

/// The knob that turns TLS on. It is also the name of a placeholder.
pub(crate) const KNOB: &str = "tls";
/// Its value without TLS.
pub(crate) const OFF: &str = "off";

/// The knobs that mean nothing without TLS.
const OF_TLS: [&str; 2] = ["certificate", "sessions"];

impl Tls {
    /// Reads the knobs `tls`, `certificate` and `sessions`. `None` without TLS.
    pub(super) fn read(knobs: &KnobReader) -> Result<Option<Self>, String> {
        let word = knobs.word(KNOB)?;
        let Ok(version) = Version::from_name(&word) else { return Ok(None) };
        let certificate =
            KeyKind::ALL.into_iter().find(|kind| knobs.is("certificate", kind.name()) == Ok(true));
        let certificate = certificate.unwrap_or(KeyKind::P256);
        Ok(Some(Self { version, certificate, sessions: knobs.is("sessions", "always")? }))
    }
}

/// Whether a knob of TLS means nothing at this point, because there is no TLS.
pub fn is_idle(knob: &str, point: &Point) -> bool {
    OF_TLS.contains(&knob) && point.get(KNOB).is_none_or(|value| value.to_string() == OFF)
}

/// Defines the knobs of TLS.
pub(super) fn knobs(workload: Workload) -> [WorkloadKnob; 3] {
    let versions = [OFF, Version::Tls13.name(), Version::Tls12.name()];
    let about = "the version of TLS that is offered; off: none, plain text";
    let version = choice(workload, &versions, about);
    let about = "under TLS, the kind of the key of the server's certificate";
    let certificate = choice(workload, &KeyKind::ALL.map(KeyKind::name), about);
    let about = "under TLS, whether a new connection offers the session of the one before it";
    let sessions = choice(workload, &["never", "always"], about);
    [
        (KNOB, Purpose::Tls, version),
        ("certificate", Purpose::Tls, certificate),
        ("sessions", Purpose::Tls, sessions),
    ]
}
