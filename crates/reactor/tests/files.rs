//! Tests what becomes of files: when no more may be opened, and when a reactor is dropped in the midst of its work.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reactor::{Backend, Carries, Conn, Event, Handler, Io, Payload, Reactor, ReactorConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PATIENCE: Duration = Duration::from_secs(20);

/// The limit and the numbers of open files belong to the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reactor(backend: Backend) -> Reactor {
    Reactor::new(ReactorConfig { backend, ..ReactorConfig::FEW }).expect("a reactor")
}

/// Keeps what was accepted.
#[derive(Default)]
struct Accepting {
    accepted: Vec<Conn>,
}

impl Handler for Accepting {
    fn event(&mut self, _: &mut Io, conn: Conn, event: Event<'_>) {
        if let Event::Accepted(_) = event {
            self.accepted.push(conn);
        }
    }
}

/// Turns until something holds. Returns whether it did in time.
fn turns(reactor: &mut Reactor, handler: &mut Accepting, until: impl Fn(&Accepting) -> bool) -> bool {
    let began = Instant::now();
    while !until(handler) {
        if began.elapsed() > PATIENCE {
            return false;
        }
        reactor.turn(Duration::from_millis(1), handler).expect("a turn");
    }
    true
}

/// Opens files until no more may be.
fn take_all_files() -> Vec<std::fs::File> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

/// Lets this process open no file with a number of 256 or more.
fn limit_files() {
    let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("a lower limit");
}

/// A listener of a reactor for which no file is left, and on which a connection waits.
struct Full {
    reactor: Reactor,
    listener: Conn,
    /// The number of the listener's file, which the reactor owns.
    number: i32,
    handler: Accepting,
    files: Vec<std::fs::File>,
    _client: TcpStream,
}

fn full(backend: Backend) -> Full {
    let (mut reactor, mut handler) = (reactor(backend), Accepting::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (address, number) = (listener.local_addr().expect("bound"), listener.as_raw_fd());
    let listener = reactor.io().listen(listener).expect("listening");
    reactor.turn(Duration::ZERO, &mut handler).expect("a turn");
    let client = TcpStream::connect(address).expect("a place in the queue");
    let files = take_all_files();
    // The accept fails here, and is tried again after a pause.
    reactor.turn(Duration::from_millis(1), &mut handler).expect("a turn");
    assert_eq!(handler.accepted.len(), 0, "no file is left");
    Full { reactor, listener, number, handler, files, _client: client }
}

#[test]
fn a_listener_accepts_again_when_files_are_free() {
    let _alone = alone();
    limit_files();
    for backend in [Backend::Auto, Backend::Epoll] {
        let mut full = full(backend);
        full.files.clear();
        assert!(
            turns(&mut full.reactor, &mut full.handler, |handler| handler.accepted.len() == 1),
            "{backend:?}"
        );
    }
}

/// What the file of an epoll watches, by the numbers of the files.
fn watched() -> Vec<i32> {
    let of = |number: &std::ffi::OsStr| {
        std::fs::read_to_string(std::path::Path::new("/proc/self/fdinfo").join(number))
    };
    let files = std::fs::read_dir("/proc/self/fd").expect("the files of this process");
    let all = files.flatten().filter_map(|file| of(&file.file_name()).ok()).collect::<String>();
    let numbers =
        all.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok());
    numbers.collect()
}

#[test]
fn a_listener_that_is_closed_while_it_waits_for_files_does_not_take_over_its_successor() {
    let _alone = alone();
    limit_files();
    for backend in [Backend::Auto, Backend::Epoll] {
        let mut full = full(backend);
        full.reactor.io().close(full.listener);
        let ended = Instant::now();
        while std::fs::File::open("/dev/null").is_err() && ended.elapsed() < PATIENCE {
            full.reactor.turn(Duration::from_millis(1), &mut full.handler).expect("a turn");
        }
        // The next file has the number of the listener.
        let successor = TcpListener::bind("127.0.0.1:0").expect("a file");
        assert_eq!(successor.as_raw_fd(), full.number, "{backend:?}");
        full.files.clear();
        let waiting =
            TcpStream::connect(successor.local_addr().expect("bound")).expect("a place in the queue");
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_millis(50) {
            full.reactor.turn(Duration::from_millis(1), &mut full.handler).expect("a turn");
        }
        assert!(!watched().contains(&full.number), "{backend:?}");
        assert_eq!(full.handler.accepted.len(), 0, "{backend:?}");
        let (_, from) = successor.accept().expect("its own connection");
        assert_eq!(from, waiting.local_addr().expect("bound"));
    }
}

/// How many files are open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the files of this process").count()
}

#[test]
fn a_reactor_that_is_dropped_in_the_midst_of_its_work_closes_everything() {
    let _alone = alone();
    for backend in [Backend::Auto, Backend::Epoll] {
        let before = open_files();
        let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (mut reactor, mut handler) = (reactor(backend), Accepting::default());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        reactor.io().listen(listener).expect("listening");
        // One is received from, one sends more than its peer reads, and one connects.
        let client = || TcpStream::connect(address).expect("a place in the queue");
        let mut clients = vec![client(), client()];
        assert!(turns(&mut reactor, &mut handler, |handler| handler.accepted.len() == 2), "{backend:?}");
        let large = Payload::Owned(vec![0; 64 << 20]);
        assert!(reactor.io().send(handler.accepted[1], large).is_ok());
        let to = reactor.io().address(&other.local_addr().expect("bound").into());
        reactor.io().connect(to, Carries::Anything).expect("a socket");
        reactor.turn(Duration::ZERO, &mut handler).expect("a turn");
        // One is accepted, of which nobody has heard, and one operation is not even submitted.
        clients.push(client());
        reactor.io().close(handler.accepted[0]);
        reactor.io().connect(to, Carries::OneExchange).expect("a socket");
        drop(reactor);
        for mut client in clients {
            client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            // The end, or a reset; not silence.
            let end = client.read_to_end(&mut Vec::new());
            let silent = end.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            assert!(!silent, "{backend:?}: {end:?}");
        }
        assert!(TcpStream::connect(address).is_err(), "{backend:?}: nobody listens");
        drop(other);
        assert_eq!(open_files(), before, "{backend:?}");
    }
}
