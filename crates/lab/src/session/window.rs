//! The system's side of a trial's window: what its machine and the system do meanwhile, marked and read at both ends of it.

use serde::{Deserialize, Serialize};
use systems::machine::{self, Disturbance};
use systems::sample::{Sampler, Use};

use crate::observation::{Measurement, SystemUse};

/// Looks at the window of one trial.
pub(super) struct Window {
    sampler: Option<Sampler>,
    /// What the system used, once the window has closed.
    used: Use,
    disturbed: Disturbance,
    time_wait: u64,
    retransmits: u64,
}

/// What was seen of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    system: SystemUse,
    stolen_s: f64,
    throttles: u64,
    time_wait: u64,
    retransmits: u64,
    ports: u64,
    files: u64,
}

impl Window {
    /// Will watch what this sampler follows.
    pub(super) fn new(sampler: Sampler) -> Self {
        let disturbed = Disturbance::default();
        Self { sampler: Some(sampler), used: Use::default(), disturbed, time_wait: 0, retransmits: 0 }
    }

    /// The window begins.
    pub(super) fn mark(&mut self) {
        self.disturbed = Disturbance::so_far();
        self.retransmits = machine::retransmits();
        if let Some(sampler) = &mut self.sampler {
            sampler.mark();
        }
    }

    /// It has ended.
    pub(super) fn read(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            self.used = sampler.finish();
        }
        self.disturbed = Disturbance::so_far().since(self.disturbed);
        self.retransmits = machine::retransmits().saturating_sub(self.retransmits);
        self.time_wait = machine::time_wait();
    }

    /// What the system used, what the machine did, and how far it could have gone.
    pub(super) fn seen(self) -> Seen {
        let used = self.used;
        let system = SystemUse {
            cpu_s: used.cpu_s,
            peak_pss_bytes: used.peak_pss_bytes,
            pss_course: used.pss_course,
            peak_rss_bytes: used.peak_rss_bytes,
            context_switches: used.context_switches,
            socket_memory_bytes: used.socket_memory_bytes,
            ..SystemUse::default()
        };
        Seen {
            system,
            stolen_s: self.disturbed.stolen_s,
            throttles: self.disturbed.throttles,
            time_wait: self.time_wait,
            retransmits: self.retransmits,
            ports: machine::ports(),
            files: machine::file_limit(),
        }
    }
}

impl Seen {
    /// Adds it to a measurement.
    pub(super) fn record(&self, measurement: &mut Measurement) {
        measurement.system = self.system.clone();
        measurement.stolen_s = self.stolen_s;
        measurement.throttles = self.throttles;
        measurement.time_wait = self.time_wait;
        measurement.retransmits = self.retransmits;
        measurement.ports = self.ports;
        measurement.files = self.files;
    }
}
