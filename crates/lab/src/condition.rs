//! Conditions of a gate: bounds on a figure, or on its ratio to that of a baseline. They are part of a plan, whose rounds go on
//! until each of them is decided. Pure. `findings::conditions` judges them.

use serde::{Deserialize, Serialize};

use crate::experiment::Figure;

/// A condition, which fails a gate if it is certainly met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// As the user wrote it.
    pub text: String,
    /// What it limits.
    pub of: Limited,
    /// Whether it is met below the bound. Otherwise it is met above.
    pub below: bool,
    /// The bound.
    pub bound: Bound,
}

/// What a condition limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Operations per second; of figures that are times, the inverse.
    Throughput,
    /// The time per operation; of figures that are rates, the inverse.
    Time,
    /// What a closed loop reaches, in whichever unit the workload has.
    Rate,
    /// This figure, as a number.
    Figure(Figure),
}

/// The bound of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Of the ratio to the baseline.
    Ratio(f64),
    /// Of the figure itself, in seconds, operations a second or bytes.
    Figure(f64),
}

impl Condition {
    /// Whether it limits the ratio to a baseline, and not the figure itself.
    pub fn needs_baseline(&self) -> bool {
        matches!(self.bound, Bound::Ratio(_))
    }

    /// Whether it is about this figure.
    pub fn is_about(&self, figure: Figure) -> bool {
        match self.of {
            Limited::Throughput | Limited::Time => !figure.is_cost(),
            Limited::Rate => figure.more_is_better() && figure != Figure::MaxRate,
            Limited::Figure(of) => of == figure,
        }
    }

    /// Whether more of what it limits is better.
    pub fn more_is_better(&self, figure: Figure) -> bool {
        match self.of {
            Limited::Throughput => true,
            Limited::Time => false,
            Limited::Rate | Limited::Figure(_) => figure.more_is_better(),
        }
    }

    /// Where the bound lies: the logarithm of how many times better than the baseline, or than one unit of the figure, a scenario at
    /// the bound is.
    pub(crate) fn edge(&self, figure: Figure) -> f64 {
        let log = self.bound_of(figure).ln();
        if self.more_is_better(figure) { log } else { -log }
    }

    /// The bound: a ratio, or a value in the unit of the figure.
    pub(crate) fn bound_of(&self, figure: Figure) -> f64 {
        match self.bound {
            Bound::Ratio(bound) => bound,
            Bound::Figure(bound) => bound / unit(figure),
        }
    }

    /// Whether a scenario that is worse than the bound meets it. Otherwise one that is better does.
    pub(crate) fn is_met_by_worse(&self, figure: Figure) -> bool {
        self.below == self.more_is_better(figure)
    }
}

/// The unit in which a figure is measured, in that of a bound.
fn unit(figure: Figure) -> f64 {
    match figure {
        Figure::P50Us | Figure::P99Us | Figure::FirstRequestUs => 1e-6,
        Figure::MsPerUpload | Figure::StartMs => 1e-3,
        figure if figure.is_time_of_answer() => 1e-6,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(of: Limited, below: bool, bound: Bound) -> Condition {
        Condition { text: String::new(), of, below, bound }
    }

    #[test]
    fn a_bound_lies_where_a_scenario_is_so_much_better() {
        let ratio = |of, below| condition(of, below, Bound::Ratio(2.0));
        for (of, figure, edge) in [
            (Limited::Rate, Figure::RequestsPerS, 2.0),
            (Limited::Throughput, Figure::P99Us, 2.0),
            (Limited::Time, Figure::RequestsPerS, 0.5),
            (Limited::Figure(Figure::CpuPerUnit), Figure::CpuPerUnit, 0.5),
        ] {
            assert_eq!(ratio(of, true).edge(figure), f64::ln(edge), "{of:?}");
            assert_eq!(ratio(of, true).is_met_by_worse(figure), edge > 1.0, "{of:?}");
            assert_ne!(ratio(of, false).is_met_by_worse(figure), edge > 1.0, "{of:?}");
        }
        // 20 ms are 20,000 of the unit in which a p99 is measured, and less is better.
        let limit = condition(Limited::Figure(Figure::P99Us), false, Bound::Figure(0.02));
        assert!((limit.edge(Figure::P99Us) + f64::ln(20_000.0)).abs() < 1e-9);
        assert!(limit.is_met_by_worse(Figure::P99Us) && !limit.needs_baseline());
    }

    #[test]
    fn a_condition_is_about_its_figures() {
        let about = |of: Limited, figure| condition(of, true, Bound::Ratio(0.9)).is_about(figure);
        assert!(about(Limited::Rate, Figure::FramesPerS) && !about(Limited::Rate, Figure::MaxRate));
        assert!(about(Limited::Time, Figure::P99Us) && !about(Limited::Time, Figure::MemoryBytes));
        assert!(about(Limited::Figure(Figure::CpuPerUnit), Figure::CpuPerUnit));
        assert!(!about(Limited::Figure(Figure::CpuPerUnit), Figure::P99Us));
    }
}
