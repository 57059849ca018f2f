//! One side of a pipe: it sends and receives messages, beats every second, answers pings, and notices when the other side is
//! gone.
//!
//! A thread reads and another one writes, so nothing that the other side does or leaves undone blocks the caller.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::Round;
use crate::frame::{self, FrameError, LONGEST, MOST_JSON_VALUES};
use crate::message::{Hello, Message};
use crate::silence::Silence;

/// The time between two beats.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Who hears nothing for so long takes the other side for dead.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// How long the other side may take to say hello. A connection through several hosts takes seconds.
pub(crate) const GREETING: Duration = Duration::from_secs(15);
/// How many messages wait to be taken. There are few, and each may be long.
const WAITING: usize = 4;
/// How many messages wait to be written.
const TO_WRITE: usize = 256;
/// How many bytes of what is no message are shown.
const SHOWN: usize = 120;

/// A monotonic clock, in nanoseconds.
pub type Clock = fn() -> u64;

/// Why nothing more can be received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The other side closed the pipe.
    #[error("it closed the pipe")]
    Closed,
    /// What came makes no sense, or the pipe failed.
    #[error("{0}")]
    Broken(String),
    /// The other side said nothing.
    #[error("it has said nothing for {} s", SILENCE.as_secs())]
    Silent,
    /// The other side did not say hello in time.
    #[error("it did not answer within {} s", GREETING.as_secs())]
    Mute,
    /// The user interrupted while the machine was being reached.
    #[error("interrupted before it was reached")]
    Interrupted,
    /// The sides do not understand each other.
    #[error("{0}")]
    Differs(String),
}

/// What the other side said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Received {
    Hello(Hello),
    Says(Value),
    Pong(Round),
}

enum Outgoing {
    Frame(Vec<u8>),
    /// Its time is read when it is written.
    Ping,
}

/// Sends messages of a verb. Other threads than the link's own may have one; the pipe stays open as long as any of them has.
#[derive(Clone)]
pub struct Speaker(Arc<SyncSender<Outgoing>>);

impl Speaker {
    /// Sends a message of a verb. Does not wait until it is written.
    ///
    /// # Errors
    /// It is too long, or the other side takes nothing any more.
    pub fn send(&self, what: Value) -> Result<(), Lost> {
        let frame = Message::Says { what }.bytes();
        if frame.len() > LONGEST {
            return Err(Lost::Broken(format!("a message has {} bytes, and may have {LONGEST}", frame.len())));
        }
        if let Some(why) = too_many_values(&frame) {
            return Err(why);
        }
        self.write(Outgoing::Frame(frame))
    }

    fn write(&self, outgoing: Outgoing) -> Result<(), Lost> {
        self.0.try_send(outgoing).map_err(|why| match why {
            TrySendError::Full(_) => Lost::Broken("it takes nothing of what is sent".to_owned()),
            TrySendError::Disconnected(_) => Lost::Closed,
        })
    }
}

/// One side of a pipe.
pub struct Link {
    /// The writer ends when nobody has this any more.
    out: Speaker,
    incoming: Receiver<Result<Received, Lost>>,
    /// When bytes last came.
    heard: Arc<AtomicU64>,
    silence: Silence,
    clock: Clock,
    greeted: bool,
    lost: Option<Lost>,
}

impl Link {
    /// Makes a side of a pipe, and says hello.
    ///
    /// # Errors
    /// The operating system gives no threads.
    pub fn new(
        input: impl Read + Send + 'static,
        mut output: impl Write + Send + 'static,
        hello: &Hello,
        clock: Clock,
    ) -> io::Result<Self> {
        // A new pipe has room for it. If the pipe has closed already, the reader says so.
        let _ = frame::write(&mut output, &Message::Hello(hello.clone()).bytes());
        let (out, to_write) = sync_channel(TO_WRITE);
        let (taken, incoming) = sync_channel(WAITING);
        let heard = Arc::new(AtomicU64::new(clock()));
        let input = BufReader::new(Heard { input, heard: Arc::clone(&heard), clock });
        let out = Arc::new(out);
        let pongs = Arc::downgrade(&out);
        thread::Builder::new()
            .name("pipe-in".to_owned())
            .spawn(move || listen(input, &taken, &pongs, clock))?;
        // A length that went out before its message would be sent as a packet of its own by ssh, and the message would wait until
        // that is acknowledged.
        let output = BufWriter::new(output);
        thread::Builder::new().name("pipe-out".to_owned()).spawn(move || speak(output, &to_write, clock))?;
        let silence = Silence::default();
        Ok(Self { out: Speaker(out), incoming, heard, silence, clock, greeted: false, lost: None })
    }

    /// Waits for the hello of the other side, which must be of the same version as `own`.
    ///
    /// # Errors
    /// There is none in time, or it is of another version.
    pub fn greet(&mut self, own: &Hello) -> Result<Hello, Lost> {
        let began = Instant::now();
        loop {
            match self.take(Duration::from_millis(50))? {
                Some(Received::Hello(hello)) if own.orders && hello.orders => {
                    let why = "it repeats what it is sent, so it is not `narrows agent`";
                    return Err(Lost::Broken(why.to_owned()));
                }
                Some(Received::Hello(hello)) => {
                    if let Some(difference) = own.differs(&hello) {
                        return Err(Lost::Differs(difference));
                    }
                    self.greeted = true;
                    return Ok(hello);
                }
                Some(_) => return Err(Lost::Broken("its first message is no hello".to_owned())),
                None if began.elapsed() >= GREETING => return Err(Lost::Mute),
                None => {}
            }
        }
    }

    /// See [`Speaker::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send(&self, what: Value) -> Result<(), Lost> {
        self.out.send(what)
    }

    /// What other threads send with.
    pub fn speaker(&self) -> Speaker {
        self.out.clone()
    }

    pub(crate) fn ping(&self) -> Result<(), Lost> {
        self.out.write(Outgoing::Ping)
    }

    /// The next message of a verb. `None` if there is none within `patience`.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<Value>, Lost> {
        let began = Instant::now();
        loop {
            match self.take(patience.saturating_sub(began.elapsed()))? {
                Some(Received::Says(what)) => return Ok(Some(what)),
                // A pong that comes too late is of no use.
                Some(Received::Pong(_)) => {}
                Some(Received::Hello(_)) => return Err(Lost::Broken("it said hello twice".to_owned())),
                None => return Ok(None),
            }
        }
    }

    pub(crate) fn take(&mut self, patience: Duration) -> Result<Option<Received>, Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let began = Instant::now();
        loop {
            // Silence is noticed in time, however long a caller may wait.
            let slice = patience.saturating_sub(began.elapsed()).min(BEAT);
            match self.take_within(slice)? {
                None if began.elapsed() < patience => {}
                received => return Ok(received),
            }
        }
    }

    fn take_within(&mut self, patience: Duration) -> Result<Option<Received>, Lost> {
        let lost = match self.incoming.recv_timeout(patience) {
            Ok(Ok(received)) => return Ok(Some(received)),
            Ok(Err(lost)) => lost,
            Err(RecvTimeoutError::Disconnected) => Lost::Closed,
            Err(RecvTimeoutError::Timeout) => {
                let heard = self.heard.load(Ordering::Acquire);
                if !self.greeted || !self.silence.lasts(heard, (self.clock)()) {
                    return Ok(None);
                }
                Lost::Silent
            }
        };
        self.lost = Some(lost.clone());
        Err(lost)
    }
}

/// Remembers when bytes last came. A long message comes in many pieces, so the other side is not silent while it sends one.
struct Heard<R> {
    input: R,
    heard: Arc<AtomicU64>,
    clock: Clock,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.heard.store((self.clock)(), Ordering::Release);
        Ok(read)
    }
}

/// Takes messages until the pipe ends or nobody wants them, and says why it ended.
fn listen<R: Read>(
    mut input: BufReader<R>,
    taken: &SyncSender<Result<Received, Lost>>,
    pongs: &Weak<SyncSender<Outgoing>>,
    clock: Clock,
) {
    loop {
        let received = match hear(&mut input, clock) {
            Ok(Heeded::Beat) => continue,
            Ok(Heeded::Ping(pong)) => {
                let Some(out) = pongs.upgrade() else { return };
                // Who asks more than can be written gets no answer.
                let _ = out.try_send(pong);
                continue;
            }
            Ok(Heeded::Received(received)) => Ok(received),
            Err(lost) => Err(lost),
        };
        // A beat at once carries the acknowledgement. A ssh without a terminal sends a short message only when the one before it
        // has been acknowledged (Nagle's algorithm), which the other side would else put off for 40 ms.
        if let (Ok(Received::Says(_)), Some(out)) = (&received, pongs.upgrade()) {
            let _ = out.try_send(Outgoing::Frame(Message::Beat.bytes()));
        }
        let over = received.is_err();
        if taken.send(received).is_err() || over {
            return;
        }
    }
}

/// What becomes of a message.
enum Heeded {
    Beat,
    /// With its answer.
    Ping(Outgoing),
    Received(Received),
}

/// Takes one message.
fn hear<R: Read>(input: &mut BufReader<R>, clock: Clock) -> Result<Heeded, Lost> {
    let frame = match frame::read(input) {
        Ok(Some(frame)) => frame,
        Ok(None) => return Err(Lost::Closed),
        Err(FrameError::Foreign(first)) => return Err(foreign(&[&first[..], input.buffer()].concat())),
        // How the end of a socket looks if something was still to be read at the other end.
        Err(FrameError::Io(why)) if why.kind() == io::ErrorKind::ConnectionReset => return Err(Lost::Closed),
        Err(why) => return Err(Lost::Broken(why.to_string())),
    };
    let now = clock();
    if let Some(why) = too_many_values(&frame) {
        return Err(why);
    }
    Ok(match Message::parse(&frame).ok_or_else(|| foreign(&frame))? {
        Message::Beat => Heeded::Beat,
        Message::Ping { sent_ns } => {
            Heeded::Ping(Outgoing::Frame(Message::Pong { sent_ns, clock_ns: now }.bytes()))
        }
        Message::Pong { sent_ns, clock_ns } => {
            Heeded::Received(Received::Pong(Round { sent: sent_ns, there: clock_ns, arrived: now }))
        }
        Message::Hello(hello) => Heeded::Received(Received::Hello(hello)),
        Message::Says { what } => Heeded::Received(Received::Says(what)),
    })
}

/// Why a message cannot be one: it has more values than one may have.
fn too_many_values(frame: &[u8]) -> Option<Lost> {
    let values = frame::values(frame);
    let why = || Lost::Broken(format!("a message has {values} values, and may have {MOST_JSON_VALUES}"));
    (values > MOST_JSON_VALUES).then(why)
}

fn foreign(bytes: &[u8]) -> Lost {
    let shown = String::from_utf8_lossy(bytes.get(..SHOWN).unwrap_or(bytes));
    let shown = shown.trim_end().escape_debug().to_string();
    Lost::Broken(format!(
        "it said \"{shown}\", which is no message of `narrows agent`: nothing else may write to its standard output, such as a \
         script at login"
    ))
}

/// Writes messages, and a beat whenever there was none for a while, until nobody sends any more.
fn speak(mut output: impl Write, to_write: &Receiver<Outgoing>, clock: Clock) {
    loop {
        let frame = match to_write.recv_timeout(BEAT) {
            Ok(Outgoing::Frame(frame)) => frame,
            Ok(Outgoing::Ping) => Message::Ping { sent_ns: clock() }.bytes(),
            Err(RecvTimeoutError::Timeout) => Message::Beat.bytes(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if frame::write(&mut output, &frame).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;

    use super::*;
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

    #[test]
    fn a_message_of_many_values_is_refused_before_it_is_read() {
        let said = |values: usize| {
            let (mut near, far) = half();
            let mut text = br#"{"message":"says","what":[0"#.to_vec();
            // Besides the commas of the list, six signs begin a value or a key.
            text.extend(b",0".repeat(values - 6));
            text.extend(b"]}");
            assert_eq!(frame::values(&text), values);
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
        };
        assert_eq!(said(MOST_JSON_VALUES), Ok(true));
        let refused = said(MOST_JSON_VALUES + 1);
        assert!(
            matches!(&refused, Err(Lost::Broken(why)) if why.contains("may have 2097152")),
            "{refused:?}"
        );
    }
}
