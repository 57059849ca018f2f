//! Measures what a client pays, under `valgrind --tool=callgrind` or by the clock:
//! `cargo run --release -p tls --example tls_instructions -- seal 100000 1.3`.
//!
//! Under callgrind, `--toggle-collect='*client_pays*'` leaves out what the server does. To get instructions for each, run it
//! with two counts and divide the difference in instructions by the difference in counts. Without callgrind it prints the time
//! of both sides.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tls::{
    Authority, ClientChannel, Dialer, Dialing, KeyKind, Leaf, Line, Listener, Parameters, ServerChannel,
    Serving, Trust, Version,
};

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// Everything that is counted happens in here.
#[inline(never)]
fn client_pays<T>(act: impl FnOnce() -> T) -> T {
    let result = act();
    black_box(());
    result
}

fn shake(line: &mut Line, listener: &Listener) -> (ClientChannel, ServerChannel) {
    let mut server = listener.accept(now()).expect("a server");
    let mut bytes = Vec::with_capacity(8192);
    let mut client = client_pays(|| line.open(now())).expect("a client");
    while client.has_output() || server.has_output() {
        bytes.clear();
        client.take_output(&mut bytes);
        server.receive(&mut bytes, |_| {}).expect("an honest client");
        bytes.clear();
        server.take_output(&mut bytes);
        client_pays(|| client.receive(&mut bytes, |_| {})).expect("an honest server");
    }
    (client, server)
}

fn records(mode: &str, count: u64, client: &mut ClientChannel, server: &mut ServerChannel) {
    let (request, answer) = ([7; 60], [7; 160]);
    let mut bytes = Vec::with_capacity(8192);
    for _ in 0..count {
        bytes.clear();
        if mode == "seal" {
            client_pays(|| client.send(black_box(&request), &mut bytes)).expect("a client that can send");
        } else {
            server.send(&answer, &mut bytes).expect("a server that can send");
            let plain = |plain: &[u8]| {
                black_box(plain);
            };
            client_pays(|| client.receive(&mut bytes, plain)).expect("an honest server");
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_else(|| "seal".to_owned());
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let version = arguments.next().and_then(|name| Version::from_name(&name).ok()).unwrap_or(Version::Tls13);
    let key = if mode.ends_with("rsa") { KeyKind::Rsa2048 } else { KeyKind::P256 };
    let (from, until) = (now() - Duration::from_secs(60), now() + Duration::from_secs(60));
    let authority = Authority::new(from, until).expect("an authority");
    let leaf = Leaf { names: &["localhost"], key, from, until };
    let parameters =
        Parameters { versions: vec![version], sessions: mode == "resumed", ..Parameters::default() };
    let identity = authority.issue(&leaf).expect("a certificate");
    let listener = Listener::new(&Serving { identity, clients: None, parameters: parameters.clone() });
    let listener = listener.expect("a listener");
    let trust = match mode.as_str() {
        "anyone" => Trust::Anyone,
        _ => Trust::Pem(authority.certificate().into_bytes()),
    };
    let dialing = Dialing { name: "localhost".to_owned(), trust, identity: None, parameters };
    let mut line = Dialer::new(&dialing).expect("a dialer").line();
    let (mut client, mut server) = shake(&mut line, &listener);
    let begin = Instant::now();
    match mode.as_str() {
        "seal" | "open" => records(&mode, count, &mut client, &mut server),
        _ => (0..count).for_each(|_| {
            black_box(shake(&mut line, &listener));
        }),
    }
    println!("{mode}: {:.0} ns each", begin.elapsed().as_nanos() as f64 / count as f64);
}
