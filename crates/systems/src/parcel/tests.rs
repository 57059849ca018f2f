use std::path::Path;

use serde_json::json;

use super::*;
use crate::{Catalog, Source};

/// A home with a system `x`, whose manifest has these lines besides its start.
fn home(lines: &str) -> (tempfile::TempDir, Manifest) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("systems/x");
    fs::create_dir_all(dir.join("src/deep")).unwrap();
    fs::create_dir_all(home.path().join("systems/shared")).unwrap();
    for (name, content) in [
        ("systems/x/run.sh", &b"#!/bin/sh\necho {run}\n"[..]),
        ("systems/x/src/deep/any", &[0, 1, 9, 127, 128, 255, b'"', b'\\']),
        ("systems/x/.hidden", b"stays"),
        ("systems/x/_build/made", b"stays"),
        ("systems/shared/common", b"shared"),
        ("systems/y/Cargo.toml", b"elsewhere in the home"),
        ("target/systems/other/made", b"stays"),
    ] {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("../../shared/common", dir.join("src/link")).unwrap();
    let text = format!(
        "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n\
         [start]\ncommand=['sh','run.sh','{{port}}']\ndir='src'\n[build]\ncommand=['true']\n{lines}"
    );
    let manifest = Manifest::parse(&Source::new("system.toml", text), &dir).unwrap().remove(0);
    (home, manifest)
}

#[test]
fn a_system_is_unpacked_as_it_was() {
    let inputs = "inputs=['../y/Cargo.toml', '{home}/target/systems/other', '$A', '{$B}/c', '/etc/hostname', '../none']";
    let (from, manifest) = home(inputs);
    let parcel = Parcel::of(&manifest).unwrap();
    let sent = serde_json::to_string(&parcel).unwrap();
    assert!(sent.contains("echo {run}") && !sent.contains("stays"), "{sent}");
    let arrived: Parcel = serde_json::from_str(&sent).unwrap();
    assert_eq!((arrived.hash(), &arrived), (parcel.hash(), &parcel));

    let cache = tempfile::tempdir().unwrap();
    assert_eq!(unpacked(cache.path(), &parcel.hash()), None);
    let to = arrived.unpack(cache.path()).unwrap();
    assert_eq!(
        (unpacked(cache.path(), &parcel.hash()), arrived.unpack(cache.path()).ok()),
        (Some(to.clone()), Some(to.clone()))
    );
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1, "nothing is left beside it");
    for name in ["systems/x/run.sh", "systems/x/src/deep/any", "systems/x/src/link", "systems/y/Cargo.toml"] {
        assert_eq!(fs::read(to.join(name)).unwrap(), fs::read(from.path().join(name)).unwrap(), "{name}");
    }
    assert_eq!(fs::read_link(to.join("systems/x/src/link")).unwrap(), Path::new("../../shared/common"));
    let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o100;
    assert_eq!((mode("systems/x/run.sh"), mode("systems/y/Cargo.toml")), (0o100, 0));
    assert!(!to.join("systems/x/.hidden").exists() && !to.join("target").exists());

    let moved = manifest.clone().in_home(&to);
    assert_eq!((moved.dir.as_path(), moved.home()), (to.join("systems/x").as_path(), to.as_path()));
    let Program::Started(start) = &moved.program else { panic!("it is started") };
    assert_eq!(start.dir, to.join("systems/x/src"));
    assert_eq!(Parcel::of(&moved).as_ref(), Ok(&parcel), "it can be sent on");
    assert_eq!(moved.in_home(from.path()), manifest);
}

#[test]
fn the_hash_is_that_of_the_content() {
    let (from, manifest) = home("");
    let hash = |manifest: &Manifest| Parcel::of(manifest).unwrap().hash();
    let (before, dir) = (hash(&manifest), from.path().join("systems/x"));
    let (_other, same) = home("");
    assert_eq!(before, hash(&same));
    fs::write(dir.join(".hidden"), "changed").unwrap();
    assert_eq!(before, hash(&manifest));
    let mut seen = vec![before];
    let changes: [&dyn Fn(); 5] = [
        &|| fs::write(dir.join("run.sh"), "").unwrap(),
        &|| fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o600)).unwrap(),
        &|| fs::rename(dir.join("run.sh"), dir.join("run")).unwrap(),
        &|| fs::create_dir(dir.join("empty")).unwrap(),
        &|| symlink("run", dir.join("again")).unwrap(),
    ];
    for change in changes {
        change();
        let after = hash(&manifest);
        assert!(!seen.contains(&after));
        seen.push(after);
    }
}

#[test]
fn what_cannot_be_sent_is_named() {
    let refused = |spoil: &dyn Fn(&Path)| {
        let (from, manifest) = home("");
        spoil(&from.path().join("systems/x"));
        Parcel::of(&manifest).expect_err("it is refused")
    };
    let link = |to: &'static str| refused(&move |dir| symlink(to, dir.join("l")).unwrap());
    for outside in ["/etc/passwd", "../../../outside", "src/../../../../outside", "src/.."] {
        assert!(link(outside).contains("systems/x/l is a link to"), "{outside}: {}", link(outside));
    }
    for not_sent in ["../y/Cargo.toml", "nothing", ".hidden"] {
        assert!(link(not_sent).contains("name it in build.inputs"), "{not_sent}: {}", link(not_sent));
    }
    let large = refused(&|dir| fs::File::create(dir.join("large")).unwrap().set_len(1 << 40).unwrap());
    assert!(large.contains("more than 8 MiB with systems/x/large"), "{large}");
    let deep = refused(&|dir| fs::create_dir_all(dir.join(["d"; 70].join("/"))).unwrap());
    assert!(deep.contains("64 folders deep"), "{deep}");
    let reference = Catalog::new(Path::new("/h"));
    let error = Parcel::of(reference.get("reference").unwrap()).unwrap_err();
    assert!(error.contains("not in systems/ of its home"), "{error}");
}

#[test]
fn a_parcel_that_leads_out_of_its_folder_is_refused() {
    let file = || json!({ "File": { "content": "a", "executable": false } });
    let parcel = |value: serde_json::Value| serde_json::from_value::<Parcel>(value);
    for good in [
        json!({ "a": file(), "b/c": { "Link": "../a" }, "b/d": { "Link": "c" }, "e": "Folder" }),
        json!({ "b/l": { "Link": ".." } }),
        json!({ "b/l": { "Link": "./" }, "b/m": { "Link": ".././x//y/" } }),
        json!({}),
    ] {
        assert!(parcel(good.clone()).is_ok(), "{good}");
    }
    for path in ["", "/a", "../a", "a/../b", "a//b", "a/", "./a", "a\0"] {
        assert!(parcel(json!({ path: file() })).is_err(), "{path:?}");
    }
    for (path, fits) in [
        ("a".repeat(paths::LONGEST), true),
        ("a".repeat(paths::LONGEST + 1), false),
        ("a/".repeat(paths::MOST_ABOVE) + "a", true),
        ("a/".repeat(paths::MOST_ABOVE + 1) + "a", false),
    ] {
        let read = parcel(json!({ &path: file() }));
        assert_eq!(read.is_ok(), fits, "{path}");
        assert!(read.err().is_none_or(|why| why.to_string().len() < 300));
    }
    assert!(parcel(json!({ "l": { "Link": "a".repeat(paths::LONGEST + 1) } })).is_err());
    for to in ["", "/", "/etc", "..", "./..", "../a", "x/..", "x/./..", "x/../../..", "a\0b"] {
        assert!(parcel(json!({ "l": { "Link": to } })).is_err(), "{to:?}");
    }
    for through in [
        json!({ "l": { "Link": "x" }, "l/a": file() }),
        json!({ "l": file(), "l/b/c": file() }),
        json!({ "l": { "Link": "x" }, "l/b": { "Link": "../.." } }),
        // Each of these seems to stay inside, and both together do not.
        json!({ "a/b/one": { "Link": "../.." }, "a/b/two": { "Link": "one/../x" } }),
        json!({ "a": { "File": { "content": "…", "executable": false } } }),
    ] {
        assert!(parcel(through.clone()).is_err(), "{through}");
    }
    let many: serde_json::Map<_, _> = (0..=MOST_ENTRIES).map(|n| (n.to_string(), json!("Folder"))).collect();
    assert!(parcel(many.into()).is_err());
    let large = json!({ "File": { "content": "a".repeat(MOST_BYTES + 1), "executable": true } });
    assert!(parcel(json!({ "a": large })).is_err());
    for odd in ["", "..", "x", &"0".repeat(63), &format!("../{}", "0".repeat(61))] {
        assert_eq!(unpacked(Path::new("/"), odd), None, "{odd}");
    }
}

#[test]
fn every_system_of_the_checkout_can_be_sent() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let catalog = Catalog::load(&home);
    let dir = home.join("systems");
    for manifest in catalog.manifests().filter(|manifest| manifest.dir.starts_with(&dir)) {
        let sent = serde_json::to_string(&Parcel::of(manifest).unwrap()).unwrap();
        assert!(sent.contains(&format!("systems/{}/system.toml", manifest.name.split('@').next().unwrap())));
        if manifest.name == "hyper" {
            assert!(sent.contains("systems/reqwest/Cargo.toml"), "its build reads this");
        }
    }
}

proptest::proptest! {
    #[test]
    fn what_is_unpacked_stays_in_its_folder(
        names in proptest::collection::vec("(a|b|\\.\\.|/|l){1,5}", 1..6),
        links in proptest::collection::vec("(a|b|l|\\.\\.|/|\\.){1,6}", 1..6),
    ) {
        let entries = names.into_iter().zip(links.into_iter().map(Entry::Link)).collect::<BTreeMap<_, _>>();
        let Ok(parcel) = Parcel::try_from(entries) else { return Ok(()) };
        let cache = tempfile::tempdir().unwrap();
        let to = parcel.unpack(cache.path()).unwrap().canonicalize().unwrap();
        for path in parcel.entries.keys() {
            // Links that lead nowhere and those that lead to each other have no place.
            let place = to.join(path).canonicalize();
            proptest::prop_assert!(place.is_err() || place.is_ok_and(|place| place.starts_with(&to)), "{parcel:?}");
        }
    }
}

#[test]
fn files_of_any_size_come_together_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = |length: usize| (0..length).map(|n| (n % 251) as u8).collect::<Vec<u8>>();
    let files = [
        ("a/empty", content(0)),
        ("a/whole", content(MOST_BYTES)),
        ("b", content(5)),
        ("c/more", content(2 * MOST_BYTES + 1)),
        ("d", content(9)),
    ];
    for (name, bytes) in &files {
        let path = from.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::set_permissions(from.path().join("b"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../b", from.path().join("a/inside")).unwrap();
    symlink("/etc", from.path().join("out")).unwrap();
    symlink("a/../../b", from.path().join("up")).unwrap();
    for (name, to) in [("same", "./d"), ("slash", "a//"), ("a/above", ".././d")] {
        symlink(to, from.path().join(name)).unwrap();
    }
    fs::create_dir(from.path().join("nothing")).unwrap();
    let names = [
        "a/inside", "a/empty", "a/whole", "b", "nothing", "c/more", "out", "d", "up", "same", "slash",
        "a/above",
    ]
    .map(str::to_owned);
    let mut parts = Parts::of(from.path(), &names);
    let mut number = 0;
    for part in &mut parts {
        part.unwrap().add_to(to.path()).unwrap();
        number += 1;
    }
    assert_eq!((number, &parts.left_out[..]), (4, &["out", "up"][..]));
    for (name, bytes) in &files {
        assert!(fs::read(to.path().join(name)).unwrap() == *bytes, "{name}");
    }
    for (name, leads_to) in [("a/inside", "../b"), ("same", "./d"), ("slash", "a//"), ("a/above", ".././d")] {
        assert_eq!(fs::read_link(to.path().join(name)).unwrap(), Path::new(leads_to));
    }
    let is_executable = |name: &str| fs::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o100;
    assert_eq!((is_executable("b"), is_executable("d")), (0o100, 0));
    assert!(to.path().join("nothing").is_dir());
    assert!(Parts::of(from.path(), &[]).next().is_none());
    assert!(Parts::of(from.path(), &["none".to_owned()]).next().unwrap().is_err());
    assert!(Parts::of(from.path(), &["../b".to_owned()]).next().unwrap().is_err());
}

#[test]
fn a_part_reaches_nothing_through_what_an_earlier_one_made() {
    let part = |entries: serde_json::Value| serde_json::from_value::<Parcel>(entries).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "old").unwrap();
    let to = outside.path().join("to");
    fs::create_dir(&to).unwrap();
    symlink("..", to.join("link")).unwrap();
    symlink("../file", to.join("linked")).unwrap();
    fs::write(to.join("there"), "").unwrap();
    for entries in [
        json!({ "link/file": { "File": { "content": "new", "executable": false } } }),
        json!({ "link/folder": "Folder" }),
        json!({ "link": "Folder" }),
        json!({ "linked": { "Rest": "new" } }),
        json!({ "linked": { "File": { "content": "new", "executable": false } } }),
        json!({ "there": { "File": { "content": "new", "executable": false } } }),
        json!({ "none": { "Rest": "new" } }),
    ] {
        assert!(part(entries.clone()).add_to(&to).is_err(), "{entries}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "old");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
}
