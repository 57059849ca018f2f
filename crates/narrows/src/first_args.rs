//! The options of a request that is made before the others, and of the values that its answer has for them.

use std::path::Path;

use answers::{Capture, CheckError};
use anyhow::bail;
use lab::ask::{Bytes, First, Payload};
use serde::{Deserialize, Serialize};

use crate::common::Usage;
use crate::given;

/// Values from an answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Values from an answer")]
pub struct FirstArgs {
    /// Make this request once before the others: `METHOD PATH`, or `METHOD PATH BODY`, where BODY is text or @FILE. `try` and `tune`
    /// make it once in each trial, before its warm-up
    #[arg(long, value_name = "REQUEST", value_parser = Made::parse)]
    first: Option<Made>,
    /// Take a value from the answer to --first: token=json.access_token, id=header:NAME, s=cookie:NAME, c=body~=REGEX with the first
    /// group. Later paths, headers and bodies have it as {{token}}; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = capture, requires = "first")]
    capture: Vec<Capture>,
    /// Send the cookies that the answer to --first sets with every later request
    #[arg(long, requires = "first")]
    cookies: bool,
}

/// The request of `--first`, as it is typed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Made {
    method: String,
    path: String,
    body: Option<String>,
}

impl Made {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write it as METHOD PATH BODY, such as 'POST /login {\"name\":\"ann\"}'".to_owned();
        let (method, rest) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let (path, body) = match rest.trim_start().split_once(' ') {
            Some((path, body)) => (path, Some(body.trim_start().to_owned())),
            None => (rest.trim_start(), None),
        };
        let legal = method.bytes().all(|byte| byte.is_ascii_alphabetic())
            && path.starts_with('/')
            && path.bytes().all(|byte| byte.is_ascii_graphic());
        if !legal {
            return Err(wrong());
        }
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            body: body.filter(|body| !body.is_empty()),
        })
    }
}

fn capture(text: &str) -> Result<Capture, CheckError> {
    Capture::parse(text)
}

impl FirstArgs {
    /// Whether there is a first request.
    pub fn any(&self) -> bool {
        self.first.is_some()
    }

    /// The names of the values.
    pub fn names(&self) -> Vec<String> {
        self.capture.iter().map(|capture| capture.name().to_owned()).collect()
    }

    /// The first request. It has those of `headers`, which are sent with every request, that name none of its own values.
    ///
    /// # Errors
    /// Its body cannot be read, a name occurs twice, or nothing is done with its answer.
    pub fn read(&self, headers: &[(String, String)]) -> anyhow::Result<Option<First>> {
        let Some(Made { method, path, body }) = &self.first else { return Ok(None) };
        let names = self.names();
        let mut earlier = names.iter().enumerate();
        if let Some((_, name)) = earlier.find(|(at, name)| names.iter().take(*at).any(|other| other == *name))
        {
            bail!(Usage(format!("--capture names {name} twice")));
        }
        if names.is_empty() && !self.cookies {
            bail!(Usage(
                "--first needs a --capture or --cookies: nothing else is done with its answer".to_owned()
            ));
        }
        // Its answer is not decoded.
        let left_out = |name: &str, value: &str| {
            name.eq_ignore_ascii_case("accept-encoding") || names.iter().any(|name| is_in(name, value))
        };
        let mut headers: Vec<(String, String)> =
            headers.iter().filter(|(name, value)| !left_out(name, value)).cloned().collect();
        let body = match body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => Payload::None,
            Some((_, Some(file))) => Payload::Bytes(Bytes(given::read(Path::new(file))?)),
            Some((text, None)) => Payload::Bytes(Bytes(text.as_bytes().to_vec())),
        };
        let says_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let (Payload::Bytes(bytes), false) = (&body, says_type) {
            let kind = match bytes.0.trim_ascii_start().first() {
                Some(b'{' | b'[') => "application/json",
                _ => "application/x-www-form-urlencoded",
            };
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        let (method, path) = (method.clone(), path.clone());
        Ok(Some(First { method, path, headers, body, capture: self.capture.clone(), cookies: self.cookies }))
    }

    /// Checks that each value is named in one of these texts, and that they name no other.
    ///
    /// # Errors
    /// One is not, or a name has no value.
    pub fn check_named<'t>(&self, texts: impl Iterator<Item = &'t str> + Clone) -> Result<(), Usage> {
        let known = self.names();
        let unknown = texts.clone().flat_map(names_in).find(|name| !known.iter().any(|known| known == name));
        if let Some(name) = unknown.filter(|_| self.any()) {
            let names: Vec<String> = known.iter().map(|name| format!("{{{{{name}}}}}")).collect();
            let help = match names.as_slice() {
                [] => "--capture gives none a value".to_owned(),
                names => format!("--capture gives one to {}", names.join(", ")),
            };
            return Err(Usage(format!("{{{{{name}}}}} has no value: {help}")));
        }
        match self.names().into_iter().find(|name| !texts.clone().any(|text| is_in(name, text))) {
            Some(name) => Err(Usage(format!(
                "--capture {name}: no path, header or body has {{{{{name}}}}}: use it, as in -H 'Authorization: Bearer {{{{{name}}}}}'"
            ))),
            None => Ok(()),
        }
    }
}

/// Whether a text has the value of this name.
fn is_in(name: &str, text: &str) -> bool {
    names_in(text).any(|inside| inside == name)
}

/// The names of values in a text. Other text in braces is sent as it is.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split("{{").skip(1).filter_map(|part| Some(part.split_once("}}")?.0.trim()));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    inside.filter(move |name| !name.is_empty() && name.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_request_is_a_line() {
        let read = |text: &str| Made::parse(text).map(|made| (made.method, made.path, made.body));
        let made = |method: &str, path: &str, body: Option<&str>| {
            Ok((method.to_owned(), path.to_owned(), body.map(str::to_owned)))
        };
        assert_eq!(read("GET /csrf"), made("GET", "/csrf", None));
        assert_eq!(read("POST /login {\"a\": 1}"), made("POST", "/login", Some("{\"a\": 1}")));
        for wrong in ["", "/login", "POST", "POST login", "PO-ST /a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_that_needs_a_value_is_not_sent_before_there_is_one() {
        let args = FirstArgs {
            first: Made::parse("POST /login a=b").ok(),
            capture: vec![Capture::parse("t=json.t").expect("a capture")],
            cookies: false,
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [header("Authorization", "Bearer {{ t }}"), header("Accept", "*/*")];
        let first = args.read(&headers).expect("a request").expect("a request");
        let form = header("Content-Type", "application/x-www-form-urlencoded");
        assert_eq!(first.headers, [header("Accept", "*/*"), form]);
        assert!(args.check_named(["/a", "Bearer {{t}}"].into_iter()).is_ok());
        assert!(args.check_named(["/a", "{t}"].into_iter()).is_err());
        let mistyped = args.check_named(["{{t}}", "{{ tt }} {{\"a\"}}"].into_iter()).expect_err("a mistake");
        assert_eq!(mistyped.0, "{{tt}} has no value: --capture gives one to {{t}}");
    }
}
