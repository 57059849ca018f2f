//! The placeholders that a text may have. There may be thousands of knobs and of places that name them.

use std::collections::BTreeSet;

/// Names of placeholders.
pub(in crate::manifest) struct Known<'a> {
    /// In the order in which messages list them.
    listed: Vec<&'a str>,
    names: BTreeSet<&'a str>,
}

impl<'a> FromIterator<&'a str> for Known<'a> {
    fn from_iter<N: IntoIterator<Item = &'a str>>(names: N) -> Self {
        let listed: Vec<&str> = names.into_iter().collect();
        Self { names: listed.iter().copied().collect(), listed }
    }
}

impl<'a> Known<'a> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.listed.iter().copied()
    }
}
