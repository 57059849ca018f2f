//! Reads checks as people write them.

use regex::bytes::Regex;
use serde_json::Value;

use crate::capture::Source;
use crate::check::{EventTest, JsonTest, Literal, Test, TextTest};
use crate::json::PathStep;
use crate::number::{Number, Order};
use crate::statuses::Statuses;

/// What is wrong with a check, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("character {at}: {why}")]
pub struct CheckError {
    /// The character at which it was noticed, from 1.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub why: String,
}

type Parsed<T> = Result<T, CheckError>;

/// The rest of a check that is being read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// Reads what a check demands.
pub(crate) fn test(text: &str) -> Parsed<Test> {
    let mut reader = Reader { text, at: 0 };
    if reader.take("status") {
        reader.status()
    } else if reader.take("length") {
        let order = reader.order()?;
        reader.count("a number of bytes is expected").map(|length| Test::Length(order, length))
    } else if reader.take("sha256") {
        reader.sha256()
    } else if reader.take("header:") {
        reader.header()
    } else if reader.take("body") {
        let test = reader.text_test()?;
        Ok(Test::Body(test.ok_or_else(|| reader.wrong("`=`, `~=` or `!~=` is expected"))?))
    } else if reader.take("json") {
        let steps = reader.steps()?;
        reader.json_test().map(|test| Test::Json(steps, test))
    } else if reader.take("events") {
        let order = reader.order()?;
        reader.count("a number of events is expected").map(|events| Test::Events(order, events))
    } else if reader.take("event") {
        reader.event()
    } else if reader.take("last-event") {
        let test = reader.text_test()?;
        Ok(Test::LastEvent(test.ok_or_else(|| reader.wrong("`=`, `~=` or `!~=` is expected"))?))
    } else {
        Err(reader.wrong(
            "a check begins with body, event, events, header:, json, last-event, length, sha256 or status",
        ))
    }
}

/// Reads the name of a value, and where it is in an answer.
pub(crate) fn capture(text: &str) -> Parsed<(&str, Source)> {
    let mut reader = Reader { text, at: 0 };
    let name = reader.until(&['=']);
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(Reader { text, at: 0 }.wrong("a name is expected, as in token=json.access_token"));
    }
    if !reader.take("=") {
        return Err(reader.wrong("`=` is expected, as in token=json.access_token"));
    }
    let source = if reader.take("json") {
        Source::Json(reader.steps()?)
    } else if reader.take("body~=") {
        return reader.pattern().map(|pattern| (name, Source::Body(pattern)));
    } else if reader.take("header:") {
        Source::Header(reader.token()?)
    } else if reader.take("cookie:") {
        Source::Cookie(reader.token()?)
    } else {
        return Err(reader.wrong("a value is json.NAME, header:NAME, cookie:NAME or body~=REGEX"));
    };
    match reader.rest() {
        "" => Ok((name, source)),
        _ => Err(reader.wrong("nothing more is expected")),
    }
}

impl<'a> Reader<'a> {
    /// Reads the rest as the name of a header or a cookie.
    fn token(&mut self) -> Parsed<String> {
        let rest = self.rest();
        let legal = |c: char| c.is_ascii_graphic() && !"=;,\"".contains(c);
        if rest.is_empty() || !rest.chars().all(legal) {
            return Err(self.wrong("a name is expected, as in header:X-CSRF-Token"));
        }
        self.skip(rest.len());
        Ok(rest.to_owned())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips so many bytes, all of which are there.
    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// Skips this text if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        self.skip(if comes { text.len() } else { 0 });
        comes
    }

    /// Reads up to one of these characters.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let rest = self.rest();
        let word = rest.split(ends).next().unwrap_or(rest);
        self.skip(word.len());
        word
    }

    fn blanks(&mut self) {
        self.skip(self.rest().len().saturating_sub(self.rest().trim_start().len()));
    }

    fn wrong(&self, why: impl Into<String>) -> CheckError {
        let before = self.text.get(..self.at).unwrap_or_default().chars().count();
        CheckError { at: before.saturating_add(1), why: why.into() }
    }

    fn order(&mut self) -> Parsed<Order> {
        let order = Order::SIGNS.into_iter().find(|(sign, _)| self.take(sign));
        order
            .map(|(_, order)| order)
            .ok_or_else(|| self.wrong("one of `=`, `!=`, `<`, `<=`, `>` and `>=` is expected"))
    }

    fn status(&mut self) -> Parsed<Test> {
        if !self.take("=") {
            return Err(self.wrong("`=` is expected, as in status=204 or status=2xx"));
        }
        let statuses = match self.rest().as_bytes() {
            [digit @ b'2'..=b'5', b'x', b'x'] => Some(Statuses::class(u16::from(digit.saturating_sub(b'0')))),
            _ => {
                let status = self.rest().parse().ok();
                let known = status.filter(|status| (Statuses::FIRST..=Statuses::LAST).contains(status));
                known.map(Statuses::exactly)
            }
        };
        let wrong = || self.wrong("a status is a number from 200 to 599, or 2xx, 3xx, 4xx or 5xx");
        statuses.map(Test::Status).ok_or_else(wrong)
    }

    fn count(&self, wrong: &str) -> Parsed<u64> {
        self.rest().trim().parse().map_err(|_| self.wrong(wrong))
    }

    /// Reads what each event must be: `=TEXT`, `.json.a=1` or `.id counts`.
    fn event(&mut self) -> Parsed<Test> {
        if self.rest().trim_end() == ".id counts" {
            return Ok(Test::IdsCount);
        }
        if self.take(".json") {
            let steps = self.steps()?;
            return self.json_test().map(|test| Test::EachEvent(EventTest::Json(steps, test)));
        }
        let wrong = "`=`, `~=`, `!~=`, `.json` or `.id counts` is expected, as in event.json.a=1";
        let test = self.text_test()?.ok_or_else(|| self.wrong(wrong))?;
        Ok(Test::EachEvent(EventTest::Data(test)))
    }

    fn sha256(&mut self) -> Parsed<Test> {
        let wrong = "`=` and the 64 hexadecimal digits of a SHA-256 are expected";
        if !self.take("=") {
            return Err(self.wrong(wrong));
        }
        let digits = self.rest().as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 64 {
            return Err(self.wrong(wrong));
        }
        for (byte, [high, low]) in digest.iter_mut().zip(digits.as_chunks().0) {
            let digit = |digit: &u8| char::from(*digit).to_digit(16);
            let (Some(high), Some(low)) = (digit(high), digit(low)) else { return Err(self.wrong(wrong)) };
            *byte = (high << 4 | low) as u8;
            self.skip(2);
        }
        Ok(Test::Sha256(digest))
    }

    fn header(&mut self) -> Parsed<Test> {
        let start = self.at;
        let name = self.until(&['=', '~', '!']);
        let legal = |c: char| c.is_ascii_alphanumeric() || "#$%&'*+-.^_`|".contains(c);
        if let Some(place) = name.find(|c| !legal(c)).or(name.is_empty().then_some(0)) {
            self.at = start.saturating_add(place);
            return Err(self.wrong("the name of a header is expected, as in header:Content-Type~=json"));
        }
        if self.rest().is_empty() {
            return Ok(Test::Header(name.to_owned(), None));
        }
        if self.rest().starts_with('!') {
            return Err(self.wrong("`=` or `~=` is expected"));
        }
        let test = self.text_test()?.ok_or_else(|| self.wrong("`=` or `~=` is expected"))?;
        Ok(Test::Header(name.to_owned(), Some(test)))
    }

    /// Reads what a text must be: the rest of the check, as it is. None if it begins with another sign.
    fn text_test(&mut self) -> Parsed<Option<TextTest>> {
        if self.take("!~=") {
            self.pattern().map(|pattern| Some(TextTest::HasNot(pattern)))
        } else if self.take("~=") {
            self.pattern().map(|pattern| Some(TextTest::Has(pattern)))
        } else if self.take("=") {
            Ok(Some(TextTest::Is(self.rest().as_bytes().to_vec())))
        } else {
            Ok(None)
        }
    }

    fn pattern(&mut self) -> Parsed<Regex> {
        Regex::new(self.rest()).map_err(|error| {
            // The library draws the pattern, a caret under the fault, and the reason on the last line.
            let drawn = error.to_string();
            let caret = drawn.lines().find(|line| line.trim_start().starts_with('^'));
            let before = caret.and_then(|line| line.find('^')).unwrap_or(4).saturating_sub(4);
            let reason = drawn.lines().last().unwrap_or_default();
            let mut wrong = self
                .wrong(format!("this is no regular expression: {}", reason.trim_start_matches("error: ")));
            wrong.at = wrong.at.saturating_add(before);
            wrong
        })
    }

    /// Reads the way to a value: `.name`, `["any name"]` and `[3]`.
    fn steps(&mut self) -> Parsed<Vec<PathStep>> {
        let mut steps = Vec::new();
        loop {
            if self.take(".") {
                let name = self.until(&['.', '[', ']', '=', '!', '<', '>', '~', ' ', '"']);
                if name.is_empty() {
                    return Err(self.wrong("a name is expected; write [\"…\"] around one with signs in it"));
                }
                steps.push(PathStep::Member(name.to_owned()));
            } else if self.take("[") {
                steps.push(self.bracket()?);
                if !self.take("]") {
                    return Err(self.wrong("`]` is expected"));
                }
            } else {
                return Ok(steps);
            }
        }
    }

    /// Reads what is in brackets: a number or a text in quotes.
    fn bracket(&mut self) -> Parsed<PathStep> {
        if self.rest().starts_with('"') {
            let mut texts = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
            if let Some(Ok(name)) = texts.next() {
                self.skip(texts.byte_offset());
                return Ok(PathStep::Member(name));
            }
        }
        let place = self.at;
        let digits = self.until(&[']']);
        digits.parse().map(PathStep::Item).map_err(|_| {
            let why = "a number from 0 or a name in quotes is expected, as in [3] or [\"a b\"]";
            Self { at: place, ..*self }.wrong(why)
        })
    }

    fn json_test(&mut self) -> Parsed<JsonTest> {
        self.blanks();
        if self.rest().trim_end() == "exists" {
            return Ok(JsonTest::Exists);
        }
        if self.rest().starts_with(['~', '!'])
            && !self.rest().starts_with("!=")
            && let Some(test) = self.text_test()?
        {
            return Ok(JsonTest::Text(test));
        }
        let order = self.order().map_err(|wrong| CheckError {
            why: wrong.why.replace("is expected", "or `exists` is expected"),
            ..wrong
        })?;
        self.blanks();
        let literal = match serde_json::from_str(self.rest()) {
            Ok(Value::Number(number)) => {
                let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
                let number = whole.map(Number::Whole).or(number.as_f64().map(Number::Real));
                return number
                    .map(|number| JsonTest::Number(order, number))
                    .ok_or_else(|| self.wrong("this number is too large"));
            }
            Ok(Value::String(text)) => Literal::Text(text),
            Ok(Value::Bool(flag)) => Literal::Boolean(flag),
            Ok(Value::Null) => Literal::Null,
            _ => {
                return Err(
                    self.wrong("a value is expected: a number, a text in double quotes, true, false or null")
                );
            }
        };
        match order {
            Order::Equal => Ok(JsonTest::Value(true, literal)),
            Order::Unequal => Ok(JsonTest::Value(false, literal)),
            _ => Err(self.wrong("`<`, `<=`, `>` and `>=` compare numbers")),
        }
    }
}
