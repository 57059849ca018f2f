//! Values that are taken from an answer, for later requests.

use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use crate::check::Answer;
use crate::found::{Actual, Excerpt};
use crate::head::Head;
use crate::json::{self, Leaf, PathStep};
use crate::parse::{self, CheckError};

/// A value of an answer, and the name under which later requests have it. Its text is what a person wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Capture {
    text: Arc<str>,
    name: String,
    source: Source,
}

/// Where a value is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Json(Vec<PathStep>),
    Header(String),
    Cookie(String),
    /// What the first group matches, or all if there is no group.
    Body(Regex),
}

impl Capture {
    /// Reads `NAME=json.a.b`, `NAME=header:NAME`, `NAME=cookie:NAME` or `NAME=body~=REGEX`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, CheckError> {
        let (name, source) = parse::capture(text)?;
        Ok(Self { text: text.into(), name: name.to_owned(), source })
    }

    /// Its text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The name of the value.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value in an answer.
    ///
    /// # Errors
    /// What was found instead.
    pub fn take(&self, answer: &Answer<'_>) -> Result<String, Actual> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = match &self.source {
            Source::Json(steps) => match json::find(answer.body, steps)? {
                Leaf::Text(text) => text,
                Leaf::Number(number) => number.to_string(),
                Leaf::Boolean(flag) => flag.to_string(),
                other => return Err(other.found()),
            },
            Source::Header(name) => answer.head.values(name).next().map(text).ok_or(Actual::Missing)?,
            Source::Cookie(name) => {
                let named = cookies(answer.head).find(|(known, _)| *known == name.as_bytes());
                named.map(|(_, value)| text(value)).ok_or(Actual::Missing)?
            }
            Source::Body(pattern) => {
                let found = pattern.captures(answer.body);
                let found = found.ok_or(Actual::Body(Excerpt::of(answer.body)))?;
                let group = found.get(1).or_else(|| found.get(0));
                group.map(|group| text(group.as_bytes())).ok_or(Actual::Missing)?
            }
        };
        // It could not be sent in a header.
        if value.chars().any(char::is_control) {
            Err(Actual::Text(Excerpt::of(value.as_bytes())))
        } else {
            Ok(value)
        }
    }
}

/// The names and values of the cookies that a head sets.
pub fn cookies(head: Head<'_>) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.values("set-cookie").filter_map(|line| {
        let pair = line.split(|byte| *byte == b';').next()?;
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at_checked(at)?;
        Some((name.trim_ascii(), value.get(1..)?.trim_ascii()))
    })
}

impl PartialEq for Capture {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Capture {}

impl TryFrom<String> for Capture {
    type Error = CheckError;

    fn try_from(text: String) -> Result<Self, CheckError> {
        Self::parse(&text)
    }
}

impl From<Capture> for String {
    fn from(capture: Capture) -> Self {
        capture.text.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\nX-Csrf: c1\r\nSet-Cookie: sid=s1; Path=/\r\nSet-Cookie: b=2\r\n\r\n";

    fn take(capture: &str, body: &str) -> Result<String, String> {
        let capture = Capture::parse(capture).map_err(|error| error.to_string())?;
        let answer =
            Answer { head: Head::http1(200, HEAD), body: body.as_bytes(), length: body.len() as u64 };
        capture.take(&answer).map_err(|found| found.to_string())
    }

    #[test]
    fn values_are_taken_from_heads_and_bodies() {
        let body = "{\"a\":{\"token\":\"T1\",\"n\":7,\"ok\":true,\"list\":[]}}";
        for (capture, value) in [
            ("t=json.a.token", Ok("T1")),
            ("t=json.a.n", Ok("7")),
            ("t=json.a.ok", Ok("true")),
            ("t=json.a.list", Err("it is an array")),
            ("t=json.b", Err("it is missing")),
            ("t=header:x-csrf", Ok("c1")),
            ("t=header:none", Err("it is missing")),
            ("t=cookie:sid", Ok("s1")),
            ("t=body~=\"token\":\"(.*?)\"", Ok("T1")),
            ("t=body~=T[0-9]", Ok("T1")),
            ("t=body~=zzz", Err("the body begins")),
        ] {
            let found = take(capture, body);
            match value {
                Ok(value) => assert_eq!(found.as_deref(), Ok(value), "{capture}"),
                Err(why) => assert!(found.is_err_and(|found| found.contains(why)), "{capture}"),
            }
        }
        assert!(take("t=json.a", "no").is_err_and(|why| why.contains("not JSON")));
        assert!(take("t=json.a", "{\"a\":\"x\\r\\ny\"}").is_err(), "it would end the header");
        for wrong in ["", "t", "=json.a", "t=x", "a b=json.c", "t=header:", "t=body~=(", "t=json.a=1"] {
            assert!(Capture::parse(wrong).is_err(), "{wrong}");
        }
    }
}
