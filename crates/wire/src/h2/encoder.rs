//! Makes header blocks. Those of requests that repeat are made once, as templates, so that sending one is a copy.

use super::TABLE;
use super::integer::{put_integer, put_plain, put_string};
use super::table::{OVERHEAD, find};

/// How a field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// As a literal that is inserted into the table.
    Insert,
    /// As a literal.
    Literal,
    /// As a literal that nobody may ever insert: a secret.
    Never,
}

/// Fields whose values differ from one request to the next, as nghttp2 and h2 know them.
const CHANGING: [&[u8]; 8] = [
    b":path",
    b"age",
    b"content-length",
    b"etag",
    b"if-modified-since",
    b"if-none-match",
    b"location",
    b"set-cookie",
];
/// Shorter cookies could be guessed.
const SHORT_COOKIE: usize = 20;

/// Which fields are worth inserting is the rule of nghttp2 and h2, so that a server's work is that of their clients.
fn how(name: &[u8], value: &[u8]) -> How {
    let size = name.len().saturating_add(value.len()).saturating_add(OVERHEAD);
    match name {
        b"authorization" => How::Never,
        b"cookie" if value.len() < SHORT_COOKIE => How::Never,
        _ if CHANGING.contains(&name) || size > TABLE / 4 * 3 => How::Literal,
        _ => How::Insert,
    }
}

/// The header blocks of requests that are all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// The first on a connection, which inserts fields.
    pub first: Vec<u8>,
    /// All others, which use them.
    pub repeat: Vec<u8>,
    /// One that neither inserts nor uses any.
    pub plain: Vec<u8>,
}

impl Templates {
    /// Adds `fields`, in their order. Those of pseudo-headers come first.
    #[must_use]
    pub fn new<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone) -> Self {
        let (mut templates, mut inserted, mut room) = (Self::default(), 0_usize, TABLE);
        let how = |name: &[u8], value: &[u8], room: &mut usize| {
            let size = name.len().saturating_add(value.len()).saturating_add(OVERHEAD);
            match how(name, value) {
                How::Insert if size <= *room && find(name, value).0.is_none() => {
                    *room = room.saturating_sub(size);
                    How::Insert
                }
                How::Insert => How::Literal,
                other => other,
            }
        };
        let all = fields.clone().filter(|(name, value)| how(name, value, &mut room) == How::Insert).count();
        room = TABLE;
        for (name, value) in fields {
            put_field(&mut templates.plain, name, value);
            match how(name, value, &mut room) {
                How::Insert => {
                    put_literal(&mut templates.first, How::Insert, name, value);
                    inserted = inserted.saturating_add(1);
                    // The newest entry has the index 62.
                    let index = all.saturating_sub(inserted).saturating_add(62);
                    put_integer(&mut templates.repeat, 7, 0x80, index);
                }
                _ => {
                    put_field(&mut templates.first, name, value);
                    put_field(&mut templates.repeat, name, value);
                }
            }
        }
        templates
    }

    /// Adds a field at the end whose value changes. It is written as it is, so that other values of its length can replace it.
    pub fn put_changing(&mut self, name: &[u8], value: &[u8]) {
        for block in [&mut self.first, &mut self.repeat, &mut self.plain] {
            put_integer(block, 4, 0, 0);
            put_string(block, name);
            put_plain(block, value);
        }
    }
}

/// Appends a field without the table that header blocks fill.
pub fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match find(name, value).0 {
        Some(index) => put_integer(out, 7, 0x80, index),
        None => {
            let how = if how(name, value) == How::Never { How::Never } else { How::Literal };
            put_literal(out, how, name, value);
        }
    }
}

fn put_literal(out: &mut Vec<u8>, how: How, name: &[u8], value: &[u8]) {
    let (bits, flags) = match how {
        How::Insert => (6, 0x40),
        How::Literal => (4, 0),
        How::Never => (4, 0x10),
    };
    match find(name, value).1 {
        Some(index) => put_integer(out, bits, flags, index),
        None => {
            put_integer(out, bits, flags, 0);
            put_string(out, name);
        }
    }
    put_string(out, value);
}

/// Appends the status of an answer.
pub fn put_status(out: &mut Vec<u8>, status: u16) {
    let [hundreds, tens, ones] =
        [status / 100, status / 10, status].map(|part| b'0'.wrapping_add((part % 10) as u8));
    let digits = [hundreds, tens, ones];
    put_field(out, b":status", &digits);
}
