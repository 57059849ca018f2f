//! What connections of a trial carried at once.

use load::rows::Form;
use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// What connections carried that carry many requests at once, as those of HTTP/2 do.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(default)]
    pub struct Multiplexed {
        /// How many requests were to be open on each.
        pub asked: u64,
        /// The most that were open on one.
        pub reached: u64,
        /// The fewest that the peer allowed. None if it allowed all that were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub allowed: Option<u64>,
        /// Connections that the peer let carry no further requests, and that others replaced; of whole trials.
        pub renewed: u64,
        /// Requests that took too long and were given up alone.
        pub cancelled: u64,
    }
}

impl Multiplexed {
    /// Those of several trials together. None if there are none.
    pub fn together<'a>(trials: impl Iterator<Item = &'a Self>) -> Option<Self> {
        trials.copied().reduce(|one, other| Self {
            asked: one.asked.max(other.asked),
            reached: one.reached.max(other.reached),
            allowed: one.allowed.into_iter().chain(other.allowed).min(),
            renewed: one.renewed.saturating_add(other.renewed),
            cancelled: one.cancelled.saturating_add(other.cancelled),
        })
    }
}

impl Form<load::Multiplexed> for Multiplexed {
    fn of(found: &load::Multiplexed) -> Self {
        let load::Multiplexed { asked, reached, allowed, renewed, cancelled } = *found;
        Self { asked, reached, allowed, renewed, cancelled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_have_the_fewest_that_a_peer_allowed_and_the_sum_of_the_rest() {
        let one = Multiplexed { asked: 100, reached: 10, allowed: Some(10), renewed: 2, cancelled: 1 };
        let other = Multiplexed { asked: 100, reached: 100, allowed: None, renewed: 3, cancelled: 0 };
        let both = Multiplexed { asked: 100, reached: 100, allowed: Some(10), renewed: 5, cancelled: 1 };
        assert_eq!(Multiplexed::together([one, other].iter()), Some(both));
        assert_eq!(Multiplexed::together([].iter()), None);
    }
}
