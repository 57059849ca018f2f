//! The limit on open files, `files`: it reaches the processes of servers and of clients, as a knob of `try`, of `run` and of an
//! experiment's grid, and what this machine does not allow is refused or left out before the run.

use crate::support::home::Home;
use crate::support::{NARROWS, squeezed};

/// More than any machine allows.
const MUCH: &str = "9000000000000";

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];

/// Writes the limits with which it was started, before it begins with this.
fn noting(home: &Home, then: &str) -> String {
    let seen = home.path("seen");
    format!("echo $(ulimit -Sn) $(ulimit -Hn) >> {}\nexec {then}\n", seen.display())
}

/// The different limits that were noted.
fn seen(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("seen")).expect("it has started");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[test]
fn a_limit_on_open_files_reaches_a_command_and_its_placeholder() {
    let home = Home::new();
    home.write(
        "start.sh",
        &format!("echo for $1 >> told\n{}", noting(&home, &format!("{NARROWS} serve -p $2"))),
    );
    let server = "sh start.sh {files} {port}";
    let ended = home.run(["try", server, "-k", "files=300,200"].into_iter().chain(SHORT)).code(0);
    assert_eq!(seen(&home), ["200 200", "300 300"]);
    let told = std::fs::read_to_string(home.path("told")).expect("it was told");
    assert!(told.contains("for 200\n") && told.contains("for 300\n"), "{told}");
    // What a system has when it is ready may depend on its limit, so the table shows it.
    assert!(["start", "idle memory"].iter().all(|column| ended.stdout.contains(column)), "{ended:#?}");
    assert_eq!(home.observations().len(), 3);
}

#[test]
fn a_limit_on_open_files_in_a_grid_reaches_clients_and_what_is_too_much_is_left_out() {
    let home = Home::new();
    home.client("one", r#"["sh", "start.sh", "{narrows}"]"#, "");
    home.write("systems/one/start.sh", &noting(&home, "\"$1\" client"));
    let grid = format!("[[grid]]\npool_size = 2\nfiles = [200, \"as-it-is\", {MUCH}]\n");
    home.experiment("clients", r#"["one"]"#, 1, &grid);
    home.run(["run", "e", "--rounds", "1"]).code(0);
    let limits = seen(&home);
    assert!(limits.len() == 2 && limits.contains(&"200 200".to_owned()), "{limits:?}");
    let said = squeezed(&home.run(["report", "last"]).code(0).stdout);
    let left_out = format!("not run: one at some points: files {MUCH}: more than this machine allows");
    assert!(said.contains(&left_out), "{said}");
    assert!(said.contains("as-it-is"), "{said}");
    let much = format!("files={MUCH}");
    home.run(["run", "e", "--set", &much]).code(1).says(&["is more than this machine allows"]);
}
