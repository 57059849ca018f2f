//! Sentences that the snapshots of the program have no run for.

use lab::experiment::{Asks, Figure};
use lab::findings::{
    Behind, By, Claim, Comparison, Counted, ExperimentFindings, FailedTrials, FigureFindings, Findings,
    Interaction, Ratio, Reason, Silence, Withheld, WithoutFigure,
};
use lab::plan::Base;
use measurement::doubt::Evidence;
use stats::Verdict;
use systems::Value;

use super::verdicts::verdict;
use super::{Advice, advice_on_trial, answer, headlines, second};
use crate::brief::verdicts;
use crate::made_up::{found, rule, view};

/// Two systems with pools of 8 and 16.
fn run() -> ExperimentFindings {
    found(&["fast", "slow"], &[("pool_size", &[8, 16])], &[rule("fast", &[], 2.0)])
}

fn comparison(by: By, verdict: Verdict) -> Comparison {
    let ratio = Some(Ratio { estimate: 2.0, low: 1.25, high: 3.2 });
    Comparison {
        scenario: 1,
        against: 0,
        by,
        rounds: 4,
        ratio,
        excess: None,
        p: Some(0.01),
        at_least: true,
        withheld: None,
        verdict,
    }
}

fn said(claim: Claim) -> String {
    let mut e = run();
    e.figures[0].claims = vec![claim];
    answer(&view(&e))
}

#[test]
fn ties_lower_bounds_and_counts_are_said() {
    let by = By::Knob("pool_size".to_owned());
    let counts = |counted, faster, slower| Reason { counted, faster, slower, share: 1.0 };
    let claim = Claim::Knob {
        comparison: comparison(by, Verdict::Faster),
        narrow: false,
        default: true,
        equal: vec![0],
        ties: vec![0, 1],
        reasons: vec![
            counts(Counted::SystemCalls, 2.0, 8.0),
            counts(Counted::Instructions, 1000.0, 25_000.0),
        ],
    };
    assert_eq!(
        said(claim),
        "`pool_size`: set it to 16, which is at least 2.0x [1.2, 3.2] faster than 8, the default; 8 is as good within 5 %; 8 and 16 \
         may be as good (fast; 4 rounds): \
         2.0 system calls a request against 8.0; 1,000 instructions a request against 25,000"
    );
    let slower = Claim::Knob {
        comparison: Comparison {
            ratio: Some(Ratio { estimate: 0.5, low: 0.4, high: 0.6 }),
            at_least: false,
            ..comparison(By::Knob("pool_size".to_owned()), Verdict::Slower)
        },
        narrow: true,
        default: true,
        equal: Vec::new(),
        ties: Vec::new(),
        reasons: Vec::new(),
    };
    assert_eq!(
        said(slower),
        "`pool_size`: leave it at 8, the default; 16 is 2.0x [1.7, 2.5] slower (fast; 4 rounds)"
    );
}

#[test]
fn systems_of_unequal_work_are_said_to_be() {
    let comparison = Comparison { scenario: 0, against: 2, ..comparison(By::System, Verdict::Faster) };
    let ratio = |low| Some(Ratio { estimate: 4.0, low, high: 50.0 });
    let rest = vec![
        Behind { scenario: 1, ratio: ratio(5.5) },
        Behind { scenario: 3, ratio: ratio(1.5) },
        Behind { scenario: 3, ratio: ratio(0.5) },
    ];
    let claim = Claim::Systems {
        comparison,
        equal: vec![3],
        ties: vec![2],
        rest,
        elsewhere: vec![],
        alike: false,
        unequal: true,
        reasons: Vec::new(),
    };
    assert_eq!(
        said(claim),
        "fast leads: it is at least 2.0x [1.2, 3.2] faster than slow, whose work is not the same, 4.0x [5.5, 50.0] than fast, \
         at least 1.50x than slow and ahead of slow; slow is as fast within 5 %; slow may be as fast (pool_size 8; 4 rounds)"
    );
}

#[test]
fn what_is_open_and_what_is_equal_is_said_of_knobs_and_of_systems() {
    let open = |by, equal, more_rounds| {
        let comparison = Comparison { at_least: false, ..comparison(by, Verdict::Undecided { more_rounds }) };
        said(Claim::Undecided { comparison, default: false, equal, of: 3 })
    };
    let knob = || By::Knob("pool_size".to_owned());
    let end = "16 is 2.00x [1.25, 3.20] as fast as 8 (fast; 4 rounds";
    assert_eq!(
        open(knob(), 0, Some(7)),
        format!("`pool_size` is undecided: {end}; 7 more rounds may decide it)")
    );
    assert_eq!(
        open(knob(), 2, None),
        format!(
            "`pool_size` makes no difference in 2 of 3 comparisons, and the others are undecided: {end}; a quieter machine would help most: see `narrows doctor`)"
        )
    );
    assert!(
        open(By::System, 0, Some(101))
            .ends_with("4 rounds; a quieter machine would help most: see `narrows doctor`)")
    );
    let mut e = run();
    let evidence = Evidence::GeneratorBusy { share: 0.99 };
    e.figures[0].estimates[1].doubts.insert(evidence.doubt(), evidence);
    let bound = Comparison {
        withheld: Some(Withheld::LowerBound),
        ..comparison(knob(), Verdict::Undecided { more_rounds: None })
    };
    assert_eq!(verdict(e.figures[0].figure, &bound), "undecided: the generator was at its limit");
    e.figures[0].claims = vec![Claim::Undecided { comparison: bound, default: false, equal: 0, of: 3 }];
    assert_eq!(
        answer(&view(&e)),
        format!(
            "`pool_size` is undecided: {end}; the generator was at its limit, so the figure of 16 is a lower bound)"
        )
    );
    let wild = Comparison {
        ratio: Some(Ratio { estimate: 2.0, low: 0.1, high: 40.0 }),
        at_least: false,
        ..comparison(By::System, Verdict::Undecided { more_rounds: Some(30) })
    };
    assert_eq!(
        said(Claim::Undecided { comparison: wild, default: false, equal: 0, of: 3 }),
        "the systems are hardly measured: trials of fast and of fast differ too much among themselves \
         (pool_size 16; 4 rounds; 30 more rounds may decide it)"
    );
    let equal = |by| said(Claim::NoDifference { by, threshold: 0.05, against: 0, default: false });
    assert_eq!(equal(knob()), "`pool_size` makes no difference worth having: all values are within 5 % of 8");
    assert_eq!(
        equal(By::System),
        "the systems make no difference worth having: they are within 5 % of each other"
    );
}

#[test]
fn a_claim_about_what_is_not_there_is_no_panic() {
    let mut e = run();
    let far = Comparison { scenario: 99, against: 98, ..comparison(By::System, Verdict::Faster) };
    e.figures[0].claims = vec![Claim::Systems {
        comparison: far,
        equal: vec![96],
        ties: vec![97],
        rest: Vec::new(),
        elsewhere: vec![95],
        alike: true,
        unequal: false,
        reasons: Vec::new(),
    }];
    assert_eq!(headlines(&view(&e)).len(), 1);
}

#[test]
fn where_nothing_is_claimed_the_answer_says_why() {
    let mut e = run();
    e.figures[0].claims = Vec::new();
    e.shared.trials_done -= 1;
    assert_eq!(
        (view(&e).silence(), answer(&view(&e)).as_str()),
        (Some(Silence::NotYet), "nothing to compare yet")
    );
    assert!(headlines(&view(&e)).is_empty());
}

#[test]
fn what_no_made_up_trial_shows_has_its_sentence_and_a_remedy() {
    let (window_s, connections) = (1.5, 900);
    for (seen, sentence) in [
        (
            Evidence::AsTheReference { share: 0.98, low: 0.955, high: 1.01, rounds: 3 },
            "the speed was 98 % [96, 101] of the reference's in 3 rounds",
        ),
        (Evidence::NothingEnded { attempts: 10, window_s }, "none of 10 operations ended in 1.50 s"),
        (Evidence::FewEnded { successes: 1, window_s }, "only 1 operation ended in 1.50 s"),
        (
            Evidence::FewLatencies { window_s, latencies: 2.5 },
            "the window of 1.50 s is 2.5 mean latencies long",
        ),
        (Evidence::Scatter { times: 1.25 }, "tenths of the window scatter by 1.2 times their mean"),
        (Evidence::Halves { change: 0.25 }, "the second half had 25 % more operations than the first"),
        (Evidence::Ports { connections, of: 1000 }, "900 of 1000 local ports are in use"),
        (Evidence::Throttled { times: 1 }, "the processor slowed itself down for heat 1 time"),
    ] {
        let Advice { message, remedy } = advice_on_trial(&seen);
        assert_eq!(message, sentence);
        assert!(!remedy.is_empty());
    }
}

#[test]
fn a_cost_has_one_direction() {
    let said = |claim: Claim| {
        let mut e = run();
        e.figures[0].figure = Figure::CpuPerUnit;
        e.figures[0].claims = vec![claim];
        answer(&view(&e))
    };
    let knob = || By::Knob("pool_size".to_owned());
    let sure =
        |by, verdict, ratio| Comparison { at_least: false, ratio: Some(ratio), ..comparison(by, verdict) };
    let twice = Ratio { estimate: 2.0, low: 1.25, high: 3.2 };
    let claim = |comparison: Comparison| Claim::Knob {
        comparison,
        narrow: false,
        default: true,
        equal: Vec::new(),
        ties: Vec::new(),
        reasons: Vec::new(),
    };
    assert_eq!(
        said(claim(sure(knob(), Verdict::Faster, twice))),
        "`pool_size`: set it to 16; 8, the default, needs 2.0x [1.2, 3.2] the CPU a request (fast; 4 rounds)"
    );
    assert_eq!(
        said(claim(sure(knob(), Verdict::Slower, twice.inverse()))),
        "`pool_size`: leave it at 8, the default; 16 needs 2.0x [1.2, 3.2] the CPU a request (fast; 4 rounds)"
    );
    let systems = Claim::Systems {
        comparison: Comparison { scenario: 0, against: 2, ..sure(By::System, Verdict::Faster, twice) },
        equal: Vec::new(),
        ties: Vec::new(),
        rest: vec![Behind { scenario: 1, ratio: Some(Ratio { estimate: 4.0, low: 3.5, high: 5.0 }) }],
        elsewhere: Vec::new(),
        alike: false,
        unequal: false,
        reasons: Vec::new(),
    };
    assert_eq!(
        said(systems),
        "fast leads: slow needs 2.0x [1.2, 3.2] the CPU a request and fast 4.0x [3.5, 5.0] (pool_size 8; 4 rounds)"
    );
    // Whichever needs more comes first, also where nothing is decided.
    for (ratio, shown) in [
        (Ratio { estimate: 1.25, low: 0.8, high: 2.0 }, "8 needs 1.25x [0.80, 2.00] the CPU a request of 16"),
        (Ratio { estimate: 0.8, low: 0.5, high: 1.25 }, "16 needs 1.25x [0.80, 2.00] the CPU a request of 8"),
    ] {
        let comparison = sure(knob(), Verdict::Undecided { more_rounds: None }, ratio);
        let words = said(Claim::Undecided { comparison, default: false, equal: 0, of: 1 });
        assert!(words.contains(shown), "{words}");
    }
    let more = sure(knob(), Verdict::Slower, twice.inverse());
    assert_eq!(verdict(Figure::CpuPerUnit, &more), "more");
}

#[test]
fn what_fails_in_every_trial_is_said_first() {
    let mut e = run();
    let by = By::Knob("pool_size".to_owned());
    e.figures[0].claims = vec![Claim::NoDifference { by, threshold: 0.05, against: 0, default: false }];
    (e.figures[0].estimates[1].trials, e.figures[0].estimates[1].failed) = (0, 3);
    e.shared.failures = vec![FailedTrials {
        scenario: e.label(&e.figures[0].estimates[1].scenario),
        stage: "drive".to_owned(),
        reason: "it ended with exit code 134".to_owned(),
        output: "FATAL ERROR: heap limit\n\n".to_owned(),
        trials: 3,
    }];
    let words = answer(&view(&e));
    let first = "fast pool_size=16 fails in every trial: it ended with exit code 134; it said: FATAL ERROR: heap \
                 limit. `pool_size` makes no difference";
    assert!(words.starts_with(first), "{words}");
    // A name stays as it is, and words begin with a capital letter.
    let systems = Comparison { scenario: 0, against: 2, ..comparison(By::System, Verdict::Faster) };
    let undecided = Comparison { verdict: Verdict::Undecided { more_rounds: None }, ..systems.clone() };
    for (claims, second) in [
        (vec![leads(systems, false)], ". fast leads: "),
        (
            vec![Claim::Undecided { comparison: undecided, default: false, equal: 0, of: 1 }],
            ". The systems are undecided: ",
        ),
        (vec![], ". Nothing stands out"),
    ] {
        e.figures[0].claims = claims;
        assert!(answer(&view(&e)).contains(&format!("heap limit{second}")), "{}", answer(&view(&e)));
    }
    // Where nothing works, that is the answer itself.
    e.figures[0].estimates.iter_mut().for_each(|estimate| estimate.trials = 0);
    assert!(!answer(&view(&e)).contains("in every trial: it ended"), "{}", answer(&view(&e)));
}

/// The claim that this comparison's first system leads, and nothing else.
fn leads(comparison: Comparison, alike: bool) -> Claim {
    let (equal, ties, rest, elsewhere, reasons) = Default::default();
    Claim::Systems { comparison, equal, ties, rest, elsewhere, alike, unequal: false, reasons }
}

#[test]
fn what_was_asked_comes_first_and_below_it_what_makes_it_no_answer_for_all_points() {
    let mut e = run();
    e.shared.setup.subject.asks = Some(Asks::Systems);
    let of_fast = |value| [("fast".to_owned(), [("pipelining".to_owned(), Value::Integer(value))].into())];
    e.shared.setup.defaults = of_fast(10).into();
    e.shared.setup.alike = of_fast(1).into();
    let lead =
        Comparison { scenario: 0, against: 2, at_least: false, ..comparison(By::System, Verdict::Faster) };
    let like = |at: usize, value: i64, e: &mut ExperimentFindings| {
        e.figures[0].estimates[at].scenario.point.insert("pipelining".to_owned(), Value::Integer(value))
    };
    like(1, 1, &mut e);
    let alike = Comparison { scenario: 3, against: 1, ..lead.clone() };
    let knob =
        Comparison { at_least: false, ..comparison(By::Knob("pool_size".to_owned()), Verdict::Faster) };
    let knob = Claim::Knob {
        comparison: knob,
        narrow: true,
        default: false,
        equal: Vec::new(),
        ties: Vec::new(),
        reasons: Vec::new(),
    };
    let depends = |knob: &str, least: f64| {
        let at = |value: &str, ratio: f64| (value.to_owned(), ratio);
        let [value, against] = ["16", "8"].map(str::to_owned);
        let ratio = Ratio { estimate: 2.0, low: 1.5, high: 3.0 };
        let (most, least) = (at("1", 2.0), at("2", least));
        let interaction = Interaction { knob: "rate".to_owned(), value, against, most, least, ratio };
        Claim::DependsOn { knob: knob.to_owned(), interaction }
    };
    e.figures[0].claims = vec![leads(lead, false), leads(alike, true), knob, depends("pool_size", 1.0)];
    assert_eq!(
        answer(&view(&e)),
        "fast (pipelining 10) leads: it is 2.0x [1.2, 3.2] faster than slow (pool_size 8; 4 rounds)"
    );
    let of_knob = "`pool_size` is the narrow place: set it to 16, which is 2.0x [1.2, 3.2] faster than 8 (fast; 4 rounds)";
    let of_like_settings = "with fast at pipelining 1, slow leads: it is 2.0x [1.2, 3.2] faster than fast (pool_size 16; 4 rounds)";
    assert_eq!(second(&view(&e)), [of_like_settings, of_knob]);
    // An effect that is there at one value only is no advice for the other.
    e.shared.setup.subject.asks = Some(Asks::Knob("pool_size".to_owned()));
    e.figures[0].claims =
        vec![e.figures[0].claims.remove(2), depends("pool_size", 1.01), e.figures[0].claims.remove(0)];
    let on = "what `pool_size` does depends on `rate`: 16 against 8 is 2.00x as fast at 1, and 1.01x at 2";
    assert_eq!(second(&view(&e))[0], on);
    e.figures[0].claims[1] = depends("pool_size", 1.2);
    assert!(second(&view(&e))[0].starts_with("fast (pipelining 10) leads"), "{:?}", second(&view(&e)));
    // A comparison of commands has no question of its own.
    e.shared.setup.subject.asks = None;
    assert_eq!(second(&view(&e)), [""; 0]);
    // A leader at one point is no leader at all.
    let systems = Comparison { scenario: 0, against: 2, ..comparison(By::System, Verdict::Faster) };
    for (leaders, said) in [
        (vec![3], "at pool_size 16 slow leads"),
        (vec![2, 3, 1], "at 2 other points slow and at pool_size 16 fast lead"),
    ] {
        let mut claim = leads(systems.clone(), false);
        let Claim::Systems { elsewhere, .. } = &mut claim else { unreachable!() };
        *elsewhere = leaders;
        e.figures[0].claims = vec![claim];
        assert_eq!(second(&view(&e)), [said]);
        let headlines = headlines(&view(&e));
        assert!(headlines[0].ends_with(&format!("4 rounds). A{}", &said[1..])), "{headlines:?}");
    }
}

#[test]
fn a_question_without_an_answer_is_said_to_have_none() {
    let unanswered = |e: &ExperimentFindings, asks: Asks| {
        let mut e = e.clone();
        e.figures[0].claims = vec![Claim::Unanswered { asks }];
        answer(&view(&e))
    };
    let knob = |name: &str| Asks::Knob(name.to_owned());
    let alone = found(&["fast"], &[("pool_size", &[8, 16]), ("pools", &[1])], &[rule("fast", &[], 2.0)]);
    assert_eq!(unanswered(&alone, Asks::Systems), "no systems are compared: only fast takes part");
    assert_eq!(unanswered(&alone, knob("pools")), "`pools` is not compared: it is 1 everywhere");
    assert_eq!(unanswered(&alone, knob("x")), "`x` is not compared: no two rows differ only in it");
    let mut e = run();
    e.figures[0].comparisons.iter_mut().filter(|c| c.by == By::System).for_each(|c| c.ratio = None);
    let why = "the systems cannot be compared: the two have fewer than three rounds in common";
    assert_eq!(unanswered(&e, Asks::Systems), why);
    let evidence = Evidence::NothingEnded { attempts: 1, window_s: 0.3 };
    let without = |system: &str| WithoutFigure { system: system.to_owned(), evidence: evidence.clone() };
    e.figures[0].without_figure = vec![without("a third one"), without("slow")];
    let because = "slow: a trial has no figure: none of 1 operation ended in 300 ms; a longer window (measure_s), or less work per operation";
    assert_eq!(unanswered(&e, Asks::Systems), format!("{why} ({because})"));
    e.figures[0].comparisons.retain(|c| c.by != By::System);
    let apart = "no systems are compared: no two of them ran at the same point";
    assert_eq!(unanswered(&e, Asks::Systems), apart);
}

#[test]
fn the_verdict_on_the_deciding_figure_comes_last() {
    let mut e = run();
    let first = e.figures[0].clone();
    e.shared.setup.base =
        Some(Base { scenario: first.estimates[0].scenario.clone(), command: String::new() });
    let one = Findings { experiments: vec![e.clone()], gates: Vec::new() };
    e.figures.push(FigureFindings { figure: Figure::CpuPerUnit, ..first });
    let two = Findings { experiments: vec![e], gates: Vec::new() };
    let lines = verdicts(&two, 10_000, false);
    let figures: Vec<&str> = lines.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(figures, ["cpu_per_unit", "requests_per_s"]);
    assert_eq!(verdicts(&one, 100, false), "");
}
