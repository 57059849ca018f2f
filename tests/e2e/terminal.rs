//! Output to something other than a terminal is plain; and the soft limit on open files does not limit connections.

use crate::support;
use crate::support::home::{Home, limited};
use crate::support::{Ended, Served, backends, limit, load, narrows, plain, run, skip};

/// More connections than the soft limit of 256 files would allow.
const MANY: &str = "1100";
const FILES: u32 = 256;

fn assert_plain(what: &str, ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        let control = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None, "{what}: {text:?}");
    }
}

fn home() -> Home {
    let home = Home::new();
    home.twin("twin");
    home.shell_server("bad", "printf 'in \\033[31mred\\033[0m\\r\\n'; exit 1", "");
    home.experiment("requests", "[\"twin\", \"bad\"]", 2, "[[grid]]\nconnections = [1, 2]\n");
    home
}

#[test]
fn a_run_and_its_reports_have_no_colours_and_no_progress() {
    let home = home();
    home.write("experiments/broken.toml", "name = broken");
    let ended = home.run(["run", "e", "--rounds", "file"]).code(0);
    assert_plain("run", &ended);
    // There is no line for each trial, either.
    assert!(ended.stderr.lines().count() < 6, "{}", ended.stderr);
    for words in [
        &["report"][..],
        &["report", "last"],
        &["report", "last", "--format", "markdown"],
        &["report", "last", "--format", "json"],
        &["systems"],
        &["systems", "--json"],
        &["run", "broken"],
        &["run", "nonsense"],
        &["run", "--nonsense"],
        &["--help"],
        &["run", "--help"],
    ] {
        assert_plain(&words.join(" "), &home.run(words));
    }
}

#[test]
fn a_closed_pipe_does_not_end_a_run() {
    let home = home();
    let deaf = |words: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        run(home.narrows(words).stderr(writer))
    };
    deaf(&["run", "e", "--rounds", "file"]).code(0);
    assert_eq!(home.observations().len(), home.planned());
    deaf(&["run", "nonsense"]).code(1);
}

#[test]
fn load_has_no_colours_and_no_progress() {
    let server = Served::start(&[]);
    for words in
        [&[&*server.http, "-n", "50"][..], &[&server.http, "-n", "50", "--json"], &["ftp://x"], &["-c"]]
    {
        assert_plain(&words.join(" "), &load(words));
    }
    assert_plain("serve", &run(&mut narrows(["serve", "--port", "99999"])));
}

/// Whether the hard limit is high enough for this test.
fn raisable() -> bool {
    let most = limit(libc::RLIMIT_NOFILE).rlim_max;
    if most < 2048 {
        skip("1,100 connections", &format!("the hard limit of open files is {most}"));
    }
    most >= 2048
}

#[test]
fn more_connections_than_the_soft_limit_of_files_are_driven_and_served() {
    if !raisable() {
        return;
    }
    for io in backends() {
        let words = ["serve", "--port", "0", "--frames", "0", "--reactor", io];
        let server = Served::spawn(&mut limited(FILES, &words));
        let url = format!("{}/wait/100", server.http);
        let words = ["load", &url, "-n", MANY, "-c", MANY, "--json", "--reactor", io];
        let json = run(&mut limited(FILES, &words)).code(0).json();
        assert_eq!(
            (&json["completed"], &json["errors"]),
            (&1100.into(), &serde_json::json!({})),
            "{io}: {json}"
        );
        assert_eq!(server.counts(), [1100; 4], "{io}");
    }
}

#[test]
fn a_run_says_that_it_raised_the_limit_and_its_systems_have_it_too() {
    if !raisable() {
        return;
    }
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 1, &format!("[[grid]]\nconnections = {MANY}\n"));
    let ended = run(&mut home.narrows_limited(FILES, &["run", "e", "--rounds", "file"])).code(0);
    ended.says(&[&format!("raised the limit of open files from {FILES} to "), "for Narrows and its systems"]);
    home.assert_nothing_left();
    for system in ["twin", "reference"] {
        for measured in home.measured(system) {
            assert!(measured.errors.is_empty(), "{system}: {:?}", measured.first_errors);
        }
    }
}

#[test]
fn connections_beyond_the_hard_limit_are_refused_with_the_remedy() {
    let server = Served::start(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\"", support::NARROWS]);
    command.args(["load", &server.http, "-n", "1", "-c", MANY]);
    plain(&mut command);
    run(&mut command).code(1).says(&["1100 connections need", "limit is 256", "ulimit -n"]);
}
