//! Hostile servers. The generator never hangs, never counts a success that was none, and names what went wrong.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::crypto::ring::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, Stream, SupportedProtocolVersion};
use serde_json::{Value, json};

use super::{config, connection};
use crate::load_tls::Issued;
use crate::support::peer::Peer;
use crate::support::{Guarded, assert_adds_up, backends, narrows};

/// The most memory that the generator may have used, bytes.
const MEMORY: u64 = 128 << 20;

/// The configuration of a server that sends further certificates behind its own.
fn serving(issued: &Issued, version: &'static SupportedProtocolVersion, more: &[Vec<u8>]) -> ServerConfig {
    let own = CertificateDer::from_pem_file(issued.path("cert")).expect("a certificate");
    let more = more.iter().map(|bytes| CertificateDer::from(bytes.clone()));
    let key = PrivateKeyDer::from_pem_file(issued.path("key")).expect("a key");
    let builder = ServerConfig::builder_with_protocol_versions(&[version]).with_no_client_auth();
    builder.with_single_cert(std::iter::once(own).chain(more).collect(), key).expect("a server")
}

/// What a server does when the handshake is complete.
type Treat = fn(&mut ServerConnection, &mut TcpStream);

/// A server that shakes hands rightly, and then does this.
fn hostile(config: ServerConfig, treat: Treat) -> Peer {
    let config = Arc::new(config);
    Peer::new(move |connection| {
        let mut server = ServerConnection::new(Arc::clone(&config)).expect("a connection");
        let mut stream = connection.socket();
        while server.is_handshaking() || server.wants_write() {
            if server.complete_io(&mut stream).is_err() {
                return;
            }
        }
        treat(&mut server, &mut stream);
    })
}

/// Reads a request.
fn request(server: &mut ServerConnection, stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    let mut tls = Stream::new(server, stream);
    while !head.ends_with(b"\r\n\r\n") && tls.read_exact(&mut byte).is_ok() {
        head.push(byte[0]);
    }
}

/// Reads a request and sends an answer, or a part of one.
fn answer(server: &mut ServerConnection, stream: &mut TcpStream, text: &str) {
    request(server, stream);
    let _ = Stream::new(server, stream).write_all(text.as_bytes());
}

/// Says that nothing more comes.
fn goodbye(server: &mut ServerConnection, stream: &mut TcpStream) {
    server.send_close_notify();
    let _ = server.write_tls(stream);
}

/// Reads until the generator has gone.
fn outlast(stream: &mut TcpStream) {
    let _ = std::io::copy(stream, &mut std::io::sink());
}

/// Drives one request, over each kernel interface. Returns what it counted.
fn drive(url: &str, issued: &Issued, words: &[&str]) -> Vec<Value> {
    let root = issued.path("root");
    let drive = |io: &str| {
        let common = ["load", url, "--cacert", &root, "--json", "-t", "1", "--reactor", io];
        let (ended, peak) = Guarded::spawn(&mut narrows([&common, words].concat())).end_with_peak();
        assert!(peak < MEMORY, "{io}: {peak} bytes");
        let json = ended.json();
        assert_adds_up(&json);
        let classes = json["errors"].as_object().expect("errors").keys();
        classes.for_each(|class| {
            assert!(json["first_errors"][class].is_string(), "{class} has no example: {json}")
        });
        json
    };
    backends().into_iter().map(drive).collect()
}

const SHORT: &[&str] = &["-n", "1", "-c", "1", "--timeout", "2s"];
/// The same for what takes long on a busy machine.
const LONG: &[&str] = &["-n", "1", "-c", "1", "--timeout", "60s"];

/// Asserts that a request to a server that does this ends in a class of errors, or in none.
fn assert_ends(issued: &Issued, class: Option<&str>, name: &str, treat: Treat) {
    for version in [&TLS12, &TLS13] {
        let peer = hostile(serving(issued, version, &[]), treat);
        for json in drive(&peer.url("https"), issued, LONG) {
            let errors = class.map_or(json!({}), |class| json!({ class: 1 }));
            assert_eq!(json["errors"], errors, "{name}, {:?}: {json}", version.version);
            assert_eq!(json["completed"], i32::from(class.is_none()), "{name}: {json}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_is_no_answer() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let whole = |class, name, treat| assert_ends(&issued, class, name, treat);
    whole(None, "an answer with its length and no goodbye", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    whole(None, "an answer that ends with the connection", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\n\r\nok");
        goodbye(server, stream);
    });
    whole(Some("tls"), "an answer that would end with the connection, and no goodbye", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\n\r\nok");
    });
    whole(Some("closed_early"), "a part of a body and no goodbye", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok");
    });
    whole(Some("closed_early"), "chunks without the last and no goodbye", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
    });
    whole(Some("closed_early"), "a part of a body and a goodbye", |server, stream| {
        answer(server, stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok");
        goodbye(server, stream);
    });
    whole(Some("closed_early"), "a request and no answer, and no goodbye", request);
}

#[test]
fn what_nobody_encrypted_ends_a_connection() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    assert_ends(&issued, Some("tls"), "an answer in plain text", |server, stream| {
        request(server, stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        outlast(stream);
    });
    assert_ends(&issued, Some("tls"), "a record of data in plain text", |server, stream| {
        request(server, stream);
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let _ = stream.write_all(&[&[23, 3, 3, 0, text.len() as u8][..], text].concat());
        outlast(stream);
    });
    assert_ends(&issued, Some("tls"), "records without content, without end", |server, stream| {
        request(server, stream);
        while stream.write_all(&[23, 3, 3, 0, 0]).is_ok() {}
    });
}

#[test]
fn new_keys_without_end_end_the_connection() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let keys: Treat = |server, stream| {
        request(server, stream);
        while server.refresh_traffic_keys().is_ok() && server.write_tls(stream).is_ok() {}
    };
    let peer = hostile(serving(&issued, &TLS13, &[]), keys);
    for json in drive(&peer.url("https"), &issued, LONG) {
        assert_eq!((&json["errors"], &json["completed"]), (&json!({"tls": 1}), &0.into()), "{json}");
    }
}

#[test]
fn tickets_without_end_are_no_answer_and_take_no_memory() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let tickets = |number: usize, treat: Treat| {
        let mut config = serving(&issued, &TLS13, &[]);
        config.ticketer = Ticketer::new().expect("a ticketer");
        config.send_tls13_tickets = number;
        hostile(config, treat)
    };
    let right: Treat =
        |server, stream| answer(server, stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let silent: Treat = |_, stream| outlast(stream);
    // A hundred may be taken, but are no answer.
    let (few, few_and_silent, many) = (tickets(100, right), tickets(100, silent), tickets(50_000, right));
    for sessions in [&[][..], &["--tls-sessions", "always"]] {
        let ends = |peer: &Peer, words: &[&str], completed: u64, errors: Value| {
            for json in drive(&peer.url("https"), &issued, &[words, sessions].concat()) {
                assert_eq!((&json["completed"], &json["errors"]), (&completed.into(), &errors), "{json}");
            }
        };
        ends(&few, LONG, 1, json!({}));
        ends(&few_and_silent, SHORT, 0, json!({"request_timeout": 1}));
        ends(&many, LONG, 0, json!({"tls": 1}));
    }
}

#[test]
fn a_chain_of_ten_megabytes_is_refused_without_being_kept() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let one = vec![vec![0; 10 << 20]];
    let many = vec![vec![0; 10 << 10]; 1 << 10];
    for (version, more) in [(&TLS12, &one), (&TLS12, &many), (&TLS13, &one), (&TLS13, &many)] {
        let peer = hostile(serving(&issued, version, more), |_, stream| outlast(stream));
        for json in drive(&peer.url("https"), &issued, LONG) {
            assert_eq!((&json["errors"], &json["completed"]), (&json!({"tls": 1}), &0.into()), "{json}");
        }
    }
}

#[test]
fn a_first_flight_with_any_byte_changed_is_no_handshake() {
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    for version in [&TLS12, &TLS13] {
        let serving = Arc::new(serving(&issued, version, &[]));
        let flight = {
            let (mut client, mut hello) = (connection(&config(&issued, version)), Vec::new());
            client.write_tls(&mut hello).expect("a hello");
            first_flight(&serving, &hello)
        };
        // What TLS 1.3 encrypts comes behind the first record. Bytes 1 and 2 are a version that nobody reads.
        let plain = usize::from(u16::from_be_bytes([flight[3], flight[4]])) + 5;
        let most = if version.version == TLS13.version { plain } else { flight.len() };
        let bytes: Vec<usize> = (0..most).filter(|at| ![1, 2].contains(at)).collect();
        let (count, next) = (bytes.len().to_string(), AtomicUsize::new(0));
        let peer = Peer::new(move |connection| {
            let mut stream = connection.socket();
            let mut hello = vec![0; 5];
            if stream.read_exact(&mut hello).is_err() {
                return;
            }
            let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
            hello.resize(5 + length, 0);
            stream.read_exact(&mut hello[5..]).expect("a whole record");
            let mut flight = first_flight(&serving, &hello);
            let at = bytes[next.fetch_add(1, Ordering::Relaxed) % bytes.len()];
            if let Some(byte) = flight.get_mut(at) {
                *byte = byte.wrapping_add(1);
            }
            let _ = stream.write_all(&flight);
            let _ = stream.shutdown(Shutdown::Write);
            outlast(&mut stream);
        });
        for json in drive(&peer.url("https"), &issued, &["-n", &count, "-c", "8", "--timeout", "20s"]) {
            assert_eq!(json["completed"], 0, "{json}");
            // The peer may be gone before the generator has sent its alert.
            let of = |class: &str| json["errors"][class].as_u64().unwrap_or(0);
            assert!(of("tls") > of("reset"), "{json}");
            assert_eq!((of("tls") + of("reset")).to_string(), count, "{json}");
        }
    }
}

/// What a right server answers to this hello.
fn first_flight(config: &Arc<ServerConfig>, hello: &[u8]) -> Vec<u8> {
    let mut server = ServerConnection::new(Arc::clone(config)).expect("a connection");
    let mut flight = Vec::new();
    server.read_tls(&mut &hello[..]).expect("room");
    server.process_new_packets().expect("a right hello");
    while server.wants_write() {
        server.write_tls(&mut flight).expect("room");
    }
    flight
}
