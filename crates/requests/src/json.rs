//! One JSON object a line: ours, and vegeta's.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::lines::{Lines, as_text};
use crate::origin::as_sent;
use crate::vegeta::default_name;
use crate::{Error, InLine, Reading, Request, Text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    method: Option<String>,
    url: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: Headers,
    body: Option<String>,
    body_file: Option<String>,
    body_base64: Option<String>,
    name: Option<String>,
    weight: Option<f64>,
    expect: Option<Values>,
}

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

impl From<Values> for Vec<String> {
    fn from(values: Values) -> Self {
        match values {
            Values::One(value) => vec![value],
            Values::Several(values) => values,
        }
    }
}

/// Headers in the order of the line. A name with several values is sent several times.
#[derive(Default)]
struct Headers(Vec<(String, Values)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of headers")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Headers, M::Error> {
                let mut headers = Vec::new();
                while let Some(header) = members.next_entry()? {
                    headers.push(header);
                }
                Ok(Headers(headers))
            }
        }
        from.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vegetas {
    method: String,
    url: String,
    body: Option<String>,
    #[serde(default)]
    header: Headers,
}

/// How a line is read.
type ReadLine = fn(&str, &mut Reading<'_, '_>) -> Result<Request, InLine>;

pub(crate) fn read(
    lines: &mut Lines<'_>,
    reading: &mut Reading<'_, '_>,
    read_line: ReadLine,
) -> Result<(), Error> {
    loop {
        let at = lines.coming();
        let parsed = match lines.next() {
            Ok(None) => return Ok(()),
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => as_text(line).and_then(|line| read_line(line, reading)),
            Err(error) => Err(error),
        };
        let request = parsed.map_err(|error| reading.options.error(at, error))?;
        reading.give(Request { line: at, ..request })?;
    }
}

/// A line in our form.
pub(crate) fn ours(line: &str, reading: &mut Reading<'_, '_>) -> Result<Request, InLine> {
    let read: Ours = object(line)?;
    let texts = Texts { line, reading };
    let path = match (&read.url, &read.path) {
        (Some(url), None) => texts.path_of(url)?,
        (None, Some(path)) if path.starts_with('/') => path.clone(),
        (None, Some(path)) => {
            return Err((texts.column(path), format!("the path {path:?} must begin with /")));
        }
        _ => return Err((1, "a request needs either `url` or `path`".to_owned())),
    };
    let headers = texts.headers(read.headers)?;
    let text = as_sent(&path);
    let parsed_path = texts.parse(&text)?;
    let body = match (&read.body, &read.body_base64, &read.body_file) {
        (None, None, None) => None,
        (Some(body), None, None) => Some(texts.parse(body)?),
        (None, Some(body), None) => Some(texts.decode(body)?),
        (None, None, Some(file)) => Some(texts.reading.body_file(file)?),
        _ => return Err((1, "a request has one of `body`, `body_base64` and `body_file`".to_owned())),
    };
    let method = read.method.unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned());
    let weight = read.weight.unwrap_or(1.0);
    if !(weight > 0.0 && weight <= 1e9) {
        return Err((texts.column("weight"), "a weight is above 0 and at most 1e9".to_owned()));
    }
    Ok(Request {
        name: read.name.unwrap_or_else(|| default_name(&method, &text)),
        method,
        path: parsed_path,
        headers,
        body,
        weight,
        expect: read.expect.map(Vec::from).unwrap_or_default(),
        at: None,
        line: 0,
    })
}

/// A line in vegeta's form.
pub(crate) fn vegetas(line: &str, reading: &mut Reading<'_, '_>) -> Result<Request, InLine> {
    let read: Vegetas = object(line)?;
    let texts = Texts { line, reading };
    let path = if read.url.starts_with('/') { read.url.clone() } else { texts.path_of(&read.url)? };
    let path = as_sent(&path);
    let headers = texts.headers(read.header)?;
    Ok(Request {
        name: default_name(&read.method, &path),
        method: read.method,
        path: texts.parse(&path)?,
        headers,
        body: read.body.as_deref().map(|body| texts.decode(body)).transpose()?,
        weight: 1.0,
        expect: Vec::new(),
        at: None,
        line: 0,
    })
}

fn object<T: DeserializeOwned>(line: &str) -> Result<T, InLine> {
    serde_json::from_str(line).map_err(|error| (error.column().max(1), without_place(&error)))
}

/// What serde_json says, without the line and column, which would be those within the line.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The texts of a line.
struct Texts<'l, 'a, 'b, 'c> {
    line: &'l str,
    reading: &'a mut Reading<'b, 'c>,
}

impl Texts<'_, '_, '_, '_> {
    /// The column at which a text of the line probably stands. Escapes hide it, and then it is the beginning of the line.
    fn column(&self, text: &str) -> usize {
        let quoted = self.line.find(&format!("\"{text}\"")).map(|at| at.saturating_add(2));
        quoted.or_else(|| self.line.find(text).map(|at| at.saturating_add(1))).unwrap_or(1)
    }

    fn path_of(&self, url: &str) -> Result<String, InLine> {
        let path = self.reading.path(url).map_err(|why| (self.column(url), why))?;
        Ok(as_sent(path))
    }

    fn parse(&self, text: &str) -> Result<Text, InLine> {
        self.reading.text(text.as_bytes()).map_err(|(at, why)| {
            let rest = text.get(at.saturating_sub(1)..).unwrap_or_default();
            let placeholder =
                rest.find("}}").and_then(|end| rest.get(..end.saturating_add(2))).unwrap_or(rest);
            (self.column(placeholder), why)
        })
    }

    fn headers(&self, headers: Headers) -> Result<Vec<(String, Text)>, InLine> {
        let mut parsed = Vec::new();
        for (name, values) in headers.0 {
            for value in Vec::from(values) {
                parsed.push((name.clone(), self.parse(&value)?));
            }
        }
        Ok(parsed)
    }

    fn decode(&self, text: &str) -> Result<Text, InLine> {
        let decoded = STANDARD.decode(text);
        decoded
            .map(Text::literal)
            .map_err(|error| (self.column(text), format!("the body is no base64: {error}")))
    }
}
