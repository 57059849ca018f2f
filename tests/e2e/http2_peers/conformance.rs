//! The conformance tests h2spec and h2specd.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::load_tls::Issued;
use crate::support::{Ended, NARROWS, Served, checkout, plain, run, say_skipped};

/// The path of a conformance test, if `scripts/tools` could build it. Not every machine reaches the Go module proxy.
fn conformance(tool: &str) -> Option<PathBuf> {
    let path = checkout().join("target/tools").join(tool);
    if !path.exists() {
        say_skipped(tool, "scripts/tools could not build it");
    }
    Some(path).filter(|path| path.exists())
}

/// The counts in the last line of h2spec and h2specd: all, passed, skipped and failed.
fn counted(ended: &Ended) -> Vec<u64> {
    let line = ended.stdout.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_default();
    line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
}

fn spec(program: &Path, url: &str, secured: bool) -> Ended {
    let (host, port) = url.rsplit_once(':').expect("a port");
    let host = host.rsplit_once('/').expect("a host").1;
    let mut command = Command::new(program);
    command.args(["-h", host, "-p", port, "-P", "/bytes/100", "-o", "5", "-S"]);
    if secured {
        command.args(["-t", "-k"]);
    }
    plain(&mut command);
    run(&mut command)
}

#[test]
fn the_server_conforms() {
    let Some(program) = conformance("h2spec") else { return };
    let issued = Issued::new(&["localhost", "127.0.0.1"], 1);
    let secured = issued.serve(&[]);
    let ended = spec(&program, &secured.http, true);
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[0] >= 146 && counts[1] == counts[0], "{}", ended.stdout);
    // On a port that speaks HTTP/1.1 as well, what is neither is answered as a bad request of HTTP/1.1. h2spec wants no answer.
    let ended = spec(&program, &Served::start(&[]).http, false);
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[3] == 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("Sends invalid connection preface"), "{}", ended.stdout);
}

#[test]
fn the_generator_conforms() {
    let Some(program) = conformance("h2specd") else { return };
    let dir = TempDir::new().expect("a folder");
    // One request. The connection stays open for a while after its answer: some tests send a PING then, and want an answer.
    let drive = format!("{NARROWS} load --http2 -c 1 --rate 2 -d 500ms --timeout 1s");
    // It gives up where a command takes three seconds, or a port is taken.
    let gave_up = |ended: &Ended| {
        let said = ended.stdout.clone() + &ended.stderr;
        said.contains("Error: Timeout") || said.contains("address already in use")
    };
    let mut ended = None;
    for first in [20_100, 20_300, 20_500, 20_700, 20_900] {
        let first: u32 = first;
        let mut command = Command::new(&program);
        plain(command.args(["-h", "127.0.0.1", "-f", &first.to_string(), "-o", "5", "-e", &drive]));
        command.stdin(Stdio::null()).current_dir(dir.path());
        ended = Some(run(&mut command)).filter(|ended| !gave_up(ended));
        if ended.is_some() {
            break;
        }
    }
    let Some(ended) = ended else { return say_skipped("h2specd", "this machine is too busy for it") };
    let counts = counted(&ended);
    assert!(counts.len() == 4 && counts[0] >= 57 && counts[1] == counts[0], "{}", ended.stdout);
}
