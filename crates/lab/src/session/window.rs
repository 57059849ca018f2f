//! The system's side of a trial's window. Reads what the system uses and what the machine does, from the start of the
//! window to its end.

use measurement::{Measurement, SystemUse};
use serde::{Deserialize, Serialize};
use systems::machine::{self, CoreTicks, Disturbance};
use systems::process::Running;
use systems::sample::{Sampler, Use};

/// Takes the readings of one trial's window.
pub(super) struct Window {
    sampler: Option<Sampler>,
    /// The system's first process.
    pid: u32,
    /// What the system used. Set when the window closes.
    used: Use,
    disturbed: Disturbance,
    /// The system's cores, what they had done when the window opened, and the share of softirqs since then.
    cores: Vec<usize>,
    ticks: CoreTicks,
    softirq_share: Option<f64>,
    time_wait: u64,
    retransmits: u64,
}

/// The readings of a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Readings {
    system: SystemUse,
    stolen_s: f64,
    throttles: u64,
    held_s: f64,
    time_wait: u64,
    retransmits: u64,
    ports: u64,
    files: u64,
}

impl Window {
    /// A window for a system that runs on these cores.
    pub(super) fn new(running: &Running, cores: &[usize]) -> Self {
        Self {
            sampler: Some(running.sampler()),
            pid: running.pid(),
            used: Use::default(),
            disturbed: Disturbance::default(),
            cores: cores.to_vec(),
            ticks: CoreTicks::default(),
            softirq_share: None,
            time_wait: 0,
            retransmits: 0,
        }
    }

    /// Call when the window opens.
    pub(super) fn mark(&mut self) {
        self.disturbed = Disturbance::so_far(Some(self.pid));
        self.retransmits = machine::retransmits();
        self.ticks = CoreTicks::of(&self.cores);
        if let Some(sampler) = &mut self.sampler {
            sampler.mark();
        }
    }

    /// Call when the window closes.
    pub(super) fn read(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            self.used = sampler.finish();
        }
        self.disturbed = Disturbance::so_far(Some(self.pid)).since(self.disturbed);
        self.softirq_share = CoreTicks::of(&self.cores).softirq_share(self.ticks);
        self.retransmits = machine::retransmits().saturating_sub(self.retransmits);
        self.time_wait = machine::time_wait();
    }

    /// What the system used, what the machine did, and the machine's limits.
    pub(super) fn readings(self) -> Readings {
        let used = self.used;
        let system = SystemUse {
            cpu_s: used.cpu_s,
            peak_pss_bytes: used.peak_pss_bytes,
            pss_course: used.pss_course,
            peak_rss_bytes: used.peak_rss_bytes,
            context_switches: used.context_switches,
            socket_memory_bytes: used.socket_memory_bytes,
            waited_s: used.waited_s,
            compiled_s: used.compiled_s,
            page_faults: Some(used.page_faults),
            softirq_share: self.softirq_share,
            ..SystemUse::default()
        };
        Readings {
            system,
            stolen_s: self.disturbed.stolen_s,
            throttles: self.disturbed.throttles,
            held_s: self.disturbed.held_s,
            time_wait: self.time_wait,
            retransmits: self.retransmits,
            ports: machine::ports(),
            files: machine::file_limit(),
        }
    }
}

impl Readings {
    /// Adds the readings to a measurement.
    pub(super) fn record(&self, measurement: &mut Measurement) {
        measurement.system = self.system.clone();
        measurement.stolen_s = self.stolen_s;
        measurement.throttles = self.throttles;
        measurement.held_s = self.held_s;
        measurement.time_wait = self.time_wait;
        measurement.retransmits = self.retransmits;
        measurement.ports = self.ports;
        measurement.files = self.files;
    }
}
