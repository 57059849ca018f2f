//! Manifests on their way between machines: plain values for serde, and checked on arrival as if they had been read from a file.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Manifest, read};

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // The derived method, which is no method of the trait.
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let sent = Self::deserialize(from)?;
        let wrong = |why: String| D::Error::custom(format!("the manifest of {:?}: {why}", sent.name));
        let read = read::sent(&sent).map_err(|error| wrong(error.one_line()))?;
        // What reading would have changed has not been read.
        if read == sent { Ok(read) } else { Err(wrong("it is not as it would have been read".to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    use serde_json::{Value, json};
    use tls::{Dialing, Identity, Trust};

    use super::*;
    use crate::manifest::{Draft, Remedies};
    use crate::workload::Workload;
    use crate::{Catalog, Source};

    /// All systems of the checkout, with their variants, and the references.
    static ALL: LazyLock<Vec<Manifest>> = LazyLock::new(|| {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let catalog = Catalog::load(&home);
        assert_eq!(catalog.broken().count(), 0);
        catalog.manifests().cloned().collect()
    });

    fn there_and_back(manifest: &Manifest) -> Result<Manifest, String> {
        let text = serde_json::to_string(manifest).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_manifest_arrives_as_it_was_sent() {
        let all = &*ALL;
        assert!(all.iter().any(|manifest| manifest.variant.is_some()) && all.len() > 40);
        for manifest in all {
            assert_eq!(there_and_back(manifest).as_ref(), Ok(manifest));
        }
        let catalog = Catalog::of_systems(Path::new("/h"), all.iter().cloned());
        assert!(catalog.manifests().eq(all));
        let draft = Draft {
            name: "arm".to_owned(),
            workloads: vec![Workload::Requests],
            command: ["sh", "-c", "{port} {{ {cert}"].map(str::to_owned).to_vec(),
            version: Some("v1".to_owned()),
            ready_timeout_s: Some(3),
            tls: Some(dialing(None)),
            outside: true,
            remedies: Remedies { time: "wait".into(), ..Remedies::default() },
            dir: PathBuf::from("/a"),
            home: PathBuf::from("/b"),
            ..Draft::default()
        };
        let manifest = Manifest::new(draft).unwrap();
        assert_eq!(there_and_back(&manifest), Ok(manifest));
    }

    fn dialing(identity: Option<Identity>) -> Dialing {
        let parameters = tls::Parameters { alpn: vec![b"http/1.1".to_vec()], ..Default::default() };
        Dialing { name: "localhost".to_owned(), trust: Trust::Anyone, identity, parameters }
    }

    #[test]
    fn the_key_of_a_client_is_not_sent() {
        let mut manifest = ALL[0].clone();
        let secret = Identity { certificate: b"public".to_vec(), key: b"secret".to_vec() };
        manifest.tls = Some(dialing(Some(secret)));
        assert!(there_and_back(&manifest).unwrap_err().contains("stays on its machine"));
    }

    #[test]
    fn what_no_file_could_say_is_refused() {
        let text = "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n\
                    [start]\ncommand=['x','{port}','{k}']\n[knobs.k]\ntype='integer'\ndefault=1\nmax=9\nabout=''\n\
                    [ready]\ntimeout_s=9\n[build]\ncommand=['x']\ninputs=['$A']\n[[needs]]\nname='n'\nprobe=['x']\nget=''\n\
                    [variants.v]\nget=''\npath='{$P}'\n";
        let source = Source::new("system.toml", text);
        let sent = Manifest::parse(&source, Path::new("/h/systems/x")).unwrap().remove(1);
        let good = serde_json::to_value(&sent).unwrap();
        assert_eq!(serde_json::from_value::<Manifest>(good.clone()).as_ref().ok(), Some(&sent));
        let seconds = |secs: u64| json!({ "secs": secs, "nanos": 0 });
        for (place, value, why) in [
            ("/name", json!("../x"), "cannot be a system's name"),
            ("/name", json!("x@w"), "not as it would have been read"),
            ("/name", json!("x"), "not as it would have been read"),
            ("/role", json!("client"), "a client cannot do `requests`"),
            ("/workloads", json!([]), "no workload"),
            ("/dir", json!("systems/x"), "not the whole path"),
            ("/home", json!(""), "not the whole path"),
            ("/program/Started/dir", json!("there"), "not as it would have been read"),
            ("/program/Started/command", json!([]), "an empty command"),
            ("/program/Started/command/1", json!("{prot}"), "unknown placeholder `{prot}`"),
            ("/program/Started/command/2", json!("k"), "the program is not told the knob `k`"),
            ("/program/Started/env", json!({ "A=B": "" }), "cannot name an environment variable"),
            ("/build/command/0", json!("{"), "a single `{`"),
            ("/build/timeout", seconds(0), "timeout_s = 0 is out of range"),
            ("/build/timeout", seconds(u64::MAX), "is out of range"),
            ("/build/timeout", json!({ "secs": 1, "nanos": 1 }), "not as it would have been read"),
            ("/build/timeout", json!({ "secs": u64::MAX, "nanos": 4_000_000_000_u32 }), "overflow"),
            ("/build/inputs/0", json!({ "Variable": "A-B" }), "cannot name an environment variable"),
            ("/build/inputs/0", json!({ "Path": "$A" }), "not as it would have been read"),
            ("/ready/http", json!("x"), "`x` is not a path"),
            ("/ready/timeout", seconds(86_401), "is out of range"),
            ("/grace", seconds(61), "grace_ms = 61000 is out of range"),
            ("/knobs/k/default", json!(10), "`10` is not allowed"),
            ("/knobs/k/workloads", json!(["upload"]), "the system does not do `upload`"),
            ("/needs/0/probe", json!([]), "an empty probe"),
            ("/needs/0/version", json!("("), "not a regular expression"),
            ("/variant/name", json!("../v"), "cannot be a variant's name"),
            ("/variant/path", json!("{port}"), "unknown placeholder `{port}`"),
            ("/apply", json!({ "k": "" }), "the value is missing"),
            ("/answer", json!({ "body": "", "closes": 1, "fault": null, "about": "" }), "invalid type"),
            ("/tls", json!({ "name": "", "trust": "Anyone" }), "missing field"),
            ("/tls/trust", json!({ "Pem": [1, 2] }), "root"),
        ] {
            let mut bad = good.clone();
            if place.starts_with("/tls/") {
                bad["tls"] = serde_json::to_value(dialing(None)).unwrap();
            }
            *bad.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
            let error = serde_json::from_value::<Manifest>(bad).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.contains(why)), "{place}: {error:?}");
        }
    }

    /// The places of all values in a JSON value.
    fn places(value: &Value, place: &str, found: &mut Vec<String>) {
        found.push(place.to_owned());
        let mut within = |key: &str, value: &Value| places(value, &format!("{place}/{key}"), found);
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| within(key, value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| within(&index.to_string(), value));
            }
            _ => {}
        }
    }

    proptest::proptest! {
        #[test]
        fn no_value_panics_and_what_is_accepted_arrives_again(system in 0usize..100, place in 0usize..1000, other in 0usize..16) {
            let mut json = serde_json::to_value(&ALL[system % ALL.len()]).unwrap();
            let mut found = Vec::new();
            places(&json, "", &mut found);
            let others = [
                json!(null), json!(true), json!(0), json!(-1), json!(u64::MAX), json!(1.5), json!(""), json!("{"), json!("{port}"),
                json!("a@b"), json!("\0"), json!("$"), json!([]), json!([""]), json!({}), json!({ "secs": 1, "nanos": 999 }),
            ];
            *json.pointer_mut(&found[place % found.len()]).unwrap() = others[other].clone();
            if let Ok(accepted) = serde_json::from_value::<Manifest>(json) {
                proptest::prop_assert_eq!(there_and_back(&accepted), Ok(accepted));
            }
        }
    }
}
