//! Judges the conditions of a plan: whether each scenario that a condition limits certainly meets it.
//!
//! What is tested is the bound, and not whether there is a difference: the same test as that of the comparisons, shifted to the
//! bound. A condition is met if the whole interval lies beyond the bound and its p-value at the bound is small, corrected for
//! everything that the plan's conditions limit (Holm). It is excluded if the whole interval lies on the other side. Intervals and
//! p-values hold at all looks together, so rounds may go on until all of them are decided.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, LogRatio, Verdict, holm};

use super::withheld::{Withheld, withheld};
use super::{Compared, Comparison, Estimate, Ratio};
use crate::condition::Condition;
use crate::experiment::Figure;
use crate::plan::Plan;

/// Whether a condition is met. What speaks most against it comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConditionOutcome {
    /// The scenario cannot be judged, because its server failed or gave wrong answers, or because it has no such figure.
    Unjudged,
    /// It is certainly not met: the whole interval lies on the other side of the bound.
    Excluded,
    /// Neither is certain, or the measurement does not allow a judgement.
    Inconclusive,
    /// It is certainly met.
    Met,
}

/// A condition of the plan, and what it limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// The condition.
    pub condition: Condition,
    /// The scenarios that it limits. None if nothing was compared.
    pub scenarios: Vec<Gated>,
}

/// A scenario that a condition limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gated {
    /// The position of its experiment in the findings.
    pub experiment: usize,
    /// The position of its figure in those of the experiment.
    pub figure: usize,
    /// The position of the scenario in that figure's estimates.
    pub scenario: usize,
    /// Whether the condition is met.
    #[serde(flatten)]
    pub tested: Tested,
}

/// The result of a test at the bound of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tested {
    /// What is limited, as the condition counts it: the ratio to the baseline, or the figure in its own unit. Of several builds, of
    /// the one that speaks most against the condition. Null if it cannot be judged.
    pub seen: Option<Ratio>,
    /// The p-value at the bound, corrected for looks and for everything that is limited. Null if it cannot be judged.
    pub p: Option<f64>,
    /// Why it cannot be judged although there is an interval. Null otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// Whether the condition is met.
    pub answer: ConditionOutcome,
}

impl Tested {
    /// Beyond which estimate an inconclusive condition would certainly be met, if the interval were as wide. None if the bound is
    /// outside the interval.
    pub fn certain_beyond(&self, condition: &Condition, figure: Figure) -> Option<f64> {
        let Ratio { estimate, low, high } =
            self.seen.filter(|_| self.answer == ConditionOutcome::Inconclusive)?;
        let bound = condition.bound_of(figure);
        let beyond = bound * estimate / if condition.below { high } else { low };
        ((low..=high).contains(&bound) && beyond.is_finite() && beyond > 0.0).then_some(beyond)
    }
}

/// A test at the bound of a condition.
pub(crate) struct Test<'a> {
    pub condition: &'a Condition,
    pub figure: Figure,
    /// What each build shows. The condition is met if every build meets it.
    pub builds: Vec<Shown>,
}

/// What one build shows of a test.
#[derive(Default)]
pub(crate) struct Shown {
    /// How much better than the bound, as a logarithm, and what is seen. None if it cannot be judged.
    pub above: Option<(LogRatio, Ratio)>,
    /// Why, if there is an interval nevertheless.
    pub withheld: Option<Withheld>,
    /// Whether more rounds may change the answer.
    pub grows: bool,
    /// Without a judgement: whether only the measurement is the reason, such as too few rounds or a rate near the limit.
    pub open: bool,
}

/// Carries out tests together.
pub(crate) fn test(tests: &[Test<'_>]) -> Vec<Tested> {
    let p: Vec<f64> = tests.iter().filter_map(Test::p).collect();
    let mut p = holm(&p).into_iter();
    tests.iter().map(|test| test.judged(test.p().and_then(|_| p.next()))).collect()
}

impl Test<'_> {
    /// The p-value at the bound. All builds must meet the condition, so it is the largest of theirs.
    fn p(&self) -> Option<f64> {
        let p: Option<Vec<f64>> = self.builds.iter().map(|shown| Some(shown.above.as_ref()?.0.p)).collect();
        p?.into_iter().reduce(f64::max)
    }

    fn judged(&self, p: Option<f64>) -> Tested {
        let worse = self.condition.is_met_by_worse(self.figure);
        let answer = |shown: &Shown| {
            let Some((above, _)) = &shown.above else {
                // Noise must not look like a failure of the server.
                return if shown.open { ConditionOutcome::Inconclusive } else { ConditionOutcome::Unjudged };
            };
            let (beyond, excluded) = if worse {
                (above.high < 0.0, above.low >= 0.0)
            } else {
                (above.low > 0.0, above.high <= 0.0)
            };
            match (beyond, excluded) {
                (true, _) if p.is_some_and(|p| p <= LEVEL) => ConditionOutcome::Met,
                (_, true) => ConditionOutcome::Excluded,
                _ => ConditionOutcome::Inconclusive,
            }
        };
        let of_builds = self.builds.iter().map(|shown| (answer(shown), shown));
        let Some((answer, shown)) = of_builds.min_by_key(|(answer, _)| *answer) else {
            return Tested { seen: None, p: None, withheld: None, answer: ConditionOutcome::Unjudged };
        };
        let seen = shown.above.as_ref().map(|(_, seen)| *seen);
        Tested { seen, p, withheld: shown.withheld, answer }
    }
}

/// A test of the plan's conditions, and where it belongs.
struct PlannedTest<'a> {
    condition: usize,
    /// The positions of the experiment and of those that repeat it with other builds.
    experiments: Vec<usize>,
    figure: usize,
    scenario: usize,
    test: Test<'a>,
}

/// The conditions of the plan, judged.
pub(super) fn gates(plan: &Plan, compared: &[Vec<Compared<'_>>]) -> Vec<Gate> {
    let places = places(plan, compared);
    let (places, tests): (Vec<_>, Vec<Test>) =
        places.into_iter().map(|p| ((p.condition, p.experiments[0], p.figure, p.scenario), p.test)).unzip();
    let gate = |condition: &Condition| Gate { condition: condition.clone(), scenarios: Vec::new() };
    let mut gates: Vec<Gate> = plan.conditions.iter().map(gate).collect();
    for ((condition, experiment, figure, scenario), tested) in places.into_iter().zip(test(&tests)) {
        let Some(gate) = gates.get_mut(condition) else { continue };
        gate.scenarios.push(Gated { experiment, figure, scenario, tested });
    }
    gates
}

/// For each experiment that a condition limits, by position, whether more rounds may decide one.
pub(super) fn undecided(plan: &Plan, compared: &[Vec<Compared<'_>>]) -> BTreeMap<usize, bool> {
    let mut found = BTreeMap::new();
    let (places, tests): (Vec<_>, Vec<Test>) =
        places(plan, compared).into_iter().map(|place| (place.experiments, place.test)).unzip();
    for ((experiments, one), tested) in places.iter().zip(&tests).zip(test(&tests)) {
        let decided = matches!(tested.answer, ConditionOutcome::Met | ConditionOutcome::Excluded);
        let open = !decided && one.builds.iter().any(|shown| shown.grows);
        experiments.iter().for_each(|experiment| *found.entry(*experiment).or_insert(false) |= open);
    }
    found
}

/// Everything that the conditions limit. One on a ratio sets systems beside that of the base, and values of a knob beside that of
/// the base. One on a figure judges each scenario by itself.
fn places<'a>(plan: &'a Plan, compared: &[Vec<Compared<'_>>]) -> Vec<PlannedTest<'a>> {
    let mut places = Vec::new();
    let repeated = repeated(compared);
    for (index, condition) in plan.conditions.iter().enumerate() {
        let about = |(.., c): &(usize, usize, &Compared)| {
            c.planned.repeats.is_none() && condition.is_about(c.planned.figure)
        };
        let experiments = compared.iter().enumerate();
        let all =
            experiments.flat_map(|(at, figures)| figures.iter().enumerate().map(move |(of, c)| (at, of, c)));
        for (at, figure, first) in all.filter(about) {
            let others = repeated
                .get(&(first.planned.name.as_str(), first.planned.figure.name()))
                .into_iter()
                .flatten();
            let (experiments, builds): (Vec<usize>, Vec<&Compared>) =
                std::iter::once((at, first)).chain(others.copied()).unzip();
            let mut place = |scenario: usize, shown: &dyn Fn(&Compared) -> Option<Shown>| {
                let shown = builds.iter().map(|build| shown(build).unwrap_or_default()).collect();
                let test = Test { condition, figure: first.planned.figure, builds: shown };
                let experiments = experiments.clone();
                places.push(PlannedTest { condition: index, experiments, figure, scenario, test });
            };
            if !condition.needs_baseline() {
                for row in 0..first.estimates.len() {
                    place(row, &|build| Some(of_row(build, row, condition)));
                }
                continue;
            }
            for (pair, c) in first.comparisons.iter().enumerate() {
                if c.is_beside_base(&first.planned, &first.estimates[c.against].scenario) {
                    let shown =
                        |build: &Compared| Some(of_pair(build, build.comparisons.get(pair)?, condition));
                    place(c.scenario, &shown);
                }
            }
        }
    }
    places
}

/// The figures of the experiments that repeat others with other builds, each with the position of its experiment: by the name of what
/// is repeated, and by figure.
type Repeated<'a> = BTreeMap<(&'a str, &'static str), Vec<(usize, &'a Compared<'a>)>>;

fn repeated<'a>(compared: &'a [Vec<Compared<'a>>]) -> Repeated<'a> {
    let mut repeated = Repeated::new();
    for (at, c) in compared.iter().enumerate().flat_map(|(at, figures)| figures.iter().map(move |c| (at, c)))
    {
        if let Some(first) = &c.planned.planned.repeats {
            repeated.entry((first, c.planned.figure.name())).or_default().push((at, c));
        }
    }
    repeated
}

/// What one build shows of a scenario beside the baseline.
fn of_pair(build: &Compared<'_>, c: &Comparison, condition: &Condition) -> Shown {
    let both = (&build.estimates[c.scenario], &build.estimates[c.against]);
    let figure = build.planned.figure;
    let Some((above, ratio)) = build.rows.compare(c.scenario, c.against, condition.edge(figure)).zip(c.ratio)
    else {
        // Too few rounds so far; or errors, or no figure.
        let grows = matches!(c.verdict, Verdict::Undecided { more_rounds: Some(_) });
        let is_open = |row: &Estimate| row.is_open(&build.planned, figure);
        return Shown { grows, open: is_open(both.0) && is_open(both.1), ..Shown::default() };
    };
    let beyond = match above {
        _ if above.low > 0.0 => Verdict::Faster,
        _ if above.high < 0.0 => Verdict::Slower,
        _ => Verdict::Undecided { more_rounds: None },
    };
    let why = withheld(beyond, &above, build.planned.threshold.ln_1p(), both);
    // Figures of a queue say nothing, whatever the bound.
    let why = why.filter(|why| why.denies_the_interval());
    let why = why.or(c.withheld.filter(|why| *why == Withheld::Overdriven));
    let seen = if condition.more_is_better(figure) { ratio } else { ratio.inverse() };
    let above = why.is_none().then_some((above, seen));
    Shown { above, withheld: why, grows: why.is_none(), open: true }
}

/// What one build shows of a scenario's own figure.
fn of_row(build: &Compared<'_>, row: usize, condition: &Condition) -> Shown {
    let Compared { rows, planned, estimates, .. } = build;
    let estimate: &Estimate = &estimates[row];
    let edge = condition.edge(planned.figure);
    let Some(mut above) = rows.mean(row, edge).filter(|_| estimate.compares()) else {
        return Shown {
            grows: estimate.compares() && estimate.by_round.len() < FEWEST_ROUNDS,
            open: estimate.is_open(planned, planned.figure),
            ..Shown::default()
        };
    };
    let (low, high) = rows.in_its_unit(above.low + edge, above.high + edge);
    let figure = estimate.figure.unwrap_or(f64::NAN);
    // The figure follows the comparisons, and the interval is that of the row alone.
    let seen = Ratio { estimate: figure, low: low.min(figure), high: high.max(figure) };
    if estimate.is_lower_bound() {
        // What the generator held back may be better than it looks.
        above.high = f64::INFINITY;
    }
    // Response times count from when a request was due, so that a queue is a part of them. Other figures are then those of a queue.
    let over = build.overdriven.get(row).is_some_and(|over| *over) && planned.figure.percentile().is_none();
    let withheld = over.then_some(Withheld::Overdriven);
    Shown { above: (!over).then_some((above, seen)), withheld, grows: !over, open: true }
}

#[cfg(test)]
mod tests {
    use stats::{Location, Noise};

    use super::*;
    use crate::condition::{Bound, Limited};
    use crate::findings::findings;
    use crate::observation::{Failure, Stage};
    use crate::session::{Fake, Rule};
    use crate::simulation::{arms, observed};

    fn condition(of: Limited, below: bool, bound: f64) -> Condition {
        Condition { text: String::new(), of, below, bound: Bound::Ratio(bound) }
    }

    /// An interval of how many times better a scenario is than the baseline, with its p-value at the bound.
    fn shown(condition: &Condition, figure: Figure, (low, high): (f64, f64), p: f64) -> Shown {
        let edge = condition.edge(figure);
        let estimate = (low * high).sqrt();
        let location = Location { estimate: estimate.ln() - edge, error: 0.1, df: 5.0, n: 6, bound: 0.0 };
        let above = LogRatio { location, low: low.ln() - edge, high: high.ln() - edge, level: LEVEL, p };
        Shown { above: Some((above, Ratio { estimate, low, high })), withheld: None, grows: true, open: true }
    }

    /// A test with what each build shows.
    type Case<'a> = (&'a Condition, Figure, Vec<((f64, f64), f64)>);

    fn answers(tests: &[Case<'_>]) -> Vec<ConditionOutcome> {
        let tests = tests.iter().map(|(condition, figure, builds)| {
            let builds = builds.iter().map(|(interval, p)| shown(condition, *figure, *interval, *p));
            Test { condition, figure: *figure, builds: builds.collect() }
        });
        test(&tests.collect::<Vec<_>>()).into_iter().map(|tested| tested.answer).collect()
    }

    #[test]
    fn an_interval_beyond_the_bound_decides() {
        let cpu = |below, bound| condition(Limited::Figure(Figure::CpuPerUnit), below, bound);
        let rate = |bound| condition(Limited::Rate, true, bound);
        // 0.8 times as good means 1.25 times the CPU time.
        let worse = (0.78, 0.82);
        for (condition, figure, interval, answer) in [
            (cpu(false, 1.03), Figure::CpuPerUnit, worse, ConditionOutcome::Met),
            (cpu(false, 1.25), Figure::CpuPerUnit, worse, ConditionOutcome::Inconclusive),
            (cpu(false, 1.30), Figure::CpuPerUnit, worse, ConditionOutcome::Excluded),
            (cpu(true, 0.97), Figure::CpuPerUnit, worse, ConditionOutcome::Excluded),
            (rate(0.97), Figure::RequestsPerS, worse, ConditionOutcome::Met),
            (rate(0.70), Figure::RequestsPerS, worse, ConditionOutcome::Excluded),
            (rate(1.50), Figure::RequestsPerS, (0.9, 1.1), ConditionOutcome::Met),
            (condition(Limited::Time, false, 1.1), Figure::RequestsPerS, worse, ConditionOutcome::Met),
            (condition(Limited::Throughput, true, 0.97), Figure::P99Us, worse, ConditionOutcome::Met),
            (cpu(false, 1.03), Figure::CpuPerUnit, (0.9, 1.02), ConditionOutcome::Inconclusive),
        ] {
            let found = answers(&[(&condition, figure, vec![(interval, 0.01)])]);
            assert_eq!(found, [answer], "{condition:?}");
        }
    }

    #[test]
    fn p_values_at_the_bounds_are_corrected_together() {
        let (rate, figure) = (condition(Limited::Rate, true, 0.95), Figure::RequestsPerS);
        let one = |p| (&rate, figure, vec![((0.8, 0.9), p)]);
        assert_eq!(answers(&[one(0.03)]), [ConditionOutcome::Met]);
        assert_eq!(answers(&[one(0.03), one(0.04)]), [ConditionOutcome::Inconclusive; 2]);
        assert_eq!(answers(&[one(0.03), one(0.02)]), [ConditionOutcome::Met; 2]);
        // What is certainly not met takes its place in the order.
        let excluded = (&rate, figure, vec![((0.99, 1.01), 1e-9)]);
        assert_eq!(answers(&[excluded, one(0.03)]), [ConditionOutcome::Excluded, ConditionOutcome::Met]);
    }

    #[test]
    fn an_interval_with_the_bound_says_what_would_be_certain() {
        let tested = |answer, (estimate, low, high)| Tested {
            seen: Some(Ratio { estimate, low, high }),
            p: Some(0.1),
            withheld: None,
            answer,
        };
        let open = |seen| tested(ConditionOutcome::Inconclusive, seen);
        let below = condition(Limited::Throughput, true, 0.9);
        let near = |beyond: Option<f64>, right: f64| {
            beyond.is_some_and(|beyond| (beyond / right - 1.0).abs() < 1e-9)
        };
        let figure = Figure::RequestsPerS;
        assert!(near(open((1.0, 0.8, 1.25)).certain_beyond(&below, figure), 0.72));
        // The bound is in seconds, and a p99 is measured in microseconds.
        let above =
            Condition { bound: Bound::Figure(0.02), ..condition(Limited::Figure(Figure::P99Us), false, 0.0) };
        assert!(near(open((20e3, 10e3, 40e3)).certain_beyond(&above, Figure::P99Us), 40e3));
        // Only p-values are why others are open, and an interval without an end says nothing.
        for seen in [(0.82, 0.8, 0.85), (1.0, 0.95, 1.05), (1.0, 0.8, f64::INFINITY)] {
            assert_eq!(open(seen).certain_beyond(&below, figure), None, "{seen:?}");
        }
        assert_eq!(tested(ConditionOutcome::Met, (1.0, 0.8, 1.25)).certain_beyond(&below, figure), None);
    }

    #[test]
    fn every_build_must_meet_a_condition() {
        let (rate, figure) = (condition(Limited::Rate, true, 0.95), Figure::RequestsPerS);
        let [worse, open, better] = [((0.8, 0.9), 0.001), ((0.8, 1.0), 0.4), ((0.97, 1.1), 0.001)];
        for (builds, answer) in [
            (vec![worse, worse], ConditionOutcome::Met),
            (vec![worse, open], ConditionOutcome::Inconclusive),
            (vec![worse, better, open], ConditionOutcome::Excluded),
        ] {
            assert_eq!(answers(&[(&rate, figure, builds)]), [answer]);
        }
        for (open, answer) in [(false, ConditionOutcome::Unjudged), (true, ConditionOutcome::Inconclusive)] {
            let unknown = Test {
                condition: &rate,
                figure,
                builds: vec![shown(&rate, figure, worse.0, worse.1), Shown { open, ..Shown::default() }],
            };
            assert_eq!(test(&[unknown])[0].answer, answer);
        }
    }

    #[test]
    fn only_the_measurement_leaves_a_condition_open() {
        let fails = Failure { stage: Stage::Drive, reason: "it ended".to_owned(), output: String::new() };
        let rule = |rounds: &[u32]| Rule {
            system: Some("arm1".to_owned()),
            rounds: Some(rounds.to_vec()),
            fail: Some(fails.clone()),
            ..Rule::default()
        };
        for (rounds, failing, answer) in [
            (2, &[][..], ConditionOutcome::Inconclusive),
            (6, &[0, 1, 2, 3], ConditionOutcome::Unjudged),
            (6, &[0, 1, 2, 3, 4, 5], ConditionOutcome::Unjudged),
            (6, &[0], ConditionOutcome::Excluded),
        ] {
            let mut plan = arms(2, rounds, 1);
            plan.conditions = vec![condition(Limited::Rate, true, 0.5)];
            let noise = Noise { spread: 0.01, ..Noise::SHARED_MACHINE };
            let seen = observed(&plan, Fake::new(1e6, vec![rule(failing)], noise, 1));
            let gates = findings(&plan, &seen).gates;
            assert_eq!(gates[0].scenarios[0].tested.answer, answer, "{rounds} rounds, {failing:?} fail");
        }
    }
}
