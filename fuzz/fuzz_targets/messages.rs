//! Whatever comes through the pipe of another machine is frames of messages, jobs, tallies and measurements, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::{Assignment, Tally};
use machines::{Message, read_frame};
use measurement::doubt::{TrialKind, doubts};
use measurement::{Latency, Measurement};

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Ok(Some(frame)) = read_frame(&mut rest) {
        let Ok(message) = serde_json::from_slice::<Message>(&frame) else { continue };
        let again = serde_json::to_vec(&message).expect("a message is JSON");
        assert_eq!(serde_json::from_slice::<Message>(&again).expect("the same"), message);
        let Message::Says { what } = message else { continue };
        if let Ok(assignment) = serde_json::from_value::<Assignment>(what.clone()) {
            let _ = assignment.job();
        }
        if let Ok(tally) = serde_json::from_value::<Tally>(what.clone())
            && (tally.check(true).is_ok() || tally.check(false).is_ok())
        {
            // Several generators may say the same.
            let mut sum = Tally::default();
            (0..3).for_each(|_| sum.merge(&tally));
            let _ = Measurement::from_tally(&sum).check();
            let _ = doubts(&Measurement::from_tally(&tally), &TrialKind::default());
        }
        if let Ok(measured) = serde_json::from_value::<Measurement>(what)
            && measured.check().is_ok()
        {
            let _ = doubts(&measured, &TrialKind::default());
            let _ = Latency::together([&measured.service_us, &measured.service_us].into_iter());
        }
    }
});
