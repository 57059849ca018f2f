//! Raw figures that stand in place of a sound trial's, by the names that the store has for them: whatever a real trial
//! could have seen can be said in a file, without a field here for each.

use serde::Deserialize;
use serde_json::Value;

use crate::observation::{Measurement, ServerCounts};

/// Some of a [`Measurement`]'s fields; known to be its fields, and to have values that these may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Value")]
pub struct Instead(Option<Value>);

impl Instead {
    /// From an object like the store's, with as few fields as are to be replaced.
    ///
    /// # Errors
    /// A sentence about the first field that no measurement has, or whose value it cannot have.
    pub fn new(fields: Value) -> Result<Self, String> {
        let whole = Measurement { server: Some(ServerCounts::default()), ..Measurement::default() };
        let mut whole = serde_json::to_value(whole).map_err(|e| e.to_string())?;
        if let Some(name) = unknown(&fields, &whole) {
            return Err(format!("a measurement has no `{name}`"));
        }
        put(&fields, &mut whole);
        serde_json::from_value::<Measurement>(whole)
            .map_err(|e| format!("a measurement cannot have it: {e}"))?;
        Ok(Self(Some(fields)))
    }

    /// Puts them in place of a measurement's own; the server's counts only where there is one.
    pub(super) fn replace(&self, m: &mut Measurement) {
        let Some(mut fields) = self.0.clone() else { return };
        if let (None, Some(fields)) = (&m.server, fields.as_object_mut()) {
            fields.remove("server");
        }
        let changed = serde_json::to_value(&*m).ok().and_then(|mut whole| {
            put(&fields, &mut whole);
            serde_json::from_value(whole).ok()
        });
        // They fit a measurement: `new` has tried.
        if let Some(changed) = changed {
            *m = changed;
        }
    }
}

impl TryFrom<Value> for Instead {
    type Error = String;

    fn try_from(fields: Value) -> Result<Self, String> {
        Self::new(fields)
    }
}

/// Puts the fields into the whole, objects field by field.
fn put(fields: &Value, whole: &mut Value) {
    let (Value::Object(fields), Value::Object(whole)) = (fields, &mut *whole) else {
        *whole = fields.clone();
        return;
    };
    for (name, value) in fields {
        put(value, whole.entry(name).or_insert(Value::Null));
    }
}

/// The first field that the whole does not have, with its way there; where the whole's object is empty, any name goes.
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
    fn fields_are_replaced_and_the_others_stay() {
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
        Instead::new(fields.clone()).expect("all of them exist").replace(&mut m);
        assert_eq!((m.attempts, m.late, m.generator.busiest_core), (7, 5, 0.9));
        assert_eq!((&m.generator.cores, &m.service_us.buckets), (&vec![3], &vec![(10, 2)]));
        assert_eq!((m.error_ordinals.get(&100), &m.server), (Some(&4), &None));
        m.server = Some(ServerCounts { requests: 8, ..ServerCounts::default() });
        Instead::new(fields).expect("all of them exist").replace(&mut m);
        assert_eq!(m.server.map(|server| (server.requests, server.peak_connections)), Some((8, 9)));
    }

    #[test]
    fn what_no_measurement_has_is_an_error_with_its_name() {
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
            let error = Instead::new(fields).expect_err(said);
            assert!(error.starts_with(said), "{error}");
        }
    }
}
