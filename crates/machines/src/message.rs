//! What is said over a pipe. Each message is one frame of JSON.

use printable::printable;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The version of what is said. Sides of different versions do not talk to each other.
pub const PROTOCOL: u32 = 1;

/// One message.
// `Fields` is read first. For a tagged enum serde would keep the whole content a second time until it knows the tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", try_from = "Fields<Value>")]
pub enum Message {
    /// The first message of each side.
    Hello(Hello),
    /// The sender lives.
    Beat,
    /// Asks for the other side's clock.
    Ping {
        /// The sender's clock in nanoseconds.
        sent_ns: u64,
    },
    /// The answer to a ping, at once.
    Pong {
        /// As in the ping.
        sent_ns: u64,
        /// The clock of the side that answers, in nanoseconds.
        clock_ns: u64,
    },
    /// A message of a verb.
    Says {
        /// What only the verb knows.
        what: Value,
    },
}

/// The fields of a message of any kind. Others are passed over.
#[derive(Deserialize)]
#[serde(bound(deserialize = "W: Deserialize<'de>"))]
struct Fields<W> {
    message: Kind,
    sent_ns: Option<u64>,
    clock_ns: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    what: Option<W>,
    protocol: Option<u32>,
    version: Option<String>,
    #[serde(default)]
    orders: bool,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    kernel: String,
    #[serde(default)]
    cpu: String,
    #[serde(default)]
    cores: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Hello,
    Beat,
    Ping,
    Pong,
    Says,
}

/// A field that is there, even if it is null.
fn given<'de, D: Deserializer<'de>, W: Deserialize<'de>>(from: D) -> Result<Option<W>, D::Error> {
    W::deserialize(from).map(Some)
}

impl<W> Fields<W> {
    /// The message, if no field is missing.
    fn sorted(self) -> Option<Sorted<W>> {
        Some(Sorted::Own(match self.message {
            Kind::Hello => Message::Hello(Hello {
                protocol: self.protocol?,
                version: self.version?,
                orders: self.orders,
                architecture: self.architecture,
                kernel: self.kernel,
                cpu: self.cpu,
                cores: self.cores,
            }),
            Kind::Beat => Message::Beat,
            Kind::Ping => Message::Ping { sent_ns: self.sent_ns? },
            Kind::Pong => Message::Pong { sent_ns: self.sent_ns?, clock_ns: self.clock_ns? },
            Kind::Says => return self.what.map(Sorted::Says),
        }))
    }
}

impl TryFrom<Fields<Value>> for Message {
    type Error = &'static str;

    fn try_from(fields: Fields<Value>) -> Result<Self, &'static str> {
        match fields.sorted().ok_or("a field of the message is missing")? {
            Sorted::Own(message) => Ok(message),
            Sorted::Says(what) => Ok(Self::Says { what }),
        }
    }
}

/// What a frame has.
#[derive(Debug, PartialEq)]
pub(crate) enum Sorted<W> {
    /// A message of the pipe itself.
    Own(Message),
    /// What a verb says.
    Says(W),
}

/// The same, without the memory that it would take to read what a verb says.
pub(crate) type Glimpse = Sorted<IgnoredAny>;

/// What a side is. Only the two versions are required, so that sides of any versions understand that they differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of that side.
    pub protocol: u32,
    /// The version of its narrows.
    pub version: String,
    /// Whether this side gives the orders. A command that repeats what it reads gives this back.
    #[serde(default)]
    pub orders: bool,
    /// The architecture for which it was built.
    #[serde(default)]
    pub architecture: String,
    /// The operating system's kernel.
    #[serde(default)]
    pub kernel: String,
    /// The model of the processor.
    #[serde(default)]
    pub cpu: String,
    /// The cores on which it may run.
    #[serde(default)]
    pub cores: Vec<usize>,
}

impl Hello {
    /// How the other side's versions differ from these, if they do.
    pub fn differs(&self, other: &Self) -> Option<String> {
        let shown = |hello: &Self| {
            let plain: String = printable(&hello.version).chars().take(40).collect();
            format!("narrows {plain} (pipe version {})", hello.protocol)
        };
        ((self.protocol, &self.version) != (other.protocol, &other.version)).then(|| {
            format!(
                "here is {}, and there is {}: install the same version on both",
                shown(self),
                shown(other)
            )
        })
    }
}

impl Message {
    /// The message as a frame's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Strings, numbers and values have no form that JSON cannot write.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        // Some commands, such as srun, pass on what they have when a line ends.
        bytes.push(b'\n');
        bytes
    }

    /// The message of a frame.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        serde_json::from_slice(frame).ok()
    }

    /// Which message a frame has.
    pub(crate) fn glimpse(frame: &[u8]) -> Option<Glimpse> {
        let fields: Fields<IgnoredAny> = serde_json::from_slice(frame).ok()?;
        fields.sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_arrive_as_they_were() {
        let hello = Hello { protocol: 1, version: "1.2".to_owned(), cores: vec![0, 3], ..Hello::default() };
        for message in [
            Message::Hello(hello),
            Message::Beat,
            Message::Ping { sent_ns: u64::MAX },
            Message::Pong { sent_ns: 1, clock_ns: 2 },
            Message::Says { what: serde_json::json!({"a": [1, null]}) },
        ] {
            let own = !matches!(message, Message::Says { .. });
            let glimpse = if own { Glimpse::Own(message.clone()) } else { Glimpse::Says(IgnoredAny) };
            assert_eq!(Message::glimpse(&message.bytes()), Some(glimpse));
            assert_eq!(Message::parse(&message.bytes()), Some(message));
        }
        let nothing = Message::Says { what: Value::Null };
        assert_eq!(Message::parse(br#"{"what":null,"message":"says","new":[{}]}"#), Some(nothing));
        for missing in
            [r#"{"message":"says"}"#, r#"{"message":"ping"}"#, r#"{"message":"hello","version":""}"#, "{}"]
        {
            assert_eq!(Message::parse(missing.as_bytes()), None, "{missing}");
            assert_eq!(Message::glimpse(missing.as_bytes()), None, "{missing}");
        }
    }

    #[test]
    fn another_version_is_understood_and_both_are_named() {
        let own = Hello { protocol: PROTOCOL, version: "0.1.0".to_owned(), ..Hello::default() };
        let other = br#"{"message":"hello","protocol":7,"version":"9.9.9","new":true}"#;
        let Some(Message::Hello(other)) = Message::parse(other) else { panic!("a hello") };
        let says = own.differs(&other).expect("a difference");
        assert!(
            ["0.1.0", "9.9.9", "version 1", "version 7"].iter().all(|word| says.contains(word)),
            "{says}"
        );
        assert_eq!(own.differs(&own.clone()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (_, _) = (Message::parse(&bytes), Message::glimpse(&bytes));
        }
    }

    #[test]
    fn messages_take_as_long_as_they_are() {
        cost::is_near_linear(1000, |count| {
            let says = Message::Says { what: serde_json::json!({ "tally": vec![[1, 2]; count] }) };
            let hello = Message::Hello(Hello { cores: vec![1; count], ..Hello::default() });
            let all = [says, hello].map(|message| message.bytes());
            move || all.iter().for_each(|bytes| assert!(Message::parse(bytes).is_some()))
        });
    }
}
