//! One side of a pipe: it sends and receives messages, beats every second, answers pings, and notices when the other side is
//! gone.
//!
//! A thread reads and another one writes, so nothing that the other side does or leaves undone blocks the caller.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::Round;
use crate::frame::{self, FrameError, LONGEST, MOST_MEMORY};
use crate::message::{Glimpse, Hello, Message};
use crate::silence::Silence;

/// The time between two beats.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Who hears nothing for so long takes the other side for dead.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// How long the other side may take to say hello. A connection through several hosts takes seconds.
pub(crate) const GREETING: Duration = Duration::from_secs(15);
/// How many messages wait to be taken.
const WAITING: usize = 4;
/// How many bytes of messages wait to be taken: the longest one, and short ones beside it. More never waits,
/// because each order is answered before the next one is sent.
const WAITING_BYTES: usize = LONGEST + (4 << 20);
/// How many messages wait to be written.
const TO_WRITE: usize = 256;
/// The most bytes of a message that no verb says: of the longest hello, which lists cores.
const LONGEST_OWN: usize = 1 << 20;
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
    /// What a verb says. It stays as it came and becomes values when somebody wants it. So only one message at a time takes its full
    /// memory.
    Says(Vec<u8>),
    Pong(Round),
}

impl Received {
    /// How many bytes it is counted with while it waits.
    fn length(&self) -> usize {
        if let Self::Says(frame) = self { frame.len() } else { 0 }
    }
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
        if let Some(why) = too_large(&frame) {
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
    /// How many bytes of messages wait in `incoming`.
    waiting: Arc<AtomicUsize>,
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
        let waiting = Arc::new(AtomicUsize::new(0));
        let to_wait = Arc::clone(&waiting);
        thread::Builder::new()
            .name("pipe-in".to_owned())
            .spawn(move || listen(input, (&taken, &to_wait), &pongs, clock))?;
        // A length that went out before its message would be sent as a packet of its own by ssh, and the message would wait until
        // that is acknowledged.
        let output = BufWriter::new(output);
        thread::Builder::new().name("pipe-out".to_owned()).spawn(move || speak(output, &to_write, clock))?;
        let silence = Silence::default();
        Ok(Self { out: Speaker(out), incoming, waiting, heard, silence, clock, greeted: false, lost: None })
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
                Some(Received::Says(frame)) => return self.read(&frame).map(Some),
                // A pong that comes too late is of no use.
                Some(Received::Pong(_)) => {}
                Some(Received::Hello(_)) => return Err(Lost::Broken("it said hello twice".to_owned())),
                None => return Ok(None),
            }
        }
    }

    /// Reads what a verb says into values.
    pub(crate) fn read(&mut self, frame: &[u8]) -> Result<Value, Lost> {
        let Some(Message::Says { what }) = Message::parse(frame) else {
            let lost = foreign(frame);
            self.lost = Some(lost.clone());
            return Err(lost);
        };
        Ok(what)
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
            Ok(Ok(received)) => {
                self.waiting.fetch_sub(received.length(), Ordering::AcqRel);
                return Ok(Some(received));
            }
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
    (taken, waiting): (&SyncSender<Result<Received, Lost>>, &AtomicUsize),
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
            Ok(Heeded::Received(received)) => may_wait(received, waiting),
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

/// Counts a message among those that wait.
///
/// # Errors
/// They would be too long together.
fn may_wait(received: Received, waiting: &AtomicUsize) -> Result<Received, Lost> {
    let length = received.length();
    let all = waiting.fetch_add(length, Ordering::AcqRel).saturating_add(length);
    if all <= WAITING_BYTES {
        return Ok(received);
    }
    Err(Lost::Broken(format!(
        "it says more than it was asked: {all} bytes wait to be read, and may be {WAITING_BYTES}; do not trust it"
    )))
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
    if let Some(why) = too_large(&frame) {
        return Err(why);
    }
    let glimpse = Message::glimpse(&frame).ok_or_else(|| foreign(&frame))?;
    if frame.len() > LONGEST_OWN && !matches!(glimpse, Glimpse::Says(_)) {
        let length = frame.len();
        return Err(Lost::Broken(format!(
            "a message of the pipe itself has {length} bytes, and may have {LONGEST_OWN}"
        )));
    }
    let own = match glimpse {
        Glimpse::Own(Message::Beat) => return Ok(Heeded::Beat),
        Glimpse::Own(Message::Ping { sent_ns }) => {
            let pong = Message::Pong { sent_ns, clock_ns: now };
            return Ok(Heeded::Ping(Outgoing::Frame(pong.bytes())));
        }
        Glimpse::Own(Message::Pong { sent_ns, clock_ns }) => {
            Received::Pong(Round { sent: sent_ns, there: clock_ns, arrived: now })
        }
        Glimpse::Own(Message::Hello(hello)) => Received::Hello(hello),
        Glimpse::Own(Message::Says { .. }) | Glimpse::Says(_) => {
            return Ok(Heeded::Received(Received::Says(frame)));
        }
    };
    Ok(Heeded::Received(own))
}

/// Why a message cannot be one: it would take more memory than one may.
fn too_large(frame: &[u8]) -> Option<Lost> {
    let memory = frame::memory(frame);
    let why = || {
        Lost::Broken(format!(
            "a message of {} bytes would take {memory} bytes of memory, and may take {MOST_MEMORY}: ask for less at once",
            frame.len()
        ))
    };
    (memory > MOST_MEMORY).then(why)
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
mod tests;
