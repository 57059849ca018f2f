//! Sentences of made-up searches.

use lab::findings::{
    Advice, Because, Contribution, ExperimentFindings, Keeps, Kept, LeftOpen, Missing, Ratio,
};
use lab::observation::{Failure, Stage};
use lab::search::{Bounded, Limit};
use lab::session::Rule;
use stats::Verdict;
use systems::{Point, Value};

use super::*;
use crate::made_up::{Sought, rule, view};
use crate::words::{Grade, Judgement, answer, headlines};

const KNOBS: [(&str, &[i64]); 3] = [("workers", &[1, 2, 4]), ("buffer", &[8, 16]), ("spare", &[0, 1])];

/// A search in which `workers` and `buffer` matter.
fn sought(rules: &[Rule], until: usize) -> ExperimentFindings {
    let search = Sought { knobs: &KNOBS, also: &[], limits: &[], rules, trials: 150, until };
    search.found()
}

fn good() -> Vec<Rule> {
    vec![rule("a", &[("workers", 4)], 1.5), rule("a", &[("buffer", 16)], 1.2)]
}

fn failing(point: &[(&str, i64)]) -> Rule {
    let [reason, output] = ["it ended", ""].map(str::to_owned);
    Rule { fail: Some(Failure { stage: Stage::Start, reason, output }), ..rule("a", point, 1.0) }
}

fn point(workers: i64, buffer: i64) -> Point {
    let values = [("workers", workers), ("buffer", buffer), ("spare", 0)];
    values.map(|(knob, value)| (knob.to_owned(), Value::Integer(value))).into()
}

fn ratio(estimate: f64, low: f64, high: f64) -> Option<Ratio> {
    Some(Ratio { estimate, low, high })
}

const P99: Limit = Limit { of: Bounded::Percentile(99.0), below: 20_000.0 };

fn kept(ms: f64, certainly: Option<bool>) -> Kept {
    Kept { value: Some(ms * 1e3), certainly }
}

/// The advice of a search whose winner has four workers and a buffer of 16.
fn advice(because: Because, verdict: Verdict, gain: Option<Ratio>, limits: &[(Kept, Kept)]) -> Advice {
    let changes = matches!(because, Because::Better | Because::KeepsLimits);
    let keeps =
        limits.iter().map(|(setting, default)| Keeps { limit: P99, setting: *setting, default: *default });
    Advice {
        point: if changes { point(4, 16) } else { point(1, 8) },
        because,
        winner: point(4, 16),
        taken_back: Vec::new(),
        winner_gain: None,
        gain,
        at_least: false,
        withheld: None,
        unmeasured: None,
        verdict,
        contributions: Vec::new(),
        failed: 0,
        keeps: keeps.collect(),
    }
}

/// The answer to this advice with so many rounds of the proof, and how far the search has come.
fn said(advice: Advice, rounds: u32) -> (String, Progress) {
    let mut e = sought(&good(), usize::MAX);
    let found = e.shared.tuned.as_mut().expect("a search");
    (found.advice, found.proof) = (Some(advice), (rounds, rounds));
    let progress = progress(&view(&e), e.tuned.as_ref().expect("a search"));
    (answer(&view(&e)), progress)
}

/// A sentence that says that the defaults are kept.
const NONE: &str = "keep the defaults: no other setting is certainly better";
const SET: &str = "set workers=4 buffer=16:";
const BEST: &str = "the best that was found, workers=4 buffer=16,";

const fn undecided(rounds: u32) -> Verdict {
    Verdict::Undecided { more_rounds: Some(rounds) }
}

/// Asserts the sentence of each advice, and how far its search has come.
fn said_as<const N: usize>(cases: [(Advice, String, Progress); N]) {
    for (advice, sentence, progress) in cases {
        assert_eq!(said(advice, 12), (sentence, progress));
    }
}

#[test]
fn a_change_says_what_it_gains() {
    let (better, worse) = (ratio(1.314, 1.24, 1.39), ratio(0.9, 0.85, 0.95));
    let (fine, over, unsure) = (kept(18.2, Some(true)), kept(31.0, Some(false)), kept(19.0, None));
    said_as([
        (
            advice(Because::Better, Verdict::Faster, better, &[]),
            format!("{SET} 1.31x [1.24, 1.39] as good as the defaults in requests a second"),
            Progress::Decided,
        ),
        (
            Advice { at_least: true, ..advice(Because::Better, Verdict::Faster, better, &[(fine, unsure)]) },
            format!(
                "{SET} at least 1.31x [1.24, 1.39] as good as the defaults in requests a second, and keeps p99 < 20 ms (18.2 ms)"
            ),
            Progress::Decided,
        ),
        (
            advice(Because::Better, Verdict::Faster, ratio(40.0, 5.0, 900.0), &[]),
            format!("{SET} at least 5.00x as good as the defaults in requests a second"),
            Progress::Decided,
        ),
        (
            advice(Because::KeepsLimits, Verdict::Slower, worse, &[(fine, over)]),
            format!(
                "{SET} it keeps p99 < 20 ms (18.2 ms), which the defaults do not (31.0 ms), and is 0.90x [0.85, 0.95] as good in \
                 requests a second"
            ),
            Progress::Decided,
        ),
    ]);
}

#[test]
fn the_defaults_are_kept_with_a_reason() {
    let (near, worse, open) = (ratio(1.01, 0.98, 1.04), ratio(0.9, 0.85, 0.95), ratio(1.06, 0.97, 1.14));
    said_as([
        (
            advice(Because::NotBetter, Verdict::NoDifference, near, &[]),
            format!(
                "{NONE}; {BEST} is 1.01x [0.98, 1.04] as good in requests a second: no difference worth having"
            ),
            Progress::Decided,
        ),
        (
            advice(Because::NotBetter, Verdict::Slower, worse, &[]),
            format!(
                "{NONE}; the best other that was found, workers=4 buffer=16, is 0.90x [0.85, 0.95] as good in requests a second: worse"
            ),
            Progress::Decided,
        ),
        (
            advice(Because::NotBetter, undecided(12), open, &[]),
            "keep the defaults for now; workers=4 buffer=16 is 1.06x [0.97, 1.14] as good in \
             requests a second, which does not decide; a longer --budget may decide it: 12 more rounds of the proof may be enough"
                .to_owned(),
            Progress::Open,
        ),
        (
            advice(Because::NotBetter, undecided(1000), open, &[]),
            "keep the defaults for now; workers=4 buffer=16 is 1.06x [0.97, 1.14] as good in \
             requests a second, which does not decide; longer trials (--duration) or a quieter machine may decide it"
                .to_owned(),
            Progress::Open,
        ),
        (
            advice(Because::NotBetter, Verdict::Undecided { more_rounds: None }, None, &[]),
            format!(
                "{NONE}; the best that the race found, workers=4 buffer=16, has no figure in the fresh rounds"
            ),
            Progress::Open,
        ),
    ]);
    // A longer budget adds no rounds to the longest proof.
    let (sentence, _) = said(advice(Because::NotBetter, undecided(12), open, &[]), 36);
    assert!(
        sentence.ends_with("; longer trials (--duration) or a quieter machine may decide it"),
        "{sentence}"
    );
}

#[test]
fn what_keeps_the_fresh_rounds_from_a_verdict_is_named() {
    let open = ratio(1.06, 0.97, 1.14);
    said_as([
        (
            Advice {
                unmeasured: Some(Unmeasured { default: true, why: Missing::NoFigure }),
                ..advice(Because::NotBetter, Verdict::Undecided { more_rounds: None }, None, &[])
            },
            format!("{NONE}; the defaults have no figure in the fresh rounds: no trial has this figure"),
            Progress::Open,
        ),
        (
            Advice {
                withheld: Some(Withheld::Drift),
                ..advice(Because::NotBetter, Verdict::Undecided { more_rounds: None }, open, &[])
            },
            "keep the defaults for now; workers=4 buffer=16 is 1.06x [0.97, 1.14] as good in requests a second, which does not \
             decide; the speed still changed in the windows: use --warmup 5s"
                .to_owned(),
            Progress::Open,
        ),
    ]);
}

#[test]
fn what_breaks_limits_is_not_advised() {
    let (better, near) = (ratio(1.314, 1.24, 1.39), ratio(1.01, 0.98, 1.04));
    let (fine, over, unsure) = (kept(18.2, Some(true)), kept(31.0, Some(false)), kept(19.0, None));
    let other = "the best other setting that was found, workers=4 buffer=16, is 1.31x [1.24, 1.39] as good in requests a second, but";
    said_as([
        (
            advice(Because::BreaksLimits, Verdict::Faster, better, &[(over, fine)]),
            format!("keep the defaults: {other} breaks p99 < 20 ms (31.0 ms)"),
            Progress::Decided,
        ),
        (
            advice(Because::BreaksLimits, Verdict::Faster, better, &[(unsure, fine)]),
            format!(
                "keep the defaults: {other} does not certainly keep p99 < 20 ms (19.0 ms); a longer --budget may decide it"
            ),
            Progress::Open,
        ),
        (
            advice(Because::BreaksLimits, Verdict::NoDifference, near, &[(unsure, over)]),
            format!(
                "no setting is shown to keep the limits: the defaults break p99 < 20 ms (31.0 ms), and {BEST} does not certainly keep \
                 p99 < 20 ms (19.0 ms); a longer --budget may decide it"
            ),
            Progress::Open,
        ),
    ]);
}

#[test]
fn a_search_without_a_proof_says_how_far_it_is() {
    let all = sought(&good(), usize::MAX);
    let found = all.tuned.as_ref().expect("a search");
    let (raced, rounds) = (found.raced as usize, found.proof.0);
    let of_proof = |complete: u32| {
        format!(
            "not proven yet ({complete} of {rounds} rounds of the proof): in the race, workers=4 buffer=16 is about 1.8x [1."
        )
    };
    let flatters = "as good as the defaults in requests a second, which flatters it, because the race chose it; \
                    `narrows run --resume` goes on";
    for (until, begins, ends) in [
        (0, "not proven yet (the race goes on; 0 trials so far): no other setting".to_owned(), "goes on"),
        (raced - 1, "not proven yet (the race goes on; ".to_owned(), flatters),
        (raced + 1, of_proof(0), flatters),
        // A round of the proof is the default, the winner, and the winner without each of its changes.
        (raced + 9, of_proof(2), flatters),
    ] {
        let e = sought(&good(), until);
        let sentence = answer(&view(&e));
        assert!(sentence.starts_with(&begins) && sentence.ends_with(ends), "{until}: {sentence}");
        assert!(
            lines_to_paste(&view(&e)).next().is_none()
                && !headlines(&view(&e)).iter().any(|line| line.contains("decided"))
        );
        let judged = Judgement::of_run(&lab::findings::Findings { experiments: vec![e], gates: Vec::new() });
        assert_eq!(judged.cases.iter().map(|case| case.grade).collect::<Vec<_>>(), [Grade::Open]);
    }
}

#[test]
fn where_nothing_can_be_compared_it_says_what_failed() {
    let others: Vec<Rule> = [("workers", 2), ("workers", 4), ("buffer", 16), ("spare", 1)]
        .map(|value| failing(&[value]))
        .to_vec();
    for (rules, sentence, grade) in [
        (
            vec![failing(&[])],
            "nothing can be advised, because the defaults have no figure: they failed at start: it ended",
            Grade::Unjudged,
        ),
        (others, "keep the defaults: nothing else works (11 other settings failed)", Grade::Unjudged),
    ] {
        let e = sought(&rules, usize::MAX);
        assert_eq!(answer(&view(&e)), sentence);
        let judged = Judgement::of_run(&lab::findings::Findings { experiments: vec![e], gates: Vec::new() });
        assert_eq!(judged.cases[0].grade, grade);
    }
}

#[test]
fn below_the_answer_is_what_each_knob_contributes_and_what_does_not_work() {
    let mut rules = good();
    rules.push(failing(&[("workers", 2)]));
    let e = sought(&rules, usize::MAX);
    let lines = below(&view(&e), e.tuned.as_ref().expect("a search"));
    let begins = ["workers=4: 1.5", "buffer=16: 1.2", "hardly mattered in what was tried (estimated): spare"];
    assert!(begins.iter().zip(&lines).all(|(begin, line)| line.starts_with(begin)), "{lines:?}");
    assert!(lines[..2].iter().all(|line| line.ends_with("], better than at its default")), "{lines:?}");
    assert_eq!(lines[3], "workers=2 never worked: all 4 settings that were tried with it failed: it ended");
    assert!(
        lines[4].starts_with("tried 12 of 12 settings in ") && lines[4].ends_with(" fresh rounds decided")
    );
    // Too few trials say nothing of what was not tried.
    assert_eq!(lines.len(), 5);
    assert_eq!(lines_to_paste(&view(&e)).collect::<Vec<_>>(), ["buffer 16;", "workers 4;"]);
}

#[test]
fn a_change_that_is_taken_back_and_limits_and_what_is_left_open_have_lines() {
    let mut e = sought(&good(), usize::MAX);
    let contribution = |knob: &str, value, ratio, verdict| Contribution {
        knob: knob.to_owned(),
        value: Value::Integer(value),
        ratio,
        verdict,
    };
    let found = e.shared.tuned.as_mut().expect("a search");
    let limits = [(kept(18.2, Some(true)), kept(31.0, Some(false))), (kept(19.0, None), kept(19.0, None))];
    let mut advised = advice(Because::Better, Verdict::Faster, ratio(1.3, 1.2, 1.4), &limits);
    advised.taken_back = vec!["buffer".to_owned()];
    advised.winner_gain = ratio(1.28, 1.18, 1.39);
    advised.contributions = vec![
        contribution("workers", 4, ratio(1.3, 1.2, 1.4), Verdict::Faster),
        contribution("buffer", 16, ratio(1.0, 0.98, 1.02), Verdict::NoDifference),
        contribution("spare", 1, None, Verdict::Undecided { more_rounds: None }),
    ];
    (found.advice, found.settings) = (Some(advised), usize::MAX);
    found.left_open = Some(LeftOpen { examined: Some(11), settings: 3, up_to: 1.124 });
    let lines = below(&view(&e), e.tuned.as_ref().expect("a search"));
    for line in [
        "buffer=16: 1.00x [0.98, 1.02], no difference worth having, so it stays at its default",
        "spare=1: not compared, undecided",
        "p99 < 20 ms: the setting has 18.2 ms; the defaults have 31.0 ms, which breaks it",
        "p99 < 20 ms: the setting has 19.0 ms, which is not certain; the defaults have 19.0 ms, which is not certain",
        "workers=4 buffer=16, which won the race, is 1.28x [1.18, 1.39] as good as the defaults",
        "another setting of the 11 that were examined may be up to 1.12x better (95 %); a longer --budget tries more",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line} in {lines:?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("tried 12 of countless settings in ")), "{lines:?}");
    let found = e.shared.tuned.as_mut().expect("a search");
    let advised = found.advice.as_mut().expect("advice");
    advised.contributions.clear();
    let because = std::mem::replace(&mut advised.because, Because::BreaksLimits);
    let lines = below(&view(&e), e.tuned.as_ref().expect("a search"));
    assert!(lines.iter().any(|line| line.ends_with(" fresh rounds did not decide")), "{lines:?}");
    let found = e.shared.tuned.as_mut().expect("a search");
    found.advice.as_mut().expect("advice").because = because;
    let lines = below(&view(&e), e.tuned.as_ref().expect("a search"));
    assert_eq!(lines[0], "there was no time to show what each knob contributes: a longer --budget has it");
}

#[test]
fn limits_are_written_in_their_units() {
    for (of, below, words) in [
        (Bounded::Percentile(99.9), 1_500.0, "p99.9 < 1.5 ms"),
        (Bounded::Errors, 0.01, "errors < 1 %"),
        (Bounded::Memory, 1e8, "memory < 100 MB"),
    ] {
        assert_eq!(limit(&Limit { of, below }), words);
    }
}

#[test]
fn a_knob_of_which_one_value_works_is_not_said_to_hardly_matter() {
    let mut rules = good();
    rules.push(failing(&[("spare", 1)]));
    let e = sought(&rules, usize::MAX);
    let lines = below(&view(&e), e.tuned.as_ref().expect("a search"));
    assert!(!lines.iter().any(|line| line.starts_with("hardly mattered")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("spare=1 never worked: ")), "{lines:?}");
}
