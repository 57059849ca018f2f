//! Whatever peers ask, open, end and wait for, each request that they do not end has one whole answer, and no window is exceeded.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wire::h2::{ResponseHeads, WINDOW};

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

/// The paths that a peer asks. The last two take bodies.
const PATHS: [&str; 12] = [
    "/",
    "/none",
    "/bytes/0",
    "/bytes/7",
    "/bytes/100000",
    "/wait/3",
    "/wait/20",
    "/events/3?gap=4ms",
    "/events/0",
    "/chunks/20?size=9000",
    "/echo",
    "/v1/chat/completions",
];

/// The parts of bodies. A chat and two others are more than a body may have.
const PARTS: [&str; 3] = ["", "abc", r#"{"model":"m?events=3&gap=2ms","stream":true}"#];
const MOST: u64 = 48;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (path, part) = (prop::sample::select(PATHS.to_vec()), prop::sample::select(PARTS.to_vec()));
    let act = prop_oneof![
        6 => path.prop_map(Act::Ask),
        6 => (0..8_usize, part, any::<bool>()).prop_map(|(place, text, ends)| Act::Say(place, text, ends)),
        3 => (0..8_usize, 1..20_000_u32).prop_map(|(place, by)| Act::Open(place, by)),
        3 => (1..60_000_u32).prop_map(Act::OpenAll),
        1 => (0..70_000_u32).prop_map(Act::SetWindow),
        1 => (0..8_usize).prop_map(Act::End),
        4 => (0..10_u64).prop_map(Act::Pass),
    ];
    prop::collection::vec(act, 0..50)
}

/// What a peer knows of a stream.
#[derive(Debug, Default)]
struct Known {
    /// Whether its request is whole, and whether the peer has ended the stream.
    whole: bool,
    ended: bool,
    /// What the server may send.
    window: i64,
    /// The length that the head of the answer says, how many bytes came, and how often the answer ended.
    length: Option<u64>,
    came: u64,
    answers: u32,
}

struct Peer {
    conversation: Conversation,
    rules: Rules,
    now: Instant,
    heads: ResponseHeads,
    known: BTreeMap<u32, Known>,
    /// The window of new streams, and that of the connection.
    initial: i64,
    window: i64,
}

impl Peer {
    fn new() -> Self {
        let rules = Rules { body: MOST, ..rules(Http2::USUAL) };
        let window = i64::from(WINDOW);
        Self {
            conversation: Conversation::new(&rules),
            rules,
            now: Instant::now(),
            heads: ResponseHeads::watching(ID),
            known: BTreeMap::new(),
            initial: window,
            window,
        }
    }

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
                if step.event == Event::NeedMore {
                    break;
                }
                self.hear(step.event);
            }
        }
        let streams = &self.conversation.state.streams;
        assert_eq!(streams.held(), streams.recount());
        assert!(streams.waits_for_an_open_one());
    }

    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Headers { stream, block, end_stream } => {
                let length = self.heads.response(block).expect("a block").expect("a head").length;
                let known = self.known.get_mut(&stream).expect("it was begun");
                known.length = length;
                known.answers += u32::from(end_stream);
            }
            Event::Data { stream, data, end_stream, .. } => {
                let known = self.known.get_mut(&stream).expect("it was begun");
                known.came += data.len() as u64;
                known.answers += u32::from(end_stream);
                known.window -= data.len() as i64;
                self.window -= data.len() as i64;
                assert!(data.is_empty() || known.window >= 0 && self.window >= 0, "{known:?}");
            }
            // The rest of a request that was refused is not wanted.
            Event::Reset { stream, code: Code::NO_ERROR } => {
                self.known.get_mut(&stream).expect("it was begun").whole = true;
            }
            Event::Reset { code, .. } | Event::GoAway { code, .. } => panic!("{code}"),
            _ => {}
        }
    }

    fn id(&self, place: usize) -> Option<u32> {
        self.known.keys().nth(place).copied()
    }

    fn act(&mut self, act: &Act) {
        let mut bytes = Vec::new();
        match *act {
            Act::Ask(path) => {
                let id = 2 * self.known.len() as u32 + 1;
                let whole = !PATHS[10..].contains(&path);
                self.known.insert(id, Known { whole, window: self.initial, ..Known::default() });
                bytes = request(id, path, whole);
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
                self.known.get_mut(&id).expect("it was begun").window += i64::from(by);
                put_window_update(&mut bytes, id, by);
            }
            Act::OpenAll(by) => {
                self.window += i64::from(by);
                put_window_update(&mut bytes, 0, by);
            }
            Act::SetWindow(window) => {
                let by = i64::from(window) - self.initial;
                self.initial += by;
                self.known.values_mut().for_each(|known| known.window += by);
                put_settings(&mut bytes, &Settings { window: Some(window), ..Settings::default() });
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

    /// Ends what is not whole, opens all windows, in one way or the other, and lets all times pass.
    fn finish(&mut self, at_once: bool) {
        for place in 0..self.known.len() {
            if self.known.values().nth(place).is_some_and(|known| !known.whole) {
                self.act(&Act::End(place));
            }
        }
        self.act(&Act::OpenAll(1 << 30));
        if at_once {
            self.act(&Act::SetWindow(1 << 30));
        } else {
            (0..self.known.len()).for_each(|place| self.act(&Act::Open(place, 1 << 30)));
        }
        while let Some(due) = self.conversation.waits_until(self.now) {
            self.now = due;
            self.say(b"");
        }
    }
}

proptest! {
    #[test]
    fn each_request_has_one_whole_answer(acts in acts(), at_once: bool) {
        let mut peer = Peer::new();
        peer.say(&greeting(&Settings::default()));
        acts.iter().for_each(|act| peer.act(act));
        peer.finish(at_once);
        for (id, known) in &peer.known {
            let is_whole = known.answers == 1 && known.length.is_none_or(|length| length == known.came);
            prop_assert!(is_whole || known.ended && known.answers == 0, "{id}: {known:?}");
        }
        prop_assert_eq!(peer.conversation.held(), (0, 0));
    }
}
