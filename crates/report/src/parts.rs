//! What the section of an experiment is made of: the order is the same in every form, so that who knows one finds
//! their way in all.

/// A part of a section; a form leaves out what it cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Sentences, the headline first.
    Answer,
    /// The figures of the answer.
    Figures,
    /// What was measured, compared and counted.
    Tables,
    /// What makes it doubtful, with remedies.
    Warnings,
    /// Trials without a measurement.
    Failures,
    /// Trials far from the others.
    Outliers,
    /// The published figures beside these.
    Beside,
    /// Figures of what explains the answer, and of what it stands on.
    Explanations,
    /// Systems that could not run here.
    Excluded,
    /// What the trials had to say.
    Notes,
    /// The systems' versions.
    Versions,
}

/// As a person reads: the answer, what it rests on, what makes it doubtful, and only then what others published.
pub(crate) const ORDER: [Part; 11] = [
    Part::Answer,
    Part::Figures,
    Part::Tables,
    Part::Warnings,
    Part::Failures,
    Part::Outliers,
    Part::Beside,
    Part::Explanations,
    Part::Excluded,
    Part::Notes,
    Part::Versions,
];
