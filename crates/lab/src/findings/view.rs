//! The findings of an experiment as its readers take them: one figure after the other.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::{
    Beside, Claim, Comparison, CpuDifference, Effect, Estimate, ExperimentFindings, FigureTable, Findings,
    Missing, NoiseFloor, Outlier, Shared, Snippet, Warning, WithoutFigure,
};
use crate::experiment::Figure;

/// An experiment's findings as one of its figures sees them.
#[derive(Debug, Clone, Copy)]
pub struct FigureView<'a> {
    /// What the experiment's figures share.
    pub shared: &'a Shared,
    /// See [`super::FigureFindings::figure`].
    pub figure: Figure,
    /// See [`super::FigureFindings::noise_floor`].
    pub noise_floor: Option<NoiseFloor>,
    /// See [`super::FigureFindings::claims`].
    pub claims: &'a [Claim],
    /// See [`super::FigureFindings::comparisons`].
    pub comparisons: &'a [Comparison],
    /// See [`super::FigureFindings::effects`].
    pub effects: &'a [Effect],
    /// See [`super::FigureFindings::outliers`].
    pub outliers: &'a [Outlier],
    /// See [`super::FigureFindings::tables`].
    pub tables: &'a [FigureTable],
    /// See [`super::FigureFindings::estimates`].
    pub estimates: &'a [Estimate],
    /// See [`super::FigureFindings::beside`].
    pub beside: &'a [Beside],
    /// See [`super::FigureFindings::warnings`].
    pub warnings: &'a [Warning],
    /// See [`super::FigureFindings::without_figure`].
    pub without_figure: &'a [WithoutFigure],
    /// See [`super::FigureFindings::snippets`].
    pub snippets: &'a [Snippet],
}

impl Findings {
    /// All experiments as each of their figures sees them.
    pub fn views(&self) -> impl DoubleEndedIterator<Item = FigureView<'_>> {
        self.experiments.iter().flat_map(ExperimentFindings::views)
    }
}

impl ExperimentFindings {
    /// The experiment as each of its figures sees it.
    pub fn views(&self) -> impl DoubleEndedIterator<Item = FigureView<'_>> {
        (0..self.figures.len()).map(|at| self.view(at))
    }

    /// The experiment as the figure at a position sees it.
    pub fn view(&self, at: usize) -> FigureView<'_> {
        let of = &self.figures[at];
        FigureView {
            shared: &self.shared,
            figure: of.figure,
            noise_floor: of.noise_floor,
            claims: &of.claims,
            comparisons: &of.comparisons,
            effects: &of.effects,
            outliers: &of.outliers,
            tables: &of.tables,
            estimates: &of.estimates,
            beside: &of.beside,
            warnings: &of.warnings,
            without_figure: &of.without_figure,
            snippets: &of.snippets,
        }
    }
}

impl<'a> FigureView<'a> {
    /// Who needs more CPU time, or which function takes more, of two that no figure tells apart. None if the comparison is undecided
    /// for another reason than that trials vary, and of what a system needs itself.
    pub fn open_cpu(&self, c: &Comparison) -> Option<&'a CpuDifference> {
        let mut open = self.shared.cpu.iter().filter(|cpu| cpu.open);
        let cpu = open.find(|cpu| cpu.is_between(c.scenario, c.against))?;
        (c.withheld.is_none() && !self.figure.is_cost()).then_some(cpu)
    }

    /// Why nothing can be compared: each scenario that is asked about and has no figure that may be compared, with the reason.
    pub fn missing(&self) -> Vec<(&'a Estimate, Missing)> {
        let asked: BTreeSet<usize> = self.comparisons.iter().flat_map(|c| [c.scenario, c.against]).collect();
        let asked = self.estimates.iter().enumerate().filter(|(at, _)| asked.contains(at));
        asked.filter_map(|(_, e)| Some((e, e.missing(self, self.figure)?))).collect()
    }

    /// Whether a comparison sets a scenario beside the base: another system beside that of the base, or values of a knob. False if
    /// there is no base.
    pub fn is_beside_base(&self, c: &Comparison) -> bool {
        c.is_beside_base(self, &self.estimates[c.against].scenario)
    }
}

impl Deref for FigureView<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        self.shared
    }
}
