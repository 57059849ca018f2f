//! What a trial's machine and its system do while the window is open: read at both ends of it.

use systems::machine;
use systems::sample::{Sampler, Use};

use crate::observation::Measurement;

/// Looks at the window of one trial.
pub(super) struct Watched {
    sampler: Option<Sampler>,
    /// What the system used, once the window has closed.
    pub used: Use,
    stolen_s: f64,
    throttles: u64,
    time_wait: u64,
    retransmits: u64,
}

impl Watched {
    /// Will watch what this sampler follows.
    pub(super) fn new(sampler: Sampler) -> Self {
        let sampler = Some(sampler);
        Self { sampler, used: Use::default(), stolen_s: 0.0, throttles: 0, time_wait: 0, retransmits: 0 }
    }

    /// The window begins.
    pub(super) fn opened(&mut self) {
        (self.stolen_s, self.throttles) = (machine::stolen_s(), machine::throttles());
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
        self.stolen_s = machine::stolen_s() - self.stolen_s;
        self.throttles = machine::throttles().saturating_sub(self.throttles);
        self.retransmits = machine::retransmits().saturating_sub(self.retransmits);
        self.time_wait = machine::time_wait();
    }

    /// Adds what the machine did, and how far it could have gone.
    pub(super) fn record(&self, measurement: &mut Measurement) {
        measurement.stolen_s = self.stolen_s;
        measurement.throttles = self.throttles;
        measurement.time_wait = self.time_wait;
        measurement.retransmits = self.retransmits;
        measurement.ports = machine::ports();
        measurement.files = machine::file_limit();
    }
}
