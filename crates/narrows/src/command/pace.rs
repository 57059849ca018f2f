//! The times of trials that suit how fast servers are and how long they need until then.

use std::time::Duration;

use lab::observation::Timing;
use lab::session::Pace;

/// The usual window and warm-up.
pub const WINDOW: Duration = Duration::from_secs(1);
pub const WARMUP: Duration = Duration::from_millis(500);

/// How long a first look may drive a point until its speed stands still, seconds.
const LONGEST_S: f64 = 20.0;

/// What a trial takes beside its warm-up and its window, roughly, seconds.
const START_S: f64 = 0.5;

/// By how many answers a count may be off, as a share of it, two standard deviations of callers that begin apart.
const RESOLUTION: f64 = 0.025;

/// The fewest answers of each caller in a window that is chosen freely. With fewer, the callers that began apart hardly mix.
const CYCLES: f64 = 5.0;

/// The fewest answers of each caller in any window, whatever the budget.
const FEWEST_CYCLES: f64 = 3.0;

/// What the user chose of the times of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub warmup: bool,
    pub window: bool,
}

/// How fast requests arrive, if that is known and not left to the callers, in a second; and the times of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Tempo {
    pub rate: Option<f64>,
    pub timing: Timing,
}

/// The timing of trials that suits points of these speeds. What the user did not choose is at least as long as usual. Each trial
/// takes at most `most_s` seconds, if that leaves time for the fewest answers. Only in a closed loop do callers wait for answers:
/// a schedule decides how fast a point of an open loop is.
pub fn suited(usual: Timing, chosen: Chosen, paces: &[Pace], closed: bool, most_s: f64) -> Timing {
    let waiting = || paces.iter().filter(|_| closed);
    let cycle_s = waiting().map(Pace::cycle_s).fold(0.0, f64::max);
    let warmup_s = match chosen.warmup {
        true => usual.warmup_s,
        false => rounded(paces.iter().map(warmup_s).fold(usual.warmup_s.max(2.0 * cycle_s), f64::max)),
    };
    let most_s = (most_s - warmup_s - START_S).max(FEWEST_CYCLES * cycle_s);
    let needed_s = waiting().map(window_s).fold(usual.measure_s, f64::max);
    let measure_s = match chosen.window {
        true => usual.measure_s,
        false => rounded(needed_s.min(most_s).max(usual.measure_s)),
    };
    Timing { warmup_s, measure_s, ..usual }
}

/// The timing of a first look: the window is the longest.
pub fn look(usual: Timing) -> Timing {
    Timing { warmup_s: 0.0, measure_s: LONGEST_S, ..usual }
}

/// The warm-up that a point needs, seconds.
fn warmup_s(pace: &Pace) -> f64 {
    pace.settled_s.unwrap_or(LONGEST_S)
}

/// The window in which a point gives enough answers, seconds: of ten callers about eighteen of each, of a hundred six.
fn window_s(pace: &Pace) -> f64 {
    let off = pace.callers.min((2.0 * pace.callers).sqrt());
    (off / RESOLUTION / pace.callers).max(CYCLES) * pace.cycle_s()
}

/// Rounded up to half a second, or to a tenth if it is no longer than one.
fn rounded(seconds: f64) -> f64 {
    let parts = if seconds > 1.0 { 2.0 } else { 10.0 };
    (seconds * parts).ceil() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_answers_need_a_longer_window_and_quick_ones_do_not() {
        let window =
            |callers: f64, per_s: f64| window_s(&Pace { per_s, callers, settled_s: Some(0.0), took_s: 3.0 });
        assert!(window(10.0, 20_000.0) < 0.1);
        // Ten callers that wait for 600 ms.
        assert!((10.0..11.0).contains(&window(10.0, 10.0 / 0.6)));
        // A thousand callers of a server that does 5,000/s have many answers soon.
        assert_eq!(window(1000.0, 5000.0), CYCLES * 0.2);
        assert_eq!([0.5, 1.0, 1.2, 3.0].map(rounded), [0.5, 1.0, 1.5, 3.0]);
    }

    #[test]
    fn only_a_server_that_was_seen_to_become_faster_is_warmed_up_for_longer() {
        let usual = Timing { warmup_s: 0.5, measure_s: 1.0, timeout_s: 5.0 };
        let chosen = Chosen { warmup: false, window: false };
        let warmup = |settled_s| {
            let pace = Pace { per_s: 2e4, callers: 10.0, settled_s, took_s: 20.0 };
            suited(usual, chosen, &[pace], true, 3.0)
        };
        let seen = [Some(0.0), Some(1.5), Some(4.5), None].map(|settled_s| warmup(settled_s).warmup_s);
        assert_eq!(seen, [0.5, 1.5, 4.5, LONGEST_S]);
        let own = Chosen { warmup: true, ..chosen };
        let pace = Pace { per_s: 2e4, callers: 10.0, settled_s: None, took_s: 20.0 };
        assert_eq!(suited(usual, own, &[pace], true, 3.0), usual);
    }

    #[test]
    fn a_window_has_three_answers_of_each_caller_whatever_the_budget() {
        let usual = Timing { warmup_s: 0.5, measure_s: 1.0, timeout_s: 5.0 };
        let free = Chosen { warmup: false, window: false };
        let pace = Pace { per_s: 10.0 / 0.9, callers: 10.0, settled_s: Some(0.0), took_s: 2.0 };
        let timing = |most_s| suited(usual, free, &[pace], true, most_s);
        assert_eq!((timing(3.3).warmup_s, timing(3.3).measure_s), (2.0, 3.0));
        // Eighteen, if there is time.
        assert_eq!(timing(60.0).measure_s, 16.5);
        assert_eq!(suited(usual, free, &[pace], false, 60.0), usual);
    }
}
