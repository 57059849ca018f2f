//! `narrows doctor` checks the machine on which it runs, and measures for a moment.

use crate::support::{Guarded, narrows, run, until};

#[test]
fn the_machine_is_judged_and_measured() {
    let json = run(&mut narrows(["doctor", "--json"])).code(0).json();
    let findings = json["findings"].as_array().expect("findings");
    let problems = findings.iter().filter(|finding| finding["remedy"].is_string()).count();
    assert_eq!(json["problems"], problems, "{json}");
    for what in [
        "cores",
        "other work",
        "stolen time",
        "heat",
        "frequency governor",
        "I/O interface",
        "perf counters",
        "tracepoints",
        "open files",
        "accept queue",
        "ports",
        "ports in TIME_WAIT",
        "floor",
        "noise, A against A",
    ] {
        assert_eq!(findings.iter().filter(|finding| finding["what"] == what).count(), 1, "{what}: {json}");
    }
    let measured = &json["measured"];
    assert!(measured["requests_per_s"].as_f64() > Some(0.0), "{json}");
    assert!(measured["worst_noise"].as_f64() >= measured["noise"].as_f64(), "{json}");
}

#[test]
fn the_text_has_the_same_findings() {
    let ended = run(&mut narrows(["doctor"])).code(0);
    let marked = ended.stdout.lines().filter(|line| line.starts_with("! ")).count();
    assert_eq!(ended.stdout.matches(" -> ").count(), marked, "a remedy for each problem: {}", ended.stdout);
    // Without a terminal, lines are wrapped at 100 columns.
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    let last = ended.stdout.lines().last().expect("an end");
    let expected = match marked {
        0 => "this machine is fit for measurements".to_owned(),
        1 => "one thing to change".to_owned(),
        number => format!("{number} things to change"),
    };
    assert_eq!(last, expected);
}

#[test]
fn an_interruption_ends_doctor() {
    let doctor = Guarded::spawn(&mut narrows(["doctor"]));
    // It has a handler, and need not have begun. In either case it ends by itself.
    assert!(until(|| doctor.heeds(libc::SIGINT)));
    doctor.signal(libc::SIGINT);
    let ended = doctor.end();
    assert!(!ended.status.success() || ended.stdout.contains("floor"), "{ended:#?}");
}
