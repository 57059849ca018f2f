//! From the two files of a table to its rows: each field checked, each mistake shown with its place.

use std::collections::BTreeMap;

use serde::Deserialize;
use systems::input::{self, nearest};
use systems::knob::{Kind, parse_size};
use systems::{InputError, Point, Source, Value, Workload};
use toml::Spanned;

use super::csv::{self, Field};
use super::rows::{Row, Rows};
use super::{Column, Setting, Table};

/// More rows than anybody publishes; comparisons between rows take the square of it.
const MOST_ROWS: usize = 2000;

/// The TOML file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: Spanned<String>,
    title: String,
    source: String,
    #[serde(default)]
    about: String,
    workload: Workload,
    experiment: Option<String>,
    runs: Spanned<u32>,
    #[serde(default)]
    setting: Setting,
    #[serde(default)]
    fixed: Point,
    #[serde(default)]
    defaults: Point,
    columns: Spanned<Vec<Column>>,
    systems: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    runtimes: BTreeMap<String, OneOrMany>,
}

/// A name, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(names: OneOrMany) -> Self {
        match names {
            OneOrMany::One(name) => vec![name],
            OneOrMany::Many(names) => names,
        }
    }
}

fn listed(named: BTreeMap<String, OneOrMany>) -> BTreeMap<String, Vec<String>> {
    named.into_iter().map(|(name, names)| (name, names.into())).collect()
}

/// Reads a table from what is said of it and from its rows.
pub(super) fn table(head: &Source, data: &Source) -> Result<Table, InputError> {
    let file: Head = input::parse(head)?;
    let stem = head.path.file_stem().unwrap_or_default().to_string_lossy();
    if *file.name.get_ref() != stem {
        let message = format!("the name is `{}`, the file's is `{stem}`", file.name.get_ref());
        return Err(head.error(file.name.span(), message, "make them equal"));
    }
    if *file.runs.get_ref() == 0 {
        return Err(head.error(file.runs.span(), "no runs: nothing was measured", "1 or more"));
    }
    let columns = file.columns.get_ref();
    let required = Rows::required(file.workload).iter().find(|name| columns.iter().all(|c| c.name != **name));
    if let Some(missing) = required {
        let message = format!("a table of `{}` needs a column `{missing}`", file.workload);
        return Err(head.error(file.columns.span(), message, "docs/published.md lists the columns"));
    }
    let lines = csv::lines(data)?;
    let Some((heading, lines)) = lines.split_first().filter(|(_, rows)| !rows.is_empty()) else {
        return Err(data.error(0..data.text.len(), "no rows", "a heading and at least one row"));
    };
    check_heading(data, heading, columns)?;
    if let Some(first) = lines.get(MOST_ROWS) {
        let message = format!("more than {MOST_ROWS} rows");
        return Err(data.error(first[0].span.clone(), message, "a published table is one that people read"));
    }
    let mut records = Vec::new();
    for fields in lines {
        if fields.len() != columns.len() {
            let message = format!("{} fields where the heading has {}", fields.len(), columns.len());
            let span = fields[0].span.start..fields[fields.len() - 1].span.end;
            return Err(data.error(span, message, "quote a field that has commas in it"));
        }
        let record = Record { source: data, columns, fields };
        let system = record.field("system")?;
        if !file.systems.contains_key(&system.text) {
            let near = nearest(&system.text, file.systems.keys().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add it to [systems] of {}", head.path.display()),
            };
            return Err(record.wrong(system, "system", "a system that [systems] does not name", &help));
        }
        records.push(record);
    }
    Ok(Table {
        name: file.name.into_inner(),
        title: file.title,
        source: file.source,
        about: file.about,
        experiment: file.experiment,
        workload: file.workload,
        runs: file.runs.into_inner(),
        setting: file.setting,
        rows: Rows::read(file.workload, &records)?,
        printed: lines.iter().map(|row| row.iter().map(|field| field.text.clone()).collect()).collect(),
        systems: listed(file.systems),
        runtimes: listed(file.runtimes),
        fixed: file.fixed,
        defaults: file.defaults,
        columns: file.columns.into_inner(),
    })
}

/// The CSV's heading must be the columns, in their order.
fn check_heading(data: &Source, heading: &[Field], columns: &[Column]) -> Result<(), InputError> {
    for (at, field) in heading.iter().enumerate() {
        let expected = columns.get(at).map(|c| c.name.as_str());
        if expected != Some(field.text.as_str()) {
            let help = match expected {
                Some(name) => format!("`{name}` comes here"),
                None => "all columns are there already".to_owned(),
            };
            return Err(data.error(
                field.span.clone(),
                format!("`{}` is not the next column", field.text),
                help,
            ));
        }
    }
    match columns.get(heading.len()) {
        Some(missing) => {
            let end = heading.last().map_or(0, |field| field.span.end);
            Err(data.error(end..end, format!("the column `{}` is missing", missing.name), "add it here"))
        }
        None => Ok(()),
    }
}

/// One line of the CSV with what is known of its columns.
pub(super) struct Record<'a> {
    source: &'a Source,
    columns: &'a [Column],
    fields: &'a [Field],
}

impl Record<'_> {
    fn wrong(&self, field: &Field, column: &str, what: &str, help: &str) -> InputError {
        self.source.error(field.span.clone(), format!("`{column}` is {:?}: {what}", field.text), help)
    }

    /// A field by its column.
    pub fn field(&self, name: &str) -> Result<&Field, InputError> {
        let at = self.columns.iter().position(|column| column.name == name);
        let field = at.and_then(|at| self.fields.get(at));
        field.ok_or_else(|| self.source.error(0..0, format!("there is no column `{name}`"), "add it"))
    }

    /// A figure: a finite number, not negative.
    pub fn number(&self, name: &str) -> Result<f64, InputError> {
        let field = self.field(name)?;
        let number = field.text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| self.wrong(field, name, "not a number from 0 up", "digits and a point, no unit"))
    }

    /// A figure above zero.
    pub fn positive(&self, name: &str) -> Result<f64, InputError> {
        let number = self.number(name)?;
        if number > 0.0 {
            Ok(number)
        } else {
            Err(self.wrong(self.field(name)?, name, "must be above 0", ""))
        }
    }

    /// A share in percent.
    pub fn percent(&self, name: &str) -> Result<f64, InputError> {
        let number = self.number(name)?;
        let within = number <= 100.0;
        if within {
            Ok(number)
        } else {
            Err(self.wrong(self.field(name)?, name, "more than 100 percent", ""))
        }
    }

    /// A whole number from 1 to 10^12.
    pub fn count(&self, name: &str) -> Result<u64, InputError> {
        let field = self.field(name)?;
        let number = field.text.parse::<u64>().ok().filter(|n| (1..=1_000_000_000_000).contains(n));
        number.ok_or_else(|| self.wrong(field, name, "not a whole number from 1 up", "digits only"))
    }

    /// Two numbers as `A - B`, with what is wrong in how they were printed.
    pub fn range(&self, name: &str) -> Result<([f64; 2], Option<String>), InputError> {
        let field = self.field(name)?;
        let parts: Vec<String> = field.text.split('-').map(|part| part.trim().replace(',', "")).collect();
        let numbers: Vec<f64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
        let blank = parts.iter().filter(|part| part.is_empty()).count();
        match numbers[..] {
            [first, second] if numbers.len() + blank == parts.len() && first > 0.0 && second > 0.0 => {
                let flaw = match () {
                    () if blank > 0 => Some(format!("\"{}\" has a dash too many", field.text)),
                    () if first > second => Some(format!("\"{}\" has the larger figure first", field.text)),
                    () => None,
                };
                Ok(([first, second], flaw))
            }
            _ => Err(self.wrong(field, name, "not the two runs", "write them as `A - B`")),
        }
    }

    /// What stands in every row, whatever was measured.
    pub fn row<M>(&self, measured: M) -> Result<Row<M>, InputError> {
        let variant = self.columns.iter().any(|column| column.name == "runtime");
        let variant = if variant { self.field("runtime")?.text.clone() } else { String::new() };
        let mut point = Point::new();
        for column in self.columns {
            let (Some(kind), field) = (column.knob, self.field(&column.name)?) else { continue };
            if !field.text.is_empty() {
                let wrong = |why: String| self.wrong(field, &column.name, &why, "");
                point.insert(column.name.clone(), value(kind, &field.text).map_err(wrong)?);
            }
        }
        Ok(Row { variant, system: self.field("system")?.text.clone(), point, measured })
    }
}

/// A knob's value as it was printed.
fn value(kind: Kind, text: &str) -> Result<Value, String> {
    let integer = || text.parse().map(Value::Integer).map_err(|_| "not a whole number".to_owned());
    let word = || Value::Text(text.to_owned());
    match kind {
        Kind::Integer => integer(),
        Kind::Size => parse_size(text).map(Value::Integer),
        Kind::Boolean => text.parse().map(Value::Boolean).map_err(|_| "neither true nor false".to_owned()),
        Kind::Choice => Ok(word()),
        Kind::Any => Ok(integer().unwrap_or_else(|_| word())),
    }
}
