//! Every kind of mistake in a file is reported with its place, reason and remedy.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use toml::Spanned;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[expect(dead_code, reason = "only its reading is tested")]
    name: String,
    #[serde(default)]
    sizes: BTreeMap<Spanned<String>, Spanned<i64>>,
}

#[test]
fn messages_have_position_reason_and_remedy() {
    for (text, expected) in [
        (
            "name = \"a\"\nnmae = 1\n",
            "f.toml:2:1: unknown field `nmae`, expected `name` or `sizes` (did you mean `name`?)",
        ),
        ("name = 3\n", "f.toml:1:8: invalid type: integer `3`, expected a string"),
        ("\nname = \n", "f.toml:2:"),
        ("sizes = {}\n", "missing field `name` (add `name = …`"),
        ("name = \"a\"\n[sizes]\nx = 'ö'\n", "f.toml:3:5: invalid type: string \"ö\", expected i64"),
    ] {
        let error = parse::<Sample>(&Source::new("f.toml", text)).unwrap_err();
        assert!(error.one_line().contains(expected), "{} has no {expected}", error.one_line());
        assert!(!format!("{:?}", miette::Report::new(error)).is_empty());
    }
}

#[test]
fn keys_and_values_have_spans() {
    let source = Source::new("f.toml", "name = \"a\"\n[sizes]\nx = 7\n");
    let sample: Sample = parse(&source).unwrap();
    let (key, value) = sample.sizes.iter().next().unwrap();
    assert_eq!(source.error(key.span(), "", "").position(), Some((3, 1)));
    assert_eq!(source.error(value.span(), "", "").position(), Some((3, 5)));
}

#[test]
fn nearest_words() {
    let known = ["cowboy2", "reference", "node-http", "size"];
    for (word, near) in
        [("cowboy", Some("cowboy2")), ("refrence", Some("reference")), ("sise", Some("size")), ("zzz", None)]
    {
        assert_eq!(nearest(word, known), near);
    }
}

#[test]
fn unreadable_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let latin = folder.path().join("latin.toml");
    std::fs::write(&latin, b"a = 1\nb = \"\xe4\"\n").unwrap();
    let error = Source::read(&latin).unwrap_err();
    assert!(error.one_line().contains("latin.toml:2:6: not UTF-8"), "{error:?}");
    for path in [folder.path().join("none.toml"), folder.path().to_owned()] {
        assert!(Source::read(&path).unwrap_err().position().is_none());
    }
}

proptest! {
    #[test]
    fn no_span_panics(text in "\\PC{0,20}", start in 0usize..40, end in 0usize..40) {
        let error = Source::new("f", text).error(start..end, "m", "h");
        let _ = error.one_line();
        let _ = format!("{:?}", miette::Report::new(error));
    }
}
