//! The points of a grid at which a system takes no part, and why.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use systems::{Knob, Manifest, Value, Work};

use super::Grid;
use crate::observation::{Scenario, reason_from, shown_reason};

/// A system that cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excluded {
    /// Its name.
    pub system: String,
    /// What is missing or broken, and what to do about it. One line that may be shown.
    #[serde(deserialize_with = "reason_from")]
    pub reason: String,
    /// Whether it takes part at other points.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
}

impl Excluded {
    /// A system that takes part at no point, or only at others. The reason may be in a program's or another machine's words.
    pub(crate) fn new(system: &str, reason: &str, partly: bool) -> Self {
        Self { system: system.to_owned(), reason: shown_reason(reason), partly }
    }
}

impl Grid {
    /// Removes the points at which a system cannot be spoken to, because they ask for TLS, for plain text or for HTTP/2.
    pub(super) fn leave_out_unspoken(&mut self, manifest: &Manifest) {
        // Each point would look through the whole manifest.
        let [secured, plain] = [true, false].map(|secured| manifest.speaks(secured));
        let secrecy = if secured { "it speaks only TLS" } else { "it speaks no TLS" };
        self.leave_out(manifest, secrecy, |work| if work.tls().is_some() { secured } else { plain });
        self.leave_out(manifest, "it speaks no HTTP/2", |work| !work.http2() || manifest.http2);
    }

    fn leave_out(&mut self, manifest: &Manifest, reason: &str, is_spoken: impl Fn(&Work) -> bool) {
        let is_own = |scenario: &Scenario| scenario.system == manifest.name;
        let before = self.scenarios.len();
        self.scenarios.retain(|scenario| !is_own(scenario) || is_spoken(scenario.work()));
        if self.scenarios.len() < before {
            let partly = self.scenarios.iter().any(is_own);
            self.left_out.push(Excluded::new(&manifest.name, reason, partly));
        }
    }

    /// Says which values of knobs a system lacks, because this machine does not allow them.
    pub(super) fn say_beyond(&mut self, manifest: &Manifest, beyond: &[(&str, &Knob, Value)]) {
        let partly = self.scenarios.iter().any(|scenario| scenario.system == manifest.name);
        let knobs: BTreeSet<&str> = beyond.iter().map(|(name, ..)| *name).collect();
        for name in knobs {
            let own = || beyond.iter().filter(|(known, ..)| *known == name);
            let Some(why) = own().find_map(|(_, knob, value)| knob.beyond(value)) else { continue };
            let values: BTreeSet<&Value> = own().map(|(.., value)| value).collect();
            let values: Vec<String> = values.into_iter().map(Value::to_string).collect();
            let reason = format!("{name} {}: {why}", values.join(", "));
            self.left_out.push(Excluded::new(&manifest.name, &reason, partly));
        }
    }
}
