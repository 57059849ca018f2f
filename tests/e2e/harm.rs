//! No harm by accident: what a foreign manifest runs is shown before, servers stay on this machine, and load goes nowhere else.

use std::fs;
use std::process::Command;

use crate::support::home::Home;
use crate::support::{Served, load, narrows, run};

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

#[test]
fn a_run_shows_the_commands_of_its_systems_only() {
    let home = Home::new();
    home.shell_server("taken", "exec \"$narrows\" serve --any \"$port\"", "");
    home.shell_server("left", "exit 4", "");
    home.timed_experiment("requests", "[\"taken\"]", 1, 0.1, "[[grid]]\nconnections = [1]\n");
    let mut command = narrows(["run", "e", "--rounds", "1"]);
    command
        .current_dir(home.path(""))
        .env("NARROWS_HOME", home.path(""))
        .env("XDG_STATE_HOME", home.path("state-of-a-new-user"));
    let ended = run(&mut command).says(&["taken did not come with narrows"]);
    assert!(!ended.stderr.contains("left did not"), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn what_came_with_the_program_is_not_shown() {
    let home = Home::new();
    let mut command = narrows(["systems"]);
    command.current_dir(crate::support::checkout()).env("XDG_STATE_HOME", home.path("state-of-a-new-user"));
    let ended = run(&mut command).code(0);
    assert!(!ended.stderr.contains("did not come"), "{ended:#?}");
}

#[test]
fn a_server_listens_on_this_machine_alone_unless_told_otherwise() {
    let server = Served::start(&[]);
    for url in [&server.http, &server.frames] {
        assert!(url.contains("://127.0.0.1:"), "{url}");
    }
}

/// 192.0.2.0/24 belongs to no machine (RFC 5737).
#[test]
#[ignore = "long; `make test-long` runs it"]
fn nothing_leaves_this_machine_unless_allowed() {
    load(&["http://192.0.2.1/", "-n", "1"]).code(1).says(&["--allow-remote"]);
    let ended = run(&mut narrows(["try", "http://192.0.2.1/", "http://127.0.0.1:1/"]));
    assert!(!ended.status.success() && ended.stderr.contains("192.0.2.1"), "{ended:#?}");
    let home = Home::new();
    let manifest = "name = \"far\"\nrole = \"server\"\nworkloads = [\"requests\"]\nlanguage = \"none\"\n\
        about = \"far away\"\nattach = \"http://192.0.2.1:80\"\nget = \"none\"\n";
    home.write("systems/far/system.toml", manifest);
    let ended = run(&mut systems(&home));
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("127.0.0.1"), "the error says what is allowed: {ended:#?}");
}
