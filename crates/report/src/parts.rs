//! The parts of an experiment's section. Their order is the same in every format.

/// A part of a section. A format leaves out the parts that it cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The claims in sentences, the headline first.
    ConditionOutcome,
    /// Figures that show the answer.
    Figures,
    /// Tables of what was measured, compared and counted.
    Tables,
    /// Warnings, with remedies.
    Warnings,
    /// Trials without a measurement.
    Failures,
    /// Trials far from the others.
    Outliers,
    /// Comparisons with published tables.
    Beside,
    /// Figures that explain the answer, and figures of the data behind it.
    Explanations,
    /// Systems that could not run here.
    Excluded,
    /// Remarks about trials.
    Notes,
    /// The generators on other machines.
    Generators,
    /// The systems' versions.
    Versions,
}

/// The order of the parts: the answer, its data, the doubts about it, and then the published tables.
pub(crate) const ORDER: [Part; 12] = [
    Part::ConditionOutcome,
    Part::Figures,
    Part::Tables,
    Part::Warnings,
    Part::Failures,
    Part::Outliers,
    Part::Beside,
    Part::Explanations,
    Part::Excluded,
    Part::Notes,
    Part::Generators,
    Part::Versions,
];
