//! What a manifest and the files of its system cost: twice as much takes about twice as long to read, to send and to unpack.

use std::path::Path;

use cost::is_near_linear;

use crate::knob::MOST_VALUES;
use crate::parcel::Parts;
use crate::{Manifest, Parcel, Source};

/// A manifest whose command has these further words, and which goes on with this.
fn text(words: &str, rest: &str) -> String {
    format!(
        "name='x'\nrole='server'\nworkloads=['requests']\nlanguage=''\nabout=''\n[start]\ncommand=['x','{{port}}',{words}]\n{rest}"
    )
}

fn read(text: &str) -> Vec<Manifest> {
    let source = Source::new("system.toml", text);
    Manifest::parse(&source, Path::new("/h/systems/x")).unwrap_or_else(|error| panic!("{}", error.one_line()))
}

/// So many parts that each have their number.
fn numbered(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

fn is_read(size: usize, made: impl Fn(usize) -> String) {
    is_near_linear(size, |size| {
        let text = made(size);
        move || assert!(!read(&text).is_empty())
    });
}

fn knobs(count: usize) -> String {
    let words = numbered(count, |at| format!("'{{k{at}}}',"));
    let knob = |at| format!("[knobs.k{at}]\ntype='integer'\ndefault=1\nabout=''\n");
    text(&words, &numbered(count, knob))
}

#[test]
fn knobs_that_are_all_used() {
    is_read(100, knobs);
    let applied = |count| knobs(count) + "[apply]\n" + &numbered(count, |at| format!("k{at}='{{value}}'\n"));
    is_read(100, applied);
}

#[test]
fn values_of_a_knob() {
    let of_kind = |kind: &str, default: &str, values: String| {
        let knob = format!("[knobs.k]\ntype='{kind}'\ndefault={default}\nabout=''\nvalues=[{values}]\n");
        text("'{k}'", &knob)
    };
    is_read(500, |count| of_kind("integer", "0", numbered(count, |at| format!("{at},"))));
    is_read(500, |count| of_kind("choice", "'w0'", numbered(count, |at| format!("'w{at}',"))));
    is_read(500, |count| of_kind("any", "0", numbered(count, |at| format!("'w{at}',"))));
    let most = of_kind("integer", "0", numbered(MOST_VALUES, |at| format!("{at},")));
    assert_eq!(read(&most).len(), 1);
}

#[test]
fn texts_with_placeholders() {
    is_read(300, |count| text(&"'{port}{out}',".repeat(count), ""));
    is_read(300, |count| text(&format!("'{}'", "{port}{{".repeat(count)), ""));
    let env = |count| text("", &format!("env={{{}}}\n", numbered(count, |at| format!("A{at}='{{port}}',"))));
    is_read(200, env);
    let needs = |count| {
        let words = numbered(count, |at| format!("'{{debian.d{at}}}',"));
        let need = |at| {
            format!(
                "[[needs]]\nname='d'\ndebian={{name='d{at}',release='bookworm',packages=['erlang-base']}}\n"
            )
        };
        text(&words, &numbered(count, need))
    };
    is_read(100, needs);
}

#[test]
fn variants() {
    // There are few, so the text of each may be long.
    is_read(20, |count| {
        text(
            &"'{port}',".repeat(300),
            &numbered(50, |at| {
                format!("[variants.v{at}]\nget=''\nenv={{{}}}\n", numbered(count, |at| format!("A{at}='',")))
            }),
        )
    });
    let many = text("", &numbered(101, |at| format!("[variants.v{at}]\nget=''\n")));
    let error = Manifest::parse(&Source::new("system.toml", many), Path::new("/h/systems/x"));
    assert!(error.is_err_and(|error| error.one_line().contains("more than 100 variants")));
}

#[test]
fn manifests_on_their_way() {
    is_near_linear(50, |count| {
        let sent = serde_json::to_string(&read(&knobs(count))).expect("it is written");
        move || assert_eq!(serde_json::from_str::<Vec<Manifest>>(&sent).map_or(0, |all| all.len()), 1)
    });
}

#[test]
fn names_that_nobody_knows() {
    is_near_linear(500, |length| {
        let (word, known) = ("a".repeat(length), "b".repeat(length));
        move || (0..100).for_each(|_| assert_eq!(crate::input::nearest(&word, [known.as_str()]), None))
    });
}

/// A parcel with so many files, as it is sent.
fn parcel(count: usize, path: impl Fn(usize) -> String, content: &str) -> String {
    let file = |at| (path(at), serde_json::json!({ "File": { "content": content, "executable": false } }));
    let files: serde_json::Map<_, _> = (0..count).map(file).collect();
    serde_json::Value::from(files).to_string()
}

#[test]
fn parcels_that_arrive() {
    let arrives = |size, made: &dyn Fn(usize) -> String| {
        is_near_linear(size, |size| {
            let sent = made(size);
            move || {
                let parcel: Parcel = serde_json::from_str(&sent).expect("a parcel");
                assert_eq!(parcel.hash().len(), 64);
            }
        });
    };
    arrives(500, &|count| parcel(count, |at| format!("a/b{at}/c"), "x"));
    arrives(10_000, &|length| parcel(1, |_| "a".to_owned(), &"x".repeat(length)));
    arrives(60, &|depth| parcel(100, |at| "a/".repeat(depth) + &at.to_string(), ""));
}

#[test]
fn parcels_of_files() {
    is_near_linear(50, |count| {
        // A disk that others write to takes CPU time that does not depend on these files.
        let folder = || tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        let (from, names) = (folder(), numbered(count, |at| format!("f{at} ")));
        let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
        names.iter().for_each(|name| std::fs::write(from.path().join(name), "x").expect("it is written"));
        move || {
            let to = folder();
            for part in Parts::of(from.path(), &names) {
                part.expect("its files are there").add_to(to.path()).expect("it is empty");
            }
            assert_eq!(std::fs::read_dir(to.path()).expect("a folder").count(), names.len());
        }
    });
}
