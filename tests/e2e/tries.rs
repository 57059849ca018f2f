//! `narrows try`: commands, settings of a command and running servers, without a file. `tests/check/tries.rs` tests what follows from
//! the figures.

use lab::observation::Outcome;
use serde_json::Value;

use crate::support::home::Home;
use crate::support::{NARROWS, Served, has, run, squeezed, until};

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];

/// The reference as a command of the user's.
fn server() -> String {
    format!("{NARROWS} serve -p {{port}}")
}

#[test]
fn a_knob_reaches_the_command_and_its_environment() {
    let home = Home::new();
    let script = format!("echo \"$WORKERS $1\" >> seen; exec {NARROWS} serve -p $2");
    home.write("start.sh", &script);
    let words = ["try", "sh start.sh {w} {port}", "--knob", "w=1,2", "--env", "WORKERS=w{w}", "--quiet"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    assert!(ended.stdout.contains("start.sh"), "{ended:#?}");
    let seen = std::fs::read_to_string(home.path("seen")).expect("it has started");
    let mut points: Vec<&str> = seen.lines().collect();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points, ["w1 1", "w2 2"]);
    // The first look at each point, then both points and the base's twin.
    assert_eq!(seen.lines().count(), 2 + 3);
}

#[test]
fn commands_run_around_the_trials() {
    let home = Home::new();
    let words = ["try", &server(), "--knob", "cores=1", "--shell", "--setup", "echo setup >> log"];
    let hooks = ["--prepare", "echo prepare >> log", "--conclude", "echo conclude >> log"];
    home.run(words.into_iter().chain(hooks).chain(SHORT)).code(0);
    let log = std::fs::read_to_string(home.path("log")).expect("they have run");
    // The first look, the base and its twin.
    let expected = format!("setup\n{}", "prepare\nconclude\n".repeat(3));
    assert_eq!(log, expected);
    let failing = ["try", &server(), "--prepare", "false"];
    home.run(failing.into_iter().chain(SHORT)).code(1).says(&["prepare command exited with code 1"]);
}

#[test]
fn a_long_body_is_the_same_in_the_first_look_and_in_the_trials() {
    let home = Home::new();
    let echo = ["--path", "/echo", "--body-size", "600K", "-c", "2"];
    let ended = home.run([&["try", &server()][..], &echo, &SHORT].concat()).code(0);
    assert!(
        squeezed(&ended.stdout).contains("POST /echo: every answer was 200 with the same 614400 bytes"),
        "{ended:#?}"
    );
    assert!(home.observations().iter().all(|seen| matches!(seen.outcome, Outcome::Measured(_))));
}

#[test]
fn the_port_of_a_server_that_chooses_it_is_found() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    home.node("any.js", "'ok'", 0);
    let ended = home.run(["try", "node any.js"].into_iter().chain(SHORT)).code(0);
    assert!(ended.stdout.contains("any.js"), "{ended:#?}");
    assert!(home.measured("any.js").iter().all(|m| m.errors.is_empty()));
    home.write(
        "two.js",
        "for (const port of [0, 0]) require('net').createServer().listen(port, '127.0.0.1');\n",
    );
    home.run(["try", "node two.js"].into_iter().chain(SHORT)).code(1).says(&["listen on several ports"]);
}

#[test]
fn a_unix_socket_is_driven_and_removed() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let script =
        "require('http').createServer((request, answer) => answer.end('ok')).listen(process.argv[2]);\n";
    home.write("socket.js", script);
    let words = ["try", "node socket.js {socket}", "--close"].into_iter().chain(SHORT);
    let sockets = tempfile::TempDir::new().expect("a folder");
    let ended = run(home.narrows(words).env("TMPDIR", sockets.path())).code(0);
    assert!(ended.stdout.contains("socket.js"), "{ended:#?}");
    for m in home.measured("socket.js") {
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
    assert_eq!(std::fs::read_dir(sockets.path()).expect("the folder").count(), 0);
}

#[test]
fn running_servers_are_compared_and_left_running() {
    let home = Home::new();
    let (mut first, mut second) = (Served::start(&[]), Served::start(&[]));
    let words = ["try", &first.http, &second.http, "--path", "/wait/1"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    assert!(ended.stdout.contains("GET /wait/1: every answer was 200"), "{ended:#?}");
    assert!(ended.stderr.contains("nothing is restarted"), "{ended:#?}");
    assert!(first.running() && second.running());
    home.run(["try", "http://127.0.0.1:1"].into_iter().chain(SHORT))
        .code(1)
        .says(&["nothing listens on 127.0.0.1:1"]);
}

#[test]
fn a_saved_comparison_runs_again() {
    let home = Home::new();
    let server = server();
    let words = ["try", &server, &server, "--names", "a,b", "--knob", "cores=1", "--save", "mine"];
    home.run(words.into_iter().chain(SHORT)).code(0).says(&["NARROWS_HOME=narrows narrows run mine"]);
    let mut again = home.narrows(["run", "mine", "--rounds", "file"]);
    let ended = run(again.env("NARROWS_HOME", home.path("narrows"))).code(0);
    assert!(ended.stdout.contains("mine"), "{ended:#?}");
    let systems: Vec<String> =
        home.observations().into_iter().map(|seen| seen.trial.scenario.system).collect();
    assert!(systems.contains(&"mine-a".to_owned()) && systems.contains(&"mine-b".to_owned()), "{systems:?}");
}

#[test]
fn a_limit_on_memory_is_kept_or_refused() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let one = home.node("one.js", "'ok'", 0);
    let words = ["try", &one, "--knob", "memory=8M"];
    // No process of Node.js fits into 8 MB. Where no control group may be made, the limit is refused.
    let ended = home.run(words.into_iter().chain(SHORT));
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    let said = squeezed(&format!("{}{}", ended.stdout, ended.stderr));
    let kept = said.contains("its limit on memory may be too low");
    assert!(kept || said.contains("no control group may be made here"), "{said}");
}

#[test]
fn every_mistake_names_its_arm_and_leaves_nothing() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let taken = Served::start(&[]);
    let port = taken.http.rsplit(':').next().expect("a port").to_owned();
    let server = server();
    for (words, said) in [
        (vec!["./nosuch {port}"], vec!["nosuch: cannot start `./nosuch`", "No such file"]),
        (vec!["sh -c 'echo broken; exit 3' {port}"], vec!["sh: its program exited with code 3", "broken"]),
        (vec!["sleep 60", "--ready", "1s"], vec!["sleep: its processes listen on no TCP port", "--ready"]),
        (
            vec!["sleep 60 {port}", "--ready", "1s"],
            vec!["sleep: not ready in time: no connection on 127.0.0.1", "--ready gives it more time"],
        ),
        (vec![&server, "-H", "a b: c"], vec!["not a token"]),
    ] {
        let all = ["try"].into_iter().chain(words.iter().copied()).chain(SHORT);
        let ended = home.run(all);
        assert_ne!(ended.status.code(), Some(0), "{words:?}: {ended:#?}");
        ended.says(&said);
    }
    // The port that the second command is told is free, but this one insists on a taken one.
    let insists = format!("{NARROWS} serve -p {port}");
    let ended = home.run(["try", &insists].into_iter().chain(SHORT)).code(1);
    ended.says(&["narrows: its program exited with code"]);

    // An answer that changes later is no answer. The first look uses each connection once, and the check of a trial, after which
    // it changes, uses one three times.
    let script = "let say = 'yes'; require('http').createServer((q, a) => {\n\
                  a.end(say); q.socket.n = (q.socket.n ?? 0) + 1; if (q.socket.n === 3) say = 'no!';\n\
                  }).listen(Number(process.argv[2]), '127.0.0.1');\n";
    home.write("fickle.js", script);
    let ended = home.run(["try", "node fickle.js {port}"].into_iter().chain(SHORT)).code(1);
    ended.says(&["fickle.js gave no right answer in any trial"]);
}

/// A server of Node.js whose answers vary: a counter, by default and as what a POST creates; the number of its process; the
/// time in seconds; itself; and an answer that changes later.
const VARIES: &str = "let n = 0; require('http').createServer((q, a) => {\n\
    const say = { '/pid': () => process.pid, '/time': () => Math.floor(Date.now() / 1000), '/self': () => q.headers.host,\n\
      '/later': () => n++ < 40 ? 'yes' : 'nope' }[q.url] || (() => ++n);\n\
    if (q.method == 'POST') a.statusCode = 201;\n\
    q.resume().on('end', () => a.end(JSON.stringify({ id: say() })));\n\
    }).listen(Number(process.argv[2]), '127.0.0.1');\n";

#[test]
#[ignore = "long; `make test-long` runs it"]
fn answers_that_vary_are_measured() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    home.write("varies.js", VARIES);
    let run = |more: &[&str]| {
        let words = ["try", "node varies.js {port}"].into_iter().chain(more.iter().copied()).chain(SHORT);
        home.run(words)
    };
    for (more, said) in [
        (&["--path", "/"][..], "every answer was 200 with any content"),
        (&["-X", "POST", "--body", "{\"a\": 1}"], "every answer was 201 with any content"),
        (&["--path", "/pid"], "every answer was 200 with any content"),
        (&["--path", "/time"], "every answer was 200 with any content"),
        (&["--path", "/self"], "every answer was 200 with any content"),
        (&["--path", "/", "--expect", "json.id>0"], "every answer was 2xx and met `json.id>0`"),
        (&["--path", "/later", "--expect", "status=200"], "every answer was 2xx and met `status=200`"),
        (&["--path", "/later", "--unequal"], "every answer was 2xx with any content"),
    ] {
        let ended = run(more).code(0);
        assert!(squeezed(&ended.stdout).contains(said), "{more:?}: {ended:#?}");
        home.assert_all_right(&format!("{more:?}"));
    }
    // What the first look cannot know is told with what was seen, what was expected, and what to do.
    let ended = run(&["--path", "/later"]);
    let said = squeezed(&ended.stdout);
    for part in [
        "it answers GET /later otherwise than in the first look",
        "the body has \"nope\\\"}\" at byte 7",
        "at first it was 200 with 12 bytes, \"{\\\"id\\\":\\\"yes\\\"}\"",
        "--expect status=2xx accepts any content",
    ] {
        assert!(said.contains(part), "{part}: {ended:#?}");
    }
}

#[test]
fn a_server_that_shows_its_folder_is_measured() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    let words = ["try", "python3 -m http.server {port} --bind 127.0.0.1"];
    home.run(words.into_iter().chain(SHORT)).code(0);
    home.assert_all_right("a server that shows its folder");
}

#[test]
fn a_service_stands_beside_all_arms() {
    let home = Home::new();
    let port = systems::free_port().expect("a free port");
    let service = format!("{NARROWS} serve -p {port}");
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} || exit 7\nexec {NARROWS} serve -p $1\n");
    home.write("start.sh", &script);
    let words = ["try", "bash start.sh {port}", "--service", &service];
    home.run(words.into_iter().chain(SHORT)).code(0);
    home.run(["try", "bash start.sh {port}"].into_iter().chain(SHORT)).code(1).says(&["exited with code 7"]);
    let dies = ["try", "bash start.sh {port}", "--service", "false"];
    home.run(dies.into_iter().chain(SHORT)).code(1).says(&["the service exited with code 1"]);
}

#[test]
fn two_servers_run_at_the_same_time() {
    let home = Home::new();
    let arms = [format!("{} -t 1", server()), server()];
    let hooks = ["--shell", "--prepare", "echo prepare >> log", "--conclude", "echo conclude >> log"];
    let short = ["--save", "both", "--duet", "--rounds", "1", "-d", "400ms", "--warmup", "50ms"];
    let words = ["try", &arms[0], &arms[1]].into_iter().chain(hooks).chain(short);
    home.run(words).code(0);
    let saved = std::fs::read_to_string(home.path("narrows/experiments/both.toml")).expect("it is saved");
    assert!(saved.contains("duet = true\n"), "{saved}");
    let log = std::fs::read_to_string(home.path("log")).expect("they have run");
    // After the first look at each arm, both are prepared before one of them is stopped.
    let looks = "prepare\nconclude\n".repeat(2);
    assert!(log.starts_with(&format!("{looks}prepare\nprepare\nconclude\nconclude\n")), "{log}");
    let seen = home.observations();
    assert_eq!(seen.len(), 4, "a duet of the two, and one of the base and its twin");
    assert!(seen.iter().all(|o| o.duet.is_some()), "{seen:#?}");
    assert!(seen.chunks(2).all(|two| two[0].trial.is_with(&two[1].trial) && two[0].duet == two[1].duet));
}

#[test]
fn an_attempt_of_a_ledger_that_is_interrupted_is_spent_and_does_not_go_on() {
    let home = Home::new();
    let (slow, quick) = (format!("{} -t 1", server()), server());
    let words = ["try", &slow, &quick, "--ledger", "ledger.json", "--no-duet"];
    let long = ["--rounds", "50", "-d", "400ms", "--warmup", "50ms"];
    let running = home.spawn(&[&words[..], &long].concat());
    assert!(until(|| home.path("ledger.json").exists()));
    running.signal(libc::SIGINT);
    running.end().code(130).says(&["attempt 1 of ledger.json is spent"]);
    let kept = std::fs::read_to_string(home.path("ledger.json")).expect("the ledger");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let attempt = &kept["attempts"][0];
    assert_eq!((&attempt["complete"], &attempt["decision"]), (&Value::from(false), &Value::from("reject")));
    home.run(["run", "--resume", "1"]).code(1).says(&["it is an attempt of a ledger"]);
    home.assert_nothing_left();
}

/// A stream of events that does not end.
const EVENTS: &str = "\
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream; charset=utf-8')
        self.end_headers()
        while True:
            self.wfile.write(b'data: tick\\n\\n')
            time.sleep(0.05)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

#[test]
fn a_stream_of_events_is_told_from_a_slow_answer() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    home.write("events.py", EVENTS);
    let words = ["try", "python3 events.py {port}", "--timeout", "1s"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(1);
    let ended =
        ended.says(&["a stream that does not end", "200 with Content-Type: text/event-stream", "--path"]);
    assert!(!ended.stderr.contains("it printed nothing"), "{ended:#?}");
}
