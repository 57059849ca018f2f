//! `narrows try`: commands, settings of a command and running servers, without a file.

use lab::observation::Outcome;

use crate::support::home::Home;
use crate::support::{NARROWS, Served, has, run, squeezed};

/// Short trials, so that a test takes seconds.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "20ms", "--seed", "1"];

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
    // The first look at each point, then a round with the base's twin.
    assert_eq!(seen.lines().count(), 2 + 3);

    let shown = home.run(["try", "./s -w {w} {port}", "-L", "w", "1..4*2", "--env", "A={w}", "--dry-run"]);
    let lines = shown.code(0).stdout;
    let expected = "s w=1: A=1 ./s -w 1 {port}\ns w=2: A=2 ./s -w 2 {port}\ns w=4: A=4 ./s -w 4 {port}\n";
    assert_eq!(lines, expected);
}

#[test]
fn commands_run_around_the_trials() {
    let home = Home::new();
    let words = ["try", &server(), "--knob", "cores=1", "--shell", "--setup", "echo setup >> log"];
    let hooks = ["--prepare", "echo prepare >> log", "--conclude", "echo conclude >> log"];
    home.run(words.into_iter().chain(hooks).chain(SHORT)).code(0);
    let log = std::fs::read_to_string(home.path("log")).expect("they have run");
    // The first look, and a round of the base and its twin.
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
    let ended = home.run(["try", "node socket.js {socket} {port}"].into_iter().chain(SHORT)).code(2);
    ended.says(&["both {port} and {socket}"]);
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
fn costs_are_compared_below_saturation() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let one = home.node("one.js", "'ok'", 0);
    let words = ["try", &one, "--figure", "rate,cpu,memory,p50", "-c", "4"];
    let ended = home.run(words.into_iter().chain(SHORT)).code(0);
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for e in report["experiments"].as_array().expect("experiments") {
        let name = e["name"].as_str().unwrap_or_default();
        let of = e["figures"].as_array().expect("figures").iter();
        figures.extend(of.map(|f| (name, f["figure"].as_str().unwrap_or_default())));
    }
    let open = "try-at-rate";
    let expected =
        [("try", "requests_per_s"), (open, "cpu_per_unit"), (open, "memory_bytes"), (open, "p50_us")];
    assert_eq!(figures, expected, "{ended:#?}");
    // Further figures have a line each, and the deciding one stands last.
    let lines = ended.stdout.lines().count();
    assert!(ended.stdout.contains("\nmemory_bytes: one.js") && lines < 30, "{ended:#?}");
    for e in &home.observations() {
        let rate = e.trial.scenario.work().rate();
        assert_eq!(rate.is_some(), e.trial.scenario.experiment == open);
    }
    home.run(["try", &one, "--fail-if", "cpu>1.1"]).code(2).says(&["name this figure in --figure"]);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn runs_are_compared_as_shares_of_the_same_base() {
    let home = Home::new();
    let server = server();
    let other = format!("{server} --max-keepalive 1000000");
    for arms in [[&server, &other], [&server, &other], [&other, &other]] {
        home.run(["try", arms[0], arms[1], "--names", "a,b"].into_iter().chain(SHORT)).code(0);
    }
    let ended = home.run(["compare", "1", "2"]).code(0);
    // The base beside itself would always be equal.
    assert!(ended.stdout.contains("\nb ") && !ended.stdout.contains("\na "), "{ended:#?}");
    home.run(["compare", "2", "3"]).code(1).says(&["meaningless", "try base"]);
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
    let words = ["try", &server, "--save", "mine"];
    home.run(words.into_iter().chain(SHORT)).code(1).says(&["exists", "choose another name"]);
    let words = ["try", &server, "--save", "../mine"];
    home.run(words.into_iter().chain(SHORT)).code(2);
}

#[test]
fn a_command_that_is_not_quoted_is_told_so_at_once() {
    let home = Home::new();
    for words in [["try", "node", "server.js", "{port}"], ["try", "server", "--port", "{port}"]] {
        let quoted = format!("quote it: '{}'", words[1..].join(" "));
        home.run(words).code(2).says(&[&quoted]);
    }
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
fn a_gate_needs_something_to_judge() {
    let home = Home::new();
    let words = ["try", &server(), "--fail-if", "rate<0.9"];
    home.run(words.into_iter().chain(SHORT)).code(3).says(&["cannot be judged: nothing was compared"]);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_gate_may_limit_the_figure_itself() {
    let home = Home::new();
    let gate = |bounds: &str| {
        let server = server();
        let words = ["try", &server, "--figure", "rate,memory", "--fail-if", bounds];
        home.run(words.into_iter().chain(SHORT))
    };
    // No server answers without memory, nor with a terabyte.
    gate("memory>1000GB,rate<1/s").code(0);
    gate("memory>1kB").code(3).says(&["failed: ", "MB [", "memory>1kB"]);
    gate("rate>1/s").code(3).says(&["failed: ", "/s [", "rate>1/s"]);
    gate("rate<20ms").code(2).says(&["ms is none of its units, which are /s, k/s"]);
    // Chance decides whether a bound at the figure itself is decided, but never the words.
    let at_the_bound = |words: &[&str]| {
        let (one, other) = (server(), format!("{} --threads 1", server()));
        let words = [&["try", &one, &other, "--fail-if", "rate<1"], words, &SHORT[..]].concat();
        home.run(&words)
    };
    let ended = at_the_bound(&[]);
    let (code, said) = (ended.status.code(), squeezed(&ended.stderr));
    assert_eq!(code == Some(4), said.contains("inconclusive is no pass"), "{ended:#?}");
    let fails = said.contains("failed: ") || said.contains("cannot be judged: ");
    assert_eq!(code == Some(3), fails, "{ended:#?}");
    assert_ne!(at_the_bound(&["--inconclusive", "pass"]).status.code(), Some(4));
    assert_ne!(at_the_bound(&["--inconclusive", "fail"]).status.code(), Some(4));
    home.run(["compare", "1", "2", "--fail-if", "p99>20ms"]).code(2).says(&["compared by their ratios"]);
}

#[test]
fn every_mistake_names_its_arm_and_leaves_nothing() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let one = home.node("one.js", "'one'", 0);
    let two = home.node("two.js", "'two'", 0);
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
        (vec![&one, "--path", "/missing"], vec!["one.js: it answers 404", "--path", "--expect-status 404"]),
        (
            vec![&one, &two],
            vec!["one.js answers 200 with 3 bytes, \"one\"", "two.js answers 200", "--unequal"],
        ),
        (vec!["a && b"], vec!["this needs a shell", "--shell"]),
        (vec!["A=1 b"], vec!["--env NAME=VALUE"]),
        (vec![&server, "-H", "a b: c"], vec!["not a token"]),
        (vec![&server, "--rate", "0.3"], vec!["--rate is a whole number"]),
        (
            vec![&server, "--figure", "rate", "--rate", "200"],
            vec!["--rate says how many requests arrive", "the same for every arm", "leave --rate out"],
        ),
        (vec!["s {prot}"], vec!["nothing gives {prot} a value", "did you mean `port`?"]),
        (vec![&server, "--knob", "w=1,2"], vec!["no command contains {w}", "--env NAME={w}"]),
        (vec![&server, "--knob", "cores=1000"], vec!["cores"]),
        (vec![&server, "--knob", "w=1..0"], vec!["1 is above 0"]),
        (
            vec![&server, "--figure", "p99", "--rate", "200"],
            vec!["--figure p99 needs 1000 answers in each trial, and 200 arrive in a second: use -d 6s"],
        ),
        (
            vec![&server, "--unequal", "--fail-if", "rate<0.9"],
            vec!["--fail-if rate<0.9 is about a ratio, and --unequal compares nothing"],
        ),
        (vec!["http://127.0.0.1:1/a", "http://127.0.0.1:2/b"], vec!["different paths"]),
        (vec!["http://192.0.2.1:80"], vec!["cannot attach", "this machine"]),
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

#[test]
fn unequal_arms_are_measured_without_any_ratio() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let one = home.node("one.js", "'one'", 0);
    let two = home.node("two.js", "'two'", 0);
    let ended = home.run(["try", &one, &two, "--unequal"].into_iter().chain(SHORT)).code(0);
    assert!(ended.stdout.contains("nothing is compared: the systems answer differently"), "{ended:#?}");
    assert!(!ended.stdout.contains("of base") && !ended.stdout.contains("noise:"), "{ended:#?}");
    for format in ["markdown", "html", "csv"] {
        let report = home.run(["report", "last", "--format", format]).code(0).stdout;
        assert!(!report.contains("faster than") && !report.contains("slower than"), "{format}: {report}");
    }
    let json = home.run(["report", "last", "--format", "json"]).code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let found = &json["experiments"][0]["figures"][0];
    let shares: Vec<_> =
        found["estimates"].as_array().expect("rows").iter().map(|row| &row["of_reference"]).collect();
    assert_eq!(shares, [&serde_json::Value::Null; 2], "{json}");
    assert_eq!(
        (&found["comparisons"], &found["noise_floor"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
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
#[ignore = "long; `make test-long` runs it"]
fn runs_of_commands_are_saved_in_the_users_folder() {
    let home = Home::new();
    let server = server();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = [1]\n");
    let ended = home.run(["try", &server].into_iter().chain(SHORT)).code(0);
    let said = squeezed(&ended.stdout);
    assert!(said.contains("run 1 is saved in state/narrows/narrows.db"), "{ended:#?}");
    assert!(said.contains("`narrows report 1` prints"), "{ended:#?}");
    assert!(home.path("state/narrows/narrows.html").exists() && !home.path("narrows.db").exists());
    // The newest run is found, whichever of the two stores has it.
    let shows = |what: &str| {
        let list = home.run(["report"]).code(0);
        assert!(list.stdout.contains(what), "{list:#?}");
        home.run(["report", "last"]).code(0);
    };
    shows("narrows try");
    home.run(["run", "e", "--rounds", "1"]).code(0);
    assert!(home.path("narrows.db").exists());
    shows("narrows run");
    home.run(["try", &server].into_iter().chain(SHORT)).code(0);
    shows("narrows try");
    // Nothing ran beside the base, so both runs are found and nothing is compared.
    home.run(["compare", "previous", "last"])
        .code(1)
        .says(&["previous and last measured one server each, and none beside it"]);
    home.run(["try", &server, "--store", "my.db"].into_iter().chain(SHORT)).code(0);
    assert!(home.path("my.db").exists() && home.path("my.html").exists());

    // Several at once share the store.
    let both: Vec<_> = (0..2).map(|_| home.spawn(&[&["try", &*server], &SHORT[..]].concat())).collect();
    both.into_iter().for_each(|run| _ = run.end().code(0));
    let store = lab::store::Store::read(&home.path("state/narrows/narrows.db")).expect("the store");
    let runs = store.runs().expect("its runs");
    assert_eq!(runs.iter().flatten().filter(|run| run.finished).count(), 4, "{runs:#?}");
    home.assert_nothing_left();

    // Where there is no place for it, the run is saved here.
    let mut nowhere = home.narrows(["try", &server].into_iter().chain(SHORT));
    let ended = run(nowhere.env("XDG_STATE_HOME", "/proc/nowhere")).code(0);
    let ended = ended.says(&["/proc/nowhere/narrows cannot be written", "--store FILE saves it elsewhere"]);
    assert!(ended.stdout.contains("is saved in narrows.db"), "{ended:#?}");
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
