//! `narrows tune`: a command's knobs, searched for real, and a search that was interrupted.

use lab::observation::{Observation, Outcome};
use systems::Value;

use crate::support::home::Home;
use crate::support::{has, run, until};

/// A server of Node.js that answers after `wait` milliseconds. With the word `broken` it does not start.
const SERVER: &str = "const [wait, word, port] = process.argv.slice(2);
if (word === 'broken') { console.error('a word that it does not know'); process.exit(3); }
const answer = (response) => response.end(word === 'odd' ? 'no' : 'ok');
require('http').createServer((request, response) => setTimeout(answer, Number(wait), response))
    .listen(Number(port), '127.0.0.1');
";

/// The longer wait is certainly slower, whatever V8 compiles meanwhile, and of the words only the first is right.
const TUNE: [&str; 13] = [
    "tune",
    "node server.js {wait} {word} {port}",
    "-k",
    "wait=100,20",
    "-k",
    "word=plain,broken,odd",
    "-d",
    "300ms",
    "--warmup",
    "100ms",
    "--seed",
    "1",
    "--budget=60s",
];

fn home() -> Home {
    let home = Home::new();
    home.write("server.js", SERVER);
    home
}

fn failed_words(observations: &[Observation]) -> Vec<String> {
    let failed = observations.iter().filter(|seen| matches!(seen.outcome, Outcome::Failed(_)));
    let mut words: Vec<String> =
        failed.filter_map(|seen| seen.trial.scenario.point.get("word").map(Value::to_string)).collect();
    words.sort();
    words.dedup();
    words
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_better_setting_of_a_command_is_found_although_others_fail() {
    if !has("node") {
        return;
    }
    let home = home();
    let ended = home.run(TUNE).code(0);
    assert!(ended.stdout.contains("set wait=20: "), "{ended:#?}");
    let never = |word: &str| ended.stdout.contains(&format!("\n  word={word} never worked: all 2 settings"));
    assert!(never("broken") && never("odd"), "{ended:#?}");
    // A setting that does not start or answers differently costs its own trials only.
    let observations = home.observations();
    assert_eq!(failed_words(&observations), ["broken", "odd"]);
    let base = observations.iter().filter(|seen| {
        let point = &seen.trial.scenario.point;
        point.get("wait") == Some(&Value::Integer(100))
            && point.get("word") == Some(&Value::Text("plain".to_owned()))
    });
    assert!(base.count() > 6);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_interrupted_search_goes_on_where_it_began() {
    if !has("node") {
        return;
    }
    let home = home();
    let mut search = home.spawn(&TUNE);
    assert!(until(|| home.observations().len() > 3 || !search.running()) && search.running());
    search.signal(libc::SIGINT);
    search.end().code(130).says(&["interrupted", "narrows run --resume 1"]);
    home.assert_nothing_left();
    let before = home.observations();
    // Elsewhere its program is not found, and no trial is spent on that.
    let elsewhere = tempfile::TempDir::new().expect("a folder");
    let store = home.store_path();
    let words = ["run", "--resume", "1", "--store", store.to_str().expect("a path")];
    let lost = run(home.narrows(words).current_dir(elsewhere.path())).code(1);
    lost.says(&["server.js", "use the folder in which it began"]);
    assert_eq!(home.observations(), before);
    let ended = home.run(["run", "--resume", "last"]).code(0);
    assert!(ended.stdout.contains("set wait=20: "), "{ended:#?}");
    assert_eq!(home.observations()[..before.len()], before);
    assert!(home.observations().len() > before.len());
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_base_that_cannot_be_measured_is_named_before_the_search() {
    if !has("node") {
        return;
    }
    let home = home();
    let search = |words: &[&str], said: &[&str]| {
        home.run(["tune"].iter().chain(words)).code(1).says(said);
        assert!(home.observations().is_empty());
    };
    let broken = ["node server.js 0 {word} {port}", "-k", "word=broken,plain"];
    search(
        &broken,
        &["server.js word=broken: its program exited with code 3", "a word that it does not know"],
    );
    let missing = ["./nosuch {w} {port}", "-k", "w=1,2"];
    search(&missing, &["nosuch w=1: cannot start `./nosuch`"]);
}
