//! Interim looks: when to look at comparisons that grow round by round, and what may be claimed at each look.
//!
//! This is a group-sequential design. Its intervals are valid at all looks together: they are repeated confidence
//! intervals (Jennison and Turnbull, "Group Sequential Methods with Applications to Clinical Trials", 2000, chapter 9).
//! The error is spent in unequal parts (a Bonferroni correction with weights): 30 % at the first look, because the effects that
//! matter here, such as a knob that costs a factor of ten, show after three rounds and should be found then; a quarter at the last,
//! because what is undecided there stays so; and the rest in between, in proportion to `1/sqrt(l)` at look `l`. The parts add up to
//! the whole, so the promise holds however the looks depend on each other, and at every level to which a correction for several
//! comparisons leads. Parts that are calibrated to the dependence of looks at 5 % are too large at smaller levels, where looks depend
//! less on each other.
//!
//! An error that is kept for looks that never come is lost. So the number of looks is what a plan's budget can reach, and if time runs
//! out earlier, the look that is reached becomes the last ([`Design::ending_after`]). That depends on time only. With fewer looks each
//! may spend more, so whatever was decided with the larger number stays decided, and the parts still add up to the whole.

use serde::{Deserialize, Serialize};

use crate::location::degrees_of_freedom;
use crate::student::critical;
use crate::{Location, MANY, Panel};

/// The probability with which a statement may be wrong: 1 in 20.
pub const LEVEL: f64 = 0.05;

/// The rounds after which a run that may stop early is examined. It ends at the last that its design allows.
pub const LOOKS: [u32; 14] = [3, 4, 6, 9, 14, 19, 29, 39, 54, 76, 107, 150, 212, 300];

/// So many of the looks are enough to compare. What more rounds would find is hardly worth their time, unless a gate depends on it.
pub const USUAL_LOOKS: u32 = 8;

/// The fewest rounds of a comparison. Fewer give no estimate.
pub const FEWEST_ROUNDS: usize = 3;

/// The shares of the error that the first and the last look of several may spend.
const FIRST: f64 = 0.3;
const LAST: f64 = 0.25;

/// The two-sided level of the value that one in five exceeds.
const ONE_IN_FIVE_ABOVE: f64 = 0.4;

/// How often comparisons are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Design {
    /// The number of looks, at most that of [`LOOKS`]. A single look is taken at the end, however many rounds there are.
    looks: u32,
}

/// The log-ratio that a comparison has estimated so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// The estimate and its error, from all rounds.
    pub location: Location,
    /// The lower end of the interval that covers the truth with probability 1 - [`LEVEL`], for all looks so far together.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The probability with which this interval by itself may be wrong.
    pub level: f64,
    /// The smallest p-value of all looks, corrected for their number.
    pub p: f64,
}

impl Design {
    /// A single look, after a number of rounds that does not depend on the figures.
    pub const ONCE: Self = Self { looks: 1 };

    /// A design with so many looks, at least 1 and at most as many as [`LOOKS`] has.
    pub fn with_looks(looks: u32) -> Self {
        Self { looks: looks.clamp(1, LOOKS.len() as u32) }
    }

    /// Makes the look that examines so many rounds the last. The promise holds only if time ended the run, and not what it shows.
    pub fn ending_after(self, rounds: u32) -> Self {
        Self { looks: self.look_at(rounds) }
    }

    /// Whether there is a single look.
    pub fn is_once(self) -> bool {
        self.looks() == 1
    }

    /// The number of looks, which a stored plan may have wrong.
    fn looks(self) -> u32 {
        Self::with_looks(self.looks).looks
    }

    /// Estimates by how much row `a` of a panel exceeds row `b`, less what is expected. None if they share fewer than
    /// [`FEWEST_ROUNDS`].
    pub fn compare(self, panel: &Panel, a: usize, b: usize, expected: f64) -> Option<LogRatio> {
        self.examine(&panel.shared_rounds(a, b), expected, |rounds| panel.difference(a, b, rounds))
    }

    /// Estimates a row of a panel, less what is expected. None if it has fewer than [`FEWEST_ROUNDS`].
    pub fn mean(self, panel: &Panel, row: usize, expected: f64) -> Option<LogRatio> {
        self.examine(&panel.shared_rounds(row, row), expected, |rounds| panel.mean(row, rounds))
    }

    /// Examines a number at each look. `of` estimates it from the first of these rounds.
    fn examine(
        self,
        rounds: &[u32],
        expected: f64,
        of: impl Fn(&[u32]) -> Option<Location>,
    ) -> Option<LogRatio> {
        let location_of = |n: usize| {
            let location = of(&rounds[..n]).filter(|_| n >= FEWEST_ROUNDS)?;
            Some(Location { estimate: location.estimate - expected, ..location })
        };
        let location = location_of(rounds.len())?;
        let (mut least, mut seen, mut level) = (1.0_f64, 0, LEVEL);
        for look in 1..=self.looks() {
            // The last look takes all rounds.
            let n = match LOOKS.get(look as usize - 1) {
                Some(reached) if look < self.looks() => rounds.partition_point(|round| round < reached),
                _ => rounds.len(),
            };
            if n == seen {
                continue; // a look without new rounds does not count
            }
            seen = n;
            level = LEVEL * self.share(look);
            if let Some(location) = location_of(n) {
                least = least.min(location.p() / self.share(look));
            }
            if n == rounds.len() {
                break;
            }
        }
        let (low, high) = location.interval(level);
        Some(LogRatio { location, low, high, level, p: least.min(1.0) })
    }

    /// The share of the error that a look may spend. Looks are counted from 1.
    fn share(self, look: u32) -> f64 {
        match (look, self.looks()) {
            (_, 1) => 1.0,
            // Nothing is in between.
            (1, 2) => FIRST / (FIRST + LAST),
            (_, 2) => LAST / (FIRST + LAST),
            (1, _) => FIRST,
            (look, last) if look == last => LAST,
            (look, last) => {
                let part = |look: u32| 1.0 / f64::from(look).sqrt();
                (1.0 - FIRST - LAST) * part(look) / (2..last).map(part).sum::<f64>()
            }
        }
    }

    /// The share of the error that may be spent after so many rounds: that of the look at which they are examined.
    pub fn share_after(self, rounds: u32) -> f64 {
        self.share(self.look_at(rounds))
    }

    /// The look at which so many rounds are examined, counted from 1.
    fn look_at(self, rounds: u32) -> u32 {
        let look = LOOKS.iter().position(|reached| *reached >= rounds);
        look.map_or(self.looks(), |look| look as u32 + 1).min(self.looks())
    }

    /// The smallest log-ratio that four in five runs of so many rounds show, if `comparisons` are made together and the logarithms
    /// of a row's figures have this standard deviation within rounds. None for fewer than [`FEWEST_ROUNDS`].
    pub fn detectable(self, rounds: u32, comparisons: usize, spread: f64) -> Option<f64> {
        let n = rounds as usize;
        if n < FEWEST_ROUNDS || comparisons == 0 {
            return None;
        }
        let level = LEVEL * self.share_after(rounds) / comparisons as f64;
        // In few rounds both rows show their noise, if there are others that show what the rounds did.
        let both = if n < MANY && comparisons > 1 { 2.0 } else { 1.0 };
        let df = both * degrees_of_freedom(n);
        Some((critical(level, df) + critical(ONE_IN_FIVE_ABOVE, df)) * spread * (2.0 / n as f64).sqrt())
    }

    /// After how many rounds the last look is taken at the latest. None if there is a single look, after any number of rounds.
    pub fn last_look(self) -> Option<u32> {
        LOOKS.get(self.looks() as usize - 1).copied().filter(|_| !self.is_once())
    }

    /// The number of rounds at the next look; None if there is none, or only one at an end that the budget sets.
    pub fn next_look(self, rounds: u32) -> Option<u32> {
        let looks = if self.is_once() { &[][..] } else { &LOOKS[..self.looks() as usize] };
        looks.iter().copied().find(|look| *look > rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PanelRow, SplitMix64};

    /// A panel of two rows with these differences.
    fn panel(differences: &[(u32, f64)]) -> Panel {
        let row = |numbers: Vec<(u32, f64)>| PanelRow {
            by_round: numbers.into_iter().collect(),
            system: true,
            ..PanelRow::default()
        };
        let zero = differences.iter().map(|(round, _)| (*round, 0.0)).collect();
        Panel::new(vec![row(differences.to_vec()), row(zero)])
    }

    fn compare(design: Design, differences: &[f64]) -> Option<LogRatio> {
        let rounds: Vec<(u32, f64)> = (0..).zip(differences.iter().copied()).collect();
        design.compare(&panel(&rounds), 0, 1, 0.0)
    }

    fn most() -> Design {
        Design::with_looks(u32::MAX)
    }

    #[test]
    fn all_looks_together_err_as_often_as_one_may() {
        // No difference, normal noise: some look denies the truth. Three standard errors of the share are 0.011.
        let mut rng = SplitMix64::new(1);
        for looks in [1, 3, 8, 14] {
            let design = Design::with_looks(looks);
            let runs = 3000;
            let denied = (0..runs).filter(|_| {
                let numbers: Vec<f64> = (0..LOOKS[looks as usize - 1]).map(|_| rng.normal()).collect();
                compare(design, &numbers).unwrap().p <= LEVEL
            });
            let share = denied.count() as f64 / f64::from(runs);
            assert!((0.015..=LEVEL + 0.011).contains(&share), "{looks} looks: {share}");
        }
    }

    #[test]
    fn fewer_than_three_rounds_give_no_estimate() {
        for design in [Design::ONCE, most()] {
            assert_eq!(compare(design, &[]), None);
            assert_eq!(compare(design, &[1.0, 1.1]), None);
            assert!(compare(design, &[1.0, 1.1, 0.9]).is_some());
        }
    }

    #[test]
    fn a_look_keeps_the_result_of_an_earlier_one() {
        let clear = [1.0, 1.001, 0.999];
        let early = compare(most(), &clear).unwrap();
        let muddied = [&clear[..], &[-3.0, 2.0, -2.5]].concat();
        let later = compare(most(), &muddied).unwrap();
        assert!(early.p < 1e-4 && later.p == early.p && later.low < 0.0);
        assert!(compare(Design::ONCE, &muddied).unwrap().p > 0.05);
        // Looking has a price: the same rounds give a wider interval.
        let once = compare(Design::ONCE, &clear).unwrap();
        assert!(early.low < once.low && early.high > once.high && early.p > once.p);
    }

    #[test]
    fn a_look_that_is_taken_early_has_the_share_of_the_next() {
        let five = compare(Design::with_looks(3), &[0.1, 0.2, 0.15, 0.12, 0.3]).unwrap();
        assert_eq!(five.level, LEVEL * LAST);
        assert_eq!(five.level, LEVEL * Design::with_looks(3).share_after(5));
        assert_eq!(Design::with_looks(3).share_after(50), Design::with_looks(3).share_after(6));
        assert_eq!(Design::ONCE.share_after(50), 1.0);
    }

    #[test]
    fn the_shares_of_all_looks_are_the_whole() {
        for looks in 1..=LOOKS.len() as u32 {
            let design = Design::with_looks(looks);
            let all: f64 = (1..=looks).map(|look| design.share(look)).sum();
            assert!((all - 1.0).abs() < 1e-12, "{looks}: {all}");
        }
    }

    #[test]
    fn a_design_that_ends_earlier_may_spend_more_at_each_look() {
        for looks in 2..=LOOKS.len() as u32 {
            for last in 1..looks {
                let (whole, ended) = (Design::with_looks(looks), Design::with_looks(last));
                assert_eq!(whole.ending_after(LOOKS[last as usize - 1]), ended);
                for look in 1..=last {
                    assert!(ended.share(look) >= whole.share(look), "look {look} of {looks} and of {last}");
                }
            }
        }
        assert_eq!(Design::with_looks(4).ending_after(300), Design::with_looks(4));
        assert_eq!(most().ending_after(12), Design::with_looks(5));
    }

    #[test]
    fn rounds_that_a_comparison_missed_are_no_looks() {
        // It stopped after round 4 and continued at 20, so the looks are those at 3, 4 and 29, and the last.
        let differences = [0, 1, 2, 3, 20, 21, 22, 30].map(|round| (round, f64::from(round % 3)));
        let known = most().compare(&panel(&differences), 0, 1, 0.0).unwrap();
        let p =
            |n: usize| Location::of(&differences[..n].iter().map(|x| x.1).collect::<Vec<_>>()).unwrap().p();
        let looks = [(3, 1), (4, 2), (7, 7), (8, 8)];
        let least = looks.into_iter().map(|(n, look)| p(n) / most().share(look)).fold(1.0, f64::min);
        assert!((known.p - least).abs() < 1e-12, "{} {least}", known.p);
    }

    #[test]
    fn what_can_be_shown_shrinks_with_rounds_and_grows_with_comparisons() {
        let least = |rounds, comparisons| Design::ONCE.detectable(rounds, comparisons, 0.1).unwrap();
        assert_eq!(Design::ONCE.detectable(2, 1, 0.1), None);
        assert!(least(3, 5) > least(3, 1) && least(3, 5) > least(6, 5) && least(6, 5) > least(10, 5));
        // One comparison of six rounds, five degrees of freedom: (2.571 + 0.920) standard errors of 0.1 * sqrt(1/3).
        assert!((least(6, 1) - 3.491 * 0.1 / 3.0_f64.sqrt()).abs() < 1e-3, "{}", least(6, 1));
    }

    #[test]
    fn looks_come_one_after_another() {
        let looks_of = |design: Design| {
            let next = |rounds: &u32| design.next_look(*rounds);
            std::iter::successors(next(&0), next).collect::<Vec<u32>>()
        };
        assert_eq!(looks_of(most()), LOOKS);
        assert_eq!(looks_of(Design::with_looks(3)), [3, 4, 6]);
        assert!(looks_of(Design::ONCE).is_empty());
    }
}
