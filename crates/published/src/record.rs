//! One line of a table's CSV file: reads fields by column, as figures.

use serde::{Deserialize, Serialize};
use systems::{InputError, Source};

use super::PublishedColumn;
use super::csv::Field;

/// A cell that is not printed like its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misprint {
    /// What was printed.
    pub printed: String,
    /// What is wrong with it.
    pub kind: MisprintKind,
}

/// What is wrong with how a cell was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisprintKind {
    /// A dash too many.
    ExtraDash,
    /// The larger figure first.
    LargerFirst,
}

/// One line of the CSV file, with its columns.
pub(super) struct Record<'a> {
    pub source: &'a Source,
    pub columns: &'a [PublishedColumn],
    pub fields: &'a [Field],
}

impl Record<'_> {
    /// An error at a field, with what is wrong and what to do.
    pub fn wrong(&self, field: &Field, column: &str, what: &str, help: &str) -> InputError {
        self.source.error(field.span.clone(), format!("`{column}` is {:?}: {what}", field.text), help)
    }

    /// The field of a column.
    pub fn field(&self, name: &str) -> Result<&Field, InputError> {
        let index = self.columns.iter().position(|column| column.name == name);
        let field = index.and_then(|index| self.fields.get(index));
        field.ok_or_else(|| self.source.error(0..0, format!("there is no column `{name}`"), "add it"))
    }

    /// Reads a finite number that is not negative.
    pub fn number(&self, name: &str) -> Result<f64, InputError> {
        let field = self.field(name)?;
        let number = field.text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| self.wrong(field, name, "not a number from 0 up", "digits and a point, no unit"))
    }

    /// Reads a number above zero.
    pub fn positive(&self, name: &str) -> Result<f64, InputError> {
        let number = self.number(name)?;
        if number > 0.0 {
            Ok(number)
        } else {
            Err(self.wrong(self.field(name)?, name, "must be above 0", ""))
        }
    }

    /// Reads a share in percent.
    pub fn percent(&self, name: &str) -> Result<f64, InputError> {
        let number = self.number(name)?;
        if number <= 100.0 {
            Ok(number)
        } else {
            Err(self.wrong(self.field(name)?, name, "more than 100 percent", ""))
        }
    }

    /// Reads a whole number from 1 to 10^12.
    pub fn count(&self, name: &str) -> Result<u64, InputError> {
        let field = self.field(name)?;
        let number = field.text.parse::<u64>().ok().filter(|n| (1..=1_000_000_000_000).contains(n));
        number.ok_or_else(|| self.wrong(field, name, "not a whole number from 1 up", "digits only"))
    }

    /// Reads two numbers written as `A - B`, and what is wrong with how they were printed.
    pub fn range(&self, name: &str) -> Result<([f64; 2], Option<Misprint>), InputError> {
        let field = self.field(name)?;
        let parts: Vec<String> = field.text.split('-').map(|part| part.trim().replace(',', "")).collect();
        let numbers: Vec<f64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
        let blank = parts.iter().filter(|part| part.is_empty()).count();
        match numbers[..] {
            [first, second] if numbers.len() + blank == parts.len() && first > 0.0 && second > 0.0 => {
                let kind = match () {
                    () if blank > 0 => Some(MisprintKind::ExtraDash),
                    () if first > second => Some(MisprintKind::LargerFirst),
                    () => None,
                };
                Ok(([first, second], kind.map(|kind| Misprint { printed: field.text.clone(), kind })))
            }
            _ => Err(self.wrong(field, name, "not the two runs", "write them as `A - B`")),
        }
    }
}
