//! What is known of one connection, and of its open streams.

use std::collections::VecDeque;

use wire::h2::{
    Code, LARGEST_WINDOW, PREFACE, Reader, ReceiveWindow, ResponseHeads, SendWindow, Settings, put_reset,
    put_settings, put_window_update,
};

use super::upload::Sending;
use super::{MOST_EXCHANGES, WINDOW};
use crate::fault::Seen;
use crate::http::answer::ReceivedAnswer;
use crate::http::inspect::Kept;
use crate::protocol::Standing;
use crate::stream::Stream as Events;
use crate::target::Allowance;

/// How many streams are remembered that we have ended: what the peer has sent before it heard of it may still arrive.
const FORGOTTEN: usize = 1024;

/// One connection.
pub(crate) struct Session<R> {
    pub(super) reader: Reader,
    pub(super) state: State<R>,
}

/// How requests use the peer's table of HPACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// The next request inserts its fields.
    Empty,
    /// It has them.
    Filled,
    /// It is not used, because it is smaller than usual. The peer has heard of it, or has not.
    Unused { told: bool },
}

/// What is known of a connection besides the frame that is being read.
pub(crate) struct State<R> {
    pub heads: ResponseHeads,
    /// The open exchanges by rising numbers. The last ones may be unsent.
    pub streams: VecDeque<Stream<R>>,
    pub unsent: usize,
    /// How many exchanges have begun.
    pub begun: u32,
    /// Whether the peer's settings have come, and it lets us begin.
    pub ready: bool,
    pub greeted: bool,
    /// How many exchanges may be open: 0 if nothing further begins.
    pub capacity: usize,
    /// How many the peer allows.
    pub allowed: usize,
    /// What is to be sent that belongs to no exchange, and how many answers to the peer are in it.
    pub control: Vec<u8>,
    pub answers: u32,
    pub table: Table,
    /// The windows: of each new stream and of the connection, for sending; of each stream and of the connection, for receiving.
    pub initial: u32,
    pub connection: SendWindow,
    pub stream_window: u32,
    pub window: ReceiveWindow,
    /// The ids of the streams that may send more of their bodies, in turn. Some may have ended.
    pub senders: VecDeque<u32>,
    /// The numbers of exchanges of whose bodies further parts were given to be sent.
    pub progressed: Vec<u32>,
    /// Streams that ended before the peer knew of it, by their ids.
    forgotten: VecDeque<u32>,
    /// The last stream that the peer processes, if it has said so.
    pub last: Option<u32>,
    /// Why the peer is going away.
    pub parting: Option<Seen>,
    /// Whether the peer has refused exchanges in this call.
    pub refused: bool,
    /// Whether answers are long.
    pub bulk: bool,
    /// Streams whose answers have come further in this call.
    pub touched: Vec<u32>,
}

/// One exchange. Nearly every answer arrives whole and is never in here, and there may be 100,000 streams, so what only others
/// need has its own memory.
pub(crate) struct Stream<R> {
    pub number: u32,
    pub interim: u32,
    pub request: R,
    pub sending: Sending,
    /// The answer, from its final head on.
    pub answer: Option<Box<Answer>>,
}

/// What has come of an answer.
pub(crate) struct Answer {
    pub received: ReceivedAnswer,
    pub kept: Option<Box<Kept>>,
    /// What of it is read event by event, if it is a streamed one.
    pub events: Option<Box<Events>>,
    /// Whether it has no body, whatever its content-length says.
    pub bodiless: bool,
    /// Its content-length, and how much of the body has come.
    pub length: Option<u64>,
    pub came: u64,
    pub window: ReceiveWindow,
    /// How many empty frames have come.
    pub empty: u32,
}

impl Answer {
    pub(super) fn new(
        received: ReceivedAnswer,
        bodiless: bool,
        length: Option<u64>,
        window: u32,
    ) -> Box<Self> {
        let window = ReceiveWindow::new(window);
        Box::new(Self { received, kept: None, events: None, bodiless, length, came: 0, window, empty: 0 })
    }
}

impl<R> Stream<R> {
    /// The id of the stream. A client's are odd.
    #[inline]
    pub(super) fn id(&self) -> u32 {
        self.number * 2 + 1
    }

    /// Whether the whole request is sent, nothing of the answer has come, and nothing distinguishes it from most answers.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.answer.is_none()
            && !self.sending.head_only
            && self.sending.id.is_none()
            && !self.sending.is_left()
    }
}

impl<R: Copy> Session<R> {
    /// A connection that was just made. Heads are read for the field `watch`.
    pub(super) fn new(watch: &'static str, keep_alive: bool, allowance: Allowance) -> Self {
        let Allowance { window, table } = allowance;
        let mut control = PREFACE.to_vec();
        // The usual size of the table need not be said.
        let table_said = Some(table).filter(|table| *table != Allowance::TABLE);
        let settings =
            Settings { table: table_said, push: Some(false), window: Some(window), ..Settings::default() };
        put_settings(&mut control, &settings);
        put_window_update(&mut control, 0, WINDOW - wire::h2::WINDOW);
        let state = State {
            heads: ResponseHeads::with_table(watch, table as usize),
            streams: VecDeque::new(),
            unsent: 0,
            begun: 0,
            ready: false,
            greeted: false,
            capacity: if keep_alive { usize::MAX } else { 1 },
            allowed: usize::MAX,
            control,
            answers: 0,
            table: Table::Empty,
            initial: wire::h2::WINDOW,
            connection: SendWindow::new(wire::h2::WINDOW),
            stream_window: window,
            window: ReceiveWindow::new(WINDOW),
            senders: VecDeque::new(),
            progressed: Vec::new(),
            forgotten: VecDeque::new(),
            last: None,
            parting: None,
            refused: false,
            bulk: false,
            touched: Vec::new(),
        };
        Self { reader: Reader::default(), state }
    }
}

const _: () = assert!(WINDOW <= LARGEST_WINDOW);

impl<R: Copy> State<R> {
    #[inline]
    pub(super) fn standing(&self) -> Standing {
        // A peer that lets nobody begin for now is waited for: 0 would mean that the connection is of no more use.
        let capacity = self.capacity.min(self.allowed.max(1));
        Standing {
            ready: self.ready,
            speaks: !self.control.is_empty(),
            bulk: self.bulk,
            ..Standing::ready(capacity)
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, request: R) {
        let number = self.begun;
        self.streams.push_back(Stream { number, interim: 0, request, sending: Sending::new(), answer: None });
        self.begun += 1;
        self.unsent += 1;
        if self.begun >= MOST_EXCHANGES {
            self.capacity = 0;
        }
    }

    /// Whether another head may be sent.
    #[inline]
    pub(super) fn may_begin(&self) -> bool {
        self.unsent > 0 && self.ready && self.streams.len() - self.unsent < self.allowed
    }

    #[inline]
    pub(super) fn take_control(&mut self, out: &mut Vec<u8>) {
        if !self.control.is_empty() {
            out.append(&mut self.control);
            self.answers = 0;
        }
    }

    /// The place of a stream among those that are open and sent.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        self.look_up(id).map(|(place, _)| place)
    }

    /// A stream among those that are open and sent, and its place.
    #[inline(always)]
    pub(super) fn look_up(&self, id: u32) -> Option<(usize, &Stream<R>)> {
        let first = self.streams.front()?;
        let (place, stream) = if first.id() == id { (0, first) } else { self.find_later(id)? };
        (place < self.streams.len() - self.unsent).then_some((place, stream))
    }

    #[inline(never)]
    fn find_later(&self, id: u32) -> Option<(usize, &Stream<R>)> {
        let place = self.place(id / 2)?;
        self.streams.get(place).filter(|stream| stream.id() == id).map(|stream| (place, stream))
    }

    /// The place of an exchange, sent or not.
    fn place(&self, number: u32) -> Option<usize> {
        // Where nothing has ended between them, the numbers are those of the places.
        let near = number.checked_sub(self.streams.front()?.number)? as usize;
        let is_it = |place: &usize| self.streams.get(*place).is_some_and(|stream| stream.number == number);
        let place = Some(near).filter(is_it);
        place.or_else(|| self.streams.binary_search_by_key(&number, |stream| stream.number).ok())
    }

    /// Whether this stream has never been.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || id / 2 >= self.begun
    }

    /// Whether we have ended this stream, and the peer may not know.
    pub(super) fn is_forgotten(&self, id: u32) -> bool {
        self.forgotten.contains(&id)
    }

    /// Forgets an exchange that has ended; nearly always it is the oldest.
    #[inline(always)]
    pub(super) fn drop(&mut self, place: usize) {
        if place > 0 || self.unsent == self.streams.len() {
            self.remove(place);
        } else {
            self.streams.pop_front();
        }
    }

    /// Takes an exchange that has ended.
    #[inline(never)]
    pub(super) fn remove(&mut self, place: usize) -> Option<Stream<R>> {
        let unsent = place + self.unsent >= self.streams.len();
        let stream = if place == 0 { self.streams.pop_front() } else { self.streams.remove(place) }?;
        self.unsent -= usize::from(unsent);
        Some(stream)
    }

    /// Remembers a stream whose end the peer does not know yet.
    pub(super) fn forget(&mut self, id: u32) {
        if self.forgotten.len() == FORGOTTEN {
            self.forgotten.pop_front();
        }
        self.forgotten.push_back(id);
    }

    /// Tells the peer that a stream has ended.
    pub(super) fn reset(&mut self, id: u32, code: Code) {
        put_reset(&mut self.control, id, code);
        self.forget(id);
    }

    /// Gives up an exchange. The peer answers the ping, if it is still there.
    pub(super) fn cancel(&mut self, number: u64) {
        let place = u32::try_from(number).ok().and_then(|number| self.place(number));
        let sent = place.is_some_and(|place| place + self.unsent < self.streams.len());
        if let Some(stream) = place.and_then(|place| self.remove(place))
            && sent
        {
            self.reset(stream.id(), Code::CANCEL);
            wire::h2::put_ping(&mut self.control, *b"narrows?", false);
        }
    }

    /// Lets the bodies of exchanges up to this one be sent that wait for `100 Continue`. Returns whether there is one.
    pub(super) fn release(&mut self, last: u64) -> bool {
        let mut any = false;
        for place in 0..self.streams.len() {
            let Some(stream) = self.streams.get_mut(place).filter(|stream| u64::from(stream.number) <= last)
            else {
                break;
            };
            any |= std::mem::take(&mut stream.sending.awaits);
            self.queue(place);
        }
        any
    }
}
