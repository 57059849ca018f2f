//! Tests of what searches find where settings have limits and several figures. The search itself is tested in
//! `search::tests`, and verified in `simulation::search`.

use serde_json::{Value as Json, json};
use stats::{Noise, Verdict};
use systems::Workload;

use super::*;
use crate::findings::findings;
use crate::observation::{Failure, Scenario};
use crate::plan::{Base, Plan, Planned};
use crate::rounds::begin_search;
use crate::search::{Bounded, Limit};
use crate::session::{Fake, MeasurementPatch, Rule};
use crate::simulation::search::{carried_out, tuned as found};
use crate::simulation::{axis, setup};

const MB: u64 = 1_000_000;

/// What a value of a knob does: how much better the rate is, and fields of the measurement.
fn rule(knob: &str, value: i64, better: f64, measured: Json) -> Rule {
    Rule {
        point: Point::from([(knob.to_owned(), Value::Integer(value))]),
        better: Some(better),
        measured: MeasurementPatch::new(measured).expect("fields of a measurement"),
        ..Rule::default()
    }
}

fn memory(bytes: u64) -> Json {
    json!({ "system": { "peak_pss_bytes": bytes } })
}

/// More workers are faster and need more memory.
fn workers() -> Vec<Rule> {
    [(1, 1.0, 20), (2, 1.4, 40), (4, 2.0, 80), (8, 2.5, 160)]
        .map(|(workers, better, mb)| rule("workers", workers, better, memory(mb * MB)))
        .to_vec()
}

fn integers(values: &[i64]) -> Vec<Value> {
    values.iter().map(|value| Value::Integer(*value)).collect()
}

/// A search with these knobs, each with its default first.
fn search(knobs: &[(&str, &[i64])], also: &[Figure], limits: &[Limit], rules: Vec<Rule>) -> Tuned {
    let noise = Noise { spread: 0.01, ..Noise::NONE };
    let (plan, seen) = carried_out(plan(knobs, also, limits), &mut Fake::new(1000.0, rules, noise, 1));
    found(&plan, &seen)
}

fn plan(knobs: &[(&str, &[i64])], also: &[Figure], limits: &[Limit]) -> Plan {
    let axes = knobs.iter().map(|(knob, values)| axis(knob, integers(values))).collect();
    let point = knobs.iter().map(|(knob, values)| ((*knob).to_owned(), Value::Integer(values[0]))).collect();
    let scenario = Scenario::new("e", "s", Workload::Requests, point).expect("the defaults are work");
    let mut setup = setup(axes);
    setup.base = Some(Base { scenario, command: String::new() });
    setup.subject.figures.others = also.to_vec();
    let planned =
        Planned { setup, scenarios: Vec::new(), apply: Default::default(), search: None, is_test: false };
    let mut plan = Plan::new(1, vec![planned]);
    begin_search(&mut plan, 80, limits).expect("a search");
    plan
}

fn workers_of(tuned: &Tuned) -> (Option<&Value>, Because) {
    let advice = tuned.advice.as_ref().expect("the search has ended");
    (advice.point.get("workers"), advice.because)
}

#[test]
fn the_best_of_the_settings_that_keep_the_limits_is_advised() {
    let knobs: [(&str, &[i64]); 1] = [("workers", &[1, 2, 4, 8])];
    let below = |mb: u64| vec![Limit { of: Bounded::Memory, below: (mb * MB) as f64 }];
    for (limits, workers_advised, because) in [
        (vec![], 8, Because::Better),
        (below(100), 4, Because::Better),
        (below(50), 2, Because::Better),
        (below(30), 1, Because::BreaksLimits),
    ] {
        let tuned = search(&knobs, &[], &limits, workers());
        assert_eq!(workers_of(&tuned), (Some(&Value::Integer(workers_advised)), because), "{limits:?}");
        for tried in &tuned.tried {
            let few = tried.point["workers"] <= Value::Integer(workers_advised);
            assert_eq!(tried.keeps, limits.is_empty() || few, "{limits:?}: {tried:?}");
        }
    }
}

#[test]
fn a_slower_setting_is_advised_if_the_default_breaks_a_limit() {
    let limits = [Limit { of: Bounded::Memory, below: (100 * MB) as f64 }];
    let tuned = search(&[("workers", &[8, 4, 2, 1])], &[], &limits, workers());
    assert_eq!(workers_of(&tuned), (Some(&Value::Integer(4)), Because::KeepsLimits));
    let advice = tuned.advice.unwrap();
    let [keeps] = &advice.keeps[..] else { panic!("{advice:?}") };
    assert_eq!((keeps.setting.certainly, keeps.default.certainly), (Some(true), Some(false)));
    assert_eq!((keeps.setting.value, keeps.default.value), (Some(80e6), Some(160e6)));
    assert!((advice.gain.unwrap().estimate - 0.8).abs() < 0.02, "{advice:?}");
}

#[test]
fn percentiles_and_errors_are_limits_too() {
    let slow = |us: u64| json!({ "response_us": { "count": 2000, "buckets": [[us, 2000]] } });
    let rules = || {
        let mut rules: Vec<Rule> = [(1, 1.0, 1_000), (2, 1.4, 5_000), (4, 2.0, 30_000)]
            .map(|(workers, better, us)| rule("workers", workers, better, slow(us)))
            .to_vec();
        rules[1].errors.insert("reset".to_owned(), 5);
        rules
    };
    let knobs: [(&str, &[i64]); 1] = [("workers", &[1, 2, 4])];
    let p99 = Limit { of: Bounded::Percentile(99.0), below: 20_000.0 };
    let errors = Limit { of: Bounded::Errors, below: 0.001 };
    assert_eq!(workers_of(&search(&knobs, &[], &[p99], rules())).0, Some(&Value::Integer(2)));
    assert_eq!(workers_of(&search(&knobs, &[], &[errors], rules())).0, Some(&Value::Integer(4)));
    // A trial with too few answers for the percentile does not show that it keeps the limit.
    let p9999 = Limit { of: Bounded::Percentile(99.99), below: 20_000.0 };
    assert_eq!(
        workers_of(&search(&knobs, &[], &[p9999], rules())),
        (Some(&Value::Integer(1)), Because::BreaksLimits)
    );
}

/// A rule for the setting in every fifth round.
fn now_and_then(workers: i64, rule: Rule) -> Rule {
    let rounds = Some((0..200).filter(|round| round % 5 == 4).collect());
    Rule { point: Point::from([("workers".to_owned(), Value::Integer(workers))]), rounds, ..rule }
}

fn fails() -> Rule {
    let failure = Failure {
        stage: crate::observation::Stage::Start,
        reason: "it ended".to_owned(),
        output: String::new(),
    };
    Rule { fail: Some(failure), ..Rule::default() }
}

#[test]
fn a_setting_that_fails_now_and_then_is_not_advised() {
    let mut rules = workers();
    rules.push(now_and_then(8, fails()));
    let tuned = search(&[("workers", &[1, 8])], &[], &[], rules);
    assert_eq!(workers_of(&tuned), (Some(&Value::Integer(1)), Because::Fails));
    assert!(tuned.advice.unwrap().failed > 0);
}

#[test]
fn errors_in_some_rounds_neither_keep_nor_break_a_limit_with_certainty() {
    let errors = |count: u64| Rule { errors: [("reset".to_owned(), count)].into(), ..Rule::default() };
    let limits = [Limit { of: Bounded::Errors, below: 0.001 }];
    let mut rules = workers();
    rules.push(now_and_then(8, errors(5)));
    let tuned = search(&[("workers", &[8, 4])], &[], &limits, rules);
    let advice = tuned.advice.unwrap();
    assert_eq!((advice.because, advice.keeps[0].default.certainly), (Because::NotBetter, None));
    assert!(advice.keeps[0].default.value.is_some_and(|share| share > 0.0 && share < 0.005), "{advice:?}");
}

#[test]
fn a_setting_that_failed_counts_against_one_of_its_values_only() {
    let never = Rule { point: Point::from([("mode".to_owned(), Value::Integer(1))]), ..fails() };
    let mut rules = workers();
    rules.push(never);
    let knobs: [(&str, &[i64]); 2] = [("workers", &[1, 2, 3, 4, 5, 6, 7, 8]), ("mode", &[0, 1, 2, 3])];
    let tuned = search(&knobs, &[], &[], rules);
    let failing: Vec<&str> = tuned.failing.iter().map(|one| one.knob.as_str()).collect();
    assert_eq!(failing, ["mode"], "{:?}", tuned.failing);
    assert_eq!(tuned.failing[0].reason, "it ended");
}

#[test]
fn a_plan_whose_settings_are_not_in_its_space_has_no_findings_of_a_search() {
    for cell in [vec![], vec![0], vec![9, 0], vec![0, 0, 0]] {
        let mut plan = plan(&[("workers", &[1, 2]), ("mode", &[0, 1])], &[], &[]);
        let steps = &mut plan.experiments[0].search.as_mut().unwrap().steps;
        steps[0].cells[1] = cell;
        assert!(findings(&plan, &[]).experiments[0].tuned.is_none());
        assert!(!crate::rounds::extend(&mut plan, &[]));
    }
}

#[test]
fn the_front_has_the_settings_that_no_other_beats_in_all_figures() {
    let mut rules = workers();
    // As fast as one worker, and it needs more memory.
    rules.push(rule("workers", 3, 1.0, memory(300 * MB)));
    let tuned = search(&[("workers", &[1, 2, 3, 4, 8])], &[Figure::MemoryBytes], &[], rules);
    let front: Vec<&Value> = tuned.front.iter().map(|at| &tuned.tried[*at].point["workers"]).collect();
    assert_eq!(tuned.figures, [Figure::RequestsPerS, Figure::MemoryBytes]);
    assert_eq!(front.len(), 4, "{front:?}");
    assert!(!front.contains(&&Value::Integer(3)), "{front:?}");
    let one = search(&[("workers", &[1, 2])], &[], &[], workers());
    assert!(one.front.is_empty());
}

#[test]
fn a_knob_that_is_shown_to_contribute_nothing_is_left_at_its_default() {
    let knobs: [(&str, &[i64]); 2] = [("workers", &[1, 2]), ("threads", &[1, 2])];
    let rules = |better: f64| vec![rule("workers", 2, 1.5, json!({})), rule("threads", 2, better, json!({}))];
    for (better, taken_back) in [(1.02, &["threads"][..]), (1.2, &[])] {
        let advice = search(&knobs, &[], &[], rules(better)).advice.unwrap();
        assert_eq!(
            advice.winner,
            Point::from([("workers", 2), ("threads", 2)].map(|(k, v)| (k.to_owned(), Value::Integer(v))))
        );
        assert_eq!(advice.taken_back, taken_back, "{advice:?}");
        let is_back = !taken_back.is_empty();
        let threads = if is_back { 1 } else { 2 };
        assert_eq!(advice.point["threads"], Value::Integer(threads));
        assert_eq!(advice.winner_gain.is_some(), is_back);
        let gain = if is_back { 1.5 } else { 1.5 * better };
        assert!((advice.gain.unwrap().estimate / gain - 1.0).abs() < 0.02, "{advice:?}");
    }
}

#[test]
fn a_part_of_the_winner_that_fails_now_and_then_is_not_advised_instead() {
    let knobs: [(&str, &[i64]); 2] = [("workers", &[1, 2]), ("threads", &[1, 2])];
    let mut rules = vec![rule("workers", 2, 1.5, json!({})), rule("threads", 2, 1.02, json!({}))];
    let mut fail = now_and_then(2, fails());
    fail.point.insert("threads".to_owned(), Value::Integer(1));
    rules.push(fail);
    let advice = search(&knobs, &[], &[], rules).advice.expect("the search has ended");
    assert_eq!((&advice.point, advice.because), (&advice.winner, Because::Better));
    assert!(advice.taken_back.is_empty() && advice.winner_gain.is_none(), "{advice:?}");
}

/// In trials that differ by 20 %, 4 % is never shown, and more than one knob may seem to bring it. The proof may have had no time
/// for the setting without all of them.
#[test]
fn knobs_whose_contribution_is_not_shown_are_left_at_their_default_as_far_as_the_proof_ran_without_them() {
    let knobs: [(&str, &[i64]); 3] = [("workers", &[1, 2]), ("threads", &[1, 2]), ("buffer", &[1, 2])];
    let rules: Vec<Rule> = [("workers", 3.0), ("threads", 1.04), ("buffer", 1.04)]
        .map(|(knob, better)| rule(knob, 2, better, json!({})))
        .into();
    let mut changes = Vec::new();
    for seed in 0..40 {
        let noise = Noise { spread: 0.2, ..Noise::NONE };
        let mut fake = Fake::new(1000.0, rules.clone(), noise, seed);
        let (plan, seen) = carried_out(plan(&knobs, &[], &[]), &mut fake);
        let advice = found(&plan, &seen).advice.expect("the search has ended");
        changes.push(advice.winner.values().filter(|value| **value == Value::Integer(2)).count());
        let not_shown = advice.contributions.iter().filter(|one| one.verdict != Verdict::Faster);
        let kept = not_shown.filter(|one| advice.point[&one.knob] == Value::Integer(2)).count();
        assert!(kept <= 1 && (kept == 0 || advice.contributions.len() == 3), "{seed}: {advice:?}");
    }
    assert!(changes.contains(&2) && changes.contains(&3), "{changes:?}");
}

#[test]
fn the_course_of_the_race_is_told() {
    let knobs: [(&str, &[i64]); 3] =
        [("workers", &[1, 2, 4, 8]), ("threads", &[1, 2, 4]), ("mode", &[0, 1, 2])];
    let tuned = search(&knobs, &[], &[], workers());
    assert_eq!((tuned.settings, tuned.tried.len() + tuned.untried), (36, 36));
    assert_eq!(tuned.tried[0].ratios, [Some(1.0)], "the default is the first");
    let of_heats: usize = tuned.heats.iter().map(|heat| heat.rounds as usize).sum();
    assert!(of_heats > 1 && tuned.heats[0].stage == Stage::Spread);
    let last = &tuned.tried[tuned.heats.last().unwrap().best];
    assert_eq!(last.point["workers"], Value::Integer(8));
    assert_eq!(tuned.knobs[0].knob, "workers", "the strongest knob is the first");
    assert!(!tuned.knobs[0].flat && tuned.knobs[1].flat && tuned.knobs[2].flat);
    let eight = tuned.knobs[0].values.iter().find(|(value, _)| *value == Value::Integer(8)).unwrap();
    assert!((eight.1 / 2.5 - 1.0).abs() < 0.1, "{eight:?}");
    let together = tuned.together.unwrap();
    assert_eq!((together.first.as_str(), together.ratios.len()), ("workers", 4));
    assert!((together.ratios[0][0] - 1.0).abs() < 1e-9 && together.tried[0][0]);
}
