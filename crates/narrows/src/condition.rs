//! The short names of figures, and conditions of `--fail-if`: bounds on a figure, or on its ratio to that of a baseline.
//! `compare`, `try` and `tune` share them.

use clap::ValueEnum;
use lab::experiment::Figure;
use lab::findings::{Estimate, Ratio, Unit};
use load::Slo;
use report::number::{exact_times, show};
use report::{Case, Grade};
use stats::LEVEL;
use systems::Workload;

use crate::common;

/// The name of the cases of conditions.
pub const SUITE: &str = "fail-if";

/// The exit code if a condition holds, or if a scenario cannot be judged.
pub const FAILED: u8 = 3;

/// What a condition limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    /// The ratio of operations per second; of figures that are times, the inverse.
    Throughput,
    /// The ratio of the time per operation; of figures that are rates, the inverse.
    Time,
    /// The ratio of this figure, as a number.
    Of(FigureChoice),
}

/// A figure, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FigureChoice {
    /// Requests or frames per second.
    Rate,
    /// The highest rate of requests at which --slo holds.
    MaxRate,
    /// The median of response times.
    P50,
    /// The 99th percentile of response times.
    P99,
    /// CPU time of the system for each request or frame.
    Cpu,
    /// System calls for each request or frame.
    Calls,
    /// Instructions for each request or frame.
    Instructions,
    /// The largest proportional set size.
    Memory,
}

impl FigureChoice {
    /// The figure in a workload.
    pub fn figure(self, workload: Workload) -> Figure {
        match self {
            Self::Rate if workload == Workload::Frames => Figure::FramesPerS,
            Self::Rate => Figure::RequestsPerS,
            Self::MaxRate => Figure::MaxRate,
            Self::P50 => Figure::P50Us,
            Self::P99 => Figure::P99Us,
            Self::Cpu => Figure::CpuPerUnit,
            Self::Calls => Figure::CallsPerUnit,
            Self::Instructions => Figure::InstructionsPerUnit,
            Self::Memory => Figure::MemoryBytes,
        }
    }

    /// The figures that are asked for: those of `--figure`, or the highest rate if there is an objective alone. Empty if
    /// neither is given.
    ///
    /// # Errors
    /// Figures that exclude each other, or lack something.
    pub fn asked(figures: &[Self], slo: Option<&Slo>) -> Result<Vec<Self>, String> {
        if figures
            .iter()
            .enumerate()
            .any(|(index, figure)| figures.iter().take(index).any(|other| other == figure))
        {
            return Err("--figure names a figure twice".to_owned());
        }
        let asked = if figures.is_empty() && slo.is_some() { vec![Self::MaxRate] } else { figures.to_vec() };
        match (asked.contains(&Self::MaxRate), slo) {
            (true, None) => {
                Err("--figure max-rate needs its objective, such as --slo 'p99<20ms,errors<0.1%'".to_owned())
            }
            (true, _) if asked.contains(&Self::Rate) => {
                Err("--figure: rate is measured at saturation, and max-rate below it: \
                                                            leave one of them out"
                    .to_owned())
            }
            _ => Ok(asked),
        }
    }

    /// Whether it is measured below saturation. At saturation a system may batch its work or queue it, and both change
    /// what one request costs.
    pub fn is_below_saturation(self) -> bool {
        !matches!(self, Self::Rate | Self::MaxRate | Self::Memory)
    }

    /// What its figure is measured in, with the unit's names and their sizes in the unit of [`Quantity`]. None for counts.
    fn quantity(self) -> Option<&'static Quantity> {
        match self {
            Self::Rate | Self::MaxRate => Some(&RATE),
            Self::P50 | Self::P99 | Self::Cpu => Some(&TIME),
            Self::Memory => Some(&MEMORY),
            Self::Calls | Self::Instructions => None,
        }
    }

    /// Whether it names this figure in some workload.
    fn covers(self, figure: Figure) -> bool {
        match self {
            Self::Rate => figure.more_is_better() && figure != Figure::MaxRate,
            cost => cost.figure(Workload::Requests) == figure,
        }
    }
}

/// Something that is measured: an example of it, and the names of its units with their sizes in the first one.
struct Quantity {
    example: &'static str,
    units: &'static [(&'static str, f64)],
}

const TIME: Quantity = Quantity {
    example: "20ms",
    units: &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)],
};
const RATE: Quantity =
    Quantity { example: "10k/s", units: &[("/s", 1.0), ("k/s", 1e3), ("K/s", 1e3), ("M/s", 1e6)] };
const MEMORY: Quantity = Quantity {
    example: "500MB",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
};

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// The ratio to the baseline.
    Ratio(f64),
    /// The figure itself, in seconds, operations a second or bytes.
    Figure(f64),
}

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As the user wrote it.
    pub text: String,
    metric: Metric,
    below: bool,
    bound: Bound,
}

/// Whether a condition is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Certainly,
    CertainlyNot,
    Perhaps,
}

impl Met {
    fn grade(self) -> Grade {
        match self {
            Self::Certainly => Grade::Worse,
            Self::CertainlyNot => Grade::Fine,
            Self::Perhaps => Grade::Open,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Certainly => "",
            Self::CertainlyNot => "certainly not ",
            Self::Perhaps => "not certainly ",
        }
    }
}

impl Condition {
    /// Parses `rate<0.97`, `cpu>1.03` or `p99>20ms`.
    ///
    /// # Errors
    /// What is wrong, and the form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = FigureChoice::value_variants().iter().filter_map(FigureChoice::to_possible_value);
        let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        let wrong = |problem: String| {
            format!(
                "--fail-if {text:?}: {problem}; write a ratio to the baseline, such as throughput<0.97, time>1.1 or cpu>1.03, or a \
                 value with its unit, such as p99>20ms, rate<10k/s or memory>500MB"
            )
        };
        let text = text.trim();
        let Some((metric, bound)) = text.split_once(['<', '>']) else {
            return Err(wrong("< or > is missing".to_owned()));
        };
        let below = text.split_once('<').is_some_and(|(before, _)| before == metric);
        let metric = match metric.trim() {
            "throughput" => Metric::Throughput,
            "time" => Metric::Time,
            name => match FigureChoice::from_str(name, false) {
                Ok(figure) => Metric::Of(figure),
                Err(_) => {
                    let names = names.join(", ");
                    return Err(wrong(format!("it must begin with throughput, time, {names}")));
                }
            },
        };
        let bound = metric.bound(bound.trim()).map_err(wrong)?;
        Ok(Self { text: text.to_owned(), metric, below, bound })
    }

    /// Parses all conditions of a command line.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn all(texts: &[String]) -> Result<Vec<Self>, String> {
        texts.iter().map(|text| Self::parse(text)).collect()
    }

    /// Whether it limits the ratio to a baseline, and not the figure itself.
    pub fn needs_baseline(&self) -> bool {
        matches!(self.bound, Bound::Ratio(_))
    }

    /// Whether the condition is about this figure.
    pub fn is_about(&self, figure: Figure) -> bool {
        match self.metric {
            Metric::Throughput | Metric::Time => !figure.is_cost(),
            Metric::Of(choice) => choice.covers(figure),
        }
    }

    /// The ratio that the condition limits, from one that says how many times better a figure is than the baseline.
    fn own(&self, figure: Figure, ratio: Ratio) -> Ratio {
        let better_is_more = match self.metric {
            Metric::Throughput => true,
            Metric::Time => false,
            Metric::Of(_) => figure.more_is_better(),
        };
        if better_is_more { ratio } else { ratio.inverse() }
    }

    /// The condition on a scenario, as a case for CI. The ratio and `p` are those of [`Self::met`]; without a ratio, it cannot
    /// be judged.
    pub fn case(&self, scenario: &str, figure: Figure, ratio: Option<Ratio>, p: Option<f64>) -> Case {
        let found = ratio.map(|ratio| {
            let shown = exact_times(self.own(figure, ratio).estimate);
            (self.met(figure, ratio, p), format!("{shown} of the baseline's {}", figure.name()))
        });
        self.case_of(scenario, found)
    }

    /// The condition on the figure of a row, as a case for CI.
    pub fn case_of_row(&self, scenario: &str, figure: Figure, row: &Estimate) -> Case {
        let unit = Unit::of(figure);
        let found = self.met_by_row(figure, row).and_then(|met| {
            let ((low, high), value) = (row.interval?, row.figure?);
            let [value, low, high] = [value, low, high].map(|value| show(value, unit));
            Some((met, format!("{} {value} [{low}, {high}]", figure.name())))
        });
        self.case_of(scenario, found)
    }

    fn case_of(&self, scenario: &str, found: Option<(Met, String)>) -> Case {
        let (grade, words) = match found {
            Some((met, found)) => (met.grade(), format!("{scenario}: {found}: {}{}", met.words(), self.text)),
            None => (Grade::Unjudged, format!("{scenario}: {}", self.text)),
        };
        Case { suite: SUITE.to_owned(), name: format!("{}: {scenario}", self.text), grade, words }
    }

    /// The case of a condition about figures that nothing was compared in.
    pub fn without_comparison(&self) -> Case {
        let words = format!("nothing was compared: {}", self.text);
        Case { suite: SUITE.to_owned(), name: self.text.clone(), grade: Grade::Unjudged, words }
    }

    /// Whether a figure certainly meets the condition: its whole interval is beyond the bound. The ratio says how many times
    /// better it is than the baseline, and `p` whether the two differ.
    pub fn holds(&self, figure: Figure, ratio: Ratio, p: Option<f64>) -> bool {
        self.met(figure, ratio, p) == Met::Certainly
    }

    fn met(&self, figure: Figure, ratio: Ratio, p: Option<f64>) -> Met {
        let Bound::Ratio(bound) = self.bound else { return Met::Perhaps };
        let ratio = self.own(figure, ratio);
        let met = self.beyond((ratio.low, ratio.high), bound);
        // A bound on the other side of 1 does not need a significant difference.
        let trivial = if self.below { bound > 1.0 } else { bound < 1.0 };
        match met {
            Met::Certainly if !trivial && p.is_none_or(|p| p > LEVEL) => Met::Perhaps,
            met => met,
        }
    }

    /// Whether the figure of a row meets the condition. None if it has no figure with an interval that can be judged.
    fn met_by_row(&self, figure: Figure, row: &Estimate) -> Option<Met> {
        let Bound::Figure(bound) = self.bound else { return None };
        let interval = row.interval.filter(|_| row.compares())?;
        // The unit in which the figure is measured, in that of the bound.
        let unit = match Unit::of(figure) {
            Unit::Microseconds => 1e-6,
            Unit::Milliseconds => 1e-3,
            _ => 1.0,
        };
        // What the generator held back may be better than it looks.
        let (low, high) = match (row.is_lower_bound(), figure.more_is_better()) {
            (true, true) => (interval.0 * unit, f64::INFINITY),
            (true, false) => (0.0, interval.1 * unit),
            (false, _) => (interval.0 * unit, interval.1 * unit),
        };
        Some(self.beyond((low, high), bound))
    }

    fn beyond(&self, (low, high): (f64, f64), bound: f64) -> Met {
        let (certainly, certainly_not) =
            if self.below { (high < bound, low >= bound) } else { (low > bound, high <= bound) };
        match (certainly, certainly_not) {
            (true, _) => Met::Certainly,
            (_, true) => Met::CertainlyNot,
            _ => Met::Perhaps,
        }
    }
}

impl Metric {
    /// Reads a bound: a ratio, or a value with its unit.
    fn bound(self, text: &str) -> Result<Bound, String> {
        let positive =
            |text: &str| text.parse::<f64>().ok().filter(|bound| bound.is_finite() && *bound > 0.0);
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number = positive(number).ok_or_else(|| "the bound must be a number above 0".to_owned())?;
        let unit = unit.trim();
        if unit.is_empty() {
            return Ok(Bound::Ratio(number));
        }
        let quantity = match self {
            Self::Of(choice) => choice.quantity(),
            Self::Throughput | Self::Time => None,
        };
        let quantity = quantity.ok_or_else(|| match self {
            Self::Of(_) => format!("this figure has no unit {unit}: its bound is a ratio"),
            _ => format!("throughput and time are ratios: {text} can limit a figure, such as rate or p99"),
        })?;
        match quantity.units.iter().find(|(name, _)| *name == unit) {
            Some((_, size)) => Ok(Bound::Figure(number * size)),
            None => {
                let names: Vec<&str> = quantity.units.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "{unit} is none of its units, which are {}: {}",
                    names.join(", "),
                    quantity.example
                ))
            }
        }
    }
}

/// Says what failed, what is not decided and what cannot be judged, a line each. Whether a case does not pass.
pub fn say_failed(cases: &[Case]) -> bool {
    for case in cases {
        match case.grade {
            Grade::Worse => common::say(format_args!("failed: {}", case.words)),
            Grade::Unjudged => common::say(format_args!("cannot be judged: {}", case.words)),
            Grade::Open => common::say(format_args!("inconclusive: {}", case.words)),
            Grade::Fine => {}
        }
    }
    cases.iter().any(|case| matches!(case.grade, Grade::Worse | Grade::Unjudged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_as_users_write_them() {
        let good = Condition::parse(" throughput < 0.97 ").unwrap();
        assert_eq!((good.metric, good.below, good.bound), (Metric::Throughput, true, Bound::Ratio(0.97)));
        assert_eq!(Condition::parse("time>1.1").unwrap().metric, Metric::Time);
        assert!(Condition::parse("cpu>1.03").unwrap().is_about(Figure::CpuPerUnit));
        assert!(!Condition::parse("cpu>1.03").unwrap().is_about(Figure::P99Us));
        assert!(!Condition::parse("time>1.1").unwrap().is_about(Figure::MemoryBytes));
        for bad in ["", "throughput", "throughput<", "throughput<x", "speed<1", "time>-1", "time>inf", "<0.9"]
        {
            assert!(Condition::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_with_its_unit_limits_the_figure_itself() {
        for (text, bound) in [
            ("p99>20ms", 0.02),
            ("p50 < 500 us", 0.0005),
            ("cpu>1.5s", 1.5),
            ("rate<10k/s", 10_000.0),
            ("max-rate<250/s", 250.0),
            ("memory>500MB", 5e8),
            ("memory>1GiB", 1_073_741_824.0),
        ] {
            assert_eq!(Condition::parse(text).expect(text).bound, Bound::Figure(bound), "{text}");
        }
        for (text, why) in [
            ("p99>20", "a ratio"),
            ("p99>20k/s", "s, ms, us"),
            ("rate<10ms", "/s, k/s"),
            ("memory>5ms", "B, kB"),
            ("calls>3ms", "this figure has no unit ms"),
            ("time>3ms", "throughput and time are ratios"),
            ("p99>ms", "a number above 0"),
            ("p99>0ms", "a number above 0"),
        ] {
            match Condition::parse(text) {
                Ok(condition) => assert!(condition.needs_baseline() && why == "a ratio", "{text}"),
                Err(error) => assert!(error.contains(why), "{text}: {error}"),
            }
        }
    }

    #[test]
    fn an_interval_around_a_bound_decides_nothing() {
        let met = |text: &str, interval| {
            let condition = Condition::parse(text).expect(text);
            let Bound::Figure(bound) = condition.bound else { panic!("{text}") };
            condition.beyond(interval, bound)
        };
        assert_eq!(met("p99>20ms", (0.021, 0.03)), Met::Certainly);
        assert_eq!(met("p99>20ms", (0.01, 0.03)), Met::Perhaps);
        assert_eq!(met("p99>20ms", (0.01, 0.02)), Met::CertainlyNot);
        assert_eq!(met("rate<10k/s", (8e3, 9e3)), Met::Certainly);
        assert_eq!(met("rate<10k/s", (9e3, f64::INFINITY)), Met::Perhaps);
        assert_eq!(met("rate<10k/s", (10e3, 11e3)), Met::CertainlyNot);
    }

    #[test]
    fn a_condition_is_about_the_figure_as_a_number() {
        let ratio = |low: f64, estimate: f64, high: f64| Ratio { estimate, low, high };
        let holds =
            |text: &str, figure, ratio| Condition::parse(text).unwrap().holds(figure, ratio, Some(0.01));
        // 0.8 times as good means 1.25 times the CPU time.
        let worse = ratio(0.78, 0.8, 0.82);
        assert!(holds("cpu>1.03", Figure::CpuPerUnit, worse));
        assert!(!holds("cpu>1.25", Figure::CpuPerUnit, worse));
        assert!(!holds("cpu<0.97", Figure::CpuPerUnit, worse));
        assert!(holds("rate<0.97", Figure::RequestsPerS, worse));
        assert!(holds("throughput<0.97", Figure::P99Us, worse));
        assert!(!Condition::parse("cpu>1.03").unwrap().holds(Figure::CpuPerUnit, worse, Some(0.2)));
        assert!(!holds("cpu>1.03", Figure::CpuPerUnit, ratio(0.9, 0.96, 1.02)));
    }
}
