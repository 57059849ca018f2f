//! Tests of searches: what runs when, what a search may spend, and that neither an interruption nor failures confuse it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use stats::{Noise, Verdict};

use super::*;
use crate::observation::Failure;
use crate::plan::Plan;
use crate::rounds::extend;
use crate::session::{Fake, Rule, observe};
use crate::simulation::search::{Surface, carried_out, tuned};

fn steps(plan: &Plan) -> &[Round] {
    &plan.experiments[0].search.as_ref().unwrap().steps
}

fn proof(plan: &Plan) -> Vec<&Round> {
    steps(plan).iter().filter(|step| step.stage == Stage::Proof).collect()
}

/// Trials without noise of a surface with 36 settings.
fn quiet(trials: usize, seed: u64) -> (Surface, Plan, Vec<Observation>) {
    let surface = Surface::random(&[4, 3, 3], seed);
    let (plan, seen) = carried_out(surface.plan(trials, 1), &mut surface.fake(Noise::NONE, 1));
    (surface, plan, seen)
}

#[test]
fn the_default_runs_in_each_round_and_a_third_is_kept_for_the_proof() {
    for trials in [FEWEST_TRIALS, 60, 100, 200] {
        let (_, plan, seen) = quiet(trials, 4);
        let default = steps(&plan)[0].cells[0].clone();
        assert!(steps(&plan).iter().all(|step| step.cells[0] == default), "{trials}");
        let (proof, rounds) = (proof(&plan), plan.experiments[0].rounds as usize);
        assert!(seen.len() <= trials && rounds == steps(&plan).len());
        let raced: usize = steps(&plan)[..rounds - proof.len()].iter().map(|step| step.cells.len()).sum();
        assert!(proof.len() >= FEWEST_PROOFS && raced <= trials - trials / 3, "{trials}: {raced}");
        assert!(proof.iter().all(|step| *step == proof[0]), "the proof has a fixed design");
    }
}

#[test]
fn without_noise_a_setting_near_the_best_wins_and_each_contribution_is_exact() {
    let (mut changed, mut contributions) = (0, 0);
    for seed in 0..8 {
        let (surface, plan, seen) = quiet(200, seed);
        let search = tuned(&plan, &seen);
        let found = search.advice.unwrap();
        let worth = |point: &Point| surface.worth(&surface.cell(point));
        assert!(surface.best() - worth(&found.point) < 0.05, "{seed}: {found:?}");
        let default = Space::of(&plan.experiments[0].setup).unwrap().point(&steps(&plan)[0].cells[0]);
        assert_eq!(found.changes(), found.point != default);
        let gain = found.gain.unwrap().estimate.ln();
        let judged = if found.changes() { &found.point } else { &found.winner };
        assert!((gain - (worth(judged) - worth(&default))).abs() < 1e-3);
        for one in &found.contributions {
            let mut without = found.winner.clone();
            without.insert(one.knob.clone(), default[&one.knob].clone());
            let expected = worth(&found.winner) - worth(&without);
            assert!((one.ratio.unwrap().estimate.ln() - expected).abs() < 1e-3, "{one:?}");
        }
        assert_eq!(search.settings, 36);
        let rounds = proof(&plan).len() as u32;
        assert_eq!(search.proof, (rounds, rounds));
        assert_eq!(search.raced + rounds * proof(&plan)[0].cells.len() as u32, seen.len() as u32);
        changed += u32::from(found.changes());
        contributions += found.contributions.len();
    }
    assert!(changed >= 4 && contributions >= 8, "{changed} {contributions}");
}

#[test]
fn a_small_space_is_raced_whole() {
    let surface = Surface::random(&[4, 3, 2], 1);
    let (plan, seen) = carried_out(surface.plan(120, 1), &mut surface.fake(Noise::SHARED_MACHINE, 1));
    assert_eq!(steps(&plan)[0].cells.len(), WHOLE);
    assert_eq!(tuned(&plan, &seen).untried, 0);
    // The smallest space.
    let surface = Surface::random(&[2], 1);
    let (plan, seen) = carried_out(surface.plan(40, 1), &mut surface.fake(Noise::SHARED_MACHINE, 1));
    let found = tuned(&plan, &seen);
    assert_eq!((found.settings, found.untried, found.advice.unwrap().contributions.len()), (2, 0, 1));
}

#[test]
fn an_interrupted_search_continues_as_if_it_had_not_been() {
    let surface = Surface::random(&[6, 5, 4, 4], 3);
    let fake = || surface.fake(Noise::SHARED_MACHINE, 3);
    let (whole, all) = carried_out(surface.plan(150, 3), &mut fake());
    let mut plan = surface.plan(150, 3);
    let mut seen: Vec<Observation> = Vec::new();
    loop {
        // Each round is begun with what is left of the plan and the observations on the disk.
        let saved = serde_json::to_string(&(&plan, &seen)).unwrap();
        (plan, seen) = serde_json::from_str(&saved).unwrap();
        let mut executor = fake();
        for trial in &plan.trials[seen.len()..] {
            seen.push(Observation { began_unix_s: 0.0, ..observe(&mut executor, trial).unwrap() });
        }
        if !extend(&mut plan, &seen) {
            break;
        }
    }
    assert_eq!(plan, whole);
    let cut = tuned(&plan, &seen[..seen.len() - 1]);
    assert_eq!(cut.advice, None, "the proof is not complete");
    assert!(cut.favourite.is_some() && cut.proof.1 == cut.proof.0 - 1, "{cut:?}");
    assert_eq!(tuned(&plan, &seen).advice, tuned(&whole, &all).advice);
}

#[test]
fn longer_trials_than_expected_leave_fewer_of_them() {
    let surface = Surface::random(&[6, 5, 4, 4], 3);
    let mut plan = surface.plan(200, 3);
    plan.budget_s = Some(100.0);
    let (plan, seen) = carried_out(plan, &mut surface.fake(Noise::SHARED_MACHINE, 3));
    let took: f64 = seen.iter().map(|o| o.took_s).sum();
    assert!(took <= 101.0 && seen.len() < 100 && proof(&plan).len() >= FEWEST_PROOFS, "{took}");
}

#[test]
fn settings_that_fail_do_not_win_and_a_default_that_fails_ends_the_search() {
    let surface = Surface::random(&[3, 3, 3], 2);
    let space = Space::of(&surface.plan(60, 1).experiments[0].setup).unwrap();
    let default = space.base.point.clone();
    let fails = |point: Point| {
        let failure = Failure {
            stage: crate::observation::Stage::Start,
            reason: "it ended".to_owned(),
            output: String::new(),
        };
        Rule { point, fail: Some(failure), ..Rule::default() }
    };
    let run = |rules: Vec<Rule>| {
        let mut fake = Fake::new(1e3, rules, Noise::NONE, 1);
        let (plan, seen) = carried_out(surface.plan(60, 1), &mut fake);
        (tuned(&plan, &seen), seen.len())
    };
    let (none, trials) = run(vec![fails(default.clone())]);
    assert!(none.advice.is_none() && trials <= 26, "{trials}");
    // Every value of the first knob but the default's.
    let (knob, values) = &space.knobs[0];
    let others = values.iter().filter(|value| **value != default[knob]);
    let (some, _) = run(others.map(|value| fails(Point::from([(knob.clone(), value.clone())]))).collect());
    let failing: Vec<(&str, &Value)> =
        some.failing.iter().map(|one| (one.knob.as_str(), &one.value)).collect();
    let others = values.iter().filter(|value| **value != default[knob]);
    assert_eq!(failing, others.map(|value| (knob.as_str(), value)).collect::<Vec<_>>());
    let some = some.advice.unwrap();
    assert_eq!((some.winner[knob].clone(), some.verdict), (default[knob].clone(), Verdict::NoDifference));
    let (none, _) = run(vec![fails(Point::new())]);
    assert!(none.advice.is_none() && none.favourite.is_none());
}

proptest! {
    #[test]
    fn a_first_look_has_the_default_and_different_settings(
        values in proptest::collection::vec((1_usize..9, any::<bool>()), 1..8),
        seed: u64,
    ) {
        let knobs: Vec<Dimension> = values.iter().map(|(values, ordered)| Dimension { values: *values, ordered: *ordered }).collect();
        let lattice = Lattice { default: knobs.iter().map(|knob| knob.values / 2).collect(), knobs };
        let cells = lattice.spread(12, seed);
        prop_assert_eq!(&cells[0], &lattice.default);
        let different: BTreeSet<&Cell> = cells.iter().collect();
        prop_assert_eq!(different.len(), cells.len());
        prop_assert!(cells.iter().all(|cell| cell.iter().zip(&lattice.knobs).all(|(at, knob)| *at < knob.values)));
        let near = lattice.neighbours(&lattice.default, &cells);
        let one_apart = |cell: &Cell| cell.iter().zip(&lattice.default).filter(|(a, b)| a != b).count() == 1;
        prop_assert!(near.iter().all(one_apart));
    }
}

#[test]
fn duets_are_the_rounds_of_a_proof_of_two_settings() {
    let mut kinds = BTreeSet::new();
    for seed in 0..8 {
        let surface = Surface::random(&[4, 3, 3], seed);
        let mut plan = surface.plan(200, 1);
        plan.experiments[0].setup.duet = true;
        let (plan, seen) = carried_out(plan, &mut surface.fake(Noise::NONE, 1));
        let of_two = proof(&plan)[0].cells.len() == 2;
        let is_proven = |o: &Observation| steps(&plan)[o.trial.round as usize].stage == Stage::Proof;
        assert!(seen.iter().all(|o| o.trial.duet.is_some() == (of_two && is_proven(o))), "{seed}");
        assert!(tuned(&plan, &seen).advice.is_some(), "{seed}");
        kinds.insert(of_two);
    }
    assert_eq!(kinds.len(), 2, "a proof of two settings, and one of several");
}
