//! Tests that the headline, the main effects and the snippet name the same best value.

use std::collections::BTreeSet;

use stats::Verdict;
use systems::knob::Kind;
use systems::{Value, Workload, is_reference};

use crate::experiment::Figure;
use crate::findings::tests::{Axes, int, measured, measurement, observe, one, plan_of, value};
use crate::findings::{By, Claim, FigureView, findings};

const BUFFERS: [i64; 4] = [1460, 65_536, 262_144, 524_288];

/// The duration of an upload of `size` (1 or 2) in milliseconds, and whether the generator was at its limit.
type Upload = fn(size: i64, buffer: i64, round: u32) -> (f64, bool);

/// The findings of uploads to a system with this default buffer, whose manifest says how the buffer is set.
fn found(default: i64, upload: Upload) -> FigureView<'static> {
    let (sizes, buffers) = (int(&[1 << 20, 2 << 20]), int(&BUFFERS));
    let axes: Axes = &[("size", Kind::Size, &sizes), ("buffer", Kind::Size, &buffers)];
    let mut plan = plan_of(Workload::Upload, Figure::MsPerUpload, &["cowboy2"], axes);
    let planned = &mut plan.experiments[0];
    planned.setup.axes[1].default = Some(Value::Integer(default));
    let line = ("buffer".to_owned(), "buffer {value}".to_owned());
    planned.apply = [("cowboy2".to_owned(), [line].into())].into();
    let observations = observe(&plan, |trial| {
        let number = |knob: &str| match trial.scenario.point.get(knob) {
            Some(Value::Integer(number)) => *number,
            other => panic!("{other:?}"),
        };
        let size = number("size") >> 20;
        let (ms, bound) = match is_reference(&trial.scenario.system) {
            true => (10.0 * size as f64, false),
            false => upload(size, number("buffer"), trial.round),
        };
        let mut m = measurement(20, ms * 1000.0);
        m.generator.busiest_core = if bound { 0.99 } else { 0.4 };
        measured(m)
    });
    one(findings(&plan, &observations))
}

/// The claim about the buffer.
fn claim<'a>(e: &FigureView<'a>) -> &'a Claim {
    e.claims.iter().find(|claim| claim.knob() == Some("buffer")).expect("a claim")
}

/// The best values that the headline (if it says that a value is faster), the main effects and the snippet name.
fn best_values(e: &FigureView<'_>) -> [Option<String>; 3] {
    let axis = e.axes.iter().find(|axis| axis.knob == "buffer").expect("an axis");
    let value = |index: usize| axis.show(&e.estimates[index].scenario.point["buffer"]);
    let faster = match claim(e) {
        Claim::Knob { comparison, .. } if comparison.verdict == Verdict::Faster => {
            Some(value(comparison.scenario))
        }
        _ => None,
    };
    let effect = e.effects.iter().find(|effect| effect.knob == "buffer").expect("an effect");
    let effect = (effect.verdict == Verdict::Faster).then(|| value(effect.best));
    let snippet = e.snippets.first().map(|snippet| axis.show(&snippet.point["buffer"]));
    [faster, effect, snippet]
}

fn assert_best(e: &FigureView<'_>, value: &str) {
    assert_eq!(best_values(e), [(); 3].map(|()| Some(value.to_owned())), "{:?}", e.claims);
}

#[test]
fn all_three_name_the_value_that_is_certainly_best() {
    let e = found(1460, |size, buffer, _| match buffer {
        1460 => (690.0 * size as f64, false),
        65_536 => (200.0 * size as f64, false),
        262_144 => (100.0 * size as f64, false),
        _ => (130.0 * size as f64, false),
    });
    assert_best(&e, "256K");
    assert_eq!(e.snippets[0].text, "buffer 262144");
    assert!(e.effects[0].ties.is_empty());
}

#[test]
fn the_highest_value_is_best_and_those_that_may_be_as_good_are_named() {
    // The largest buffer has the best median and the best mean ratio, but is not best in every round.
    let e = found(1460, |size, buffer, round| {
        let ms = match buffer {
            1460 => 690.0,
            65_536 => 200.0,
            262_144 => [103.0, 101.0, 100.0][round as usize],
            _ => [95.0, 108.0, 98.0][round as usize],
        };
        (ms * size as f64, false)
    });
    assert_best(&e, "512K");
    assert!(matches!(claim(&e), Claim::Knob { ties, .. } if *ties == e.effects[0].ties), "{:?}", e.claims);
    let tied = &e.estimates[e.effects[0].ties[0]].scenario.point["buffer"];
    assert_eq!((e.effects[0].ties.len(), tied), (1, &Value::Integer(262_144)));
}

#[test]
fn the_nearest_value_that_is_shown_to_be_as_good_is_best() {
    let e = found(1460, |size, buffer, _| {
        (if buffer == 1460 { 690.0 } else { 100.0 - buffer as f64 / 1e6 } * size as f64, false)
    });
    assert_best(&e, "64K");
    assert_eq!((e.effects[0].equal.len(), e.effects[0].ties.len()), (2, 0));
    assert!(matches!(claim(&e), Claim::Knob { equal, .. } if *equal == e.effects[0].equal), "{:?}", e.claims);
}

#[test]
fn a_value_that_the_generator_held_back_ties_with_the_one_that_looks_best() {
    let e = found(1460, |size, buffer, _| match buffer {
        1460 => (690.0 * size as f64, false),
        65_536 => (300.0 * size as f64, false),
        262_144 => (120.0 * size as f64, true),
        _ => (100.0 * size as f64, true),
    });
    assert_best(&e, "512K");
    assert_eq!(e.effects[0].ties.len(), 1, "256K may be as good");
    assert!(matches!(claim(&e), Claim::Knob { comparison, .. } if comparison.at_least), "{:?}", e.claims);
    // 256K is certainly better than 1460, but not than 64K, which the generator held back.
    let e = found(1460, |size, buffer, _| match buffer {
        1460 => (690.0 * size as f64, false),
        65_536 => (300.0 * size as f64, true),
        _ => (100.0 * size as f64, false),
    });
    assert_best(&e, "256K");
    let (equal, ties) = (&e.effects[0].equal, &e.effects[0].ties);
    assert_eq!((equal.len(), ties.len()), (1, 1), "512K is as good, and 64K may be");
}

#[test]
fn a_default_that_nothing_beats_is_best_and_has_no_snippet() {
    let e = found(262_144, |size, buffer, round| {
        let ms = if buffer == 524_288 { [95.0, 108.0, 98.0][round as usize] } else { 100.0 };
        (if buffer == 1460 { 690.0 } else { ms } * size as f64, false)
    });
    assert_eq!(best_values(&e), [None, Some("256K".to_owned()), None]);
    let Claim::Knob { comparison, default: true, .. } = claim(&e) else { panic!("{:?}", e.claims) };
    let values = [comparison.scenario, comparison.against].map(|index| value(&e, index, "buffer"));
    assert_eq!((comparison.verdict, values), (Verdict::Slower, ["1460", "262144"].map(str::to_owned)));
}

#[test]
fn there_is_no_best_value_if_nothing_is_decided() {
    let flat = found(1460, |size, _, _| (100.0 * size as f64, false));
    let open = found(1460, |size, buffer, round| {
        (if buffer == 1460 { 100.0 } else { [50.0, 150.0, 110.0][round as usize] } * size as f64, false)
    });
    let held_back = found(1460, |size, buffer, _| (1e8 / (buffer as f64 + 1e6) * size as f64, true));
    for e in [&flat, &open] {
        assert_eq!(best_values(e), [None, None, None], "{:?}", e.claims);
    }
    // There is no effect at all without a worst value.
    assert!(held_back.effects.is_empty() && held_back.snippets.is_empty(), "{:?}", held_back.effects);
    let decided = |claim: &Claim| matches!(claim, Claim::Knob { .. } | Claim::Systems { .. });
    assert!(!held_back.claims.iter().any(decided), "{:?}", held_back.claims);
}

#[test]
fn a_value_that_is_faster_at_one_point_and_slower_at_another_is_not_recommended() {
    let e = found(1460, |size, buffer, _| {
        let ms = match (size, buffer) {
            (_, 1460) => 300.0,
            (1, 524_288) => 900.0,
            (_, 524_288) => 50.0,
            _ => 200.0,
        };
        (ms * size as f64, false)
    });
    assert_eq!(best_values(&e), [Some("512K".to_owned()), Some("512K".to_owned()), None], "{:?}", e.claims);
}

#[test]
fn each_system_is_compared_with_its_own_default() {
    let buffers = int(&BUFFERS);
    let axes: Axes = &[("buffer", Kind::Size, &buffers)];
    let mut plan = plan_of(Workload::Upload, Figure::MsPerUpload, &["old", "new"], axes);
    let planned = &mut plan.experiments[0];
    let default = |bytes: i64| [("buffer".to_owned(), Value::Integer(bytes))].into();
    planned.setup.axes[0].default = Some(Value::Integer(1460));
    planned.setup.defaults = [("old".to_owned(), default(1460)), ("new".to_owned(), default(524_288))].into();
    let line = || [("buffer".to_owned(), "buffer {value}".to_owned())].into();
    planned.apply = [("old".to_owned(), line()), ("new".to_owned(), line())].into();
    // Both are slow at 1460 and equal at the other values.
    let observations = observe(&plan, |trial| {
        let slow = trial.scenario.point.get("buffer") == Some(&Value::Integer(1460));
        let ms = if is_reference(&trial.scenario.system) { 10.0 } else { 100.0 };
        measured(measurement(20, if slow { 690_000.0 } else { ms * 1000.0 }))
    });
    let e = one(findings(&plan, &observations));
    let baselines = |system: &str| {
        let by_knob = e.comparisons.iter().filter(|c| matches!(c.by, By::Knob(_)));
        let against = by_knob.map(|c| &e.estimates[c.against].scenario).filter(|s| s.system == system);
        against.map(|s| s.point["buffer"].clone()).collect::<BTreeSet<Value>>()
    };
    assert_eq!(baselines("old"), [Value::Integer(1460)].into());
    assert_eq!(baselines("new"), [Value::Integer(524_288)].into());
    let snippets: Vec<(&str, &str)> =
        e.snippets.iter().map(|s| (s.system.as_str(), s.text.as_str())).collect();
    assert_eq!(snippets, [("old", "buffer 65536")], "the default of the new system needs no line");
}
