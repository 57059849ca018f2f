//! Clients and servers in memory, and ways to cut what they send.
#![allow(dead_code, missing_docs)]

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tls::{
    Authority, ClientChannel, Dialer, Dialing, Fault, Identity, KeyKind, Leaf, Line, Listener, Parameters,
    ServerChannel, Serving, Trust,
};

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub static AUTHORITY: LazyLock<Authority> =
    LazyLock::new(|| Authority::new(now() - DAY, now() + DAY).expect("an authority"));

/// The certificate of most tests.
pub static LOCAL: LazyLock<Identity> = LazyLock::new(|| issue(&["localhost", "127.0.0.1"]));

pub fn issue(names: &[&str]) -> Identity {
    issue_in(names, now() - DAY, now() + DAY)
}

pub fn issue_in(names: &[&str], from: SystemTime, until: SystemTime) -> Identity {
    AUTHORITY.issue(&Leaf { names, key: KeyKind::P256, from, until }).expect("a certificate")
}

pub fn root() -> Vec<u8> {
    AUTHORITY.certificate().into_bytes()
}

pub fn dialing(parameters: Parameters) -> Dialing {
    Dialing { name: "localhost".to_owned(), trust: Trust::Pem(root()), identity: None, parameters }
}

pub fn serving(parameters: Parameters) -> Serving {
    Serving { identity: LOCAL.clone(), clients: None, parameters }
}

pub fn line(dialing: &Dialing) -> Line {
    Dialer::new(dialing).expect("a dialer").line()
}

pub fn listener(serving: &Serving) -> Listener {
    Listener::new(serving).expect("a listener")
}

/// A client and a server, what each has received, and the first fault of each.
pub struct Pair {
    pub client: ClientChannel,
    pub server: ServerChannel,
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    pub client_fault: Option<Fault>,
    pub server_fault: Option<Fault>,
}

impl Pair {
    pub fn new(line: &mut Line, listener: &Listener) -> Self {
        Self {
            client: line.open(now()).expect("a client"),
            server: listener.accept(now()).expect("a server"),
            to_client: Vec::new(),
            to_server: Vec::new(),
            client_fault: None,
            server_fault: None,
        }
    }

    /// Carries what the protocol has to send in both directions, until there is nothing more.
    pub fn carry(&mut self, cut: &mut dyn FnMut(usize) -> usize) {
        while self.client.has_output() || self.server.has_output() {
            let mut bytes = Vec::new();
            self.client.take_output(&mut bytes);
            self.for_server(&bytes, cut);
            bytes.clear();
            self.server.take_output(&mut bytes);
            self.for_client(&bytes, cut);
        }
    }

    pub fn for_server(&mut self, bytes: &[u8], cut: &mut dyn FnMut(usize) -> usize) {
        let heard = &mut self.to_server;
        let server = &mut self.server;
        let fault =
            feed(bytes, cut, |piece| server.receive(piece, |plain| heard.extend_from_slice(plain))).err();
        self.server_fault = self.server_fault.or(fault);
    }

    pub fn for_client(&mut self, bytes: &[u8], cut: &mut dyn FnMut(usize) -> usize) {
        let heard = &mut self.to_client;
        let client = &mut self.client;
        let fault =
            feed(bytes, cut, |piece| client.receive(piece, |plain| heard.extend_from_slice(plain))).err();
        self.client_fault = self.client_fault.or(fault);
    }

    /// The client sends `plain`.
    pub fn ask(&mut self, plain: &[u8], cut: &mut dyn FnMut(usize) -> usize) {
        let mut bytes = Vec::new();
        self.client.send(plain, &mut bytes).expect("a client that can send");
        self.for_server(&bytes, cut);
    }

    /// The server sends `plain`.
    pub fn answer(&mut self, plain: &[u8], cut: &mut dyn FnMut(usize) -> usize) {
        let mut bytes = Vec::new();
        self.server.send(plain, &mut bytes).expect("a server that can send");
        self.for_client(&bytes, cut);
    }
}

/// Gives `bytes` to `act` in pieces, whose lengths `cut` chooses from the number of bytes that are left.
pub fn feed(
    bytes: &[u8],
    cut: &mut dyn FnMut(usize) -> usize,
    mut act: impl FnMut(&mut [u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut rest = bytes.to_vec();
    let mut rest = rest.as_mut_slice();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at_mut(cut(rest.len()).clamp(1, rest.len()));
        act(piece)?;
        rest = later;
    }
    Ok(())
}

/// Does not cut.
pub fn uncut(left: usize) -> usize {
    left
}

/// A pair after its handshake.
pub fn shaken(dialing: &Dialing, serving: &Serving) -> Pair {
    let mut pair = Pair::new(&mut line(dialing), &listener(serving));
    pair.carry(&mut uncut);
    pair
}
