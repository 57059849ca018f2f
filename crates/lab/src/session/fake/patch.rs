//! Raw figures that replace those of a sound trial, by their names in the store. A file can thus give a trial anything
//! that a real trial could measure, without a field here for each.

use measurement::{MaxRate, Measurement, ServerCounts, Together};
use serde::Deserialize;
use serde_json::Value;

/// Some fields of a [`Measurement`], with values that are valid for them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Value")]
pub struct MeasurementPatch(Option<Value>);

impl MeasurementPatch {
    /// Checks an object of the store's form that contains only the fields to replace.
    ///
    /// # Errors
    /// The first field that measurements do not have, or an invalid value.
    pub fn new(fields: Value) -> Result<Self, String> {
        let (server, max_rate) = (Some(ServerCounts::default()), Some(MaxRate::default()));
        let together = Some(Together::default());
        let whole = Measurement { server, max_rate, together, ..Measurement::default() };
        let mut whole = serde_json::to_value(whole).map_err(|e| e.to_string())?;
        if let Some(name) = unknown(&fields, &whole) {
            return Err(format!("a measurement has no `{name}`"));
        }
        merge(&fields, &mut whole);
        serde_json::from_value::<Measurement>(whole)
            .map_err(|e| format!("a measurement cannot have it: {e}"))?;
        Ok(Self(Some(fields)))
    }

    /// Replaces the fields of a measurement. The server's counts and the highest rate are replaced only if the measurement
    /// has them.
    pub(super) fn apply(&self, m: &mut Measurement) {
        let Some(mut fields) = self.0.clone() else { return };
        if let Some(fields) = fields.as_object_mut() {
            let has = |name: &String| match name.as_str() {
                "server" => m.server.is_some(),
                "max_rate" => m.max_rate.is_some(),
                _ => true,
            };
            fields.retain(|name, _| has(name));
        }
        let changed = serde_json::to_value(&*m).ok().and_then(|mut whole| {
            merge(&fields, &mut whole);
            serde_json::from_value(whole).ok()
        });
        // This cannot fail, because `new` has checked the fields.
        if let Some(changed) = changed {
            *m = changed;
        }
    }
}

impl TryFrom<Value> for MeasurementPatch {
    type Error = String;

    fn try_from(fields: Value) -> Result<Self, String> {
        Self::new(fields)
    }
}

/// Copies fields into `whole`, recursively.
fn merge(fields: &Value, whole: &mut Value) {
    let (Value::Object(fields), Value::Object(whole)) = (fields, &mut *whole) else {
        *whole = fields.clone();
        return;
    };
    for (name, value) in fields {
        merge(value, whole.entry(name).or_insert(Value::Null));
    }
}

/// The path of the first field that `whole` does not have. An empty object in `whole` accepts any name.
fn unknown(fields: &Value, whole: &Value) -> Option<String> {
    let (fields, whole) = (fields.as_object()?, whole.as_object()?);
    fields.iter().filter(|_| !whole.is_empty()).find_map(|(name, value)| match whole.get(name) {
        None => Some(name.clone()),
        Some(known) => Some(format!("{name}.{}", unknown(value, known)?)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_replaces_only_the_fields_that_it_names() {
        let mut m = Measurement { attempts: 7, ..Measurement::default() };
        m.generator.busiest_core = 0.5;
        m.generator.cores = vec![3];
        let fields = json!({
            "late": 5,
            "generator": { "busiest_core": 0.9 },
            "error_ordinals": { "100": 4 },
            "service_us": { "buckets": [[10, 2]] },
            "server": { "peak_connections": 9 },
        });
        MeasurementPatch::new(fields.clone()).expect("all of them exist").apply(&mut m);
        assert_eq!((m.attempts, m.late, m.generator.busiest_core), (7, 5, 0.9));
        assert_eq!((&m.generator.cores, &m.service_us.buckets), (&vec![3], &vec![(10, 2)]));
        assert_eq!((m.error_ordinals.get(&100), &m.server), (Some(&4), &None));
        m.server = Some(ServerCounts { requests: 8, ..ServerCounts::default() });
        MeasurementPatch::new(fields).expect("all of them exist").apply(&mut m);
        assert_eq!(m.server.map(|server| (server.requests, server.peak_connections)), Some((8, 9)));
    }

    #[test]
    fn an_unknown_field_is_an_error_that_names_it() {
        for (fields, said) in [
            (json!({ "later": 5 }), "a measurement has no `later`"),
            (json!({ "generator": { "core": 1 } }), "a measurement has no `generator.core`"),
            (json!({ "late": "no" }), "a measurement cannot have it: "),
            (
                json!({ "counted": { "reads": 1 } }),
                "a measurement cannot have it: missing field `operations`",
            ),
            (json!([]), "a measurement cannot have it: "),
        ] {
            let error = MeasurementPatch::new(fields).expect_err(said);
            assert!(error.starts_with(said), "{error}");
        }
    }
}
