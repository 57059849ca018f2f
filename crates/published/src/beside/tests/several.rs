//! Tests of several published tables beside one run, and of the documents' two runtimes.

use super::*;

const TABLES: &str = "published = [\"cowboy-sizes\", \"cowboy-buffers\"]";
const GRID: &str =
    "[[grid]]\nsize = \"1G\"\nreuse = false\n[[grid]]\nsize = \"1G\"\nreuse = false\nbuffer = 262144\n";

/// Uploads of 1G, in these milliseconds by each system, and in a seventh of that with the buffer 262144.
fn runtimes(systems: &[(&str, f64)]) -> FigureView<'static> {
    let names: Vec<String> = systems.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let text = experiment("upload", "ms_per_upload", TABLES, &names.join(", "), GRID);
    ran(&text, 3, |trial| {
        let (_, ms) = systems.iter().find(|(name, _)| *name == trial.scenario.system).unwrap();
        let part = if word(trial, "buffer") == "262144" { 7.0 } else { 1.0 };
        measurement(Workload::Upload, ms / part)
    })
}

/// The comparisons of the runtimes: whether each agrees, and the ratio today, in hundredths.
fn of_runtimes(beside: &Beside) -> Vec<(Option<bool>, f64)> {
    let times = |shape: &Shape| match &shape.figures {
        ShapeFigures::Times { of, against, system: Some(system), size, then, today: Some(today), .. } => {
            assert_eq!([of, against, system], ["otp26-jit", "otp21", "cowboy2.10.0"]);
            assert_eq!((*size, then.low, today.low), (Some(1 << 30), then.high, today.high));
            Some((shape.agrees, (today.low * 100.0).round() / 100.0))
        }
        _ => None,
    };
    beside.shapes.iter().filter_map(times).collect()
}

#[test]
fn a_run_is_compared_with_each_table_that_it_names() {
    let e = runtimes(&[("cowboy2@otp21", 700.0), ("cowboy2@otp26", 500.0)]);
    let tables: Vec<&str> = e.beside.iter().map(|beside| beside.published.as_str()).collect();
    assert_eq!(
        (tables, e.published.clone()),
        (
            vec!["cowboy-sizes", "cowboy-buffers"],
            vec!["cowboy-sizes".to_owned(), "cowboy-buffers".to_owned()]
        )
    );
    let rows: Vec<usize> = e.beside.iter().map(|beside| beside.table.rows.len()).collect();
    assert_eq!(rows, [2, 4], "each runtime at 1G; each at both buffers");
    for beside in e.beside {
        let other = |d: &&Difference| matches!(d, Difference::StandIn { runtime: Some(_), .. });
        assert_eq!(beside.differences.iter().filter(other).count(), 0, "{beside:?}");
    }
}

#[test]
fn two_runtimes_are_compared_as_in_the_documents() {
    let sizes = |systems: &[(&str, f64)]| of_runtimes(&runtimes(systems).beside[0]);
    let found = sizes(&[("cowboy2@otp21", 700.0), ("cowboy2@otp26", 500.0)]);
    assert_eq!(found, [(Some(true), 0.71)]);
    // Both are level today, or in the other order.
    for (ms, today) in [(700.0, 1.0), (800.0, 1.14)] {
        let found = sizes(&[("cowboy2@otp21", 700.0), ("cowboy2@otp26", ms)]);
        assert_eq!(found, [(Some(false), today)]);
    }
    // A single system for both rows compares nothing.
    assert_eq!(sizes(&[("cowboy2", 700.0)]), []);
    assert_eq!(sizes(&[("cowboy2@jit", 700.0)]), []);
}

#[test]
fn a_variant_represents_only_its_own_runtime() {
    let e = runtimes(&[("cowboy2@emu", 700.0), ("cowboy2@jit", 500.0)]);
    let beside = &e.beside[0];
    assert_eq!(of_runtimes(beside).len(), 1);
    for (variant, runtime) in [("emu", "otp21"), ("jit", "otp26-jit")] {
        let stands = stand_in(&format!("cowboy2@{variant}"), "cowboy2.10.0", Some(runtime));
        assert!(beside.differences.contains(&stands), "{stands:?}: {:?}", beside.differences);
    }
    // Of two variants, the nearer one is taken.
    let e = runtimes(&[("cowboy2@emu", 900.0), ("cowboy2@otp21", 700.0), ("cowboy2@otp26", 500.0)]);
    assert_eq!(of_runtimes(&e.beside[0])[0].1, 0.71);
    let alone = runtimes(&[("cowboy2@jit", 500.0)]);
    assert_eq!(alone.beside[0].table.rows.len(), 1, "no row of OTP 21");
}

#[test]
fn an_unknown_table_or_a_duplicate_is_refused() {
    for (published, place, words) in [
        ("[\"cowboy-sizes\", \"cowboy-size\"]", "e.toml:6:30", "did you mean `cowboy-sizes`?"),
        ("[\"iodash\", \"iodash\"]", "e.toml:6:24", "named twice"),
        ("[1]", "e.toml:6:14", "not the name of a table"),
        ("true", "e.toml:6:13", "not the name of a table"),
    ] {
        let published = format!("published = {published}");
        let text = experiment("upload", "ms_per_upload", &published, "\"cowboy2\"", "[[grid]]\nsize = 1\n");
        let error = Experiment::parse(&Source::new("experiments/e.toml", text)).unwrap_err().one_line();
        assert!(error.contains(place) && error.contains(words), "{error}");
    }
}
