//! What a request consists of, with its placeholders, and how HTTP/1.1 writes it. Another encoding of the same parts needs
//! nothing else.

use requests::{Slot, Text};
use wire::http::RequestLine;

use super::template::{Fill, Hole, Template};

/// The parts of a request. Texts may have placeholders.
pub(super) struct RequestParts<'r> {
    /// The method.
    pub method: &'r str,
    /// The path, with the query.
    pub path: &'r Text,
    /// The header's fields, in their order.
    pub fields: Vec<(String, Text)>,
    /// The body.
    pub body: Option<&'r Text>,
}

impl RequestParts<'_> {
    /// The columns of data whose values stand in fields.
    pub(super) fn columns_in_fields(&self) -> impl Iterator<Item = usize> {
        let parts = self.fields.iter().flat_map(|(_, value)| &value.parts);
        parts.filter_map(|part| match part.slot {
            Slot::Column(column) => Some(column),
            _ => None,
        })
    }

    /// Appends the request as HTTP/1.1 sends it to `host`. Returns what is filled in each time.
    ///
    /// # Errors
    /// A part cannot be sent.
    pub(super) fn encode_http1(
        &self,
        host: &str,
        keep_alive: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Template>, String> {
        let text = |text: &Text| String::from_utf8_lossy(&text.literal).into_owned();
        let literals: Vec<(String, String)> =
            self.fields.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let literal = self.body.map_or(0, |body| body.literal.len());
        let mut head = Vec::new();
        let line = RequestLine {
            method: self.method,
            host,
            path: &text(self.path),
            headers: &literals,
            body: self.body.map(|_| literal as u64),
            keep_alive,
            expect_continue: false,
        };
        line.encode(&mut head).map_err(|error| error.to_string())?;
        let mut holes: Vec<Hole> = Vec::new();
        let mut add = |text: &Text, start: usize, fill: fn(Slot) -> Fill| {
            holes.extend(
                text.parts.iter().map(|part| Hole { at: (start + part.at) as u32, fill: fill(part.slot) }),
            );
        };
        add(self.path, self.method.len() + 1, Fill::InPath);
        // The request's fields are the last lines of the head, in their order.
        let lengths = literals.iter().map(|(name, value)| name.len() + value.len() + 4);
        let mut at = head.len() - 2 - lengths.clone().sum::<usize>();
        let own = at;
        for ((name, value), length) in self.fields.iter().zip(lengths) {
            add(value, at + name.len() + 2, Fill::Plain);
            at += length;
        }
        if let Some(body) = self.body.filter(|body| !body.is_literal()) {
            add(body, head.len(), Fill::Plain);
            let from = holes.len() - body.parts.len();
            length_hole(&mut head, own, &mut holes, from, literal);
        }
        out.extend_from_slice(&head);
        out.extend_from_slice(self.body.map_or(&[], |body| &body.literal));
        Ok((!holes.is_empty()).then_some(Template { holes }))
    }
}

/// Makes a hole of the digits of Content-Length, which is before the headers that begin at `own`. The body's holes are those
/// from `from` on.
fn length_hole(head: &mut Vec<u8>, own: usize, holes: &mut Vec<Hole>, from: usize, literal: usize) {
    const NAME: &[u8] = b"\r\nContent-Length: ";
    let before = head.get(..own).unwrap_or_default();
    let Some(name) = before.windows(NAME.len()).position(|window| window == NAME) else { return };
    let at = name + NAME.len();
    let digits = head.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
    head.drain(at..at + digits);
    for hole in holes.iter_mut().filter(|hole| hole.at as usize > at) {
        hole.at -= digits as u32;
    }
    let place = holes.iter().take_while(|hole| (hole.at as usize) < at).count();
    // This hole is before those of the body, and moves them by one.
    let fill = Fill::Length { literal: literal as u32, from: from as u32 + 1 };
    holes.insert(place, Hole { at: at as u32, fill });
}
