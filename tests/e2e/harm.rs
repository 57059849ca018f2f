//! No harm by accident: what a foreign manifest runs is shown before, servers stay on this machine, and load goes
//! nowhere else.

use crate::support::home::Home;
use crate::support::{Served, load, narrows, run};

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
    let mut listed = narrows(["systems"]);
    listed.current_dir(home.path("")).env("NARROWS_HOME", home.path(""));
    listed.env("XDG_STATE_HOME", home.path("state-of-a-new-user"));
    let ended = run(&mut listed);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("127.0.0.1"), "the error says what is allowed: {ended:#?}");
}
