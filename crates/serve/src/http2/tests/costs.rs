//! What a peer's frames cost: twice as many take about twice as long, on twice as many streams.

use cost::is_near_linear;

use super::*;

/// How many streams, or how many frames. A peer may have twice as many open.
const SOME: usize = 500;

/// The frames of one request, by its place.
type Made = dyn Fn(u32) -> Vec<u8>;

/// Asserts the cost of these requests when they come all at once, and when they come one by one. All are answered within so many
/// milliseconds.
fn is_answered(made: &Made, within: u64) {
    let rules = rules(Http2::USUAL);
    for parts in [1, usize::MAX] {
        is_near_linear(SOME, |count| {
            let pieces: Vec<Vec<u8>> = (0..count as u32).map(made).collect();
            move || {
                let (mut conversation, now) = (Conversation::new(&rules), Instant::now());
                let (counts, mut out, mut complete) = (Counters::default(), Vec::new(), 0);
                let mut answers = |conversation: &mut Conversation, now| {
                    while {
                        out.clear();
                        complete += conversation.answers(now, &mut out);
                        !out.is_empty()
                    } {}
                    complete
                };
                let mut greeting = greeting(&Settings { window: Some(1 << 30), ..Settings::default() });
                put_window_update(&mut greeting, 0, 1 << 30);
                conversation.hear(&greeting, now, &rules, &counts);
                for piece in pieces.chunks(count.div_ceil(parts)) {
                    conversation.hear(&piece.concat(), now, &rules, &counts);
                    answers(&mut conversation, now);
                }
                let mut time = now;
                while let Some(due) = conversation.waits_until(time) {
                    time = due;
                    assert!(due <= now + Duration::from_millis(within));
                    answers(&mut conversation, due);
                }
                assert_eq!(answers(&mut conversation, now), count as u64);
                assert_eq!(conversation.held(), (0, 0));
            }
        });
    }
}

#[test]
fn requests_and_their_bodies() {
    is_answered(&|at| request(2 * at + 1, "/", true), 0);
    is_answered(&|at| [request(2 * at + 1, "/echo", false), data(2 * at + 1, b"abc", true)].concat(), 0);
}

#[test]
fn answers_that_wait() {
    is_answered(&|at| request(2 * at + 1, "/wait/10", true), 10);
    is_answered(&|at| request(2 * at + 1, &format!("/wait/{}", 10 + at), true), 2000);
}

#[test]
fn streams_of_events() {
    is_answered(&|at| request(2 * at + 1, "/events/3?gap=10ms", true), 20);
    is_answered(&|at| request(2 * at + 1, &format!("/events/2?gap={}ms", 10 + at), true), 2000);
}

#[test]
fn windows_that_open_one_after_the_other() {
    let rules = rules(Http2::USUAL);
    for of_the_connection in [false, true] {
        is_near_linear(SOME, |count| {
            let ids = || (0..count as u32).map(|at| 2 * at + 3);
            let asked: Vec<u8> = ids().flat_map(|id| request(id, "/bytes/10", true)).collect();
            let updates: Vec<Vec<u8>> = ids()
                .map(|id| {
                    let mut update = Vec::new();
                    put_window_update(&mut update, if of_the_connection { 0 } else { id }, 10);
                    update
                })
                .collect();
            move || {
                let (mut conversation, now) = (Conversation::new(&rules), Instant::now());
                let (counts, mut out) = (Counters::default(), Vec::new());
                let hear = |conversation: &mut Conversation, bytes: &[u8]| {
                    _ = conversation.hear(bytes, now, &rules, &counts);
                };
                if of_the_connection {
                    // One answer takes all that the connection may send at first.
                    hear(&mut conversation, &greeting(&Settings::default()));
                    hear(&mut conversation, &request(1, "/bytes/65535", true));
                } else {
                    hear(&mut conversation, &greeting(&Settings { window: Some(0), ..Settings::default() }));
                }
                let mut complete = conversation.answers(now, &mut out);
                complete += conversation.answers(now, &mut out);
                assert_eq!(complete, u64::from(of_the_connection));
                hear(&mut conversation, &asked);
                for update in &updates {
                    hear(&mut conversation, update);
                    out.clear();
                    complete += conversation.answers(now, &mut out);
                }
                assert_eq!(complete, count as u64 + u64::from(of_the_connection));
            }
        });
    }
}
