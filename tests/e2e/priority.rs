//! `--priority`: the command and what it starts go first, and end with it.

use std::process::Command;

use crate::support::NARROWS;
use crate::support::home::Home;

#[test]
fn what_is_started_goes_first_if_the_user_may_do_that() {
    let home = Home::new();
    let server =
        format!("sh -c 'cut -d\" \" -f19 /proc/self/stat >> nice; exec {NARROWS} serve -p {{port}}'");
    let ended = home.run(["try", &server, "--priority", "--rounds", "1", "-d", "400ms", "--warmup", "50ms"]);
    // `nice` counts from its caller's niceness, and the tests may run under another than 0. `renice` sets it.
    let may = Command::new("sh").args(["-c", "renice -n -20 -p $$ && test $(nice) = -20"]).output();
    if !may.expect("a shell").status.success() {
        ended.code(2).says(&["--priority needs root", "CAP_SYS_NICE"]);
        return;
    }
    ended.code(0);
    let seen = std::fs::read_to_string(home.path("nice")).expect("it has started");
    assert!(!seen.is_empty() && seen.lines().all(|nice| nice == "-20"), "{seen}");
    // The code is that of the command.
    home.run(["try", "false", "--priority"]).code(1);
}
