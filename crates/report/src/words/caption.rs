//! A table and the words around it.

use lab::findings::Table;
use serde::Serialize;

/// The words above and below a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Caption {
    /// One line.
    pub title: String,
    /// What is held fixed, and how to read it.
    pub about: String,
    /// Below the table.
    pub notes: Vec<String>,
}

/// A table with its words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Captioned {
    pub caption: Caption,
    pub table: Table,
}
