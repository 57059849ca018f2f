//! Tests the open exchanges of a connection against a plain list.

use cost::is_near_linear;
use proptest::prelude::*;

use super::*;

/// What happens to the exchanges of a lane.
#[derive(Debug, Clone)]
enum Event {
    Push,
    PushBegun,
    Begin,
    /// One of the open ones, by its place: it ends, is refused, or is taken away.
    End(usize),
    Refuse(usize),
    Remove(usize),
    Pop,
    StartOver,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Push),
        4 => Just(Event::PushBegun),
        6 => Just(Event::Begin),
        6 => (0..8_usize).prop_map(Event::End),
        2 => (0..8_usize).prop_map(Event::Refuse),
        2 => (0..8_usize).prop_map(Event::Remove),
        2 => Just(Event::Pop),
        1 => Just(Event::StartOver),
    ];
    proptest::collection::vec(event, 0..60)
}

/// A plain list of what is open: the id, if it has begun, and the request.
#[derive(Default)]
struct Model {
    open: Vec<(Option<u64>, u32)>,
    begun: u64,
    pushed: u32,
}

impl Model {
    fn waiting(&self) -> usize {
        self.open.iter().filter(|(id, _)| id.is_none()).count()
    }

    fn push(&mut self, begun: bool) -> Exchange<u32> {
        self.pushed += 1;
        let id = begun.then(|| self.begin());
        self.open.push((id, self.pushed));
        Exchange { intended: Time::ZERO, sent: Time::ZERO, request: self.pushed }
    }

    fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun - 1
    }

    /// The id at a place, if something is there that has begun.
    fn id(&self, place: usize) -> Option<u64> {
        self.open.get(place)?.0
    }
}

proptest! {
    #[test]
    fn exchanges_are_what_a_plain_list_says(events in events()) {
        let (mut model, mut exchanges) = (Model::default(), Exchanges::<u32>::default());
        for event in events {
            match event {
                Event::Push => exchanges.push(model.push(false)),
                Event::PushBegun if model.waiting() == 0 => exchanges.push_begun(model.push(true)),
                Event::PushBegun => {}
                Event::Begin => {
                    let place = model.open.iter().position(|(id, _)| id.is_none());
                    let expected = place.map(|place| {
                        model.open[place].0 = Some(model.begin());
                        model.open[place].1
                    });
                    prop_assert_eq!(exchanges.begin(), expected);
                }
                Event::End(place) => {
                    if let Some(id) = model.id(place) {
                        let (_, request) = model.open.remove(place);
                        prop_assert_eq!(exchanges.take(id).map(|exchange| exchange.request), Some(request));
                        prop_assert!(exchanges.take(id).is_none(), "an exchange ends once");
                    }
                }
                Event::Refuse(place) => {
                    if let Some(id) = model.id(place) {
                        let (_, request) = model.open.remove(place);
                        model.open.push((None, request));
                        exchanges.refuse(id);
                    }
                }
                Event::Remove(place) => {
                    let expected = (place < model.open.len()).then(|| model.open.remove(place).1);
                    prop_assert_eq!(exchanges.remove(place).map(|exchange| exchange.request), expected);
                }
                Event::Pop => {
                    let expected = (!model.open.is_empty()).then(|| model.open.remove(0).1);
                    prop_assert_eq!(exchanges.pop().map(|exchange| exchange.request), expected);
                }
                Event::StartOver => {
                    model.open.iter_mut().for_each(|(id, _)| *id = None);
                    model.begun = 0;
                    exchanges.start_over();
                }
            }
            let open: Vec<_> = exchanges.iter().map(|(id, exchange)| (id, exchange.request)).collect();
            prop_assert_eq!(&open, &model.open);
            prop_assert_eq!(exchanges.len(), model.open.len());
            prop_assert_eq!(exchanges.waiting(), model.waiting());
            prop_assert_eq!(exchanges.first(), model.id(0).unwrap_or(model.begun));
        }
    }
}

/// Each part of an answer is looked up, and many answers are open on one connection.
#[test]
fn twice_as_many_answers_in_parts_take_about_twice_as_long() {
    is_near_linear(500, |count| {
        move || {
            let mut exchanges = Exchanges::<u32>::default();
            for request in 0..count as u32 {
                exchanges.push_begun(Exchange { intended: Time::ZERO, sent: Time::ZERO, request });
            }
            for _ in 0..3 {
                for id in 0..count as u64 {
                    exchanges.came(id, Some(Time::ZERO), Time::ZERO);
                    let (_, parts) = exchanges.parts(id).expect("it came");
                    parts.course.get_or_insert_default();
                }
            }
            for id in 0..count as u64 {
                assert!(exchanges.last_part(id).is_some() && exchanges.course(id).is_some());
                assert!(exchanges.take(id).is_some() && exchanges.forget(id).is_some());
            }
            assert!(!exchanges.has_parts());
        }
    });
}
