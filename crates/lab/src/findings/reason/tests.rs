use measurement::KernelCounts;
use systems::Value;
use systems::knob;

use super::super::effort::{Effort, Range, Ranges, Sent};
use super::super::reason::Why;
use super::super::tests::{int, measured, measurement, observe, one, plan_of};
use super::{Counted as Kind, Estimate, Reason, SHARE, TableKind, between, is_held_back};
use crate::experiment::Figure;
use crate::findings::{Claim, FigureView, findings};
use crate::observation::Scenario;

use systems::{Point, Workload, is_reference};

/// Uploads of 1 MB that take 6.9 ms of CPU time at a buffer of 1460 bytes, 1 ms at 262144; so many bytes were read by a read.
fn uploads(bytes_per_read: Option<[u64; 2]>) -> FigureView<'static> {
    let buffer = int(&[1460, 262_144]);
    let plan = plan_of(
        Workload::Upload,
        Figure::MsPerUpload,
        &["cowboy2"],
        &[("buffer", knob::Kind::Size, &buffer)],
    );
    let observations = observe(&plan, |trial| {
        let small = trial.scenario.point.get("buffer") == Some(&Value::Integer(1460));
        let us = match (is_reference(&trial.scenario.system), small) {
            (true, _) => 500.0,
            (_, true) => 6_900.0,
            (_, false) => 1_000.0,
        };
        let mut m = measurement(20, us + f64::from(trial.round));
        m.payload_bytes = 20 * trial.scenario.work().payload_bytes();
        m.system.context_switches = 20;
        m.system.cpu_s = us * m.payload_bytes as f64 / 1e12;
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

fn reasons<'a>(found: &FigureView<'a>) -> &'a [Reason] {
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
        let table = found.tables.iter().find(|table| table.kind == TableKind::Counts).unwrap();
        table.table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(columns(None)[2..], ["switches/MB"]);
    let all = ["switches/MB", "calls/MB", "bytes/read"];
    assert_eq!(columns(Some([1430, 250_000]))[2..], all);
}

/// Two rows of requests, of which the first is so many times faster, and the counts that explain it. The slower one is busy
/// all the time, and needs so many times the CPU time.
fn explained(times: f64, faster: Effort, slower: Effort) -> Vec<Kind> {
    explained_in(Workload::Requests, times, [faster, slower], [1e-6, 1e-6 * times.max(times.recip())])
}

/// The same of rows that need the same CPU time: the slower one waits. The faster one never does.
fn explained_by_waiting(times: f64, faster: Effort, slower: Effort) -> Vec<Kind> {
    explained_in(Workload::Requests, times, [faster, slower], [1e-6, 1e-6])
}

/// The rows need so much CPU time for a unit of work. The faster one is busy all the time.
fn explained_in(workload: Workload, times: f64, works: [Effort; 2], cpu_s: [f64; 2]) -> Vec<Kind> {
    let own = |reason: &Reason| reason.counted != Kind::OwnCode;
    let reasons = reasons_in(workload, times, works, cpu_s);
    reasons.into_iter().filter(own).map(|reason| reason.counted).collect()
}

fn reasons_in(workload: Workload, times: f64, works: [Effort; 2], cpu_s: [f64; 2]) -> Vec<Reason> {
    let figure = if workload == Workload::Upload { Figure::BytesPerS } else { workload.about().figures[0] };
    let times_more = times.max(times.recip());
    let [faster, slower] = works;
    let rows =
        [row(workload, faster, cpu_s[0], cpu_s[0]), row(workload, slower, cpu_s[1], cpu_s[0] * times_more)];
    between(workload, figure, times, [&rows[0], &rows[1]], &[], Why::default())
}

/// A row of one connection, which uses so much CPU time for a unit of work, and so much time on the clock.
fn row(workload: Workload, work: Effort, cpu_s: f64, time_s: f64) -> Estimate {
    let plan = plan_of(workload, workload.about().figures[0], &["a"], &[]);
    let found = one(findings(&plan, &observe(&plan, |_| measured(measurement(20, 1.0)))));
    let connections = if workload == Workload::Upload { "concurrency" } else { "connections" };
    let point = Point::from([(connections.to_owned(), Value::Integer(1))]);
    let scenario = Scenario::new("e", "a", workload, point).expect("work");
    let figure = Some(1.0 / time_s);
    Estimate { scenario, work, cpu_s_per_unit: Some(cpu_s), figure, ..found.estimates[0].clone() }
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
        (8.0, 2.0, 4.2, true), // a third of the effect in logarithms
        (8.0, 2.0, 3.8, false),
        (0.125, 2.0, 3.8, false), // whichever way the ratio is given
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
            let found = explained_by_waiting(times, row(faster), row(slower));
            assert_eq!(found == [kind], explains, "{kind:?} {times} {faster} {slower}: {found:?}");
        }
    }
}

#[test]
fn what_waits_explains_only_time_that_no_cpu_explains() {
    let waits = |x| Effort { waited_s_per_cpu_s: Some(x), ..Effort::default() };
    // The slower one takes 1 us more, and its threads wait 1.5 us.
    assert_eq!(explained_by_waiting(2.0, waits(0.01), waits(1.5)), [Kind::CoreWait]);
    // It needs twice the CPU time.
    assert_eq!(explained(2.0, waits(0.01), waits(1.5)), []);
    // It takes 9 us more.
    assert_eq!(explained_by_waiting(10.0, waits(0.01), waits(1.5)), []);
    // Two rows whose threads share a busy core wait alike.
    assert_eq!(explained_by_waiting(4.0, waits(1.0), waits(1.1)), []);
    // So many segments were sent again in a second, each after 0.2 s.
    let resent = |x: f64| Effort { retransmits_per_s: Some(x), ..Effort::default() };
    assert_eq!(explained_by_waiting(3.0, resent(0.0), resent(8.0)), [Kind::Retransmits]);
    assert_eq!(explained_by_waiting(3.0, resent(0.0), resent(4.0)), []);
    // As many in the same time are not those of the slower one.
    assert_eq!(explained_by_waiting(3.0, resent(40.0), resent(40.0)), []);
    assert_eq!(explained(3.0, resent(0.0), resent(8.0)), []);
    // With a hundred connections, 10 more in a second cost 2 of 100 s.
    let rows = [0.0, 10.0].map(|x| Estimate {
        scenario: Scenario::new("e", "a", Workload::Requests, Point::new()).expect("work"),
        ..row(Workload::Requests, resent(x), 1e-6, 1e-6 + x * 1e-5)
    });
    assert_eq!(
        between(Workload::Requests, Figure::RequestsPerS, 100.0, [&rows[0], &rows[1]], &[], Why::default()),
        []
    );
}

#[test]
fn the_count_that_differs_most_comes_first_and_no_more_than_two_are_named() {
    let work = |x: f64| Effort {
        calls_per_unit: Some(2.0 * x),
        switches_per_unit: Some(0.5 * x.powi(3)),
        faults_per_unit: Some(x * x),
        bytes_per_read: Some(1e6 / x),
        instructions_per_unit: Some(1000.0),
        bytes_in_per_unit: Some(1.0),
        ..Effort::default()
    };
    assert_eq!(explained(3.0, work(1.0), work(3.0)), [Kind::ContextSwitches, Kind::PageFaults]);
    let bytes = |x: f64| Effort { calls_per_unit: Some(x / 1e6), bytes_per_read: Some(1e6 / x), ..work(1.0) };
    let reads = explained_in(Workload::Upload, 3.0, [bytes(1.0), bytes(3.0)], [1e-12, 3e-12]);
    assert_eq!(reads, [Kind::BytesPerRead, Kind::SystemCalls]);
    // A full window says where traffic is held up, but not why. Half of the difference is CPU time.
    let full = |x: f64| {
        let sent = Sent { window_limited: Some(x), ..Sent::default() };
        Effort { tcp_in: Some(sent), ..calls(1.0 + x) }
    };
    let both = explained_in(Workload::Requests, 2.0, [full(0.1), full(0.99)], [1e-6, 1.5e-6]);
    assert_eq!(both, [Kind::SystemCalls, Kind::WindowLimitedIn]);
    // How much a read or a segment takes says nothing where messages are small, and how many there are says everything.
    let segments = |x: f64| {
        let sent = Sent { segments_per_unit: Some(x), bytes_per_segment: Some(100.0 / x), ..Sent::default() };
        let (tcp_in, tcp_out, bytes_in_per_unit) = (Some(sent), Some(sent), Some(9.0));
        Effort { tcp_in, tcp_out, bytes_in_per_unit, bytes_per_read: Some(9.0 / x), ..Effort::default() }
    };
    assert_eq!(explained(2.0, segments(1.0), segments(3.0)), [Kind::SegmentsIn, Kind::SegmentsOut]);
    let long = explained_in(Workload::Frames, 2.0, [segments(1.0), segments(3.0)], [1e-6, 2e-6]);
    assert_eq!(long[0], Kind::BytesPerRead);
    assert!(!long.contains(&Kind::SegmentsIn), "{long:?}");
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
        (2.0, plain, resumed, vec![Kind::SystemCalls]),
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
fn a_symptom_that_another_slow_one_does_not_show_is_no_reason() {
    let full = |x: f64, time_us: f64| {
        let sent = Sent { window_limited: Some(x), ..Sent::default() };
        let work = Effort { tcp_in: Some(sent), ..Effort::default() };
        row(Workload::Requests, work, 1e-6, time_us / 1e6)
    };
    let (quick, slow) = (full(0.1, 1.0), full(0.7, 3.0));
    for (slowest, named) in [(0.9, true), (0.2, true), (0.1, false), (0.0, false)] {
        let slowest = full(slowest, 10.0);
        let reasons = between(
            Workload::Requests,
            Figure::RequestsPerS,
            3.0,
            [&quick, &slow],
            &[&slow, &slowest],
            Why::default(),
        );
        let found = reasons.iter().any(|reason| reason.counted == Kind::WindowLimitedIn);
        assert_eq!(found, named, "{slowest:?}");
    }
}

#[test]
fn bytes_explain_what_copies_cost_and_no_more() {
    let sent = |bytes: Option<f64>| Effort { bytes_out_per_unit: bytes, ..Effort::default() };
    for (faster, slower, cpu_us, explains) in [
        (Some(97e3), Some(1e6), 1000.0, true),
        (Some(97e3), Some(1e6), 10_000.0, false), // 0.9 MB more cost 1.8 ms at most
        (Some(1e6), Some(97e3), 1000.0, false),   // compressed for each answer: the slower one sent fewer
        (Some(1e6), Some(1.2e6), 100.0, false),
        (Some(1.0), Some(5.0), 1.0, false), // a few bytes more cost nothing
        (None, Some(1e6), 1.0, false),
    ] {
        let works = [sent(faster), sent(slower)];
        let found = explained_in(Workload::Requests, 2.0, works, [cpu_us / 1e6, cpu_us / 5e5]);
        assert_eq!(found == [Kind::BytesOut], explains, "{faster:?} {slower:?}: {found:?}");
    }
}

#[test]
fn a_count_is_named_only_if_it_can_cost_a_third_of_the_difference() {
    // Twice as many calls and faults, and twice the CPU time. A call costs 2 us at most, and a fault 5 us.
    let work = |n: f64| Effort { calls_per_unit: Some(n), faults_per_unit: Some(n), ..Effort::default() };
    for (each, cpu_us, explains) in [
        (10.0, 40.0, vec![Kind::SystemCalls, Kind::PageFaults]),
        (10.0, 100.0, vec![Kind::PageFaults]),
        (10.0, 200.0, vec![Kind::OwnCode]),
    ] {
        let cpu_s = [cpu_us / 1e6, cpu_us / 5e5];
        let found = reasons_in(Workload::Requests, 2.0, [work(each), work(each * 2.0)], cpu_s);
        let counted: Vec<Kind> = found.iter().map(|reason| reason.counted).collect();
        assert_eq!(counted, explains, "{each} {cpu_us}: {found:?}");
        assert!(found.iter().all(|reason| (SHARE..=1.0).contains(&reason.share)), "{found:?}");
    }
}

#[test]
fn the_own_code_is_named_where_cpu_time_accounts_for_the_difference() {
    let none = Effort::default();
    let named = |times: f64, cpu_s: [f64; 2]| {
        let reasons = reasons_in(Workload::Requests, times, [none, none], cpu_s);
        reasons.first().map(|reason| (reason.counted, reason.faster, reason.slower))
    };
    assert_eq!(named(5.4, [30e-6, 163e-6]), Some((Kind::OwnCode, 30e-6, 163e-6)));
    // The slower one needs more, but it is idle most of the time.
    assert_eq!(named(50.0, [30e-6, 163e-6]), None);
    assert_eq!(named(2.0, [30e-6, 33e-6]), None);
    assert_eq!(named(2.0, [30e-6, 20e-6]), None);
}

#[test]
fn cpu_time_takes_longer_on_a_core_that_others_share() {
    let waits = |s: f64| Effort { waited_s_per_cpu_s: Some(s), ..Effort::default() };
    let named = |works: [Effort; 2]| -> Vec<Kind> {
        let reasons = reasons_in(Workload::Requests, 20.0, works, [30e-6, 163e-6]);
        reasons.iter().map(|reason| reason.counted).collect()
    };
    assert_eq!(named([waits(3.0), waits(3.0)]), [Kind::OwnCode]);
    // Nobody takes its core, or only that of the slower one, which is another reason.
    assert_eq!(named([waits(0.0), waits(0.0)]), []);
    assert_eq!(named([waits(0.0), waits(3.0)]), [Kind::CoreWait]);
    // A symptom comes behind the CPU time, which may be its cause.
    let resends = |per_s: f64| Effort { retransmits_per_s: Some(per_s), ..waits(3.0) };
    assert_eq!(named([resends(0.0), resends(40_000.0)]), [Kind::OwnCode, Kind::Retransmits]);
    let resends = |per_s: f64| Effort { retransmits_per_s: Some(per_s), ..waits(0.0) };
    assert_eq!(named([resends(0.0), resends(40_000.0)]), [Kind::Retransmits]);
}

#[test]
fn what_differs_in_some_trials_only_explains_nothing() {
    let switches = |n: f64, low: f64, high: f64| {
        let ranges = Ranges { switches: Some(Range { low, high }), ..Ranges::default() };
        Effort { switches_per_unit: Some(n), ranges, ..Effort::default() }
    };
    let apart = explained(2.0, switches(1.0, 0.9, 1.1), switches(2.0, 1.8, 2.2));
    assert_eq!(apart, [Kind::ContextSwitches]);
    assert_eq!(explained(2.0, switches(1.0, 0.9, 1.9), switches(2.0, 1.8, 2.2)), []);
}

#[test]
fn an_idle_server_whose_answers_wait_for_an_acknowledgement_is_told_so() {
    let answers = |ms: f64, work: Effort, cpu_s: f64| {
        let e = row(Workload::Requests, work, cpu_s, ms / 1e3);
        let latency = measurement(100, ms * 1e3).service_us;
        Estimate { service_p50_us: latency.percentile(50.0), ..e }
    };
    let parts = |segments: f64, unacknowledged_s: f64| Effort {
        segments_of_answer: Some(segments),
        unacknowledged_s: Some(unacknowledged_s),
        ..calls(9.0)
    };
    let quick = answers(0.5, parts(2.0, 0.0001), 100e-6);
    for (slow, why) in [
        (answers(44.0, parts(2.0, 0.03), 200e-6), true),
        (answers(44.0, parts(1.0, 0.03), 200e-6), false), // one send for an answer
        (answers(44.0, parts(2.0, 0.0001), 200e-6), false), // it sleeps
        (answers(30.0, parts(2.0, 0.03), 200e-6), false), // no acknowledgement is delayed by so little
        (answers(44.0, parts(2.0, 0.03), 0.02), false),   // it works
        (answers(44.0, calls(9.0), 200e-6), false),       // nobody looked
    ] {
        assert_eq!(is_held_back(&slow), why, "{slow:?}");
        let reasons =
            between(Workload::Requests, Figure::RequestsPerS, 88.0, [&quick, &slow], &[], Why::default());
        let named = reasons.iter().any(|reason| reason.counted == Kind::HeldBack);
        assert_eq!(named, why, "{reasons:?}");
    }
}
