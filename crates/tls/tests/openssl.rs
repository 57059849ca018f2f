//! Against another implementation, over real sockets: `openssl s_server` and `openssl s_client`. Without the program `openssl`
//! these tests do nothing but say so.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use common::{DAY, Pair, uncut};
use tls::{
    Authority, CertificateFault, Dialer, Dialing, Fault, Handshake, Identity, KeyKind, Kind, Leaf, Line,
    Listener, Parameters, Serving, Trust, Version,
};

/// An authority and a certificate for this machine, valid at the real time.
fn authority(key: KeyKind) -> (Authority, Identity) {
    let (from, until) = (SystemTime::now() - DAY, SystemTime::now() + DAY);
    let authority = Authority::new(from, until).expect("an authority");
    let identity = authority.issue(&Leaf { names: &["127.0.0.1"], key, from, until }).expect("a certificate");
    (authority, identity)
}

fn is_there() -> bool {
    let there = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !there {
        println!("skipped: there is no openssl");
    }
    there
}

/// A child that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn openssl(folder: &Path, identity: &Identity, arguments: &[&str]) -> Ended {
    std::fs::write(folder.join("cert.pem"), &identity.certificate).expect("a file");
    std::fs::write(folder.join("key.pem"), &identity.key).expect("a file");
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ended(command.stderr(Stdio::null()).spawn().expect("openssl"))
}

/// The address that a server of openssl says it accepts at.
fn address(server: &mut Ended) -> String {
    let out = server.0.stdout.take().expect("its output");
    let mut lines = BufReader::new(out).lines();
    lines
        .find_map(|line| line.ok()?.strip_prefix("ACCEPT ").map(str::to_owned))
        .expect("the line with the address")
}

/// One request over a new connection, and the answer until its end.
fn get(line: &mut Line, to: &str) -> (Handshake, String) {
    let mut socket = TcpStream::connect(to).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut channel = line.open(SystemTime::now()).expect("a client");
    let (mut out, mut answer, mut asked) = (Vec::new(), Vec::new(), false);
    let mut buffer = [0; 1000];
    // openssl says that it ends, and then waits for the client's end.
    while !channel.ended() {
        out.clear();
        channel.take_output(&mut out);
        if channel.ready() && !asked {
            channel.send(b"GET / HTTP/1.0\r\n\r\n", &mut out).expect("a client that can send");
            asked = true;
        }
        socket.write_all(&out).expect("sent");
        let read = socket.read(&mut buffer).expect("an answer");
        assert!(read > 0, "an end without notice");
        channel.receive(&mut buffer[..read], |plain| answer.extend_from_slice(plain)).expect("no fault");
    }
    (channel.handshake().expect("a handshake"), String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn a_server_of_openssl_answers_and_resumes() {
    if !is_there() {
        return;
    }
    for key in KeyKind::ALL {
        let (authority, identity) = authority(key);
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = [
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-cert",
            "cert.pem",
            "-key",
            "key.pem",
            "-www",
            "-naccept",
            "6",
        ];
        let mut server = openssl(folder.path(), &identity, &arguments);
        let to = address(&mut server);
        for version in Version::ALL {
            let parameters = Parameters { versions: vec![version], sessions: true, ..Parameters::default() };
            let trust = Trust::Pem(authority.certificate().into_bytes());
            let dialing = Dialing { name: "127.0.0.1".to_owned(), trust, identity: None, parameters };
            let mut line = Dialer::new(&dialing).expect("a dialer").line();
            for kind in [Kind::Full, Kind::Resumed, Kind::Resumed] {
                let (shake, answer) = get(&mut line, &to);
                assert_eq!((shake.kind, shake.version), (kind, version), "{key:?}");
                assert!(answer.starts_with("HTTP/1.0 200 ok"), "{answer}");
            }
        }
    }
}

#[test]
fn a_client_of_openssl_verifies_and_reads() {
    if !is_there() {
        return;
    }
    for (key, version) in [(KeyKind::P256, "-tls1_3"), (KeyKind::Rsa2048, "-tls1_2")] {
        let (authority, identity) = authority(key);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), authority.certificate()).expect("a file");
        let clients = Some(authority.certificate().into_bytes());
        let serving = Serving { identity: identity.clone(), clients, parameters: Parameters::default() };
        let listener = Listener::new(&serving).expect("a listener");
        let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let to = socket.local_addr().expect("its address").to_string();
        let arguments = [
            "s_client",
            version,
            "-connect",
            &to,
            "-CAfile",
            "ca.pem",
            "-verify_return_error",
            "-verify_ip",
            "127.0.0.1",
            "-cert",
            "cert.pem",
            "-key",
            "key.pem",
            "-quiet",
            "-x509_strict",
        ];
        let mut client = openssl(folder.path(), &identity, &arguments);
        client.0.stdin.as_mut().expect("its input").write_all(b"hello\n").expect("written");
        let (mut socket, _) = socket.accept().expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut channel = listener.accept(SystemTime::now()).expect("a server");
        let (mut heard, mut out, mut buffer) = (Vec::new(), Vec::new(), [0; 1000]);
        while heard != b"hello\n" {
            let read = socket.read(&mut buffer).expect("something from the client");
            assert!(read > 0, "the client gave up");
            channel.receive(&mut buffer[..read], |plain| heard.extend_from_slice(plain)).expect("no fault");
            out.clear();
            channel.take_output(&mut out);
            socket.write_all(&out).expect("sent");
        }
        out.clear();
        channel.send(b"goodbye\n", &mut out).expect("a server that can send");
        channel.close_notify(&mut out);
        socket.write_all(&out).expect("sent");
        let mut answer = String::new();
        client.0.stdout.take().expect("its output").read_to_string(&mut answer).expect("text");
        assert_eq!(answer, "goodbye\n");
    }
}

/// `openssl req -x509` makes a root. Many servers use it as their own certificate.
#[test]
fn a_root_is_not_a_servers_certificate() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-days", "2"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl").success());
    let read = |name| std::fs::read(folder.path().join(name)).expect("a file");
    let identity = Identity { certificate: read("cert.pem"), key: read("key.pem") };
    for (trust, accepted) in [(Trust::Anyone, true), (Trust::Pem(identity.certificate.clone()), false)] {
        let dialing = Dialing { trust, ..common::dialing(Parameters::default()) };
        let serving = Serving { identity: identity.clone(), ..common::serving(Parameters::default()) };
        let mut pair = Pair::new(&mut common::line(&dialing), &common::listener(&serving));
        // The time is real, as the certificate's is.
        pair.client = common::line(&dialing).open(SystemTime::now()).expect("a client");
        pair.carry(&mut uncut);
        let fault = (!accepted).then_some(Fault::Certificate(CertificateFault::Authority));
        assert_eq!((pair.client_fault, pair.client.ready()), (fault, accepted));
    }
}
