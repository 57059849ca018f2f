//! Drives a small protocol whose exchanges end in any order, against a server that follows a script: an exchange may fail
//! alone, and the server may refuse further ones.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use reactor::{Backend, Ends, Payload, Reactor, ReactorConfig};

use super::*;
use crate::Rendezvous;
use crate::pacer::{Arrivals, Stop};
use crate::protocol::{Mark, Standing, Success};

/// A request is one byte, its number. An answer is a number and what became of it.
struct Toy;

/// The exchange with this number is answered.
const DONE: u8 = b'd';
/// The exchange with this number fails alone.
const FAILED: u8 = b'f';
/// The exchange with this number was not processed; others are.
const REFUSED: u8 = b'r';
/// A part of the answer to the exchange with this number has arrived.
const PART: u8 = b'p';
/// From this number on nothing was processed, and nothing will be.
const LIMIT: u8 = b'l';

struct State {
    begun: u8,
    sent: u8,
    limited: bool,
    open: Vec<u64>,
}

impl Protocol for Toy {
    type Session = State;
    type Request = ();

    fn keeps_connections(&self) -> bool {
        true
    }

    fn open(&mut self, _lane: usize, _ends: Option<Ends>) -> State {
        State { begun: 0, sent: 0, limited: false, open: Vec::new() }
    }

    fn standing(&self, state: &State) -> Standing {
        Standing::ready(if state.limited { 0 } else { usize::MAX })
    }

    fn pick(&mut self) {}

    fn begin(&mut self, state: &mut State, (): ()) {
        assert!(!state.limited, "nothing begins on a connection that takes no more");
        state.open.push(u64::from(state.begun));
        state.begun += 1;
    }

    fn next(&mut self, state: &mut State, _closing: bool) -> Next {
        if state.sent == state.begun {
            return Next::Nothing;
        }
        state.sent += 1;
        Next::Send(Payload::Owned(vec![state.sent - 1]))
    }

    fn sent(&mut self, _payload: Payload) {}

    fn receive(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        for answer in bytes.chunks(2) {
            let id = u64::from(answer[0]);
            match answer[1] {
                DONE => outcomes.end(id, Ok(Success { units: 1, payload: 0 })),
                FAILED => outcomes.end(id, Err(Fault::new(ErrorClass::Status, Seen::Status(500)))),
                REFUSED => outcomes.marks.push((id, Mark::Refused)),
                PART => {
                    outcomes.marks.push((id, Mark::Answering));
                    continue;
                }
                _ => {
                    state.limited = true;
                    let refused = state.open.iter().filter(|open| **open >= id);
                    outcomes.marks.extend(refused.map(|id| (*id, Mark::Refused)));
                }
            }
            state.open.retain(|open| *open != id);
        }
        Ok(())
    }

    fn cancel(&mut self, state: &mut State, id: u64) -> bool {
        state.open.retain(|open| *open != id);
        true
    }

    fn end(&mut self, _state: &mut State, _outcomes: &mut Outcomes) -> Fault {
        Fault::new(ErrorClass::ClosedEarly, Seen::Nothing)
    }
}

/// What the server waits between two parts of an answer.
const PAUSE: Duration = Duration::from_millis(50);

/// One connection of the server: it waits for this many requests, or for a moment if there is none, then sends these answers.
type Act = (usize, &'static [(u8, u8)]);

/// Serves one connection after another, each with its acts. A connection without acts left is closed when the peer has
/// closed it, or at once if the last act is empty.
fn serve(script: &'static [&'static [Act]]) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = thread::spawn(move || {
        for acts in script {
            let (mut stream, _) = listener.accept().expect("a connection");
            if follow(&mut stream, acts) {
                assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0, "the client closes");
            }
        }
    });
    (address, server)
}

fn follow(stream: &mut TcpStream, acts: &[Act]) -> bool {
    for (requests, answers) in acts {
        if *requests == 0 {
            thread::sleep(PAUSE);
        }
        let mut numbers = vec![0; *requests];
        stream.read_exact(&mut numbers).expect("requests");
        let bytes: Vec<u8> = answers.iter().flat_map(|(number, what)| [*number, *what]).collect();
        if bytes.is_empty() {
            return false;
        }
        stream.write_all(&bytes).expect("answers");
    }
    true
}

/// Makes this many exchanges, four at a time on one connection.
fn exchanges(address: SocketAddr, count: u64) -> Tally {
    drive_as(address, |share| share.stop = Stop::Count(count))
}

/// Drives with one connection, whose share of a job is changed.
fn drive_as(address: SocketAddr, change: impl FnOnce(&mut Share)) -> Tally {
    let config = ReactorConfig { backend: Backend::Auto, ..ReactorConfig::FEW };
    let mut reactor = Reactor::new(config).expect("a reactor");
    let to = reactor.io().address(&address.into());
    let mut share = Share {
        number: 0,
        reports: None,
        connections: 1,
        callers: 4,
        pipeline: 4,
        pool: false,
        arrivals: Arrivals::Closed,
        offset: 0.0,
        warmup: Duration::ZERO,
        stop: Stop::Count(1),
        ending: Ending::Finish,
        timeout: Duration::from_secs(10),
        idle_timeout: None,
        goal: None,
        rendezvous: None,
        drain: Duration::ZERO,
    };
    change(&mut share);
    let until = (&AtomicBool::new(false), &Beginning::default());
    drive(&mut reactor, Toy, share, to, until, &|_| {}).expect("it drives")
}

fn outcome(tally: &Tally) -> (u64, u64, u64, u64) {
    let failed = tally.errors.iter().sum();
    (tally.attempts, tally.successes, failed, tally.total.connections)
}

#[test]
fn exchanges_end_in_any_order_and_fail_alone() {
    let (address, server) = serve(&[&[
        (4, &[(2, DONE), (0, FAILED), (3, DONE)]),
        (3, &[(6, DONE), (1, DONE), (5, DONE), (4, DONE)]),
        (1, &[(7, DONE)]),
    ]]);
    let tally = exchanges(address, 8);
    assert_eq!(outcome(&tally), (8, 7, 1, 1));
    assert_eq!(tally.first_errors[&ErrorClass::Status].exchange, Some(1));
    server.join().expect("the script was followed");
}

#[test]
fn the_first_byte_of_an_answer_in_parts_has_its_own_time() {
    let (address, server) = serve(&[&[(1, &[(0, PART)]), (0, &[(0, DONE)]), (1, &[(1, DONE)])]]);
    let tally = drive_as(address, |share| (share.callers, share.stop) = (1, Stop::Count(2)));
    server.join().expect("the script was followed");
    let first = tally.first_byte.expect("an answer in parts").answered();
    assert_eq!((first.len(), tally.successes), (1, 2));
    assert!(first.max() <= tally.service.answered().max(), "the first part comes no later than the last");
}

#[test]
fn what_the_peer_has_not_processed_begins_anew_on_another_connection() {
    // Of four exchanges two are processed, in two acts. The other two begin anew, as 0 and 1.
    let (address, server) = serve(&[
        &[(4, &[(1, DONE), (2, LIMIT), (0, DONE)])],
        &[(4, &[(3, DONE), (0, DONE), (1, DONE), (2, DONE)])],
    ]);
    assert_eq!(outcome(&exchanges(address, 6)), (6, 6, 0, 2));
    server.join().expect("the script was followed");
}

#[test]
fn a_refused_exchange_begins_anew_on_the_same_connection() {
    // 1 is refused. It begins anew as 4, after those that wait for nothing.
    let (address, server) =
        serve(&[&[(4, &[(1, REFUSED), (0, DONE)]), (2, &[(2, DONE), (3, DONE), (4, DONE), (5, DONE)])]]);
    assert_eq!(outcome(&exchanges(address, 5)), (5, 5, 0, 1));
    server.join().expect("the script was followed");
}

#[test]
fn an_exchange_that_is_never_answered_times_out_alone() {
    // 1 is left open. The others and those after them are answered on the same connection.
    let (address, server) =
        serve(&[&[(4, &[(0, DONE), (2, DONE), (3, DONE)]), (2, &[(4, DONE), (5, DONE)])]]);
    let tally = drive_as(address, |share| {
        share.stop = Stop::Count(6);
        share.timeout = Duration::from_millis(300);
    });
    assert_eq!(outcome(&tally), (6, 5, 1, 1));
    assert_eq!(tally.first_errors[&ErrorClass::RequestTimeout].exchange, Some(2));
    server.join().expect("the script was followed");
}

#[test]
fn what_the_peer_had_taken_fails_if_the_connection_ends_first() {
    let (address, server) =
        serve(&[&[(4, &[(0, DONE)]), (1, &[(3, LIMIT)]), (0, &[])], &[(2, &[(1, DONE), (0, DONE)])]]);
    // Exchanges 1 and 2 fail. 3 and 4 begin anew.
    assert_eq!(outcome(&exchanges(address, 5)), (5, 3, 2, 2));
    server.join().expect("the script was followed");
}

#[test]
fn a_server_that_ends_in_the_warm_up_is_not_waited_for() {
    // It takes four requests, and nobody listens after that.
    let (address, server) = serve(&[&[(4, &[])]]);
    let rendezvous = Rendezvous::default();
    let others = rendezvous.clone();
    let meeting = thread::spawn(move || {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        let mut came = false;
        while !came && std::time::Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
            came = others.ready() > 0;
        }
        others.open_at(Time::now());
        assert!(came, "the generator waits for a server that is gone");
    });
    let tally = drive_as(address, |share| {
        share.rendezvous = Some(rendezvous);
        share.warmup = Duration::from_millis(1);
        share.stop = Stop::After(Duration::from_millis(1));
        share.ending = Ending::Cut;
        share.timeout = Duration::from_secs(86_400);
    });
    assert_eq!(tally.successes, 0);
    server.join().expect("the script was followed");
    meeting.join().expect("the windows opened");
}

#[test]
fn a_peer_that_never_takes_anything_makes_every_exchange_fail() {
    let (address, server) = serve(&[&[(4, &[(0, LIMIT)])]]);
    assert_eq!(outcome(&exchanges(address, 4)), (4, 0, 4, 1));
    server.join().expect("the script was followed");
}
