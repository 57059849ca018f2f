//! `[apply]`: how the value of a knob is set in the system's own configuration.

use std::collections::BTreeMap;

use toml::Spanned;

use super::super::{ON_OFF, VALUE};
use super::{Known, Read, Reader};
use crate::input::nearest;
use crate::knob::Knob;
use crate::template;
use crate::workload::Workload;

/// Reads the table. Each entry names a knob of the system or of one of its workloads and contains `{value}`.
pub(super) fn read(
    reader: &Reader,
    raw: &BTreeMap<Spanned<String>, Spanned<String>>,
    workloads: &[Workload],
    knobs: &BTreeMap<String, Knob>,
) -> Read<BTreeMap<String, String>> {
    let of_workloads = workloads.iter().flat_map(|workload| workload.knobs()).map(|(name, _)| name);
    let known: Known = of_workloads.chain(knobs.keys().map(String::as_str)).collect();
    let mut apply = BTreeMap::new();
    for (knob, text) in raw {
        let name = knob.get_ref().as_str();
        if !known.has(name) {
            let help = match nearest(name, known.iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the knobs are: {}", known.iter().collect::<Vec<_>>().join(", ")),
            };
            return reader.wrong(knob.span(), format!("there is no knob `{name}` here"), help);
        }
        let checked = reader.placeholders(text, &[VALUE, ON_OFF].into_iter().collect())?;
        if template::names(&checked).is_ok_and(|names| names.is_empty()) {
            return reader.wrong(text.span(), "the value is missing here", "put {value} where it belongs");
        }
        apply.insert(name.to_owned(), checked);
    }
    Ok(apply)
}
