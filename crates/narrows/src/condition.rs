//! The short names of figures, and conditions of `--fail-if`: bounds on the ratio of a figure to that of a baseline. `compare`,
//! `try` and `tune` share them.

use clap::ValueEnum;
use lab::experiment::Figure;
use lab::findings::Ratio;
use load::Slo;
use report::number::exact_times;
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

    /// Whether it names this figure in some workload.
    fn covers(self, figure: Figure) -> bool {
        match self {
            Self::Rate => figure.more_is_better() && figure != Figure::MaxRate,
            cost => cost.figure(Workload::Requests) == figure,
        }
    }
}

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As the user wrote it.
    pub text: String,
    metric: Metric,
    below: bool,
    bound: f64,
}

impl Condition {
    /// Parses `rate<0.97` or `cpu>1.03`.
    ///
    /// # Errors
    /// What is wrong, and the form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = FigureChoice::value_variants().iter().filter_map(FigureChoice::to_possible_value);
        let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        let wrong = |problem: &str| {
            Err(format!(
                "--fail-if {text:?}: {problem}; write a ratio to the baseline such as throughput<0.97, time>1.1 or cpu>1.03"
            ))
        };
        let text = text.trim();
        let Some((metric, bound)) = text.split_once(['<', '>']) else { return wrong("< or > is missing") };
        let below = text.split_once('<').is_some_and(|(before, _)| before == metric);
        let metric = match metric.trim() {
            "throughput" => Metric::Throughput,
            "time" => Metric::Time,
            name => match FigureChoice::from_str(name, false) {
                Ok(figure) => Metric::Of(figure),
                Err(_) => {
                    return wrong(&format!("it must begin with throughput, time, {}", names.join(", ")));
                }
            },
        };
        match bound.trim().parse::<f64>() {
            Ok(bound) if bound.is_finite() && bound > 0.0 => {
                Ok(Self { text: text.to_owned(), metric, below, bound })
            }
            _ => wrong("the bound must be a number above 0"),
        }
    }

    /// Parses all conditions of a command line.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn all(texts: &[String]) -> Result<Vec<Self>, String> {
        texts.iter().map(|text| Self::parse(text)).collect()
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

    /// The condition on a scenario, as a case for CI. The ratio and `p` are those of [`Self::holds`]; without a ratio, it cannot
    /// be judged.
    pub fn case(&self, scenario: &str, figure: Figure, ratio: Option<Ratio>, p: Option<f64>) -> Case {
        let (grade, words) = match ratio {
            Some(ratio) => {
                let holds = self.holds(figure, ratio, p);
                let ratio = exact_times(self.own(figure, ratio).estimate);
                let (grade, or) = if holds { (Grade::Worse, "") } else { (Grade::Fine, "not certainly ") };
                let figure = figure.name();
                (grade, format!("{scenario}: {ratio} of the baseline's {figure}: {or}{}", self.text))
            }
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
        let ratio = self.own(figure, ratio);
        let beyond = if self.below { ratio.high < self.bound } else { ratio.low > self.bound };
        // A bound on the other side of 1 does not need a significant difference.
        let trivial = if self.below { self.bound > 1.0 } else { self.bound < 1.0 };
        beyond && (trivial || p.is_some_and(|p| p <= LEVEL))
    }
}

/// Says what failed and what cannot be judged, a line each. Whether there was anything.
pub fn say_failed(cases: &[Case]) -> bool {
    for case in cases {
        match case.grade {
            Grade::Worse => common::say(format_args!("failed: {}", case.words)),
            Grade::Unjudged => common::say(format_args!("cannot be judged: {}", case.words)),
            Grade::Open | Grade::Fine => {}
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
        assert_eq!((good.metric, good.below, good.bound), (Metric::Throughput, true, 0.97));
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
