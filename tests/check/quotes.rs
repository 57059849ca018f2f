//! `report --readme` and `--badge`: claims of made-up runs (`support/fake.rs`) in the files of a project.

use std::fs;

use serde_json::Value;

use crate::support::Ended;
use crate::support::fake::{Lab, TRUTH};

const README: &str = "# A project\n\n<!-- narrows:begin e -->\n<!-- narrows:end e -->\n\nThe rest.\n";

/// A lab with a run of six rounds and a README with a place for its claim.
fn measured() -> Lab {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    lab.home.write("README.md", README);
    lab
}

fn quote(lab: &Lab, words: &[&str]) -> Ended {
    lab.narrows(&[&["report"], words, &["--readme", "README.md"]].concat())
}

/// Whether the claim in the README is still true, by exit code and words.
fn stands(lab: &Lab, code: i32, said: &str) {
    let ended = quote(lab, &["--check"]).code(code);
    assert!(ended.stdout.contains(said), "{said:?}: {ended:#?}");
}

fn readme(lab: &Lab) -> String {
    fs::read_to_string(lab.home.path("README.md")).expect("the README")
}

/// Another run of the same question, with noise of its own and these changes.
fn again(lab: &Lab, seed: u32, from: &str, to: &str, words: &[&str]) {
    let truth = TRUTH.replace("seed = 3", &format!("seed = {seed}")).replace(from, to);
    lab.home.write("truth.toml", &truth);
    lab.run(words).code(0);
}

#[test]
fn a_claim_is_written_between_its_markers_and_the_same_run_gives_the_same_bytes() {
    let lab = measured();
    quote(&lab, &[]).code(0).says(&["run 1 is quoted in README.md: e"]);
    let written = readme(&lab);
    let sentence = lab.report("markdown").lines().find_map(|line| line.strip_prefix("- ").map(str::to_owned));
    let block = written.replace('\n', " ");
    assert!(block.contains(&sentence.expect("a headline")), "{written}");
    for part in [
        "| system | requests a second | times as fast as alpha buffer=1460 mode=",
        "| alpha buffer=1460 mode=",
        "| alpha buffer=8K mode=",
        "Versions: alpha 1.0.",
        "on Fake 1, 2 cores, 6.1:",
        "```sh narrows run e --fake truth.toml --seed 1 --rounds 6 ```",
    ] {
        assert!(block.contains(part), "{part:?}: {written}");
    }
    let (begin, end) = README.split_once("<!-- narrows:end").expect("a marker");
    assert!(written.starts_with(begin) && written.ends_with(&format!("<!-- narrows:end{end}")), "{written}");
    assert!(written.lines().all(|line| line.chars().count() <= 100 || line.starts_with("<!--")), "{written}");
    quote(&lab, &["1"]).code(0);
    assert_eq!(readme(&lab), written);
    stands(&lab, 0, "README.md: e: up to date");
}

#[test]
fn a_file_without_markers_is_left_as_it_is_and_the_error_says_which() {
    let lab = measured();
    lab.home.write("README.md", "# A project\n");
    let refused = quote(&lab, &["last"]).code(1);
    let lines = "put these two lines where it is to be\n<!-- narrows:begin e -->\n<!-- narrows:end e -->";
    assert!(refused.stderr.contains(lines), "{refused:#?}");
    assert_eq!(readme(&lab), "# A project\n");
    quote(&lab, &["--check"]).code(1).says(&["README.md has no block"]);
    quote(&lab, &["--block", "b c"]).code(2);
    quote(&lab, &["1", "--check"]).code(2);
    quote(&lab, &["--format", "json"]).code(2);
    lab.narrows(&["report", "--readme", "none.md"]).code(1).says(&["cannot read none.md"]);
}

#[test]
fn a_block_may_have_another_name_than_the_experiment() {
    let lab = measured();
    lab.home.write("README.md", &README.replace(" e -->", " fast.1 -->"));
    quote(&lab, &["--block", "fast.1"]).code(0).says(&["quoted in README.md: fast.1"]);
    again(&lab, 4, "", "", &["--rounds", "6"]);
    stands(&lab, 0, "`narrows report 2 --readme README.md --block fast.1` renews it");
}

#[test]
fn a_damaged_block_is_an_error_with_its_line() {
    let lab = measured();
    quote(&lab, &[]).code(0);
    let good = readme(&lab);
    let claim = 1 + good.lines().position(|line| line.starts_with("<!-- narrows:claim ")).expect("a claim");
    for (from, to, line, said) in [
        ("\"schema\":1", "\"schema\":7", claim, "has schema 7"),
        ("\"schema\":1", "\"schema\":", claim, "is damaged"),
        ("<!-- narrows:claim ", "<!-- ", 3, "is missing"),
        ("<!-- narrows:end e -->", "", 3, "put `<!-- narrows:end e -->` below it"),
    ] {
        lab.home.write("README.md", &good.replace(from, to));
        let refused = quote(&lab, &["--check"]).code(1);
        assert!(refused.stderr.contains(&format!("README.md: line {line}: ")), "{refused:#?}");
        assert!(refused.stderr.contains(said), "{refused:#?}");
    }
    // What only the claim lacks is written again.
    lab.home.write("README.md", &good.replace("\"schema\":1", "\"schema\":"));
    quote(&lab, &[]).code(0);
    assert_eq!(readme(&lab), good);
}

#[test]
fn a_later_run_that_says_the_same_makes_a_block_stale_and_no_error() {
    let lab = measured();
    quote(&lab, &[]).code(0);
    again(&lab, 4, "", "", &["--rounds", "7"]);
    stands(&lab, 0, "README.md: e: still true, but not of the last run: run 2 of ");
    quote(&lab, &["2"]).code(0);
    stands(&lab, 0, "up to date");
}

#[test]
fn a_claim_that_a_later_run_contradicts_is_no_longer_true() {
    let lab = measured();
    quote(&lab, &[]).code(0);
    let written = readme(&lab);
    again(&lab, 5, "better = 1.5", "better = 1.2", &["--rounds", "6"]);
    stands(&lab, 3, "README.md: e: no longer true: run 2 of ");
    again(&lab, 6, "better = 1.5", "better = 0.7", &["--rounds", "6"]);
    stands(&lab, 3, "no longer true: run 3 of ");
    again(&lab, 7, "spread = 0.01", "spread = 0.6", &["--rounds", "3"]);
    stands(&lab, 4, "and that run is undecided");
    again(&lab, 8, "", "", &["--rounds", "2"]);
    stands(&lab, 3, "cannot be judged: run 5 of ");
    assert_eq!(readme(&lab), written, "a check changes nothing");
}

#[test]
fn runs_of_other_questions_and_machines_say_nothing_of_a_claim() {
    let lab = measured();
    quote(&lab, &[]).code(0);
    lab.run(&["--rounds", "6", "--set", "connections=7"]).code(0);
    again(&lab, 4, "Fake 1", "Fake 2", &["--rounds", "6"]);
    stands(&lab, 0, "up to date");
}

#[test]
fn what_is_not_decided_is_not_quoted() {
    let lab = Lab::new();
    lab.run(&["--rounds", "2"]).code(0);
    lab.home.write("README.md", README);
    quote(&lab, &[]).code(1).says(&["run 1: nothing is decided that could be quoted"]);
    assert_eq!(readme(&lab), README);
}

#[test]
fn a_badge_has_the_ratio_with_its_interval() {
    let lab = measured();
    lab.narrows(&["report", "--badge", "badge.json"]).code(0);
    let badge: Value =
        serde_json::from_str(&fs::read_to_string(lab.home.path("badge.json")).expect("a badge"))
            .expect("JSON");
    assert_eq!((&badge["schemaVersion"], &badge["color"]), (&Value::from(1), &Value::from("brightgreen")));
    assert_eq!(badge["label"], "buffer 8K beside 1460");
    let message = badge["message"].as_str().expect("a text");
    assert!(message.starts_with("1.") && message.contains("x [1.") && message.ends_with(']'), "{message}");
}
