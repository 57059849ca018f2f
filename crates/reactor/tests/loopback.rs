//! Tests both backends over loopback, with an echo server and a client that checks every byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reactor::{
    Backend, Carries, Conn, Ends, Event, Handler, Io, Payload, Reactor, ReactorConfig, SharedBytes,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Echoes what it receives, in order, and closes after the peer has ended its side.
#[derive(Default)]
struct Echo {
    queued: Vec<Option<Queue>>,
    lost: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<u8>,
    sending: bool,
    ended: bool,
}

impl Echo {
    fn continue_sending(&mut self, io: &mut Io, conn: Conn) {
        let Some(queue) = self.queued[conn.index()].as_mut() else { return };
        if queue.sending {
            return;
        }
        if !queue.waiting.is_empty() {
            queue.sending = true;
            io.send(conn, Payload::Owned(std::mem::take(&mut queue.waiting))).expect("nothing is being sent");
        } else if queue.ended {
            io.close(conn);
        }
    }
}

impl Handler for Echo {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        if self.queued.len() <= conn.index() {
            self.queued.resize_with(conn.index() + 1, || None);
        }
        match event {
            Event::Accepted(_) => self.queued[conn.index()] = Some(Queue::default()),
            Event::Received(bytes, _) => {
                self.queued[conn.index()].as_mut().expect("accepted").waiting.extend_from_slice(bytes);
            }
            Event::Sent(_) => self.queued[conn.index()].as_mut().expect("accepted").sending = false,
            Event::Eof => self.queued[conn.index()].as_mut().expect("accepted").ended = true,
            Event::Failed(_) => {
                self.lost += 1;
                io.close(conn);
                self.queued[conn.index()] = None;
            }
            Event::Connected => unreachable!("a server connects to nobody"),
        }
        self.continue_sending(io, conn);
    }
}

/// Sends the same bytes on every connection, half-closes, and counts the echoes that came back whole.
struct Caller {
    bytes: SharedBytes,
    received: Vec<Vec<u8>>,
    whole: usize,
    failed: Vec<i32>,
}

impl Handler for Caller {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        if self.received.len() <= conn.index() {
            self.received.resize(conn.index() + 1, Vec::new());
        }
        match event {
            Event::Connected => {
                let all = self.bytes.slice(0..self.bytes.bytes().len());
                io.send(conn, all).expect("nothing is being sent");
                let again = Payload::Owned(vec![1]);
                assert!(io.send(conn, again).is_err(), "one payload at a time");
            }
            Event::Sent(_) => io.half_close(conn),
            Event::Received(bytes, _) => self.received[conn.index()].extend_from_slice(bytes),
            Event::Eof => {
                assert_eq!(self.received[conn.index()].len(), self.bytes.bytes().len());
                assert!(self.received[conn.index()] == self.bytes.bytes());
                self.whole += 1;
                io.close(conn);
            }
            Event::Failed(errno) => {
                self.failed.push(errno);
                io.close(conn);
            }
            Event::Accepted(_) => unreachable!("a client accepts nobody"),
        }
    }
}

fn echo(backend: Backend, stamps: bool, connections: usize, len: usize) {
    let config = ReactorConfig { backend, buffer_size: 2048, buffers: 16, stamps };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut server = Reactor::new(config).expect("a reactor");
    server.io().listen(listener).expect("listening");
    let mut client = Reactor::new(config).expect("a reactor");
    let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
    let (mut echo, mut caller) = (
        Echo::default(),
        Caller {
            bytes: SharedBytes::new(Arc::new(bytes)),
            received: Vec::new(),
            whole: 0,
            failed: Vec::new(),
        },
    );
    let to = client.io().address(&address.into());
    for _ in 0..connections {
        client.io().connect(to, Carries::Anything).expect("a socket");
    }
    let began = Instant::now();
    while caller.whole < connections && began.elapsed() < PATIENCE {
        client.turn(Duration::from_millis(1), &mut caller).expect("a turn");
        server.turn(Duration::from_millis(1), &mut echo).expect("a turn");
    }
    assert_eq!(
        (caller.whole, caller.failed.len(), echo.lost),
        (connections, 0, 0),
        "{}",
        client.io().backend()
    );
}

#[test]
fn every_byte_comes_back_over_io_uring() {
    if Reactor::new(ReactorConfig { backend: Backend::Uring, ..ReactorConfig::MESSAGES }).is_err() {
        eprintln!("no io_uring here: only epoll is tested");
        return;
    }
    for stamps in [false, true] {
        echo(Backend::Uring, stamps, 1, 3_000_000);
        echo(Backend::Uring, stamps, 200, 10_000);
    }
}

#[test]
fn every_byte_comes_back_over_epoll() {
    echo(Backend::Epoll, false, 1, 3_000_000);
    echo(Backend::Epoll, true, 200, 10_000);
}

#[test]
fn a_refused_connection_fails_and_its_slot_is_used_again() {
    for backend in [Backend::Auto, Backend::Epoll] {
        let config = ReactorConfig { backend, ..ReactorConfig::MESSAGES };
        let mut client = Reactor::new(config).expect("a reactor");
        // The port is bound but nobody listens on TCP: connecting to it is refused.
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let to = client.io().address(&taken.local_addr().expect("bound").into());
        let mut caller = Caller {
            bytes: SharedBytes::new(Arc::new(vec![])),
            received: Vec::new(),
            whole: 0,
            failed: Vec::new(),
        };
        let mut indexes = Vec::new();
        for round in 0..5 {
            indexes.push(client.io().connect(to, Carries::Anything).expect("a socket").index());
            let began = Instant::now();
            while caller.failed.len() <= round && began.elapsed() < PATIENCE {
                client.turn(Duration::from_millis(5), &mut caller).expect("a turn");
            }
            // The completions of the close come with the next turn.
            client.turn(Duration::from_millis(5), &mut caller).expect("a turn");
        }
        assert_eq!(caller.failed, [111; 5], "ECONNREFUSED each time");
        assert_eq!(indexes, [0; 5], "one slot serves them all");
    }
}

/// Exchanges one byte on each connection and then replaces it with a new one, until there were enough.
struct Again {
    to: reactor::AddressId,
    carries: Carries,
    byte: SharedBytes,
    left: usize,
    answers: usize,
    failed: Vec<i32>,
}

impl Handler for Again {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => {
                io.send(conn, self.byte.slice(0..1)).expect("nothing is being sent");
            }
            Event::Received(bytes, _) => {
                assert_eq!(bytes, self.byte.bytes());
                io.half_close(conn);
            }
            // No operation of this connection is pending: its slot is free as soon as it is closed.
            Event::Eof => {
                self.answers += 1;
                io.close(conn);
                if self.left > 0 {
                    self.left -= 1;
                    io.connect(self.to, self.carries).expect("a socket");
                }
            }
            Event::Failed(errno) => {
                self.failed.push(errno);
                io.close(conn);
            }
            Event::Sent(_) => {}
            Event::Accepted(_) => unreachable!("a client accepts nobody"),
        }
    }
}

#[test]
fn slots_are_reused_at_once_whatever_a_connection_carries() {
    let cases = [
        (Backend::Auto, Carries::Anything),
        (Backend::Auto, Carries::OneExchange),
        (Backend::Epoll, Carries::OneExchange),
    ];
    for (backend, carries) in cases {
        let config = ReactorConfig { backend, ..ReactorConfig::MESSAGES };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut server = Reactor::new(config).expect("a reactor");
        server.io().listen(listener).expect("listening");
        let mut client = Reactor::new(config).expect("a reactor");
        let byte = SharedBytes::new(Arc::new(vec![7]));
        client.io().keep(&byte, 1);
        let to = client.io().address(&address.into());
        let mut again = Again { to, carries, byte, left: 196, answers: 0, failed: Vec::new() };
        for _ in 0..4 {
            client.io().connect(to, carries).expect("a socket");
        }
        let mut echo = Echo::default();
        let began = Instant::now();
        while again.answers < 200 && again.failed.is_empty() && began.elapsed() < PATIENCE {
            client.turn(Duration::from_millis(1), &mut again).expect("a turn");
            server.turn(Duration::from_millis(1), &mut echo).expect("a turn");
        }
        assert_eq!((again.answers, again.failed.as_slice()), (200, &[][..]), "{backend:?} {carries:?}");
    }
}

/// Half-closes each connection when its peer has ended it, closes it, and makes the next one.
struct Hasty(Again);

impl Handler for Hasty {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Received(..) => {}
            Event::Eof => {
                io.half_close(conn);
                self.0.event(io, conn, event);
            }
            _ => self.0.event(io, conn, event),
        }
    }
}

#[test]
fn a_half_close_that_is_under_way_does_not_strike_the_next_connection() {
    for backend in [Backend::Auto, Backend::Epoll] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = std::thread::spawn(move || {
            for _ in 0..1000 {
                let (mut stream, _) = listener.accept().expect("a connection");
                stream.read_exact(&mut [0]).expect("its byte");
            }
        });
        let mut client =
            Reactor::new(ReactorConfig { backend, ..ReactorConfig::MESSAGES }).expect("a reactor");
        let byte = SharedBytes::new(Arc::new(vec![7]));
        client.io().keep(&byte, 1);
        let (to, carries) = (client.io().address(&address.into()), Carries::Anything);
        let mut hasty = Hasty(Again { to, carries, byte, left: 999, answers: 0, failed: Vec::new() });
        client.io().connect(to, carries).expect("a socket");
        let began = Instant::now();
        while hasty.0.answers < 1000 && hasty.0.failed.is_empty() && began.elapsed() < PATIENCE {
            client.turn(Duration::from_millis(1), &mut hasty).expect("a turn");
        }
        assert_eq!((hasty.0.answers, &hasty.0.failed), (1000, &vec![]), "{backend:?}");
        server.join().expect("every byte came");
    }
}

/// Records the ends of connections as they are made.
#[derive(Default)]
struct Made {
    ends: Vec<Option<Ends>>,
    failed: Vec<i32>,
}

impl Handler for Made {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => self.ends.push(io.ends(conn)),
            Event::Failed(errno) => self.failed.push(errno),
            _ => {}
        }
    }
}

#[test]
fn connections_come_from_their_sources_in_turn_and_know_their_ends() {
    let cases = [
        (Backend::Auto, Carries::Anything),
        (Backend::Auto, Carries::OneExchange),
        (Backend::Auto, Carries::Addresses),
        (Backend::Epoll, Carries::Addresses),
    ];
    for (backend, carries) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = listener.local_addr().expect("bound");
        let mut client = Reactor::new(ReactorConfig { backend, ..ReactorConfig::FEW }).expect("a reactor");
        let to = client.io().address(&peer.into());
        client.io().come_from(to, &["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().expect(ip)));
        let mut made = Made::default();
        for _ in 0..4 {
            client.io().connect(to, carries).expect("a socket");
        }
        let began = Instant::now();
        while made.ends.len() < 4 && made.failed.is_empty() && began.elapsed() < PATIENCE {
            client.turn(Duration::from_millis(1), &mut made).expect("a turn");
        }
        assert_eq!((made.ends.len(), &made.failed[..]), (4, &[][..]), "{backend:?} {carries:?}");
        let accepted: Vec<SocketAddr> = (0..4).map(|_| listener.accept().expect("a connection").1).collect();
        let mut sources: Vec<String> = accepted.iter().map(|address| address.ip().to_string()).collect();
        sources.sort_unstable();
        assert_eq!(sources, ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"], "{backend:?} {carries:?}");
        if carries == Carries::Addresses {
            for ends in made.ends {
                let ends = ends.expect("a connection of TCP");
                assert!(accepted.contains(&ends.own) && ends.peer == peer, "{ends:?} {accepted:?}");
            }
        }
        let nobodys = client.io().address(&peer.into());
        client.io().come_from(nobodys, &["192.0.2.1".parse().expect("an address")]);
        let error = client.io().connect(nobodys, carries).expect_err("not an address of this machine");
        assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    }
}

/// Records what it received, and how long ago that was.
#[derive(Default)]
struct Sleeper {
    connected: bool,
    received: Vec<(Vec<u8>, Duration)>,
    ended: bool,
}

impl Handler for Sleeper {
    fn event(&mut self, io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => self.connected = true,
            Event::Received(bytes, age) => self.received.push((bytes.to_vec(), age)),
            Event::Eof => {
                self.ended = true;
                io.close(conn);
            }
            other => unreachable!("{other:?}"),
        }
    }
}

#[test]
fn events_that_arrive_while_the_reactor_sleeps_have_their_waiting_time() {
    for backend in [Backend::Auto, Backend::Epoll] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut client = Reactor::new(ReactorConfig { backend, stamps: true, ..ReactorConfig::MESSAGES })
            .expect("a reactor");
        let stamps = client.io().backend() == "io_uring";
        let to = client.io().address(&address.into());
        client.io().connect(to, Carries::Anything).expect("a socket");
        let (mut sleeper, began) = (Sleeper::default(), Instant::now());
        while !sleeper.connected && began.elapsed() < PATIENCE {
            assert!(!client.sleep(PATIENCE), "a connect has no stamp");
            client.turn(PATIENCE, &mut sleeper).expect("a turn");
        }
        let mut peer = listener.accept().expect("a connection").0;
        let mut lay_there = || {
            peer.write_all(b"one").expect("sent");
            assert_eq!(client.sleep(Duration::from_millis(50)), stamps);
            while sleeper.received.is_empty() && began.elapsed() < PATIENCE {
                client.turn(Duration::from_millis(1), &mut sleeper).expect("a turn");
            }
            let (bytes, age) = sleeper.received.pop().expect("what was sent");
            assert_eq!(bytes, b"one");
            age
        };
        // The kernel begins to stamp a while after the first socket asks for it. What came before has the time of its reading.
        while stamps && lay_there() < Duration::from_millis(1) {
            assert!(began.elapsed() < PATIENCE, "nothing is stamped as it arrives");
        }
        let age = lay_there();
        if stamps {
            assert!(age >= Duration::from_millis(1) && age <= began.elapsed(), "{age:?}");
        } else {
            assert_eq!(age, Duration::ZERO, "nobody stamped it");
        }
        drop(peer);
        while !sleeper.ended && began.elapsed() < PATIENCE {
            client.turn(Duration::from_millis(1), &mut sleeper).expect("a turn");
        }
        assert!(sleeper.ended && sleeper.received.is_empty());
    }
}

/// Posts and sends the pattern `1, 2, 3, ...` of bytes.
struct Poster {
    conn: Option<Conn>,
    written: usize,
    sending: bool,
    /// How often a post was refused, and a payload sent instead.
    refused: usize,
}

impl Poster {
    const WHOLE: usize = 16 << 20;

    fn byte(place: usize) -> u8 {
        (place % 251) as u8
    }

    /// Two posts in a turn, of which the second must follow the first.
    fn write(&mut self, io: &mut Io) {
        let Some(conn) = self.conn else { return };
        for length in [3000, 13_000] {
            if self.sending || self.written >= Self::WHOLE {
                return;
            }
            let bytes: Vec<u8> = (self.written..self.written + length).map(Self::byte).collect();
            self.written += length;
            if !io.post(conn, &bytes) {
                self.refused += 1;
                self.sending = io.send(conn, Payload::Owned(bytes)).expect("nothing is being sent");
            }
        }
    }
}

impl Handler for Poster {
    fn event(&mut self, _io: &mut Io, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => self.conn = Some(conn),
            Event::Sent(_) => self.sending = false,
            Event::Eof => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_posted_keeps_its_order_even_if_the_peer_reads_nothing_for_a_while() {
    for backend in [Backend::Auto, Backend::Epoll] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (full, wait) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let _ = wait.recv_timeout(PATIENCE);
            let mut all = Vec::new();
            socket.read_to_end(&mut all).expect("everything arrives");
            all
        });
        let config = ReactorConfig { backend, ..ReactorConfig::MESSAGES };
        let mut client = Reactor::new(config).expect("a reactor");
        let to = client.io().address(&address.into());
        client.io().connect(to, Carries::Anything).expect("a socket");
        let mut poster = Poster { conn: None, written: 0, sending: false, refused: 0 };
        let began = Instant::now();
        while (poster.written < Poster::WHOLE || poster.sending) && began.elapsed() < PATIENCE {
            client.turn(Duration::ZERO, &mut poster).expect("a turn");
            poster.write(client.io());
            if poster.sending {
                let _ = full.send(());
            }
        }
        // The event of a send comes after all that was posted. The reader then empties the socket.
        let conn = poster.conn.expect("connected");
        poster.written += 1;
        poster.sending =
            client.io().send(conn, Payload::Owned(vec![Poster::byte(poster.written - 1)])).expect("free");
        while poster.sending && began.elapsed() < PATIENCE {
            client.turn(Duration::from_millis(1), &mut poster).expect("a turn");
        }
        std::thread::sleep(Duration::from_millis(100));
        // What is posted last goes out before the end of the sending side.
        poster.written += usize::from(client.io().post(conn, &[Poster::byte(poster.written)]));
        client.io().half_close(conn);
        client.turn(Duration::from_millis(1), &mut poster).expect("a turn");
        let all = reader.join().expect("no panic");
        assert_eq!(all.len(), poster.written, "{} {}", client.io().backend(), poster.refused);
        assert!(all.iter().enumerate().all(|(place, byte)| *byte == Poster::byte(place)));
        assert!(poster.refused > 0, "the socket was never full");
    }
}
