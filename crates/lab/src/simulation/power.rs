//! Which differences comparisons of two find, at the noise that quiet and busy machines have (docs/decisions/0009), and whether what a
//! plan says before it begins is so.

use std::sync::OnceLock;

use stats::{Noise, Verdict};

use super::sample::{at_least, at_most, runs};
use super::{arm_rule, arms, carried_out};
use crate::findings::compare_scenarios;
use crate::observation::Timing;
use crate::plan::Plan;
use crate::rounds;
use crate::session::{Fake, observe};

/// The simulated runs of each figure.
const RUNS: u64 = 300;

/// The standard deviations of a trial.
const NOISES: [f64; 4] = [0.03, 0.06, 0.10, 0.19];

/// The smallest difference worth having. Of smaller ones a run may find that they make no difference.
const SMALLEST: f64 = 1.05;

/// How many times better one of the two is, in the columns of the table. In the first they are equal.
pub(super) const TRUTHS: [f64; 6] = [1.0, 1.05, 1.1, 1.2, 1.5, 2.0];

/// How many rounds there are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ends {
    /// So many.
    After(u32),
    /// When the comparison is decided, or after so many seconds.
    Within(f64),
}

/// The ways in the table.
const WAYS: [(&str, Ends); 3] =
    [("3", Ends::After(3)), ("10", Ends::After(10)), ("`--budget 5m`", Ends::Within(300.0))];

/// One row of the table.
pub(super) struct Power {
    pub noise: f64,
    pub rounds: &'static str,
    /// The share of runs that call the better one faster, for each of [`TRUTHS`]; of the first, those that claim any difference.
    pub found: Vec<f64>,
    /// How many times better it must be to be found in four of five runs, as the plan says; and the share of runs that find that.
    pub detectable: (f64, f64),
}

/// A plan as `try` makes it.
fn plan(ends: Ends, seed: u64) -> Plan {
    let mut plan = arms(2, 0, seed);
    plan.experiments[0].setup.timing = Timing { warmup_s: 0.5, measure_s: 1.0, timeout_s: 1.0 };
    match ends {
        Ends::After(rounds) => plan.grow(&[(0, rounds)]),
        Ends::Within(budget_s) => {
            plan.grow(&[(0, 3)]);
            plan.grow_within(budget_s, false);
        }
    }
    plan
}

/// The shares of runs that call the second faster, and that claim any difference.
fn simulate(ends: Ends, noise: f64, better: f64) -> (f64, f64) {
    let noise = Noise { spread: noise, ..Noise::default() };
    let (mut faster, mut differ) = (0, 0);
    for seed in 0..runs(RUNS) {
        let mut fake = Fake::new(1e6, vec![arm_rule(1, better)], noise, seed + 1_000_000);
        let (plan, seen) =
            carried_out(plan(ends, seed), |trial| observe(&mut fake, trial).unwrap(), |_, _| {});
        let verdict = compare_scenarios(&plan, &seen)[0][0].clone();
        let second_is_faster = match verdict.verdict {
            Verdict::Faster => Some(verdict.scenario == 1),
            Verdict::Slower => Some(verdict.against == 1),
            Verdict::NoDifference | Verdict::Undecided { .. } => None,
        };
        faster += u32::from(second_is_faster == Some(true));
        differ += u32::from(second_is_faster.is_some());
    }
    let share = |count: u32| f64::from(count) / runs(RUNS) as f64;
    (share(faster), share(differ))
}

/// The power at each noise.
pub(super) fn power() -> &'static [Power] {
    static POWER: OnceLock<Vec<Power>> = OnceLock::new();
    POWER.get_or_init(|| {
        let of_noise = |noise: f64| {
            WAYS.into_iter().map(move |(rounds, ends)| {
                let of_truth = |better: f64| {
                    let (faster, differ) = simulate(ends, noise, better);
                    if better == 1.0 { differ } else { faster }
                };
                let plan = plan(ends, 0);
                let most = rounds::expected(&plan);
                let detectable = plan.design.detectable(most, 1, noise).expect("three rounds").exp();
                let detectable = detectable.max(SMALLEST);
                Power {
                    noise,
                    rounds,
                    found: TRUTHS.into_iter().map(of_truth).collect(),
                    detectable: (detectable, simulate(ends, noise, detectable).0),
                }
            })
        };
        NOISES.into_iter().flat_map(of_noise).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn what_a_plan_says_that_it_can_find_is_found_in_four_of_five_runs() {
    for Power { noise, rounds, found, detectable } in power() {
        let (times, share) = detectable;
        let right = at_least(*share, 0.7, RUNS) && (at_most(*share, 0.95, RUNS) || *times <= SMALLEST);
        assert!(right, "{noise}, {rounds} rounds, {times}x: {share}");
        assert!(at_most(found[0], 0.05 + 0.02, RUNS), "{noise}, {rounds} rounds: {}", found[0]);
    }
}
