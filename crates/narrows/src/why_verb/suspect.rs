//! A suspected cause: a count in which two systems differ, and how the faster one is given as much of it. Pure.

use inject::Injection;
use lab::findings::Estimate;

/// The doses of a cause, as multiples of what the slower one has.
pub const DOSES: [f64; 3] = [0.5, 1.0, 2.0];

/// The injected count must come this near to that of the slower one, as a share of the way.
const TAKEN: f64 = 0.5;

/// Reads of fewer bytes for a unit of work than this fit into any receive buffer.
const MANY_BYTES: f64 = 16.0 * 1024.0;

/// What can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Reads that return fewer bytes.
    Reads,
    /// Further system calls for each read.
    Calls,
    /// Further context switches for each read.
    Switches,
    /// A smaller receive buffer of each connection.
    Buffer,
}

impl Cause {
    const ALL: [Self; 4] = [Self::Reads, Self::Calls, Self::Switches, Self::Buffer];

    /// The count of a row. None if nothing was counted, or if it means nothing for such work.
    fn of(self, row: &Estimate) -> Option<f64> {
        let work = &row.work;
        match self {
            Self::Reads => work.bytes_per_read,
            Self::Calls => work.calls_per_unit,
            Self::Switches => work.switches_per_unit,
            Self::Buffer => {
                let unit = row.scenario.workload().about().unit.size;
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
    /// Reads for a unit of work of the faster one.
    reads: f64,
}

/// The counts in which the slower one is worse.
pub fn suspects(faster: &Estimate, slower: &Estimate) -> Vec<Suspect> {
    let Some(reads) = faster.work.reads_per_unit().filter(|reads| *reads > 0.0) else { return Vec::new() };
    let suspect = |cause: Cause| {
        let [few, many] = [cause.of(faster)?, cause.of(slower)?];
        let times = if cause.less_is_worse() { few / many } else { many / few };
        (times >= cause.differ()).then_some(Suspect { cause, faster: few, slower: many, reads })
    };
    Cause::ALL.into_iter().filter_map(suspect).collect()
}

impl Suspect {
    /// What the faster one is given for a dose of it.
    pub fn injection(&self, dose: f64) -> Injection {
        let nothing = Injection::default();
        let bytes = || Some((self.slower / dose).round().max(1.0) as u64);
        let thousandths = || (self.more_for_each_read() * 1000.0 * dose).round().max(0.0) as u64;
        match self.cause {
            Cause::Reads => Injection { most_bytes: bytes(), ..nothing },
            Cause::Buffer => Injection { receive_buffer: bytes(), ..nothing },
            Cause::Calls => Injection { thousandths_of_calls: thousandths(), ..nothing },
            Cause::Switches => Injection { thousandths_of_yields: thousandths(), ..nothing },
        }
    }

    fn more_for_each_read(&self) -> f64 {
        (self.slower - self.faster) / self.reads
    }

    /// By how many events for a unit of work a dose makes the faster one do more, and what one is called. None if it is no event.
    pub fn events(&self, dose: f64) -> Option<(f64, &'static str)> {
        match self.cause {
            Cause::Reads => Some((self.reads * (self.faster / self.slower * dose - 1.0), "read")),
            Cause::Calls => Some(((self.slower - self.faster) * dose, "call")),
            Cause::Switches => Some(((self.slower - self.faster) * dose, "switch")),
            Cause::Buffer => None,
        }
    }

    /// Whether the injected row has come near to the slower one, as a share of the way in logarithms. None if nothing was counted.
    pub fn has_taken(&self, injected: &Estimate) -> Option<bool> {
        let way = |count: f64| (count / self.faster).ln() / (self.slower / self.faster).ln();
        self.cause.of(injected).map(|count| (TAKEN..=1.0 / TAKEN).contains(&way(count)))
    }

    /// Why it may not have reached the program.
    pub fn why_not_taken(&self) -> &'static str {
        match self.cause {
            Cause::Switches => {
                "its thread yielded the core, but no other thread waited for it, so there was no switch; or it makes its system \
                 calls itself"
            }
            _ => "it makes its system calls itself, or it reads with other functions",
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
        let suspect = |cause, faster, slower| Suspect { cause, faster, slower, reads: 2.0 };
        let reads = suspect(Cause::Reads, 65536.0, 1460.0);
        let calls = suspect(Cause::Calls, 6.0, 9.0);
        let switches = suspect(Cause::Switches, 1.0, 2.0);
        let buffer = suspect(Cause::Buffer, 6e6, 87_380.0);
        for (suspect, dose, told) in [
            (reads, 0.5, "cap=2920"),
            (reads, 1.0, "cap=1460"),
            (reads, 2.0, "cap=730"),
            (calls, 0.5, "calls=750"),
            (calls, 2.0, "calls=3000"),
            (switches, 1.0, "yields=500"),
            (buffer, 2.0, "buffer=43690"),
        ] {
            assert_eq!(suspect.injection(dose).to_string(), told);
        }
        assert_eq!(calls.events(2.0), Some((6.0, "call")));
        assert_eq!(suspect(Cause::Reads, 100.0, 50.0).events(2.0), Some((6.0, "read")));
        assert_eq!(buffer.events(2.0), None);
    }
}
