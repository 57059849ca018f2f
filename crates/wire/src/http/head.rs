//! The syntax that request and response heads share: lines, header fields, and what the fields say about the body
//! (RFC 9112 sections 2.2, 5 and 6; RFC 9110 section 5).
//!
//! Pure functions over a slice that begins at the start of a head. If the bytes run out they return
//! [`HttpError::ClosedEarly`]. The decoder treats an error as final only after it has found the end of the head itself.

use super::{BodyLength, HttpError, Version};

/// The characters of a token (RFC 9110 section 5.6.2).
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

/// A byte range within a head. 32 bits are enough, because heads are bounded; each connection keeps one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        // A head this long is over the limit and refused. Saturating keeps its span from pointing at the wrong bytes.
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end) }
    }

    pub(super) fn slice(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The result of a search for the end of a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    Unfinished,
    /// The length of the head in bytes, including the empty line.
    End(usize),
    BareLf,
}

/// Looks for the empty line, and for line ends that are not CR LF, from `from` on. The bytes before it have already been
/// searched.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`pos` is that of a byte, and what is subtracted is not more"
)]
pub(super) fn find_end(bytes: &[u8], from: usize) -> Scan {
    for (pos, _) in bytes.iter().enumerate().skip(from).filter(|&(_, &b)| b == b'\n') {
        if pos == 0 || bytes[pos - 1] != b'\r' {
            return Scan::BareLf;
        }
        // The LF before this CR follows a CR of its own: otherwise the scan would have returned there.
        if pos >= 3 && bytes[pos - 2] == b'\n' {
            return Scan::End(pos + 1);
        }
    }
    Scan::Unfinished
}

#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
pub(super) fn of_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| of_token(byte))
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The eight bytes at `pos` as a little-endian number.
#[inline]
fn word_at(bytes: &[u8], pos: usize) -> Option<u64> {
    let word = bytes.get(pos..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// How many bytes of a word come before its lowest flag.
#[inline]
fn before_flag(flags: u64) -> usize {
    (flags.trailing_zeros() / 8) as usize
}

/// The first position from `pos` on that is not a token character.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "no sum carries out of its byte, since bit 7 is masked; `pos` moves over bytes that were read"
)]
#[inline]
pub(super) fn token_end(bytes: &[u8], mut pos: usize) -> usize {
    loop {
        // Names consist of letters and hyphens: check eight at a time. No sum below carries into the next byte.
        while let Some(word) = word_at(bytes, pos) {
            let lower = (word | (ONES * 0x20)) & !HIGH;
            let letter = (lower + ONES * (0x80 - b'a' as u64)) & !(lower + ONES * (0x7f - b'z' as u64));
            let not_hyphen = ((word ^ (ONES * b'-' as u64)) & !HIGH) + ONES * 0x7f;
            let stops = (!letter & not_hyphen | word) & HIGH;
            if stops == 0 {
                pos += 8;
                continue;
            }
            pos += before_flag(stops);
            if !bytes.get(pos).is_some_and(|&byte| of_token(byte)) {
                return pos;
            }
            pos += 1;
        }
        match bytes.get(pos) {
            Some(&byte) if of_token(byte) => pos += 1,
            _ => return pos,
        }
    }
}

/// The first position from `pos` on that is a control character other than HTAB, or the end.
///
/// Checks eight bytes at a time, because it reads every byte of every header value.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a product repeats one byte eight times; `pos` moves over bytes that were read"
)]
#[inline]
pub(super) fn text_end(bytes: &[u8], mut pos: usize) -> usize {
    loop {
        while let Some(word) = word_at(bytes, pos) {
            let delete = word ^ (ONES * 0x7f);
            // Borrows can set wrong flags only above a correct one, and only the lowest flag is used.
            let low = word.wrapping_sub(ONES * 0x20) & !word;
            let stops = (low | (delete.wrapping_sub(ONES) & !delete)) & HIGH;
            if stops == 0 {
                pos += 8;
                continue;
            }
            pos += before_flag(stops);
            if bytes.get(pos) != Some(&b'\t') {
                return pos;
            }
            pos += 1;
        }
        match bytes.get(pos) {
            Some(&b) if b == b'\t' || (b >= 0x20 && b != 0x7f) => pos += 1,
            _ => return pos,
        }
    }
}

/// Whether two names are equal, ignoring case. `lower` is in lower case; both are tokens of at least eight bytes.
///
/// Sets the bit that distinguishes upper case from lower. Among other token characters only `^` and `~` differ in that bit
/// alone, and no name that is compared here contains them.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "the compiler knows `N`, which is from 10 to 17; a product repeats one byte eight times"
)]
#[inline]
fn same_name<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let equal = |pos| match (word_at(name, pos), word_at(lower, pos)) {
        (Some(a), Some(b)) => a | (ONES * 0x20) == b,
        _ => false,
    };
    name.len() == N && (0..N / 8).all(|word| equal(word * 8)) && equal(N - 8)
}

/// Expects CR LF at `pos`, where the text of a line ended. Returns the position after it.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "callers have `pos` from these bytes, or at most 8 behind them; `get` bounds the reads"
)]
#[inline]
pub(super) fn line_break(bytes: &[u8], pos: usize) -> Result<usize, HttpError> {
    match (bytes.get(pos), bytes.get(pos + 1)) {
        (Some(b'\r'), Some(b'\n')) => Ok(pos + 2),
        (Some(b'\r'), Some(_)) => Err(HttpError::BareCr),
        (Some(b'\r'), None) | (None, _) => Err(HttpError::ClosedEarly),
        (Some(b'\n'), _) => Err(HttpError::BareLf),
        (Some(_), _) => Err(HttpError::ControlCharacter),
    }
}

/// Parses the eight bytes of `HTTP/1.x`.
#[inline]
pub(super) fn version(bytes: [u8; 8]) -> Result<Version, HttpError> {
    match &bytes {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        _ => Err(HttpError::BadVersion),
    }
}

/// The state of Transfer-Encoding over all its lines so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Encoding {
    #[default]
    Absent,
    /// The last coding was not chunked.
    Other,
    /// The last coding was chunked, and it appeared once.
    Chunked,
}

/// The header fields that decide how a message is framed and whether its connection is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    length: Option<u64>,
    encoding: Encoding,
    close: bool,
    keep_alive: bool,
    pub(super) expect_continue: bool,
    pub(super) hosts: u8,
    pub(super) watched: Option<Span>,
    /// The position after the empty line.
    pub(super) end: usize,
}

impl Fields {
    /// Reads header lines from `pos` to the empty line. With `REQUEST`, also looks at Host and Expect.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`token_end` and `text_end` return no less than they were given, and no more than the length"
    )]
    #[inline]
    pub(super) fn read<const REQUEST: bool>(
        bytes: &[u8],
        mut pos: usize,
        watch: &[u8],
    ) -> Result<Self, HttpError> {
        let mut fields = Self::default();
        loop {
            let colon = token_end(bytes, pos);
            if colon == pos || bytes.get(colon) != Some(&b':') {
                fields.end = no_name(bytes, pos, colon)?;
                return Ok(fields);
            }
            let stop = text_end(bytes, colon + 1);
            let next = line_break(bytes, stop)?;
            let name = &bytes[pos..colon];
            fields.note::<REQUEST>(name, &bytes[colon + 1..stop])?;
            if name.len() == watch.len() && fields.watched.is_none() && name.eq_ignore_ascii_case(watch) {
                fields.watched = Some(trimmed(bytes, colon + 1, stop));
            }
            pos = next;
        }
    }

    /// Values still have the blanks around them; only the values that matter are trimmed. Compares lengths first, because
    /// few header names are as long as one of these.
    #[inline]
    fn note<const REQUEST: bool>(&mut self, name: &[u8], value: &[u8]) -> Result<(), HttpError> {
        let value = || value.trim_ascii();
        match name.len() {
            14 if same_name(name, b"content-length") => self.content_length(value()),
            17 if same_name(name, b"transfer-encoding") => self.transfer_encoding(value()),
            10 if same_name(name, b"connection") => {
                self.connection(value());
                Ok(())
            }
            4 if REQUEST && name.eq_ignore_ascii_case(b"host") => {
                self.hosts = self.hosts.saturating_add(1);
                Ok(())
            }
            6 if REQUEST && name.eq_ignore_ascii_case(b"expect") => {
                self.expect_continue |= value().eq_ignore_ascii_case(b"100-continue");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn content_length(&mut self, value: &[u8]) -> Result<(), HttpError> {
        // Usually there is one number. A proxy may join two header lines into a list of equal numbers.
        if self.length.is_none()
            && let Ok(number) = decimal(value)
        {
            self.length = Some(number);
            return Ok(());
        }
        for part in value.split(|&b| b == b',') {
            let number = decimal(part.trim_ascii())?;
            if self.length.is_some_and(|before| before != number) {
                return Err(HttpError::UnequalContentLengths);
            }
            self.length = Some(number);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), HttpError> {
        for coding in value.split(|&b| b == b',') {
            let coding = coding.trim_ascii();
            let name = coding.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
            // Nothing may follow chunked, not even a second chunked (RFC 9112 section 6.1). It takes no parameters.
            if self.encoding == Encoding::Chunked || !is_token(name) {
                return Err(HttpError::BadTransferEncoding);
            }
            self.encoding = if !name.eq_ignore_ascii_case(b"chunked") {
                Encoding::Other
            } else if name.len() == coding.len() {
                Encoding::Chunked
            } else {
                return Err(HttpError::BadTransferEncoding);
            };
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&b| b == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether the connection outlives this message (RFC 9112 section 9.3): `close` wins, then the version's default.
    pub(super) fn keeps_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// How these fields delimit the body; `absent` if they do not say.
    pub(super) fn body(&self, version: Version, absent: BodyLength) -> Result<BodyLength, HttpError> {
        match (self.encoding, self.length) {
            (Encoding::Absent, None) => Ok(absent),
            (Encoding::Absent, Some(length)) => Ok(BodyLength::Exact(length)),
            (_, Some(_)) => Err(HttpError::LengthAndEncoding),
            // RFC 9112 section 6.1: Transfer-Encoding in an HTTP/1.0 message is always faulty framing.
            _ if version == Version::Http10 => Err(HttpError::BadTransferEncoding),
            (Encoding::Chunked, None) => Ok(BodyLength::Chunked),
            (Encoding::Other, None) if absent == BodyLength::UntilClose => Ok(BodyLength::UntilClose),
            (Encoding::Other, None) => Err(HttpError::BadTransferEncoding),
        }
    }
}

/// A value without the surrounding blanks, which are not part of it (RFC 9110 section 5.5).
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the caller found both in these bytes, and what is trimmed is a part of what is between them"
)]
fn trimmed(bytes: &[u8], start: usize, stop: usize) -> Span {
    let value = &bytes[start..stop];
    let before = value.len() - value.trim_ascii_start().len();
    let start = start + before;
    Span::new(start, start + value.trim_ascii().len())
}

/// Handles a line that does not begin with a name and a colon: the empty line that ends the head, or an error.
#[inline]
fn no_name(bytes: &[u8], pos: usize, colon: usize) -> Result<usize, HttpError> {
    match bytes.get(pos) {
        Some(b'\r') => line_break(bytes, pos),
        Some(b' ' | b'\t') => Err(HttpError::FoldedHeader),
        Some(_) if colon < bytes.len() => Err(HttpError::BadHeaderName),
        _ => Err(HttpError::ClosedEarly),
    }
}

/// Parses digits only: no sign, no blanks, no overflow. Leading zeros are allowed.
#[inline]
fn decimal(digits: &[u8]) -> Result<u64, HttpError> {
    if digits.is_empty() {
        return Err(HttpError::BadContentLength);
    }
    let mut number = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(HttpError::BadContentLength);
        }
        number = number
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit)))
            .ok_or(HttpError::BadContentLength)?;
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every pair of bytes at every distance from the edge of a word, to catch wrong borrows and carries.
    #[test]
    fn words_at_a_time_find_what_bytes_at_a_time_find() {
        let text = |b: u8| b == b'\t' || (b >= 0x20 && b != 0x7f);
        let token = |b: u8| TOKEN[usize::from(b)];
        for (first, second) in (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))) {
            for pos in 0..9 {
                let mut bytes = *b"x-header-of-20-bytes";
                (bytes[pos], bytes[pos + 1]) = (first, second);
                let plain = |legal: &dyn Fn(u8) -> bool| bytes.iter().position(|&b| !legal(b)).unwrap_or(20);
                assert_eq!(text_end(&bytes, 0), plain(&text), "{bytes:?}");
                assert_eq!(token_end(&bytes, 0), plain(&token), "{bytes:?}");
            }
        }
    }

    #[test]
    fn names_are_compared_without_case() {
        for pos in 0..17 {
            for byte in (0..=255).filter(|&b| TOKEN[usize::from(b)]) {
                let mut name = *b"Transfer-Encoding";
                name[pos] = byte;
                let plain = name.eq_ignore_ascii_case(b"transfer-encoding");
                assert_eq!(same_name(&name, b"transfer-encoding"), plain, "{name:?}");
            }
        }
        assert!(!same_name(b"connectio", b"connection") && !same_name(b"connections", b"connection"));
    }
}
