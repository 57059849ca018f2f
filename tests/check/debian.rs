//! Packages of a release of Debian: where they are looked for, and that a folder of them is whole or not there. The tests replace
//! apt-get and dpkg-deb; a test in tests/e2e fetches from a mirror.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::home::Home;
use crate::support::{Ended, run, skip, squeezed};

/// A server with a variant that needs the package frob of a release.
const MANIFEST: &str = r#"
[variants.old]
path = "{debian}/usr/bin"
[[variants.old.needs]]
name = "frob"
debian = { release = "oldie", packages = ["frob"], dependencies = false }
probe = ["frob"]
version = '(\d)'
"#;

/// A home with that server, and an apt-get for which the mirror at this place has the release.
fn home(mirror: &str) -> Option<Home> {
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").exists() {
        skip("packages of a release", "debian-archive-keyring is not installed");
        return None;
    }
    let home = Home::new();
    home.server("frobs", r#"["frob", "{port}"]"#, MANIFEST);
    let asked = home.path("asked");
    tool(
        &home,
        "apt-get",
        &format!(
            "echo \"$@\" >> {}\n\
             [ \"$1\" != indextargets ] || {{ echo http://mirror.example/debian/; exit; }}\n\
             state=${{3%/*}}\n\
             case $4 in\n\
             update) if grep -q ' {mirror} oldie main' $state/sources.list; then : > $state/lists/oldie_Packages\n\
             else echo \"E: The repository 'x' does not have a Release file.\"; exit 100; fi;;\n\
             download) : > frob_1%3a7_all.deb;;\n\
             esac",
            asked.display()
        ),
    );
    unpacks(
        &home,
        "mkdir -p $3/usr/bin; printf '#!/bin/sh\\necho 7\\n' > $3/usr/bin/frob; /bin/chmod 755 $3/usr/bin/frob",
    );
    Some(home)
}

/// Lets dpkg-deb do this.
fn unpacks(home: &Home, script: &str) {
    tool(home, "dpkg-deb", &format!("[ $1 = --extract ] || exit 2\n{script}"));
}

fn tool(home: &Home, name: &str, script: &str) {
    home.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("bin").join(name), mode).expect("it can be run");
}

fn narrows(home: &Home, words: &[&str]) -> Ended {
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    run(home.narrows(words).env("PATH", path).env("XDG_CACHE_HOME", home.path("cache")))
}

fn says(text: &str, words: &[&str]) {
    let text = squeezed(text);
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
}

/// The names in the folder of releases, without the lock.
fn kept(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.path("cache/narrows/debian")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn a_release_that_left_the_mirrors_is_found_in_the_archive() {
    let Some(home) = home("http://archive.debian.org/debian") else { return };
    let listed = narrows(&home, &["systems"]).code(0);
    let get =
        "needs frob (not fetched yet): narrows systems --install frobs@old fetches it from Debian's oldie";
    says(&listed.stdout, &["frobs@old server missing", get]);
    // No run without arguments needs it.
    let others = "By name it also fetches what these lack: frobs@old";
    says(
        &narrows(&home, &["systems", "--install"]).code(0).stdout,
        &["Nothing that Debian provides is missing", others],
    );
    home.experiment("requests", "[\"frobs@old\"]", 2, "[[grid]]\nconnections = 2\n");
    let installed = narrows(&home, &["systems", "--install"]).code(0);
    says(
        &installed.stdout,
        &[
            "frobs@old frob",
            "asking http://mirror.example/debian for oldie",
            "asking http://archive.debian.org/debian for oldie",
            "fetching frob of oldie",
            "Everything that Debian provides is here now.",
        ],
    );
    says(&narrows(&home, &["systems"]).code(0).stdout, &["frobs@old server runs here requests frob 7"]);
    let kept = kept(&home);
    assert!(matches!(&kept[..], [name] if name.starts_with("oldie-")), "{kept:?}");
    let folder = home.path("cache/narrows/debian").join(&kept[0]);
    assert_eq!(std::fs::read_to_string(folder.join("PACKAGES")).expect("its record"), "frob 1:7\n");
    // What is here is not fetched again.
    let asked = || std::fs::read_to_string(home.path("asked")).unwrap_or_default();
    let before = asked();
    says(
        &narrows(&home, &["systems", "--install"]).code(0).stdout,
        &["Nothing that Debian provides is missing"],
    );
    assert_eq!(asked(), before);
    narrows(&home, &["agent", "--clean"]).code(0);
    assert!(!folder.exists());
}

#[test]
fn a_release_that_is_nowhere_is_said_to_be_gone() {
    let Some(home) = home("http://nowhere.example/debian") else { return };
    let installed = narrows(&home, &["systems", "--install", "frobs@old"]).code(1);
    let gone = "frob of oldie cannot be fetched: none of http://mirror.example/debian, http://deb.debian.org/debian, \
                http://archive.debian.org/debian has a release of the name oldie";
    says(&installed.stdout, &[gone]);
    assert_eq!(kept(&home), [""; 0]);
}

#[test]
fn packages_that_cannot_be_unpacked_whole_are_not_there() {
    let Some(home) = home("http://mirror.example/debian") else { return };
    unpacks(&home, "mkdir -p $3/usr/bin; echo 'half a package' >&2; exit 2");
    let installed = narrows(&home, &["systems", "--install", "frobs@old"]).code(1);
    says(&installed.stdout, &["frob of oldie cannot be fetched: half a package"]);
    assert_eq!(kept(&home), [""; 0]);
    says(&narrows(&home, &["systems"]).code(0).stdout, &["needs frob (not fetched yet)"]);
}

#[test]
fn without_apt_it_says_what_to_install() {
    let Some(home) = home("http://mirror.example/debian") else { return };
    // Only what the test needs is in this path.
    let mut command = home.narrows(["systems"]);
    command.env("PATH", home.path("none")).env("XDG_CACHE_HOME", home.path("cache"));
    let listed = run(&mut command).code(0);
    says(
        &listed.stdout,
        &[
            "needs frob (`apt-get` is not installed, which fetches it): install apt and dpkg, as on Debian and Ubuntu",
        ],
    );
    let mut command = home.narrows(["systems"]);
    command.env("PATH", home.path("bin")).env("XDG_CACHE_HOME", home.path("odd cache"));
    says(
        &run(&mut command).code(0).stdout,
        &["programs cannot be unpacked into", "let XDG_CACHE_HOME name another folder"],
    );
}
