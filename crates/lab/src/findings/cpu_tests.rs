//! What is said of CPU time where nothing is known of speeds.

use stats::Noise;

use super::*;
use crate::observation::{Observation, Outcome};
use crate::session::Fake;
use crate::simulation::{arms, observed};

/// The noise of speeds, which leaves everything undecided, and that of CPU time.
const SPEED: Noise = Noise { spread: 0.4, ..Noise::SHARED_MACHINE };
const CPU: Noise = Noise { spread: 0.05, ..Noise::SHARED_MACHINE };

/// What is found of so many arms of equal speed in so many rounds. The last one needs so many times the CPU time of the others.
fn found(count: usize, rounds: u32, more: f64, seed: u64) -> ExperimentFindings {
    let plan = arms(count, rounds, seed);
    let of = |noise, seed| observed(&plan, Fake::new(1e6, Vec::new(), noise, seed));
    let last = crate::simulation::arm(count - 1);
    let with_cpu = |(mut speed, cpu): (Observation, Observation)| {
        if let (Outcome::Measured(m), Outcome::Measured(other)) = (&mut speed.outcome, &cpu.outcome) {
            let more = if speed.trial.scenario.system == last { more } else { 1.0 };
            m.system.cpu_s = more * m.units as f64 * 1e-12 * other.units as f64;
        }
        speed
    };
    let seen: Vec<Observation> =
        of(SPEED, seed).into_iter().zip(of(CPU, seed + 1_000_000)).map(with_cpu).collect();
    findings(&plan, &seen).experiments.remove(0)
}

#[test]
fn one_that_certainly_needs_more_cpu_time_is_told_although_speeds_are_undecided() {
    let e = found(2, 4, 1.6, 1);
    assert!(matches!(e.figures[0].claims[..], [Claim::Undecided { .. }]), "{:?}", e.figures[0].claims);
    let [cpu] = &e.cpu[..] else { panic!("{:?}", e.cpu) };
    assert_eq!(e.figures[0].estimates[cpu.more].scenario.system, "arm1");
    assert!(cpu.ratio.low > 1.2 && cpu.ratio.high < 2.1, "{cpu:?}");
}

#[test]
fn equal_cpu_time_is_told_apart_in_at_most_one_run_of_twenty() {
    for (count, rounds, runs) in [(2, 3, 300), (2, 6, 1000), (5, 4, 300)] {
        let told = (0..runs).filter(|seed| !found(count, rounds, 1.0, *seed).cpu.is_empty()).count();
        // Three standard deviations of a share of 5 %.
        let runs = runs as f64;
        let most = runs * 0.05 + 3.0 * (runs * 0.05 * 0.95).sqrt();
        assert!(told as f64 <= most, "{told} of {runs}: {count} arms, {rounds} rounds");
    }
}
