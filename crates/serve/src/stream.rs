//! Scripted streams of answers: each piece has its time, so that a client's figures can be checked, and a gateway measured whose
//! upstream this is. Pure: a script in, pieces and their times out.
//!
//! `/events/N` sends N server-sent events, and `/chunks/N` N lines of text in a chunk each. The query has their times:
//! `?first=50ms&gap=10ms&size=100&stall=300ms&every=10`. `POST /v1/chat/completions` answers as OpenAI's interface does
//! (<https://platform.openai.com/docs/api-reference/chat-streaming>); the field `model` of the request has the times there, as
//! `narrows?events=20&gap=10ms`, because a gateway keeps it and may not keep a query.

use std::io::Write;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

/// The most pieces of a stream, and the most bytes in one.
const PIECES: u32 = 10_000_000;
const SIZE: usize = 1 << 20;
/// The longest time that a script may name.
const LONGEST: Duration = Duration::from_secs(3600);
/// The pieces of a chat whose model does not say how many, and the bytes of one.
const TOKENS: u32 = 20;
const TOKEN: usize = 4;
/// The bytes of the data of an event, or of a chunk, without `size`.
const USUAL_SIZE: usize = 16;

/// What is sent, and when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script {
    form: Form,
    count: u32,
    /// From the request to the first piece, and from each to the next.
    first: Duration,
    gap: Duration,
    /// How long the stream stands still in the middle, in every so many-th answer of a connection.
    stall: Duration,
    every: u64,
    /// Bytes of a piece's data.
    size: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    Events,
    Chunks,
    Chat(Chat),
}

/// What a request for a chat asks for.
#[derive(Debug, Clone, PartialEq)]
struct Chat {
    model: String,
    /// Whether the answer is a stream.
    streams: bool,
    /// Whether a stream has the usage.
    usage: bool,
    /// How many of the first deltas are reasoning.
    reasoning: u32,
    /// The words of the request: what its tokens are taken for.
    prompt: u64,
}

/// The request of a chat, as far as it is read.
#[derive(Deserialize)]
struct ChatRequest {
    model: String,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

impl Script {
    /// The script of a path, with its query. None if no stream has this path.
    ///
    /// # Errors
    /// The path or the query is none that a script has.
    pub(crate) fn of(path: &[u8]) -> Option<Result<Self, ()>> {
        // Most requests are for other paths.
        if !path.starts_with(b"/events/") && !path.starts_with(b"/chunks/") {
            return None;
        }
        let path = std::str::from_utf8(path).ok()?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (form, count) = match (path.strip_prefix("/events/"), path.strip_prefix("/chunks/")) {
            (Some(count), _) => (Form::Events, count),
            (_, Some(count)) => (Form::Chunks, count),
            _ => return None,
        };
        let Ok(count) = count.parse() else { return Some(Err(())) };
        Some(Self::new(form, count, USUAL_SIZE).told(query).ok_or(()))
    }

    /// The script of the body of `POST /v1/chat/completions`.
    ///
    /// # Errors
    /// The body is no such request, or its model names no times.
    pub(crate) fn of_chat(body: &[u8]) -> Result<Self, ()> {
        let request: ChatRequest = serde_json::from_slice(body).map_err(|_| ())?;
        let query = request.model.split_once('?').map_or("", |(_, query)| query).to_owned();
        let words = body.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        let chat = Chat {
            streams: request.stream,
            usage: request.stream_options.is_some_and(|options| options.include_usage),
            reasoning: 0,
            prompt: words as u64,
            model: request.model,
        };
        let mut script = Self::new(Form::Chat(chat), TOKENS, TOKEN).told(&query).ok_or(())?;
        let most = request.max_completion_tokens.or(request.max_tokens);
        script.count = script.count.min(most.unwrap_or(PIECES));
        Ok(script)
    }

    fn new(form: Form, count: u32, size: usize) -> Self {
        let none = Duration::ZERO;
        Self { form, count, first: none, gap: none, stall: none, every: 1, size }
    }

    /// The script with what a query says. None if it says something else.
    fn told(mut self, query: &str) -> Option<Self> {
        for word in query.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=')?;
            match (name, &mut self.form) {
                ("first", _) => self.first = duration(value)?,
                ("gap", _) => self.gap = duration(value)?,
                ("stall", _) => self.stall = duration(value)?,
                ("every", _) => self.every = value.parse().ok().filter(|every| *every > 0)?,
                ("size", _) => self.size = value.parse().ok().filter(|size| *size <= SIZE)?,
                ("events", Form::Chat(_)) => self.count = value.parse().ok()?,
                ("reasoning", Form::Chat(chat)) => chat.reasoning = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(self).filter(|script| script.count <= PIECES)
    }

    /// Whether the answer is sent piece by piece. Otherwise all of it is sent when the last piece would be.
    pub(crate) fn streams(&self) -> bool {
        !matches!(&self.form, Form::Chat(chat) if !chat.streams)
    }

    pub(crate) fn content_type(&self) -> &'static str {
        match &self.form {
            Form::Chat(chat) if !chat.streams => "application/json",
            Form::Events | Form::Chat(_) => "text/event-stream",
            Form::Chunks => "text/plain",
        }
    }

    /// How many pieces there are. A chat says first whose turn it is, and last why it ends.
    pub(crate) fn pieces(&self) -> u32 {
        match self.form {
            Form::Events | Form::Chunks => self.count,
            Form::Chat(_) => self.count + 2,
        }
    }

    /// When a piece is due, after the request. `answer` is the number of this answer on its connection, from 1.
    pub(crate) fn due(&self, piece: u32, answer: u64) -> Duration {
        let of_data = match self.form {
            Form::Events | Form::Chunks => piece,
            Form::Chat(_) if piece == 0 => return Duration::ZERO,
            Form::Chat(_) => (piece - 1).min(self.count.saturating_sub(1)),
        };
        let stands = of_data >= self.count / 2 && answer.is_multiple_of(self.every);
        let stall = if stands { self.stall } else { Duration::ZERO };
        self.first.saturating_add(self.gap.saturating_mul(of_data)).saturating_add(stall)
    }

    /// The longest time for which nothing is sent.
    pub(crate) fn silence(&self) -> Duration {
        if self.streams() && self.count > 1 {
            return self.first.max(self.gap.saturating_add(self.stall));
        }
        self.due(self.pieces().saturating_sub(1), self.every)
    }

    /// The bytes of a piece of a stream, from 0. None is empty.
    pub(crate) fn piece(&self, piece: u32) -> String {
        match &self.form {
            Form::Events => format!("id: {}\ndata: {}\n\n", piece + 1, self.data()),
            Form::Chunks => self.data() + "\n",
            Form::Chat(chat) => self.of_chat_piece(chat, piece),
        }
    }

    fn data(&self) -> String {
        "x".repeat(self.size)
    }

    fn of_chat_piece(&self, chat: &Chat, piece: u32) -> String {
        let chunk = |choices: serde_json::Value, usage: serde_json::Value| {
            let chunk = json!({
                "id": "chatcmpl-narrows", "object": "chat.completion.chunk", "created": 0, "model": chat.model,
                "choices": choices, "usage": usage,
            });
            format!("data: {chunk}\n\n")
        };
        let null = serde_json::Value::Null;
        let choice = |delta, why: Option<&str>| json!([{ "index": 0, "delta": delta, "finish_reason": why }]);
        match piece.checked_sub(1) {
            None => chunk(choice(json!({ "role": "assistant", "content": "" }), None), null),
            Some(token) if token < chat.reasoning.min(self.count) => {
                chunk(choice(json!({ "reasoning_content": self.data() }), None), null)
            }
            Some(token) if token < self.count => chunk(choice(json!({ "content": self.data() }), None), null),
            Some(_) => {
                let mut last = chunk(choice(json!({}), Some("stop")), null);
                if chat.usage {
                    last += &chunk(json!([]), self.usage(chat));
                }
                last + "data: [DONE]\n\n"
            }
        }
    }

    fn usage(&self, chat: &Chat) -> serde_json::Value {
        let (prompt, completion) = (chat.prompt, u64::from(self.count));
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }

    /// The whole answer of a chat that is no stream.
    pub(crate) fn whole(&self) -> String {
        let Form::Chat(chat) = &self.form else { return String::new() };
        let reasoning = chat.reasoning.min(self.count);
        let mut content = String::new();
        (reasoning..self.count).for_each(|_| content += &self.data());
        let message = json!({ "role": "assistant", "content": content });
        let answer = json!({
            "id": "chatcmpl-narrows", "object": "chat.completion", "created": 0, "model": chat.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": self.usage(chat),
        });
        answer.to_string()
    }

    /// The most bytes of one piece, or of a whole answer, in the form in which it is kept.
    pub(crate) fn weight(&self) -> u64 {
        let pieces = if self.streams() { 1 } else { u64::from(self.count) };
        pieces.saturating_mul(self.size as u64)
    }
}

/// Appends data as a chunk (RFC 9112, section 7.1). An empty one would end the body.
pub(crate) fn put_chunk(out: &mut Vec<u8>, data: &str) {
    // Cannot fail: a vector takes everything.
    let _ = write!(out, "{:x}\r\n{data}\r\n", data.len());
}

/// `50us`, `10ms` or `2s`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let nanos = match text.strip_prefix(digits)? {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    Some(Duration::from_nanos(number.checked_mul(nanos)?)).filter(|duration| *duration <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Script {
        Script::of(path.as_bytes()).expect(path).expect(path)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_path_says_what_is_sent_and_when() {
        let script = of("/events/3?first=50ms&gap=10ms&size=4&stall=300ms&every=2");
        let due = |answer| [0, 1, 2].map(|piece| script.due(piece, answer).as_millis());
        assert_eq!(due(1), [50, 60, 70]);
        assert_eq!(due(2), [50, 360, 370], "every second answer stands still in the middle");
        assert_eq!(script.piece(0), "id: 1\ndata: xxxx\n\n");
        assert_eq!((script.pieces(), script.content_type()), (3, "text/event-stream"));
        assert_eq!(of("/chunks/2").piece(1), "xxxxxxxxxxxxxxxx\n");
        assert_eq!(of("/chunks/2?gap=2s").due(1, 1), 2000 * MS);
        for wrong in [
            "/events/x",
            "/events/",
            "/events/-1",
            "/events/10000001",
            "/events/1?gap=10",
            "/events/1?gap=2h",
            "/events/1?gap=4000s",
            "/events/1?every=0",
            "/events/1?size=9999999",
            "/events/1?a=b",
            "/events/1?gap",
            "/events/1?events=2",
            "/chunks/1?reasoning=1",
        ] {
            assert_eq!(Script::of(wrong.as_bytes()), Some(Err(())), "{wrong}");
        }
        assert_eq!(Script::of(b"/"), None);
    }

    #[test]
    fn a_chat_has_a_role_first_and_its_usage_last() {
        let request = r#"{"model": "narrows?events=3&gap=10ms&first=5ms&reasoning=1", "stream": true, "messages": [],
                          "stream_options": {"include_usage": true}}"#;
        let script = Script::of_chat(request.as_bytes()).expect("a chat");
        let pieces: Vec<String> = (0..script.pieces()).map(|piece| script.piece(piece)).collect();
        let has = |piece: usize, words: &[&str]| words.iter().all(|word| pieces[piece].contains(word));
        assert!(has(0, &[r#""role":"assistant""#]) && has(1, &["reasoning_content"]), "{pieces:?}");
        assert!(has(2, &[r#"{"content":"xxxx"}"#]) && has(3, &[r#""finish_reason":null"#]), "{pieces:?}");
        assert!(has(4, &[r#""finish_reason":"stop""#, r#""completion_tokens":3"#]), "{pieces:?}");
        assert!(pieces[4].ends_with("\n\ndata: [DONE]\n\n"));
        let due: Vec<Duration> = (0..script.pieces()).map(|piece| script.due(piece, 1)).collect();
        assert_eq!(
            due,
            [0, 5, 15, 25, 25].map(|ms| ms * MS),
            "the role comes at once, and the end with the last"
        );
        let whole = Script::of_chat(br#"{"model": "m?events=5", "max_tokens": 2}"#).expect("a chat");
        assert!(!whole.streams() && whole.whole().contains(r#""content":"xxxxxxxx""#), "{}", whole.whole());
        for wrong in ["", "{}", "[]", r#"{"model": 1}"#, r#"{"model": "m?gap=x"}"#] {
            assert_eq!(Script::of_chat(wrong.as_bytes()), Err(()), "{wrong}");
        }
    }
}
