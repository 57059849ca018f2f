//! Placeholders in commands: `{port}`, `{out}`, `{KNOB}`. A literal brace is written twice. Pure.

/// Replaces each `{name}` in `text` with `value(name)`. The error says what is wrong.
pub(crate) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(index) = rest.find(['{', '}']) {
        out.push_str(&rest[..index]);
        let brace = &rest[index..=index];
        rest = &rest[index + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let name_and_rest = (brace == "{").then(|| rest.split_once('}')).flatten();
        let Some((name, after)) = name_and_rest else {
            return Err(format!("a single `{brace}`: write a literal brace twice, `{brace}{brace}`"));
        };
        let Some(value) = value(name) else {
            return Err(format!("unknown placeholder `{{{name}}}`"));
        };
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The names of the placeholders in `text`, in order. A single brace is an error.
pub(crate) fn names(text: &str) -> Result<Vec<String>, String> {
    let found = std::cell::RefCell::new(Vec::new());
    expand(text, |name| {
        found.borrow_mut().push(name.to_owned());
        Some(String::new())
    })?;
    Ok(found.into_inner())
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
    }
}
