//! Vegeta's format: `METHOD URL`, then headers, then `@FILE` with the body. Empty lines are between two requests, and lines
//! that begin with `#` are comments.

use crate::lines::Lines;
use crate::origin::as_sent;
use crate::{Error, InLine, Reading, Request, Text};

pub(crate) fn read(lines: &mut Lines<'_>, reading: &mut Reading<'_, '_>) -> Result<(), Error> {
    loop {
        match next(lines, reading) {
            Ok(Some(request)) => reading.give(request)?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(reading.options.error(lines.number(), error)),
        }
    }
}

/// Whether a line begins a request: a method in capitals and a URL or a path.
pub(crate) fn begins(line: &str) -> bool {
    line.split_once(char::is_whitespace).is_some_and(|(method, _)| {
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    })
}

fn next(lines: &mut Lines<'_>, reading: &mut Reading<'_, '_>) -> Result<Option<Request>, InLine> {
    let mut request = loop {
        let Some(line) = lines.next_text()? else { return Ok(None) };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        break first(line, reading)?;
    };
    request.line = lines.number();
    while let Some(line) = lines.next_text()? {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(file) = line.strip_prefix('@') {
            if request.body.is_some() {
                return Err((1, "a second body".to_owned()));
            }
            request.body = Some(reading.body_file(file.trim())?);
        } else if begins(line) {
            lines.put_back();
            break;
        } else {
            request.headers.push(header(line, reading)?);
        }
    }
    Ok(Some(request))
}

/// The line `METHOD URL`.
fn first(line: &str, reading: &Reading<'_, '_>) -> Result<Request, InLine> {
    let shape = || (1, "a request begins with `METHOD URL`".to_owned());
    if !begins(line) {
        return Err(shape());
    }
    let (method, rest) = line.split_once(char::is_whitespace).ok_or_else(shape)?;
    let url = rest.trim();
    let path =
        if url.starts_with('/') { url } else { reading.path(url).map_err(|why| (column(line, url), why))? };
    let at = column(line, path);
    let path = as_sent(path);
    Ok(Request {
        name: default_name(method, &path),
        method: method.to_owned(),
        path: reading.text(path.as_bytes()).map_err(|(column, why)| (further(at, column), why))?,
        headers: Vec::new(),
        body: None,
        weight: 1.0,
        expect: Vec::new(),
        at: None,
        line: 0,
    })
}

fn header(line: &str, reading: &Reading<'_, '_>) -> Result<(String, Text), InLine> {
    let (name, value) = line.split_once(':').ok_or_else(|| {
        (1, "neither a header `Name: value`, nor a body `@FILE`, nor a request `METHOD URL`".to_owned())
    })?;
    let value = value.trim();
    let text = reading.text(value.as_bytes()).map_err(|(at, why)| (further(column(line, value), at), why))?;
    Ok((name.trim().to_owned(), text))
}

/// The column of a part of a line, from 1.
fn column(line: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize).min(line.len()).saturating_add(1)
}

/// The column, in a line, of a column of its part that begins at `at`. Both are from 1.
fn further(at: usize, column: usize) -> usize {
    at.saturating_add(column).saturating_sub(1)
}

/// The name of a request that has none: its method and path without the query.
pub(crate) fn default_name(method: &str, path: &str) -> String {
    format!("{method} {}", path.split('?').next().unwrap_or_default())
}
