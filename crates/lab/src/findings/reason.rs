//! Why: what of the kernel's work explains a difference in speed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systems::Workload;

use super::effort::Effort;
use super::estimate::Estimate;
use super::table::{FigureTable, Part, TableKind, Unit, column, list_of, part};
use crate::plan::Planned;

/// Counts that differ by less explain nothing worth saying.
const TELLING: f64 = 1.5;
/// What happens less often than this for a unit of work costs it nothing worth saying.
const LEAST: f64 = 0.1;

/// What of a system's work is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
}

/// A count that tells why one of two scenarios is the faster one.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Reason {
    /// What was counted.
    pub counted: Counted,
    /// Of the faster one.
    pub faster: f64,
    /// Of the slower one.
    pub slower: f64,
}

/// So many reasons are enough.
const MOST: usize = 2;

/// What explains that one row is faster than another: the counts in which it had less to do. None where nothing was counted,
/// or nothing tells.
pub(super) fn between(workload: Workload, faster: &Estimate, slower: &Estimate) -> Vec<Reason> {
    let about = workload.about();
    let reason = |counted: Counted, of: Count| {
        let (x, y) = of(&faster.work).zip(of(&slower.work)).filter(|(x, y)| *x > 0.0 && *y > 0.0)?;
        (x / y >= TELLING || y / x >= TELLING).then_some(Reason { counted, faster: x, slower: y })
    };
    let reads = reason(Counted::BytesPerRead, |work| work.bytes_per_read)
        .filter(|r| !about.short_exchanges && r.faster > r.slower);
    let counts = [
        reason(Counted::SystemCalls, |work| work.calls_per_unit),
        reason(Counted::ContextSwitches, |work| work.switches_per_unit),
        reason(Counted::Instructions, |work| work.instructions_per_unit),
    ];
    let less = |r: &Reason| r.faster < r.slower && r.slower * about.unit.size >= LEAST;
    reads.into_iter().chain(counts.into_iter().flatten().filter(less)).take(MOST).collect()
}

/// One of the counts.
type Count = fn(&Effort) -> Option<f64>;

/// The counts as a table, those that there are; none if nothing was counted.
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
    let work = &planned.workload.about().unit;
    let (unit, factor) = (work.short, work.size);
    let each: [(String, Count, f64); 5] = [
        (format!("switches/{unit}"), |work| work.switches_per_unit, factor),
        (format!("calls/{unit}"), |work| work.calls_per_unit, factor),
        ("bytes/read".to_owned(), |work| work.bytes_per_read.map(f64::round), 1.0),
        (format!("instr/{unit}"), |work| work.instructions_per_unit, factor),
        ("retransmits".to_owned(), |work| work.retransmits, 1.0),
    ];
    let known = each.into_iter().filter(|(_, of, _)| rows.iter().any(|e| of(&e.work).is_some()));
    let parts: Vec<Part> = known
        .map(|(name, of, factor)| {
            part(column(name, Unit::Count), move |e| of(&e.work).map(|count| count * factor).into())
        })
        .collect();
    let table = list_of(planned, &rows, parts);
    Some(FigureTable { kind: TableKind::Counts, table, notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use systems::Value;
    use systems::knob;

    use super::super::tests::{int, measured, measurement, observe, one, plan_of};
    use super::{Counted as Kind, Reason, TableKind};
    use crate::experiment::Figure;
    use crate::findings::{Claim, ExperimentFindings, findings};
    use crate::observation::KernelCounts;
    use systems::{Workload, is_reference};

    /// Uploads 690 ms long at a buffer of 1460 bytes, 100 ms at 262144; so many bytes were read by so many reads.
    fn uploads(bytes_per_read: Option<[u64; 2]>) -> ExperimentFindings {
        let buffer = int(&[1460, 262_144]);
        let plan = plan_of(
            Workload::Upload,
            Figure::MsPerUpload,
            &["cowboy2"],
            &[("buffer", knob::Kind::Size, &buffer)],
        );
        let observations = observe(&plan, |trial| {
            let small = trial.scenario.point.get("buffer") == Some(&Value::Integer(1460));
            let us = if is_reference(&trial.scenario.system) {
                50_000.0
            } else if small {
                690_000.0
            } else {
                100_000.0
            };
            let mut m = measurement(20, us + f64::from(trial.round));
            m.system.context_switches = 20;
            m.counted = bytes_per_read.filter(|_| trial.round == 0).map(|[few, many]| {
                let reads = 1_000_000_000 / if small { few } else { many };
                let system_calls = Some(reads * 4);
                KernelCounts {
                    operations: 10,
                    bytes: 1_000_000_000,
                    system_calls,
                    reads: Some(reads),
                    instructions: None,
                }
            });
            measured(m)
        });
        one(findings(&plan, &observations))
    }

    fn reasons(found: &ExperimentFindings) -> &[Reason] {
        match &found.claims[0] {
            Claim::Knob { reasons, .. } => reasons,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_difference_is_explained_by_counts_that_differ() {
        let found = uploads(Some([1430, 250_000]));
        let [reads, calls] = reasons(&found) else { panic!("{:?}", found.claims) };
        assert_eq!(
            (reads.counted, reads.faster.round(), reads.slower.round()),
            (Kind::BytesPerRead, 250_000.0, 1430.0)
        );
        let for_a_mb = |count: f64| (count * 1e6).round();
        assert_eq!(
            (calls.counted, for_a_mb(calls.faster), for_a_mb(calls.slower)),
            (Kind::SystemCalls, 16.0, 2797.0)
        );
        let table = found.tables.iter().find(|table| table.kind == TableKind::Counts).unwrap();
        assert_eq!(table.rows.len(), 3);
    }

    #[test]
    fn equal_counts_and_none_explain_nothing() {
        let counted = |r: &Reason| matches!(r.counted, Kind::BytesPerRead | Kind::SystemCalls);
        let equal = uploads(Some([1430, 1440]));
        assert!(!reasons(&equal).iter().any(counted), "{:?}", equal.claims);
        let none = uploads(None);
        assert!(!reasons(&none).iter().any(counted), "{:?}", none.claims);
    }

    #[test]
    fn context_switches_are_told_also_where_the_kernel_counts_nothing_else() {
        let columns = |counted: Option<[u64; 2]>| {
            let found = uploads(counted);
            let table = found.tables.into_iter().find(|table| table.kind == TableKind::Counts).unwrap();
            table.table.columns.into_iter().map(|column| column.name).collect::<Vec<_>>()
        };
        assert_eq!(columns(None)[2..], ["switches/MB", "retransmits"]);
        let all = ["switches/MB", "calls/MB", "bytes/read", "retransmits"];
        assert_eq!(columns(Some([1430, 250_000]))[2..], all);
    }
}
