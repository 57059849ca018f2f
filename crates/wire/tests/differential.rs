//! What these decoders take for a message, independent parsers take for the same message: llhttp, as undici carries it, and h11 of Python.
//! Either may refuse more: the decoders do not look at methods, paths and extensions of chunks, which frame nothing. The streams are
//! the seeds of the fuzz targets, others that are made of them, and those of `differential/chosen.rs`, which were chosen by hand.
//!
//! `NARROWS_STREAMS=100000 cargo test -p wire --test differential` tries more streams.

#[path = "differential/chosen.rs"]
mod chosen;
mod common;
#[path = "../../../tests/support/skipped.rs"]
mod skipped;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use chosen::{BODIES, Chosen, Differs};
use common::Seen;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use wire::http::{BodyLength, RequestDecoder, ResponseDecoder};

/// Pieces that streams are changed with: what is between two parsers is mostly here.
const PIECES: [&[u8]; 40] = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"0",
    b"1",
    b"a",
    b"A",
    b"\0",
    b"\x7f",
    b"\xff",
    b"\"",
    b"\r\n ",
    b"\r\n\r\n",
    b"Content-Length: 2\r\n",
    b"Content-Length: 3\r\n",
    b"content-length:2\r\n",
    b"Content-Length: 2, 2\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"x: y\r\n",
    b"x:\r\n",
    b"0\r\n\r\n",
    b"2\r\nok\r\n",
    b"2;a=b\r\nok\r\n",
    b"HTTP/1.1 ",
    b"HTTP/1.0 ",
    b"200",
    b"204",
    b"304",
    b"100",
    b"ok",
    b"+",
];

/// Streams that are whole before they are changed.
const RESPONSES: [&[u8]; 7] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nb;x=\"y\"\r\nhello world\r\n0\r\nTrailer: x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nx: y\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: gzip\r\n\r\nuntil the end",
];

const REQUESTS: [&[u8]; 4] = [
    b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nokGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
    b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n",
    b"GET /d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
];

/// The streams among the seeds of a fuzz target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(folder).expect("seeds");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a seed").path()).collect();
    files.sort();
    files.iter().map(|file| common::split_input(&std::fs::read(file).expect("a seed")).1.to_vec()).collect()
}

/// These streams and the seeds of a target, and others that are made of them.
fn streams(of: &[&[u8]], target: &str) -> Vec<Vec<u8>> {
    let count = std::env::var("NARROWS_STREAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let bases: Vec<Vec<u8>> = of.iter().map(|base| base.to_vec()).chain(seeds(target)).collect();
    let edit = (any::<prop::sample::Index>(), 0_usize..4, prop::sample::select(PIECES.to_vec()));
    let edits = prop::collection::vec(edit, 0..4);
    let changed = (prop::sample::select(bases.clone()), edits).prop_map(|(mut stream, edits)| {
        for (at, removed, piece) in edits {
            let at = at.index(stream.len() + 1);
            let until = (at + removed).min(stream.len());
            stream.splice(at..until, piece.iter().copied());
        }
        stream
    });
    let mut runner = TestRunner::deterministic();
    let new = std::iter::repeat_with(|| changed.new_tree(&mut runner).expect("a stream").current());
    bases.into_iter().chain(new.take(count)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The whole messages that a decoder has seen, in the words of the scripts.
fn whole(seen: &[Seen]) -> Vec<String> {
    let (mut all, mut what, mut body, mut until_close) = (Vec::new(), String::new(), Vec::new(), false);
    for event in seen {
        match event {
            Seen::Response { status, body: length, .. } => {
                (what, body, until_close) =
                    (status.to_string(), Vec::new(), *length == BodyLength::UntilClose);
            }
            Seen::Request { path, .. } => (what, body, until_close) = (hex(path), Vec::new(), false),
            Seen::Body(data) => body.clone_from(data),
            Seen::End => all.push(format!("{what}:{}", hex(&body))),
            Seen::Finished(Ok(true)) if until_close => all.push(format!("{what}:{}", hex(&body))),
            Seen::Idle(_) | Seen::Finished(_) | Seen::Failed(_) => {}
        }
    }
    all
}

/// How another parser ended a stream, and its whole messages.
type Read = (String, Vec<String>);

/// Why other parsers may refuse what the decoders take: a method or a path that is none, an extension that is none, a tab behind a
/// length, a length that is said twice alike, and what follows a message that says `close`, after which nobody reads. h11 does not
/// say why.
const LENIENT: [&str; 11] = [
    "HPE_INVALID_METHOD",
    "HPE_INVALID_URL",
    "HPE_INVALID_HEADER_TOKEN",
    "HPE_INVALID_CHUNK_SIZE",
    "HPE_STRICT",
    "HPE_INVALID_CONTENT_LENGTH",
    "HPE_LF_EXPECTED",
    "HPE_INVALID_TRANSFER_ENCODING",
    "HPE_UNEXPECTED_CONTENT_LENGTH",
    "HPE_CLOSED_CONNECTION",
    "error",
];

/// Another parser.
struct Parser {
    name: &'static str,
    command: Vec<String>,
    /// It reads up to the first request, or up to the first answer that is not interim.
    first: bool,
}

/// The other parsers of this kind of messages that `scripts/tools` has installed. What Debian or Node has differs from machine to
/// machine.
fn parsers(kind: &str) -> Vec<Parser> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let (undici, python) = (tools.join("undici"), tools.join("python/bin/python"));
    let mut parsers = Vec::new();
    if !undici.exists() {
        skipped::skip("llhttp", "scripts/tools has not installed undici");
    } else if skipped::has("node") {
        let command = words(&["node", "llhttp.js", &undici.to_string_lossy(), kind]);
        parsers.push(Parser { name: "llhttp", command, first: false });
    }
    if python.exists() {
        let command = words(&[&python.to_string_lossy(), "read_h11.py", kind]);
        parsers.push(Parser { name: "h11", command, first: true });
    } else {
        skipped::skip("h11", "scripts/tools has not installed it");
    }
    parsers
}

impl Parser {
    /// What it says of each stream.
    fn read(&self, streams: &[Vec<u8>]) -> Vec<Read> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).current_dir(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect(self.name);
        let mut input = child.stdin.take().expect("its input");
        let lines: String = streams.iter().map(|stream| format!("x{}\n", hex(stream))).collect();
        let writer = std::thread::spawn(move || _ = input.write_all(lines.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("it ends");
        let said = String::from_utf8(output.stdout).expect("text");
        let read = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            (words.next().unwrap_or_default(), words.collect())
        };
        let said: Vec<Read> = said.lines().map(read).collect();
        assert_eq!(said.len(), streams.len(), "{} says a line for each stream", self.name);
        said
    }

    /// The messages of a stream that it looks at, of those that the decoders have seen.
    fn up_to<'a>(&self, own: &'a [String]) -> &'a [String] {
        // Paths are in hexadecimal digits and begin with 2 or more, as `/` does.
        let last = own.iter().position(|message| !message.starts_with('1'));
        let seen = last.filter(|_| self.first).map_or(own.len(), |at| at + 1);
        &own[..seen]
    }
}

/// Compares the decoders with the other parsers.
fn compare(kind: &str, streams: &[Vec<u8>], own: &[Vec<String>]) {
    for parser in parsers(kind) {
        let (mut agreed, mut wrong) = (0, Vec::new());
        for ((stream, own), (how, other)) in streams.iter().zip(own).zip(&parser.read(streams)) {
            let own = parser.up_to(own);
            let refused = LENIENT.contains(&how.as_str()) && own.starts_with(other);
            agreed += usize::from(!own.is_empty() && !refused);
            if !refused && !other.starts_with(own) {
                let stream = String::from_utf8_lossy(stream);
                wrong.push(format!("{stream:?}\n  here {own:?}\n  there {how} {other:?}"));
            }
        }
        let name = parser.name;
        assert!(agreed > streams.len() / 10, "{name}: only {agreed} streams have a whole message");
        assert!(
            wrong.is_empty(),
            "{name}: {} streams differ:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(20)].join("\n")
        );
    }
}

/// Compares the decoders with the other parsers on streams that were chosen by hand: they see the same messages, or the table says
/// why not.
fn compare_chosen(kind: &str, chosen: &[Chosen], before: &[u8], own: impl Fn(&[u8]) -> Vec<String>) {
    let streams: Vec<Vec<u8>> = chosen.iter().map(|(_, stream, _)| [before, stream].concat()).collect();
    let mut wrong = Vec::new();
    for parser in parsers(kind) {
        for (((name, _, differs), stream), (how, other)) in
            chosen.iter().zip(&streams).zip(&parser.read(&streams))
        {
            let own = own(stream);
            let own = parser.up_to(&own);
            let explained = match differs {
                Differs::No => own == other,
                Differs::Stricter(_) => other.starts_with(own),
                Differs::Looser(_) => own.starts_with(other),
            };
            if !explained {
                wrong.push(format!("{name}, {differs:?}\n  here {own:?}\n  {} {how} {other:?}", parser.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), streams.len(), wrong.join("\n"));
}

fn own_answers(stream: &[u8]) -> Vec<String> {
    whole(&common::responses_with(&mut ResponseDecoder::new(), stream, &[]))
}

fn own_requests(stream: &[u8]) -> Vec<String> {
    whole(&common::requests_with(&mut RequestDecoder::new(), stream, &[]))
}

#[test]
fn answers_are_those_that_other_parsers_see() {
    // A switch of protocols ends HTTP, and is never asked for.
    let mut streams = streams(&RESPONSES, "response");
    streams.retain(|stream| !stream.windows(4).any(|bytes| bytes == b" 101"));
    let own: Vec<Vec<String>> = streams.iter().map(|stream| own_answers(stream)).collect();
    compare("response", &streams, &own);
}

#[test]
fn requests_are_those_that_other_parsers_see() {
    let streams = streams(&REQUESTS, "request");
    let own: Vec<Vec<String>> = streams.iter().map(|stream| own_requests(stream)).collect();
    compare("request", &streams, &own);
}

#[test]
fn what_is_chosen_differs_only_where_a_reason_is_known() {
    compare_chosen("response", chosen::RESPONSES, b"", own_answers);
    compare_chosen("request", chosen::REQUESTS, b"", own_requests);
}

#[test]
fn chunked_bodies_differ_only_where_a_reason_is_known() {
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    compare_chosen("response", BODIES, answer, own_answers);
    let request = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    compare_chosen("request", BODIES, request, own_requests);
}
