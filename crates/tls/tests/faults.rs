//! What goes wrong, and what it is called.

mod common;

use common::{DAY, Pair, dialing, issue, issue_in, line, listener, now, root, serving, shaken, uncut};
use tls::{
    Authority, CertificateFault, Dialing, Fault, Identity, KeyKind, Leaf, Parameters, Serving, Version,
};

/// The faults of both sides.
fn faults(dialing: &Dialing, serving: &Serving) -> [Option<Fault>; 2] {
    let pair = shaken(dialing, serving);
    [pair.client_fault, pair.server_fault]
}

fn certificate(identity: Identity) -> [Option<Fault>; 2] {
    faults(&dialing(Parameters::default()), &Serving { identity, ..serving(Parameters::default()) })
}

fn named(name: &str) -> Identity {
    issue(&[name])
}

#[test]
fn certificates_are_refused_by_name_and_the_server_is_told() {
    let bad = |fault, alert| [Some(Fault::Certificate(fault)), Some(Fault::Alert(alert))];
    let local = &["localhost"];
    assert_eq!(certificate(named("other.test")), bad(CertificateFault::WrongName, 42));
    let late = issue_in(local, now() - 2 * DAY, now() - DAY);
    assert_eq!(certificate(late), bad(CertificateFault::Expired, 45));
    let early = issue_in(local, now() + DAY, now() + 2 * DAY);
    assert_eq!(certificate(early), bad(CertificateFault::NotYetValid, 45));
    let other = Authority::new(now() - DAY, now() + DAY).expect("an authority");
    let leaf = Leaf { names: local, key: KeyKind::P256, from: now() - DAY, until: now() + DAY };
    let other = other.issue(&leaf).expect("a certificate");
    // The two authorities have the same name, so that it is the signature which does not fit.
    let [client, server] = certificate(other);
    assert!(
        matches!(
            client,
            Some(Fault::Certificate(CertificateFault::UnknownIssuer | CertificateFault::BadSignature))
        ),
        "{client:?}"
    );
    assert!(matches!(server, Some(Fault::Alert(48 | 51))), "{server:?}");
}

#[test]
fn a_certificate_that_was_accepted_is_still_refused_for_another_reason() {
    let mut line = line(&dialing(Parameters::default()));
    let mut fault = |identity: &Identity, time| {
        let serving = Serving { identity: identity.clone(), ..serving(Parameters::default()) };
        let listener = listener(&serving);
        let mut pair = Pair::new(&mut line, &listener);
        pair.client = line.open(time).expect("a client");
        pair.carry(&mut uncut);
        pair.client_fault
    };
    let (local, other) = (named("localhost"), named("other.test"));
    assert_eq!([fault(&local, now()), fault(&local, now())], [None, None]);
    assert_eq!(fault(&local, now() + 2 * DAY), Some(Fault::Certificate(CertificateFault::Expired)));
    assert_eq!(fault(&other, now()), Some(Fault::Certificate(CertificateFault::WrongName)));
    assert_eq!(fault(&local, now()), None);
}

#[test]
fn a_client_without_the_certificate_that_is_asked_for_is_refused() {
    for version in Version::ALL {
        let parameters = Parameters { versions: vec![version], ..Parameters::default() };
        let serving = Serving { clients: Some(root()), ..serving(parameters.clone()) };
        let [client, server] = faults(&dialing(parameters), &serving);
        assert_eq!(server, Some(Fault::Certificate(CertificateFault::Missing)), "{version:?}");
        assert!(matches!(client, Some(Fault::Alert(116 | 40 | 42))), "{version:?} {client:?}");
    }
}

#[test]
fn nothing_in_common_is_said_on_the_side_that_finds_out() {
    let versions = |version| Parameters { versions: vec![version], ..Parameters::default() };
    let [client, server] = faults(&dialing(versions(Version::Tls12)), &serving(versions(Version::Tls13)));
    assert_eq!(server, Some(Fault::NothingInCommon("version")));
    assert_eq!(client, Some(Fault::Alert(70)));
    let [client, server] = faults(&dialing(versions(Version::Tls13)), &serving(versions(Version::Tls12)));
    assert_eq!((client, server), (Some(Fault::Alert(70)), Some(Fault::NothingInCommon("version"))));

    let cipher = |name: &str| Parameters { ciphers: vec![name.to_owned()], ..Parameters::default() };
    let [client, server] =
        faults(&dialing(cipher("TLS_AES_128_GCM_SHA256")), &serving(cipher("TLS_AES_256_GCM_SHA384")));
    assert_eq!(server, Some(Fault::NothingInCommon("cipher suite")));
    assert_eq!(client, Some(Fault::Alert(40)));
    // The server's key is ECDSA.
    let rsa = cipher("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    let [client, server] = faults(&dialing(rsa), &serving(Parameters::default()));
    assert!(matches!(server, Some(Fault::NothingInCommon(_))), "{server:?}");
    assert_eq!(client, Some(Fault::Alert(40)));

    let group = |name: &str| Parameters { groups: vec![name.to_owned()], ..Parameters::default() };
    let [client, server] = faults(&dialing(group("x25519")), &serving(group("secp256r1")));
    assert_eq!((client, server), (Some(Fault::Alert(40)), Some(Fault::NothingInCommon("group"))));
}

#[test]
fn an_application_protocol_that_is_not_agreed_on_is_a_fault() {
    for version in Version::ALL {
        let alpn = |names: &[&str]| Parameters {
            versions: vec![version],
            alpn: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..Parameters::default()
        };
        let [client, server] = faults(&dialing(alpn(&["h2"])), &serving(alpn(&["http/1.1"])));
        assert_eq!(client, Some(Fault::Alert(120)), "{version:?}");
        assert_eq!(server, Some(Fault::NothingInCommon("application protocol")), "{version:?}");
        // A server that knows nothing of it.
        let [client, _] = faults(&dialing(alpn(&["h2"])), &serving(alpn(&[])));
        assert_eq!(client, Some(Fault::NoAlpn), "{version:?}");
    }
}

#[test]
fn a_peer_that_does_not_speak_tls_is_found_by_its_first_byte() {
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    let mut answer = *b"HTTP/1.1 400 Bad Request\r\n\r\n";
    assert_eq!(client.receive(&mut answer[..1], |_| {}), Err(Fault::NotTls));
    assert_eq!(client.receive(&mut answer[1..], |_| {}), Err(Fault::NotTls));
    assert_eq!(client.end(), Err(Fault::NotTls));
    let mut server = listener(&serving(Parameters::default())).accept(now()).expect("a server");
    assert_eq!(server.receive(&mut b"GET / HTTP/1.1\r\n".to_vec(), |_| {}), Err(Fault::NotTls));
}

#[test]
fn an_end_during_the_handshake_or_without_notice_is_a_fault() {
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    assert_eq!(client.end(), Err(Fault::EndedInHandshake));
    let mut pair = shaken(&dialing(Parameters::default()), &serving(Parameters::default()));
    assert_eq!(pair.client.end(), Err(Fault::Truncated));
    assert!(!pair.client.ready());
    assert_eq!(pair.client.send(b"more", &mut Vec::new()), Err(Fault::Truncated));
    // Anybody can say that it ends before there are keys.
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    assert_eq!(client.receive(&mut [21, 3, 3, 0, 2, 1, 0], |_| {}), Ok(()));
    assert_eq!(client.end(), Err(Fault::EndedInHandshake));
}

#[test]
fn nothing_is_sent_before_the_handshake_is_complete() {
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    let mut out = Vec::new();
    assert_eq!(client.send(b"early", &mut out), Err(Fault::NotReady));
    client.close_notify(&mut out);
    assert_eq!(out, b"");
    assert_eq!(client.fault(), None);
}

#[test]
fn a_changed_byte_is_found_and_what_came_before_it_is_kept() {
    for version in Version::ALL {
        let parameters = Parameters { versions: vec![version], ..Parameters::default() };
        let mut pair = shaken(&dialing(parameters.clone()), &serving(parameters));
        let mut bytes = Vec::new();
        pair.server.send(b"good", &mut bytes).expect("a server that can send");
        let good = bytes.len();
        pair.server.send(b"bad", &mut bytes).expect("a server that can send");
        bytes[good + 8] ^= 1;
        pair.for_client(&bytes, &mut uncut);
        assert_eq!(
            (pair.to_client.as_slice(), pair.client_fault),
            (b"good".as_slice(), Some(Fault::Undecryptable))
        );
        // The server is told.
        let mut alert = Vec::new();
        pair.client.take_output(&mut alert);
        pair.for_server(&alert, &mut uncut);
        assert_eq!(pair.server_fault, Some(Fault::Alert(20)));
    }
}

#[test]
fn a_record_that_is_too_large_is_refused_at_its_header() {
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    assert_eq!(client.receive(&mut [22, 3, 3, 0xff, 0xff], |_| {}), Err(Fault::TooLarge));
    let mut pair = shaken(&dialing(Parameters::default()), &serving(Parameters::default()));
    pair.for_client(&[23, 3, 3, 0x48, 0x01], &mut uncut);
    assert_eq!(pair.client_fault, Some(Fault::TooLarge));
}

#[test]
fn a_message_without_an_end_is_refused() {
    // A handshake message that says it has 16 MB, or 64 KiB minus one byte in records of one byte each.
    for length in [[0xff, 0xff, 0xff], [0, 0xff, 0xff]] {
        let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
        let mut fault = None;
        let mut header = vec![22, 3, 3, 0, 4, 2, length[0], length[1], length[2]];
        let mut bytes = header.as_mut_slice();
        let mut filler = [22, 3, 3, 0, 1, 7];
        let mut count = 0;
        while fault.is_none() && count < 100_000 {
            fault = client.receive(bytes, |_| {}).err();
            filler = [22, 3, 3, 0, 1, 7];
            bytes = &mut filler;
            count += 1;
        }
        assert_eq!(fault, Some(Fault::TooLarge), "{length:?}");
        _ = filler;
    }
}

#[test]
fn empty_records_without_end_are_refused() {
    let mut client = line(&dialing(Parameters::default())).open(now()).expect("a client");
    let faults = (0..100).find_map(|_| client.receive(&mut [22, 3, 3, 0, 0], |_| {}).err());
    assert!(matches!(faults, Some(Fault::Broken(_))), "{faults:?}");
}
