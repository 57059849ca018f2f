//! The times of trials that suit how fast servers are and how long they need until then.

use lab::observation::Timing;
use lab::session::Pace;

/// How long a first look may drive a point until its speed stands still, seconds.
const LONGEST_S: f64 = 20.0;

/// What a trial takes beside its warm-up and its window, roughly, seconds.
pub(super) const START_S: f64 = 0.5;

/// Answers that take so long are not those of code that is still being compiled, seconds.
const SLOW_S: f64 = 0.2;

/// By how many answers a count may be off, as a share of it, two standard deviations of callers that begin apart.
const RESOLUTION: f64 = 0.025;

/// The fewest answers of each caller in a window that is chosen freely. With fewer, the callers that began apart hardly mix.
const CYCLES: f64 = 5.0;

/// The fewest answers of each caller in any window, whatever the budget.
pub(super) const FEWEST_CYCLES: f64 = 3.0;

/// The timing of a first look: the window is the longest.
pub(super) fn look(usual: Timing) -> Timing {
    Timing { warmup_s: 0.0, measure_s: LONGEST_S, ..usual }
}

/// The warm-up that a point needs, seconds. Its speed stood still in the last two thirds of the time that the look drove it.
pub(super) fn warmup_s(pace: &Pace) -> f64 {
    if pace.at_once || pace.cycle_s() > SLOW_S { 0.0 } else { pace.settled_s / 2.0 }
}

/// The window in which a point gives enough answers, seconds: of ten callers about eighteen of each, of a hundred six.
pub(super) fn window_s(pace: &Pace) -> f64 {
    let off = pace.callers.min((2.0 * pace.callers).sqrt());
    (off / RESOLUTION / pace.callers).max(CYCLES) * pace.cycle_s()
}

/// Rounded up to half a second, if it is longer than one; what is shorter is as the user or the default says.
pub(super) fn rounded(seconds: f64) -> f64 {
    if seconds > 1.0 { (seconds * 2.0).ceil() / 2.0 } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_answers_need_a_longer_window_and_quick_ones_do_not() {
        let window = |callers: f64, per_s: f64| window_s(&Pace { per_s, callers, settled_s: 2.25, at_once: true });
        assert!(window(10.0, 20_000.0) < 0.1);
        // Ten callers that wait for 600 ms.
        assert!((10.0..11.0).contains(&window(10.0, 10.0 / 0.6)));
        // A thousand callers of a server that does 5,000/s have many answers soon.
        assert_eq!(window(1000.0, 5000.0), CYCLES * 0.2);
        assert_eq!([0.5, 1.0, 1.2, 3.0].map(rounded), [0.5, 1.0, 1.5, 3.0]);
    }

    #[test]
    fn only_a_server_that_was_seen_to_become_faster_is_warmed_up_for_longer() {
        let warmup = |settled_s: f64, per_s: f64, at_once: bool| {
            warmup_s(&Pace { per_s, callers: 10.0, settled_s, at_once })
        };
        assert_eq!(
            [warmup(2.25, 2e4, true), warmup(4.75, 60.0, true), warmup(9.0, 2e4, false), warmup(4.0, 5.0, false)],
            [0.0, 0.0, 4.5, 0.0]
        );
    }
}
