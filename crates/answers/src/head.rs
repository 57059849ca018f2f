//! The head of an answer, as checks see it: a status, and fields with names and values, however they were encoded.

/// The head of an answer. Nothing of it is parsed before a field is asked for, so making one costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// HTTP/1.1: the status line and the lines of the fields, as they were received.
    lines: &'a [u8],
}

impl<'a> Head<'a> {
    /// The head of an answer of HTTP/1.1, from its status line on (RFC 9112 section 2.1).
    pub fn http1(status: u16, lines: &'a [u8]) -> Self {
        Self { status, lines }
    }

    /// The values of the fields with this name, in their order.
    pub fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.lines.split(|byte| *byte == b'\n').skip(1);
        fields.filter_map(move |line| {
            let (key, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":")?;
            key.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
        })
    }
}
