//! Tests every doubt in both directions: beyond its limit it arises, and short of it it does not.

use std::collections::BTreeMap;

use super::*;
use crate::{
    Generated, GeneratorUse, Latency, MaxRate, Multiplexed, Path, ServerCounts, SystemUse, Together,
};
use systems::Figure;

const KIND: TrialKind = TrialKind {
    sessions: false,
    pool_cap: Some(32),
    announced_closes: true,
    closed_loop: true,
    short_exchanges: true,
    ramp: false,
};

/// A trial without doubts: 100 operations under way for ten seconds, each 10 ms long.
fn sound() -> Measurement {
    let buckets = vec![(9_000, 20_000), (10_000, 60_000), (11_000, 20_000)];
    let latency = Latency { count: 100_000, min: 9e3, mean: 1e4, max: 11e3, buckets, ..Latency::default() };
    Measurement {
        elapsed_s: 10.0,
        attempts: 100_100,
        successes: 100_000,
        in_flight: 100,
        units: 100_000,
        service_us: latency.clone(),
        response_us: latency,
        tenths: vec![10_000; 10],
        concurrency: 100,
        connections: 100,
        system: SystemUse { cores: vec![1], ..SystemUse::default() },
        generator: GeneratorUse { busiest_core: 0.5, cores: vec![0], ..GeneratorUse::default() },
        server: Some(ServerCounts { peak_connections: 32, ..ServerCounts::default() }),
        ..Measurement::default()
    }
}

/// One generator on another machine, with this way to the system.
fn way(round_trip_us: f64, bytes_per_s: Option<f64>, bulk_us: Option<[f64; 3]>) -> Option<Together> {
    let path = Some(Path { round_trip_us, bytes_per_s, bulk_us });
    Some(Together { skew_s: Some(0.0), generators: vec![Generated::default()], path, ..Together::default() })
}

fn codes(m: &Measurement, kind: &TrialKind) -> Vec<Doubt> {
    doubts(m, kind).into_iter().map(|seen| seen.doubt()).collect()
}

#[test]
fn a_sound_trial_raises_no_doubt() {
    assert_eq!(codes(&sound(), &KIND), []);
}

/// A change to a sound trial, and the only doubt that it raises.
type Case = (Doubt, fn(&mut Measurement));

const CASES: [Case; 32] = [
    (Doubt::GeneratorBound, |m| m.generator.busiest_core = 0.95),
    (Doubt::PathBound, |m| (m.bytes_sent, m.together) = (910_000_000, way(1_000.0, Some(1e8), None))),
    (Doubt::PathBound, |m| m.together = way(7_100.0, None, None)),
    // 1 KB each way at 500 kB/s, beside a round trip of 4 ms.
    (Doubt::PathBound, |m| {
        (m.bytes_sent, m.bytes_received) = (100_000_000, 100_000_000);
        m.together = way(4_000.0, Some(5e5), Some([263_144.0, 1e6, 4e6]));
    }),
    (Doubt::PathBound, |m| (m.retransmits, m.together) = (1_100, way(100.0, None, None))),
    (Doubt::PathBound, |m| {
        (m.bytes_received, m.retransmits, m.together) = (1_448_000_000, 11_000, way(100.0, None, None));
    }),
    (Doubt::BehindSchedule, |m| m.late = 2_000),
    (Doubt::BehindSchedule, |m| m.dropped = 2_000),
    // Little's law finds them, too, but their ages say more.
    (Doubt::Starved, |m| {
        (m.concurrency, m.in_flight_us) = (1_000, vec![(5_000, 100), (m.elapsed_s as u64 * 1_000_000, 900)]);
    }),
    (Doubt::HiddenQueueing, |m| m.concurrency = 1_000),
    (Doubt::FailFast, |m| {
        m.errors = BTreeMap::from([("busy".to_owned(), 50_000)]);
        m.mean_error_us = 10.0;
        m.concurrency = 150;
    }),
    (Doubt::FailFast, |m| {
        // A client's driver that reports the duration of failures but no service times.
        m.service_us = Latency::default();
        m.errors = BTreeMap::from([("busy".to_owned(), 50_000)]);
        m.mean_error_us = 10.0;
        m.concurrency = 101;
    }),
    (Doubt::FailFast, |m| {
        // A driver that reports neither. The 100 callers had no time left for failures.
        m.service_us = Latency::default();
        m.errors = BTreeMap::from([("busy".to_owned(), 400_000)]);
    }),
    (Doubt::ErrorsOnSchedule, |m| m.error_ordinals = BTreeMap::from([(100, 40), (200, 30), (300, 5)])),
    // There are other failures as well.
    (Doubt::ErrorsOnSchedule, |m| m.error_ordinals = BTreeMap::from([(7, 40), (100, 20), (200, 18)])),
    // One upload among many.
    (Doubt::NoContinue, |m| m.no_continue = 1),
    // Callers that have no place do not wait for answers.
    (Doubt::FewerStreams, |m| {
        (m.connections, m.concurrency) = (100, 1_000);
        m.multiplexed =
            Some(Multiplexed { asked: 10, reached: 1, allowed: Some(1), ..Multiplexed::default() });
    }),
    (Doubt::TooShort, |m| m.elapsed_s = 0.05),
    (Doubt::TooShort, |m| m.successes = 19),
    (Doubt::UnsteadyWindow, |m| m.tenths = [vec![10_000; 5], vec![12_500; 5]].concat()),
    (Doubt::UnsteadyWindow, |m| m.tenths = vec![0, 0, 0, 0, 50_000, 50_000, 0, 0, 0, 0]),
    (Doubt::WarmUpUnfinished, |m| m.tenths[0] = 6_000),
    (Doubt::Bimodal, |m| m.service_us.buckets = vec![(1_000, 99_000), (100_000, 1_000)]),
    (Doubt::CoresShared, |m| m.system.cores = vec![0]),
    (Doubt::CoresShared, |m| {
        (m.system.cores, m.generator.cores) = (vec![], vec![]);
        m.system.cpu_s = 1.0;
    }),
    (Doubt::PoolCapExceeded, |m| {
        m.server = Some(ServerCounts { peak_connections: 33, ..ServerCounts::default() });
    }),
    (Doubt::LimitNear, |m| m.ports = 110),
    (Doubt::LimitNear, |m| m.files = 120),
    (Doubt::StolenTime, |m| m.stolen_s = 0.5),
    (Doubt::Throttled, |m| m.throttles = 1),
    (Doubt::Held, |m| m.held_s = 0.5),
    (Doubt::GeneratorPaused, |m| m.pause_s = 0.6),
];

#[test]
fn each_cause_raises_only_its_doubt() {
    for (code, spoil) in CASES {
        let mut m = sound();
        spoil(&mut m);
        let found = codes(&m, &KIND);
        assert!(found.contains(&code), "{code:?}: {found:?}");
        assert!(found.len() == 1 || code == Doubt::TooShort, "{code:?} came with others: {found:?}");
    }
}

/// Changes that stay within each limit.
const NEARLY: [fn(&mut Measurement); 28] = [
    |m| (m.bytes_sent, m.together) = (890_000_000, way(1_000.0, Some(1e8), None)),
    |m| m.together = way(6_900.0, None, None),
    |m| (m.retransmits, m.together) = (900, way(100.0, None, None)),
    |m| (m.bytes_received, m.retransmits, m.together) = (1_448_000_000, 9_000, way(100.0, None, None)),
    // On one machine the other end of the way is not known.
    |m| m.retransmits = 5_000,
    |m| m.generator.busiest_core = 0.9,
    |m| m.late = 900,
    |m| m.dropped = 900,
    // The machine stood still for a moment at the end; and an answer took as long as the oldest request had waited.
    |m| m.in_flight_us = vec![(5_000, 50), ((m.elapsed_s * 99_000.0) as u64, 50)],
    |m| (m.response_us.max, m.in_flight_us) = (m.elapsed_s * 1e6, vec![(m.elapsed_s as u64 * 1_000_000, 1)]),
    |m| m.concurrency = 140,
    // A stream's end has the kernel's time, and the loop came to it 0.5 ms later.
    |m| {
        (m.events, m.concurrency, m.service_us.mean) = (100_000, 1, 50.0);
        m.successes = 18_000;
        m.attempts = 18_001;
    },
    |m| {
        // Failures are as slow as successes, as if a server answers 500 after its work.
        m.errors = BTreeMap::from([("status".to_owned(), 50_000)]);
        m.mean_error_us = 10_000.0;
        m.concurrency = 150;
    },
    |m| {
        // The duration of failures is not reported. Half of the 200 callers' time is left for failures, 10 ms each.
        m.service_us = Latency::default();
        m.errors = BTreeMap::from([("status".to_owned(), 100_000)]);
        m.concurrency = 200;
    },
    |m| {
        // There are too few failures to derive their duration.
        m.service_us = Latency::default();
        m.errors = BTreeMap::from([("status".to_owned(), 10_000)]);
    },
    |m| m.error_ordinals = BTreeMap::from([(100, 2)]),
    // By chance, three of a thousand failures are at one number, and ten are at multiples of another.
    |m| m.error_ordinals = (1..=997).map(|n| (n, 1)).chain([(5_000, 3)]).collect(),
    |m| m.error_ordinals = BTreeMap::from([(10, 1), (20, 1), (33, 1), (47, 1)]),
    |m| (m.successes, m.concurrency) = (20, 0),
    |m| (m.elapsed_s, m.concurrency) = (0.1, 0),
    |m| {
        // `narrows load` knows nothing about the server.
        m.system = SystemUse::default();
        m.generator.cores = vec![];
    },
    |m| m.tenths = [vec![10_000; 5], vec![11_000; 5]].concat(),
    |m| m.tenths[0] = 9_000,
    |m| m.service_us.buckets = vec![(1_000, 50_000), (2_000, 50_000)],
    |m| m.service_us.buckets = vec![(1_000, 99_990), (100_000, 10)],
    |m| (m.ports, m.files, m.time_wait) = (150, 150, 60_000),
    |m| (m.stolen_s, m.held_s, m.pause_s) = (0.1, 0.1, 0.2),
    |m| m.server = Some(ServerCounts { peak_connections: 32, ..ServerCounts::default() }),
];

#[test]
fn a_trial_just_within_a_limit_raises_no_doubt() {
    for (number, spoil) in NEARLY.iter().enumerate() {
        let mut m = sound();
        spoil(&mut m);
        assert_eq!(codes(&m, &KIND), [], "case {number}");
    }
}

#[test]
fn a_rate_is_a_lower_bound_if_not_the_server_ended_the_climb() {
    let climbed = |fails_at, busiest_core| {
        let max_rate = Some(MaxRate { per_s: 9e3, fails_at, busiest_core, tries: 9 });
        // An objective has judged late sends.
        doubts(&Measurement { max_rate, late: 2_000, ..sound() }, &TrialKind { closed_loop: false, ..KIND })
    };
    assert_eq!(climbed(Some(9.2e3), 0.9), []);
    let busy = Evidence::FailedBusy { per_s: 9.2e3, share: 0.95, more: None };
    let top = Evidence::NoRateFailed { per_s: 9e3 };
    for (seen, expected) in [(climbed(Some(9.2e3), 0.95), busy), (climbed(None, 0.0), top)] {
        assert_eq!(seen, [expected]);
        assert_eq!(seen[0].doubt(), Doubt::GeneratorBound);
        // At the rate that held, the generator was not at its limit.
        assert!(seen[0].concerns(Figure::MaxRate) && !seen[0].concerns(Figure::P99Us));
    }
}

#[test]
fn generators_at_their_limit_are_counted_and_more_are_asked_for() {
    let driven = |busiest: &[f64], successes, arrivals| {
        let generated =
            |busiest_core: &f64| Generated { busiest_core: *busiest_core, ..Generated::default() };
        let together =
            Together { generators: busiest.iter().map(generated).collect(), ..Together::default() };
        let attempts = successes;
        let mut m = Measurement { together: Some(together), successes, attempts, arrivals, ..sound() };
        m.generator.busiest_core = busiest.iter().copied().fold(0.0, f64::max);
        doubts(&m, &KIND).into_iter().find(|seen| seen.doubt() == Doubt::GeneratorBound)
    };
    let busy = |busy, of, more| Some(Evidence::GeneratorsBusy { busy, of, share: 0.95, more });
    // A closed loop: the same rate with generators that have headroom. An open loop: all arrivals.
    assert_eq!(driven(&[0.95], 90_000, 0), busy(1, 1, 1));
    assert_eq!(driven(&[0.95, 0.2, 0.94, 0.91], 90_000, 0), busy(3, 4, 1));
    assert_eq!(driven(&[0.95; 8], 80_000, 160_000), busy(8, 8, 12));
    assert_eq!(driven(&[0.8, 0.8], 90_000, 0), None);
    // Nothing was reached, or nothing is known.
    assert_eq!((more_generators(0, 0.0, 0.0), more_generators(2, 0.0, 1e9)), (1, 1));
}

#[test]
fn a_generator_that_shares_the_cores_of_the_system_is_doubted() {
    for shares_cores in [true, false] {
        let together = Together { shares_cores, ..Together::default() };
        let m = Measurement { together: Some(together), ..sound() };
        assert_eq!(codes(&m, &KIND).contains(&Doubt::CoresShared), shares_cores);
    }
}

#[test]
fn a_ramp_is_not_unsteady() {
    let mut m = sound();
    m.tenths = (1..=10).map(|tenth| tenth * 1_000).collect();
    let ramp = TrialKind { ramp: true, ..KIND };
    assert_eq!(codes(&m, &ramp), []);
    assert!(codes(&m, &KIND).contains(&Doubt::UnsteadyWindow));
}

#[test]
fn a_window_in_which_no_operation_ended_was_too_short() {
    let mut m = sound();
    (m.successes, m.attempts, m.concurrency) = (0, 10, 0);
    m.service_us = Latency::default();
    assert_eq!(codes(&m, &KIND), [Doubt::TooShort]);
    assert_eq!(codes(&m, &TrialKind { short_exchanges: false, ..KIND }), [Doubt::TooShort]);
}

#[test]
fn long_exchanges_are_not_judged_by_their_latencies() {
    let mut m = sound();
    m.tenths = vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0];
    (m.successes, m.concurrency) = (2, 1_000);
    let kind = TrialKind { short_exchanges: false, ..KIND };
    assert_eq!(codes(&m, &kind), []);
}

#[test]
fn a_window_that_never_opened_raises_no_doubt() {
    let m = Measurement { stolen_s: 0.5, ..Measurement::default() };
    assert_eq!(codes(&m, &KIND), []);
}
