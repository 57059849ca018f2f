//! The inputs of a build: a change to any kind of input leads to a new build that reports the new version, and no change
//! to none.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use common::{Home, eventually};
use systems::build::last_failure;
use systems::{Manifest, build};

/// A client whose build copies `file` to `{out}` as its version and then runs `script`.
fn made_of(home: &Home, file: &str, script: &str, lines: &str) -> Manifest {
    let script = format!("echo x >> {{home}}/count; cp {file} {{out}}/VERSION; {script}");
    home.built_by(&script, &format!("version=['cat','{{out}}/VERSION']\n{lines}"))
}

/// Runs it three times. Only the first run builds, and all report this version.
fn builds_once(home: &Home, manifest: &Manifest, needs: &str, version: &str) {
    let before = home.count();
    for run in 1..=3 {
        let built = build(manifest, home.context(), needs).unwrap();
        assert_eq!(built.version.as_deref(), Some(version));
        assert_eq!(home.count(), before + 1, "run {run}");
    }
}

fn builds_nothing(home: &Home, manifest: &Manifest, version: &str) {
    let before = home.count();
    let built = build(manifest, home.context(), "").unwrap();
    assert_eq!((built.version.as_deref(), home.count()), (Some(version), before));
}

#[test]
fn files_behind_links_are_hashed_by_content() {
    let home = Home::new();
    home.write("elsewhere/deep/file", "1");
    home.write("elsewhere/other", "x");
    for (link, to, file) in [
        ("systems/probe/folder", "elsewhere", "folder/deep/file"),
        ("systems/probe/file", "elsewhere/deep/file", "file"),
        ("systems/shared/folder", "elsewhere", "../shared/folder/deep/file"),
    ] {
        let link = home.path().join(link);
        symlink(home.path().join(to), &link).unwrap();
        let manifest = made_of(&home, file, "", "");
        home.write("elsewhere/deep/file", "1");
        builds_once(&home, &manifest, "", "1");
        home.write("elsewhere/deep/file", "2");
        builds_once(&home, &manifest, "", "2");
        fs::remove_file(link).unwrap();
    }
    // The link now leads to another file of the same content.
    let link = home.dir().join("link");
    home.write("elsewhere/same", "x");
    symlink(home.path().join("elsewhere/other"), &link).unwrap();
    let manifest = made_of(&home, "link", "", "");
    builds_once(&home, &manifest, "", "x");
    fs::remove_file(&link).unwrap();
    symlink(home.path().join("elsewhere/same"), &link).unwrap();
    builds_nothing(&home, &manifest, "x");
}

#[test]
fn dangling_circular_and_special_links_are_hashed_as_such() {
    let home = Home::new();
    home.write("systems/probe/source", "1");
    let link = |name: &str, to: &str| symlink(to, home.dir().join(name)).unwrap();
    link("circle", ".");
    link("above", "..");
    link("itself", "itself");
    link("zero", "/dev/zero");
    link("processes", "/proc");
    link("devices", "/sys/devices");
    link("nowhere", "later");
    let pipe = std::process::Command::new("mkfifo").arg(home.dir().join("pipe")).status();
    assert!(pipe.unwrap().success());
    let manifest = made_of(&home, "source", "", "");
    builds_once(&home, &manifest, "", "1");
    home.write("systems/probe/later/file", "");
    builds_once(&home, &manifest, "", "1");
}

#[test]
fn too_many_files_are_refused_with_their_place() {
    let home = Home::new();
    // Each folder contains the next one twice: there are a million paths through twenty folders.
    for level in 0..20 {
        let folder = home.path().join(format!("wide/{level}"));
        fs::create_dir_all(&folder).unwrap();
        for name in ["a", "b"] {
            symlink(format!("../{}", level + 1), folder.join(name)).unwrap();
        }
    }
    let link = home.dir().join("link");
    symlink(home.path().join("wide/0"), &link).unwrap();
    home.write("systems/probe/source", "1");
    let manifest = made_of(&home, "source", "", "");
    let error = build(&manifest, home.context(), "").unwrap_err();
    assert!(error.reason.contains("systems/probe holds more than 100000 files"), "{error}");
    assert!(error.reason.contains("link or name only what the build needs"), "{error}");
    assert_eq!(home.count(), 0);
    fs::remove_file(link).unwrap();
    builds_once(&home, &manifest, "", "1");
}

#[test]
fn a_large_file_is_judged_by_its_length_and_time() {
    let home = Home::new();
    let large = home.dir().join("large");
    fs::File::create(&large).unwrap().set_len(64 << 20).unwrap();
    home.write("systems/probe/source", "1");
    let manifest = made_of(&home, "source", "", "");
    builds_once(&home, &manifest, "", "1");
    let time = || fs::metadata(&large).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
    let before = time();
    eventually("the file's time changes", || {
        let file = fs::File::options().write(true).open(&large).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 1 << 20).unwrap();
        time() != before
    });
    builds_once(&home, &manifest, "", "1");
    // A small file beside it is still judged by its content.
    home.write("systems/probe/source", "2");
    builds_once(&home, &manifest, "", "2");
}

/// A script that writes into the folder of each library, as build tools do, with different content each time.
const COMPILE: &str = "for library in _checkouts/* deps/*; do [ -d $library/src ] || continue; \
    mkdir -p $library/ebin $library/priv $library/_build $library/.tool; \
    for file in ebin/a.beam ebin/a.app src/a.beam c.o priv/c.so priv/made _build/x .tool/x .lock; do \
    (wc -l < {home}/count; echo {variant}) > $library/$file; done; done";

#[test]
fn sources_of_libraries_count_and_compiled_files_do_not() {
    let home = Home::new();
    home.write("src/library/src/library.erl", "1");
    home.write("src/library/priv/brought", "1");
    symlink(home.path().join("src"), home.dir().join("_checkouts")).unwrap();
    let manifest = made_of(&home, "_checkouts/library/src/library.erl", COMPILE, "");
    builds_once(&home, &manifest, "", "1");
    home.write("src/library/src/library.erl", "2");
    builds_once(&home, &manifest, "", "2");
    for (file, text) in [("library/priv/brought", "2"), ("library/include/new.hrl", ""), ("other/src/x", "")]
    {
        home.write(&format!("src/{file}"), text);
        builds_once(&home, &manifest, "", "2");
    }
    fs::remove_dir_all(home.path().join("src/other")).unwrap();
    builds_once(&home, &manifest, "", "2");
    // Of a library without sources the compiled files count.
    home.write("src/compiled/ebin/x.beam", "1");
    builds_once(&home, &manifest, "", "2");
    home.write("src/compiled/ebin/x.beam", "2");
    builds_once(&home, &manifest, "", "2");
}

#[test]
fn two_variants_compile_one_library_in_turn() {
    let home = Home::new();
    home.write("systems/probe/_checkouts/library/src/a.erl", "1");
    let script = format!("echo x >> {{home}}/count; echo x > {{out}}/VERSION; {COMPILE}");
    let script = script.replace("priv/made", "").replace("ebin/a.app", "");
    let text = format!(
        "name='probe'\nrole='client'\nworkloads=['clients']\nlanguage='sh'\nabout=''\n[start]\ncommand=['true']\n\
         [build]\ncommand=['sh','-c','''{script}''']\n[variants.one]\n[variants.two]\n"
    );
    let all = Manifest::parse(&systems::Source::new("system.toml", text), &home.dir()).unwrap();
    for _ in 0..2 {
        for manifest in &all {
            build(manifest, home.context(), "").unwrap();
        }
        assert_eq!(home.count(), 3);
    }
}

#[test]
fn libraries_that_the_build_fetches_count() {
    for place in ["_build/deps", "_build/default/lib"] {
        let home = Home::new();
        let library = format!("systems/probe/{place}/library");
        let fetch = format!("mkdir -p {place}/library/src; echo 1 > {place}/library/src/a.ex");
        let get = format!("[ -d {place}/library ] || ({fetch})");
        let script = format!("{get}; cp {place}/library/src/a.ex {{out}}/VERSION; exit $(cat status)");
        home.write("systems/probe/status", "1");
        let manifest = made_of(&home, "status", &script, "get='again'");
        // The failure is listed although the build fetched something.
        build(&manifest, home.context(), "").unwrap_err();
        let listed = last_failure(&manifest, home.context(), "");
        assert_eq!(listed.as_deref(), Some("the build exited with code 1"));
        fs::remove_dir_all(home.path().join(&library)).unwrap();
        home.write("systems/probe/status", "0");
        builds_once(&home, &manifest, "", "1");
        home.write(&format!("{library}/src/a.ex"), "2");
        builds_once(&home, &manifest, "", "2");
    }
}

#[test]
fn an_edit_during_the_build_is_built_by_the_next_run() {
    for (file, lines) in [
        ("source", ""),
        ("../shared/source", ""),
        ("_checkouts/library/src/source", ""),
        ("_build/deps/library/lib/source", ""),
        ("{home}/source", "inputs=['{home}/source']"),
    ] {
        let home = Home::new();
        let place = file.replace("{home}", "../..");
        home.write(&format!("systems/probe/{place}"), "1");
        let manifest = made_of(
            &home,
            file,
            &format!("[ -e {{home}}/edited ] || echo 2 > {file}; touch {{home}}/edited"),
            lines,
        );
        assert_eq!(build(&manifest, home.context(), "").unwrap().version.as_deref(), Some("1"), "{file}");
        builds_once(&home, &manifest, "", "2");
    }
}

#[test]
fn inputs_of_the_manifest_count() {
    let home = Home::new();
    home.write("libraries/cowboy-2.9/ebin/cowboy.beam", "1");
    home.write("libraries/cowboy-2.9/src/cowboy.erl", "1");
    let absolute = home.path().join("libraries").display().to_string();
    for (input, file, place) in [
        (
            "../../libraries",
            "../../libraries/cowboy-2.9/ebin/cowboy.beam",
            "libraries/cowboy-2.9/ebin/cowboy.beam",
        ),
        (
            "{home}/libraries",
            "{home}/libraries/cowboy-2.9/ebin/cowboy.beam",
            "libraries/cowboy-2.9/ebin/cowboy.beam",
        ),
        (&*absolute, "{home}/libraries/cowboy-2.9/src/cowboy.erl", "libraries/cowboy-2.9/src/cowboy.erl"),
        ("{dir}/.npmrc", ".npmrc", "systems/probe/.npmrc"),
        (".cargo", ".cargo/config.toml", "systems/probe/.cargo/config.toml"),
    ] {
        home.write(place, "1");
        let manifest = made_of(&home, file, "", &format!("inputs=['no/such/file', '{input}']"));
        builds_once(&home, &manifest, "", "1");
        home.write(place, "2");
        builds_once(&home, &manifest, "", "2");
        home.write("systems/probe/no/such/file", "it is there now");
        builds_once(&home, &manifest, "", "2");
        fs::remove_dir_all(home.dir().join("no")).unwrap();
    }
}

#[test]
fn an_input_that_the_build_writes_counts_as_it_left_it() {
    for (input, place) in [
        ("{home}/target/systems/unpacked", "target/systems/unpacked/file"),
        ("_build/mix.lock", "systems/probe/_build/mix.lock"),
    ] {
        let home = Home::new();
        let file = format!("{{home}}/{place}");
        let unpack = format!(
            "mkdir -p $(dirname {file}); [ -e {file} ] || echo 1 > {file}; cp {file} {{out}}/VERSION"
        );
        let manifest = made_of(&home, "/dev/null", &unpack, &format!("inputs=['{input}']"));
        builds_once(&home, &manifest, "", "1");
        home.write(place, "2");
        builds_once(&home, &manifest, "", "2");
    }
}

#[test]
fn lock_files_count() {
    for place in [
        "systems/shared/rust/Cargo.lock",
        "systems/probe/Cargo.lock",
        "systems/probe/package-lock.json",
        "systems/probe/requirements.txt",
        "systems/probe/go.sum",
        "systems/probe/rebar.lock",
        "systems/probe/mix.lock",
    ] {
        let home = Home::new();
        home.write(place, "1");
        let manifest = made_of(&home, &format!("{{home}}/{place}"), "", "");
        builds_once(&home, &manifest, "", "1");
        home.write(place, "2");
        builds_once(&home, &manifest, "", "2");
    }
}

#[test]
fn versions_of_needs() {
    let home = Home::new();
    home.write("compiler", "12");
    let manifest = made_of(&home, "{home}/compiler", "", "");
    builds_once(&home, &manifest, "compiler 12", "12");
    home.write("compiler", "13");
    builds_once(&home, &manifest, "compiler 13", "13");
    // A failure is listed only for the versions with which it happened.
    home.write("systems/probe/x", "");
    let broken = made_of(&home, "{home}/compiler", "exit 3", "");
    build(&broken, home.context(), "compiler 13").unwrap_err();
    assert!(last_failure(&broken, home.context(), "compiler 13").is_some());
    assert_eq!(last_failure(&broken, home.context(), "compiler 14"), None);
}
