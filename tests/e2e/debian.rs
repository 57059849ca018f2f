//! A package of a release of Debian, fetched from a mirror and run where it is unpacked.

use std::path::Path;

use crate::support::home::Home;
use crate::support::{has, run, skip};

const MANIFEST: &str = r#"
[variants.old]
path = "{debian}/usr/bin"
[[variants.old.needs]]
name = "hello"
debian = { release = "bookworm", packages = ["hello"] }
probe = ["sh", "-c", "hello && hello --version"]
version = '^(Hello, world!)'
"#;

#[test]
fn a_package_of_a_release_runs_where_it_is_unpacked() {
    if !has("apt-get") || !has("dpkg-deb") {
        return;
    }
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").exists() {
        return skip("a package of a release", "debian-archive-keyring is not installed");
    }
    let home = Home::new();
    home.server("hello", r#"["hello", "{port}"]"#, MANIFEST);
    let cache = home.path("cache");
    let narrows = |words: &[&str]| run(home.narrows(words).env("XDG_CACHE_HOME", &cache));
    let installed = narrows(&["systems", "--install", "hello@old"]);
    home.assert_nothing_left();
    let unreached = ["Could not resolve", "Failed to fetch", "Could not connect", "Connection failed"];
    if unreached.iter().any(|word| installed.stdout.contains(word)) {
        return skip("a package of a release", "no mirror of Debian can be reached");
    }
    let installed = installed.code(0);
    assert!(installed.stdout.contains("Everything that Debian provides is here now."), "{installed:#?}");
    let folders = std::fs::read_dir(cache.join("narrows/debian")).expect("the releases").flatten();
    let folder = folders.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a folder of packages");
    // It runs with the C library of its release, which is beside it.
    let program = std::fs::read(folder.join("usr/bin/hello")).expect("the program");
    let own = folder.display().to_string().into_bytes();
    assert!(program.windows(own.len()).any(|part| part == own), "it leads into {}", folder.display());
    let record = std::fs::read_to_string(folder.join("PACKAGES")).expect("its record");
    assert!(record.contains("hello ") && record.contains("libc6 "), "{record}");
    let listed = narrows(&["systems", "--json"]).code(0).json();
    let found = listed.as_array().and_then(|all| all.iter().find(|system| system["name"] == "hello@old"));
    assert_eq!(found.map(|system| &system["available"]), Some(&serde_json::Value::Bool(true)), "{listed}");
}
