//! The counts that explain a claim, in words.

use lab::findings::{Counted, Reason, Unit};
use systems::work::WorkUnit;

use crate::number::{bytes, count, percent, seconds, show};

/// What an answer waits for whose end is held back.
const HELD_BACK: &str = "the slower one needs two sends for one answer, with 40 ms between them (Nagle's algorithm and a delayed acknowledgement)";

/// A count of both sides: `2.0 system calls a request against 8.0`.
pub(super) fn counts(reason: &Reason, unit: &WorkUnit) -> String {
    let Reason { counted, faster, slower, .. } = *reason;
    let per_unit = |what: &str| {
        let each = |of: f64| count(of * unit.size);
        format!("{} {what} a {} against {}", each(faster), unit.name, each(slower))
    };
    let full = |whose: &str, who: &str| {
        let (faster, slower) = (percent(faster), percent(slower));
        format!(
            "{whose} was full for {faster} of the time in which {who} had something to send, against {slower}"
        )
    };
    match counted {
        Counted::BytesPerRead => {
            let reads = |each: f64| count(1e9 / each);
            format!(
                "a read takes {} bytes against {}: {} reads a GB against {}",
                count(faster),
                count(slower),
                reads(faster),
                reads(slower)
            )
        }
        Counted::BytesPerSegmentIn => {
            format!("a TCP segment to it carries {} bytes against {}", count(faster), count(slower))
        }
        Counted::SystemCalls => per_unit("system calls"),
        Counted::ContextSwitches => per_unit("context switches"),
        Counted::Instructions => per_unit("instructions"),
        Counted::SegmentsIn => per_unit("received TCP segments"),
        Counted::SegmentsOut => per_unit("sent TCP segments"),
        Counted::Retransmits => {
            format!("TCP sent {} segments again in a second against {}", count(faster), count(slower))
        }
        Counted::PageFaults => per_unit("page faults"),
        Counted::BytesOut => {
            let each = |of: f64| bytes(of * unit.size);
            format!("it sent {} a {} against {}", each(faster), unit.name, each(slower))
        }
        Counted::FullHandshakes => format!("{}, each with a signature", per_unit("full handshakes")),
        Counted::CoreWait => format!(
            "its threads waited {} for a core for each second that they ran, against {}",
            seconds(faster),
            seconds(slower)
        ),
        Counted::WindowLimitedIn => full("its receive window", "the generator"),
        Counted::WindowLimitedOut => full("the generator's receive window", "it"),
        Counted::BufferLimitedIn => full("the generator's send buffer", "the generator"),
        Counted::BufferLimitedOut => full("its send buffer", "it"),
        Counted::HeldBack => HELD_BACK.to_owned(),
        Counted::OwnCode | Counted::Functions => {
            let each = |of: f64| show(of, Unit::cost_of(unit));
            format!("its own code: {} of CPU a {} against {}", each(faster), unit.name, each(slower))
        }
        Counted::Waits => {
            format!("it waits {} a {} against {}", seconds(slower), unit.name, seconds(faster))
        }
        Counted::Softirqs => {
            format!("softirqs took {} of its cores' time, against {}", percent(faster), percent(slower))
        }
    }
}

#[cfg(test)]
mod tests {
    use systems::Workload;

    use super::*;

    #[test]
    fn each_count_is_named_for_what_it_is() {
        for (counted, [faster, slower], said) in [
            (Counted::SegmentsOut, [1.0, 3.04], "1.0 sent TCP segments a request against 3.0"),
            (Counted::Retransmits, [0.0, 25.0], "TCP sent 0 segments again in a second against 25"),
            (Counted::BytesOut, [97_200.0, 1_049_000.0], "it sent 97 kB a request against 1.0 MB"),
            (
                Counted::FullHandshakes,
                [0.0, 0.999],
                "0 full handshakes a request against 1.0, each with a signature",
            ),
            (
                Counted::BytesPerSegmentIn,
                [32_000.0, 1448.0],
                "a TCP segment to it carries 32,000 bytes against 1,450",
            ),
            (
                Counted::CoreWait,
                [0.012, 1.8],
                "its threads waited 12.0 ms for a core for each second that they ran, against 1.80 s",
            ),
            (Counted::OwnCode, [30e-6, 163e-6], "its own code: 30.0 us of CPU a request against 163 us"),
            (Counted::Softirqs, [0.03, 0.4], "softirqs took 3.0 % of its cores' time, against 40 %"),
            (
                Counted::WindowLimitedIn,
                [0.0, 0.6],
                "its receive window was full for 0 % of the time in which the generator had something to send, against 60 %",
            ),
        ] {
            let reason = Reason { counted, faster, slower, share: 1.0 };
            assert_eq!(counts(&reason, &Workload::Requests.about().unit), said);
        }
    }
}
