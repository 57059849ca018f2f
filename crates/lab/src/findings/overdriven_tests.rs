//! Verdicts at a rate: they are withheld near what a system can do at all, and where arrivals were late.

use stats::Verdict;
use systems::knob::Kind;

use super::tests::{Axes, int, measured, measurement, observe, plan_of};
use super::*;
use crate::experiment::Figure;

/// What `a` reaches in its slowest trial at saturation, per second. `b` reaches twice as much.
const SLOWEST_PER_S: u64 = 10_000;

/// The verdict on the CPU time of `a` and `b` at a rate, of which so many arrivals in a hundred are late, if `a` takes so
/// many microseconds of CPU time for a request, and `b` twice as many. The run has an experiment at saturation, too.
fn judged(rate: u64, late_percent: u64, cpu_us: u64) -> (Verdict, Option<Withheld>) {
    let (connections, rates) = (int(&[10]), int(&[rate as i64]));
    let axes: Axes = &[("connections", Kind::Integer, &connections), ("rate", Kind::Integer, &rates)];
    let mut plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a", "b"], &axes[..1]);
    let mut at_rate = plan_of(Workload::Requests, Figure::CpuPerUnit, &["a", "b"], axes);
    "at-rate".clone_into(&mut at_rate.experiments[0].setup.subject.name);
    let scenarios = at_rate.experiments.iter_mut().flat_map(|planned| &mut planned.scenarios);
    for scenario in scenarios.chain(at_rate.trials.iter_mut().map(|trial| &mut trial.scenario)) {
        "at-rate".clone_into(&mut scenario.experiment);
    }
    plan.experiments.extend(at_rate.experiments);
    plan.trials.extend(at_rate.trials);
    let observations = observe(&plan, |t| {
        let twice = if t.scenario.system == "a" { 1 } else { 2 };
        // The window of two seconds. The later rounds are faster: the slowest trial decides.
        let saturated = 2 * SLOWEST_PER_S * twice * (100 + u64::from(t.round)) / 100;
        let n = if t.scenario.work().is_open_loop() { 2 * rate } else { saturated };
        let mut m = measurement(n, 200.0);
        m.late = if t.scenario.work().is_open_loop() { n * late_percent / 100 } else { 0 };
        m.system.cpu_s = (twice * n * cpu_us) as f64 / 1e6;
        measured(m)
    });
    let experiments = findings(&plan, &observations).experiments;
    let e = experiments.into_iter().find(|e| e.name == "at-rate").expect("both experiments");
    let [c] = &e.figures[0].comparisons[..] else { panic!("{:?}", e.figures[0].comparisons) };
    (c.verdict, c.withheld)
}

#[test]
fn a_rate_above_80_percent_of_a_saturated_trial_gives_no_verdict() {
    let (verdict, withheld) = judged(SLOWEST_PER_S * 79 / 100, 0, 10);
    assert!(verdict.is_decided() && withheld.is_none(), "{verdict:?} {withheld:?}");
    let near = (Verdict::Undecided { more_rounds: None }, Some(Withheld::Overdriven));
    assert_eq!(judged(SLOWEST_PER_S * 81 / 100, 0, 10), near);
}

#[test]
fn late_arrivals_withhold_the_verdict_on_a_cost_unless_the_system_is_idle() {
    // At 5,000 requests a second, `b` keeps a core busy for a tenth and for all of the time.
    let (idle, busy) = (10, 100);
    for (late_percent, cpu_us, decided) in
        [(0, busy, true), (2, busy, false), (2, idle, true), (9, idle, true), (11, idle, false)]
    {
        let (verdict, withheld) = judged(SLOWEST_PER_S / 2, late_percent, cpu_us);
        let case = format!("{late_percent} % {cpu_us} us: {verdict:?}");
        assert_eq!(verdict.is_decided(), decided, "{case}");
        assert_eq!(withheld, (!decided).then_some(Withheld::Overdriven), "{case}");
    }
}
