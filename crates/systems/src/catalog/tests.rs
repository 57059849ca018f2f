//! Tests of the catalog: broken manifests among valid ones, unknown names, and several homes.

use super::*;

const GOOD: &str = r#"
name = "reference"
role = "server"
workloads = ["requests"]
language = "Rust"
about = "Narrows' own"
[start]
command = ["{narrows}", "serve", "{port}"]
"#;

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in [("reference", GOOD), ("broken", "name = \n")] {
        let folder = home.path().join("systems").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("system.toml"), text).unwrap();
    }
    std::fs::create_dir_all(home.path().join("systems/shared")).unwrap();
    home
}

#[test]
fn a_broken_manifest_does_not_affect_other_systems() {
    let home = home();
    let catalog = Catalog::load(home.path());
    let names: Vec<&str> = catalog.manifests().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(names, ["reference", "reference-client"], "a file replaces the built-in system");
    assert_eq!(catalog.get("reference").unwrap().dir, home.path().join("systems/reference"));
    assert_eq!(catalog.get("reference").unwrap().home(), home.path());
    let (name, error) = catalog.broken().next().unwrap();
    assert_eq!((name, error.position().unwrap().0), ("broken", 1));
    assert!(matches!(catalog.get("broken"), Err(CatalogError::Broken(_))));
    assert!(catalog.reference_for(Workload::Requests).is_some());
    assert!(catalog.reference_for(Workload::Upload).is_none());
    assert!(catalog.reference_for(Workload::Clients).is_some());
    let unknown = catalog.get("refrence").unwrap_err();
    let help = unknown.help().unwrap().to_string();
    assert_eq!(help, "did you mean `reference`? known: broken, reference, reference-client");
}

#[test]
fn the_references_need_no_file() {
    let catalog = Catalog::load(Path::new("/nowhere"));
    for workload in Workload::ALL {
        let reference = catalog.reference_for(workload).expect("Narrows' own endpoint");
        assert_eq!((reference.name.as_str(), reference.role), (workload.reference(), workload.role()));
    }
    assert_eq!(catalog.manifests().count(), 2);
}

#[test]
fn a_system_replaces_the_one_of_a_weaker_home_and_its_variants() {
    let (strong, weak) = (home(), home());
    let about = |about: &str| GOOD.replace("Narrows' own", about);
    let write = |home: &tempfile::TempDir, name: &str, text: String| {
        let folder = home.path().join("systems").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("system.toml"), text.replace("\"reference\"", &format!("{name:?}")))
            .unwrap();
    };
    write(&weak, "both", about("weak") + "[variants.old]\nenv = { A = \"1\" }\n");
    write(&weak, "only", about("weak"));
    write(&strong, "both", about("strong"));
    let catalog = Catalog::load_all(&[Home::named(strong.path()), Home::named(weak.path())]);
    assert_eq!(catalog.get("both").unwrap().about, "strong");
    assert_eq!(catalog.get("both").unwrap().home(), strong.path());
    assert_eq!(catalog.get("only").unwrap().home(), weak.path());
    assert!(catalog.get("both@old").is_err(), "a variant of a system that is replaced");
}

#[test]
fn variants_are_separate_systems() {
    let home = home();
    let folder = home.path().join("systems/reference");
    std::fs::write(folder.join("system.toml"), format!("{GOOD}[variants.old]\nenv = {{ A = \"1\" }}\n"))
        .unwrap();
    let catalog = Catalog::load(home.path());
    let names: Vec<&str> = catalog.manifests().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(names, ["reference", "reference-client", "reference@old"]);
    assert_eq!(catalog.get("reference@old").unwrap().dir, folder);
    let unknown = catalog.get("reference@odl").unwrap_err();
    assert!(unknown.help().unwrap().to_string().starts_with("did you mean `reference@old`?"));
    // The variants of a broken manifest are unknown. Asking for one returns the manifest's error.
    assert!(matches!(catalog.get("broken@old"), Err(CatalogError::Broken(_))));
}

/// Knobs of ready-made systems that cannot be set by a single line, with the reason.
const WITHOUT_APPLY: [(&str, &str, &str); 3] = [
    ("cowboy-latest", "dynamic_buffer", "0 is written as `false`, all else as a range"),
    ("erlang-socket", "read", "it is another way to write the program"),
    ("go-http", "gzip", "the program compresses, because net/http does not"),
];

#[test]
fn every_knob_of_a_ready_made_system_says_how_it_is_set() {
    let home = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let catalog = Catalog::load(home);
    let mut silent: Vec<(&str, &str)> = Vec::new();
    for manifest in catalog.manifests().filter(|manifest| manifest.variant.is_none()) {
        // Nobody sets how much work there is.
        let knobs = manifest.knobs.iter().filter(|(_, knob)| !knob.amount).map(|(name, _)| name.as_str());
        silent
            .extend(knobs.filter(|k| !manifest.apply.contains_key(*k)).map(|k| (manifest.name.as_str(), k)));
        // A filled line has the value and no doubled braces.
        for (knob, line) in &manifest.apply {
            let word = crate::Value::Text("VALUE".to_owned());
            let filled = crate::manifest::applied(line, &word);
            let whole = filled.contains("VALUE") && !filled.contains("{{") && !filled.contains("{value}");
            assert!(whole, "{} {knob}: {filled}", manifest.name);
        }
    }
    silent.sort_unstable();
    assert_eq!(silent, WITHOUT_APPLY.map(|(system, knob, _)| (system, knob)));
}
