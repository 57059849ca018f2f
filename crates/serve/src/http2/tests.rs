//! Tests what is answered to frames, without sockets.

mod costs;
mod properties;

use std::time::Duration;

use wire::h2::{Flags, Kind, ResponseHeads, put_field, put_frame_head, put_headers};

use super::*;
use crate::CloseStyle;

fn rules(http2: Http2) -> Rules {
    let patience = Duration::from_secs(3600);
    Rules {
        max_keepalive: None,
        farewell: CloseStyle::Announced,
        body: 1 << 30,
        room: 1 << 30,
        http2,
        patience,
    }
}

fn request(id: u32, path: &str, ends: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", path), ("x-request-id", "7")];
    fields.iter().for_each(|(name, value)| put_field(&mut block, name.as_bytes(), value.as_bytes()));
    put_headers(&mut out, id, &block, ends);
    out
}

fn data(id: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame_head(&mut out, bytes.len(), Kind::Data, if ends { Flags::END_STREAM } else { Flags::NONE }, id);
    out.extend_from_slice(bytes);
    out
}

fn greeting(settings: &Settings) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    put_settings(&mut out, settings);
    out
}

/// Hears these bytes at one time, and returns the frames that are sent then, as text.
fn frames(conversation: &mut Conversation, bytes: &[u8], rules: &Rules, now: Instant) -> Vec<String> {
    conversation.hear(bytes, now, rules, &Counters::default());
    let mut out = Vec::new();
    conversation.answers(now, &mut out);
    let (mut reader, mut heads, mut rest, mut all) =
        (Reader::default(), ResponseHeads::watching(ID), out.as_slice(), Vec::new());
    loop {
        let step = reader.push(rest).expect("right frames");
        rest = &rest[step.consumed..];
        match step.event {
            Event::NeedMore => return all,
            Event::Settings(_) | Event::SettingsAck | Event::WindowUpdate { .. } => {}
            Event::Headers { stream, block, end_stream } => {
                let head = heads.response(block).expect("a block").expect("a head");
                let id = head.watched.is_some();
                all.push(format!("{stream}: {} {:?} {id} {end_stream}", head.status, head.length));
            }
            Event::Data { stream, data, end_stream, .. } => {
                all.push(format!("{stream}: \"{}\" {end_stream}", data.escape_ascii()));
            }
            Event::Reset { stream, code } => all.push(format!("{stream}: {code}")),
            Event::GoAway { last, code, .. } => all.push(format!("away after {last}: {code}")),
            other => all.push(format!("{other:?}")),
        }
    }
}

#[test]
fn requests_are_answered_when_they_are_due_in_any_order() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    let mut conversation = Conversation::new(&rules);
    let hear = |conversation: &mut Conversation, bytes: &[u8], now| frames(conversation, bytes, &rules, now);
    hear(&mut conversation, &greeting(&Settings::default()), now);
    let asked =
        [request(1, "/wait/10", true), request(3, "/echo", false), request(5, "/none", true)].concat();
    assert_eq!(hear(&mut conversation, &asked, now), ["5: 404 Some(0) true true"]);
    let body = [data(3, b"ab", false), data(3, b"c", true)].concat();
    assert_eq!(hear(&mut conversation, &body, now), ["3: 200 Some(3) true false", "3: \"abc\" true"]);
    let due = now + Duration::from_millis(10);
    assert_eq!(conversation.waits_until(now), Some(due));
    assert_eq!(hear(&mut conversation, b"", due), ["1: 200 Some(2) true false", "1: \"ok\" true"]);
    let events = hear(&mut conversation, &request(7, "/events/2?gap=5ms&size=1", true), due);
    assert_eq!(events, ["7: 200 None true false", "7: \"id: 1\\ndata: x\\n\\n\" false"]);
    let later = due + Duration::from_millis(5);
    assert_eq!(conversation.waits_until(due), Some(later));
    assert_eq!(hear(&mut conversation, b"", later), ["7: \"id: 2\\ndata: x\\n\\n\" true"]);
}

#[test]
fn a_silence_that_is_longer_than_the_patience_is_refused() {
    let (rules, now) =
        (Rules { patience: Duration::from_millis(1500), ..rules(Http2::USUAL) }, Instant::now());
    let mut conversation = Conversation::new(&rules);
    let asked = [(1, "/wait/1500"), (3, "/wait/1501"), (5, "/events/2?gap=1501ms")];
    let asked = asked.map(|(id, path)| request(id, path, true)).concat();
    let refused = frames(&mut conversation, &[greeting(&Settings::default()), asked].concat(), &rules, now);
    let begin =
        |at: usize, with: &str| refused[at].starts_with(with) && refused[at + 1].contains("--patience");
    assert!(refused.len() == 4 && begin(0, "3: 400 ") && begin(2, "5: 400 "), "{refused:?}");
    let answered = frames(&mut conversation, b"", &rules, now + rules.patience);
    assert_eq!(answered, ["1: 200 Some(2) true false", "1: \"ok\" true"]);
}

#[test]
fn answers_wait_for_the_peers_windows() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    let mut conversation = Conversation::new(&rules);
    frames(&mut conversation, &greeting(&Settings { window: Some(1), ..Settings::default() }), &rules, now);
    let asked = request(1, "/", true);
    assert_eq!(
        frames(&mut conversation, &asked, &rules, now),
        ["1: 200 Some(2) true false", "1: \"o\" false"]
    );
    let mut update = Vec::new();
    put_window_update(&mut update, 1, 5);
    assert_eq!(frames(&mut conversation, &update, &rules, now), ["1: \"k\" true"]);
}

#[test]
fn faults_come_as_they_were_ordered() {
    let now = Instant::now();
    let asked =
        |count: u32| (0..count).flat_map(|n| request(2 * n + 1, "/bytes/0", true)).collect::<Vec<u8>>();
    let answers = |http2: Http2, count| {
        let rules = rules(http2);
        let mut conversation = Conversation::new(&rules);
        let bytes = [greeting(&Settings::default()), asked(count)].concat();
        (frames(&mut conversation, &bytes, &rules, now), conversation.over())
    };
    let ok = |id: u32| format!("{id}: 200 Some(0) true true");
    let usual = Http2::USUAL;
    let (refused, _) = answers(Http2 { refuse_every: Some(2), ..usual }, 3);
    assert_eq!(refused, ["3: REFUSED_STREAM".to_owned(), ok(1), ok(5)]);
    let (reset, _) = answers(Http2 { reset_every: Some(3), ..usual }, 3);
    assert_eq!(reset, ["5: INTERNAL_ERROR".to_owned(), ok(1), ok(3)]);
    let (away, over) = answers(Http2 { goaway_after: Some(2), ..usual }, 4);
    assert_eq!((away, over), (vec!["away after 3: NO_ERROR".to_owned(), ok(1), ok(3)], true));
    let (many, _) = answers(Http2 { max_streams: 1, ..usual }, 2);
    assert_eq!(many, ["3: REFUSED_STREAM".to_owned(), ok(1)]);
}

#[test]
fn what_breaks_a_connection_ends_it_and_is_told() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    let table = [
        (request(2, "/", true), "PROTOCOL_ERROR"),
        (data(1, b"", true), "PROTOCOL_ERROR"),
        ([request(3, "/", true), request(1, "/", true)].concat(), "STREAM_CLOSED"),
        ([request(1, "/", true), data(1, b"a", true)].concat(), "STREAM_CLOSED"),
        (PREFACE.to_vec(), "FRAME_SIZE_ERROR"),
    ];
    for (bytes, code) in table {
        let mut conversation = Conversation::new(&rules);
        let all = frames(&mut conversation, &[greeting(&Settings::default()), bytes].concat(), &rules, now);
        assert!(
            all.last().is_some_and(|frame| frame.starts_with("away") && frame.ends_with(code)),
            "{all:?}"
        );
        assert!(conversation.over() && conversation.is_cut_short());
    }
    // One malformed request spoils itself only.
    let mut conversation = Conversation::new(&rules);
    let mut malformed = Vec::new();
    put_headers(&mut malformed, 1, &[0x82], true);
    let bytes = [greeting(&Settings::default()), malformed, request(3, "/", true)].concat();
    let all = frames(&mut conversation, &bytes, &rules, now);
    assert_eq!(all, ["1: PROTOCOL_ERROR", "3: 200 Some(2) true false", "3: \"ok\" true"]);
}

#[test]
fn streams_that_end_before_their_answers_have_a_limit_wherever_reads_end() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    // The client resets it; the server resets it because its window grows by 0.
    let endings: [fn(&mut Vec<u8>, u32); 2] =
        [|out, id| put_reset(out, id, Code::CANCEL), |out, id| put_window_update(out, id, 0)];
    for (end, answered, goes_on) in [(endings[0], 0, false), (endings[1], 0, false), (endings[0], 1, true)] {
        let mut bytes = greeting(&Settings::default());
        put_window_update(&mut bytes, 0, 1 << 30);
        for id in (1..40_000).step_by(2) {
            // One of four is not ended early, or none.
            bytes.extend(request(id, "/", id / 2 % 4 > 0 || answered == 0));
            match id / 2 % 4 < answered {
                true => bytes.extend(data(id, b"", true)),
                false => end(&mut bytes, id),
            }
        }
        let (mut conversation, mut last) = (Conversation::new(&rules), Vec::new());
        for piece in bytes.chunks(1000) {
            if !conversation.over() {
                last = frames(&mut conversation, piece, &rules, now);
            }
        }
        assert_eq!(conversation.over(), !goes_on, "{last:?}");
        let told = last.last().is_some_and(|frame| frame.starts_with("away") && frame.ends_with("YOUR_CALM"));
        assert_eq!(told, !goes_on, "{last:?}");
    }
}

#[test]
fn a_long_answer_takes_its_turns_among_short_ones_that_never_end() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    let mut conversation = Conversation::new(&rules);
    let mut wide = greeting(&Settings { window: Some(1 << 30), ..Settings::default() });
    put_window_update(&mut wide, 0, 1 << 30);
    wide.extend(request(1, "/bytes/10000000", true));
    frames(&mut conversation, &wide, &rules, now);
    let (mut ids, mut missing, mut count) = ((3..).step_by(2), 10, 0);
    for _ in 0..50 {
        let asked: Vec<u8> =
            ids.by_ref().take(missing).flat_map(|id| request(id, "/bytes/16000", true)).collect();
        let sent = frames(&mut conversation, &asked, &rules, now);
        missing = sent.iter().filter(|frame| frame.ends_with(" true")).count();
        count += sent.iter().filter(|frame| frame.starts_with("1: ")).count();
        assert!(missing > 0, "short answers go on");
    }
    assert!(count > 10, "{count} parts of the long answer");
}

#[test]
fn nobody_waits_for_what_a_peer_does_not_take() {
    let (rules, now) = (rules(Http2::USUAL), Instant::now());
    let mut conversation = Conversation::new(&rules);
    let asked = [greeting(&Settings::default()), request(1, "/wait/10", true)].concat();
    frames(&mut conversation, &asked, &rules, now);
    let due = now + Duration::from_millis(10);
    assert_eq!(conversation.waits_until(now), Some(due));
    assert_eq!(conversation.waits_until(due), None);
}

#[test]
fn answers_that_no_window_lets_out_have_a_limit_together() {
    let (rules, now) = (Rules { room: 10 << 20, ..rules(Http2::USUAL) }, Instant::now());
    let refused = |path: &str, id: &str| {
        let mut conversation = Conversation::new(&rules);
        let asked = |at: u32| {
            let (mut block, mut out) = (Vec::new(), Vec::new());
            let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), ("x-request-id", id)];
            fields.iter().for_each(|(name, value)| put_field(&mut block, name.as_bytes(), value.as_bytes()));
            put_headers(&mut out, 2 * at + 1, &block, true);
            out
        };
        let mut bytes = greeting(&Settings { window: Some(0), ..Settings::default() });
        bytes.extend((0..900).flat_map(asked));
        let answers = frames(&mut conversation, &bytes, &rules, now);
        let (_, held) = conversation.held();
        assert!(held < 11 << 20, "{held}");
        answers.iter().filter(|frame| frame.contains(": 503 ")).count()
    };
    // Nine pieces of 1 MiB fit, with their heads.
    assert_eq!(refused("/events/10?size=1048576", "7"), 891);
    assert_eq!(refused("/wait/10", "7"), 0);
    assert!(refused("/wait/10", &"7".repeat(20_000)) > 0);
}
