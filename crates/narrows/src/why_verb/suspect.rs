//! A suspected cause: a count in which two systems differ, and how the faster one is given as much of it. Pure.

use inject::Injection;
use lab::findings::Estimate;

/// The doses of a cause, as multiples of what the slower one has more than the faster one. Of equal ones the first counts.
pub const DOSES: [f64; 3] = [ONCE, HALF, TWICE];
/// Half of it.
pub const HALF: f64 = 0.5;
/// As much of it.
pub const ONCE: f64 = 1.0;
/// Twice of it.
pub const TWICE: f64 = 2.0;

/// The injected count must go between this share of the way to the slower one and its inverse.
const TAKEN: f64 = 0.5;

/// A receive buffer must come this near to what was asked for, as a share: the kernel limits it (net.core.rmem_max).
const NEAR: f64 = 0.1;

/// A unit of work with fewer bytes than this fits into any receive buffer.
const MANY_BYTES: f64 = 16.0 * 1024.0;

/// What the slower one does less often than this for a unit of work costs it nothing worth saying.
const LEAST: f64 = 0.1;

/// What can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Cause {
    /// Reads that return fewer bytes
    Reads,
    /// Further system calls for each read
    Calls,
    /// Further context switches for each read
    Switches,
    /// A smaller receive buffer of each connection
    Buffer,
}

impl Cause {
    const ALL: [Self; 4] = [Self::Reads, Self::Calls, Self::Switches, Self::Buffer];

    /// The count of a row. None if nothing was counted, or if it means nothing for such work.
    fn of(self, row: &Estimate) -> Option<f64> {
        let (work, unit) = (&row.work, unit(row));
        // Between nothing and next to nothing there is no ratio.
        let at_least = |count: f64| count.max(LEAST / 10.0 / unit);
        match self {
            Self::Reads => work.bytes_per_read,
            Self::Calls => work.calls_per_unit.map(at_least),
            Self::Switches => work.switches_per_unit.map(at_least),
            Self::Buffer => {
                let bytes = work.reads_per_unit()? * work.bytes_per_read? * unit;
                work.receive_buffer.filter(|_| bytes >= MANY_BYTES)
            }
        }
    }

    /// Whether less of it is worse.
    fn less_is_worse(self) -> bool {
        matches!(self, Self::Reads | Self::Buffer)
    }

    /// Counts that differ less are no suspects. Switches vary from trial to trial, and the kernel chooses the sizes of buffers.
    fn differ(self) -> f64 {
        match self {
            Self::Reads | Self::Calls => 1.2,
            Self::Switches => 1.5,
            Self::Buffer => 2.0,
        }
    }
}

/// A count that may be the cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspect {
    cause: Cause,
    faster: f64,
    slower: f64,
    /// Reads of the faster one for each payload byte or operation, as `faster` and `slower` are.
    reads: f64,
    /// How many payload bytes or operations make one unit of work.
    unit: f64,
    /// Whether the faster one waits for its connections with EPOLLET.
    edge_triggered: bool,
}

/// The counts in which the slower one is worse, of these causes; of all if none is chosen.
pub fn suspects(faster: &Estimate, slower: &Estimate, chosen: &[Cause]) -> Vec<Suspect> {
    let Some(reads) = faster.work.reads_per_unit().filter(|reads| *reads > 0.0) else { return Vec::new() };
    let suspect = |cause: Cause| {
        let [few, many] = [cause.of(faster)?, cause.of(slower)?];
        let (times, worth) = match cause.less_is_worse() {
            true => (few / many, true),
            false => (many / few, (many - few) * unit(slower) >= LEAST),
        };
        (worth && times >= cause.differ()).then_some(Suspect {
            cause,
            faster: few,
            slower: many,
            reads,
            unit: unit(slower),
            edge_triggered: faster.work.edge_triggered == Some(true),
        })
    };
    let is_chosen = |cause: &Cause| chosen.is_empty() || chosen.contains(cause);
    Cause::ALL.into_iter().filter(is_chosen).filter_map(suspect).collect()
}

/// How many payload bytes or operations make one unit of a row's work.
fn unit(row: &Estimate) -> f64 {
    row.scenario.workload().about().unit.size
}

impl Suspect {
    /// These doses, with what the faster one is given for each. Small counts leave fewer that differ.
    pub fn doses(&self, of: &[f64]) -> Vec<(f64, Injection)> {
        let mut doses: Vec<(f64, Injection)> = Vec::new();
        for &dose in of {
            let injection = self.injection(dose);
            if !injection.is_nothing() && doses.iter().all(|(_, known)| *known != injection) {
                doses.push((dose, injection));
            }
        }
        doses
    }

    fn injection(&self, dose: f64) -> Injection {
        let nothing = Injection::default();
        let whole = |bytes: f64| Some(bytes.round().max(1.0) as u64);
        let thousandths = || (self.more_for_each_read() * 1000.0 * dose).round().max(0.0) as u64;
        match self.cause {
            Cause::Reads => {
                // So many times the reads of the faster one.
                let times = 1.0 + (self.faster / self.slower - 1.0) * dose;
                Injection { most_bytes: whole(self.faster / times), ..nothing }
            }
            Cause::Buffer => Injection { receive_buffer: whole(self.slower / dose), ..nothing },
            Cause::Calls => Injection { thousandths_of_calls: thousandths(), ..nothing },
            Cause::Switches => Injection { thousandths_of_yields: thousandths(), ..nothing },
        }
    }

    fn more_for_each_read(&self) -> f64 {
        (self.slower - self.faster) / self.reads
    }

    /// How many more events for a unit of work a dose makes, and what one is called. None if it is no event.
    pub fn events(&self, dose: f64) -> Option<(f64, &'static str)> {
        let Injection { most_bytes, thousandths_of_calls, thousandths_of_yields, .. } = self.injection(dose);
        let reads = self.reads * self.unit;
        let of_reads = |thousandths: u64| reads * thousandths as f64 / 1000.0;
        match self.cause {
            Cause::Reads => Some((reads * (self.faster / most_bytes? as f64 - 1.0), "read")),
            Cause::Calls => Some((of_reads(thousandths_of_calls), "call")),
            Cause::Switches => Some((of_reads(thousandths_of_yields), "switch")),
            Cause::Buffer => None,
        }
    }

    /// Whether a dose has had its effect on the count. None if nothing was counted.
    pub fn has_taken(&self, dose: f64, injected: &Estimate) -> Option<bool> {
        let count = self.cause.of(injected)?;
        if let Some(asked) = self.injection(dose).receive_buffer {
            return Some((count / asked as f64 - 1.0).abs() <= NEAR);
        }
        let way = (count / self.faster).ln() / (self.slower / self.faster).ln();
        Some(dose != ONCE || (TAKEN..=1.0 / TAKEN).contains(&way))
    }

    /// Why it cannot be injected into this program. None if it may be.
    pub fn impossible(&self) -> Option<&'static str> {
        (self.cause == Cause::Reads && self.edge_triggered).then_some(
            "it waits with EPOLLET, so it takes a short read for the end of the data, and would wait for the rest for ever",
        )
    }

    /// Why a test of it proves nothing, although it may exclude. None if it may prove, too.
    pub fn no_proof(&self) -> Option<&'static str> {
        let yields = self.cause == Cause::Switches;
        yields.then_some(
            "a yield also lets other programs run, so it may take longer than a switch, and proves nothing",
        )
    }

    /// Why it may not have reached the program.
    pub fn why_not_taken(&self) -> &'static str {
        match self.cause {
            Cause::Switches => {
                "its thread yielded the core, but no other thread waited for it, so there was no switch; or it makes its system \
                 calls itself"
            }
            Cause::Buffer => {
                "the kernel allows no such buffer (see net.core.rmem_max), or it makes its system calls itself"
            }
            Cause::Reads => {
                "it waits with EPOLLET, so its reads are not shortened; or it makes its system calls itself, or reads with other \
                 functions"
            }
            Cause::Calls => "it makes its system calls itself, or it reads with other functions",
        }
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        let Self { faster, slower, .. } = self;
        match self.cause {
            Cause::Reads => format!("reads of {slower:.0} bytes instead of {faster:.0}"),
            Cause::Calls => format!("{:.1} more system calls for each read", self.more_for_each_read()),
            Cause::Switches => {
                format!("{:.1} more context switches for each read", self.more_for_each_read())
            }
            Cause::Buffer => {
                format!("receive buffers of {} bytes instead of {}", slower.round(), faster.round())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doses_come_from_what_the_slower_one_has() {
        let suspect = |cause, faster, slower| Suspect {
            cause,
            faster,
            slower,
            reads: 2.0,
            unit: 1.0,
            edge_triggered: false,
        };
        let reads = suspect(Cause::Reads, 65536.0, 1460.0);
        let calls = suspect(Cause::Calls, 6.0, 9.0);
        let switches = suspect(Cause::Switches, 1.0, 2.0);
        let buffer = suspect(Cause::Buffer, 6e6, 87_380.0);
        for (suspect, told) in [
            (reads, ["cap=1460", "cap=2856", "cap=738"].as_slice()),
            (calls, &["calls=1500", "calls=750", "calls=3000"]),
            (switches, &["yields=500", "yields=250", "yields=1000"]),
            (buffer, &["buffer=87380", "buffer=174760", "buffer=43690"]),
            // What rounds to the same is one dose, and what rounds to nothing is none.
            (suspect(Cause::Reads, 2.0, 1.0), &["cap=1"]),
            (suspect(Cause::Calls, 1.0, 1.001), &["calls=1"]),
            (suspect(Cause::Calls, 1.0, 1.0001), &[]),
        ] {
            let doses: Vec<String> =
                suspect.doses(&DOSES).iter().map(|(_, injection)| injection.to_string()).collect();
            assert_eq!(doses, told);
        }
        assert_eq!(calls.events(2.0), Some((6.0, "call")));
        assert_eq!(suspect(Cause::Reads, 100.0, 50.0).events(1.0), Some((2.0, "read")));
        // Of uploads a unit of work is a megabyte, and reads are counted for each byte.
        let of_uploads = Suspect { reads: 2e-6, unit: 1e6, ..suspect(Cause::Reads, 100.0, 50.0) };
        assert_eq!(of_uploads.events(1.0), Some((2.0, "read")));
        assert_eq!(buffer.events(2.0), None);
        assert!(switches.no_proof().is_some() && reads.no_proof().is_none());
        let impossible = |of: Suspect| Suspect { edge_triggered: true, ..of }.impossible().is_some();
        assert!(impossible(reads) && !impossible(calls) && reads.impossible().is_none());
    }
}
