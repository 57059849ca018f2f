use systems::Value;
use systems::knob;

use super::super::effort::{Effort, Sent};
use super::super::tests::{int, measured, measurement, observe, one, plan_of};
use super::{Counted as Kind, Estimate, Reason, TableKind, between};
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
                ..KernelCounts::default()
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
    assert_eq!(columns(None)[2..], ["switches/MB"]);
    let all = ["switches/MB", "calls/MB", "bytes/read"];
    assert_eq!(columns(Some([1430, 250_000]))[2..], all);
}

/// Two rows of requests, of which the first is so many times faster, and the counts that explain it.
fn explained(times: f64, faster: Effort, slower: Effort) -> Vec<Kind> {
    explained_in(Workload::Requests, times, faster, slower)
}

fn explained_in(workload: Workload, times: f64, faster: Effort, slower: Effort) -> Vec<Kind> {
    let plan = plan_of(workload, workload.about().figures[0], &["a"], &[]);
    let found = one(findings(&plan, &observe(&plan, |_| measured(measurement(20, 1.0)))));
    let row = |work| Estimate { work, cpu_s_per_unit: Some(1e-7), ..found.estimates[0].clone() };
    let reasons = between(workload, times, &row(faster), &row(slower));
    reasons.into_iter().map(|reason| reason.counted).collect()
}

fn calls(per_unit: f64) -> Effort {
    Effort { calls_per_unit: Some(per_unit), ..Effort::default() }
}

#[test]
fn a_count_explains_no_more_than_it_differs() {
    for (times, faster, slower, explains) in [
        (2.0, 1.0, 2.0, true),
        (2.0, 2.0, 1.0, false), // the faster one had more to do
        (1.1, 1.0, 1.15, false),
        (1.1, 1.0, 1.25, true),
        (8.0, 1.0, 2.1, true), // a third of the effect in logarithms
        (8.0, 1.0, 1.9, false),
        (0.125, 1.0, 1.9, false), // whichever way the ratio is given
        (2.0, 0.001, 0.09, false),
        (2.0, 0.0, 0.2, true),
    ] {
        let found = explained(times, calls(faster), calls(slower));
        assert_eq!(found == [Kind::SystemCalls], explains, "{times} {faster} {slower}: {found:?}");
    }
    // What one of them does not know explains nothing.
    assert_eq!(explained(2.0, calls(1.0), Effort::default()), []);
    // Counts that vary, or that tracing distorts, must differ by more.
    let switches = |of| Effort { switches_per_unit: Some(of), ..Effort::default() };
    assert_eq!(explained(1.1, switches(1.0), switches(1.4)), []);
    assert_eq!(explained(1.1, switches(1.0), switches(1.6)), [Kind::ContextSwitches]);
    let traced = |of| Effort { traced: true, ..calls(of) };
    assert_eq!(explained(1.1, traced(1.0), traced(3.9)), []);
    assert_eq!(explained(1.1, traced(1.0), traced(4.1)), [Kind::SystemCalls]);
}

#[test]
fn shares_of_time_explain_as_much_as_the_time_they_take() {
    type Set = fn(&mut Effort, f64);
    let kinds: [(Kind, Set); 4] = [
        (Kind::Softirqs, |w, x| w.softirq_share = Some(x)),
        (Kind::WindowLimitedIn, |w, x| {
            w.tcp_in = Some(Sent { window_limited: Some(x), ..Sent::default() });
        }),
        (Kind::BufferLimitedOut, |w, x| {
            w.tcp_out = Some(Sent { buffer_limited: Some(x), ..Sent::default() });
        }),
        (Kind::WindowLimitedOut, |w, x| {
            w.tcp_out = Some(Sent { window_limited: Some(x), ..Sent::default() });
        }),
    ];
    for (kind, set) in kinds {
        for (times, faster, slower, explains) in [
            (2.0, 0.0, 0.5, true),
            (2.0, 0.5, 0.0, false),
            (8.0, 0.0, 0.45, false),   // explains 1.8 times of 8
            (2.0, 0.001, 0.09, false), // however many times more
            (1e6, 0.0, 1.0, true),
        ] {
            let row = |x| {
                let mut work = Effort::default();
                set(&mut work, x);
                work
            };
            let found = explained(times, row(faster), row(slower));
            assert_eq!(found == [kind], explains, "{kind:?} {times} {faster} {slower}: {found:?}");
        }
    }
    let waits = |x| Effort { waited_s_per_cpu_s: Some(x), ..Effort::default() };
    assert_eq!(explained(2.0, waits(0.01), waits(1.5)), [Kind::CoreWait]);
    // Two rows whose threads share a busy core wait alike.
    assert_eq!(explained(4.0, waits(1.0), waits(1.1)), []);
}

#[test]
fn the_count_that_differs_most_comes_first_and_no_more_than_two_are_named() {
    let work = |x: f64| Effort {
        calls_per_unit: Some(2.0 * x),
        switches_per_unit: Some(0.5 * x.powi(3)),
        faults_per_unit: Some(x * x),
        bytes_per_read: Some(1e6 / x),
        instructions_per_unit: Some(1000.0),
        ..Effort::default()
    };
    assert_eq!(explained(3.0, work(1.0), work(3.0)), [Kind::ContextSwitches, Kind::PageFaults]);
    let bytes =
        |x: f64| Effort { calls_per_unit: Some(x / 1e6), bytes_per_read: Some(1e6 / x), ..Effort::default() };
    let reads = explained_in(Workload::Upload, 3.0, bytes(1.0), bytes(3.0));
    assert_eq!(reads, [Kind::BytesPerRead, Kind::SystemCalls]);
    // A full window says where traffic is held up, but not why.
    let full = |x: f64| {
        let sent = Sent { window_limited: Some(x), ..Sent::default() };
        Effort { tcp_in: Some(sent), ..calls(1.0 + x) }
    };
    assert_eq!(explained(2.0, full(0.1), full(0.99)), [Kind::SystemCalls, Kind::WindowLimitedIn]);
    // How much a read or a segment takes says nothing where messages are small, and how many there are says everything.
    let segments = |x: f64| {
        let sent = Sent { segments_per_unit: Some(x), bytes_per_segment: Some(100.0 / x), ..Sent::default() };
        Effort { tcp_in: Some(sent), tcp_out: Some(sent), bytes_per_read: Some(9.0 / x), ..Effort::default() }
    };
    assert_eq!(explained(2.0, segments(1.0), segments(3.0)), [Kind::SegmentsIn, Kind::SegmentsOut]);
    let long = explained_in(Workload::Frames, 2.0, segments(1.0), segments(3.0));
    assert_eq!(long[0], Kind::BytesPerRead);
    assert!(!long.contains(&Kind::SegmentsIn), "{long:?}");
    let rare = |x: f64| Effort { retransmits_per_s: Some(x), ..Effort::default() };
    assert_eq!(explained(3.0, rare(0.0), rare(8.0)), [Kind::Retransmits]);
    assert_eq!(explained(3.0, rare(0.0), rare(4.0)), []);
    // As many in the same time are not those of the slower one.
    assert_eq!(explained(3.0, rare(40.0), rare(40.0)), []);
}

#[test]
fn signatures_come_first_and_symptoms_last() {
    // Connections that are opened anew: plain, with a signature, and with a session that is resumed.
    let opened = |full: Option<f64>, calls_each: f64, resent: f64| Effort {
        full_handshakes_per_unit: full,
        retransmits_per_s: Some(resent),
        ..calls(calls_each)
    };
    let plain = opened(None, 6.1, 1.6);
    let full = opened(Some(1.0), 24.0, 64.0);
    let resumed = opened(Some(0.004), 22.0, 60.0);
    for (times, faster, slower, explains) in [
        (6.0, plain, full, vec![Kind::FullHandshakes, Kind::SystemCalls]),
        (3.0, resumed, full, vec![Kind::FullHandshakes]),
        (2.0, plain, resumed, vec![Kind::SystemCalls, Kind::Retransmits]),
        // Half of the handshakes may be fewer times more than the calls, and yet weigh more.
        (2.0, opened(Some(0.5), 6.0, 0.0), full, vec![Kind::FullHandshakes, Kind::SystemCalls]),
        // As many on both sides, or fewer on the slower one, explain nothing.
        (2.0, full, opened(Some(1.0), 24.0, 64.0), vec![]),
        (2.0, opened(Some(1.0), 6.1, 1.6), plain, vec![]),
        // Kept connections have next to none.
        (2.0, opened(None, 1.0, 0.0), opened(Some(0.01), 1.0, 0.0), vec![]),
        // A third of the effect in logarithms.
        (30.0, opened(Some(0.4), 1.0, 0.0), opened(Some(1.0), 1.0, 0.0), vec![]),
    ] {
        assert_eq!(explained(times, faster, slower), explains, "{times} {faster:?} {slower:?}");
    }
}

#[test]
fn bytes_explain_what_copies_cost_and_no_more() {
    let sent = |bytes: Option<f64>| Effort { bytes_out_per_unit: bytes, ..Effort::default() };
    // The slower one uses 0.1 us of CPU time for a request. A tenth of that is five bytes, at 2 ns each.
    for (faster, slower, explains) in [
        (Some(97e3), Some(1e6), true),
        (Some(1e6), Some(97e3), false), // compressed for each answer: the slower one sent fewer
        (Some(1e6), Some(1.2e6), false),
        (Some(1.0), Some(5.0), false), // a few bytes more cost nothing
        (None, Some(1e6), false),
    ] {
        let found = explained(2.0, sent(faster), sent(slower));
        assert_eq!(found == [Kind::BytesOut], explains, "{faster:?} {slower:?}: {found:?}");
    }
}

#[test]
fn what_costs_too_little_for_the_cpu_time_explains_nothing() {
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a"], &[]);
    let found = one(findings(&plan, &observe(&plan, |_| measured(measurement(20, 1.0)))));
    let explained = |slower: f64, cpu_us: f64| {
        let row = |faults: f64| {
            let work =
                Effort { faults_per_unit: Some(faults), calls_per_unit: Some(faults), ..Effort::default() };
            Estimate { work, cpu_s_per_unit: Some(cpu_us / 1e6), ..found.estimates[0].clone() }
        };
        let reasons = between(Workload::Requests, 2.0, &row(0.01), &row(slower));
        reasons.into_iter().map(|reason| reason.counted).collect::<Vec<_>>()
    };
    // A page fault takes a moment, but a call may take any time.
    assert_eq!(explained(0.5, 250.0), [Kind::SystemCalls]);
    assert_eq!(explained(0.5, 10.0), [Kind::SystemCalls, Kind::PageFaults]);
    assert_eq!(explained(8.0, 250.0), [Kind::SystemCalls, Kind::PageFaults]);
}
