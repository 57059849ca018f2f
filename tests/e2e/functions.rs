//! Where the slower command takes its time: functions, waits, and reasons that are tested. The differences are so large that any
//! machine shows them.

use std::process::Command;

use crate::support::home::Home;
use crate::support::{Ended, has, squeezed};

/// Short trials, so that a test takes seconds. A machine that stands still for a whole window costs a trial its figure, and three
/// rounds must be left.
const SHORT: [&str; 8] = ["--rounds", "5", "-d", "300ms", "--warmup", "50ms", "--seed", "1"];

/// A server with these arguments, in a folder that has it.
fn server(spins: u64, sleeps_us: u64, reads: u64) -> String {
    format!("./functions {{port}} {spins} {sleeps_us} {reads}")
}

/// A knob of the server: how many bytes it reads at once.
const MOST: &str =
    "\n[knobs.most]\ntype = \"size\"\ndefault = 1048576\nmin = 1\nmax = 1048576\nabout = \"of a read\"\n";

/// A folder with the server. None without a C compiler.
fn home() -> Option<Home> {
    has("cc").then(|| {
        let home = Home::new();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/functions.c");
        let mut command = Command::new("cc");
        command.args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"]).arg(home.path("functions")).arg(source);
        assert!(command.status().expect("cc").success());
        home
    })
}

/// Whether the last run has profiles. A machine may refuse to be sampled, and then nothing is said of functions.
fn is_sampled(home: &Home) -> bool {
    let folded = home.run(["report", "last", "--format", "folded"]);
    let refused = folded.stderr.contains("this run has no profiles");
    assert!(refused || folded.stdout.contains(';'), "{folded:#?}");
    !refused
}

#[test]
fn the_function_that_takes_more_is_named() {
    let Some(home) = home() else { return };
    let arms = ["try", &server(0, 0, 4096), &server(300_000, 0, 4096), "-c", "2"];
    let ended = home.run(arms.into_iter().chain(SHORT)).code(0);
    if !is_sampled(&home) {
        return;
    }
    let said = squeezed(&ended.stdout);
    assert!(said.contains("more CPU a request are in `check_token` (functions.c:"), "{ended:#?}");
    let functions = home.run(["report", "last", "--functions"]).code(0).stdout;
    assert!(functions.contains("check_token") && functions.contains("sum"), "{functions}");
    let page = home.run(["report", "last", "--format", "html"]).code(0).stdout;
    assert!(page.contains("class=\"flame") && page.contains("check_token"), "no flame graph");
    for (format, part) in [("folded", "check_token "), ("speedscope", "\"check_token\"")] {
        assert!(home.run(["report", "last", "--format", format]).code(0).stdout.contains(part), "{format}");
    }
    home.run(["report", "last", "--format", "pprof", "-o", "p"]).code(0);
    let binary = std::fs::read(home.path("p")).expect("a file");
    assert!(binary.windows(11).any(|part| part == b"check_token"), "its table of texts has no such name");
    home.run(["report", "last", "--functions", "--format", "json"])
        .code(2)
        .says(&["--functions is for the text format"]);
}

#[test]
fn what_the_slower_one_waits_for_is_named() {
    let Some(home) = home() else { return };
    let arms = ["try", &server(0, 0, 4096), &server(0, 30_000, 4096), "-c", "1"];
    let ended = home.run(arms.into_iter().chain(SHORT)).code(0);
    if !is_sampled(&home) {
        return;
    }
    let found = home.run(["report", "last", "--format", "json"]).code(0).json();
    // A user other than root may sample what runs, and not what waits.
    let Some(waiting) = found["experiments"][0]["waiting"].as_array() else { return };
    assert_eq!(waiting[0]["wait"], "timer", "{waiting:#?}");
    let said = squeezed(&ended.stdout);
    assert!(said.contains("a request for time to pass (it sleeps)"), "{ended:#?}");
}

/// Asserts that shorter reads, which were injected, are not excluded. A few short rounds may leave the interval wide; how often a cause
/// is proven is a test of `lab`.
fn is_not_excluded(ended: &Ended) {
    let said = squeezed(&ended.stdout);
    let told = ["proven: reads of 100 bytes", "goes with it: reads of 100 bytes"];
    assert!(told.iter().any(|told| said.contains(told)), "{ended:#?}");
    assert!(said.contains("This alone makes "), "{ended:#?}");
}

/// Whether the kernel told how many bytes a read of the last run returned.
fn is_counted(home: &Home) -> bool {
    let counted = home.run(["report", "last", "--format", "json"]).code(0).json();
    !counted["experiments"][0]["figures"][0]["estimates"][0]["work"]["bytes_per_read"].is_null()
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_cause_that_is_injected_is_not_excluded() {
    let Some(home) = home() else { return };
    std::fs::write(home.path("body"), vec![b'x'; 256 << 10]).expect("a file");
    let arms = ["try", &server(0, 0, 1 << 20), &server(0, 0, 100), "-c", "1", "--body", "@body"];
    // In windows so long, a machine that stands still for a moment does not hide a difference of more than 10x.
    let long = ["--rounds", "5", "-d", "1s", "--warmup", "50ms", "--seed", "1"];
    home.run(arms.into_iter().chain(long)).code(0);
    if !is_counted(&home) {
        return;
    }
    is_not_excluded(&home.run(["why", "last"]).code(0));
    home.run(["why", "last"]).code(1).says(&["it tested the reasons of another run"]);
    home.run(["why", "1", "--budget", "1s"]).code(2).says(&["--budget is too short"]);
    home.run(["why", "1", "--store", "none.db"]).code(1);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn reasons_of_an_experiment_in_a_file_are_tested() {
    let Some(home) = home() else { return };
    let program = home.path("functions").display().to_string();
    home.server("reads", &format!(r#"["{program}", "{{port}}", "0", "0", "{{most}}"]"#), MOST);
    home.experiment("requests", r#"["reads"]"#, 3, "[[grid]]\nconnections = [1]\nmost = [1048576, 100]\n");
    let file = home.path("experiments/e.toml");
    let request = format!(
        "\n[request]\npath = \"/\"\nmethod = \"POST\"\nbody = {{ bytes = \"{}\" }}\n",
        "x".repeat(64 << 10)
    );
    let whole =
        "base = \"reads\"\n".to_owned() + &std::fs::read_to_string(&file).expect("it was written") + &request;
    std::fs::write(&file, whole).expect("a file");
    home.run(["run", "e", "--rounds", "5"]).code(0);
    if is_counted(&home) {
        let ended = home.run(["why", "last", "--cause", "reads"]).code(0);
        is_not_excluded(&ended);
        let causes = squeezed(&ended.stdout).matches("This alone makes ").count();
        assert_eq!(causes, 1, "{ended:#?}");
    }
}

#[test]
fn what_cannot_be_tested_says_why() {
    let Some(home) = home() else { return };
    home.run(["try", &server(0, 0, 4096), "-c", "1"].into_iter().chain(SHORT)).code(0);
    home.run(["why", "last"]).code(1).says(&["the run decides nothing"]);
}

#[test]
fn reads_of_a_server_that_waits_with_epollet_are_refused_before_the_first_trial() {
    let Some(home) = home() else { return };
    std::fs::write(home.path("body"), vec![b'x'; 256 << 10]).expect("a file");
    let [long, short] = [1 << 20, 100].map(|most| server(0, 0, most) + " edge");
    let arms = ["try", &long, &short, "-c", "1", "--body", "@body"];
    home.run(arms.into_iter().chain(SHORT)).code(0);
    if is_counted(&home) {
        let refused = home.run(["why", "last", "--cause", "reads"]).code(1);
        refused.says(&["cannot be tested here: reads of 100 bytes", "it waits with EPOLLET"]);
    }
}
