//! Tests of the catalog: broken manifests beside good ones, unknown names, the home folder.

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
fn a_broken_manifest_stops_nothing_else() {
    let home = home();
    let catalog = Catalog::load(home.path());
    assert_eq!(catalog.manifests().count(), 1);
    assert_eq!(catalog.get("reference").unwrap().home(), home.path());
    let (name, error) = catalog.broken().next().unwrap();
    assert_eq!((name, error.position().unwrap().0), ("broken", 1));
    assert!(matches!(catalog.get("broken"), Err(CatalogError::Broken(_))));
    assert!(catalog.reference_for(Workload::Requests).is_some());
    assert!(catalog.reference_for(Workload::Upload).is_none());
    assert!(catalog.reference_for(Workload::Clients).is_none());
    let unknown = catalog.get("refrence").unwrap_err();
    let help = unknown.help().unwrap().to_string();
    assert_eq!(help, "did you mean `reference`? known: broken, reference");
    assert_eq!(Catalog::load(Path::new("/nowhere")).manifests().count(), 0);
}

#[test]
fn home_must_hold_both_folders() {
    let home = home();
    assert!(find_home(Some(home.path())).is_err());
    std::fs::create_dir(home.path().join("experiments")).unwrap();
    assert_eq!(find_home(Some(home.path())).unwrap(), home.path().canonicalize().unwrap());
}

#[test]
fn variants_are_systems_of_their_own() {
    let home = home();
    let folder = home.path().join("systems/reference");
    std::fs::write(folder.join("system.toml"), format!("{GOOD}[variants.old]\nenv = {{ A = \"1\" }}\n"))
        .unwrap();
    let catalog = Catalog::load(home.path());
    let names: Vec<&str> = catalog.manifests().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(names, ["reference", "reference@old"]);
    assert_eq!(catalog.get("reference@old").unwrap().dir, folder);
    let unknown = catalog.get("reference@odl").unwrap_err();
    assert!(unknown.help().unwrap().to_string().starts_with("did you mean `reference@old`?"));
    // What a broken manifest's variants are called is not known, but why they cannot be had.
    assert!(matches!(catalog.get("broken@old"), Err(CatalogError::Broken(_))));
}
