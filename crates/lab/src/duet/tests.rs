use measurement::{GeneratorUse, SystemUse};

use super::*;
use crate::observation::{Failure, Outcome, Scenario, Stage, Timing};
use systems::{Point, Workload};

/// One second in which the system ran half of the time, and waited for its core in the other half.
fn sound() -> Measurement {
    Measurement {
        elapsed_s: 1.0,
        successes: 1000,
        units: 1000,
        system: SystemUse { cpu_s: 0.5, waited_s: Some(0.5), ..SystemUse::default() },
        generator: GeneratorUse {
            cpu_s: 0.2,
            waited_s: 0.1,
            busiest_core: 0.2,
            cores: vec![0],
            ..Default::default()
        },
        ..Measurement::default()
    }
}

#[test]
fn each_reason_refuses_a_duet_and_nothing_else_does() {
    let refused = |change: fn(&mut Measurement), open: bool| {
        let (one, mut other) = (sound(), sound());
        change(&mut other);
        let found = Refusal::of(&one, &other, open);
        // It does not matter which of the two it is.
        assert_eq!(found, Refusal::of(&other, &one, open));
        found
    };
    assert_eq!(refused(|_| {}, false), None);
    assert_eq!(refused(|m| m.successes = 900, false), None);
    assert!(
        matches!(refused(|m| m.generator.waited_s = 0.75, false), Some(Refusal::Generator { share }) if share > 0.9)
    );
    assert!(matches!(refused(|m| m.generator.busiest_core = 0.75, false), Some(Refusal::Generator { .. })));
    assert!(matches!(refused(|m| m.system.waited_s = Some(0.3), false), Some(Refusal::Idle { .. })));
    let crowded = |m: &mut Measurement| (m.system.cpu_s, m.system.waited_s) = (0.2, Some(0.8));
    assert!(matches!(refused(crowded, false), Some(Refusal::Crowded { share }) if share == 0.2));
    assert!(matches!(refused(|m| m.system.cpu_s = 0.7, false), Some(Refusal::Unequal { .. })));
    assert!(matches!(refused(|m| m.successes = 600, false), Some(Refusal::Apart { ratio }) if ratio > 1.6));
    assert!(matches!(refused(|m| m.successes = 0, false), Some(Refusal::Apart { .. })));
    // In an open loop systems have time to spare, and the rates are the same.
    assert_eq!(refused(|m| m.system.waited_s = None, true), None);
    assert_eq!(refused(|m| m.system.cpu_s = 0.6, true), None);
    assert!(matches!(refused(|m| m.system.cpu_s = 0.9, true), Some(Refusal::Apart { .. })));
    assert!(matches!(refused(|m| m.generator.waited_s = 0.75, true), Some(Refusal::Generator { .. })));
}

const TIMING: Timing = Timing { warmup_s: 0.0, measure_s: 1.0, timeout_s: 1.0 };

fn trial(round: u32, pair: Option<u32>) -> Trial {
    let scenario = Scenario::new("e", "a", Workload::Requests, Point::new()).expect("a scenario");
    Trial { round, duet: pair, ..Trial::alone(scenario, TIMING) }
}

fn observed(pair: u32, duet: Option<Duet>) -> Observation {
    let outcome = Outcome::Measured(Box::default());
    Observation { trial: trial(0, Some(pair)), began_unix_s: 0.0, took_s: 1.0, duet, outcome }
}

#[test]
fn duets_that_are_refused_more_often_than_held_are_given_up() {
    let held = |pair: u32| [observed(pair, Some(Duet::Held)), observed(pair, Some(Duet::Held))];
    let refused =
        |pair: u32| [0, 1].map(|_| observed(pair, Some(Duet::Refused(Refusal::Apart { ratio: 2.0 }))));
    let alone = |pair: u32| [observed(pair, None), observed(pair, None)];
    let holds = |all: &[[Observation; 2]]| holds(all.iter().flatten());
    assert!(holds(&[]) && holds(&[held(1)]) && holds(&[refused(1)]));
    assert!(!holds(&[refused(1), refused(1)]));
    assert!(!holds(&[refused(1), held(1), refused(1), alone(1)]));
    assert!(holds(&[refused(1), held(1), refused(1), held(1)]));
    // One pair is enough, because the base is part of all.
    assert!(!holds(&[held(2), held(2), refused(1), refused(1), held(2)]));
    assert!(holds(&[refused(2), refused(1)]));
    // What others do on the machine passes.
    let idle = [0, 1].map(|_| observed(1, Some(Duet::Refused(Refusal::Idle { share: 0.5 }))));
    let idle = |times: usize| vec![idle.clone(); times];
    assert!(holds(&idle(3)) && !holds(&idle(4)));
    assert!(holds(&[idle(4), vec![held(1); 4]].concat()));
}

#[test]
fn what_counts_is_of_one_kind() {
    let refused = Some(Duet::Refused(Refusal::Apart { ratio: 2.0 }));
    let failure = Failure { stage: Stage::Start, reason: String::new(), output: String::new() };
    let failed = Observation { outcome: Outcome::Failed(failure), ..observed(1, refused.clone()) };
    let all = [observed(1, Some(Duet::Held)), observed(1, refused.clone()), failed];
    let all: Vec<&Observation> = all.iter().collect();
    let kinds = |all: &[&Observation]| counted(all).iter().map(|o| o.duet.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&all), [Some(Duet::Held), refused.clone()]);
    let more = [0, 1, 2].map(|_| observed(1, refused.clone()));
    let alone = observed(1, None);
    let all: Vec<&Observation> = all.into_iter().chain(&more).chain([&alone]).collect();
    assert_eq!(kinds(&all).len(), 6);
    let never = [0, 1].map(|_| observed(1, None));
    assert_eq!(kinds(&never.iter().collect::<Vec<_>>()), [None, None]);
    assert!(!kinds(&all).contains(&Some(Duet::Held)));
}

#[test]
fn trials_that_happen_together_are_neighbours_of_one_duet() {
    let trials = [
        trial(0, Some(1)),
        trial(0, Some(1)),
        trial(0, Some(2)),
        trial(1, Some(2)),
        trial(1, None),
        trial(1, None),
    ];
    let sizes: Vec<usize> = groups(&trials).iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1, 1, 1, 1]);
    let blocks: std::collections::BTreeSet<u32> =
        [(0, 1), (0, 2), (1, 1)].map(|(round, pair)| trial(round, Some(pair)).block()).into();
    assert_eq!(blocks.len(), 3);
}
