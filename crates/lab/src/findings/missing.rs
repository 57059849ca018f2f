//! Why a figure is not compared, as a value. `report` has the sentence.

use measurement::RANKED_ERRORS;
use measurement::doubt::{Doubt, Evidence};
use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::experiment::Figure;
use crate::plan::Setup;

/// The factor on the answers that a percentile needs, because some requests may fail or be late.
pub const SPARE: f64 = 1.1;

/// Why a scenario's figure is not compared with others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It has no trial yet.
    NotRun,
    /// Every trial failed. The experiment's `failures` say why.
    Failed,
    /// No answer was right.
    NothingRight {
        /// The most frequent class of failures, and how many there are of all. None if no operation ended.
        errors: Option<(String, u64)>,
    },
    /// Too many operations failed.
    Errors {
        /// The failed operations as a share of those that ended, 0..=1.
        share: f64,
        /// The most frequent class.
        class: String,
    },
    /// The client's and the server's counts contradict each other.
    CountsDisagree,
    /// A doubt about its trials disqualifies it.
    Doubted(Evidence),
    /// The figure is a percentile, and the trials have too few answers for it.
    TooFewAnswers {
        /// How many answers all trials need together.
        needed: u64,
        /// How many they had.
        had: u64,
        /// How many seconds a trial must last to have enough.
        longer_s: f64,
    },
    /// The figure is a count that the kernel did not give.
    NotCounted,
    /// No answer of the usual trial was within the limits of good answers.
    NothingGood,
    /// No trial has the figure, or it is zero.
    NoFigure,
}

impl Missing {
    /// Whether more or longer trials, or another network, may bring the figure: then it says nothing against the server.
    fn is_open(&self) -> bool {
        match self {
            Self::NotRun | Self::TooFewAnswers { .. } => true,
            // Arrivals are dropped where connections hang.
            Self::Doubted(Evidence::Behind { dropped, .. }) => *dropped == 0,
            Self::Doubted(evidence) => evidence.doubt() == Doubt::PathBound,
            Self::Failed | Self::NothingRight { .. } | Self::Errors { .. } | Self::CountsDisagree => false,
            Self::NotCounted | Self::NothingGood | Self::NoFigure => false,
        }
    }
}

impl Estimate {
    /// Whether only the measurement may leave its figure open: no trial failed, and answers are not few because callers starved.
    pub(super) fn is_open(&self, setup: &Setup, figure: Figure) -> bool {
        let starved = self.doubts.contains_key(&Doubt::Starved);
        self.failed == 0
            && match self.missing(setup, figure) {
                None => true,
                Some(Missing::TooFewAnswers { .. }) => !starved,
                Some(why) => why.is_open(),
            }
    }

    /// Why the estimate is not compared. None if it is.
    pub fn missing(&self, setup: &Setup, figure: Figure) -> Option<Missing> {
        if self.compares() {
            return None;
        }
        let most = self.errors.iter().max_by_key(|(_, count)| **count);
        let class = most.map(|(class, _)| class.clone());
        let doubt = self.doubts.iter().find(|(doubt, _)| self.is_barred_by(**doubt));
        let metered = setup.ask.as_ref().is_some_and(|ask| ask.meter.is_some());
        let percentile = figure.percentile().filter(|_| !metered).and_then(stats::samples_needed);
        Some(match (doubt, percentile) {
            _ if self.trials == 0 && self.failed == 0 => Missing::NotRun,
            _ if self.trials == 0 => Missing::Failed,
            _ if self.successes == 0 => {
                let all = self.errors.values().sum();
                Missing::NothingRight { errors: class.map(|class| (class, all)) }
            }
            _ if self.unexplained_share() > RANKED_ERRORS => {
                Missing::Errors { share: self.error_share, class: class.unwrap_or_default() }
            }
            _ if self.counts_agree == Some(false) => Missing::CountsDisagree,
            (Some((_, evidence)), _) => Missing::Doubted(evidence.clone()),
            (None, Some(needed)) if self.figure.is_none() => {
                let had = self.successes;
                let longer_s = setup.timing.measure_s * SPARE * needed as f64 / had.max(1) as f64;
                Missing::TooFewAnswers { needed, had, longer_s }
            }
            _ if figure.needs_counts() => Missing::NotCounted,
            _ if figure == Figure::GoodPerS && self.figure == Some(0.0) => Missing::NothingGood,
            _ => Missing::NoFigure,
        })
    }
}
