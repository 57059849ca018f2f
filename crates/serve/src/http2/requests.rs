//! What arrives of requests.

use std::time::Instant;

use wire::h2::{self, Broken, Code, ReceiveWindow, SendWindow, put_headers, put_status, put_window_update};

use super::answer::Answer;
use super::streams::Stream;
use super::{EMPTY, Request, State};
use crate::Counters;
use crate::http::{Rules, Wants};
use crate::route::Route;

/// An upload of at least this length is worth larger buffers.
const BULK: u64 = 64 * 1024;

impl Request {
    fn new(head: &h2::Request<'_>) -> Self {
        Self {
            route: Route::of(head.path),
            head_only: head.method == b"HEAD",
            request_id: head.watched.map(<[u8]>::to_vec),
            length: head.length,
            received: 0,
            empty: 0,
        }
    }

    /// How many bytes of it are kept.
    pub(super) fn held(&self) -> usize {
        self.route.held() + self.request_id.as_ref().map_or(0, Vec::len)
    }
}

impl Stream {
    /// Takes bytes of the request, of which `room` may be kept. Returns whether they count: those after a refusal do not.
    fn hear(&mut self, (data, end_stream): (&[u8], bool), counted: u32, room: usize) -> Result<bool, Broken> {
        let refused = self.answer.as_ref().map(|answer| answer.early);
        if refused == Some(false) {
            return Err(Broken::new(Code::STREAM_CLOSED, "DATA comes after the end of its request"));
        }
        self.window.receive(counted)?;
        if refused.is_some() {
            return Ok(false);
        }
        let request = &mut self.request;
        request.received += data.len() as u64;
        request.empty += u32::from(data.is_empty() && !end_stream);
        if request.empty > EMPTY {
            let why = "a stream has more than 1,000 empty DATA frames";
            return Err(Broken::new(Code::ENHANCE_YOUR_CALM, why));
        }
        request.route.add(data, room);
        Ok(true)
    }
}

impl State {
    pub(super) fn headers(
        &mut self,
        (id, end_stream): (u32, bool),
        block: &[u8],
        (now, rules): (Instant, &Rules),
        counts: &Counters,
        wants: &mut Wants,
    ) -> Result<(), Broken> {
        if let Some(place) = self.streams.find(id) {
            return match self.heads.trailers(block)? {
                _ if self.streams.get(place).is_some_and(|stream| stream.answer.is_some()) => {
                    Err(Broken::new(Code::STREAM_CLOSED, "HEADERS comes after the end of its request"))
                }
                Ok(()) if end_stream => {
                    self.complete(place, (now, rules), counts, wants);
                    Ok(())
                }
                // Malformed, or a second head.
                Ok(()) | Err(_) => {
                    self.spoil(id, Code::PROTOCOL_ERROR);
                    Ok(())
                }
            };
        }
        if id.is_multiple_of(2) {
            return Err(Broken::new(Code::PROTOCOL_ERROR, "a client begins a stream with an even id"));
        }
        if id <= self.last || self.going.is_some() {
            _ = self.heads.trailers(block)?;
            return if id <= self.last { self.closed(id) } else { Ok(()) };
        }
        self.last = id;
        self.begun += 1;
        let every = |every: Option<u64>| every.is_some_and(|every| self.begun.is_multiple_of(every));
        let refused =
            every(rules.http2.refuse_every) || self.streams.len() >= rules.http2.max_streams as usize;
        let request = self.heads.request(block)?;
        let request = request.map(|head| (Request::new(&head), head.expect_continue));
        let (request, expects) = match request {
            Err(_) => {
                self.spoil(id, Code::PROTOCOL_ERROR);
                return Ok(());
            }
            Ok(_) if refused => {
                self.reset(id, Code::REFUSED_STREAM);
                return Ok(());
            }
            Ok(request) => request,
        };
        wants.bulk |= request.length.is_some_and(|length| length >= BULK);
        let (too_long, send) =
            (request.length.is_some_and(|length| length > rules.body), SendWindow::new(self.initial));
        let window = ReceiveWindow::new(rules.http2.window);
        let place = self.streams.push(Stream::new(id, request, send, window));
        if too_long {
            self.refuse(place, 413, now);
        } else if self.streams.held().all() > rules.room {
            self.refuse(place, 503, now);
        } else if end_stream {
            self.complete(place, (now, rules), counts, wants);
        } else if expects {
            let mut block = Vec::new();
            put_status(&mut block, 100);
            put_headers(&mut self.control, id, &block, false);
        }
        Ok(())
    }

    pub(super) fn data(
        &mut self,
        (id, end_stream): (u32, bool),
        data: &[u8],
        counted: u32,
        (now, rules): (Instant, &Rules),
        counts: &Counters,
        wants: &mut Wants,
    ) -> Result<(), Broken> {
        self.window.receive(counted)?;
        if let Some(by) = self.window.due() {
            put_window_update(&mut self.control, 0, by);
        }
        let Some(place) = self.streams.find(id) else { return self.closed(id) };
        let control = &mut self.control;
        let heard = self.streams.change(place, |stream| {
            let goes_on = stream.hear((data, end_stream), counted, rules.room)?;
            if !end_stream && let Some(by) = stream.window.due() {
                put_window_update(control, id, by);
            }
            Ok::<_, Broken>(goes_on.then_some((stream.request.received, stream.request.length)))
        });
        let Some((received, length)) = heard.transpose()?.flatten() else { return Ok(()) };
        if length.is_some_and(|length| received > length) {
            self.spoil(id, Code::PROTOCOL_ERROR);
        } else if received > rules.body {
            self.refuse(place, 413, now);
        } else if end_stream {
            self.complete(place, (now, rules), counts, wants);
        }
        Ok(())
    }

    /// Answers a request before its end.
    fn refuse(&mut self, place: usize, status: u16, now: Instant) {
        self.streams.change(place, |stream| {
            stream.request.route = Route::Refused(status, "");
            // As over HTTP/1.1, it is not repeated.
            stream.request.request_id = None;
            let mut answer = Answer::new(&mut stream.request, now, 0);
            answer.early = true;
            stream.answer = Some(answer);
        });
        self.queue(place, now);
    }

    /// Answers a complete request.
    fn complete(
        &mut self,
        place: usize,
        (now, rules): (Instant, &Rules),
        counts: &Counters,
        wants: &mut Wants,
    ) {
        let Some(stream) = self.streams.get(place) else { return };
        let id = stream.id;
        if stream.request.length.is_some_and(|length| length != stream.request.received) {
            return self.spoil(id, Code::PROTOCOL_ERROR);
        }
        counts.requested(1);
        wants.whole = true;
        self.served += 1;
        if rules.http2.reset_every.is_some_and(|every| self.served.is_multiple_of(every)) {
            return self.reset(id, INTERNAL_ERROR);
        }
        let weight = self.streams.change(place, |stream| stream.request.route.complete(rules.patience));
        // The answer may be much longer than the request for it.
        if self.streams.held().all().saturating_add(weight.unwrap_or(0)) > rules.room {
            return self.refuse(place, 503, now);
        }
        let number = self.served;
        self.streams.change(place, |stream| {
            stream.answer = Some(Answer::new(&mut stream.request, now, number));
        });
        self.queue(place, now);
        let most = [rules.http2.goaway_after, rules.max_keepalive].into_iter().flatten().min();
        if most.is_some_and(|most| self.served >= most) {
            self.go_away(self.last);
        }
    }
}

const INTERNAL_ERROR: Code = Code(2);
