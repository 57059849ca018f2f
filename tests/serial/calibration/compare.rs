//! Compares what Narrows shows with what the endpoint recorded.

use serde_json::Value;

use super::endpoint::Exchange;
use super::witness::Witness;

/// The percentiles of the JSON, and the number of samples that each needs.
pub const PERCENTILES: [(&str, f64, usize); 4] =
    [("p50", 50.0, 20), ("p90", 90.0, 100), ("p99", 99.0, 1000), ("p99_9", 99.9, 10_000)];

/// The tolerance: 2 %, but at least 200 us.
fn tolerance(micros: f64) -> f64 {
    (micros * 0.02).max(200.0)
}

/// The percentile by nearest rank, in microseconds.
pub fn percentile(sorted: &[u64], p: f64) -> f64 {
    let rank = (p / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank - 1] as f64 / 1000.0
}

fn sorted(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times
}

/// Asserts that each percentile that the number of samples supports equals the truth's, and that the others are null.
///
/// `inner` is what the endpoint did. `outer`, if the endpoint knows it, adds what the machine took until the other side
/// continued. A percentile above the median may be between the two, because that is where the machine's hiccups are.
/// The median may exceed the truth only by the median time of the witness's messages; any more would be the generator's
/// fault. The machine may have held up some exchanges without the endpoint's knowledge, because it kept the generator
/// off its core. Their share moves the upper bound to a later rank. A percentile whose whole tail is within that share
/// has no upper bound, because only the machine decides it.
pub fn assert_recovered(
    what: &str,
    witness: &Witness,
    shown: &Value,
    inner: impl Iterator<Item = u64>,
    outer: impl Iterator<Item = u64>,
) {
    let (inner, outer, way) = (sorted(inner), sorted(outer), witness.median());
    let held = 100.0 * witness.held(tolerance(0.0));
    for (name, p, needed) in PERCENTILES {
        if inner.len() < needed {
            assert!(shown[name].is_null(), "{what}: {name} of {} samples: {shown}", inner.len());
            continue;
        }
        let got = shown[name].as_f64().unwrap_or_else(|| panic!("{what}: {name} in {shown}"));
        let (least, later) = (percentile(&inner, p), p + held);
        let most = if later >= 100.0 {
            f64::INFINITY
        } else if p > 50.0 {
            percentile(&outer, later).max(percentile(&inner, later) + way)
        } else {
            percentile(&inner, later) + way
        };
        eprintln!("{what:<34} {name:<5} injected {least:>9.1} to {most:>9.1}, recovered {got:>9.1} us");
        assert!(
            got >= least - tolerance(least) && got <= most + tolerance(most),
            "{what}: {name} is {got} us, and the endpoint recorded {least} to {most} us"
        );
    }
}

/// The same for the time from the send to the answer.
pub fn assert_service(what: &str, witness: &Witness, shown: &Value, exchanges: &[Exchange]) {
    let (inner, outer) = (exchanges.iter().map(Exchange::inner), exchanges.iter().map(Exchange::outer));
    assert_recovered(what, witness, shown, inner, outer);
}
