//! Narrows is killed by SIGKILL: its keeper ends every process that it started, whatever that process does to escape, and
//! removes what was made for the run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::home::Home;
use crate::support::{Guarded, NARROWS, has, until};

/// Shell commands that leave two processes behind which are in sessions of their own, are nobody's children, and ignore
/// what asks them to end. Then the file `up` of the home exists.
fn escape(home: &Home) -> String {
    format!(
        "(setsid sh -c 'trap \"\" TERM HUP INT; (setsid sleep 3600 &) ; while :; do sleep 3601; done' &)\n\
         echo \"$port\" > {0}.new; mv {0}.new {0}\n",
        home.path("up").display()
    )
}

/// Starts narrows, kills it when the file `up` exists and `then` holds, and asserts that nothing is left.
fn kill(home: &Home, words: &[&str], then: impl Fn() -> bool) {
    kill_in(home, "", words, then);
}

/// The same, with this folder of the home as its current folder.
fn kill_in(home: &Home, folder: &str, words: &[&str], then: impl Fn() -> bool) {
    let (up, scratch) = (home.path("up"), home.path("scratch"));
    let _ = fs::remove_file(&up);
    fs::create_dir_all(&scratch).expect("a folder");
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut run = Guarded::spawn(
        home.narrows(words)
            .env("TMPDIR", &scratch)
            .env("XDG_CACHE_HOME", home.path("cache"))
            .env("XDG_STATE_HOME", home.path("state"))
            .env("PATH", path)
            .current_dir(home.path(folder)),
    );
    let mut ended = false;
    until(|| {
        ended = !run.running();
        ended || up.exists() && then()
    });
    if !ended {
        run.signal(libc::SIGKILL);
    }
    let run = run.end();
    assert!(!ended, "it ended by itself: {run:#?}");
    // The keeper is one of the marked processes, so its work is done after this.
    home.assert_nothing_left();
    let left: Vec<_> = fs::read_dir(&scratch).expect("it").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// An experiment whose only trials are those of `system`, and take an hour.
fn endless(home: &Home, workload: &str, system: &str, grid: &str) {
    home.timed_experiment(workload, &format!("[\"{system}\"]"), 1, 3600.0, &format!("[[grid]]\n{grid}\n"));
    // In one of two orders the reference would run first.
    let reference = if workload == "clients" { "reference-client" } else { "reference" };
    home.write(&format!("systems/{reference}/system.toml"), "none");
}

#[test]
fn a_server_that_escapes_ends_and_its_port_is_free() {
    let home = Home::new();
    let script = format!("{}trap '' TERM\n\"$narrows\" serve --any \"$port\" &\nwait", escape(&home));
    home.write("start.sh", &format!("narrows=$1 port=$2\n{script}\n"));
    let start = format!("sh start.sh {} {{port}}", NARROWS);
    let port = || -> Option<u16> { fs::read_to_string(home.path("up")).ok()?.trim().parse().ok() };
    let at = || port().map(systems::Listening::usual);
    let serves = || at().is_some_and(|at| !systems::port_free(at));
    kill(&home, &["try", &start, "-d", "1h"], serves);
    assert!(systems::port_free(at().expect("a port")));
}

#[test]
fn certificates_and_sockets_go_too() {
    let home = Home::new();
    let script = format!(
        "narrows=$1 port=$2\n{}exec \"$narrows\" serve -p \"$2\" \"--tls=$3\" --cert \"$4\" --key \"$5\"\n",
        escape(&home)
    );
    home.write("systems/secure/start.sh", &script);
    let command = r#"["sh", "start.sh", "{narrows}", "{port}", "{tls}", "{cert}", "{key}"]"#;
    home.server("secure", command, "");
    endless(&home, "requests", "secure", "tls = \"1.3\"");
    let made = |name: &str| {
        let folders = fs::read_dir(home.path("scratch")).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| folder.path().join(name).exists())
    };
    kill(&home, &["run", "e"], || made("p256.pem"));
    // A socket that nobody listens on yet is a file as well.
    let script = format!("narrows= port=\n{}exec python3 -c '{LISTEN}' \"$1\"\n", escape(&home));
    home.write("systems/local/start.sh", &script);
    home.server("local", r#"["sh", "start.sh", "{socket}"]"#, "[ready]\nhttp = \"/\"\ntimeout_s = 3600");
    endless(&home, "requests", "local", "connections = 1");
    if has("python3") {
        kill(&home, &["run", "e"], || made("0.socket"));
    }
}

/// Listens on a Unix socket, and never answers.
const LISTEN: &str = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); \
                      [s.accept() for _ in iter(int, 1)]";

#[test]
fn a_client_that_escapes_ends() {
    let home = Home::new();
    home.client("client", r#"["sh", "start.sh", "{narrows}"]"#, "");
    home.write(
        "systems/client/start.sh",
        &format!("narrows=$1 port=\n{}exec \"$narrows\" client\n", escape(&home)),
    );
    endless(&home, "clients", "client", "pool_size = 2\nconcurrency = 2\ndelay_ms = 1");
    kill(&home, &["run", "e"], || true);
}

#[test]
fn builds_hooks_and_probes_end() {
    let errand = "command = [\"sh\", \"errand.sh\"]";
    for more in [
        format!("[build]\n{errand}\n"),
        "[[needs]]\nname = \"it\"\nprobe = [\"sh\", \"errand.sh\"]\nget = \"no\"\n".to_owned(),
    ] {
        let home = Home::new();
        home.server("slow", r#"["{narrows}", "serve", "--any", "{port}"]"#, &more);
        home.write("systems/slow/errand.sh", &format!("{}sleep 3602\n", escape(&home)));
        endless(&home, "requests", "slow", "connections = 1");
        kill(&home, &["run", "e"], || true);
    }
    let home = Home::new();
    home.write("errand.sh", &format!("{}sleep 3602\n", escape(&home)));
    let server = format!("{} serve -p {{port}}", NARROWS);
    kill(&home, &["try", &server, "--prepare", "sh errand.sh"], || true);
}

/// A repository with two commits in the folder `project` of a home, whose build is `build.sh`.
fn repository(home: &Home) {
    home.write("project/build.sh", &format!("touch made\n{}sleep 3602\n", escape(home)));
    let script = "git init -q -b main && git add -A && commit() { \
                  git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m one; } && commit && commit";
    let mut command = std::process::Command::new("sh");
    let made = command.args(["-c", script]).current_dir(home.path("project")).status().expect("git");
    assert!(made.success());
}

/// What is unfinished in the cache.
fn unfinished(home: &Home) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let all = entries(home.path("cache/narrows/revisions")).flat_map(|folder| entries(folder.path()));
    all.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|name| name == "new")).collect()
}

#[test]
fn the_build_of_a_commit_ends_and_a_clone_in_the_making_goes() {
    if !has("git") {
        return;
    }
    let home = Home::new();
    repository(&home);
    let server = format!("{NARROWS} serve -p {{port}}");
    let words = ["try", "--git", "main~1..main", "--build", "sh build.sh", &server];
    // Git waits while it makes the clone.
    let git = "#!/bin/sh\nPATH=${PATH#*:}\ncase \"$*\" in *\"init --quiet\"*)\n";
    home.write("bin/git", &format!("{git}{}sleep 3603;;\nesac\nexec git \"$@\"\n", escape(&home)));
    fs::set_permissions(home.path("bin/git"), fs::Permissions::from_mode(0o755)).expect("a program");
    kill_in(&home, "project", &words, || !unfinished(&home).is_empty());
    assert_eq!(unfinished(&home), [] as [PathBuf; 0]);
    fs::remove_file(home.path("bin/git")).expect("it");
    kill_in(&home, "project", &words, || true);
}
