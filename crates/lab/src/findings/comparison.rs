//! Compares two scenarios within rounds: how many times better one is, with an interval and a verdict.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stats::{Design, FEWEST_ROUNDS, Family, LEVEL, Location, LogRatio, Verdict, holm};
use systems::Point;

use super::Rows;
use super::asked::{Asked, By, CLIFF, SharedPoint, asked};
use super::withheld::{Withheld, withheld};
use super::{Compared, Estimate, Missing, estimate};
use crate::experiment::Figure;
use crate::observation::{Observation, Scenario};
use crate::plan::{Planned, Setup, View};

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The estimate: the exponential of the trimmed mean of the rounds' log-ratios.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Ratio {
    /// Makes a ratio from logarithms.
    pub fn of_logs(estimate: f64, low: f64, high: f64) -> Self {
        // Larger exponents give infinity, which JSON cannot represent.
        let finite = |log: f64| log.clamp(-700.0, 700.0).exp();
        Self { estimate: finite(estimate), low: finite(low), high: finite(high) }
    }

    /// Whether its interval is too wide to be called knowledge.
    pub fn is_hardly_measured(&self) -> bool {
        is_hardly_measured(self.low, self.high)
    }

    /// The ratio of the second to the first.
    pub fn inverse(&self) -> Self {
        Self { estimate: 1.0 / self.estimate, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// The ratio of the better to the worse, which is at least 1.
    pub fn upwards(&self) -> Self {
        if self.estimate < 1.0 { self.inverse() } else { *self }
    }
}

/// Whether the ends of an interval, both above zero, are a factor of ten or more apart.
pub fn is_hardly_measured(low: f64, high: f64) -> bool {
    high >= 10.0 * low
}

/// The noise of a run: the yardstick compared with itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseFloor {
    /// Rounds in which the yardstick and its twin ran.
    pub rounds: u32,
    /// The ratio of the yardstick to its twin, although both are the same.
    pub ratio: Ratio,
    /// The end of the interval that is farther from 1.
    pub smallest: f64,
}

/// One of the comparisons that the experiment asks for. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The scenario that is compared.
    pub scenario: usize,
    /// The scenario that it is compared with.
    pub against: usize,
    /// What differs between the two.
    pub by: By,
    /// Rounds in which both have a figure.
    pub rounds: u32,
    /// How many times better the first is than the second, whether more or less of the figure is better. None if there
    /// are fewer than three rounds.
    pub ratio: Option<Ratio>,
    /// For a `step`: the ratio divided by what the additional work explains. A cliff is far below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// The p-value, corrected for looks and for the number of comparisons.
    pub p: Option<f64>,
    /// Whether the ratio is a lower bound, because the generator held the better scenario back.
    pub at_least: bool,
    /// Why it is undecided although more rounds would not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// The verdict. For a `step` it says whether more is lost than the additional work explains.
    pub verdict: Verdict,
}

impl Comparison {
    /// Whether the two can be compared, now or with more rounds.
    pub fn is_possible(&self) -> bool {
        self.ratio.is_some() || self.verdict != Verdict::Undecided { more_rounds: None }
    }

    /// The two scenarios, the better first. None if the verdict does not say which that is.
    pub fn better_first(&self) -> Option<[usize; 2]> {
        match self.verdict {
            Verdict::Faster => Some([self.scenario, self.against]),
            Verdict::Slower => Some([self.against, self.scenario]),
            Verdict::NoDifference | Verdict::Undecided { .. } => None,
        }
    }

    /// The ratio, unless its interval says nothing of the truth.
    pub fn known(&self) -> Option<Ratio> {
        self.ratio.filter(|_| !self.withheld.is_some_and(Withheld::denies_the_interval))
    }

    /// Whether it sets a scenario beside the base: another system beside that of the base, or values of a knob. `against` is what it
    /// compares with.
    pub(super) fn is_beside_base(&self, setup: &Setup, against: &Scenario) -> bool {
        setup
            .base
            .as_ref()
            .is_some_and(|base| self.by != By::System || against.system == base.scenario.system)
    }

    /// Whether this is a step that loses far more than the additional work explains ([`CLIFF`]).
    pub fn is_cliff(&self) -> bool {
        self.verdict == Verdict::Slower
            && self.excess.is_some_and(|excess| matches!(self.by, By::Step(_)) && excess <= 1.0 / CLIFF)
    }
}

/// What a comparison shows that the plan did not ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// See [`Comparison::ratio`].
    pub ratio: Option<Ratio>,
    /// See [`Comparison::at_least`].
    pub at_least: bool,
    /// See [`Comparison::withheld`].
    pub withheld: Option<Withheld>,
    /// Why the first of the two has no figure to compare, and why the second has none.
    pub missing: [Option<Missing>; 2],
    /// The verdict.
    pub verdict: Verdict,
}

/// Compares pairs of scenarios, given by position, with what differs between them. They are judged together, and once.
pub(crate) fn judge(
    planned: &View<'_>,
    observations: &[&Observation],
    pairs: &[(usize, usize, By)],
) -> Vec<Judged> {
    let (estimates, rows) = estimate::estimates(planned, Design::ONCE, observations);
    let threshold = planned.threshold.ln_1p();
    let asked = pairs.iter().cloned();
    let asked =
        asked.map(|(scenario, against, by)| Asked { scenario, against, by, expected: 0.0, threshold });
    let seen = see(&estimates, &rows, asked.collect());
    let mut p = holm(&p_values(&seen)).into_iter();
    let all = judged(seen, &mut p, &estimates).into_iter();
    all.map(|Comparison { scenario, against, ratio, at_least, withheld, verdict, .. }| Judged {
        ratio,
        at_least,
        withheld,
        missing: [scenario, against].map(|at| estimates[at].missing(planned, planned.figure)),
        verdict,
    })
    .collect()
}

/// The logarithm of how many times better `a` is than `b`, for each round that both have. The machine drifts between
/// rounds, so figures of different rounds are not compared.
pub fn log_ratios(figure: Figure, a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> Vec<(u32, f64)> {
    let both = a.iter().filter_map(|(round, a)| Some((*round, figure.advantage(*a, *b.get(round)?).ln())));
    both.filter(|(_, ratio)| ratio.is_finite()).collect()
}

/// Compares the yardstick with its twin.
pub(super) fn floor(
    planned: &View<'_>,
    estimates: &[Estimate],
    observations: &[&Observation],
) -> Option<NoiseFloor> {
    let yardstick = estimates.iter().find(|e| planned.is_yardstick(&e.scenario))?;
    let twin = estimate::twin(planned, observations);
    let ratios: Vec<f64> =
        log_ratios(planned.figure, &yardstick.by_round, &twin).into_iter().map(|(_, ratio)| ratio).collect();
    let location = Location::of(&ratios).filter(|_| ratios.len() >= FEWEST_ROUNDS)?;
    let (low, high) = location.within(2.0 * yardstick.bound()).interval(LEVEL);
    Some(NoiseFloor {
        rounds: ratios.len() as u32,
        ratio: Ratio::of_logs(location.estimate, low, high),
        smallest: low.abs().max(high.abs()).exp(),
    })
}

/// Makes every comparison that these experiments and figures ask for. The promise holds for all of them together.
pub(super) fn compare(together: &mut [&mut Compared<'_>]) {
    let seen = |c: &Compared| see(&c.estimates, &c.rows, asked(&c.planned));
    let all: Vec<SeenPairs> = together.iter().map(|c| seen(c)).collect();
    let families = together.iter().zip(&all).map(|(c, seen)| family(&c.planned, seen));
    let family = families.reduce(|one, other| one.and(&other)).unwrap_or(Family::unrelated(0));
    let p: Vec<f64> = all.iter().flat_map(|seen| p_values(seen)).collect();
    let mut p = family.correct(&p).into_iter();
    for (compared, seen) in together.iter_mut().zip(all) {
        compared.comparisons = judged(seen, &mut p, &compared.estimates);
    }
}

/// Comparisons with what the rounds show, if the two can be compared.
type SeenPairs = Vec<(Asked, Option<LogRatio>)>;

fn p_values(seen: &[(Asked, Option<LogRatio>)]) -> Vec<f64> {
    seen.iter().filter_map(|(_, seen)| Some(seen.as_ref()?.p)).collect()
}

fn see(estimates: &[Estimate], rows: &Rows, asked: Vec<Asked>) -> SeenPairs {
    let compare = |asked: Asked| {
        let comparable = estimates[asked.scenario].compares() && estimates[asked.against].compares();
        let seen = rows.compare(asked.scenario, asked.against, asked.expected).filter(|_| comparable);
        (asked, seen)
    };
    asked.into_iter().map(compare).collect()
}

/// Judges what was seen. `p` has the corrected p-values, one for each pair that can be compared.
fn judged(seen: SeenPairs, p: &mut impl Iterator<Item = f64>, estimates: &[Estimate]) -> Vec<Comparison> {
    let judged = seen.into_iter().map(|(asked, seen)| {
        let seen = seen.and_then(|seen| Some((seen, p.next()?)));
        comparison(asked, seen, estimates)
    });
    judged.collect()
}

/// The comparisons that could be made, as statements that are judged together. Systems are compared in all pairs at each
/// point.
fn family(planned: &Planned, seen: &[(Asked, Option<LogRatio>)]) -> Family {
    let mut unrelated = 0;
    let mut points: BTreeMap<Point, (usize, BTreeSet<usize>)> = BTreeMap::new();
    let of_point = SharedPoint::new(planned);
    for (asked, _) in seen.iter().filter(|(_, seen)| seen.is_some()) {
        if asked.by != By::System {
            unrelated += 1;
            continue;
        }
        let shared = of_point.of(&planned.scenarios[asked.scenario]);
        let (pairs, systems) = points.entry(shared).or_default();
        *pairs += 1;
        systems.extend([asked.scenario, asked.against]);
    }
    points.values().fold(Family::unrelated(unrelated), |family, (pairs, systems)| {
        let all = Family::pairs(systems.len());
        family.and(&if all.size() == *pairs { all } else { Family::unrelated(*pairs) })
    })
}

fn comparison(asked: Asked, seen: Option<(LogRatio, f64)>, estimates: &[Estimate]) -> Comparison {
    let Asked { scenario, against, by, expected, threshold } = asked;
    let (a, b) = (&estimates[scenario], &estimates[against]);
    let rounds = a.by_round.keys().filter(|round| b.by_round.contains_key(round)).count() as u32;
    let hopeless = Verdict::Undecided { more_rounds: None };
    let judged = seen.map(|(seen, p)| seen.verdict(threshold, p));
    let withheld =
        judged.zip(seen).and_then(|(judged, (seen, _))| withheld(judged, &seen, threshold, (a, b)));
    let verdict = match judged {
        Some(_) if withheld.is_some() => hopeless,
        Some(verdict) => verdict,
        None if a.compares() && b.compares() => {
            Verdict::Undecided { more_rounds: Some((FEWEST_ROUNDS as u32).saturating_sub(rounds).max(1)) }
        }
        None => hopeless,
    };
    let at_least = match verdict {
        Verdict::Faster => a.is_lower_bound(),
        Verdict::Slower => b.is_lower_bound(),
        _ => false,
    };
    let p = seen.map(|(_, p)| p);
    let seen = seen.map(|(seen, _)| seen);
    let ratio =
        seen.map(|s| Ratio::of_logs(s.location.estimate + expected, s.low + expected, s.high + expected));
    let step = matches!(by, By::Step(_));
    let excess = seen.filter(|_| step).map(|s| s.location.estimate.exp());
    Comparison { scenario, against, by, rounds, ratio, excess, p, at_least, withheld, verdict }
}
