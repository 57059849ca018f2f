//! Any line of a client driver is a measurement that can be stored and judged, or another line, or an error.
#![no_main]

use std::time::Duration;

use lab::session::measurement_of_line;
use libfuzzer_sys::fuzz_target;
use measurement::Measurement;
use measurement::doubt::{TrialKind, doubts};

const WINDOW: Duration = Duration::from_secs(1);

fuzz_target!(|input: &str| {
    for (line, open_loop) in input.lines().flat_map(|line| [(line, false), (line, true)]) {
        let Ok(Some(measured)) = measurement_of_line(line, WINDOW, open_loop) else { continue };
        // Only what passes this may come from another machine, but a session stores the rest, too.
        let _ = measured.check();
        let kinds = [
            TrialKind::default(),
            TrialKind {
                pool_cap: Some(4),
                closed_loop: !open_loop,
                short_exchanges: true,
                ..TrialKind::default()
            },
        ];
        kinds.iter().for_each(|kind| drop(doubts(&measured, kind)));
        let stored = serde_json::to_vec(&measured).expect("a measurement is JSON");
        let read: Measurement = serde_json::from_slice(&stored).expect("what was stored can be read");
        assert_eq!(read, measured);
    }
});
