//! Heads and chunked bodies that were chosen by hand, from what RFC 9112 forbids and permits.
//!
//! [`Stricter`] says why the decoders refuse what another parser takes, and [`Looser`] why they take what another one refuses.

use Differs::{Looser, No, Stricter};

/// How the decoders differ from one of the other parsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    No,
    Stricter(&'static str),
    Looser(&'static str),
}

/// A name, a stream and how the decoders differ there.
pub type Chosen = (&'static str, &'static [u8], Differs);

const CONTROL: Differs = Stricter("RFC 9110, 5.5: a field has no control character but the tab");
const VERSION: Differs =
    Stricter("only HTTP/1.1 and HTTP/1.0 are measured, and another version is a fault of the peer");
const BARE_LF: Differs = Stricter(
    "section 2.2 permits a recipient to take LF alone as the end of a line, and no sender to write it",
);
const FOLDED: Differs = Stricter("section 5.2 deprecates it, and nothing that is measured should send it");
const BOTH: Differs =
    Stricter("section 6.1: it may be an attempt to smuggle, and ought to be handled as an error");
const OLD_CHUNKED: Differs = Stricter("section 6.1: Transfer-Encoding in HTTP/1.0 is faulty framing");
const CLOSED: Differs = Looser(
    "what follows a message that says `close` is decoded, and the caller sees that it does not belong there",
);
const CODING: Differs = Looser("the decoders frame any coding (section 6.3); h11 knows chunked alone");
const EQUAL: Differs = Looser("section 6.3 permits a recipient to take equal lengths as one");
const ONCE: Differs = Stricter("section 6.1: chunked is applied once");
const PADDED: Differs =
    Looser("section 7.1.1 permits blanks before an extension, and some servers pad sizes with them");
const EXTENSION: Differs = Looser("extensions frame nothing, so their words are not looked at");
const TRAILER: Differs = Looser("section 7.1.2: trailers frame nothing, and are skipped");
const HOST: Differs =
    Stricter("section 3.2: a request of HTTP/1.1 has one Host, and others are refused with 400");
const METHOD: Differs = Looser("methods frame nothing, so any token is one");

pub const RESPONSES: &[Chosen] = &[
    ("no reason", b"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", No),
    ("no blank before no reason", b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", No),
    ("a reason in 8 bits", b"HTTP/1.1 200 \xe4\xff\r\nContent-Length: 1\r\n\r\nx", No),
    ("NUL in a reason", b"HTTP/1.1 200 O\0K\r\nContent-Length: 1\r\n\r\nx", CONTROL),
    ("a status of two digits", b"HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("a status of four digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("a status below 100", b"HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\nx", Stricter("RFC 9110, 15: a status is from 100 on")),
    ("a status above 599", b"HTTP/1.1 999 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("two blanks before a status", b"HTTP/1.1  200 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("HTTP/1.2", b"HTTP/1.2 200 OK\r\nContent-Length: 1\r\n\r\nx", VERSION),
    ("HTTP/2.0", b"HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\nx", VERSION),
    ("HTTP/0.9", b"HTTP/0.9 200 OK\r\nContent-Length: 1\r\n\r\nx", VERSION),
    ("a version in lower case", b"http/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("an empty line first", b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", Stricter("section 2.2 permits it before a request only")),
    ("HTTP/1.0 until the end", b"HTTP/1.0 200 OK\r\n\r\nabc", No),
    ("HTTP/1.0 with a length", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.0 200 OK\r\n\r\n", CLOSED),
    ("HTTP/1.0 kept", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nxHTTP/1.0 204 No\r\n\r\n", No),
    ("HTTP/1.0 in chunks", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", OLD_CHUNKED),
    ("until the end", b"HTTP/1.1 200 OK\r\n\r\nabc", No),
    ("an early end", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", No),
    ("an end in a head", b"HTTP/1.1 200 OK\r\nContent-Le", No),
    ("a folded field", b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 1\r\n\r\nx", FOLDED),
    ("a folded length", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx", FOLDED),
    ("a blank before the first name", b"HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 1\r\n\r\nx", No),
    ("LF after the status", b"HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\nx", BARE_LF),
    ("LF after a field", b"HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\nx", BARE_LF),
    ("LF at the end of a head", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\nx", BARE_LF),
    ("LF everywhere", b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", BARE_LF),
    ("CR in a value", b"HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 1\r\n\r\nx", No),
    ("CR CR LF", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\r\n\r\nx", No),
    ("a blank before a colon", b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", No),
    ("a tab before a colon", b"HTTP/1.1 200 OK\r\nContent-Length\t: 1\r\n\r\nx", No),
    ("no colon", b"HTTP/1.1 200 OK\r\nContent-Length 1\r\n\r\nx", No),
    ("no name", b"HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 1\r\n\r\nx", No),
    ("a blank in a name", b"HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 1\r\n\r\nx", No),
    ("a name in 8 bits", b"HTTP/1.1 200 OK\r\n\xc3\xa4: c\r\nContent-Length: 1\r\n\r\nx", No),
    ("a value in 8 bits", b"HTTP/1.1 200 OK\r\nA: \xe4\xff\x80\r\nContent-Length: 1\r\n\r\nx", No),
    ("NUL in a value", b"HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 1\r\n\r\nx", No),
    ("NUL in a name", b"HTTP/1.1 200 OK\r\nA\0: b\r\nContent-Length: 1\r\n\r\nx", No),
    ("another control character", b"HTTP/1.1 200 OK\r\nA: b\x01c\r\nContent-Length: 1\r\n\r\nx", CONTROL),
    ("DEL in a value", b"HTTP/1.1 200 OK\r\nA: b\x7fc\r\nContent-Length: 1\r\n\r\nx", CONTROL),
    ("no blank after a colon", b"HTTP/1.1 200 OK\r\nContent-Length:1\r\n\r\nx", No),
    ("blanks and tabs around a value", b"HTTP/1.1 200 OK\r\nContent-Length: \t 1 \t\r\n\r\nx", Looser("RFC 9110, 5.5: blanks and tabs around a value are not part of it")),
    ("equal lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", EQUAL),
    ("a list of equal lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx", EQUAL),
    ("unequal lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", No),
    ("a list of unequal lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nxy", No),
    ("leading zeros of a length", b"HTTP/1.1 200 OK\r\nContent-Length: 0001\r\n\r\nx", No),
    ("equal lengths in other digits", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\nx", EQUAL),
    ("a length with a sign", b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", No),
    ("a negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx", No),
    ("a hexadecimal length", b"HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\nx", No),
    ("an empty length", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nx", No),
    ("a length of 2^64", b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nx", No),
    ("a length of 2^64 + 1", b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\nx", No),
    ("a length of 30 zeros", b"HTTP/1.1 200 OK\r\nContent-Length: 000000000000000000000000000001\r\n\r\nx", Looser("RFC 9110, 8.6: a length has any number of digits, and h11 takes 20")),
    ("chunked and a length", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\nx\r\n0\r\n\r\n", BOTH),
    ("a length and chunked", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", BOTH),
    ("gzip, chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", CODING),
    ("gzip and chunked on two lines", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", CODING),
    ("chunked, gzip", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n1\r\nx\r\n0\r\n\r\n", Stricter("section 6.1: nothing follows chunked")),
    ("chunked twice", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ONCE),
    ("chunked on two lines", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ONCE),
    ("chunked in upper case", b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n1\r\nx\r\n0\r\n\r\n", No),
    ("identity", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc", CODING),
    ("a longer word than chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", CODING),
    ("chunked in quotes", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \"chunked\"\r\n\r\n1\r\nx\r\n0\r\n\r\n", Stricter("section 7: the name of a coding is a token")),
    ("204 with a length", b"HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\nHTTP/1.1 204 No\r\n\r\n", No),
    ("304 with a length", b"HTTP/1.1 304 No\r\nContent-Length: 1\r\n\r\nHTTP/1.1 204 No\r\n\r\n", No),
    ("304 with chunked", b"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No\r\n\r\n", No),
    ("several interim answers", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("an interim answer with a length", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", No),
    ("an interim answer alone", b"HTTP/1.1 103 E\r\n\r\n", No),
    ("close, and another answer", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 204 No\r\n\r\n", CLOSED),
];

/// Bodies behind the head of a chunked answer, and of a chunked request.
pub const BODIES: &[Chosen] = &[
    ("two chunks", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", No),
    ("no chunk", b"0\r\n\r\n", No),
    ("leading zeros", b"0001\r\na\r\n000\r\n\r\n", No),
    (
        "20 leading zeros",
        b"000000000000000000001\r\na\r\n0\r\n\r\n",
        Looser("section 7.1: a size has any number of zeros before it"),
    ),
    ("digits in both cases", b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", No),
    ("a size of 2^64", b"10000000000000000\r\na\r\n0\r\n\r\n", No),
    ("a size of 2^64 - 1", b"ffffffffffffffff\r\na\r\n0\r\n\r\n", No),
    ("a size with a sign", b"+1\r\na\r\n0\r\n\r\n", No),
    ("a negative size", b"-1\r\na\r\n0\r\n\r\n", No),
    ("a size with a prefix", b"0x1\r\na\r\n0\r\n\r\n", No),
    ("no size", b"\r\na\r\n0\r\n\r\n", No),
    ("a blank before a size", b" 1\r\na\r\n0\r\n\r\n", No),
    ("a blank behind a size", b"1 \r\na\r\n0\r\n\r\n", PADDED),
    ("a tab behind a size", b"1\t\r\na\r\n0\r\n\r\n", PADDED),
    ("a blank in a size", b"1 1\r\na\r\n0\r\n\r\n", No),
    ("an extension", b"1;a=b\r\na\r\n0\r\n\r\n", No),
    ("an extension without a value", b"1;a\r\na\r\n0;b\r\n\r\n", No),
    ("an extension in quotes", b"1;a=\"b;c\"\r\na\r\n0\r\n\r\n", No),
    ("an escape in an extension", b"1;a=\"\\\"\"\r\na\r\n0\r\n\r\n", No),
    ("a CR LF in an extension in quotes", b"1;a=\"\r\n\"\r\na\r\n0\r\n\r\n", No),
    ("blanks around an extension", b"1 ; a = b\r\na\r\n0\r\n\r\n", PADDED),
    ("an empty extension", b"1;\r\na\r\n0\r\n\r\n", EXTENSION),
    ("NUL in an extension", b"1;a=\0\r\na\r\n0\r\n\r\n", CONTROL),
    ("8 bits in an extension", b"1;a=\xff\r\na\r\n0\r\n\r\n", EXTENSION),
    ("LF in an extension", b"1;a\na\r\n0\r\n\r\n", No),
    ("LF behind a size", b"1\na\r\n0\r\n\r\n", No),
    ("LF behind a chunk", b"1\r\na\n0\r\n\r\n", No),
    ("CR behind a chunk", b"1\r\na\r0\r\n\r\n", No),
    ("nothing behind a chunk", b"1\r\na0\r\n\r\n", No),
    ("more than the size", b"1\r\nab\r\n0\r\n\r\n", No),
    ("LF behind the last size", b"1\r\na\r\n0\n\r\n", No),
    ("LF at the end", b"1\r\na\r\n0\r\n\n", BARE_LF),
    ("no empty line at the end", b"1\r\na\r\n0\r\n", No),
    ("an end in a chunk", b"3\r\na", No),
    ("a trailer", b"1\r\na\r\n0\r\nA: b\r\n\r\n", No),
    ("a length as a trailer", b"1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n", TRAILER),
    ("chunked as a trailer", b"1\r\na\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", TRAILER),
    ("a trailer without a colon", b"1\r\na\r\n0\r\nA\r\n\r\n", No),
    ("a trailer without a name", b"1\r\na\r\n0\r\n: b\r\n\r\n", No),
    ("a folded trailer", b"1\r\na\r\n0\r\nA: b\r\n c\r\n\r\n", FOLDED),
    ("LF behind a trailer", b"1\r\na\r\n0\r\nA: b\n\r\n", BARE_LF),
    ("NUL in a trailer", b"1\r\na\r\n0\r\nA: \0\r\n\r\n", No),
];

pub const REQUESTS: &[Chosen] = &[
    ("no fields", b"GET / HTTP/1.0\r\n\r\n", No),
    ("no host", b"GET / HTTP/1.1\r\n\r\n", HOST),
    ("two hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HOST),
    ("an empty host", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", No),
    ("an empty line first", b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", Looser("section 2.2: a server should skip it")),
    ("two empty lines first", b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", Stricter("section 2.2: a server should skip at least one empty line, and it skips one")),
    ("LF first", b"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", BARE_LF),
    ("two blanks", b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", Stricter("section 3: one blank is between the parts of a request line, and a recipient need not be lenient")),
    ("a tab instead of a blank", b"GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("a blank behind the version", b"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", No),
    ("a blank in a path", b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("NUL in a path", b"GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("8 bits in a path", b"GET /\xe4 HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("an asterisk", b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("no path", b"GET HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("no version", b"GET /\r\nHost: h\r\n\r\n", Stricter("HTTP/0.9 is no longer spoken")),
    ("HTTP/1.2", b"GET / HTTP/1.2\r\nHost: h\r\n\r\n", VERSION),
    ("HTTP/1.10", b"GET / HTTP/1.10\r\nHost: h\r\n\r\n", No),
    ("HTTP/2.0", b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", VERSION),
    ("an unknown method", b"ABC / HTTP/1.1\r\nHost: h\r\n\r\n", METHOD),
    ("a method in lower case", b"get / HTTP/1.1\r\nHost: h\r\n\r\n", METHOD),
    ("a method that is no token", b"G(T / HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("LF after the request line", b"GET / HTTP/1.1\nHost: h\r\n\r\n", BARE_LF),
    ("LF after a field", b"GET / HTTP/1.1\r\nHost: h\n\r\n", BARE_LF),
    ("LF at the end", b"GET / HTTP/1.1\r\nHost: h\r\n\n", BARE_LF),
    ("a folded field", b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", FOLDED),
    ("a blank before a colon", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 1\r\n\r\nx", No),
    ("no name", b"GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", No),
    ("NUL in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n", No),
    ("8 bits in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: \xff\r\n\r\n", No),
    ("GET with a body", b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", No),
    ("equal lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", EQUAL),
    ("unequal lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 0\r\n\r\nx", No),
    ("a length with a sign", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx", No),
    ("a length of 2^64", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\nx", No),
    ("a length and chunked", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", BOTH),
    ("gzip, chunked", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", CODING),
    ("gzip", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nx", No),
    ("chunked, gzip", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", No),
    ("chunked in HTTP/1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", OLD_CHUNKED),
    ("two requests", b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("an empty line between requests", b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", No),
    ("close, and another request", b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", CLOSED),
];
