use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::*;
use crate::memory_tests::full;
use crate::message::PROTOCOL;

fn clock() -> u64 {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGAN.elapsed().as_nanos() as u64
}

fn hello(version: &str) -> Hello {
    Hello { protocol: PROTOCOL, version: version.to_owned(), ..Hello::default() }
}

/// A side of a pipe, and the other end as it is.
fn half() -> (Link, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair");
    let input = near.try_clone().expect("the same");
    (Link::new(input, near, &hello("1"), clock).expect("a link"), far)
}

fn link(stream: UnixStream, version: &str) -> Link {
    let input = stream.try_clone().expect("the same");
    Link::new(input, stream, &hello(version), clock).expect("a link")
}

#[test]
fn both_sides_greet_talk_and_notice_the_end() {
    let (mut near, far) = half();
    let mut far = link(far, "1");
    assert_eq!(far.greet(&hello("1")), Ok(hello("1")));
    assert_eq!(near.greet(&hello("1")), Ok(hello("1")));
    near.send(serde_json::json!({"a": 1})).expect("it is sent");
    assert_eq!(far.receive(Duration::from_secs(60)), Ok(Some(serde_json::json!({"a": 1}))));
    near.ping().expect("it is sent");
    let pong = near.take(Duration::from_secs(60)).expect("it lives");
    assert!(matches!(pong, Some(Received::Pong(round)) if round.sent <= round.arrived), "{pong:?}");
    assert_eq!(near.receive(Duration::ZERO), Ok(None));
    drop(near);
    // The writer of the near side has ended, so its stream is closed for writing when its reader ends, too.
    far.send(serde_json::json!(null)).expect("it is taken");
}

#[test]
fn a_side_that_stood_still_itself_does_not_take_the_other_for_dead() {
    /// How far the clock has jumped.
    static JUMPED: AtomicU64 = AtomicU64::new(0);
    fn jumping() -> u64 {
        clock() + JUMPED.load(Ordering::Relaxed)
    }
    let (near, far) = UnixStream::pair().expect("a pair");
    let input = near.try_clone().expect("the same");
    let mut near = Link::new(input, near, &hello("1"), jumping).expect("a link");
    let _far = link(far, "1");
    near.greet(&hello("1")).expect("it greets");
    JUMPED.fetch_add(60 * SILENCE.as_nanos() as u64, Ordering::Relaxed);
    assert_eq!(near.receive(Duration::ZERO), Ok(None));
    // The other side beats meanwhile.
    assert_eq!(near.receive(3 * BEAT), Ok(None));
}

#[test]
fn another_version_is_refused_with_both_names() {
    let (mut near, far) = half();
    let _far = link(far, "2");
    let Err(Lost::Differs(why)) = near.greet(&hello("1")) else { panic!("it must differ") };
    assert!(why.contains("narrows 1 ") && why.contains("narrows 2 "), "{why}");
}

#[test]
fn what_is_no_message_is_shown() {
    let cases: [(&[u8], &str); 5] = [
        (b"Welcome to gen1!\n", "Welcome to gen1!"),
        (b"\0\0\0\x05hello", "hello"),
        (b"\0\0\0\x10{\"message\":\"a\"}", "message"),
        (b"\0\0\0\x12{\"message\":\"beat\"}\0\0", "in the midst"),
        (b"ab", "in the midst"),
    ];
    for (bytes, shown) in cases {
        let (mut near, mut far) = half();
        far.write_all(bytes).expect("it is written");
        far.shutdown(std::net::Shutdown::Write).expect("it is closed");
        let lost = near.greet(&hello("1")).expect_err("no hello").to_string();
        assert!(lost.contains(shown), "{lost}");
    }
}

#[test]
fn of_what_is_no_message_so_much_is_shown() {
    for (length, shown) in [(SHOWN - 1, SHOWN - 1), (SHOWN, SHOWN), (SHOWN + 1, SHOWN)] {
        let Lost::Broken(why) = foreign(&b"~".repeat(length)) else { panic!("another error") };
        assert_eq!(why.matches('~').count(), shown, "{why}");
    }
}

#[test]
fn a_peer_that_closes_or_speaks_out_of_turn_is_lost() {
    let (mut near, far) = half();
    drop(far);
    assert_eq!(near.greet(&hello("1")), Err(Lost::Closed));
    let (mut near, mut far) = half();
    frame::write(&mut far, &Message::Says { what: Value::Null }.bytes()).expect("it is written");
    assert!(matches!(near.greet(&hello("1")), Err(Lost::Broken(_))));
    assert!(near.receive(Duration::ZERO).is_ok_and(|what| what.is_none()), "the pipe itself is whole");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_of_a_peer_make_a_side_hang_or_panic(
        greets: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cut in 0_usize..200,
    ) {
        let mut said = Vec::new();
        if greets {
            frame::write(&mut said, &Message::Hello(hello("1")).bytes()).expect("it is written");
        }
        frame::write(&mut said, &bytes).expect("it is written");
        said.extend(bytes);
        said.truncate(said.len().saturating_sub(cut));
        let mut side = Link::new(io::Cursor::new(said), io::sink(), &hello("1"), clock).expect("a link");
        if side.greet(&hello("1")).is_ok() {
            prop_assert!(greets);
            // Nothing that is said here is a message, so what follows is the end.
            prop_assert!(side.receive(Duration::from_secs(60)).is_err());
        }
    }
}

#[test]
fn a_peer_that_takes_nothing_does_not_block_the_sender() {
    let (near, _far) = half();
    let long = Value::String("x".repeat(16 << 10));
    let refused = (0..4 * TO_WRITE).find_map(|_| near.send(long.clone()).err());
    assert!(matches!(refused, Some(Lost::Broken(_))), "{refused:?}");
    let too_long = Value::String("x".repeat(LONGEST));
    assert!(matches!(near.send(too_long), Err(Lost::Broken(why)) if why.contains("may have")));
}

/// What becomes of this frame behind a hello.
fn said(text: Vec<u8>) -> Result<bool, Lost> {
    let (mut near, far) = half();
    // The pipe holds less than the message, so another thread writes it.
    let writer = thread::spawn(move || {
        let mut far = far;
        frame::write(&mut far, &Message::Hello(hello("1")).bytes())?;
        frame::write(&mut far, &text)
    });
    let greeted = near.greet(&hello("1"));
    assert!(greeted.is_ok(), "{greeted:?}");
    let received = near.receive(Duration::from_secs(600));
    drop(near);
    let _ = writer.join().expect("it ends");
    received.map(|value| value.is_some())
}

#[test]
fn a_message_that_would_take_much_memory_is_refused_before_it_is_read() {
    for value in ["0", "[]", r#"{"":0}"#, r#""a""#] {
        assert_eq!(said(full(value, 0)), Ok(true), "{value}");
        let refused = said(full(value, 1));
        let why = format!("and may take {MOST_MEMORY}");
        assert!(matches!(&refused, Err(Lost::Broken(said)) if said.contains(&why)), "{value}: {refused:?}");
    }
}

#[test]
fn a_long_hello_is_refused() {
    let greeted = |length: usize| {
        let (mut near, mut far) = half();
        let mut text = Message::Hello(hello("1")).bytes();
        text.resize(length, b' ');
        let writer = thread::spawn(move || frame::write(&mut far, &text));
        let greeted = near.greet(&hello("1")).map(|_| ());
        drop(near);
        let _ = writer.join().expect("it ends");
        greeted
    };
    assert_eq!(greeted(LONGEST_OWN), Ok(()));
    assert!(matches!(greeted(LONGEST_OWN + 1), Err(Lost::Broken(why)) if why.contains("may have 1048576")));
}

#[test]
fn messages_that_nobody_takes_are_limited_together() {
    let waiting = AtomicUsize::new(0);
    let says = |length: usize| may_wait(Received::Says(vec![0; length]), &waiting).map(|_| ());
    assert_eq!((says(LONGEST), says(4 << 20)), (Ok(()), Ok(())));
    assert!(matches!(says(1), Err(Lost::Broken(why)) if why.contains("may be 71303168; do not trust it")));
}
