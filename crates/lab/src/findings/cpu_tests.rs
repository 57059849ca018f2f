//! What is said of CPU time where nothing is known of speeds.

use profile::{Frame, Kind, Profile, Stack};
use stats::{Noise, SplitMix64};

use super::*;
use crate::observation::{Observation, Outcome};
use crate::session::Fake;
use crate::simulation::{arms, observed};

/// The noise of speeds, which leaves everything undecided, and that of CPU time.
const SPEED: Noise = Noise { spread: 0.4, ..Noise::SHARED_MACHINE };
const CPU: Noise = Noise { spread: 0.05, ..Noise::SHARED_MACHINE };

/// 300 samples of forty functions, few of which take much. A function of its own, `check`, has this share. The shares of others vary
/// by 20 % from trial to trial.
fn profile(check: f64, rng: &mut SplitMix64) -> Profile {
    let others = (1..=40).map(|rank| (0.2 * rng.normal()).exp() / f64::from(rank));
    let others: Vec<f64> = others.collect();
    let whole: f64 = others.iter().sum();
    let shares = others.iter().map(|share| share / whole * (1.0 - check)).chain([check]);
    let shares: Vec<f64> = shares.collect();
    let mut counts = vec![0; shares.len()];
    for _ in 0..300 {
        let mut left = rng.unit();
        let hit = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        counts[hit.unwrap_or(0)] += 1;
    }
    let name = |at: usize| if at == 40 { "check".to_owned() } else { format!("f{at}") };
    let module = || "/srv/server".to_owned();
    let frame =
        |name| Frame { name, module: module(), kind: Kind::User, inlined: false, file: None, line: None };
    let frames = (0..counts.len()).map(|at| frame(name(at))).collect();
    let stacks =
        counts.iter().zip(0..).map(|(count, at)| Stack { frames: vec![at], count: *count }).collect();
    Profile { kernel: true, period_ns: 1_000_000, samples: 300, frames, stacks, ..Profile::default() }
}

/// What is found of so many arms of equal speed in so many rounds. The last one needs so many times the CPU time of the others, and a
/// function `check` has this share of it.
fn found(count: usize, rounds: u32, (more, check): (f64, f64), seed: u64) -> ExperimentFindings {
    let plan = arms(count, rounds, seed);
    let mut rng = SplitMix64::new(seed);
    let of = |noise, seed| observed(&plan, Fake::new(1e6, Vec::new(), noise, seed));
    let last = crate::simulation::arm(count - 1);
    let mut with_cpu = |(mut speed, cpu): (Observation, Observation)| {
        if let (Outcome::Measured(m), Outcome::Measured(other)) = (&mut speed.outcome, &cpu.outcome) {
            let (more, check) = if speed.trial.scenario.system == last { (more, check) } else { (1.0, 0.0) };
            m.profile = Some(profile(check, &mut rng));
            m.system.cpu_s = more * m.units as f64 * 1e-12 * other.units as f64;
        }
        speed
    };
    let seen: Vec<Observation> =
        of(SPEED, seed).into_iter().zip(of(CPU, seed + 1_000_000)).map(&mut with_cpu).collect();
    findings(&plan, &seen).experiments.remove(0)
}

#[test]
fn one_that_certainly_needs_more_cpu_time_is_told_although_speeds_are_undecided() {
    let e = found(2, 4, (1.6, 0.0), 1);
    assert!(matches!(e.figures[0].claims[..], [Claim::Undecided { .. }]), "{:?}", e.figures[0].claims);
    let [cpu] = &e.cpu[..] else { panic!("{:?}", e.cpu) };
    assert_eq!(e.figures[0].estimates[cpu.more].scenario.system, "arm1");
    assert!(cpu.ratio.low > 1.2 && cpu.ratio.high < 2.1, "{cpu:?}");
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn equal_cpu_time_is_told_apart_in_at_most_one_run_of_twenty() {
    for (count, rounds, runs) in [(2, 3, 300), (2, 6, 1000), (5, 4, 300)] {
        let told = (0..runs).filter(|seed| !found(count, rounds, (1.0, 0.0), *seed).cpu.is_empty()).count();
        // Three standard deviations of a share of 5 %.
        let runs = runs as f64;
        let most = runs * 0.05 + 3.0 * (runs * 0.05 * 0.95).sqrt();
        assert!(told as f64 <= most, "{told} of {runs}: {count} arms, {rounds} rounds");
    }
}

#[test]
fn a_function_that_is_new_is_named_although_the_whole_may_not_differ() {
    let named = (0..20).filter(|seed| {
        let e = found(2, 4, (1.05, 0.2), *seed);
        let uncertain = e.cpu.iter().filter(|cpu| !cpu.is_certain());
        let carriers = uncertain.filter_map(|cpu| cpu.functions.as_ref()?.carrier.as_ref());
        let names: Vec<&str> = carriers.map(|carrier| carrier.function.name.as_str()).collect();
        assert!(names.iter().all(|name| *name == "check"), "{names:?}");
        !names.is_empty()
    });
    assert!(named.count() >= 15);
}
