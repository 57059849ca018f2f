//! What a trial's machine and its system do while the window is open: read at both ends of it.

use systems::machine::{self, Disturbance};
use systems::sample::{Sampler, Use};

use crate::observation::Measurement;

/// Looks at the window of one trial.
pub(super) struct Watched {
    sampler: Option<Sampler>,
    /// What the system used, once the window has closed.
    pub used: Use,
    disturbed: Disturbance,
    time_wait: u64,
    retransmits: u64,
}

impl Watched {
    /// Will watch what this sampler follows.
    pub(super) fn new(sampler: Sampler) -> Self {
        let disturbed = Disturbance::default();
        Self { sampler: Some(sampler), used: Use::default(), disturbed, time_wait: 0, retransmits: 0 }
    }

    /// The window begins.
    pub(super) fn opened(&mut self) {
        self.disturbed = Disturbance::so_far();
        self.retransmits = machine::retransmits();
        if let Some(sampler) = &mut self.sampler {
            sampler.mark();
        }
    }

    /// It has ended.
    pub(super) fn closed(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            self.used = sampler.finish();
        }
        self.disturbed = Disturbance::so_far().since(self.disturbed);
        self.retransmits = machine::retransmits().saturating_sub(self.retransmits);
        self.time_wait = machine::time_wait();
    }

    /// Adds what the machine did, and how far it could have gone.
    pub(super) fn record(&self, measurement: &mut Measurement) {
        measurement.stolen_s = self.disturbed.stolen_s;
        measurement.throttles = self.disturbed.throttles;
        measurement.time_wait = self.time_wait;
        measurement.retransmits = self.retransmits;
        measurement.ports = machine::ports();
        measurement.files = machine::file_limit();
    }
}
