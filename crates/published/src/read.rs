//! Reads a table from its two files. Checks each field and reports each mistake with its position.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use systems::input::{self, nearest};
use systems::{InputError, Point, Source, Workload};
use toml::Spanned;

use super::csv::{self, Field};
use super::record::Record;
use super::rows::Rows;
use super::{PublishedColumn, PublishedSetting, PublishedTable};

/// More rows than a published table has. Comparisons between rows take quadratic time.
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
    setting: PublishedSetting,
    #[serde(default)]
    fixed: Point,
    columns: Spanned<Vec<PublishedColumn>>,
    systems: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    runtimes: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    versions: BTreeMap<Spanned<String>, String>,
}

/// One name, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
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

/// Reads a table from the texts of its TOML and CSV files.
pub(super) fn table(head: &Source, data: &Source) -> Result<PublishedTable, InputError> {
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
        return Err(data.error(place(first), message, "a published table is one that people read"));
    }
    check_versions(head, &file)?;
    let mut records = Vec::new();
    for fields in lines {
        if fields.len() != columns.len() {
            let message = format!("{} fields where the heading has {}", fields.len(), columns.len());
            return Err(data.error(place(fields), message, "quote a field that has commas in it"));
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
    Ok(PublishedTable {
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
        versions: file.versions.into_iter().map(|(name, version)| (name.into_inner(), version)).collect(),
        fixed: file.fixed,
        columns: file.columns.into_inner(),
    })
}

/// Checks that versions are those of systems that the table has.
fn check_versions(head: &Source, file: &Head) -> Result<(), InputError> {
    match file.versions.keys().find(|name| !file.systems.contains_key(name.get_ref())) {
        Some(stranger) => {
            let message = format!("[systems] does not name `{}`", stranger.get_ref());
            Err(head.error(stranger.span(), message, "use the names of [systems]"))
        }
        None => Ok(()),
    }
}

/// Where a line begins and ends.
fn place(fields: &[Field]) -> Range<usize> {
    let (start, end) =
        (fields.first().map(|field| field.span.start), fields.last().map(|field| field.span.end));
    start.unwrap_or_default()..end.unwrap_or_default()
}

/// Checks that the heading of the CSV file names the columns in their order.
fn check_heading(data: &Source, heading: &[Field], columns: &[PublishedColumn]) -> Result<(), InputError> {
    for (index, field) in heading.iter().enumerate() {
        let expected = columns.get(index).map(|c| c.name.as_str());
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
