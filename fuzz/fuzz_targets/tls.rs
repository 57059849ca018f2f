//! Whatever a peer sends to a TLS client or server, and however it is cut: nothing panics, and what waits has a limit. The
//! first byte says whether the bytes come before or after the handshake, and with which version.
#![no_main]

#[path = "../../crates/tls/tests/common/mod.rs"]
mod tls_common;
#[path = "../../crates/wire/tests/common/mod.rs"]
mod wire_common;

use libfuzzer_sys::fuzz_target;
use tls::{Parameters, Version};
use tls_common::{Pair, dialing, line, listener, serving, uncut};

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let (cuts, stream) = wire_common::split_input(input);
    let versions = vec![Version::ALL[usize::from(choice & 1)]];
    let parameters = Parameters { versions, sessions: true, ..Parameters::default() };
    let mut pair = Pair::new(&mut line(&dialing(parameters.clone())), &listener(&serving(parameters)));
    if choice & 2 != 0 {
        pair.carry(&mut uncut);
    }
    let mut at = 0;
    let mut cut = |left: usize| {
        at += 1;
        cuts.get(at % cuts.len().max(1)).copied().unwrap_or(left)
    };
    pair.for_client(stream, &mut cut);
    pair.for_server(stream, &mut cut);
    // Nothing that was not encrypted for this connection is plaintext.
    assert!(pair.to_client.is_empty() && pair.to_server.is_empty());
    pair.carry(&mut uncut);
    assert!(pair.client.end().is_err() || pair.client.ended());
    assert!(pair.server.end().is_err() || pair.server.ended());
});
