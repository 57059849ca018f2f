//! No harm by accident: what a foreign manifest runs is shown before, and text cannot control the terminal.

use std::fs;
use std::process::Command;

use crate::support::home::Home;
use crate::support::{narrows, run};

/// Runs `narrows systems` in a home, with a state folder of the test.
fn systems(home: &Home) -> Command {
    let mut command = narrows(["systems"]);
    command.env("NARROWS_HOME", home.path("")).env("XDG_STATE_HOME", home.path("state-of-a-new-user"));
    command
}

#[test]
fn the_commands_of_a_foreign_manifest_are_shown_once_before_they_run() {
    let home = Home::new();
    let needs = "[[needs]]\nname = \"x\"\nprobe = [\"echo\", \"a b\"]\nget = \"none\"\n[build]\ncommand = [\"sh\", \"make\\u001b[2K.sh\"]\n";
    home.shell_server("theirs", "exit 3", needs);
    let shown =
        ["theirs did not come with narrows", "probe: echo 'a b'", "start: sh start.sh '{narrows}' '{port}'"];
    let first = run(&mut systems(&home)).code(0).says(&shown);
    assert!(!first.stderr.contains('\u{1b}'), "a command cannot hide itself: {first:#?}");
    let again = run(&mut systems(&home)).code(0);
    assert!(!again.stderr.contains("did not come"), "{again:#?}");
    // A changed command is another one.
    let manifest = home.path("systems/theirs/system.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(&manifest, text.replace("a b", "a c")).expect("another manifest");
    run(&mut systems(&home)).code(0).says(&["probe: echo 'a c'"]);
}

/// What files say is shown without what would control a terminal or the direction of text.
#[test]
fn no_text_of_a_file_controls_the_terminal() {
    let home = Home::new();
    let evil = "a\\u001b[31m\\u202eb";
    let manifest = format!(
        "name = \"x\"\nrole = \"server\"\nworkloads = [\"requests\"]\nlanguage = \"{evil}\"\nabout = \"{evil}\"\n\
         [[needs]]\nname = \"{evil}\"\nprobe = [\"false\"]\nget = \"{evil}\"\n[start]\ncommand = [\"x\", \"{{port}}\"]\n"
    );
    home.write("systems/x/system.toml", &manifest);
    home.write("experiments/e.toml", &format!("\"{evil}\" = 1\n"));
    home.write("requests.json", &format!("{{\"method\": \"GET\", \"url\": \"/\", \"{evil}\": 1}}\n"));
    for (words, says) in [
        (&["systems"][..], "needs a"),
        (&["systems", "--check", "x"], "x"),
        (&["run", "e"], "unknown field"),
        (&["load", "http://127.0.0.1:1", "-n", "1", "--requests", "requests.json"], "unknown field"),
    ] {
        let ended = home.run(words);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(says), "{words:?}: {ended:#?}");
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{words:?}: {ended:#?}");
    }
}
