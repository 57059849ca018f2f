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

#[test]
fn a_long_line_is_shown_around_its_place() {
    let shown = |text: &str, place: Range<usize>| {
        let error = Source::new("--set", text).error(place, "too many", "write fewer");
        let mut shown = String::new();
        let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
        handler.render_report(&mut shown, &error).unwrap();
        shown
    };
    // At the limit a line is whole, and above it is not.
    let whole = "x".repeat(200);
    assert!(shown(&whole, 199..200).contains(&whole));
    assert!(!shown(&"x".repeat(201), 199..200).contains(&whole));
    let values: String = (1..=5001).map(|value| format!("{value},")).collect();
    let text = format!("first\nk={values}\n{values}\nlast");
    let place = 8 + 1000 * 4..8 + 1000 * 4 + 4;
    let long = shown(&text, place.clone());
    assert!(long.len() < 2000 && long.contains("[--set:2:4003]") && long.contains(" 2 │ …"), "{long}");
    assert!(
        long.contains(" 1 │ first\n") && long.contains(" 3 │ 1,2,3,") && !long.contains("last"),
        "{long}"
    );
    let (line, mark) =
        long.lines().zip(long.lines().skip(1)).find(|(line, _)| line.contains(" 2 │")).unwrap();
    let column = mark.chars().position(|c| c == '─').unwrap();
    assert_eq!(line.chars().skip(column).take(4).collect::<String>(), text[place].to_owned());
    // All of it is marked, and many lines.
    let all = shown(&text, 6..text.len());
    assert!(all.len() < 3000 && all.contains("[--set:2:1]"), "{all}");
    let lines = "value\n".repeat(5000);
    assert!(shown(&lines, 6..30_000).lines().count() < 10);
}

#[test]
fn what_is_shown_of_a_file_controls_no_terminal() {
    let text = "a = 1\n\tb\u{1b}[31m = \"\u{202e}\u{61c}\u{85}\" wrong\n";
    let place = text.find("wrong").unwrap();
    let error = Source::new("f\u{1b}", text).error(place..place + 5, "m\u{1b}[2J", "h\u{202e}");
    let mut shown = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut shown, &error).unwrap();
    let hidden = |text: &str| text.contains(|c| printable::is_hidden(c) && c != '\n');
    assert!(!hidden(&shown) && shown.contains("wrong"), "{shown}");
    assert!(!error.to_string().contains(printable::is_hidden));
}

#[test]
fn a_long_message_is_cut_in_its_middle() {
    let error = |length: usize| Source::new("f", "x").error(0..1, "m".repeat(length), "h".repeat(length));
    assert!(error(2000).one_line().contains(&"m".repeat(2000)));
    let cut = error(2001).one_line();
    assert!(cut.len() < 4100 && cut.contains("m … m") && cut.contains("h … h"), "{cut}");
}

proptest! {
    #[test]
    fn no_span_of_long_lines_panics(
        text in "[aö\n]{0,900}", long in 0usize..600, start in 0usize..1500, end in 0usize..1500,
    ) {
        let text = format!("{text}{}\n{text}", "é".repeat(long));
        let error = Source::new("f", text).error(start..end, "m", "h");
        let _ = error.one_line();
        let _ = format!("{:?}", miette::Report::new(error));
    }

    #[test]
    fn no_span_panics(text in "\\PC{0,20}", start in 0usize..40, end in 0usize..40) {
        let error = Source::new("f", text).error(start..end, "m", "h");
        let _ = error.one_line();
        let _ = format!("{:?}", miette::Report::new(error));
    }
}
