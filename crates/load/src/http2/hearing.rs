//! What the frames of the peer mean for the exchanges of a connection.

use answers::Head;
use wire::h2::{
    Broken, Code, Event, Malformed, Message, Settings, put_go_away, put_ping, put_settings_ack,
    put_window_update,
};
use wire::http::{BodyLength, ResponseHead};

use super::session::{Answer, Session, State, Table};
use super::source::Source;
use super::{ANSWERS, EMPTY, INTERIM, Requests};
use crate::fault::{ErrorClass, Fault, Frame, Seen};
use crate::http::answer::ReceivedAnswer;
use crate::http::inspect::Kept;
use crate::protocol::{Mark, Outcomes, Success};

/// Why a stream fails that breaks a rule.
fn malformed(wrong: Malformed) -> Fault {
    broken(Broken::new(Code::PROTOCOL_ERROR, wrong.0))
}

fn broken(broken: Broken) -> Fault {
    Fault::new(ErrorClass::Protocol, Seen::Http2(broken))
}

fn over(limit: u32, what: &'static str) -> Fault {
    Fault::new(ErrorClass::Protocol, Seen::Limit { of: u64::from(limit), what })
}

impl<S: Source> Requests<S> {
    /// Hears all frames in these bytes.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub(super) fn hear_all(
        &mut self,
        session: &mut Session<S::Request>,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        let heard = self.hear_frames(session, bytes, outcomes);
        if std::mem::take(&mut session.state.refused) {
            // They begin anew in their order.
            outcomes.marks.sort_by_key(|(number, mark)| if *mark == Mark::Refused { *number } else { 0 });
        }
        heard
    }

    fn hear_frames(
        &mut self,
        session: &mut Session<S::Request>,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        let Session { reader, state } = session;
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(message) = reader.message(rest)
                && self.is_right(state, &message, outcomes)
            {
                rest = rest.get(message.consumed..).unwrap_or_default();
                continue;
            }
            let heard = match reader.push(rest) {
                Ok(step) if step.event == Event::NeedMore => break,
                Ok(step) => {
                    rest = rest.get(step.consumed..).unwrap_or_default();
                    self.hear(state, step.event, outcomes)
                }
                Err(broken) => Err(broken),
            };
            if let Err(broken) = heard {
                put_go_away(&mut state.control, 0, broken.code, broken.why);
                // Nothing else is sent after it.
                state.ready = false;
                return Err(Box::new(unreadable(state.greeted, bytes, broken)));
            }
        }
        if !state.touched.is_empty() {
            mark(state, outcomes);
        }
        Ok(())
    }

    /// The usual case: a whole answer to a request that is sent, whose head is the one before again, and which surely is right.
    /// It ends its exchange. False means nothing and changes nothing: the answer must be heard frame by frame.
    #[inline(always)]
    fn is_right(
        &mut self,
        state: &mut State<S::Request>,
        message: &Message<'_>,
        outcomes: &mut Outcomes,
    ) -> bool {
        let Some((place, stream)) = state.look_up(message.stream) else { return false };
        if !stream.is_plain() || !state.heads.again(message.block) {
            return false;
        }
        let ((status, announced), length) = (state.heads.last(), message.body.len() as u64);
        // Final heads that allow a body. Others are rare, or no success.
        let fits =
            status >= 200 && !matches!(status, 204 | 304) && announced.is_none_or(|other| other == length);
        let judge = self.source.judge(&mut self.judge, stream.request);
        let has_room = length <= u64::from(state.stream_window) && state.window.has_room(length as u32);
        if !fits || !judge.accepts_length(status, length) || !has_room {
            return false;
        }
        let payload = if stream.sending.length > 0 { stream.sending.length } else { length };
        let number = u64::from(stream.number);
        if let Some(by) = state.window.receive(length as u32).ok().and_then(|()| state.window.due()) {
            put_window_update(&mut state.control, 0, by);
        }
        state.heads.repeat();
        state.drop(place);
        outcomes.end(number, Ok(Success { units: 1, payload }));
        true
    }

    #[inline(never)]
    fn hear(
        &mut self,
        state: &mut State<S::Request>,
        event: Event<'_>,
        outcomes: &mut Outcomes,
    ) -> Result<(), Broken> {
        if !state.greeted && !matches!(event, Event::Settings(_)) {
            return Err(Broken::new(Code::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
        }
        match event {
            Event::Headers { stream, block, end_stream } => {
                self.headers(state, (stream, end_stream), block, outcomes)
            }
            Event::Data { stream, data, counted, end_stream } => {
                self.data(state, (stream, end_stream), data, counted, outcomes)
            }
            Event::Reset { stream, code } => {
                match state.find(stream) {
                    Some(place) => {
                        let class = match code {
                            Code::REFUSED_STREAM => ErrorClass::Busy,
                            _ => ErrorClass::Reset,
                        };
                        let fault = Fault::new(class, Seen::peer(Frame::ResetStream, code, b""));
                        fail(state, place, fault, None, outcomes);
                    }
                    None => known(state, stream)?,
                }
                Ok(())
            }
            Event::Spoiled { stream, code, why } => {
                match state.find(stream) {
                    Some(place) => {
                        fail(state, place, broken(Broken::new(code, why)), Some(code), outcomes);
                    }
                    None => known(state, stream)?,
                }
                Ok(())
            }
            Event::WindowUpdate { stream, by } => open_window(state, stream, by, outcomes),
            Event::Settings(settings) => apply(state, settings),
            Event::Ping(data) => {
                put_ping(&mut state.control, data, true);
                count_answer(state)
            }
            Event::GoAway { last, code, text } => go_away(state, last, (code, text), outcomes),
            Event::SettingsAck | Event::Pong(_) | Event::Priority { .. } | Event::NeedMore => Ok(()),
        }
    }

    fn headers(
        &mut self,
        state: &mut State<S::Request>,
        (id, end_stream): (u32, bool),
        block: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Broken> {
        let Some(place) = state.find(id) else {
            // Each block changes the table.
            _ = state.heads.trailers(block)?;
            return closed(state, id);
        };
        let Some(stream) = state.streams.get_mut(place) else { return Ok(()) };
        if stream.answer.is_some() {
            match state.heads.trailers(block)? {
                Ok(()) if end_stream => self.finish(state, place, outcomes),
                Ok(()) => spoil(state, place, Malformed("a second head comes after the first"), outcomes),
                Err(wrong) => spoil(state, place, wrong, outcomes),
            }
            return Ok(());
        }
        let head = match state.heads.response(block)? {
            Ok(head) => head,
            Err(wrong) => {
                spoil(state, place, wrong, outcomes);
                return Ok(());
            }
        };
        if head.status < 200 {
            let status = head.status;
            interim(state, place, (status, end_stream), outcomes);
            return Ok(());
        }
        let bodiless = stream.sending.head_only || matches!(head.status, 204 | 304);
        let body = match head.length {
            _ if bodiless => BodyLength::None,
            Some(length) => BodyLength::Exact(length),
            None => BodyLength::UntilClose,
        };
        let (status, watched, bytes) = (head.status, head.watched, head.text);
        let seen = ResponseHead { status, keep_alive: true, body, watched, bytes };
        let received = ReceivedAnswer::begin(&seen, stream.sending.id.as_ref());
        state.bulk |= received.bulk;
        let mut answer = Answer::new(received, bodiless, head.length, state.stream_window);
        let judge = self.source.judge(&mut self.judge, stream.request);
        let admitted = judge.admit(&seen, &mut answer.kept);
        if judge.may_stream(head.length, end_stream) {
            answer.events = judge.stream(Head::http1(status, bytes));
        }
        stream.answer = Some(answer);
        self.go_on(state, place, (id, end_stream), admitted, outcomes);
        Ok(())
    }

    fn data(
        &mut self,
        state: &mut State<S::Request>,
        (id, end_stream): (u32, bool),
        data: &[u8],
        counted: u32,
        outcomes: &mut Outcomes,
    ) -> Result<(), Broken> {
        state.window.receive(counted)?;
        if let Some(by) = state.window.due() {
            put_window_update(&mut state.control, 0, by);
        }
        let Some(place) = state.find(id) else { return closed(state, id) };
        let Some(stream) = state.streams.get_mut(place) else { return Ok(()) };
        let Some(answer) = &mut stream.answer else {
            spoil(state, place, Malformed("DATA comes before the head of its answer"), outcomes);
            return Ok(());
        };
        answer.window.receive(counted)?;
        if !end_stream && let Some(by) = answer.window.due() {
            put_window_update(&mut state.control, id, by);
        }
        if data.is_empty() && !end_stream {
            answer.empty += 1;
            if answer.empty > EMPTY {
                return Err(Broken::new(
                    Code::ENHANCE_YOUR_CALM,
                    "a stream has more than 1,000 empty DATA frames",
                ));
            }
        }
        answer.came += data.len() as u64;
        let wrong = if answer.bodiless && !data.is_empty() {
            Some("an answer has a body that must not")
        } else if answer.length.is_some_and(|length| answer.came > length) {
            Some("a body is longer than its content-length")
        } else {
            None
        };
        if let Some(why) = wrong {
            spoil(state, place, Malformed(why), outcomes);
            return Ok(());
        }
        let judge = self.source.judge(&mut self.judge, stream.request);
        let added = judge.add(&mut answer.received, data, &mut answer.kept, &mut answer.events);
        self.go_on(state, place, (id, end_stream), added, outcomes);
        Ok(())
    }

    /// Handles an answer that has come further, after what has come of it was judged.
    #[inline]
    fn go_on(
        &mut self,
        state: &mut State<S::Request>,
        place: usize,
        (id, end_stream): (u32, bool),
        judged: Result<(), Fault>,
        outcomes: &mut Outcomes,
    ) {
        match judged {
            Err(fault) => fail(state, place, fault, Some(Code::CANCEL), outcomes),
            Ok(()) if end_stream => self.finish(state, place, outcomes),
            Ok(()) => state.touched.push(id),
        }
    }

    /// Judges a complete answer.
    fn finish(&mut self, state: &mut State<S::Request>, place: usize, outcomes: &mut Outcomes) {
        let Some(stream) = state.streams.get_mut(place) else { return };
        let Some(answer) = &mut stream.answer else { return };
        if !answer.bodiless && answer.length.is_some_and(|length| length != answer.came) {
            return spoil(state, place, Malformed("a body is shorter than its content-length"), outcomes);
        }
        let judge = self.source.judge(&mut self.judge, stream.request);
        let verdict = judge.verdict(&answer.received, Kept::message(answer.kept.as_deref()));
        let mut result = judge.with_stream(verdict, answer.events.as_deref_mut());
        if let Some(events) = &mut answer.events {
            outcomes.marks.push((u64::from(stream.number), Mark::Streaming(events.brought())));
        }
        let (number, id, sent, early) =
            (stream.number, stream.id(), stream.sending.length, stream.sending.is_left());
        state.drop(place);
        if early {
            state.reset(id, Code::CANCEL);
            if result.is_ok() {
                // The bytes that were not sent would count as work that was done.
                result = Err(Fault::new(ErrorClass::Protocol, Seen::Early));
            }
        }
        let payload = |length| if sent > 0 { sent } else { length };
        let success = |length| Success { units: 1, payload: payload(length) };
        outcomes.end(u64::from(number), result.map(success));
        if !self.keep_alive {
            state.capacity = 0;
        }
    }
}

/// Says how far answers have come that have not ended.
#[cold]
fn mark<R: Copy>(state: &mut State<R>, outcomes: &mut Outcomes) {
    for index in 0..state.touched.len() {
        if let Some(place) = state.touched.get(index).and_then(|id| state.find(*id))
            && let Some(stream) = state.streams.get_mut(place)
        {
            let events = stream.answer.as_mut().and_then(|answer| answer.events.as_mut());
            let events = events.map(|events| Mark::Streaming(events.brought()));
            outcomes.marks.push((u64::from(stream.number), events.unwrap_or(Mark::Answering)));
        }
    }
    state.touched.clear();
}

/// What is wrong with the first bytes, or with later ones.
fn unreadable(greeted: bool, bytes: &[u8], found: Broken) -> Fault {
    let seen = match bytes {
        _ if greeted => Seen::Http2(found),
        [b'H', b'T', b'T', b'P', b'/', b'1', ..] => Seen::SpeaksHttp1,
        // The beginning of an alert.
        [21, 3, ..] => Seen::SpeaksTls,
        _ => Seen::bytes(bytes),
    };
    Fault::new(ErrorClass::Protocol, seen)
}

/// A stream that is not open: it must have been.
fn known<R: Copy>(state: &State<R>, id: u32) -> Result<(), Broken> {
    if state.is_idle(id) {
        return Err(Broken::new(Code::PROTOCOL_ERROR, "a frame is on a stream that nobody has begun"));
    }
    Ok(())
}

/// A message on a stream that is not open: the peer may not know yet that we have ended it.
fn closed<R: Copy>(state: &State<R>, id: u32) -> Result<(), Broken> {
    known(state, id)?;
    if !state.is_forgotten(id) {
        return Err(Broken::new(Code::STREAM_CLOSED, "a frame is on a stream that has ended"));
    }
    Ok(())
}

/// Fails one exchange. The peer is told with a code, if there is one.
#[cold]
fn fail<R: Copy>(
    state: &mut State<R>,
    place: usize,
    fault: Fault,
    code: Option<Code>,
    outcomes: &mut Outcomes,
) {
    let Some(stream) = state.remove(place) else { return };
    if let Some(code) = code {
        state.reset(stream.id(), code);
    }
    outcomes.end(u64::from(stream.number), Err(fault));
}

/// Fails one exchange whose answer breaks a rule.
#[cold]
fn spoil<R: Copy>(state: &mut State<R>, place: usize, wrong: Malformed, outcomes: &mut Outcomes) {
    fail(state, place, malformed(wrong), Some(Code::PROTOCOL_ERROR), outcomes);
}

/// Handles an interim answer.
fn interim<R: Copy>(
    state: &mut State<R>,
    place: usize,
    (status, end_stream): (u16, bool),
    outcomes: &mut Outcomes,
) {
    let Some(stream) = state.streams.get_mut(place) else { return };
    stream.interim += 1;
    if end_stream {
        return spoil(state, place, Malformed("an answer ends with an interim head"), outcomes);
    }
    if status == 101 {
        return spoil(state, place, Malformed("status 101, which HTTP/2 does not have"), outcomes);
    }
    if stream.interim > INTERIM {
        return fail(state, place, over(INTERIM, "interim answers"), Some(Code::CANCEL), outcomes);
    }
    outcomes.marks.push((u64::from(stream.number), Mark::Interim));
    if status == 100 {
        stream.sending.awaits = false;
        state.queue(place);
    }
}

/// Lets more be sent.
fn open_window<R: Copy>(
    state: &mut State<R>,
    stream: u32,
    by: u32,
    outcomes: &mut Outcomes,
) -> Result<(), Broken> {
    if stream == 0 {
        return state.connection.change(i64::from(by));
    }
    let Some(place) = state.find(stream) else { return known(state, stream) };
    let open = state.streams.get_mut(place);
    match open.map_or(Ok(()), |open| open.sending.window.change(i64::from(by))) {
        Ok(()) => state.queue(place),
        Err(wrong) => fail(state, place, broken(wrong), Some(wrong.code), outcomes),
    }
    Ok(())
}

/// Counts an answer to the peer that waits to be sent.
fn count_answer<R>(state: &mut State<R>) -> Result<(), Broken> {
    state.answers += 1;
    if state.answers > ANSWERS {
        return Err(Broken::new(
            Code::ENHANCE_YOUR_CALM,
            "more than 1,000 PING and SETTINGS wait for their answers",
        ));
    }
    Ok(())
}

/// Takes over the peer's settings.
fn apply<R: Copy>(state: &mut State<R>, settings: Settings) -> Result<(), Broken> {
    if settings.push == Some(true) {
        return Err(Broken::new(Code::PROTOCOL_ERROR, "a server enables pushes"));
    }
    if let Some(streams) = settings.streams {
        state.allowed = streams as usize;
    }
    if let Some(window) = settings.window {
        let by = i64::from(window) - i64::from(state.initial);
        state.initial = window;
        let sent = state.streams.len() - state.unsent;
        state.streams.iter_mut().take(sent).try_for_each(|stream| stream.sending.window.change(by))?;
        (0..sent).for_each(|place| state.queue(place));
    }
    if settings.table.is_some_and(|table| (table as usize) < wire::h2::TABLE) {
        // Whatever is in the peer's table is not used any more.
        state.table = Table::Unused { told: false };
    }
    (state.greeted, state.ready) = (true, state.ready || state.allowed > 0);
    put_settings_ack(&mut state.control);
    count_answer(state)
}

/// The peer accepts no further exchanges. Those that it has not processed begin anew.
fn go_away<R: Copy>(
    state: &mut State<R>,
    last: u32,
    (code, text): (Code, &[u8]),
    outcomes: &mut Outcomes,
) -> Result<(), Broken> {
    if state.last.is_some_and(|before| last > before) {
        return Err(Broken::new(Code::PROTOCOL_ERROR, "the last stream of GOAWAY grows"));
    }
    (state.last, state.capacity) = (Some(last), 0);
    if code != Code::NO_ERROR {
        state.parting = Some(Seen::peer(Frame::GoAway, code, text));
    }
    while state.streams.back().is_some_and(|stream| state.unsent > 0 || stream.id() > last) {
        let Some(place) = state.streams.len().checked_sub(1) else { break };
        let sent = state.unsent == 0;
        let Some(stream) = state.remove(place) else { break };
        if sent {
            state.forget(stream.id());
        }
        outcomes.marks.push((u64::from(stream.number), Mark::Refused));
        state.refused = true;
    }
    Ok(())
}
