//! `narrows tune`: what a search advises, and what it refuses.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::fake::{KNOBS, Lab, all_but, shown};

fn tune<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["tune", "alpha", "--fake", "truth.toml", "--seed", "1", "--budget", "120s"], words].concat()
}

/// The lines of a text without the space at their beginnings.
fn trimmed(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn the_best_setting_is_advised_and_a_finished_run_says_it_again() {
    let lab = Lab::new();
    lab.home.server("alpha", r#"["true", "{port}", "{buffer}", "{mode}"]"#, &format!("{APPLY}{KNOBS}"));
    let ended = lab.narrows(&tune(&[])).code(0);
    assert!(ended.stdout.contains("set buffer=8K: 1.5"), "{}", ended.stdout);
    assert!(ended.stdout.contains("as good as the defaults in requests a second"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("tried 4 of 4 settings") && !ended.stdout.contains("mode="),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("hardly mattered in what was tried (estimated): mode\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("\n    buffer 8192;\n"), "{}", ended.stdout);
    let again = lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
    assert_eq!(again.stdout, ended.stdout);
}

const APPLY: &str = "[apply]\nbuffer = \"buffer {value};\"\n";

/// What a run of a search prints, and then everything that was found.
#[test]
fn what_a_search_prints() {
    let rules = "[[rule]]\nsystem = \"alpha\"\npoint = { mode = \"fancy\" }\nfail = { stage = \"start\", reason = \"it ended\", \
                 output = \"no such mode\" }\n";
    let lab = Lab::with(rules);
    lab.home.server("alpha", r#"["true", "{port}", "{buffer}", "{mode}"]"#, &format!("{APPLY}{KNOBS}"));
    let ended = shown(&lab.narrows(&tune(&[])));
    assert_snapshot!("run", format!("{ended}\n=== narrows report last --details\n{}", lab.report("details")));
    assert_snapshot!("brief", shown(&lab.narrows(&["report", "last"])));
    assert_snapshot!("markdown", lab.report("markdown"));
}

#[test]
fn every_report_of_a_search_gives_the_same_answer() {
    let lab = Lab::new();
    let ended = lab.narrows(&tune(&[])).code(0);
    let answer = trimmed(&ended.stdout)[1].to_owned();
    assert!(answer.starts_with("set buffer=8K: 1.5"), "{answer}");
    let brief = lab.narrows(&["report", "last"]).code(0).stdout;
    assert!(ended.stdout.starts_with(&brief), "{brief}");
    for format in ["details", "markdown", "html", "json", "junit", "github"] {
        let report = lab.report(format);
        assert!(report.contains(&answer), "{answer} in {format}: {report}");
        assert!(!report.contains("nothing to compare"), "{format}: {report}");
    }
    let details = lab.report("details");
    for row in ["buffer=8K mode=fancy", "the defaults", "mode    plain  1.00x  default"] {
        assert!(trimmed(&details).iter().any(|line| line.starts_with(row)), "{row} in {details}");
    }
    let page = lab.report("html");
    for title in
        ["The race led to <code>buffer=8K", "<code>buffer</code> seems to matter", "together, best at"]
    {
        assert!(page.contains(title), "{title} in {page}");
    }
    let junit = lab.report("junit");
    assert!(
        junit.contains("name=\"the best setting of alpha\"") && junit.contains("failures=\"0\""),
        "{junit}"
    );
    let bencher: serde_json::Value = serde_json::from_str(&lab.report("bencher")).expect("JSON");
    let names: Vec<&String> = bencher.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["tune/alpha buffer=1460 mode=plain", "tune/alpha buffer=8K mode=plain"]);
}

#[test]
fn an_unfinished_search_says_how_far_it_is_and_goes_on_to_the_same_answer() {
    let lab = Lab::new();
    let ended = lab.narrows(&tune(&[])).code(0);
    all_but(&lab.home, 3);
    for format in ["details", "markdown", "html", "json", "junit", "github"] {
        let report = lab.report(format);
        assert!(report.contains("not proven yet ("), "{format}: {report}");
        assert!(!report.contains("fresh rounds decided"), "{format}: {report}");
    }
    assert!(lab.report("junit").contains("<skipped"), "{}", lab.report("junit"));
    let resumed = lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
    assert_eq!(trimmed(&resumed.stdout)[..4], trimmed(&ended.stdout)[..4]);
}

#[test]
fn what_depends_on_each_other_is_found_and_each_contribution_is_told() {
    let lab = Lab::with("[[rule]]\npoint = { buffer = 8192, mode = \"fancy\" }\nbetter = 1.4\n");
    let ended = lab.narrows(&tune(&[])).code(0);
    for part in ["set buffer=8K mode=fancy: 2.1", "buffer=8K: 2.1", "mode=fancy: 1.4"] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
}

#[test]
fn without_a_better_setting_the_defaults_are_kept() {
    let ended = Lab::new().narrows(&tune(&["-k", "mode=all"])).code(0);
    let words = trimmed(&ended.stdout).join(" ");
    assert!(words.contains("keep the defaults: no other setting is certainly better; the best"), "{words}");
    assert!(
        words.contains("mode=fancy, is 1.0") && words.contains(": no difference worth having"),
        "{words}"
    );
}

#[test]
fn a_value_that_never_works_is_named_with_the_reason() {
    let lab = Lab::with(
        "[[rule]]\npoint = { mode = \"fancy\" }\nfail = { stage = \"start\", reason = \"it ended\", output = \"\" }\n",
    );
    let ended = lab.narrows(&tune(&[])).code(0);
    let line = "mode=fancy never worked: all 2 settings that were tried with it failed: it ended";
    assert!(trimmed(&ended.stdout).contains(&line), "{}", ended.stdout);
    assert!(ended.stdout.contains("set buffer=8K: "), "{}", ended.stdout);
}

#[test]
fn a_default_that_fails_ends_the_search() {
    let lab = Lab::with("[[rule]]\nfail = { stage = \"start\", reason = \"it ended\", output = \"\" }\n");
    let ended = lab.narrows(&tune(&[])).code(1);
    let why = "nothing can be advised, because the defaults have no figure: they failed at start: it ended";
    assert!(trimmed(&ended.stdout).contains(&why), "{}", ended.stdout);
    assert!(lab.report("junit").contains("<error "), "{}", lab.report("junit"));
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let lab = Lab::new();
    for (words, said) in [
        (
            &["-k", "bufer=1460"][..],
            &["alpha has no knob `bufer`; it has: buffer, mode", "did you mean `buffer`"][..],
        ),
        (&["-k", "buffer=much"], &["`much` is not a size", "a buffer"]),
        (&["-k", "buffer=8K..1K"], &["8192 is above 1024"]),
        (&["-k", "buffer=1..300"], &["values, and at most 256", "a step"]),
        (&["-k", "buffer=1460"], &["no knob with two values"]),
        (&["-k", "mode", "-k", "mode"], &["given twice", "all its values in one option"]),
        (&["-k", "connections=1,2"], &["a workload is not a setting", "--set connections=VALUE"]),
        (&["--workload", "frames"], &["alpha does not do `frames`: it does requests"]),
        (&["--set", "connections=1,2"], &["a search holds this knob fixed", "write one value"]),
        (&["--set", "conections=1"], &["has a knob `conections`", "did you mean `connections`"]),
        (&["--set", "connections"], &["not a knob with its value", "write NAME=VALUE"]),
        (&["-c", "5", "--set", "connections=6"], &["`connections` is set twice"]),
        (&["-k", "mode", "--set", "mode=fancy"], &["searched with --knob and held with --set"]),
        (&["--size", "1M"], &["has a knob `size`"]),
        (&["--frame-size", "10"], &["work only with frames"]),
        (&["--rate", "1k..2k"], &["--rate must not be a ramp"]),
        (&["--rate", "100"], &["the same at every setting", "leave --rate out"]),
        (&["--figure", "rate,p99"], &["come from the same trials", "leave one of them out"]),
        (&["--figure", "cpu,cpu"], &["names a figure twice"]),
        (&["--env", "A=1"], &["--env is for commands", "the manifest of a system says how it is started"]),
        (&["--path", "/a"], &["--path is for commands"]),
        (&["--insecure"], &["TLS is for commands", "--set tls=1.3"]),
        (&["--slo", "p99"], &["\"p99\" is not an objective"]),
        (&["--slo", "p99<20ms", "--rate", "100"], &["leave --rate out", "--figure cpu"]),
        (&["--slo", "p99<20ms", "--figure", "rate"], &["how long the queue is", "leave --figure out"]),
        (&["--slo", "p99<20ms", "--figure", "cpu", "--rate", "100"], &["needs 1000 answers", "use -d 11s"]),
        (&["--figure", "max-rate"], &["needs its objective, such as --slo"]),
        (&["--slo", "p99<20ms", "--figure", "max-rate,rate"], &["leave one of them out"]),
        (&["--memory", "much"], &["`much` is not a size"]),
    ] {
        lab.narrows(&tune(words)).code(2).says(said);
    }
    let short = lab.narrows(&["tune", "alpha", "--fake", "truth.toml", "--budget", "9s"]).code(2);
    short.says(&["too short for 36 trials", "give at least"]);
}

#[test]
fn mistakes_in_commands_are_named_before_anything_starts() {
    let lab = Lab::new();
    let knob = ["-k", "w=1,2"];
    for (words, said) in [
        (
            &["http://127.0.0.1:1/", "-k", "w=1,2"][..],
            &["runs already", "give the command that starts it"][..],
        ),
        (&["./s {port}"], &["needs a knob with two values or more", "--knob w=1,2,4"]),
        (&["./s {port} {w}", "-k", "w=1"], &["needs a knob with two values or more"]),
        (&["./s {port}", "-k", "w=1,2"], &["no command contains {w}", "--env NAME={w}"]),
        (&["./s {prot} {w}", "-k", "w=1,2"], &["nothing gives {prot} a value", "did you mean `port`"]),
        (&["./s {w} && b", "-k", "w=1,2"], &["this needs a shell", "--shell"]),
        (&["./s {w}", "-k", "w=1,2", "-k", "pipeline=1,4"], &["a workload is not a setting"]),
        (&["./s {w}", "-k", "w=1..2000"], &["--knob w has 2000 values, and at most 256 of a knob"]),
        (&["./s {w}", "-k", "w=1,2", "--workload", "upload"], &["a command does requests, or frames"]),
        (&["./s {w}", "-k", "w=1,2", "--frames", "--rate", "9"], &["--rate needs requests"]),
        (&["./s {w}", "-k", "w=1,2", "--insecure"], &["options of TLS need"]),
    ] {
        lab.narrows(&[&["tune", "--fake", "truth.toml"], words].concat()).code(2).says(said);
    }
    // 363 knobs of two values have more pairs of them than a search weighs, and 362 have not. No search begins, for want of time.
    let many = |knobs: usize| {
        let places: String = (0..knobs).map(|at| format!(" {{k{at}}}")).collect();
        let knobs = (0..knobs).flat_map(|at| ["-k".to_owned(), format!("k{at}=1,2")]);
        let words = ["tune".to_owned(), format!("./s{places}")].into_iter().chain(knobs);
        let how = ["--fake", "truth.toml", "--budget", "1s"].map(str::to_owned);
        let words: Vec<String> = words.chain(how).collect();
        lab.narrows(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    many(363).code(2).says(&[
        "the knobs have 262812 pairs of values",
        "at most 262144",
        "search fewer knobs",
    ]);
    many(362).code(2).says(&["--budget is too short"]);
    // What is neither a system nor a command may be meant as either.
    let unknown = lab.narrows(&[&["tune", "alpa", "--fake", "truth.toml"][..], &knob[..]].concat()).code(1);
    unknown.says(&["no system is called `alpa`", "did you mean `alpha`", "a command has a space"]);
}

#[test]
fn a_command_is_searched_from_the_first_values_of_its_knobs() {
    let lab =
        Lab::with("[[rule]]\npoint = { w = 4 }\nbetter = 1.5\n[[rule]]\npoint = { w = 1 }\nbetter = 0.5\n");
    let words = ["tune", "./s {port} {w} {k}", "-k", "w=2,1,4", "-k", "k=sync,gthread", "--shell"];
    let how = ["--fake", "truth.toml", "--seed", "1", "--budget", "120s", "--set", "keep_alive=false"];
    let ended = lab.narrows(&[&words[..], &how[..]].concat()).code(0);
    assert!(ended.stdout.contains("set w=4: 1.5"), "{}", ended.stdout);
    let report = lab.report("details");
    for held in ["connections 10", "keep_alive false", "pipeline 1"] {
        assert!(report.contains(held), "{held} in {report}");
    }
    let again = lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
    assert_eq!(again.stdout, ended.stdout);
    again.says(&["run 1 goes on: narrows tune './s {port} {w} {k}'"]);
}

#[test]
fn ranges_reach_beyond_the_values_of_the_manifest_and_beyond_what_can_be_tried() {
    let lab = Lab::with("[[rule]]\npoint = { buffer = 32768 }\nbetter = 2.0\n");
    let ended = lab.narrows(&tune(&["-k", "buffer=1K..32K*2"])).code(0);
    assert!(ended.stdout.contains("set buffer=32K: 2.0"), "{}", ended.stdout);
    let ended =
        lab.narrows(&["tune", "./s {a} {b}", "-k", "a=1..200", "-k", "b=1..200", "--fake", "truth.toml"]);
    assert!(ended.code(0).stdout.contains("of 40000 settings"));
}

#[test]
fn the_work_is_held_and_only_options_that_are_given_differ_from_its_defaults() {
    let lab = Lab::new();
    lab.home.server_of(
        "both",
        r#"["upload", "requests"]"#,
        r#"["true", "{port}", "{buffer}", "{mode}"]"#,
        KNOBS,
    );
    let how = ["--fake", "truth.toml", "--seed", "1", "-k", "mode"];
    let held = |words: &[&str]| {
        lab.narrows(&[&["tune", "both"], words, &how[..]].concat()).code(0);
        lab.report("details")
    };
    let upload = held(&["--size", "64M", "--set", "concurrency=4", "--set", "buffer=8K"]);
    assert!(upload.contains("size 64M, concurrency 4, buffer 8K"), "{upload}");
    let requests =
        held(&["--workload", "requests", "--close", "--figure", "p99,memory", "--rate", "500", "-d", "3s"]);
    assert!(requests.contains("keep_alive false, rate 500"), "{requests}");
    assert!(!requests.contains("connections 10"), "{requests}");
    // The first figure decides, and the others are measured.
    let report = lab.narrows(&["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["also"]), (&json!("p99_us"), &json!(["memory_bytes"])));
}

#[test]
fn a_figure_below_saturation_is_measured_at_half_of_what_the_base_reaches() {
    let lab = Lab::new();
    lab.narrows(&tune(&["-k", "mode", "--figure", "p50,p99"])).code(0);
    // The base has 10000 requests per second, and its figure is half as good.
    let report = lab.report("details");
    assert!(report.contains("rate 2") && !report.contains("rate 0"), "{report}");
}

#[test]
fn the_advised_setting_keeps_the_limits() {
    let rules = |fast: &str| {
        format!(
            "[[rule]]\npoint = {{ buffer = 1460 }}\nmeasured = {{ system = {{ peak_pss_bytes = 30000000 }} }}\n\
             [[rule]]\npoint = {{ buffer = 8192 }}\nmeasured = {{ {fast} }}\n"
        )
    };
    // The faster buffer needs more memory, or it has errors.
    for (fast, limit) in [
        ("system = { peak_pss_bytes = 90000000 }", ["--memory", "50M"]),
        ("errors = { reset = 50 }", ["--slo", "errors<0.1%"]),
    ] {
        let lab = Lab::with(&rules(fast));
        let free = lab.narrows(&tune(&["--figure", "rate"])).code(0);
        assert!(free.stdout.contains("set buffer=8K"), "{fast}: {}", free.stdout);
        let limited = lab.narrows(&tune(&[&["--figure", "rate"][..], &limit].concat())).code(0);
        assert!(limited.stdout.contains("keep the defaults"), "{fast}: {}", limited.stdout);
    }
}

#[test]
fn an_objective_alone_searches_the_highest_rate_at_which_it_holds() {
    let lab = Lab::new();
    let words = ["tune", "alpha", "--fake", "truth.toml", "--seed", "1", "--budget", "20m"];
    let ended = lab.narrows(&[&words[..], &["--slo", "p99<20ms,errors<0.1%"]].concat()).code(0);
    assert!(ended.stdout.contains("set buffer=8K: 1.5"), "{}", ended.stdout);
    let report = lab.narrows(&["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["objective"]), (&json!("max_rate"), &json!("p99<20ms,errors<0.1%")));
}

#[test]
fn a_client_is_searched_for_its_pools() {
    let lab = Lab::with("[[rule]]\npoint = { pool_size = 64 }\nbetter = 1.5\n");
    lab.home.twin_client("gamma");
    let words = ["tune", "gamma", "--workload", "clients", "-k", "pool_size=8,64", "--set", "delay_ms=2"];
    let ended = lab.narrows(&[&words[..], &["--fake", "truth.toml", "--seed", "1"]].concat()).code(0);
    assert!(ended.stdout.contains("set pool_size=64: 1.5"), "{}", ended.stdout);
    let refused = ["tune", "gamma", "-k", "delay_ms=1,2", "--fake", "truth.toml"];
    lab.narrows(&refused).code(2).says(&["a workload is not a setting", "--set delay_ms=VALUE"]);
}
