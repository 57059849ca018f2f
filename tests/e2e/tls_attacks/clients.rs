//! Hostile clients. After each attack the connection has ended, a client that keeps the protocol is served, and nothing is left of the attack.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, Stream};

use super::{config, connection};
use crate::load_tls::Issued;
use crate::support::peer::reset;
use crate::support::{PATIENCE, Served, backends, has, plain, until};

/// How much more memory the second of two equal rounds of attacks may leave in use, bytes.
const GROWTH: u64 = 4 << 20;

/// The kinds of records.
const CHANGE: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// The alert that no handshake is possible, and the one that no version is spoken by both sides (RFC 8446, 6.2).
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;

/// A server under attack.
struct Target {
    server: Served,
    address: String,
    new: Arc<ClientConfig>,
    old: Arc<ClientConfig>,
    /// How many files it had open before the first attack.
    files: usize,
}

impl Target {
    fn new(issued: &Issued, io: &str) -> Self {
        let server = issued.serve(&["--patience", "2s", "-t", "1", "--reactor", io]);
        let address = server.http.split_once("://").expect("a URL").1.to_owned();
        let (new, old) = (config(issued, &TLS13), config(issued, &TLS12));
        let mut target = Self { server, address, new, old, files: 0 };
        target.assert_serves("the beginning");
        target.files = target.files();
        target
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    /// A connection whose handshake is complete.
    fn shaken(&self, config: &Arc<ClientConfig>) -> (ClientConnection, TcpStream) {
        let (mut client, mut stream) = (connection(config), self.connect());
        while client.is_handshaking() || client.wants_write() {
            client.complete_io(&mut stream).expect("a handshake");
        }
        (client, stream)
    }

    /// The first flight of a client that keeps the protocol: one record.
    fn hello(&self, config: &Arc<ClientConfig>) -> Vec<u8> {
        let mut bytes = Vec::new();
        connection(config).write_tls(&mut bytes).expect("a hello");
        bytes
    }

    /// Asserts that a client that keeps the protocol is served with each version, and that the server has no connection when it has gone.
    fn assert_serves(&self, after: &str) {
        for config in [&self.new, &self.old] {
            let (mut client, mut stream) = self.shaken(config);
            let mut tls = Stream::new(&mut client, &mut stream);
            let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            tls.write_all(request).unwrap_or_else(|error| panic!("after {after}: {error}"));
            let mut answer = String::new();
            tls.read_to_string(&mut answer).unwrap_or_else(|error| panic!("after {after}: {error}"));
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "after {after}: {answer}");
        }
        // The first count may have some connections that were about to close.
        let few = until(|| self.files == 0 || self.files() <= self.files);
        assert!(few, "after {after} it has {} open files, and {} before", self.files(), self.files);
    }

    fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.server.pid())).expect("its files").count()
    }

    /// The memory that it uses, bytes.
    fn memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
    }
}

/// Sends bytes. Ignores an error, because the server may have gone.
fn say(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short record").to_be_bytes();
    [&[kind, 3, 3], &length[..], content].concat()
}

/// Waits until the server has ended the connection, and returns what it sent. A peer that it refuses may get a reset instead.
fn end(mut stream: &TcpStream, attack: &str) -> Vec<u8> {
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return heard,
            Ok(length) => heard.extend_from_slice(&piece[..length]),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                panic!("{attack}: the server keeps the connection")
            }
            Err(_) => return heard,
        }
    }
}

/// What a hostile client does before it waits for the end of its connection.
type Attack = (&'static str, fn(&Target, &mut TcpStream));

/// Those that send a hello, or something instead of one.
const HELLOS: &[Attack] = &[
    ("nothing and an end", |_, stream| finish(stream)),
    ("a record that is longer than allowed", |_, stream| {
        say(stream, &record(HANDSHAKE, &[0; (1 << 14) + 2049]));
    }),
    ("a plain record that is longer than allowed", |_, stream| {
        say(stream, &record(HANDSHAKE, &[1; (1 << 14) + 1]));
    }),
    ("a flood of empty records of the handshake", |_, stream| flood(stream, &record(HANDSHAKE, &[]))),
    ("a flood of empty records of data", |_, stream| flood(stream, &record(DATA, &[]))),
    ("a flood of warnings", |_, stream| flood(stream, &record(ALERT, &[1, 90]))),
    ("a flood of goodbyes", |_, stream| flood(stream, &record(ALERT, &[1, 0]))),
    ("alerts of half their length", |_, stream| flood(stream, &record(ALERT, &[1]))),
    ("a flood of changes of ciphers", |_, stream| flood(stream, &record(CHANGE, &[1]))),
    ("a flood of requests for a hello", |_, stream| flood(stream, &record(HANDSHAKE, &[0; 4]))),
    ("data before the handshake", |_, stream| say(stream, &record(DATA, b"GET / HTTP/1.1\r\n\r\n"))),
    ("a message of 16 MiB in long records", |_, stream| {
        say(stream, &record(HANDSHAKE, &[1, 0xff, 0xff, 0xff]));
        flood(stream, &record(HANDSHAKE, &[0; 1 << 14]));
    }),
    ("a message of 16 MiB in short records", |_, stream| {
        say(stream, &record(HANDSHAKE, &[1, 0xff, 0xff, 0xff]));
        flood(stream, &record(HANDSHAKE, &[0]));
    }),
    ("half a hello and an end", |target, stream| {
        let hello = target.hello(&target.new);
        say(stream, &hello[..hello.len() / 2]);
        finish(stream);
    }),
    ("a hello and an end", |target, stream| {
        say(stream, &target.hello(&target.new));
        finish(stream);
    }),
    ("a hello of TLS 1.2 and an end", |target, stream| {
        say(stream, &target.hello(&target.old));
        finish(stream);
    }),
    ("two hellos", |target, stream| say(stream, &target.hello(&target.new).repeat(2))),
    ("a hello and a flood of goodbyes", |target, stream| {
        say(stream, &target.hello(&target.new));
        flood(stream, &record(ALERT, &[1, 0]));
    }),
    ("a hello and a flood of changes of ciphers", |target, stream| {
        say(stream, &target.hello(&target.new));
        flood(stream, &record(CHANGE, &[1]));
    }),
    ("a hello and data that nobody encrypted", |target, stream| {
        say(stream, &target.hello(&target.new));
        flood(stream, &record(DATA, &[0; 100]));
    }),
];

/// Ends the client's side.
fn finish(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

/// Sends the same 10,000 times, or until the server has gone.
fn flood(stream: &mut TcpStream, bytes: &[u8]) {
    for _ in 0..10_000 {
        if stream.write_all(bytes).is_err() {
            return;
        }
    }
    finish(stream);
}

/// What a hostile client does when its handshake is complete. It does not read meanwhile.
type Shaken = (&'static str, fn(&mut ClientConnection, &mut TcpStream));

const SHAKEN: &[Shaken] = &[
    ("an end after the handshake", |_, stream| finish(stream)),
    ("a goodbye after the handshake", |client, stream| {
        client.send_close_notify();
        let _ = client.write_tls(stream);
    }),
    ("an end within a request", |client, stream| {
        put(client, stream, b"GET / HTTP/1.1\r\n");
        finish(stream);
    }),
    ("half a record and an end", |client, stream| {
        let mut bytes = Vec::new();
        client.writer().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("room");
        client.write_tls(&mut bytes).expect("room");
        say(stream, &bytes[..bytes.len() / 2]);
        finish(stream);
    }),
    ("a record that nobody encrypted", |_, stream| say(stream, &record(DATA, &[0; 64]))),
    ("an alert that nobody encrypted", |_, stream| say(stream, &record(ALERT, &[2, 40]))),
    ("a flood of records without content", |_, stream| flood(stream, &record(DATA, &[]))),
    ("a hello after the handshake", |_, stream| say(stream, &record(HANDSHAKE, &[1, 0, 0, 0]))),
];

/// Encrypts and sends. Returns false when the server has gone.
fn put(client: &mut ClientConnection, stream: &mut TcpStream, plain: &[u8]) -> bool {
    client.writer().write_all(plain).expect("room");
    while client.wants_write() {
        if client.write_tls(stream).is_err() {
            return false;
        }
    }
    true
}

/// Sends requests for new keys (RFC 8446, 4.6.3), each after so many bytes of a request, until the server has gone.
fn new_keys(client: &mut ClientConnection, stream: &mut TcpStream, plain: &[u8]) {
    for _ in 0..2_000 {
        client.refresh_traffic_keys().expect("new keys");
        if !put(client, stream, plain) {
            return;
        }
    }
    finish(stream);
}

fn attack(target: &Target) {
    for (name, attack) in HELLOS {
        let mut stream = target.connect();
        attack(target, &mut stream);
        end(&stream, name);
        target.assert_serves(name);
    }
    for (name, attack) in SHAKEN {
        for config in [&target.new, &target.old] {
            let (mut client, mut stream) = target.shaken(config);
            attack(&mut client, &mut stream);
            end(&stream, name);
        }
        target.assert_serves(name);
    }
    for (name, plain) in
        [("a flood of new keys", &b""[..]), ("new keys between the bytes of a request", b"x")]
    {
        let (mut client, mut stream) = target.shaken(&target.new);
        new_keys(&mut client, &mut stream, plain);
        end(&stream, name);
        target.assert_serves(name);
    }
    for length in [0, 1, 5, 6, 100] {
        let mut stream = target.connect();
        say(&mut stream, &target.hello(&target.new)[..length]);
        reset(stream);
    }
    target.assert_serves("resets within a hello");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn attacks_end_with_their_connection_and_leave_nothing() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        attack(&target);
        let before = target.memory();
        attack(&target);
        let after = target.memory();
        assert!(after < before + GROWTH, "{io}: {before} bytes after one round, {after} after two");
        target.server.counts();
    }
}

#[test]
fn a_hello_may_come_in_the_smallest_pieces() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        for config in [&target.new, &target.old] {
            let hello = target.hello(config);
            let records: Vec<u8> = hello[5..].iter().flat_map(|byte| record(HANDSHAKE, &[*byte])).collect();
            for (bytes, piece) in [(&hello, 1), (&records, 6), (&records, 1), (&records, records.len())] {
                let mut stream = target.connect();
                bytes.chunks(piece).for_each(|piece| say(&mut stream, piece));
                finish(&stream);
                let heard = end(&stream, "a hello in pieces");
                // A record of the handshake, whose first message is a hello.
                assert_eq!((heard[0], heard[5]), (HANDSHAKE, 2), "{io}, {piece} bytes at once: {heard:?}");
            }
        }
        target.assert_serves("hellos in pieces");
    }
}

#[test]
fn a_hello_with_any_byte_changed_ends_in_a_handshake_or_in_its_connection() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        for config in [&target.new, &target.old] {
            // Among its bytes are the lengths of all of its vectors.
            for at in 0..target.hello(config).len() {
                for byte in [None, Some(0), Some(0xff)] {
                    let (mut hello, mut stream) = (target.hello(config), target.connect());
                    hello[at] = byte.unwrap_or(hello[at].wrapping_add(1));
                    say(&mut stream, &hello);
                    finish(&stream);
                    end(&stream, &format!("a hello with byte {at} changed"));
                }
            }
        }
        target.assert_serves("hellos that were changed");
    }
}

#[test]
fn older_protocols_are_refused_with_an_alert_or_an_end() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        // SSL 2.0: a record without a kind, with a hello for version 0.2 or 3.1, three bytes of cipher and a challenge of 16.
        for version in [[0, 2], [3, 1]] {
            let hello = [&[0x80, 28, 1], &version[..], &[0, 3, 0, 0, 0, 16, 1, 0, 0x80], &[7; 16]].concat();
            let mut stream = target.connect();
            say(&mut stream, &hello);
            assert!(end(&stream, "a hello of SSL 2.0").is_empty(), "{io}");
        }
        // SSL 3.0, TLS 1.0 and TLS 1.1: a random number, no session, one cipher, no compression. Then nothing, or the kinds of
        // signatures, without which there is no handshake in any version.
        let signatures = [0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
        for (version, extensions, alert) in [
            (0, &[][..], HANDSHAKE_FAILURE),
            (0, &signatures, PROTOCOL_VERSION),
            (1, &signatures, PROTOCOL_VERSION),
            (2, &signatures, PROTOCOL_VERSION),
        ] {
            let body = [&[3, version][..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0], extensions].concat();
            let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
            let mut hello = record(HANDSHAKE, &message);
            hello[2] = version;
            let mut stream = target.connect();
            say(&mut stream, &hello);
            let heard = end(&stream, "an older hello");
            assert_eq!(
                (heard.first(), heard.get(6)),
                (Some(&ALERT), Some(&alert)),
                "{io}, 3.{version}: {heard:?}"
            );
        }
        target.assert_serves("older protocols");
    }
}

#[test]
fn a_client_that_goes_on_sending_hears_why_it_is_refused() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        let attacks = [&target.new, &target.old].map(|config| [(config, &[][..]), (config, &[0; 100])]);
        for (config, content) in attacks.into_iter().flatten() {
            let (mut client, mut stream) = (connection(config), target.connect());
            client.write_tls(&mut stream).expect("a hello");
            let (mut heard, flood) = (Vec::new(), record(DATA, content).repeat(100_000));
            stream.write_all(&flood).expect("no reset while it sends");
            finish(&stream);
            stream.read_to_end(&mut heard).expect("no reset before the end");
            let (mut rest, mut alerts) = (&heard[..], Vec::new());
            while alerts.is_empty() && client.read_tls(&mut rest).expect("bytes") > 0 {
                alerts.extend(client.process_new_packets().err());
            }
            assert!(matches!(alerts[..], [rustls::Error::AlertReceived(_)]), "{io}: {alerts:?} in {heard:?}");
        }
        target.assert_serves("data within a handshake");
    }
}

#[test]
fn a_new_handshake_within_a_connection_is_refused() {
    if !has("openssl") {
        return;
    }
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for io in backends() {
        let target = Target::new(&issued, io);
        let mut command = Command::new("openssl");
        plain(command.args(["s_client", "-tls1_2", "-legacy_renegotiation", "-connect", &target.address]));
        let mut child = command.stdin(Stdio::piped()).spawn().expect("openssl starts");
        // Each line is written alone, because only the first letter of a read counts. The server warns at first.
        let mut stdin = child.stdin.take().expect("its input");
        let gone = until(|| {
            let _ = stdin.write_all(b"R\n");
            child.try_wait().expect("its state").is_some()
        });
        let _ = child.kill();
        let said = child.wait_with_output().expect("its output");
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(gone && said.contains("renegotiation"), "{io}: {said}");
        target.assert_serves("a new handshake");
    }
}
