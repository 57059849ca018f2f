//! The figures that are shown have the ratios that are said, whatever the machine did: random panels through the real findings.

use proptest::prelude::*;
use stats::Noise;

use super::*;
use crate::observation::Failure;
use crate::session::{Fake, Rule};
use crate::simulation::{arm, arm_rule, arms, observed};

/// What happens in a run: how many arms and rounds it has, the noise, how much better each arm is, and which trials fail.
#[derive(Debug, Clone)]
struct Course {
    rounds: u32,
    noise: Noise,
    better: Vec<f64>,
    failing: Vec<(usize, u32)>,
    seed: u64,
}

fn courses() -> impl Strategy<Value = Course> {
    let noise = (0.0..0.2_f64, prop::sample::select(vec![3, 30]), 0.0..0.2_f64, 0.0..0.4_f64);
    let noise = noise.prop_map(|(spread, tails, slow_share, drift)| Noise {
        spread,
        tails,
        slow_share,
        slow_by: 1.0,
        drift,
        ..Noise::SHARED_MACHINE
    });
    let arms = prop::collection::vec(prop::sample::select(vec![1.0, 1.02, 1.1, 1.5, 3.0]), 2..=6);
    (3..=40_u32, noise, arms, any::<u64>(), 0.0..0.4_f64).prop_flat_map(
        |(rounds, noise, better, seed, share)| {
            let all = better.len() * rounds as usize;
            let places =
                prop::collection::vec((0..better.len(), 0..rounds), 0..=(all as f64 * share) as usize);
            places.prop_map(move |failing| Course { rounds, noise, better: better.clone(), failing, seed })
        },
    )
}

/// The findings of a run of commands, of which the first is the base.
fn found(course: &Course) -> FigureView<'static> {
    let Course { rounds, noise, better, failing, seed } = course;
    let plan = arms(better.len(), *rounds, *seed);
    let faster = better.iter().enumerate().map(|(at, better)| arm_rule(at, *better));
    let fails = failing.iter().map(|(at, round)| Rule {
        system: Some(arm(*at)),
        rounds: Some(vec![*round]),
        fail: Some(Failure {
            stage: crate::observation::Stage::Start,
            reason: "it ended".to_owned(),
            output: String::new(),
        }),
        ..Rule::default()
    });
    let fake = Fake::new(1e5, faster.chain(fails).collect(), *noise, *seed);
    let seen = observed(&plan, fake);
    tests::one(findings(&plan, &seen))
}

/// By which share two ratios differ.
fn apart(a: f64, b: f64) -> f64 {
    (a / b).max(b / a) - 1.0
}

fn told(e: &FigureView<'_>) -> Vec<(usize, usize, Ratio)> {
    let Some(first) = e.claims.first() else { return Vec::new() };
    match first {
        Claim::Systems { comparison: c, rest, .. } => {
            let behind = rest.iter().filter_map(|behind| Some((c.scenario, behind.scenario, behind.ratio?)));
            c.ratio.map(|ratio| (c.scenario, c.against, ratio)).into_iter().chain(behind).collect()
        }
        Claim::Undecided { comparison: c, .. } => {
            c.ratio.map(|ratio| (c.scenario, c.against, ratio)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_ratios_of_figures_are_those_that_are_said(course in courses()) {
        let e = found(&course);
        let figure = |at: usize| e.estimates[at].figure.unwrap();
        for (a, b, ratio) in told(&e) {
            let shown = figure(a) / figure(b);
            prop_assert!(apart(shown, ratio.estimate) < 0.005, "{shown} {ratio:?}");
        }
        for (at, row) in e.estimates.iter().enumerate() {
            let Some(share) = row.of_reference else { continue };
            let shown = figure(at) / figure(0);
            prop_assert!(apart(shown, share) < 0.005, "{at}: {shown} {share}");
            // Of two commands, the share is what the comparison says.
            let beside = e.comparisons.iter().find(|c| (c.scenario, c.against) == (at, 0));
            if let Some(ratio) = beside.and_then(|c| c.ratio).filter(|_| e.estimates.len() == 2) {
                prop_assert!(apart(share, ratio.estimate) < 0.005, "{share} {ratio:?}");
            }
            if let Some((low, high)) = row.interval {
                prop_assert!((low..=high).contains(&figure(at)));
            }
        }
    }

    #[test]
    fn what_all_trials_say_alike_is_the_figure(rounds in 3..20_u32, better in 0.1..10.0_f64) {
        let e = found(&Course { rounds, noise: Noise::NONE, better: vec![1.0, better], failing: Vec::new(), seed: 1 });
        let shown: Vec<f64> = e.estimates.iter().filter_map(|row| row.figure).collect();
        prop_assert!(apart(shown[0], 1e5) < 1e-4 && apart(shown[1], 1e5 * better) < 1e-4, "{shown:?}");
    }
}
