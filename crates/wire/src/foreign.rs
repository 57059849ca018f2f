//! Which protocol a peer speaks that does not answer in HTTP/1, by its first bytes.

/// What a protocol's first bytes are: a test, and the name of the protocol.
type Sign = (fn(&[u8]) -> bool, &'static str);

const SIGNS: &[Sign] = &[
    // An alert or a handshake record of version 3.x.
    (|first| matches!(first, [0x15 | 0x16, 3, 0..=4, ..]), "TLS"),
    // A frame SETTINGS or GOAWAY on stream 0: the preface of a server.
    (
        |first| matches!(first, [0, _, _, 4 | 7, _, 0, 0, 0, 0, ..]) || first.starts_with(b"PRI * HTTP/2"),
        "HTTP/2 without TLS, as gRPC does",
    ),
    (|first| first.starts_with(b"SSH-"), "SSH"),
    (|first| greets(first) && has(first, b"FTP") && !has(first, b"SMTP"), "FTP"),
    (|first| greets(first) && has(first, b"SMTP"), "SMTP"),
    (greets, "FTP or SMTP"),
    (
        |first| {
            let begins: [&[u8]; 4] = [b"+PONG\r\n", b"-ERR ", b"-NOAUTH ", b"-DENIED "];
            begins.iter().any(|begin| first.starts_with(begin))
        },
        "Redis's protocol",
    ),
    (|first| first.starts_with(b"+OK "), "POP3"),
    (|first| first.starts_with(b"* OK "), "IMAP"),
    // A packet with the number 0 and version 10 of the handshake.
    (|first| matches!(first, [_, _, 0, 0, 10, ..]), "MySQL's protocol"),
    // An error message, whose first field is its severity.
    (|first| matches!(first, [b'E', 0, 0, _, _, b'S', ..]), "Postgres's protocol"),
    (|first| first.starts_with(b"AMQP"), "AMQP"),
    (|first| first.starts_with(b"ERROR\r\n"), "memcached's protocol"),
    (|first| first.starts_with(b"RTSP/"), "RTSP"),
];

fn greets(first: &[u8]) -> bool {
    first.starts_with(b"220 ") || first.starts_with(b"220-")
}

fn has(first: &[u8], word: &[u8]) -> bool {
    first.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// The protocol whose server begins like this. None if it is not known.
pub fn recognised(first: &[u8]) -> Option<&'static str> {
    SIGNS.iter().find(|(is, _)| is(first)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognised_by_their_first_bytes() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"\x15\x03\x01\x00\x02\x02\x16", Some("TLS")),
            (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03", Some("HTTP/2 without TLS, as gRPC does")),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", Some("SSH")),
            (b"220 (vsFTPd 3.0.3)\r\n", Some("FTP")),
            (b"220 pyftpdlib 1.5.9 ready.\r\n", Some("FTP")),
            (b"220 mail.example.org ESMTP Postfix\r\n", Some("SMTP")),
            (b"220 ready\r\n", Some("FTP or SMTP")),
            (b"-ERR wrong number of arguments for 'get' command\r\n", Some("Redis's protocol")),
            (b"+PONG\r\n", Some("Redis's protocol")),
            (b"* OK [CAPABILITY IMAP4rev1]\r\n", Some("IMAP")),
            (b"\x4a\x00\x00\x00\x0a8.0.36\x00", Some("MySQL's protocol")),
            (b"E\x00\x00\x00\x8bSFATAL\x00", Some("Postgres's protocol")),
            (b"", None),
            (b"hello", None),
            (b"HTTP/1.1 200 OK\r\n", None),
        ];
        for (first, name) in table {
            assert_eq!(recognised(first), *name, "{}", first.escape_ascii());
        }
    }
}
