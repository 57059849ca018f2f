//! Why: what of the kernel's work explains a difference in speed.
//!
//! Nothing is named that cannot account for the difference. What a count can account for is the number by which the slower
//! one has more, times the most that each can cost. The slower one needs more CPU time for a unit of work, or more time on
//! the clock; a count is compared with the one that it can cost, and named if it makes up at least a third of that
//! difference. If no count does and the CPU time does, the reason is the system's own code. Otherwise there is none.
//!
//! The most that each can cost are round numbers, chosen to be several times the usual cost. They are not measured, because a
//! count that is named wrongly is worse than one that is left out (the constants of TCP are those of Linux). docs/guide.md lists
//! them.

use serde::{Deserialize, Serialize};
use systems::Workload;
use systems::work::About;

use super::Waiting;
use super::cpu::CpuDifference;
use super::effort::{Effort, Range, Ranges, Sent};
use super::estimate::Estimate;
use super::table::{FigureTable, Part, TableKind, Unit, column, list_of, part};
use crate::experiment::Figure;
use crate::plan::Planned;

mod gap;

use gap::Gap;
pub(super) use gap::is_held_back;

/// What of a system's work is counted. *In* is what the system receives, and *out* what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Bytes that a read takes on average.
    BytesPerRead,
    /// System calls for a unit of work: a payload byte, a frame or a request.
    SystemCalls,
    /// Context switches for a unit of work.
    ContextSwitches,
    /// Instructions for a unit of work.
    Instructions,
    /// Bytes of a TCP segment with payload that the system received, on average.
    BytesPerSegmentIn,
    /// TCP segments that the system received, for a unit of work.
    SegmentsIn,
    /// TCP segments that the system sent, for a unit of work.
    SegmentsOut,
    /// TCP segments that the machine retransmitted in a second.
    Retransmits,
    /// Seconds in which the system's threads waited for a core, for each second that they ran.
    CoreWait,
    /// Page faults for a unit of work.
    PageFaults,
    /// Bytes that the system sent, as they were on the wire, for a unit of work.
    BytesOut,
    /// Full handshakes of TLS for a unit of work. In each of them the system signs.
    FullHandshakes,
    /// The share of the time of sending to the system in which its receive window was full.
    WindowLimitedIn,
    /// The share of the time of the system's sending in which the generator's receive window was full.
    WindowLimitedOut,
    /// The share of the time of sending to the system in which the generator's send buffer was full.
    BufferLimitedIn,
    /// The share of the time of the system's sending in which its send buffer was full.
    BufferLimitedOut,
    /// The share of the time of the system's cores that softirqs took.
    Softirqs,
    /// Seconds in which the end of an answer waited for the acknowledgement of its beginning (Nagle's algorithm). It is
    /// the only reason where it is one.
    HeldBack,
    /// Seconds of CPU time for a unit of work, which no count accounts for: the system's own code.
    OwnCode,
    /// Seconds of CPU time for a unit of work, of which [`CpuDifference`] says in which functions they are. It comes first. The counts
    /// behind it go with the difference, and no part of it is theirs.
    Functions,
    /// Seconds for a unit of work in which threads wait; [`Waiting`] says for what. It comes first.
    Waits,
}

/// A count that tells why one of two scenarios is the faster one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// What was counted.
    pub counted: Counted,
    /// Of the faster one.
    pub faster: f64,
    /// Of the slower one.
    pub slower: f64,
    /// The most of the difference that it can account for, as a share: 1 is all of it. 0 in runs of earlier versions.
    #[serde(default)]
    pub share: f64,
}

/// So many reasons are enough.
const MOST: usize = 2;
/// A count explains a difference if it explains at least this share of the effect, in logarithms.
const SHARE: f64 = 1.0 / 3.0;
/// The least ratio of counts that hardly vary from run to run.
const EXACT: f64 = 1.2;
/// The least ratio of counts that vary from run to run.
const VARYING: f64 = 1.5;
/// The least ratio of counts of calls that were traced: tracing makes a program wait, and threads that wait call more often.
const TRACED: f64 = 4.0;
/// What happens less often than this for a unit of work costs it nothing worth saying.
const LEAST: f64 = 0.1;
/// Fewer retransmits a second than this may be those of other programs.
const LEAST_RESENT: f64 = 5.0;
/// The most CPU time that a system call takes, seconds. The bytes that it moves are the same on both sides.
const CALL_S: f64 = 2e-6;
/// That a read takes of a stream, with what a program does for each of its messages.
const READ_S: f64 = 5e-6;
/// That a context switch, a page fault or a segment takes, with the caches that it spoils.
const COST_S: f64 = 5e-6;
/// That a byte takes which is copied and encrypted.
const BYTE_COST_S: f64 = 2e-9;
/// That a full handshake takes, with a signature of a long RSA key.
const HANDSHAKE_COST_S: f64 = 5e-3;
/// That an instruction takes.
const INSTRUCTION_S: f64 = 1e-9;
/// How long a segment waits before it is sent again: Linux's least timeout (TCP_RTO_MIN), seconds.
const RESENT_S: f64 = 0.2;
/// At that cost, what the slower one had to do more must take at least this share of its CPU time.
const WORTH: f64 = 0.1;
/// A share of time below this is nothing worth saying.
const LEAST_SHARE: f64 = 0.1;
/// Larger shares of time count as this one, so that the ratio stays finite.
const MOST_OF_TIME: f64 = 0.99;

/// How a count tells how much more the slower one had to do, and what that can cost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// What happens for a unit of work. It must differ so many times, and happen at least so often. Each costs at most so
    /// many seconds of CPU time.
    PerUnit { differ: f64, least: f64, cost_s: f64 },
    /// What happens on the whole machine in a second, and makes a connection wait for so many seconds. It is not divided
    /// by units of work: the share of other programs would otherwise grow with every slower system.
    InTime { differ: f64, least: f64, wait_s: f64 },
    /// The bytes that are moved at once: more is better. Each move costs at most so many seconds of CPU time.
    AtOnce { differ: f64, cost_s: f64 },
    /// A share of time that is lost.
    Share,
    /// Time that is lost for each second of CPU time.
    Beside,
}

impl Measure {
    /// How many times more the slower one had to do, which used so many seconds of CPU time for each unit. None if that is
    /// not enough to be said.
    fn telling(self, faster: f64, slower: f64, unit: f64, cpu_s: Option<f64>) -> Option<f64> {
        let (times, differ, worth) = match self {
            Self::PerUnit { differ, least, cost_s } => {
                let costs = cpu_s.is_none_or(|cpu_s| (slower - faster) * cost_s >= cpu_s * WORTH);
                let (faster, slower) = (faster * unit, slower * unit);
                // Between nothing and next to nothing there is no ratio.
                (slower / faster.max(least / 10.0), differ, slower >= least && costs)
            }
            Self::InTime { differ, least, .. } => {
                (slower / faster.max(least / 10.0), differ, slower >= least)
            }
            Self::AtOnce { differ, .. } => (faster / slower, differ, slower > 0.0),
            // Without the loss, the time would shrink to what is left.
            Self::Share => {
                let left = |share: f64| 1.0 - share.min(MOST_OF_TIME);
                (left(faster) / left(slower), EXACT, slower >= LEAST_SHARE)
            }
            Self::Beside => ((1.0 + slower) / (1.0 + faster), VARYING, slower >= LEAST_SHARE),
        };
        (worth && times >= differ).then_some(times)
    }

    /// The share of the gap that it can account for. 0 where it cannot cost what differs.
    fn accounts_for(self, gap: &Gap<'_>, [faster, slower]: [f64; 2], times: f64) -> f64 {
        let each = |e: &Estimate, of: f64| of * e.cpu_s_per_unit.unwrap_or(0.0);
        match self {
            Self::PerUnit { cost_s, .. } => gap.of_cpu((slower - faster) * cost_s, times),
            Self::AtOnce { cost_s, .. } => {
                let moves = |e: &Estimate, at_once: f64| e.work.bytes_in_per_unit.unwrap_or(0.0) / at_once;
                gap.of_cpu((moves(gap.slower, slower) - moves(gap.faster, faster)) * cost_s, times)
            }
            Self::InTime { wait_s, .. } => {
                let [of_faster, of_slower] = gap.time_s;
                gap.of_waiting((slower * of_slower - faster * of_faster) * wait_s)
            }
            Self::Beside => gap.of_waiting(each(gap.slower, slower) - each(gap.faster, faster)),
            Self::Share => gap.of_share(times),
        }
    }
}

/// Where a count stands among the reasons. Later ones are named first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It says where the slower one is held up, and not what it has more to do. A receiver that is slow for any cause has a
    /// full window, and a server that accepts slowly for any cause makes TCP send again.
    Symptom,
    /// What it has more to do.
    Work,
    /// A signature takes as long as many system calls. The calls and faults of a handshake come with it.
    Signature,
}

/// One of the counts: what it is, where it stands, how it is measured, and its column.
struct Count {
    counted: Counted,
    of: fn(&Effort) -> Option<f64>,
    measure: Measure,
    heading: &'static str,
    /// Where it lies in most trials. None for what is counted once.
    range: fn(&Ranges) -> Option<Range>,
}

impl Count {
    /// How much more the slower one had to do by this count, and the count of both. None if that is not enough to be said.
    fn telling(&self, about: &About, faster: &Estimate, slower: &Estimate) -> Option<(f64, [f64; 2])> {
        let (x, y) = (self.of)(&faster.work).zip((self.of)(&slower.work))?;
        let times = self.measure.telling(x, y, about.unit.size, slower.cpu_s_per_unit)?;
        let called = matches!(self.counted, Counted::SystemCalls | Counted::BytesPerRead);
        let distorted = called && (faster.work.traced || slower.work.traced);
        (!distorted || times >= TRACED).then_some((times, [x, y]))
    }

    /// The count as a reason for the gap, if it can account for enough of it.
    fn reason(&self, about: &About, gap: &Gap<'_>) -> Option<(f64, Reason)> {
        let (times, both) = self.telling(about, gap.faster, gap.slower)?;
        let share = self.measure.accounts_for(gap, both, times);
        let [faster, slower] = both;
        let reason = Reason { counted: self.counted, faster, slower, share };
        (share >= SHARE && gap.is_consistent(self.range)).then_some((times, reason))
    }

    /// Whether it means something for such work. For small messages the number of moves counts; where a system receives many
    /// bytes, the size of each.
    fn applies(&self, about: &About) -> bool {
        let receives = about.figures.contains(&Figure::BytesPerS);
        match self.counted {
            Counted::BytesPerRead | Counted::BytesPerSegmentIn => receives,
            Counted::SegmentsIn => !receives,
            _ => true,
        }
    }

    /// Its place among the reasons: the higher one comes first, however much the counts differ.
    fn place(&self) -> Rank {
        use Counted::{
            BufferLimitedIn, BufferLimitedOut, FullHandshakes, Retransmits, WindowLimitedIn, WindowLimitedOut,
        };
        match self.counted {
            FullHandshakes => Rank::Signature,
            WindowLimitedIn | WindowLimitedOut | BufferLimitedIn | BufferLimitedOut | Retransmits => {
                Rank::Symptom
            }
            _ => Rank::Work,
        }
    }

    /// Whether it is a symptom that another one does not show, although it is slower than the faster one, too.
    fn is_contradicted(&self, faster: &Estimate, others: &[&Estimate]) -> bool {
        let of = |e: &Estimate| (self.of)(&e.work);
        self.place() == Rank::Symptom
            && others.iter().any(|other| of(faster).zip(of(other)).is_some_and(|(fast, slow)| slow <= fast))
    }

    /// Whether its column is shown wherever it is known. Others are shown only where they tell two rows apart.
    fn is_usual(&self) -> bool {
        use Counted::{BytesPerRead, ContextSwitches, Instructions, SystemCalls};
        matches!(self.counted, ContextSwitches | SystemCalls | BytesPerRead | Instructions)
    }
}

/// All counts, in the order of their columns. A `*` in a heading stands for the unit of work.
fn counts() -> [Count; 17] {
    fn received(of: fn(&Sent) -> Option<f64>, work: &Effort) -> Option<f64> {
        work.tcp_in.as_ref().and_then(of)
    }
    fn sent(of: fn(&Sent) -> Option<f64>, work: &Effort) -> Option<f64> {
        work.tcp_out.as_ref().and_then(of)
    }
    let per_unit = |differ, least, cost_s| Measure::PerUnit { differ, least, cost_s };
    let called = per_unit(EXACT, LEAST, CALL_S);
    let executed = per_unit(EXACT, LEAST, INSTRUCTION_S);
    let segments = per_unit(EXACT, LEAST, COST_S);
    let varying = per_unit(VARYING, LEAST, COST_S);
    let copied = per_unit(VARYING, LEAST, BYTE_COST_S);
    let signed = per_unit(EXACT, LEAST, HANDSHAKE_COST_S);
    let resent = Measure::InTime { differ: VARYING, least: LEAST_RESENT, wait_s: RESENT_S };
    let at_once = Measure::AtOnce { differ: EXACT, cost_s: READ_S };
    let count = |counted, heading, measure, of| Count { counted, of, measure, heading, range: |_| None };
    let varies = |range, count: Count| Count { range, ..count };
    [
        varies(
            |r| r.switches,
            count(Counted::ContextSwitches, "switches/*", varying, |w| w.switches_per_unit),
        ),
        count(Counted::SystemCalls, "calls/*", called, |w| w.calls_per_unit),
        count(Counted::BytesPerRead, "bytes/read", at_once, |w| w.bytes_per_read),
        count(Counted::Instructions, "instr/*", executed, |w| w.instructions_per_unit),
        count(Counted::BytesPerSegmentIn, "bytes/seg in", at_once, |w| received(|s| s.bytes_per_segment, w)),
        count(Counted::SegmentsIn, "segs in/*", segments, |w| received(|s| s.segments_per_unit, w)),
        count(Counted::SegmentsOut, "segs out/*", segments, |w| sent(|s| s.segments_per_unit, w)),
        varies(
            |r| r.retransmits,
            count(Counted::Retransmits, "retransmits/s", resent, |w| w.retransmits_per_s),
        ),
        varies(
            |r| r.waited,
            count(Counted::CoreWait, "core wait", Measure::Beside, |w| w.waited_s_per_cpu_s),
        ),
        varies(|r| r.faults, count(Counted::PageFaults, "faults/*", varying, |w| w.faults_per_unit)),
        varies(|r| r.bytes_out, count(Counted::BytesOut, "bytes out/*", copied, |w| w.bytes_out_per_unit)),
        // Where no handshake was counted, none ended.
        count(Counted::FullHandshakes, "full handshakes/*", signed, |w| {
            Some(w.full_handshakes_per_unit.unwrap_or(0.0))
        }),
        count(Counted::WindowLimitedIn, "window in", Measure::Share, |w| received(|s| s.window_limited, w)),
        count(Counted::WindowLimitedOut, "window out", Measure::Share, |w| sent(|s| s.window_limited, w)),
        count(Counted::BufferLimitedIn, "buffer in", Measure::Share, |w| received(|s| s.buffer_limited, w)),
        count(Counted::BufferLimitedOut, "buffer out", Measure::Share, |w| sent(|s| s.buffer_limited, w)),
        count(Counted::Softirqs, "softirq", Measure::Share, |w| w.softirq_share),
    ]
}

/// What was sampled of two rows: how their CPU time differs, and what the slower one waits for most.
#[derive(Clone, Copy, Default)]
pub(super) struct Why<'a> {
    pub cpu: Option<&'a CpuDifference>,
    pub waits: Option<&'a Waiting>,
}

/// What explains that one row is so many times faster than another: the counts in which it had less to do, the one that
/// differs most first, but signatures before all others and symptoms last. The functions in which the CPU time is that makes the
/// difference come before all counts. A symptom is no reason if another row that is slower, too, has no more of it than the faster one.
/// Otherwise it comes behind the CPU time, which may be its cause. If the slower one only waits for an acknowledgement, that alone; if
/// no count accounts for its CPU time, its own code. None where nothing tells.
pub(super) fn between(
    workload: Workload,
    figure: Figure,
    times: f64,
    [faster, slower]: [&Estimate; 2],
    others: &[&Estimate],
    why: Why<'_>,
) -> Vec<Reason> {
    let about = workload.about();
    let Some(gap) = Gap::between(figure, times, faster, slower) else { return Vec::new() };
    if let Some(reason) = gap.held_back() {
        return vec![reason];
    }
    let mut found: Vec<((Rank, f64, bool), Reason)> = counts()
        .iter()
        .filter(|count| count.applies(about) && !count.is_contradicted(faster, others))
        .filter_map(|count| {
            let (times_more, reason) = count.reason(about, &gap)?;
            // Of counts that differ by about as much, what is moved at once says more than how often.
            let at_once = matches!(count.measure, Measure::AtOnce { .. });
            let rank = (count.place(), (times_more.ln() * 10.0).round(), at_once);
            Some((rank, reason))
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)));
    let functions = why.cpu.and_then(|cpu| gap.functions(cpu)).or_else(|| gap.waits(why.waits?));
    let is_explained = functions.is_some() || found.iter().any(|((rank, ..), _)| *rank > Rank::Symptom);
    let counts = found.into_iter().take(MOST).map(|(_, reason)| reason);
    let own = || {
        gap.own_code().or_else(|| {
            let shared = gap.on_shared_cores();
            why.cpu.and_then(|cpu| shared.functions(cpu)).or_else(|| shared.own_code())
        })
    };
    let first = if is_explained { functions } else { own() };
    first.into_iter().chain(counts).collect()
}

/// The counts as a table: the usual ones that there are, and others that tell rows apart; none if nothing was counted.
pub(super) fn table(planned: &Planned, estimates: &[Estimate]) -> Option<FigureTable> {
    let rows: Vec<&Estimate> = estimates.iter().collect();
    let works = |e: &&Estimate| {
        let counts = [e.work.switches_per_unit, e.work.calls_per_unit];
        counts.into_iter().flatten().any(|count| count > 0.0)
    };
    // Where nothing was switched to and nothing was called, nobody looked.
    if !rows.iter().any(works) {
        return None;
    }
    let about = planned.workload.about();
    let parts: Vec<Part> = counts()
        .into_iter()
        .filter(|count| is_shown(count, about, &rows))
        .map(|count| cells(&count, about))
        .collect();
    let table = list_of(planned, &rows, parts);
    Some(FigureTable { kind: TableKind::Counts, table, notes: Vec::new() })
}

fn is_shown(count: &Count, about: &About, rows: &[&Estimate]) -> bool {
    if count.is_usual() {
        return rows.iter().any(|e| (count.of)(&e.work).is_some());
    }
    // Beside every slower row, the row that tells most is the one with the least to do. Rows that were traced tell less.
    let untraced = rows.iter().filter(|e| !e.work.traced);
    let best = [least_to_do(count, rows.iter().copied()), least_to_do(count, untraced.copied())];
    let tells = |a: &Estimate| rows.iter().any(|b| count.telling(about, a, b).is_some());
    count.applies(about) && best.into_iter().flatten().any(tells)
}

/// The row that has the least to do by a count.
fn least_to_do<'a>(count: &Count, rows: impl Iterator<Item = &'a Estimate>) -> Option<&'a Estimate> {
    let known = rows.filter_map(|e| Some((e, (count.of)(&e.work)?)));
    let least = known.min_by(|(_, a), (_, b)| match count.measure {
        // Who moves more at once has less to do.
        Measure::AtOnce { .. } => b.total_cmp(a),
        _ => a.total_cmp(b),
    });
    least.map(|(e, _)| e)
}

fn cells(count: &Count, about: &About) -> Part<'static> {
    let name = count.heading.replace('*', about.unit.short);
    let (of, size) = (count.of, about.unit.size);
    match count.measure {
        Measure::PerUnit { .. } => {
            part(column(name, Unit::Count), move |e| of(&e.work).map(|count| count * size).into())
        }
        Measure::InTime { .. } | Measure::AtOnce { .. } => {
            part(column(name, Unit::Count), move |e| of(&e.work).map(f64::round).into())
        }
        Measure::Share | Measure::Beside => part(column(name, Unit::Share), move |e| of(&e.work).into()),
    }
}

#[cfg(test)]
mod tests;
