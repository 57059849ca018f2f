//! Writes the simulated tables of docs/statistics.md, or compares them with the document.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use stats::{LOOKS, USUAL_LOOKS};

use super::{
    Rounds, Shares, advice, between, estimators, few, gate, percentile, power, rivals, rows, sample, search,
    select, simulate, ways,
};
use search::Shape;

/// The lines before and after the tables.
const MARKS: [&str; 2] = ["<!-- simulated: begin -->\n", "<!-- simulated: end -->\n"];

/// The lines before and after the table of gates.
const GATE_MARKS: [&str; 2] = ["<!-- gated: begin -->\n", "<!-- gated: end -->\n"];

/// The lines before and after the table of runs on different occasions.
const BETWEEN_MARKS: [&str; 2] = ["<!-- between: begin -->\n", "<!-- between: end -->\n"];

/// The lines before and after the table of rows.
const ROW_MARKS: [&str; 2] = ["<!-- rows: begin -->\n", "<!-- rows: end -->\n"];

/// The lines before and after the table of what is found.
const POWER_MARKS: [&str; 2] = ["<!-- power: begin -->\n", "<!-- power: end -->\n"];

/// The lines before and after the tables of what sentences choose.
const SELECT_MARKS: [&str; 2] = ["<!-- chosen: begin -->\n", "<!-- chosen: end -->\n"];

/// The lines before and after the table of percentiles.
const PERCENTILE_MARKS: [&str; 2] = ["<!-- percentiles: begin -->\n", "<!-- percentiles: end -->\n"];

/// The lines before and after the table of the searches.
const SEARCH_MARKS: [&str; 2] = ["<!-- searched: begin -->\n", "<!-- searched: end -->\n"];

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
    out.push_str(&few_rounds());
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

/// How runs with a condition end.
fn gates() -> String {
    let mut out = String::from(
        "| runs | sd of a trial | beside the base | each in truth | a condition fails | all are excluded | inconclusive | rounds, mean |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for ((runs, noise, scenarios, truth), ended) in gate::CASES.iter().zip(gate::ended()) {
        let [fails, excluded, open] = [ended.fails, ended.excluded, ended.inconclusive].map(percent);
        let _ = writeln!(
            out,
            "| {runs} | {:.0} % | {scenarios} | {truth:.2}x | {fails} | {excluded} | {open} | {:.1} |",
            noise * 100.0,
            ended.rounds
        );
    }
    out
}

/// What comparisons of runs on different occasions find.
fn occasions() -> String {
    let mut out = String::from(
        "| noise of a trial | earlier runs | sd between runs | equal: `--within-run` claims a difference | equal: a difference is claimed | interval holds the truth |",
    );
    for truth in &between::TRUTHS[1..] {
        let _ = write!(out, " {:.0} % faster: found |", (truth - 1.0) * 100.0);
    }
    let _ = writeln!(out, "\n|---|---:|---:|---:|---:|---:|{}", "---:|".repeat(between::TRUTHS.len() - 1));
    for ((noise, _, earlier, spread), found) in between::CASES.iter().zip(between::compared()) {
        let [within_run, claimed, held] = [found.within_run, found.false_claims, found.held].map(percent);
        let powers: Vec<String> = found.found[1..].iter().map(|share| percent(*share)).collect();
        let (spread, powers) = (spread * 100.0, powers.join(" | "));
        let _ = writeln!(
            out,
            "| {noise} | {earlier} | {spread:.0} % | {within_run} | {claimed} | {held} | {powers} |"
        );
    }
    out
}

/// How often the interval of a row's figure holds.
fn figures() -> String {
    let mut out = String::from(
        "| drift | rounds | new in each round: the long run | slow: while the run lasted | slow: over hours |\n\
         |---:|---:|---:|---:|---:|\n",
    );
    for (drift, rounds, held) in rows::held() {
        let [each, run, hours] = [held.each_round, held.of_the_run, held.of_hours].map(percent);
        let _ = writeln!(out, "| {:.0} % | {rounds} | {each} | {run} | {hours} |", drift * 100.0);
    }
    out
}

/// Which differences are found at which noise.
fn powers() -> String {
    let truths = power::TRUTHS.map(|better| match better == 1.0 {
        true => " equal: a difference is claimed |".to_owned(),
        false => format!(" {better}x |"),
    });
    let mut out = format!(
        "| sd of a trial | rounds |{} four of five runs find |\n|---:|---:|{}---:|\n",
        truths.concat(),
        "---:|".repeat(truths.len())
    );
    for power in power::power() {
        let found: Vec<String> = power.found.iter().map(|share| percent(*share)).collect();
        let _ = writeln!(
            out,
            "| {:.0} % | {} | {} | {:.2}x |",
            power.noise * 100.0,
            power.rounds,
            found.join(" | "),
            power.detectable.0
        );
    }
    out
}

/// How often the interval of a sentence holds the truth.
fn selections() -> String {
    let mut out = String::from(
        "| chosen from | rounds | sd of a trial | a sentence says better | the interval of the comparison by itself holds the truth | that of the sentence does |\n\
         |---|---:|---:|---:|---:|---:|\n",
    );
    for one in select::chosen() {
        let [claimed, alone, held] = [one.claimed, one.alone, one.held].map(percent);
        let _ = writeln!(
            out,
            "| {} | {} | {:.0} % | {claimed} | {alone} | {held} |",
            one.choice.described(one.better),
            one.rounds,
            one.noise * 100.0
        );
    }
    out.push_str("\n| `tune`, noise | advises a change | the interval of the gain holds the truth |\n|---|---:|---:|\n");
    for (noise, advised, held) in select::gains() {
        let _ = writeln!(out, "| {noise} | {advised} | {} |", percent(*held));
    }
    out
}

/// How often a p99 is called different, and how often its interval holds.
fn percentiles() -> String {
    let mut out = String::from(
        "| truth | windows | rounds | called different | called no different | the interval holds the long run |\n\
         |---|---:|---:|---:|---:|---:|\n",
    );
    for (case, found) in percentile::CASES.iter().zip(percentile::found()) {
        let [different, same, held] = [found.different, found.no_difference, found.held].map(percent);
        let rounds = match case.rounds {
            Rounds::Fixed(rounds) => rounds.to_string(),
            Rounds::Auto => "`--budget 5m`".to_owned(),
        };
        let _ = writeln!(
            out,
            "| {} | {} s | {rounds} | {different} | {same} | {held} |",
            case.truth, case.window_s
        );
    }
    out
}

/// What few rounds find and how often they are wrong, and what following the advice costs.
fn few_rounds() -> String {
    let mut out = String::from(
        "\n| rounds, examined once | values | one of them is | found |\n|---:|---:|---:|---:|\n",
    );
    for ((rounds, values, better, _), found) in few::REQUIRED.iter().zip(few::found()) {
        let _ = writeln!(out, "| {rounds} | {values} | {better}x | {} |", percent(found.found));
    }
    out.push_str("\n| noise, all values are equal |");
    let sizes = few::SIZES
        .map(|(rounds, values)| format!(" {rounds} rounds, {values} values: a difference is claimed |"));
    let _ = writeln!(out, "{}\n|---|---:|---:|---:|", sizes.concat());
    for ((name, ..), found) in few::EQUAL.iter().zip(few::equal()) {
        let cells: Vec<String> = found.iter().map(|found| percent(found.false_claims)).collect();
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out.push_str("\n| the value that is proposed, after three rounds | speed lost, median | in nine of ten runs at most |\n|---|---:|---:|\n");
    let rules = [
        "the best, or a nearer one that is shown to be as good",
        "the nearest that cannot be told from the best",
    ];
    for (rule, regret) in rules.iter().zip(advice::regrets()) {
        let _ = writeln!(
            out,
            "| {rule} | {} | {} |",
            percent(regret.percentile(50)),
            percent(regret.percentile(90))
        );
    }
    out.push_str("\n| noise | *more rounds may decide it* is said of undecided comparisons | and comes true |\n|---|---:|---:|\n");
    for (spread, [made, come_true]) in few::predicted() {
        let share = percent(f64::from(*come_true) / f64::from(*made));
        let _ = writeln!(out, "| normal, {:.0} % | {made} | {share} |", spread * 100.0);
    }
    out
}

/// What searches find.
fn searches() -> String {
    let mut out = String::from(
        "| settings | surfaces | noise | within 2 % of the best | within 5 % | the winner of the race is | not excluded: up to so much better, median | that holds | advised, and worse than the default | a flat knob is said to contribute | trials, mean | trials, most |\n\
         |---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for searched in search::searched() {
        let [near, close, worse, idle, held] =
            [searched.near, searched.close, searched.worse, searched.idle, searched.held].map(percent);
        let (won, open) = (percent(searched.won), percent(searched.open[searched.open.len() / 2]));
        let _ = writeln!(
            out,
            "| {} | {} {} | {} | {near} | {close} | {won} | {open} | {held} | {worse} | {idle} | {:.0} | {} |",
            searched.sizes.iter().product::<usize>(),
            searched.surfaces,
            searched.shape.name(),
            searched.noise,
            searched.mean_trials,
            searched.most_trials
        );
    }
    let names: Vec<&str> = rivals::shapes().map(Shape::name).collect();
    let _ =
        writeln!(out, "\n| within 5 % of the best of 480, at 3.3 times the noise | {} |", names.join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(names.len()));
    let own = search::searched()
        .iter()
        .filter(|one| one.sizes == search::SIZES && one.noise == search::NOISES[1].0);
    let own: Vec<f64> = own.map(|one| one.close).collect();
    let of_rivals = rivals::found().iter().map(|(name, found)| (*name, found.as_slice()));
    for (name, found) in std::iter::once(("`narrows tune`", own.as_slice())).chain(of_rivals) {
        let cells: Vec<String> = found.iter().map(|share| percent(*share)).collect();
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out.push_str("\n| noise, all settings are equal | surfaces | the default is kept |\n|---|---:|---:|\n");
    for (noise, surfaces, kept) in search::flat() {
        let _ = writeln!(out, "| {noise} | {surfaces} | {} |", percent(*kept));
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
fn the_document_names_the_looks() {
    let (_, text) = document();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (last, others) = LOOKS[..USUAL_LOOKS as usize].split_last().unwrap();
    let others: Vec<String> = others.iter().map(u32::to_string).collect();
    assert!(text.contains(&format!("{} and {last} rounds", others.join(", "))));
    let gates: Vec<String> = LOOKS[USUAL_LOOKS as usize..].iter().map(u32::to_string).collect();
    let (last, others) = gates.split_last().unwrap();
    assert!(text.contains(&format!("{} and {last} rounds", others.join(", "))));
}

/// Replaces what is between the marks by these tables, or compares it with them. The document has those of all runs, so a
/// sample does neither.
fn write_or_compare(marks: [&str; 2], tables: fn() -> String) {
    if sample::is_sample() {
        return;
    }
    let tables = tables();
    // Several tests write the document.
    static WRITING: Mutex<()> = Mutex::new(());
    let _alone = WRITING.lock();
    let (path, text) = document();
    let (head, rest) = text.split_once(marks[0]).unwrap();
    let (_, tail) = rest.split_once(marks[1]).unwrap();
    let written = format!("{head}{}{tables}{}{tail}", marks[0], marks[1]);
    if std::env::var_os("NARROWS_WRITE_TABLES").is_some() {
        std::fs::write(&path, written).unwrap();
    } else {
        assert_eq!(
            text, written,
            "to update it, run NARROWS_WRITE_TABLES=1 cargo test -p lab simulation -- --ignored"
        );
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_tables() {
    write_or_compare(MARKS, tables);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_searches() {
    write_or_compare(SEARCH_MARKS, searches);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_gates() {
    write_or_compare(GATE_MARKS, gates);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_occasions() {
    write_or_compare(BETWEEN_MARKS, occasions);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_rows() {
    write_or_compare(ROW_MARKS, figures);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_what_sentences_choose() {
    write_or_compare(SELECT_MARKS, selections);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_power() {
    write_or_compare(POWER_MARKS, powers);
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_document_shows_the_simulated_percentiles() {
    write_or_compare(PERCENTILE_MARKS, percentiles);
}
