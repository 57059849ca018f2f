//! Why: what of the kernel's work explains a difference in speed.

use systems::Workload;

use super::effort::Effort;
use super::estimate::Estimate;
use super::table::{Part, Table, Unit, column, list_of, part};
use crate::plan::Planned;

/// Counts that differ by less explain nothing worth saying.
const TELLING: f64 = 1.5;
/// What happens less often than this for a unit of work costs it nothing worth saying.
const LEAST: f64 = 0.1;

/// What explains that one row is faster than another: the counts in which it had less to do, the better row's first. `None`
/// where nothing was counted, or nothing tells.
pub(super) fn between(workload: Workload, best: &Estimate, worst: &Estimate) -> Option<String> {
    let (a, b) = (&best.work, &worst.work);
    let telling = |x: Option<f64>, y: Option<f64>| {
        x.zip(y).filter(|(x, y)| *x > 0.0 && *y > 0.0 && (x / y >= TELLING || y / x >= TELLING))
    };
    let about = workload.about();
    let mut words = Vec::new();
    if let Some((x, y)) =
        telling(a.bytes_per_read, b.bytes_per_read).filter(|(x, y)| !about.short_exchanges && x > y)
    {
        let gb = |each: f64| grouped(1e9 / each);
        words.push(format!(
            "a read takes {} bytes against {}: {} reads a GB against {}",
            grouped(x),
            grouped(y),
            gb(x),
            gb(y)
        ));
    }
    let (unit, factor) = (about.unit.name, about.unit.size);
    let counts = [
        ("system calls", a.calls_per_unit, b.calls_per_unit),
        ("context switches", a.switches_per_unit, b.switches_per_unit),
        ("instructions", a.instructions_per_unit, b.instructions_per_unit),
    ];
    for (what, x, y) in counts {
        if let Some((x, y)) = telling(x, y).filter(|(x, y)| x < y && y * factor >= LEAST) {
            words.push(format!("{} {what} a {unit} against {}", grouped(x * factor), grouped(y * factor)));
        }
    }
    words.truncate(2);
    (!words.is_empty()).then(|| words.join("; "))
}

/// A count as a sentence shows it: three significant digits, thousands set apart.
fn grouped(count: f64) -> String {
    if count < 99.5 {
        return match count {
            c if c < 0.0995 => format!("{c:.3}"),
            c if c < 9.95 => format!("{c:.1}"),
            c => format!("{c:.0}"),
        };
    }
    let scale = 10_f64.powf(count.log10().floor() - 2.0);
    let digits = format!("{:.0}", (count / scale).round() * scale);
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// One of the counts.
type Count = fn(&Effort) -> Option<f64>;

/// The counts as a table, those that there are; none if nothing was counted.
pub(super) fn table(planned: &Planned, estimates: &[Estimate]) -> Option<Table> {
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
    let counted = if rows.iter().any(|e| e.work.calls_per_unit.is_some()) { COUNTED } else { "" };
    let about = format!(
        "Why: what the kernel did for the system; context switches are those of the windows.{counted}"
    );
    Some(list_of(planned, &rows, parts, "the reason", &about))
}

const COUNTED: &str = " System calls and reads are counted in a short drive of its own after the first round; a system that \
                       reads through io_uring has no calls for it.";

#[cfg(test)]
mod tests {
    use systems::Value;
    use systems::knob::Kind;

    use super::super::tests::{int, measured, measurement, observe, one, plan_of};
    use super::grouped;
    use crate::experiment::Figure;
    use crate::findings::{ExperimentFindings, findings};
    use crate::observation::KernelCounts;
    use systems::{Workload, is_reference};

    /// Uploads 690 ms long at a buffer of 1460 bytes, 100 ms at 262144; so many bytes were read by so many reads.
    fn uploads(bytes_per_read: Option<[u64; 2]>) -> ExperimentFindings {
        let buffer = int(&[1460, 262_144]);
        let plan =
            plan_of(Workload::Upload, Figure::MsPerUpload, &["cowboy2"], &[("buffer", Kind::Size, &buffer)]);
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

    #[test]
    fn a_difference_is_explained_by_counts_that_differ() {
        let found = uploads(Some([1430, 250_000]));
        let reason = "a read takes 250,000 bytes against 1,430: 4,000 reads a GB against 699,000; 16 system calls a MB against 2,800";
        assert!(found.headlines[0].ends_with(reason), "{:?}", found.headlines);
        let table = found.tables.iter().find(|table| table.title.ends_with("the reason")).unwrap();
        assert_eq!(table.rows.len(), 3);
    }

    #[test]
    fn equal_counts_and_none_explain_nothing() {
        let equal = uploads(Some([1430, 1440]));
        assert!(!equal.headlines[0].contains("a read takes"), "{:?}", equal.headlines);
        let none = uploads(None);
        assert!(!none.headlines[0].contains("system calls"), "{:?}", none.headlines);
    }

    #[test]
    fn context_switches_are_told_also_where_the_kernel_counts_nothing_else() {
        let columns = |counted: Option<[u64; 2]>| {
            let found = uploads(counted);
            let table = found.tables.into_iter().find(|table| table.title.ends_with("the reason")).unwrap();
            table.columns.into_iter().map(|column| column.name).collect::<Vec<_>>()
        };
        assert_eq!(columns(None)[2..], ["switches/MB", "retransmits"]);
        let all = ["switches/MB", "calls/MB", "bytes/read", "retransmits"];
        assert_eq!(columns(Some([1430, 250_000]))[2..], all);
    }

    #[test]
    fn counts_in_sentences() {
        for (count, shown) in [
            (0.0123, "0.012"),
            (1.12, "1.1"),
            (8.17, "8.2"),
            (98.9, "99"),
            (717.4, "717"),
            (1435.2, "1,440"),
            (247_285.0, "247,000"),
            (1e9 / 1460.0, "685,000"),
        ] {
            assert_eq!(grouped(count), shown);
        }
    }
}
