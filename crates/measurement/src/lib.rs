//! The measurement of one trial or of one drive of `narrows load`, and the doubts about it.
//!
//! A [`Measurement`] is data with a stable JSON form, which is the store's format. What a generator counts comes from the table
//! `load::rows`; the system's side adds its own fields. Knows what `load` counts, what `systems` reads of a system, profiles, and `stats`;
//! knows nothing of experiments, trials or findings. No effects.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod check;
#[cfg_attr(not(test), allow(clippy::indexing_slicing, reason = "indices come from the lists themselves"))]
pub mod doubt;
mod handshakes;
mod kernel;
mod latency;
mod max_rate;
mod metered;
mod multiplexed;
mod server;
mod together;
mod usage;

use std::collections::BTreeMap;

use load::rows::Form;
use profile::{Profile, Waits};
use serde::{Deserialize, Serialize};
use systems::work::WorkUnit;

pub use handshakes::Handshakes;
pub use kernel::{Calls, KernelCounts, TracedCounts};
pub use latency::Latency;
pub use max_rate::MaxRate;
pub use metered::Metered;
pub use multiplexed::Multiplexed;
pub use server::ServerCounts;
pub use together::{BULKS, Generated, Path, Together};
pub use usage::{COMPILING, GeneratorUse, SystemUse};

/// The share of failed operations above which a scenario is not ranked. A published table of pooled clients ranked one
/// with 79.6 % errors first.
pub const RANKED_ERRORS: f64 = 0.01;

/// Makes the measurement from the rows that are saved.
macro_rules! measurement {
    ($(
        $doc:literal
        $(#[$attribute:meta])*
        $name:ident: $type:ty [$merge:ident, $loops:ident, $bound:ident]
        $(, saved as $saved:ident: $saved_as:ty)?
        $(, printed as $printed:ident: $printed_as:ty)?;
    )*) => {
        check::table! {
            /// The raw figures of a finished trial.
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
            pub struct Measurement {
                // Runs of earlier versions do not have all of them.
                $($(#[doc = $doc] #[serde(default)] pub $saved: $saved_as,)?)*
                /// Closed loop: what the operations at the edges of the window add to those that ended in it: the parts of those under way
                /// that were done when it closed, less the parts that were done before it opened. None if their ages were not measured.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub edges: Option<f64> [signed],
                /// The mean duration of failed operations, microseconds, from their send; for a client, from before they entered
                /// its pool. 0 if none failed or the client's driver cannot tell.
                pub mean_error_us: f64,
                /// The configured number of connections or callers.
                pub concurrency: u64,
                /// Concurrent connections: as configured, or for a client the most that the server saw. 0 if they were not counted.
                pub connections: u64,
                /// How often the processor throttled itself because of heat in the window.
                pub throttles: u64,
                /// CPU time that the hypervisor gave to others in the window, in seconds, over all cores.
                pub stolen_s: f64,
                /// For how long a limit of CPU time stopped the control groups of the system and the generator in the window, in seconds,
                /// over all cores.
                #[serde(default)]
                pub held_s: f64,
                /// Sockets in TIME_WAIT when the window closed, on the whole machine.
                pub time_wait: u64,
                /// The number of ports from which connections to one address can come. 0 if unknown.
                pub ports: u64,
                /// The limit of open files: Narrows' own, or the system's if it is lower. 0 if unknown.
                pub files: u64 [any],
                /// TCP segments that the machine retransmitted in the window.
                pub retransmits: u64,
                /// The highest rate at which the trial's objective held. None if it has no objective.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub max_rate: Option<MaxRate>,
                /// What another program says that drove the system in the place of Narrows' generator. Then successes and times are those
                /// that it reports, and the window is the time that it ran. None if Narrows' generator drove.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub metered: Option<Metered>,
                /// How several generators worked together. None if the generator was on this machine.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub together: Option<Together>,
                /// What the kernel did for the system, counted in a short drive of its own after the window of the first round.
                /// None for clients, and if the kernel gives no counts.
                pub counted: Option<KernelCounts>,
                /// Where the system's CPU time went, sampled in a short drive of its own after the window. None if nobody looked, and
                /// if the kernel gives no samples.
                #[serde(default, with = "profile::packed", skip_serializing_if = "Option::is_none")]
                pub profile: Option<Profile> [any],
                /// Where the system waited, watched in the same drive. None if it worked most of the time.
                #[serde(default, with = "profile::packed", skip_serializing_if = "Option::is_none")]
                pub waits: Option<Waits> [any],
                /// What the system used.
                pub system: SystemUse,
                /// What the generator used.
                pub generator: GeneratorUse,
                /// The counts of Narrows' own server, for `clients`.
                pub server: Option<ServerCounts>,
            }
        }

        impl Measurement {
            /// Converts the tally of a generator. Fields that describe the system stay empty.
            pub fn from_tally(tally: &load::Tally) -> Self {
                let (failures, failing_us) = (tally.failures(), tally.failing.as_secs_f64() * 1e6);
                Self {
                    $($($saved: Form::of(&tally.$name),)?)*
                    edges: tally.edges(),
                    mean_error_us: if failures > 0 { failing_us / failures as f64 } else { 0.0 },
                    generator: GeneratorUse {
                        cpu_s: tally.cpu.as_secs_f64(),
                        waited_s: tally.waited.as_secs_f64(),
                        busiest_core: tally.busiest,
                        cores: Vec::new(),
                        backend: tally.backend.clone().into_owned(),
                    },
                    ..Self::default()
                }
            }

            /// The first count of a generator that differs in `other`, by name. What describes the system is not compared.
            pub fn counts_unlike(&self, other: &Self) -> Option<&'static str> {
                $($(if self.$saved != other.$saved {
                    return Some(stringify!($saved));
                })?)*
                let generator = GeneratorUse { cores: other.generator.cores.clone(), ..self.generator.clone() };
                let others = [
                    ("edges", self.edges == other.edges),
                    ("mean_error_us", self.mean_error_us == other.mean_error_us),
                    ("generator", generator == other.generator),
                    ("concurrency", self.concurrency == other.concurrency),
                    ("connections", self.connections == other.connections),
                    ("together", self.together == other.together),
                    ("metered", self.metered == other.metered),
                ];
                others.into_iter().find(|(_, alike)| !alike).map(|(name, _)| name)
            }
        }
    };
}

load::rows!(measurement);

impl Measurement {
    /// Verified work, counted in this unit.
    pub fn worth(&self, unit: &WorkUnit) -> f64 {
        (if unit.bytes { self.payload_bytes } else { self.units }) as f64
    }

    /// Events of streams for each read that brought any. None if there were no streams.
    pub fn events_per_read(&self) -> Option<f64> {
        (self.event_reads > 0).then(|| self.events as f64 / self.event_reads as f64)
    }

    /// The operations that the window had time for: those that ended in it, and the parts of those at its edges.
    pub fn done(&self) -> f64 {
        // Another program needs a part of the window for its own start and its summary, and its rate has not.
        if let Some(metered) = &self.metered {
            return metered.per_s * self.elapsed_s;
        }
        (self.successes as f64 + self.edges.unwrap_or(0.0)).max(0.0)
    }

    /// How many operations a closed loop keeps under way: as many as were asked for, or as the peer allows on its connections.
    pub fn under_way(&self) -> u64 {
        let allowed = self.multiplexed.and_then(|found| found.allowed);
        let most = allowed.map(|allowed| self.connections.saturating_mul(allowed));
        self.concurrency.min(most.unwrap_or(u64::MAX))
    }

    /// The arrivals of an open loop that were due in the window.
    pub fn due(&self) -> u64 {
        // Runs of earlier versions, and client drivers, do not count them.
        if self.arrivals > 0 { self.arrivals } else { self.attempts.saturating_add(self.dropped) }
    }

    /// Handshakes of TLS in which the server signed. None ended where none was counted.
    pub fn full_handshakes(&self) -> u64 {
        self.handshakes.as_ref().map_or(0, Handshakes::signed)
    }

    /// Operations that ended, verified or not.
    pub fn ended(&self) -> u64 {
        self.successes + self.errors.values().sum::<u64>()
    }

    /// Times from the intended send, or from the actual send if there was no schedule.
    pub fn latency(&self) -> &Latency {
        if self.response_us.count > 0 || !self.response_us.unanswered.is_empty() {
            &self.response_us
        } else {
            &self.service_us
        }
    }
}
