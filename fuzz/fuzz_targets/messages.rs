//! Whatever comes through the pipe of another machine is frames of messages, and jobs, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::Assignment;
use machines::{Message, read_frame};

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Ok(Some(frame)) = read_frame(&mut rest) {
        let Ok(message) = serde_json::from_slice::<Message>(&frame) else { continue };
        let again = serde_json::to_vec(&message).expect("a message is JSON");
        assert_eq!(serde_json::from_slice::<Message>(&again).expect("the same"), message);
        if let Message::Says { what } = message
            && let Ok(assignment) = serde_json::from_value::<Assignment>(what)
        {
            let _ = assignment.job();
        }
    }
});
