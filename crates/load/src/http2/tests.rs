//! Tests what frames mean for exchanges, without sockets.

mod costs;
mod properties;

use wire::h2::{
    Code, Event, Flags, Kind, Reader, Settings, put_field, put_frame_head, put_go_away, put_headers,
    put_ping, put_reset, put_settings, put_status, put_window_update,
};

use super::*;
use crate::protocol::{End, Mark};
use crate::target::{self, Expect};

fn target() -> Http {
    Http { expect: Expect::exactly("ok"), http2: true, ..Http::get("h", "/") }
}

type Ended = (u64, Result<(), (ErrorClass, String)>);
/// What the peer sends, and the class and a part of the evidence of the fault that it is.
type Row = (Vec<u8>, Option<(ErrorClass, &'static str)>);

/// A connection whose peer has sent its settings.
struct Peer {
    http: Requests<Same>,
    session: Session<()>,
    outcomes: Outcomes,
    /// What was sent, after the preface.
    sent: Vec<u8>,
}

impl Peer {
    fn with(target: &Http, settings: &Settings) -> Self {
        let mut http = Requests::new(target, 0).expect("a request that can be written");
        let session = http.open(0, None);
        let mut peer = Self { http, session, outcomes: Outcomes::default(), sent: Vec::new() };
        assert!(!peer.http.standing(&peer.session).ready, "the peer's settings come first");
        peer.pump();
        assert!(peer.sent.starts_with(wire::h2::PREFACE));
        peer.sent.clear();
        let mut bytes = Vec::new();
        put_settings(&mut bytes, settings);
        peer.hear(&bytes).expect("settings");
        peer.pump();
        peer.sent.clear();
        peer
    }

    fn new(target: &Http) -> Self {
        Self::with(target, &Settings::default())
    }

    /// Begins so many exchanges.
    fn begin(mut self, count: usize) -> Self {
        (0..count).for_each(|_| self.http.begin(&mut self.session, ()));
        self.pump();
        self
    }

    fn pump(&mut self) {
        while let Next::Send(payload) = self.http.next(&mut self.session, false) {
            self.sent.extend_from_slice(payload.bytes());
            self.http.sent(payload);
        }
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.http.receive(&mut self.session, bytes, &mut self.outcomes).map_err(|fault| *fault)
    }

    /// What has ended, and how.
    fn ends(&mut self) -> Vec<Ended> {
        let seen = |fault: Fault| (fault.class, fault.to_string());
        let ends = self.outcomes.ends.drain(..);
        ends.map(|End { id, result }| (id, result.map(|_| ()).map_err(seen))).collect()
    }

    /// The frames that were sent.
    fn frames(&self) -> Vec<String> {
        let (mut reader, mut rest, mut all) = (Reader::default(), self.sent.as_slice(), Vec::new());
        loop {
            let step = reader.push(rest).expect("right frames");
            rest = &rest[step.consumed..];
            match step.event {
                Event::NeedMore => return all,
                Event::Headers { stream, end_stream, .. } => all.push(format!("head {stream} {end_stream}")),
                Event::Data { stream, data, end_stream, .. } => {
                    all.push(format!("data {stream} {} {end_stream}", data.len()));
                }
                other => all.push(format!("{other:?}")),
            }
        }
    }
}

fn head(stream: u32, fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    fields.iter().for_each(|(name, value)| put_field(&mut block, name.as_bytes(), value.as_bytes()));
    put_headers(&mut out, stream, &block, ends);
    out
}

fn data(stream: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let flags = if ends { Flags::END_STREAM } else { Flags::NONE };
    put_frame_head(&mut out, bytes.len(), Kind::Data, flags, stream);
    out.extend_from_slice(bytes);
    out
}

fn ok(stream: u32) -> Vec<u8> {
    [head(stream, &[(":status", "200")], false), data(stream, b"ok", true)].concat()
}

fn put(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn answers_come_in_any_order_and_each_kind_has_its_class() {
    let status = (":status", "200");
    let table: Vec<Row> = vec![
        (ok(1), None),
        ([head(1, &[status], false), data(1, b"o", false), data(1, b"k", true)].concat(), None),
        ([head(1, &[(":status", "103")], false), ok(1)].concat(), None),
        ([head(1, &[status], false), data(1, b"ok", false), head(1, &[("t", "1")], true)].concat(), None),
        ([head(1, &[status], false), data(1, b"no", true)].concat(), Some((ErrorClass::WrongContent, ""))),
        ([head(1, &[status], false), data(1, b"o", true)].concat(), Some((ErrorClass::Length, ""))),
        (head(1, &[(":status", "500")], true), Some((ErrorClass::Status, "status 500"))),
        (head(1, &[("a", "b")], true), Some((ErrorClass::Protocol, "no status"))),
        (data(1, b"ok", true), Some((ErrorClass::Protocol, "before the head"))),
        (
            [head(1, &[status, ("content-length", "3")], false), data(1, b"ok", true)].concat(),
            Some((ErrorClass::Protocol, "shorter")),
        ),
        (
            [head(1, &[status, ("content-length", "1")], false), data(1, b"ok", true)].concat(),
            Some((ErrorClass::Protocol, "longer")),
        ),
        (head(1, &[(":status", "103")], true), Some((ErrorClass::Protocol, "ends with an interim"))),
        (head(1, &[(":status", "101")], false), Some((ErrorClass::Protocol, "101"))),
        (
            [head(1, &[status], false), head(1, &[status], true)].concat(),
            Some((ErrorClass::Protocol, "among the trailers")),
        ),
        (head(1, &[status, ("connection", "close")], false), Some((ErrorClass::Protocol, "HTTP/1.1"))),
        (
            put(|out| put_reset(out, 1, Code::REFUSED_STREAM)),
            Some((ErrorClass::Busy, "RST_STREAM REFUSED_STREAM")),
        ),
        (put(|out| put_reset(out, 1, Code(2))), Some((ErrorClass::Reset, "RST_STREAM INTERNAL_ERROR"))),
        (
            put(|out| put_window_update(out, 1, (1 << 31) - 1)),
            Some((ErrorClass::Protocol, "FLOW_CONTROL_ERROR")),
        ),
    ];
    for (bytes, wanted) in table {
        for cut in [1, bytes.len()] {
            let mut peer = Peer::new(&target()).begin(2);
            // The other exchange ends first, and the connection goes on.
            peer.hear(&ok(3)).expect("the second");
            bytes.chunks(cut).for_each(|piece| peer.hear(piece).expect("one exchange alone fails"));
            let ends = peer.ends();
            assert_eq!((ends.len(), &ends[0]), (2, &(1, Ok(()))), "{ends:?}");
            let got = ends[1].1.clone().err();
            assert_eq!(got.as_ref().map(|(class, _)| *class), wanted.map(|(class, _)| class), "{ends:?}");
            assert!(got.is_none_or(|(_, text)| text.contains(wanted.expect("a fault").1)), "{ends:?}");
            let mut peer = peer.begin(1);
            peer.hear(&ok(5)).expect("the third");
            assert_eq!(peer.ends(), [(2, Ok(()))]);
        }
    }
}

#[test]
fn what_breaks_the_connection_is_named_and_told() {
    let table: [(Vec<u8>, &str); 6] = [
        (ok(7), "nobody has begun"),
        (ok(2), "nobody has begun"),
        ([ok(1), ok(1)].concat(), "STREAM_CLOSED"),
        (put(|out| put_settings(out, &Settings { push: Some(true), ..Settings::default() })), "pushes"),
        (put(|out| put_window_update(out, 0, (1 << 31) - 1)), "FLOW_CONTROL_ERROR"),
        (
            head(1, &[(":status", "200")], true)[..9].iter().copied().chain([0x80]).collect(),
            "COMPRESSION_ERROR",
        ),
    ];
    for (bytes, text) in table {
        let mut peer = Peer::new(&target()).begin(2);
        let fault = peer.hear(&bytes).expect_err(text);
        assert_eq!(fault.class, ErrorClass::Protocol);
        assert!(fault.to_string().contains(text), "{fault}");
        peer.sent.clear();
        peer.pump();
        assert!(peer.frames().iter().any(|frame| frame.starts_with("GoAway")), "{:?}", peer.frames());
    }
    let mut http = Requests::new(&target(), 0).expect("a request");
    let mut session = http.open(0, None);
    let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    let fault = http.receive(&mut session, answer, &mut Outcomes::default()).expect_err("no HTTP/2");
    assert!(fault.to_string().contains("leave out --http2"), "{fault}");
}

#[test]
fn a_cancelled_exchange_leaves_the_others_and_its_late_answer_is_ignored() {
    let mut peer = Peer::new(&target()).begin(2);
    peer.sent.clear();
    assert!(peer.http.cancel(&mut peer.session, 0));
    peer.pump();
    let frames = peer.frames();
    assert!(
        frames[0].starts_with("Reset { stream: 1, code: Code(8)") && frames[1].starts_with("Ping"),
        "{frames:?}"
    );
    peer.hear(&[ok(1), ok(3)].concat()).expect("both are fine");
    assert_eq!(peer.ends(), [(1, Ok(()))]);
}

#[test]
fn what_a_peer_that_goes_away_has_not_processed_begins_anew() {
    let mut peer = Peer::new(&target()).begin(4);
    peer.hear(&put(|out| put_go_away(out, (1 << 31) - 1, Code::NO_ERROR, ""))).expect("a warning");
    assert!(peer.outcomes.marks.is_empty());
    assert_eq!(peer.http.standing(&peer.session).capacity, 0, "nothing further begins");
    peer.hear(&put(|out| put_go_away(out, 3, Code(11), "calm"))).expect("the last stream");
    assert_eq!(peer.outcomes.marks, [(2, Mark::Refused), (3, Mark::Refused)]);
    peer.hear(&[ok(3), ok(1)].concat()).expect("what it processes");
    assert_eq!(peer.ends(), [(1, Ok(())), (0, Ok(()))]);
    let fault = peer.http.end(&mut peer.session, &mut Outcomes::default());
    assert_eq!(fault.class, ErrorClass::Reset);
    assert_eq!(fault.to_string(), "GOAWAY ENHANCE_YOUR_CALM \"calm\"");
}

#[test]
fn the_peers_limits_are_kept() {
    let settings = Settings { streams: Some(2), window: Some(10), ..Settings::default() };
    let mut peer = Peer::with(&Http { body: target::Body::Pattern(25), ..target() }, &settings).begin(3);
    assert_eq!(peer.http.standing(&peer.session).capacity, 2);
    assert_eq!(peer.frames(), ["head 1 false", "head 3 false", "data 1 10 false", "data 3 10 false"]);
    peer.sent.clear();
    peer.hear(&put(|out| put_window_update(out, 3, 100))).expect("more for one stream");
    peer.pump();
    assert_eq!(peer.frames(), ["data 3 15 true"]);
    // A smaller window of new streams holds for open ones, too.
    peer.sent.clear();
    peer.hear(&put(|out| put_settings(out, &Settings { window: Some(5), ..Settings::default() })))
        .expect("fewer");
    peer.hear(&put(|out| put_window_update(out, 1, 6))).expect("more");
    peer.pump();
    assert_eq!(peer.frames(), ["SettingsAck", "data 1 1 false"]);
    // An answer before the whole body is sent is too early, and its stream is given back.
    peer.sent.clear();
    peer.hear(&[ok(1), ok(3)].concat()).expect("answers");
    peer.pump();
    let ends = peer.ends();
    assert_eq!(
        (ends[0].1.as_ref().map_err(|(class, _)| *class), &ends[1].1),
        (Err(ErrorClass::Protocol), &Ok(()))
    );
    assert_eq!(peer.frames(), ["Reset { stream: 1, code: Code(8) }", "head 5 false", "data 5 5 false"]);
}

#[test]
fn a_large_body_is_the_pattern_wherever_windows_cut_it() {
    let length = 3 * wire::pattern::PERIOD as u64 + 7;
    let mut peer = Peer::new(&Http { body: target::Body::Pattern(length), ..target() }).begin(1);
    while peer.session.state.streams[0].sending.is_left() {
        peer.hear(&put(|out| [0, 1].iter().for_each(|stream| put_window_update(out, *stream, 10_007))))
            .expect("more");
        peer.pump();
    }
    let (mut reader, mut rest, mut body) = (Reader::default(), peer.sent.as_slice(), Vec::new());
    loop {
        let step = reader.push(rest).expect("right frames");
        rest = &rest[step.consumed..];
        match step.event {
            Event::NeedMore => break,
            Event::Data { data, .. } => body.extend_from_slice(data),
            _ => {}
        }
    }
    assert_eq!(body, wire::pattern::block(length, length as usize));
}

#[test]
fn what_fits_a_block_of_the_pattern_is_the_same_body() {
    let length = 23 * wire::pattern::PERIOD as u64 + 5;
    let wide = Settings { window: Some(1 << 30), ..Settings::default() };
    let mut peer = Peer::with(&Http { body: target::Body::Pattern(length), ..target() }, &wide);
    peer.hear(&put(|out| put_window_update(out, 0, 1 << 30))).expect("more");
    let mut peer = peer.begin(2);
    assert!(peer.session.state.streams.iter().all(|stream| !stream.sending.is_left()));
    let (mut reader, mut rest) = (Reader::default(), peer.sent.as_slice());
    let mut bodies: [(Vec<u8>, bool); 2] = Default::default();
    loop {
        let step = reader.push(rest).expect("right frames");
        rest = &rest[step.consumed..];
        match step.event {
            Event::NeedMore => break,
            Event::Data { stream, data, end_stream, .. } => {
                let body = &mut bodies[stream as usize / 2];
                body.0.extend_from_slice(data);
                assert!(!std::mem::replace(&mut body.1, end_stream), "nothing follows the end");
            }
            _ => {}
        }
    }
    let wanted = wire::pattern::block(length, length as usize);
    assert!(bodies.iter().all(|(body, ended)| *ended && *body == wanted));
    peer.hear(&[ok(1), ok(3)].concat()).expect("answers");
    assert!(peer.ends().iter().all(|(_, end)| end.is_ok()));
    // The reactor may send a block behind other frames, and then what it returns is none.
    let blocks = peer.http.body.blocks.len();
    let block = peer.http.body.block(7);
    peer.http.sent(Payload::Owned([data(1, b"ok", true), block].concat()));
    assert_eq!(peer.http.body.blocks.len(), blocks - 1);
}

#[test]
fn the_peers_questions_are_answered_and_their_number_is_bounded() {
    let mut peer = Peer::new(&target()).begin(1);
    peer.sent.clear();
    peer.hear(&put(|out| put_ping(out, *b"12345678", false))).expect("a question");
    assert!(peer.http.standing(&peer.session).speaks);
    peer.pump();
    assert_eq!(peer.frames(), ["Pong([49, 50, 51, 52, 53, 54, 55, 56])"]);
    let flood = put(|out| (0..1001).for_each(|_| put_ping(out, *b"12345678", false)));
    assert!(peer.hear(&flood).expect_err("a flood").to_string().contains("ENHANCE_YOUR_CALM"));
    let mut peer = Peer::new(&target()).begin(1);
    let empty = [head(1, &[(":status", "200")], false), data(1, b"", false).repeat(1001)].concat();
    assert!(peer.hear(&empty).expect_err("a flood").to_string().contains("empty DATA"));
}

#[test]
fn ids_are_written_and_checked_and_a_small_table_is_not_used() {
    let target = Http { ids: true, ..target() };
    for settings in [Settings::default(), Settings { table: Some(0), ..Settings::default() }] {
        let mut peer = Peer::with(&target, &settings).begin(3);
        let mut heads = wire::h2::RequestHeads::watching("x-request-id");
        let (mut reader, mut rest, mut ids) = (Reader::default(), peer.sent.as_slice(), Vec::new());
        loop {
            let step = reader.push(rest).expect("right frames");
            rest = &rest[step.consumed..];
            match step.event {
                Event::NeedMore => break,
                Event::Headers { block, .. } => {
                    assert_eq!(settings.table.is_some() && ids.is_empty(), block[0] == 0x20);
                    let head = heads.request(block).expect("a block").expect("a head");
                    ids.push(String::from_utf8_lossy(head.watched.expect("an id")).into_owned());
                }
                _ => {}
            }
        }
        assert_eq!(ids, ["0", "1", "2"].map(|id| format!("{id:0>20}")));
        let answer = |stream: u32, id: &str| {
            [head(stream, &[(":status", "200"), ("x-request-id", id)], false), data(stream, b"ok", true)]
                .concat()
        };
        peer.hear(&[answer(3, &ids[1]), answer(1, &ids[1])].concat()).expect("answers");
        let ends = peer.ends();
        assert_eq!(ends[0], (1, Ok(())));
        assert_eq!(ends[1].1.as_ref().map_err(|(class, _)| *class), Err(ErrorClass::WrongId));
    }
    let mut out = Vec::new();
    put_status(&mut out, 200);
    assert_eq!(out, [0x88]);
}

#[test]
fn a_peer_is_told_its_window_and_its_table_and_held_to_them() {
    let allowance = Allowance { window: 10, table: 0 };
    let target = Http { expect: Expect::default(), allowance, ..target() };
    let mut http = Requests::new(&target, 0).expect("a request that can be written");
    let mut session = http.open(0, None);
    let Next::Send(payload) = http.next(&mut session, false) else { panic!("nothing is sent") };
    let (mut reader, settings) = (Reader::default(), &payload.bytes()[wire::h2::PREFACE.len()..]);
    let told = Settings { table: Some(0), push: Some(false), window: Some(10), ..Settings::default() };
    assert_eq!(reader.push(settings).expect("a frame").event, Event::Settings(told));
    let start = |stream| head(stream, &[(":status", "200")], false);
    let window = |answer: Vec<u8>| {
        let mut peer = Peer::new(&target).begin(3);
        peer.hear(&[start(1), data(1, b"x", true)].concat()).expect("a short answer");
        let heard = peer.hear(&answer).map_err(|fault| fault.to_string());
        peer.pump();
        (heard, peer.frames())
    };
    // Half of the window opens it again.
    let (heard, frames) =
        window([start(3), data(3, &[b'x'; 10], false), data(3, &[b'x'; 10], true)].concat());
    assert_eq!(heard, Ok(()));
    assert!(frames.iter().any(|frame| frame == "WindowUpdate { stream: 3, by: 10 }"), "{frames:?}");
    for pieces in [[11, 0], [10, 0]] {
        let [first, second] = pieces.map(|length| vec![b'x'; length]);
        let (heard, _) = window([start(3), data(3, &first, false), data(3, &second, true)].concat());
        assert_eq!(heard.is_err(), first.len() > 10, "{heard:?}");
    }
    // The same, where an answer is judged in one step.
    let (heard, _) = window([start(3), data(3, &[b'x'; 11], true)].concat());
    assert!(heard.as_ref().is_err_and(|why| why.contains("more DATA")), "{heard:?}");
    // What is inserted is not kept.
    let block = [&[0x88, 0x40, 1, b'a', 1, b'b'][..], &[0xbe]].concat();
    let (heard, _) = window(put(|out| put_headers(out, 3, &block, true)));
    assert!(heard.as_ref().is_err_and(|why| why.contains("in no table")), "{heard:?}");
}
