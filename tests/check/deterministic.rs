//! A plan depends on its seed, and a report on its store. Neither depends on the place, the language, the time zone or the call.

use std::path::Path;

use lab::store::Store;

use crate::support::fake::Lab;
use crate::support::{narrows, run};

/// Every format of the report.
const FORMATS: [&str; 10] =
    ["text", "markdown", "html", "json", "csv", "hlog", "hlog-merged", "github", "junit", "bencher"];

/// The variables of an environment.
const PLACES: [[(&str, &str); 4]; 4] = [
    [("TZ", "UTC"), ("LANG", "C"), ("LC_ALL", "C"), ("LANGUAGE", "en")],
    [("TZ", "Asia/Kathmandu"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "de_DE.UTF-8"), ("LANGUAGE", "de")],
    [("TZ", "America/St_Johns"), ("LANG", "tr_TR.UTF-8"), ("LC_ALL", "tr_TR.UTF-8"), ("LANGUAGE", "tr")],
    [("TZ", ":/nonexistent"), ("LANG", "nonsense"), ("LC_ALL", ""), ("LANGUAGE", "")],
];

#[test]
fn reports_of_a_stored_run_are_the_same_bytes_everywhere() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    let store = lab.home.path("narrows.db");
    let store = store.to_str().expect("a path in UTF-8");
    let folders = [lab.home.path(""), Path::new("/").to_owned(), lab.home.path("systems/alpha")];
    for format in FORMATS {
        let report = |variables: &[(&str, &str)], folder: &Path| {
            let mut command = narrows(["report", "last", "--format", format, "--store", store]);
            command.envs(variables.iter().copied()).current_dir(folder);
            run(&mut command).code(0).stdout
        };
        let first = report(&[], &folders[0]);
        assert!(!first.is_empty(), "{format}");
        for (place, folder) in PLACES.iter().zip(folders.iter().cycle()) {
            assert!(
                report(place, folder) == first,
                "{format} differs with {place:?} in {}",
                folder.display()
            );
        }
    }
}

#[test]
fn a_seed_makes_the_same_plan_and_findings_everywhere() {
    let outcome = |place: &[(&str, &str)]| {
        let lab = Lab::new();
        let words = ["run", "e", "--fake", "truth.toml", "--seed", "1", "--rounds", "6"];
        run(lab.home.narrows(words).envs(place.iter().copied())).code(0);
        let store = Store::open(&lab.home.path("narrows.db")).expect("a store");
        let id = store.resolve("last").expect("a run");
        let plan =
            serde_json::to_string(&store.header(id).expect("its header").plan).expect("a plan is JSON");
        let seen: Vec<_> = store.observations(id).expect("its observations");
        let outcomes = seen.iter().map(|seen| serde_json::to_string(&seen.outcome).expect("JSON"));
        (plan, outcomes.collect::<Vec<_>>(), lab.report("markdown"))
    };
    let first = outcome(&[]);
    assert!(!first.1.is_empty());
    for place in &PLACES {
        assert!(outcome(place) == first, "it differs with {place:?}");
    }
}
