//! However a peer opens its windows, each body is sent whole and once, as far as the windows allow, and no window is exceeded.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wire::h2::WINDOW;

use super::*;
use crate::protocol::Next;

/// What happens. Streams are named by their places among those whose heads were sent.
#[derive(Debug, Clone)]
enum Act {
    Begin(usize),
    Open(usize, u32),
    OpenAll(u32),
    SetWindow(u32),
    /// The answer comes, perhaps too early.
    Answer(usize),
    Refuse(usize),
    /// `100 Continue`.
    Continue(usize),
    /// Nobody waits for `100 Continue` any longer.
    Nudge,
    Cancel(usize),
    /// One part is sent, instead of all that may be.
    SendOne,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let place = || 0..8_usize;
    let act = prop_oneof![
        4 => (1..3_usize).prop_map(Act::Begin),
        6 => (place(), 1..90_000_u32).prop_map(|(place, by)| Act::Open(place, by)),
        4 => (1..200_000_u32).prop_map(Act::OpenAll),
        2 => (0..200_000_u32).prop_map(Act::SetWindow),
        2 => place().prop_map(Act::Answer),
        1 => place().prop_map(Act::Refuse),
        2 => place().prop_map(Act::Continue),
        1 => Just(Act::Nudge),
        1 => place().prop_map(Act::Cancel),
        2 => Just(Act::SendOne),
    ];
    prop::collection::vec(act, 0..50)
}

/// What a peer knows of a stream.
#[derive(Debug)]
struct Known {
    window: i64,
    came: u64,
    /// Whether its body has ended, and whether one of the two has ended the stream before.
    whole: bool,
    ended: bool,
}

struct Model {
    peer: Peer,
    known: BTreeMap<u32, Known>,
    /// The window of new streams, and that of the connection.
    initial: i64,
    window: i64,
}

impl Model {
    /// Takes what is sent: all of it, or one part.
    fn take(&mut self, most: usize) {
        self.peer.sent.clear();
        for _ in 0..most {
            let Next::Send(payload) = self.peer.http.next(&mut self.peer.session, false) else { break };
            self.peer.sent.extend_from_slice(payload.bytes());
            self.peer.http.sent(payload);
        }
        let (mut reader, mut rest) = (Reader::default(), self.peer.sent.as_slice());
        loop {
            let step = reader.push(rest).expect("right frames");
            rest = &rest[step.consumed..];
            match step.event {
                Event::NeedMore => return,
                Event::Headers { stream, end_stream, .. } => {
                    let known = Known { window: self.initial, came: 0, whole: end_stream, ended: false };
                    assert!(self.known.insert(stream, known).is_none());
                }
                Event::Data { stream, data, end_stream, .. } => {
                    let known = self.known.get_mut(&stream).expect("its head came first");
                    known.came += data.len() as u64;
                    known.window -= data.len() as i64;
                    self.window -= data.len() as i64;
                    assert!(known.window >= 0 && self.window >= 0 && !known.whole, "{stream}: {known:?}");
                    known.whole |= end_stream;
                }
                Event::Reset { stream, .. } => {
                    self.known.get_mut(&stream).expect("its head came first").ended = true;
                }
                _ => {}
            }
        }
    }

    /// Takes all that may be sent. Nothing is left that the windows allow.
    fn take_all(&mut self) {
        self.take(usize::MAX);
        let may_send = |known: &&Known| known.window > 0 && !known.whole && !known.ended;
        let awaits = self.peer.session.state.streams.iter().any(|stream| stream.sending.awaits);
        let left = self.known.values().find(may_send).filter(|_| self.window > 0 && !awaits);
        assert!(left.is_none(), "{left:?}");
    }

    fn say(&mut self, bytes: &[u8]) {
        self.peer.hear(bytes).expect("right frames");
    }

    /// The stream at a place, if it is open on both sides.
    fn open(&self, place: usize) -> Option<u32> {
        let (id, known) = self.known.iter().nth(place)?;
        (!known.ended).then_some(*id)
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Begin(count) => {
                (0..count).for_each(|_| self.peer.http.begin(&mut self.peer.session, ()));
            }
            Act::Open(place, by) => {
                let Some(id) = self.open(place) else { return };
                self.known.get_mut(&id).expect("it is open").window += i64::from(by);
                self.say(&put(|out| put_window_update(out, id, by)));
            }
            Act::OpenAll(by) => {
                self.window += i64::from(by);
                self.say(&put(|out| put_window_update(out, 0, by)));
            }
            Act::SetWindow(window) => {
                let by = i64::from(window) - self.initial;
                self.initial += by;
                self.known.values_mut().for_each(|known| known.window += by);
                let settings = Settings { window: Some(window), ..Settings::default() };
                self.say(&put(|out| put_settings(out, &settings)));
            }
            Act::Answer(place) | Act::Refuse(place) | Act::Continue(place) => {
                let Some(id) = self.open(place) else { return };
                let bytes = match act {
                    Act::Answer(_) => ok(id),
                    Act::Refuse(_) => put(|out| put_reset(out, id, Code::REFUSED_STREAM)),
                    _ => head(id, &[(":status", "100")], false),
                };
                self.known.get_mut(&id).expect("it is open").ended |= !matches!(act, Act::Continue(_));
                self.say(&bytes);
            }
            Act::Nudge => _ = self.peer.http.nudge(&mut self.peer.session, u64::MAX),
            Act::Cancel(place) => {
                let Some(id) = self.open(place) else { return };
                self.peer.http.cancel(&mut self.peer.session, u64::from(id / 2));
            }
            Act::SendOne => return self.take(1),
        }
        self.take_all();
    }
}

proptest! {
    #[test]
    fn each_body_is_sent_whole_and_no_window_is_exceeded(acts in acts(), large: bool, expect_continue: bool) {
        let length = if large { 3 * wire::pattern::PERIOD as u64 + 7 } else { 20_000 };
        let target = Http { body: target::Body::Pattern(length), expect_continue, ..target() };
        let window = i64::from(WINDOW);
        let mut model = Model { peer: Peer::new(&target), known: BTreeMap::new(), initial: window, window };
        acts.iter().for_each(|act| model.act(act));
        // All windows open, and nobody waits for `100 Continue`.
        for act in [Act::OpenAll(1 << 30), Act::SetWindow(1 << 30), Act::Nudge] {
            model.act(&act);
        }
        for (id, known) in &model.known {
            prop_assert!(known.came <= length, "{id}: {known:?}");
            prop_assert!(known.ended || known.whole && known.came == length, "{id}: {known:?}");
        }
    }
}
