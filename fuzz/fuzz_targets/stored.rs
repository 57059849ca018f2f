//! Any text in a store is a plan or an observation, or it is refused. What is read can be written, judged and summed up.
#![no_main]

use lab::findings::findings;
use lab::observation::{Observation, Outcome};
use lab::plan::Plan;
use libfuzzer_sys::fuzz_target;
use measurement::doubt::{TrialKind, doubts};

fuzz_target!(|input: &str| {
    // The first line is a plan, and each further one an observation.
    let mut lines = input.lines();
    let plan = lines.next().and_then(|line| serde_json::from_str::<Plan>(line).ok());
    let mut observations = Vec::new();
    for line in lines {
        let Ok(seen) = serde_json::from_str::<Observation>(line) else { continue };
        let again = serde_json::to_string(&seen).expect("an observation is JSON");
        assert_eq!(serde_json::from_str::<Observation>(&again).expect("the same"), seen);
        if let Outcome::Measured(measured) = &seen.outcome {
            if measured.check_sizes().is_err() {
                continue;
            }
            let _ = doubts(measured, &TrialKind::default());
        }
        observations.push(seen);
    }
    if let Some(plan) = plan {
        let again = serde_json::to_string(&plan).expect("a plan is JSON");
        assert_eq!(serde_json::from_str::<Plan>(&again).expect("the same"), plan);
        let _ = findings(&plan, &observations);
    }
});
