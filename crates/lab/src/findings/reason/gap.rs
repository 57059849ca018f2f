//! What differs between two rows in time and in CPU time, and what part of that can be accounted for.

use super::{Counted, Range, Ranges, Reason, SHARE};
use crate::experiment::Figure;
use crate::findings::{CpuDifference, Estimate, Waiting};

/// The system's own code is named if its CPU time accounts for at least this share of the difference.
const OWN: f64 = 0.5;
/// How long Linux delays an acknowledgement at least (TCP_DELACK_MIN), and the median of answers that wait for one, seconds.
const DELAYED_S: [f64; 2] = [0.039, 0.06];
/// Answers that wait for one are sent in at least so many segments on average, and are not acknowledged for at least so
/// many seconds. A new connection acknowledges its first segments at once, which makes the mean less than the median.
const LEAST_SEGMENTS: f64 = 1.5;
const LEAST_UNACKNOWLEDGED_S: f64 = 0.01;
/// A system that only waits uses less than this share of the time of an answer.
const IDLE: f64 = 0.25;

/// How much more a unit of work took the slower row.
pub(super) struct Gap<'a> {
    pub faster: &'a Estimate,
    pub slower: &'a Estimate,
    figure: Figure,
    /// How many times faster the one is, at least 1.
    times: f64,
    /// Seconds on the clock for a unit of work, of the faster and the slower.
    pub time_s: [f64; 2],
    /// The operations that were under way at once.
    at_once: f64,
    /// How many seconds on the clock a second of CPU time takes.
    stretch: f64,
}

impl<'a> Gap<'a> {
    /// None if the figure is no time and no cost of time, or nothing is known of it.
    pub fn between(figure: Figure, times: f64, faster: &'a Estimate, slower: &'a Estimate) -> Option<Self> {
        let work = slower.scenario.work();
        let connections = work.connections().max(1) as f64;
        let (at_once, time_s): (f64, fn(&Estimate) -> Option<f64>) = match figure {
            Figure::FramesPerS | Figure::RequestsPerS | Figure::MaxRate => {
                (connections, |e| Some(1.0 / e.figure?))
            }
            Figure::BytesPerS => (connections, |e| Some(bytes_of_unit(e) / e.figure?)),
            // Uploads that are under way at once share the time.
            Figure::MsPerUpload => (connections, |e| {
                let work = e.scenario.work();
                let bytes = (work.payload_bytes() * work.connections().max(1)) as f64;
                Some(e.figure? / 1e3 * bytes_of_unit(e) / bytes)
            }),
            Figure::P50Us | Figure::P99Us => (1.0, |e| Some(e.figure? / 1e6)),
            figure if figure.is_time_of_answer() => (1.0, |e| Some(e.figure? / 1e6)),
            Figure::EventsPerS | Figure::GoodPerS => (connections, |e| Some(1.0 / e.figure?)),
            Figure::CpuPerUnit => (connections, |e| e.cpu_s_per_unit),
            _ => return None,
        };
        let times = if times < 1.0 { times.recip() } else { times };
        let time_s = [time_s(faster)?, time_s(slower)?];
        Some(Self { faster, slower, figure, times, time_s, at_once, stretch: 1.0 })
    }

    /// The same where a second of CPU time counts with the wait for a core that both rows have, because other programs share it. Threads
    /// of the system itself wait for each other, too, so this is looked at only where nothing else tells.
    pub fn on_shared_cores(self) -> Self {
        let waited = [self.faster, self.slower].map(|e| e.work.waited_s_per_cpu_s.unwrap_or(0.0));
        Self { stretch: 1.0 + waited.into_iter().fold(f64::INFINITY, f64::min), ..self }
    }

    fn more_time_s(&self) -> f64 {
        self.time_s[1] - self.time_s[0]
    }

    fn cpu_s(&self) -> [f64; 2] {
        [self.faster, self.slower].map(|e| e.cpu_s_per_unit.unwrap_or(0.0))
    }

    /// The share of the difference that CPU time accounts for: the smaller of its share of the time, and of the ratio in
    /// logarithms.
    fn by_cpu(&self) -> f64 {
        let [faster, slower] = self.cpu_s();
        if faster <= 0.0 || slower <= faster {
            return 0.0;
        }
        let of_ratio = (slower / faster).ln() / self.times.ln().max(f64::MIN_POSITIVE);
        let of_time = (slower - faster) * self.stretch / self.more_time_s().max(f64::MIN_POSITIVE);
        of_ratio.min(of_time).min(1.0)
    }

    /// The share that so much CPU time for a unit of work accounts for, of a count that differs so many times.
    pub fn of_cpu(&self, cost_s: f64, times: f64) -> f64 {
        let [faster, slower] = self.cpu_s();
        if self.by_cpu() < SHARE || times.ln() < self.times.ln() * SHARE {
            return 0.0;
        }
        (cost_s / (slower - faster)).min(1.0)
    }

    /// The share of what CPU time leaves open, if that is enough to look for.
    fn open(&self) -> Option<f64> {
        let open = 1.0 - self.by_cpu();
        (self.figure != Figure::CpuPerUnit && open >= SHARE).then_some(open)
    }

    /// The share that so many seconds of waiting for a unit of work account for. Operations that are under way at once
    /// wait at once.
    pub fn of_waiting(&self, waited_s: f64) -> f64 {
        let more = self.more_time_s() * self.at_once;
        self.open().filter(|_| more > 0.0).map_or(0.0, |_| (waited_s / more).min(1.0))
    }

    /// The share that a loss of time accounts for without which the slower one would be so many times faster.
    pub fn of_share(&self, times: f64) -> f64 {
        self.open().map_or(0.0, |_| (times.ln() / self.times.ln().max(f64::MIN_POSITIVE)).min(1.0))
    }

    /// Whether the slower one has more in nearly all trials.
    pub fn is_consistent(&self, range: impl Fn(&Ranges) -> Option<Range>) -> bool {
        let (faster, slower) = (range(&self.faster.work.ranges), range(&self.slower.work.ranges));
        faster.zip(slower).is_none_or(|(faster, slower)| slower.low > faster.high)
    }

    /// The system's own code, if its CPU time accounts for the difference.
    pub fn own_code(&self) -> Option<Reason> {
        let (share, [faster, slower]) = (self.by_cpu(), self.cpu_s());
        let says = self.figure != Figure::CpuPerUnit && share >= OWN && self.is_consistent(|r| r.cpu);
        says.then_some(Reason { counted: Counted::OwnCode, faster, slower, share })
    }

    /// The functions in which the slower one's CPU time is, if CPU time accounts for the difference.
    pub fn functions(&self, cpu: &CpuDifference) -> Option<Reason> {
        let share = self.by_cpu();
        let says = share >= SHARE && cpu.is_certain() && cpu.functions.is_some();
        let [faster, slower] = self.cpu_s();
        says.then_some(Reason { counted: Counted::Functions, faster, slower, share })
    }

    /// What the slower one waits for, if that accounts for the difference.
    pub fn waits(&self, waiting: &Waiting) -> Option<Reason> {
        let (faster, slower) = (waiting.less_s.unwrap_or(0.0), waiting.more_s);
        let share = self.of_waiting((slower - faster) / self.slower.scenario.workload().about().unit.size);
        (share >= SHARE).then_some(Reason { counted: Counted::Waits, faster, slower, share })
    }

    /// The wait for an acknowledgement, if only the slower one has it.
    pub fn held_back(&self) -> Option<Reason> {
        let wait = |e: &Estimate| e.work.unacknowledged_s.unwrap_or(0.0);
        let only = is_held_back(self.slower) && !is_held_back(self.faster);
        let (faster, slower) = (wait(self.faster), wait(self.slower));
        (only && self.figure != Figure::CpuPerUnit).then_some(Reason {
            counted: Counted::HeldBack,
            faster,
            slower,
            share: 1.0,
        })
    }
}

/// Payload bytes of a unit of work.
fn bytes_of_unit(e: &Estimate) -> f64 {
    if e.scenario.workload().about().unit.bytes { 1.0 } else { e.scenario.work().payload_bytes() as f64 }
}

/// Whether the answers of an idle server wait for an acknowledgement: it sends an answer in two parts, Nagle's algorithm
/// holds the second back until the first is acknowledged, and the other side delays that. A stream takes its time by itself.
pub fn is_held_back(e: &Estimate) -> bool {
    let (work, unit) = (e.scenario.work(), &e.scenario.workload().about().unit);
    let [least, most] = DELAYED_S;
    let median_s = e.service_p50_us.map(|p50| p50.value() as f64 / 1e6);
    let delayed = median_s.filter(|s| (least..=most).contains(s));
    let idle = delayed.zip(e.cpu_s_per_unit).is_some_and(|(all, cpu)| cpu < all * IDLE);
    let waits = e.work.unacknowledged_s.is_some_and(|s| s >= LEAST_UNACKNOWLEDGED_S);
    let parts = e.work.segments_of_answer.is_some_and(|n| n >= LEAST_SEGMENTS);
    let is_stream = e.events_per_read.is_some();
    !unit.bytes && !work.is_open_loop() && !is_stream && idle && waits && parts
}
