//! The HTTP endpoints over HTTP/2: many requests at once on a connection, whose answers are sent as soon as they are due and the
//! peer's windows allow it. Pure: bytes in, bytes and deadlines out.

mod answer;
mod requests;
mod streams;

use std::collections::VecDeque;
use std::time::Instant;

use wire::h2::{
    Broken, Code, Event, PREFACE, Reader, ReceiveWindow, RequestHeads, SendWindow, Settings, put_go_away,
    put_ping, put_reset, put_settings, put_settings_ack, put_window_update,
};

use crate::Counters;
use crate::http::{ID, Rules, Wants};
use crate::limits::UNSENT;
use crate::route::Route;
use streams::Streams;

/// What connections of HTTP/2 do, besides answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2 {
    /// How many streams a peer may have open. More are refused.
    pub max_streams: u32,
    /// The number of requests after which the server says GOAWAY; `None` means never.
    pub goaway_after: Option<u64>,
    /// Every so many-th request of a connection is refused unprocessed.
    pub refuse_every: Option<u64>,
    /// Every so many-th request of a connection is answered with a reset.
    pub reset_every: Option<u64>,
    /// The window of each stream and of a connection, in bytes.
    pub window: u32,
}

impl Http2 {
    /// No faults, and room for much.
    pub const USUAL: Self = Self {
        max_streams: 1000,
        goaway_after: None,
        refuse_every: None,
        reset_every: None,
        window: 16 << 20,
    };
}

/// How many streams are remembered that were reset here: what the peer has sent before it heard of it may still arrive.
const FORGOTTEN: usize = 1024;
/// The most answers to pings and settings that wait to be sent, and the most empty frames of a request.
const ANSWERS: u32 = 1000;
const EMPTY: u32 = 1000;
/// The most streams that a peer may end before their answers, by a reset (CVE-2023-44487) or by an error for which they are reset
/// here (CVE-2025-8671). Each answer that is sent makes up for some of them. It does not make up for all, because a request and
/// its reset may come in two reads, and then the request is answered in between.
const RESETS: u32 = 1000;
const MADE_UP_FOR: u64 = 10;

/// One connection.
pub(crate) struct Conversation {
    /// How much of the preface has come.
    greeted: usize,
    reader: Reader,
    state: State,
}

/// What is known of a connection besides the frame that is being read.
struct State {
    heads: RequestHeads,
    streams: Streams,
    /// Whether the peer's settings have come.
    set: bool,
    /// The last stream that the peer has begun.
    last: u32,
    /// What is to be sent before answers, and how many answers to the peer's questions are in it.
    control: Vec<u8>,
    questions: u32,
    /// Streams that the peer has ended before their answers, and for which no answer has made up.
    resets: u32,
    /// Whether a part of an answer was sent since somebody has asked.
    moved: bool,
    /// The windows: of each new stream and of the connection, for sending, and of the connection for receiving.
    initial: u32,
    connection: SendWindow,
    window: ReceiveWindow,
    /// Requests that have begun and those that were answered.
    begun: u64,
    served: u64,
    forgotten: VecDeque<u32>,
    /// The last stream that is served, if no further ones are.
    going: Option<u32>,
    /// Whether the connection ends when all answers are sent.
    ending: bool,
    /// Whether the peer sends nothing more.
    told: bool,
}

/// A request being read.
struct Request {
    route: Route,
    head_only: bool,
    request_id: Option<Vec<u8>>,
    length: Option<u64>,
    received: u64,
    empty: u32,
}

impl Conversation {
    pub(crate) fn new(rules: &Rules) -> Self {
        let Http2 { max_streams, window, .. } = rules.http2;
        let mut control = Vec::new();
        put_settings(
            &mut control,
            &Settings { streams: Some(max_streams), window: Some(window), ..Settings::default() },
        );
        if window > wire::h2::WINDOW {
            put_window_update(&mut control, 0, window - wire::h2::WINDOW);
        }
        let state = State {
            heads: RequestHeads::watching(ID),
            streams: Streams::default(),
            set: false,
            last: 0,
            control,
            questions: 0,
            resets: 0,
            moved: false,
            initial: wire::h2::WINDOW,
            connection: SendWindow::new(wire::h2::WINDOW),
            window: ReceiveWindow::new(window.max(wire::h2::WINDOW)),
            begun: 0,
            served: 0,
            forgotten: VecDeque::new(),
            going: None,
            ending: false,
            told: false,
        };
        Self { greeted: 0, reader: Reader::default(), state }
    }

    pub(crate) fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counters) -> Wants {
        let (mut wants, mut rest) = (Wants::default(), bytes);
        let Self { greeted, reader, state } = self;
        let preface = PREFACE.get(*greeted..).unwrap_or_default();
        let (come, after) = rest.split_at_checked(preface.len()).unwrap_or((rest, &[]));
        if !preface.starts_with(come) {
            state.give_up(Broken::new(Code::PROTOCOL_ERROR, "the preface is wrong"));
            return wants;
        }
        (*greeted, rest) = (*greeted + come.len(), after);
        while !state.ending || state.going.is_some() {
            let heard = match reader.push(rest) {
                Ok(step) if step.event == Event::NeedMore => break,
                Ok(step) => {
                    rest = rest.get(step.consumed..).unwrap_or_default();
                    state
                        .hear(step.event, (now, rules), counts, &mut wants)
                        .and_then(|()| state.look_at_resets())
                }
                Err(broken) => Err(broken),
            };
            if let Err(broken) = heard {
                state.give_up(broken);
                break;
            }
        }
        wants
    }

    pub(crate) fn ended(&mut self) {
        (self.state.ending, self.state.told) = (true, true);
        // What is incomplete stays so.
        self.state.streams.remove_incomplete();
    }

    /// Appends what is due and may be sent. Returns how many answers are complete with it.
    pub(crate) fn answers(&mut self, now: Instant, out: &mut Vec<u8>) -> u64 {
        let state = &mut self.state;
        if !state.control.is_empty() {
            out.append(&mut state.control);
            state.questions = 0;
        }
        let before = out.len();
        let complete = state.answer(now, out);
        state.moved |= out.len() > before;
        let made_up_for = u32::try_from(complete.saturating_mul(MADE_UP_FOR)).unwrap_or(u32::MAX);
        state.resets = state.resets.saturating_sub(made_up_for);
        complete
    }

    /// Whether answers came further since the last call. What the peer only asks the connection, such as PING, moves nothing.
    pub(crate) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.state.moved)
    }

    /// The bytes of the answers that wait, and those that are kept of requests.
    pub(crate) fn held(&self) -> (usize, usize) {
        let held = self.state.streams.held();
        // Answers that wait for the peer's windows are bounded by what requests may ask for.
        (self.state.control.len() + held.answers.min(UNSENT / 2), held.requests + held.answers)
    }

    /// When the next answer, or the next piece of one, is due. None if something already is: then the peer does not take it.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.state.streams.next_due().filter(|due| *due > now)
    }

    /// Whether the peer may still be sending when the server closes.
    pub(crate) fn is_cut_short(&self) -> bool {
        !self.state.told
    }

    pub(crate) fn over(&self) -> bool {
        self.state.ending && self.state.streams.len() == 0 && self.state.control.is_empty()
    }
}

impl State {
    /// Gives up the connection. The peer is told why.
    fn give_up(&mut self, broken: Broken) {
        put_go_away(&mut self.control, self.last, broken.code, broken.why);
        self.streams.clear();
        (self.ending, self.going) = (true, None);
    }

    /// Serves no further streams after this one.
    fn go_away(&mut self, last: u32) {
        if self.going.is_none() {
            put_go_away(&mut self.control, last, Code::NO_ERROR, "");
            (self.going, self.ending) = (Some(last), true);
        }
    }

    /// Resets a stream.
    fn reset(&mut self, id: u32, code: Code) {
        if let Some(place) = self.streams.find(id) {
            self.streams.remove(place);
        }
        put_reset(&mut self.control, id, code);
        if self.forgotten.len() == FORGOTTEN {
            self.forgotten.pop_front();
        }
        self.forgotten.push_back(id);
    }

    /// Resets a stream whose peer has broken a rule.
    fn spoil(&mut self, id: u32, code: Code) {
        self.resets += 1;
        self.reset(id, code);
    }

    /// Checks that the peer takes answers, too.
    fn look_at_resets(&self) -> Result<(), Broken> {
        if self.resets > RESETS {
            let why = "more than 1,000 streams were reset before their answers";
            return Err(Broken::new(Code::ENHANCE_YOUR_CALM, why));
        }
        Ok(())
    }

    fn hear(
        &mut self,
        event: Event<'_>,
        (now, rules): (Instant, &Rules),
        counts: &Counters,
        wants: &mut Wants,
    ) -> Result<(), Broken> {
        if !self.set && !matches!(event, Event::Settings(_)) {
            return Err(Broken::new(Code::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
        }
        match event {
            Event::Headers { stream, block, end_stream } => {
                self.headers((stream, end_stream), block, (now, rules), counts, wants)
            }
            Event::Data { stream, data, counted, end_stream } => {
                self.data((stream, end_stream), data, counted, (now, rules), counts, wants)
            }
            Event::Reset { stream, .. } => {
                self.known(stream)?;
                if let Some(place) = self.streams.find(stream) {
                    self.streams.remove(place);
                    self.resets += 1;
                }
                Ok(())
            }
            Event::Spoiled { stream, code, .. } => {
                if code != Code::FRAME_SIZE_ERROR && self.streams.find(stream).is_none() {
                    // Advice about a stream that is not open, or an update of a window that is not.
                    return self.known(stream);
                }
                self.spoil(stream, code);
                Ok(())
            }
            Event::WindowUpdate { stream: 0, by } => self.connection.change(i64::from(by)),
            Event::WindowUpdate { stream, by } => {
                self.known(stream)?;
                let Some(place) = self.streams.find(stream) else { return Ok(()) };
                match self.streams.change(place, |open| open.send.change(i64::from(by))) {
                    Some(Err(broken)) => self.spoil(stream, broken.code),
                    _ => self.queue(place, now),
                }
                Ok(())
            }
            Event::Settings(settings) => {
                self.set = true;
                if let Some(window) = settings.window {
                    let by = i64::from(window) - i64::from(self.initial);
                    self.initial = window;
                    self.streams.change_windows(by)?;
                    (0..self.streams.len()).for_each(|place| self.queue(place, now));
                }
                put_settings_ack(&mut self.control);
                self.count_question()
            }
            Event::Ping(data) => {
                put_ping(&mut self.control, data, true);
                self.count_question()
            }
            Event::GoAway { .. } => {
                self.ending = true;
                self.going.get_or_insert(self.last);
                Ok(())
            }
            Event::SettingsAck | Event::Pong(_) | Event::Priority { .. } | Event::NeedMore => Ok(()),
        }
    }

    fn count_question(&mut self) -> Result<(), Broken> {
        self.questions += 1;
        if self.questions > ANSWERS {
            let why = "more than 1,000 PING and SETTINGS wait for their answers";
            return Err(Broken::new(Code::ENHANCE_YOUR_CALM, why));
        }
        Ok(())
    }

    /// Checks that a stream has been begun.
    fn known(&self, id: u32) -> Result<(), Broken> {
        if id > self.last || id.is_multiple_of(2) {
            return Err(Broken::new(Code::PROTOCOL_ERROR, "a frame is on a stream that nobody has begun"));
        }
        Ok(())
    }

    /// Checks that a stream that is not open may still get frames.
    fn closed(&self, id: u32) -> Result<(), Broken> {
        if self.going.is_some_and(|last| id > last) {
            return Ok(());
        }
        self.known(id)?;
        if self.forgotten.contains(&id) {
            return Ok(());
        }
        Err(Broken::new(Code::STREAM_CLOSED, "a frame is on a stream that has ended"))
    }
}

#[cfg(test)]
mod tests;
