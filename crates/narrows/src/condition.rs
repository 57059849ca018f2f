//! The short names of figures, and conditions of `--fail-if`: bounds on a figure, or on its ratio to that of a baseline.
//! `compare`, `try` and `tune` share them.

use std::process::ExitCode;

use clap::ValueEnum;
use lab::condition::{Bound, Condition, Limited};
use lab::experiment::Figure;
use load::Slo;
use report::{Case, Grade};
use serde::{Deserialize, Serialize};
use systems::Workload;

use crate::common::{self, Usage};

/// The exit code if a condition is met, or if a scenario cannot be judged.
const FAILED: u8 = 3;

/// The exit code if a condition is neither certainly met nor excluded.
const INCONCLUSIVE: u8 = 4;

/// A figure, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FigureChoice {
    /// Requests or frames per second.
    Rate,
    /// The highest rate of requests at which --slo holds.
    MaxRate,
    /// The median of response times.
    P50,
    /// The 99th percentile of response times.
    P99,
    /// The median time to the first byte of an answer that comes in parts (TTFB).
    FirstByte,
    /// The median time to the first event of a stream that is not empty; in OpenAI's interface to the first content or reasoning
    /// (TTFT).
    FirstEvent,
    /// The 99th percentile of these times.
    FirstEventP99,
    /// The median gap between two reads with events of a stream, of all streams together (vLLM's ITL, AIPerf's ICL).
    Gap,
    /// The 99th percentile of these gaps.
    GapP99,
    /// The median of the longest gap of each stream.
    LongestGap,
    /// The median time of a whole answer.
    Whole,
    /// Events for each read that brings any: 1 if each event is sent by itself.
    EventsPerRead,
    /// Events of streams per second.
    Events,
    /// Answers per second that meet all limits of --slo, such as first-event<200ms,gap.p99<50ms,whole<5s.
    Goodput,
    /// CPU time of the system for each request or frame.
    Cpu,
    /// System calls for each request or frame.
    Calls,
    /// Instructions for each request or frame.
    Instructions,
    /// The largest proportional set size.
    Memory,
    /// The time from the start of the program to its first right answer.
    Start,
    /// The time of the first request to a new process.
    FirstRequest,
    /// The proportional set size when it is ready, before any load.
    IdleMemory,
    /// The CPU time in a second without load, which each trial waits for.
    IdleCpu,
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
            Self::FirstByte => Figure::FirstByteUs,
            Self::FirstEvent => Figure::FirstEventUs,
            Self::FirstEventP99 => Figure::FirstEventP99Us,
            Self::Gap => Figure::GapUs,
            Self::GapP99 => Figure::GapP99Us,
            Self::LongestGap => Figure::LongestGapUs,
            Self::Whole => Figure::WholeUs,
            Self::EventsPerRead => Figure::EventsPerRead,
            Self::Events => Figure::EventsPerS,
            Self::Goodput => Figure::GoodPerS,
            Self::Cpu => Figure::CpuPerUnit,
            Self::Calls => Figure::CallsPerUnit,
            Self::Instructions => Figure::InstructionsPerUnit,
            Self::Memory => Figure::MemoryBytes,
            Self::Start => Figure::StartMs,
            Self::FirstRequest => Figure::FirstRequestUs,
            Self::IdleMemory => Figure::IdleMemoryBytes,
            Self::IdleCpu => Figure::IdleCpu,
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
        let objective = slo.is_some_and(|slo| !slo.objectives().is_empty());
        let goal = slo.is_some_and(|slo| slo.goal().is_some());
        let asked = match (figures, objective, goal) {
            ([], true, _) => vec![Self::MaxRate],
            ([], false, true) => vec![Self::Goodput],
            _ => figures.to_vec(),
        };
        let wrong = if objective && goal {
            "--slo has limits of single answers, which are for goodput, and objectives of all answers, which are for \
             max-rate: leave one kind out"
        } else if asked.contains(&Self::Goodput) && !goal {
            "--figure goodput needs its limits, such as --slo 'first-event<200ms,gap.p99<50ms,whole<5s'"
        } else if asked.contains(&Self::MaxRate) && !objective {
            "--figure max-rate needs its objective, such as --slo 'p99<20ms,errors<0.1%'"
        } else if asked.contains(&Self::MaxRate) && asked.contains(&Self::Rate) {
            "--figure: rate is measured at saturation, and max-rate below it: leave one of them out"
        } else {
            return Ok(asked);
        };
        Err(wrong.to_owned())
    }

    /// Whether it is measured below saturation. At saturation a system may batch its work or queue it, and both change
    /// what one request costs.
    pub fn is_below_saturation(self) -> bool {
        let figure = self.figure(Workload::Requests);
        let anywhere = figure.is_of_streams() || figure.is_before_load();
        !anywhere && !matches!(self, Self::Rate | Self::MaxRate | Self::Memory)
    }

    /// What its figure is measured in, with the unit's names and their sizes in the unit of [`Quantity`]. None for counts.
    fn quantity(self) -> Option<&'static Quantity> {
        match self {
            Self::Rate | Self::MaxRate => Some(&RATE),
            Self::P50 | Self::P99 | Self::Cpu => Some(&TIME),
            Self::Start | Self::FirstRequest => Some(&TIME),
            Self::Memory | Self::IdleMemory => Some(&MEMORY),
            Self::Events | Self::Goodput => Some(&RATE),
            Self::FirstByte | Self::FirstEvent | Self::FirstEventP99 | Self::Gap | Self::GapP99 => {
                Some(&TIME)
            }
            Self::LongestGap | Self::Whole => Some(&TIME),
            Self::Calls | Self::Instructions | Self::EventsPerRead | Self::IdleCpu => None,
        }
    }

    /// What a condition on it limits, in any workload.
    fn limited(self) -> Limited {
        match self {
            Self::Rate => Limited::Rate,
            other => Limited::Figure(other.figure(Workload::Requests)),
        }
    }
}

/// Why a rate decides nothing where `--rate` says how many requests arrive.
pub fn offered(rate: &str, everywhere: &str) -> Usage {
    Usage(format!(
        "--rate says how many requests arrive, so {rate} would be the same {everywhere}: leave --rate out, or choose --figure p99 \
         or cpu"
    ))
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

/// Reads a condition: `rate<0.97`, `cpu>1.03` or `p99>20ms`.
///
/// # Errors
/// What is wrong, and the form.
fn parse(text: &str) -> Result<Condition, String> {
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
    let (of, choice) = match metric.trim() {
        "throughput" => (Limited::Throughput, None),
        "time" => (Limited::Time, None),
        name => match FigureChoice::from_str(name, false) {
            Ok(figure) => (figure.limited(), Some(figure)),
            Err(_) => {
                let names = names.join(", ");
                return Err(wrong(format!("it must begin with throughput, time, {names}")));
            }
        },
    };
    let bound = read_bound(choice, bound.trim()).map_err(wrong)?;
    Ok(Condition { text: text.to_owned(), of, below, bound })
}

/// Reads all conditions of a command line.
///
/// # Errors
/// The first that is wrong.
pub fn conditions(texts: &[String]) -> Result<Vec<Condition>, String> {
    texts.iter().map(|text| parse(text)).collect()
}

/// Reads a bound: a ratio, or a value with its unit. `choice` is the figure that is limited, unless it is any.
fn read_bound(choice: Option<FigureChoice>, text: &str) -> Result<Bound, String> {
    let positive = |text: &str| text.parse::<f64>().ok().filter(|bound| bound.is_finite() && *bound > 0.0);
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number = positive(number).ok_or_else(|| "the bound must be a number above 0".to_owned())?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Ok(Bound::Ratio(number));
    }
    let quantity = choice.and_then(FigureChoice::quantity).ok_or_else(|| match choice {
        Some(_) => format!("this figure has no unit {unit}: its bound is a ratio"),
        None => format!("throughput and time are ratios: {text} can limit a figure, such as rate or p99"),
    })?;
    match quantity.units.iter().find(|(name, _)| *name == unit) {
        Some((_, size)) => Ok(Bound::Figure(number * size)),
        None => {
            let names: Vec<&str> = quantity.units.iter().map(|(name, _)| *name).collect();
            Err(format!("{unit} is none of its units, which are {}: {}", names.join(", "), quantity.example))
        }
    }
}

/// What becomes of a condition that is neither certainly met nor excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Inconclusive {
    /// Exit with code 0.
    Pass,
    /// Exit with code 3, as if the condition were met.
    Fail,
}

/// Says what failed, what is inconclusive and what cannot be judged, a line each, and what may decide. `cases` are those of
/// conditions. Returns the exit code.
pub fn conclude(cases: &[Case], inconclusive: Option<Inconclusive>, remedy: &str) -> ExitCode {
    let has = |grade: Grade| cases.iter().any(|case| case.grade == grade);
    for case in cases {
        match case.grade {
            Grade::Worse => common::say(format_args!("failed: {}", case.words)),
            Grade::Unjudged => common::say(format_args!("cannot be judged: {}", case.words)),
            Grade::Inconclusive => common::say(&case.words),
            Grade::Open | Grade::Fine => {}
        }
    }
    if has(Grade::Inconclusive) && inconclusive.is_none() {
        common::say(format_args!(
            "inconclusive is no pass: {remedy}, and --inconclusive pass or fail chooses the exit code"
        ));
    }
    match inconclusive {
        _ if has(Grade::Worse) || has(Grade::Unjudged) => ExitCode::from(FAILED),
        None if has(Grade::Inconclusive) => ExitCode::from(INCONCLUSIVE),
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_as_users_write_them() {
        let good = parse(" throughput < 0.97 ").unwrap();
        assert_eq!((good.of, good.below, good.bound), (Limited::Throughput, true, Bound::Ratio(0.97)));
        assert_eq!(parse("time>1.1").unwrap().of, Limited::Time);
        assert_eq!(parse("rate<0.9").unwrap().of, Limited::Rate);
        assert_eq!(parse("cpu>1.03").unwrap().of, Limited::Figure(Figure::CpuPerUnit));
        for bad in ["", "throughput", "throughput<", "throughput<x", "speed<1", "time>-1", "time>inf", "<0.9"]
        {
            assert!(parse(bad).is_err(), "{bad}");
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
            assert_eq!(parse(text).expect(text).bound, Bound::Figure(bound), "{text}");
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
            match parse(text) {
                Ok(condition) => assert!(condition.needs_baseline() && why == "a ratio", "{text}"),
                Err(error) => assert!(error.contains(why), "{text}: {error}"),
            }
        }
    }
}
