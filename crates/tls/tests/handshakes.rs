//! What a client and a server agree on, in memory.

mod common;

use common::{AUTHORITY, DAY, Pair, dialing, issue, line, listener, now, root, serving, shaken, uncut};
use tls::{
    Dialer, Dialing, Handshake, Identity, KeyKind, Kind, Leaf, Listener, Parameters, Serving, TlsError,
    Trust, Version,
};

fn only(version: Version) -> Parameters {
    Parameters { versions: vec![version], ..Parameters::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn handshake(pair: &Pair) -> Handshake {
    assert_eq!((pair.client_fault, pair.server_fault), (None, None));
    let server = pair.server.handshake().expect("the server's handshake");
    let client = pair.client.handshake().expect("the client's handshake");
    assert_eq!(server, Handshake { offered: false, ..client });
    client
}

#[test]
fn both_sides_read_what_the_other_sends_and_see_its_end() {
    for version in Version::ALL {
        let mut pair = shaken(&dialing(only(version)), &serving(only(version)));
        assert_eq!((handshake(&pair).kind, handshake(&pair).version), (Kind::Full, version));
        let long: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        pair.ask(b"a question", &mut uncut);
        pair.answer(&long, &mut uncut);
        assert_eq!((pair.to_server.as_slice(), &pair.to_client), (b"a question".as_slice(), &long));

        let mut bytes = Vec::new();
        pair.client.close_notify(&mut bytes);
        pair.for_server(&bytes, &mut uncut);
        assert!(pair.server.ended() && pair.server.ready());
        assert_eq!(pair.server.end(), Ok(()));
        pair.answer(b"a last word", &mut uncut);
        assert!(pair.to_client.ends_with(b"a last word"));
    }
}

#[test]
fn a_line_resumes_its_sessions_if_it_is_asked_to() {
    for version in Version::ALL {
        let parameters = Parameters { sessions: true, ..only(version) };
        let listener = listener(&serving(parameters.clone()));
        let dialer = Dialer::new(&dialing(parameters)).expect("a dialer");
        let (mut line, mut other) = (dialer.line(), dialer.line());
        let kinds: Vec<_> = [&mut line, &mut other]
            .into_iter()
            .flat_map(|line| {
                [0, 1, 2].map(|_| {
                    let mut pair = Pair::new(line, &listener);
                    pair.carry(&mut uncut);
                    let shake = handshake(&pair);
                    (shake.kind, shake.offered, shake.refused())
                })
            })
            .collect();
        let (first, later) = ((Kind::Full, false, false), (Kind::Resumed, true, false));
        assert_eq!(kinds, [first, later, later, first, later, later], "{version:?}");
    }
}

#[test]
fn without_sessions_every_connection_is_a_new_client() {
    for version in Version::ALL {
        let listener = listener(&serving(Parameters { sessions: true, ..only(version) }));
        let mut line = line(&dialing(only(version)));
        for _ in 0..3 {
            let mut pair = Pair::new(&mut line, &listener);
            pair.carry(&mut uncut);
            assert_eq!((handshake(&pair).kind, handshake(&pair).offered), (Kind::Full, false));
        }
    }
}

#[test]
fn a_server_that_does_not_know_a_session_refuses_it() {
    for version in Version::ALL {
        let parameters = Parameters { sessions: true, ..only(version) };
        let mut line = line(&dialing(parameters.clone()));
        let refused = [0, 1].map(|_| {
            // Each has tickets of its own.
            let mut pair = Pair::new(&mut line, &listener(&serving(parameters.clone())));
            pair.carry(&mut uncut);
            (handshake(&pair).kind, handshake(&pair).refused())
        });
        assert_eq!(refused, [(Kind::Full, false), (Kind::Full, true)], "{version:?}");
    }
}

#[test]
fn a_server_without_tickets_gives_none() {
    for version in Version::ALL {
        let listener = listener(&serving(only(version)));
        let mut line = line(&dialing(Parameters { sessions: true, ..only(version) }));
        for _ in 0..2 {
            let mut pair = Pair::new(&mut line, &listener);
            pair.carry(&mut uncut);
            assert_eq!((handshake(&pair).kind, handshake(&pair).offered), (Kind::Full, false));
        }
    }
}

#[test]
fn cipher_suites_and_groups_are_those_that_were_chosen() {
    let rsa = AUTHORITY
        .issue(&Leaf { names: &["localhost"], key: KeyKind::Rsa2048, from: now() - DAY, until: now() + DAY })
        .expect("a certificate");
    for cipher in tls::ciphers() {
        for group in tls::groups() {
            let chosen =
                Parameters { ciphers: names(&[cipher]), groups: names(&[group]), ..Parameters::default() };
            let mut serving = serving(Parameters::default());
            if cipher.contains("_RSA_") {
                serving.identity = rsa.clone();
            }
            let shake = handshake(&shaken(&dialing(chosen), &serving));
            assert_eq!((shake.cipher, shake.group), (cipher, Some(group)));
        }
    }
}

#[test]
fn names_of_openssl_are_known_too() {
    let chosen = Parameters {
        ciphers: names(&["ecdhe-ecdsa-chacha20-poly1305"]),
        groups: names(&["p-384"]),
        ..Parameters::default()
    };
    let shake = handshake(&shaken(&dialing(chosen), &serving(Parameters::default())));
    assert_eq!(shake.cipher, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    assert_eq!((shake.version, shake.group), (Version::Tls12, Some("secp384r1")));
}

#[test]
fn a_key_of_another_group_costs_a_round_trip_each_time() {
    let only_p256 = Parameters { groups: names(&["secp256r1"]), ..Parameters::default() };
    let listener = listener(&serving(only_p256));
    let mut line = line(&dialing(Parameters { sessions: true, ..Parameters::default() }));
    for _ in 0..2 {
        let mut pair = Pair::new(&mut line, &listener);
        pair.carry(&mut uncut);
        assert_eq!((handshake(&pair).kind, handshake(&pair).group), (Kind::Retried, Some("secp256r1")));
    }
}

#[test]
fn the_application_protocol_is_the_servers_first_choice_of_those_offered() {
    let alpn = |names: &[&str]| Parameters {
        alpn: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
        ..Parameters::default()
    };
    for version in Version::ALL {
        let offered = Parameters { versions: vec![version], ..alpn(&["h2", "http/1.1"]) };
        let pair = shaken(&dialing(offered), &serving(alpn(&["http/1.1", "h2"])));
        handshake(&pair);
        assert_eq!(pair.client.alpn(), Some(b"http/1.1".as_slice()));
        assert_eq!(pair.server.alpn(), Some(b"http/1.1".as_slice()));
    }
    let pair = shaken(&dialing(Parameters::default()), &serving(alpn(&["h2"])));
    handshake(&pair);
    assert_eq!(pair.client.alpn(), None);
}

#[test]
fn a_client_shows_its_certificate_if_the_server_asks() {
    for version in Version::ALL {
        let serving = Serving { clients: Some(root()), ..serving(only(version)) };
        let dialing = Dialing { identity: Some(issue(&["a client"])), ..dialing(only(version)) };
        let mut pair = shaken(&dialing, &serving);
        handshake(&pair);
        pair.ask(b"hello", &mut uncut);
        assert_eq!(pair.to_server, b"hello");
    }
}

#[test]
fn certificates_are_for_names_and_addresses() {
    let identity = issue(&["one.test", "*.two.test", "127.0.0.1", "::1"]);
    let serving = Serving { identity, ..serving(Parameters::default()) };
    for name in ["one.test", "ONE.test", "a.two.test", "127.0.0.1", "::1"] {
        handshake(&shaken(&Dialing { name: name.to_owned(), ..dialing(Parameters::default()) }, &serving));
    }
}

#[test]
fn whoever_accepts_anyone_accepts_another_name_and_time() {
    let identity = common::issue_in(&["other.test"], now() - 3 * DAY, now() - 2 * DAY);
    let serving = Serving { identity, ..serving(Parameters::default()) };
    for version in Version::ALL {
        let dialing = Dialing { trust: Trust::Anyone, ..dialing(only(version)) };
        handshake(&shaken(&dialing, &serving));
    }
}

#[test]
fn roots_of_a_system_that_cannot_be_used_are_left_out() {
    let pem = String::from_utf8(root()).expect("text");
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = decode(&base64);
    let roots = Trust::Roots(vec![b"nonsense".to_vec(), der]);
    handshake(&shaken(
        &Dialing { trust: roots, ..dialing(Parameters::default()) },
        &serving(Parameters::default()),
    ));
    let none = Dialing { trust: Trust::Roots(vec![b"nonsense".to_vec()]), ..dialing(Parameters::default()) };
    assert_eq!(refusal(&none), "the system's collection cannot be used: no root certificate can be used");
}

fn decode(base64: &str) -> Vec<u8> {
    let digit = |character| match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = base64.trim_end_matches('=').as_bytes();
    let bits = |chunk: &[u8]| {
        let number = chunk.iter().fold(0_u32, |number, character| number << 6 | u32::from(digit(*character)));
        (number << (6 * (4 - chunk.len()))).to_be_bytes()[1..chunk.len()].to_vec()
    };
    text.chunks(4).flat_map(bits).collect()
}

fn refusal(dialing: &Dialing) -> String {
    Dialer::new(dialing).expect_err("values that cannot be used").to_string()
}

#[test]
fn errors_name_the_value_that_cannot_be_used() {
    let with = |parameters| refusal(&dialing(parameters));
    let cipher = Parameters { ciphers: names(&["RC4"]), ..Parameters::default() };
    assert!(with(cipher).starts_with("unknown cipher suite \"RC4\"; there are TLS_AES_256_GCM_SHA384, "));
    let group = Parameters { groups: names(&["x448"]), ..Parameters::default() };
    assert_eq!(with(group), "unknown group \"x448\"; there are x25519, secp256r1, secp384r1");
    let neither = Parameters { ciphers: names(&["TLS_AES_128_GCM_SHA256"]), ..only(Version::Tls12) };
    assert_eq!(with(neither), "none of the cipher suites is of TLS 1.2");
    let empty = Parameters { alpn: vec![Vec::new()], ..Parameters::default() };
    assert_eq!(with(empty), "the name of an application protocol has 1 to 255 bytes, not 0");
    assert_eq!(
        Version::from_name("1.1").expect_err("no version").to_string(),
        "unknown version of TLS \"1.1\"; there are 1.2, 1.3"
    );

    let plain = || dialing(Parameters::default());
    let nowhere = Dialing { name: "a b".to_owned(), ..plain() };
    assert_eq!(refusal(&nowhere), "\"a b\" is neither a DNS name nor an IP address");
    let trust = |pem: &[u8]| refusal(&Dialing { trust: Trust::Pem(pem.to_vec()), ..plain() });
    assert_eq!(trust(b"hello"), "the file of root certificates has no section BEGIN CERTIFICATE");
    assert_eq!(
        trust(b"-----BEGIN CERTIFICATE-----\nAAAA\n"),
        "the file of root certificates is not PEM: a section has no END line"
    );
    assert!(
        trust(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .starts_with("the file of root certificates cannot be used: ")
    );
    let (one, two) = (issue(&["one.test"]), issue(&["two.test"]));
    let mixed = Identity { certificate: one.certificate.clone(), key: two.key };
    let client = Dialing { identity: Some(mixed.clone()), ..plain() };
    assert_eq!(refusal(&client), "the client's key does not belong to the client's certificate");
    let server = Listener::new(&Serving { identity: mixed, ..serving(Parameters::default()) });
    assert_eq!(
        server.expect_err("another's key"),
        TlsError::OtherKey { key: "the server's key", certificate: "the server's certificate" }
    );
    let swapped = Identity { certificate: one.key, key: one.certificate };
    let client = Dialing { identity: Some(swapped), ..plain() };
    assert_eq!(refusal(&client), "the client's key has no section BEGIN PRIVATE KEY");
}

#[test]
fn a_certificate_for_no_legal_name_is_not_issued() {
    let leaf = Leaf { names: &["ä"], key: KeyKind::P256, from: now(), until: now() + DAY };
    let error = AUTHORITY.issue(&leaf).expect_err("an illegal name").to_string();
    assert!(error.starts_with("no certificate for ä: "), "{error}");
}
