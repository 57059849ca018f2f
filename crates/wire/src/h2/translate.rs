//! Requests that are written as HTTP/1.1 sends them, as fields of HTTP/2.

use super::fields::is_of_connection;

/// Hands out the fields of a request: its pseudo-headers, and those of its head that HTTP/2 has. `:authority` is its Host, and
/// what belongs to a connection of HTTP/1.1 is left out (RFC 9113 section 8.2.2). Returns the length of the head; the body follows
/// it.
pub fn request_of_http1(request: &[u8], scheme: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> usize {
    const END: &[u8] = b"\r\n\r\n";
    let end = request.windows(END.len()).position(|bytes| bytes == END);
    let end = end.map_or(request.len(), |at| at.saturating_add(END.len()));
    let head = request.get(..end).unwrap_or_default();
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let pairs = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        Some((name, value.get(1..)?.trim_ascii()))
    });
    let host = pairs.clone().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    field(b":method", method);
    field(b":scheme", scheme);
    field(b":path", path);
    if let Some((_, host)) = host {
        field(b":authority", host);
    }
    let mut lower = Vec::new();
    for (name, value) in pairs {
        lower.clear();
        lower.extend(name.iter().map(u8::to_ascii_lowercase));
        let kept = match lower.as_slice() {
            b"host" => false,
            b"te" => value == b"trailers",
            name => !is_of_connection(name),
        };
        if kept {
            field(&lower, value);
        }
    }
    end
}
