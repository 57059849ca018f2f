//! Writes the simulated tables of docs/statistics.md, or compares them with the document.

use std::fmt::Write;
use std::path::PathBuf;

use stats::{LOOKS, NOMINAL};

use super::{Rounds, Shares, estimators, simulate, ways};

/// The lines before and after the tables.
const MARKS: [&str; 2] = ["<!-- simulated: begin -->\n", "<!-- simulated: end -->\n"];

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn rounds(shares: &Shares) -> String {
    let (mean, most) = (shares.mean_rounds(), shares.most_rounds());
    if shares.rounds.first() == shares.rounds.last() {
        format!("{most}")
    } else {
        format!("{mean:.1} (90 %: {most})")
    }
}

fn tables() -> String {
    let mut out = String::from(
        "| way | equal: a difference is claimed | 5 % faster: found | called slower | interval holds the truth | rounds, equal | rounds, 5 % |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for way in ways() {
        let held = if way.equal.held > 0.0 { percent(way.equal.held) } else { "-".to_owned() };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {held} | {} | {} |",
            way.name,
            percent(way.equal.false_claims),
            percent(way.different.faster),
            percent(way.different.slower),
            rounds(&way.equal),
            rounds(&way.different),
        );
    }
    out.push_str(
        "\n| truth, with `--rounds auto` | faster | slower | no difference | undecided at the end | all intervals at all looks hold | rounds |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for better in [1.0, 1.02, 1.05, 1.1, 1.3, 2.0, 7.0] {
        let shares = simulate(Rounds::Auto, 2, better);
        let open = (1.0 - shares.faster - shares.slower - shares.no_difference).abs();
        let _ = writeln!(
            out,
            "| {better:.2}x | {} | {} | {} | {} | {} | {} |",
            percent(shares.faster),
            percent(shares.slower),
            percent(shares.no_difference),
            percent(open),
            percent(shares.held_always),
            rounds(&shares),
        );
    }
    out.push_str(
        "\n| estimator | 5 rounds: truth inside | finds 5 % | 10 rounds | finds 5 % | 20 rounds | finds 5 % |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, way) in estimators::WAYS {
        let cells = [5, 10, 20].map(|rounds| match estimators::judge(way, rounds) {
            Some((held, found)) => format!("{} | {}", percent(held), percent(found)),
            None => "- | -".to_owned(),
        });
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out
}

/// The path and the text of the document.
fn document() -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/statistics.md");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn the_document_names_the_looks_and_their_level() {
    let (_, text) = document();
    let (last, others) = LOOKS.split_last().unwrap();
    let others: Vec<String> = others.iter().map(u32::to_string).collect();
    assert!(text.contains(&format!("{} and {last} rounds", others.join(", "))));
    assert!(text.contains(&format!("level of each look is {:.2} %", NOMINAL * 100.0)));
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn the_document_shows_the_simulated_tables() {
    let (path, text) = document();
    let (head, rest) = text.split_once(MARKS[0]).unwrap();
    let (_, tail) = rest.split_once(MARKS[1]).unwrap();
    let written = format!("{head}{}{}{}{tail}", MARKS[0], tables(), MARKS[1]);
    if std::env::var_os("NARROWS_WRITE_TABLES").is_some() {
        std::fs::write(&path, written).unwrap();
    } else {
        assert_eq!(
            text, written,
            "to update it, run NARROWS_WRITE_TABLES=1 cargo test -p lab simulation -- --ignored"
        );
    }
}
