//! Connections in TLS that were to be resumed, and were not.

use super::{Evidence, FEWEST, TrialKind};
use crate::Measurement;

/// Resumption did not take place if more than this share of the sessions was refused, or if more than half of the connections had none.
const REFUSED: f64 = 0.03;
const HALF: f64 = 0.5;

/// Full handshakes where resumed ones were asked for. The first connection of a lane has no session to offer.
pub(super) fn not_resumed(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let found = m.handshakes.as_ref().filter(|found| kind.sessions && found.all() >= FEWEST)?;
    let without = found.all().saturating_sub(found.offered);
    if without as f64 > HALF * found.all() as f64 {
        return Some(Evidence::NoSessions { without, of: found.all() });
    }
    let refused = found.refused();
    (refused as f64 > REFUSED * found.offered as f64)
        .then_some(Evidence::SessionsRefused { refused, of: found.offered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handshakes;

    #[test]
    fn full_handshakes_are_in_doubt_only_where_resumed_ones_were_asked_for() {
        let kind = TrialKind { sessions: true, ..TrialKind::default() };
        let of = |full: u64, resumed: u64, offered: u64, kind: &TrialKind| {
            let found = Handshakes { full, resumed, offered, ..Handshakes::default() };
            not_resumed(&Measurement { handshakes: Some(found), ..Measurement::default() }, kind)
        };
        assert_eq!(of(100, 0, 0, &TrialKind::default()), None);
        assert_eq!(of(2, 98, 98, &kind), None);
        assert_eq!(of(5, 95, 97, &kind), None);
        assert_eq!(of(100, 0, 98, &kind), Some(Evidence::SessionsRefused { refused: 98, of: 98 }));
        assert_eq!(of(10, 90, 95, &kind), Some(Evidence::SessionsRefused { refused: 5, of: 95 }));
        assert_eq!(of(100, 0, 0, &kind), Some(Evidence::NoSessions { without: 100, of: 100 }));
        assert_eq!(of(4, 0, 0, &kind), None, "the first connections");
        assert_eq!(not_resumed(&Measurement::default(), &kind), None);
    }
}
