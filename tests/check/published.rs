//! `narrows published`: the list of tables, each table in every format, and tables that a user provides.

use crate::support::home::Home;
use crate::support::{Ended, checkout, narrows, run, squeezed};

fn published(words: &[&str]) -> Ended {
    run(&mut narrows([&["published"], words].concat()))
}

const TABLES: [(&str, u64); 7] = [
    ("cowboy-sizes", 16),
    ("cowboy-modes", 24),
    ("cowboy-buffers", 16),
    ("erlang-packet", 28),
    ("iodash", 4),
    ("pools-2019", 335),
    ("pools-original", 203),
];

#[test]
fn the_list_names_every_table_with_its_source_and_rows() {
    let json = published(&["--format", "json"]).code(0).json();
    let tables = json["tables"].as_array().unwrap();
    let listed: Vec<(&str, u64)> =
        tables.iter().map(|t| (t["name"].as_str().unwrap(), t["rows"].as_u64().unwrap())).collect();
    assert_eq!(listed, TABLES);
    let text = published(&[]).code(0).stdout;
    for (name, rows) in TABLES {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(rows.to_string().as_str()), "{line}");
    }
}

#[test]
fn each_table_has_its_warnings_with_remedies() {
    for (name, codes) in [
        ("cowboy-sizes", &["mean_without_spread", "contradiction", "too_few_trials"][..]),
        ("cowboy-modes", &["mean_without_spread", "within_noise", "too_few_trials"]),
        ("cowboy-buffers", &["mean_without_spread", "too_few_trials"]),
        (
            "erlang-packet",
            &["generator_bound", "contradiction", "malformed_cell", "too_short", "too_few_trials"],
        ),
        ("iodash", &["errors", "censored_latency", "hidden_queueing", "unsteady_window", "too_few_trials"]),
        (
            "pools-2019",
            &[
                "fail_fast",
                "errors_on_schedule",
                "errors",
                "too_short",
                "above_ceiling",
                "hidden_queueing",
                "too_few_trials",
            ],
        ),
    ] {
        let json = published(&[name, "--format", "json"]).code(0).json();
        let warnings = json["table"]["warnings"].as_array().unwrap();
        let found: Vec<&str> = warnings.iter().map(|w| w["code"].as_str().unwrap()).collect();
        assert_eq!(found, codes, "{name}");
        for warning in warnings {
            let words = |field: &str| warning[field].as_str().unwrap().to_owned();
            assert!(!words("message").is_empty() && !words("remedy").is_empty(), "{warning}");
        }
    }
}

#[test]
fn a_long_table_is_shortened_unless_all_is_requested() {
    let rows = |words: &[&str]| {
        let text = published(words).code(0).stdout;
        let is_row_of = |client: &str, line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(client) && words.next().is_some_and(|word| word.parse::<u32>().is_ok())
        };
        text.lines().filter(|line| is_row_of("Mojito", line) || is_row_of("Mint", line)).count()
    };
    assert_eq!(rows(&["pools-2019"]), 3 + 3);
    assert_eq!(rows(&["pools-2019", "--all"]), 150 + 5);
    let csv = published(&["pools-2019", "--format", "csv"]).code(0).stdout;
    let table = csv.split("\r\n\r\n").next().unwrap();
    assert_eq!(table.lines().count(), 1 + 335);
    // The figures are those of the document, digit for digit.
    let committed = std::fs::read_to_string(checkout().join("published/pools-2019.csv")).unwrap();
    for (shown, line) in table.lines().skip(1).zip(committed.lines().skip(1)) {
        assert_eq!(shown.trim_end(), format!("pools-2019,{line}"));
    }
}

#[test]
fn markdown_has_the_table_and_its_findings() {
    let text = published(&["iodash", "--format", "markdown"]).code(0).stdout;
    for part in [
        "## iodash: ",
        "| server | requests |",
        "\nFound:\n\n- order by",
        "\nWarnings:\n\n- operations failed",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn output_to_no_terminal_is_plain() {
    for (name, _) in TABLES {
        let ended = published(&[name]).code(0);
        assert!(!ended.stdout.contains('\x1b') && ended.stderr.is_empty(), "{ended:#?}");
    }
}

#[test]
fn an_unknown_table_is_an_error_that_suggests_the_nearest() {
    published(&["pools-2018"]).code(1).says(&["no table `pools-2018`", "did you mean `pools-2019`?"]);
    published(&["--format", "csv"]).code(2).says(&["name a table"]);
}

#[test]
fn a_users_table_is_audited_and_its_mistakes_have_a_position() {
    let folder = tempfile::TempDir::new().unwrap();
    let original = |end: &str| checkout().join("published").join(format!("pools-original.{end}"));
    let mine = |end: &str| folder.path().join(format!("mine.{end}"));
    let head = std::fs::read_to_string(original("toml")).unwrap();
    std::fs::write(mine("toml"), head.replace("pools-original", "mine")).unwrap();
    let rows = std::fs::read_to_string(original("csv")).unwrap();
    std::fs::write(mine("csv"), &rows).unwrap();
    let path = mine("toml").to_str().unwrap().to_owned();
    let json = published(&[&path, "--format", "json"]).code(0).json();
    assert_eq!(json["table"]["table"]["rows"].as_array().unwrap().len(), 203);

    let line = rows.lines().position(|line| line.starts_with("Buoy")).unwrap() + 1;
    std::fs::write(mine("csv"), rows.replacen("Buoy,1,512,", "Buoy,1,half,", 1)).unwrap();
    let ended = published(&[&path]).code(1).says(&[&format!("mine.csv:{line}:8"), "`pool_size` is \"half\""]);
    assert_eq!(ended.stdout, "");
    std::fs::write(mine("csv"), b"system,\xff\n").unwrap();
    published(&[&path]).code(1).says(&["mine.csv:1:8", "not UTF-8"]);
    std::fs::remove_file(mine("csv")).unwrap();
    published(&[&path]).code(1).says(&["mine.csv", "cannot read it"]);
}

#[test]
fn every_format_of_a_report_shows_the_published_figures() {
    let home = Home::new();
    home.twin("libuv");
    home.twin("node");
    // Long enough for an answer from each, even on a busy machine.
    home.timed_experiment(
        "requests",
        "[\"libuv\", \"node\"]",
        1,
        1.0,
        "[[grid]]\nconnections = 2\nkeep_alive = false\n",
    );
    let text = std::fs::read_to_string(home.path("experiments/e.toml")).unwrap();
    home.write("experiments/e.toml", &text.replacen("[quick]", "published = \"iodash\"\n[quick]", 1));
    let sentences = [
        "libuv had no figure that counts then; today it has one",
        "not run today: IODash, Boost",
        "10000 then, 2 today",
    ];
    // Use made-up figures, because one short trial on a busy machine may have none.
    home.write("truth.toml", "seed = 1\nfigure = 1000.0\nnoise = { spread = 0.01, tails = 3 }\n");
    home.run(["run", "e", "--rounds", "file", "--fake", "truth.toml"]).code(0);
    let printed = squeezed(&home.run(["report", "last", "--details"]).code(0).stdout);
    let report = |format: &str| home.run(["report", "last", "--format", format]).code(0);
    let markdown = report("markdown").stdout;
    for sentence in sentences {
        assert!(printed.contains(sentence) && markdown.contains(sentence), "{sentence:?}: {printed}");
    }
    assert!(markdown.contains("| system | published | today |\n"), "{markdown}");
    assert!(report("csv").stdout.contains("experiment,system,published,today\r\ne,Node.js,1,1\r\n"));
    let json = report("json").json();
    let beside = &json["experiments"][0]["figures"][0]["beside"][0];
    assert_eq!(
        (&beside["published"], &beside["shapes"][0]["agrees"]),
        (&"iodash".into(), &serde_json::Value::Null)
    );
}
