//! Whatever peers ask, open, end and wait for, each request that they do not end has one whole answer.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a peer does, or that so many milliseconds pass. Streams are named by their places among those that were begun.
#[derive(Debug, Clone)]
enum Act {
    Ask(&'static str),
    /// A part of a body, and whether it is the last.
    Say(usize, &'static str, bool),
    Open(usize, u32),
    OpenAll(u32),
    SetWindow(u32),
    End(usize),
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let path = prop::sample::select(vec![
        "/",
        "/none",
        "/bytes/0",
        "/bytes/7",
        "/bytes/100000",
        "/echo",
        "/wait/3",
        "/wait/20",
        "/events/3?gap=4ms",
        "/events/0",
        "/chunks/20?size=9000",
        "/v1/chat/completions",
    ]);
    let act = prop_oneof![
        6 => path.prop_map(Act::Ask),
        6 => (0..8_usize, prop::sample::select(vec!["", "abc", "{\"model\":\"m?events=3&gap=2ms\",\"stream\":true}"]), any::<bool>())
            .prop_map(|(place, text, ends)| Act::Say(place, text, ends)),
        3 => (0..8_usize, 1..20_000_u32).prop_map(|(place, by)| Act::Open(place, by)),
        3 => (1..60_000_u32).prop_map(Act::OpenAll),
        1 => (0..70_000_u32).prop_map(Act::SetWindow),
        1 => (0..8_usize).prop_map(Act::End),
        4 => (0..10_u64).prop_map(Act::Pass),
    ];
    prop::collection::vec(act, 0..50)
}

/// What a peer knows of a stream: whether its request is whole, whether it ended it, and how often its answer ended.
#[derive(Debug, Default)]
struct Known {
    whole: bool,
    ended: bool,
    answers: u32,
}

struct Peer {
    conversation: Conversation,
    rules: Rules,
    now: Instant,
    known: BTreeMap<u32, Known>,
}

impl Peer {
    /// Says these bytes, and hears all that is sent now.
    fn say(&mut self, bytes: &[u8]) {
        self.conversation.hear(bytes, self.now, &self.rules, &Counters::default());
        loop {
            let mut out = Vec::new();
            self.conversation.answers(self.now, &mut out);
            if out.is_empty() {
                break;
            }
            let (mut reader, mut rest) = (Reader::default(), out.as_slice());
            loop {
                let step = reader.push(rest).expect("right frames");
                rest = &rest[step.consumed..];
                match step.event {
                    Event::NeedMore => break,
                    Event::Headers { stream, end_stream: true, .. }
                    | Event::Data { stream, end_stream: true, .. } => {
                        self.known.get_mut(&stream).expect("it was begun").answers += 1;
                    }
                    Event::Reset { stream, code } => {
                        // The rest of a request that was refused is not wanted.
                        assert_eq!(code, Code::NO_ERROR);
                        self.known.get_mut(&stream).expect("it was begun").whole = true;
                    }
                    Event::GoAway { code, .. } => panic!("{code}"),
                    _ => {}
                }
            }
        }
        let streams = &self.conversation.state.streams;
        let held = streams.recount();
        assert_eq!(streams.held(), held);
    }

    fn id(&self, place: usize) -> Option<u32> {
        self.known.keys().nth(place).copied()
    }

    fn act(&mut self, act: &Act) {
        let mut bytes = Vec::new();
        match *act {
            Act::Ask(path) => {
                let id = 2 * self.known.len() as u32 + 1;
                let has_body = matches!(path, "/echo" | "/v1/chat/completions");
                self.known.insert(id, Known { whole: !has_body, ..Known::default() });
                bytes = request(id, path, !has_body);
            }
            Act::Say(place, text, ends) => {
                let Some(id) = self.id(place) else { return };
                let known = self.known.get_mut(&id).expect("it was begun");
                if !known.whole && !known.ended {
                    known.whole = ends;
                    bytes = data(id, text.as_bytes(), ends);
                }
            }
            Act::Open(place, by) => {
                let Some(id) = self.id(place) else { return };
                put_window_update(&mut bytes, id, by);
            }
            Act::OpenAll(by) => put_window_update(&mut bytes, 0, by),
            Act::SetWindow(window) => {
                put_settings(&mut bytes, &Settings { window: Some(window), ..Settings::default() })
            }
            Act::End(place) => {
                let Some(id) = self.id(place) else { return };
                self.known.get_mut(&id).expect("it was begun").ended = true;
                put_reset(&mut bytes, id, Code::CANCEL);
            }
            Act::Pass(ms) => self.now += Duration::from_millis(ms),
        }
        self.say(&bytes);
    }
}

proptest! {
    #[test]
    fn each_request_has_one_whole_answer(acts in acts(), at_once: bool) {
        let rules = rules(Http2::USUAL);
        let (conversation, now) = (Conversation::new(&rules), Instant::now());
        let mut peer = Peer { conversation, rules, now, known: BTreeMap::new() };
        peer.say(&greeting(&Settings::default()));
        for act in &acts {
            peer.act(act);
        }
        // What is not whole is ended, all windows open, and all times pass.
        for place in 0..peer.known.len() {
            if peer.known.values().nth(place).is_some_and(|known| !known.whole) {
                peer.act(&Act::End(place));
            }
        }
        let mut open = Vec::new();
        if at_once {
            put_settings(&mut open, &Settings { window: Some(1 << 30), ..Settings::default() });
        } else {
            peer.known.keys().for_each(|id| put_window_update(&mut open, *id, 1 << 30));
        }
        put_window_update(&mut open, 0, 1 << 30);
        peer.say(&open);
        while let Some(due) = peer.conversation.waits_until() {
            prop_assert!(due > peer.now, "what is due is sent");
            peer.now = due;
            peer.say(b"");
        }
        for (id, known) in &peer.known {
            let all_right = if known.ended { known.answers <= 1 } else { known.answers == 1 };
            prop_assert!(all_right, "{id}: {known:?}");
        }
        prop_assert_eq!(peer.conversation.held(), (0, 0));
    }
}
