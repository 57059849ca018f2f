//! What the fields of a message must be (RFC 9113 section 8.2).

use super::Malformed;

/// The bytes of names: those of tokens (RFC 9110 section 5.6.2) without capital letters.
static NAME: [bool; 256] = names();

#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "the compiler evaluates it")]
const fn names() -> [bool; 256] {
    let (mut table, others) = ([false; 256], b"!#$%&'*+-.^_`|~");
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_lowercase() || (byte as u8).is_ascii_digit();
        byte += 1;
    }
    let mut place = 0;
    while place < others.len() {
        table[others[place] as usize] = true;
        place += 1;
    }
    table
}

#[expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
fn is_of_name(byte: u8) -> bool {
    NAME[usize::from(byte)]
}

/// Whether a name can be sent: a token without capital letters.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().copied().all(is_of_name)
}

/// Checks a value: no line ends, no NUL, and no blanks around it.
pub(super) fn check_value(value: &[u8]) -> Result<(), Malformed> {
    let blank = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    if blank(value.first()) || blank(value.last()) {
        return Err(Malformed("a field's value has a blank at an end"));
    }
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err(Malformed("a field's value has a control character"));
    }
    Ok(())
}

/// Whether a field belongs to a connection of HTTP/1.1. HTTP/2 has none of them.
pub(super) fn is_of_connection(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}

/// Checks a field that is no pseudo-header.
pub(super) fn check(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    if !is_name(name) {
        return Err(Malformed(
            "a field's name is empty, or has a capital letter or another byte that it must not",
        ));
    }
    check_value(value)?;
    match name {
        _ if is_of_connection(name) => Err(Malformed("a field belongs to connections of HTTP/1.1")),
        b"te" if value != b"trailers" => Err(Malformed("the field te is not \"trailers\"")),
        _ => Ok(()),
    }
}

/// Reads a content-length. Equal ones may be repeated.
pub(super) fn content_length(value: &[u8], before: Option<u64>) -> Result<u64, Malformed> {
    let wrong = Malformed("the content-length is not a number that fits 64 bits");
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(wrong);
    }
    let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(wrong)?;
    if before.is_some_and(|before| before != length) {
        return Err(Malformed("two content-lengths differ"));
    }
    Ok(length)
}
