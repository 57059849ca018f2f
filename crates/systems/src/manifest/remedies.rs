//! What can be done about a start that fails.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What can be done about a start that fails, in the words of whoever said how the system is started: the fields of a manifest, or
/// options of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedies {
    /// It was not ready in time.
    pub time: Cow<'static, str>,
    /// It does not listen at its address.
    pub address: Cow<'static, str>,
    /// A process outside its group has its port.
    pub outside: Cow<'static, str>,
    /// Its program cannot be started.
    pub program: Cow<'static, str>,
}

impl Default for Remedies {
    fn default() -> Self {
        Self {
            time: Cow::Borrowed("see ready.timeout_s"),
            address: Cow::Borrowed("use {address} in start.command"),
            outside: Cow::Borrowed("ready.outside = true measures that process"),
            program: Cow::Borrowed("check start.command and whether it is installed"),
        }
    }
}
