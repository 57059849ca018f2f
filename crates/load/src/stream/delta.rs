//! What an event of OpenAI's interface for chats and completions says: whether it has content, and how many tokens there were.
//! Found by the keys in its text, so that no tree is made of each event. A key inside a text has a backslash before its second
//! quote, and is none.

/// What an event brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Brings {
    /// It is a part of an answer of OpenAI's interface.
    pub delta: bool,
    /// Something to show: content or reasoning. An event of another interface has it if it is not empty.
    pub content: bool,
    /// Content that is no reasoning.
    pub output: bool,
    /// The tokens of the answer, where the event says how many they were.
    pub tokens: Option<u64>,
}

/// The event with which such a stream ends.
pub(crate) const DONE: &[u8] = b"[DONE]";

fn is_delta(data: &[u8]) -> bool {
    data.starts_with(b"{") && value(data, b"choices").is_some()
}

/// What the data of an event brings.
pub(crate) fn brings(data: &[u8]) -> Brings {
    if data == DONE {
        return Brings::default();
    }
    if !is_delta(data) {
        let content = !data.is_empty();
        return Brings { content, output: content, ..Brings::default() };
    }
    let full =
        |key: &[u8]| value(data, key).is_some_and(|rest| matches!(rest, [b'"', next, ..] if *next != b'"'));
    let calls = || value(data, b"tool_calls").is_some_and(|rest| rest.starts_with(b"["));
    let output = full(b"content") || full(b"text") || calls();
    let content = output || full(b"reasoning_content") || full(b"reasoning");
    Brings { delta: true, content, output, tokens: value(data, b"completion_tokens").and_then(number) }
}

/// Whether the data says that something failed: an object whose first member is `error`, and is not null.
pub(crate) fn is_error(data: &[u8]) -> bool {
    let inside = data.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let value = inside.and_then(|inside| inside.strip_prefix(b"\"error\"")).and_then(after_colon);
    value.is_some_and(|value| !value.starts_with(b"null"))
}

/// What follows the first key with this name.
fn value<'a>(data: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = data;
    while let Some(quote) = rest.iter().position(|byte| *byte == b'"') {
        rest = rest.get(quote.saturating_add(1)..)?;
        if let Some(value) =
            rest.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"\"")).and_then(after_colon)
        {
            return Some(value);
        }
    }
    None
}

fn after_colon(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}

fn number(rest: &[u8]) -> Option<u64> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_reasoning_are_told_from_what_is_empty() {
        let table: &[(&str, bool, bool)] = &[
            ("x", true, true),
            ("", false, false),
            ("[DONE]", false, false),
            (r#"{"a": 1}"#, true, true),
            (r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, false, false),
            (r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#, false, false),
            (r#"{"choices": [{"delta": {"content": "Hi"}}]}"#, true, true),
            (r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#, true, false),
            (r#"{"choices":[{"delta":{"content":"","reasoning":"hm"}}]}"#, true, false),
            (r#"{"choices":[{"text":"Hi"}]}"#, true, true),
            (r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#, true, true),
            (r#"{"choices":[{"delta":{}}],"model":"\"content\":\"x\""}"#, false, false),
            (r#"{"choices":[],"usage":{"completion_tokens":3}}"#, false, false),
        ];
        for (data, content, output) in table {
            let found = brings(data.as_bytes());
            assert_eq!((found.content, found.output), (*content, *output), "{data}");
        }
    }

    #[test]
    fn tokens_are_those_of_the_usage() {
        let tokens = |data: &str| brings(data.as_bytes()).tokens;
        assert_eq!(tokens(r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens": 17}}"#), Some(17));
        assert_eq!(tokens(r#"{"choices":[],"usage":null}"#), None);
        assert_eq!(tokens(r#"{"choices":[],"usage":{"completion_tokens":99999999999999999999999}}"#), None);
    }

    #[test]
    fn an_error_is_the_first_member_of_an_object() {
        for (data, error) in [
            (r#"{"error": {"message": "no"}}"#, true),
            (r#"{ "error":"no"}"#, true),
            (r#"{"error": null, "choices": []}"#, false),
            (r#"{"a": 1, "error": "no"}"#, false),
            ("error", false),
        ] {
            assert_eq!(is_error(data.as_bytes()), error, "{data}");
        }
    }
}
