//! `narrows try` with made-up figures: what it plans, says, saves and judges. No command is started, so `tests/e2e/tries.rs` tests
//! what becomes of commands.

use lab::observation::Outcome;
use serde_json::{Value, json};

use crate::support::fake::{Try, all_but};
use crate::support::{run, squeezed};

/// A command of a user's, which is never started.
const SERVER: &str = "./server {port}";

#[test]
fn each_point_of_a_knob_is_a_command_and_its_environment() {
    let shown = Try::new("").home.run([
        "try",
        "./s -w {w} {port}",
        "-L",
        "w",
        "1..4*2",
        "--env",
        "A={w}",
        "--dry-run",
    ]);
    let lines = shown.code(0).stdout;
    let expected = "s w=1: A=1 ./s -w 1 {port}\ns w=2: A=2 ./s -w 2 {port}\ns w=4: A=4 ./s -w 4 {port}\n";
    assert_eq!(lines, expected);
}

#[test]
fn costs_are_compared_below_saturation() {
    let tried = Try::new("");
    let ended = tried.tries(&["./one {port}", "--figure", "rate,cpu,memory,p50", "-c", "4"]).code(0);
    let report = tried.home.run(["report", "last", "--format", "json"]).code(0).json();
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for e in report["experiments"].as_array().expect("experiments") {
        let name = e["name"].as_str().unwrap_or_default();
        let of = e["figures"].as_array().expect("figures").iter();
        figures.extend(of.map(|f| (name, f["figure"].as_str().unwrap_or_default())));
    }
    let open = "try-at-rate";
    let expected =
        [("try", "requests_per_s"), (open, "cpu_per_unit"), (open, "memory_bytes"), (open, "p50_us")];
    assert_eq!(figures, expected, "{ended:#?}");
    // Further figures have a line each, and the deciding one stands last.
    let lines = ended.stdout.lines().count();
    assert!(ended.stdout.contains("\nmemory_bytes: one") && lines < 30, "{ended:#?}");
    for e in &tried.home.observations() {
        let rate = e.trial.scenario.point.get("rate").map(ToString::to_string);
        // Half of what the first look found.
        assert_eq!(rate.as_deref() == Some("5000"), e.trial.scenario.experiment == open, "{rate:?}");
        assert_eq!(e.trial.scenario.work().rate().is_some(), e.trial.scenario.experiment == open);
    }
    tried.tries(&["./one {port}", "--fail-if", "cpu>1.1"]).code(2).says(&["name this figure in --figure"]);
}

#[test]
fn runs_are_compared_as_shares_of_the_same_base() {
    let tried = Try::new("");
    let other = "./server {port} --other";
    for arms in [[SERVER, other], [SERVER, other], [other, other]] {
        tried.tries(&[arms[0], arms[1], "--names", "a,b"]).code(0);
    }
    let ended = tried.home.run(["compare", "1", "2"]).code(0);
    // The base beside itself would always be equal.
    assert!(ended.stdout.contains("\nb ") && !ended.stdout.contains("\na "), "{ended:#?}");
    tried.home.run(["compare", "2", "3"]).code(1).says(&["meaningless", "try base"]);
}

#[test]
fn a_saved_comparison_is_not_overwritten_and_has_a_name() {
    let tried = Try::new("");
    let words = [SERVER, SERVER, "--names", "a,b", "--knob", "cores=1", "--save", "mine"];
    tried.tries(&words).code(0).says(&["NARROWS_HOME=narrows narrows run mine"]);
    tried.tries(&[SERVER, "--save", "mine"]).code(1).says(&["exists", "choose another name"]);
    tried.tries(&[SERVER, "--save", "../mine"]).code(2);
}

#[test]
fn a_gate_needs_something_to_judge() {
    let ended = Try::new("").tries(&[SERVER, "--fail-if", "rate<0.9"]);
    ended.code(3).says(&["cannot be judged: nothing was compared"]);
}

#[test]
fn the_slower_of_two_commands_is_found_and_fails_its_gate() {
    let tried = Try::new("[[rule]]\nsystem = \"slow\"\nbetter = 0.1\n");
    let [fast, slow] = ["./fast {port}", "./slow {port}"];
    let ended = tried.tries(&[slow, fast, "--rounds", "5"]).code(0);
    let said = squeezed(&ended.stdout);
    for part in [
        "fast leads",
        "than slow",
        "noise: slow beside itself",
        "GET /: every answer was 200 with the same 2 bytes",
    ] {
        assert!(said.contains(part), "{part}: {ended:#?}");
    }
    // Five rounds of two arms, three of them with the base's twin.
    assert_eq!(tried.home.observations().len(), 13);
    assert!(tried.home.run(["report", "last"]).code(0).stdout.contains("fast leads"));
    // The gate: the second is slower than the first, but not the other way round.
    let gate = |arms: [&str; 2]| {
        tried.tries(&[&arms[..], &["--rounds", "5", "--fail-if", "rate<0.9", "--no-duet"]].concat())
    };
    gate([slow, fast]).code(0);
    gate([fast, slow]).code(3).says(&["failed: slow", "rate<0.9"]);
    // It is judged, too, where a run goes on.
    all_but(&tried.home, 11);
    let before = tried.home.observations();
    let ended = tried.resume("last").code(3).says(&["run 4 goes on", "failed: slow"]);
    assert!(ended.stdout.contains("fast leads"), "{ended:#?}");
    assert_eq!(tried.home.observations()[..before.len()], before);
    assert_eq!(tried.home.observations().len(), 13);
}

#[test]
fn a_gate_may_limit_the_figure_itself() {
    let tried = Try::new("");
    let gate = |bounds: &str| tried.tries(&[SERVER, "--figure", "rate,memory", "--fail-if", bounds]);
    gate("memory>1000GB,rate<1/s").code(0);
    gate("memory>1kB").code(3).says(&["failed: ", "MB [", "memory>1kB"]);
    gate("rate>1/s").code(3).says(&["failed: ", "/s [", "rate>1/s"]);
    gate("rate<20ms").code(2).says(&["ms is none of its units, which are /s, k/s"]);
    let words = ["compare", "1", "2", "--fail-if", "p99>20ms"];
    tried.home.run(words).code(2).says(&["compared by their ratios"]);
}

#[test]
fn what_becomes_of_a_condition_that_is_inconclusive_can_be_chosen() {
    let tried = Try::new("");
    // The arms are equal, so a bound at the base itself is not decided.
    let at_the_bound =
        |words: &[&str]| tried.tries(&[&[SERVER, "./other {port}", "--fail-if", "rate<1"], words].concat());
    at_the_bound(&[]).code(4).says(&["inconclusive is no pass"]);
    at_the_bound(&["--inconclusive", "pass"]).code(0);
    at_the_bound(&["--inconclusive", "fail"]).code(3);
}

#[test]
fn arms_that_answer_otherwise_are_refused_with_both_answers() {
    let tried = Try::new(
        "[[rule]]\nsystem = \"two\"\nanswer = { body = \"two\" }\n\
         [[rule]]\nsystem = \"lost\"\nanswer = { status = 404, body = \"not here\" }\n",
    );
    for (words, says) in [
        (
            &["./one {port}", "./two {port}"][..],
            ["one answers 200 with 2 bytes, \"ok\"", "two answers 200 with 3 bytes, \"two\"", "--unequal"],
        ),
        (&["./lost {port}", "--path", "/missing"], ["lost: it answers 404", "--path", "--expect-status 404"]),
    ] {
        tried.tries(words).code(1).says(&says);
        assert!(!tried.home.has_run());
    }
}

#[test]
fn unequal_arms_are_measured_without_any_ratio() {
    let tried = Try::new("[[rule]]\nsystem = \"two\"\nanswer = { body = \"two\" }\n");
    let ended = tried.tries(&["./one {port}", "./two {port}", "--unequal"]).code(0);
    assert!(ended.stdout.contains("nothing is compared: the systems answer differently"), "{ended:#?}");
    assert!(!ended.stdout.contains("of base") && !ended.stdout.contains("noise:"), "{ended:#?}");
    let report = |format: &str| tried.home.run(["report", "last", "--format", format]).code(0);
    for format in ["markdown", "html", "csv"] {
        let report = report(format).stdout;
        assert!(!report.contains("faster than") && !report.contains("slower than"), "{format}: {report}");
    }
    let json = report("json").json();
    let found = &json["experiments"][0]["figures"][0];
    let shares: Vec<_> =
        found["estimates"].as_array().expect("rows").iter().map(|row| &row["of_reference"]).collect();
    assert_eq!(shares, [&Value::Null; 2], "{json}");
    assert_eq!((&found["comparisons"], &found["noise_floor"]), (&json!([]), &Value::Null));
}

#[test]
fn a_value_with_which_the_command_fails_does_not_end_the_run() {
    let said = "FATAL ERROR: no room";
    let tried = Try::new(&format!(
        "[[rule]]\npoint = {{ m = 32 }}\nfail = {{ stage = \"start\", reason = \"it ended\", output = \"{said}\\n\" }}\n"
    ));
    // The base, or another point.
    for values in ["m=32,64,256", "m=256,32"] {
        let ended = tried.tries(&["./room {m} {port}", "-k", values]).code(0);
        let ended = ended.says(&["room m=32 fails, and the run goes on", said]);
        let stdout = squeezed(&ended.stdout);
        assert!(stdout.contains("m=32 fails in every trial"), "{ended:#?}");
        assert!(stdout.contains(&format!("it said: {said}")), "{ended:#?}");
        let seen = tried.home.observations();
        let measured = seen.iter().filter(|seen| matches!(seen.outcome, Outcome::Measured(_))).count();
        assert!(measured > 0 && measured < seen.len(), "{ended:#?}");
    }
    // Nothing is left to measure.
    let end = format!("the end of its output:\n{said}");
    tried.tries(&["./room {m} {port}", "-k", "m=32"]).code(1).says(&["room", &end]);
    let tried = Try::new(&format!(
        "[[rule]]\nsystem = \"other\"\nfail = {{ stage = \"start\", reason = \"it ended\", output = \"{said}\" }}\n"
    ));
    tried.tries(&["./room {port}", "./other {port}"]).code(1).says(&[said]);
}

#[test]
fn arms_are_compared_by_the_highest_rate_under_an_objective() {
    let tried = Try::new("");
    tried.tries(&[SERVER, "--slo", "p50<1s,errors<20%", "--figure", "max-rate,cpu"]).code(0);
    let report = tried.home.run(["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["objective"]), (&"max_rate".into(), &"p50<1s,errors<20%".into()));
    assert!(e["figures"][0]["estimates"][0]["figure"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
}

#[test]
fn runs_of_commands_are_saved_in_the_users_folder() {
    let tried = Try::new("");
    let home = &tried.home;
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = [1]\n");
    let ended = tried.tries(&[SERVER]).code(0);
    let said = squeezed(&ended.stdout);
    assert!(said.contains("run 1 is saved in state/narrows/narrows.db"), "{ended:#?}");
    assert!(said.contains("`narrows report 1` prints"), "{ended:#?}");
    assert!(home.path("state/narrows/narrows.html").exists() && !home.path("narrows.db").exists());
    // The newest run is found, whichever of the two stores has it.
    let shows = |what: &str| {
        let list = home.run(["report"]).code(0);
        assert!(list.stdout.contains(what), "{list:#?}");
        home.run(["report", "last"]).code(0);
    };
    shows("narrows try");
    home.run(["run", "e", "--rounds", "1", "--fake", "truth.toml"]).code(0);
    assert!(home.path("narrows.db").exists());
    shows("narrows run");
    tried.tries(&[SERVER]).code(0);
    shows("narrows try");
    // Nothing ran beside the base, so both runs are found and nothing is compared.
    home.run(["compare", "previous", "last"])
        .code(1)
        .says(&["previous and last measured one server each, and none beside it"]);
    tried.tries(&[SERVER, "--store", "my.db"]).code(0);
    assert!(home.path("my.db").exists() && home.path("my.html").exists());

    // Several at once share the store.
    let both: Vec<_> = (0..2).map(|_| home.spawn(&tried.words(&[SERVER]))).collect();
    both.into_iter().for_each(|run| _ = run.end().code(0));
    let store = lab::store::Store::read(&home.path("state/narrows/narrows.db")).expect("the store");
    let runs = store.runs().expect("its runs");
    assert_eq!(runs.iter().flatten().filter(|run| run.finished).count(), 4, "{runs:#?}");

    // Where there is no place for it, the run is saved here.
    let mut nowhere = home.narrows(tried.words(&[SERVER]));
    let ended = run(nowhere.env("XDG_STATE_HOME", "/proc/nowhere")).code(0);
    let ended = ended.says(&["/proc/nowhere/narrows cannot be written", "--store FILE saves it elsewhere"]);
    assert!(ended.stdout.contains("is saved in narrows.db"), "{ended:#?}");
}

#[test]
fn a_run_goes_on_only_with_the_same_file() {
    let tried = Try::new("");
    let home = &tried.home;
    home.write("list", "GET /a\n\nGET /b?{{user}}\n");
    home.write("users", "user\nann\nbob\n");
    tried.tries(&[SERVER, "--requests", "list", "--data", "users", "--rounds", "20"]).code(0);
    all_but(home, 23);
    home.write("users", "user\ncid\n");
    tried.resume("2").code(1).says(&["list, its data or a body has changed"]);
    home.write("users", "user\nann\nbob\n");
    tried.resume("2").code(0);
    // Twenty rounds, five of them with the base's twin.
    assert_eq!(home.observations().len(), 25);
}

#[test]
fn knobs_of_tls_span_points_of_one_command() {
    let tried = Try::new("");
    let told = "./server {port} {cert} {key} {tls}";
    tried.tries(&[told, "-k", "tls=off,1.3", "-k", "certificate=p256,rsa2048", "--close"]).code(0);
    let points: std::collections::BTreeSet<String> = tried
        .home
        .observations()
        .iter()
        .map(|seen| &seen.trial.scenario.point)
        .map(|point| match point["tls"].to_string() {
            tls if tls == "off" => tls,
            _ => format!("1.3 {}", point["certificate"]),
        })
        .collect();
    assert_eq!(points, ["off", "1.3 p256", "1.3 rsa2048"].map(str::to_owned).into());
    let secured = "./server {port} {cert} {key}";
    // Without a run, each point is a line.
    let both = [secured, "-k", "sessions=never,always", "--close", "--dry-run"];
    assert_eq!(tried.tries(&both).code(0).stdout.lines().count(), 2);
    tried.tries(&[secured, "-k", "tls=1.2,1.3", "--tls-sessions", "always", "--close"]).code(0);
    for seen in tried.home.observations() {
        assert_eq!(seen.trial.scenario.point["sessions"].to_string(), "always");
    }
}
