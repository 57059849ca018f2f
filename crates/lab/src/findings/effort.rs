//! The kernel's work for a system, per unit of the system's work.
//!
//! These are counts, which vary less from run to run than times do. System calls, instructions and what TCP says of the
//! connections are counted in a short drive after the first round's window (`lab::session`), so that counting slows
//! nothing that is timed. The others are those of the windows.

use measurement::{KernelCounts, Measurement};
use serde::{Deserialize, Serialize};
use stats::{median, median_ratio};
use systems::tcp::TcpEnd;
use systems::work::WorkUnit;

/// The kernel's work for a system. A unit is a payload byte of an upload, a frame or a request. *In* is what the system
/// receives, and *out* what it sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Work"))]
pub struct Effort {
    /// Voluntary and involuntary context switches, the median over trials.
    pub switches_per_unit: Option<f64>,
    /// System calls of all kinds.
    pub calls_per_unit: Option<f64>,
    /// The mean number of bytes that a call of read(2), recvmsg(2) or the like returned, including calls that returned
    /// none. None for a system that reads without such calls (io_uring).
    pub bytes_per_read: Option<f64>,
    /// Whether these two were counted by tracing (ptrace), which slows a system.
    #[serde(default)]
    pub traced: bool,
    /// Instructions, user and kernel. None if the processor's counters could not be used.
    pub instructions_per_unit: Option<f64>,
    /// Segments that the machine's TCP retransmitted for each second of the window, the median over trials.
    #[serde(default)]
    pub retransmits_per_s: Option<f64>,
    /// Page faults, minor and major, the median over trials.
    pub faults_per_unit: Option<f64>,
    /// Bytes that the system sent, as they were on the wire; the median over trials. None if none were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out_per_unit: Option<f64>,
    /// Full handshakes of TLS, in each of which the server signs; the median over trials. None if no handshake ended in a
    /// window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_handshakes_per_unit: Option<f64>,
    /// Seconds in which its threads could run and waited for a core, for each second that they ran; the median over
    /// trials.
    pub waited_s_per_cpu_s: Option<f64>,
    /// The share of its cores' time that softirqs took, the median over trials.
    pub softirq_share: Option<f64>,
    /// What TCP sent to the system.
    pub tcp_in: Option<Sent>,
    /// What TCP sent for the system.
    pub tcp_out: Option<Sent>,
    /// The largest receive buffer of its sockets, bytes (`SO_RCVBUF` of socket(7)). None if the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<f64>,
    /// Whether it waits for most of its connections with `EPOLLET` (epoll(7)). None if it waits with epoll for none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_triggered: Option<bool>,
    /// Bytes that were sent to the system for a unit of work.
    #[serde(skip)]
    pub(super) bytes_in_per_unit: Option<f64>,
    /// Seconds for each answer in which the system had sent something that was not acknowledged.
    #[serde(skip)]
    pub(super) unacknowledged_s: Option<f64>,
    /// Segments with payload that the system sent for each answer.
    #[serde(skip)]
    pub(super) segments_of_answer: Option<f64>,
    /// How what is counted in windows varies from trial to trial.
    #[serde(skip)]
    pub(super) ranges: Ranges,
}

/// Where most trials lie.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Ranges {
    pub cpu: Option<Range>,
    pub switches: Option<Range>,
    pub faults: Option<Range>,
    pub retransmits: Option<Range>,
    pub waited: Option<Range>,
    pub bytes_out: Option<Range>,
}

/// The trials of one scenario without the lowest quarter and the highest. Of fewer than four trials, all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    fn of(ratios: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let mut ratios: Vec<f64> = ratios.filter(|(_, by)| *by > 0.0).map(|(of, by)| of / by).collect();
        ratios.sort_by(f64::total_cmp);
        let out = ratios.len() / 4;
        Some(Self { low: *ratios.get(out)?, high: *ratios.iter().rev().nth(out)? })
    }

    /// The same, and where the mean may lie of what happens rarely and by chance, so that a few trials can have as many of it by chance:
    /// about 95 % of Poisson counts, whose square roots have the standard deviation 1/2 (Anscombe, Biometrika 35, 1948).
    fn of_rare(counts: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let trials = Self::of(counts.clone())?;
        let (count, time) = counts.fold((0.0, 0.0), |(count, time), (of, by)| (count + of, time + by));
        let root = f64::sqrt(count);
        let [low, high] = [(root - 1.0).max(0.0), root + 1.0].map(|root| root * root / time);
        Some(Self { low: trials.low.min(low), high: trials.high.max(high) })
    }
}

/// What TCP sent in one direction. From the account that the kernel keeps of each connection (`TCP_INFO`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sent {
    /// Segments, including those without payload. None if too little of the traffic was seen, because connections were
    /// short.
    pub segments_per_unit: Option<f64>,
    /// Bytes of a segment with payload, on average.
    pub bytes_per_segment: Option<f64>,
    /// Segments that were sent again, like `segments_per_unit`.
    pub resent_per_unit: Option<f64>,
    /// The share of the time with something to send in which the receiver's window was full. None if the kernel does not
    /// say (before Linux 4.10).
    pub window_limited: Option<f64>,
    /// The share of that time in which the sender's own buffer was full.
    pub buffer_limited: Option<f64>,
}

/// At least this share of the bytes must be those of connections that the kernel listed. On a busy machine the only listing may be
/// one of the first moments.
const SEEN: f64 = 0.5;

/// Whether the listings show most of the bytes that one end sent.
fn shows_most(end: &TcpEnd, bytes: u64) -> bool {
    end.bytes > 0 && end.bytes as f64 >= bytes as f64 * SEEN
}

impl Sent {
    /// By one end, which sent so many bytes in all.
    fn of(end: &TcpEnd, bytes: u64, counts: &KernelCounts, unit: &WorkUnit) -> Self {
        // The last listing is a moment before the end, so the segments are those of the bytes that it shows.
        let seen = shows_most(end, bytes);
        let whole = bytes as f64 / end.bytes as f64;
        let per_unit = |count: u64| {
            counts.per_operation(1, unit).filter(|_| seen).map(|each| each * count as f64 * whole)
        };
        Self {
            segments_per_unit: per_unit(end.segments),
            bytes_per_segment: end.bytes_per_segment(),
            resent_per_unit: per_unit(end.retransmits),
            window_limited: end.window_limited(),
            buffer_limited: end.buffer_limited(),
        }
    }
}

impl Effort {
    /// Calls that read, for a unit of work, including those that returned no byte.
    pub fn reads_per_unit(&self) -> Option<f64> {
        Some(self.bytes_in_per_unit? / self.bytes_per_read.filter(|bytes| *bytes > 0.0)?)
    }

    /// Computes the effort of one scenario's trials.
    pub(super) fn of<'a>(unit: &WorkUnit, trials: impl Iterator<Item = &'a Measurement> + Clone) -> Self {
        let counted = trials.clone().find_map(|m| m.counted);
        let calls = counted.and_then(|counts| counts.calls());
        let ends = counted.and_then(|counts| Some((counts, counts.tcp?)));
        let sent = |end: Option<TcpEnd>, bytes: u64, counts: &KernelCounts| {
            end.map(|end| Sent::of(&end, bytes, counts, unit))
        };
        let ratio = |of: fn(&Measurement) -> Option<f64>, by: &dyn Fn(&Measurement) -> f64| {
            median_ratio(trials.clone().filter_map(|m| Some((of(m)?, by(m)))))
        };
        let range = |of: fn(&Measurement) -> Option<f64>, by: &dyn Fn(&Measurement) -> f64| {
            Range::of(trials.clone().filter_map(|m| Some((of(m)?, by(m)))))
        };
        let worth = |m: &Measurement| m.worth(unit);
        let elapsed = |m: &Measurement| m.elapsed_s;
        let cpu = |m: &Measurement| m.system.cpu_s;
        let switches = |m: &Measurement| Some(m.system.context_switches as f64);
        let faults = |m: &Measurement| m.system.page_faults.map(|faults| faults as f64);
        let resent = |m: &Measurement| Some(m.retransmits as f64);
        let waited = |m: &Measurement| m.system.waited_s;
        let server = ends
            .and_then(|(counts, tcp)| Some((counts, tcp.server?)))
            .filter(|(counts, end)| shows_most(end, counts.bytes_received));
        let each =
            |of: f64, counts: &KernelCounts| (counts.operations > 0).then(|| of / counts.operations as f64);
        let received = |m: &Measurement| Some(m.bytes_received as f64).filter(|bytes| *bytes > 0.0);
        let ranges = Ranges {
            cpu: range(|m| Some(m.system.cpu_s), &worth),
            switches: range(switches, &worth),
            faults: range(faults, &worth),
            retransmits: Range::of_rare(trials.clone().filter_map(|m| Some((resent(m)?, elapsed(m))))),
            waited: range(waited, &cpu),
            bytes_out: range(received, &worth),
        };
        let opened = trials.clone().any(|m| m.handshakes.is_some());
        Self {
            switches_per_unit: ratio(switches, &worth),
            calls_per_unit: calls.and_then(|calls| calls.per_operation(unit)),
            bytes_per_read: counted.and_then(|counts| counts.bytes_per_read()),
            traced: calls.is_some_and(|calls| calls.traced),
            instructions_per_unit: counted
                .and_then(|counts| counts.per_operation(counts.instructions?, unit)),
            retransmits_per_s: ratio(resent, &elapsed),
            faults_per_unit: ratio(faults, &worth),
            bytes_out_per_unit: ratio(received, &worth),
            full_handshakes_per_unit: ratio(|m| Some(m.full_handshakes() as f64), &worth).filter(|_| opened),
            waited_s_per_cpu_s: ratio(waited, &cpu),
            softirq_share: median(trials.clone().filter_map(|m| m.system.softirq_share)),
            tcp_in: ends.and_then(|(counts, tcp)| sent(tcp.clients, counts.bytes, &counts)),
            tcp_out: ends.and_then(|(counts, tcp)| sent(tcp.server, counts.bytes_received, &counts)),
            receive_buffer: ends.and_then(|(_, tcp)| tcp.server?.receive_buffer).map(|bytes| bytes as f64),
            edge_triggered: counted.and_then(|counts| counts.edge_triggered),
            bytes_in_per_unit: counted.and_then(|counts| counts.per_operation(counts.bytes, unit)),
            unacknowledged_s: server.and_then(|(counts, end)| each(end.busy_us? as f64 / 1e6, &counts)),
            segments_of_answer: server.and_then(|(counts, end)| each(end.data_segments as f64, &counts)),
            ranges,
        }
    }
}

#[cfg(test)]
mod tests {
    use systems::Workload;
    use systems::tcp::TcpEnds;

    use super::*;
    use measurement::{Handshakes, SystemUse, TracedCounts};

    fn of(workload: Workload, counted: KernelCounts, system: SystemUse) -> Effort {
        let trial = Measurement {
            units: 10,
            payload_bytes: 1000,
            system,
            counted: Some(counted),
            ..Measurement::default()
        };
        Effort::of(&workload.about().unit, std::iter::once(&trial))
    }

    fn counted(bytes: u64) -> KernelCounts {
        let end = TcpEnd {
            sockets: 2,
            segments: 30,
            data_segments: 10,
            bytes,
            retransmits: 5,
            busy_us: Some(100),
            window_limited_us: Some(40),
            buffer_limited_us: None,
            receive_buffer: Some(131_072),
        };
        let tcp = Some(TcpEnds { clients: Some(end), server: None });
        KernelCounts { operations: 20, bytes: 4000, tcp, ..KernelCounts::default() }
    }

    #[test]
    fn segments_are_those_of_all_bytes_if_most_were_seen() {
        // The last listing showed half of the bytes, so twice as many segments were sent.
        let work = of(Workload::Requests, counted(2000), SystemUse::default());
        let seen = Sent {
            segments_per_unit: Some(3.0),
            bytes_per_segment: Some(200.0),
            resent_per_unit: Some(0.5),
            window_limited: Some(0.4),
            buffer_limited: None,
        };
        assert_eq!((work.tcp_in, work.tcp_out), (Some(seen), None));
        let upload = of(Workload::Upload, counted(4000), SystemUse::default()).tcp_in.unwrap();
        assert_eq!(upload.segments_per_unit, Some(30.0 / 4000.0));
        // Connections were too short to be listed.
        let few = of(Workload::Requests, counted(1999), SystemUse::default()).tcp_in.unwrap();
        assert_eq!((few.segments_per_unit, few.bytes_per_segment), (None, Some(199.9)));
    }

    #[test]
    fn what_a_server_sent_counts_only_if_most_of_it_was_seen() {
        let of_server = |bytes_received: u64| {
            let counts = counted(2000);
            let tcp = counts.tcp.map(|ends| TcpEnds { server: ends.clients, clients: None });
            let work =
                of(Workload::Requests, KernelCounts { tcp, bytes_received, ..counts }, SystemUse::default());
            (work.segments_of_answer, work.receive_buffer)
        };
        assert_eq!(of_server(4000), (Some(0.5), Some(131_072.0)));
        assert_eq!(of_server(4001), (None, Some(131_072.0)));
    }

    #[test]
    fn calls_that_were_traced_count_only_where_the_kernel_counted_none() {
        let traced = Some(TracedCounts { operations: 5, bytes: 500, system_calls: 40, reads: 5 });
        let both = KernelCounts { system_calls: Some(60), reads: Some(40), traced, ..counted(4000) };
        let work = |counts| {
            let work = of(Workload::Requests, counts, SystemUse::default());
            (work.calls_per_unit, work.bytes_per_read, work.traced)
        };
        assert_eq!(work(both), (Some(3.0), Some(100.0), false));
        assert_eq!(work(KernelCounts { traced, ..counted(4000) }), (Some(8.0), Some(100.0), true));
        assert_eq!(work(counted(4000)), (None, None, false));
    }

    #[test]
    fn full_handshakes_are_those_with_a_signature() {
        let of = |handshakes: &[Option<[u64; 3]>]| {
            let trials: Vec<Measurement> = handshakes
                .iter()
                .map(|kinds| {
                    let found = |[full, retried, resumed]: [u64; 3]| Handshakes {
                        full,
                        retried,
                        resumed,
                        ..Handshakes::default()
                    };
                    Measurement { units: 10, handshakes: kinds.map(found), ..Measurement::default() }
                })
                .collect();
            Effort::of(&Workload::Requests.about().unit, trials.iter()).full_handshakes_per_unit
        };
        assert_eq!(of(&[Some([7, 3, 0])]), Some(1.0));
        assert_eq!(of(&[Some([1, 0, 9])]), Some(0.1));
        assert_eq!(of(&[Some([0, 0, 10])]), Some(0.0));
        assert_eq!(of(&[None, None]), None);
        // A window in which no connection was opened counts as one without handshakes.
        assert_eq!(of(&[None, Some([5, 0, 0]), None]), Some(0.0));
    }

    #[test]
    fn a_few_retransmits_may_be_as_many_by_chance() {
        let range = |each: u64, trials: usize| {
            let trial = Measurement { retransmits: each, elapsed_s: 0.3, ..Measurement::default() };
            let all = vec![trial; trials];
            let work = Effort::of(&Workload::Requests.about().unit, all.iter());
            let Range { low, high } = work.ranges.retransmits.expect("it is counted");
            assert!(low <= each as f64 / 0.3 && each as f64 / 0.3 <= high);
            (low, high)
        };
        // One in each trial against two, and the same in many trials.
        assert!(range(1, 3).1 > range(2, 3).0);
        assert!(range(1, 30).1 < range(2, 30).0);
        assert!(range(0, 3).1 < range(3, 3).0);
    }

    #[test]
    fn what_earlier_versions_did_not_measure_is_not_known() {
        let counts = r#"{"operations":1,"bytes":2,"system_calls":3,"reads":null,"instructions":null}"#;
        let counts: KernelCounts = serde_json::from_str(counts).unwrap();
        let mut system = serde_json::to_value(SystemUse { cpu_s: 2.0, ..SystemUse::default() }).unwrap();
        for later in ["waited_s", "page_faults", "softirq_share"] {
            system.as_object_mut().unwrap().remove(later);
        }
        let work = of(Workload::Requests, counts, serde_json::from_value(system).unwrap());
        assert_eq!(work.calls_per_unit, Some(3.0));
        assert_eq!((work.waited_s_per_cpu_s, work.faults_per_unit, work.softirq_share), (None, None, None));
        let now =
            SystemUse { cpu_s: 2.0, waited_s: Some(1.0), page_faults: Some(30), ..SystemUse::default() };
        let work = of(Workload::Requests, counts, now);
        assert_eq!((work.waited_s_per_cpu_s, work.faults_per_unit), (Some(0.5), Some(3.0)));
    }
}
