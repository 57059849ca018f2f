//! HAR, as browsers save it: one JSON document with the requests of a page. It is read as a stream, and nothing is kept of
//! its answers.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::bounded::{Bound, Bounded};
use crate::json::without_place;
use crate::origin::as_sent;
use crate::vegeta::default_name;
use crate::{Error, Origin, Reading, Request, Text};

#[derive(Deserialize)]
struct Entry {
    request: Recorded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

/// Headers that belong to the browser's connection or cache, so that they would be wrong in a replay.
const OF_THE_BROWSER: [&str; 16] = [
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
    "accept-encoding",
    "if-none-match",
    "if-modified-since",
    "if-range",
    "range",
];

/// The most bytes without the end of an entry: 256 MiB.
const LONGEST_ENTRY: u64 = 256 << 20;

pub(crate) fn read(input: &mut dyn BufRead, reading: &mut Reading<'_, '_>) -> Result<(), Error> {
    let bound = Bound::new(LONGEST_ENTRY, "the next entry");
    let mut entries = Entries { reading, first: None, number: 0, bound: &bound };
    let mut json = serde_json::Deserializer::from_reader(Bounded::new(input, &bound));
    let read = Path { names: &["log", "entries"], entries: &mut entries }
        .deserialize(&mut json)
        .and_then(|()| json.end());
    read.map_err(|error| {
        if error.is_io() {
            let why = format!("after {} entries: {error}", entries.number);
            return entries.reading.options.error(0, (1, why));
        }
        entries.reading.options.error(error.line() as u64, (error.column().max(1), without_place(&error)))
    })
}

/// Where the requests go.
struct Entries<'x, 'a, 'b> {
    reading: &'x mut Reading<'a, 'b>,
    /// Where the first request went.
    first: Option<Origin>,
    /// How many entries were read.
    number: u64,
    bound: &'x Bound,
}

impl Entries<'_, '_, '_> {
    fn take(&mut self, request: Recorded) -> Result<(), String> {
        // Pages also load what is no HTTP: `data:`, `blob:`, sockets, extensions.
        let web = ["http://", "https://"].iter().any(|scheme| request.url.starts_with(scheme));
        if !web || request.method == "CONNECT" {
            self.reading.found.elsewhere = self.reading.found.elsewhere.saturating_add(1);
            return Ok(());
        }
        let (origin, path) = Origin::split(&request.url)?;
        if *self.first.get_or_insert_with(|| origin.clone()) != origin && !self.reading.options.rebase {
            self.reading.found.elsewhere = self.reading.found.elsewhere.saturating_add(1);
            return Ok(());
        }
        let path = as_sent(path);
        (self.reading.take)(Request {
            name: default_name(&request.method, &path),
            method: request.method,
            path: Text::literal(path),
            headers: kept(request.headers),
            body: request.post_data.map(|data| Text::literal(body(data))),
            weight: 1.0,
            expect: Vec::new(),
            at: None,
            line: 0,
        })
    }
}

fn kept(headers: Vec<Pair>) -> Vec<(String, Text)> {
    let belongs =
        |name: &str| name.starts_with(':') || OF_THE_BROWSER.iter().any(|one| name.eq_ignore_ascii_case(one));
    let kept = headers.into_iter().filter(|header| !belongs(&header.name));
    kept.map(|header| (header.name, Text::literal(header.value))).collect()
}

fn body(data: PostData) -> Vec<u8> {
    match data.text {
        Some(text) if !text.is_empty() || data.params.is_empty() => text.into_bytes(),
        None if data.params.is_empty() => Vec::new(),
        _ if data.mime_type.starts_with("application/x-www-form-urlencoded") => {
            let pairs = data.params.iter().map(|pair| format!("{}={}", pair.name, pair.value));
            pairs.collect::<Vec<_>>().join("&").into_bytes()
        }
        _ => Vec::new(),
    }
}

/// Finds the entries in the document.
struct Path<'p, 'x, 'a, 'b> {
    /// The names of the members that lead to them.
    names: &'static [&'static str],
    entries: &'p mut Entries<'x, 'a, 'b>,
}

impl<'de> DeserializeSeed<'de> for Path<'_, '_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.names.is_empty() { from.deserialize_seq(self) } else { from.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for Path<'_, '_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a HAR file: an object with `log`, whose `entries` are a list")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        let Some((name, rest)) = self.names.split_first() else { return Ok(()) };
        let mut found = false;
        while let Some(member) = members.next_key::<String>()? {
            if member == *name && !found {
                members.next_value_seed(Path { names: rest, entries: &mut *self.entries })?;
                found = true;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(M::Error::custom(format!("`{name}` is missing"))) }
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut entries: S) -> Result<(), S::Error> {
        while let Some(entry) = entries.next_element::<Entry>()? {
            self.entries.number = self.entries.number.saturating_add(1);
            self.entries.bound.renew();
            let number = self.entries.number;
            self.entries
                .take(entry.request)
                .map_err(|why| S::Error::custom(format!("entry {number}: {why}")))?;
        }
        Ok(())
    }
}
