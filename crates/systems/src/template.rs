//! Placeholders in commands: `{port}`, `{out}`, `{KNOB}`. A literal brace is written twice. Pure.

use std::ops::Range;

/// Replaces each `{name}` in `text` with `value(name)`.
///
/// # Errors
/// A single brace, or a name without a value.
#[expect(clippy::string_slice, reason = "places begin and end at braces of this text, one behind the other")]
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let literal = |part: &str| part.replace("{{", "{").replace("}}", "}");
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for (place, name) in places(text).map_err(|place| single_brace(text, place))? {
        out.push_str(&literal(&text[end..place.start]));
        out.push_str(&value(&name).ok_or_else(|| format!("unknown placeholder `{{{name}}}`"))?);
        end = place.end;
    }
    out.push_str(&literal(&text[end..]));
    Ok(out)
}

#[expect(clippy::string_slice, reason = "places begin and end at braces of this text")]
fn single_brace(text: &str, (place, why): Spot) -> String {
    let brace = &text[place];
    format!("{why}: write a literal brace twice, `{brace}{brace}`")
}

/// A part of a text: where it stands, and its name or what is wrong with it.
pub type Spot = (Range<usize>, String);

/// The names of the placeholders in `text`, in order, and where each stands with its braces.
///
/// # Errors
/// A single brace: where it stands, and what is wrong.
#[expect(
    clippy::string_slice,
    clippy::arithmetic_side_effects,
    reason = "a brace is one byte, and was found there"
)]
pub fn places(text: &str) -> Result<Vec<Spot>, Spot> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(index) = text[at..].find(['{', '}']).map(|index| at + index) {
        let brace = &text[index..=index];
        let rest = &text[index + 1..];
        if rest.starts_with(brace) {
            at = index + 2;
            continue;
        }
        let Some(end) = (brace == "{").then(|| rest.find('}')).flatten() else {
            return Err((index..index + 1, format!("a single `{brace}`")));
        };
        at = index + end + 2;
        found.push((index..at, rest[..end].to_owned()));
    }
    Ok(found)
}

/// The names of the placeholders in `text`, in order. A single brace is an error.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let found = places(text).map_err(|place| single_brace(text, place))?;
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_mistakes_named() {
        let value = |name: &str| (name == "port").then(|| "80".to_owned());
        for (text, expected) in [
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("{port}", Ok("80")),
            (":{port}:{port}", Ok(":80:80")),
            ("{{port}}", Ok("{port}")),
            ("{{{port}}}", Ok("{80}")),
            ("a{", Err("a single `{`")),
            ("a}", Err("a single `}`")),
            ("{prot}", Err("unknown placeholder `{prot}`")),
            ("{}", Err("unknown placeholder `{}`")),
            ("ö{port}ö", Ok("ö80ö")),
        ] {
            match (expand(text, value), expected) {
                (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{text}"),
                (Err(got), Err(expected)) => assert!(got.starts_with(expected), "{text}: {got}"),
                (got, expected) => panic!("{text}: {got:?} is not {expected:?}"),
            }
        }
        assert_eq!(names("{a}{{b}}{c}"), Ok(vec!["a".to_owned(), "c".to_owned()]));
        assert_eq!(places("{a}{{b}}ö{c}"), Ok(vec![(0..3, "a".to_owned()), (10..13, "c".to_owned())]));
        assert_eq!(places("ab}"), Err((2..3, "a single `}`".to_owned())));
        assert_eq!(places("a{b"), Err((1..2, "a single `{`".to_owned())));
    }
}
