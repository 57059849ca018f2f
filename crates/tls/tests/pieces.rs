//! Cuts never change what is read, and nothing that a peer sends panics.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod common;

use common::{LOCAL, Pair, dialing, line, listener, root, serving, uncut};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tls::{Dialing, Handshake, Parameters, Serving, Version};

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Parameters under which both sides send as many kinds of messages as possible.
fn parameters(version: Version) -> Parameters {
    Parameters {
        versions: vec![version],
        alpn: vec![b"http/1.1".to_vec()],
        sessions: true,
        ..Parameters::default()
    }
}

/// Both sides with certificates.
fn mutual(version: Version) -> (Dialing, Serving) {
    let dialing = Dialing { identity: Some(LOCAL.clone()), ..dialing(parameters(version)) };
    (dialing, Serving { clients: Some(root()), ..serving(parameters(version)) })
}

/// Two connections of a line, the second with its session, and what is said on them.
fn talk(version: Version, cut: &mut dyn FnMut(usize) -> usize, plain: &[Vec<u8>]) -> Vec<Handshake> {
    let (dialing, serving) = mutual(version);
    let (mut line, listener) = (line(&dialing), listener(&serving));
    let mut shakes = Vec::new();
    for _ in 0..2 {
        let mut pair = Pair::new(&mut line, &listener);
        pair.carry(cut);
        for piece in plain {
            pair.ask(piece, cut);
            pair.answer(piece, cut);
        }
        let mut bytes = Vec::new();
        pair.server.close_notify(&mut bytes);
        pair.for_client(&bytes, cut);
        assert_eq!((pair.client_fault, pair.server_fault), (None, None));
        assert!(pair.client.ended());
        let said = plain.concat();
        assert!(pair.to_client == said && pair.to_server == said);
        shakes.push(pair.client.handshake().expect("a handshake"));
    }
    shakes
}

#[test]
fn a_cut_after_every_byte_changes_nothing() {
    let plain = [b"a".to_vec(), vec![7; 20_000]];
    for version in Version::ALL {
        assert_eq!(talk(version, &mut |_| 1, &plain), talk(version, &mut uncut, &plain));
    }
}

#[test]
fn one_cut_in_each_flight_changes_nothing() {
    for version in Version::ALL {
        let whole = talk(version, &mut uncut, &[b"hello".to_vec()]);
        for at in (1..200).chain((200..1500).step_by(7)) {
            let mut first = true;
            let mut cut = |left: usize| {
                let length = if first { at } else { left };
                first = length == left;
                length
            };
            assert_eq!(talk(version, &mut cut, &[b"hello".to_vec()]), whole);
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_cuts_change_nothing(
        version in prop::sample::select(&Version::ALL[..]),
        cuts in vec(1..3000_usize, 1..50),
        plain in vec(vec(any::<u8>(), 0..40_000), 0..4),
    ) {
        let mut cuts = cuts.iter().cycle();
        let mut cut = move |_| *cuts.next().expect("an endless supply");
        prop_assert_eq!(talk(version, &mut cut, &plain), talk(version, &mut uncut, &[]));
    }

    #[test]
    fn changed_bytes_end_in_a_fault_or_in_the_same_plaintext(
        version in prop::sample::select(&Version::ALL[..]),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        rounds in 0..4_usize,
        cuts in vec(1..3000_usize, 1..10),
    ) {
        let (dialing, serving) = mutual(version);
        let mut pair = Pair::new(&mut line(&dialing), &listener(&serving));
        let mut cuts = cuts.iter().cycle();
        let mut cut = move |_| *cuts.next().expect("an endless supply");
        for round in 0..5 {
            let mut bytes = Vec::new();
            pair.client.take_output(&mut bytes);
            if pair.client.ready() && round > 2 {
                _ = pair.client.send(b"hello", &mut bytes);
            }
            change(&mut bytes, &changes, round == rounds);
            pair.for_server(&bytes, &mut cut);
            bytes.clear();
            pair.server.take_output(&mut bytes);
            if pair.server.ready() && round > 2 {
                _ = pair.server.send(b"hello", &mut bytes);
            }
            change(&mut bytes, &changes, round == rounds);
            pair.for_client(&bytes, &mut cut);
        }
        prop_assert!(b"hello".repeat(2).starts_with(&pair.to_client));
        prop_assert!(b"hello".repeat(2).starts_with(&pair.to_server));
    }

    #[test]
    fn garbage_ends_in_a_fault_or_in_silence(
        records in vec((20..25_u8, vec(any::<u8>(), 0..60)), 0..20),
        after in any::<bool>(),
        cuts in vec(1..40_usize, 1..10),
    ) {
        let mut bytes = Vec::new();
        for (kind, body) in &records {
            bytes.extend_from_slice(&[*kind, 3, 3, 0, body.len() as u8]);
            bytes.extend_from_slice(body);
        }
        let mut cuts = cuts.iter().cycle();
        let mut cut = move |_| *cuts.next().expect("an endless supply");
        let mut pair = Pair::new(&mut line(&dialing(parameters(Version::Tls12))), &listener(&serving(parameters(Version::Tls12))));
        if after {
            pair.carry(&mut uncut);
        }
        pair.for_client(&bytes, &mut cut);
        pair.for_server(&bytes, &mut cut);
        prop_assert!(pair.to_client.is_empty() && pair.to_server.is_empty());
        for end in [pair.client.end(), pair.server.end()] {
            prop_assert!(end.is_err());
        }
    }
}

fn change(bytes: &mut [u8], changes: &[(Index, u8)], now: bool) {
    if !now || bytes.is_empty() {
        return;
    }
    for (index, value) in changes {
        *index.get_mut(bytes) ^= value;
    }
}

#[test]
fn a_client_can_send_while_half_a_message_waits() {
    // The server's tickets arrive in two halves, and the client sends in between.
    let (dialing, serving) = mutual(Version::Tls13);
    let mut pair = Pair::new(&mut line(&dialing), &listener(&serving));
    let mut bytes = Vec::new();
    pair.client.take_output(&mut bytes);
    pair.for_server(&bytes, &mut uncut);
    bytes.clear();
    pair.server.take_output(&mut bytes);
    pair.for_client(&bytes, &mut uncut);
    bytes.clear();
    pair.client.take_output(&mut bytes);
    pair.for_server(&bytes, &mut uncut);
    bytes.clear();
    pair.server.take_output(&mut bytes);
    assert!(bytes.len() > 100, "tickets");
    for at in 1..bytes.len() {
        pair.for_client(&bytes[at - 1..at], &mut uncut);
        pair.ask(b"x", &mut uncut);
    }
    assert_eq!((pair.to_server.len(), pair.client_fault, pair.server_fault), (bytes.len() - 1, None, None));
}
