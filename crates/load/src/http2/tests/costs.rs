//! What a peer's frames cost: twice as many take about twice as long, on twice as many streams.

use cost::is_near_linear;

use super::*;

/// How many streams, or how many frames.
const SOME: usize = 500;

/// A peer that allows as many streams and bytes as there may be, with so many exchanges under way.
fn asked(count: usize) -> Peer {
    let wide = Settings { window: Some(1 << 30), ..Settings::default() };
    Peer::with(&target(), &wide).begin(count)
}

/// So many ids, in an order in which the next is far from the one before.
fn far_apart(count: usize) -> impl Iterator<Item = u32> {
    (0..count).map(move |at| {
        let place = if at % 2 == 0 { count / 2 + at / 2 } else { count / 2 - 1 - at / 2 };
        place as u32 * 2 + 1
    })
}

/// Asserts the cost of hearing what is made for so many streams, all at once and in many parts. `ended` says whether all exchanges
/// end, or none does.
fn is_heard(made: impl Fn(usize) -> Vec<u8>, ended: bool) {
    for parts in [1, 100] {
        is_near_linear(SOME, |count| {
            let bytes = made(count);
            move || {
                let mut peer = asked(count);
                for piece in bytes.chunks(bytes.len().div_ceil(parts)) {
                    peer.hear(piece).expect("right frames");
                    peer.pump();
                }
                assert_eq!(peer.ends().len(), if ended { count } else { 0 });
            }
        });
    }
}

#[test]
fn answers_in_any_order() {
    let ids = |count: usize| (0..count as u32).map(|at| at * 2 + 1);
    is_heard(|count| ids(count).flat_map(ok).collect(), true);
    is_heard(|count| ids(count).rev().flat_map(ok).collect(), true);
    is_heard(|count| far_apart(count).flat_map(ok).collect(), true);
}

#[test]
fn answers_in_many_parts() {
    let begun = |id| head(id, &[(":status", "200")], false);
    is_heard(|count| far_apart(count).flat_map(begun).collect(), false);
    is_heard(
        |count| {
            let heads = far_apart(count).flat_map(begun);
            let parts = |part: &'static [u8], ends| far_apart(count).flat_map(move |id| data(id, part, ends));
            heads.chain(parts(b"o", false)).chain(parts(b"k", true)).collect()
        },
        true,
    );
    let interim = |id| head(id, &[(":status", "103")], false);
    is_heard(|count| far_apart(count).flat_map(interim).collect(), false);
}

#[test]
fn frames_that_end_no_exchange() {
    let each =
        |write: fn(&mut Vec<u8>, u32)| move |count| put(|out| far_apart(count).for_each(|id| write(out, id)));
    is_heard(each(|out, id| put_window_update(out, id, 1)), false);
    is_heard(each(|out, _| put_window_update(out, 0, 1)), false);
    is_heard(each(|out, _| put_ping(out, *b"12345678", false)), false);
    is_heard(each(|out, _| put_go_away(out, (1 << 31) - 1, Code::NO_ERROR, "")), false);
    let falling = |count: usize| {
        put(|out| (0..count as u32).rev().for_each(|at| put_go_away(out, 2 * at + 1, Code::NO_ERROR, "")))
    };
    is_heard(falling, false);
    // Nothing has been processed.
    is_heard(each(|out, _| put_go_away(out, 0, Code::NO_ERROR, "")), false);
}

#[test]
fn exchanges_that_fail() {
    is_heard(|count| put(|out| far_apart(count).for_each(|id| put_reset(out, id, Code::CANCEL))), true);
    is_heard(|count| far_apart(count).flat_map(|id| data(id, b"no head", true)).collect(), true);
    is_near_linear(SOME, |count| {
        move || {
            let mut peer = asked(count);
            // The later half: the others go on.
            (count / 2..count).for_each(|id| assert!(peer.http.cancel(&mut peer.session, id as u64)));
            peer.pump();
        }
    });
}

#[test]
fn bodies_whose_windows_open_one_after_the_other() {
    is_near_linear(SOME, |count| {
        let updates: Vec<_> = far_apart(count).map(|id| put(|out| put_window_update(out, id, 100))).collect();
        move || {
            let closed = Settings { window: Some(0), ..Settings::default() };
            let target = Http { body: target::Body::Pattern(50), ..target() };
            let mut peer = Peer::with(&target, &closed).begin(count);
            for update in &updates {
                peer.hear(update).expect("more for one stream");
                peer.pump();
            }
            assert!(peer.session.state.streams.iter().all(|stream| !stream.sending.is_left()));
        }
    });
}
