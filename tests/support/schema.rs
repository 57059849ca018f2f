//! The schemas in docs/schema.

use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::Value;

use super::checkout;

/// The path of a committed schema.
pub fn file(name: &str) -> PathBuf {
    checkout().join("docs/schema").join(name)
}

/// The committed schema of this name.
pub fn committed(name: &str) -> Validator {
    let text = fs::read_to_string(file(name)).expect(name);
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("a JSON Schema")
}

/// Asserts that this is an object of the schema.
pub fn assert_keeps(schema: &Validator, report: &Value) {
    let wrong: Vec<String> =
        schema.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path())).take(5).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
