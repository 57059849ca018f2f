//! How often the interval of a sentence holds the truth, although what the rounds showed decided which comparison it is about: the
//! best of several values of a knob, the leader of several arms, and the setting that a search advises.

use std::sync::OnceLock;

use stats::{Noise, SplitMix64};

use super::sample::{at_least, runs};
use super::search::{self, Surface};
use super::{Rounds, arm_rule, arms, fast_reference, observed, plan, value_rule};
use crate::findings::{Claim, Comparison, FigureView, Ratio, findings};
use crate::session::{Fake, Rule};

/// Each row has as many simulated runs as make so many sentences, but not more than this.
const SENTENCES: u64 = 400;
const MOST_RUNS: u64 = 4000;

/// Values of the knob beside the default.
const VALUES: usize = 6;

/// Arms of a comparison of commands.
const ARMS: usize = 4;

/// The searches of each noise.
const SEARCHES: u64 = 150;

/// From what a sentence chooses, and what is true.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Choice {
    /// The values of a knob, all of which are as good.
    EqualValues,
    /// The values of a knob, which are up to as good, by chance.
    SpreadValues,
    /// Arms beside the base, all of which are as good.
    EqualArms,
    /// Arms beside the base, which are up to as good, by chance.
    SpreadArms,
}

impl Choice {
    /// What it is in the table, if they are so much better.
    pub fn described(self, better: f64) -> String {
        match self {
            Self::EqualValues => format!("six values, all {better}x as good as the default"),
            Self::SpreadValues => format!("six values, 1x to {better}x as good as the default"),
            Self::EqualArms => format!("three arms, all {better}x as good as the base"),
            Self::SpreadArms => format!("three arms, 1x to {better}x as good as the base"),
        }
    }

    fn is_of_arms(self) -> bool {
        matches!(self, Self::EqualArms | Self::SpreadArms)
    }

    /// How many times better than the first each is. The first is the default or the base.
    fn truths(self, better: f64, rng: &mut SplitMix64) -> Vec<f64> {
        let others = if self.is_of_arms() { ARMS - 1 } else { VALUES };
        let other = |_| match self {
            Self::EqualValues | Self::EqualArms => better,
            Self::SpreadValues | Self::SpreadArms => (better.ln() * rng.unit()).exp(),
        };
        std::iter::once(1.0).chain((0..others).map(other)).collect()
    }
}

/// Rounds, the standard deviation of a trial, and how good the others are: noise in which some are found to be better.
const CASES: [(u32, f64, f64); 8] = [
    (3, 0.10, 1.3),
    (3, 0.10, 1.5),
    (3, 0.10, 2.0),
    (3, 0.19, 1.5),
    (6, 0.10, 1.2),
    (10, 0.10, 1.15),
    (10, 0.05, 1.1),
    (10, 0.19, 1.3),
];

/// The same for arms.
const CASES_OF_ARMS: [(u32, f64, f64); 3] = [(3, 0.10, 1.5), (10, 0.06, 1.15), (10, 0.10, 1.15)];

/// One row of the table.
pub(super) struct Chosen {
    pub choice: Choice,
    pub rounds: u32,
    pub noise: f64,
    pub better: f64,
    /// The share of runs with a sentence that something is better.
    pub claimed: f64,
    /// The share of these sentences whose interval would hold the truth, if it were that of the comparison by itself.
    pub alone: f64,
    /// The share of these sentences whose interval holds it.
    pub held: f64,
}

/// What the first sentence says is better. None if it does not say so.
fn told<'a>(found: &FigureView<'a>) -> Option<&'a Comparison> {
    match found.claims.first()? {
        Claim::Knob { comparison, .. } | Claim::Systems { comparison, .. } => Some(comparison),
        _ => None,
    }
}

fn holds(ratio: Option<Ratio>, truth: f64) -> bool {
    ratio.is_some_and(|ratio| (ratio.low..=ratio.high).contains(&truth))
}

fn simulate(choice: Choice, (rounds, noise, better): (u32, f64, f64)) -> Chosen {
    let (mut tried, mut claimed, mut alone, mut held) = (0, 0_u32, 0, 0);
    for seed in 0..runs(MOST_RUNS) {
        if u64::from(claimed) >= runs(SENTENCES) {
            break;
        }
        tried += 1;
        let truths = choice.truths(better, &mut SplitMix64::new(seed + 7_000_000));
        let rule = |(at, better): (usize, &f64)| match choice.is_of_arms() {
            true => arm_rule(at, *better),
            false => value_rule(at as i64, *better),
        };
        let rules: Vec<Rule> = truths.iter().enumerate().map(rule).chain([fast_reference()]).collect();
        let noise = Noise { spread: noise, ..Noise::default() };
        let fake = Fake::new(1e6, rules, noise, seed + 1_000_000);
        let plan = match choice.is_of_arms() {
            true => arms(ARMS, rounds, seed),
            false => plan(truths.len() as i64, Rounds::Fixed(rounds), seed),
        };
        let seen = observed(&plan, fake);
        let all = findings(&plan, &seen);
        let found = all.views().next().unwrap();
        let Some(told) = told(&found) else { continue };
        let same = |c: &&Comparison| (c.scenario, c.against) == (told.scenario, told.against);
        let turned = |c: &&Comparison| (c.scenario, c.against) == (told.against, told.scenario);
        let by_itself = found.comparisons.iter().find(same).and_then(|c| c.ratio);
        let by_itself = by_itself
            .or_else(|| found.comparisons.iter().find(turned).and_then(|c| Some(c.ratio?.inverse())));
        let truth = truths[told.scenario] / truths[told.against];
        claimed += 1;
        alone += u32::from(holds(by_itself, truth));
        held += u32::from(holds(told.ratio, truth));
    }
    let of_claims = |count: u32| f64::from(count) / f64::from(claimed.max(1));
    Chosen {
        choice,
        rounds,
        noise,
        better,
        claimed: f64::from(claimed) / f64::from(tried),
        alone: of_claims(alone),
        held: of_claims(held),
    }
}

/// What sentences choose, in each case.
pub(super) fn chosen() -> &'static [Chosen] {
    static CHOSEN: OnceLock<Vec<Chosen>> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let of_values = [Choice::EqualValues, Choice::SpreadValues]
            .into_iter()
            .flat_map(|choice| CASES.into_iter().map(move |case| (choice, case)));
        let of_arms = [Choice::EqualArms, Choice::SpreadArms]
            .into_iter()
            .flat_map(|choice| CASES_OF_ARMS.into_iter().map(move |case| (choice, case)));
        of_values.chain(of_arms).map(|(choice, case)| simulate(choice, case)).collect()
    })
}

/// The noise, the number of searches that advise a change, and the share of these in which the interval of the gain holds the truth.
pub(super) fn gains() -> &'static [(&'static str, u32, f64)] {
    static GAINS: OnceLock<Vec<(&str, u32, f64)>> = OnceLock::new();
    GAINS.get_or_init(|| {
        let of_noise = |(name, noise): (&'static str, Noise)| {
            let (mut advised, mut held) = (0, 0);
            for seed in search::FIRST_SEED..search::FIRST_SEED + runs(SEARCHES) {
                let surface = Surface::random(&search::SIZES, seed);
                let advice =
                    search::search(&surface, noise, seed).0.advice.expect("all trials were measured");
                if advice.changes() {
                    let worth =
                        surface.worth(&surface.cell(&advice.point)) - surface.worth(surface.default_cell());
                    advised += 1;
                    held += u32::from(holds(advice.gain, worth.exp()));
                }
            }
            (name, advised, f64::from(held) / f64::from(advised.max(1)))
        };
        search::NOISES.into_iter().map(of_noise).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn what_a_sentence_chose_holds_the_truth_as_often_as_it_says() {
    for one in chosen() {
        let what = format!("{:?}, {} rounds, {}, {}x", one.choice, one.rounds, one.noise, one.better);
        assert!(at_least(one.held, 0.94, SENTENCES), "{what}: {}", one.held);
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_gain_of_a_search_is_as_sure_as_it_says() {
    for (noise, advised, held) in gains() {
        let share = f64::from(*advised) / runs(SEARCHES) as f64;
        let right = at_least(share, 2.0 / 3.0, SEARCHES) && at_least(*held, 0.94, 100);
        assert!(right, "{noise}: {held} of {advised}");
    }
}
