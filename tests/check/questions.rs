//! The first sentence of each ready-made experiment answers the question that its file asks.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::support::checkout;
use crate::support::fake::{EXPERIMENT, Lab};
use crate::support::home::Home;

/// Every knob that an experiment varies changes more than the systems do.
const TRUTH: &str = r#"
seed = 5
figure = 10000.0
noise = { spread = 0.01, tails = 3 }
rule = [
    { point = { buffer = 1460 }, better = 0.2 },
    { point = { framing = "4", frame_size = 1500 }, better = 0.5 },
    { point = { active_n = 10 }, better = 0.6 },
    { point = { pool_size = 32 }, better = 0.2 },
    { point = { keep_alive = false }, better = 0.2 },
    { point = { tls = "1.3" }, better = 0.5 },
    { point = { certificate = "rsa2048" }, better = 0.3 },
    { point = { gzip = "on" }, better = 0.4 },
    { point = { answer_size = 1048576 }, better = 0.1 },
    { point = { upstream = "unix" }, better = 3.0 },
    { point = { rate = 12000 }, better = 0.3 },
    { system = "node", better = 0.8 },
    { system = "caddy", better = 0.7 },
    { system = "httpc", better = 0.8 },
    { system = "httpx", better = 0.8 },
    { system = "erlang-socket", better = 0.8 },
    { system = "cowboy2@emu", better = 0.8 },
]
"#;

/// What a claim is about: `systems`, or a knob.
fn about(claim: &Value) -> String {
    let by = if claim["by"].is_null() { &claim["comparison"]["by"] } else { &claim["by"] };
    match by.as_str() {
        Some("system") => "systems".to_owned(),
        _ => by["knob"].as_str().unwrap_or_else(|| panic!("{claim}")).to_owned(),
    }
}

#[test]
fn every_ready_made_experiment_answers_its_question_first() {
    let home = Home::new();
    for folder in ["systems", "experiments"] {
        std::fs::remove_dir(home.path(folder)).expect("an empty folder");
        symlink(checkout().join(folder).canonicalize().unwrap(), home.path(folder)).expect("a link");
    }
    home.write("truth.toml", TRUTH);
    home.run(["run", "--all", "--rounds", "3", "--seed", "1", "--fake", "truth.toml", "--quiet"]).code(0);
    let found = home.run(["report", "last", "--format", "json"]).code(0).json();
    let experiments = found["experiments"].as_array().expect("experiments");
    for e in experiments {
        let asks = e["asks"].as_str().expect("a question");
        for figure in e["figures"].as_array().expect("figures") {
            let first = &figure["headlines"][0];
            println!("{}: {first}", e["name"]);
            assert_eq!(about(&figure["claims"][0]), asks, "{}: {first}", e["name"]);
        }
    }
    let files = std::fs::read_dir(checkout().join("experiments")).unwrap().count();
    let named = experiments.iter().map(|e| e["name"].to_string()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(named.len(), files);
}

#[test]
fn the_largest_other_difference_comes_second() {
    let lab = Lab::new();
    let answers = |asks: &str| {
        lab.home.write("experiments/e.toml", &format!("{asks}\n{EXPERIMENT}"));
        let printed = lab.run(&["--quiet"]).code(0).stdout;
        let lines = printed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    "));
        lines.map(|line| line.trim().chars().take(12).collect::<String>()).collect::<Vec<_>>()
    };
    assert_eq!(answers(""), ["`buffer` is "], "without a question only the largest");
    assert_eq!(answers("asks = \"systems\""), ["alpha leads:", "`buffer` is "]);
    assert_eq!(answers("asks = \"buffer\""), ["`buffer` is ", "alpha leads:"]);
    assert_eq!(answers("asks = \"mode\""), ["`mode` makes", "`buffer` is "]);
}
