//! Finds one value in a JSON document, without making a tree of it: a server can send a document whose tree is many times
//! as large as its text.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use crate::found::{Actual, Excerpt};
use crate::number::Number;

/// One step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// The member of an object with this name.
    Member(String),
    /// The item of an array with this number, from 0.
    Item(usize),
}

/// As the last step, this name also means the number of an array's items or of a text's characters.
const LENGTH: &str = "length";

/// What is at the end of the way.
#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    Missing,
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    Array,
    Object,
}

impl Leaf {
    /// What it is, for people.
    pub(crate) fn found(&self) -> Actual {
        match self {
            Self::Missing => Actual::Missing,
            Self::Null => Actual::Value(Excerpt::of(b"null")),
            Self::Boolean(flag) => Actual::Value(Excerpt::written(flag)),
            Self::Number(number) => Actual::Value(Excerpt::written(number)),
            Self::Text(text) => Actual::Text(Excerpt::of(text.as_bytes())),
            Self::Array => Actual::Value(Excerpt::of(b"an array")),
            Self::Object => Actual::Value(Excerpt::of(b"an object")),
        }
    }
}

/// The value at the end of these steps. If an object has several members of one name, the last one counts.
///
/// # Errors
/// The document is not JSON.
pub(crate) fn find(document: &[u8], steps: &[PathStep]) -> Result<Leaf, Actual> {
    let mut reader = Deserializer::from_slice(document);
    let found = Cursor { steps }.deserialize(&mut reader).and_then(|leaf| reader.end().map(|()| leaf));
    found.map_err(|error| match document {
        [] => Actual::Body(Excerpt::of(b"")),
        _ => {
            let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            Actual::NotJson { line: narrow(error.line()), column: narrow(error.column()) }
        }
    })
}

/// The rest of a way.
struct Cursor<'a> {
    steps: &'a [PathStep],
}

impl Cursor<'_> {
    fn end(self, leaf: Leaf) -> Leaf {
        if self.steps.is_empty() { leaf } else { Leaf::Missing }
    }

    fn is_length(&self) -> bool {
        matches!(self.steps, [PathStep::Member(name)] if name == LENGTH)
    }
}

impl<'de> DeserializeSeed<'de> for Cursor<'_> {
    type Value = Leaf;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Leaf, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cursor<'_> {
    type Value = Leaf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Leaf, E> {
        Ok(self.end(Leaf::Null))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Leaf, E> {
        Ok(self.end(Leaf::Boolean(flag)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Leaf, E> {
        Ok(self.end(Leaf::Number(Number::Whole(number.into()))))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Leaf, E> {
        Ok(self.end(Leaf::Number(Number::Whole(number.into()))))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Leaf, E> {
        Ok(self.end(Leaf::Number(Number::Real(number))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Leaf, E> {
        if self.is_length() {
            return Ok(Leaf::Number(Number::Whole(text.chars().count() as i128)));
        }
        Ok(self.end(Leaf::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Leaf, A::Error> {
        let mut found = if self.steps.is_empty() { Leaf::Array } else { Leaf::Missing };
        let mut count = 0_usize;
        loop {
            let more = match self.steps {
                [PathStep::Item(place), rest @ ..] if *place == count => {
                    items.next_element_seed(Cursor { steps: rest })?.map(|leaf| found = leaf).is_some()
                }
                _ => items.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
            count = count.saturating_add(1);
        }
        Ok(if self.is_length() { Leaf::Number(Number::Whole(count as i128)) } else { found })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Leaf, A::Error> {
        let mut found = if self.steps.is_empty() { Leaf::Object } else { Leaf::Missing };
        while let Some(name) = members.next_key::<String>()? {
            match self.steps {
                [PathStep::Member(wanted), rest @ ..] if *wanted == name => {
                    found = members.next_value_seed(Cursor { steps: rest })?;
                }
                _ => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }
}
