//! The options that say which answers are right.

use answers::{Check, CheckError};
use load::stream::Form;
use load::target::Expect;
use serde::{Deserialize, Serialize};

/// What answers must be.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Checks")]
pub struct CheckArgs {
    /// Accept only answers that meet this check; may be repeated. Checks look like body~=REGEX, body!~=REGEX, body=TEXT,
    /// json.items.length>0, json.user.name="x", json.a[0].b>=3, json.x exists, header:NAME, header:NAME=VALUE,
    /// header:NAME~=REGEX, length<=1000, sha256=HEX, status=2xx; for streams events=20, event.json.a=1, event~=REGEX,
    /// event.id counts, last-event=[DONE]
    #[arg(long, value_name = "CHECK", value_parser = check)]
    pub expect: Vec<Check>,
    /// Accept only this status [default: any 2xx]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    pub expect_status: Option<u16>,
    /// Ask for compressed answers (gzip, deflate, br, zstd) and decode them. Checks see the decoded bodies. `load` counts both
    /// sizes, and `try` compares what is decoded
    #[arg(long)]
    pub compressed: bool,
    /// Take every answer for a stream of these pieces [default: answers of type text/event-stream are streams of events, and those of
    /// application/x-ndjson of lines]
    #[arg(long, value_enum, value_name = "PIECES")]
    pub stream: Option<StreamChoice>,
}

/// How the pieces of a stream are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StreamChoice {
    /// Server-sent events.
    Events,
    /// Lines.
    Lines,
    /// Chunks of HTTP/1.1.
    Chunks,
}

impl From<StreamChoice> for Form {
    fn from(choice: StreamChoice) -> Self {
        match choice {
            StreamChoice::Events => Self::Events,
            StreamChoice::Lines => Self::Lines,
            StreamChoice::Chunks => Self::Chunks,
        }
    }
}

fn check(text: &str) -> Result<Check, CheckError> {
    Check::parse(text)
}

impl CheckArgs {
    /// Whether any of these options is given.
    pub fn any(&self) -> bool {
        !self.expect.is_empty() || self.expect_status.is_some() || self.compressed || self.stream.is_some()
    }

    /// Which answers are right.
    pub fn expect(&self) -> Expect {
        Expect::meeting(self.expect_status, self.expect.clone())
    }

    /// Why no answer can be right.
    pub fn contradiction(&self) -> Option<&'static str> {
        self.expect().contradiction()
    }
}
