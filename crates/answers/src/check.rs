//! A check: what it demands, and whether an answer meets it.

use std::fmt;
use std::sync::Arc;

use regex::bytes::Regex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::found::{Actual, Excerpt};
use crate::head::Head;
use crate::json::{self, Leaf, PathStep};
use crate::number::{Number, Order};
use crate::parse::{self, CheckError};
use crate::statuses::Statuses;

/// Something that an answer must be. Its text is what a person wrote, and what reports show.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Check {
    text: Arc<str>,
    pub(crate) test: Test,
}

/// What a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The status.
    Status,
    /// The length of the body.
    Length,
    /// The header lines.
    Head,
    /// The whole body.
    Body,
    /// The events of a stream.
    Stream,
}

/// What came of a stream as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed<'a> {
    /// How many events it had.
    pub events: u64,
    /// The data of the last one.
    pub last: &'a [u8],
}

/// An answer as checks see it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The head.
    pub head: Head<'a>,
    /// The body, if a check looks at it.
    pub body: &'a [u8],
    /// The length of the body in bytes.
    pub length: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Test {
    Status(Statuses),
    Length(Order, u64),
    Header(String, Option<TextTest>),
    Body(TextTest),
    Sha256([u8; 32]),
    Json(Vec<PathStep>, JsonTest),
    Events(Order, u64),
    LastEvent(TextTest),
    EachEvent(EventTest),
    /// The id of each event is a number, one more than the one before it.
    IdsCount,
}

/// What each event of a stream must be.
#[derive(Debug, Clone)]
pub(crate) enum EventTest {
    Data(TextTest),
    Json(Vec<PathStep>, JsonTest),
}

/// What a text must be.
#[derive(Debug, Clone)]
pub(crate) enum TextTest {
    Is(Vec<u8>),
    Has(Regex),
    HasNot(Regex),
}

impl TextTest {
    fn holds(&self, text: &[u8]) -> bool {
        match self {
            Self::Is(wanted) => text == wanted,
            Self::Has(pattern) => pattern.is_match(text),
            Self::HasNot(pattern) => !pattern.is_match(text),
        }
    }
}

/// What a value of JSON must be.
#[derive(Debug, Clone)]
pub(crate) enum JsonTest {
    Exists,
    Number(Order, Number),
    /// Equal to this, or not.
    Value(bool, Literal),
    Text(TextTest),
}

/// A value that is no number.
#[derive(Debug, Clone)]
pub(crate) enum Literal {
    Null,
    Boolean(bool),
    Text(String),
}

impl JsonTest {
    fn holds(&self, leaf: &Leaf) -> bool {
        match (self, leaf) {
            (_, Leaf::Missing) => false,
            (Self::Exists, _) => true,
            (Self::Number(order, wanted), Leaf::Number(got)) => order.holds(*got, *wanted),
            // A value of another type is another value, and neither less nor more.
            (Self::Number(order, _), _) => *order == Order::Unequal,
            (Self::Value(equal, wanted), got) => *equal == wanted.is(got),
            (Self::Text(test), Leaf::Text(text)) => test.holds(text.as_bytes()),
            (Self::Text(_), _) => false,
        }
    }
}

impl Literal {
    fn is(&self, leaf: &Leaf) -> bool {
        match (self, leaf) {
            (Self::Null, Leaf::Null) => true,
            (Self::Boolean(wanted), Leaf::Boolean(got)) => wanted == got,
            (Self::Text(wanted), Leaf::Text(got)) => wanted == got,
            _ => false,
        }
    }
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, CheckError> {
        Ok(Self { text: text.into(), test: parse::test(text)? })
    }

    /// The check that a body is this one. Its text is short, however long the body is.
    pub fn of_body(body: &[u8]) -> Self {
        let digest = sha256(body);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("sha256={digits}").into(), test: Test::Sha256(digest) }
    }

    /// The check that a body has this length in bytes.
    pub fn of_length(length: u64) -> Self {
        Self { text: format!("length={length}").into(), test: Test::Length(Order::Equal, length) }
    }

    /// The check that a stream has this many events.
    pub fn of_events(events: u64) -> Self {
        Self { text: format!("events={events}").into(), test: Test::Events(Order::Equal, events) }
    }

    /// Its text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// What it looks at.
    pub fn subject(&self) -> Subject {
        match self.test {
            Test::Status(_) => Subject::Status,
            Test::Length(..) => Subject::Length,
            Test::Header(..) => Subject::Head,
            Test::Body(_) | Test::Sha256(_) | Test::Json(..) => Subject::Body,
            Test::Events(..) | Test::LastEvent(_) | Test::EachEvent(_) | Test::IdsCount => Subject::Stream,
        }
    }

    /// The statuses that it accepts, if it looks at them.
    pub fn statuses(&self) -> Option<Statuses> {
        match self.test {
            Test::Status(statuses) => Some(statuses),
            _ => None,
        }
    }

    /// Whether it looks at each event of a stream by itself.
    pub fn is_of_each_event(&self) -> bool {
        matches!(self.test, Test::EachEvent(_))
    }

    /// Whether it demands that the ids of events count.
    pub fn demands_ids(&self) -> bool {
        matches!(self.test, Test::IdsCount)
    }

    /// Whether the data of an event is as demanded, if it looks at each of them.
    ///
    /// # Errors
    /// What was found instead.
    pub fn holds_event(&self, data: &[u8]) -> Result<(), Actual> {
        match &self.test {
            Test::EachEvent(EventTest::Data(test)) => {
                verdict(test.holds(data), || Actual::Text(Excerpt::of(data)))
            }
            Test::EachEvent(EventTest::Json(steps, test)) => {
                let leaf = json::find(data, steps)?;
                verdict(test.holds(&leaf), || leaf.found())
            }
            _ => Ok(()),
        }
    }

    /// Whether a stream that has ended is as demanded, if it looks at streams as a whole.
    ///
    /// # Errors
    /// What was found instead.
    pub fn holds_stream(&self, stream: &Streamed<'_>) -> Result<(), Actual> {
        match &self.test {
            Test::Events(order, wanted) => {
                let (got, wanted) = (i128::from(stream.events), i128::from(*wanted));
                verdict(order.holds(Number::Whole(got), Number::Whole(wanted)), || {
                    Actual::Value(Excerpt::written(got))
                })
            }
            Test::LastEvent(test) => {
                verdict(test.holds(stream.last), || Actual::Text(Excerpt::of(stream.last)))
            }
            _ => Ok(()),
        }
    }

    /// Whether the answer is as demanded. A check of the status always holds here: its caller compares the
    /// [statuses](Self::statuses). So does a check of events: whoever reads streams asks [`Self::holds_event`] and
    /// [`Self::holds_stream`].
    ///
    /// # Errors
    /// What was found instead.
    pub fn holds(&self, answer: &Answer<'_>) -> Result<(), Actual> {
        match &self.test {
            Test::Status(_) | Test::Events(..) | Test::LastEvent(_) | Test::EachEvent(_) | Test::IdsCount => {
                Ok(())
            }
            Test::Length(order, wanted) => {
                let (got, wanted) = (i128::from(answer.length), i128::from(*wanted));
                verdict(order.holds(Number::Whole(got), Number::Whole(wanted)), || {
                    Actual::Value(Excerpt::written(got))
                })
            }
            Test::Header(name, test) => header(answer.head, name, test.as_ref()),
            Test::Body(test) => verdict(test.holds(answer.body), || match test {
                TextTest::HasNot(pattern) => {
                    let within = pattern.find(answer.body).map_or(&b""[..], |found| found.as_bytes());
                    Actual::Within(Excerpt::of(within))
                }
                _ => Actual::Body(Excerpt::of(answer.body)),
            }),
            Test::Sha256(wanted) => {
                let got = sha256(answer.body);
                verdict(got == *wanted, || Actual::Digest(got))
            }
            Test::Json(steps, test) => {
                let leaf = json::find(answer.body, steps)?;
                verdict(test.holds(&leaf), || leaf.found())
            }
        }
    }
}

fn sha256(body: &[u8]) -> [u8; 32] {
    digest(&SHA256, body).as_ref().try_into().unwrap_or_default()
}

fn verdict(holds: bool, found: impl FnOnce() -> Actual) -> Result<(), Actual> {
    if holds { Ok(()) } else { Err(found()) }
}

/// Whether one of the header's lines meets the test.
fn header(head: Head<'_>, name: &str, test: Option<&TextTest>) -> Result<(), Actual> {
    let mut first = None;
    for value in head.values(name) {
        if test.is_none_or(|test| test.holds(value)) {
            return Ok(());
        }
        first = first.or(Some(value));
    }
    Err(first.map_or(Actual::Missing, |value| Actual::Text(Excerpt::of(value))))
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Check {}

impl TryFrom<String> for Check {
    type Error = CheckError;

    fn try_from(text: String) -> Result<Self, CheckError> {
        Self::parse(&text)
    }
}

impl From<Check> for String {
    fn from(check: Check) -> Self {
        check.text.as_ref().to_owned()
    }
}
