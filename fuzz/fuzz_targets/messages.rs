//! Whatever comes through the pipe of another machine is frames of messages, jobs, tallies and measurements, or an error.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use load::target::{Http, Traffic};
use load::{Asked, Assignment, Job, Stop, Tally, Target};
use machines::{Message, read_frame};
use measurement::doubt::{TrialKind, doubts};
use measurement::{Latency, Measurement};

/// What a drive is asked for if no order came before its tally.
fn requests() -> Job {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
    let target = Target { address: address.into(), traffic: Traffic::Http(Http::get("h", "/")) };
    Job::new(target, 10, Stop::After(Duration::from_secs(1)))
}

/// Whether a drive that was asked for this can have counted it.
fn is_possible(tally: &Tally, job: &Job) -> bool {
    let lasted = Duration::from_secs(10);
    [true, false].into_iter().any(|whole| tally.check(&Asked { job, lasted, whole }).is_ok())
}

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    let mut job = requests();
    while let Ok(Some(frame)) = read_frame(&mut rest) {
        let Ok(message) = serde_json::from_slice::<Message>(&frame) else { continue };
        let again = serde_json::to_vec(&message).expect("a message is JSON");
        assert_eq!(serde_json::from_slice::<Message>(&again).expect("the same"), message);
        let Message::Says { what } = message else { continue };
        if let Ok(assignment) = serde_json::from_value::<Assignment>(what.clone()) {
            job = assignment.job().unwrap_or(job);
        }
        if let Ok(tally) = serde_json::from_value::<Tally>(what.clone())
            && is_possible(&tally, &job)
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
